// Bytes and errors of an array with many tolerances or precisions, in one pass over its blocks.
//
// A block's stream with a coarse tolerance is the beginning of that with a finer one: the mode says only how many bit
// planes are sent. So bits are counted plane by plane, without a stream; and the values that a reader gets are those of
// the coefficients whose lower planes are cleared.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "block.hpp"
#include "block_limits.hpp"
#include "cast.hpp"
#include "environment.hpp"
#include "order.hpp"
#include "stream.hpp"
#include "transform.hpp"

namespace tamis::zfp {

// An array with one of the modes.
struct Rung {
    std::uint64_t nbits = 0;  // of the stream
    double error = 0;         // largest absolute error of the values that count
    double squares = 0;       // sum of the squares of their errors

    void add(const Rung& other) {
        nbits += other.nbits;
        error = std::max(error, other.error);
        squares += other.squares;
    }
};

// Whether nothing but a number of planes cuts the blocks of an array.
constexpr bool has_ladder(Type type, unsigned rank, const Params& params) {
    return is_float(type) && !params.reversible() && params.minbits <= min_bits &&
           params.maxbits >= block_unlimited_nbits(type, rank, params);
}

namespace detail {

// Bits of the planes of a block from the highest one down: entry k is those of planes k and above.
template <unsigned rank, class UInt>
std::array<unsigned, 8 * sizeof(UInt) + 1> count_plane_bits(const UInt* coefficients) {
    constexpr unsigned size = block_size(rank), nbits = 8 * sizeof(UInt);
    // As plane_code.hpp has it: coefficients before `significant` are sent as they are, later ones by runs, each of
    // which ends in a one. A coefficient ends a run in its highest plane if none behind it has a higher one.
    std::array<unsigned, nbits + 1> significant{}, runs{};
    unsigned highest = 0;
    for (unsigned i = size; i-- > 0;) {
        const unsigned width = static_cast<unsigned>(std::bit_width(coefficients[coefficient_order<rank>[i]]));
        if (width < highest || width == 0) continue;
        ++runs[width - 1];
        for (; highest < width; ++highest) significant[highest] = i + 1;
    }
    std::array<unsigned, nbits + 1> bits{};
    for (unsigned k = nbits; k-- > 0;) {
        const unsigned n = significant[k];
        const bool sent = significant[k + 1] == size;
        // The last group bit says that no coefficient follows; the one of the very last coefficient is implied.
        bits[k] = bits[k + 1] + (sent ? size : n == size ? n + runs[k] - 1 : n + runs[k] + 1);
    }
    return bits;
}

// The blocks of an array, each with all modes.
template <class Scalar, unsigned rank>
class Ladder {
    using T = Traits<Scalar>;
    using UInt = typename T::UInt;
    static constexpr unsigned size = block_size(rank), nbits = int_nbits<Scalar>;

public:
    // `valid` is null, or tells for each value whether it counts; both arrays are contiguous.
    Ladder(const Scalar* data, const bool* valid, const Layout& layout, std::span<const Params> modes,
           std::span<Rung> rungs)
        : data_(data), valid_(valid), layout_(layout), modes_(modes), rungs_(rungs) {}

    // Add one block. False where a value is NaN or infinite.
    bool add(const Place<const Scalar>& place) {
        load_block<rank>(block_, place, layout_);
        const UInt largest = largest_magnitude<size>(block_);
        if (largest >= infinity_bits<Scalar>) return false;
        if (largest == 0) {
            for (Rung& rung : rungs_) ++rung.nbits;
            return true;
        }
        all_inside_ = place.whole && valid_ == nullptr;
        if (!all_inside_) mark_inside(place);
        block_exponent_ = block_exponent<Scalar>(largest);
        to_integers<size>(coefficients_, block_, block_exponent_);
        forward_transform<LossyLift, rank>(coefficients_);
        UInt any = 0;
        for (UInt& each : coefficients_) any |= each = to_negabinary(each);
        const auto bits = count_plane_bits<rank>(coefficients_);
        Rung rung = without_planes();
        UInt before = 0;  // the planes of `rung`
        for (std::size_t i = 0; i < rungs_.size(); ++i) {
            const unsigned precision = float_precision<Ladder>(modes_[i], rank, block_exponent_);
            const unsigned lowest = precision < nbits ? nbits - precision : 0;
            const UInt kept = lowest < nbits ? static_cast<UInt>(~UInt{0} << lowest) : UInt{0};
            if ((any & (kept ^ before)) != 0) rung = with_planes(kept);
            before = kept;
            rung.nbits = precision == 0 ? 1 : 1 + T::ebits + bits[lowest];
            rungs_[i].add(rung);
        }
        return true;
    }

private:
    // Which values of a block count, if these are not all: those inside of the array that are valid.
    void mark_inside(const Place<const Scalar>& place) {
        std::fill_n(inside_, size, false);
        const bool* const valid = valid_ == nullptr ? nullptr : valid_ + (place.at - data_);
        const auto& stride = layout_.stride;
        for (unsigned w = 0; w < place.counts[3]; ++w)
            for (unsigned z = 0; z < place.counts[2]; ++z)
                for (unsigned y = 0; y < place.counts[1]; ++y)
                    for (unsigned x = 0; x < place.counts[0]; ++x)
                        inside_[x + 4 * y + 16 * z + 64 * w] =
                            valid == nullptr || valid[x * stride[0] + y * stride[1] + z * stride[2] + w * stride[3]];
    }

    // What a reader gets without any plane: zeros.
    Rung without_planes() {
        std::fill_n(decoded_, size, Scalar{0});
        return compared();
    }

    // What a reader gets if the planes of `kept` are sent.
    Rung with_planes(UInt kept) {
        alignas(32) UInt values[size];
        for (unsigned i = 0; i < size; ++i) values[i] = from_negabinary(static_cast<UInt>(coefficients_[i] & kept));
        inverse_transform<LossyLift, rank>(values);
        from_integers<size>(decoded_, values, block_exponent_);
        return compared();
    }

    Rung compared() const {
        return all_inside_ ? compared([](unsigned) { return true; }) : compared([&](unsigned i) { return inside_[i]; });
    }

    template <class Inside>
    Rung compared(Inside inside) const {
        // Sums of their own for a few values beside each other, which are added in vectors.
        constexpr unsigned lanes = 4;
        double errors[lanes] = {}, squares[lanes] = {};
        for (unsigned at = 0; at < size; at += lanes)
            for (unsigned lane = 0; lane < lanes; ++lane) {
                const unsigned i = at + lane;
                const double distance = std::abs(static_cast<double>(block_[i]) - static_cast<double>(decoded_[i]));
                const double error = inside(i) ? distance : 0;
                errors[lane] = errors[lane] > error ? errors[lane] : error;
                squares[lane] += error * error;
            }
        return {0, std::max(std::max(errors[0], errors[1]), std::max(errors[2], errors[3])),
                (squares[0] + squares[1]) + (squares[2] + squares[3])};
    }

    const Scalar* data_;
    const bool* valid_;
    const Layout& layout_;
    std::span<const Params> modes_;
    std::span<Rung> rungs_;
    alignas(32) Scalar block_[size];
    alignas(32) Scalar decoded_[size];
    alignas(32) UInt coefficients_[size];  // negabinary
    bool inside_[size];
    bool all_inside_ = true;
    int block_exponent_ = 0;
};

}  // namespace detail

// Add an array of floats to the rungs, one for each mode; the modes have a ladder. Where a value that is not finite is
// refused, the rungs have parts of the array. The layout is contiguous, like `valid`, which is null if all values
// count.
template <class Scalar, unsigned rank>
Status add_to_ladder(const Scalar* data, const bool* valid, const Layout& layout, std::span<const Params> modes,
                     std::span<Rung> rungs) {
    const FloatEnvironment environment;
    detail::Ladder<Scalar, rank> ladder(data, valid, layout, modes, rungs);
    const bool done = detail::for_each_row(layout, [&](std::ptrdiff_t offset, bool whole, const Counts& counts) {
        detail::Row row(data + offset, layout, whole, counts);
        Place<const Scalar> places[1];
        while (row.next(places))
            if (!ladder.add(places[0])) return false;
        return true;
    });
    if (done) return {};
    const Status refused = detail::first_refused(data, layout);
    return refused ? Status{Code::changed} : refused;  // a value that was refused is there no more
}

// The same for an array of either type and any rank.
inline Status add_to_ladder(Type type, const void* data, const bool* valid, const Layout& layout,
                            std::span<const Params> modes, std::span<Rung> rungs) {
    const auto with_rank = [&]<class Scalar>(const Scalar* values) {
        switch (layout.rank) {
            case 1:
                return add_to_ladder<Scalar, 1>(values, valid, layout, modes, rungs);
            case 2:
                return add_to_ladder<Scalar, 2>(values, valid, layout, modes, rungs);
            case 3:
                return add_to_ladder<Scalar, 3>(values, valid, layout, modes, rungs);
            default:
                return add_to_ladder<Scalar, 4>(values, valid, layout, modes, rungs);
        }
    };
    return type == Type::float32 ? with_rank(static_cast<const float*>(data))
                                 : with_rank(static_cast<const double*>(data));
}

}  // namespace tamis::zfp

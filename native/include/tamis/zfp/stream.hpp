// Arrays: the blocks in order, x fastest, and the proof that no access leaves the buffers.
#pragma once

#include <limits>
#include <span>

#include "block.hpp"
#include "block_codec.hpp"
#include "environment.hpp"
#include "status.hpp"

namespace tamis::zfp {

namespace detail {

// Bits beyond a block that the reader may look at, and that the writer may touch.
inline constexpr std::size_t guard_nbits = 128;

// Rows of blocks along x. `counts` holds the values of their blocks along the other axes, `whole` says that no block is
// cut along those.
template <class Visit>
inline bool for_each_row(const Layout& layout, Visit visit) {
    const auto& n = layout.extent;
    const auto& s = layout.stride;
    const auto count = [](std::size_t left) { return static_cast<unsigned>(std::min<std::size_t>(left, block_side)); };
    const auto step = [](std::size_t at, std::ptrdiff_t stride) { return static_cast<std::ptrdiff_t>(at) * stride; };
    for (std::size_t w = 0; w < n[3]; w += block_side)
        for (std::size_t z = 0; z < n[2]; z += block_side)
            for (std::size_t y = 0; y < n[1]; y += block_side) {
                const Counts counts{block_side, count(n[1] - y), count(n[2] - z), count(n[3] - w)};
                bool whole = true;
                for (unsigned axis = 1; axis < layout.rank; ++axis) whole &= counts[axis] == block_side;
                if (!visit(step(y, s[1]) + step(z, s[2]) + step(w, s[3]), whole, counts)) return false;
            }
    return true;
}

// The blocks of one row, a few at a time.
template <class Scalar>
class Row {
public:
    Row(Scalar* at, const Layout& layout, bool whole, const Counts& counts)
        : at_(at), step_(block_side * layout.stride[0]), left_(layout.extent[0]), whole_(whole), counts_(counts) {}

    // Fill `places` as far as there are blocks; returns how many.
    template <std::size_t lanes>
    unsigned next(Place<Scalar> (&places)[lanes]) {
        unsigned used = 0;
        for (; used < lanes && left_ != 0; ++used, left_ -= counts_[0], at_ += step_) {
            counts_[0] = static_cast<unsigned>(std::min<std::size_t>(left_, block_side));
            places[used] = {at_, counts_, whole_ && counts_[0] == block_side};
        }
        return used;
    }

private:
    Scalar* at_;
    std::ptrdiff_t step_;
    std::size_t left_;
    bool whole_;
    Counts counts_;
};

// C-order index of the first value that the lossy modes refuse.
template <class Scalar>
inline Status first_refused(const Scalar* data, const Layout& layout) {
    std::size_t index = 0;
    const auto& n = layout.extent;
    const auto& s = layout.stride;
    for (std::size_t w = 0; w < n[3]; ++w)
        for (std::size_t z = 0; z < n[2]; ++z)
            for (std::size_t y = 0; y < n[1]; ++y)
                for (std::size_t x = 0; x < n[0]; ++x, ++index) {
                    const Scalar value =
                        data[static_cast<std::ptrdiff_t>(w) * s[3] + static_cast<std::ptrdiff_t>(z) * s[2] +
                             static_cast<std::ptrdiff_t>(y) * s[1] + static_cast<std::ptrdiff_t>(x) * s[0]];
                    if constexpr (std::is_floating_point_v<Scalar>) {
                        if (!std::isfinite(value)) return {Code::non_finite, index};
                    } else {
                        using UInt = typename Traits<Scalar>::UInt;
                        if (!in_lossy_range(static_cast<UInt>(value))) return {Code::integer_range, index};
                    }
                }
    return {};
}

}  // namespace detail

// Bytes that encode_array needs to write a stream from bit `start`. Zero where that is more than memory can hold.
inline std::size_t encode_capacity(Type type, const Layout& layout, const Params& params, std::size_t start) {
    const std::size_t block = block_max_nbits(type, layout.rank, params), blocks = layout.blocks();
    // The last block may run on to its unlimited length before it is cut.
    const std::size_t beyond = block_unlimited_nbits(type, layout.rank, params) + detail::guard_nbits + 8;
    if (blocks > (std::numeric_limits<std::size_t>::max() / 2 - start - beyond) / block) return 0;
    return (start + blocks * block + beyond) / 8 + 1;
}

// Write the stream of an array from bit `start` of `out`, which holds encode_capacity bytes. `end` is where it ends.
//
// `Codec` codes up to Codec::lanes blocks of a row at once: see block_codec.hpp. The status has the exponent of floats.
template <class Codec, class Scalar, unsigned rank>
Status encode_array(const Scalar* data, const Layout& layout, const Params& params, std::uint8_t* out,
                    std::size_t start, std::size_t& end) {
    const FloatEnvironment environment;
    const Codec codec(params, layout);
    BitWriter writer(out, start);
    const bool done = detail::for_each_row(layout, [&](std::ptrdiff_t offset, bool whole, const Counts& counts) {
        detail::Row row(data + offset, layout, whole, counts);
        Place<const Scalar> places[Codec::lanes];
        while (const unsigned used = row.next(places))
            if (!codec.encode(writer, places, used)) return false;  // in bounds: encode_capacity has the longest blocks
        return true;
    });
    if (!done) {
        const Status refused = detail::first_refused(data, layout);
        return refused ? Status{Code::changed} : refused;  // a value that was refused is there no more
    }
    writer.flush();
    end = writer.position();
    return {Code::ok, 0, codec.exponent()};
}

// Blocks of a stream that may end anywhere, one after the other.
//
// As long as the longest block and the guard remain, a block is read where it lies. The rest of the stream is copied to
// where zeros follow it, and there a block that needs more bits than there are is found out. `Codec` is part of its
// name so that no two instruction sets share it.
template <class Codec, class Scalar, unsigned rank>
class BlockReader {
public:
    BlockReader(std::span<const std::uint8_t> in, std::size_t start)
        : in_(in), stop_(in.size() * 8), reader_{in.data(), start} {}

    // Where the next block begins: a bit of the stream.
    std::size_t position() const { return origin_ + reader_.position; }

    // False where the stream has ended before the block does.
    [[gnu::always_inline]] bool read(Codec& codec, unsigned lane) {
        if (!in_tail_ && stop_ - reader_.position < margin) enter_tail();
        codec.read(reader_, lane);  // in bounds: `margin` bits follow, in `in_` or in `tail_`
        return position() <= stop_;
    }

private:
    static constexpr std::size_t longest = block_unlimited_nbits(Traits<Scalar>::type, rank, Params{}) + 8;
    static constexpr std::size_t margin = longest + detail::guard_nbits;

    void enter_tail() {
        const std::size_t first = reader_.position / 8;
        std::copy(in_.begin() + static_cast<std::ptrdiff_t>(first), in_.end(), tail_);
        origin_ = first * 8;
        reader_ = {tail_, reader_.position - origin_};
        in_tail_ = true;
    }

    std::span<const std::uint8_t> in_;
    std::size_t stop_;
    std::size_t origin_ = 0;  // bit of the stream at which `tail_` begins, in whole bytes
    BitReader reader_;
    bool in_tail_ = false;
    std::uint8_t tail_[2 * margin / 8 + 16] = {};
};

// Fill an array from the stream that starts at bit `start` of `in`. `end` is where it ended.
template <class Codec, class Scalar, unsigned rank>
Status decode_array(Scalar* data, const Layout& layout, const Params& params, std::span<const std::uint8_t> in,
                    std::size_t start, std::size_t& end) {
    if (start > in.size() * 8) return {Code::truncated, 0};
    const FloatEnvironment environment;
    Codec codec(params, layout);
    BlockReader<Codec, Scalar, rank> blocks(in, start);
    std::size_t number = 0;
    const bool done = detail::for_each_row(layout, [&](std::ptrdiff_t offset, bool whole, const Counts& counts) {
        detail::Row row(data + offset, layout, whole, counts);
        Place<Scalar> places[Codec::lanes];
        while (const unsigned used = row.next(places)) {
            for (unsigned lane = 0; lane < used; ++lane, ++number)
                if (!blocks.read(codec, lane)) return false;
            codec.restore(places, used);
        }
        return true;
    });
    end = blocks.position();
    return done ? Status{} : Status{Code::truncated, number};
}

// Find where the blocks end that follow bit `start` of `in`, whether a block begins there or not, without their values.
// Returns how many there are: as many as `ends` holds, or fewer where the stream ends.
template <class Codec, class Scalar, unsigned rank>
std::size_t walk_blocks(const Params& params, std::span<const std::uint8_t> in, std::size_t start,
                        std::span<std::size_t> ends) {
    if (start > in.size() * 8) return 0;
    const FloatEnvironment environment;
    const Layout layout = Layout::contiguous(rank, {block_side, block_side, block_side, block_side});
    Codec codec(params, layout);
    BlockReader<Codec, Scalar, rank> blocks(in, start);
    std::size_t count = 0;
    for (; count < ends.size() && blocks.read(codec, 0); ++count) ends[count] = blocks.position();
    return count;
}

}  // namespace tamis::zfp

// Whether a stream keeps what its parameters promise: the tolerance, and which values are missing.
//
// In exact arithmetic ZFP keeps its tolerance T = 2^minexp. In a type of n bits it rounds, by units u = 2^(e + 2 - n)
// of a block whose largest magnitude is below 2^e. The errors of a value in a block of d axes add up to no more than
//
//   T (15/16)^d 2/3   bit planes that are left out: a coefficient loses less than 2/3 of the lowest plane that is kept,
//                     T / 4^d, and the inverse transform multiplies that by no more than (15/4)^d
//   u                 the conversion to integers, which cuts
//   halvings[d] u     the halvings of both transforms, which cut too: the sum over all of them of half a unit, times
//                     what the steps that follow make of it at the worst value of the block
//   64 u or 512 u     the conversion back, to 24 of 32 bits or 53 of 64
//
// so that T is kept wherever e - minexp is at most `sure_planes`. This needs no decoding, and nearly all chunks pass.
// The others are decoded and compared.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

#include "codec.hpp"
#include "environment.hpp"
#include "memory.hpp"

namespace tamis::zfp {

// What a proof says. `was` and `now` are the first value that is not kept and what it would be read as.
struct Verdict {
    Status status;
    double was = 0, now = 0;
};

// Whether nothing but the tolerance 2^minexp cuts a block.
constexpr bool promises_accuracy(const Params& params, Type type, unsigned rank) {
    return params.minexp > min_exp && params.maxprec >= 8 * item_nbytes(type) &&
           params.maxbits >= block_unlimited_nbits(type, rank, params);
}

namespace detail {

// Units that the halvings of both transforms cost a value, by axes, rounded up to quarters.
inline constexpr double halvings[] = {3.25, 14.25, 54, 203.25};

// Of what the tolerance is multiplied by for each axis, and of negabinary digits.
constexpr double left_of_tolerance(unsigned rank) {
    double lost = 2.0 / 3;
    for (unsigned axis = 0; axis < rank; ++axis) lost *= 15.0 / 16;
    return 1 - lost;
}

// The largest e - minexp at which the rounding, in units, fits into what is left of the tolerance. 2^-20 stands for the
// conversion of subnormal numbers.
constexpr int count_sure_planes(Type type, unsigned rank) {
    const double units = (item_nbytes(type) == 4 ? 64 : 512) + 1 + halvings[rank - 1] + 0x1p-20;
    int planes = static_cast<int>(8 * item_nbytes(type)) - 2;
    for (double room = left_of_tolerance(rank); room < units; room *= 2) --planes;
    return planes;
}

inline constexpr int sure_planes[2][max_rank] = {
    {count_sure_planes(Type::float32, 1), count_sure_planes(Type::float32, 2), count_sure_planes(Type::float32, 3),
     count_sure_planes(Type::float32, 4)},
    {count_sure_planes(Type::float64, 1), count_sure_planes(Type::float64, 2), count_sure_planes(Type::float64, 3),
     count_sure_planes(Type::float64, 4)}};
static_assert(sure_planes[0][0] == 22 && sure_planes[0][2] == 21 && sure_planes[0][3] == 20);
static_assert(sure_planes[1][0] == 51 && sure_planes[1][3] == 51);

// Integers are not scaled, and no plane is left out: only the halvings cost. 2^these is above `halvings`.
inline constexpr int integer_exponents[] = {2, 4, 6, 8};

// Below these, blocks are scaled by infinity and decode to some -2 · 2^e, e < -97 or e < -961.
inline constexpr int least_exponents[] = {-96, -960};

// Up to these, no decoded value overflows: integers are below 2^(n - 1), and scaled by 2^(e - n + 2).
inline constexpr int most_exponents[] = {126, 1022};

}  // namespace detail

// Whether an array keeps 2^minexp whatever its values are, if floats are below 2^exponent.
inline bool keeps_for_sure(Type type, unsigned rank, int minexp, int exponent) {
    if (!is_float(type)) return minexp >= detail::integer_exponents[rank - 1];
    const unsigned wide = item_nbytes(type) == 8;
    return minexp >= detail::least_exponents[wide] && exponent <= detail::most_exponents[wide] &&
           exponent - minexp <= detail::sure_planes[wide][rank - 1];
}

namespace detail {

// Distances and the tolerance: of floats in double precision, of integers without sign.
template <class Scalar>
using Distance =
    std::conditional_t<std::is_floating_point_v<Scalar>, double,
                       std::make_unsigned_t<std::conditional_t<std::is_floating_point_v<Scalar>, int, Scalar>>>;

template <class Scalar>
Distance<Scalar> distance(Scalar a, Scalar b) {
    if constexpr (std::is_floating_point_v<Scalar>)
        return std::abs(static_cast<double>(a) - static_cast<double>(b));
    else
        return a > b ? static_cast<Distance<Scalar>>(a) - static_cast<Distance<Scalar>>(b)
                     : static_cast<Distance<Scalar>>(b) - static_cast<Distance<Scalar>>(a);
}

template <class Scalar>
Distance<Scalar> tolerance_of(int minexp) {
    if constexpr (std::is_floating_point_v<Scalar>)
        return std::ldexp(1.0, minexp);
    else if (minexp >= static_cast<int>(int_nbits<Scalar>))
        return std::numeric_limits<Distance<Scalar>>::max();
    else
        return minexp < 0 ? 0 : Distance<Scalar>{1} << minexp;
}

template <class Scalar>
std::optional<Scalar> scalar_of(std::optional<std::uint64_t> bits) {
    if (!bits) return std::nullopt;
    return std::bit_cast<Scalar>(static_cast<typename Traits<Scalar>::UInt>(*bits));
}

template <class Scalar, class F>
bool any_of(std::span<const Scalar> values, F f) {
    bool any = false;
    for (std::size_t i = 0; i < values.size(); ++i) any |= f(i);  // without branches, so that it is done in vectors
    return any;
}

template <class Scalar>
class Proof {
public:
    using Values = std::span<const Scalar>;

    Proof(const Layout& layout, const Params& params, std::optional<std::uint64_t> fill)
        : layout_(layout),
          params_(params),
          tolerance_(tolerance_of<Scalar>(params.minexp)),
          fill_(scalar_of<Scalar>(fill)) {}

    // Whether no value needs to be decoded.
    bool is_sure(Values values, int exponent) const {
        if (!keeps_for_sure(Traits<Scalar>::type, layout_.rank, params_.minexp, exponent)) return false;
        if (!fill_) return true;
        // Sums are rounded in the order of the numbers, so that no comparison is true by rounding.
        if constexpr (std::is_floating_point_v<Scalar>)
            if (std::ldexp(1.0, exponent) + tolerance_ < std::abs(static_cast<double>(*fill_))) return true;
        return !any_of(values, [&](std::size_t i) { return distance(values[i], *fill_) <= tolerance_; });
    }

    Verdict compare(Values before, Values after) const {
        constexpr std::size_t block = 1024;
        for (std::size_t at = 0; at < before.size(); at += block) {
            const auto was = before.subspan(at, std::min(block, before.size() - at)),
                       now = after.subspan(at, was.size());
            if (any_of(was, [&](std::size_t i) { return is_broken(was[i], now[i]); })) return first(was, now, at);
        }
        return {};
    }

private:
    bool moves(Scalar was, Scalar now) const { return !(distance(was, now) <= tolerance_); }
    bool is_broken(Scalar was, Scalar now) const {
        return moves(was, now) || (fill_ && (was == *fill_) != (now == *fill_));
    }
    Verdict first(Values was, Values now, std::size_t at) const {
        std::size_t i = 0;
        while (!is_broken(was[i], now[i])) ++i;
        const Code code = moves(was[i], now[i]) ? Code::beyond_tolerance : Code::fill_value;
        return {{code, at + i}, static_cast<double>(was[i]), static_cast<double>(now[i])};
    }

    const Layout& layout_;
    const Params& params_;
    Distance<Scalar> tolerance_;
    std::optional<Scalar> fill_;
};

template <class F>
auto with_scalar(Type type, F f) {
    switch (type) {
        case Type::int32:
            return f(std::int32_t{});
        case Type::int64:
            return f(std::int64_t{});
        case Type::float32:
            return f(float{});
        default:
            return f(double{});
    }
}

}  // namespace detail

// Whether `fill`, bits of a value that stands for missing ones, could be mistaken for others within the tolerance. An
// infinite one cannot, nor can NaN: lossy modes refuse them, as they refuse large integers.
inline bool needs_care(Type type, int minexp, std::uint64_t fill) {
    const FloatEnvironment environment;
    return detail::with_scalar(type, [&]<class Scalar>(Scalar) {
        const Scalar value = *detail::scalar_of<Scalar>(fill);
        if constexpr (std::is_floating_point_v<Scalar>) {
            if (!std::isfinite(value)) return false;
            const Scalar size = std::abs(value), next = std::nextafter(size, size == 0 ? Scalar{1} : Scalar{0});
            return detail::distance(size, next) <= detail::tolerance_of<Scalar>(minexp);
        } else {
            constexpr Scalar most = 1 << detail::integer_exponents[max_rank - 1];  // by which a value may move
            using UInt = typename Traits<Scalar>::UInt;
            const Scalar nearest = value > most ? value - most : value < -most ? value + most : 0;
            return minexp >= 0 && in_lossy_range(static_cast<UInt>(nearest));
        }
    });
}

// Whether a stream that was encoded of an array keeps the tolerance of its parameters, which promise one, on every
// value; and, where there is a fill value, whether values that equal it still do, and no others. The layout is
// contiguous, and the exponent is that of the encoder's status.
inline Verdict prove(const Kernel& kernel, Type type, const void* data, const Layout& layout, const Params& params,
                     std::optional<std::uint64_t> fill, int exponent, std::span<const std::uint8_t> stream) {
    const FloatEnvironment environment;
    std::size_t count = 1;
    for (unsigned axis = 0; axis < layout.rank; ++axis) count *= layout.extent[axis];
    return detail::with_scalar(type, [&]<class Scalar>(Scalar) -> Verdict {
        const std::span<const Scalar> values(static_cast<const Scalar*>(data), count);
        const detail::Proof<Scalar> proof(layout, params, fill);
        if (proof.is_sure(values, exponent)) return {};
        const RawMemory memory = raw_memory(count * sizeof(Scalar));
        if (!memory) return {{Code::no_memory, count * sizeof(Scalar)}};
        auto* decoded = reinterpret_cast<Scalar*>(memory.get());
        std::size_t end = 0;
        if (const Status status = kernel.decode(type, decoded, layout, params, stream, 0, end); !status)
            return {status};
        return proof.compare(values, {decoded, count});
    });
}

}  // namespace tamis::zfp

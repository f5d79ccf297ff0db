// A block of floats ↔ integers with a common exponent.
//
// The products below must be rounded once, in the scalar's own type: no fused multiply-add (the build forbids it), no
// flush to zero and no other rounding mode (environment.hpp).
#pragma once

#include <cmath>
#include <limits>

#include "types.hpp"

#ifdef __FAST_MATH__
#error "-ffast-math changes the bytes of the stream"
#endif

namespace tamis::zfp {

namespace detail {

template <class Scalar>
using UIntOf = typename Traits<Scalar>::UInt;

template <class Scalar>
constexpr UIntOf<Scalar> magnitude_bits(Scalar value) {
    return std::bit_cast<UIntOf<Scalar>>(value) & (~UIntOf<Scalar>{0} >> 1);
}

template <class Scalar>
inline constexpr UIntOf<Scalar> infinity_bits = magnitude_bits(std::numeric_limits<Scalar>::infinity());

// 2^exponent; infinity or zero where the type has no such number.
template <class Scalar>
inline Scalar power_of_two(int exponent) {
    using T = Traits<Scalar>;
    if (exponent > -T::ebias && exponent <= T::ebias)
        return std::bit_cast<Scalar>(static_cast<UIntOf<Scalar>>(exponent + T::ebias) << T::mantissa_nbits);
    return std::ldexp(Scalar{1}, exponent);
}

}  // namespace detail

// Bit pattern of the largest magnitude; at least infinity's if any value is NaN or infinite.
template <unsigned size, class Scalar>
inline detail::UIntOf<Scalar> largest_magnitude(const Scalar* block) {
    detail::UIntOf<Scalar> largest = 0;
    for (unsigned i = 0; i < size; ++i) {
        const auto bits = detail::magnitude_bits(block[i]);
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

// The e of the smallest 2^e above the magnitude; -ebias for zero, 1 - ebias for subnormal numbers.
template <class Scalar>
inline int block_exponent(detail::UIntOf<Scalar> magnitude) {
    using T = Traits<Scalar>;
    if (magnitude == 0) return -T::ebias;
    const int field = static_cast<int>(magnitude >> T::mantissa_nbits);
    return field == 0 ? 1 - T::ebias : field + 1 - T::ebias;
}

// The same of any type, for codecs of all: integers have none.
template <class Scalar>
inline int exponent_above(detail::UIntOf<Scalar> magnitude) {
    if constexpr (Traits<Scalar>::ebits != 0)
        return block_exponent<Scalar>(magnitude);
    else
        return 0;
}

// Integers of two bits less than the type. False where 2^(n - 2 - exponent) is beyond the type: libzfp then casts
// infinities and NaN, which x86 turns into the lowest integer, and so do we.
template <unsigned size, class Scalar>
inline bool to_integers(detail::UIntOf<Scalar>* out, const Scalar* block, int exponent) {
    using Int = typename Traits<Scalar>::Int;
    using UInt = typename Traits<Scalar>::UInt;
    const Scalar scale = detail::power_of_two<Scalar>(static_cast<int>(int_nbits<Scalar>) - 2 - exponent);
    if (std::isinf(scale)) {
        for (unsigned i = 0; i < size; ++i) out[i] = static_cast<UInt>(std::numeric_limits<Int>::min());
        return false;
    }
    // In range: |block[i]| < 2^exponent, so the product is below 2^(n - 2).
    for (unsigned i = 0; i < size; ++i) out[i] = static_cast<UInt>(static_cast<Int>(scale * block[i]));
    return true;
}

template <unsigned size, class Scalar>
inline void from_integers(Scalar* block, const detail::UIntOf<Scalar>* in, int exponent) {
    using Int = typename Traits<Scalar>::Int;
    const Scalar scale = detail::power_of_two<Scalar>(exponent - static_cast<int>(int_nbits<Scalar>) + 2);
    for (unsigned i = 0; i < size; ++i) block[i] = scale * static_cast<Scalar>(static_cast<Int>(in[i]));
}

// Bit patterns as integers whose order is that of the numbers (sign-magnitude → two's complement); its own inverse.
template <class UInt>
constexpr UInt flip_negative(UInt bits) {
    constexpr UInt sign = ~(~UInt{0} >> 1);
    return bits & sign ? bits ^ (sign - 1) : bits;
}

}  // namespace tamis::zfp

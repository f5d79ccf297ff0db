// Floats of blocks ↔ integers with a common exponent, four at a time; exact where cast.hpp of the codec rounds or cuts.
//
// NEON converts 32 and 64 bits, so that a cast is a product and a conversion. Where a scale is infinite, all integers
// are the lowest one, as in cast.hpp; NEON's conversions would give the highest.
#pragma once

#include <limits>

#include "kernels/neon/registers.hpp"
#include "tamis/zfp/cast.hpp"

namespace tamis::zfp::neon {

// Bit patterns of a row, and back: as bytes, which values of any type are.
template <class Scalar>
[[gnu::always_inline]] inline void load_row(const Scalar* from, Words32& row) {
    row.bits = vreinterpretq_u32_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(from)));
}
template <class Scalar>
[[gnu::always_inline]] inline void load_row(const Scalar* from, Words64& row) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(from);
    row.first = vreinterpretq_u64_u8(vld1q_u8(bytes)), row.second = vreinterpretq_u64_u8(vld1q_u8(bytes + 16));
}
template <class Scalar>
[[gnu::always_inline]] inline void store_row(const Words32& row, Scalar* to) {
    vst1q_u8(reinterpret_cast<std::uint8_t*>(to), vreinterpretq_u8_u32(row.bits));
}
template <class Scalar>
[[gnu::always_inline]] inline void store_row(const Words64& row, Scalar* to) {
    auto* const bytes = reinterpret_cast<std::uint8_t*>(to);
    vst1q_u8(bytes, vreinterpretq_u8_u64(row.first)), vst1q_u8(bytes + 16, vreinterpretq_u8_u64(row.second));
}

template <unsigned rank, class Scalar, class Register>
[[gnu::always_inline]] inline void load_rows(const Scalar* from, const Layout& layout, Rows<Register, rank>& rows) {
    for_each_row<rank>(layout, [&](unsigned i, std::ptrdiff_t at) { load_row(from + at, rows[i]); });
}
template <unsigned rank, class Register, class Scalar>
[[gnu::always_inline]] inline void store_rows(const Rows<Register, rank>& rows, Scalar* to, const Layout& layout) {
    for_each_row<rank>(layout, [&](unsigned i, std::ptrdiff_t at) { store_row(rows[i], to + at); });
}

// The bits that any value of a block has.
template <unsigned count>
[[gnu::always_inline]] inline void any_bits(const Words32 (&rows)[count], std::uint32_t (&any)[1]) {
    uint32x4_t sum = rows[0].bits;
    for (unsigned i = 1; i < count; ++i) sum = vorrq_u32(sum, rows[i].bits);
    const std::uint64_t two = vget_lane_u64(vreinterpret_u64_u32(vorr_u32(vget_low_u32(sum), vget_high_u32(sum))), 0);
    any[0] = static_cast<std::uint32_t>(two | two >> 32);
}
template <unsigned count>
[[gnu::always_inline]] inline void any_bits(const Words64 (&rows)[count], std::uint64_t (&any)[1]) {
    uint64x2_t sum = vorrq_u64(rows[0].first, rows[0].second);
    for (unsigned i = 1; i < count; ++i) sum = vorrq_u64(sum, vorrq_u64(rows[i].first, rows[i].second));
    any[0] = vgetq_lane_u64(sum, 0) | vgetq_lane_u64(sum, 1);
}

// The largest magnitude, as a bit pattern. There is no maximum of 64-bit integers; that of the upper halves has the
// exponent, and that of all lower halves says whether all are zero. NaN and infinity come out as infinity or above.
[[gnu::always_inline]] inline uint32x4_t larger_magnitude(uint32x4_t most, uint32x4_t bits) {
    return vmaxq_u32(most, vbicq_u32(bits, vdupq_n_u32(0x80000000)));
}
[[gnu::always_inline]] inline uint64x2_t larger_magnitude(uint64x2_t most, uint64x2_t bits) {
    const uint64x2_t magnitude = vbicq_u64(bits, vdupq_n_u64(0x8000000000000000));
    return vreinterpretq_u64_u32(vmaxq_u32(vreinterpretq_u32_u64(most), vreinterpretq_u32_u64(magnitude)));
}

template <unsigned count>
[[gnu::always_inline]] inline void largest_magnitudes(const Words32 (&rows)[count], std::uint32_t (&largest)[1]) {
    uint32x4_t most = vdupq_n_u32(0);
    for (const auto& row : rows) most = larger_magnitude(most, row.bits);
    largest[0] = vmaxvq_u32(most);
}
template <unsigned count>
[[gnu::always_inline]] inline void largest_magnitudes(const Words64 (&rows)[count], std::uint64_t (&largest)[1]) {
    uint64x2_t most = vdupq_n_u64(0);
    for (const auto& row : rows) most = larger_magnitude(larger_magnitude(most, row.first), row.second);
    most = larger_magnitude(most, vextq_u64(most, most, 1));
    largest[0] = vgetq_lane_u64(most, 0);
}
[[gnu::always_inline]] inline uint32x4_t to_integers(uint32x4_t bits, float32x4_t scale) {
    const int32x4_t integers = vcvtq_s32_f32(vmulq_f32(scale, vreinterpretq_f32_u32(bits)));
    const uint32x4_t beyond = vceqq_f32(scale, vdupq_n_f32(std::numeric_limits<float>::infinity()));
    return vbslq_u32(beyond, vdupq_n_u32(0x80000000), vreinterpretq_u32_s32(integers));
}
[[gnu::always_inline]] inline uint64x2_t to_integers(uint64x2_t bits, float64x2_t scale) {
    const int64x2_t integers = vcvtq_s64_f64(vmulq_f64(scale, vreinterpretq_f64_u64(bits)));
    const uint64x2_t beyond = vceqq_f64(scale, vdupq_n_f64(std::numeric_limits<double>::infinity()));
    return vbslq_u64(beyond, vdupq_n_u64(0x8000000000000000), vreinterpretq_u64_s64(integers));
}
[[gnu::always_inline]] inline uint32x4_t from_integers(uint32x4_t bits, float32x4_t scale) {
    return vreinterpretq_u32_f32(vmulq_f32(scale, vcvtq_f32_s32(vreinterpretq_s32_u32(bits))));
}
[[gnu::always_inline]] inline uint64x2_t from_integers(uint64x2_t bits, float64x2_t scale) {
    return vreinterpretq_u64_f64(vmulq_f64(scale, vcvtq_f64_s64(vreinterpretq_s64_u64(bits))));
}

// 2^exponent for each value.
template <class Register>
[[gnu::always_inline]] inline auto scale_of(int exponent) {
    if constexpr (sizeof(typename Register::UInt) == 4)
        return vdupq_n_f32(detail::power_of_two<float>(exponent));
    else
        return vdupq_n_f64(detail::power_of_two<double>(exponent));
}
template <class Register>
inline constexpr int integer_nbits = 8 * static_cast<int>(sizeof(typename Register::UInt)) - 2;
template <class Register>
[[gnu::always_inline]] inline auto scale_to_integers(const int (&exponents)[1]) {
    return scale_of<Register>(integer_nbits<Register> - exponents[0]);
}
template <class Register>
[[gnu::always_inline]] inline auto scale_from_integers(const int (&exponents)[1]) {
    return scale_of<Register>(exponents[0] - integer_nbits<Register>);
}

[[gnu::always_inline]] inline Words32 to_integers(Words32 row, float32x4_t scale) {
    return {to_integers(row.bits, scale)};
}
[[gnu::always_inline]] inline Words64 to_integers(Words64 row, float64x2_t scale) {
    return {to_integers(row.first, scale), to_integers(row.second, scale)};
}
[[gnu::always_inline]] inline Words32 from_integers(Words32 row, float32x4_t scale) {
    return {from_integers(row.bits, scale)};
}
[[gnu::always_inline]] inline Words64 from_integers(Words64 row, float64x2_t scale) {
    return {from_integers(row.first, scale), from_integers(row.second, scale)};
}

template <class Register, std::size_t count>
[[gnu::always_inline]] inline void to_integers(Register (&rows)[count], const int (&exponents)[1]) {
    const auto scale = scale_to_integers<Register>(exponents);
    for (Register& row : rows) row = to_integers(row, scale);
}
template <class Register, std::size_t count>
[[gnu::always_inline]] inline void from_integers(Register (&rows)[count], const int (&exponents)[1]) {
    const auto scale = scale_from_integers<Register>(exponents);
    for (Register& row : rows) row = from_integers(row, scale);
}

// As in vectors/values.hpp, for one block: row by row, so that none waits in memory.
template <class Register, std::size_t count>
    requires(Register::blocks == 1)
[[gnu::always_inline]] inline void to_integers_and_back(const Register (&rows)[count],
                                                        const PerBlock<Register, int>& exponents,
                                                        Register (&integers)[count],
                                                        UIntPerBlock<Register>& different) {
    const auto to = scale_to_integers<Register>(exponents), from = scale_from_integers<Register>(exponents);
    Register any[1] = {Register::all(0)};
    for (unsigned i = 0; i < count; ++i) {
        const Register integer = to_integers(rows[i], to);
        any[0] = any[0] | (from_integers(integer, from) ^ rows[i]);
        integers[i] = integer;
    }
    any_bits(any, different);
}

// Values whose integers are these, times 2^32.
[[gnu::always_inline]] inline Words64 widen(Words32 high, const double* scale) {
    const int32x4_t integers = vreinterpretq_s32_u32(high.bits);
    const float64x2_t first = vcvtq_f64_s64(vmovl_s32(vget_low_s32(integers)));
    const float64x2_t second = vcvtq_f64_s64(vmovl_high_s32(integers));
    return {vreinterpretq_u64_f64(vmulq_n_f64(first, *scale)), vreinterpretq_u64_f64(vmulq_n_f64(second, *scale))};
}
[[gnu::always_inline]] inline Words64 widen(Words32 high) {
    const uint32x4_t zero = vdupq_n_u32(0);
    return {vreinterpretq_u64_u32(vzip1q_u32(zero, high.bits)), vreinterpretq_u64_u32(vzip2q_u32(zero, high.bits))};
}

// As flip_negative of cast.hpp.
[[gnu::always_inline]] inline Words32 flip_negative(Words32 v) {
    const uint32x4_t sign = vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_u32(v.bits), 31));
    return {veorq_u32(v.bits, vshrq_n_u32(sign, 1))};
}
[[gnu::always_inline]] inline Words64 flip_negative(Words64 v) {
    const auto flip = [](uint64x2_t x) __attribute__((always_inline)) {
        const uint64x2_t sign = vreinterpretq_u64_s64(vshrq_n_s64(vreinterpretq_s64_u64(x), 63));
        return veorq_u64(x, vshrq_n_u64(sign, 1));
    };
    return {flip(v.first), flip(v.second)};
}

// Magnitudes of integers; that of the lowest one is itself.
[[gnu::always_inline]] inline Words32 magnitude(Words32 v) {
    return {vreinterpretq_u32_s32(vabsq_s32(vreinterpretq_s32_u32(v.bits)))};
}
[[gnu::always_inline]] inline Words64 magnitude(Words64 v) {
    const auto of = [](uint64x2_t x) __attribute__((always_inline)) {
        return vreinterpretq_u64_s64(vabsq_s64(vreinterpretq_s64_u64(x)));
    };
    return {of(v.first), of(v.second)};
}

// As in vectors/values.hpp, for one block.
template <class Register, std::size_t count>
    requires(Register::blocks == 1)
[[gnu::always_inline]] inline void integers_or_patterns(const PerBlock<Register, bool>& exact,
                                                        const Register (&integers)[count], Register (&rows)[count]) {
    if (exact[0])
        for (unsigned i = 0; i < count; ++i) rows[i] = integers[i];
    else
        for (unsigned i = 0; i < count; ++i) rows[i] = flip_negative(rows[i]);
}

// In blocks for which `first` holds, `a`; in the others, `b`.
template <class Register>
    requires(Register::blocks == 1)
[[gnu::always_inline]] inline Register choose(const bool (&first)[1], Register a, Register b) {
    return first[0] ? a : b;
}

}  // namespace tamis::zfp::neon

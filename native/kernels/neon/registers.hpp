// Registers of integers for NEON, which every aarch64 processor has: what avx2/registers.hpp has for AVX2, in registers
// of half the width.
//
// Words hold four values of a block; those of 64 bits take two registers.
#pragma once

#include <arm_neon.h>

#include <bit>

#include "kernels/vectors/rows.hpp"

static_assert(std::endian::native == std::endian::little, "bytes of registers are counted from the lowest on");

namespace tamis::zfp::neon {

using vectors::for_each_row, vectors::forward_transform, vectors::inverse_transform;
using vectors::negabinary, vectors::out_of_negabinary;
using vectors::PerBlock, vectors::Rows, vectors::UIntPerBlock;

struct Words32 {
    static constexpr unsigned blocks = 1;
    using UInt = std::uint32_t;

    uint32x4_t bits;

    static Words32 all(UInt value) { return {vdupq_n_u32(value)}; }
    [[gnu::always_inline]] friend Words32 operator+(Words32 a, Words32 b) { return {vaddq_u32(a.bits, b.bits)}; }
    [[gnu::always_inline]] friend Words32 operator-(Words32 a, Words32 b) { return {vsubq_u32(a.bits, b.bits)}; }
    [[gnu::always_inline]] friend Words32 operator^(Words32 a, Words32 b) { return {veorq_u32(a.bits, b.bits)}; }
    [[gnu::always_inline]] friend Words32 operator|(Words32 a, Words32 b) { return {vorrq_u32(a.bits, b.bits)}; }
    [[gnu::always_inline]] Words32& operator+=(Words32 b) { return *this = *this + b; }
    [[gnu::always_inline]] Words32& operator-=(Words32 b) { return *this = *this - b; }
};

struct Words64 {
    static constexpr unsigned blocks = 1;
    using UInt = std::uint64_t;

    uint64x2_t first, second;  // two values each

    static Words64 all(UInt value) { return {vdupq_n_u64(value), vdupq_n_u64(value)}; }
    [[gnu::always_inline]] friend Words64 operator+(Words64 a, Words64 b) {
        return {vaddq_u64(a.first, b.first), vaddq_u64(a.second, b.second)};
    }
    [[gnu::always_inline]] friend Words64 operator-(Words64 a, Words64 b) {
        return {vsubq_u64(a.first, b.first), vsubq_u64(a.second, b.second)};
    }
    [[gnu::always_inline]] friend Words64 operator^(Words64 a, Words64 b) {
        return {veorq_u64(a.first, b.first), veorq_u64(a.second, b.second)};
    }
    [[gnu::always_inline]] friend Words64 operator|(Words64 a, Words64 b) {
        return {vorrq_u64(a.first, b.first), vorrq_u64(a.second, b.second)};
    }
    [[gnu::always_inline]] Words64& operator+=(Words64 b) { return *this = *this + b; }
    [[gnu::always_inline]] Words64& operator-=(Words64 b) { return *this = *this - b; }
};

template <class Scalar>
using WordsOf = std::conditional_t<sizeof(Scalar) == 4, Words32, Words64>;

// 4×4 transpositions.
[[gnu::always_inline]] inline void transpose(Words32& a, Words32& b, Words32& c, Words32& d) {
    const auto wide = [](uint32x4_t x) __attribute__((always_inline)) { return vreinterpretq_u64_u32(x); };
    const auto narrow = [](uint64x2_t x) __attribute__((always_inline)) { return vreinterpretq_u32_u64(x); };
    const uint64x2_t ab = wide(vtrn1q_u32(a.bits, b.bits)), AB = wide(vtrn2q_u32(a.bits, b.bits));
    const uint64x2_t cd = wide(vtrn1q_u32(c.bits, d.bits)), CD = wide(vtrn2q_u32(c.bits, d.bits));
    a.bits = narrow(vtrn1q_u64(ab, cd)), b.bits = narrow(vtrn1q_u64(AB, CD));
    c.bits = narrow(vtrn2q_u64(ab, cd)), d.bits = narrow(vtrn2q_u64(AB, CD));
}

[[gnu::always_inline]] inline void transpose(Words64& a, Words64& b, Words64& c, Words64& d) {
    const Words64 w = a, x = b, y = c, z = d;
    a = {vtrn1q_u64(w.first, x.first), vtrn1q_u64(y.first, z.first)};
    b = {vtrn2q_u64(w.first, x.first), vtrn2q_u64(y.first, z.first)};
    c = {vtrn1q_u64(w.second, x.second), vtrn1q_u64(y.second, z.second)};
    d = {vtrn2q_u64(w.second, x.second), vtrn2q_u64(y.second, z.second)};
}

[[gnu::always_inline]] inline uint64x2_t half(uint64x2_t v) {
    return vreinterpretq_u64_s64(vshrq_n_s64(vreinterpretq_s64_u64(v), 1));
}

// What the lifts of transform.hpp call.
template <class Register>
    requires requires { Register::blocks; }
[[gnu::always_inline]] inline Register half(Register v) {
    if constexpr (sizeof(typename Register::UInt) == 4)
        return {vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_u32(v.bits), 1))};
    else
        return {half(v.first), half(v.second)};
}

// A block of 64-bit words as its upper and its lower halves, which are blocks of 32-bit words, and back.
template <unsigned count>
[[gnu::always_inline]] inline void split(const Words64 (&rows)[count], Words32 (&high)[count], Words32 (&low)[count]) {
    for (unsigned i = 0; i < count; ++i) {
        const uint32x4_t first = vreinterpretq_u32_u64(rows[i].first), second = vreinterpretq_u32_u64(rows[i].second);
        low[i].bits = vuzp1q_u32(first, second), high[i].bits = vuzp2q_u32(first, second);
    }
}

template <unsigned count>
[[gnu::always_inline]] inline void merge(const Words32 (&high)[count], const Words32 (&low)[count],
                                         Words64 (&rows)[count]) {
    for (unsigned i = 0; i < count; ++i) {
        rows[i].first = vreinterpretq_u64_u32(vzip1q_u32(low[i].bits, high[i].bits));
        rows[i].second = vreinterpretq_u64_u32(vzip2q_u32(low[i].bits, high[i].bits));
    }
}

}  // namespace tamis::zfp::neon

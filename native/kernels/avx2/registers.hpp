// Registers of integers that the block transform is written for.
//
// Words32 holds four values of one block in its lower half and four of another in its upper half: what is done to one
// block is done to both, and nothing crosses between the halves. Words64 holds four values of one block. Sums wrap, as
// they do in the scalar transform, whose text (transform.hpp) is what runs here, too.
#pragma once

#include <immintrin.h>

#include <limits>

#include "tamis/zfp/transform.hpp"

namespace tamis::zfp::avx2 {

struct Words32 {
    __m256i bits;

    [[gnu::always_inline]] friend Words32 operator+(Words32 a, Words32 b) { return {_mm256_add_epi32(a.bits, b.bits)}; }
    [[gnu::always_inline]] friend Words32 operator-(Words32 a, Words32 b) { return {_mm256_sub_epi32(a.bits, b.bits)}; }
    [[gnu::always_inline]] friend Words32 operator^(Words32 a, Words32 b) { return {_mm256_xor_si256(a.bits, b.bits)}; }
    [[gnu::always_inline]] Words32& operator+=(Words32 b) { return *this = *this + b; }
    [[gnu::always_inline]] Words32& operator-=(Words32 b) { return *this = *this - b; }
};

struct Words64 {
    __m256i bits;

    [[gnu::always_inline]] friend Words64 operator+(Words64 a, Words64 b) { return {_mm256_add_epi64(a.bits, b.bits)}; }
    [[gnu::always_inline]] friend Words64 operator-(Words64 a, Words64 b) { return {_mm256_sub_epi64(a.bits, b.bits)}; }
    [[gnu::always_inline]] friend Words64 operator^(Words64 a, Words64 b) { return {_mm256_xor_si256(a.bits, b.bits)}; }
    [[gnu::always_inline]] Words64& operator+=(Words64 b) { return *this = *this + b; }
    [[gnu::always_inline]] Words64& operator-=(Words64 b) { return *this = *this - b; }
};

// 4×4 transpositions: of each half, and of the whole register.
[[gnu::always_inline]] inline void transpose(Words32& a, Words32& b, Words32& c, Words32& d) {
    const __m256i ab = _mm256_unpacklo_epi32(a.bits, b.bits), AB = _mm256_unpackhi_epi32(a.bits, b.bits);
    const __m256i cd = _mm256_unpacklo_epi32(c.bits, d.bits), CD = _mm256_unpackhi_epi32(c.bits, d.bits);
    a.bits = _mm256_unpacklo_epi64(ab, cd);
    b.bits = _mm256_unpackhi_epi64(ab, cd);
    c.bits = _mm256_unpacklo_epi64(AB, CD);
    d.bits = _mm256_unpackhi_epi64(AB, CD);
}

[[gnu::always_inline]] inline void transpose(Words64& a, Words64& b, Words64& c, Words64& d) {
    const __m256i ab = _mm256_unpacklo_epi64(a.bits, b.bits), AB = _mm256_unpackhi_epi64(a.bits, b.bits);
    const __m256i cd = _mm256_unpacklo_epi64(c.bits, d.bits), CD = _mm256_unpackhi_epi64(c.bits, d.bits);
    a.bits = _mm256_permute2x128_si256(ab, cd, 0x20);
    b.bits = _mm256_permute2x128_si256(AB, CD, 0x20);
    c.bits = _mm256_permute2x128_si256(ab, cd, 0x31);
    d.bits = _mm256_permute2x128_si256(AB, CD, 0x31);
}

[[gnu::always_inline]] inline Words32 negabinary(Words32 v) {
    const Words32 mask{_mm256_set1_epi32(static_cast<int>(negabinary_mask<std::uint32_t>))};
    return (v + mask) ^ mask;
}

[[gnu::always_inline]] inline Words64 negabinary(Words64 v) {
    const Words64 mask{_mm256_set1_epi64x(static_cast<long long>(negabinary_mask<std::uint64_t>))};
    return (v + mask) ^ mask;
}

[[gnu::always_inline]] inline Words32 out_of_negabinary(Words32 v) {
    const Words32 mask{_mm256_set1_epi32(static_cast<int>(negabinary_mask<std::uint32_t>))};
    return (v ^ mask) - mask;
}

[[gnu::always_inline]] inline Words64 out_of_negabinary(Words64 v) {
    const Words64 mask{_mm256_set1_epi64x(static_cast<long long>(negabinary_mask<std::uint64_t>))};
    return (v ^ mask) - mask;
}

[[gnu::always_inline]] inline __m128i load_half(const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
}
[[gnu::always_inline]] inline void store_half(void* to, __m128i bits) {
    _mm_storeu_si128(static_cast<__m128i*>(to), bits);
}
[[gnu::always_inline]] inline __m256i join(__m128i lower, __m128i upper) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(lower), upper, 1);
}
[[gnu::always_inline]] inline __m128i lower(__m256i bits) { return _mm256_castsi256_si128(bits); }
[[gnu::always_inline]] inline __m128i upper(__m256i bits) { return _mm256_extracti128_si256(bits, 1); }

}  // namespace tamis::zfp::avx2

namespace tamis::zfp::detail {

template <>
[[gnu::always_inline]] inline avx2::Words32 half(avx2::Words32 value) {
    return {_mm256_srai_epi32(value.bits, 1)};
}

// AVX2 has no arithmetic shift of 64 bits.
template <>
[[gnu::always_inline]] inline avx2::Words64 half(avx2::Words64 value) {
    const __m256i sign = _mm256_set1_epi64x(std::numeric_limits<long long>::min());
    return {_mm256_or_si256(_mm256_srli_epi64(value.bits, 1), _mm256_and_si256(value.bits, sign))};
}

}  // namespace tamis::zfp::detail

namespace tamis::zfp::avx2 {

// A block of `rank` axes: row y + 4z holds four values along x.
template <class Words, unsigned rank>
using Rows = Words[block_size(rank) / 4];

// Lines along x lie inside a register, so the block is turned over once (x ↔ its slowest axis), lifted along x and y
// without a further shuffle, turned back and lifted along the slowest axis: two transpositions instead of four.
template <class Lift, unsigned rank, class Words>
[[gnu::always_inline]] inline void forward_transform(Rows<Words, rank>& v) {
    static_assert(rank == 2 || rank == 3);
    constexpr unsigned columns = rank == 3 ? 4 : 1;  // a row every `columns` along the slowest axis
    for (unsigned y = 0; y < columns; ++y) {
        transpose(v[y], v[columns + y], v[2 * columns + y], v[3 * columns + y]);
        Lift::forward(v[y], v[columns + y], v[2 * columns + y], v[3 * columns + y]);
    }
    if constexpr (rank == 3)
        for (unsigned x = 0; x < 16; x += 4) Lift::forward(v[x], v[x + 1], v[x + 2], v[x + 3]);
    for (unsigned y = 0; y < columns; ++y) {
        transpose(v[y], v[columns + y], v[2 * columns + y], v[3 * columns + y]);
        Lift::forward(v[y], v[columns + y], v[2 * columns + y], v[3 * columns + y]);
    }
}

template <class Lift, unsigned rank, class Words>
[[gnu::always_inline]] inline void inverse_transform(Rows<Words, rank>& v) {
    static_assert(rank == 2 || rank == 3);
    constexpr unsigned columns = rank == 3 ? 4 : 1;
    for (unsigned y = 0; y < columns; ++y) {
        Lift::inverse(v[y], v[columns + y], v[2 * columns + y], v[3 * columns + y]);
        transpose(v[y], v[columns + y], v[2 * columns + y], v[3 * columns + y]);
    }
    if constexpr (rank == 3)
        for (unsigned x = 0; x < 16; x += 4) Lift::inverse(v[x], v[x + 1], v[x + 2], v[x + 3]);
    for (unsigned y = 0; y < columns; ++y) {
        Lift::inverse(v[y], v[columns + y], v[2 * columns + y], v[3 * columns + y]);
        transpose(v[y], v[columns + y], v[2 * columns + y], v[3 * columns + y]);
    }
}

// Two blocks of 64-bit words as their upper and their lower halves, which are blocks of 32-bit words, and back.
template <unsigned count>
[[gnu::always_inline]] inline void split(const Words64 (&a)[count], const Words64 (&b)[count], Words32 (&high)[count],
                                         Words32 (&low)[count]) {
    const __m256i evens_first = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    for (unsigned i = 0; i < count; ++i) {
        const __m256i one = _mm256_permutevar8x32_epi32(a[i].bits, evens_first);
        const __m256i other = _mm256_permutevar8x32_epi32(b[i].bits, evens_first);
        low[i].bits = _mm256_permute2x128_si256(one, other, 0x20);
        high[i].bits = _mm256_permute2x128_si256(one, other, 0x31);
    }
}

template <unsigned count>
[[gnu::always_inline]] inline void merge(const Words32 (&high)[count], const Words32 (&low)[count], Words64 (&a)[count],
                                         Words64 (&b)[count]) {
    const __m256i halves_in_turn = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (unsigned i = 0; i < count; ++i) {
        const __m256i one = _mm256_permute2x128_si256(low[i].bits, high[i].bits, 0x20);
        const __m256i other = _mm256_permute2x128_si256(low[i].bits, high[i].bits, 0x31);
        a[i].bits = _mm256_permutevar8x32_epi32(one, halves_in_turn);
        b[i].bits = _mm256_permutevar8x32_epi32(other, halves_in_turn);
    }
}

}  // namespace tamis::zfp::avx2

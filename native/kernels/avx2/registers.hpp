// Registers of integers that the block transform is written for.
//
// Words32 holds four values of one block in its lower half and four of another in its upper half: what is done to one
// block is done to both, and nothing crosses between the halves. Words64 holds four values of one block. Blocks of one
// axis have only four values, so Columns32 and Columns64 hold one value each of eight or four blocks. Sums wrap, as
// they do in the scalar transform, whose text (transform.hpp) is what runs here, too.
#pragma once

#include <immintrin.h>

#include <limits>

#include "tamis/zfp/transform.hpp"

namespace tamis::zfp::avx2 {

template <unsigned nbits, unsigned nblocks>
struct Register {
    using UInt = std::conditional_t<nbits == 32, std::uint32_t, std::uint64_t>;
    static constexpr unsigned blocks = nblocks, values = 256 / nbits / nblocks;  // of each block

    __m256i bits;

    [[gnu::always_inline]] friend Register operator+(Register a, Register b) {
        if constexpr (nbits == 32)
            return {_mm256_add_epi32(a.bits, b.bits)};
        else
            return {_mm256_add_epi64(a.bits, b.bits)};
    }
    [[gnu::always_inline]] friend Register operator-(Register a, Register b) {
        if constexpr (nbits == 32)
            return {_mm256_sub_epi32(a.bits, b.bits)};
        else
            return {_mm256_sub_epi64(a.bits, b.bits)};
    }
    [[gnu::always_inline]] friend Register operator^(Register a, Register b) {
        return {_mm256_xor_si256(a.bits, b.bits)};
    }
    [[gnu::always_inline]] Register& operator+=(Register b) { return *this = *this + b; }
    [[gnu::always_inline]] Register& operator-=(Register b) { return *this = *this - b; }

    static Register all(UInt value) {
        if constexpr (nbits == 32)
            return {_mm256_set1_epi32(static_cast<int>(value))};
        else
            return {_mm256_set1_epi64x(static_cast<long long>(value))};
    }
};

using Words32 = Register<32, 2>;
using Words64 = Register<64, 1>;
using Columns32 = Register<32, 8>;
using Columns64 = Register<64, 4>;

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

template <unsigned nbits, unsigned blocks>
[[gnu::always_inline]] inline Register<nbits, blocks> negabinary(Register<nbits, blocks> v) {
    using Words = Register<nbits, blocks>;
    const Words mask = Words::all(negabinary_mask<typename Words::UInt>);
    return (v + mask) ^ mask;
}

template <unsigned nbits, unsigned blocks>
[[gnu::always_inline]] inline Register<nbits, blocks> out_of_negabinary(Register<nbits, blocks> v) {
    using Words = Register<nbits, blocks>;
    const Words mask = Words::all(negabinary_mask<typename Words::UInt>);
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

template <>
[[gnu::always_inline]] inline avx2::Columns32 half(avx2::Columns32 value) {
    return {_mm256_srai_epi32(value.bits, 1)};
}

// AVX2 has no arithmetic shift of 64 bits.
template <>
[[gnu::always_inline]] inline avx2::Words64 half(avx2::Words64 value) {
    const __m256i sign = _mm256_set1_epi64x(std::numeric_limits<long long>::min());
    return {_mm256_or_si256(_mm256_srli_epi64(value.bits, 1), _mm256_and_si256(value.bits, sign))};
}

template <>
[[gnu::always_inline]] inline avx2::Columns64 half(avx2::Columns64 value) {
    return {half(avx2::Words64{value.bits}).bits};
}

}  // namespace tamis::zfp::detail

namespace tamis::zfp::avx2 {

// A block of `rank` axes: row y + 4z holds four values along x. In columns, each value has a register of its own.
template <class Words, unsigned rank>
using Rows = Words[block_size(rank) / Words::values];

// Lines along an axis on which rows are `stride` apart.
template <unsigned stride, std::size_t count, class Words, class Step>
[[gnu::always_inline]] inline void along_rows(Words (&v)[count], Step step) {
    for (unsigned first = 0; first < count; first += 4 * stride)
        for (unsigned i = first; i < first + stride; ++i)
            step(v[i], v[i + stride], v[i + 2 * stride], v[i + 3 * stride]);
}

// Lines along x lie inside a register, so the block is turned over once (x ↔ its slowest axis), lifted along x and the
// axes between without a further shuffle, turned back and lifted along the slowest axis: two transpositions instead of
// four. Columns need none.
template <class Lift, unsigned rank, class Words>
[[gnu::always_inline]] inline void forward_transform(Rows<Words, rank>& v) {
    constexpr auto lift = [](Words& a, Words& b, Words& c, Words& d) { Lift::forward(a, b, c, d); };
    if constexpr (rank == 1) {
        lift(v[0], v[1], v[2], v[3]);
    } else {
        constexpr unsigned slowest = block_size(rank) / 16;
        constexpr auto turn_and_lift = [](Words& a, Words& b, Words& c, Words& d) {
            transpose(a, b, c, d);
            Lift::forward(a, b, c, d);
        };
        along_rows<slowest>(v, turn_and_lift);
        if constexpr (rank > 2) along_rows<1>(v, lift);
        if constexpr (rank > 3) along_rows<4>(v, lift);
        along_rows<slowest>(v, turn_and_lift);
    }
}

template <class Lift, unsigned rank, class Words>
[[gnu::always_inline]] inline void inverse_transform(Rows<Words, rank>& v) {
    constexpr auto lift = [](Words& a, Words& b, Words& c, Words& d) { Lift::inverse(a, b, c, d); };
    if constexpr (rank == 1) {
        lift(v[0], v[1], v[2], v[3]);
    } else {
        constexpr unsigned slowest = block_size(rank) / 16;
        constexpr auto lift_and_turn = [](Words& a, Words& b, Words& c, Words& d) {
            Lift::inverse(a, b, c, d);
            transpose(a, b, c, d);
        };
        along_rows<slowest>(v, lift_and_turn);
        if constexpr (rank > 3) along_rows<4>(v, lift);
        if constexpr (rank > 2) along_rows<1>(v, lift);
        along_rows<slowest>(v, lift_and_turn);
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

// Registers of integers that the block transform is written for.
//
// Words<width, blocks> holds values of `blocks` blocks side by side: Words32 four of one block in its lower half and
// four of another in its upper half, Words64 four of one block. What is done to one block is done to all, and nothing
// crosses between the halves. Of blocks of one axis a register holds one value of each of eight or four (Lines32,
// Lines64). Sums wrap, as they do in the scalar transform, whose text (transform.hpp) is what runs here, too.
#pragma once

#include <immintrin.h>

#include <limits>

#include "kernels/vectors/rows.hpp"

namespace tamis::zfp::avx2 {

using vectors::for_each_row, vectors::forward_transform, vectors::inverse_transform;
using vectors::negabinary, vectors::out_of_negabinary;
using vectors::PerBlock, vectors::Rows, vectors::UIntPerBlock;

template <unsigned width, unsigned block_count>
struct Words {
    static constexpr unsigned blocks = block_count;
    using UInt = std::conditional_t<width == 32, std::uint32_t, std::uint64_t>;

    __m256i bits;

    static Words all(UInt value) {
        if constexpr (width == 32)
            return {_mm256_set1_epi32(static_cast<int>(value))};
        else
            return {_mm256_set1_epi64x(static_cast<long long>(value))};
    }
    [[gnu::always_inline]] friend Words operator+(Words a, Words b) {
        return {width == 32 ? _mm256_add_epi32(a.bits, b.bits) : _mm256_add_epi64(a.bits, b.bits)};
    }
    [[gnu::always_inline]] friend Words operator-(Words a, Words b) {
        return {width == 32 ? _mm256_sub_epi32(a.bits, b.bits) : _mm256_sub_epi64(a.bits, b.bits)};
    }
    [[gnu::always_inline]] friend Words operator^(Words a, Words b) { return {_mm256_xor_si256(a.bits, b.bits)}; }
    [[gnu::always_inline]] Words& operator+=(Words b) { return *this = *this + b; }
    [[gnu::always_inline]] Words& operator-=(Words b) { return *this = *this - b; }
};

using Words32 = Words<32, 2>;
using Words64 = Words<64, 1>;
using Lines32 = Words<32, 8>;
using Lines64 = Words<64, 4>;

template <class Scalar, unsigned rank>
using WordsOf = std::conditional_t<sizeof(Scalar) == 4, std::conditional_t<rank == 1, Lines32, Words32>,
                                   std::conditional_t<rank == 1, Lines64, Words64>>;

// 4×4 transpositions: of each half, and of the whole register.
template <unsigned n>
[[gnu::always_inline]] inline void transpose(Words<32, n>& a, Words<32, n>& b, Words<32, n>& c, Words<32, n>& d) {
    const __m256i ab = _mm256_unpacklo_epi32(a.bits, b.bits), AB = _mm256_unpackhi_epi32(a.bits, b.bits);
    const __m256i cd = _mm256_unpacklo_epi32(c.bits, d.bits), CD = _mm256_unpackhi_epi32(c.bits, d.bits);
    a.bits = _mm256_unpacklo_epi64(ab, cd);
    b.bits = _mm256_unpackhi_epi64(ab, cd);
    c.bits = _mm256_unpacklo_epi64(AB, CD);
    d.bits = _mm256_unpackhi_epi64(AB, CD);
}

template <unsigned n>
[[gnu::always_inline]] inline void transpose(Words<64, n>& a, Words<64, n>& b, Words<64, n>& c, Words<64, n>& d) {
    const __m256i ab = _mm256_unpacklo_epi64(a.bits, b.bits), AB = _mm256_unpackhi_epi64(a.bits, b.bits);
    const __m256i cd = _mm256_unpacklo_epi64(c.bits, d.bits), CD = _mm256_unpackhi_epi64(c.bits, d.bits);
    a.bits = _mm256_permute2x128_si256(ab, cd, 0x20);
    b.bits = _mm256_permute2x128_si256(AB, CD, 0x20);
    c.bits = _mm256_permute2x128_si256(ab, cd, 0x31);
    d.bits = _mm256_permute2x128_si256(AB, CD, 0x31);
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

// What the lifts of transform.hpp call. AVX2 has no arithmetic shift of 64 bits.
template <class Register>
    requires requires { Register::blocks; }
[[gnu::always_inline]] inline Register half(Register value) {
    if constexpr (sizeof(typename Register::UInt) == 4) return {_mm256_srai_epi32(value.bits, 1)};
    const __m256i sign = _mm256_set1_epi64x(std::numeric_limits<long long>::min());
    return {_mm256_or_si256(_mm256_srli_epi64(value.bits, 1), _mm256_and_si256(value.bits, sign))};
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

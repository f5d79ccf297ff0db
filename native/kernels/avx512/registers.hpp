// Two blocks of 64-bit values to a register of 512 bits: what avx2/registers.hpp and cast.hpp have for 32-bit values,
// in the same layout.
//
// AVX-512 shifts 64 bits arithmetically, has their maximum, and converts from double and back, so that casts are a
// product and a conversion, as for 32 bits: of a scale that is infinite the product is infinite, or NaN, and the
// conversion gives the lowest integer, as cast.hpp says. Against one block to a register of 256 bits: 3-D float64 is
// encoded 1.17 times as fast, int64 1.23 times. (Blocks of one axis gain nothing, eight to a register, and stay with
// AVX2.)
#pragma once

#include "kernels/avx2/cast.hpp"

namespace tamis::zfp::avx512 {

// Four values of one block in the lower half, four of another in the upper half.
struct Pair {
    static constexpr unsigned blocks = 2;
    using UInt = std::uint64_t;

    __m512i bits;

    static Pair all(UInt value) { return {_mm512_set1_epi64(static_cast<long long>(value))}; }
    [[gnu::always_inline]] friend Pair operator+(Pair a, Pair b) { return {_mm512_add_epi64(a.bits, b.bits)}; }
    [[gnu::always_inline]] friend Pair operator-(Pair a, Pair b) { return {_mm512_sub_epi64(a.bits, b.bits)}; }
    [[gnu::always_inline]] friend Pair operator^(Pair a, Pair b) { return {_mm512_xor_si512(a.bits, b.bits)}; }
    [[gnu::always_inline]] Pair& operator+=(Pair b) { return *this = *this + b; }
    [[gnu::always_inline]] Pair& operator-=(Pair b) { return *this = *this - b; }
};

template <class Scalar, unsigned rank>
using WordsOf = std::conditional_t<sizeof(Scalar) == 8 && rank != 1, Pair, avx2::WordsOf<Scalar, rank>>;

// What the lifts of transform.hpp call.
template <class Register>
    requires requires { Register::blocks; }
[[gnu::always_inline]] inline Register half(Register v) {
    return {_mm512_srai_epi64(v.bits, 1)};
}

[[gnu::always_inline]] inline Pair magnitude(Pair v) { return {_mm512_abs_epi64(v.bits)}; }

// As flip_negative of cast.hpp.
[[gnu::always_inline]] inline Pair flip_negative(Pair v) {
    return {_mm512_xor_si512(v.bits, _mm512_srli_epi64(_mm512_srai_epi64(v.bits, 63), 1))};
}

[[gnu::always_inline]] inline __m512i join(__m256i lower, __m256i upper) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(lower), upper, 1);
}
[[gnu::always_inline]] inline __m256i lower(__m512i bits) { return _mm512_castsi512_si256(bits); }
[[gnu::always_inline]] inline __m256i upper(__m512i bits) { return _mm512_extracti64x4_epi64(bits, 1); }

// A 4×4 transposition of each half.
[[gnu::always_inline]] inline void transpose(Pair& a, Pair& b, Pair& c, Pair& d) {
    const __m512i ab = _mm512_unpacklo_epi64(a.bits, b.bits), AB = _mm512_unpackhi_epi64(a.bits, b.bits);
    const __m512i cd = _mm512_unpacklo_epi64(c.bits, d.bits), CD = _mm512_unpackhi_epi64(c.bits, d.bits);
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    const __m512i second = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    a.bits = _mm512_permutex2var_epi64(ab, first, cd);
    b.bits = _mm512_permutex2var_epi64(AB, first, CD);
    c.bits = _mm512_permutex2var_epi64(ab, second, cd);
    d.bits = _mm512_permutex2var_epi64(AB, second, CD);
}

// Two blocks of 64-bit words as their upper and their lower halves, which are blocks of 32-bit words, and back.
template <unsigned count>
[[gnu::always_inline]] inline void split(const Pair (&rows)[count], avx2::Words32 (&high)[count],
                                         avx2::Words32 (&low)[count]) {
    const __m512i evens_first = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    for (unsigned i = 0; i < count; ++i) {
        const __m512i apart = _mm512_permutexvar_epi32(evens_first, rows[i].bits);
        low[i].bits = lower(apart), high[i].bits = upper(apart);
    }
}

template <unsigned count>
[[gnu::always_inline]] inline void merge(const avx2::Words32 (&high)[count], const avx2::Words32 (&low)[count],
                                         Pair (&rows)[count]) {
    const __m512i in_turn = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    for (unsigned i = 0; i < count; ++i)
        rows[i].bits = _mm512_permutexvar_epi32(in_turn, join(low[i].bits, high[i].bits));
}

template <unsigned rank, class Scalar, unsigned count>
[[gnu::always_inline]] inline void load_rows(const Scalar* a, const Scalar* b, const Layout& layout,
                                             Pair (&rows)[count]) {
    avx2::for_each_row<rank>(layout, [&](unsigned i, std::ptrdiff_t at) {
        rows[i].bits = join(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + at)),
                            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + at)));
    });
}

template <unsigned rank, class Scalar, unsigned count>
[[gnu::always_inline]] inline void store_rows(const Pair (&rows)[count], Scalar* a, Scalar* b, const Layout& layout) {
    avx2::for_each_row<rank>(layout, [&](unsigned i, std::ptrdiff_t at) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(a + at), lower(rows[i].bits));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(b + at), upper(rows[i].bits));
    });
}

// One value for each block out of its four.
template <class Step>
[[gnu::always_inline]] inline void reduce(__m512i v, Step step, std::uint64_t (&to)[2]) {
    v = step(v, _mm512_permutex_epi64(v, 0x4e));
    v = step(v, _mm512_permutex_epi64(v, 0xb1));
    to[0] = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm512_castsi512_si128(v)));
    to[1] = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm512_extracti64x2_epi64(v, 2)));
}

template <unsigned count>
[[gnu::always_inline]] inline void any_bits(const Pair (&rows)[count], std::uint64_t (&any)[2]) {
    const auto either = [](__m512i a, __m512i b) { return _mm512_or_si512(a, b); };
    __m512i sum = rows[0].bits;
    for (unsigned i = 1; i < count; ++i) sum = either(sum, rows[i].bits);
    reduce(sum, either, any);
}

template <unsigned count>
[[gnu::always_inline]] inline void largest_magnitudes(const Pair (&rows)[count], std::uint64_t (&largest)[2]) {
    const auto larger = [](__m512i a, __m512i b) { return _mm512_max_epu64(a, b); };
    const __m512i magnitude = _mm512_set1_epi64(0x7fffffffffffffff);
    __m512i most = _mm512_setzero_si512();
    for (const Pair& row : rows) most = larger(most, _mm512_and_si512(row.bits, magnitude));
    reduce(most, larger, largest);
}

// A power of two for the values of each block.
[[gnu::always_inline]] inline __m512d powers_of_two(int one, int other) {
    return _mm512_insertf64x4(_mm512_set1_pd(detail::power_of_two<double>(one)),
                              _mm256_set1_pd(detail::power_of_two<double>(other)), 1);
}

template <unsigned count>
[[gnu::always_inline]] inline void to_integers(Pair (&rows)[count], const int (&exponents)[2]) {
    const __m512d scale = powers_of_two(62 - exponents[0], 62 - exponents[1]);
    for (Pair& row : rows) row.bits = _mm512_cvttpd_epi64(_mm512_mul_pd(scale, _mm512_castsi512_pd(row.bits)));
}

template <unsigned count>
[[gnu::always_inline]] inline void from_integers(Pair (&rows)[count], const int (&exponents)[2]) {
    const __m512d scale = powers_of_two(exponents[0] - 62, exponents[1] - 62);
    for (Pair& row : rows) row.bits = _mm512_castpd_si512(_mm512_mul_pd(scale, _mm512_cvtepi64_pd(row.bits)));
}

// In blocks for which `first` holds, `a`; in the others, `b`.
[[gnu::always_inline]] inline Pair choose(const bool (&first)[2], Pair a, Pair b) {
    const int mask = (first[0] ? 0x0f : 0) | (first[1] ? 0xf0 : 0);
    return {_mm512_mask_blend_epi64(static_cast<__mmask8>(mask), b.bits, a.bits)};
}

}  // namespace tamis::zfp::avx512

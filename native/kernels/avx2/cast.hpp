// Floats of a block ↔ integers with a common exponent, four or eight at a time; exact where cast.hpp rounds or cuts.
#pragma once

#include <cstring>

#include "kernels/avx2/registers.hpp"
#include "tamis/zfp/cast.hpp"

namespace tamis::zfp::avx2 {

// Bit patterns of rows: of two blocks for 32 bits, of one for 64.
template <unsigned rank, class Scalar>
[[gnu::always_inline]] inline void load_rows(const Scalar* a, const Scalar* b, const Layout& layout,
                                             Rows<WordsOf<Scalar, rank>, rank>& rows) {
    for_each_row<rank>(layout, [&](unsigned i, std::ptrdiff_t at) {
        if constexpr (sizeof(Scalar) == 4)
            rows[i].bits = join(load_half(a + at), load_half(b + at));
        else
            rows[i].bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + at));
    });
}

template <unsigned rank, class Scalar>
[[gnu::always_inline]] inline void store_rows(const Rows<WordsOf<Scalar, rank>, rank>& rows, Scalar* a, Scalar* b,
                                              const Layout& layout) {
    for_each_row<rank>(layout, [&](unsigned i, std::ptrdiff_t at) {
        if constexpr (sizeof(Scalar) == 4) {
            store_half(a + at, lower(rows[i].bits));
            store_half(b + at, upper(rows[i].bits));
        } else {
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(a + at), rows[i].bits);
        }
    });
}

// The bits that any value of a block has.
template <unsigned count>
[[gnu::always_inline]] inline void any_bits(const Words32 (&rows)[count], std::uint32_t (&any)[2]) {
    __m256i sum = rows[0].bits;
    for (unsigned i = 1; i < count; ++i) sum = _mm256_or_si256(sum, rows[i].bits);
    sum = _mm256_or_si256(sum, _mm256_shuffle_epi32(sum, 0x4e));
    sum = _mm256_or_si256(sum, _mm256_shuffle_epi32(sum, 0xb1));
    any[0] = static_cast<std::uint32_t>(_mm256_extract_epi32(sum, 0));
    any[1] = static_cast<std::uint32_t>(_mm256_extract_epi32(sum, 4));
}

template <unsigned count>
[[gnu::always_inline]] inline void any_bits(const Words64 (&rows)[count], std::uint64_t (&any)[1]) {
    __m256i sum = rows[0].bits;
    for (unsigned i = 1; i < count; ++i) sum = _mm256_or_si256(sum, rows[i].bits);
    const __m128i two = _mm_or_si128(lower(sum), upper(sum));
    any[0] = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_or_si128(two, _mm_unpackhi_epi64(two, two))));
}

// The largest magnitude of each block, as a bit pattern.
template <unsigned count>
[[gnu::always_inline]] inline void largest_magnitudes(const Words32 (&rows)[count], std::uint32_t (&largest)[2]) {
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256i most = _mm256_setzero_si256();
    for (const Words32& row : rows) most = _mm256_max_epi32(most, _mm256_and_si256(row.bits, magnitude));
    most = _mm256_max_epi32(most, _mm256_shuffle_epi32(most, 0x4e));
    most = _mm256_max_epi32(most, _mm256_shuffle_epi32(most, 0xb1));
    largest[0] = static_cast<std::uint32_t>(_mm256_extract_epi32(most, 0));
    largest[1] = static_cast<std::uint32_t>(_mm256_extract_epi32(most, 4));
}

// There is no maximum of 64-bit integers; that of the upper halves has the exponent, and that of all lower halves says
// whether all are zero. NaN and infinity come out as infinity or above.
template <unsigned count>
[[gnu::always_inline]] inline void largest_magnitudes(const Words64 (&rows)[count], std::uint64_t (&largest)[1]) {
    const __m256i magnitude = _mm256_set1_epi64x(0x7fffffffffffffff);
    __m256i most = _mm256_setzero_si256();
    for (const Words64& row : rows) most = _mm256_max_epu32(most, _mm256_and_si256(row.bits, magnitude));
    const __m128i two = _mm_max_epu32(lower(most), upper(most));
    largest[0] = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_max_epu32(two, _mm_unpackhi_epi64(two, two))));
}

// |x| < 2^exponent, so that the products stay below 2^30. Where a scale is infinite, so is the product, or NaN, and the
// conversion gives the lowest integer, as to_integers says.
template <unsigned count>
[[gnu::always_inline]] inline void to_integers(Words32 (&rows)[count], const int (&exponent)[2]) {
    const __m256 scale = _mm256_set_m128(_mm_set1_ps(detail::power_of_two<float>(30 - exponent[1])),
                                         _mm_set1_ps(detail::power_of_two<float>(30 - exponent[0])));
    for (Words32& row : rows) row.bits = _mm256_cvttps_epi32(_mm256_mul_ps(scale, _mm256_castsi256_ps(row.bits)));
}

// AVX2 does not convert to 64 bits: the mantissa is shifted to its place. From this exponent on, subnormal values, to
// which the shift would add a leading one, are below 1 either way; the scale is finite.
inline constexpr int least_shifted_exponent = -960;

template <unsigned blocks, unsigned count>
[[gnu::always_inline]] inline void shift_to_integers(Words<64, blocks> (&rows)[count], __m256i exponent) {
    const __m256i mantissa = _mm256_set1_epi64x(0x000fffffffffffff), leading = _mm256_set1_epi64x(0x0010000000000000);
    const __m256i field = _mm256_set1_epi64x(0x7ff), zero = _mm256_setzero_si256();
    // Exponent field of mantissas that stay where they are.
    const __m256i unit = _mm256_add_epi64(_mm256_set1_epi64x(1023 + 52 - 62), exponent);
    for (auto& row : rows) {
        const __m256i value = _mm256_or_si256(_mm256_and_si256(row.bits, mantissa), leading);
        const __m256i left = _mm256_sub_epi64(_mm256_and_si256(_mm256_srli_epi64(row.bits, 52), field), unit);
        // A count of 64 or more, as a negative one is, gives zero.
        const __m256i size =
            _mm256_or_si256(_mm256_sllv_epi64(value, left), _mm256_srlv_epi64(value, _mm256_sub_epi64(zero, left)));
        const __m256i sign = _mm256_cmpgt_epi64(zero, row.bits);
        row.bits = _mm256_sub_epi64(_mm256_xor_si256(size, sign), sign);
    }
}

template <unsigned count>
[[gnu::always_inline]] inline void to_integers(Words64 (&rows)[count], const int (&exponents)[1]) {
    const int exponent = exponents[0];
    if (exponent < least_shifted_exponent) [[unlikely]] {
        alignas(32) double values[4 * count];
        alignas(32) std::uint64_t integers[4 * count];
        std::memcpy(values, rows, sizeof values);
        zfp::to_integers<4 * count>(integers, values, exponent);
        std::memcpy(rows, integers, sizeof integers);
        return;
    }
    shift_to_integers(rows, _mm256_set1_epi64x(exponent));
}

template <unsigned count>
[[gnu::always_inline]] inline void from_integers(Words32 (&rows)[count], const int (&exponent)[2]) {
    const __m256 scale = _mm256_set_m128(_mm_set1_ps(detail::power_of_two<float>(exponent[1] - 30)),
                                         _mm_set1_ps(detail::power_of_two<float>(exponent[0] - 30)));
    for (Words32& row : rows) row.bits = _mm256_castps_si256(_mm256_mul_ps(scale, _mm256_cvtepi32_ps(row.bits)));
}

// The upper 48 and the lower 16 bits are converted, exactly, by adding them to the mantissas of large numbers; their
// sum is rounded once, as the conversion would.
[[gnu::always_inline]] inline __m256d to_double(__m256i x) {
    const __m256d high_unit = _mm256_set1_pd(0x3p67), low_unit = _mm256_set1_pd(0x1p52);
    __m256i high = _mm256_blend_epi16(_mm256_srai_epi32(x, 16), _mm256_setzero_si256(), 0x33);
    high = _mm256_add_epi64(high, _mm256_castpd_si256(high_unit));
    const __m256i low = _mm256_blend_epi16(x, _mm256_castpd_si256(low_unit), 0x88);
    return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), _mm256_set1_pd(0x3p67 + 0x1p52)),
                         _mm256_castsi256_pd(low));
}

template <unsigned count>
[[gnu::always_inline]] inline void from_integers(Words64 (&rows)[count], const int (&exponent)[1]) {
    const __m256d scale = _mm256_set1_pd(detail::power_of_two<double>(exponent[0] - 62));
    for (Words64& row : rows) row.bits = _mm256_castpd_si256(_mm256_mul_pd(scale, to_double(row.bits)));
}

// Values of two blocks whose integers are these, times 2^32.
template <unsigned rank>
[[gnu::always_inline]] inline void store_upper(const Rows<Words32, rank>& rows, const int (&exponent)[2], double* a,
                                               double* b, const Layout& layout) {
    const __m256d scale_a = _mm256_set1_pd(detail::power_of_two<double>(exponent[0] - 30));
    const __m256d scale_b = _mm256_set1_pd(detail::power_of_two<double>(exponent[1] - 30));
    for_each_row<rank>(layout, [&](unsigned i, std::ptrdiff_t at) {
        _mm256_storeu_pd(a + at, _mm256_mul_pd(scale_a, _mm256_cvtepi32_pd(lower(rows[i].bits))));
        _mm256_storeu_pd(b + at, _mm256_mul_pd(scale_b, _mm256_cvtepi32_pd(upper(rows[i].bits))));
    });
}

template <unsigned rank>
[[gnu::always_inline]] inline void store_upper(const Rows<Words32, rank>& rows, const int (&)[2], std::int64_t* a,
                                               std::int64_t* b, const Layout& layout) {
    const auto widen = [](__m128i x) { return _mm256_slli_epi64(_mm256_cvtepi32_epi64(x), 32); };
    for_each_row<rank>(layout, [&](unsigned i, std::ptrdiff_t at) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(a + at), widen(lower(rows[i].bits)));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(b + at), widen(upper(rows[i].bits)));
    });
}

// As flip_negative of cast.hpp.
template <unsigned n>
[[gnu::always_inline]] inline Words<32, n> flip_negative(Words<32, n> v) {
    return {_mm256_xor_si256(v.bits, _mm256_srli_epi32(_mm256_srai_epi32(v.bits, 31), 1))};
}
template <unsigned n>
[[gnu::always_inline]] inline Words<64, n> flip_negative(Words<64, n> v) {
    const __m256i negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), v.bits);
    return {_mm256_xor_si256(v.bits, _mm256_srli_epi64(negative, 1))};
}

// Magnitudes of integers; that of the lowest one is itself.
template <unsigned n>
[[gnu::always_inline]] inline Words<32, n> magnitude(Words<32, n> v) {
    return {_mm256_abs_epi32(v.bits)};
}
template <unsigned n>
[[gnu::always_inline]] inline Words<64, n> magnitude(Words<64, n> v) {
    const __m256i sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), v.bits);
    return {_mm256_sub_epi64(_mm256_xor_si256(v.bits, sign), sign)};
}

// In blocks for which `first` holds, `a`; in the others, `b`.
[[gnu::always_inline]] inline Words32 choose(const bool (&first)[2], Words32 a, Words32 b) {
    const __m256i mask = join(_mm_set1_epi32(-static_cast<int>(first[0])), _mm_set1_epi32(-static_cast<int>(first[1])));
    return {_mm256_blendv_epi8(b.bits, a.bits, mask)};
}
[[gnu::always_inline]] inline Words64 choose(const bool (&first)[1], Words64 a, Words64 b) { return first[0] ? a : b; }

}  // namespace tamis::zfp::avx2

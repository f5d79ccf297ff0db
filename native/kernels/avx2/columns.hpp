// Values in columns: what cast.hpp does for blocks that lie in rows, with a scale of its own for each lane.
#pragma once

#include "kernels/avx2/cast.hpp"

namespace tamis::zfp::avx2 {

template <class Scalar>
using ColumnsOf = std::conditional_t<sizeof(Scalar) == 4, Columns32, Columns64>;

namespace detail {

using namespace zfp::detail;

[[gnu::always_inline]] inline __m256i load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
[[gnu::always_inline]] inline void store(void* to, __m256i bits) {
    _mm256_storeu_si256(static_cast<__m256i*>(to), bits);
}

// For each lane, 2^exponent as bit patterns. Where one is no normal number, by power_of_two.
[[gnu::always_inline]] inline __m256 powers_of_two(__m256i exponents) {
    const __m256i fields = _mm256_add_epi32(exponents, _mm256_set1_epi32(127));
    const __m256i odd = _mm256_or_si256(_mm256_cmpgt_epi32(fields, _mm256_set1_epi32(254)),
                                        _mm256_cmpgt_epi32(_mm256_set1_epi32(1), fields));
    if (!_mm256_testz_si256(odd, odd)) [[unlikely]] {
        alignas(32) int each[8];
        alignas(32) float powers[8];
        store(each, exponents);
        for (unsigned i = 0; i < 8; ++i) powers[i] = power_of_two<float>(each[i]);
        return _mm256_load_ps(powers);
    }
    return _mm256_castsi256_ps(_mm256_slli_epi32(fields, 23));
}

}  // namespace detail

template <unsigned nbits, unsigned blocks, unsigned count>
[[gnu::always_inline]] inline void any_bits(const Register<nbits, blocks> (&columns)[count],
                                            UIntPerBlock<Register<nbits, blocks>>& any) {
    __m256i sum = columns[0].bits;
    for (unsigned i = 1; i < count; ++i) sum = _mm256_or_si256(sum, columns[i].bits);
    detail::store(any, sum);
}

template <unsigned count>
[[gnu::always_inline]] inline void largest_magnitudes(const Columns32 (&columns)[count], std::uint32_t (&largest)[8]) {
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256i most = _mm256_setzero_si256();
    for (const Columns32& each : columns) most = _mm256_max_epu32(most, _mm256_and_si256(each.bits, magnitude));
    detail::store(largest, most);
}

template <unsigned count>
[[gnu::always_inline]] inline void largest_magnitudes(const Columns64 (&columns)[count], std::uint64_t (&largest)[4]) {
    const __m256i magnitude = _mm256_set1_epi64x(std::numeric_limits<long long>::max());
    __m256i most = _mm256_setzero_si256();
    for (const Columns64& each : columns) {
        const __m256i size = _mm256_and_si256(each.bits, magnitude);
        most = _mm256_blendv_epi8(most, size, _mm256_cmpgt_epi64(size, most));
    }
    detail::store(largest, most);
}

// Empty blocks, whose exponent is the lowest, take any scale: not one that calls for care.
template <unsigned count>
[[gnu::always_inline]] inline void to_integers(Columns32 (&columns)[count], const int (&exponents)[8]) {
    const __m256i empty = _mm256_cmpeq_epi32(detail::load(exponents), _mm256_set1_epi32(-127));
    const __m256i scales = _mm256_andnot_si256(empty, detail::load(exponents));
    const __m256 scale = detail::powers_of_two(_mm256_sub_epi32(_mm256_set1_epi32(30), scales));
    for (Columns32& each : columns)
        each.bits = _mm256_cvttps_epi32(_mm256_mul_ps(scale, _mm256_castsi256_ps(each.bits)));
}

template <unsigned count>
[[gnu::always_inline]] inline void from_integers(Columns32 (&columns)[count], const int (&exponents)[8]) {
    const __m256 scale = detail::powers_of_two(_mm256_sub_epi32(detail::load(exponents), _mm256_set1_epi32(30)));
    for (Columns32& each : columns)
        each.bits = _mm256_castps_si256(_mm256_mul_ps(scale, _mm256_cvtepi32_ps(each.bits)));
}

// As for rows: mantissas are shifted to their place.
template <unsigned count>
[[gnu::always_inline]] inline void to_integers(Columns64 (&columns)[count], const int (&exponents)[4]) {
    const __m128i scales =
        _mm_andnot_si128(_mm_cmpeq_epi32(load_half(exponents), _mm_set1_epi32(-1023)), load_half(exponents));
    const __m128i tiny = _mm_cmpgt_epi32(_mm_set1_epi32(least_shifted_exponent), scales);
    if (!_mm_testz_si128(tiny, tiny)) [[unlikely]] {
        for (unsigned lane = 0; lane < 4; ++lane) {
            double values[count];
            std::uint64_t integers[count];
            for (unsigned i = 0; i < count; ++i)
                std::memcpy(values + i, reinterpret_cast<char*>(columns + i) + 8 * lane, 8);
            zfp::to_integers<count>(integers, values, exponents[lane]);
            for (unsigned i = 0; i < count; ++i)
                std::memcpy(reinterpret_cast<char*>(columns + i) + 8 * lane, integers + i, 8);
        }
        return;
    }
    const __m256i unit = _mm256_cvtepi32_epi64(_mm_add_epi32(scales, _mm_set1_epi32(stay_field)));
    for (Columns64& each : columns) each.bits = shift_mantissas(each.bits, unit);
}

template <unsigned count>
[[gnu::always_inline]] inline void from_integers(Columns64 (&columns)[count], const int (&exponents)[4]) {
    alignas(32) double powers[4];
    for (unsigned i = 0; i < 4; ++i) powers[i] = detail::power_of_two<double>(exponents[i] - 62);
    const __m256d scale = _mm256_load_pd(powers);
    for (Columns64& each : columns) each.bits = _mm256_castpd_si256(_mm256_mul_pd(scale, to_double(each.bits)));
}

[[gnu::always_inline]] inline Columns32 flip_negative(Columns32 v) { return {flip_negative(Words32{v.bits}).bits}; }
[[gnu::always_inline]] inline Columns64 flip_negative(Columns64 v) { return {flip_negative(Words64{v.bits}).bits}; }
[[gnu::always_inline]] inline Columns32 magnitude(Columns32 v) { return {magnitude(Words32{v.bits}).bits}; }
[[gnu::always_inline]] inline Columns64 magnitude(Columns64 v) { return {magnitude(Words64{v.bits}).bits}; }

template <unsigned nbits, unsigned blocks>
[[gnu::always_inline]] inline Register<nbits, blocks> choose(const bool (&first)[blocks], Register<nbits, blocks> a,
                                                             Register<nbits, blocks> b) {
    using UInt = typename Register<nbits, blocks>::UInt;
    alignas(32) UInt mask[blocks];
    for (unsigned i = 0; i < blocks; ++i) mask[i] = first[i] ? ~UInt{0} : 0;
    return {_mm256_blendv_epi8(b.bits, a.bits, detail::load(mask))};
}

}  // namespace tamis::zfp::avx2

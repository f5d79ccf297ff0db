// What cast.hpp has, for eight or four blocks of one axis to a register: row x holds a value of each, so that nothing
// is summed up inside a register, and every block has its own scale.
#pragma once

#include "kernels/avx2/cast.hpp"

namespace tamis::zfp::avx2 {

template <class Register>
inline constexpr bool is_lines = Register::blocks >= 4;

template <class Register>
    requires is_lines<Register>
[[gnu::always_inline]] inline void store_per_block(UIntPerBlock<Register>& to, __m256i bits) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bits);
}

template <class Register>
    requires is_lines<Register>
[[gnu::always_inline]] inline void any_bits(const Register (&rows)[4], UIntPerBlock<Register>& any) {
    const __m256i one = _mm256_or_si256(rows[0].bits, rows[1].bits), two = _mm256_or_si256(rows[2].bits, rows[3].bits);
    store_per_block<Register>(any, _mm256_or_si256(one, two));
}

// As in cast.hpp, the halves of 64 bits each have their own maximum.
template <class Register>
    requires is_lines<Register>
[[gnu::always_inline]] inline void largest_magnitudes(const Register (&rows)[4], UIntPerBlock<Register>& largest) {
    const __m256i magnitude = Register::all(~typename Register::UInt{0} >> 1).bits;
    __m256i most = _mm256_setzero_si256();
    for (const Register& row : rows) most = _mm256_max_epu32(most, _mm256_and_si256(row.bits, magnitude));
    store_per_block<Register>(largest, most);
}

// 2^exponent of each block: its field, if all are normal numbers.
[[gnu::always_inline]] inline __m256 powers_of_two(__m256i exponents) {
    const __m256i field = _mm256_add_epi32(exponents, _mm256_set1_epi32(127));
    const __m256i abnormal = _mm256_or_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(1), field),
                                             _mm256_cmpgt_epi32(field, _mm256_set1_epi32(254)));
    if (_mm256_testz_si256(abnormal, abnormal)) [[likely]]
        return _mm256_castsi256_ps(_mm256_slli_epi32(field, 23));
    alignas(32) int each[8];
    alignas(32) float powers[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(each), exponents);
    for (unsigned i = 0; i < 8; ++i) powers[i] = detail::power_of_two<float>(each[i]);
    return _mm256_load_ps(powers);
}

[[gnu::always_inline]] inline __m256i load_exponents(const int (&exponents)[8]) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(exponents));
}
[[gnu::always_inline]] inline __m256i load_exponents(const int (&exponents)[4]) {
    return _mm256_cvtepi32_epi64(load_half(exponents));
}

[[gnu::always_inline]] inline void to_integers(Lines32 (&rows)[4], const int (&exponents)[8]) {
    const __m256 scale = powers_of_two(_mm256_sub_epi32(_mm256_set1_epi32(30), load_exponents(exponents)));
    for (Lines32& row : rows) row.bits = _mm256_cvttps_epi32(_mm256_mul_ps(scale, _mm256_castsi256_ps(row.bits)));
}

[[gnu::always_inline]] inline void from_integers(Lines32 (&rows)[4], const int (&exponents)[8]) {
    const __m256 scale = powers_of_two(_mm256_sub_epi32(load_exponents(exponents), _mm256_set1_epi32(30)));
    for (Lines32& row : rows) row.bits = _mm256_castps_si256(_mm256_mul_ps(scale, _mm256_cvtepi32_ps(row.bits)));
}

[[gnu::always_inline]] inline void to_integers(Lines64 (&rows)[4], const int (&exponents)[4]) {
    const __m256i exponent = load_exponents(exponents);
    const __m256i small = _mm256_cmpgt_epi64(_mm256_set1_epi64x(least_shifted_exponent), exponent);
    if (_mm256_testz_si256(small, small)) [[likely]]
        return shift_to_integers(rows, exponent);
    alignas(32) double values[4][4];  // by row
    std::memcpy(values, rows, sizeof values);
    for (unsigned i = 0; i < 4; ++i) {
        if (exponents[i] > 1024) continue;  // a block with NaN or infinity, which is sent as patterns
        const double block[4] = {values[0][i], values[1][i], values[2][i], values[3][i]};
        std::uint64_t integers[4];
        zfp::to_integers<4>(integers, block, exponents[i]);
        for (unsigned x = 0; x < 4; ++x) std::memcpy(&values[x][i], &integers[x], sizeof(double));
    }
    std::memcpy(rows, values, sizeof values);
}

[[gnu::always_inline]] inline void from_integers(Lines64 (&rows)[4], const int (&exponents)[4]) {
    alignas(32) double powers[4];
    for (unsigned i = 0; i < 4; ++i) powers[i] = detail::power_of_two<double>(exponents[i] - 62);
    const __m256d scale = _mm256_load_pd(powers);
    for (Lines64& row : rows) row.bits = _mm256_castpd_si256(_mm256_mul_pd(scale, to_double(row.bits)));
}

[[gnu::always_inline]] inline Lines32 choose(const bool (&first)[8], Lines32 a, Lines32 b) {
    const __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(first)));
    return {_mm256_blendv_epi8(b.bits, a.bits, _mm256_sub_epi32(_mm256_setzero_si256(), wide))};
}
[[gnu::always_inline]] inline Lines64 choose(const bool (&first)[4], Lines64 a, Lines64 b) {
    const __m256i mask = _mm256_setr_epi64x(-static_cast<int>(first[0]), -static_cast<int>(first[1]),
                                            -static_cast<int>(first[2]), -static_cast<int>(first[3]));
    return {_mm256_blendv_epi8(b.bits, a.bits, mask)};
}

}  // namespace tamis::zfp::avx2

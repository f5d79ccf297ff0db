// Byte planes of two blocks ↔ bit planes, by AVX-512 (VBMI) and GFNI.
//
// GF2P8AFFINEQB multiplies each 8×8 bit matrix by eight vectors. By the unit vectors, that gives the matrix's columns:
// its transpose, in one instruction where exchanges of bits take 15. A matrix has its first row in its highest byte,
// so the bytes of each word are turned round before; and VPERMI2B takes 64 bytes out of 128, wherever they are, which
// puts them in the order of the stream on the same way. So eight planes of 64 coefficients are four instructions.
#pragma once

#include "kernels/avx2/planes256.hpp"
#include "kernels/avx512/registers.hpp"

namespace tamis::zfp::avx512 {

using avx2::Bytes;

// Bytes of a register.
using Places = std::array<std::uint8_t, 64>;

[[gnu::always_inline]] inline __m512i load_places(const Places& places) { return _mm512_loadu_si512(places.data()); }

template <class Place>
constexpr Places make_places(Place place) {
    Places places{};
    for (unsigned i = 0; i < 64; ++i) places[i] = static_cast<std::uint8_t>(place(i));
    return places;
}

// Which byte is taken where the bytes of each word are turned round.
constexpr unsigned turned(unsigned i) { return i ^ 7; }

// Byte m of word q ↔ byte q of word m.
constexpr unsigned exchanged(unsigned i) { return i % 8 * 8 + i / 8; }

inline constexpr Places words_by_byte = make_places([](unsigned i) { return exchanged(i); });
inline constexpr Places turned_words_by_byte = make_places([](unsigned i) { return exchanged(turned(i)); });

// Bit m of byte r ↔ bit r of byte m, of words whose bytes were turned round.
[[gnu::always_inline]] inline __m512i transpose_turned(__m512i x) {
    return _mm512_gf2p8affine_epi64_epi8(_mm512_set1_epi64(static_cast<long long>(0x8040201008040201)), x, 0);
}

// 64 coefficients, a byte each and the bytes of each word turned round ↔ eight words, a plane each.
[[gnu::always_inline]] inline __m512i to_words(__m512i bytes) {
    return _mm512_permutexvar_epi8(load_places(words_by_byte), transpose_turned(bytes));
}
[[gnu::always_inline]] inline __m512i from_words(__m512i words) {
    return transpose_turned(_mm512_permutexvar_epi8(load_places(turned_words_by_byte), words));
}

template <unsigned rank>
struct Matrices;

// 16 coefficients gain 4 % only.
template <>
struct Matrices<2> : avx2::Matrices<2> {};

// Of two registers that hold 16 bytes of each block in turn, those of the block that begins at byte `first`.
constexpr Places to_stream_order(unsigned first) {
    return make_places([&](unsigned i) {
        const unsigned at = coefficient_order<3>[turned(i)];
        return at / 16 * 32 + at % 16 + first;
    });
}
// Back to two such registers: the one of groups `group` and `group + 1`.
constexpr Places to_block_order(unsigned group) {
    return make_places([&](unsigned i) {
        const unsigned at = 16 * (group + i / 32) + i % 16;
        return avx2::inverse_order<3>()[at] + (i / 16 % 2) * 64;
    });
}

template <>
struct Matrices<3> {
    [[gnu::always_inline]] static void to_planes(const Bytes<3>& bytes, std::uint64_t* a, std::uint64_t* b) {
        static constexpr Places first = to_stream_order(0), second = to_stream_order(16);
        const __m512i low = join(bytes[0], bytes[1]), high = join(bytes[2], bytes[3]);
        _mm512_storeu_si512(a, to_words(_mm512_permutex2var_epi8(low, load_places(first), high)));
        _mm512_storeu_si512(b, to_words(_mm512_permutex2var_epi8(low, load_places(second), high)));
    }

    [[gnu::always_inline]] static void from_planes(const std::uint64_t* a, const std::uint64_t* b, Bytes<3>& bytes) {
        static constexpr Places low = to_block_order(0), high = to_block_order(2);
        const __m512i one = from_words(_mm512_loadu_si512(a)), other = from_words(_mm512_loadu_si512(b));
        const __m512i first = _mm512_permutex2var_epi8(one, load_places(low), other);
        const __m512i second = _mm512_permutex2var_epi8(one, load_places(high), other);
        bytes[0] = lower(first), bytes[1] = upper(first), bytes[2] = lower(second), bytes[3] = upper(second);
    }
};

// 256 bytes are four registers, of which the lower seven bits of a place choose in two, and the highest one which two.
template <>
struct Matrices<4> {
    [[gnu::always_inline]] static void to_planes(const Bytes<4>& bytes, WidePlane* a, WidePlane* b) {
        static constexpr auto order = [] {
            std::array<Places, 4> places{};
            for (unsigned g = 0; g < 4; ++g)
                places[g] = make_places([&](unsigned i) { return coefficient_order<4>[64 * g + turned(i)]; });
            return places;
        }();
        const __m512i first = _mm512_setr_epi64(0, 1, 4, 5, 8, 9, 12, 13),
                      second = _mm512_setr_epi64(2, 3, 6, 7, 10, 11, 14, 15);
        for (const bool other : {false, true}) {
            __m512i v[4];
            for (unsigned g = 0; g < 4; ++g)
                v[g] = _mm512_permutex2var_epi64(join(bytes[4 * g], bytes[4 * g + 1]), other ? second : first,
                                                 join(bytes[4 * g + 2], bytes[4 * g + 3]));
            permute(order, v);
            for (__m512i& each : v) each = to_words(each);
            collect(v);
            WidePlane* to = other ? b : a;
            for (unsigned k = 0; k < 4; ++k) _mm512_storeu_si512(to + 2 * k, v[k]);
        }
    }

    [[gnu::always_inline]] static void from_planes(const WidePlane* a, const WidePlane* b, Bytes<4>& bytes) {
        static constexpr auto order = [] {
            std::array<Places, 4> places{};
            for (unsigned g = 0; g < 4; ++g)
                places[g] = make_places([&](unsigned i) { return avx2::inverse_order<4>()[64 * g + i]; });
            return places;
        }();
        __m512i v[2][4];
        for (const unsigned other : {0u, 1u}) {
            for (unsigned k = 0; k < 4; ++k) v[other][k] = _mm512_loadu_si512((other ? b : a) + 2 * k);
            distribute(v[other]);
            for (__m512i& each : v[other]) each = from_words(each);
            permute(order, v[other]);
        }
        const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                      high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
        for (unsigned g = 0; g < 4; ++g) {
            const __m512i first = _mm512_permutex2var_epi64(v[0][g], low, v[1][g]);
            const __m512i second = _mm512_permutex2var_epi64(v[0][g], high, v[1][g]);
            bytes[4 * g] = lower(first), bytes[4 * g + 1] = upper(first);
            bytes[4 * g + 2] = lower(second), bytes[4 * g + 3] = upper(second);
        }
    }

private:
    // Registers of 64 coefficients, whose words are eight planes ↔ registers of two planes.
    [[gnu::always_inline]] static void collect(__m512i (&v)[4]) {
        const __m512i a = v[0], b = v[1], c = v[2], d = v[3];
        v[0] = _mm512_unpacklo_epi64(a, b), v[1] = _mm512_unpacklo_epi64(c, d);
        v[2] = _mm512_unpackhi_epi64(a, b), v[3] = _mm512_unpackhi_epi64(c, d);
        transpose_quarters(v);
    }
    [[gnu::always_inline]] static void distribute(__m512i (&v)[4]) {
        transpose_quarters(v);
        const __m512i ab = v[0], cd = v[1], AB = v[2], CD = v[3];
        v[0] = _mm512_unpacklo_epi64(ab, AB), v[1] = _mm512_unpackhi_epi64(ab, AB);
        v[2] = _mm512_unpacklo_epi64(cd, CD), v[3] = _mm512_unpackhi_epi64(cd, CD);
    }
    [[gnu::always_inline]] static void transpose_quarters(__m512i (&v)[4]) {
        const __m512i ab = _mm512_shuffle_i64x2(v[0], v[1], 0x44), AB = _mm512_shuffle_i64x2(v[0], v[1], 0xee);
        const __m512i cd = _mm512_shuffle_i64x2(v[2], v[3], 0x44), CD = _mm512_shuffle_i64x2(v[2], v[3], 0xee);
        v[0] = _mm512_shuffle_i64x2(ab, cd, 0x88), v[1] = _mm512_shuffle_i64x2(ab, cd, 0xdd);
        v[2] = _mm512_shuffle_i64x2(AB, CD, 0x88), v[3] = _mm512_shuffle_i64x2(AB, CD, 0xdd);
    }

    [[gnu::always_inline]] static void permute(const std::array<Places, 4>& order, __m512i (&v)[4]) {
        const __m512i a = v[0], b = v[1], c = v[2], d = v[3];
        for (unsigned g = 0; g < 4; ++g) {
            const __m512i places = load_places(order[g]);
            v[g] = _mm512_mask_blend_epi8(_mm512_movepi8_mask(places), _mm512_permutex2var_epi8(a, places, b),
                                          _mm512_permutex2var_epi8(c, places, d));
        }
    }
};

}  // namespace tamis::zfp::avx512

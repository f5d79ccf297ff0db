// Coefficients of two blocks ↔ their byte planes: byte b of each coefficient, in the order of the stream.
//
// The block's rows are 4×4 words a half. Grouping the bytes of each word by place and transposing words turns four
// rows into the four byte planes of 16 coefficients, in the block's order. From there to the order of the stream, which
// mixes all rows, is one byte shuffle for blocks of 16; for 64, each 16 bytes of the stream gather what they need from
// each 16 bytes of the block: 16 shuffles whose other bytes are zero, and 12 ORs, for two blocks at once.
#pragma once

#include "kernels/avx2/registers.hpp"
#include "tamis/zfp/order.hpp"

namespace tamis::zfp::avx2 {

// Shuffles from 16-byte group `from` of one order to group `to` of the other; both halves of a register alike.
template <unsigned groups>
struct Shuffles {
    alignas(32) std::uint8_t to_from[groups][groups][32];

    __m256i get(unsigned to, unsigned from) const {
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(to_from[to][from]));
    }
};

// Byte i of the result is byte place[i] of the source.
template <std::size_t size>
constexpr auto make_shuffles(const std::array<std::uint8_t, size>& place) {
    Shuffles<size / 16> shuffles{};
    for (unsigned i = 0; i < size; ++i)
        for (unsigned from = 0; from < size / 16; ++from)
            for (unsigned half : {0u, 16u})
                shuffles.to_from[i / 16][from][half + i % 16] =
                    static_cast<std::uint8_t>(place[i] / 16 == from ? place[i] % 16 : 0x80);
    return shuffles;
}

template <unsigned rank>
constexpr auto inverse_order() {
    std::array<std::uint8_t, block_size(rank)> inverse{};
    for (unsigned i = 0; i < block_size(rank); ++i) inverse[coefficient_order<rank>[i]] = static_cast<std::uint8_t>(i);
    return inverse;
}

template <unsigned rank>
inline constexpr auto to_stream_order = make_shuffles(coefficient_order<rank>);
template <unsigned rank>
inline constexpr auto to_block_order = make_shuffles(inverse_order<rank>());

// Registers of 16 bytes a half.
template <unsigned rank>
using Bytes = __m256i[block_size(rank) / 16];

template <unsigned rank>
[[gnu::always_inline]] inline void shuffle_bytes(const Shuffles<block_size(rank) / 16>& shuffles,
                                                 const Bytes<rank>& from, Bytes<rank>& to) {
    constexpr unsigned groups = block_size(rank) / 16;
    for (unsigned i = 0; i < groups; ++i) {
        __m256i sum = _mm256_shuffle_epi8(from[0], shuffles.get(i, 0));
        for (unsigned j = 1; j < groups; ++j)
            sum = _mm256_or_si256(sum, _mm256_shuffle_epi8(from[j], shuffles.get(i, j)));
        to[i] = sum;
    }
}

// Byte planes of two blocks, eight bit planes each ↔ these planes: see planes16, planes64 and planes256.
template <unsigned rank>
struct Matrices;

// In each half, byte p of word w ↔ byte w of word p; its own inverse.
[[gnu::always_inline]] inline Words32 group_bytes(Words32 words) {
    const __m256i places =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    return {_mm256_shuffle_epi8(words.bits, places)};
}

// Byte planes in the block's order: planes[b][g] has byte b of coefficients 16g … 16g + 15.
template <unsigned rank>
[[gnu::always_inline]] inline void to_bytes(const Rows<Words32, rank>& rows, Bytes<rank> (&planes)[4]) {
    for (unsigned g = 0; g < block_size(rank) / 16; ++g) {
        Words32 a = group_bytes(rows[4 * g]), b = group_bytes(rows[4 * g + 1]);
        Words32 c = group_bytes(rows[4 * g + 2]), d = group_bytes(rows[4 * g + 3]);
        transpose(a, b, c, d);
        planes[0][g] = a.bits, planes[1][g] = b.bits, planes[2][g] = c.bits, planes[3][g] = d.bits;
    }
}

template <unsigned rank>
[[gnu::always_inline]] inline void from_bytes(const Bytes<rank> (&planes)[4], Rows<Words32, rank>& rows) {
    for (unsigned g = 0; g < block_size(rank) / 16; ++g) {
        Words32 a{planes[0][g]}, b{planes[1][g]}, c{planes[2][g]}, d{planes[3][g]};
        transpose(a, b, c, d);
        rows[4 * g] = group_bytes(a), rows[4 * g + 1] = group_bytes(b);
        rows[4 * g + 2] = group_bytes(c), rows[4 * g + 3] = group_bytes(d);
    }
}

// Four 8×8 bit matrices, one to 64 bits: bit m of byte r ↔ bit r of byte m. Three exchanges of bits by their index,
// for two blocks at once: 20 cycles for eight planes of 64 coefficients, where MOVEMASK takes 35.
[[gnu::always_inline]] inline __m256i transpose_bits(__m256i x) {
    __m256i t = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi64(x, 7)), _mm256_set1_epi64x(0x00aa00aa00aa00aa));
    x = _mm256_xor_si256(x, _mm256_xor_si256(t, _mm256_slli_epi64(t, 7)));
    t = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi64(x, 14)), _mm256_set1_epi64x(0x0000cccc0000cccc));
    x = _mm256_xor_si256(x, _mm256_xor_si256(t, _mm256_slli_epi64(t, 14)));
    t = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi64(x, 28)), _mm256_set1_epi64x(0x00000000f0f0f0f0));
    return _mm256_xor_si256(x, _mm256_xor_si256(t, _mm256_slli_epi64(t, 28)));
}

}  // namespace tamis::zfp::avx2

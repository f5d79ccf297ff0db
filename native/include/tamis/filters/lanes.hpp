// Sixteen bytes at a time, in the compilers' own vectors: one source for SSE2, NEON and machines without either.
#pragma once

#include <cstdint>
#include <cstring>

namespace tamis::filters {

using Lanes [[gnu::vector_size(16)]] = std::uint8_t;
using WideLanes [[gnu::vector_size(16)]] = std::uint64_t;

inline Lanes load(const std::uint8_t* in) {
    Lanes lanes;
    std::memcpy(&lanes, in, sizeof lanes);
    return lanes;
}

inline void store(std::uint8_t* out, Lanes lanes) { std::memcpy(out, &lanes, sizeof lanes); }

inline Lanes interleave_low(Lanes a, Lanes b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

inline Lanes interleave_high(Lanes a, Lanes b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// Loops over arrays of vectors are unrolled, so that the vectors stay in registers.

// A byte of `count` vectors stands at an index of log2(count) bits for its vector and four for its lane. Rotate the
// bits of all indices left, `times` times. Four times make rows of columns; log2(count) times make columns of rows.
template <unsigned times, unsigned count>
inline void rotate_indices(Lanes (&v)[count]) {
    if constexpr (times > 0) {
        Lanes next[count];
#pragma GCC unroll 8
        for (unsigned i = 0; i < count / 2; ++i) {
            next[2 * i] = interleave_low(v[i], v[i + count / 2]);
            next[2 * i + 1] = interleave_high(v[i], v[i + count / 2]);
        }
#pragma GCC unroll 8
        for (unsigned i = 0; i < count; ++i) v[i] = next[i];
        rotate_indices<times - 1>(v);
    }
}

// Exchange the number of a vector and the number of a bit, in each lane. Undoes itself.
inline void transpose_bits(Lanes (&v)[8]) {
    const auto exchange = [](Lanes& x, Lanes& y, unsigned step, std::uint64_t mask) {
        // The mask drops what a shift of 64 bits brings in from the next byte.
        const WideLanes a = reinterpret_cast<WideLanes>(x), b = reinterpret_cast<WideLanes>(y);
        const WideLanes difference = ((a >> step) ^ b) & mask;
        x = reinterpret_cast<Lanes>(a ^ (difference << step));
        y = reinterpret_cast<Lanes>(b ^ difference);
    };
#pragma GCC unroll 8
    for (unsigned i = 0; i < 4; ++i) exchange(v[i], v[i + 4], 4, 0x0f0f0f0f0f0f0f0f);
#pragma GCC unroll 8
    for (unsigned i = 0; i < 4; ++i) exchange(v[i / 2 * 4 + i % 2], v[i / 2 * 4 + i % 2 + 2], 2, 0x3333333333333333);
#pragma GCC unroll 8
    for (unsigned i = 0; i < 4; ++i) exchange(v[2 * i], v[2 * i + 1], 1, 0x5555555555555555);
}

// The same of eight bytes in a word: bit i of byte j becomes bit j of byte i.
inline std::uint64_t transpose_bits(std::uint64_t x) {
    std::uint64_t t = (x ^ x >> 7) & 0x00aa00aa00aa00aa;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000cccc0000cccc;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x00000000f0f0f0f0;
    return x ^ t ^ t << 28;
}

}  // namespace tamis::filters

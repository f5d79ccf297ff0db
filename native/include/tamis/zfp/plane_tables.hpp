// Tables for the code of bit planes, made at compile time from the rules in plane_code.hpp.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace tamis::zfp::detail {

// Planes of four coefficients, first plane in the lowest nibble ↔ their code.
struct NibbleCode {
    std::uint16_t bits = 0;   // the code, or the planes
    std::uint8_t planes = 0;  // how many
    std::uint8_t length = 0;  // bits of the code
    std::uint8_t n = 0;       // significant coefficients afterwards
};

constexpr NibbleCode encode_nibble(unsigned n, unsigned plane) {
    unsigned code = plane & ((1u << n) - 1), length = n;
    while (n < 4) {
        const unsigned rest = plane >> n;
        if (rest == 0) {
            ++length;  // group bit 0
            break;
        }
        code |= 1u << length++;
        const unsigned zeros = static_cast<unsigned>(std::countr_zero(rest));
        n += zeros + 1;
        length += zeros;
        if (n < 4) code |= 1u << length++;
    }
    return {static_cast<std::uint16_t>(code), 1, static_cast<std::uint8_t>(length), static_cast<std::uint8_t>(n)};
}

// Two planes of a block of four: n · 256 + planes → code. A plane takes at most 7 bits: n, then two for each further
// coefficient, less the implied one.
constexpr auto make_pair_table() {
    std::array<NibbleCode, 5 * 256> table{};
    for (unsigned n = 0; n <= 4; ++n)
        for (unsigned planes = 0; planes < 256; ++planes) {
            const NibbleCode first = encode_nibble(n, planes & 15), second = encode_nibble(first.n, planes >> 4);
            table[n * 256 + planes] = {static_cast<std::uint16_t>(first.bits | second.bits << first.length), 2,
                                       static_cast<std::uint8_t>(first.length + second.length), second.n};
        }
    return table;
}

inline constexpr auto pair_table = make_pair_table();

// Bits of a byte, four apart, the highest one first: where they go in the planes of a block of four.
inline constexpr auto bits_by_plane = [] {
    std::array<std::uint32_t, 256> table{};
    for (unsigned byte = 0; byte < 256; ++byte)
        for (unsigned k = 0; k < 8; ++k) table[byte] |= (byte >> (7 - k) & 1) << (4 * k);
    return table;
}();

inline constexpr unsigned window_nbits = 9;  // of the tables below; 10 gain nothing and cost cache

// One plane out of coming bits, for blocks of four or, with `larger`, for the first four coefficients of a larger one.
// planes = 0 where its code is longer than the window or reaches a fifth coefficient.
template <bool larger>
constexpr NibbleCode decode_nibble(unsigned n, unsigned bits, unsigned window) {
    unsigned plane = bits & ((1u << n) - 1), at = n;
    if (n > window) return {};
    while (larger || n < 4) {
        if (at >= window) return {};
        if (!(bits >> at++ & 1)) break;
        while (n < (larger ? 4 : 3)) {
            if (at >= window) return {};
            if (bits >> at++ & 1) break;
            ++n;
        }
        if (n == 4) return {};
        plane |= 1u << n++;
    }
    return {static_cast<std::uint16_t>(plane), 1, static_cast<std::uint8_t>(at), static_cast<std::uint8_t>(n)};
}

// As many planes as the window holds, four at most: n · 512 + coming bits → planes.
template <bool larger>
constexpr auto make_window_table() {
    std::array<NibbleCode, 5 << window_nbits> table{};
    for (unsigned n = 0; n <= 4; ++n)
        for (unsigned bits = 0; bits < 1u << window_nbits; ++bits) {
            NibbleCode all{0, 0, 0, static_cast<std::uint8_t>(n)};
            while (all.planes < 4) {
                const NibbleCode one = decode_nibble<larger>(all.n, bits >> all.length, window_nbits - all.length);
                if (one.planes == 0) break;
                all.bits = static_cast<std::uint16_t>(all.bits | one.bits << (4 * all.planes));
                ++all.planes;
                all.length = static_cast<std::uint8_t>(all.length + one.length);
                all.n = one.n;
            }
            table[n << window_nbits | bits] = all;
        }
    return table;
}

template <bool larger>
inline constexpr auto window_table = make_window_table<larger>();

// What is left of a block of four when its budget ends: all planes of up to `end_nbits` bits, the last one cut off
// where the bits are. Index: n · 512 + 2^left + coming bits.
struct NibbleEnd {
    std::uint32_t planes = 0;   // the first in the lowest nibble
    std::uint32_t columns = 0;  // the same bits by coefficient, a byte each, the first plane at its top
    std::uint8_t count = 0;
    std::uint8_t n = 0;
};

inline constexpr unsigned end_nbits = 8;

constexpr NibbleEnd decode_end(unsigned n, unsigned bits, unsigned left) {
    NibbleEnd end{};
    unsigned at = 0;
    while (at < left) {
        unsigned plane = bits >> at & ((1u << n) - 1);
        at += n;
        while (n < 4 && at < left && (bits >> at++ & 1)) {
            while (n < 3 && at < left && !(bits >> at++ & 1)) ++n;
            plane |= 1u << n++;
        }
        end.planes |= std::uint32_t{plane} << (4 * end.count);
        for (unsigned i = 0; i < 4; ++i) end.columns |= std::uint32_t{plane >> i & 1} << (8 * i + 7 - end.count);
        ++end.count;
    }
    end.n = static_cast<std::uint8_t>(n);
    return end;
}

constexpr auto make_end_table() {
    std::array<NibbleEnd, 5 << (end_nbits + 1)> table{};
    for (unsigned n = 0; n <= 4; ++n)
        for (unsigned left = 0; left <= end_nbits; ++left)
            for (unsigned bits = 0; bits < 1u << left; ++bits)
                table[n << (end_nbits + 1) | 1u << left | bits] = decode_end(n, bits, left);
    return table;
}

inline constexpr auto end_table = make_end_table();

// The group tests and runs that follow the n plain bits, for whatever n. length = 0 where they do not end within the
// bits that index the table.
struct Runs {
    std::uint16_t ones = 0;    // bits of the coefficients from n on
    std::uint8_t advance = 0;  // coefficients passed
    std::uint8_t length = 0;   // bits read
};

inline constexpr unsigned runs_nbits = 11;

constexpr Runs decode_runs_entry(unsigned bits) {
    unsigned ones = 0, advance = 0, at = 0;
    while (at < runs_nbits && (bits >> at & 1)) {
        ++at;
        while (at < runs_nbits && !(bits >> at & 1)) ++at, ++advance;
        ones |= 1u << advance++;
        ++at;
    }
    if (at >= runs_nbits) return {};
    return {static_cast<std::uint16_t>(ones), static_cast<std::uint8_t>(advance), static_cast<std::uint8_t>(at + 1)};
}

constexpr auto make_runs_table() {
    std::array<Runs, 1 << runs_nbits> table{};
    for (unsigned bits = 0; bits < 1u << runs_nbits; ++bits) table[bits] = decode_runs_entry(bits);
    return table;
}

inline constexpr auto runs_table = make_runs_table();

}  // namespace tamis::zfp::detail

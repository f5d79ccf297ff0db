// The code of bit planes (plane_code.hpp) by tables of eight coefficients or twelve bits, where others have PDEP and
// PEXT.
//
// Which bits follow the n plain ones depends on nothing but the coefficients from n on: a group bit in front of each
// that follows a one or is the first, and its value. So a table gives the code of eight at once, with or without a
// group bit in front; and on reading, the values that twelve bits are the code of, also where the plane goes on behind
// these. What hardly occurs is left to plane_code.hpp: the plane whose last coefficient becomes significant, long runs,
// and what the budget of a block cuts off.
#pragma once

#include "tamis/zfp/plane_code.hpp"

namespace tamis::zfp::neon {

struct Code {
    std::uint16_t bits = 0;
    std::uint8_t length = 0;
    std::uint8_t advance = 0;  // coefficients
};

// Of eight coefficients; or, if they are the `last` ones, up to the last one that is 1, and a group bit 0.
constexpr Code encode_eight(unsigned coefficients, bool group, bool last) {
    unsigned bits = 0, length = 0, i = 0;
    for (; last ? coefficients >> i != 0 : i < 8; ++i) {
        const unsigned value = coefficients >> i & 1;
        if (group) bits |= 1u << length++;
        bits |= value << length++;
        group = value != 0;
    }
    return {static_cast<std::uint16_t>(bits), static_cast<std::uint8_t>(length + last), static_cast<std::uint8_t>(i)};
}

// By whether a group bit comes first, and coefficients.
template <bool last>
inline constexpr auto eight_codes = [] {
    std::array<std::array<Code, 256>, 2> table{};
    for (unsigned i = 0; i < 256; ++i)
        for (const bool group : {false, true}) table[group][i] = encode_eight(i, group, last);
    return table;
}();

inline constexpr unsigned longest_eight = 17;  // bits of such a code

// The lowest `count` < 64 bits.
[[gnu::always_inline]] inline std::uint64_t low_bits(std::uint64_t x, unsigned count) {
    return x & ~(~std::uint64_t{0} << count);
}

// Write one plane with n < size; returns the new n.
template <unsigned size>
[[gnu::always_inline]] inline unsigned write_plane(BitWriter& writer, std::uint64_t plane, unsigned n) {
    if (plane >> (size - 1) != 0) [[unlikely]]
        return zfp::encode_plane<size>(writer, plane, n);
    std::uint64_t code = low_bits(plane, n), rest = plane >> n;
    unsigned length = n, group = 1;
    while (rest > 255) {
        if (size > 16 && length + longest_eight > 56) {
            writer.put_wide(code, length);
            code = 0, length = 0;
        }
        const Code eight = eight_codes<false>[group][rest & 255];
        code |= std::uint64_t{eight.bits} << length;
        length += eight.length;
        group = rest >> 7 & 1;
        rest >>= 8;
        n += 8;
    }
    const Code end = eight_codes<true>[group][rest];
    if (size > 16 && length + end.length > 56) {
        writer.put_wide(code, length);
        writer.put(end.bits, end.length);
    } else {
        writer.put(code | std::uint64_t{end.bits} << length, length + end.length);
    }
    return n + end.advance;
}

// Write planes k - 1 … lowest; returns the new n. Stops once bit `end` is passed.
template <unsigned size, class Plane>
    requires(size <= 64)
[[gnu::always_inline]] inline unsigned write_planes(BitWriter& writer, const Plane* planes, unsigned k, unsigned lowest,
                                                    unsigned n, std::size_t end) {
    // As long as eight more coefficients are neither the last ones nor more than one put takes.
    constexpr unsigned few = size == 64 ? 56 - longest_eight : size - 8;
    for (; k > lowest && n < few && writer.may_be_before(end); --k) {
        const std::uint64_t plane = planes[k - 1], rest = plane >> n;
        if (rest > 255) [[unlikely]] {
            n = write_plane<size>(writer, plane, n);
            continue;
        }
        const Code code = eight_codes<true>[1][rest];
        writer.put(low_bits(plane, n) | std::uint64_t{code.bits} << n, n + code.length);
        n += code.advance;
    }
    for (; k > lowest && n < size && writer.may_be_before(end); --k) n = write_plane<size>(writer, planes[k - 1], n);
    for (; k > lowest && writer.may_be_before(end); --k) {
        if constexpr (size == 64)
            writer.put_word(planes[k - 1]);
        else
            writer.put(planes[k - 1], size);
    }
    return n;
}

// Of 256 coefficients: four words, and a fifth to look at after them.
[[gnu::always_inline]] inline unsigned write_plane(BitWriter& writer, const std::uint64_t* plane, unsigned n) {
    if (n < 256 && plane[3] >> 63 != 0) [[unlikely]]
        return zfp::encode_plane(writer, WidePlane{plane[0], plane[1], plane[2], plane[3]}, n);
    unsigned word = 0;
    for (; word < n / 64; ++word) writer.put_word(plane[word]);
    if (n == 256) return n;
    unsigned last = 3;
    while (last > word && plane[last] == 0) --last;
    const unsigned stop = 64 * last + static_cast<unsigned>(std::bit_width(plane[last]));
    const auto coefficients = [&](unsigned from) __attribute__((always_inline)) {
        return load_le64(reinterpret_cast<const std::uint8_t*>(plane) + from / 8) >> from % 8;
    };
    std::uint64_t code = low_bits(plane[word], n % 64);
    unsigned length = n % 64, group = 1;
    const auto append = [&](const Code& more) __attribute__((always_inline)) {
        if (length + longest_eight > 56) {
            writer.put_wide(code, length);
            code = 0, length = 0;
        }
        code |= std::uint64_t{more.bits} << length;
        length += more.length;
    };
    for (; n + 8 < stop; n += 8) {
        const std::uint64_t rest = coefficients(n);
        append(eight_codes<false>[group][rest & 255]);
        group = rest >> 7 & 1;
    }
    const Code end = eight_codes<true>[group][n < stop ? low_bits(coefficients(n), stop - n) : 0];
    append(end);
    writer.put(code, length);
    return n + end.advance;
}

template <unsigned size>
    requires(size == 256)
[[gnu::always_inline]] inline unsigned write_planes(BitWriter& writer, const WidePlane* planes, unsigned k,
                                                    unsigned lowest, unsigned n, std::size_t end) {
    for (; k > lowest && writer.may_be_before(end); --k) n = write_plane(writer, planes[k - 1].data(), n);
    return n;
}

inline constexpr unsigned code_nbits = 12;

// What coming bits are the code of, the first of them a group bit: coefficients up to the last one that is 1.
struct Ones {
    static constexpr unsigned open = 128;  // added to `advance` where the plane does not end among the bits

    std::uint16_t values = 0;
    std::uint8_t advance = open;  // coefficients
    std::uint8_t length = 0;      // bits; 0 where not even one run ends among them
};

constexpr Ones decode_ones(unsigned bits) {
    Ones ones;
    unsigned values = 0, at = 0, advance = 0;
    while (at < code_nbits) {
        if (!(bits >> at++ & 1))
            return {ones.values, static_cast<std::uint8_t>(ones.advance - Ones::open), static_cast<std::uint8_t>(at)};
        while (at < code_nbits && !(bits >> at & 1)) ++at, ++advance;
        if (at++ == code_nbits) break;
        values |= 1u << advance++;
        ones = {static_cast<std::uint16_t>(values), static_cast<std::uint8_t>(advance + Ones::open),
                static_cast<std::uint8_t>(at)};
    }
    return ones;
}

inline constexpr auto ones_table = [] {
    std::array<Ones, 1 << code_nbits> table{};
    for (unsigned bits = 0; bits < table.size(); ++bits) table[bits] = decode_ones(bits);
    return table;
}();

// What follows the plain bits of a plane, up to its end. `add(n, values)` is told coefficients from n on.
template <unsigned size, class Add>
[[gnu::always_inline]] inline unsigned read_ones(BitReader& reader, unsigned n, std::size_t end, Add add) {
    for (;;) {
        const Ones& ones = ones_table[reader.peek() % (1 << code_nbits)];
        const unsigned advance = ones.advance % Ones::open;
        // Of the last coefficient, the one is implied.
        if (ones.length == 0 || n + advance >= size || reader.position + ones.length > end) break;
        add(n, std::uint64_t{ones.values});
        n += advance;
        reader.position += ones.length;
        if (ones.advance < Ones::open) return n;
    }
    return zfp::detail::decode_runs(reader, n, size, end, [&](unsigned i) { add(i, std::uint64_t{1}); });
}

// Read one plane of a block that ends at bit `end`, which is not reached; n becomes the new n.
template <unsigned size>
[[gnu::always_inline]] inline std::uint64_t read_plane(BitReader& reader, unsigned& n, std::size_t end) {
    const std::size_t left = end - reader.position;
    const std::uint64_t bits = size < 64 ? reader.peek() : reader.peek_wide(reader.position);
    if (left <= n) [[unlikely]] {
        reader.position = end;
        return left < 64 ? low_bits(bits, static_cast<unsigned>(left)) : bits;
    }
    if (n == size) {
        reader.position += size;
        return size < 64 ? low_bits(bits, size) : bits;
    }
    std::uint64_t plane = low_bits(bits, n);
    reader.position += n;
    n = read_ones<size>(reader, n, end, [&](unsigned at, std::uint64_t values) { plane |= values << at; });
    return plane;
}

// One of 256 coefficients, into a plane that is zero before.
[[gnu::always_inline]] inline void read_plane(BitReader& reader, unsigned& n, std::size_t end, WidePlane& plane) {
    const std::size_t left = end - reader.position;
    const unsigned plain = static_cast<unsigned>(std::min<std::size_t>(n, left));
    for (unsigned at = 0; at < plain; at += 64)
        plane[at / 64] = reader.peek_wide(reader.position + at) & low_mask(std::min(plain - at, 64u));
    reader.position += plain;
    if (n == 256 || left <= n) return;
    n = read_ones<256>(reader, n, end, [&](unsigned at, std::uint64_t values) {
        plane[at / 64] |= values << at % 64;
        if (at % 64 > 48 && at < 192) plane[at / 64 + 1] |= values >> (64 - at % 64);
    });
}

// Read planes k - 1 … lowest of a block that ends at bit `end`; returns the lowest one that was reached, k if all are
// empty. `planes` is zero before.
template <unsigned size>
[[gnu::always_inline]] inline unsigned read_planes(BitReader& shared, auto* planes, unsigned k, unsigned lowest,
                                                   std::size_t end) {
    using Plane = std::remove_pointer_t<decltype(planes)>;
    BitReader reader = shared;
    unsigned n = 0;
    const unsigned top = k;
    k -= detail::skip_empty_planes(reader, k - lowest, end);
    if (k == lowest || reader.position >= end) {
        shared = reader;
        return top;
    }
    // While hardly any coefficient is significant, a plane takes few bits, and a table gives up to four at once.
    while (k >= lowest + 4 && n <= 4) {
        const detail::NibbleCode code =
            detail::window_table<true>[n << detail::window_nbits | (reader.peek() & low_mask(detail::window_nbits))];
        if (code.planes == 0 || code.length > end - reader.position) break;
        for (unsigned i = 0; i < 4; ++i) {
            const auto plane = static_cast<std::uint64_t>(code.bits >> (4 * i) & 15);
            if constexpr (size == 256)
                planes[k - 1 - i][0] = plane;
            else
                planes[k - 1 - i] = static_cast<Plane>(plane);
        }
        k -= code.planes;
        n = code.n;
        reader.position += code.length;
    }
    for (; k > lowest && reader.position < end; --k) {
        if constexpr (size == 256) {
            read_plane(reader, n, end, planes[k - 1]);
        } else {
            // Most planes end among bits that one look has.
            constexpr unsigned few = size == 64 ? 57 - code_nbits : size - 1;
            if (n <= few) {
                const std::uint64_t bits = reader.peek();
                const Ones& ones = ones_table[(bits >> n) % (1 << code_nbits)];
                const std::size_t after = reader.position + n + ones.length;
                if (n + ones.advance < size && after <= end) [[likely]] {
                    planes[k - 1] = static_cast<Plane>(low_bits(bits, n) | std::uint64_t{ones.values} << n);
                    n += ones.advance;
                    reader.position = after;
                    continue;
                }
            }
            planes[k - 1] = static_cast<Plane>(read_plane<size>(reader, n, end));
        }
    }
    shared = reader;
    return k;
}

}  // namespace tamis::zfp::neon

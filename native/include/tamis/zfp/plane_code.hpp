// The embedded code of one bit plane, lowest coefficient first.
//
// n counts the coefficients that are significant from planes above. A plane sends its lowest n bits as they are, then,
// as long as a coefficient from n on has a one: a group bit 1, zeros up to that one, the one; and a group bit 0 at
// last. The one of the very last coefficient is implied. Runs are found by counting zeros, not bit by bit.
//
// A plane cut off by the budget of its block is a prefix of the whole code, so an encoder may write on and go back. A
// decoder takes the coefficient at which the budget ran out for significant, as libzfp does.
#pragma once

#include "bits.hpp"
#include "planes.hpp"

namespace tamis::zfp {

namespace detail {

inline unsigned trailing_zeros(std::uint64_t x) { return static_cast<unsigned>(std::countr_zero(x)); }

// One plane's code, gathered in a register and handed over when it is full.
class PlaneCode {
public:
    explicit PlaneCode(BitWriter& writer) : writer_(writer) {}
    ~PlaneCode() { writer_.put(code_, length_); }
    PlaneCode(const PlaneCode&) = delete;
    PlaneCode& operator=(const PlaneCode&) = delete;

    // count ≤ 56; `room` says that all of the plane's code fits 56 bits.
    template <bool room>
    void append(std::uint64_t bits, unsigned count) {
        if constexpr (!room) {
            if (length_ + count > 56) {
                writer_.put(code_, length_);
                code_ = 0, length_ = 0;
            }
        }
        code_ |= bits << length_;
        length_ += count;
    }

private:
    BitWriter& writer_;
    std::uint64_t code_ = 0;
    unsigned length_ = 0;
};

// A plane of four coefficients by table: state and plane (or coming bits) → code (or plane), its length, the new state.
struct Entry4 {
    std::uint8_t bits, length, state;
};

constexpr Entry4 encode_entry4(unsigned n, unsigned plane) {
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
    return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(length), static_cast<std::uint8_t>(n)};
}

constexpr Entry4 decode_entry4(unsigned n, unsigned bits) {
    unsigned plane = bits & ((1u << n) - 1), length = n;
    while (n < 4 && (bits >> length++ & 1)) {
        while (n < 3 && !(bits >> length++ & 1)) ++n;
        plane |= 1u << n++;
    }
    return {static_cast<std::uint8_t>(plane), static_cast<std::uint8_t>(length), static_cast<std::uint8_t>(n)};
}

// A plane of four takes at most 7 bits: n, then two for each further coefficient, less the implied one.
inline constexpr unsigned max_code4 = 7;

constexpr auto make_encode_table4() {
    std::array<Entry4, 4 * 16> table{};
    for (unsigned n = 0; n < 4; ++n)
        for (unsigned plane = 0; plane < 16; ++plane) table[n * 16 + plane] = encode_entry4(n, plane);
    return table;
}

constexpr auto make_decode_table4() {
    std::array<Entry4, 4 << max_code4> table{};
    for (unsigned n = 0; n < 4; ++n)
        for (unsigned bits = 0; bits < 1u << max_code4; ++bits) table[n << max_code4 | bits] = decode_entry4(n, bits);
    return table;
}

inline constexpr auto encode_table4 = make_encode_table4();
inline constexpr auto decode_table4 = make_decode_table4();

// The group tests and runs that follow the n plain bits, for whatever n: up to 11 bits at once. length = 0 where they
// do not end within those bits.
struct RunEntry {
    std::uint16_t ones;            // bits of the coefficients from n on
    std::uint8_t advance, length;  // coefficients passed, bits read
};

inline constexpr unsigned run_nbits = 11;

constexpr RunEntry run_entry(unsigned bits) {
    unsigned ones = 0, advance = 0, at = 0;
    while (at < run_nbits && (bits >> at & 1)) {
        ++at;
        while (at < run_nbits && !(bits >> at & 1)) ++at, ++advance;
        ones |= 1u << advance++;
        ++at;
    }
    if (at >= run_nbits) return {};
    return {static_cast<std::uint16_t>(ones), static_cast<std::uint8_t>(advance), static_cast<std::uint8_t>(at + 1)};
}

constexpr auto make_run_table() {
    std::array<RunEntry, 1 << run_nbits> table{};
    for (unsigned bits = 0; bits < 1u << run_nbits; ++bits) table[bits] = run_entry(bits);
    return table;
}

inline constexpr auto run_table = make_run_table();

}  // namespace detail

// Write one plane of up to 64 coefficients; returns the new n.
template <unsigned size>
inline unsigned encode_plane(BitWriter& writer, std::uint64_t plane, unsigned n) {
    if constexpr (size == 4) {
        if (n == 4) {
            writer.put(plane, 4);
            return n;
        }
        const detail::Entry4 entry = detail::encode_table4[n * 16 + plane];
        writer.put(entry.bits, entry.length);
        return entry.state;
    } else {
        if (n == size) {
            writer.put_wide(plane, size);
            return n;
        }
        // 16 coefficients never take more than 31 bits.
        constexpr bool room = size <= 16;
        detail::PlaneCode code(writer);
        if (!room && n > 56) {
            writer.put_wide(plane & low_mask(n), n);
        } else {
            code.append<room>(plane & low_mask(n), n);
        }
        std::uint64_t rest = plane >> n;
        while (n < size) {
            if (rest == 0) {
                code.append<room>(0, 1);
                break;
            }
            const unsigned zeros = detail::trailing_zeros(rest);
            n += zeros + 1;
            rest = rest >> zeros >> 1;
            const unsigned last = n == size;  // whose one is implied
            if (room || zeros < 54) {
                code.append<room>(1 | std::uint64_t{!last} << (zeros + 1), zeros + 2 - last);
            } else {
                code.append<room>(1, 28);
                code.append<room>(std::uint64_t{!last} << (zeros - 27), zeros - 26 - last);
            }
        }
        return n;
    }
}

// 256 coefficients.
inline unsigned encode_plane(BitWriter& writer, const WidePlane& plane, unsigned n) {
    unsigned word = 0;
    for (; word < n / 64; ++word) writer.put_wide(plane[word], 64);
    if (n == 256) return n;
    if (n % 64 != 0) writer.put_wide(plane[word] & low_mask(n % 64), n % 64);
    std::uint64_t rest = plane[word] & ~low_mask(n % 64);
    while (n < 256) {
        unsigned next = word;
        while (rest == 0 && next < 3) rest = plane[++next];
        if (rest == 0) {
            writer.put(0, 1);
            break;
        }
        word = next;
        const unsigned one = 64 * word + detail::trailing_zeros(rest);
        rest &= rest - 1;
        const unsigned zeros = one - n, last = one == 255;
        if (zeros < 54) {
            writer.put(1 | std::uint64_t{!last} << (zeros + 1), zeros + 2 - last);
        } else {
            writer.put(1, 1);
            writer.put_zeros(zeros);
            writer.put(!last, 1 - last);
        }
        n = one + 1;
    }
    return n;
}

namespace detail {

// Pass the zeros of a run: at most `limit` bits are looked at. Returns the zeros; `stopped` if a one ended them.
inline std::size_t skip_run(BitReader& reader, std::size_t limit, bool& stopped) {
    std::size_t zeros = 0;
    stopped = false;
    while (zeros < limit) {
        const std::size_t window = limit - zeros < 56 ? limit - zeros : 56;
        const unsigned run = trailing_zeros(reader.peek() | std::uint64_t{1} << window);
        zeros += run;
        if (run < window) {
            reader.position += run + 1;
            stopped = true;
            break;
        }
        reader.position += run;
    }
    return zeros;
}

// The group tests and runs of a plane, for any size and with the block ending at bit `end`. `mark(i)` is told each
// coefficient that became significant.
template <class Mark>
inline unsigned decode_runs(BitReader& reader, unsigned n, unsigned size, std::size_t end, Mark mark) {
    while (n < size && reader.position < end) {
        if (reader.get(1) == 0) break;
        const std::size_t left = end - reader.position, values = size - 1 - n;
        bool stopped;
        n += static_cast<unsigned>(skip_run(reader, left < values ? left : values, stopped));
        mark(n++);
    }
    return n;
}

}  // namespace detail

// Read one plane of up to 64 coefficients from a block that ends at bit `end`; n becomes the new n.
template <unsigned size>
inline std::uint64_t decode_plane(BitReader& reader, unsigned& n, std::size_t end) {
    const std::size_t left = end - reader.position;
    if constexpr (size == 4) {
        if (n < 4 && left >= detail::max_code4) {
            const std::uint64_t bits = reader.peek() & low_mask(detail::max_code4);
            const detail::Entry4 entry = detail::decode_table4[n << detail::max_code4 | bits];
            reader.position += entry.length;
            n = entry.state;
            return entry.bits;
        }
    }
    if (left < n) {
        const std::uint64_t plane = reader.peek_wide(reader.position) & low_mask(static_cast<unsigned>(left));
        reader.position = end;
        return plane;
    }
    std::uint64_t plane = (size < 64 ? reader.peek() : reader.peek_wide(reader.position)) & low_mask(n);
    if (n == size) {
        reader.position += n;
        return plane;
    }
    if constexpr (size > 4) {
        const std::size_t runs = reader.position + n;
        const detail::RunEntry entry = detail::run_table[reader.peek_at(runs) & low_mask(detail::run_nbits)];
        if (entry.length != 0 && n + entry.advance < size && n + entry.length <= left) [[likely]] {
            plane |= std::uint64_t{entry.ones} << n;
            n += entry.advance;
            reader.position = runs + entry.length;
            return plane;
        }
    }
    reader.position += n;
    n = detail::decode_runs(reader, n, size, end, [&](unsigned i) { plane |= std::uint64_t{1} << i; });
    return plane;
}

// 256 coefficients.
inline WidePlane decode_wide_plane(BitReader& reader, unsigned& n, std::size_t end) {
    WidePlane plane{};
    const std::size_t left = end - reader.position;
    const unsigned plain = left < n ? static_cast<unsigned>(left) : n;
    for (unsigned at = 0; at < plain; at += 64)
        plane[at / 64] = reader.peek_wide(reader.position + at) & low_mask(plain - at < 64 ? plain - at : 64);
    reader.position += plain;
    n = detail::decode_runs(reader, n, 256, end, [&](unsigned i) { plane[i / 64] |= std::uint64_t{1} << i % 64; });
    return plane;
}

}  // namespace tamis::zfp

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
#include "plane_tables.hpp"
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

}  // namespace detail

// Write one plane of up to 64 coefficients; returns the new n.
template <unsigned size>
[[gnu::always_inline]] inline unsigned encode_plane(BitWriter& writer, std::uint64_t plane, unsigned n) {
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

// 256 coefficients.
[[gnu::always_inline]] inline unsigned encode_plane(BitWriter& writer, const WidePlane& plane, unsigned n) {
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

// Pass the planes at the top of a block, up to `planes`, that are empty: a group bit 0 each. Returns how many.
inline unsigned skip_empty_planes(BitReader& reader, unsigned planes, std::size_t end) {
    bool stopped;
    const std::size_t left = end > reader.position ? end - reader.position : 0;
    const std::size_t empty = skip_run(reader, left < planes ? left : planes, stopped);
    reader.position -= stopped;  // that one opens the first plane that is not empty
    return static_cast<unsigned>(empty);
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
[[gnu::always_inline]] inline auto decode_plane(BitReader& reader, unsigned& n, std::size_t end) {
    const std::size_t left = end - reader.position;
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
        const std::size_t at = reader.position + n;
        const detail::Runs runs = detail::runs_table[reader.peek_at(at) & low_mask(detail::runs_nbits)];
        if (runs.length != 0 && n + runs.advance < size && n + runs.length <= left) [[likely]] {
            plane |= std::uint64_t{runs.ones} << n;
            n += runs.advance;
            reader.position = at + runs.length;
            return plane;
        }
    }
    reader.position += n;
    n = detail::decode_runs(reader, n, size, end, [&](unsigned i) { plane |= std::uint64_t{1} << i; });
    return plane;
}

// 256 coefficients.
template <>
inline auto decode_plane<256>(BitReader& reader, unsigned& n, std::size_t end) {
    WidePlane plane{};
    const std::size_t left = end - reader.position;
    const unsigned plain = left < n ? static_cast<unsigned>(left) : n;
    for (unsigned at = 0; at < plain; at += 64)
        plane[at / 64] = reader.peek_wide(reader.position + at) & low_mask(plain - at < 64 ? plain - at : 64);
    reader.position += plain;
    n = detail::decode_runs(reader, n, 256, end, [&](unsigned i) { plane[i / 64] |= std::uint64_t{1} << i % 64; });
    return plane;
}

// Write planes `from` down to `from - count + 1` of a slab; returns the new n. Stops early once bit `end` is passed.
template <class Slab>
[[gnu::always_inline]] inline unsigned encode_slab(BitWriter& writer, const Slab& slab, unsigned from, unsigned count,
                                                   unsigned n, std::size_t end) {
    for (unsigned i = 0; i < count && writer.position() < end; ++i) {
        if constexpr (Slab::size > 64)
            n = encode_plane(writer, slab.get(from - i), n);
        else
            n = encode_plane<Slab::size>(writer, slab.get(from - i), n);
    }
    return n;
}

// Read planes `from` down to `from - count + 1` into an empty slab; returns the new n. Stops early at bit `end`.
template <class Slab>
[[gnu::always_inline]] inline unsigned decode_slab(BitReader& reader, Slab& slab, unsigned from, unsigned count,
                                                   unsigned n, std::size_t end) {
    unsigned done = 0;
    // While hardly any coefficient is significant, a plane takes few bits, and a table gives several at once.
    while (done < count && n <= 4) {
        const detail::NibbleCode code =
            detail::window_table<true>[n << detail::window_nbits | (reader.peek() & low_mask(detail::window_nbits))];
        if (code.planes == 0 || code.planes > count - done || code.length > end - reader.position) break;
        for (unsigned i = 0; i < code.planes; ++i) slab.set_nibble(from - done - i, code.bits >> (4 * i) & 15);
        done += code.planes;
        n = code.n;
        reader.position += code.length;
    }
    for (; done < count && reader.position < end; ++done)
        slab.set(from - done, decode_plane<Slab::size>(reader, n, end));
    return n;
}

}  // namespace tamis::zfp

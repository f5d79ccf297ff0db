// Coefficients of a block ↔ its bit planes, eight planes of 64 or 256 coefficients or 32 planes of 16 at a time.
//
// Bytes of coefficients are brought to where rows of 8×8 bit matrices want them by TBL, which takes 16 bytes out of 64
// wherever these are: that is the order of the stream, too. Eight matrices lie side by side in eight words, and are
// transposed by exchanges between words; the exchange of nibbles is one instruction for each side.
#pragma once

#include "kernels/neon/registers.hpp"
#include "tamis/zfp/planes.hpp"

namespace tamis::zfp::neon {

// 64 bytes.
using Bytes = uint8x16_t[4];

[[gnu::always_inline]] inline uint8x16_t bytes_of(uint64x2_t x) { return vreinterpretq_u8_u64(x); }
[[gnu::always_inline]] inline uint64x2_t words_of(uint8x16_t x) { return vreinterpretq_u64_u8(x); }

// Bits of `a` under `mask << shift` change places with those of `b` under `mask`.
template <unsigned shift>
[[gnu::always_inline]] inline void exchange(uint8x16_t& a, uint8x16_t& b) {
    const uint8x16_t before = a;
    if constexpr (shift == 4) {
        a = vsliq_n_u8(a, b, 4);
        b = vsriq_n_u8(b, before, 4);
    } else {
        const uint8x16_t low = vdupq_n_u8(shift == 2 ? 0x33 : 0x55);
        a = vbslq_u8(low, a, vshlq_n_u8(b, shift));
        b = vbslq_u8(low, vshrq_n_u8(before, shift), b);
    }
}

// First words of two registers, and second ones; its own inverse.
[[gnu::always_inline]] inline void exchange_words(uint8x16_t& a, uint8x16_t& b) {
    const uint64x2_t x = words_of(a), y = words_of(b);
    a = bytes_of(vtrn1q_u64(x, y)), b = bytes_of(vtrn2q_u64(x, y));
}

// Eight 8×8 bit matrices, one to a byte lane, row r in word r: bit m of row r ↔ bit r of row m.
[[gnu::always_inline]] inline void transpose_bits(Bytes& v) {
    exchange<4>(v[0], v[2]), exchange<4>(v[1], v[3]);
    exchange<2>(v[0], v[1]), exchange<2>(v[2], v[3]);
    exchange_words(v[0], v[1]), exchange_words(v[2], v[3]);
    for (const unsigned i : {0u, 2u}) {
        exchange<1>(v[i], v[i + 1]);
        exchange_words(v[i], v[i + 1]);
    }
}

[[gnu::always_inline]] inline uint8x16x4_t table_of(const uint8x16_t* bytes) {
    return {{bytes[0], bytes[1], bytes[2], bytes[3]}};
}

template <std::size_t size>
using Places = std::array<std::uint8_t, size>;

// Byte places[i] of `from` becomes byte i.
[[gnu::always_inline]] inline void shuffle(const Places<64>& places, const Bytes& from, Bytes& to) {
    const uint8x16x4_t table = table_of(from);
    for (unsigned i = 0; i < 4; ++i) to[i] = vqtbl4q_u8(table, vld1q_u8(places.data() + 16 * i));
}

template <std::size_t size>
constexpr Places<size> inverse(const Places<size>& places) {
    Places<size> back{};
    for (unsigned i = 0; i < size; ++i) back[places[i]] = static_cast<std::uint8_t>(i);
    return back;
}

// Byte b of each of 16 words ↔ register b.
[[gnu::always_inline]] inline void split_bytes(const Words32* rows, uint8x16_t (&bytes)[4]) {
    const auto row = [&](unsigned i) __attribute__((always_inline)) { return vreinterpretq_u8_u32(rows[i].bits); };
    const uint8x16_t even = vuzp1q_u8(row(0), row(1)), odd = vuzp2q_u8(row(0), row(1));
    const uint8x16_t next_even = vuzp1q_u8(row(2), row(3)), next_odd = vuzp2q_u8(row(2), row(3));
    bytes[0] = vuzp1q_u8(even, next_even), bytes[1] = vuzp1q_u8(odd, next_odd);
    bytes[2] = vuzp2q_u8(even, next_even), bytes[3] = vuzp2q_u8(odd, next_odd);
}

[[gnu::always_inline]] inline void join_bytes(const uint8x16_t (&bytes)[4], Words32* rows) {
    const uint8x16_t even = vzip1q_u8(bytes[0], bytes[2]), odd = vzip1q_u8(bytes[1], bytes[3]);
    const uint8x16_t next_even = vzip2q_u8(bytes[0], bytes[2]), next_odd = vzip2q_u8(bytes[1], bytes[3]);
    rows[0].bits = vreinterpretq_u32_u8(vzip1q_u8(even, odd)),
    rows[1].bits = vreinterpretq_u32_u8(vzip2q_u8(even, odd));
    rows[2].bits = vreinterpretq_u32_u8(vzip1q_u8(next_even, next_odd));
    rows[3].bits = vreinterpretq_u32_u8(vzip2q_u8(next_even, next_odd));
}

// The 32 planes of a block of 32-bit words. The planes that `make` gives at once are those from `index` × at_once on,
// the lowest one first; `set` takes them back.
template <unsigned rank>
class Planes;

template <>
class Planes<2> {
public:
    using Plane = std::uint16_t;
    static constexpr unsigned at_once = 32;

    [[gnu::always_inline]] void load(const Rows<Words32, 2>& rows) {
        for (unsigned i = 0; i < 4; ++i) bytes_[i] = vreinterpretq_u8_u32(rows[i].bits);
    }
    [[gnu::always_inline]] void store(Rows<Words32, 2>& rows) const {
        for (unsigned i = 0; i < 4; ++i) rows[i].bits = vreinterpretq_u32_u8(bytes_[i]);
    }

    // 16-bit lane b of word m is plane 8b + m.
    [[gnu::always_inline]] void make(unsigned, Plane* planes) const {
        Bytes v;
        shuffle(to_words, bytes_, v);
        transpose_bits(v);
        const auto lanes = [&](unsigned i) __attribute__((always_inline)) { return vreinterpretq_u16_u8(v[i]); };
        const uint16x8_t a = vzip1q_u16(lanes(0), lanes(1)), b = vzip2q_u16(lanes(0), lanes(1));
        const uint16x8_t c = vzip1q_u16(lanes(2), lanes(3)), d = vzip2q_u16(lanes(2), lanes(3));
        // a: 0 2 of lanes 0 … 3, b: 1 3, c: 4 6, d: 5 7
        const uint16x8_t low = vzip1q_u16(a, b), high = vzip2q_u16(a, b);
        const uint16x8_t next_low = vzip1q_u16(c, d), next_high = vzip2q_u16(c, d);
        const auto pair = [](uint16x8_t x) __attribute__((always_inline)) { return vreinterpretq_u64_u16(x); };
        vst1q_u16(planes, vreinterpretq_u16_u64(vzip1q_u64(pair(low), pair(next_low))));
        vst1q_u16(planes + 8, vreinterpretq_u16_u64(vzip2q_u64(pair(low), pair(next_low))));
        vst1q_u16(planes + 16, vreinterpretq_u16_u64(vzip1q_u64(pair(high), pair(next_high))));
        vst1q_u16(planes + 24, vreinterpretq_u16_u64(vzip2q_u64(pair(high), pair(next_high))));
    }

    [[gnu::always_inline]] void set(unsigned, const Plane* planes) {
        const auto pair = [&](unsigned i) __attribute__((always_inline)) {
            return vreinterpretq_u64_u16(vld1q_u16(planes + 8 * i));
        };
        const auto lanes = [](uint64x2_t x) __attribute__((always_inline)) { return vreinterpretq_u16_u64(x); };
        const uint16x8_t low = lanes(vzip1q_u64(pair(0), pair(1))), next_low = lanes(vzip2q_u64(pair(0), pair(1)));
        const uint16x8_t high = lanes(vzip1q_u64(pair(2), pair(3))), next_high = lanes(vzip2q_u64(pair(2), pair(3)));
        const uint16x8_t a = vuzp1q_u16(low, high), b = vuzp2q_u16(low, high);
        const uint16x8_t c = vuzp1q_u16(next_low, next_high), d = vuzp2q_u16(next_low, next_high);
        const auto bytes = [](uint16x8_t x) __attribute__((always_inline)) { return vreinterpretq_u8_u16(x); };
        Bytes v = {bytes(vuzp1q_u16(a, b)), bytes(vuzp2q_u16(a, b)), bytes(vuzp1q_u16(c, d)), bytes(vuzp2q_u16(c, d))};
        transpose_bits(v);
        shuffle(from_words, v, bytes_);
    }
    [[gnu::always_inline]] void set_empty(unsigned) {
        for (uint8x16_t& each : bytes_) each = vdupq_n_u8(0);
    }

private:
    // Byte 2b + h of word r is byte b of coefficient 8h + r; word r is in register r / 2.
    static constexpr Places<64> to_words = [] {
        Places<64> places{};
        for (unsigned r = 0; r < 8; ++r)
            for (unsigned i = 0; i < 8; ++i)
                places[8 * r + i] = static_cast<std::uint8_t>(4 * coefficient_order<2>[8 * (i % 2) + r] + i / 2);
        return places;
    }();
    static constexpr Places<64> from_words = inverse(to_words);

    Bytes bytes_;  // of the rows
};

template <>
class Planes<3> {
public:
    using Plane = std::uint64_t;
    static constexpr unsigned at_once = 8;

    [[gnu::always_inline]] void load(const Rows<Words32, 3>& rows) {
        for (unsigned g = 0; g < 4; ++g) {
            uint8x16_t bytes[4];
            split_bytes(rows + 4 * g, bytes);
            for (unsigned b = 0; b < 4; ++b) bytes_[b][g] = bytes[b];
        }
    }
    [[gnu::always_inline]] void store(Rows<Words32, 3>& rows) const {
        for (unsigned g = 0; g < 4; ++g)
            join_bytes({bytes_[0][g], bytes_[1][g], bytes_[2][g], bytes_[3][g]}, rows + 4 * g);
    }

    [[gnu::always_inline]] void make(unsigned index, Plane* planes) const {
        Bytes v;
        shuffle(slot_order<3>, bytes_[index], v);
        transpose_bits(v);
        for (unsigned i = 0; i < 4; ++i) vst1q_u64(planes + 2 * i, words_of(v[i]));
    }
    [[gnu::always_inline]] void set(unsigned index, const Plane* planes) {
        static constexpr Places<64> from_slots = inverse(slot_order<3>);
        Bytes v;
        for (unsigned i = 0; i < 4; ++i) v[i] = bytes_of(vld1q_u64(planes + 2 * i));
        transpose_bits(v);
        shuffle(from_slots, v, bytes_[index]);
    }
    [[gnu::always_inline]] void set_empty(unsigned index) {
        for (uint8x16_t& each : bytes_[index]) each = vdupq_n_u8(0);
    }

private:
    Bytes bytes_[4];  // byte b of all coefficients, in the order of the block
};

template <>
class Planes<4> {
public:
    using Plane = WidePlane;
    static constexpr unsigned at_once = 8;

    [[gnu::always_inline]] void load(const Rows<Words32, 4>& rows) {
        for (unsigned g = 0; g < 16; ++g) {
            uint8x16_t bytes[4];
            split_bytes(rows + 4 * g, bytes);
            for (unsigned b = 0; b < 4; ++b) bytes_[b][g] = bytes[b];
        }
    }
    [[gnu::always_inline]] void store(Rows<Words32, 4>& rows) const {
        for (unsigned g = 0; g < 16; ++g)
            join_bytes({bytes_[0][g], bytes_[1][g], bytes_[2][g], bytes_[3][g]}, rows + 4 * g);
    }

    [[gnu::always_inline]] void make(unsigned index, Plane* planes) const {
        uint8x16_t slots[16];
        shuffle(slot_order<4>, bytes_[index], slots);
        Bytes v[4];
        for (unsigned g = 0; g < 4; ++g) {
            for (unsigned i = 0; i < 4; ++i) v[g][i] = slots[4 * g + i];
            transpose_bits(v[g]);
        }
        for (unsigned i = 0; i < 4; ++i) {
            exchange_words(v[0][i], v[1][i]), exchange_words(v[2][i], v[3][i]);
            for (const unsigned k : {0u, 1u}) {
                vst1q_u64(planes[2 * i + k].data(), words_of(v[k][i]));
                vst1q_u64(planes[2 * i + k].data() + 2, words_of(v[2 + k][i]));
            }
        }
    }
    [[gnu::always_inline]] void set(unsigned index, const Plane* planes) {
        static constexpr Places<256> from_slots = inverse(slot_order<4>);
        Bytes v[4];
        for (unsigned i = 0; i < 4; ++i) {
            for (const unsigned k : {0u, 1u}) {
                v[k][i] = bytes_of(vld1q_u64(planes[2 * i + k].data()));
                v[2 + k][i] = bytes_of(vld1q_u64(planes[2 * i + k].data() + 2));
            }
            exchange_words(v[0][i], v[1][i]), exchange_words(v[2][i], v[3][i]);
        }
        uint8x16_t slots[16];
        for (unsigned g = 0; g < 4; ++g) {
            transpose_bits(v[g]);
            for (unsigned i = 0; i < 4; ++i) slots[4 * g + i] = v[g][i];
        }
        shuffle(from_slots, slots, bytes_[index]);
    }
    [[gnu::always_inline]] void set_empty(unsigned index) {
        for (uint8x16_t& each : bytes_[index]) each = vdupq_n_u8(0);
    }

private:
    // TBL gives 0 for a place beyond its 64 bytes, and TBX leaves what is there.
    [[gnu::always_inline]] static void shuffle(const Places<256>& places, const uint8x16_t* from, uint8x16_t* to) {
        const uint8x16_t next = vdupq_n_u8(64);
        uint8x16_t at[16];
        for (unsigned i = 0; i < 16; ++i) at[i] = vld1q_u8(places.data() + 16 * i);
        for (unsigned g = 0; g < 4; ++g) {
            const uint8x16x4_t table = table_of(from + 4 * g);
            for (unsigned i = 0; i < 16; ++i) {
                to[i] = g == 0 ? vqtbl4q_u8(table, at[i]) : vqtbx4q_u8(to[i], table, at[i]);
                at[i] = vsubq_u8(at[i], next);
            }
        }
    }

    uint8x16_t bytes_[4][16];
};

}  // namespace tamis::zfp::neon

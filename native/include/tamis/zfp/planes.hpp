// Coefficients ↔ bit planes, by transposition of bit matrices.
//
// Plane k holds bit k of every coefficient, coefficient i (in stream order) at bit i. Picking those bits one by one is
// what libzfp spends most of its time on; here 8×8 bit matrices, eight to a row of 64-bit words, are transposed at
// once. A slab is the group of planes that one transposition yields, so that planes below the precision are never
// built.
#pragma once

#include "bytes.hpp"
#include "order.hpp"
#include "types.hpp"

namespace tamis::zfp {

// The planes of one block: one word up to 64 coefficients, four for 256.
using WidePlane = std::array<std::uint64_t, 4>;

namespace detail {

// Swap the bits of `a` under `mask << shift` with those of `b` under `mask`.
inline void swap_bits(std::uint64_t& a, std::uint64_t& b, unsigned shift, std::uint64_t mask) {
    const std::uint64_t t = ((a >> shift) ^ b) & mask;
    b ^= t;
    a ^= t << shift;
}

// Eight 8×8 bit matrices, one to a byte lane, row r in word r: bit m of row r goes to bit r of row m.
[[gnu::always_inline]] inline void transpose_8x8(std::uint64_t* words) {
    for (unsigned r = 0; r < 4; ++r) swap_bits(words[r], words[r + 4], 4, 0x0f0f0f0f0f0f0f0f);
    for (unsigned r : {0u, 1u, 4u, 5u}) swap_bits(words[r], words[r + 2], 2, 0x3333333333333333);
    for (unsigned r = 0; r < 8; r += 2) swap_bits(words[r], words[r + 1], 1, 0x5555555555555555);
}

// Where coefficient i of the stream waits, so that byte planes of 64 coefficients can be read off in order: row i % 8,
// lane i / 8 of its group of 64.
constexpr unsigned slot(unsigned i, unsigned size) { return size < 64 ? i : i / 64 * 64 + i % 8 * 8 + i / 8 % 8; }

template <unsigned rank>
constexpr auto make_slot_order() {
    constexpr unsigned size = block_size(rank);
    std::array<std::uint8_t, size> order{};
    for (unsigned i = 0; i < size; ++i) order[slot(i, size)] = coefficient_order<rank>[i];
    return order;
}

}  // namespace detail

// Element of the block that waits in each slot.
template <unsigned rank>
inline constexpr auto slot_order = detail::make_slot_order<rank>();

// 64 coefficients, 8 planes a slab. Byte q of word r is that byte of coefficient 8q + r, so the transposed words are
// the planes themselves.
template <class UInt, unsigned block>
struct Slab {
    static_assert(block == 64);
    static constexpr unsigned size = block, planes = 8;
    alignas(32) std::uint64_t words[8];

    [[gnu::always_inline]] void build(const UInt* slots, unsigned index) {
        alignas(32) std::uint8_t bytes[64];
        for (unsigned i = 0; i < 64; ++i) bytes[i] = static_cast<std::uint8_t>(slots[i] >> (8 * index));
        for (unsigned r = 0; r < 8; ++r) words[r] = load_le64(bytes + 8 * r);
        detail::transpose_8x8(words);
    }
    [[gnu::always_inline]] void add_to(UInt* slots, unsigned index) {
        alignas(32) std::uint8_t bytes[64];
        detail::transpose_8x8(words);
        for (unsigned r = 0; r < 8; ++r) store_le64(bytes + 8 * r, words[r]);
        for (unsigned i = 0; i < 64; ++i) slots[i] |= static_cast<UInt>(bytes[i]) << (8 * index);
    }
    void clear() { *this = {}; }
    std::uint64_t get(unsigned k) const { return words[k]; }
    void set(unsigned k, std::uint64_t plane) { words[k] = plane; }
    void set_nibble(unsigned k, std::uint64_t plane) { words[k] = plane; }
};

// 256 coefficients: four groups of 64.
template <class UInt>
struct Slab<UInt, 256> {
    static constexpr unsigned size = 256, planes = 8;
    Slab<UInt, 64> groups[4];

    [[gnu::always_inline]] void build(const UInt* slots, unsigned index) {
        for (unsigned g = 0; g < 4; ++g) groups[g].build(slots + 64 * g, index);
    }
    [[gnu::always_inline]] void add_to(UInt* slots, unsigned index) {
        for (unsigned g = 0; g < 4; ++g) groups[g].add_to(slots + 64 * g, index);
    }
    void clear() { *this = {}; }
    WidePlane get(unsigned k) const {
        return {groups[0].words[k], groups[1].words[k], groups[2].words[k], groups[3].words[k]};
    }
    void set(unsigned k, const WidePlane& plane) {
        for (unsigned g = 0; g < 4; ++g) groups[g].words[k] = plane[g];
    }
    void set_nibble(unsigned k, std::uint64_t plane) { groups[0].words[k] = plane; }
};

// 16 coefficients, 32 planes a slab. Bytes 2b and 2b + 1 of word r are byte b of coefficients r and 8 + r, so plane
// 8b + m is the 16-bit lane b of word m.
template <class UInt>
struct Slab<UInt, 16> {
    static constexpr unsigned size = 16, planes = 32;
    std::uint64_t words[8];

    [[gnu::always_inline]] void build(const UInt* slots, unsigned index) {
        for (unsigned r = 0; r < 8; ++r)
            words[r] = spread(slots[r] >> (32 * index % int_nbits<UInt>)) |
                       spread(slots[8 + r] >> (32 * index % int_nbits<UInt>)) << 8;
        detail::transpose_8x8(words);
    }
    [[gnu::always_inline]] void add_to(UInt* slots, unsigned index) {
        detail::transpose_8x8(words);
        for (unsigned r = 0; r < 8; ++r) {
            slots[r] |= static_cast<UInt>(squeeze(words[r])) << (32 * index % int_nbits<UInt>);
            slots[8 + r] |= static_cast<UInt>(squeeze(words[r] >> 8)) << (32 * index % int_nbits<UInt>);
        }
    }
    void clear() { *this = {}; }
    std::uint64_t get(unsigned k) const { return words[k % 8] >> (k / 8 * 16) & 0xffff; }
    void set(unsigned k, std::uint64_t plane) { words[k % 8] |= plane << (k / 8 * 16); }
    void set_nibble(unsigned k, std::uint64_t plane) { set(k, plane); }

private:
    // The lowest four bytes to every other byte, and back.
    static std::uint64_t spread(std::uint64_t x) {
        x = (x & 0xffffffff) | (x & 0xffffffff) << 16;
        x &= 0x0000ffff0000ffff;
        return (x | x << 8) & 0x00ff00ff00ff00ff;
    }
    static std::uint32_t squeeze(std::uint64_t x) {
        x &= 0x00ff00ff00ff00ff;
        x = (x | x >> 8) & 0x0000ffff0000ffff;
        return static_cast<std::uint32_t>(x | x >> 16);
    }
};

// 4 coefficients, 16 planes a slab, a plane to a nibble. The highest plane is the lowest nibble, so that once every
// coefficient is significant the rest of the slab is sent as it stands.
template <class UInt>
struct Slab<UInt, 4> {
    static constexpr unsigned size = 4, planes = 16;
    std::uint64_t nibbles;

    [[gnu::always_inline]] void build(const UInt* slots, unsigned index) {
        std::uint64_t x = 0;
        for (unsigned i = 0; i < 4; ++i) x |= static_cast<std::uint64_t>(slots[i] >> (16 * index) & 0xffff) << (16 * i);
        nibbles = reverse_nibbles(planes_to_front(x));
    }
    [[gnu::always_inline]] void add_to(UInt* slots, unsigned index) {
        const std::uint64_t x = planes_to_back(reverse_nibbles(nibbles));
        for (unsigned i = 0; i < 4; ++i) slots[i] |= static_cast<UInt>(x >> (16 * i) & 0xffff) << (16 * index);
    }
    void clear() { nibbles = 0; }
    // Planes k and below, the lowest nibble first.
    std::uint64_t from(unsigned k) const { return nibbles >> (60 - 4 * k); }
    void set_from(unsigned k, std::uint64_t descending) { nibbles |= descending << (60 - 4 * k); }

private:
    // Exchange two bits of a bit's index, a over b: shift = 2^a - 2^b, mask = where a is clear and b is set.
    static std::uint64_t exchange(std::uint64_t x, unsigned shift, std::uint64_t mask) {
        const std::uint64_t t = ((x >> shift) ^ x) & mask;
        return x ^ t ^ t << shift;
    }
    // A bit's index is (c1 c0 k3 k2 k1 k0), coefficient then plane; it becomes (k3 k2 k1 k0 c1 c0): first c changes
    // places with k3 k2, then with k1 k0. Each of the steps is its own inverse.
    static std::uint64_t planes_to_front(std::uint64_t x) { return swap_low(swap_high(x)); }
    static std::uint64_t planes_to_back(std::uint64_t x) { return swap_high(swap_low(x)); }
    static std::uint64_t swap_high(std::uint64_t x) {
        return exchange(exchange(x, 24, 0x00000000ff00ff00), 12, 0x0000f0f00000f0f0);
    }
    static std::uint64_t swap_low(std::uint64_t x) {
        return exchange(exchange(x, 6, 0x00cc00cc00cc00cc), 3, 0x0a0a0a0a0a0a0a0a);
    }
    static std::uint64_t reverse_nibbles(std::uint64_t x) {
        x = byteswap(x);
        return (x >> 4 & 0x0f0f0f0f0f0f0f0f) | (x & 0x0f0f0f0f0f0f0f0f) << 4;
    }
};

}  // namespace tamis::zfp

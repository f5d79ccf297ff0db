// The code of blocks of one axis: sixteen planes of four coefficients in a 64-bit word, the slots of planes16.hpp in
// nibbles, and eight planes to a PEXT.
#pragma once

#include "kernels/avx2/planes64.hpp"
#include "tamis/zfp/line_code.hpp"

namespace tamis::zfp::avx2 {

// The slots of 16 planes, the first in the lowest nibble: which group bits and values are sent, what group bits hold.
struct NibbleSlots {
    std::uint64_t groups, values, significant;

    // `before`: the coefficients that are significant from planes above, (1 << n) - 1.
    [[gnu::always_inline]] NibbleSlots(std::uint64_t planes, std::uint64_t before) {
        constexpr std::uint64_t ones = 0x1111111111111111;
        std::uint64_t y = planes | before;
        y |= y << 4, y |= y << 8, y |= y << 16, y |= y << 32;
        y |= y >> 1 & 7 * ones;
        y |= y >> 2 & 3 * ones;
        const std::uint64_t above = y << 4 | before, fresh = planes & ~above;
        const std::uint64_t first = ((above << 1 & 14 * ones) | ones) & ~above;  // 1 << n
        groups = (fresh << 1 & 14 * ones) | first;
        values = y & (above | 7 * ones);
        significant = y;
    }
};

// Write `count` ≤ 16 planes, the first in the lowest nibble; returns the new n. Stops once bit `end` is passed.
[[gnu::always_inline]] inline unsigned encode_nibbles(BitWriter& writer, std::uint64_t planes, unsigned count,
                                                      unsigned n, std::size_t end) {
    const NibbleSlots slots(planes, (1u << n) - 1);
    for (unsigned at = 0; at < count && writer.position() < end; at += 8) {
        const auto half = [&](std::uint64_t x) { return x >> (4 * at) & 0xffffffff; };
        const std::uint64_t all =
            _pdep_u64(half(slots.groups), even_places) | _pdep_u64(half(slots.values), odd_places);
        const std::uint64_t sent = _bzhi_u64(all, 8 * std::min(count - at, 8u));
        const std::uint64_t bits =
            _pdep_u64(half(slots.significant), even_places) | _pdep_u64(half(planes), odd_places);
        writer.put(_pext_u64(bits, sent), popcount(sent));  // at most 35 bits
    }
    return popcount(slots.significant >> (4 * (count - 1)) & 15);
}

}  // namespace tamis::zfp::avx2

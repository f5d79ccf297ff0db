// The code of plane_code.hpp for blocks of one axis. Their planes are nibbles, so that tables take several at a time,
// and once all four coefficients are significant the planes go as they are, fourteen to a put.
#pragma once

#include <algorithm>

#include "plane_code.hpp"

namespace tamis::zfp {

template <class UInt>
[[gnu::always_inline]] inline unsigned encode_slab(BitWriter& writer, const Slab<UInt, 4>& slab, unsigned from,
                                                   unsigned count, unsigned n, std::size_t end) {
    std::uint64_t planes = slab.from(from), code = 0;
    unsigned length = 0;
    std::size_t left = end - writer.position();
    while (n < 4 && count > 1 && length < left) {
        const detail::NibbleCode pair = detail::pair_table[n * 256 + (planes & 255)];
        code |= std::uint64_t{pair.bits} << length;
        length += pair.length;
        n = pair.n;
        planes >>= 8, count -= 2;
        if (length > 56 - 14) {  // no room for another pair
            writer.put(code, length);
            left -= std::min<std::size_t>(left, length);
            code = 0, length = 0;
        }
    }
    if (n < 4 && count == 1 && length < left) {
        const detail::NibbleCode one = detail::encode_nibble(n, planes & 15);
        code |= std::uint64_t{one.bits} << length;
        length += one.length;
        n = one.n, count = 0;
    }
    if (length > left) {  // cut here what the block's budget would have cut off
        length = static_cast<unsigned>(left);
        code &= low_mask(length);
        count = 0;
    }
    writer.put(code, length);
    while (n == 4 && count != 0) {
        const unsigned part = std::min(count, 14u);
        writer.put(planes & low_mask(4 * part), 4 * part);
        planes >>= 4 * part, count -= part;
    }
    return n;
}

// A whole block whose budget is a byte at most, as at low rates: each plane takes a bit or more, so that the highest
// byte of the coefficients is enough. 1-D float64 at rate 4 takes 18 ns a block instead of 28. False where that is not
// so.
template <class UInt>
[[gnu::always_inline]] inline bool encode_short_block(BitWriter& writer, const UInt* slots, unsigned precision,
                                                      std::size_t end) {
    const std::size_t left = end - writer.position();
    if (left > detail::end_nbits || precision < detail::end_nbits) return false;
    std::uint32_t planes = 0;
    for (unsigned i = 0; i < 4; ++i) planes |= detail::bits_by_plane[slots[i] >> (8 * sizeof(UInt) - 8)] << i;
    std::uint64_t code = 0;
    for (unsigned length = 0, n = 0; length < left; planes >>= 8) {
        const detail::NibbleCode& pair = detail::pair_table[n * 256 + (planes & 255)];
        code |= std::uint64_t{pair.bits} << length;
        length += pair.length;
        n = pair.n;
    }
    writer.put(code & low_mask(static_cast<unsigned>(left)), static_cast<unsigned>(left));
    return true;
}

// The same on reading: one look-up.
template <class UInt>
[[gnu::always_inline]] inline bool decode_short_block(BitReader& reader, UInt (&slots)[4], unsigned precision,
                                                      std::size_t end) {
    const std::size_t left = end - reader.position;
    if (left > detail::end_nbits) return false;
    const auto bits = static_cast<unsigned>(reader.peek() & low_mask(static_cast<unsigned>(left)));
    const detail::NibbleEnd block = detail::end_table[1u << left | bits];
    if (block.count > precision) return false;
    for (unsigned i = 0; i < 4; ++i)
        slots[i] = static_cast<UInt>(block.columns >> (8 * i) & 0xff) << (8 * sizeof(UInt) - 8);
    reader.position = end;
    return true;
}

template <class UInt>
[[gnu::always_inline]] inline unsigned decode_slab(BitReader& reader, Slab<UInt, 4>& slab, unsigned from,
                                                   unsigned count, unsigned n, std::size_t end) {
    std::uint64_t planes = 0;
    unsigned done = 0;
    while (done < count && reader.position < end) {
        std::uint64_t bits = reader.peek();
        const unsigned have = static_cast<unsigned>(std::min<std::size_t>(57, end - reader.position));
        if (have <= detail::end_nbits) {
            const std::uint64_t index =
                std::uint64_t{n} << (detail::end_nbits + 1) | 1u << have | (bits & low_mask(have));
            const detail::NibbleEnd last = detail::end_table[index];
            if (last.count <= count - done) {
                planes |= std::uint64_t{last.planes} << (4 * done);
                n = last.n;
                reader.position = end;
                break;
            }
        }
        unsigned taken = 0;
        while (n < 4 && done < count) {
            const detail::NibbleCode code =
                detail::window_table<false>[n << detail::window_nbits | (bits & low_mask(detail::window_nbits))];
            if (code.planes > count - done || taken + code.length > have) break;
            planes |= std::uint64_t{code.bits} << (4 * done);
            done += code.planes;
            n = code.n;
            bits >>= code.length, taken += code.length;
        }
        const unsigned part = n == 4 ? std::min(count - done, (have - taken) / 4) : 0;
        if (part != 0) {
            planes |= (bits & low_mask(4 * part)) << (4 * done);
            done += part, taken += 4 * part;
        }
        reader.position += taken;
        if (taken == 0) planes |= decode_plane<4>(reader, n, end) << (4 * done++);  // the last one, or one cut off
    }
    slab.set_from(from, planes);
    return n;
}

}  // namespace tamis::zfp

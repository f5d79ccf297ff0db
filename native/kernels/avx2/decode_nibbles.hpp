// Reading the code of blocks of four coefficients into their planes, nibbles from the highest plane on.
//
// The zero bits that a block begins with are planes without a one: counted at once. Until all four coefficients are
// significant, tables give up to four planes of nine coming bits. From then on the code is the planes: whole words are
// copied to where they belong, at a bit position of the stream that makes the target a whole byte. A block of 1-D int32
// at rate 16 takes 31 ns, 50 ns with the portable decoder, which goes plane by plane through both.
#pragma once

#include "kernels/avx2/planes64.hpp"
#include "tamis/zfp/line_code.hpp"

namespace tamis::zfp::avx2 {

inline constexpr unsigned nibble_nbits = 7;  // of the longest plane

// Look-ups that are done whether they are needed or not, instead of a branch after each that cannot be foreseen (4 %).
inline constexpr unsigned at_once = 2;

// One plane of a block of four: n · 128 + coming bits.
inline constexpr auto nibble_table = [] {
    std::array<zfp::detail::NibbleCode, 5 << nibble_nbits> table{};
    for (unsigned i = 0; i < table.size(); ++i)
        table[i] = zfp::detail::decode_nibble<false>(i >> nibble_nbits, i % (1 << nibble_nbits), nibble_nbits);
    return table;
}();

// The planes of a block of `nbits` planes, and room for what is stored past them.
template <unsigned nbits>
struct Nibbles {
    alignas(16) std::uint8_t bytes[nbits / 2 + 32];

    // Add planes from `first` on; they take at most 60 bits.
    [[gnu::always_inline]] void add(unsigned first, std::uint64_t planes) {
        std::uint8_t* at = bytes + first / 2;
        store_le64(at, load_le64(at) | planes << (first % 2 * 4));
    }
};

// Read `count` bits that are planes from `first` on.
template <unsigned nbits>
[[gnu::always_inline]] inline void copy_planes(const BitReader& reader, Nibbles<nbits>& planes, unsigned first,
                                               unsigned count) {
    const unsigned odd = first % 2 * 4;
    std::uint8_t* to = planes.bytes + first / 2;
    std::size_t at = reader.position - odd;
    std::uint64_t word = reader.peek_wide(at) & ~std::uint64_t{odd == 0 ? 0u : 15u};
    unsigned left = count + odd;
    // Two words need no branch: most blocks have no more.
    store_le64(to, (to[0] | word) & low_mask(left));
    at += 64, left = left > 64 ? left - 64 : 0;
    store_le64(to + 8, _bzhi_u64(reader.peek_wide(at), left));
    for (to += 16; left > 64; to += 8) {
        at += 64, left -= 64;
        store_le64(to, _bzhi_u64(reader.peek_wide(at), left));
    }
}

// Read `precision` ≤ nbits planes or, if they end sooner, `budget` bits. Returns how many planes were read.
template <unsigned nbits>
[[gnu::always_inline]] inline unsigned decode_nibbles(BitReader& shared, Nibbles<nbits>& planes, unsigned precision,
                                                      std::size_t budget) {
    BitReader reader = shared;
    std::memset(planes.bytes, 0, sizeof planes.bytes);
    const std::size_t end = reader.position + budget;
    unsigned done = 0, n = 0;
    if (budget > zfp::detail::end_nbits) {
        const auto most = static_cast<unsigned>(std::min<std::size_t>(budget, precision));
        done = std::min({zfp::detail::trailing_zeros(reader.peek()), 57u, most});
        reader.position += done;
    }
    while (n < 4 && done < precision && reader.position < end) {
        const unsigned first = done, have = static_cast<unsigned>(std::min<std::size_t>(57, end - reader.position));
        std::uint64_t bits = reader.peek(), group = 0;
        if (have <= zfp::detail::end_nbits) {
            const std::uint64_t index = n << (zfp::detail::end_nbits + 1) | 1u << have | _bzhi_u64(bits, have);
            const zfp::detail::NibbleEnd last = zfp::detail::end_table[index];
            if (last.count <= precision - done) {
                planes.add(done, last.planes);
                done += last.count, n = 0;
                reader.position = end;
                break;
            }
        }
        unsigned taken = 0;
        const auto some_planes = [&] {
            const zfp::detail::NibbleCode& code =
                zfp::detail::window_table<false>[n << zfp::detail::window_nbits |
                                                 (bits & low_mask(zfp::detail::window_nbits))];
            group |= std::uint64_t{code.bits} << (4 * (done - first));
            done += code.planes;
            n = code.n;
            bits >>= code.length, taken += code.length;
        };
        if (done + 4 * at_once <= precision && have >= at_once * zfp::detail::window_nbits)
            for (unsigned i = 0; i < at_once; ++i) some_planes();
        while (n < 4 && done + 4 <= precision && done <= first + 11 && taken + zfp::detail::window_nbits <= have)
            some_planes();
        if (taken == 0 && have >= nibble_nbits) {
            const zfp::detail::NibbleCode& code = nibble_table[n << nibble_nbits | (bits & low_mask(nibble_nbits))];
            group = code.bits, taken = code.length;
            n = code.n;
            ++done;
        } else if (taken == 0) {
            group = decode_plane<4>(reader, n, end);
            ++done;
        }
        planes.add(first, group);
        reader.position += taken;
    }
    if (n == 4) {
        const std::size_t raw = std::min<std::size_t>(4 * (precision - done), end - reader.position);
        copy_planes(reader, planes, done, static_cast<unsigned>(raw));
        reader.position += raw;
        done += static_cast<unsigned>((raw + 3) / 4);
    }
    shared = reader;
    return done;
}

}  // namespace tamis::zfp::avx2

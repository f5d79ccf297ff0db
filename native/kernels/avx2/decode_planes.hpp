// Reading the code of bit planes of 64 coefficients, and what that of 16 has of it.
//
// After the n plain bits, a bit is a group bit if the number of ones before it is even, and a value if it is odd: each
// group bit 1 is followed by zeros up to a value 1. So the parity of ones below each bit, a carry-less product with all
// ones, tells all bits apart at once; the plane ends at the first group bit 0, and PEXT picks the values. Most planes
// take a few bits only and come out of a table of 12 coming bits sooner (16 instead of 27 cycles a plane); where five
// coefficients or fewer are left there are tables with the implied last bit, so that ends of planes need no branch.
// A plane that its block's budget cuts off is parsed by the product, clipped. What neither can tell (long runs up to
// the implied bit) is read by plane_code.hpp's decoder. Table and product: 5.1 to 5.9 times libzfp's speed where
// counting zeros has 4.4 to 4.6.
#pragma once

#include "kernels/avx2/planes64.hpp"

namespace tamis::zfp::avx2 {

inline constexpr unsigned code_nbits = 12, most_left = 5;

// What follows the plain bits: values of the coefficients from n on, how many these are, and the bits read. Where the
// plane's end is not among the bits looked at: no bits, and more coefficients than there are.
struct CodeEntry {
    std::uint16_t ones = 0;
    std::uint8_t advance = 64;
    std::uint8_t length = 0;
};

// `left`: coefficients from n on.
constexpr CodeEntry decode_entry(unsigned bits, unsigned nbits, unsigned left) {
    unsigned ones = 0, advance = 0, at = 0;
    const auto entry = [&] {
        return CodeEntry{static_cast<std::uint16_t>(ones), static_cast<std::uint8_t>(advance),
                         static_cast<std::uint8_t>(at)};
    };
    while (advance < left) {
        if (at == nbits) return {};
        if (!(bits >> at++ & 1)) return entry();
        while (advance < left - 1) {
            if (at == nbits) return {};
            if (bits >> at++ & 1) break;
            ++advance;
        }
        ones |= 1u << advance++;
    }
    return entry();
}

// Entries of many coefficients left, then those of 1 … most_left; a plane with w left takes up to 2w - 1 bits.
struct CodeTable {
    std::array<CodeEntry, (1 << code_nbits) + 682> entries{};
    struct Part {
        std::uint16_t origin = 0, mask = (1 << code_nbits) - 1;
    };
    std::array<Part, 65> parts{};  // by coefficients left

    constexpr CodeTable() {
        for (unsigned bits = 0; bits < 1u << code_nbits; ++bits) entries[bits] = decode_entry(bits, code_nbits, 100);
        std::size_t origin = 1u << code_nbits;
        for (unsigned left = 1; left <= most_left; ++left) {
            const unsigned nbits = 2 * left - 1;
            parts[left] = {static_cast<std::uint16_t>(origin), static_cast<std::uint16_t>((1u << nbits) - 1)};
            for (unsigned bits = 0; bits < 1u << nbits; ++bits) entries[origin++] = decode_entry(bits, nbits, left);
        }
    }
};

inline constexpr CodeTable code_table;

// Bit i of the result: whether the number of ones in bits 0 … i is odd.
[[gnu::always_inline]] inline std::uint64_t running_parity(std::uint64_t bits) {
    const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(bits)), _mm_set1_epi8(-1), 0);
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(product));
}

// A plane that the table cannot tell, most often the one that the block's budget cuts off: the product, clipped to the
// budget. The coefficient at which that ran out counts as significant.
template <class Kernel, unsigned size>
[[gnu::always_inline]] inline std::uint64_t decode_last_plane(BitReader& reader, unsigned& n, std::size_t end) {
    const std::size_t left = end - reader.position;
    if (left > n && left - n <= 56) {
        const std::uint64_t bits = reader.peek_at(reader.position + n), is_value = running_parity(bits) << 1;
        const auto most = static_cast<unsigned>(left - n);
        const unsigned terminator = detail::trailing_zeros(~(bits | is_value));
        const std::uint64_t values = _bzhi_u64(is_value, std::min(terminator, most));
        const unsigned advance = popcount(values);
        if (advance < size - n) {
            const std::uint64_t plain = size < 64 ? reader.peek() : reader.peek_wide(reader.position);
            std::uint64_t ones = extract<Kernel>(bits, values);
            if (terminator >= most) ones |= (is_value >> most & 1) << advance;
            const std::uint64_t plane = _bzhi_u64(plain, n) | ones << n;
            reader.position = terminator >= most ? end : reader.position + n + terminator + 1;
            n += advance;
            return plane;
        }
    }
    return decode_plane<size>(reader, n, end);
}

// Read planes k - 1 … lowest of a block that ends at bit `end`; returns the lowest one that was reached, k if all are
// empty. `planes` is zero before.
template <class Kernel, unsigned size>
    requires(size == 64)
[[gnu::always_inline]] inline unsigned decode_planes(BitReader& shared, std::uint64_t* planes, unsigned k,
                                                     unsigned lowest, std::size_t end) {
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
        for (unsigned i = 0; i < 4; ++i) planes[k - 1 - i] = code.bits >> (4 * i) & 15;
        k -= code.planes;
        n = code.n;
        reader.position += code.length;
    }
    while (k > lowest && n < size && reader.position < end) {
        const std::size_t at = reader.position + n;
        const std::uint64_t plain = reader.peek_wide(reader.position);
        const std::uint64_t bits = reader.peek_at(at);
        const unsigned left = size - n;
        const CodeTable::Part part = code_table.parts[left];
        const CodeEntry entry = code_table.entries[part.origin + (bits & part.mask)];
        std::uint64_t ones = entry.ones;
        unsigned advance = entry.advance, length = entry.length;
        if (length == 0) [[unlikely]] {
            const std::uint64_t is_value = running_parity(bits) << 1;
            length = detail::trailing_zeros(~(bits | is_value)) + 1;
            const std::uint64_t values = _bzhi_u64(is_value, length - 1);
            ones = extract<Kernel>(bits, values);
            advance = popcount(values);
        }
        --k;
        const bool implied = left > most_left && advance >= left;
        if (implied || length > 57 || at + length > end) [[unlikely]] {
            planes[k] = decode_last_plane<Kernel, size>(reader, n, end);
            continue;
        }
        planes[k] = _bzhi_u64(plain, n) | ones << n;
        n += advance;
        reader.position = at + length;
    }
    while (k > lowest && reader.position < end) {
        const std::size_t left = end - reader.position;
        std::uint64_t plane = reader.peek_wide(reader.position);
        if (left < size) plane = _bzhi_u64(plane, static_cast<unsigned>(left));
        planes[--k] = plane;
        reader.position += std::min<std::size_t>(left, size);
    }
    shared = reader;
    return k;
}

}  // namespace tamis::zfp::avx2

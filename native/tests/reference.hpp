// A block of integers decoded as docs/format.md says it, bit by bit and plane by plane: slow, and plain to see.
#pragma once

#include "cases.hpp"

namespace tamis::tests {

class PlainBits {
public:
    PlainBits(std::span<const std::uint8_t> bytes, std::size_t position) : bytes_(bytes), position_(position) {}

    // Bits beyond the bytes are zeros.
    unsigned next() {
        const std::size_t byte = position_ / 8, bit = position_++ % 8;
        return byte < bytes_.size() ? bytes_[byte] >> bit & 1u : 0;
    }
    std::size_t position() const { return position_; }

private:
    std::span<const std::uint8_t> bytes_;
    std::size_t position_;
};

// The planes of one block, within `budget` bits; coefficients in the order of the stream.
template <class UInt>
std::vector<UInt> plain_planes(PlainBits& bits, unsigned size, unsigned precision, std::size_t budget) {
    constexpr unsigned nbits = 8 * sizeof(UInt);
    std::vector<UInt> coefficients(size);
    unsigned n = 0;
    for (unsigned k = nbits; k-- > nbits - std::min(precision, nbits) && budget > 0;) {
        const UInt one = UInt{1} << k;
        for (unsigned i = 0; i < n && budget > 0; ++i, --budget)
            if (bits.next()) coefficients[i] |= one;
        while (n < size && budget > 0) {
            --budget;
            if (!bits.next()) break;
            // Zeros up to a one. It is implied for the last coefficient, and where the budget ends.
            for (; n < size - 1 && budget > 0; ++n) {
                --budget;
                if (bits.next()) break;
            }
            coefficients[n++] |= one;
        }
    }
    return coefficients;
}

// The only block of an array of integers, and the bit after it.
template <class Int, unsigned rank>
std::size_t plain_decode(Int* block, const Params& params, std::span<const std::uint8_t> bytes, std::size_t start) {
    using UInt = std::make_unsigned_t<Int>;
    constexpr unsigned size = zfp::block_size(rank), pbits = sizeof(Int) == 4 ? 5 : 6;
    PlainBits bits(bytes, start);
    unsigned precision = params.maxprec;
    std::size_t budget = params.maxbits;
    if (params.reversible()) {
        precision = 1;
        for (unsigned i = 0; i < pbits; ++i) precision += bits.next() << i;
        budget -= pbits;
    }
    const auto coefficients = plain_planes<UInt>(bits, size, precision, budget);
    UInt values[size];
    for (unsigned i = 0; i < size; ++i)
        values[zfp::coefficient_order<rank>[i]] = zfp::from_negabinary<UInt>(coefficients[i]);
    if (params.reversible())
        zfp::inverse_transform<zfp::detail::ReversibleLift, rank>(values);
    else
        zfp::inverse_transform<zfp::detail::LossyLift, rank>(values);
    std::copy(values, values + size, block);
    return std::max(bits.position(), start + params.minbits);
}

}  // namespace tamis::tests

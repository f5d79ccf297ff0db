// Bits from the highest to the lowest, as the filters nbit and scaleoffset lay them down.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "tamis/zfp/bytes.hpp"

namespace tamis::filters {

constexpr std::uint64_t low_bits(unsigned count) {
    return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

template <class UInt>
inline UInt load_ordered(const std::uint8_t* in, bool big) {
    if constexpr (sizeof(UInt) == 1) {
        return *in;
    } else {
        const UInt value = zfp::load_le<UInt>(in);
        return big ? zfp::byteswap(value) : value;
    }
}

template <class UInt>
inline void store_ordered(std::uint8_t* out, UInt value, bool big) {
    if constexpr (sizeof(UInt) == 1)
        *out = value;
    else
        zfp::store_le(out, big ? zfp::byteswap(value) : value);
}

// Writes a byte only once all its bits are known, so the memory needs no more than the bytes that the bits fill.
class BitWriter {
public:
    explicit BitWriter(std::uint8_t* out) : out_(out) {}

    // count ≤ 64, and no bits above them.
    void put(std::uint64_t bits, unsigned count) {
        if (count > 32) {
            put_up_to_32(bits >> 32, count - 32);
            put_up_to_32(bits & 0xffffffff, 32);
        } else
            put_up_to_32(bits, count);
    }
    // Fill the last byte with zeros, and all others up to `end`.
    void finish(std::uint8_t* end) {
        for (; count_ >= 8; count_ -= 8) *out_++ = static_cast<std::uint8_t>(held_ >> (count_ - 8));
        if (count_ > 0) *out_++ = static_cast<std::uint8_t>(held_ << (8 - count_));
        count_ = 0;
        std::fill(out_, end, std::uint8_t{0});
    }

private:
    void put_up_to_32(std::uint64_t bits, unsigned count) {
        held_ = held_ << count | bits;
        count_ += count;
        if (count_ < 32) return;
        count_ -= 32;
        store_ordered(out_, static_cast<std::uint32_t>(held_ >> count_), true);
        out_ += 4;
    }

    std::uint8_t* out_;
    std::uint64_t held_ = 0;  // the low count_ bits are still to be written; count_ < 32 between calls
    unsigned count_ = 0;
};

// Past the end there are zeros.
class BitReader {
public:
    explicit BitReader(std::span<const std::uint8_t> in) : in_(in) {}

    // count ≤ 64.
    std::uint64_t get(unsigned count) {
        if (count > 56) {
            const std::uint64_t high = get_up_to_56(count - 32);
            return high << 32 | get_up_to_56(32);
        }
        return count > 0 ? get_up_to_56(count) : 0;
    }

private:
    std::uint64_t get_up_to_56(unsigned count) {
        const std::size_t byte = at_ / 8;
        const std::uint64_t bits =
            (in_.size() >= 8 && byte <= in_.size() - 8 ? load_ordered<std::uint64_t>(in_.data() + byte, true)
                                                       : last_bytes(byte))
            << at_ % 8;
        at_ += count;
        return bits >> (64 - count);
    }
    std::uint64_t last_bytes(std::size_t byte) const {
        std::uint64_t bits = 0;
        for (std::size_t i = byte; i < byte + 8; ++i) bits = bits << 8 | (i < in_.size() ? in_[i] : 0u);
        return bits;
    }

    std::span<const std::uint8_t> in_;
    std::uint64_t at_ = 0;  // in bits
};

}  // namespace tamis::filters

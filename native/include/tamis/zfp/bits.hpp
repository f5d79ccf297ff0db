// Bits into bytes and back, lowest first.
//
// Neither checks bounds: the caller proves, from the longest block that the parameters allow, that the buffer has room
// (stream.hpp). Both touch up to 8 bytes past the byte that they stand on.
#pragma once

#include "bytes.hpp"

namespace tamis::zfp {

// The lowest n bits set, n ≤ 64.
constexpr std::uint64_t low_mask(unsigned n) { return n < 64 ? (std::uint64_t{1} << n) - 1 : ~std::uint64_t{0}; }

// Free of branches: every put stores eight bytes and moves on by whole bytes, so that fewer than eight bits wait.
class BitWriter {
public:
    // Start at bit `position` of `base`; the bits below it in its byte are kept.
    BitWriter(std::uint8_t* base, std::size_t position) : base_(base) { seek(position); }

    std::size_t position() const { return static_cast<std::size_t>(next_ - base_) * 8 + waiting_; }

    // False only if `position` is passed; cheaper than to ask for the position.
    bool may_be_before(std::size_t position) const { return next_ <= base_ + position / 8; }

    // Append the lowest `count` ≤ 56 bits of `bits`, whose higher bits are zero.
    [[gnu::always_inline]] void put(std::uint64_t bits, unsigned count) {
        buffer_ |= bits << waiting_;
        store_le64(next_, buffer_);
        waiting_ += count;  // at most 7 + 56, so that the shift below stays under 64
        next_ += waiting_ >> 3;
        buffer_ >>= waiting_ & ~7u;
        waiting_ &= 7;
    }

    // As put, for count ≤ 64.
    [[gnu::always_inline]] void put_wide(std::uint64_t bits, unsigned count) {
        if (count <= 56) return put(bits, count);
        put(bits & 0xffffffff, 32);
        put(bits >> 32, count - 32);
    }

    // As put, for 64 bits.
    [[gnu::always_inline]] void put_word(std::uint64_t bits) {
        store_le64(next_, buffer_ | bits << waiting_);
        next_ += 8;
        buffer_ = bits >> 1 >> (63 - waiting_);
        *next_ = static_cast<std::uint8_t>(buffer_);  // for seek
    }

    [[gnu::always_inline]] void put_zeros(std::size_t count) {
        for (; count > 56; count -= 56) put(0, 56);
        put(0, static_cast<unsigned>(count));
    }

    // Go back to an earlier position and forget what follows it.
    void seek(std::size_t position) {
        next_ = base_ + position / 8;
        waiting_ = position % 8;
        buffer_ = waiting_ == 0 ? 0 : *next_ & low_mask(waiting_);
    }

    // Write what waits; the last byte is filled with zeros.
    void flush() { store_le64(next_, buffer_); }

private:
    std::uint8_t* base_;
    std::uint8_t* next_ = nullptr;
    std::uint64_t buffer_ = 0;
    unsigned waiting_ = 0;  // bits in buffer_, 0 … 7
};

struct BitReader {
    const std::uint8_t* base;
    std::size_t position;  // in bits

    // At least 57 bits, the next one lowest.
    std::uint64_t peek() const { return peek_at(position); }
    std::uint64_t peek_at(std::size_t at) const { return load_le64(base + at / 8) >> (at % 8); }

    // All 64 bits at `at`.
    std::uint64_t peek_wide(std::size_t at) const {
        const std::uint8_t* byte = base + at / 8;
        const unsigned shift = at % 8;
        return load_le64(byte) >> shift | std::uint64_t{byte[8]} << (63 - shift) << 1;
    }

    // The next `count` ≤ 57 bits.
    std::uint64_t get(unsigned count) {
        const std::uint64_t bits = peek() & low_mask(count);
        position += count;
        return bits;
    }
};

}  // namespace tamis::zfp

// Bits of a stream, from the highest to the lowest. `Family` is a type of the kernel's own file, so that no two
// instruction sets share an instantiation.
#pragma once

#include <bit>
#include <cstring>
#include <limits>
#include <span>

#include "tamis/zfp/bytes.hpp"

namespace tamis::szip {

inline constexpr unsigned most_put = 56;  // bits that are written at once

// Writes into memory that its caller has found large enough, with `slack` bytes behind.
template <class Family>
class Writer {
public:
    static constexpr std::size_t slack = 8;

    std::uint8_t* out() const { return out_; }
    // Go on elsewhere; bits of a byte that is not complete are taken along.
    void move_to(std::uint8_t* out) { out_ = out; }

    // 1 ≤ count ≤ most_put, and no bits above them.
    void put(std::uint64_t bits, unsigned count) {
        held_ |= bits << (64 - used_ - count);
        zfp::store_le64(out_, zfp::byteswap(held_));
        used_ += count;
        out_ += used_ / 8;
        held_ <<= used_ & 56;
        used_ %= 8;
    }
    void put64(std::uint64_t bits) {
        held_ |= bits >> used_;
        zfp::store_le64(out_, zfp::byteswap(held_));
        out_ += 8;
        held_ = bits << 1 << (63 - used_);
    }
    // As many zeros, and a one: the standard's fundamental sequence.
    void put_unary(std::uint64_t zeros) {
        for (; zeros >= most_put; zeros -= most_put) put(0, most_put);
        put(1, static_cast<unsigned>(zeros) + 1);
    }
    // The last byte, if it is not complete.
    bool has_rest() const { return used_ > 0; }
    std::uint8_t rest() const { return static_cast<std::uint8_t>(held_ >> 56); }

private:
    std::uint8_t* out_ = nullptr;
    std::uint64_t held_ = 0;  // the highest `used_` bits are those of the byte that is not complete
    unsigned used_ = 0;       // 0 … 7
};

// Reads without looking at the end: between two calls of `ensure`, at most `reach` bytes. Behind the end are zeros, and
// `past_end` tells that they were read.
template <class Family>
class Reader {
public:
    static constexpr std::size_t reach = 256;
    static constexpr std::size_t kept = 8;  // bytes before the place of the reader that `peek_at` may look at
    static constexpr unsigned peeked = 57;  // bits that `peek` is sure to return

    explicit Reader(std::span<const std::uint8_t> in)
        : data_(in.data()), end_(8 * in.size()), safe_(in.size() > reach ? 8 * (in.size() - reach) : 0) {
        if (in.size() <= reach) to_tail();
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    void ensure() {
        if (at_ > safe_) to_tail();
    }
    bool past_end() const { return at_ > end_; }
    std::size_t at() const { return at_; }
    void skip(std::size_t count) { at_ += count; }

    // The next bits, from the highest on; zeros below them.
    std::uint64_t peek() const { return peek_at(at_); }
    std::uint64_t peek_at(std::size_t at) const {
        // in bounds: `reach` bytes follow the place of the last `ensure`
        return zfp::byteswap(zfp::load_le64(data_ + at / 8)) << at % 8;
    }
    // The byte in which bit `at` is.
    const std::uint8_t* byte_at(std::size_t at) const { return data_ + at / 8; }
    // What `peek` leaves out of the next 64 bits.
    std::uint64_t ninth_byte() const { return static_cast<std::uint64_t>(data_[at_ / 8 + 8]) >> (8 - at_ % 8); }
    // 1 ≤ count ≤ peeked.
    std::uint64_t get(unsigned count) {
        const std::uint64_t bits = peek() >> (64 - count);
        at_ += count;
        return bits;
    }
    // Zeros in front of a one; past_end() where there is none.
    std::uint64_t get_unary() {
        std::uint64_t zeros = 0;
        for (;;) {
            ensure();
            const std::uint64_t bits = peek();
            if (bits != 0) {
                const auto more = static_cast<unsigned>(std::countl_zero(bits));
                at_ += more + 1;
                return zeros + more;
            }
            zeros += peeked;
            at_ += peeked;
            if (past_end()) return zeros;
        }
    }

private:
    // The end of the stream, with zeros behind it.
    void to_tail() {
        if (past_end()) return;  // only zeros are left, of which the tail has `reach`
        const std::size_t first = at_ / 8 > kept ? at_ / 8 - kept : 0, count = end_ / 8 - first;
        std::memset(tail_, 0, sizeof tail_);
        if (count > 0) std::memcpy(tail_, data_ + first, count);
        data_ = tail_;
        at_ -= 8 * first;
        end_ -= 8 * first;
        safe_ = std::numeric_limits<std::size_t>::max();
    }

    const std::uint8_t* data_;
    std::size_t at_ = 0, end_, safe_;  // in bits
    std::uint8_t tail_[kept + 2 * reach];
};

}  // namespace tamis::szip

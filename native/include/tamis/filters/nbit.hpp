// HDF5 filter 5: of each number only the bits that its type makes use of, one behind the other.
#pragma once

#include <algorithm>

#include "tamis/filters/bits.hpp"
#include "tamis/filters/nbit_type.hpp"

namespace tamis::filters::nbit {

namespace detail {

// Bytes of a number from its highest to its lowest used one: f(byte of the number, lowest used bit, number of bits).
template <class F>
inline void for_each_byte(const Atomic& atomic, F f) {
    const std::uint64_t end = std::uint64_t{atomic.offset} + atomic.precision;
    for (std::uint64_t byte = (end + 7) / 8; byte-- > atomic.offset / 8;) {
        const std::uint64_t first = std::max<std::uint64_t>(atomic.offset, 8 * byte),
                            last = std::min(end, 8 * byte + 8);
        f(static_cast<std::size_t>(atomic.big ? atomic.nbytes - 1 - byte : byte),
          static_cast<unsigned>(first - 8 * byte), static_cast<unsigned>(last - first));
    }
}

struct Encoder {
    using Byte = const std::uint8_t;
    BitWriter bits;

    template <class UInt>
    void numbers(Byte* data, std::size_t count, const Atomic& atomic) {
        const std::uint64_t mask = low_bits(atomic.precision);
        for (std::size_t i = 0; i < count; ++i)
            bits.put(load_ordered<UInt>(data + i * sizeof(UInt), atomic.big) >> atomic.offset & mask, atomic.precision);
    }
    void odd_number(Byte* data, const Atomic& atomic) {
        for_each_byte(atomic, [&](std::size_t at, unsigned lowest, unsigned count) {
            bits.put(data[at] >> lowest & low_bits(count), count);
        });
    }
    void bytes(Byte* data, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) bits.put(data[i], 8);
    }
};

// Into bytes that are zero.
struct Decoder {
    using Byte = std::uint8_t;
    BitReader bits;

    template <class UInt>
    void numbers(Byte* data, std::size_t count, const Atomic& atomic) {
        for (std::size_t i = 0; i < count; ++i)
            store_ordered(data + i * sizeof(UInt), static_cast<UInt>(bits.get(atomic.precision) << atomic.offset),
                          atomic.big);
    }
    void odd_number(Byte* data, const Atomic& atomic) {
        for_each_byte(atomic, [&](std::size_t at, unsigned lowest, unsigned count) {
            data[at] = static_cast<std::uint8_t>(data[at] | bits.get(count) << lowest);
        });
    }
    void bytes(Byte* data, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<std::uint8_t>(bits.get(8));
    }
};

template <class Coder>
inline void atomics(Coder& coder, typename Coder::Byte* data, std::size_t count, const Atomic& atomic) {
    switch (atomic.nbytes) {
        case 1:
            return coder.template numbers<std::uint8_t>(data, count, atomic);
        case 2:
            return coder.template numbers<std::uint16_t>(data, count, atomic);
        case 4:
            return coder.template numbers<std::uint32_t>(data, count, atomic);
        case 8:
            return coder.template numbers<std::uint64_t>(data, count, atomic);
        default:
            for (std::size_t i = 0; i < count; ++i) coder.odd_number(data + i * atomic.nbytes, atomic);
    }
}

// `count` items of the type at `at`, one behind the other; returns where the type ends. The survey found the type
// sound: all values are there, all bytes lie in their item, and depth is bounded.
template <class Coder>
inline std::size_t code_items(Coder& coder, Values values, std::size_t at, typename Coder::Byte* data,
                              std::size_t count) {
    const std::size_t nbytes = values[at + 1];
    switch (values[at]) {
        case atomic_class:
            atomics(coder, data, count, atomic_at(values, at + 1));
            return at + 5;
        case array_class:
            return code_items(coder, values, at + 2, data, count * (nbytes / values[at + 3]));
        case compound_class: {
            std::size_t end = at + 3;
            for (std::size_t i = 0; i < count; ++i) {
                end = at + 3;
                for (unsigned members = values[at + 2]; members > 0; --members)
                    end = code_items(coder, values, end + 1, data + i * nbytes + values[end], 1);
            }
            return end;
        }
        default:
            coder.bytes(data, count * nbytes);
            return at + 2;
    }
}

}  // namespace detail

// Bytes that the bits of a chunk fill; a chunk of libhdf5 has one more where they fill the last one.
inline std::size_t needed_nbytes(const Chunk& chunk) { return static_cast<std::size_t>((chunk.nbits() + 7) / 8); }
inline std::size_t encoded_nbytes(const Chunk& chunk) { return static_cast<std::size_t>(chunk.nbits() / 8 + 1); }

// `out` has encoded_nbytes; the chunk is not verbatim, and `in` has its nbytes.
inline void encode(Values values, const Chunk& chunk, const std::uint8_t* in, std::span<std::uint8_t> out) {
    detail::Encoder encoder{BitWriter(out.data())};
    detail::code_items(encoder, values, type_at, in, static_cast<std::size_t>(chunk.items));
    encoder.bits.finish(out.data() + out.size());
}

inline Status check_length(const Chunk& chunk, std::size_t nbytes) {
    return nbytes < needed_nbytes(chunk) ? Status{Code::truncated, needed_nbytes(chunk)} : Status{};
}

// `out` has the nbytes of the chunk, which is not verbatim; the length of `in` was checked. Bytes behind the last bit
// are not looked at.
inline void decode(Values values, const Chunk& chunk, std::span<const std::uint8_t> in, std::span<std::uint8_t> out) {
    std::fill(out.begin(), out.end(), std::uint8_t{0});
    detail::Decoder decoder{BitReader(in)};
    detail::code_items(decoder, values, type_at, out.data(), static_cast<std::size_t>(chunk.items));
}

}  // namespace tamis::filters::nbit

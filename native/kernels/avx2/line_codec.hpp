// Eight blocks of one axis at a time, or four of 64-bit values: row x of four registers holds value x of each, so that
// a lift works on all of them. Their planes are nibbles, sixteen to a word.
#pragma once

#include "kernels/avx2/line_code.hpp"
#include "kernels/avx2/values.hpp"
#include "tamis/zfp/block.hpp"

namespace tamis::zfp::avx2 {

template <class Kernel, class Scalar, bool reversible>
class LineCodec {
    using UInt = typename Traits<Scalar>::UInt;
    using Register = WordsOf<Scalar, 1>;
    using Codes = Values<Scalar, 1, reversible>;
    using Planes = Slab<UInt, 4>;
    static constexpr unsigned nbits = int_nbits<Scalar>;

public:
    static constexpr unsigned lanes = Register::blocks;

    LineCodec(const Params& params, const Layout& layout) : params_(params), codes_(params_), layout_(layout) {}
    LineCodec(const LineCodec&) = delete;
    LineCodec& operator=(const LineCodec&) = delete;

    // False where a value cannot be represented.
    bool encode(BitWriter& shared, const Place<const Scalar>* places, unsigned used) const {
        Rows<Register, 1> rows;
        load(places, used, rows);
        Opening openings[lanes];
        UInt any[lanes];
        if (!codes_.to_planes(rows, openings, any)) return false;
        alignas(32) UInt coefficients[4][lanes];
        std::memcpy(coefficients, rows, sizeof rows);
        BitWriter writer = shared;
        for (unsigned lane = 0; lane < used; ++lane) {
            const std::size_t start = writer.position(), end = start + params_.maxbits;
            const unsigned precision = openings[lane].precision, lowest = precision < nbits ? nbits - precision : 0;
            unsigned k = precision == 0 ? nbits : std::max(lowest, bit_length(any[lane])), n = 0;
            put_opening(writer, openings[lane].bits, openings[lane].nbits, nbits - k);
            while (k > lowest && writer.position() < end) {
                const unsigned index = (k - 1) / 16, base = std::max(lowest, 16 * index);
                std::uint64_t nibbles = 0;
                for (unsigned i = 0; i < 4; ++i)
                    nibbles |= _pdep_u64(coefficients[i][lane] >> (16 * index) & 0xffff, nibble_ones << i);
                // The highest plane lowest; those above k - 1 are shifted out.
                const std::uint64_t descending = reverse_nibbles(nibbles) >> (60 - 4 * ((k - 1) % 16));
                n = encode_nibbles(writer, descending, k - base, n, end);
                k = base;
            }
            const std::size_t written = writer.position() - start;
            if (written > params_.maxbits)
                writer.seek(start + params_.maxbits);
            else if (written < params_.minbits)
                writer.put_zeros(params_.minbits - written);
        }
        shared = writer;
        return true;
    }

    // Read the planes of one block.
    void read(BitReader& reader, unsigned lane) {
        const std::size_t start = reader.position, end = start + params_.maxbits;
        const Opened opened = opened_[lane] = codes_.open(reader);
        const unsigned lowest = opened.precision < nbits ? nbits - opened.precision : 0;
        UInt block[4] = {};
        unsigned k = nbits, n = 0;
        if (k > lowest && decode_short_block(reader, block, opened.precision, end)) k = lowest;
        while (k > lowest && reader.position < end) {
            const unsigned index = (k - 1) / 16, base = std::max(lowest, 16 * index);
            Planes planes{0};
            n = decode_slab(reader, planes, (k - 1) % 16, k - base, n, end);
            const std::uint64_t nibbles = reverse_nibbles(planes.nibbles);
            for (unsigned i = 0; i < 4; ++i)
                block[i] |= static_cast<UInt>(_pext_u64(nibbles, nibble_ones << i)) << (16 * index);
            k = base;
        }
        for (unsigned i = 0; i < 4; ++i) coefficients_[i][lane] = block[i];
        reader.position = std::max(reader.position, start + params_.minbits);
    }

    // The values of the blocks that were read.
    void restore(const Place<Scalar>* places, unsigned used) {
        for (unsigned lane = used; lane < lanes; ++lane) opened_[lane] = Opened{};
        Rows<Register, 1> rows;
        std::memcpy(rows, coefficients_, sizeof rows);
        Codes::from_planes(rows, opened_);
        transpose(rows[0], rows[1], rows[2], rows[3]);
        if (in_a_row(places, used)) return store(rows, places[0].at);
        alignas(32) Scalar copies[4 * lanes];
        store(rows, copies);
        for (unsigned lane = 0; lane < used; ++lane) store_block<1>(copies + 4 * lane, places[lane], layout_);
    }

private:
    static constexpr std::uint64_t nibble_ones = 0x1111111111111111;

    static std::uint64_t reverse_nibbles(std::uint64_t x) {
        x = byteswap(x);
        constexpr std::uint64_t lower_nibbles = 0x0f0f0f0f0f0f0f0f;
        return (x >> 4 & lower_nibbles) | (x & lower_nibbles) << 4;
    }

    // Whether there is a whole block to each lane, one after the other: only the last of a row may be partial.
    template <class Value>
    bool in_a_row(const Place<Value>* places, unsigned used) const {
        return used == lanes && places[lanes - 1].whole && layout_.stride[0] == 1;
    }

    // A lane without a block repeats the last one.
    void load(const Place<const Scalar>* places, unsigned used, Rows<Register, 1>& rows) const {
        alignas(32) Scalar copies[4 * lanes];
        const Scalar* from = places[0].at;
        if (!in_a_row(places, used)) {
            for (unsigned lane = 0; lane < lanes; ++lane)
                load_block<1>(copies + 4 * lane, places[std::min(lane, used - 1)], layout_);
            from = copies;
        }
        for (unsigned i = 0; i < 4; ++i) {
            if constexpr (lanes == 8)
                rows[i].bits = join(load_half(from + 4 * i), load_half(from + 16 + 4 * i));
            else
                rows[i].bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 4 * i));
        }
        transpose(rows[0], rows[1], rows[2], rows[3]);
    }

    static void store(const Rows<Register, 1>& rows, Scalar* to) {
        for (unsigned i = 0; i < 4; ++i) {
            if constexpr (lanes == 8) {
                store_half(to + 4 * i, lower(rows[i].bits));
                store_half(to + 16 + 4 * i, upper(rows[i].bits));
            } else {
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 4 * i), rows[i].bits);
            }
        }
    }

    const Params params_;
    const Codes codes_;
    const Layout& layout_;
    alignas(32) UInt coefficients_[4][lanes] = {};
    Opened opened_[lanes];
};

}  // namespace tamis::zfp::avx2

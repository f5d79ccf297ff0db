// Two blocks of 2, 3 or 4 axes at a time: values ↔ bits.
//
// A 256-bit register holds four 32-bit values of each of two blocks, so that two blocks cost what one does. Blocks of
// 64-bit words are transformed one by one; their upper and lower halves then go the same way as two pairs of 32-bit
// blocks, and where no bit plane of the lower halves is kept, these are not looked at.
#pragma once

#include "kernels/avx2/decode_planes16.hpp"
#include "kernels/avx2/line_cast.hpp"
#include "kernels/avx2/planes16.hpp"
#include "kernels/avx2/planes256.hpp"
#include "kernels/vectors/values.hpp"
#include "tamis/zfp/block.hpp"

namespace tamis::zfp::avx2 {

using vectors::Opened, vectors::Opening, vectors::Values;

// `Kernel` is the file's own type, as in block_codec.hpp.
template <class Kernel, class Scalar, unsigned rank, bool reversible>
class PairCodec {
    using UInt = typename Traits<Scalar>::UInt;
    using Register = typename Kernel::template Register<Scalar, rank>;
    using Codes = Values<Kernel, Scalar, rank, reversible>;
    using Plane = std::conditional_t<rank == 4, WidePlane, std::conditional_t<rank == 3, std::uint64_t, std::uint16_t>>;
    static constexpr unsigned size = block_size(rank), nbits = int_nbits<Scalar>;
    static constexpr bool wide = nbits == 64;
    // Planes of 64-bit words that, where all below are zero, the 32-bit transform of the upper halves gets right: it
    // halves twice along each axis, and none of these halvings then meets a bit below the upper half. 3-D float64
    // decodes 1.3 times as fast for it, wherever 26 planes or fewer are kept.
    static constexpr unsigned upper_only = 32 + 2 * rank;

public:
    static constexpr unsigned lanes = 2;

    PairCodec(const Params& params, const Layout& layout)
        : params_(params), codes_(params_), layout_(layout), dense_(Layout::contiguous(rank, {4, 4, 4, 4})) {}
    PairCodec(const PairCodec&) = delete;
    PairCodec& operator=(const PairCodec&) = delete;

    // False where a value cannot be represented.
    bool encode(BitWriter& shared, const Place<const Scalar>* places, unsigned used) const {
        alignas(32) Scalar copies[2][size];
        const Scalar* at[2];
        const Layout& layout = locate(places, used, at, copies);
        Rows<Words32, rank> high, low;
        Opening openings[2];
        UInt any[2];
        if constexpr (Register::blocks == 2 && wide) {
            Rows<Register, rank> rows;
            load_rows<rank>(at[0], at[1], layout, rows);
            if (!codes_.to_planes(rows, openings, any)) return false;
            split(rows, high, low);
        } else if constexpr (wide) {
            Rows<Register, rank> blocks[2];
            for (unsigned lane = 0; lane < 2; ++lane) {
                Opening opening[1];
                UInt bits[1];
                load_rows<rank>(at[lane], at[lane], layout, blocks[lane]);
                if (!codes_.to_planes(blocks[lane], opening, bits)) return false;
                openings[lane] = opening[0], any[lane] = bits[0];
            }
            split(blocks[0], blocks[1], high, low);
        } else {
            load_rows<rank>(at[0], at[1], layout, high);
            if (!codes_.to_planes(high, openings, any)) return false;
        }
        constexpr unsigned origin = nbits - 32;  // of the upper planes
        const unsigned highest = bit_length(any[0] | any[1]);
        EncoderPlanes<Kernel, rank> upper_planes, lower_planes;
        upper_planes.load(high, nullptr, std::max(highest, origin) - origin);
        bool with_lower = false;
        BitWriter writer = shared;
        for (unsigned lane = 0; lane < used; ++lane) {
            const std::size_t start = writer.position(), end = start + params_.maxbits;
            const unsigned precision = openings[lane].precision, lowest = precision < nbits ? nbits - precision : 0;
            unsigned k = precision == 0 ? nbits : std::max(lowest, bit_length(any[lane])), n = 0;
            put_opening(writer, openings[lane].bits, openings[lane].nbits, nbits - k);
            if (k > std::max(lowest, origin)) {
                upper_planes.encode(writer, lane, k - origin, std::max(lowest, origin) - origin, n, end);
                k = std::max(lowest, origin);
            }
            if (wide && k > lowest && writer.position() < end) {
                if (!with_lower) lower_planes.load(low, &upper_planes, std::min(highest, 32u));
                with_lower = true;
                lower_planes.encode(writer, lane, k, lowest, n, end);
            }
            finish_block<Kernel>(params_, writer, start);
        }
        shared = writer;
        return true;
    }

    int exponent() const { return codes_.exponent(); }

    // Read the planes of one block. In line in both of its callers: 2 to 8 % of decoding.
    [[gnu::always_inline]] void read(BitReader& reader, unsigned lane) {
        const std::size_t start = reader.position;
        Block& block = blocks_[lane];
        std::fill_n(block.planes, nbits, Plane{});
        block.opened = codes_.open(reader);
        const unsigned precision = block.opened.precision, lowest = precision < nbits ? nbits - precision : 0;
        const std::size_t end = start + params_.maxbits;
        if constexpr (rank == 2) {
            const Progress progress =
                decode_planes16<Kernel>(reader.base, reader.position, block.planes, nbits - lowest, end);
            reader.position = progress.position;
            block.reached = nbits - progress.planes;
        } else {
            block.reached = decode_planes<Kernel, size>(reader, block.planes, nbits, lowest, end);
        }
        reader.position = std::max(reader.position, start + params_.minbits);
    }

    // The values of the blocks that were read.
    void restore(const Place<Scalar>* places, unsigned used) {
        alignas(32) Scalar copies[2][size];
        const bool direct = used == 2 && in_place(places[0]) && in_place(places[1]);
        if (used == 1) blocks_[1] = blocks_[0];
        if (direct) return restore(places[0].at, places[1].at, layout_);
        restore(copies[0], copies[1], dense_);
        for (unsigned lane = 0; lane < used; ++lane) store_block<rank>(copies[lane], places[lane], layout_);
    }

private:
    struct Block {
        // From the lowest one on; of blocks of 2 axes, from the highest.
        alignas(32) Plane planes[nbits + (rank == 2 ? spare_planes16 : 0)];
        unsigned reached;  // planes from here on were read, the others are zero
        Opened opened;
    };

    template <class Value>
    bool in_place(const Place<Value>& place) const {
        return place.whole && layout_.stride[0] == 1;
    }

    // Where two blocks are read from: the array itself, or copies. A block without a partner is its own.
    const Layout& locate(const Place<const Scalar>* places, unsigned used, const Scalar* (&at)[2],
                         Scalar (&copies)[2][size]) const {
        const Place<const Scalar>&a = places[0], &b = places[used - 1];
        if (in_place(a) && in_place(b)) {
            at[0] = a.at, at[1] = b.at;
            return layout_;
        }
        load_block<rank>(copies[0], a, layout_);
        load_block<rank>(copies[1], b, layout_);
        at[0] = copies[0], at[1] = copies[1];
        return dense_;
    }

    void restore(Scalar* a, Scalar* b, const Layout& layout) const {
        const Block &one = blocks_[0], &other = blocks_[1];
        const unsigned reached = std::min(one.reached, other.reached);
        if (reached == nbits) return fill_zeros(a, b, layout);
        Rows<Words32, rank> high;
        constexpr unsigned lower = rank == 2 ? 32 : 0, upper = rank == 2 ? 0 : nbits - 32;
        planes_to_rows<Kernel>(one.planes + upper, other.planes + upper, std::max(reached, nbits - 32) - (nbits - 32),
                               high);
        if constexpr (!wide) {
            Codes::from_planes(high, {one.opened, other.opened});
            store_rows<rank>(high, a, b, layout);
        } else if (!reversible && reached >= upper_only && scales_from_upper(one) && scales_from_upper(other)) {
            for (Words32& row : high) row = out_of_negabinary(row);
            inverse_transform<detail::LossyLift, rank>(high);
            store_upper<rank>(high, {one.opened.exponent, other.opened.exponent}, a, b, layout);
        } else {
            Rows<Words32, rank> low;
            planes_to_rows<Kernel>(one.planes + lower, other.planes + lower, std::min(reached, 32u), low);
            restore_words(high, low, a, b, layout);
        }
    }

    void restore_words(const Rows<Words32, rank>& high, const Rows<Words32, rank>& low, Scalar* a, Scalar* b,
                       const Layout& layout) const {
        if constexpr (Register::blocks == 2) {
            Rows<Register, rank> rows;
            merge(high, low, rows);
            Codes::from_planes(rows, {blocks_[0].opened, blocks_[1].opened});
            store_rows<rank>(rows, a, b, layout);
        } else {
            Rows<Register, rank> blocks[2];
            merge(high, low, blocks[0], blocks[1]);
            for (unsigned lane = 0; lane < 2; ++lane) {
                Codes::from_planes(blocks[lane], {blocks_[lane].opened});
                Scalar* at = lane == 0 ? a : b;
                store_rows<rank>(blocks[lane], at, at, layout);
            }
        }
    }

    static void fill_zeros(Scalar* a, Scalar* b, const Layout& layout) {
        Rows<Register, rank> zeros;
        for (Register& row : zeros) row = Register::all(0);
        store_rows<rank>(zeros, a, b, layout);
        if constexpr (Register::blocks == 1) store_rows<rank>(zeros, b, b, layout);
    }

    // 2^(e - 62) is a normal number, so that the product with the upper half times 2^32 rounds as that of the whole.
    static bool scales_from_upper(const Block& block) { return block.opened.exponent >= least_shifted_exponent; }

    const Params params_;
    const Codes codes_;
    const Layout& layout_;
    const Layout dense_;
    Block blocks_[2];
};

}  // namespace tamis::zfp::avx2

// Two blocks of 2 or 3 axes at a time: values ↔ bits.
//
// A 256-bit register holds four 32-bit values of each of two blocks, so that two blocks cost what one does. Blocks of
// 64-bit words are transformed one by one; their upper and lower halves then go the same way as two pairs of 32-bit
// blocks, and of most blocks no bit plane of the lower halves is kept, so that these are not looked at.
#pragma once

#include "kernels/avx2/cast.hpp"
#include "kernels/avx2/decode_planes.hpp"
#include "kernels/avx2/planes16.hpp"
#include "tamis/zfp/block.hpp"
#include "tamis/zfp/params.hpp"

namespace tamis::zfp::avx2 {

// `Kernel` is the file's own type, as in block_codec.hpp.
template <class Kernel, class Scalar, unsigned rank>
class LossyCodec {
    using T = Traits<Scalar>;
    using UInt = typename T::UInt;
    using Words = WordsOf<Scalar>;
    static constexpr unsigned size = block_size(rank), nbits = int_nbits<Scalar>;
    static constexpr bool wide = nbits == 64;
    // A plane of a block.
    using Plane = std::conditional_t<rank == 3, std::uint64_t, std::uint16_t>;

public:
    static constexpr unsigned lanes = 2;

    LossyCodec(const Params& params, const Layout& layout)
        : params_(params), layout_(layout), dense_(Layout::contiguous(rank, {4, 4, 4, 4})) {}

    // False where a value cannot be represented.
    bool encode(BitWriter& shared, const Place<const Scalar>* places, unsigned used) const {
        alignas(32) Scalar copies[2][size];
        const Scalar* at[2];
        const Layout& layout = locate(places, used, at, copies);
        Rows<Words32, rank> high, low;
        unsigned precision[2];
        int exponent[2];
        if constexpr (wide) {
            Rows<Words64, rank> blocks[2];
            for (unsigned lane = 0; lane < 2; ++lane) {
                load_rows<rank>(at[lane], at[lane], layout, blocks[lane]);
                const std::uint64_t largest = largest_magnitude(blocks[lane]);
                if (largest >= detail::infinity_bits<Scalar>) return false;
                exponent[lane] = block_exponent<Scalar>(largest);
                precision[lane] = largest == 0 ? 0 : float_precision(exponent[lane]);
                to_integers(blocks[lane], exponent[lane]);
                forward_transform<detail::LossyLift, rank>(blocks[lane]);
                for (Words64& row : blocks[lane]) row = negabinary(row);
            }
            split(blocks[0], blocks[1], high, low);
        } else {
            load_rows<rank>(at[0], at[1], layout, high);
            std::uint32_t largest[2];
            largest_magnitudes(high, largest);
            if (std::max(largest[0], largest[1]) >= detail::infinity_bits<Scalar>) return false;
            for (unsigned lane = 0; lane < 2; ++lane) {
                exponent[lane] = block_exponent<Scalar>(largest[lane]);
                precision[lane] = largest[lane] == 0 ? 0 : float_precision(exponent[lane]);
            }
            to_integers(high, exponent);
            forward_transform<detail::LossyLift, rank>(high);
            for (Words32& row : high) row = negabinary(row);
        }
        EncoderPlanes<rank> upper_planes;
        upper_planes.load(high, nullptr);
        BitWriter writer = shared;
        for (unsigned lane = 0; lane < used; ++lane) {
            const std::size_t start = writer.position(), end = start + params_.maxbits;
            if (precision[lane] == 0) {
                writer.put(0, 1);
            } else {
                writer.put(2 * static_cast<unsigned>(exponent[lane] + T::ebias) + 1, 1 + T::ebits);
                const unsigned lowest = precision[lane] < nbits ? nbits - precision[lane] : 0;
                constexpr unsigned origin = nbits - 32;  // of the planes of the upper halves
                unsigned n = 0;
                upper_planes.encode(writer, lane, 32, std::max(lowest, origin) - origin, n, end);
                if (wide && lowest < 32 && writer.position() < end) [[unlikely]] {
                    EncoderPlanes<rank> lower_planes;
                    lower_planes.load(low, &upper_planes);
                    lower_planes.encode(writer, lane, 32, lowest, n, end);
                }
            }
            finish(writer, start);
        }
        shared = writer;
        return true;
    }

    // Read the planes of one block.
    void read(BitReader& reader, unsigned lane) {
        const std::size_t start = reader.position;
        Block& block = blocks_[lane];
        std::fill_n(block.planes, nbits, Plane{0});
        block.reached = nbits;
        const std::uint64_t header = reader.get(1 + T::ebits);
        if ((header & 1) == 0) {
            block.exponent = -T::ebias;
            reader.position = start + 1;
        } else {
            block.exponent = static_cast<int>(header >> 1) - T::ebias;
            const unsigned precision = float_precision(block.exponent);
            const unsigned lowest = precision < nbits ? nbits - precision : 0;
            unsigned n = 0;
            block.reached = decode_planes<size>(reader, block.planes, nbits, lowest, n, start + params_.maxbits);
        }
        reader.position = std::max(reader.position, start + params_.minbits);
    }

    // The values of the blocks that were read.
    void restore(const Place<Scalar>* places, unsigned used) {
        alignas(32) Scalar copies[2][size];
        Scalar* at[2] = {copies[0], copies[1]};
        const bool direct = used == 2 && in_place(places[0]) && in_place(places[1]);
        if (direct) at[0] = places[0].at, at[1] = places[1].at;
        if (used == 1) blocks_[1] = blocks_[0];
        restore(at[0], at[1], direct ? layout_ : dense_);
        if (direct) return;
        for (unsigned lane = 0; lane < used; ++lane) store_block<rank>(copies[lane], places[lane], layout_);
    }

private:
    struct Block {
        alignas(32) Plane planes[nbits];
        unsigned reached;  // planes from here on were read, the others are zero
        int exponent;
    };

    unsigned float_precision(int exponent) const {
        const int planes = exponent - std::min(params_.minexp, header_max_exp) + 2 * static_cast<int>(rank) + 2;
        return std::min(params_.maxprec, static_cast<unsigned>(std::max(planes, 0)));
    }

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

    // Cut to maxbits, fill up to minbits.
    void finish(BitWriter& writer, std::size_t start) const {
        const std::size_t written = writer.position() - start;
        if (written > params_.maxbits)
            writer.seek(start + params_.maxbits);
        else if (written < params_.minbits)
            writer.put_zeros(params_.minbits - written);
    }

    void restore(Scalar* a, Scalar* b, const Layout& layout) const {
        const Block &one = blocks_[0], &other = blocks_[1];
        const unsigned reached = std::min(one.reached, other.reached);
        Rows<Words32, rank> high;
        if constexpr (!wide) {
            planes_to_rows(one.planes, other.planes, reached, high);
            for (Words32& row : high) row = out_of_negabinary(row);
            inverse_transform<detail::LossyLift, rank>(high);
            from_integers(high, {one.exponent, other.exponent});
            store_rows<rank>(high, a, b, layout);
        } else {
            planes_to_rows(one.planes + 32, other.planes + 32, std::max(reached, 32u) - 32, high);
            Rows<Words32, rank> low;
            planes_to_rows(one.planes, other.planes, std::min(reached, 32u), low);
            Rows<Words64, rank> blocks[2];
            merge(high, low, blocks[0], blocks[1]);
            for (unsigned lane = 0; lane < 2; ++lane) {
                for (Words64& row : blocks[lane]) row = out_of_negabinary(row);
                inverse_transform<detail::LossyLift, rank>(blocks[lane]);
                from_integers(blocks[lane], blocks_[lane].exponent);
                Scalar* at = lane == 0 ? a : b;
                store_rows<rank>(blocks[lane], at, at, layout);
            }
        }
    }

    Params params_;
    const Layout& layout_;
    Layout dense_;
    Block blocks_[2];
};

}  // namespace tamis::zfp::avx2

// One block: values ↔ bits.
#pragma once

#include <algorithm>

#include "block.hpp"
#include "block_limits.hpp"
#include "cast.hpp"
#include "line_code.hpp"
#include "transform.hpp"

namespace tamis::zfp {

// `Kernel` is a type that the kernel's file keeps to itself, so that no two instruction sets share an instantiation.
template <class Kernel, class Scalar, unsigned rank, bool reversible>
class BlockCodec {
    using T = Traits<Scalar>;
    using UInt = typename T::UInt;
    static constexpr unsigned size = block_size(rank), nbits = int_nbits<Scalar>;
    static constexpr bool floating = T::ebits != 0;

public:
    // What stream.hpp asks of a codec: `encode` as many blocks as it has lanes, or fewer at the end of a row; `read`
    // blocks into lanes one by one, then `restore` the values of all that were read.
    static constexpr unsigned lanes = 1;

    BlockCodec(const Params& params, const Layout& layout) : params_(params), layout_(layout) {}

    bool encode(BitWriter& writer, const Place<const Scalar>* places, unsigned) const {
        alignas(32) Scalar block[size];
        load_block<rank>(block, places[0], layout_);
        return encode(writer, block);
    }
    void read(BitReader& reader, unsigned) { decode(reader, block_); }
    void restore(const Place<Scalar>* places, unsigned) const { store_block<rank>(block_, places[0], layout_); }
    // All that was encoded with loss is below 2^this.
    int exponent() const { return exponent_above<Scalar>(largest_); }

private:
    // Append one block. False, with nothing promised about the block's bits, where a lossy mode cannot represent it.
    bool encode(BitWriter& writer, const Scalar* block) const {
        const std::size_t start = writer.position();
        if constexpr (floating) {
            if constexpr (reversible)
                encode_reversible_float(writer, block, start);
            else if (!encode_lossy_float(writer, block, start))
                return false;
        } else {
            alignas(32) UInt values[size];
            std::copy_n(block, size, values);
            if constexpr (reversible) {
                encode_reversible(writer, values, start);
            } else {
                if (!in_lossy_range(values)) return false;
                encode_lossy(writer, values, params_.maxprec, start);
            }
        }
        finish_block<Kernel>(params_, writer, start);
        return true;
    }

    // Read one block. Whatever the bits are, at most block_unlimited_nbits of them are looked at.
    void decode(BitReader& reader, Scalar* block) const {
        const std::size_t start = reader.position;
        if constexpr (floating) {
            if constexpr (reversible)
                decode_reversible_float(reader, block, start);
            else
                decode_lossy_float(reader, block, start);
        } else {
            alignas(32) UInt values[size];
            if constexpr (reversible)
                decode_reversible(reader, values, start);
            else
                decode_lossy(reader, values, params_.maxprec, start);
            std::copy_n(values, size, block);
        }
        reader.position = std::max(reader.position, start + params_.minbits);
    }

    static bool in_lossy_range(const UInt* values) {
        bool inside = true;
        for (unsigned i = 0; i < size; ++i) inside &= zfp::in_lossy_range(values[i]);
        return inside;
    }

    bool encode_lossy_float(BitWriter& writer, const Scalar* block, std::size_t start) const {
        const UInt largest = largest_magnitude<size>(block);
        if (largest >= detail::infinity_bits<Scalar>) return false;
        largest_ = std::max(largest_, largest);
        const int exponent = block_exponent<Scalar>(largest);
        const unsigned precision = float_precision<Kernel>(params_, rank, exponent);
        if (largest == 0 || precision == 0) {
            writer.put(0, 1);
            return true;
        }
        writer.put(2 * static_cast<unsigned>(exponent + T::ebias) + 1, 1 + T::ebits);
        alignas(32) UInt values[size];
        to_integers<size>(values, block, exponent);
        encode_lossy(writer, values, precision, start);
        return true;
    }

    void decode_lossy_float(BitReader& reader, Scalar* block, std::size_t start) const {
        const std::uint64_t header = reader.get(1 + T::ebits);
        if ((header & 1) == 0) {
            std::fill_n(block, size, Scalar{0});
            reader.position = start + 1;
            return;
        }
        const int exponent = static_cast<int>(header >> 1) - T::ebias;
        alignas(32) UInt values[size];
        decode_lossy(reader, values, float_precision<Kernel>(params_, rank, exponent), start);
        from_integers<size>(block, values, exponent);
    }

    // A float block whose integers give its bits back is sent as integers, any other as its bit patterns.
    void encode_reversible_float(BitWriter& writer, const Scalar* block, std::size_t start) const {
        const UInt largest = largest_magnitude<size>(block);
        const int exponent = block_exponent<Scalar>(largest);
        alignas(32) UInt values[size];
        alignas(32) Scalar back[size];
        bool exact = false;
        if (largest == 0) {
            std::fill_n(back, size, Scalar{0});
            exact = true;
        } else if (largest < detail::infinity_bits<Scalar> && to_integers<size>(values, block, exponent)) {
            from_integers<size>(back, values, exponent);
            exact = true;
        }
        exact = exact && std::memcmp(back, block, sizeof back) == 0;
        if (exact && largest == 0) {
            writer.put(0, 1);
        } else if (exact) {
            writer.put(1, 2);
            writer.put(static_cast<unsigned>(exponent + T::ebias), T::ebits);
            encode_reversible(writer, values, start);
        } else {
            for (unsigned i = 0; i < size; ++i) values[i] = flip_negative(std::bit_cast<UInt>(block[i]));
            writer.put(3, 2);
            encode_reversible(writer, values, start);
        }
    }

    void decode_reversible_float(BitReader& reader, Scalar* block, std::size_t start) const {
        if (reader.get(1) == 0) {
            std::fill_n(block, size, Scalar{0});
            return;
        }
        alignas(32) UInt values[size];
        if (reader.get(1) == 0) {
            const int exponent = static_cast<int>(reader.get(T::ebits)) - T::ebias;
            decode_reversible(reader, values, start);
            // No encoder writes this exponent. libzfp takes it for a block of zeros, where the product gives some -0.
            if (exponent == -T::ebias)
                std::fill_n(block, size, Scalar{0});
            else
                from_integers<size>(block, values, exponent);
        } else {
            decode_reversible(reader, values, start);
            for (unsigned i = 0; i < size; ++i) block[i] = std::bit_cast<Scalar>(flip_negative(values[i]));
        }
    }

    void encode_lossy(BitWriter& writer, UInt* values, unsigned precision, std::size_t start) const {
        forward_transform<detail::LossyLift, rank>(values);
        alignas(32) UInt slots[size];
        const UInt any = to_slots(slots, values);
        encode_planes(writer, slots, any, precision, start + params_.maxbits);
    }

    void decode_lossy(BitReader& reader, UInt* values, unsigned precision, std::size_t start) const {
        if (decode_planes(reader, values, precision, start + params_.maxbits))
            inverse_transform<detail::LossyLift, rank>(values);
    }

    void encode_reversible(BitWriter& writer, UInt* values, std::size_t start) const {
        forward_transform<detail::ReversibleLift, rank>(values);
        alignas(32) UInt slots[size];
        const UInt any = to_slots(slots, values);
        const unsigned precision = reversible_precision<Kernel>(params_, any);
        writer.put(precision - 1, T::pbits);
        encode_planes(writer, slots, any, precision, start + params_.maxbits);
    }

    void decode_reversible(BitReader& reader, UInt* values, std::size_t start) const {
        const unsigned precision = static_cast<unsigned>(reader.get(T::pbits)) + 1;
        if (decode_planes(reader, values, precision, start + params_.maxbits))
            inverse_transform<detail::ReversibleLift, rank>(values);
    }

    // Negabinary, in slot order; returns the bits that any coefficient has.
    static UInt to_slots(UInt* slots, UInt* values) {
        UInt any = 0;
        for (unsigned i = 0; i < size; ++i) any |= values[i] = to_negabinary(values[i]);
        for (unsigned i = 0; i < size; ++i) slots[i] = values[slot_order<rank>[i]];
        return any;
    }

    // `any` holds the bits that any of the slots has. Small blocks are coded in line; for large ones that costs more
    // than it saves, but there the work is done on a copy, which can live in registers: the compiler must assume that
    // stores through the writer change the writer itself.
    static void encode_planes(BitWriter& shared, const UInt* slots, UInt any, unsigned precision, std::size_t end) {
        if constexpr (size <= 16) return put_planes(shared, slots, any, precision, end);
        BitWriter writer = shared;
        put_planes(writer, slots, any, precision, end);
        shared = writer;
    }

    [[gnu::always_inline]] static void put_planes(BitWriter& writer, const UInt* slots, UInt any, unsigned precision,
                                                  std::size_t end) {
        using Planes = Slab<UInt, size>;
        if constexpr (size == 4)
            if (encode_short_block(writer, slots, precision, end)) return;
        const unsigned lowest = precision < nbits ? nbits - precision : 0;
        const unsigned highest = any == 0 ? 0 : nbits - static_cast<unsigned>(std::countl_zero(any));
        // Planes above the first one that is not empty send a group bit 0 each.
        unsigned k = std::max(highest, lowest), n = 0;
        writer.put_zeros(nbits - k);  // may pass `end`: the caller cuts
        while (k > lowest && writer.position() < end) {
            const unsigned index = (k - 1) / Planes::planes, base = std::max(lowest, index * Planes::planes);
            Planes planes;
            planes.build(slots, index);
            n = encode_slab(writer, planes, (k - 1) % Planes::planes, k - base, n, end);
            k = base;
        }
    }

    // Planes that the block's budget does not reach are zero. False if all coefficients are.
    static bool decode_planes(BitReader& shared, UInt* values, unsigned precision, std::size_t end) {
        if constexpr (size <= 16) return get_planes(shared, values, precision, end);
        BitReader reader = shared;
        const bool any = get_planes(reader, values, precision, end);
        shared = reader;
        return any;
    }

    [[gnu::always_inline]] static bool get_planes(BitReader& reader, UInt* values, unsigned precision,
                                                  std::size_t end) {
        using Planes = Slab<UInt, size>;
        const unsigned lowest = precision < nbits ? nbits - precision : 0;
        unsigned k = nbits, n = 0;
        if constexpr (size > 4) {
            k -= detail::skip_empty_planes(reader, k - lowest, end);
            if (k == lowest || reader.position >= end) {
                std::fill_n(values, size, UInt{0});
                return false;
            }
        }
        alignas(32) UInt slots[size] = {};
        if constexpr (size == 4) {
            if (decode_short_block(reader, slots, precision, end)) k = lowest;
        }
        while (k > lowest && reader.position < end) {
            const unsigned index = (k - 1) / Planes::planes, base = std::max(lowest, index * Planes::planes);
            Planes planes;
            planes.clear();
            n = decode_slab(reader, planes, (k - 1) % Planes::planes, k - base, n, end);
            planes.add_to(slots, index);
            k = base;
        }
        for (unsigned i = 0; i < size; ++i) values[slot_order<rank>[i]] = from_negabinary(slots[i]);
        return true;
    }

    Params params_;
    const Layout& layout_;
    alignas(32) Scalar block_[size];  // what `read` has read
    mutable UInt largest_ = 0;        // magnitude of what was encoded with loss
};

}  // namespace tamis::zfp

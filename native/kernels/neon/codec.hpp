// One block of 2, 3 or 4 axes: values ↔ bits.
//
// Blocks of 64-bit words are transformed as such; their upper and lower halves then are two blocks of 32-bit words, and
// where no bit plane of the lower half is kept, it is not looked at.
#pragma once

#include "kernels/neon/cast.hpp"
#include "kernels/neon/plane_code.hpp"
#include "kernels/neon/planes.hpp"
#include "kernels/vectors/values.hpp"
#include "tamis/zfp/block.hpp"

namespace tamis::zfp::neon {

using vectors::Opened, vectors::Opening, vectors::Values;

// `Kernel` is the file's own type, as in block_codec.hpp.
template <class Kernel, class Scalar, unsigned rank, bool reversible>
class BlockCodec {
    using UInt = typename Traits<Scalar>::UInt;
    using Register = WordsOf<Scalar>;
    using Codes = Values<Kernel, Scalar, rank, reversible>;
    using Halves = Planes<rank>;
    using Plane = typename Halves::Plane;
    static constexpr unsigned size = block_size(rank), nbits = int_nbits<Scalar>;
    static constexpr bool wide = nbits == 64;
    // Planes of 64-bit words that, where all below are zero, the 32-bit transform of the upper halves gets right, as in
    // avx2/codec.hpp.
    static constexpr unsigned upper_only = 32 + 2 * rank;

public:
    static constexpr unsigned lanes = 1;

    BlockCodec(const Params& params, const Layout& layout)
        : params_(params), codes_(params_), layout_(layout), dense_(Layout::contiguous(rank, {4, 4, 4, 4})) {}
    BlockCodec(const BlockCodec&) = delete;
    BlockCodec& operator=(const BlockCodec&) = delete;

    // False where a value cannot be represented.
    bool encode(BitWriter& shared, const Place<const Scalar>* places, unsigned) const {
        Rows<Register, rank> rows;
        if (in_place(places[0])) {
            load_rows<rank>(places[0].at, layout_, rows);
        } else {
            alignas(16) Scalar copy[size];
            load_block<rank>(copy, places[0], layout_);
            load_rows<rank>(copy, dense_, rows);
        }
        Opening opening[1];
        UInt any[1];
        if (!codes_.to_planes(rows, opening, any)) return false;
        BitWriter writer = shared;
        const std::size_t start = writer.position(), end = start + params_.maxbits;
        const unsigned precision = opening[0].precision, lowest = precision < nbits ? nbits - precision : 0;
        const unsigned length = static_cast<unsigned>(std::bit_width(any[0]));
        unsigned k = precision == 0 ? nbits : std::max(lowest, length), n = 0;
        put_opening(writer, opening[0], nbits - k);
        if constexpr (wide) {
            Rows<Words32, rank> high, low;
            split(rows, high, low);
            put_planes<32>(writer, high, k, lowest, n, end);
            put_planes<0>(writer, low, k, lowest, n, end);
        } else {
            put_planes<0>(writer, rows, k, lowest, n, end);
        }
        finish_block<Kernel>(params_, writer, start);
        shared = writer;
        return true;
    }

    int exponent() const { return codes_.exponent(); }

    void read(BitReader& reader, unsigned) {
        const std::size_t start = reader.position;
        std::fill_n(planes_, nbits, Plane{});
        opened_[0] = codes_.open(reader);
        const unsigned precision = opened_[0].precision, lowest = precision < nbits ? nbits - precision : 0;
        reached_ = read_planes<size>(reader, planes_, nbits, lowest, start + params_.maxbits);
        reader.position = std::max(reader.position, start + params_.minbits);
    }

    // The values of the block that was read.
    void restore(const Place<Scalar>* places, unsigned) const {
        if (in_place(places[0])) return restore(places[0].at, layout_);
        alignas(16) Scalar copy[size];
        restore(copy, dense_);
        store_block<rank>(copy, places[0], layout_);
    }

private:
    template <class Value>
    bool in_place(const Place<Value>& place) const {
        return place.whole && layout_.stride[0] == 1;
    }

    // What opens a block, and a group bit 0 for each of the empty planes on top of it.
    [[gnu::always_inline]] static void put_opening(BitWriter& writer, const Opening& opening, unsigned empty) {
        writer.put(opening.bits, opening.nbits);
        writer.put_zeros(empty);
    }

    // Planes k - 1 … lowest, as far as they are among the 32 from `origin` on.
    template <unsigned origin>
    [[gnu::always_inline]] static void put_planes(BitWriter& writer, const Rows<Words32, rank>& rows, unsigned& k,
                                                  unsigned lowest, unsigned& n, std::size_t end) {
        const unsigned stop = std::max(lowest, origin);
        if (k <= stop || !writer.may_be_before(end)) return;
        Halves halves;
        halves.load(rows);
        while (k > stop && writer.may_be_before(end)) {
            const unsigned index = (k - 1 - origin) / Halves::at_once, base = origin + index * Halves::at_once;
            const unsigned least = std::max(stop, base);
            alignas(16) Plane planes[Halves::at_once + 1];  // one more to look at
            halves.make(index, planes);
            n = write_planes<size>(writer, planes, k - base, least - base, n, end);
            k = least;
        }
    }

    template <unsigned origin>
    [[gnu::always_inline]] void get_planes(Rows<Words32, rank>& rows) const {
        Halves halves;
        for (unsigned index = 0; index < 32 / Halves::at_once; ++index) {
            const unsigned base = origin + index * Halves::at_once;
            if (base + Halves::at_once <= reached_)
                halves.set_empty(index);
            else
                halves.set(index, planes_ + base);
        }
        halves.store(rows);
    }

    [[gnu::always_inline]] void restore(Scalar* to, const Layout& layout) const {
        Rows<Register, rank> rows;
        if (reached_ == nbits) {
            for (Register& row : rows) row = Register::all(0);
        } else if constexpr (wide) {
            Rows<Words32, rank> high, low;
            get_planes<32>(high);
            if (!reversible && reached_ >= upper_only && scale_is_normal()) {
                restore_upper(high, rows);
            } else {
                get_planes<0>(low);
                merge(high, low, rows);
                Codes::from_planes(rows, opened_);
            }
        } else {
            get_planes<0>(rows);
            Codes::from_planes(rows, opened_);
        }
        store_rows<rank>(rows, to, layout);
    }

    [[gnu::always_inline]] void restore_upper(Rows<Words32, rank>& high, Rows<Register, rank>& rows) const {
        for (Words32& row : high) row = out_of_negabinary(row);
        inverse_transform<detail::LossyLift, rank>(high);
        if constexpr (std::is_floating_point_v<Scalar>) {
            const double scale = detail::power_of_two<double>(opened_[0].exponent - 30);
            for (unsigned i = 0; i < std::size(rows); ++i) rows[i] = widen(high[i], &scale);
        } else {
            for (unsigned i = 0; i < std::size(rows); ++i) rows[i] = widen(high[i]);
        }
    }

    // 2^(e - 62) is a normal number, so that the product with the upper half times 2^32 rounds as that of the whole.
    bool scale_is_normal() const { return opened_[0].exponent >= least_upper_exponent; }
    static constexpr int least_upper_exponent = -960;

    const Params params_;
    const Codes codes_;
    const Layout& layout_;
    const Layout dense_;
    alignas(16) Plane planes_[nbits];  // from the lowest one on
    unsigned reached_ = 0;             // planes from here on were read, the others are zero
    Opened opened_[1];
};

}  // namespace tamis::zfp::neon

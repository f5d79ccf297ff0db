// Values of blocks ↔ their transformed integers in negabinary, and what opens a block in the stream: the steps of
// block_codec.hpp, in every mode, for all blocks of a register at once.
#pragma once

#include "kernels/vectors/rows.hpp"
#include "tamis/zfp/block_limits.hpp"
#include "tamis/zfp/cast.hpp"

namespace tamis::zfp::vectors {

// The bits before the planes, and how many planes follow at most; of an empty block, none.
struct Opening {
    std::uint64_t bits = 0;
    unsigned nbits = 0, precision = 0;
};

// What an opening says to the decoder.
struct Opened {
    int exponent = 0;
    bool patterns = false;  // the integers are bit patterns of floats (reversible mode)
    unsigned precision = 0;
};

// Integers of floats, and the bits in which the floats differ that these give back.
template <class Register, std::size_t count>
[[gnu::always_inline]] inline void to_integers_and_back(const Register (&rows)[count],
                                                        const PerBlock<Register, int>& exponents,
                                                        Register (&integers)[count],
                                                        UIntPerBlock<Register>& different) {
    Register back[count];
    std::copy(std::begin(rows), std::end(rows), integers);
    to_integers(integers, exponents);
    std::copy(std::begin(integers), std::end(integers), back);
    from_integers(back, exponents);
    for (unsigned i = 0; i < count; ++i) back[i] = back[i] ^ rows[i];
    any_bits(back, different);
}

// Of blocks that are exact, the integers; of others, what is ordered as the bit patterns of floats are.
template <class Register, std::size_t count>
[[gnu::always_inline]] inline void integers_or_patterns(const PerBlock<Register, bool>& exact,
                                                        const Register (&integers)[count], Register (&rows)[count]) {
    for (unsigned i = 0; i < count; ++i) rows[i] = choose(exact, integers[i], flip_negative(rows[i]));
}

template <class Kernel, class Scalar, unsigned rank, bool reversible>
class Values {
    using T = Traits<Scalar>;
    using UInt = typename T::UInt;
    using Register = typename Kernel::template Register<Scalar, rank>;
    using Lift = std::conditional_t<reversible, detail::ReversibleLift, detail::LossyLift>;
    static constexpr unsigned nbits = int_nbits<Scalar>, blocks = Register::blocks;
    static constexpr bool floating = T::ebits != 0;

public:
    explicit Values(const Params& params) : params_(params) {}

    // False where a lossy mode cannot represent a value. `any`: the bits that any integer of the block has.
    [[gnu::always_inline]] bool to_planes(Rows<Register, rank>& rows, PerBlock<Register, Opening>& openings,
                                          UIntPerBlock<Register>& any) const {
        if constexpr (floating && reversible) {
            exact_integers(rows, openings);
        } else if constexpr (floating) {
            if (!scaled_integers(rows, openings)) return false;
        } else {
            for (Opening& opening : openings) opening.precision = params_.maxprec;
            if (!reversible && !in_range(rows)) return false;
        }
        forward_transform<Lift, rank>(rows);
        for (Register& row : rows) row = negabinary(row);
        any_bits(rows, any);
        if constexpr (reversible)
            for (unsigned i = 0; i < blocks; ++i) add_precision(openings[i], any[i]);
        return true;
    }

    // All that was encoded with loss is below 2^this.
    int exponent() const { return exponent_above<Scalar>(largest_); }

    // From integers in negabinary to bit patterns of values.
    [[gnu::always_inline]] static void from_planes(Rows<Register, rank>& rows,
                                                   const PerBlock<Register, Opened>& opened) {
        for (Register& row : rows) row = out_of_negabinary(row);
        inverse_transform<Lift, rank>(rows);
        if constexpr (floating) {
            int exponents[blocks];
            bool patterns[blocks], empty[blocks], any_special = false;
            for (unsigned i = 0; i < blocks; ++i) {
                exponents[i] = opened[i].exponent;
                patterns[i] = opened[i].patterns;
                empty[i] = opened[i].exponent == -T::ebias;
                any_special |= patterns[i] || empty[i];
            }
            if (!reversible || !any_special) {
                from_integers(rows, exponents);
            } else {
                Rows<Register, rank> integers;
                std::copy(std::begin(rows), std::end(rows), integers);
                from_integers(rows, exponents);
                for (unsigned i = 0; i < std::size(rows); ++i) {
                    const Register floats = choose(empty, Register::all(0), rows[i]);
                    rows[i] = choose(patterns, flip_negative(integers[i]), floats);
                }
            }
        }
    }

    // Read what opens a block.
    Opened open(BitReader& reader) const {
        if constexpr (floating) {
            if (reader.get(1) == 0) return {0, false, 0};
            if (reversible && reader.get(1) != 0) return {0, true, plane_count(reader)};
            const int exponent = static_cast<int>(reader.get(T::ebits)) - T::ebias;
            return {exponent, false,
                    reversible ? plane_count(reader) : float_precision<Kernel>(params_, rank, exponent)};
        } else {
            return {0, false, plane_count(reader)};
        }
    }

private:
    unsigned plane_count(BitReader& reader) const {
        return reversible ? static_cast<unsigned>(reader.get(T::pbits)) + 1 : params_.maxprec;
    }

    void add_precision(Opening& opening, UInt any) const {
        if (floating && opening.precision == 0) return;
        opening.precision = reversible_precision<Kernel>(params_, any);
        opening.bits |= std::uint64_t{opening.precision - 1} << opening.nbits;
        opening.nbits += T::pbits;
    }

    // Zeros are zeros with any exponent; this one lets their neighbours keep to the common case.
    static int exponent_of(UInt largest) { return largest == 0 ? 0 : block_exponent<Scalar>(largest); }

    [[gnu::always_inline]] bool scaled_integers(Rows<Register, rank>& rows,
                                                PerBlock<Register, Opening>& openings) const {
        UIntPerBlock<Register> largest;
        largest_magnitudes(rows, largest);
        int exponents[blocks];
        for (unsigned i = 0; i < blocks; ++i) {
            if (largest[i] >= detail::infinity_bits<Scalar>) return false;
            largest_ = std::max(largest_, largest[i]);
            const int exponent = exponents[i] = exponent_of(largest[i]);
            const unsigned precision = largest[i] == 0 ? 0 : float_precision<Kernel>(params_, rank, exponent);
            if (precision == 0)
                openings[i] = {0, 1, 0};
            else
                openings[i] = {2 * static_cast<unsigned>(exponent + T::ebias) + 1, 1 + T::ebits, precision};
        }
        to_integers(rows, exponents);
        return true;
    }

    // A block whose integers give its bits back is sent as integers, any other as its bit patterns. (Where a scale is
    // infinite all integers are the lowest one, which gives back no value of the block.)
    [[gnu::always_inline]] void exact_integers(Rows<Register, rank>& rows,
                                               PerBlock<Register, Opening>& openings) const {
        UIntPerBlock<Register> largest, bits, different;
        largest_magnitudes(rows, largest);
        any_bits(rows, bits);
        int exponents[blocks];
        for (unsigned i = 0; i < blocks; ++i) exponents[i] = exponent_of(largest[i]);
        Rows<Register, rank> integers;
        to_integers_and_back(rows, exponents, integers, different);
        bool exact[blocks];
        for (unsigned i = 0; i < blocks; ++i) {
            exact[i] = largest[i] < detail::infinity_bits<Scalar> && different[i] == 0;
            if (bits[i] == 0)
                openings[i] = {0, 1, 0};
            else if (exact[i] && largest[i] != 0)
                openings[i] = {1 | static_cast<std::uint64_t>(exponents[i] + T::ebias) << 2, 2 + T::ebits, nbits};
            else
                openings[i] = {3, 2, nbits}, exact[i] = false;
        }
        integers_or_patterns(exact, integers, rows);
    }

    [[gnu::always_inline]] static bool in_range(const Rows<Register, rank>& rows) {
        Rows<Register, rank> magnitudes;
        for (unsigned i = 0; i < std::size(rows); ++i) magnitudes[i] = magnitude(rows[i]);
        UIntPerBlock<Register> any;
        any_bits(magnitudes, any);
        bool inside = true;
        for (const UInt each : any) inside &= each >> (nbits - 2) == 0;
        return inside;
    }

    const Params& params_;
    mutable UInt largest_ = 0;  // magnitude of what was encoded with loss; the lower half of 64 bits is not its own
};

}  // namespace tamis::zfp::vectors

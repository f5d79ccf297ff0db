// Blocks of floats with NaN or infinities, as libzfp encodes them on x86-64 with glibc.
//
// C leaves it undefined what libzfp does there, but each step has one outcome on that platform:
// - the largest magnitude is found by `<`, which passes over NaN; if it is infinite, frexp says that the exponent is 0;
// - a product that is NaN or beyond the integers becomes the lowest integer.
// So NaN reads as a number, and in a block with an infinity so does every value that is not small.
//
// Written for the rare chunk that has one: bit by bit, and without the proof's magnitude.
#pragma once

#include <algorithm>

#include "block.hpp"
#include "block_limits.hpp"
#include "cast.hpp"
#include "order.hpp"
#include "transform.hpp"

namespace tamis::zfp {

// A codec for encode_array, of lossy modes; see block_codec.hpp.
template <class Scalar, unsigned rank>
class NonFiniteCodec {
    using T = Traits<Scalar>;
    using Int = typename T::Int;
    using UInt = typename T::UInt;
    static constexpr unsigned size = block_size(rank), nbits = int_nbits<Scalar>;

public:
    static constexpr unsigned lanes = 1;

    NonFiniteCodec(const Params& params, const Layout& layout) : params_(params), layout_(layout) {}

    bool encode(BitWriter& writer, const Place<const Scalar>* places, unsigned) const {
        Scalar block[size];
        load_block<rank>(block, places[0], layout_);
        const std::size_t start = writer.position();
        encode_block(writer, block, start + params_.maxbits);
        finish_block<NonFiniteCodec>(params_, writer, start);
        return true;
    }
    int exponent() const { return std::numeric_limits<int>::max(); }  // nothing is known

private:
    void encode_block(BitWriter& writer, const Scalar* block, std::size_t end) const {
        const int exponent = exponent_of(block);
        const unsigned precision = float_precision<NonFiniteCodec>(params_, rank, exponent);
        if (exponent == -T::ebias || precision == 0) return writer.put(0, 1);
        writer.put(2 * static_cast<unsigned>(exponent + T::ebias) + 1, 1 + T::ebits);
        const Scalar scale = detail::power_of_two<Scalar>(static_cast<int>(nbits) - 2 - exponent);
        UInt values[size], coefficients[size];
        for (unsigned i = 0; i < size; ++i) values[i] = static_cast<UInt>(integer_of(scale * block[i]));
        forward_transform<detail::LossyLift, rank>(values);
        for (unsigned i = 0; i < size; ++i) coefficients[i] = to_negabinary(values[coefficient_order<rank>[i]]);
        put_planes(writer, coefficients, precision < nbits ? nbits - precision : 0, end);
    }

    static int exponent_of(const Scalar* block) {
        Scalar largest = 0;
        for (unsigned i = 0; i < size; ++i)
            if (const Scalar magnitude = std::abs(block[i]); largest < magnitude) largest = magnitude;
        return std::isinf(largest) ? 0 : block_exponent<Scalar>(detail::magnitude_bits(largest));
    }

    static Int integer_of(Scalar value) {
        constexpr Int lowest = std::numeric_limits<Int>::min();
        constexpr Scalar limit = -static_cast<Scalar>(lowest);
        return value >= -limit && value < limit ? static_cast<Int>(value) : lowest;
    }

    // Planes from the highest to `lowest`: bits of the coefficients that were significant before, then, in groups, the
    // others.
    static void put_planes(BitWriter& writer, const UInt* coefficients, unsigned lowest, std::size_t end) {
        const auto open = [&] { return writer.position() < end; };
        unsigned known = 0;
        for (unsigned k = nbits; k-- > lowest && open();) {
            const auto put_bit = [&](unsigned i) {
                const bool bit = (coefficients[i] >> k & 1) != 0;
                writer.put(bit, 1);
                return bit;
            };
            for (unsigned i = 0; i < known && open(); ++i) put_bit(i);
            for (; known < size && open(); ++known) {
                const bool any =
                    std::any_of(coefficients + known, coefficients + size, [k](UInt one) { return one >> k & 1; });
                writer.put(any, 1);
                if (!any) break;
                while (known < size - 1 && open() && !put_bit(known)) ++known;
            }
        }
    }

    Params params_;
    const Layout& layout_;
};

}  // namespace tamis::zfp

// Blocks of one axis: eight of 32 bits or four of 64 bits at a time.
//
// A block has four values only, so that a register holds one value each of many blocks ("columns"), and transposing
// them turns blocks into columns and back. Casts, the transform and openings work on columns; bit planes and their code
// on two or four blocks a register (nibbles.hpp). Blocks of 64 bits are two halves of 32 planes; the lower ones are
// made only for blocks that get there, and where no block did, the 32-bit transform decodes (11 instead of 14 ns a
// block, 1-D float64 at rate 4).
#pragma once

#include "kernels/avx2/decode_nibbles.hpp"
#include "kernels/avx2/line_cast.hpp"
#include "kernels/avx2/nibbles.hpp"
#include "kernels/vectors/values.hpp"
#include "tamis/zfp/block.hpp"

namespace tamis::zfp::avx2 {

using vectors::Opened, vectors::Opening, vectors::Values;

// `Kernel` is the file's own type, as in block_codec.hpp.
template <class Kernel, class Scalar, bool reversible>
class LineCodec {
    using Columns = WordsOf<Scalar, 1>;
    using Row = WordsOf<Scalar, 2>;  // of one or two blocks
    using UInt = typename Columns::UInt;
    using Codes = Values<Kernel, Scalar, 1, reversible>;
    static constexpr unsigned nbits = int_nbits<Scalar>;
    static constexpr bool wide = nbits == 64;

public:
    static constexpr unsigned lanes = Columns::blocks;

    LineCodec(const Params& params, const Layout& layout) : params_(params), codes_(params_), layout_(layout) {}
    LineCodec(const LineCodec&) = delete;
    LineCodec& operator=(const LineCodec&) = delete;

    // False where a value cannot be represented.
    bool encode(BitWriter& shared, const Place<const Scalar>* places, unsigned used) const {
        Row rows[4];
        load(places, used, rows);
        Columns columns[4];
        turn(rows, columns);
        Opening openings[lanes];
        UInt any[lanes];
        if (!codes_.to_planes(columns, openings, any)) return false;
        turn(columns, rows);
        BitWriter writer = shared;
        for (unsigned first = 0; first < used; first += 4) {
            Planes planes(rows, first, few_planes(openings, first));
            for (unsigned i = 0; i < 4 && first + i < used; ++i) {
                const unsigned lane = lane_of(first + i);
                put(writer, planes, i, openings[lane], bit_length(any[lane]));
            }
        }
        shared = writer;
        return true;
    }

    int exponent() const { return codes_.exponent(); }

    // Read the planes of one block. In line in both of its callers: 2 to 8 % of decoding.
    [[gnu::always_inline]] void read(BitReader& reader, unsigned block) {
        const std::size_t start = reader.position;
        Opened& opened = opened_[lane_of(block)] = codes_.open(reader);
        if (opened.precision == 0) {
            opened.exponent = 0;  // zeros take any scale
            std::memset(planes_[block].bytes, 0, nbits / 2);
            reached_[block] = 0;
        } else {
            reached_[block] = decode_nibbles(reader, planes_[block], std::min(opened.precision, nbits),
                                             start + params_.maxbits - reader.position);
        }
        reader.position = std::max(reader.position, start + params_.minbits);
    }

    // The values of the blocks that were read.
    void restore(const Place<Scalar>* places, unsigned used) {
        for (unsigned block = used; block < lanes; ++block) {
            planes_[block] = planes_[0];
            opened_[lane_of(block)] = opened_[0];
            reached_[block] = reached_[0];
        }
        Row rows[4];
        if (upper_halves_are_enough())
            restore_upper(rows);
        else
            restore_all(rows);
        if (dense(places, used)) return store(rows, places[0].at);
        alignas(32) Scalar values[lanes][4];
        store(rows, values[0]);
        for (unsigned block = 0; block < used; ++block) store_block<1>(values[block], places[block], layout_);
    }

private:
    void restore_all(Row (&rows)[4]) const {
        for (unsigned block = 0; block < lanes; block += 2) {
            const Words32 high[1] = {planes_of(block, 0)};
            if constexpr (wide) {
                const Words32 low[1] = {planes_of(block, 16)};
                Words64 a[1], b[1];
                merge<1>(high, low, a, b);
                rows[block] = a[0], rows[block + 1] = b[0];
            } else {
                rows[block / 2] = high[0];
            }
        }
        Columns columns[4];
        turn(rows, columns);
        codes_.from_planes(columns, opened_);
        turn(columns, rows);
    }

    // Of 64-bit blocks that have no planes but these, the 32-bit transform of their upper halves gives the upper halves
    // of the values, and their lower ones are zero: an inverse lift halves twice, and so needs two planes more.
    static constexpr unsigned upper_planes = 30;

    bool upper_halves_are_enough() const {
        bool enough = wide && !reversible;
        for (unsigned block = 0; block < lanes; ++block)
            enough &= reached_[block] <= upper_planes && opened_[block].exponent >= least_shifted_exponent;
        return enough;
    }

    void restore_upper(Row (&rows)[4]) const {
        if constexpr (wide) {
            Words32 v[4] = {planes_of(0, 0), planes_of(2, 0), Words32::all(0), Words32::all(0)};
            transpose(v[0], v[1], v[2], v[3]);
            for (Words32& each : v) each = out_of_negabinary(each);
            detail::LossyLift::inverse(v[0], v[1], v[2], v[3]);
            transpose(v[0], v[1], v[2], v[3]);
            for (unsigned block = 0; block < lanes; ++block) {
                const __m256i pair = v[block / 2].bits;
                rows[block] = widen(block % 2 == 0 ? lower(pair) : upper(pair), opened_[block].exponent);
            }
        }
    }

    // Values whose integers are these, times 2^32.
    static Row widen(__m128i integers, int exponent) {
        if constexpr (std::is_floating_point_v<Scalar>) {
            const __m256d scale = _mm256_set1_pd(detail::power_of_two<double>(exponent - 30));
            return {_mm256_castpd_si256(_mm256_mul_pd(scale, _mm256_cvtepi32_pd(integers)))};
        } else {
            return {_mm256_slli_epi64(_mm256_cvtepi32_epi64(integers), 32)};
        }
    }

    // Blocks 2i and 2i + 1 of 32 bits are the halves of row i, which transposition keeps apart.
    static constexpr unsigned lane_of(unsigned block) { return wide ? block : block / 2 + block % 2 * 4; }

    template <class From, class To>
    [[gnu::always_inline]] static void turn(const From (&from)[4], To (&to)[4]) {
        Row v[4];
        for (unsigned i = 0; i < 4; ++i) v[i].bits = from[i].bits;
        transpose(v[0], v[1], v[2], v[3]);
        for (unsigned i = 0; i < 4; ++i) to[i].bits = v[i].bits;
    }

    template <class Value>
    bool dense(const Place<Value>* places, unsigned used) const {
        return used == lanes && layout_.stride[0] == 1 && places[lanes - 1].whole;
    }

    // Register by register: what a compiler copies in smaller pieces cannot be loaded again before it has reached the
    // cache (16 instead of 19 ns a block).
    static void load(const Scalar* from, Row (&rows)[4]) {
        for (unsigned i = 0; i < 4; ++i)
            rows[i].bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i * lanes));
    }
    static void store(const Row (&rows)[4], Scalar* to) {
        for (unsigned i = 0; i < 4; ++i) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i * lanes), rows[i].bits);
    }

    void load(const Place<const Scalar>* places, unsigned used, Row (&rows)[4]) const {
        if (dense(places, used)) return load(places[0].at, rows);
        alignas(32) Scalar values[lanes][4] = {};
        for (unsigned block = 0; block < used; ++block) load_block<1>(values[block], places[block], layout_);
        load(values[0], rows);
    }

    // Whether no more than 16 planes can be sent of any of four blocks. Each takes a bit or more.
    bool few_planes(const Opening (&openings)[lanes], unsigned first) const {
        bool few = true;
        for (unsigned i = 0; i < 4; ++i) {
            const Opening& opening = openings[lane_of(first + i)];
            few &= opening.precision <= 16 || params_.maxbits <= opening.nbits + 16;
        }
        return few;
    }

    // The planes of four blocks. The lower half of 64 is made when it is asked for.
    struct Planes : LinePlanes<Kernel, nbits> {
        Words32 low[2];
        __m256i significant[2];
        bool with_lower[2] = {};

        [[gnu::always_inline]] Planes(const Row (&rows)[4], unsigned first, bool few) {
            Words32 high[2];
            if constexpr (wide) {
                split<2>({rows[0], rows[2]}, {rows[1], rows[3]}, high, low);
            } else {
                high[0] = rows[first / 2], high[1] = rows[first / 2 + 1];
            }
            if (few) this->make_upper(to_upper_nibbles(high[0], high[1]));
            for (unsigned pair = 0; pair < 2 && !few; ++pair) {
                significant[pair] = _mm256_setzero_si256();
                this->make(2 * pair, 0, to_nibbles(high[pair]), significant[pair]);
            }
        }
        [[gnu::always_inline]] void make_lower(unsigned pair) {
            if (!with_lower[pair]) this->make(2 * pair, 1, to_nibbles(low[pair]), significant[pair]);
            with_lower[pair] = true;
        }
    };

    // One block; `length`: bits of its largest coefficient.
    [[gnu::always_inline]] void put(BitWriter& writer, Planes& planes, unsigned block, const Opening& opening,
                                    unsigned length) const {
        const std::size_t start = writer.position();
        std::size_t left = params_.maxbits - opening.nbits;
        const unsigned precision = std::min(opening.precision, nbits);
        // Planes above the first one that is not empty send a group bit 0 each.
        unsigned i = std::min(nbits - length, precision) / 8;
        const auto empty = static_cast<unsigned>(std::min<std::size_t>(8 * i, left));
        put_opening(writer, opening.bits, opening.nbits, empty);
        left -= empty;
        unsigned n = 0;
        for (unsigned k = precision - 8 * i; k != 0 && left != 0; ++i) {
            if (wide && i >= 4) planes.make_lower(block / 2);
            const unsigned now = std::min(k, 8u);
            left -= planes.put(writer, block, i, now, left, n);
            k -= now;
        }
        const std::size_t written = writer.position() - start;
        if (written < params_.minbits) writer.put_zeros(params_.minbits - written);
    }

    Words32 planes_of(unsigned block, unsigned byte) const {
        return from_nibbles(join(load_half(planes_[block].bytes + byte), load_half(planes_[block + 1].bytes + byte)));
    }

    Params params_;
    Codes codes_;
    const Layout& layout_;
    Nibbles<nbits> planes_[lanes];
    Opened opened_[lanes];
    unsigned reached_[lanes];  // planes that were read
};

}  // namespace tamis::zfp::avx2

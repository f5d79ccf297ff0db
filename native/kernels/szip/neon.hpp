// The steps of the coder for NEON, for samples of one and two bytes and the usual sizes of blocks. `Family` is a type
// that the kernel's file keeps to itself.
//
// Sums and differences are left to steps.hpp: compilers make vectors of them. `python benchmarks/instructions.py`
// counts what each kernel takes.
#pragma once

#include <arm_neon.h>

#include "tamis/szip/steps.hpp"

namespace tamis::szip {

namespace neon {

template <class Sample>
inline constexpr bool has_vectors = sizeof(Sample) < 4;

// samples >> k as bytes, saturated, of 16 or of 8 samples, behind which are zeros.
template <unsigned pixels>
[[gnu::always_inline]] inline uint8x16_t high_bytes(const std::uint8_t* block, unsigned k) {
    const uint8x8_t zero = vdup_n_u8(0);
    const uint8x16_t x = pixels == 8 ? vcombine_u8(vld1_u8(block), zero) : vld1q_u8(block);
    return vshlq_u8(x, vdupq_n_s8(static_cast<std::int8_t>(-static_cast<int>(k))));
}
template <unsigned pixels>
[[gnu::always_inline]] inline uint8x16_t high_bytes(const std::uint16_t* block, unsigned k) {
    const int16x8_t right = vdupq_n_s16(static_cast<std::int16_t>(-static_cast<int>(k)));
    const uint8x8_t low = vqmovn_u16(vshlq_u16(vld1q_u16(block), right));
    const uint8x8_t high = pixels == 8 ? vdup_n_u8(0) : vqmovn_u16(vshlq_u16(vld1q_u16(block + 8), right));
    return vcombine_u8(low, high);
}

// Each lane becomes the sum of those up to it.
[[gnu::always_inline]] inline uint8x16_t running_sums(uint8x16_t x) {
    const uint8x16_t zero = vdupq_n_u8(0);
    x = vaddq_u8(x, vextq_u8(zero, x, 15));
    x = vaddq_u8(x, vextq_u8(zero, x, 14));
    x = vaddq_u8(x, vextq_u8(zero, x, 12));
    return vaddq_u8(x, vextq_u8(zero, x, 8));
}
[[gnu::always_inline]] inline uint16x8_t running_sums(uint16x8_t x) {
    const uint16x8_t zero = vdupq_n_u16(0);
    x = vaddq_u16(x, vextq_u16(zero, x, 7));
    x = vaddq_u16(x, vextq_u16(zero, x, 6));
    return vaddq_u16(x, vextq_u16(zero, x, 4));
}

// The bits whose numbers are bytes below 64, of the first eight or of all.
template <unsigned count>
[[gnu::always_inline]] inline std::uint64_t bits_of(uint8x16_t numbers) {
    const uint64x2_t one = vdupq_n_u64(1);
    const auto four = [&](uint16x4_t x) __attribute__((always_inline)) {
        const int32x4_t wide = vreinterpretq_s32_u32(vmovl_u16(x));
        return vorrq_u64(vshlq_u64(one, vmovl_s32(vget_low_s32(wide))), vshlq_u64(one, vmovl_high_s32(wide)));
    };
    const auto eight = [&](uint16x8_t x) __attribute__((always_inline)) {
        return vorrq_u64(four(vget_low_u16(x)), four(vget_high_u16(x)));
    };
    uint64x2_t bits = eight(vmovl_u8(vget_low_u8(numbers)));
    if constexpr (count == 16) bits = vorrq_u64(bits, eight(vmovl_high_u8(numbers)));
    return vgetq_lane_u64(bits, 0) | vgetq_lane_u64(bits, 1);
}

// Numbers of so many bits in two words, each of which becomes those numbers one behind the other, the first one
// highest.
[[gnu::always_inline]] inline uint64x2_t join_numbers(uint32x4_t x, int bits) {
    const uint64x2_t pairs = vreinterpretq_u64_u32(x);
    const uint64x2_t first = vandq_u64(pairs, vdupq_n_u64(0xffffffff));
    return vsraq_n_u64(vshlq_u64(first, vdupq_n_s64(bits)), pairs, 32);
}
[[gnu::always_inline]] inline uint64x2_t join_numbers(uint16x8_t x, int bits) {
    const uint32x4_t pairs = vreinterpretq_u32_u16(x);
    const uint32x4_t first = vandq_u32(pairs, vdupq_n_u32(0xffff));
    return join_numbers(vsraq_n_u32(vshlq_u32(first, vdupq_n_s32(bits)), pairs, 16), 2 * bits);
}
[[gnu::always_inline]] inline uint64x2_t join_numbers(uint8x16_t x, int bits) {
    const uint16x8_t pairs = vreinterpretq_u16_u8(x);
    const uint16x8_t first = vandq_u16(pairs, vdupq_n_u16(0xff));
    const int16x8_t left = vdupq_n_s16(static_cast<std::int16_t>(bits));
    return join_numbers(vsraq_n_u16(vshlq_u16(first, left), pairs, 8), 2 * bits);
}

}  // namespace neon

template <class Family>
struct NeonSteps : Steps<Family> {
    using Plain = Steps<Family>;

    template <unsigned fixed>
    [[gnu::always_inline]] static void put_pairs(Writer<Family>& writer, Head head, const std::uint16_t* numbers,
                                                 unsigned count) {
        if constexpr (fixed == 8 || fixed == 16)
            put_unary_group<fixed>(writer, head, numbers, 0, 0);
        else
            Plain::template put_pairs<fixed>(writer, head, numbers, count);
    }

    template <class Sample, unsigned fixed>
    [[gnu::always_inline]] static void put_split(Writer<Family>& writer, Head head, const Sample* block, unsigned first,
                                                 unsigned pixels, unsigned k) {
        if constexpr (neon::has_vectors<Sample> && fixed > 0) {
            constexpr unsigned group = fixed == 8 ? 8 : 16;
            put_unary_group<group>(writer, head, block, first, k);
            if constexpr (fixed == 32) put_unary_group<group>(writer, {}, block + group, 0, k);
            if (k > 0) Family::put_low(writer, block, first, pixels, k);
        } else {
            Plain::template put_split<Sample, fixed>(writer, head, block, first, pixels, k);
        }
    }

    // A register has two words of samples.
    template <class Sample>
    [[gnu::always_inline]] static void put_low(Writer<Family>& writer, const Sample* block, unsigned first,
                                               unsigned pixels, unsigned bits) {
        constexpr unsigned width = 8 / sizeof(Sample);
        if (!neon::has_vectors<Sample> || pixels % (2 * width) != 0)
            return Plain::put_low(writer, block, first, pixels, bits);
        const unsigned count = width * bits;
        // A sample that is left out is 0 in its place.
        unsigned absent = first * bits;
        for (unsigned i = 0; i < pixels; i += 2 * width) {
            const auto [one, two] = two_words(block + i, bits);
            if (2 * count <= most_put) {
                writer.put(one << count | two, 2 * count - absent);
            } else if (count <= most_put) {
                writer.put(one, count - absent);
                writer.put(two, count);
            } else {  // never with a sample left out: only verbatim samples are so wide
                for (const std::uint64_t word : {one, two}) {
                    if (count == 64) {
                        writer.put64(word);
                    } else {
                        writer.put(word >> 32, count - 32);
                        writer.put(word & 0xffffffff, 32);
                    }
                }
            }
            absent = 0;
        }
    }

    template <class Sample, unsigned fixed>
    [[gnu::always_inline]] static bool get_split(Reader<Family>& reader, Sample* block, unsigned first, unsigned pixels,
                                                 unsigned k, unsigned bits) {
        if constexpr (neon::has_vectors<Sample> && fixed > 0) {
            constexpr unsigned group = fixed == 8 ? 8 : 16;
            const Sample most = low_bits_of<Sample>(bits - k);
            alignas(16) std::uint8_t high[fixed] = {};
            if (!get_unary_group<group>(reader, first, high)) [[unlikely]]
                return Plain::template get_split<Sample, fixed>(reader, block, first, pixels, k, bits);
            if (!is_at_most<group>(high, most)) return false;
            if constexpr (fixed == 32) {
                if (!get_unary_group<group>(reader, 0, high + group)) [[unlikely]]
                    return get_split_rest(reader, high, block, first, k, most);
                if (!is_at_most<group>(high + group, most)) return false;
            }
            reader.ensure();
            const std::size_t at = reader.at() - first * k;
            const Sample reference = block[0];
            for (unsigned i = 0; i < fixed; i += group) join<group>(reader, at + i * k, k, high + i, block + i);
            if (first > 0) block[0] = reference;
            reader.skip((fixed - first) * k);
            return true;
        } else {
            return Plain::template get_split<Sample, fixed>(reader, block, first, pixels, k, bits);
        }
    }

    template <class Sample>
    static void unmap(const Sample* mapped, std::size_t count, Sample most, Sample* samples) {
        if constexpr (sizeof(Sample) == 1)
            unmap8(mapped, count, most, samples);
        else if constexpr (sizeof(Sample) == 2)
            unmap16(mapped, count, most, samples);
        else
            Plain::unmap(mapped, count, most, samples);
    }

private:
    struct TwoWords {
        std::uint64_t one, two;
    };
    [[gnu::always_inline]] static TwoWords two_words(uint64x2_t x) {
        return {vgetq_lane_u64(x, 0), vgetq_lane_u64(x, 1)};
    }
    // The lowest bits of 8 or 16 samples.
    [[gnu::always_inline]] static TwoWords two_words(const std::uint8_t* block, unsigned bits) {
        const uint8x16_t low = vandq_u8(vld1q_u8(block), vdupq_n_u8(low_bits_of<std::uint8_t>(bits)));
        return two_words(neon::join_numbers(low, static_cast<int>(bits)));
    }
    [[gnu::always_inline]] static TwoWords two_words(const std::uint16_t* block, unsigned bits) {
        const uint16x8_t low = vandq_u16(vld1q_u16(block), vdupq_n_u16(low_bits_of<std::uint16_t>(bits)));
        return two_words(neon::join_numbers(low, static_cast<int>(bits)));
    }
    static TwoWords two_words(const std::uint32_t*, unsigned) { return {}; }  // not called

    template <unsigned group, class Sample>
    [[gnu::always_inline]] static void put_unary_group(Writer<Family>& writer, Head head, const Sample* block,
                                                       unsigned first, unsigned k) {
        uint8x16_t lengths = vaddq_u8(neon::high_bytes<group>(block, k), vdupq_n_u8(1));
        if (first > 0) lengths = vsetq_lane_u8(0, lengths, 0);
        const uint8x16_t ends = neon::running_sums(lengths);
        const unsigned length = vgetq_lane_u8(ends, group - 1);
        // As in avx2.hpp, no block's unary parts are longer than a byte says.
        if (length + head.count > most_put) [[unlikely]]
            return Plain::put_unaries(writer, head, block, first, group, k);
        const uint8x16_t numbers = vsubq_u8(vdupq_n_u8(static_cast<std::uint8_t>(length)), ends);
        const std::uint64_t bits = neon::bits_of<group>(numbers) & low_bits_of<std::uint64_t>(length);
        writer.put(head.bits << length | bits, head.count + length);
    }

    // The unary parts of 8 or 16 samples; false, and nothing is read, where they are longer than a word.
    template <unsigned group>
    [[gnu::always_inline]] static bool get_unary_group(Reader<Family>& reader, unsigned first, std::uint8_t* high) {
        std::uint64_t bits = reader.peek();
        if (first > 0) bits = bits >> 1 | std::uint64_t{1} << 63;  // no zeros for a sample that is left out
        if (static_cast<unsigned>(std::popcount(bits)) < group) return false;
        std::size_t length = group - first;
        for (unsigned i = 0; i < group; ++i) {
            const auto zeros = static_cast<unsigned>(std::countl_zero(bits));
            high[i] = static_cast<std::uint8_t>(zeros);
            length += zeros;
            bits = bits << zeros << 1;
        }
        reader.skip(length);
        return true;
    }

    template <unsigned group>
    [[gnu::always_inline]] static bool is_at_most(const std::uint8_t* bytes, unsigned most) {
        return (group == 8 ? vmaxv_u8(vld1_u8(bytes)) : vmaxvq_u8(vld1q_u8(bytes))) <= most;
    }

    // Samples of their unary parts and the bits from `at` on: the bytes that a sample's bits are in go to a lane of
    // their own.
    template <unsigned group>
    [[gnu::always_inline]] static void join(const Reader<Family>& reader, std::size_t at, unsigned k,
                                            const std::uint8_t* high, std::uint8_t* block) {
        // in bounds: 16 × 5 bits and 7 more are in 11 bytes, and `reach` follow
        const uint8x16_t bytes = vld1q_u8(reader.byte_at(at));
        const auto right = vdupq_n_s16(static_cast<std::int16_t>(static_cast<int>(k) - 16));
        const auto left = vdup_n_s8(static_cast<std::int8_t>(k));
        static constexpr std::uint16_t numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
        uint16x8_t bit = vmlaq_n_u16(vdupq_n_u16(at % 8), vld1q_u16(numbers), static_cast<std::uint16_t>(k));
        for (unsigned i = 0; i < group; i += 8) {
            const uint16x8_t byte = vshrq_n_u16(bit, 3);
            const uint16x8_t pair = vmlaq_n_u16(vdupq_n_u16(0x0001), byte, 0x0101);  // the first byte is the high one
            const uint16x8_t wide = vreinterpretq_u16_u8(vqtbl1q_u8(bytes, vreinterpretq_u8_u16(pair)));
            const int16x8_t before = vreinterpretq_s16_u16(vandq_u16(bit, vdupq_n_u16(7)));
            const uint8x8_t low = vmovn_u16(vshlq_u16(vshlq_u16(wide, before), right));
            vst1_u8(block + i, vorr_u8(vshl_u8(vld1_u8(high + i), left), low));
            bit = vaddq_u16(bit, vdupq_n_u16(static_cast<std::uint16_t>(8 * k)));
        }
    }
    template <unsigned group>
    [[gnu::always_inline]] static void join(const Reader<Family>& reader, std::size_t at, unsigned k,
                                            const std::uint8_t* high, std::uint16_t* block) {
        // in bounds: 16 × 13 bits and 7 more are in 27 bytes
        const uint8x16x2_t bytes = {{vld1q_u8(reader.byte_at(at)), vld1q_u8(reader.byte_at(at) + 16)}};
        const auto right = vdupq_n_s32(static_cast<std::int32_t>(k) - 32);
        const auto left = vdupq_n_s16(static_cast<std::int16_t>(k));
        static constexpr std::uint32_t numbers[4] = {0, 1, 2, 3};
        uint32x4_t bit = vmlaq_n_u32(vdupq_n_u32(at % 8), vld1q_u32(numbers), k);
        const auto four = [&]() __attribute__((always_inline)) {
            const uint32x4_t byte = vshrq_n_u32(bit, 3);
            const uint32x4_t index = vmlaq_n_u32(vdupq_n_u32(0x00010203), byte, 0x01010101);
            const uint32x4_t wide = vreinterpretq_u32_u8(vqtbl2q_u8(bytes, vreinterpretq_u8_u32(index)));
            const int32x4_t before = vreinterpretq_s32_u32(vandq_u32(bit, vdupq_n_u32(7)));
            bit = vaddq_u32(bit, vdupq_n_u32(4 * k));
            return vmovn_u32(vshlq_u32(vshlq_u32(wide, before), right));
        };
        for (unsigned i = 0; i < group; i += 8) {
            const uint16x4_t first = four();
            const uint16x8_t low = vcombine_u16(first, four());
            vst1q_u16(block + i, vorrq_u16(vshlq_u16(vmovl_u8(vld1_u8(high + i)), left), low));
        }
    }

    // A block of 32 whose second half is too long for a word.
    template <class Sample>
    static bool get_split_rest(Reader<Family>& reader, const std::uint8_t* high, Sample* block, unsigned first,
                               unsigned k, Sample most) {
        for (unsigned i = first; i < 16; ++i) block[i] = static_cast<Sample>(high[i] << k);
        return Plain::get_unaries(reader, block, 16, 32, k, most) && Plain::add_low(reader, block, first, 32, k);
    }

    // Away from the ends of the range, samples are running sums of steps. From the first one that is not, the rest of a
    // register is done one by one.
    static void unmap16(const std::uint16_t* mapped, std::size_t count, std::uint16_t most, std::uint16_t* samples) {
        const uint16x8_t zero = vdupq_n_u16(0), tops = vdupq_n_u16(most);
        uint16x8_t last = vdupq_n_u16(samples[0]);
        // in bounds: `line_slack` samples follow
        for (std::size_t i = 0; i < count; i += 8) {
            const uint16x8_t value = vld1q_u16(mapped + i);
            const uint16x8_t odd =
                vreinterpretq_u16_s16(vshrq_n_s16(vreinterpretq_s16_u16(vshlq_n_u16(value, 15)), 15));
            const uint16x8_t step = veorq_u16(vshrq_n_u16(value, 1), odd);
            const uint16x8_t sample = vaddq_u16(last, neon::running_sums(step)), before = vsubq_u16(sample, step);
            const uint16x8_t near = vminq_u16(before, vsubq_u16(tops, before));
            const uint16x8_t is_near = vcgeq_u16(near, vrhaddq_u16(value, zero));
            const std::uint64_t near_bytes = vget_lane_u64(vreinterpret_u64_u8(vmovn_u16(is_near)), 0);
            vst1q_u16(samples + i, sample);
            if (near_bytes == ~std::uint64_t{0}) [[likely]] {
                last = vdupq_laneq_u16(sample, 7);
            } else {
                const auto good = static_cast<unsigned>(std::countr_one(near_bytes)) / 8;
                Plain::unmap_from(mapped, std::max<std::size_t>(i + good, 1), i + 8, most, samples);
                last = vdupq_n_u16(samples[i + 7]);
            }
        }
    }

    static void unmap8(const std::uint8_t* mapped, std::size_t count, std::uint8_t most, std::uint8_t* samples) {
        const uint8x16_t zero = vdupq_n_u8(0), tops = vdupq_n_u8(most);
        uint8x16_t last = vdupq_n_u8(samples[0]);
        for (std::size_t i = 0; i < count; i += 16) {
            const uint8x16_t value = vld1q_u8(mapped + i);
            const uint8x16_t odd = vreinterpretq_u8_s8(vshrq_n_s8(vreinterpretq_s8_u8(vshlq_n_u8(value, 7)), 7));
            const uint8x16_t step = veorq_u8(vshrq_n_u8(value, 1), odd);
            const uint8x16_t sample = vaddq_u8(last, neon::running_sums(step)), before = vsubq_u8(sample, step);
            const uint8x16_t near = vminq_u8(before, vsubq_u8(tops, before));
            const uint8x16_t is_near = vcgeq_u8(near, vrhaddq_u8(value, zero));
            // Four bits of each byte.
            const uint8x8_t nibbles = vshrn_n_u16(vreinterpretq_u16_u8(is_near), 4);
            const std::uint64_t near_bits = vget_lane_u64(vreinterpret_u64_u8(nibbles), 0);
            vst1q_u8(samples + i, sample);
            if (near_bits == ~std::uint64_t{0}) [[likely]] {
                last = vdupq_laneq_u8(sample, 15);
            } else {
                const auto good = static_cast<unsigned>(std::countr_one(near_bits)) / 4;
                Plain::unmap_from(mapped, std::max<std::size_t>(i + good, 1), i + 16, most, samples);
                last = vdupq_n_u8(samples[i + 15]);
            }
        }
    }
};

}  // namespace tamis::szip

// The steps of the coder in plain C++. A kernel's family derives from `Steps<itself>`, and replaces those that its
// instruction set does better; all results are the same.
//
// The standard is CCSDS 121.0-B-3, of which section 3 has the code options, and section 4 the preprocessor.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "tamis/szip/bits.hpp"
#include "tamis/szip/params.hpp"

namespace tamis::szip {

// Samples that may be read and written behind the last one of a line, so that vectors need no remainder.
inline constexpr std::size_t line_slack = 64;

// What the length of a block with split samples depends on, in one word: the sum of its samples >> k in 16 bits, the
// same of these halved and rounded up, and of half of them halved and rounded up.
using Tries = std::uint64_t;

// All blocks of a scan line, in columns.
template <class Sample>
struct Survey {
    using Sum = std::conditional_t<sizeof(Sample) == 4, std::uint64_t, std::uint32_t>;

    alignas(64) Sum sum[most_blocks];          // of the samples
    alignas(64) std::uint32_t k[most_blocks];  // that is tried, with the next two
    alignas(64) Tries tries[most_blocks];
    alignas(64) std::uint32_t nbits[most_blocks];     // of split samples, with the best k
    alignas(64) std::uint32_t least[most_blocks];     // k with this length,
    alignas(64) std::uint32_t greatest[most_blocks];  // and the greatest one
};

// Bits in front of those of a block, few enough to be written with the first ones.
struct Head {
    std::uint64_t bits = 0;
    unsigned count = 0;
};

template <class Sample>
constexpr Sample low_bits_of(unsigned count) {
    return count >= 8 * sizeof(Sample) ? static_cast<Sample>(~Sample{0})
                                       : static_cast<Sample>((std::uint64_t{1} << count) - 1);
}

template <class Family>
struct Steps {
    // Samples from bytes of their order.
    template <class Sample>
    static void load_line(const std::uint8_t* in, std::size_t count, bool big, Sample* samples) {
        std::memcpy(samples, in, count * sizeof(Sample));
        const bool swapped = sizeof(Sample) > 1 && big == (std::endian::native == std::endian::little);
        if (swapped)
            for (std::size_t i = 0; i < count; ++i) samples[i] = swap(samples[i]);
    }
    // Those that any of them has.
    template <class Sample>
    static Sample all_bits(const Sample* samples, std::size_t count) {
        Sample all = 0;
        for (std::size_t i = 0; i < count; ++i) all |= samples[i];
        return all;
    }

    template <class Sample>
    static void store_line(Sample* samples, std::size_t count, bool big, std::uint8_t* out) {
        const bool swapped = sizeof(Sample) > 1 && big == (std::endian::native == std::endian::little);
        if (swapped)
            for (std::size_t i = 0; i < count; ++i) samples[i] = swap(samples[i]);
        std::memcpy(out, samples, count * sizeof(Sample));
    }

    // Differences of neighbours as numbers that are not negative, the smallest first, as the standard's prediction
    // error mapper has it: within `near` of both sides of the last sample, differences up and down take turns; beyond,
    // only one side is left.
    template <class Sample>
    static void map(const Sample* samples, std::size_t count, Sample most, Sample* mapped) {
        mapped[0] = 0;
        for (std::size_t i = 1; i < count; ++i) {
            const Sample last = samples[i - 1], next = samples[i];
            const Sample near = std::min(last, static_cast<Sample>(most - last));
            const bool down = next < last;
            const auto distance = static_cast<Sample>(down ? last - next : next - last);
            mapped[i] = static_cast<Sample>(distance <= near ? 2 * distance - down : near + distance);
        }
    }

    // The samples again: `samples[0]` is the reference, `mapped[0]` 0, and mapped values are at most `most`.
    template <class Sample>
    static void unmap(const Sample* mapped, std::size_t count, Sample most, Sample* samples) {
        unmap_from(mapped, 1, count, most, samples);
    }
    template <class Sample>
    static void unmap_from(const Sample* mapped, std::size_t begin, std::size_t end, Sample most, Sample* samples) {
        // With z the distance from the middle of the range, steps to both sides are possible where z is between two
        // ends that the value alone determines: three operations one behind the other for each sample.
        const std::int32_t middle = static_cast<std::int32_t>(most / 2) + 1;
        std::int32_t z = static_cast<std::int32_t>(samples[begin - 1]) - middle;
        for (std::size_t i = begin; i < end; ++i) {
            const auto value = static_cast<std::int32_t>(mapped[i]);
            const std::int32_t half = (value >> 1) + (value & 1), step = (value >> 1) ^ -(value & 1);
            const bool both =
                static_cast<std::uint32_t>(z + middle - half) < 2 * static_cast<std::uint32_t>(middle - half);
            const std::int32_t from_end = ~(value - middle) ^ (z >> 31);
            z = from_end ^ ((from_end ^ (z + step)) & -static_cast<std::int32_t>(both));  // a branch is mispredicted
            samples[i] = static_cast<Sample>(z + middle);
        }
    }

    // How long blocks are with split samples. `first` is 1 if the first one begins with a reference, whose place is 0.
    //
    // Column by column, so that vectors do several blocks at once, and no step waits for a guess about the one before.
    template <class Sample, unsigned fixed>
    static void survey(const Sample* samples, unsigned blocks, unsigned pixels, unsigned first, Survey<Sample>& found) {
        const unsigned count = fixed > 0 ? fixed : pixels;
        for (unsigned i = 0; i < blocks; ++i)
            found.sum[i] = static_cast<typename Survey<Sample>::Sum>(Family::sum(samples + i * count, count));
        for (unsigned i = 0; i < blocks; ++i) found.k[i] = first_k<Sample>(found.sum[i] / (4 * count));
        if (first > 0) found.k[0] = first_k<Sample>(found.sum[0] / (4 * (count - 1)));
        Family::try_all(samples, blocks, count, found);
        for (unsigned i = 0; i < blocks; ++i) find_shortest(i, count, found);
        if (first > 0) find_shortest(0, count - 1, found);
    }

    // One bit more of k takes as many bits as there are samples, and saves the samples >> k, halved and rounded up.
    // With k the least for which the sum is below 4 × samples × 2^k, it saves more at k - 1, and less at k + 2.
    template <class Sample, class Sum>
    static std::uint32_t first_k(Sum share) {
        if constexpr (sizeof(Sample) < 4) {
            // The width of a number below 2^24 is in the exponent of a float, which vectors have.
            const auto exponent = static_cast<std::int32_t>(
                std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(share))) >> 23);
            return static_cast<std::uint32_t>(
                std::clamp<std::int32_t>(exponent - 126, 0, static_cast<std::int32_t>(Id<Sample>::most_k)));
        } else {
            return std::min(static_cast<unsigned>(std::bit_width(share)), Id<Sample>::most_k);
        }
    }

    // The ks with the shortest length are those from `least` to `greatest`.
    template <class Sample>
    static void find_shortest(unsigned i, std::uint32_t count, Survey<Sample>& found) {
        const std::uint32_t k = found.k[i], high = found.tries[i] & 0xffff;
        const std::uint32_t half = k < Id<Sample>::most_k ? found.tries[i] >> 16 & 0xffff : 0;
        const std::uint32_t half_of_half =
            k + 1 < Id<Sample>::most_k ? static_cast<std::uint32_t>(found.tries[i] >> 32) : 0;
        found.nbits[i] = high + count * (k + 3) - std::max(half, count) - std::max(half_of_half, count);
        found.least[i] = k + (half > count) + (half_of_half > count);
        found.greatest[i] = k + (half >= count) + (half_of_half >= count);
    }

    template <class Sample>
    static std::uint64_t sum(const Sample* block, unsigned pixels) {
        std::conditional_t<sizeof(Sample) == 4, std::uint64_t, std::uint32_t> total = 0;
        for (unsigned i = 0; i < pixels; ++i) total += block[i];
        return total;
    }

    template <class Sample>
    static void try_all(const Sample* samples, unsigned blocks, unsigned pixels, Survey<Sample>& found) {
        for (unsigned i = 0; i < blocks; ++i) found.tries[i] = tries(samples + i * pixels, pixels, found.k[i]);
    }
    // The sum of samples >> k is below 4 × pixels, or k is the largest one.
    template <class Sample>
    static Tries tries(const Sample* block, unsigned pixels, unsigned k) {
        std::uint32_t sum = 0, half = 0, half_of_half = 0;
        for (unsigned i = 0; i < pixels; ++i) {
            const auto high = static_cast<std::uint32_t>(block[i] >> k);
            sum += high;
            half += (high + 1) >> 1;
            half_of_half += ((high >> 1) + 1) >> 1;
        }
        return sum | Tries{half} << 16 | Tries{half_of_half} << 32;
    }

    // Numbers of the pairs of a block, whose samples' sum is at most `pixels`; returns the sum of the numbers.
    template <class Sample>
    static unsigned pair_numbers(const Sample* block, unsigned pixels, std::uint16_t* numbers) {
        unsigned total = 0;
        for (unsigned i = 0; i < pixels; i += 2) {
            const unsigned sum = block[i] + block[i + 1], number = sum * (sum + 1) / 2 + block[i + 1];
            numbers[i / 2] = static_cast<std::uint16_t>(number);
            total += number;
        }
        return total;
    }
    template <unsigned>
    static void put_pairs(Writer<Family>& writer, Head head, const std::uint16_t* numbers, unsigned count) {
        put_unaries(writer, head, numbers, 0, count, 0);
    }

    // Split samples from `first` on: what is above the lowest k bits in unary, then these bits.
    template <class Sample, unsigned>
    static void put_split(Writer<Family>& writer, Head head, const Sample* block, unsigned first, unsigned pixels,
                          unsigned k) {
        put_unaries(writer, head, block, first, pixels, k);
        if (k > 0) put_low(writer, block, first, pixels, k);
    }
    template <class Sample>
    static void put_unaries(Writer<Family>& writer, Head head, const Sample* block, unsigned first, unsigned pixels,
                            unsigned k) {
        auto [held, count] = head;
        for (unsigned i = first; i < pixels; ++i) {
            const auto zeros = static_cast<unsigned>(block[i] >> k);
            if (count + zeros + 1 > most_put) {
                if (count > 0) writer.put(held, count);
                held = count = 0;
                if (zeros >= most_put) {
                    writer.put_unary(zeros);
                    continue;
                }
            }
            held = held << (zeros + 1) | 1;
            count += zeros + 1;
        }
        if (count > 0) writer.put(held, count);
    }
    // The lowest `bits` bits of samples.
    template <class Sample>
    static void put_low(Writer<Family>& writer, const Sample* block, unsigned first, unsigned pixels, unsigned bits) {
        const Sample mask = low_bits_of<Sample>(bits);
        std::uint64_t held = 0;
        unsigned count = 0;
        for (unsigned i = first; i < pixels; ++i) {
            if (count + bits > most_put) {
                writer.put(held, count);
                held = count = 0;
            }
            held = held << bits | (block[i] & mask);
            count += bits;
        }
        writer.put(held, count);
    }

    // Returns false where the stream ends, or a value has more than `bits` bits; k < bits.
    template <class Sample, unsigned>
    static bool get_split(Reader<Family>& reader, Sample* block, unsigned first, unsigned pixels, unsigned k,
                          unsigned bits) {
        if (!get_unaries(reader, block, first, pixels, k, low_bits_of<Sample>(bits - k))) return false;
        return add_low(reader, block, first, pixels, k);
    }
    template <class Sample>
    static bool add_low(Reader<Family>& reader, Sample* block, unsigned first, unsigned pixels, unsigned k) {
        reader.ensure();
        if (k > 0)
            for (unsigned i = first; i < pixels; ++i) block[i] |= static_cast<Sample>(reader.get(k));
        return true;
    }
    template <class Sample>
    static bool get_unaries(Reader<Family>& reader, Sample* block, unsigned first, unsigned pixels, unsigned k,
                            Sample most) {
        std::uint64_t bits = reader.peek();
        for (unsigned i = first; i < pixels; ++i) {
            std::uint64_t high;
            if (bits != 0) [[likely]] {
                high = static_cast<unsigned>(std::countl_zero(bits));
                bits = bits << high << 1;
                reader.skip(high + 1);
            } else {
                high = reader.get_unary();
                if (reader.past_end()) return false;
                bits = reader.peek();
            }
            if (high > most) return false;
            block[i] = static_cast<Sample>(high << k);
        }
        return !reader.past_end();
    }

    template <class Sample>
    static void get_low(Reader<Family>& reader, Sample* block, unsigned pixels, unsigned bits) {
        for (unsigned i = 0; i < pixels; ++i) block[i] = static_cast<Sample>(reader.get(bits));
    }

private:
    template <class Sample>
    static Sample swap(Sample value) {
        if constexpr (sizeof(Sample) == 1)
            return value;
        else
            return zfp::byteswap(value);
    }
};

}  // namespace tamis::szip

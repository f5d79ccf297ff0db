// The steps of the coder in plain C++. A kernel's family derives from `Steps<itself>`, and replaces those that its
// instruction set does better; all results are the same.
//
// Sections and tables are those of CCSDS 121.0-B-3.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "tamis/szip/bits.hpp"
#include "tamis/szip/params.hpp"

namespace tamis::szip {

// Samples that may be read and written behind the last one of a line, so that vectors need no remainder.
inline constexpr std::size_t line_slack = 64;

// What the length of a block depends on, for three splits: k, k + 1 and k + 2.
struct Tries {
    unsigned high;     // sum of samples >> k
    unsigned half[2];  // sums of samples >> k and >> k + 1, halved and rounded up
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

    // Differences of neighbours as numbers that are not negative, the smallest first (4.3): within `near` of both
    // sides of the last sample, differences up and down take turns; beyond, only one side is left.
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

    template <class Sample>
    static std::uint64_t sum(const Sample* block, unsigned pixels) {
        std::conditional_t<sizeof(Sample) == 4, std::uint64_t, std::uint32_t> total = 0;
        for (unsigned i = 0; i < pixels; ++i) total += block[i];
        return total;
    }

    // The sum of samples >> k is below 4 × pixels.
    template <class Sample>
    static Tries tries(const Sample* block, unsigned pixels, unsigned k) {
        Tries found{};
        for (unsigned i = 0; i < pixels; ++i) {
            const auto high = static_cast<std::uint32_t>(block[i] >> k);
            found.high += high;
            found.half[0] += (high + 1) >> 1;
            found.half[1] += ((high >> 1) + 1) >> 1;
        }
        return found;
    }

    // Split samples (3.3) from `first` on: what is above the lowest k bits in unary, then these bits.
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

// Chunks for the tests of szip, and streams of other encoders than ours.
#pragma once

#include "filter_cases.hpp"
#include "tamis/szip/codec.hpp"

namespace tamis::tests {

// Mask, pixels of a block, bits of a pixel, pixels of a scan line.
inline Words random_szip_values(Random& random) {
    constexpr unsigned usual[] = {8, 16, 32, 64, 12, 24};
    const unsigned bits = random.one_in(3) ? 1 + below(random, 31) : usual[below(random, 6)];
    const unsigned pixels = random.one_in(3) ? 2 + 2 * below(random, 16) : 8u << below(random, 3);
    const unsigned more = below(random, random.one_in(2) ? 3 * pixels : (szip::most_blocks - 1) * pixels + 1);
    const unsigned line = random.one_in(3) ? (pixels + more) / pixels * pixels : pixels + more;
    return {128u | (random.one_in(2) ? 32u : 4u) | (random.one_in(2) ? 16u : 8u), pixels, bits, line};
}

// Pixels of a kind that some code option is for: smooth, noisy, constant in stretches, at the ends of their range.
inline Bytes random_pixels(Random& random, const Words& values, const szip::Params& params) {
    constexpr std::size_t most_samples = 12000;
    const unsigned bits = values[2], nbytes = params.pixel_nbytes();
    const std::size_t usual = random.one_in(4) ? 12 * values[3] : 3 * values[3];
    Bytes bytes(std::min(most_samples, 1 + random.below(usual)) * nbytes);
    const std::uint64_t most = filters::low_bits(bits);
    std::uint64_t value = random.bits() & most;
    unsigned noise = below(random, bits + 1);
    std::size_t stretch = 0;
    const std::size_t kind = random.below(6);
    for (std::size_t at = 0; at < bytes.size(); at += nbytes) {
        const std::uint64_t part = random.bits() & filters::low_bits(noise);
        if (kind == 0) value = part;
        if (kind == 1) value += part - filters::low_bits(noise) / 2;
        if (kind == 2 && stretch-- == 0) {
            stretch = random.below(random.one_in(2) ? 300 : 4000);
            value = random.bits();
        }
        if (kind == 3 && random.one_in(9)) value = random.one_in(2) ? 0 : most;
        if (kind == 4) value += random.below(3) - 1;
        if (kind >= 4 && random.one_in(400)) noise = below(random, bits + 1);
        if (kind == 5) value = most / 2 + part;
        const std::uint64_t kept = value & most;
        for (unsigned i = 0; i < nbytes; ++i)
            bytes[at + (params.coding.big ? nbytes - 1 - i : i)] = static_cast<std::uint8_t>(kept >> 8 * i);
    }
    return bytes;
}

// A stream by the definitions of CCSDS 121.0-B, bit by bit, in which chance takes the code options: no encoder's choice
// is what a decoder may rely on.
class AnyStream {
public:
    AnyStream(Random& random, const szip::Params& params) : random_(random), coding_(params.coding) {}

    // Samples, whose bytes are those of the coder.
    Bytes encode(const Bytes& samples) {
        const std::size_t size = coding_.sample_nbytes(), count = samples.size() / size;
        for (std::size_t first = 0; first < count; first += coding_.line) {
            std::vector<std::uint64_t> line;
            for (std::size_t i = first; i < std::min(count, first + coding_.line); ++i) {
                std::uint64_t value = 0;
                for (std::size_t byte = 0; byte < size; ++byte)
                    value |= std::uint64_t{samples[i * size + (coding_.big ? size - 1 - byte : byte)]} << 8 * byte;
                line.push_back(value);
            }
            line.resize(std::size_t{coding_.blocks()} * coding_.pixels, line.back());
            put_line(line);
        }
        Bytes bytes((bits_.size() + 7) / 8);
        for (std::size_t i = 0; i < bits_.size(); ++i)
            if (bits_[i]) bytes[i / 8] = static_cast<std::uint8_t>(bytes[i / 8] | 0x80 >> i % 8);
        return bytes;
    }

private:
    void put(std::uint64_t value, unsigned count) {
        for (unsigned i = count; i-- > 0;) bits_.push_back(value >> i & 1);
    }
    void put_unary(std::uint64_t zeros) {
        bits_.insert(bits_.end(), zeros, false);
        bits_.push_back(true);
    }
    unsigned id_bits() const { return coding_.bits <= 8 ? 3 : coding_.bits <= 16 ? 4 : 5; }

    void put_line(const std::vector<std::uint64_t>& line) {
        std::vector<std::uint64_t> mapped = line;
        if (coding_.differences) {
            const std::uint64_t most = filters::low_bits(coding_.bits);
            for (std::size_t i = 1; i < line.size(); ++i) {
                const std::uint64_t near = std::min(line[i - 1], most - line[i - 1]);
                const std::uint64_t up = line[i] - line[i - 1], down = line[i - 1] - line[i];
                const std::uint64_t distance = line[i] >= line[i - 1] ? up : down;
                mapped[i] = distance > near ? near + distance : line[i] >= line[i - 1] ? 2 * up : 2 * down - 1;
            }
            mapped[0] = 0;
        }
        for (std::size_t number = 0; number < coding_.blocks();) number += put_blocks(mapped, number, line[0]);
    }

    bool is_zero(const std::vector<std::uint64_t>& mapped, std::size_t number) const {
        const auto first = mapped.begin() + static_cast<std::ptrdiff_t>(number * coding_.pixels);
        return std::all_of(first, first + coding_.pixels, [](std::uint64_t value) { return value == 0; });
    }

    // One block, or a run of zero blocks; returns their number.
    std::size_t put_blocks(const std::vector<std::uint64_t>& mapped, std::size_t number, std::uint64_t reference) {
        const bool with_reference = coding_.differences && number == 0;
        std::size_t zeros = 0;
        while (number + zeros < coding_.blocks() && is_zero(mapped, number + zeros)) ++zeros;
        if (zeros > 0 && !random_.one_in(4)) {
            const std::size_t run = random_.one_in(2) ? zeros : 1 + random_.below(zeros);
            const std::size_t rest = std::min<std::size_t>(coding_.blocks() - number, 64 - number % 64);
            put(0, id_bits() + 1);
            if (with_reference) put(reference, coding_.bits);
            const bool is_rest = run == rest && random_.one_in(2);
            put_unary(is_rest ? 4 : run < 5 ? run - 1 : run);
            return run;
        }
        const std::uint64_t* const block = mapped.data() + number * coding_.pixels;
        const unsigned first = with_reference ? 1 : 0;
        const unsigned k = below(random_, std::min(coding_.bits, (1u << id_bits()) - 2));
        std::uint64_t high = 0, largest_pair = 0;
        for (unsigned i = 0; i < coding_.pixels; ++i) high += block[i] >> k;
        for (unsigned i = 0; i < coding_.pixels; i += 2) largest_pair = std::max(largest_pair, block[i] + block[i + 1]);
        if (largest_pair <= 12 && random_.one_in(2)) {
            put(1, id_bits() + 1);
            if (with_reference) put(reference, coding_.bits);
            for (unsigned i = 0; i < coding_.pixels; i += 2) {
                const std::uint64_t sum = block[i] + block[i + 1];
                put_unary(sum * (sum + 1) / 2 + block[i + 1]);
            }
        } else if (high < 3000 && !random_.one_in(5)) {
            put(k + 1, id_bits());
            if (with_reference) put(reference, coding_.bits);
            for (unsigned i = first; i < coding_.pixels; ++i) put_unary(block[i] >> k);
            for (unsigned i = first; i < coding_.pixels; ++i) put(block[i], k);
        } else {
            put((1u << id_bits()) - 1, id_bits());
            if (with_reference) put(reference, coding_.bits);
            for (unsigned i = first; i < coding_.pixels; ++i) put(block[i], coding_.bits);
        }
        return 1;
    }

    Random& random_;
    const szip::Coding coding_;
    std::vector<bool> bits_;
};

// Of pixels, whose bytes go to planes as in codec.hpp.
inline Bytes any_szip_stream(Random& random, const szip::Params& params, const Bytes& pixels) {
    Bytes samples = pixels;
    const std::size_t count = pixels.size() / params.planes;
    for (std::size_t i = 0; i < pixels.size(); ++i) samples[i % params.planes * count + i / params.planes] = pixels[i];
    return AnyStream(random, params).encode(samples);
}

}  // namespace tamis::tests

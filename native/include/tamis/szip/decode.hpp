// Samples from their stream, one scan line after the other.
#pragma once

#include <array>
#include <utility>

#include "tamis/szip/steps.hpp"

namespace tamis::szip {

namespace detail {

// A number of the second-extension option is a sum's triangle and the second sample of a pair. Sums up to 12 occur, as
// in libaec: beyond, split samples are shorter.
inline constexpr unsigned most_pair_sum = 12, most_pair = most_pair_sum * (most_pair_sum + 3) / 2;

struct Pair {
    std::uint8_t first, second;
};

constexpr auto pair_table = [] {
    std::array<Pair, most_pair + 1> made{};
    for (std::uint8_t sum = 0, i = 0; sum <= most_pair_sum; ++sum)
        for (std::uint8_t second = 0; second <= sum; ++second, ++i)
            made[i] = {static_cast<std::uint8_t>(sum - second), second};
    return made;
}();

template <class Family, class Sample, unsigned fixed>
class LineDecoder {
public:
    LineDecoder(const Coding& coding, std::span<const std::uint8_t> in) : coding_(coding), reader_(in) {}

    // The first `count` samples of the next line.
    Code decode(std::size_t count, std::uint8_t* out) {
        const std::size_t wanted = (count + pixels() - 1) / pixels();
        Sample* const coded = coding_.differences ? mapped_ : samples_;
        for (std::size_t number = 0; number < wanted;) {
            std::size_t done = 1;
            if (!block(coded + number * pixels(), number, done))
                return reader_.past_end() ? Code::truncated : Code::damaged;
            if (reader_.past_end()) return Code::truncated;
            number += done;
        }
        if (coding_.differences) {
            samples_[0] = std::exchange(mapped_[0], Sample{0});
            std::fill_n(mapped_ + wanted * pixels(), line_slack, Sample{0});
            Family::unmap(mapped_, wanted * pixels(), low_bits_of<Sample>(coding_.bits), samples_);
        }
        Family::store_line(samples_, count, coding_.big, out);
        return Code::ok;
    }

private:
    unsigned pixels() const { return fixed > 0 ? fixed : coding_.pixels; }

    // One block, or `done` that are zero. A reference sample stands in the place of the first mapped value.
    bool block(Sample* block, std::size_t number, std::size_t& done) {
        reader_.ensure();
        const unsigned first = coding_.differences && number == 0 ? 1 : 0;
        const auto id = static_cast<unsigned>(reader_.get(Id<Sample>::bits));
        if (id == Id<Sample>::low_entropy) {
            const bool is_pairs = reader_.get(1) != 0;
            if (first > 0) block[0] = static_cast<Sample>(reader_.get(coding_.bits));
            return is_pairs ? second_extension(block, first) : zeros(block, first, number, done);
        }
        if (id == Id<Sample>::verbatim) {
            Family::get_low(reader_, block, pixels(), coding_.bits);
            return true;
        }
        if (first > 0) block[0] = static_cast<Sample>(reader_.get(coding_.bits));
        const unsigned k = id - 1;
        // With more bits, no value would be shorter than in the verbatim option.
        if (k >= coding_.bits) return false;
        return Family::template get_split<Sample, fixed>(reader_, block, first, pixels(), k, coding_.bits);
    }

    bool zeros(Sample* block, unsigned first, std::size_t number, std::size_t& done) {
        constexpr std::uint64_t rest = 4;
        const std::size_t left = coding_.blocks() - number;
        const std::uint64_t unary = reader_.get_unary();
        if (reader_.past_end()) return false;
        if (unary == rest)
            done = std::min<std::size_t>(left, segment_blocks - number % segment_blocks);
        else if (unary > left)
            return false;
        else
            done = static_cast<std::size_t>(unary < rest ? unary + 1 : unary);
        if (done > left) return false;
        std::fill(block + first, block + done * pixels(), Sample{0});
        return true;
    }

    bool second_extension(Sample* block, unsigned first) {
        const Sample most = low_bits_of<Sample>(coding_.bits);
        Sample numbers[most_pixels / 2];
        if (!Family::template get_unaries<Sample>(reader_, numbers, 0, pixels() / 2, 0, Sample{most_pair}))
            return false;
        const Sample reference = block[0];
        for (unsigned i = 0; i < pixels() / 2; ++i) {
            const Pair pair = pair_table[numbers[i]];
            if (pair.first > most || pair.second > most) return false;
            block[2 * i] = pair.first;
            block[2 * i + 1] = pair.second;
        }
        if (first > 0) block[0] = reference;
        return true;
    }

    const Coding coding_;
    Reader<Family> reader_;
    alignas(64) Sample samples_[most_pixels * most_blocks + line_slack];
    alignas(64) Sample mapped_[most_pixels * most_blocks + line_slack];
};

}  // namespace detail

// `count` samples; nothing behind them in the stream is looked at.
template <class Family, class Sample, unsigned fixed>
Status decode_samples(const Coding& coding, std::span<const std::uint8_t> in, std::uint8_t* out, std::size_t count) {
    detail::LineDecoder<Family, Sample, fixed> decoder(coding, in);
    for (std::size_t i = 0; i < count; i += coding.line) {
        const Code code = decoder.decode(std::min<std::size_t>(coding.line, count - i), out + i * sizeof(Sample));
        if (code != Code::ok) return {code, i};
    }
    return {};
}

}  // namespace tamis::szip

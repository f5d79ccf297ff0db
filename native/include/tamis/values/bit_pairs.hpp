// How often each bit is set in neighbouring values, and in both: of many pairs at a time, by adders that carry between
// words (Harley and Seal), so that a bit of 16 words takes one operation instead of 16.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tamis::values {

// Counts of set bits, the lowest bit first, in a stream of words.
template <class Word>
class BitCounter {
public:
    static constexpr std::size_t nbits = 8 * sizeof(Word), lanes = 32 / sizeof(Word), at_once = 16 * lanes;

    // Add `at_once` words.
    void add(const Word* words) {
        Lanes twos_a, twos_b, fours_a, fours_b, eights_a, eights_b, sixteens;
        const auto pair = [&](std::size_t at) { carry(twos_a, ones_, words + at * lanes, words + (at + 1) * lanes); };
        const auto four = [&](std::size_t at, Lanes& fours) {
            pair(at);
            twos_b = twos_a;
            pair(at + 2);
            carry(fours, twos_, twos_a.data(), twos_b.data());
        };
        const auto eight = [&](std::size_t at, Lanes& eights) {
            four(at, fours_a);
            four(at + 4, fours_b);
            carry(eights, fours_, fours_a.data(), fours_b.data());
        };
        eight(0, eights_a);
        eight(8, eights_b);
        carry(sixteens, eights_, eights_a.data(), eights_b.data());
        count(sixteens, 16);
    }

    // The counts of all words that were added; nothing may be added afterwards.
    const std::array<std::uint64_t, nbits>& finish() {
        count(eights_, 8);
        count(fours_, 4);
        count(twos_, 2);
        count(ones_, 1);
        return counts_;
    }

private:
    using Lanes = std::array<Word, lanes>;

    // Add two words to `sum` in each bit; what does not fit is the carry.
    static void carry(Lanes& out, Lanes& sum, const Word* first, const Word* second) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const Word half = sum[lane] ^ first[lane];
            out[lane] = (sum[lane] & first[lane]) | (half & second[lane]);
            sum[lane] = half ^ second[lane];
        }
    }

    void count(const Lanes& words, std::uint64_t weight) {
        for (std::size_t bit = 0; bit < nbits; ++bit) {
            Word set = 0;
            for (std::size_t lane = 0; lane < lanes; ++lane) set += words[lane] >> bit & 1;
            counts_[bit] += weight * set;
        }
    }

    Lanes ones_{}, twos_{}, fours_{}, eights_{};
    std::array<std::uint64_t, nbits> counts_{};
};

// A float whose exponent is a sign and a magnitude instead of a number with an offset, as BitInformation.jl and
// xbitinfo count its bits: near 1, where the sign of the exponent changes, the offset would change all of them.
template <class Word>
constexpr Word with_signed_exponent(Word word) {
    constexpr int fraction = sizeof(Word) == 4 ? 23 : 52;
    constexpr Word most = sizeof(Word) == 4 ? 0xff : 0x7ff, bias = most / 2;
    const Word exponent = word >> fraction & most;
    const bool negative = exponent < bias;
    const Word magnitude = negative ? bias - exponent : exponent - bias;
    const Word sign = static_cast<Word>(negative) << (fraction + (sizeof(Word) == 4 ? 7 : 10));
    return (word & ~static_cast<Word>(most << fraction)) | static_cast<Word>(magnitude << fraction) | sign;
}

// Counts of pairs of neighbours along an axis.
template <class Word>
class BitPairs {
public:
    using Counts = std::array<std::uint64_t, BitCounter<Word>::nbits>;

    // Add `count` pairs of words that lie `step` apart; `valid` is null, or tells which words count.
    void add(const Word* words, const bool* valid, std::size_t step, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            if (valid != nullptr && !(valid[i] && valid[i + step])) continue;
            const Word first = with_signed_exponent(words[i]), second = with_signed_exponent(words[i + step]);
            first_[filled_] = first;
            second_[filled_] = second;
            both_[filled_] = first & second;
            ++pair_count_;
            if (++filled_ == room) flush();
        }
    }

    struct Result {
        std::uint64_t pair_count;
        Counts first, second, both;
    };

    // The counts of all pairs; nothing may be added afterwards.
    Result finish() {
        for (std::size_t i = filled_; i < room; ++i) first_[i] = second_[i] = both_[i] = 0;
        flush();
        return {pair_count_, count_first_.finish(), count_second_.finish(), count_both_.finish()};
    }

private:
    static constexpr std::size_t at_once = BitCounter<Word>::at_once, room = 4 * at_once;

    void flush() {
        for (std::size_t at = 0; at < room; at += at_once) {
            count_first_.add(first_.data() + at);
            count_second_.add(second_.data() + at);
            count_both_.add(both_.data() + at);
        }
        filled_ = 0;
    }

    std::array<Word, room> first_, second_, both_;
    std::size_t filled_ = 0;
    std::uint64_t pair_count_ = 0;
    BitCounter<Word> count_first_, count_second_, count_both_;
};

// Of an array of `outer` parts with `extent` steps of `inner` words: pairs of neighbouring steps.
template <class Word>
typename BitPairs<Word>::Result bit_pairs(const Word* words, const bool* valid, std::size_t outer, std::size_t extent,
                                          std::size_t inner) {
    BitPairs<Word> pairs;
    const std::size_t part = extent * inner;
    for (std::size_t i = 0; i < outer && extent > 1; ++i)
        pairs.add(words + i * part, valid == nullptr ? nullptr : valid + i * part, inner, part - inner);
    return pairs.finish();
}

}  // namespace tamis::values

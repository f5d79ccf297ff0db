// Samples encoded, or the length of their stream found, one scan line after the other.
//
// Of the code options of a block the shortest is taken, among equals the one that libaec takes: streams are the same,
// byte by byte. libaec searches k from that of the last block on, downhill; the length is convex in k, so it ends at
// the best k that is nearest to the last block's.
#pragma once

#include "tamis/szip/steps.hpp"

namespace tamis::szip {

// A code option of a block, and its bits beside the option's id and a reference sample.
enum class Option : std::uint8_t { split, second_extension, verbatim };

struct Choice {
    Option option;
    unsigned k;  // of split samples
    std::uint32_t nbits;
    std::uint16_t pairs[most_pixels / 2];  // numbers of the second extension
};

namespace detail {

// Takes the length of what would be written.
template <class Family, class Sample, unsigned fixed>
class Counter {
public:
    std::uint64_t nbits() const { return nbits_; }

    void zeros(unsigned reference_bits, std::uint32_t, unsigned unary) {
        nbits_ += Id<Sample>::bits + 1 + reference_bits + unary + 1;
    }
    void block(const Choice& choice, Sample*, unsigned, unsigned first, unsigned bits, Sample) {
        nbits_ += Id<Sample>::bits + first * bits + choice.nbits;
    }

private:
    std::uint64_t nbits_ = 0;
};

// Writes it.
template <class Family, class Sample, unsigned fixed>
class Coder {
public:
    Writer<Family> writer;

    // A run of zero blocks, with a reference of so many bits or of none.
    void zeros(unsigned reference_bits, std::uint32_t reference, unsigned unary) {
        writer.put(Id<Sample>::low_entropy, Id<Sample>::bits + 1);
        if (reference_bits > 0) writer.put(reference, reference_bits);
        writer.put_unary(unary);
    }

    // A block, with a reference in the place of its first sample if `first` is 1.
    [[gnu::always_inline]] void block(const Choice& choice, Sample* block, unsigned pixels, unsigned first,
                                      unsigned bits, Sample reference) {
        if (choice.option == Option::split) {
            Head head{choice.k + 1, Id<Sample>::bits};
            if (first > 0) put_with_reference(head, reference, bits);
            Family::template put_split<Sample, fixed>(writer, head, block, first, pixels, choice.k);
        } else if (choice.option == Option::verbatim) {
            writer.put(Id<Sample>::verbatim, Id<Sample>::bits);
            if (first > 0) block[0] = reference;
            Family::put_low(writer, block, 0, pixels, bits);
        } else {
            Head head{Id<Sample>::low_entropy << 1 | 1, Id<Sample>::bits + 1};
            if (first > 0) put_with_reference(head, reference, bits);
            Family::template put_pairs<fixed / 2>(writer, head, choice.pairs, pixels / 2);
        }
    }

private:
    void put_with_reference(Head& head, Sample reference, unsigned bits) {
        writer.put(head.bits, head.count);
        writer.put(reference, bits);
        head = {};
    }
};

// A scan line: differences and options of its blocks.
//
// `last_k` is the k of the last block, which libaec keeps also where another option is taken.
template <class Family, class Sample, unsigned fixed>
class LineEncoder {
public:
    explicit LineEncoder(const Coding& coding) : coding_(coding) {}

    // `count` samples, at most those of a line; the last one, or 0 without differences, fills the line's blocks.
    // Returns false if a sample has more bits than the coding says.
    bool load(const std::uint8_t* in, std::size_t count) {
        const std::size_t whole = std::size_t{coding_.blocks()} * pixels();
        const Sample most = low_bits_of<Sample>(coding_.bits);
        Family::load_line(in, count, coding_.big, samples_);
        if (coding_.bits < 8 * sizeof(Sample) && Family::all_bits(samples_, count) > most) return false;
        std::fill(samples_ + count, samples_ + whole, coding_.differences ? samples_[count - 1] : Sample{0});
        if (coding_.differences) Family::map(samples_, whole, most, mapped_);
        return true;
    }

    template <class Sink>
    void encode(Sink& sink) {
        constexpr unsigned rest_of_segment = 4;  // in the place of a run of 5 blocks: the standard's ROS
        const unsigned blocks = coding_.blocks(), bits = coding_.bits, count = pixels();
        const bool differences = coding_.differences;
        Sample* block = differences ? mapped_ : samples_;
        const Sample reference = samples_[0];
        Family::template survey<Sample, fixed>(block, blocks, count, differences ? 1 : 0, survey_);
        unsigned zeros = 0, last_k = last_k_;  // zero blocks that are still to be written
        const auto put_zeros = [&](unsigned end, unsigned unary) {
            sink.zeros(differences && zeros == end ? bits : 0, reference, unary);
            zeros = 0;
        };
        Choice choice;
        for (unsigned number = 0; number < blocks; ++number, block += count) {
            const unsigned first = differences && number == 0 ? 1 : 0;
            if (survey_.sum[number] == 0) {
                ++zeros;
                if (number + 1 == blocks || (number + 1) % segment_blocks == 0)
                    put_zeros(number + 1, std::min(zeros - 1, rest_of_segment));
                continue;
            }
            if (zeros > 0) put_zeros(number, zeros > rest_of_segment ? zeros : zeros - 1);
            last_k = std::clamp(last_k, survey_.least[number], survey_.greatest[number]);
            choice.k = last_k;
            choose(number, block, (count - first) * bits, choice);
            sink.block(choice, block, count, first, bits, reference);
        }
        last_k_ = last_k;
    }

private:
    unsigned pixels() const { return fixed > 0 ? fixed : coding_.pixels; }

    [[gnu::always_inline]] void choose(unsigned number, const Sample* block, std::uint32_t verbatim_nbits,
                                       Choice& choice) const {
        const std::uint32_t split_nbits = survey_.nbits[number];
        choice.option = split_nbits < verbatim_nbits ? Option::split : Option::verbatim;
        choice.nbits = std::min(split_nbits, verbatim_nbits);
        if (survey_.sum[number] > pixels()) return;  // the second extension is longer than split samples with k = 0
        // One bit tells the option from a run of zero blocks, the others end the pairs.
        const std::uint32_t nbits = 1 + pixels() / 2 + Family::pair_numbers(block, pixels(), choice.pairs);
        if (nbits > split_nbits || nbits >= verbatim_nbits + (split_nbits < verbatim_nbits)) return;
        choice.option = Option::second_extension;
        choice.nbits = nbits;
    }

    const Coding coding_;
    unsigned last_k_ = 0;  // of the last block that was no zero block, also in another line
    Survey<Sample> survey_;
    alignas(64) Sample samples_[most_pixels * most_blocks + line_slack];
    alignas(64) Sample mapped_[most_pixels * most_blocks + line_slack];
};

// Bytes that no stream of a scan line is longer than.
inline constexpr std::size_t most_line_nbytes =
    (most_blocks * (most_pixels * most_sample_bits + 16) + 7) / 8 + Writer<void>::slack;

constexpr std::size_t line_nbytes(const Coding& coding) {
    return (std::size_t{coding.blocks()} * (coding.pixels * coding.bits + 16) + 7) / 8 + Writer<void>::slack;
}

}  // namespace detail

// The stream of `count` samples; `nbytes` of `out` are filled.
template <class Family, class Sample, unsigned fixed>
Status encode_samples(const Coding& coding, const std::uint8_t* in, std::size_t count, std::span<std::uint8_t> out,
                      std::size_t& nbytes) {
    detail::LineEncoder<Family, Sample, fixed> line(coding);
    detail::Coder<Family, Sample, fixed> coder;
    std::uint8_t staged[detail::most_line_nbytes];
    const std::size_t room_of_line = detail::line_nbytes(coding);
    std::uint8_t* next = out.data();
    std::uint8_t* const end = next + out.size();
    for (std::size_t i = 0; i < count; i += coding.line) {
        if (!line.load(in + i * sizeof(Sample), std::min<std::size_t>(coding.line, count - i)))
            return {Code::too_wide, i};
        const auto room = static_cast<std::size_t>(end - next);
        const bool direct = room >= room_of_line;
        coder.writer.move_to(direct ? next : staged);
        line.encode(coder);
        if (direct) {
            next = coder.writer.out();
            continue;
        }
        const auto length = static_cast<std::size_t>(coder.writer.out() - staged);
        if (length > room) return {Code::no_room, out.size()};
        next = std::copy_n(staged, length, next);
    }
    if (coder.writer.has_rest()) {
        if (next == end) return {Code::no_room, out.size()};
        *next++ = coder.writer.rest();
    }
    nbytes = static_cast<std::size_t>(next - out.data());
    return {};
}

// The length of that stream.
template <class Family, class Sample, unsigned fixed>
Status measure_samples(const Coding& coding, const std::uint8_t* in, std::size_t count, std::size_t& nbytes) {
    detail::LineEncoder<Family, Sample, fixed> line(coding);
    detail::Counter<Family, Sample, fixed> counter;
    for (std::size_t i = 0; i < count; i += coding.line) {
        if (!line.load(in + i * sizeof(Sample), std::min<std::size_t>(coding.line, count - i)))
            return {Code::too_wide, i};
        line.encode(counter);
    }
    nbytes = static_cast<std::size_t>((counter.nbits() + 7) / 8);
    return {};
}

}  // namespace tamis::szip

// Samples encoded, or the length of their stream found, one scan line after the other.
//
// Of the code options of a block the shortest is taken, among equals the one that libaec takes: streams are the same,
// byte by byte. libaec searches k from that of the last block on, downhill; the length is convex in k, so its k is the
// one of the shortest that is nearest to the last block's, which `choose` computes.
#pragma once

#include "tamis/szip/steps.hpp"

namespace tamis::szip {

// A code option of a block, and its bits beside the option's id and a reference sample.
enum class Option : std::uint8_t { split, second_extension, verbatim };

struct Choice {
    Option option;
    unsigned k;
    std::uint64_t nbits;
};

namespace detail {

// The second extension (3.4.2) codes pairs as one number, which is the sum's triangle and the second sample.
template <class Family, class Sample>
std::uint64_t second_extension_nbits(const Sample* block, unsigned pixels) {
    std::uint64_t nbits = 1;  // it tells the option from a run of zero blocks
    for (unsigned i = 0; i < pixels; i += 2) {
        const std::uint64_t sum = std::uint64_t{block[i]} + block[i + 1];
        nbits += sum * (sum + 1) / 2 + block[i + 1] + 1;
    }
    return nbits;
}

// `sum` is that of the samples, above 0. `first` is 1 in a block that begins with a reference, whose place in `block`
// is 0. `k` is that of the last block, and becomes that of this one, which libaec keeps also where it is not used.
template <class Family, class Sample, unsigned fixed>
Choice choose(const Sample* block, std::uint64_t sum, unsigned first, const Coding& coding, unsigned& last_k) {
    const unsigned pixels = fixed > 0 ? fixed : coding.pixels, count = pixels - first, most_k = coding.most_k();
    // Samples halved and rounded up are worth as many bits in unary as one bit more of k saves. With k the least for
    // which the sum is below 4 × count × 2^k, none shorter is below k, and none above k + 2.
    const std::uint64_t share = fixed > 0 && first == 0 ? sum / (4 * fixed) : sum / (4 * count);
    const unsigned k = std::min(static_cast<unsigned>(std::bit_width(share)), most_k);
    const Tries tries = Family::tries(block, pixels, k);
    std::uint64_t nbits = tries.high + std::uint64_t{count} * (k + 1);
    unsigned shortest = k, longest_k = k;  // of the ks with the shortest length
    for (unsigned i = 0; i < 2 && k + i < most_k; ++i) {
        if (tries.half[i] < count) break;
        nbits -= tries.half[i] - count;
        shortest += tries.half[i] > count;
        ++longest_k;
    }
    last_k = std::clamp(last_k, shortest, longest_k);

    const std::uint64_t verbatim_nbits = std::uint64_t{count} * coding.bits;
    if (sum <= pixels) {  // else the second extension is longer than k = 0
        const std::uint64_t pairs_nbits = second_extension_nbits<Family>(block, pixels);
        const bool fits = pairs_nbits <= verbatim_nbits;
        if (fits && pairs_nbits <= nbits && (nbits < verbatim_nbits || pairs_nbits < verbatim_nbits))
            return {Option::second_extension, 0, pairs_nbits};
    }
    if (nbits < verbatim_nbits) return {Option::split, last_k, nbits};
    return {Option::verbatim, 0, verbatim_nbits};
}

// Takes the length of what is to be written.
template <class Family>
class Counter {
public:
    std::uint64_t nbits() const { return nbits_; }

    void zeros(const Coding& coding, bool with_reference, std::uint64_t unary) {
        nbits_ += coding.id_bits() + 1 + (with_reference ? coding.bits : 0) + unary + 1;
    }
    template <class Sample, unsigned fixed>
    void block(const Choice& choice, const Coding& coding, Sample*, unsigned first, Sample) {
        nbits_ += coding.id_bits() + first * coding.bits + choice.nbits;
    }

private:
    std::uint64_t nbits_ = 0;
};

template <class Family>
class Coder {
public:
    Writer<Family> writer;

    void zeros(const Coding& coding, bool with_reference, std::uint64_t unary, std::uint32_t reference) {
        writer.put(0, coding.id_bits() + 1);
        if (with_reference) writer.put(reference, coding.bits);
        writer.put_unary(unary);
    }
    template <class Sample, unsigned fixed>
    void block(const Choice& choice, const Coding& coding, Sample* block, unsigned first, Sample reference) {
        const unsigned pixels = fixed > 0 ? fixed : coding.pixels;
        if (choice.option == Option::split) {
            writer.put(choice.k + 1, coding.id_bits());
            if (first > 0) writer.put(reference, coding.bits);
            Family::template put_split<Sample, fixed>(writer, block, first, pixels, choice.k);
        } else if (choice.option == Option::verbatim) {
            writer.put((1u << coding.id_bits()) - 1, coding.id_bits());
            if (first > 0) block[0] = reference;
            Family::put_low(writer, block, 0, pixels, coding.bits);
        } else {
            writer.put(1, coding.id_bits() + 1);
            if (first > 0) writer.put(reference, coding.bits);
            for (unsigned i = 0; i < pixels; i += 2) {
                const unsigned sum = block[i] + block[i + 1];
                writer.put_unary(sum * (sum + 1) / 2 + block[i + 1]);
            }
        }
    }
};

// A scan line: differences and options of its blocks.
template <class Family, class Sample, unsigned fixed>
class LineEncoder {
public:
    explicit LineEncoder(const Coding& coding) : coding_(coding) {}

    // `count` samples, at most those of a line; the last one, or 0 without differences, fills the line's blocks.
    // Returns false if a sample has more bits than the coding says.
    bool load(const std::uint8_t* in, std::size_t count) {
        const std::size_t whole = std::size_t{coding_.blocks()} * pixels();
        const Sample most = low_bits_of<Sample>(coding_.bits);
        const Sample all = Family::load_line(in, count, coding_.big, samples_);
        if (all > most) return false;
        std::fill(samples_ + count, samples_ + whole, coding_.differences ? samples_[count - 1] : Sample{0});
        if (coding_.differences) Family::map(samples_, whole, most, mapped_);
        return true;
    }

    template <class Sink>
    void encode(Sink& sink) {
        Sample* block = coding_.differences ? mapped_ : samples_;
        const Sample reference = samples_[0];
        const unsigned blocks = coding_.blocks();
        unsigned zeros = 0;  // zero blocks that are still to be written, which have the reference if they are the first
        const auto put_zeros = [&](unsigned before, bool rest_of_segment) {
            // A run (3.4.3) of 1 to 4 blocks, `rest` in the place of 5, and then one more than the blocks.
            constexpr unsigned rest = 4;
            const unsigned unary = rest_of_segment && zeros > rest ? rest : zeros > rest ? zeros : zeros - 1;
            const bool with_reference = coding_.differences && zeros == before;
            if constexpr (requires { sink.writer; })
                sink.zeros(coding_, with_reference, unary, reference);
            else
                sink.zeros(coding_, with_reference, unary);
            zeros = 0;
        };
        for (unsigned number = 0; number < blocks; ++number, block += pixels()) {
            const unsigned first = coding_.differences && number == 0 ? 1 : 0;
            const std::uint64_t sum = Family::sum(block, pixels());
            if (sum == 0) {
                ++zeros;
                if (number + 1 == blocks || (number + 1) % segment_blocks == 0) put_zeros(number + 1, true);
                continue;
            }
            if (zeros > 0) put_zeros(number, false);
            const Choice choice = choose<Family, Sample, fixed>(block, sum, first, coding_, k_);
            sink.template block<Sample, fixed>(choice, coding_, block, first, reference);
        }
    }

private:
    unsigned pixels() const { return fixed > 0 ? fixed : coding_.pixels; }

    const Coding& coding_;
    unsigned k_ = 0;  // of the last block that was no zero block, also in another line
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
    detail::Coder<Family> coder;
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
    detail::Counter<Family> counter;
    for (std::size_t i = 0; i < count; i += coding.line) {
        if (!line.load(in + i * sizeof(Sample), std::min<std::size_t>(coding.line, count - i)))
            return {Code::too_wide, i};
        line.encode(counter);
    }
    nbytes = static_cast<std::size_t>((counter.nbits() + 7) / 8);
    return {};
}

}  // namespace tamis::szip

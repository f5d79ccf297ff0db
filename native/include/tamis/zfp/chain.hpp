// Where blocks of any length begin, found from several places of a stream at once.
//
// Where a block ends is known when it has been read, and where it begins when the one before it has ended. But a block
// depends on nothing before it: read on from any bit whatever, and as soon as a block happens to end where a true one
// does, all that follow are true, too. In streams of fields that takes tens to hundreds of blocks, 3,000 the most that
// was seen (benchmarks/threads.py). So threads read ahead from bits of their choice, without making values, and
// what each finds is true from the bit on at which the one before it arrives at one of its blocks. Nothing is guessed:
// where two never meet, as in streams whose blocks are all the same, the later one is of no use.
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "codec.hpp"

namespace tamis::zfp {

// What a stream is read with.
struct Source {
    const Kernel& kernel;
    Type type;
    unsigned rank;
    Params params;
    std::span<const std::uint8_t> in;

    std::size_t walk(std::size_t start, std::span<std::size_t> ends) const {
        return kernel.walk(type, rank, params, in, start, ends);
    }
};

// A bit of the stream at which a block begins, and the number of that block.
struct Mark {
    std::size_t position;
    std::size_t number;
};

// From block to block, up to `batch` of them in one call of the kernel.
class Cursor {
public:
    static constexpr std::size_t most = 256;

    Cursor(const Source& source, const Mark& at, std::size_t batch = most)
        : source_(&source), at_(at), batch_(std::min(batch, most)) {}

    const Mark& at() const { return at_; }

    // False where the stream ends.
    bool next() {
        if (used_ == found_) {
            found_ = source_->walk(at_.position, {ends_, batch_});
            used_ = 0;
            if (found_ == 0) return false;
        }
        at_ = {ends_[used_++], at_.number + 1};
        return true;
    }

private:
    const Source* source_;
    Mark at_;
    std::size_t batch_, ends_[most];
    std::size_t found_ = 0, used_ = 0;
};

// The two marks of a bit at which a block begins for both of two cursors, each counting for itself.
struct Meeting {
    Mark a, b;
};

// Absent where they do not meet before either has passed `most` blocks.
inline std::optional<Meeting> meet(Cursor a, Cursor b, std::size_t most) {
    const std::size_t last_a = a.at().number + most, last_b = b.at().number + most;
    while (a.at().position != b.at().position) {
        Cursor& behind = a.at().position < b.at().position ? a : b;
        if (a.at().number == last_a || b.at().number == last_b || !behind.next()) return std::nullopt;
    }
    return Meeting{a.at(), b.at()};
}

// Blocks as they follow from one bit of the stream, numbered from there.
class Chain {
public:
    // It may be walked in another thread, and so takes its memory here. The whole stream has `blocks`; every `step`-th
    // is marked.
    Chain(std::size_t start, std::size_t blocks, std::size_t step) : start_(start), blocks_(blocks), step_(step) {
        marks_.reserve(blocks / step + 1);
    }

    // Go on to the first block that the chain from bit `next` has, too, or until there are no more.
    void walk(const Source& source, std::size_t next, const std::atomic<bool>& stop) {
        Cursor here(source, {start_, 0}), there(source, {next, 0}, 64);
        do {
            if (here.at().number % step_ == 0) {
                marks_.push_back(here.at());
                if (stop) return;
            }
            while (there.at().position < here.at().position && there.next()) {
            }
            if (there.at().position == here.at().position) {
                joint_ = Meeting{here.at(), there.at()};
                return;
            }
        } while (here.at().number < blocks_ && here.next());
    }

    std::size_t start() const { return start_; }
    // In order; none where it was stopped before it began.
    const std::vector<Mark>& marks() const { return marks_; }
    // Where it goes over into the next one.
    const std::optional<Meeting>& joint() const { return joint_; }

private:
    std::size_t start_, blocks_, step_;
    std::vector<Mark> marks_;
    std::optional<Meeting> joint_;
};

inline std::size_t position_of(const Mark& mark) { return mark.position; }
inline std::size_t position_of(const Chain& chain) { return chain.start(); }

// Marks of true blocks: `at`, and those of the chains that lead on from it. The chains are in the order of the stream.
inline std::vector<Mark> true_marks(const Source& source, const Mark& at, std::span<const Chain> chains,
                                    std::size_t most) {
    const auto beyond = [](std::size_t position, const auto& each) { return position < position_of(each); };
    std::vector<Mark> found{at};
    auto chain = std::upper_bound(chains.begin(), chains.end(), at.position, beyond);
    if (chain == chains.begin() || (--chain)->marks().empty()) return found;
    const auto near = std::upper_bound(chain->marks().begin(), chain->marks().end(), at.position, beyond) - 1;
    const auto met = meet(Cursor(source, at), Cursor(source, *near), most);
    if (!met) return found;
    std::size_t from = met->a.position;                  // true from here on
    std::size_t offset = met->a.number - met->b.number;  // of this chain's numbers, modulo 2^64
    for (; chain != chains.end(); ++chain) {
        for (const Mark& mark : chain->marks())
            if (mark.position >= from) found.push_back({mark.position, mark.number + offset});
        const auto& joint = chain->joint();
        if (!joint) break;
        from = std::max(from, joint->a.position);
        offset += joint->a.number - joint->b.number;
    }
    return found;
}

}  // namespace tamis::zfp

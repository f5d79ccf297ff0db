// Blocks of any length, decoded from several places of a stream at once.
//
// Where a block ends is known when it has been read, and where it begins when the one before it has ended. But a block
// depends on nothing before it: read on from any bit whatever, and as soon as a block happens to end where a true one
// does, all that follow are true, too. In streams of fields that takes tens to hundreds of blocks, 3,070 the most that
// was seen (docs/fast.md). So threads decode from bits of their choice to memory of their own, and what each finds is
// true from the bit on at which the one before it arrives at one of its blocks. Then it is known, too, which blocks
// they are, and they are copied to their places. Nothing is guessed: where two never meet, as in streams whose blocks
// are all the same, the later one is of no use.
#pragma once

#include <algorithm>
#include <atomic>
#include <new>
#include <optional>
#include <vector>

#include "codec.hpp"
#include "memory.hpp"
#include "row.hpp"

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
    Status decode(void* to, const Layout& layout, std::size_t start, std::size_t& end) const {
        return kernel.decode(type, to, layout, params, in, start, end);
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

// Absent where they do not meet before `a` has passed `most` blocks. What `b` takes for blocks may be shorter.
inline std::optional<Meeting> meet(Cursor a, Cursor b, std::size_t most) {
    const std::size_t last_a = a.at().number + most, last_b = b.at().number + 16 * most;
    while (a.at().position != b.at().position) {
        Cursor& behind = a.at().position < b.at().position ? a : b;
        if (a.at().number == last_a || b.at().number == last_b || !behind.next()) return std::nullopt;
    }
    return Meeting{a.at(), b.at()};
}

// Blocks as they follow from one bit of the stream, numbered from there, in rows of `batch`.
class Chain {
public:
    // Throws std::bad_alloc: it may be decoded in another thread, and so takes all memory here.
    Chain(const Source& source, std::size_t batch, std::size_t rows)
        : source_(source),
          layout_(row_of_blocks(source.rank, batch)),
          batch_(batch),
          rows_(rows),
          row_nbytes_(batch * block_size(source.rank) * item_nbytes(source.type)),
          memory_(raw_memory(rows * row_nbytes_)) {
        if (!memory_) throw std::bad_alloc();
        marks_.reserve(rows + 1);
        marks_.push_back({~std::size_t{0}, 0});
    }

    // From bit `start` on, decode to bit `next` at least, as far as memory and the stream go. What the first `lead`
    // bits hold is not decoded: false blocks are short and many.
    void decode(std::size_t start, std::size_t lead, std::size_t next, const std::atomic<bool>& stop) {
        Cursor cursor(source_, {start, 0});
        while (cursor.at().position < start + lead && !stop)
            if (!cursor.next()) break;
        marks_.assign(1, {cursor.at().position, 0});
        while (marks_.size() <= rows_ && marks_.back().position < next && !stop) {
            const auto [position, number] = marks_.back();
            std::size_t end = 0;
            if (!source_.decode(row(marks_.size() - 1), layout_, position, end)) return;
            marks_.push_back({end, number + batch_});
        }
    }

    const Mark& end() const { return marks_.back(); }
    // Where rows begin, and where the last one ends.
    const std::vector<Mark>& marks() const { return marks_; }

    // The nearest of these to a bit, or to a block, that is not behind it; the first where all are.
    const Mark& near_position(std::size_t position) const {
        const auto beyond = [](std::size_t wanted, const Mark& mark) { return wanted < mark.position; };
        return *(std::upper_bound(marks_.begin() + 1, marks_.end(), position, beyond) - 1);
    }
    const Mark& near_number(std::size_t number) const { return marks_[std::min(number / batch_, marks_.size() - 1)]; }

    // Blocks from `first` to `end` that are those from `number` on in the array.
    void add_pieces(std::size_t first, std::size_t end, std::size_t number, std::vector<Piece>& pieces) const {
        for (std::size_t next; first < end; number += next - first, first = next) {
            next = std::min(end, (first / batch_ + 1) * batch_);
            pieces.push_back({row(first / batch_), batch_, first % batch_, next - first, number});
        }
    }

private:
    std::uint8_t* row(std::size_t number) const { return memory_.get() + number * row_nbytes_; }

    Source source_;
    Layout layout_;
    std::size_t batch_, rows_, row_nbytes_;
    RawMemory memory_;
    std::vector<Mark> marks_;
};

}  // namespace tamis::zfp

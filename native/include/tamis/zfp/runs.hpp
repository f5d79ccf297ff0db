// An array in parts that can be coded each by itself.
#pragma once

#include <algorithm>

#include "types.hpp"

namespace tamis::zfp {

// Blocks that follow each other in the stream and fill a box of the array.
struct Run {
    std::size_t first;      // number of the first block
    std::ptrdiff_t offset;  // of the box, in elements
    Layout layout;          // of the box
};

// How an array is shared out among threads. Tests do so in smaller parts.
struct Sharing {
    std::size_t threads = 1;
    // Values of a run: enough that to begin one costs nothing, few enough that they stay in the cache and that all
    // threads end at about the same time.
    std::size_t run_nvalues = std::size_t{1} << 16;
    // Of blocks that differ in length: values that a thread decodes before all put together what they have, and those
    // that it decodes at once.
    std::size_t part_nvalues = std::size_t{1} << 22;
    std::size_t batch_nvalues = std::size_t{1} << 14;
    // Blocks to look for one that begins where two threads say so, and the least that a part is worth a thread. Fields
    // took 3,070 at most (docs/fast.md).
    std::size_t search_blocks = 4096;
};

// Whether an array takes longer to code than threads take to start.
constexpr bool worth_sharing(const Layout& layout) {
    return layout.blocks() >= (std::size_t{1} << 18) / block_size(layout.rank);
}

// The runs of an array, in the order of the stream, of about as many blocks each.
//
// A run has all blocks along the fast axes, several along the axis that is cut, one along the slow axes.
class Runs {
public:
    // Of at most `nvalues`, or a block.
    Runs(const Layout& layout, std::size_t nvalues) : layout_(layout) {
        const std::size_t most_blocks = std::max<std::size_t>(nvalues / block_size(layout.rank), 1);
        inner_ = layout.blocks();
        for (cut_ = layout.rank; cut_ > 0 && inner_ > most_blocks;) inner_ /= blocks_along(--cut_);
        if (cut_ == layout.rank) {  // one run
            inner_ /= blocks_along(--cut_);
            step_ = blocks_along(cut_);
        } else {
            step_ = most_blocks / inner_;
        }
        along_ = divided_up(blocks_along(cut_), step_);
        step_ = divided_up(blocks_along(cut_), along_);
        along_ = divided_up(blocks_along(cut_), step_);
        count_ = layout.blocks() / (inner_ * blocks_along(cut_)) * along_;
    }

    std::size_t count() const { return count_; }

    // Number of the first block of a run; of all blocks, where there is no such run.
    std::size_t first(std::size_t number) const {
        if (number == count_) return layout_.blocks();
        return (number / along_ * blocks_along(cut_) + number % along_ * step_) * inner_;
    }

    Run operator[](std::size_t number) const {
        Run run{first(number), 0, layout_};
        narrow(run, cut_, number % along_ * step_, step_);
        std::size_t left = number / along_;
        for (unsigned axis = cut_ + 1; axis < layout_.rank; ++axis) {
            narrow(run, axis, left % blocks_along(axis), 1);
            left /= blocks_along(axis);
        }
        return run;
    }

private:
    static std::size_t divided_up(std::size_t n, std::size_t by) { return n / by + (n % by != 0); }
    std::size_t blocks_along(unsigned axis) const { return divided_up(layout_.extent[axis], 4); }

    void narrow(Run& run, unsigned axis, std::size_t first, std::size_t blocks) const {
        run.offset += static_cast<std::ptrdiff_t>(block_side * first) * layout_.stride[axis];
        run.layout.extent[axis] = std::min(block_side * blocks, layout_.extent[axis] - block_side * first);
    }

    Layout layout_;
    unsigned cut_;       // axis
    std::size_t inner_;  // blocks along all faster axes
    std::size_t step_;   // blocks of a run along the axis that is cut
    std::size_t along_;  // runs along that axis
    std::size_t count_;
};

}  // namespace tamis::zfp

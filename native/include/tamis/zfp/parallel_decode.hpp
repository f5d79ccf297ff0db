// One array decoded in threads, to the values and refusals that one thread gives.
//
// At a fixed rate it is known where each run of blocks begins. At any other, one thread decodes from the start while
// the others look for blocks further on (chain.hpp); when they are through, all decode what is left.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "chain.hpp"
#include "runs.hpp"
#include "tamis/threads.hpp"

namespace tamis::zfp {

class ParallelDecoder {
public:
    ParallelDecoder(const Source& source, void* data, const Layout& layout, std::size_t start, const Sharing& sharing)
        : source_(source),
          data_(static_cast<std::uint8_t*>(data)),
          runs_(layout, sharing.run_nvalues),
          blocks_(layout.blocks()),
          start_(start),
          threads_(sharing.threads),
          step_(std::max<std::size_t>(sharing.mark_nvalues / block_size(layout.rank), 1)) {}

    // `end` is the bit at which the stream ended. Throws std::bad_alloc.
    Status decode(std::size_t& end) {
        const Params& params = source_.params;
        if (params.minbits == params.maxbits)
            share_out(threads_, 0, runs_.count(), [&](std::size_t run) {
                std::size_t position = start_ + runs_.first(run) * params.maxbits;
                return decode_run(run, position);
            });
        else
            decode_variable();
        end = end_;
        const std::size_t failed = failed_;
        return failed == none ? Status{} : Status{Code::truncated, failed};
    }

private:
    static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
    // A part of a stream must be much longer than what it takes a chain to become true.
    static constexpr std::size_t part_runs = 8;

    // Of an array of any mode but fixed rate: this thread decodes from the start, at least to the first chain and until
    // all chains are walked.
    void decode_variable() {
        std::vector<Chain> chains = cut();
        const std::size_t first = chains.empty() ? none : chains.front().start();
        std::atomic<std::size_t> next = 0, walked = 0;
        std::atomic<bool> stop = false;
        std::size_t run = 0;  // the next one
        Mark at{start_, 0};
        in_threads(chains.size() + 1, [&](std::size_t thread) {
            if (thread == 0) {
                while (run < runs_.count() && (walked < chains.size() || at.position < first)) {
                    if (!decode_run(run, at.position)) break;
                    at.number = runs_.first(++run);
                }
                stop = true;
            } else {
                for (std::size_t i; (i = next++) < chains.size(); ++walked)
                    chains[i].walk(source_, i + 1 < chains.size() ? chains[i + 1].start() : none, stop);
            }
        });
        if (run < runs_.count() && failed_ == none) decode_from(run, true_marks(source_, at, chains, longest_search()));
    }

    // Chains for all threads but this one. Walking takes 0.4 to 0.9 times as long as decoding, so that the part before
    // the first chain is made 0.7 times as long as the others.
    std::vector<Chain> cut() const {
        const std::size_t longest = block_max_nbits(source_.type, source_.rank, source_.params);
        std::size_t nbits = std::max(8 * source_.in.size(), start_) - start_;
        if (blocks_ < nbits / longest) nbits = blocks_ * longest;  // what may follow the stream is not looked at
        const std::size_t count = std::min(threads_, runs_.count() / part_runs);
        std::vector<Chain> chains;
        for (std::size_t i = 1; i < count; ++i)
            chains.emplace_back(start_ + nbits / (10 * count - 3) * (10 * i - 3), blocks_, step_);
        return chains;
    }

    // Blocks to look for a meeting: a tenth of a part, and far more than it ever took.
    std::size_t longest_search() const { return (std::size_t{1} << 20) / block_size(source_.rank); }

    // Decode all runs from one on, with marks from there on.
    void decode_from(std::size_t first, const std::vector<Mark>& marks) {
        std::size_t end = first;  // of the runs that marks lead to
        while (end < runs_.count() && runs_.first(end) <= marks.back().number + step_) ++end;
        share_out(threads_, first, end, [&](std::size_t run) {
            std::size_t position = 0;
            return find(runs_.first(run), marks, position) && decode_run(run, position);
        });
        std::size_t position = 0;
        if (end == runs_.count() || failed_ != none || !find(runs_.first(end), marks, position)) return;
        while (end < runs_.count() && decode_run(end, position)) ++end;
    }

    // Find where a block begins. False where the stream ends before that.
    bool find(std::size_t block, const std::vector<Mark>& marks, std::size_t& position) {
        const auto beyond = [](std::size_t number, const Mark& mark) { return number < mark.number; };
        Cursor cursor(source_, *(std::upper_bound(marks.begin(), marks.end(), block, beyond) - 1), step_);
        while (cursor.at().number < block)
            if (!cursor.next()) return fail(cursor.at().number);
        position = cursor.at().position;
        return true;
    }

    // Decode the blocks of a run from a bit on, which becomes the one at which they end. False where the stream ends
    // first.
    bool decode_run(std::size_t number, std::size_t& position) {
        const Run run = runs_[number];
        auto* to = data_ + run.offset * static_cast<std::ptrdiff_t>(item_nbytes(source_.type));
        const Status status =
            source_.kernel.decode(source_.type, to, run.layout, source_.params, source_.in, position, position);
        if (!status) return fail(run.first + status.where);
        if (number + 1 == runs_.count()) end_ = position;
        return true;
    }

    // Of all blocks that have no end the first is the one to name.
    bool fail(std::size_t block) {
        std::size_t before = failed_;
        while (block < before && !failed_.compare_exchange_weak(before, block)) {
        }
        return false;
    }

    Source source_;
    std::uint8_t* data_;
    Runs runs_;
    std::size_t blocks_, start_, threads_, step_, end_ = 0;
    std::atomic<std::size_t> failed_ = none;
};

}  // namespace tamis::zfp

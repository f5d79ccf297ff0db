// One array decoded in threads, to the values and refusals that one thread gives.
//
// At a fixed rate it is known where each run of blocks begins. At any other, one thread decodes from the last block
// that is known and the others from bits further on (chain.hpp). Then all put what they have found to its places, and
// so on.
#pragma once

#include <limits>

#include "chain.hpp"
#include "runs.hpp"
#include "tamis/threads.hpp"

namespace tamis::zfp {

class ParallelDecoder {
public:
    ParallelDecoder(const Source& source, void* data, const Layout& layout, std::size_t start, const Sharing& sharing)
        : source_(source),
          data_(static_cast<std::uint8_t*>(data)),
          layout_(layout),
          sharing_(sharing),
          blocks_(layout.blocks()),
          at_{start, 0} {}

    // `end` is the bit at which the stream ended. Throws std::bad_alloc.
    Status decode(std::size_t& end) {
        if (source_.params.minbits == source_.params.maxbits)
            decode_fixed();
        else
            decode_variable();
        end = at_.position;
        const std::size_t failed = failed_;
        return failed == none ? Status{} : Status{Code::truncated, failed};
    }

private:
    static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

    // A row of blocks that this thread decodes at once.
    struct Scratch {
        std::uint8_t* row;
        std::size_t most;
    };

    void decode_fixed() {
        const Runs runs(layout_, sharing_.run_nvalues);
        const std::size_t nbits = source_.params.maxbits;
        share_out(sharing_.threads, 0, runs.count(), [&](std::size_t number) {
            const Run run = runs[number];
            std::size_t end = 0;
            auto* to = data_ + run.offset * static_cast<std::ptrdiff_t>(item_nbytes(source_.type));
            const Status status = source_.decode(to, run.layout, at_.position + run.first * nbits, end);
            return status || fail(run.first + status.where);
        });
        at_.position += blocks_ * nbits;
    }

    void decode_variable() {
        const std::size_t size = block_size(source_.rank);
        const std::size_t batch = std::max<std::size_t>(sharing_.batch_nvalues / size, 1);
        const std::size_t part = std::min(sharing_.part_nvalues / size, blocks_ / threads_for(blocks_) + 1);
        const RawMemory row = raw_memory(batch * size * item_nbytes(source_.type));
        if (!row) throw std::bad_alloc();
        std::vector<Chain> chains;
        for (std::size_t i = 1; i < threads_for(blocks_); ++i)  // parts of as many bits are not of as many blocks
            chains.emplace_back(source_, batch, part / batch * 5 / 4 + 2);

        double block_nbits = mean_block_nbits();
        const auto nbits_of = [&](std::size_t blocks) {
            return static_cast<std::size_t>(block_nbits * static_cast<double>(blocks)) + 1;
        };
        while (at_.number < blocks_ && failed_ == none) {
            const Mark before = at_;
            const std::size_t left = blocks_ - at_.number, threads = threads_for(left);
            const std::size_t nbits = threads == 1 ? none : nbits_of(std::min(part, left / threads + 1));
            decode_parts(std::span(chains).first(threads - 1), nbits, nbits_of(sharing_.search_blocks / 8),
                         {row.get(), batch});
            block_nbits = static_cast<double>(at_.position - before.position) /
                          static_cast<double>(std::max<std::size_t>(at_.number - before.number, 1));
        }
    }

    // How many threads have enough work with this many blocks.
    std::size_t threads_for(std::size_t blocks) const {
        return std::clamp<std::size_t>(blocks / sharing_.search_blocks, 1, sharing_.threads);
    }

    double mean_block_nbits() const {
        const std::size_t nbits = std::max(8 * source_.in.size(), at_.position) - at_.position;
        const unsigned longest = block_max_nbits(source_.type, source_.rank, source_.params);
        return std::min(static_cast<double>(nbits) / static_cast<double>(blocks_), static_cast<double>(longest));
    }

    // This thread decodes the first `nbits`, and goes on until each chain has come to the next. The last one goes on
    // for that long. They come to true blocks within about `lead` bits.
    void decode_parts(std::span<Chain> chains, std::size_t nbits, std::size_t lead, const Scratch& scratch) {
        const std::size_t start = at_.position;
        std::atomic<std::size_t> next = 0, done = 0;
        std::atomic<bool> stop = false;
        in_threads(chains.size() + 1, [&](std::size_t thread) {
            if (thread == 0) {
                while (at_.number < blocks_ && (at_.position - start < nbits || done + 1 < chains.size()))
                    if (!decode_row(scratch, blocks_)) break;
                stop = true;
            } else {
                for (std::size_t i; (i = next++) < chains.size();) {
                    const bool last = i + 1 == chains.size();
                    chains[i].decode(start + (i + 1) * nbits - lead, lead, last ? none : start + (i + 2) * nbits, stop);
                    if (!last) ++done;
                }
            }
        });
        if (failed_ == none) join(chains, scratch);
    }

    // Put what the chains have found that is true to its places.
    void join(std::span<const Chain> chains, const Scratch& scratch) {
        std::vector<Piece> pieces;
        for (const Chain& chain : chains) {
            if (at_.number == blocks_) break;
            if (chain.end().position <= at_.position) continue;
            const auto met = meet({source_, at_}, {source_, chain.near_position(at_.position)}, sharing_.search_blocks);
            if (!met || met->a.number >= blocks_) break;
            const std::size_t first = met->b.number;
            const std::size_t end = std::min(chain.end().number, first + blocks_ - met->a.number);
            if (end <= first) continue;
            while (at_.number < met->a.number)
                if (!decode_row(scratch, met->a.number)) return;
            chain.add_pieces(first, end, at_.number, pieces);
            Cursor cursor(source_, chain.near_number(end));
            while (cursor.at().number < end)
                if (!cursor.next()) return void(fail(at_.number));  // the stream was changed meanwhile
            at_ = {cursor.at().position, at_.number + end - first};
        }
        share_out(sharing_.threads, 0, pieces.size(), [&](std::size_t i) {
            put(pieces[i]);
            return true;
        });
    }

    // Decode the next blocks, up to `end`, and put them in their places. False where the stream ends first.
    bool decode_row(const Scratch& scratch, std::size_t end) {
        const std::size_t count = std::min(scratch.most, end - at_.number);
        std::size_t position = 0;
        const Status status = source_.decode(scratch.row, row_of_blocks(source_.rank, count), at_.position, position);
        if (!status) return fail(at_.number + status.where);
        put({scratch.row, count, 0, count, at_.number});
        at_ = {position, at_.number + count};
        return true;
    }

    void put(const Piece& piece) {
        if (item_nbytes(source_.type) == 4)
            put_in_place<4>(piece, data_, layout_);
        else
            put_in_place<8>(piece, data_, layout_);
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
    Layout layout_;
    Sharing sharing_;
    std::size_t blocks_;
    Mark at_;  // up to which all is decoded
    std::atomic<std::size_t> failed_ = none;
};

}  // namespace tamis::zfp

// Stored chunks read from a file, decoded and put to their places, many in a row.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "tamis/chunks/pipeline.hpp"
#include "tamis/system/file.hpp"
#include "tamis/threads.hpp"

namespace tamis::chunks {

// Where chunks lie in their file and in their array. The file says so, and may lie.
struct Table {
    std::span<const std::int64_t> origins;  // rank for each chunk
    std::span<const std::int64_t> offsets, nbytes;
    std::span<const std::uint32_t> masks;

    std::size_t size() const { return offsets.size(); }
};

// Whether a file of `size` bytes has the range.
constexpr bool has_range(std::size_t size, std::int64_t offset, std::int64_t nbytes) {
    return offset >= 0 && nbytes >= 0 && static_cast<std::uint64_t>(nbytes) <= size &&
           static_cast<std::uint64_t>(offset) <= size - static_cast<std::uint64_t>(nbytes);
}

// Memory for what is stored of a chunk, and for its way to values.
struct ChunkMemory {
    explicit ChunkMemory(std::size_t capacity) : scratch(capacity), stored(zfp::raw_memory(capacity)) {}

    explicit operator bool() const { return scratch && stored; }

    Scratch scratch;
    zfp::RawMemory stored;
};

// Limit of the memory that a thread keeps, because fresh pages take longer than decoding into them: with them, 3.75 MiB
// through shuffle and deflate took twice as long.
inline constexpr std::size_t kept_capacity = std::size_t{10} << 20;

// The memory of this thread, for one reader at a time.
inline std::unique_ptr<ChunkMemory>& memory_of_thread(std::size_t capacity) {
    thread_local std::unique_ptr<ChunkMemory> memory;
    if (!memory || !*memory || memory->scratch.capacity() != capacity) {
        memory.reset();
        memory = std::make_unique<ChunkMemory>(capacity);
    }
    return memory;
}

// Small chunks that lie close to each other in a file, read at once: the system takes as long for each read as zfp for
// 500 bytes.
class Window {
public:
    // Read what some chunks of a table span; nothing, if one of them is large or they are far apart.
    void read(const system::RangeReader& file, std::size_t file_nbytes, const Table& table, std::size_t first,
              std::size_t last) {
        nbytes_ = 0;
        std::int64_t begin = table.offsets[first], end = begin;
        std::size_t sum = 0;
        for (std::size_t i = first; i < last; ++i) {
            const std::int64_t offset = table.offsets[i], nbytes = table.nbytes[i];
            if (!has_range(file_nbytes, offset, nbytes) || nbytes > small) return;
            begin = std::min(begin, offset), end = std::max(end, offset + nbytes);
            sum += static_cast<std::size_t>(nbytes);
        }
        const auto span = static_cast<std::size_t>(end - begin);
        if (last - first < 2 || span > sum + sum / 4) return;
        memory_.resize(span);
        if (!file.read(begin, memory_.data(), span)) return;
        offset_ = begin, nbytes_ = span;
    }

    // The bytes of a range; null if they were not read.
    const std::uint8_t* at(std::int64_t offset, std::size_t nbytes) const {
        const auto from = static_cast<std::size_t>(offset - offset_);
        return offset >= offset_ && from <= nbytes_ && nbytes <= nbytes_ - from ? memory_.data() + from : nullptr;
    }

private:
    static constexpr std::int64_t small = 16 << 10;

    std::int64_t offset_ = 0;
    std::size_t nbytes_ = 0;
    std::vector<std::uint8_t> memory_;
};

// Reads chunks, one after the other; each thread has its own.
class Reader {
public:
    Reader(const Pipeline& pipeline, const zfp::Kernel& kernel, int file)
        : pipeline_(pipeline),
          kernel_(kernel),
          file_(file),
          file_nbytes_(file_.file_nbytes()),
          memory_(memory_of_thread(pipeline.capacity())),
          inflater_(pipeline.libdeflate()) {}
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader() {
        if (memory_->scratch.capacity() > kept_capacity) memory_.reset();
    }

    // Get ready to read some chunks of a table.
    void expect(const Table& table, std::size_t first, std::size_t last) {
        window_.read(file_, file_nbytes_, table, first, last);
    }

    // Put what a chunk and the place share there. False, with that undefined, where another reader is needed: for a
    // chunk that is damaged, of a foreign filter, or too large.
    bool read(const Table& table, std::size_t number, const Place<std::uint8_t>& place) {
        const unsigned rank = pipeline_.shape().rank;
        const auto origin = table.origins.subspan(number * rank, rank);
        const auto beyond = [](std::int64_t at) { return at < 0 || at > std::numeric_limits<std::int64_t>::max() / 4; };
        if (std::any_of(origin.begin(), origin.end(), beyond)) return false;
        Share share;
        if (!find_share(place, origin, pipeline_.shape(), pipeline_.strides(), share)) return true;
        const std::int64_t offset = table.offsets[number], nbytes = table.nbytes[number];
        if (!*memory_ || !has_range(file_nbytes_, offset, nbytes)) return false;
        const auto size = static_cast<std::size_t>(nbytes);
        if (size > pipeline_.capacity()) return false;
        const std::uint8_t* stored = window_.at(offset, size);
        if (stored == nullptr) {
            if (!file_.read(offset, memory_->stored.get(), size)) return false;
            stored = memory_->stored.get();
        }
        std::uint8_t* const to = place.memory + share.in_place;
        const std::size_t itemsize = pipeline_.itemsize();
        const bool aligned = reinterpret_cast<std::uintptr_t>(to) % itemsize == 0;
        const bool direct =
            aligned && share.shape == pipeline_.shape() && is_dense(share.shape, place.strides, itemsize);
        const auto values = pipeline_.decode(kernel_, {stored, size}, table.masks[number], memory_->scratch, inflater_,
                                             direct ? to : nullptr);
        if (!values) return false;
        if (values->data() != to)
            copy_box(share.shape, itemsize, values->data() + share.in_chunk, pipeline_.strides(), to, place.strides);
        return true;
    }

private:
    const Pipeline& pipeline_;
    const zfp::Kernel& kernel_;
    system::RangeReader file_;
    std::size_t file_nbytes_;
    std::unique_ptr<ChunkMemory>& memory_;
    Inflater inflater_;
    Window window_;
};

// Chunks that a thread takes at a time.
inline constexpr std::size_t chunks_at_once = 16;

// Put all chunks of a table to their places, in up to `threads` threads. For each, whether that could be done. Where
// chunks overlap, several threads may mix their bytes.
inline std::vector<char> read(const Pipeline& pipeline, const zfp::Kernel& kernel, int file, const Table& table,
                              const Place<std::uint8_t>& place, std::size_t threads) {
    std::vector<char> done(table.size());
    const std::size_t most = std::max<std::size_t>(1, table.size() / chunks_at_once);
    std::atomic<std::size_t> next = 0;
    in_threads(std::clamp<std::size_t>(threads, 1, most), [&](std::size_t) {
        Reader reader(pipeline, kernel, file);
        for (std::size_t first; (first = next.fetch_add(chunks_at_once, std::memory_order_relaxed)) < table.size();) {
            const std::size_t last = std::min(first + chunks_at_once, table.size());
            reader.expect(table, first, last);
            for (std::size_t i = first; i < last; ++i) done[i] = reader.read(table, i, place);
        }
    });
    return done;
}

}  // namespace tamis::chunks

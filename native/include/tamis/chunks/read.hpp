// Stored chunks read from a file, decoded and put to their places, many in a row.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <vector>

#include "tamis/chunks/pipeline.hpp"
#include "tamis/threads.hpp"

namespace tamis::chunks {

// Where chunks lie in their file and in their array. The file says so, and may lie.
struct Table {
    std::span<const std::int64_t> origins;  // rank for each chunk
    std::span<const std::int64_t> offsets, nbytes;
    std::span<const std::uint32_t> masks;

    std::size_t size() const { return offsets.size(); }
};

// Of a file that is open, 0 where that cannot be told.
inline std::size_t file_nbytes(int file) {
    struct stat status;
    return fstat(file, &status) == 0 && status.st_size > 0 ? static_cast<std::size_t>(status.st_size) : 0;
}

// Whether a file of `size` bytes has the range.
constexpr bool has_range(std::size_t size, std::int64_t offset, std::int64_t nbytes) {
    return offset >= 0 && nbytes >= 0 && static_cast<std::uint64_t>(nbytes) <= size &&
           static_cast<std::uint64_t>(offset) <= size - static_cast<std::uint64_t>(nbytes);
}

// Read a range that the file has; false where it ends before, or cannot be read.
inline bool read_range(int file, std::int64_t offset, std::uint8_t* out, std::size_t nbytes) {
    while (nbytes != 0) {
        const ssize_t count = pread(file, out, nbytes, static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        out += count;
        offset += count;
        nbytes -= static_cast<std::size_t>(count);
    }
    return true;
}

// Reads chunks, one after the other; each thread has its own.
class Reader {
public:
    Reader(const Pipeline& pipeline, const zfp::Kernel& kernel, int file)
        : pipeline_(pipeline),
          kernel_(kernel),
          file_(file),
          file_nbytes_(file_nbytes(file)),
          scratch_(pipeline.capacity()),
          stored_(zfp::raw_memory(pipeline.capacity())),
          inflater_(pipeline.libdeflate()) {}

    // Put what a chunk and the place share there. False, with the place untouched, where that needs another reader: a
    // chunk that is damaged, of a foreign filter, or larger than small.
    bool read(const Table& table, std::size_t number, const Place<std::uint8_t>& place) {
        const unsigned rank = pipeline_.shape().rank;
        const auto origin = table.origins.subspan(number * rank, rank);
        const auto beyond = [](std::int64_t at) { return at < 0 || at > std::numeric_limits<std::int64_t>::max() / 4; };
        if (std::any_of(origin.begin(), origin.end(), beyond)) return false;
        Share share;
        if (!find_share(place, origin, pipeline_.shape(), pipeline_.strides(), share)) return true;
        const std::int64_t offset = table.offsets[number], nbytes = table.nbytes[number];
        if (!scratch_ || !stored_ || !has_range(file_nbytes_, offset, nbytes)) return false;
        const auto size = static_cast<std::size_t>(nbytes);
        if (size > pipeline_.capacity() || !read_range(file_, offset, stored_.get(), size)) return false;
        const auto values = pipeline_.decode(kernel_, {stored_.get(), size}, table.masks[number], scratch_, inflater_);
        if (!values) return false;
        copy_box(share.shape, pipeline_.itemsize(), values->data() + share.in_chunk, pipeline_.strides(),
                 place.memory + share.in_place, place.strides);
        return true;
    }

private:
    const Pipeline& pipeline_;
    const zfp::Kernel& kernel_;
    int file_;
    std::size_t file_nbytes_;
    Scratch scratch_;
    zfp::RawMemory stored_;
    Inflater inflater_;
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
        for (std::size_t first; (first = next.fetch_add(chunks_at_once, std::memory_order_relaxed)) < table.size();)
            for (std::size_t i = first; i < std::min(first + chunks_at_once, table.size()); ++i)
                done[i] = reader.read(table, i, place);
    });
    return done;
}

}  // namespace tamis::chunks

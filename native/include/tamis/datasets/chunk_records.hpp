// Many chunks of a dataset in one call: HDF5's records of them, and new ones that are encoded already.
#pragma once

#include <span>
#include <vector>

#include "tamis/chunks/box.hpp"
#include "tamis/datasets/libhdf5.hpp"
#include "tamis/system/file.hpp"

namespace tamis::datasets {

inline constexpr std::uint64_t max_offset = std::uint64_t{1} << 62;

// The chunks of an array, numbered in row-major order.
struct ChunkGrid {
    chunks::Shape shape, chunk;

    bool valid() const {
        for (unsigned axis = 0; axis < shape.rank; ++axis)
            if (chunk.extent[axis] == 0) return false;
        return shape.rank == chunk.rank && shape.rank > 0;
    }

    std::size_t count_along(unsigned axis) const {
        return shape.extent[axis] / chunk.extent[axis] + (shape.extent[axis] % chunk.extent[axis] != 0);
    }

    // The number of the chunk at an origin; -1 if no chunk has that origin.
    std::int64_t number_of(const hsize_t* origin) const {
        std::size_t number = 0;
        for (unsigned axis = 0; axis < shape.rank; ++axis) {
            if (origin[axis] >= shape.extent[axis] || origin[axis] % chunk.extent[axis] != 0) return -1;
            number = number * count_along(axis) + static_cast<std::size_t>(origin[axis]) / chunk.extent[axis];
        }
        return static_cast<std::int64_t>(number);
    }

    // The origin of a chunk; false if there is no such chunk.
    bool origin_of(std::uint64_t number, hsize_t* origin) const {
        for (unsigned axis = shape.rank; axis-- > 0;) {
            const std::size_t count = count_along(axis);
            if (count == 0) return false;
            origin[axis] = number % count * chunk.extent[axis];
            number /= count;
        }
        return number == 0;
    }
};

struct ChunkRecord {
    std::int64_t number, offset, nbytes, mask;
};

// Reads the records of a chunked dataset, in the order of its index. False if HDF5 fails, or one is damaged.
class ChunkRecords {
public:
    explicit ChunkRecords(const ChunkGrid& grid) : grid_(grid) {}

    bool read(const Libhdf5& hdf5, hid_t dataset) {
        return hdf5.visit_chunks != nullptr && grid_.valid() && hdf5.visit_chunks(dataset, none, &visit, this) >= 0;
    }

    std::span<const ChunkRecord> rows() const { return rows_; }

private:
    static int visit(const hsize_t* origin, unsigned mask, std::uint64_t offset, hsize_t nbytes, void* self) noexcept {
        return static_cast<ChunkRecords*>(self)->add(origin, mask, offset, nbytes) ? 0 : -1;
    }

    bool add(const hsize_t* origin, unsigned mask, std::uint64_t offset, hsize_t nbytes) noexcept {
        const std::int64_t number = grid_.number_of(origin);
        if (number < 0 || offset > max_offset || nbytes > max_offset) return false;
        try {
            rows_.push_back({number, static_cast<std::int64_t>(offset), static_cast<std::int64_t>(nbytes), mask});
        } catch (...) {
            return false;
        }
        return true;
    }

    const ChunkGrid& grid_;
    std::vector<ChunkRecord> rows_;
};

struct ChunkToWrite {
    std::uint64_t number;
    std::span<const std::uint8_t> bytes;
    std::uint32_t mask;
    std::int64_t file_nbytes = -1;  // of the file afterwards, if its size is asked for
};

// Writes chunks to a dataset; `path` is that of its file, or null. False if HDF5 fails.
inline bool write_chunks(const Libhdf5& hdf5, hid_t dataset, const ChunkGrid& grid, const char* path,
                         std::span<ChunkToWrite> chunks) {
    for (ChunkToWrite& chunk : chunks) {
        hsize_t origin[chunks::max_axes];
        if (!grid.origin_of(chunk.number, origin) ||
            hdf5.write_chunk(dataset, none, chunk.mask, origin, chunk.bytes.size(), chunk.bytes.data()) < 0)
            return false;
        if (path != nullptr) chunk.file_nbytes = system::nbytes_of(path);
    }
    return true;
}

}  // namespace tamis::datasets

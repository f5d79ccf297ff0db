// Boxes of arrays, copied between memory that lies differently.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tamis::chunks {

inline constexpr unsigned max_axes = 32;  // as HDF5 has them

// Of all axes, slowest first.
using Extents = std::array<std::size_t, max_axes>;
using Strides = std::array<std::ptrdiff_t, max_axes>;  // in bytes

// A chunk's shape, or another one.
struct Shape {
    unsigned rank = 0;
    Extents extent{};

    std::size_t count() const {
        std::size_t product = 1;
        for (unsigned axis = 0; axis < rank; ++axis) product *= extent[axis];
        return product;
    }
    Strides contiguous(std::size_t itemsize) const {
        Strides strides{};
        for (unsigned axis = rank; axis-- > 0; itemsize *= extent[axis])
            strides[axis] = static_cast<std::ptrdiff_t>(itemsize);
        return strides;
    }
    bool operator==(const Shape& other) const {
        return rank == other.rank && std::equal(extent.begin(), extent.begin() + rank, other.extent.begin());
    }
};

namespace detail {

// Runs of bytes, `count` of them: of a size that the compiler knows, a copy is a move or two.
template <class Nbytes>
void copy_runs(const std::uint8_t* from, std::ptrdiff_t from_step, std::uint8_t* to, std::ptrdiff_t to_step,
               std::size_t count, Nbytes nbytes) {
    for (; count != 0; --count, from += from_step, to += to_step) std::memcpy(to, from, nbytes);
}

inline void copy_rows(const std::uint8_t* from, std::ptrdiff_t from_step, std::uint8_t* to, std::ptrdiff_t to_step,
                      std::size_t count, std::size_t nbytes) {
    const auto fixed = [&]<std::size_t size>() {
        copy_runs(from, from_step, to, to_step, count, std::integral_constant<std::size_t, size>());
    };
    switch (nbytes) {
        case 4:
            return fixed.template operator()<4>();
        case 8:
            return fixed.template operator()<8>();
        case 16:
            return fixed.template operator()<16>();
        case 32:
            return fixed.template operator()<32>();
        case 64:
            return fixed.template operator()<64>();
        default:
            return copy_runs(from, from_step, to, to_step, count, nbytes);
    }
}

}  // namespace detail

// Copy a box of items; neither end overlaps the other.
inline void copy_box(const Shape& box, std::size_t itemsize, const std::uint8_t* from, const Strides& from_strides,
                     std::uint8_t* to, const Strides& to_strides) {
    // Axes along which items follow each other at both ends are one run, those beyond it are walked.
    std::size_t run = itemsize;
    unsigned rank = box.rank;
    for (; rank != 0; --rank) {
        const unsigned axis = rank - 1;
        const auto step = static_cast<std::ptrdiff_t>(run);
        if (box.extent[axis] != 1 && (from_strides[axis] != step || to_strides[axis] != step)) break;
        run *= box.extent[axis];
    }
    if (rank == 0) {
        std::memcpy(to, from, run);
        return;
    }
    const unsigned inner = rank - 1;
    Extents at{};
    for (;;) {
        detail::copy_rows(from, from_strides[inner], to, to_strides[inner], box.extent[inner], run);
        unsigned axis = inner;
        for (; axis-- > 0;) {
            from += from_strides[axis];
            to += to_strides[axis];
            if (++at[axis] < box.extent[axis]) break;
            from -= static_cast<std::ptrdiff_t>(at[axis]) * from_strides[axis];
            to -= static_cast<std::ptrdiff_t>(at[axis]) * to_strides[axis];
            at[axis] = 0;
        }
        if (axis >= inner) return;  // wrapped below 0: all were counted
    }
}

// An array, or a part of one that begins at `start`, in memory.
template <class Byte>
struct Place {
    Byte* memory = nullptr;
    Shape shape;
    Strides strides{};
    Extents start{};
};

// Whether items of a box follow each other without gaps.
inline bool is_dense(const Shape& box, const Strides& strides, std::size_t itemsize) {
    const Strides dense = box.contiguous(itemsize);
    for (unsigned axis = 0; axis < box.rank; ++axis)
        if (box.extent[axis] != 1 && strides[axis] != dense[axis]) return false;
    return true;
}

// What a chunk and a part of its array share.
struct Share {
    Shape shape;
    std::ptrdiff_t in_chunk = 0, in_place = 0;  // bytes from where each begins
};

// False where they share nothing. Neither the chunk's origin nor its end exceeds a quarter of the numbers there are.
template <class Byte>
bool find_share(const Place<Byte>& place, std::span<const std::int64_t> origin, const Shape& chunk,
                const Strides& chunk_strides, Share& share) {
    share = {{chunk.rank, {}}, 0, 0};
    for (unsigned axis = 0; axis < chunk.rank; ++axis) {
        const auto first = static_cast<std::size_t>(origin[axis]), start = place.start[axis];
        const std::size_t low = std::max(first, start);
        const std::size_t high = std::min(first + chunk.extent[axis], start + place.shape.extent[axis]);
        if (low >= high) return false;
        share.shape.extent[axis] = high - low;
        share.in_chunk += static_cast<std::ptrdiff_t>(low - first) * chunk_strides[axis];
        share.in_place += static_cast<std::ptrdiff_t>(low - start) * place.strides[axis];
    }
    return true;
}

}  // namespace tamis::chunks

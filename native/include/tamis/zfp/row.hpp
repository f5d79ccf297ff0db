// Blocks that were decoded beside each other, and from there to their places in an array.
#pragma once

#include <algorithm>
#include <cstring>

#include "types.hpp"

namespace tamis::zfp {

// Blocks side by side along x.
inline Layout row_of_blocks(unsigned rank, std::size_t count) {
    std::array<std::size_t, max_rank> extent{4 * count, 1, 1, 1};
    for (unsigned axis = 1; axis < rank; ++axis) extent[axis] = 4;
    return Layout::contiguous(rank, extent);
}

// Some blocks of such a row, and the number that the first of them has in its array.
struct Piece {
    const std::uint8_t* row;
    std::size_t row_blocks, skip, count, number;
};

namespace detail {

using Index = std::array<std::size_t, max_rank>;

inline std::ptrdiff_t offset_of(const Index& index, const Layout& layout) {
    std::ptrdiff_t offset = 0;
    for (unsigned axis = 0; axis < layout.rank; ++axis)
        offset += static_cast<std::ptrdiff_t>(index[axis]) * layout.stride[axis];
    return offset;
}

template <std::size_t item>
void copy_line(const std::uint8_t* from, std::uint8_t* to, std::size_t count, std::ptrdiff_t stride) {
    if (stride == 1) {
        std::memcpy(to, from, count * item);
    } else {
        for (; count > 0; --count, from += item, to += stride * static_cast<std::ptrdiff_t>(item))
            std::memcpy(to, from, item);
    }
}

// Copy a box that begins at `at` of `layout`.
template <std::size_t item>
void copy_box(const std::uint8_t* row, const Layout& from, std::uint8_t* data, const Layout& layout, const Index& at,
              const Index& count) {
    constexpr auto width = static_cast<std::ptrdiff_t>(item);
    for (std::size_t w = 0; w < count[3]; ++w)
        for (std::size_t z = 0; z < count[2]; ++z)
            for (std::size_t y = 0; y < count[1]; ++y)
                copy_line<item>(row + offset_of({0, y, z, w}, from) * width,
                                data + offset_of({at[0], at[1] + y, at[2] + z, at[3] + w}, layout) * width, count[0],
                                layout.stride[0]);
}

}  // namespace detail

// Copy blocks to their places in an array; what lies beyond its ends is left out.
template <std::size_t item>
void put_in_place(Piece piece, std::uint8_t* data, const Layout& layout) {
    const Layout row = row_of_blocks(layout.rank, piece.row_blocks);
    while (piece.count > 0) {
        detail::Index at{}, count{1, 1, 1, 1};
        std::size_t number = piece.number;
        for (unsigned axis = 0; axis < layout.rank; ++axis) {
            const std::size_t blocks = (layout.extent[axis] - 1) / 4 + 1;
            at[axis] = 4 * (number % blocks);
            number /= blocks;
            count[axis] = std::min<std::size_t>(layout.extent[axis] - at[axis], 4);
        }
        count[0] = std::min(layout.extent[0] - at[0], 4 * piece.count);
        detail::copy_box<item>(piece.row + 4 * piece.skip * item, row, data, layout, at, count);
        const std::size_t done = (count[0] - 1) / 4 + 1;
        piece.skip += done, piece.number += done, piece.count -= done;
    }
}

}  // namespace tamis::zfp

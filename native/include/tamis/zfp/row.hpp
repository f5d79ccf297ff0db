// Blocks that were decoded beside each other, and from there to their places in an array.
#pragma once

#include <algorithm>
#include <cstring>

#include "types.hpp"

namespace tamis::zfp {

// Blocks side by side along x.
inline Layout row_of_blocks(unsigned rank, std::size_t count) {
    std::array<std::size_t, max_rank> extent{block_side * count, 1, 1, 1};
    for (unsigned axis = 1; axis < rank; ++axis) extent[axis] = 4;
    return Layout::contiguous(rank, extent);
}

// Some blocks of such a row, and the number that the first of them has in its array.
struct Piece {
    const std::uint8_t* row;
    std::size_t row_blocks, skip, count, number;
};

namespace detail {

// Copy a box along `axis` and all faster ones, with strides in bytes.
template <std::size_t item, unsigned axis>
void copy_box(const std::uint8_t* from, const std::ptrdiff_t* from_step, std::uint8_t* to,
              const std::ptrdiff_t* to_step, const std::size_t* count) {
    if constexpr (axis == 0) {
        if (to_step[0] == item) {
            std::memcpy(to, from, count[0] * item);
            return;
        }
    }
    for (std::size_t i = 0; i < count[axis]; ++i, from += from_step[axis], to += to_step[axis]) {
        if constexpr (axis == 0)
            std::memcpy(to, from, item);
        else
            copy_box<item, axis - 1>(from, from_step, to, to_step, count);
    }
}

template <std::size_t item>
std::array<std::ptrdiff_t, max_rank> steps(const Layout& layout) {
    auto nbytes = layout.stride;
    for (auto& each : nbytes) each *= static_cast<std::ptrdiff_t>(item);
    return nbytes;
}

}  // namespace detail

// Copy blocks to their places in an array; what lies beyond its ends is left out.
template <std::size_t item>
void put_in_place(Piece piece, std::uint8_t* data, const Layout& layout) {
    const auto from_step = detail::steps<item>(row_of_blocks(layout.rank, piece.row_blocks));
    const auto to_step = detail::steps<item>(layout);
    while (piece.count > 0) {
        std::array<std::size_t, max_rank> count{1, 1, 1, 1};
        std::size_t number = piece.number;
        std::uint8_t* to = data;
        for (unsigned axis = 0; axis < layout.rank; ++axis) {
            const std::size_t blocks = count_blocks(layout.extent[axis]), at = number % blocks;
            number /= blocks;
            to += block_side * static_cast<std::ptrdiff_t>(at) * to_step[axis];
            // Of a row all blocks that there are; along other axes one.
            count[axis] =
                std::min(layout.extent[axis] - block_side * at, axis == 0 ? block_side * piece.count : block_side);
        }
        detail::copy_box<item, max_rank - 1>(piece.row + block_side * piece.skip * item, from_step.data(), to,
                                             to_step.data(), count.data());
        const std::size_t done = count_blocks(count[0]);
        piece.skip += done, piece.number += done, piece.count -= done;
    }
}

}  // namespace tamis::zfp

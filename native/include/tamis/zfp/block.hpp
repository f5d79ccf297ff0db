// Blocks of 4^rank values: out of a strided array, and back into it.
//
// All in line: an instantiation of its own would be shared by kernels for different instruction sets.
#pragma once

#include <cstring>

#include "types.hpp"

namespace tamis::zfp {

// The part of a block inside the array: 1 … 4 values per axis.
using Counts = std::array<unsigned, max_rank>;

// A block in its array: its first value, and how much of it is inside.
template <class Scalar>
struct Place {
    Scalar* at;
    Counts counts;
    bool whole;  // all of it
};

namespace detail {

// A line of a partial block, filled up so that it costs few bits: p0 → p0,p0,p0,p0; p0,p1 → p0,p1,p1,p0;
// p0,p1,p2 → p0,p1,p2,p0.
template <class Scalar>
inline void pad_line(Scalar* line, std::size_t stride, unsigned count) {
    if (count < 2) line[stride] = line[0];
    if (count < 3) line[2 * stride] = line[stride];
    if (count < 4) line[3 * stride] = line[0];
}

}  // namespace detail

// Whole blocks. With `dense`, x has stride 1 and a line is one copy.
template <unsigned rank, bool dense, class Scalar>
[[gnu::always_inline]] inline void gather(Scalar* block, const Scalar* from, const Layout& layout) {
    constexpr unsigned axis = rank - 1;
    if constexpr (axis == 0 && dense) {
        std::memcpy(block, from, 4 * sizeof(Scalar));
    } else {
        for (unsigned i = 0; i < 4; ++i, from += layout.stride[axis]) {
            if constexpr (axis == 0)
                block[i] = *from;
            else
                gather<axis, dense>(block + i * block_size(axis), from, layout);
        }
    }
}

template <unsigned rank, bool dense, class Scalar>
[[gnu::always_inline]] inline void scatter(const Scalar* block, Scalar* to, const Layout& layout) {
    constexpr unsigned axis = rank - 1;
    if constexpr (axis == 0 && dense) {
        std::memcpy(to, block, 4 * sizeof(Scalar));
    } else {
        for (unsigned i = 0; i < 4; ++i, to += layout.stride[axis]) {
            if constexpr (axis == 0)
                *to = block[i];
            else
                scatter<axis, dense>(block + i * block_size(axis), to, layout);
        }
    }
}

// Blocks at the end of an axis: the valid lines are padded along x, then all of x along y, and so on.
template <unsigned rank, class Scalar>
[[gnu::always_inline]] inline void gather_partial(Scalar* block, const Scalar* from, const Layout& layout,
                                                  const Counts& counts) {
    constexpr unsigned axis = rank - 1;
    constexpr std::size_t stride = block_size(axis);
    for (unsigned i = 0; i < counts[axis]; ++i, from += layout.stride[axis]) {
        if constexpr (axis == 0)
            block[i] = *from;
        else
            gather_partial<axis>(block + i * stride, from, layout, counts);
    }
    for (std::size_t lane = 0; lane < stride; ++lane) detail::pad_line(block + lane, stride, counts[axis]);
}

template <unsigned rank, class Scalar>
[[gnu::always_inline]] inline void scatter_partial(const Scalar* block, Scalar* to, const Layout& layout,
                                                   const Counts& counts) {
    constexpr unsigned axis = rank - 1;
    for (unsigned i = 0; i < counts[axis]; ++i, to += layout.stride[axis]) {
        if constexpr (axis == 0)
            *to = block[i];
        else
            scatter_partial<axis>(block + i * block_size(axis), to, layout, counts);
    }
}

// Out of the array and back, whichever way the block lies.
template <unsigned rank, class Scalar>
[[gnu::always_inline]] inline void load_block(Scalar* block, const Place<const Scalar>& place, const Layout& layout) {
    if (!place.whole)
        gather_partial<rank>(block, place.at, layout, place.counts);
    else if (layout.stride[0] == 1)
        gather<rank, true>(block, place.at, layout);
    else
        gather<rank, false>(block, place.at, layout);
}

template <unsigned rank, class Scalar>
[[gnu::always_inline]] inline void store_block(const Scalar* block, const Place<Scalar>& place, const Layout& layout) {
    if (!place.whole)
        scatter_partial<rank>(block, place.at, layout, place.counts);
    else if (layout.stride[0] == 1)
        scatter<rank, true>(block, place.at, layout);
    else
        scatter<rank, false>(block, place.at, layout);
}

}  // namespace tamis::zfp

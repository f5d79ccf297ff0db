// HDF5 filter 2: the first bytes of all items, then the second bytes, and so on. Bytes after the last whole item stay
// where they are.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <type_traits>

#include "tamis/filters/lanes.hpp"
#include "tamis/filters/status.hpp"

namespace tamis::filters {

inline constexpr std::size_t max_itemsize = std::size_t{1} << 20;

namespace detail {

// Bytes of items that are worked on at once: they are read once per eight bytes of an item, from the first cache.
inline constexpr std::size_t tile_nbytes = std::size_t{1} << 15;

inline std::size_t tile_items(std::size_t itemsize, std::size_t multiple) {
    return std::max(multiple, tile_nbytes / itemsize / multiple * multiple);
}

// Strides are std::size_t, or a constant where the pieces of an item are all of it.
template <class Stride>
inline constexpr bool dense = !std::is_same_v<Stride, std::size_t>;

// Sixteen pieces of `width` bytes, `stride` bytes apart. One behind the other they are vectors as they lie.
template <unsigned width, class Stride>
inline void load_pieces(Lanes (&v)[width], const std::uint8_t* in, Stride stride) {
    constexpr unsigned per = 16 / width;
#pragma GCC unroll 8
    for (unsigned k = 0; k < width; ++k) {
        if constexpr (dense<Stride>) {
            v[k] = load(in + 16 * k);
        } else {
            std::uint8_t pieces[16];
#pragma GCC unroll 8
            for (unsigned i = 0; i < per; ++i) std::memcpy(pieces + i * width, in + (k * per + i) * stride, width);
            v[k] = load(pieces);
        }
    }
}

template <unsigned width, class Stride>
inline void store_pieces(std::uint8_t* out, Stride stride, const Lanes (&v)[width]) {
    constexpr unsigned per = 16 / width;
#pragma GCC unroll 8
    for (unsigned k = 0; k < width; ++k) {
        if constexpr (dense<Stride>) {
            store(out + 16 * k, v[k]);
        } else {
            std::uint8_t pieces[16];
            store(pieces, v[k]);
#pragma GCC unroll 8
            for (unsigned i = 0; i < per; ++i) std::memcpy(out + (k * per + i) * stride, pieces + i * width, width);
        }
    }
}

// `width` columns of `count` items become rows, `row` bytes apart.
template <unsigned width>
inline void rows_of_columns(const std::uint8_t* in, std::size_t itemsize, std::size_t count, std::uint8_t* out,
                            std::size_t row) {
    std::size_t i = 0;
    const auto do_sixteen = [&](auto stride) {
        for (; i + 16 <= count; i += 16) {
            Lanes v[width];
            load_pieces(v, in + i * stride, stride);
            rotate_indices<4>(v);
#pragma GCC unroll 8
            for (unsigned k = 0; k < width; ++k) store(out + k * row + i, v[k]);
        }
    };
    if (itemsize == width)
        do_sixteen(std::integral_constant<std::size_t, width>());
    else
        do_sixteen(itemsize);
    for (; i < count; ++i)
        for (unsigned k = 0; k < width; ++k) out[k * row + i] = in[i * itemsize + k];
}

template <unsigned width>
inline void columns_of_rows(const std::uint8_t* in, std::size_t row, std::size_t count, std::uint8_t* out,
                            std::size_t itemsize) {
    std::size_t i = 0;
    const auto do_sixteen = [&](auto stride) {
        for (; i + 16 <= count; i += 16) {
            Lanes v[width];
#pragma GCC unroll 8
            for (unsigned k = 0; k < width; ++k) v[k] = load(in + k * row + i);
            rotate_indices<std::countr_zero(width)>(v);
            store_pieces(out + i * stride, stride, v);
        }
    };
    if (itemsize == width)
        do_sixteen(std::integral_constant<std::size_t, width>());
    else
        do_sixteen(itemsize);
    for (; i < count; ++i)
        for (unsigned k = 0; k < width; ++k) out[i * itemsize + k] = in[k * row + i];
}

// Cover the columns of an item, at least two, by groups of 2, 4 or 8: f<width>(first column). Where the last group
// does not fit, it begins earlier and does some columns again.
template <class F>
inline void for_each_group(std::size_t itemsize, F f) {
    const auto cover = [&]<unsigned width>() {
        for (std::size_t column = 0; column + width <= itemsize; column += width) f.template operator()<width>(column);
        if (itemsize % width != 0) f.template operator()<width>(itemsize - width);
    };
    if (itemsize >= 8)
        cover.template operator()<8>();
    else if (itemsize >= 4)
        cover.template operator()<4>();
    else
        cover.template operator()<2>();
}

// Items in tiles, and each tile in groups of columns: f<width>(first item, items, first column).
template <class F>
inline void for_each_tile(std::size_t itemsize, std::size_t count, std::size_t step, F f) {
    for (std::size_t i = 0; i < count; i += step) {
        const std::size_t items = std::min(step, count - i);
        if (itemsize == 1)
            f.template operator()<1>(i, items, 0);
        else
            for_each_group(itemsize,
                           [&]<unsigned width>(std::size_t column) { f.template operator()<width>(i, items, column); });
    }
}

// All whole items by f<width>(first item, items, first column), where there is anything to move; the rest is copied.
template <class F>
inline void shuffle_items(std::span<const std::uint8_t> in, std::size_t itemsize, std::uint8_t* out, F f) {
    const std::size_t count = in.size() / itemsize, whole = itemsize == 1 || count < 2 ? 0 : count * itemsize;
    if (whole != 0) for_each_tile(itemsize, count, tile_items(itemsize, 16), f);
    std::copy(in.begin() + static_cast<std::ptrdiff_t>(whole), in.end(), out + whole);
}

}  // namespace detail

inline Status check_itemsize(std::size_t itemsize) {
    return itemsize >= 1 && itemsize <= max_itemsize ? Status{} : Status{Code::bad_itemsize, itemsize};
}

// `out` has the size of `in`, and `itemsize` was checked.
inline void shuffle(std::span<const std::uint8_t> in, std::size_t itemsize, std::uint8_t* out) {
    const std::size_t count = in.size() / itemsize;
    detail::shuffle_items(in, itemsize, out, [&]<unsigned width>(std::size_t i, std::size_t items, std::size_t column) {
        detail::rows_of_columns<width>(in.data() + i * itemsize + column, itemsize, items, out + column * count + i,
                                       count);
    });
}

inline void unshuffle(std::span<const std::uint8_t> in, std::size_t itemsize, std::uint8_t* out) {
    const std::size_t count = in.size() / itemsize;
    detail::shuffle_items(in, itemsize, out, [&]<unsigned width>(std::size_t i, std::size_t items, std::size_t column) {
        detail::columns_of_rows<width>(in.data() + column * count + i, count, items, out + i * itemsize + column,
                                       itemsize);
    });
}

}  // namespace tamis::filters

// The bit transposition of HDF5 filter 32008: in each block, bit 0 of byte 0 of all items, then bit 1, and so on. The
// last block may be shorter; fewer than eight items at the end stay as they are.
//
// The layout is that of the bitshuffle library (Masui et al. 2015, doi:10.1016/j.ascom.2015.07.002).
#pragma once

#include "tamis/filters/shuffle.hpp"
#include "tamis/zfp/bytes.hpp"

namespace tamis::filters {

inline Status check_bitshuffle(std::size_t nbytes, std::size_t itemsize, std::size_t block) {
    if (const Status status = check_itemsize(itemsize); !status) return status;
    if (block == 0 || block % 8 != 0) return {Code::bad_block, block};
    if (nbytes % itemsize != 0) return {Code::wrong_nbytes, nbytes - nbytes % itemsize};
    return {};
}

namespace detail {

// Items between the two steps, for up to eight columns.
inline constexpr std::size_t staged_items = 1024;

// Bytes of `count` items, a multiple of eight, become eight planes, `plane` bytes apart.
inline void planes_of_row(const std::uint8_t* in, std::size_t count, std::uint8_t* out, std::size_t plane) {
    std::size_t i = 0;
    for (; i + 128 <= count; i += 128) {
        Lanes v[8];
#pragma GCC unroll 8
        for (unsigned k = 0; k < 8; ++k) v[k] = load(in + i + 16 * k);
        rotate_indices<4>(v);  // vector k: items 8 × lane + k
        transpose_bits(v);
#pragma GCC unroll 8
        for (unsigned k = 0; k < 8; ++k) store(out + k * plane + i / 8, v[k]);
    }
    for (; i < count; i += 8) {
        const std::uint64_t bits = transpose_bits(zfp::load_le64(in + i));
        for (unsigned k = 0; k < 8; ++k) out[k * plane + i / 8] = static_cast<std::uint8_t>(bits >> 8 * k);
    }
}

inline void row_of_planes(const std::uint8_t* in, std::size_t plane, std::size_t count, std::uint8_t* out) {
    std::size_t i = 0;
    for (; i + 128 <= count; i += 128) {
        Lanes v[8];
#pragma GCC unroll 8
        for (unsigned k = 0; k < 8; ++k) v[k] = load(in + k * plane + i / 8);
        transpose_bits(v);
        rotate_indices<3>(v);
#pragma GCC unroll 8
        for (unsigned k = 0; k < 8; ++k) store(out + i + 16 * k, v[k]);
    }
    for (; i < count; i += 8) {
        std::uint64_t bits = 0;
        for (unsigned k = 0; k < 8; ++k) bits |= std::uint64_t{in[k * plane + i / 8]} << 8 * k;
        zfp::store_le64(out + i, transpose_bits(bits));
    }
}

inline std::size_t bit_tile_items(std::size_t itemsize) { return std::min(staged_items, tile_items(itemsize, 128)); }

inline void bitshuffle_block(const std::uint8_t* in, std::size_t itemsize, std::size_t count, std::uint8_t* out) {
    const std::size_t plane = count / 8;
    alignas(16) std::uint8_t rows[8 * staged_items];
    const auto do_group = [&]<unsigned width>(std::size_t i, std::size_t items, std::size_t column) {
        const std::uint8_t* const from = in + i * itemsize + column;
        if constexpr (width == 1)
            planes_of_row(from, items, out + i / 8, plane);
        else {
            rows_of_columns<width>(from, itemsize, items, rows, staged_items);
            for (std::size_t k = 0; k < width; ++k)
                planes_of_row(rows + k * staged_items, items, out + (column + k) * count + i / 8, plane);
        }
    };
    for_each_tile(itemsize, count, bit_tile_items(itemsize), do_group);
}

inline void bitunshuffle_block(const std::uint8_t* in, std::size_t itemsize, std::size_t count, std::uint8_t* out) {
    const std::size_t plane = count / 8;
    alignas(16) std::uint8_t rows[8 * staged_items];
    const auto do_group = [&]<unsigned width>(std::size_t i, std::size_t items, std::size_t column) {
        std::uint8_t* const to = out + i * itemsize + column;
        if constexpr (width == 1)
            row_of_planes(in + i / 8, plane, items, to);
        else {
            for (std::size_t k = 0; k < width; ++k)
                row_of_planes(in + (column + k) * count + i / 8, plane, items, rows + k * staged_items);
            columns_of_rows<width>(rows, staged_items, items, to, itemsize);
        }
    };
    for_each_tile(itemsize, count, bit_tile_items(itemsize), do_group);
}

template <class F>
inline void for_each_block(std::span<const std::uint8_t> in, std::size_t itemsize, std::size_t block, std::uint8_t* out,
                           F f) {
    const std::size_t count = in.size() / itemsize, whole = count - count % 8;
    for (std::size_t i = 0; i < whole;) {
        const std::size_t items = std::min(block, whole - i);
        f(in.data() + i * itemsize, itemsize, items, out + i * itemsize);
        i += items;
    }
    std::copy(in.begin() + static_cast<std::ptrdiff_t>(whole * itemsize), in.end(), out + whole * itemsize);
}

}  // namespace detail

// `out` has the size of `in`; sizes were checked.
inline void bitshuffle(std::span<const std::uint8_t> in, std::size_t itemsize, std::size_t block, std::uint8_t* out) {
    detail::for_each_block(in, itemsize, block, out, detail::bitshuffle_block);
}

inline void bitunshuffle(std::span<const std::uint8_t> in, std::size_t itemsize, std::size_t block, std::uint8_t* out) {
    detail::for_each_block(in, itemsize, block, out, detail::bitunshuffle_block);
}

}  // namespace tamis::filters

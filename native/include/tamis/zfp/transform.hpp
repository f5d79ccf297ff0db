// The block transform: lines are lifted along x, then y, z, w, and back in the opposite order.
//
// All sums wrap, so they are done unsigned; only the halvings are signed.
#pragma once

#include "types.hpp"

namespace tamis::zfp {

namespace detail {

template <class UInt>
constexpr UInt half(UInt value) {
    return static_cast<UInt>(static_cast<std::make_signed_t<UInt>>(value) >> 1);
}

// Lossy: near-orthogonal, loses the lowest bits.
struct LossyLift {
    template <class UInt>
    [[gnu::always_inline]] static void forward(UInt& x, UInt& y, UInt& z, UInt& w) {
        x = half<UInt>(x + w), w -= x;
        z = half<UInt>(z + y), y -= z;
        x = half<UInt>(x + z), z -= x;
        w = half<UInt>(w + y), y -= w;
        w += half(y), y -= half(w);
    }
    template <class UInt>
    [[gnu::always_inline]] static void inverse(UInt& x, UInt& y, UInt& z, UInt& w) {
        y += half(w), w -= half(y);
        y += w, w -= y - w;
        z += x, x -= z - x;
        y += z, z -= y - z;
        w += x, x -= w - x;
    }
};

// Reversible: differences of differences.
struct ReversibleLift {
    template <class UInt>
    [[gnu::always_inline]] static void forward(UInt& x, UInt& y, UInt& z, UInt& w) {
        w -= z, z -= y, y -= x;
        w -= z, z -= y;
        w -= z;
    }
    template <class UInt>
    [[gnu::always_inline]] static void inverse(UInt& x, UInt& y, UInt& z, UInt& w) {
        w += z;
        z += y, w += z;
        y += x, z += y, w += z;
    }
};

// Lines along one axis, `stride` apart inside a line; lines beside each other are done side by side.
template <class Step, unsigned stride, unsigned size, class UInt>
inline void along_axis(UInt* block, Step step) {
    for (unsigned base = 0; base < size; base += 4 * stride)
        for (unsigned lane = 0; lane < stride; ++lane) {
            UInt* p = block + base + lane;
            step(p[0], p[stride], p[2 * stride], p[3 * stride]);
        }
}

}  // namespace detail

template <class Lift, unsigned rank, class UInt>
inline void forward_transform(UInt* block) {
    constexpr auto step = [](UInt& x, UInt& y, UInt& z, UInt& w) { Lift::forward(x, y, z, w); };
    constexpr unsigned size = block_size(rank);
    detail::along_axis<decltype(step), 1, size>(block, step);
    if constexpr (rank > 1) detail::along_axis<decltype(step), 4, size>(block, step);
    if constexpr (rank > 2) detail::along_axis<decltype(step), 16, size>(block, step);
    if constexpr (rank > 3) detail::along_axis<decltype(step), 64, size>(block, step);
}

template <class Lift, unsigned rank, class UInt>
inline void inverse_transform(UInt* block) {
    constexpr auto step = [](UInt& x, UInt& y, UInt& z, UInt& w) { Lift::inverse(x, y, z, w); };
    constexpr unsigned size = block_size(rank);
    if constexpr (rank > 3) detail::along_axis<decltype(step), 64, size>(block, step);
    if constexpr (rank > 2) detail::along_axis<decltype(step), 16, size>(block, step);
    if constexpr (rank > 1) detail::along_axis<decltype(step), 4, size>(block, step);
    detail::along_axis<decltype(step), 1, size>(block, step);
}

// The integers that the lossy transform takes without overflow: magnitudes below 2^(n - 2), of n bits.
template <class UInt>
constexpr bool in_lossy_range(UInt value) {
    constexpr UInt limit = (UInt{1} << (8 * sizeof(UInt) - 2)) - 1;
    return static_cast<UInt>(value + limit) <= 2 * limit;
}

// Negabinary (base -2): small values of either sign have few leading ones.
template <class UInt>
inline constexpr UInt negabinary_mask = static_cast<UInt>(0xaaaaaaaaaaaaaaaaULL);

template <class UInt>
constexpr UInt to_negabinary(UInt value) {
    return (value + negabinary_mask<UInt>)^negabinary_mask<UInt>;
}

template <class UInt>
constexpr UInt from_negabinary(UInt value) {
    return (value ^ negabinary_mask<UInt>)-negabinary_mask<UInt>;
}

}  // namespace tamis::zfp

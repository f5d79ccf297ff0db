// The four scalar types of the codec and what the format fixes for each of them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tamis::zfp {

// Values as libzfp numbers them; the header stores `type - 1`.
enum class Type : unsigned { int32 = 1, int64 = 2, float32 = 3, float64 = 4 };

inline constexpr unsigned max_rank = 4;

// A block has this many values along each axis; values beyond the array are made up.
inline constexpr unsigned block_side = 4;

constexpr std::size_t item_nbytes(Type type) { return type == Type::int32 || type == Type::float32 ? 4 : 8; }

constexpr bool is_float(Type type) { return type == Type::float32 || type == Type::float64; }

// Values of a block of `rank` axes.
constexpr unsigned block_size(unsigned rank) { return 1u << (2 * rank); }
static_assert(block_size(1) == block_side && block_size(2) == block_side * block_side);

// Blocks along an axis.
constexpr std::size_t count_blocks(std::size_t extent) { return extent / block_side + (extent % block_side != 0); }

template <class Scalar>
struct Traits;

// ebits, ebias: exponent of a float block; pbits: width of a reversible block's plane count.
template <>
struct Traits<float> {
    using Int = std::int32_t;
    using UInt = std::uint32_t;
    static constexpr Type type = Type::float32;
    static constexpr unsigned ebits = 8, pbits = 5, mantissa_nbits = 23;
    static constexpr int ebias = 127;
};

template <>
struct Traits<double> {
    using Int = std::int64_t;
    using UInt = std::uint64_t;
    static constexpr Type type = Type::float64;
    static constexpr unsigned ebits = 11, pbits = 6, mantissa_nbits = 52;
    static constexpr int ebias = 1023;
};

template <>
struct Traits<std::int32_t> {
    using Int = std::int32_t;
    using UInt = std::uint32_t;
    static constexpr Type type = Type::int32;
    static constexpr unsigned ebits = 0, pbits = 5;
};

template <>
struct Traits<std::int64_t> {
    using Int = std::int64_t;
    using UInt = std::uint64_t;
    static constexpr Type type = Type::int64;
    static constexpr unsigned ebits = 0, pbits = 6;
};

// Bits of the integers that a block is turned into: 32 or 64.
template <class Scalar>
inline constexpr unsigned int_nbits = 8 * sizeof(Scalar);

// Extents and strides of an array, in elements, fastest axis (x) first. Unused axes have extent 1.
struct Layout {
    unsigned rank = 1;
    std::array<std::size_t, max_rank> extent{1, 1, 1, 1};
    std::array<std::ptrdiff_t, max_rank> stride{0, 0, 0, 0};

    static constexpr Layout contiguous(unsigned rank, const std::array<std::size_t, max_rank>& extent) {
        Layout layout{rank, extent, {0, 0, 0, 0}};
        std::size_t stride = 1;  // wraps for arrays that no memory holds, which callers refuse before they use it
        for (unsigned axis = 0; axis < rank; ++axis) {
            layout.stride[axis] = static_cast<std::ptrdiff_t>(stride);
            stride *= extent[axis];
        }
        return layout;
    }

    constexpr std::size_t blocks() const {
        std::size_t count = 1;
        for (unsigned axis = 0; axis < rank; ++axis) count *= count_blocks(extent[axis]);
        return count;
    }
};

}  // namespace tamis::zfp

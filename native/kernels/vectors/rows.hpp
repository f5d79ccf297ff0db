// Blocks in vector registers, whatever these are, and the block transform on them.
//
// A register type has `blocks`, how many blocks it holds values of; `UInt`, their integers; `all`, of one value; sums,
// differences and exclusive ors. `transpose` and `half`, too, are found by its namespace.
#pragma once

#include "tamis/zfp/transform.hpp"

namespace tamis::zfp::vectors {

// Something about each block of a register.
template <class Register, class Value>
using PerBlock = Value[Register::blocks];
template <class Register>
using UIntPerBlock = PerBlock<Register, typename Register::UInt>;

template <class Register>
[[gnu::always_inline]] inline Register negabinary(Register v) {
    const Register mask = Register::all(negabinary_mask<typename Register::UInt>);
    return (v + mask) ^ mask;
}

template <class Register>
[[gnu::always_inline]] inline Register out_of_negabinary(Register v) {
    const Register mask = Register::all(negabinary_mask<typename Register::UInt>);
    return (v ^ mask) - mask;
}

// A block of 2 to 4 axes: row y + 4z + 16w holds four values along x. Of blocks of one axis, row x holds a value of
// each.
template <class Register, unsigned rank>
using Rows = Register[rank == 1 ? 4 : block_size(rank) / 4];

// Visit the rows of a block of 2 to 4 axes: number, and where it is from the first.
template <unsigned rank, class Visit>
[[gnu::always_inline]] inline void for_each_row(const Layout& layout, Visit visit) {
    unsigned row = 0;
    for (unsigned w = 0; w < (rank > 3 ? 4 : 1); ++w)
        for (unsigned z = 0; z < (rank > 2 ? 4 : 1); ++z)
            for (unsigned y = 0; y < 4; ++y, ++row)
                visit(row, w * layout.stride[3] + z * layout.stride[2] + y * layout.stride[1]);
}

// Lines along an axis on which rows are `stride` apart.
template <unsigned stride, std::size_t count, class Register, class Step>
[[gnu::always_inline]] inline void along_rows(Register (&v)[count], Step step) {
    for (unsigned first = 0; first < count; first += 4 * stride)
        for (unsigned i = first; i < first + stride; ++i)
            step(v[i], v[i + stride], v[i + 2 * stride], v[i + 3 * stride]);
}

// Lines along x lie inside a register, so the block is turned over once (x ↔ its slowest axis), lifted along x and the
// axes between without a further shuffle, turned back and lifted along the slowest axis: two transpositions instead of
// four.
template <class Lift, unsigned rank, class Register>
[[gnu::always_inline]] inline void forward_transform(Rows<Register, rank>& v) {
    constexpr auto lift = [](Register& a, Register& b, Register& c, Register& d) { Lift::forward(a, b, c, d); };
    if constexpr (rank == 1) {
        lift(v[0], v[1], v[2], v[3]);
    } else {
        constexpr unsigned slowest = block_size(rank) / 16;
        constexpr auto turn_and_lift = [](Register& a, Register& b, Register& c, Register& d) {
            transpose(a, b, c, d);
            Lift::forward(a, b, c, d);
        };
        along_rows<slowest>(v, turn_and_lift);
        if constexpr (rank > 2) along_rows<1>(v, lift);
        if constexpr (rank > 3) along_rows<4>(v, lift);
        along_rows<slowest>(v, turn_and_lift);
    }
}

template <class Lift, unsigned rank, class Register>
[[gnu::always_inline]] inline void inverse_transform(Rows<Register, rank>& v) {
    constexpr auto lift = [](Register& a, Register& b, Register& c, Register& d) { Lift::inverse(a, b, c, d); };
    if constexpr (rank == 1) {
        lift(v[0], v[1], v[2], v[3]);
    } else {
        constexpr unsigned slowest = block_size(rank) / 16;
        constexpr auto lift_and_turn = [](Register& a, Register& b, Register& c, Register& d) {
            Lift::inverse(a, b, c, d);
            transpose(a, b, c, d);
        };
        along_rows<slowest>(v, lift_and_turn);
        if constexpr (rank > 3) along_rows<4>(v, lift);
        if constexpr (rank > 2) along_rows<1>(v, lift);
        along_rows<slowest>(v, lift_and_turn);
    }
}

}  // namespace tamis::zfp::vectors

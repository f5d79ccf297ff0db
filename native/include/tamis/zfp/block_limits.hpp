// What the parameters allow a block: how many planes, and how many bits.
//
// `Kernel` is a type that the kernel's file keeps to itself, so that no two instruction sets share an instantiation.
#pragma once

#include "bits.hpp"
#include "params.hpp"

namespace tamis::zfp {

// Planes of a block of floats below 2^exponent.
template <class Kernel>
unsigned float_precision(const Params& params, unsigned rank, int exponent) {
    // Beyond what a header can say nothing is left of any block.
    const int planes = exponent - std::min(params.minexp, header_max_exp) + 2 * static_cast<int>(rank) + 2;
    return std::min(params.maxprec, static_cast<unsigned>(std::max(planes, 0)));
}

// Planes of a reversible block: down to the lowest one that is not empty. `any` holds the bits of all coefficients.
template <class Kernel, class UInt>
unsigned reversible_precision(const Params& params, UInt any) {
    const unsigned used = any == 0 ? 0 : 8 * sizeof(UInt) - static_cast<unsigned>(std::countr_zero(any));
    return std::max(1u, std::min(used, params.maxprec));
}

// Cut the block that begins at bit `start` to maxbits, fill it up to minbits.
template <class Kernel>
void finish_block(const Params& params, BitWriter& writer, std::size_t start) {
    const std::size_t written = writer.position() - start;
    if (written > params.maxbits)
        writer.seek(start + params.maxbits);
    else if (written < params.minbits)
        writer.put_zeros(params.minbits - written);
}

}  // namespace tamis::zfp

// The codecs of kernels with AVX2, BMI1, BMI2, LZCNT and PCLMUL.
//
// `Kernel` is a type that the kernel's file keeps to itself, so that no two instruction sets share an instantiation. It
// is derived from Features, and replaces those that its processors have not, or have better.
#pragma once

#include "kernels/avx2/codec.hpp"
#include "kernels/avx2/line_codec.hpp"

namespace tamis::zfp::avx2 {

struct Features {
    // PDEP and PEXT in a few cycles; else they do not occur.
    static constexpr bool fast_pext = true;
    // Values of one or two blocks, or of one axis one value of each of many.
    template <class Scalar, unsigned rank>
    using Register = WordsOf<Scalar, rank>;
    // Byte planes ↔ bit planes.
    template <unsigned rank>
    using Matrices = avx2::Matrices<rank>;
};

template <class Kernel, class Scalar, unsigned rank, bool reversible>
using CodecOf = typename std::conditional_t<rank == 1, std::type_identity<LineCodec<Kernel, Scalar, reversible>>,
                                            std::type_identity<PairCodec<Kernel, Scalar, rank, reversible>>>::type;

}  // namespace tamis::zfp::avx2

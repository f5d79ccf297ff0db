// The kernel for x86-64 with AVX-512 (F, BW, DQ, VL, VBMI) and GFNI besides what avx2.cpp needs: Intel from Ice Lake
// and AMD from Zen 4 on.

#include "kernels/avx2/family.hpp"
#include "kernels/avx512/matrices.hpp"
#include "kernels/kernel.hpp"

namespace tamis::zfp {

namespace {

struct Avx512 : avx2::Features {
    template <class Scalar, unsigned rank>
    using Register = avx512::WordsOf<Scalar, rank>;
    template <unsigned rank>
    using Matrices = avx512::Matrices<rank>;

    template <class Scalar, unsigned rank, bool reversible>
    using Codec = avx2::CodecOf<Avx512, Scalar, rank, reversible>;
};

}  // namespace

const Kernel avx512_kernel = detail::kernel_of<Avx512>("avx512");

}  // namespace tamis::zfp

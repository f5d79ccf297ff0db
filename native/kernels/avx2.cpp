// The kernel for x86-64 with AVX2, BMI1, BMI2, LZCNT and PCLMUL: every x86 server of the last ten years.
//
// Only this file is compiled for that instruction set. What it instantiates carries a type of its own in its name or
// is inlined; tests/native looks at the object file for anything that another kernel could be linked to.

#include "kernels/avx2/family.hpp"
#include "kernels/kernel.hpp"

namespace tamis::zfp {

namespace {

struct Avx2 : avx2::Features {
    template <class Scalar, unsigned rank, bool reversible>
    using Codec = avx2::CodecOf<Avx2, Scalar, rank, reversible>;
};

}  // namespace

const Kernel avx2_kernel = detail::kernel_of<Avx2>("avx2");

}  // namespace tamis::zfp

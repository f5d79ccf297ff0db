// The kernel for x86-64 with AVX2 whose PDEP and PEXT are microcode: AMD before Zen 3, and Hygon. Casts, transforms and
// bit planes are those of avx2.cpp; planes are coded by counting zeros, as in portable.cpp, and PDEP and PEXT do not
// occur: tests/native looks for them in the object file.

#include "kernels/avx2/family.hpp"
#include "kernels/kernel.hpp"

namespace tamis::zfp {

namespace {

struct Avx2Tzcnt : avx2::Features {
    static constexpr bool fast_pext = false;

    template <class Scalar, unsigned rank, bool reversible>
    using Codec = avx2::CodecOf<Avx2Tzcnt, Scalar, rank, reversible>;
};

}  // namespace

const Kernel avx2_tzcnt_kernel = detail::kernel_of<Avx2Tzcnt>("avx2-tzcnt");

}  // namespace tamis::zfp

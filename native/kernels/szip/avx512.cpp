// The kernel for x86-64 with Avx512.

#include "kernels/szip/kernel.hpp"

namespace tamis::szip {

namespace {

struct Avx512 : Steps<Avx512> {};

}  // namespace

const Kernel avx512_kernel = detail::kernel_of<Avx512>("avx512");

}  // namespace tamis::szip

// The kernel for x86-64 with AVX2, BMI1, BMI2, LZCNT and POPCNT. Only this file is compiled for that instruction set.

#include "kernels/szip/avx2.hpp"
#include "kernels/szip/kernel.hpp"

namespace tamis::szip {

namespace {

struct Avx2 : Avx2Steps<Avx2> {};

}  // namespace

const Kernel avx2_kernel = detail::kernel_of<Avx2>("avx2");

}  // namespace tamis::szip

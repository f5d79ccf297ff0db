// For x86-64 with AVX-512. Only this file is compiled for that instruction set.

#include "kernels/pack/kernel.hpp"

namespace tamis::values {

namespace {

struct Avx512 {
    static constexpr std::size_t nbytes = 64;
};

}  // namespace

const PackKernel avx512_pack_kernel = detail::pack_kernel_of<Avx512>();

}  // namespace tamis::values

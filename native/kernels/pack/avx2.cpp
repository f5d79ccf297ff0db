// For x86-64 with AVX2. Only this file is compiled for that instruction set.

#include "kernels/pack/kernel.hpp"

namespace tamis::values {

namespace {

struct Avx2 {
    static constexpr std::size_t nbytes = 32;
};

}  // namespace

const PackKernel avx2_pack_kernel = detail::pack_kernel_of<Avx2>();

}  // namespace tamis::values

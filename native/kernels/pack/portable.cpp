// For every machine: vectors of 16 bytes are SSE2's, NEON's, or made of numbers by the compiler.

#include "kernels/pack/kernel.hpp"

namespace tamis::values {

namespace {

struct Portable {
    static constexpr std::size_t nbytes = 16;
};

}  // namespace

const PackKernel portable_pack_kernel = detail::pack_kernel_of<Portable>();

}  // namespace tamis::values

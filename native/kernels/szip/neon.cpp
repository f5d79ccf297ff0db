// The coder for aarch64, whose processors all have NEON.

#include "kernels/szip/neon.hpp"

#include "kernels/szip/kernel.hpp"

namespace tamis::szip {

namespace {

struct Neon : NeonSteps<Neon> {};

}  // namespace

const Kernel neon_kernel = detail::kernel_of<Neon>("neon");

}  // namespace tamis::szip

// The coder in plain C++: steps.hpp as it stands.

#include "kernels/szip/kernel.hpp"

namespace tamis::szip {

namespace {

struct Portable : Steps<Portable> {};

}  // namespace

const Kernel portable_kernel = detail::kernel_of<Portable>("portable");

}  // namespace tamis::szip

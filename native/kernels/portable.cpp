// The kernel in plain C++: block_codec.hpp as it stands, for every type and rank.

#include "kernels/kernel.hpp"

namespace tamis::zfp {

namespace {

struct Portable {
    template <class Scalar, unsigned rank, bool reversible>
    using Codec = BlockCodec<Portable, Scalar, rank, reversible>;
};

}  // namespace

const Kernel portable_kernel = detail::kernel_of<Portable>("portable");

}  // namespace tamis::zfp

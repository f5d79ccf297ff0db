// The kernel for aarch64, whose processors all have NEON.

#include "kernels/kernel.hpp"
#include "kernels/neon/codec.hpp"

namespace tamis::zfp {

namespace {

struct Neon {
    template <class Scalar, unsigned rank>
    using Register = neon::WordsOf<Scalar>;

    // Blocks of four values gain nothing.
    template <class Scalar, unsigned rank, bool reversible>
    using Codec =
        typename std::conditional_t<rank == 1, std::type_identity<BlockCodec<Neon, Scalar, rank, reversible>>,
                                    std::type_identity<neon::BlockCodec<Neon, Scalar, rank, reversible>>>::type;
};

}  // namespace

const Kernel neon_kernel = detail::kernel_of<Neon>("neon");

}  // namespace tamis::zfp

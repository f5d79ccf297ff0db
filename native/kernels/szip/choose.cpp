// Which kernel this process uses: the one like zfp's, which the environment may name.

#include "tamis/szip/kernel.hpp"

#include <string_view>

namespace tamis::szip {

const Kernel& kernel_like([[maybe_unused]] const char* zfp_kernel) {
#if defined(TAMIS_AVX512) || defined(TAMIS_AVX2) || defined(TAMIS_NEON)
    const std::string_view name = zfp_kernel;
#endif
#ifdef TAMIS_AVX512
    if (name == "avx512") return avx512_kernel;
#endif
#ifdef TAMIS_AVX2
    if (name == "avx512" || name == "avx2") return avx2_kernel;
#endif
#ifdef TAMIS_NEON
    if (name == "neon") return neon_kernel;
#endif
    return portable_kernel;
}

}  // namespace tamis::szip

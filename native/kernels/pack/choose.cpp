// Which kernel this process uses: the one like zfp's, which the environment may name.

#include <string_view>

#include "tamis/values/packing.hpp"

namespace tamis::values {

const PackKernel& pack_kernel_like([[maybe_unused]] const char* zfp_kernel) {
#if defined(TAMIS_AVX512) || defined(TAMIS_AVX2)
    const std::string_view name = zfp_kernel;
#endif
#ifdef TAMIS_AVX512
    if (name == "avx512") return avx512_pack_kernel;
#endif
#ifdef TAMIS_AVX2
    if (name != "portable") return avx2_pack_kernel;  // avx2_tzcnt, too
#endif
    return portable_pack_kernel;
}

}  // namespace tamis::values

// Which kernel this process uses.

#include <cstdlib>
#include <cstring>

#include "kernels/choose.hpp"
#include "tamis/once.hpp"

namespace tamis::zfp {

KernelList kernels_for([[maybe_unused]] const Cpu& cpu) {
    KernelList list;
#ifdef TAMIS_NEON
    list.add(neon_kernel);
#endif
#ifdef TAMIS_AVX512
    if (cpu.avx512 && cpu.fast_pext) list.add(avx512_kernel);
#endif
#ifdef TAMIS_AVX2
    if (cpu.avx2 && cpu.fast_pext) list.add(avx2_kernel);
#endif
#ifdef TAMIS_AVX2_TZCNT
    if (cpu.avx2) list.add(avx2_tzcnt_kernel);
#endif
    list.add(portable_kernel);
#ifdef TAMIS_AVX2
    if (cpu.avx2 && !cpu.fast_pext) list.add(avx2_kernel);
#endif
#ifdef TAMIS_AVX512
    if (cpu.avx512 && !cpu.fast_pext) list.add(avx512_kernel);
#endif
    return list;
}

KernelList available_kernels() {
    constinit static Once<KernelList> once;
    return once.get([] { return kernels_for(detect_cpu()); });
}

const Kernel* find_kernel(const char* name) {
    for (const Kernel* kernel : available_kernels())
        if (std::strcmp(kernel->name, name) == 0) return kernel;
    return nullptr;
}

Choice chosen_kernel() {
    constinit static Once<Choice> once;
    return once.get([] {
        const char* asked = std::getenv(kernel_variable);
        const bool any = asked == nullptr || *asked == '\0';
        const Kernel* found = any ? nullptr : find_kernel(asked);
        return Choice{found != nullptr ? found : available_kernels()[0], any || found != nullptr};
    });
}

}  // namespace tamis::zfp

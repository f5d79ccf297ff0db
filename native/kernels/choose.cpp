// Which kernel this process uses.

#include <cstdlib>
#include <cstring>

#include "kernels/cpu.hpp"
#include "tamis/zfp/codec.hpp"

namespace tamis::zfp {

namespace {

struct Table {
    const Kernel* kernels[2];
    std::size_t count = 0;

    void add(const Kernel& kernel) { kernels[count++] = &kernel; }
};

// Best first.
Table usable() {
    Table table;
    const Cpu cpu = detect_cpu();
#ifdef __x86_64__
    if (cpu.avx2 && cpu.fast_pext) table.add(avx2_kernel);
#endif
    table.add(portable_kernel);
#ifdef __x86_64__
    if (cpu.avx2 && !cpu.fast_pext) table.add(avx2_kernel);
#endif
    return table;
}

}  // namespace

std::span<const Kernel* const> available_kernels() {
    static const Table table = usable();
    return {table.kernels, table.count};
}

const Kernel* find_kernel(const char* name) {
    for (const Kernel* kernel : available_kernels())
        if (std::strcmp(kernel->name, name) == 0) return kernel;
    return nullptr;
}

const Choice& chosen_kernel() {
    static const Choice choice = [] {
        const char* asked = std::getenv(kernel_variable);
        const bool any = asked == nullptr || *asked == '\0';
        const Kernel* found = any ? nullptr : find_kernel(asked);
        return Choice{found != nullptr ? found : available_kernels().front(), any || found != nullptr};
    }();
    return choice;
}

}  // namespace tamis::zfp

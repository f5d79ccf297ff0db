// Which kernels a processor can run.
#pragma once

#include <array>

#include "kernels/cpu.hpp"
#include "tamis/zfp/codec.hpp"

namespace tamis::zfp {

struct KernelList {
    std::array<const Kernel*, 4> kernels{};
    std::size_t count = 0;

    void add(const Kernel& kernel) { kernels[count++] = &kernel; }
};

// The first one is chosen where none is asked for.
KernelList kernels_for(const Cpu& cpu);

}  // namespace tamis::zfp

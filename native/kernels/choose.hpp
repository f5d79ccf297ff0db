// Which kernels a processor can run.
#pragma once

#include "kernels/cpu.hpp"
#include "tamis/zfp/codec.hpp"

namespace tamis::zfp {

// The first one is chosen where none is asked for.
KernelList kernels_for(const Cpu& cpu);

}  // namespace tamis::zfp

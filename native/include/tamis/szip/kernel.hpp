// The coder for each instruction set, and the choice of one.
#pragma once

#include "tamis/szip/params.hpp"

namespace tamis::szip {

struct Kernel {
    const char* name;
    // Stream of `count` samples; `nbytes` of `out` are filled.
    Status (*encode)(const Coding&, const std::uint8_t* in, std::size_t count, std::span<std::uint8_t> out,
                     std::size_t& nbytes);
    Status (*decode)(const Coding&, std::span<const std::uint8_t> in, std::uint8_t* out, std::size_t count);
    // Bytes of the stream that `encode` would make.
    Status (*measure)(const Coding&, const std::uint8_t* in, std::size_t count, std::size_t& nbytes);
};

extern const Kernel portable_kernel;
// x86-64 with AVX2, BMI2, and PDEP and PEXT in a few cycles; and AVX-512 with VBMI and VBMI2.
extern const Kernel avx2_kernel, avx512_kernel;
// Any little-endian aarch64.
extern const Kernel neon_kernel;

// The one for the machine that a kernel of zfp is made for.
const Kernel& kernel_like(const char* zfp_kernel);

}  // namespace tamis::szip

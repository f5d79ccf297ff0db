// The codec as its callers see it: arrays of any type and rank, through the kernel chosen for this machine.
#pragma once

#include <span>

#include "header.hpp"
#include "stream.hpp"

namespace tamis::zfp {

// One implementation. All kernels give the same bytes; params have passed `check`, layouts have 1 … 4 axes.
struct Kernel {
    const char* name;
    Status (*encode)(Type, const void* data, const Layout&, const Params&, std::uint8_t* out, std::size_t start,
                     std::size_t& end);
    Status (*decode)(Type, void* data, const Layout&, const Params&, std::span<const std::uint8_t> in,
                     std::size_t start, std::size_t& end);
};

// Plain C++, for every machine.
extern const Kernel portable_kernel;

}  // namespace tamis::zfp

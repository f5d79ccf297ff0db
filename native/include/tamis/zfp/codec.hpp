// The codec as its callers see it: arrays of any type and rank, through the kernel chosen for this machine.
#pragma once

#include <array>
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
    // Bits at which the blocks end that follow bit `start`; returns how many were found.
    std::size_t (*walk)(Type, unsigned rank, const Params&, std::span<const std::uint8_t> in, std::size_t start,
                        std::span<std::size_t> ends);
};

// Plain C++, for every machine.
extern const Kernel portable_kernel;
// x86-64 with AVX2, BMI2 and PCLMUL; the second one without PDEP and PEXT.
extern const Kernel avx2_kernel, avx2_tzcnt_kernel;
// These, and AVX-512 with GFNI; not there if the compiler lacks them (TAMIS_AVX512).
extern const Kernel avx512_kernel;
// Any little-endian aarch64.
extern const Kernel neon_kernel;

class KernelList {
public:
    void add(const Kernel& kernel) { kernels_[count_++] = &kernel; }
    const Kernel* const* begin() const { return kernels_.data(); }
    const Kernel* const* end() const { return kernels_.data() + count_; }
    const Kernel* operator[](std::size_t number) const { return kernels_[number]; }
    std::size_t size() const { return count_; }

private:
    std::array<const Kernel*, 4> kernels_{};
    std::size_t count_ = 0;
};

// Those that this machine can run, the one that is chosen first.
KernelList available_kernels();

// By name; null if this machine cannot run it or there is none.
const Kernel* find_kernel(const char* name);

// Names the kernel to use; unset or empty, it is the first.
inline constexpr const char* kernel_variable = "TAMIS_KERNEL";

struct Choice {
    const Kernel* kernel;
    bool as_asked;  // false where the variable names none that is available; then `kernel` is the first
};

// The same for as long as the process lives.
Choice chosen_kernel();

}  // namespace tamis::zfp

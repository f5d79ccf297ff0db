// What the processor can do, and whether the system keeps its registers for us.
#pragma once

#ifdef __x86_64__
#include <cpuid.h>

#include <cstdint>
#include <cstring>
#endif

namespace tamis::zfp {

struct Cpu {
    bool avx2 = false;       // with BMI1, BMI2, LZCNT, POPCNT and PCLMUL, and a system that saves ymm registers
    bool fast_pext = false;  // PDEP and PEXT in a few cycles
};

#ifdef __x86_64__

namespace detail {

struct CpuidLeaf {
    unsigned a = 0, b = 0, c = 0, d = 0;  // all zero where the processor has no such leaf

    CpuidLeaf(unsigned leaf, unsigned subleaf) { __get_cpuid_count(leaf, subleaf, &a, &b, &c, &d); }
};

constexpr bool has(unsigned word, unsigned bit) { return word >> bit & 1; }

// Registers that the system saves when it changes between programs: bit 1 is SSE's, bit 2 AVX's.
inline unsigned saved_registers() {
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

// AMD before Zen 3 (family 0x19), and Hygon, which is Zen 1, run PDEP and PEXT as microcode: up to 300 cycles.
inline bool slow_pext() {
    const CpuidLeaf vendor(0, 0), version(1, 0);
    char name[12];
    std::memcpy(name, &vendor.b, 4);
    std::memcpy(name + 4, &vendor.d, 4);
    std::memcpy(name + 8, &vendor.c, 4);
    const unsigned family = version.a >> 8 & 15, extended = version.a >> 20 & 255;
    if (std::memcmp(name, "HygonGenuine", 12) == 0) return true;
    return std::memcmp(name, "AuthenticAMD", 12) == 0 && (family < 15 || family + extended < 0x19);
}

}  // namespace detail

inline Cpu detect_cpu() {
    using detail::has;
    const detail::CpuidLeaf basic(1, 0), wide(7, 0), more(0x80000001, 0);
    const bool pclmul = has(basic.c, 1), popcnt = has(basic.c, 23), osxsave = has(basic.c, 27), avx = has(basic.c, 28);
    const bool bmi1 = has(wide.b, 3), avx2 = has(wide.b, 5), bmi2 = has(wide.b, 8), lzcnt = has(more.c, 5);
    const bool ymm = osxsave && avx && (detail::saved_registers() & 6) == 6;
    return {ymm && avx2 && bmi1 && bmi2 && lzcnt && popcnt && pclmul, bmi2 && !detail::slow_pext()};
}

#else

inline Cpu detect_cpu() { return {}; }

#endif

}  // namespace tamis::zfp

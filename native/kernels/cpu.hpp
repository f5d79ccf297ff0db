// What the processor can do, and whether the system keeps its registers for us.
#pragma once

#ifdef __x86_64__
#include <cpuid.h>

#include <cstring>
#endif

#include <string_view>

namespace tamis::zfp {

struct Cpu {
    bool avx2 = false;       // with BMI1, BMI2, LZCNT, POPCNT and PCLMUL, and a system that saves ymm registers
    bool fast_pext = false;  // PDEP and PEXT in a few cycles
    bool avx512 = false;     // the former, AVX-512 F, BW, DQ, VL, VBMI, VBMI2 and GFNI, and a system that saves zmm
};

// AMD before Zen 3 (family 0x19), and Hygon, which is Zen 1, run PDEP and PEXT as microcode: up to 300 cycles.
// `version` is that of CPUID's leaf 1.
constexpr bool slow_pext(std::string_view vendor, unsigned version) {
    const unsigned family = version >> 8 & 15, extended = version >> 20 & 255;
    return vendor == "HygonGenuine" || (vendor == "AuthenticAMD" && (family < 15 || family + extended < 0x19));
}

#ifdef __x86_64__

namespace detail {

struct CpuidLeaf {
    unsigned a = 0, b = 0, c = 0, d = 0;  // all zero where the processor has no such leaf

    CpuidLeaf(unsigned leaf, unsigned subleaf) { __get_cpuid_count(leaf, subleaf, &a, &b, &c, &d); }
};

constexpr bool has(unsigned word, unsigned bit) { return word >> bit & 1; }

// Registers that the system saves when it changes between programs: bit 1 is SSE's, bit 2 AVX's, 5 to 7 AVX-512's.
inline unsigned saved_registers() {
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

// What leaf 0 says: the maker's name.
inline std::string_view vendor(char (&name)[12]) {
    const CpuidLeaf leaf(0, 0);
    std::memcpy(name, &leaf.b, 4);
    std::memcpy(name + 4, &leaf.d, 4);
    std::memcpy(name + 8, &leaf.c, 4);
    return {name, sizeof name};
}

}  // namespace detail

inline Cpu detect_cpu() {
    using detail::has;
    const detail::CpuidLeaf basic(1, 0), wide(7, 0), more(0x80000001, 0);
    const bool pclmul = has(basic.c, 1), popcnt = has(basic.c, 23), osxsave = has(basic.c, 27), avx = has(basic.c, 28);
    const bool bmi1 = has(wide.b, 3), avx2 = has(wide.b, 5), bmi2 = has(wide.b, 8), lzcnt = has(more.c, 5);
    const bool f = has(wide.b, 16), dq = has(wide.b, 17), bw = has(wide.b, 30), vl = has(wide.b, 31);
    const bool vbmi = has(wide.c, 1), vbmi2 = has(wide.c, 6), gfni = has(wide.c, 8);
    const unsigned saved = osxsave && avx ? detail::saved_registers() : 0;
    const bool ymm = (saved & 0x06) == 0x06, zmm = (saved & 0xe6) == 0xe6;
    char name[12];
    Cpu cpu;
    cpu.avx2 = ymm && avx2 && bmi1 && bmi2 && lzcnt && popcnt && pclmul;
    cpu.fast_pext = bmi2 && !slow_pext(detail::vendor(name), basic.a);
    cpu.avx512 = cpu.avx2 && zmm && f && dq && bw && vl && vbmi && vbmi2 && gfni;
    return cpu;
}

#else

inline Cpu detect_cpu() { return {}; }

#endif

}  // namespace tamis::zfp

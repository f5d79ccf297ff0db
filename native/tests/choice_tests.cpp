// Which kernels a processor gets, also one that this machine is not.

#include <string>

#include "cases.hpp"
#include "kernels/choose.hpp"
#include "tests.hpp"

using namespace tamis;
using namespace tamis::tests;

namespace {

// By the maker's name and what CPUID's leaf 1 says.
static_assert(!zfp::slow_pext("GenuineIntel", 0x000306c3), "Haswell");
static_assert(zfp::slow_pext("AuthenticAMD", 0x00660f01), "Excavator");
static_assert(zfp::slow_pext("AuthenticAMD", 0x00800f11), "Zen 1");
static_assert(zfp::slow_pext("AuthenticAMD", 0x00870f10), "Zen 2");
static_assert(!zfp::slow_pext("AuthenticAMD", 0x00a20f10), "Zen 3");
static_assert(!zfp::slow_pext("AuthenticAMD", 0x00b40f40), "Zen 5");
static_assert(zfp::slow_pext("HygonGenuine", 0x00900f01), "Dhyana");

std::string names(const zfp::Cpu& cpu) {
    const zfp::KernelList list = zfp::kernels_for(cpu);
    std::string names;
    for (const zfp::Kernel* kernel : list) names.append(kernel->name).append(" ");
    return names;
}

}  // namespace

void tamis::tests::test_choice() {
    place = {"processor", 0};
#ifdef TAMIS_NEON
    require(names({}) == "neon portable ", "every aarch64 has NEON");
#else
    require(names({}) == "portable ", "a processor without AVX2 runs the portable kernel");
    require(names({.fast_pext = true}) == "portable ", "PEXT alone is not enough");
#endif
#if defined(TAMIS_AVX2) && defined(TAMIS_AVX2_TZCNT)
    require(names({.avx2 = true, .fast_pext = true}) == "avx2 avx2-tzcnt portable ", "AVX2 comes first");
    require(names({.avx2 = true}) == "avx2-tzcnt portable avx2 ",
            "where PEXT is slow, the kernel without it comes first");
#endif
#if defined(TAMIS_AVX2) && defined(TAMIS_AVX2_TZCNT) && defined(TAMIS_AVX512)
    require(names({.avx2 = true, .fast_pext = true, .avx512 = true}) == "avx512 avx2 avx2-tzcnt portable ",
            "AVX-512 comes first");
    require(names({.avx2 = true, .avx512 = true}) == "avx2-tzcnt portable avx2 avx512 ",
            "where PEXT is slow, AVX-512 does not help");
#endif
}

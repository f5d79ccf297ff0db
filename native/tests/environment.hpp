// Floating-point settings that a host program may have when it calls the codec.
#pragma once

#include <cfenv>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include <cstdint>
#include <vector>

#include "tamis/system/float_environment.hpp"

namespace tamis::tests {

struct HostSettings {
    const char* name;
    int rounding = FE_TONEAREST;
    std::uint32_t set = 0, clear = 0;  // bits of the control register that <cfenv> does not name
};

inline const std::vector<HostSettings>& host_settings() {
    static const std::vector<HostSettings> all{
        {"rounding upward", FE_UPWARD},
        {"rounding downward", FE_DOWNWARD},
        {"rounding toward zero", FE_TOWARDZERO},
#ifdef __SSE2__
        {"FTZ", FE_TONEAREST, 0x8000},
        {"DAZ", FE_TONEAREST, 0x0040},
        {"FTZ and DAZ, upward", FE_UPWARD, 0x8040},
        {"every exception a trap", FE_TONEAREST, 0, 0x1f80},
#endif
    };
    return all;
}

inline std::uint32_t control_register() {
#ifdef __SSE2__
    return _mm_getcsr();
#else
    return 0;
#endif
}

// Call `f` with the settings; whether they are the same afterwards. Nothing in between may count with floats.
template <class F>
bool settings_survive(const HostSettings& settings, F f) {
    std::fesetround(settings.rounding);
#ifdef __SSE2__
    _mm_setcsr((_mm_getcsr() | settings.set) & ~settings.clear);
#endif
    const std::uint32_t before = control_register();
    f();
    const bool same = control_register() == before && std::fegetround() == settings.rounding;
    system::reset_float_settings();
    return same;
}

}  // namespace tamis::tests

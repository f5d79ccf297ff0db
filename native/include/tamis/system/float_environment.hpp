// The settings of floating-point arithmetic in this thread, as a whole.
#pragma once

#if defined _WIN32 && defined __SSE2__
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace tamis::system {

#if defined _WIN32 && defined __SSE2__

// The register that floats and doubles are computed by. <cfenv> of MinGW leaves it to a C runtime, of which not every
// one sets it back.
using FloatSettings = unsigned;

inline void keep_float_settings(FloatSettings& settings) { settings = _mm_getcsr(); }
inline void restore_float_settings(const FloatSettings& settings) { _mm_setcsr(settings); }

// Round to nearest, subnormals kept, no exception a trap.
inline void reset_float_settings() { _mm_setcsr(0x1f80); }

#else

using FloatSettings = std::fenv_t;

inline void keep_float_settings(FloatSettings& settings) { std::fegetenv(&settings); }
inline void restore_float_settings(const FloatSettings& settings) { std::fesetenv(&settings); }

// Round to nearest, subnormals kept, no exception a trap.
inline void reset_float_settings() { std::fesetenv(FE_DFL_ENV); }

#endif

}  // namespace tamis::system

// The floating-point environment that the format assumes, whatever the host program has set.
#pragma once

#include <cfenv>

namespace tamis::zfp {

// Round to nearest, subnormals kept (no FTZ, no DAZ) for as long as it lives; then the caller's settings again.
class FloatEnvironment {
public:
    FloatEnvironment() {
        std::fegetenv(&saved_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~FloatEnvironment() { std::fesetenv(&saved_); }
    FloatEnvironment(const FloatEnvironment&) = delete;
    FloatEnvironment& operator=(const FloatEnvironment&) = delete;

private:
    std::fenv_t saved_;
};

}  // namespace tamis::zfp

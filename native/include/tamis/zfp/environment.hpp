// The floating-point environment that the format assumes, whatever the host program has set.
#pragma once

#include "tamis/system/float_environment.hpp"

namespace tamis::zfp {

// Round to nearest, subnormals kept (no FTZ, no DAZ) for as long as it lives; then the caller's settings again.
class FloatEnvironment {
public:
    FloatEnvironment() {
        system::keep_float_settings(saved_);
        system::reset_float_settings();
    }
    ~FloatEnvironment() { system::restore_float_settings(saved_); }
    FloatEnvironment(const FloatEnvironment&) = delete;
    FloatEnvironment& operator=(const FloatEnvironment&) = delete;

private:
    system::FloatSettings saved_;
};

}  // namespace tamis::zfp

// What environment variables say to the plugin. Each is read once; what cannot be followed is said on the terminal,
// since HDF5 has no place for a warning, and netCDF none for any message.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tamis/hdf5/messages.hpp"
#include "tamis/once.hpp"
#include "tamis/zfp/codec.hpp"

namespace tamis::hdf5 {

inline void print_error(const Message& message) { std::fprintf(stderr, "tamis: %s\n", message.text); }

inline const zfp::Kernel& kernel() {
    constinit static Once<const zfp::Kernel*> once;
    return *once.get([] {
        const zfp::Choice choice = zfp::chosen_kernel();
        if (!choice.as_asked)
            std::fprintf(stderr, "tamis: expected %s to name a kernel of this machine, got '%s'; using %s\n",
                         zfp::kernel_variable, std::getenv(zfp::kernel_variable), choice.kernel->name);
        return choice.kernel;
    });
}

// Unset or "on": chunks of accuracy mode are proven. "off": they are written as H5Z-ZFP writes them.
inline constexpr const char* proof_variable = "TAMIS_ZFP_PROOF";

// Unset or "refuse": lossy modes refuse NaN and infinities. "encode": they are encoded like in H5Z-ZFP.
inline constexpr const char* non_finite_variable = "TAMIS_ZFP_NONFINITE";

// True if a variable has the second of two values; the first is that of one that is not set.
inline bool has_second_value(const char* variable, std::string_view first, std::string_view second) {
    const char* value = std::getenv(variable);
    const std::string_view text = value == nullptr ? "" : value;
    if (text != "" && text != first && text != second)
        std::fprintf(stderr, "tamis: expected %s to be %s or %s, got '%s'; using %s\n", variable, first.data(),
                     second.data(), value, first.data());
    return text == second;
}

inline bool proves_chunks() {
    constinit static Once<bool> once;
    return once.get([] { return !has_second_value(proof_variable, "on", "off"); });
}

inline bool encodes_non_finite() {
    constinit static Once<bool> once;
    return once.get([] { return has_second_value(non_finite_variable, "refuse", "encode"); });
}

}  // namespace tamis::hdf5

// What environment variables say to the plugin. Each is read once; what cannot be followed is said on the terminal,
// since HDF5 has no place for a warning, and netCDF none for any message.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tamis/hdf5/messages.hpp"
#include "tamis/zfp/codec.hpp"

namespace tamis::hdf5 {

inline void print_error(const Message& message) { std::fprintf(stderr, "tamis: %s\n", message.text); }

inline const zfp::Kernel& kernel() {
    static const zfp::Kernel& kernel = []() -> const zfp::Kernel& {
        const zfp::Choice& choice = zfp::chosen_kernel();
        if (!choice.as_asked)
            std::fprintf(stderr, "tamis: expected %s to name a kernel of this machine, got '%s'; using %s\n",
                         zfp::kernel_variable, std::getenv(zfp::kernel_variable), choice.kernel->name);
        return *choice.kernel;
    }();
    return kernel;
}

// Unset or "on": chunks of accuracy mode are proven. "off": they are written as H5Z-ZFP writes them.
inline constexpr const char* proof_variable = "TAMIS_ZFP_PROOF";

inline bool proves_chunks() {
    static const bool proves = [] {
        const char* value = std::getenv(proof_variable);
        const std::string_view text = value == nullptr ? "" : value;
        if (text != "" && text != "on" && text != "off")
            std::fprintf(stderr, "tamis: expected %s to be on or off, got '%s'; using on\n", proof_variable, value);
        return text != "off";
    }();
    return proves;
}

}  // namespace tamis::hdf5

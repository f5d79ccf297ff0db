// The temporary property by which the properties interface hands its request to set_local, which finds no cd_values
// then. It is never stored. Name and layout are H5Z-ZFP's: its library works with our plugin, and ours with its plugin.
#pragma once

#include <cstring>
#include <span>

#include "hdf5/interface.hpp"
#include "tamis/hdf5/cd_values.hpp"

namespace tamis::hdf5 {

inline constexpr const char* controls_property = "zfp_controls";

struct Controls {
    unsigned mode;
    unsigned unused;
    unsigned details[4];  // a double in this machine's order, a precision, or the numbers of expert mode
};
static_assert(sizeof(Controls) == 24);

inline constexpr std::size_t max_requested = 6;

// The cd_values that would request the same. `count` 0: no property, or one of another program's making.
inline void request_of_controls(const Hdf5& hdf5, hid_t dcpl, std::span<unsigned, max_requested> values,
                                std::size_t& count) {
    count = 0;
    std::size_t nbytes = 0;
    Controls controls{};
    if (hdf5.has_property(dcpl, controls_property) <= 0) return;
    if (hdf5.property_size(dcpl, controls_property, &nbytes) < 0 || nbytes != sizeof controls) return;
    if (hdf5.property(dcpl, controls_property, &controls) < 0) return;
    values[0] = controls.mode;
    values[1] = 0;
    std::memcpy(&values[2], controls.details, sizeof controls.details);
    count = max_requested;
}

}  // namespace tamis::hdf5

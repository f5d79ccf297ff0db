// What the filter leaves in a file for a dataset that is created.
#pragma once

#include "hdf5/inspect.hpp"

namespace tamis::hdf5 {

// A property of a dataset creation property list: if it is there, with any value, chunks are written as H5Z-ZFP writes
// them. H5Pinsert2 inserts it, as it does H5Z-ZFP's "zfp_controls".
inline constexpr const char* unproven_property = "tamis_zfp_unproven";

// Exchange the requested parameters of the property list for those to store. False, after the library was told why,
// where they cannot be taken.
bool configure(const Hdf5& hdf5, const char* function, hid_t dcpl, hid_t type, const Chunk& chunk);

}  // namespace tamis::hdf5

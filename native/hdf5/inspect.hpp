// What HDF5 says about a dataset that is created or opened: whether ZFP can take it, and how.
#pragma once

#include "hdf5/chunk.hpp"
#include "hdf5/interface.hpp"

namespace tamis::hdf5 {

// False, after the library was told why, where type, chunk or pipeline cannot be taken.
bool inspect(const Hdf5& hdf5, const char* function, hid_t dcpl, hid_t type, hid_t space, Chunk& chunk);

// Whether zfp took the values of an existing dataset for other numbers: their byte order is not this machine's, and the
// header does not say so.
bool takes_bytes_for_other_numbers(const Hdf5& hdf5, hid_t dcpl, hid_t type);

}  // namespace tamis::hdf5

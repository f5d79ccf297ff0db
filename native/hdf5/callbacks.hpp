// The filter as HDF5 takes it, from a plugin or by H5Zregister.
#pragma once

#include "hdf5/interface.hpp"

namespace tamis::hdf5 {

extern const FilterClass filter_class;

}  // namespace tamis::hdf5

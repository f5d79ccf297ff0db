// The place of zfp in a pipeline that netCDF copies or defines.
#pragma once

#include "hdf5/interface.hpp"

namespace tamis::hdf5 {

// Put fletcher32, shuffle and deflate back behind zfp where netCDF put them before it.
//
// netCDF lists fletcher32 and then shuffle before all other filters, also when it copies a dataset in which zfp is
// first, as nccopy does; ncgen defines deflate, too, before the filters of the attribute _Filter. Then the parameters
// of zfp are stored ones, and zfp was first in that dataset: any other order cannot be read. All other orders stay, for
// `inspect` to refuse. False, after the library was told why, if the list cannot be changed.
bool restore_order(const Hdf5& hdf5, const char* function, hid_t dcpl);

}  // namespace tamis::hdf5

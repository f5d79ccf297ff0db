// What H5Zzfp_props.h takes from HDF5, so that the library is checked against its own header where no HDF5 is
// installed. Programs that include the header have the real one.
#pragma once

#include <cstdint>

#define H5_VERS_MAJOR 1
#define H5_VERS_MINOR 10

using hid_t = std::int64_t;
using herr_t = int;

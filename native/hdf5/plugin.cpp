// The two functions by which HDF5 and netCDF find the filter in a plugin.

#include "hdf5/callbacks.hpp"

extern "C" {

[[gnu::visibility("default")]] int H5PLget_plugin_type() { return 0; }  // H5PL_TYPE_FILTER

[[gnu::visibility("default")]] const void* H5PLget_plugin_info() { return &tamis::hdf5::filter_class; }
}

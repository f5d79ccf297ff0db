// The filter registered by a call.

#include "H5Zzfp_lib.h"

#include "capi/linked.hpp"
#include "hdf5/callbacks.hpp"

namespace {

bool registered = false;

// Identifiers had 32 bits before HDF5 1.10.
bool has_wide_identifiers() {
    unsigned major = 0, minor = 0, release = 0;
    return H5get_libversion(&major, &minor, &release) >= 0 && (major > 1 || minor >= 10);
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] int H5Z_zfp_initialize() {
    if (!has_wide_identifiers() || H5Zregister(&tamis::hdf5::filter_class) < 0) return -1;
    registered = true;
    return 1;
}

[[gnu::visibility("default")]] int H5Z_zfp_finalize() {
    if (!registered) return 1;
    registered = false;
    return H5Zunregister(tamis::hdf5::filter_id) < 0 ? -1 : 1;
}
}

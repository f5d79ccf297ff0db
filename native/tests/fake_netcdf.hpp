// The calls of libnetcdf that the plugin binds, exported by the test program itself: one variable of a Zarr store.
// Declared as libnetcdf declares them (netcdf.h, netcdf_filter.h).
#pragma once

#include <cstring>
#include <vector>

#include "check.hpp"
#include "hdf5/nczarr.hpp"

namespace tamis::tests {

struct FakeVariable {
    int type = hdf5::nc_float;
    std::vector<std::size_t> chunk;
    std::vector<unsigned> filters;
    int storage = hdf5::nc_chunked, endian = 0, no_fill = 0;
    std::uint64_t fill = 0;  // bits, of the type's width
    int refused = 0;         // the call that fails, counted from 1
};

inline FakeVariable variable;

inline int answer(int call, int ncid, int varid) {
    require(ncid == 65536 && varid == 7, "the variable is asked for");
    return variable.refused == call ? -33 : 0;
}

}  // namespace tamis::tests

#pragma GCC visibility push(default)

extern "C" {

int nc_inq_var(int ncid, int varid, char* name, int* type, int* rank, int* dimensions, int* attributes) {
    using tamis::tests::variable;
    tamis::tests::require(name == nullptr && dimensions == nullptr && attributes == nullptr, "only these are needed");
    *type = variable.type;
    *rank = static_cast<int>(variable.chunk.size());
    return tamis::tests::answer(1, ncid, varid);
}

int nc_inq_var_chunking(int ncid, int varid, int* storage, std::size_t* extents) {
    using tamis::tests::variable;
    *storage = variable.storage;
    std::copy(variable.chunk.begin(), variable.chunk.end(), extents);
    return tamis::tests::answer(2, ncid, varid);
}

int nc_inq_var_endian(int ncid, int varid, int* endian) {
    *endian = tamis::tests::variable.endian;
    return tamis::tests::answer(3, ncid, varid);
}

int nc_inq_var_fill(int ncid, int varid, int* no_fill, void* value) {
    using tamis::tests::variable;
    const bool wide = variable.type == tamis::hdf5::nc_double || variable.type >= tamis::hdf5::nc_int64;
    *no_fill = variable.no_fill;
    std::memcpy(value, &variable.fill, wide ? 8 : 4);
    return tamis::tests::answer(4, ncid, varid);
}

int nc_inq_var_filter_ids(int ncid, int varid, std::size_t* count, unsigned* ids) {
    const auto& filters = tamis::tests::variable.filters;
    *count = filters.size();
    if (ids != nullptr) std::copy(filters.begin(), filters.end(), ids);
    return tamis::tests::answer(5, ncid, varid);
}
}

#pragma GCC visibility pop

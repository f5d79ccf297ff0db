// The part of netCDF's binary interface that a codec of its Zarr stores needs, and the calls of it, bound to the
// library that called us. Types and numbers are those of netCDF-C 4.9 to 4.10 (netcdf.h, netcdf_filter_build.h).
#pragma once

#include "hdf5/chunk.hpp"
#include "hdf5/library.hpp"

namespace tamis::hdf5 {

inline constexpr int nc_noerr = 0, nc_enomem = -61, nc_efilter = -132;
inline constexpr int nc_int = 4, nc_float = 5, nc_double = 6, nc_uint = 9, nc_int64 = 10, nc_uint64 = 11;
inline constexpr int nc_chunked = 0, nc_endian_little = 1, nc_endian_big = 2;

// NCZ_codec_t
struct CodecClass {
    int version;
    int sort;
    const char* id;
    unsigned filter;
    void (*initialize)();
    void (*finalize)();
    int (*codec_to_hdf5)(const char* json, std::size_t* count, unsigned** values);
    int (*hdf5_to_codec)(std::size_t count, const unsigned* values, char** json);
    int (*modify_parameters)(int ncid, int varid, std::size_t* visible_count, unsigned** visible,
                             std::size_t* working_count, unsigned** working);
};

class NetCdf {
public:
    // The libnetcdf that holds `caller`, a return address inside it.
    explicit NetCdf(const void* caller)
        : library_(caller),
          complete_(library_.bind(inq_var, "nc_inq_var") & library_.bind(inq_chunking, "nc_inq_var_chunking") &
                    library_.bind(inq_endian, "nc_inq_var_endian") & library_.bind(inq_fill, "nc_inq_var_fill") &
                    library_.bind(inq_filters, "nc_inq_var_filter_ids")) {}

    bool complete() const { return complete_; }

    int (*inq_var)(int ncid, int varid, char* name, int* type, int* rank, int* dimensions, int* attributes) = nullptr;
    int (*inq_chunking)(int ncid, int varid, int* storage, std::size_t* extents) = nullptr;
    int (*inq_endian)(int ncid, int varid, int* endian) = nullptr;
    int (*inq_fill)(int ncid, int varid, int* no_fill, void* value) = nullptr;
    int (*inq_filters)(int ncid, int varid, std::size_t* count, unsigned* ids) = nullptr;

private:
    Library library_;
    bool complete_;
};

}  // namespace tamis::hdf5

// The part of `_native` that is HDF5 filter 4; src/tamis/filters/szip.py gives it a Python face.
//
// Data are any C-contiguous buffer. The lock is released while bytes are coded, so another thread may change them: that
// makes other bytes, and nothing worse.

#include <nanobind/nanobind.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "python/binding.hpp"
#include "tamis/szip/codec.hpp"

namespace tamis::python {

using namespace nb::literals;
using filters::Code;
using filters::Status;

namespace {

using Values = std::vector<unsigned>;
using Bytes = Or<nb::bytes>;

const szip::Kernel& szip_kernel() { return szip::kernel_like(kernel_in_use().name); }

Status known(const Status& status) {
    if (status.code == Code::no_memory) throw std::bad_alloc();
    return status;
}

// In front of a stream stands the size of the chunk.
Bytes szip_encode(nb::handle data, const Values& values) {
    const Buffer buffer(data, PyBUF_SIMPLE);
    const auto in = buffer.bytes();
    szip::Params params;
    Status status = szip::parse(values, params);
    if (!status) return status;
    if (in.size() > 0xffffffff) return Status{Code::no_room, 0xffffffff};
    const zfp::RawMemory memory = zfp::raw_memory(szip::size_nbytes + in.size());
    if (!memory) throw std::bad_alloc();
    const szip::Kernel& kernel = szip_kernel();
    std::size_t nbytes = 0;
    zfp::store_le32(memory.get(), static_cast<std::uint32_t>(in.size()));
    {
        const Unlocked unlocked;
        status = szip::encode(kernel, params, in, {memory.get() + szip::size_nbytes, in.size()}, nbytes);
    }
    if (!known(status)) return status;
    return nb::bytes(memory.get(), szip::size_nbytes + nbytes);
}

Bytes szip_decode(nb::handle data, const Values& values, std::size_t nbytes) {
    const Buffer buffer(data, PyBUF_SIMPLE);
    const auto in = buffer.bytes();
    szip::Params params;
    Status status = szip::parse(values, params);
    if (!status) return status;
    if (in.size() < szip::size_nbytes) return Status{Code::truncated, szip::size_nbytes};
    if (nbytes > static_cast<std::size_t>(PY_SSIZE_T_MAX)) throw std::bad_alloc();
    auto made = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(nbytes)));
    if (!made.is_valid()) throw nb::python_error();
    const std::span out(reinterpret_cast<std::uint8_t*>(PyBytes_AS_STRING(made.ptr())), nbytes);
    const szip::Kernel& kernel = szip_kernel();
    {
        const Unlocked unlocked;
        status = szip::decode(kernel, params, in.subspan(szip::size_nbytes), out);
    }
    if (!known(status)) return status;
    return made;
}

Or<std::vector<std::size_t>> szip_nbytes(nb::handle data, const std::vector<Values>& candidates) {
    const Buffer buffer(data, PyBUF_SIMPLE);
    const szip::Kernel& kernel = szip_kernel();
    std::vector<szip::Params> each(candidates.size());
    for (std::size_t i = 0; i < each.size(); ++i)
        if (const Status status = szip::parse(candidates[i], each[i]); !status) return status;
    std::vector<std::size_t> sizes(each.size());
    Status status;
    {
        const Unlocked unlocked;
        status = szip::measure(kernel, each, buffer.bytes(), sizes.data());
    }
    if (!known(status)) return status;
    for (std::size_t& nbytes : sizes) nbytes += szip::size_nbytes;
    return sizes;
}

}  // namespace

void bind_szip(nb::module_& m) {
    m.def("szip_encode", &szip_encode, "data"_a, "values"_a, "Chunk under HDF5 filter 4 with stored cd_values.");
    m.def("szip_decode", &szip_decode, "data"_a, "values"_a, "nbytes"_a,
          "Chunk of `nbytes` bytes from one under HDF5 filter 4.");
    m.def("szip_nbytes", &szip_nbytes, "data"_a, "candidates"_a,
          "Bytes of a chunk under HDF5 filter 4, for each of several cd_values, without encoding it.");
}

}  // namespace tamis::python

// The part of `_native` that is filters of HDF5's registry; src/tamis/filters/ gives it a Python face.
//
// Data are any C-contiguous buffer. The lock is released while bytes are filtered, so another thread may change them:
// that makes other bytes, and nothing worse.

#include <nanobind/nanobind.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "python/binding.hpp"
#include "tamis/filters/bitshuffle.hpp"
#include "tamis/filters/fletcher32.hpp"
#include "tamis/filters/nbit.hpp"
#include "tamis/filters/scaleoffset.hpp"

namespace tamis::python {

using namespace nb::literals;
using filters::Status;

namespace {

using Values = std::vector<unsigned>;
using Bytes = Or<nb::bytes>;

// Bytes that are filled in before anybody sees them: fill(span of them), without the lock.
template <class F>
nb::bytes make_bytes(std::size_t nbytes, F fill) {
    if (nbytes > static_cast<std::size_t>(PY_SSIZE_T_MAX)) throw std::bad_alloc();
    auto made = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(nbytes)));
    if (!made.is_valid()) throw nb::python_error();
    const std::span out(reinterpret_cast<std::uint8_t*>(PyBytes_AS_STRING(made.ptr())), nbytes);
    const Unlocked unlocked;
    fill(out);
    return made;
}

nb::bytes copy(const Buffer& buffer) {
    const auto in = buffer.bytes();
    return make_bytes(in.size(), [&](auto out) { std::copy(in.begin(), in.end(), out.begin()); });
}

template <auto function>
Bytes shuffled(nb::handle data, std::size_t itemsize) {
    const Buffer buffer(data, PyBUF_SIMPLE);
    const auto in = buffer.bytes();
    if (const Status status = filters::check_itemsize(itemsize); !status) return status;
    return make_bytes(in.size(), [&](auto out) { function(in, itemsize, out.data()); });
}

template <auto function>
Bytes bits_shuffled(nb::handle data, std::size_t itemsize, std::size_t block) {
    const Buffer buffer(data, PyBUF_SIMPLE);
    const auto in = buffer.bytes();
    if (const Status status = filters::check_bitshuffle(in.size(), itemsize, block); !status) return status;
    return make_bytes(in.size(), [&](auto out) { function(in, itemsize, block, out.data()); });
}

std::uint32_t fletcher32(nb::handle data) {
    const Buffer buffer(data, PyBUF_SIMPLE);
    const Unlocked unlocked;
    return filters::fletcher32(buffer.bytes());
}

Bytes nbit_encode(nb::handle data, const Values& values) {
    const Buffer buffer(data, PyBUF_SIMPLE);
    const auto in = buffer.bytes();
    filters::nbit::Chunk chunk;
    if (const Status status = filters::nbit::survey(values, in.size(), chunk); !status) return status;
    if (chunk.verbatim) return copy(buffer);
    return make_bytes(filters::nbit::encoded_nbytes(chunk),
                      [&](auto out) { filters::nbit::encode(values, chunk, in.data(), out); });
}

Bytes nbit_decode(nb::handle data, const Values& values, std::size_t nbytes) {
    const Buffer buffer(data, PyBUF_SIMPLE);
    const auto in = buffer.bytes();
    filters::nbit::Chunk chunk;
    Status status = filters::nbit::survey(values, nbytes, chunk);
    if (!status) return status;
    if (chunk.verbatim) return copy(buffer);  // of any length, which another filter before may have made
    status = filters::nbit::check_length(chunk, in.size());
    if (!status) return status;
    return make_bytes(nbytes, [&](auto out) { filters::nbit::decode(values, chunk, in, out); });
}

Bytes scaleoffset_encode(nb::handle data, const Values& values) {
    namespace so = filters::scaleoffset;
    const Buffer buffer(data, PyBUF_SIMPLE);
    const auto in = buffer.bytes();
    so::Params params;
    Status status = so::parse(values, params);
    if (!status) return status;
    if (params.verbatim()) return copy(buffer);
    status = so::check_nbytes(params, in.size());
    if (!status) return status;
    so::Plan plan;
    {
        const Unlocked unlocked;
        status = so::plan(params, in.data(), plan);
    }
    if (!status) return status;
    return make_bytes(plan.encoded_nbytes, [&](auto out) { so::encode(params, plan, in.data(), out); });
}

Bytes scaleoffset_decode(nb::handle data, const Values& values, std::size_t nbytes) {
    namespace so = filters::scaleoffset;
    const Buffer buffer(data, PyBUF_SIMPLE);
    const auto in = buffer.bytes();
    so::Params params;
    Status status = so::parse(values, params);
    if (!status) return status;
    if (params.verbatim()) return copy(buffer);  // of any length, which another filter before may have made
    status = so::check_nbytes(params, nbytes);
    if (!status) return status;
    so::Header header;
    status = so::open(params, in, header);
    if (!status) return status;
    return make_bytes(nbytes, [&](auto out) { so::decode(params, header, in, out.data()); });
}

}  // namespace

void bind_filters(nb::module_& m) {
    m.def("shuffle", &shuffled<filters::shuffle>, "data"_a, "itemsize"_a, "Bytes of items, sorted by their position.");
    m.def("unshuffle", &shuffled<filters::unshuffle>, "data"_a, "itemsize"_a, "Undo `shuffle`.");
    m.def("bitshuffle", &bits_shuffled<filters::bitshuffle>, "data"_a, "itemsize"_a, "block"_a,
          "Bits of items, sorted by their position in each block of `block` items.");
    m.def("bitunshuffle", &bits_shuffled<filters::bitunshuffle>, "data"_a, "itemsize"_a, "block"_a,
          "Undo `bitshuffle`.");
    m.def("fletcher32", &fletcher32, "data"_a, "HDF5's checksum.");
    m.def("nbit_encode", &nbit_encode, "data"_a, "values"_a, "Chunk under HDF5 filter 5 with stored cd_values.");
    m.def("nbit_decode", &nbit_decode, "data"_a, "values"_a, "nbytes"_a,
          "Chunk of `nbytes` bytes from one under HDF5 filter 5.");
    m.def("scaleoffset_encode", &scaleoffset_encode, "data"_a, "values"_a,
          "Chunk under HDF5 filter 6 with stored cd_values.");
    m.def("scaleoffset_decode", &scaleoffset_decode, "data"_a, "values"_a, "nbytes"_a,
          "Chunk of `nbytes` bytes from one under HDF5 filter 6.");
}

}  // namespace tamis::python

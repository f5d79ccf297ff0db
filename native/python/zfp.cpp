// The part of `_native` that is the codec and the cd_values of filter 32013; src/tamis/zfp/ gives it a Python face.
//
// Arrays come in through the buffer protocol: any strides, read-only or not, no copy. The lock is released while
// the bits of large arrays are coded.

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "python/binding.hpp"
#include "tamis/hdf5/cd_values.hpp"
#include "tamis/values/difference.hpp"
#include "tamis/zfp/codec.hpp"
#include "tamis/zfp/ladder.hpp"
#include "tamis/zfp/parallel_decode.hpp"
#include "tamis/zfp/parallel_encode.hpp"
#include "tamis/zfp/proof.hpp"

namespace tamis::python {

using namespace nb::literals;
using zfp::Header;
using zfp::Layout;
using zfp::Params;
using zfp::Status;
using zfp::Type;

namespace {

// Tests change it; anybody else leaves it as TAMIS_KERNEL says.
std::atomic<const zfp::Kernel*> kernel = nullptr;

const char* use_kernel(const std::string& name) {
    const zfp::Kernel* found = zfp::find_kernel(name.c_str());
    if (found == nullptr) throw nb::value_error("expected one of _native.kernels");
    return kernel.exchange(found)->name;
}

std::vector<std::string> kernel_names() {
    std::vector<std::string> names;
    for (const zfp::Kernel* each : zfp::available_kernels()) names.emplace_back(each->name);
    return names;
}

struct Array {
    Type type;
    Layout layout;
};

Array describe(const Py_buffer& view) {
    const std::string format = view.format == nullptr ? "" : view.format;
    const bool is_float = format == "f" || format == "d";
    const bool is_int = format == "i" || format == "l" || format == "q";
    if ((!is_float && !is_int) || (view.itemsize != 4 && view.itemsize != 8) || view.ndim < 1 || view.ndim > 4)
        throw nb::type_error("expected native int32, int64, float32 or float64 with 1 to 4 axes");
    Array array{is_float ? (view.itemsize == 4 ? Type::float32 : Type::float64)
                         : (view.itemsize == 4 ? Type::int32 : Type::int64),
                {}};
    array.layout.rank = static_cast<unsigned>(view.ndim);
    for (int axis = 0; axis < view.ndim; ++axis) {
        const std::size_t from_fastest = static_cast<std::size_t>(view.ndim - 1 - axis);
        if (view.strides[axis] % view.itemsize != 0) throw nb::type_error("expected strides in whole elements");
        array.layout.extent[from_fastest] = static_cast<std::size_t>(view.shape[axis]);
        array.layout.stride[from_fastest] = view.strides[axis] / view.itemsize;
    }
    return array;
}

Layout layout_of(const std::vector<std::size_t>& shape) {
    if (shape.empty() || shape.size() > zfp::max_rank) throw nb::value_error("expected 1 to 4 axes");
    std::array<std::size_t, zfp::max_rank> extent{1, 1, 1, 1};
    std::copy(shape.rbegin(), shape.rend(), extent.begin());
    return Layout::contiguous(static_cast<unsigned>(shape.size()), extent);
}

std::vector<std::size_t> shape_of(const Layout& layout) {
    std::vector<std::size_t> shape(layout.extent.begin(), layout.extent.begin() + layout.rank);
    return {shape.rbegin(), shape.rend()};
}

// Memory of a bytes object, to be filled.
nb::bytes new_bytes(std::size_t nbytes) {
    PyObject* made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(nbytes));
    if (made == nullptr) throw nb::python_error();
    return nb::steal<nb::bytes>(made);
}

// From this size on, the C library gets memory from the system each time, in new pages, and a copy of the stream would
// need new pages twice. Below this size, a copy from memory that was used before is faster than shortening.
constexpr std::size_t fresh_nbytes = 32 << 20;

// What was not filled goes back to the system; the rest stays where it is, where the C library can.
nb::bytes shortened(nb::bytes made, std::size_t nbytes) {
    PyObject* object = made.release().ptr();
    if (_PyBytes_Resize(&object, static_cast<Py_ssize_t>(nbytes)) != 0) throw nb::python_error();
    return nb::steal<nb::bytes>(object);
}

std::uint8_t* memory_of(const nb::bytes& made) {
    return reinterpret_cast<std::uint8_t*>(PyBytes_AS_STRING(made.ptr()));
}

// Absent where a value is refused.
std::optional<nb::bytes> encode_in_threads(const Py_buffer& buffer, const Array& array, const Params& params,
                                           const std::uint8_t* header, std::size_t start, std::size_t threads) {
    zfp::EncodedRuns runs(array.layout, {threads});
    {
        const Unlocked unlocked;
        if (!runs.encode(*kernel.load(), array.type, buffer.buf, params, header, start)) return std::nullopt;
    }
    nb::bytes stream = new_bytes(runs.nbytes());
    auto* out = memory_of(stream);
    {
        const Unlocked unlocked;
        runs.join(out);
    }
    return stream;
}

Or<nb::bytes> encode(nb::handle object, const Params& params, bool with_header, std::size_t threads) {
    const Buffer buffer(object, PyBUF_STRIDES | PyBUF_FORMAT);
    const Array array = describe(*buffer);
    const auto& [type, layout] = array;
    if (const Status status = zfp::check(params, type); !status) return status;
    std::uint8_t header[zfp::header_max_nbytes] = {};
    std::size_t start = 0, end = 0;
    if (with_header) {
        if (const Status status = zfp::pack_header(type, layout, params, header, start); !status) return status;
    }
    if (threads > 1 && zfp::worth_sharing(layout)) {
        if (auto stream = encode_in_threads(*buffer, array, params, header, start, threads)) return *stream;
        // One thread says which value is refused.
    }
    const std::size_t capacity = zfp::encode_capacity(type, layout, params, start);
    if (capacity == 0) throw std::bad_alloc();
    const auto code = [&](std::uint8_t* out) {
        std::memcpy(out, header, (start + 7) / 8);
        std::optional<Unlocked> unlocked;
        if (worth_unlocking((*buffer).len)) unlocked.emplace();
        return kernel.load()->encode(type, (*buffer).buf, layout, params, out, start, end);
    };
    if (capacity >= fresh_nbytes) {
        nb::bytes stream = new_bytes(capacity);
        if (const Status status = code(memory_of(stream)); !status) return status;
        return shortened(std::move(stream), (end + 7) / 8);
    }
    const zfp::RawMemory out = zfp::raw_memory(capacity);
    if (!out) throw std::bad_alloc();
    if (const Status status = code(out.get()); !status) return status;
    return nb::bytes(out.get(), (end + 7) / 8);
}

Or<std::size_t> decode(nb::handle data, nb::handle object, const Params& params, std::size_t start,
                       std::size_t threads) {
    const Buffer in(data, PyBUF_SIMPLE), out(object, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE);
    const auto [type, layout] = describe(*out);
    if (const Status status = zfp::check(params, type); !status) return status;
    std::size_t end = 0;
    Status status;
    {
        std::optional<Unlocked> unlocked;
        if (worth_unlocking((*out).len)) unlocked.emplace();
        const zfp::Source source{*kernel.load(), type, layout.rank, params, in.bytes()};
        if (threads > 1 && zfp::worth_sharing(layout))
            status = zfp::ParallelDecoder(source, (*out).buf, layout, start, {threads}).decode(end);
        else
            status = source.kernel.decode(type, (*out).buf, layout, params, source.in, start, end);
    }
    if (!status) return status;
    return end;
}

std::span<const std::uint8_t> span_of(const nb::bytes& bytes) {
    return {static_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

Or<nb::bytes> pack_header(Type type, const std::vector<std::size_t>& shape, const Params& params) {
    std::uint8_t bytes[zfp::header_max_nbytes];
    std::size_t nbits = 0;
    if (const Status status = zfp::pack_header(type, layout_of(shape), params, bytes, nbits); !status) return status;
    return nb::bytes(bytes, (nbits + 7) / 8);
}

using HeaderFields = std::tuple<Type, std::vector<std::size_t>, Params, std::size_t>;

Or<HeaderFields> unpack_header(const nb::bytes& bytes) {
    Header header;
    if (const Status status = zfp::unpack_header(span_of(bytes), header); !status) return status;
    if (const Status status = zfp::check(header.params, header.type); !status) return status;
    return HeaderFields{header.type, shape_of(header.layout), header.params, header.nbits};
}

template <class... Arguments>
Or<Params> made(Status (*set)(Params&, Arguments...), std::type_identity_t<Arguments>... arguments) {
    Params params;
    const Status status = set(params, arguments...);
    if (!status) return status;
    return params;
}

using StoredFields = std::tuple<Type, std::vector<std::size_t>, Params, bool, bool, std::optional<std::uint64_t>>;

Or<StoredFields> parse_stored(const std::vector<unsigned>& values) {
    hdf5::Stored stored;
    if (const Status status = hdf5::parse_stored(values, stored); !status) return status;
    const Header& header = stored.header;
    return StoredFields{header.type,    shape_of(header.layout), header.params,
                        stored.swapped, stored.proven,           stored.fill};
}

Or<std::vector<unsigned>> stored_values(const std::vector<unsigned>& requested, Type type,
                                        const std::vector<std::size_t>& shape, std::optional<std::uint64_t> fill) {
    const Layout layout = layout_of(shape);
    Params params;
    Status status = hdf5::params_of_request(requested, type, layout.rank, params);
    if (status) status = hdf5::check_request(params, type);
    unsigned stored[hdf5::max_stored] = {};
    std::size_t count = 0;
    if (status) status = hdf5::stored_of_params(params, type, layout, stored, count);
    if (status && fill && zfp::promises_accuracy(params, type, layout.rank) &&
        zfp::needs_care(type, params.minexp, *fill))
        status = hdf5::append_fill(*fill, stored, count);
    if (!status) return status;
    return std::vector<unsigned>(stored, stored + count);
}

int exponent_of(double magnitude) {
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    return magnitude == 0 ? std::numeric_limits<int>::min() / 2 : exponent;
}

// The e of a 2^e above the magnitudes of all values, if these are floats.
int exponent_above(Type type, const Py_buffer& buffer) {
    const auto of = [&]<class Scalar>(Scalar) {
        const std::span values(static_cast<const Scalar*>(buffer.buf),
                               static_cast<std::size_t>(buffer.len) / sizeof(Scalar));
        return exponent_of(values::detail::largest_magnitude(values));
    };
    return type == Type::float32 ? of(float{}) : type == Type::float64 ? of(double{}) : 0;
}

// None where the stream of an array keeps what its parameters promise.
std::optional<Failure> prove(nb::handle object, nb::handle data, const Params& params,
                             std::optional<std::uint64_t> fill) {
    const Buffer values(object, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT), stream(data, PyBUF_SIMPLE);
    const auto [type, layout] = describe(*values);
    if (const Status status = zfp::check(params, type); !status) return status;
    if (!zfp::promises_accuracy(params, type, layout.rank)) return std::nullopt;
    std::optional<Unlocked> unlocked;
    if (quick_worth_unlocking((*values).len)) unlocked.emplace();
    const int exponent = exponent_above(type, *values);
    const zfp::Verdict verdict =
        zfp::prove(*kernel.load(), type, (*values).buf, layout, params, fill, exponent, stream.bytes());
    unlocked.reset();
    if (!verdict.status) return verdict.status;
    return std::nullopt;
}

using RungFields = std::tuple<std::uint64_t, double, double>;

// Of each mode.
Or<std::vector<RungFields>> ladder(nb::handle object, std::optional<nb::handle> valid,
                                   const std::vector<Params>& modes) {
    const Buffer values(object, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT);
    std::optional<Buffer> flags;
    if (valid) flags.emplace(*valid, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT);
    const auto [type, layout] = describe(*values);
    if (flags && ((**flags).itemsize != 1 || (**flags).len != (*values).len / (*values).itemsize))
        throw nb::value_error("expected as many flags as values");
    for (const Params& params : modes)
        if (!zfp::check(params, type) || !zfp::has_ladder(type, layout.rank, params))
            throw nb::value_error("expected floats, and tolerances or precisions");
    std::vector<zfp::Rung> rungs(modes.size());
    std::optional<Unlocked> unlocked;
    if (worth_unlocking((*values).len)) unlocked.emplace();
    const bool* const which = flags ? static_cast<const bool*>((**flags).buf) : nullptr;
    const Status status = zfp::add_to_ladder(type, (*values).buf, which, layout, modes, rungs);
    unlocked.reset();
    if (!status) return status;
    std::vector<RungFields> fields;
    for (const zfp::Rung& rung : rungs) fields.emplace_back(rung.nbits, rung.error, rung.squares);
    return fields;
}

}  // namespace

const zfp::Kernel& kernel_in_use() { return *kernel.load(); }

void bind_zfp(nb::module_& m) {
    nb::enum_<Type>(m, "Type", "Scalar types, numbered as libzfp numbers them.")
        .value("int32", Type::int32)
        .value("int64", Type::int64)
        .value("float32", Type::float32)
        .value("float64", Type::float64);

    nb::class_<Params>(m, "Params", "The four numbers that drive the codec.")
        .def_ro("minbits", &Params::minbits, "Minimum number of bits per block.")
        .def_ro("maxbits", &Params::maxbits, "Maximum number of bits per block.")
        .def_ro("maxprec", &Params::maxprec, "Maximum number of bit planes per block.")
        .def_ro("minexp", &Params::minexp, "Exponent of the lowest bit plane kept; below -1074: reversible.");

    m.attr("max_rank") = zfp::max_rank;
    m.attr("block_side") = zfp::block_side;
    m.attr("max_bits") = zfp::max_bits;
    m.attr("max_prec") = zfp::max_prec;
    m.attr("min_exp") = zfp::min_exp;
    m.attr("header_max_bits") = zfp::header_max_bits;

    m.def(
        "rate_params", [](double rate, Type type, unsigned rank) { return made(zfp::set_rate, rate, type, rank); },
        "rate"_a, "type"_a, "rank"_a, "Bits per value.");
    m.def(
        "precision_params", [](unsigned precision) { return made(zfp::set_precision, precision); }, "precision"_a,
        "Bit planes, 1 to 64.");
    m.def(
        "accuracy_params", [](double tolerance) { return made(zfp::set_accuracy, tolerance); }, "tolerance"_a,
        "Largest absolute error; 0 means all planes.");
    m.def(
        "expert_params",
        [](unsigned minbits, unsigned maxbits, unsigned maxprec, int minexp) {
            return made(zfp::set_expert, minbits, maxbits, maxprec, minexp);
        },
        "minbits"_a, "maxbits"_a, "maxprec"_a, "minexp"_a, "All four numbers.");
    m.def("reversible_params", &zfp::reversible_params, "Every bit kept.");
    m.def("encode", &encode, "array"_a, "params"_a, "with_header"_a = false, "threads"_a = 1, "Stream of an array.");
    m.def("decode", &decode, "data"_a, "out"_a, "params"_a, "start"_a = 0, "threads"_a = 1,
          "Fill `out` from the stream at bit `start`; returns the bit at which it ended.");
    m.def("pack_header", &pack_header, "type"_a, "shape"_a, "params"_a, "ZFP header, 12 or 19 bytes.");
    m.def("unpack_header", &unpack_header, "data"_a, "Type, shape, parameters and bits of a ZFP header.");

    m.def("prove", &prove, "array"_a, "stream"_a, "params"_a, "fill"_a = nb::none(),
          "Compare an array with its stream where the promised tolerance is in doubt; `fill` is the bits of a fill\n"
          "value.");
    m.def(
        "keeps_for_sure",
        [](Type type, unsigned rank, const Params& params, double largest) {
            if (rank < 1 || rank > zfp::max_rank) throw nb::value_error("expected 1 to 4 axes");
            return zfp::promises_accuracy(params, type, rank) &&
                   zfp::keeps_for_sure(type, rank, params.minexp, exponent_of(largest));
        },
        "type"_a, "rank"_a, "params"_a, "largest"_a,
        "Whether all values up to this magnitude are certain to keep a promised tolerance.");

    m.def("ladder", &ladder, "array"_a, "valid"_a.none(), "modes"_a,
          "For each tolerance or precision: bits of the stream, the largest error and the sum of squared errors.\n\n"
          "`valid` are flags of the values whose errors count; the array is contiguous.");

    m.def("parse_stored", &parse_stored, "values"_a,
          "Type, shape, parameters, whether bytes are swapped, whether it is proven, and bits of a fill value.");
    m.def("stored_values", &stored_values, "requested"_a, "type"_a, "shape"_a, "fill"_a = nb::none(),
          "cd_values that the filter stores; `shape` has no unit axes, `fill` is the bits of the fill value.");
    m.def(
        "is_stored", [](const std::vector<unsigned>& values) { return hdf5::is_stored(values); }, "values"_a,
        "Whether cd_values have the stored form.");

    kernel = zfp::chosen_kernel().kernel;
    m.attr("kernel_variable") = zfp::kernel_variable;
    m.def("kernels", &kernel_names, "Names of the kernels that this machine can run, starting with the default.");
    m.def("kernel", [] { return kernel.load()->name; }, "Name of the kernel in use.");
    m.def(
        "kernel_as_asked", [] { return zfp::chosen_kernel().as_asked; },
        "Whether the environment variable is unset or names one that this machine can run.");
    m.def("use_kernel", &use_kernel, "name"_a, "For tests: use another kernel from now on; returns the previous one.");
}

}  // namespace tamis::python

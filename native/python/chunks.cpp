// The part of `_native` that takes many chunks in one call; src/tamis/arrays/ gives it a Python face.
//
// Chunks that cannot be handled here are left to the caller, who takes the slow way with each, or says what is wrong.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "python/binding.hpp"
#include "tamis/chunks/read.hpp"
#include "tamis/chunks/write.hpp"
#include "tamis/chunks/write_lossless.hpp"

namespace tamis::python {

using namespace nb::literals;
using chunks::Pipeline;
using chunks::Shape;

namespace {

template <class Number, int axes>
using Array = nb::ndarray<const Number, nb::ndim<axes>, nb::c_contig, nb::device::cpu>;
using Words = std::vector<unsigned>;

template <class Array>
auto span_of(const Array& array) {
    return std::span(array.data(), array.size());
}

// Bound once, since no library goes away.
chunks::Libdeflate libdeflate;

bool use_libdeflate(const std::string& path) {
    if (!libdeflate) libdeflate = chunks::Libdeflate::of(path.c_str());
    return static_cast<bool>(libdeflate);
}

constexpr std::size_t largest_nbytes = std::size_t{1} << 40;

Pipeline make_pipeline(const std::vector<std::size_t>& extents, std::size_t itemsize,
                       const std::vector<std::tuple<int, Words>>& filters) {
    const Shape shape = shape_of(extents);
    std::size_t nbytes = itemsize;
    for (unsigned axis = 0; axis < shape.rank; ++axis) {
        if (shape.extent[axis] == 0 || nbytes == 0 || shape.extent[axis] > largest_nbytes / nbytes)
            throw nb::value_error("expected chunks of some bytes, and at most 2^40");
        nbytes *= shape.extent[axis];
    }
    if (filters.size() > chunks::max_stages) throw nb::value_error("expected at most 32 filters");
    Pipeline pipeline(shape, itemsize, libdeflate);
    for (const auto& [id, values] : filters) pipeline.add(id, values);
    return pipeline;
}

// A part of an array that begins at `start`, in the memory of a buffer.
template <class Byte>
chunks::Place<Byte> place_of(const Py_buffer& view, std::span<const std::int64_t> start, const Pipeline& pipeline) {
    const unsigned rank = pipeline.shape().rank;
    if (view.ndim != static_cast<int>(rank) || start.size() != rank ||
        static_cast<std::size_t>(view.itemsize) != pipeline.itemsize())
        throw nb::value_error("expected as many axes as a chunk has, and values of its size");
    chunks::Place<Byte> place;
    place.memory = static_cast<Byte*>(view.buf);
    place.shape.rank = rank;
    for (unsigned axis = 0; axis < rank; ++axis) {
        if (start[axis] < 0 || start[axis] > std::numeric_limits<std::int64_t>::max() / 4)
            throw nb::value_error("expected a start inside of an array");
        place.start[axis] = static_cast<std::size_t>(start[axis]);
        place.shape.extent[axis] = static_cast<std::size_t>(view.shape[axis]);
        place.strides[axis] = view.strides[axis];
    }
    return place;
}

chunks::Table table_of(const Pipeline& pipeline, const Array<std::int64_t, 2>& origins,
                       const Array<std::int64_t, 1>& offsets, const Array<std::int64_t, 1>& nbytes,
                       const Array<std::uint32_t, 1>& masks) {
    const std::size_t count = offsets.size();
    if (origins.shape(0) != count || nbytes.size() != count || masks.size() != count ||
        origins.shape(1) != pipeline.shape().rank)
        throw nb::value_error("expected an origin, an offset, a size and a mask for each chunk");
    return {span_of(origins), span_of(offsets), span_of(nbytes), span_of(masks)};
}

std::vector<std::size_t> read(const Pipeline& pipeline, int file, const Array<std::int64_t, 2>& origins,
                              const Array<std::int64_t, 1>& offsets, const Array<std::int64_t, 1>& nbytes,
                              const Array<std::uint32_t, 1>& masks, const Array<std::int64_t, 1>& start, nb::handle out,
                              std::size_t threads) {
    const Buffer buffer(out, PyBUF_STRIDES | PyBUF_WRITABLE);
    const chunks::Table table = table_of(pipeline, origins, offsets, nbytes, masks);
    const auto place = place_of<std::uint8_t>(*buffer, span_of(start), pipeline);
    const zfp::Kernel& kernel = kernel_in_use();
    std::vector<char> done;
    {
        const Unlocked unlocked;
        done = chunks::read(pipeline, kernel, file, table, place, threads);
    }
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < done.size(); ++i)
        if (!done[i]) left.push_back(i);
    return left;
}

bool read_one(const Pipeline& pipeline, int file, std::int64_t offset, std::int64_t nbytes, std::uint32_t mask,
              nb::handle out) {
    const Buffer buffer(out, PyBUF_STRIDES | PyBUF_WRITABLE);
    constexpr std::array<std::int64_t, chunks::max_axes> start{};
    const auto first = std::span(start).first(pipeline.shape().rank);
    const auto place = place_of<std::uint8_t>(*buffer, first, pipeline);
    const chunks::Table table{first, {&offset, 1}, {&nbytes, 1}, {&mask, 1}};
    const zfp::Kernel& kernel = kernel_in_use();
    const Unlocked unlocked;
    return chunks::Reader(pipeline, kernel, file).read(table, 0, place);
}

// Bytes of ranges of a file; none of one that it has not, or that cannot be read.
nb::typed<nb::list, std::optional<nb::bytes>> read_ranges(int file, const Array<std::int64_t, 1>& offsets,
                                                          const Array<std::int64_t, 1>& nbytes) {
    if (offsets.size() != nbytes.size()) throw nb::value_error("expected an offset and a size for each range");
    const system::RangeReader reader(file);
    std::size_t left = reader.file_nbytes();
    const std::size_t size = left;
    std::vector<nb::object> made(offsets.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
        const std::int64_t length = nbytes.data()[i];
        // Ranges that overlap may add up to anything, whatever the file has.
        if (!chunks::has_range(size, offsets.data()[i], length) || static_cast<std::size_t>(length) > left) continue;
        left -= static_cast<std::size_t>(length);
        made[i] = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(length)));
        if (!made[i].is_valid()) throw nb::python_error();
    }
    std::vector<char> done(made.size());
    {
        const Unlocked unlocked;
        for (std::size_t i = 0; i < made.size(); ++i)
            done[i] = made[i].is_valid() &&
                      reader.read(offsets.data()[i], reinterpret_cast<std::uint8_t*>(PyBytes_AS_STRING(made[i].ptr())),
                                  static_cast<std::size_t>(nbytes.data()[i]));
    }
    nb::list ranges;
    for (std::size_t i = 0; i < made.size(); ++i) ranges.append(done[i] ? made[i] : nb::none());
    return ranges;
}

// Of each chunk its bytes, largest error and number of missing values.
using Chunks = nb::typed<nb::list, std::optional<std::tuple<nb::bytes, double, std::size_t>>>;

std::span<const std::int64_t> origins_of(const Pipeline& pipeline, const Array<std::int64_t, 2>& origins) {
    if (origins.shape(1) != pipeline.shape().rank) throw nb::value_error("expected an origin for each chunk");
    for (std::size_t i = 0; i < origins.size(); ++i)
        if (origins.data()[i] < 0 || origins.data()[i] > std::numeric_limits<std::int64_t>::max() / 4)
            throw nb::value_error("expected origins inside of an array");
    return span_of(origins);
}

template <class Scalar>
Chunks encode_as(const Pipeline& pipeline, const chunks::Place<const std::uint8_t>& place,
                 std::span<const std::int64_t> origins, const chunks::Loss& loss) {
    const unsigned rank = pipeline.shape().rank;
    const std::size_t count = origins.size() / rank;
    std::vector<chunks::Encoded> encoded(count);
    std::vector<std::uint8_t> bytes;
    {
        const Unlocked unlocked;
        chunks::Writer<Scalar> writer(pipeline, kernel_in_use(), loss);
        if (!writer) throw std::bad_alloc();
        for (std::size_t i = 0; i < count; ++i)
            encoded[i] = writer.encode(place, origins.subspan(i * rank, rank), bytes);
    }
    nb::list list;
    for (const chunks::Encoded& each : encoded) {
        if (each.kept)
            list.append(nb::make_tuple(nb::bytes(bytes.data() + each.offset, each.nbytes), each.error, each.missing));
        else
            list.append(nb::none());
    }
    return list;
}

Chunks encode(const Pipeline& pipeline, nb::handle values, const Array<std::int64_t, 1>& start,
              const Array<std::int64_t, 2>& origins, std::uint32_t mask, nb::handle marks,
              std::tuple<double, double> limits, std::optional<double> bound) {
    const Buffer buffer(values, PyBUF_STRIDES | PyBUF_FORMAT), marked(marks, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT);
    const auto place = place_of<const std::uint8_t>(*buffer, span_of(start), pipeline);
    const std::span<const std::int64_t> flat = origins_of(pipeline, origins);
    const char format = float_format(*buffer);
    if (format != float_format(*marked)) throw nb::type_error("expected values and marks of one type");
    const chunks::Loss loss = loss_of(pipeline, mask, marked, limits, bound);
    return format == 'f' ? encode_as<float>(pipeline, place, flat, loss)
                         : encode_as<double>(pipeline, place, flat, loss);
}

nb::typed<nb::list, std::optional<nb::bytes>> encode_bytes(const Pipeline& pipeline, nb::handle values,
                                                           const Array<std::int64_t, 1>& start,
                                                           const Array<std::int64_t, 2>& origins) {
    const Buffer buffer(values, PyBUF_STRIDES);
    const auto place = place_of<const std::uint8_t>(*buffer, span_of(start), pipeline);
    const std::span<const std::int64_t> flat = origins_of(pipeline, origins);
    if (!pipeline.encodes_bytes()) throw nb::value_error("expected native filters without loss");
    const unsigned rank = pipeline.shape().rank;
    std::vector<chunks::Encoded> encoded(flat.size() / rank);
    std::vector<std::uint8_t> bytes;
    const auto run = [&] {
        chunks::LosslessWriter writer(pipeline, kernel_in_use());
        if (!writer) throw std::bad_alloc();
        for (std::size_t i = 0; i < encoded.size(); ++i)
            encoded[i] = writer.encode(place, flat.subspan(i * rank, rank), bytes);
    };
    if (worth_unlocking(static_cast<Py_ssize_t>(encoded.size() * pipeline.nbytes()))) {
        const Unlocked unlocked;
        run();
    } else {
        run();
    }
    nb::list list;
    for (const chunks::Encoded& entry : encoded)
        list.append(entry.kept ? nb::object(nb::bytes(bytes.data() + entry.offset, entry.nbytes)) : nb::none());
    return list;
}

}  // namespace

Shape shape_of(const std::vector<std::size_t>& extents) {
    if (extents.empty() || extents.size() > chunks::max_axes) throw nb::value_error("expected 1 to 32 axes");
    Shape shape;
    for (const std::size_t extent : extents) shape.extent[shape.rank++] = extent;
    return shape;
}

const chunks::Libdeflate& libdeflate_in_use() { return libdeflate; }

chunks::Loss loss_of(const Pipeline& pipeline, std::uint32_t mask, const Buffer& marks,
                     std::tuple<double, double> limits, std::optional<double> bound) {
    if (!pipeline.encodes(mask)) throw nb::value_error("expected zfp first, then shuffle and fletcher32");
    const zfp::Type type = pipeline.stages()[0].header.type;
    const char format = float_format(*marks);
    if ((format != 'f' || type != zfp::Type::float32) && (format != 'd' || type != zfp::Type::float64))
        throw nb::type_error("expected values of the type that zfp has, native float32 or float64");
    return {mask,
            marks.bytes(),
            std::get<0>(limits),
            std::get<1>(limits),
            bound.value_or(std::numeric_limits<double>::infinity()),
            bound == 0};
}

void bind_chunks(nb::module_& m) {
    m.def("use_libdeflate", &use_libdeflate, "path"_a,
          "Undo deflate with the libdeflate inside a loaded library; returns whether it has one.");
    m.def("read_ranges", &read_ranges, "file"_a, "offsets"_a, "nbytes"_a,
          "Bytes of ranges of a file, given by its descriptor; None for a range that it lacks or that cannot be read.");
    nb::class_<Pipeline>(m, "ChunkPipeline", "The native filters of chunks of one shape.")
        .def(nb::new_(&make_pipeline), "shape"_a, "itemsize"_a, "filters"_a,
             "Filters, by their numbers and the file's parameters.")
        .def_prop_ro("foreign", &Pipeline::foreign, "Bits of the filters that are not native, as in a mask.")
        .def("encodes", &Pipeline::encodes, "mask"_a, "Whether `encode` takes this mask.")
        .def("read", &read, "file"_a, "origins"_a, "offsets"_a, "nbytes"_a, "masks"_a, "start"_a, "out"_a,
             "threads"_a = 1,
             "Read and decode chunks to their places in `out`, the part of an array that begins at `start`. Returns\n"
             "the numbers of damaged or non-native chunks, whose places are undefined.")
        .def("read_one", &read_one, "file"_a, "offset"_a, "nbytes"_a, "mask"_a, "out"_a,
             "Read and decode a chunk to `out`, an array of its shape or the part of it inside the array.\n\n"
             "Returns False if it is damaged or not native; then `out` is undefined.")
        .def("encode", &encode, "values"_a, "start"_a, "origins"_a, "mask"_a, "marks"_a, "limits"_a, "bound"_a.none(),
             "Encode chunks with zfp and the filters that the mask leaves on, decode and compare them.\n\n"
             "`values` is the part of an array that begins at `start`. Returns bytes, largest error and number of\n"
             "missing values of each; None for one that breaks the bound or the limits, is refused, or is\n"
             "incomplete.")
        .def_prop_ro("encodes_bytes", &Pipeline::encodes_bytes, "Whether `encode_bytes` applies these filters.")
        .def("encode_bytes", &encode_bytes, "values"_a, "start"_a, "origins"_a,
             "Encode chunks without loss with all filters, decode and compare them.\n\n"
             "`values` is the part of an array that begins at `start`. Returns the bytes of each; None for one that\n"
             "is incomplete, or that the caller must encode.");
}

}  // namespace tamis::python

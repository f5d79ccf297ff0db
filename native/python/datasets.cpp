// The part of `_native` that asks h5py's libhdf5 for all of a small dataset in one call; src/tamis/formats/hdf5/lib/
// gives it a Python face. Callers hold h5py's lock.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cerrno>

#include "python/binding.hpp"
#include "tamis/datasets/chunk_records.hpp"
#include "tamis/datasets/groups.hpp"
#include "tamis/datasets/rewrite.hpp"

namespace tamis::python {

using namespace nb::literals;
using datasets::Libhdf5;
using datasets::SmallDataset;

namespace {

// Identifier of a file, its descriptor, and what to add to HDF5's offsets.
using File = std::tuple<datasets::hid_t, int, std::int64_t>;

nb::bytes bytes_of(const datasets::Memory& memory) { return nb::bytes(memory.data(), memory.size()); }

template <class Items, class Convert>
nb::tuple tuple_of(const Items& items, Convert convert) {
    nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(std::size(items))));
    if (!tuple.is_valid()) throw nb::python_error();
    Py_ssize_t at = 0;
    for (const auto& item : items) PyTuple_SET_ITEM(tuple.ptr(), at++, nb::object(convert(item)).release().ptr());
    return nb::borrow<nb::tuple>(tuple);
}

nb::object number_of(unsigned long long number) { return nb::steal(PyLong_FromUnsignedLongLong(number)); }
nb::object signed_of(std::int64_t number) { return nb::steal(PyLong_FromLongLong(number)); }

nb::tuple extents_of(const chunks::Shape& shape) {
    return tuple_of(std::span(shape.extent).first(shape.rank), number_of);
}

nb::object filter_of(const datasets::Filter& filter) {
    return nb::make_tuple(filter.id, filter.flags, tuple_of(filter.values, number_of),
                          nb::bytes(filter.label.data(), filter.label.size()));
}

nb::tuple form_of(const datasets::Form& form) {
    nb::object chunk = form.layout == datasets::layout_chunked ? nb::object(extents_of(form.chunk)) : nb::none();
    return nb::make_tuple(bytes_of(form.type), form.layout, chunk, tuple_of(form.filters, filter_of), form.fill_state,
                          bytes_of(form.fill), form.fill_time, form.attribute_order, form.most_compact,
                          form.least_dense);
}

// All of an attribute: name, type, dataspace and values; None if that is not known.
nb::object content_of(const datasets::AttributeName& name, const datasets::Attribute& attribute) {
    if (!attribute.is_read()) return nb::none();
    const datasets::Memory type = attribute.type_code(), space = attribute.space_code();
    if (type.empty() || space.empty()) return nb::none();
    return nb::make_tuple(nb::bytes(name.name.data(), name.name.size()), bytes_of(type), bytes_of(space),
                          bytes_of(attribute.value_code()));
}

// The name of an attribute, and its text if it is one, otherwise all of it.
nb::object attribute_of(const datasets::AttributeName& name, const datasets::Attribute& attribute) {
    const auto text = attribute.is_read() ? attribute.text() : std::nullopt;
    nb::object value = text ? nb::object(nb::bytes(text->data(), text->size())) : content_of(name, attribute);
    return nb::make_tuple(nb::bytes(name.name.data(), name.name.size()), value);
}

// How much is requested: facts; also all attributes, in the order of creation or storage; also values, decoded without
// HDF5; or also that HDF5 reads equal values.
enum class Depth { facts, attributes, values, twice };

// The values of a surveyed dataset; None if they cannot be decoded, or HDF5 reads others where it is asked.
nb::object values_of(const SmallDataset& dataset, int file, Depth depth) {
    datasets::Memory values, others;
    if (depth < Depth::values || !dataset.decode(file, libdeflate_in_use(), kernel_in_use(), values)) return nb::none();
    if (depth == Depth::twice && (!dataset.read(others) || values != others)) return nb::none();
    return bytes_of(values);
}

nb::object limit_of(datasets::hsize_t maximum) {
    return maximum == datasets::unlimited ? nb::object(nb::none()) : number_of(maximum);
}

// All attributes of an object, in the order of creation or storage.
class Attributes {
public:
    // False if HDF5 cannot list them.
    bool read(const Libhdf5& hdf5, datasets::hid_t owner) {
        if (!datasets::attribute_names(hdf5, owner, names_)) return false;
        std::stable_sort(names_.begin(), names_.end(),
                         [](const auto& one, const auto& other) { return one.order < other.order; });
        for (const auto& name : names_) attributes_.emplace_back(hdf5, owner, name).read();
        return true;
    }

    template <class Convert>
    nb::tuple all(Convert convert) const {
        auto attribute = attributes_.begin();
        return tuple_of(names_, [&](const auto& name) { return convert(name, *attribute++); });
    }

    // Address of the last dimension scale of each axis, None for an axis without one; None if that is not known.
    nb::object scales() const {
        std::vector<std::vector<std::uint64_t>> axes;
        const datasets::Attribute* const list = find("DIMENSION_LIST");
        if (list == nullptr || !list->read_references(axes)) return nb::none();
        return tuple_of(axes, [](const auto& addresses) -> nb::object {
            const auto last = std::find_if(addresses.rbegin(), addresses.rend(), [](auto at) { return at != 0; });
            return last == addresses.rend() ? nb::object(nb::none()) : number_of(*last);
        });
    }

    // Number of axes that have this dimension scale.
    datasets::hsize_t user_count() const {
        const datasets::Attribute* const list = find("REFERENCE_LIST");
        return list == nullptr ? 0 : list->length();
    }

private:
    const datasets::Attribute* find(std::string_view wanted) const {
        const auto is_it = [&](const auto& name) { return name.name == wanted; };
        const auto at = std::find_if(names_.begin(), names_.end(), is_it) - names_.begin();
        return static_cast<std::size_t>(at) == names_.size() ? nullptr : &attributes_[static_cast<std::size_t>(at)];
    }

    datasets::Names names_;
    std::deque<datasets::Attribute> attributes_;
};

nb::object facts_if_known(const Libhdf5& hdf5, SmallDataset& dataset, File place, Depth depth) {
    const auto& [id, file, base] = place;
    Attributes attributes;
    if (!dataset.survey(base) || !attributes.read(hdf5, dataset.id())) return nb::none();
    const auto& index = dataset.index();
    const nb::object values = values_of(dataset, file, depth);
    return nb::make_tuple(form_of(dataset.form()), extents_of(dataset.shape()), tuple_of(dataset.maxima(), limit_of),
                          dataset.stored_nbytes(),
                          nb::make_tuple(tuple_of(index.numbers, signed_of), tuple_of(index.offsets, signed_of),
                                         tuple_of(index.nbytes, signed_of), tuple_of(index.masks, number_of)),
                          attributes.all(attribute_of), values,
                          depth == Depth::facts ? nb::object(nb::none()) : nb::object(attributes.all(content_of)));
}

// The attributes of an object: name of each; all of each, None if that is not known; scales and their users.
nb::object attributes(const Libhdf5& hdf5, datasets::hid_t owner) {
    Attributes attributes;
    if (!attributes.read(hdf5, owner)) return nb::none();
    const auto name_of = [](const auto& name, const auto&) -> nb::object {
        return nb::bytes(name.name.data(), name.name.size());
    };
    return nb::make_tuple(attributes.all(name_of), attributes.all(content_of), attributes.scales(),
                          attributes.user_count());
}

nb::object survey(const Libhdf5& hdf5, File place, nb::bytes path, Depth depth) {
    SmallDataset dataset(hdf5, std::get<0>(place), path.c_str());
    return facts_if_known(hdf5, dataset, place, depth);
}

// The identifier of a group, which the caller closes, or the facts of a small dataset.
nb::object look(const Libhdf5& hdf5, File place, datasets::hid_t group, nb::bytes name, Depth depth) {
    const datasets::hid_t object = hdf5.open_object(group, name.c_str(), datasets::none);
    if (object < 0) return nb::none();
    const int kind = hdf5.kind(object);
    if (kind == datasets::kind_group) return signed_of(object);
    if (kind != datasets::kind_dataset) {
        hdf5.close_object(object);
        return nb::none();
    }
    SmallDataset dataset(hdf5, object);
    return facts_if_known(hdf5, dataset, place, depth);
}

// Of a dataset of any size: form, extents, largest extents, and attributes.
nb::object header_of(const Libhdf5& hdf5, datasets::hid_t id) {
    SmallDataset dataset(hdf5, id);
    if (!dataset.survey_header()) return nb::none();
    const nb::object own = attributes(hdf5, dataset.id());
    if (own.is_none()) return nb::none();
    return nb::make_tuple(form_of(dataset.form()), extents_of(dataset.shape()), tuple_of(dataset.maxima(), limit_of),
                          own);
}

inline constexpr std::size_t most_open = 1024;  // HDF5 takes some KiB for each

// Whether each member of a group is a group (True), and the header of datasets of numbers and short texts; None for
// others. All are opened before the first attribute is read: libhdf5 trusts the references of variable-length values,
// and may crash on a damaged file. None at all if one cannot be opened.
nb::object headers(const Libhdf5& hdf5, datasets::hid_t group, std::vector<nb::bytes> names) {
    std::deque<datasets::Id> objects;
    for (const nb::bytes& name : names) {
        objects.emplace_back(hdf5.open_object(group, name.c_str(), datasets::none), hdf5.close_object);
        if (!objects.back().valid()) return nb::none();
        if (objects.size() > most_open) objects.pop_back();
    }
    auto object = objects.begin();
    return tuple_of(names, [&](const nb::bytes& name) -> nb::object {
        const datasets::hid_t id =
            object != objects.end() ? (object++)->release() : hdf5.open_object(group, name.c_str(), datasets::none);
        if (id >= 0 && hdf5.kind(id) == datasets::kind_dataset) return header_of(hdf5, id);
        const bool is_group = id >= 0 && hdf5.kind(id) == datasets::kind_group;
        if (id >= 0) hdf5.close_object(id);
        return is_group ? nb::object(nb::bool_(true)) : nb::none();
    });
}

// Name, kind, address, character set and number in creation order of each link; None if they cannot be listed.
nb::object links(const Libhdf5& hdf5, datasets::hid_t group) {
    std::vector<datasets::Link> links;
    if (!datasets::read_links(hdf5, group, links)) return nb::none();
    return tuple_of(links, [](const datasets::Link& link) -> nb::object {
        const auto& [name, info] = link;
        return nb::make_tuple(nb::bytes(name.data(), name.size()), info.kind, info.address, info.charset,
                              info.order_valid ? signed_of(info.order) : nb::object(nb::none()));
    });
}

// Whether an object is a dataset whose values may have references, to be translated in its copy.
bool may_have_references(const Libhdf5& hdf5, datasets::hid_t object) {
    const datasets::Id type(hdf5.type_of(object), hdf5.close_type);  // groups have none
    const int type_class = type.valid() ? hdf5.type_class(type) : datasets::class_integer;
    return type_class != datasets::class_integer && type_class != datasets::class_float &&
           type_class != datasets::class_string && type_class != datasets::class_enum;
}

[[noreturn]] void fail(const char* text) {
    throw std::runtime_error(std::string(text) + " (errno = " + std::to_string(errno) + ")");
}

// Whether a group was copied.
bool copy_empty_group(const Libhdf5& hdf5, datasets::hid_t source, datasets::hid_t target, nb::bytes name,
                      datasets::hid_t link, datasets::hid_t properties) {
    const auto copied = datasets::copy_empty_group(hdf5, source, target, name.c_str(), link, properties);
    if (copied == datasets::GroupCopied::failed) fail("the group cannot be created");
    return copied == datasets::GroupCopied::yes;
}

// Whether all attributes were copied; false if none were.
bool copy_attributes(const Libhdf5& hdf5, datasets::hid_t source, datasets::hid_t target, nb::bytes name) {
    const datasets::Id from(hdf5.open_object(source, name.c_str(), datasets::none), hdf5.close_object);
    const datasets::Id to(hdf5.open_object(target, name.c_str(), datasets::none), hdf5.close_object);
    if (!from.valid() || !to.valid() || may_have_references(hdf5, from)) return false;
    const datasets::Copied copied = datasets::copy_attributes(hdf5, from, to);
    if (copied == datasets::Copied::some) fail("attributes cannot be written");
    return copied == datasets::Copied::all;
}

// Identifiers of the group, of the properties of the link, of the type, and of the properties of the dataset.
using Settings = std::tuple<datasets::hid_t, datasets::hid_t, datasets::hid_t, datasets::hid_t>;

// Of zfp: the mask, the marks of missing values, the limits of valid ones, and the bound.
using Loss = std::tuple<std::uint32_t, nb::object, std::tuple<double, double>, std::optional<double>>;

// Values in place of those of the source, and attributes that record why: name, type, dataspace and values of each.
using Changed = std::pair<nb::bytes, std::vector<std::tuple<nb::bytes, datasets::hid_t, datasets::hid_t, nb::bytes>>>;

nb::object rewrite(const Libhdf5& hdf5, File place, nb::bytes path, Settings settings, nb::bytes name,
                   const chunks::Pipeline& pipeline, std::size_t most_nbytes, std::optional<Loss> loss,
                   std::optional<Changed> changed) {
    const auto& [id, file, base] = place;
    const auto& [parent, link, type, properties] = settings;
    std::optional<Buffer> marks;
    std::optional<chunks::Loss> terms;
    if (loss) {
        const auto& [mask, marked, limits, bound] = *loss;
        marks.emplace(marked, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT);
        terms = loss_of(pipeline, mask, *marks, limits, bound);
    }
    SmallDataset source(hdf5, id, path.c_str());
    datasets::Memory values;
    const zfp::Kernel& kernel = kernel_in_use();
    if (!source.survey(base)) return nb::none();
    std::vector<datasets::NewAttribute> added;
    if (changed) {
        const auto& [bytes, attributes] = *changed;
        if (bytes.size() != source.nbytes()) return nb::none();
        const auto* const first = reinterpret_cast<const std::uint8_t*>(bytes.c_str());
        values.assign(first, first + bytes.size());
        for (const auto& [label, kind, space, content] : attributes)
            added.push_back({label.c_str(), kind, space, content.c_str()});
    } else if (!source.decode(file, libdeflate_in_use(), kernel, values)) {
        return nb::none();
    }
    datasets::Rewriter rewriter(hdf5, source, pipeline);
    if (!rewriter.encode(values, kernel, most_nbytes, terms ? &*terms : nullptr)) return nb::none();
    const auto rewritten = rewriter.write({parent, name.c_str(), link, type, properties}, base, added);
    if (rewritten == datasets::Rewritten::nothing) return nb::none();
    if (rewritten == datasets::Rewritten::some) fail("the dataset cannot be written");
    const auto chunk_of = [](const datasets::NewChunk& chunk) -> nb::object {
        const auto& [offset, nbytes, error, missing, kept] = chunk.encoded;
        return nb::make_tuple(chunk.offset, nbytes, chunk.checksum, missing, error);
    };
    return nb::make_tuple(rewriter.has_attributes(), tuple_of(rewriter.chunks(), chunk_of));
}

// Extents of an array, and of its chunks.
using Grid = std::pair<std::vector<std::size_t>, std::vector<std::size_t>>;

datasets::ChunkGrid grid_of(const Grid& grid) { return {shape_of(grid.first), shape_of(grid.second)}; }

std::optional<nb::bytes> chunk_records(const Libhdf5& hdf5, datasets::hid_t dataset, const Grid& grid) {
    const datasets::ChunkGrid chunk_grid = grid_of(grid);
    datasets::ChunkRecords records(chunk_grid);
    if (!records.read(hdf5, dataset)) return std::nullopt;
    return nb::bytes(records.rows().data(), records.rows().size_bytes());
}

// The first three items of a tuple: number, bytes and mask.
datasets::ChunkToWrite chunk_of(nb::handle item) {
    if (!PyTuple_Check(item.ptr()) || PyTuple_GET_SIZE(item.ptr()) < 3 ||
        !PyBytes_Check(PyTuple_GET_ITEM(item.ptr(), 1)))
        throw nb::type_error("expected tuples of number, bytes and mask");
    PyObject* const data = PyTuple_GET_ITEM(item.ptr(), 1);
    return {nb::cast<std::uint64_t>(nb::handle(PyTuple_GET_ITEM(item.ptr(), 0))),
            {reinterpret_cast<const std::uint8_t*>(PyBytes_AS_STRING(data)),
             static_cast<std::size_t>(PyBytes_GET_SIZE(data))},
            nb::cast<std::uint32_t>(nb::handle(PyTuple_GET_ITEM(item.ptr(), 2)))};
}

using Sizes = nb::typed<nb::tuple, std::int64_t, nb::ellipsis>;

Sizes write_chunks(const Libhdf5& hdf5, datasets::hid_t dataset, const Grid& grid, std::optional<nb::bytes> path,
                   nb::typed<nb::sequence, nb::object> items) {
    const datasets::ChunkGrid chunk_grid = grid_of(grid);
    if (!chunk_grid.valid()) throw nb::value_error("expected as many axes of chunks as of the array");
    const nb::tuple kept(items);  // alive while the lock is released
    std::vector<datasets::ChunkToWrite> chunks;
    for (nb::handle item : kept) chunks.push_back(chunk_of(item));
    bool written = false;
    int reason = 0;
    {
        const Unlocked unlocked;
        written = datasets::write_chunks(hdf5, dataset, chunk_grid, path ? path->c_str() : nullptr, chunks);
        reason = errno;
    }
    errno = reason;  // which the lock may have changed
    if (!written) fail("a chunk cannot be written");
    return nb::borrow<Sizes>(tuple_of(chunks, [](const auto& chunk) { return signed_of(chunk.file_nbytes); }));
}

}  // namespace

void bind_datasets(nb::module_& m) {
    nb::enum_<Depth>(m, "Depth", "How much of a small dataset is requested.")
        .value("facts", Depth::facts, "Facts only.")
        .value("attributes", Depth::attributes, "Also all attributes, in the order of creation or storage.")
        .value("values", Depth::values, "Also values, decoded without HDF5.")
        .value("twice", Depth::twice, "Values only if HDF5 reads the same.");
    nb::class_<Libhdf5>(m, "Libhdf5", "Calls to a libhdf5 for many facts at once; the caller holds its lock.")
        .def(nb::new_([](const std::string& path) { return Libhdf5(path.c_str()); }), "path"_a,
             "The libhdf5 that a loaded library contains or needs.")
        .def_prop_ro(
            "complete", [](const Libhdf5& hdf5) { return static_cast<bool>(hdf5); }, "Whether all calls exist.")
        .def("survey", &survey, "place"_a, "path"_a, "depth"_a,
             "Facts of a small dataset of numbers, and its values; None if it is not certainly one.\n\n"
             "The file is given by its identifier, its descriptor, and the number to add to HDF5's offsets.")
        .def("look", &look, "place"_a, "group"_a, "name"_a, "depth"_a,
             "A member of a group: the identifier of a group, which the caller closes, or the result of `survey`.")
        .def("attributes", &attributes, "owner"_a,
             "Attributes of an object, in the order of creation or storage: the name of each; name, type, dataspace\n"
             "and values of each, None if one is unusual; address of the last dimension scale of each axis; and how\n"
             "many axes have this dimension scale. None if HDF5 cannot list them.")
        .def("headers", &headers, "group"_a, "names"_a,
             "Form, extents, largest extents and `attributes` of each dataset of a group, and True for each group.\n\n"
             "None for other objects, and for datasets that are not numbers or strings of a fixed size; None\n"
             "instead of all if one cannot be opened.")
        .def("links", &links, "group"_a,
             "Name, kind, address, character set and number in creation order, if it is tracked, of each link of a\n"
             "group, in the order in which they are stored; None if they cannot be listed.")
        .def(
            "bare_address",
            [](const Libhdf5& hdf5, datasets::hid_t group) { return datasets::bare_address(hdf5, group); }, "group"_a,
            "Address of a group that certainly has no attributes, comment or settings: its formats are older than\n"
            "HDF5 1.8.")
        .def("copy_empty_group", &copy_empty_group, "source"_a, "target"_a, "name"_a, "link"_a, "properties"_a,
             "Copy a group, by its name in another one, if `bare_address` knows it and it has no links.\n\n"
             "`link` and `properties` are the properties of its link and of such a group. Returns whether it was\n"
             "copied. Raises RuntimeError if HDF5 cannot create it.")
        .def("copy_attributes", &copy_attributes, "source"_a, "target"_a, "name"_a,
             "Copy all attributes of an object to its copy, which has the same name in another group, and no\n"
             "attributes.\n\n"
             "Returns whether they were copied; none are if the object has a comment, may have references, or has\n"
             "an attribute that is neither plain bytes nor strings. Raises RuntimeError if HDF5 cannot write one.")
        .def("chunk_records", &chunk_records, "dataset"_a, "grid"_a,
             "Number, offset, size and mask of each stored chunk, 64 bits each, in the order of the index.\n\n"
             "`grid` are the extents of the array and of its chunks. None if HDF5 is older than 1.14, or a record\n"
             "is damaged.")
        .def("write_chunks", &write_chunks, "dataset"_a, "grid"_a, "path"_a.none(), "chunks"_a,
             "Write encoded chunks: tuples that begin with number, bytes and mask.\n\n"
             "Returns the size of the file at `path` after each, -1 if it is not known. Raises RuntimeError if HDF5\n"
             "cannot write one.")
        .def("rewrite", &rewrite, "place"_a, "path"_a, "settings"_a, "name"_a, "pipeline"_a, "most_nbytes"_a,
             "loss"_a.none() = nb::none(), "changed"_a.none() = nb::none(),
             "Store a small dataset again, in a group of another file, with other filters.\n\n"
             "`settings` are identifiers: of the group, the link's properties, the type, and the dataset's\n"
             "properties, with the filters of `pipeline`. `loss` are mask, marks, limits and bound, as for\n"
             "`ChunkPipeline.encode`; without it nothing is lost. `changed` are other values in the file's type,\n"
             "and new attributes: name, identifiers of type and dataspace, and values. The encoded chunks are\n"
             "decoded and compared, and so are HDF5's records of them. Returns whether the attributes were also\n"
             "copied, and offset, size, CRC-32, number of missing values and largest error of each chunk. Returns\n"
             "None and writes nothing if more is needed, the chunks break the bound or the limits, or they take\n"
             "more than `most_nbytes`. Raises RuntimeError if HDF5 cannot write.");
}

}  // namespace tamis::python

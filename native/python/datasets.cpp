// The part of `_native` that asks h5py's libhdf5 for all of a small dataset in one call; src/tamis/hdf5/lib/ gives it a
// Python face. Callers hold h5py's lock.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cerrno>

#include "python/binding.hpp"
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

// The name of an attribute, and its text if it is one.
nb::object attribute_of(const Libhdf5& hdf5, datasets::hid_t owner, const datasets::AttributeName& name) {
    datasets::Attribute attribute(hdf5, owner, name);
    const auto text = attribute.read() ? attribute.text() : std::nullopt;
    nb::object value = text ? nb::object(nb::bytes(text->data(), text->size())) : nb::none();
    return nb::make_tuple(nb::bytes(name.name.data(), name.name.size()), value);
}

nb::tuple facts_of(const Libhdf5& hdf5, const SmallDataset& dataset, const datasets::Names& names) {
    const auto limit = [](datasets::hsize_t maximum) {
        return maximum == datasets::unlimited ? nb::object(nb::none()) : number_of(maximum);
    };
    const auto& index = dataset.index();
    return nb::make_tuple(
        form_of(dataset.form()), extents_of(dataset.shape()), tuple_of(dataset.maxima(), limit),
        dataset.stored_nbytes(),
        nb::make_tuple(tuple_of(index.numbers, signed_of), tuple_of(index.offsets, signed_of),
                       tuple_of(index.nbytes, signed_of), tuple_of(index.masks, number_of)),
        tuple_of(names, [&](const datasets::AttributeName& name) { return attribute_of(hdf5, dataset.id(), name); }));
}

nb::object facts_if_known(const Libhdf5& hdf5, SmallDataset& dataset, std::int64_t base) {
    datasets::Names names;
    if (!dataset.survey(base) || !attribute_names(hdf5, dataset.id(), names)) return nb::none();
    return facts_of(hdf5, dataset, names);
}

nb::object survey(const Libhdf5& hdf5, datasets::hid_t file, nb::bytes path, std::int64_t base) {
    SmallDataset dataset(hdf5, file, path.c_str());
    return facts_if_known(hdf5, dataset, base);
}

// The identifier of a group, which the caller closes, or the facts of a small dataset.
nb::object look(const Libhdf5& hdf5, datasets::hid_t group, nb::bytes name, std::int64_t base) {
    const datasets::hid_t object = hdf5.open_object(group, name.c_str(), datasets::none);
    if (object < 0) return nb::none();
    const int kind = hdf5.kind(object);
    if (kind == datasets::kind_group) return signed_of(object);
    if (kind != datasets::kind_dataset) {
        hdf5.close_object(object);
        return nb::none();
    }
    SmallDataset dataset(hdf5, object);
    return facts_if_known(hdf5, dataset, base);
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

// Whether all attributes were copied; false if none were.
bool copy_attributes(const Libhdf5& hdf5, datasets::hid_t source, datasets::hid_t target, nb::bytes name) {
    const datasets::Id from(hdf5.open_object(source, name.c_str(), datasets::none), hdf5.close_object);
    const datasets::Id to(hdf5.open_object(target, name.c_str(), datasets::none), hdf5.close_object);
    if (!from.valid() || !to.valid() || may_have_references(hdf5, from)) return false;
    const datasets::Copied copied = datasets::copy_attributes(hdf5, from, to);
    if (copied == datasets::Copied::some) fail("attributes cannot be written");
    return copied == datasets::Copied::all;
}

nb::object values_of(const Libhdf5& hdf5, File place, nb::bytes path) {
    const auto& [id, file, base] = place;
    SmallDataset dataset(hdf5, id, path.c_str());
    datasets::Memory values;
    if (!dataset.survey(base) || !dataset.decode(file, libdeflate_in_use(), kernel_in_use(), values)) return nb::none();
    return bytes_of(values);
}

// Identifiers of the group, of the properties of the link, of the type, and of the properties of the dataset.
using Settings = std::tuple<datasets::hid_t, datasets::hid_t, datasets::hid_t, datasets::hid_t>;

nb::object rewrite(const Libhdf5& hdf5, File place, nb::bytes path, Settings settings, nb::bytes name,
                   const chunks::Pipeline& pipeline, std::size_t most_nbytes) {
    const auto& [id, file, base] = place;
    const auto& [parent, link, type, properties] = settings;
    SmallDataset source(hdf5, id, path.c_str());
    datasets::Memory values;
    const zfp::Kernel& kernel = kernel_in_use();
    if (!source.survey(base) || !source.decode(file, libdeflate_in_use(), kernel, values)) return nb::none();
    datasets::Rewriter rewriter(hdf5, source, pipeline);
    if (!rewriter.encode(values, kernel, most_nbytes)) return nb::none();
    const auto rewritten = rewriter.write({parent, name.c_str(), link, type, properties}, base);
    if (rewritten == datasets::Rewritten::nothing) return nb::none();
    if (rewritten == datasets::Rewritten::some) fail("the dataset cannot be written");
    const auto chunk_of = [](const datasets::NewChunk& chunk) -> nb::object {
        return nb::make_tuple(chunk.offset, chunk.encoded.nbytes, chunk.checksum);
    };
    return nb::make_tuple(rewriter.has_attributes(), tuple_of(rewriter.chunks(), chunk_of));
}

nb::object compare(const Libhdf5& hdf5, File first, File second, nb::bytes path, bool by_library,
                   std::tuple<bool, bool> with_facts) {
    const auto& [id, file, base] = first;
    const auto& [other_id, other_file, other_base] = second;
    SmallDataset before(hdf5, id, path.c_str()), after(hdf5, other_id, path.c_str());
    if (!before.survey(base) || !after.survey(other_base)) return nb::none();
    if (hdf5.types_equal(before.type(), after.type()) <= 0 || before.shape() != after.shape() ||
        before.maxima() != after.maxima() || before.form().fill_state != after.form().fill_state ||
        before.form().fill != after.form().fill)
        return nb::none();
    datasets::Memory values, others;
    const zfp::Kernel& kernel = kernel_in_use();
    const chunks::Libdeflate& inflate = libdeflate_in_use();
    if (!before.decode(file, inflate, kernel, values) || !after.decode(other_file, inflate, kernel, others) ||
        values != others)
        return nb::none();
    if (by_library && (!before.read(others) || values != others || !after.read(others) || values != others))
        return nb::none();
    datasets::Names names, other_names;
    if (!attribute_names(hdf5, before.id(), names) || !attribute_names(hdf5, after.id(), other_names))
        return nb::none();
    const bool same = same_attributes(hdf5, before.id(), after.id(), names, other_names);
    const auto facts = [&](bool asked, const SmallDataset& dataset, const datasets::Names& of_dataset) {
        return asked ? nb::object(facts_of(hdf5, dataset, of_dataset)) : nb::object(nb::none());
    };
    return nb::make_tuple(facts(std::get<0>(with_facts), before, names),
                          facts(std::get<1>(with_facts), after, other_names), bytes_of(values), same);
}

}  // namespace

void bind_datasets(nb::module_& m) {
    nb::class_<Libhdf5>(m, "Libhdf5", "Calls of a libhdf5 for many facts at once; the caller holds its lock.")
        .def(nb::new_([](const std::string& path) { return Libhdf5(path.c_str()); }), "path"_a,
             "The libhdf5 that a loaded library has, or needs.")
        .def_prop_ro(
            "complete", [](const Libhdf5& hdf5) { return static_cast<bool>(hdf5); }, "Whether all calls are there.")
        .def("survey", &survey, "file"_a, "path"_a, "base"_a,
             "Facts of a small dataset of numbers; None if it is not one, or not known for sure.")
        .def("look", &look, "group"_a, "name"_a, "base"_a,
             "What is in a group: the identifier of a group, which the caller closes, or what `survey` returns.")
        .def("values", &values_of, "place"_a, "path"_a,
             "Values of a small dataset, decoded without HDF5; None if it is not one, or damaged. See `compare`.")
        .def("copy_attributes", &copy_attributes, "source"_a, "target"_a, "name"_a,
             "Copy all attributes of an object to its copy, of the same name in another group, which has none.\n\n"
             "Returns whether they were copied; none are if the object has a comment, may have references, or\n"
             "has an attribute that is neither plain bytes nor texts. Raises RuntimeError if HDF5 cannot write one.")
        .def("rewrite", &rewrite, "place"_a, "path"_a, "settings"_a, "name"_a, "pipeline"_a, "most_nbytes"_a,
             "Store a small dataset anew, in a group of another file, through other filters that lose nothing.\n\n"
             "`settings` are identifiers: of the group, of the properties of the link, of the type, and of the\n"
             "properties of the dataset, whose filters `pipeline` has. The encoded chunks are decoded and compared,\n"
             "and so are HDF5's records of them. Returns whether the attributes are copied, too, and offset, size\n"
             "and CRC-32 of each chunk; None, and nothing is written, if more is to be done, or the chunks take\n"
             "more than `most_nbytes`. Raises RuntimeError if HDF5 cannot write.")
        .def("compare", &compare, "first"_a, "second"_a, "path"_a, "by_library"_a, "with_facts"_a,
             "Facts and values of two small datasets that have the same type, shape, fill value and values.\n\n"
             "Each file is given by its identifier, its descriptor, and what to add to HDF5's offsets. Values are\n"
             "decoded without HDF5, and with `by_library` by HDF5, too. Returns the facts that are asked for, the "
             "values, and\n"
             "whether the attributes are certainly the same; None if the datasets are not, or not for sure.");
}

}  // namespace tamis::python

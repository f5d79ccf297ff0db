// The Python module `_native`: what its parts (zfp.cpp, filters.cpp, szip.cpp, values.cpp, rounding.cpp, chunks.cpp,
// datasets.cpp) have in common.

#include <nanobind/nanobind.h>

#include "python/binding.hpp"

namespace nb = nanobind;

namespace tamis::python {

namespace {

template <class Code>
struct Name {
    Code code;
    const char* name;
};

// Whether a table has each code, at its place.
template <class Code, std::size_t size>
constexpr bool is_whole(const Name<Code> (&names)[size], Code last) {
    for (std::size_t i = 0; i < size; ++i)
        if (names[i].code != static_cast<Code>(i)) return false;
    return size == static_cast<std::size_t>(last) + 1;
}

constexpr Name<zfp::Code> codec_names[] = {
    {zfp::Code::ok, "ok"},
    {zfp::Code::non_finite, "non_finite"},
    {zfp::Code::integer_range, "integer_range"},
    {zfp::Code::changed, "changed"},
    {zfp::Code::truncated, "truncated"},
    {zfp::Code::not_a_header, "not_a_header"},
    {zfp::Code::codec_version, "codec_version"},
    {zfp::Code::bad_rate, "bad_rate"},
    {zfp::Code::bad_precision, "bad_precision"},
    {zfp::Code::bad_accuracy, "bad_accuracy"},
    {zfp::Code::bad_expert, "bad_expert"},
    {zfp::Code::bad_mode, "bad_mode"},
    {zfp::Code::too_few_values, "too_few_values"},
    {zfp::Code::maxbits_small, "maxbits_small"},
    {zfp::Code::extent_large, "extent_large"},
    {zfp::Code::integer_accuracy, "integer_accuracy"},
    {zfp::Code::beyond_tolerance, "beyond_tolerance"},
    {zfp::Code::fill_value, "fill_value"},
    {zfp::Code::no_memory, "no_memory"},
    {zfp::Code::no_room, "no_room"},
};
static_assert(is_whole(codec_names, zfp::Code::no_room));

constexpr Name<filters::Code> filter_names[] = {
    {filters::Code::ok, "ok"},
    {filters::Code::bad_itemsize, "bad_itemsize"},
    {filters::Code::bad_block, "bad_block"},
    {filters::Code::bad_parameter, "bad_parameter"},
    {filters::Code::wrong_nbytes, "wrong_nbytes"},
    {filters::Code::truncated, "truncated"},
    {filters::Code::bad_minbits, "bad_minbits"},
    {filters::Code::non_finite, "non_finite"},
    {filters::Code::too_wide, "too_wide"},
    {filters::Code::no_room, "no_room"},
    {filters::Code::damaged, "damaged"},
    {filters::Code::no_memory, "no_memory"},
};
static_assert(is_whole(filter_names, filters::Code::no_memory));

}  // namespace

Failure::Failure(const zfp::Status& status)
    : code(codec_names[static_cast<std::size_t>(status.code)].name), where(status.where) {}
Failure::Failure(const filters::Status& status)
    : code(filter_names[static_cast<std::size_t>(status.code)].name), where(status.where) {}

}  // namespace tamis::python

NB_MODULE(_native, m) {
    using tamis::python::Failure;

    // What a program still holds at its end is no leak of ours: the command leaves all that it has to the system.
    nb::set_leak_warnings(false);

    m.doc() =
        "The codec, the filters, and checks of values. Functions return a Failure if the data or the parameters are\n"
        "wrong.";

    nb::class_<Failure>(m, "Failure", "Why a call failed.")
        .def_prop_ro(
            "code", [](const Failure& failure) { return failure.code; }, "Name of the failure.")
        .def_ro("where", &Failure::where, "Index, block, axis or number of the failure.");

    m.attr("version") = TAMIS_VERSION;
    tamis::python::bind_zfp(m);
    tamis::python::bind_filters(m);
    tamis::python::bind_szip(m);
    tamis::python::bind_values(m);
    tamis::python::bind_rounding(m);
    tamis::python::bind_chunks(m);
    tamis::python::bind_datasets(m);
}

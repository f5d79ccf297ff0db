// The Python module `_native`: what its parts (zfp.cpp, filters.cpp, values.cpp) have in common.

#include <nanobind/nanobind.h>

#include "python/binding.hpp"

namespace nb = nanobind;

namespace tamis::python {

namespace {

const char* name_of(zfp::Code code) {
    constexpr const char* names[] = {"ok",
                                     "non_finite",
                                     "integer_range",
                                     "changed",
                                     "truncated",
                                     "not_a_header",
                                     "codec_version",
                                     "bad_rate",
                                     "bad_accuracy",
                                     "bad_expert",
                                     "bad_mode",
                                     "too_few_values",
                                     "maxbits_small",
                                     "extent_large",
                                     "integer_accuracy",
                                     "beyond_tolerance",
                                     "fill_value",
                                     "no_memory",
                                     "no_room"};
    return names[static_cast<std::size_t>(code)];
}

const char* name_of(filters::Code code) {
    constexpr const char* names[] = {"ok",           "bad_itemsize", "bad_block",   "bad_parameter",
                                     "wrong_nbytes", "truncated",    "bad_minbits", "non_finite"};
    return names[static_cast<std::size_t>(code)];
}

}  // namespace

Failure::Failure(const zfp::Status& status) : code(name_of(status.code)), where(status.where) {}
Failure::Failure(const filters::Status& status) : code(name_of(status.code)), where(status.where) {}

}  // namespace tamis::python

NB_MODULE(_native, m) {
    using tamis::python::Failure;

    // What a program still holds at its end is no leak of ours: the command leaves all that it has to the system.
    nb::set_leak_warnings(false);

    m.doc() =
        "The codec, the filters, and checks of values. Functions return a Failure where the data or parameters are at "
        "fault.";

    nb::class_<Failure>(m, "Failure", "Why a call did not succeed.")
        .def_prop_ro(
            "code", [](const Failure& failure) { return failure.code; }, "Name of the failure.")
        .def_ro("where", &Failure::where, "Index, block, axis or number that the failure is about.");

    m.attr("version") = TAMIS_VERSION;
    tamis::python::bind_zfp(m);
    tamis::python::bind_filters(m);
    tamis::python::bind_values(m);
}

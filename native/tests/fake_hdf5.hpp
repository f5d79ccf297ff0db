// The calls of libhdf5 that the plugin binds, exported by the test program itself: one dataset under creation, and an
// error stack that is counted. Declared as libhdf5 declares them (H5public.h, H5Epublic.h, H5Ppublic.h, …).
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <vector>

#include "check.hpp"
#include "hdf5/interface.hpp"

namespace tamis::tests {

struct FakeFilter {
    int id = 0;
    unsigned flags = 0;
    std::vector<unsigned> values;
};

struct FakeHdf5 {
    std::vector<FakeFilter> pipeline;
    hdf5::hid_t type = -1;
    int rank = 1;
    std::vector<hdf5::hsize_t> extents;
    bool refuses_extents = false, refuses_values = false, refuses_change = false;
    int fill_status = 1;     // H5D_fill_value_t
    std::uint64_t fill = 0;  // bits, of the type's width
    bool has_property = false;
    std::vector<std::uint8_t> controls;  // the property "zfp_controls"; empty: there is none
    unsigned messages = 0;               // on the current stack
    unsigned pushed = 0;                 // on the stack made last, which is not current yet
};

inline thread_local FakeHdf5 fake;  // HDF5 lets one thread in at a time; two libraries let in two

// Type identifiers: the place in this list, plus one.
inline constexpr int fake_types = 14;

}  // namespace tamis::tests

// Visible, as a library's are: dlsym has to find them.
#pragma GCC visibility push(default)

extern "C" {

// The variables are found by dlsym only.
extern const tamis::hdf5::hid_t H5T_IEEE_F32LE_g = 1, H5T_IEEE_F32BE_g = 2, H5T_IEEE_F64LE_g = 3, H5T_IEEE_F64BE_g = 4,
                                H5T_STD_I32LE_g = 5, H5T_STD_I32BE_g = 6, H5T_STD_I64LE_g = 7, H5T_STD_I64BE_g = 8,
                                H5T_STD_U32LE_g = 9, H5T_STD_U32BE_g = 10, H5T_STD_U64LE_g = 11, H5T_STD_U64BE_g = 12;
extern const tamis::hdf5::hid_t H5E_ERR_CLS_g = 101, H5E_PLINE_g = 102, H5E_BADTYPE_g = 103, H5E_BADVALUE_g = 104,
                                H5E_CANTGET_g = 105, H5E_CANTINIT_g = 106, H5E_READERROR_g = 107,
                                H5E_CANTFILTER_g = 108;

// The current stack is paused, as while HDF5 1.14 and 2.0 run a filter: only a stack that takes its place brings
// messages.
tamis::hdf5::hid_t H5Ecreate_stack() {
    tamis::tests::require(tamis::tests::fake.pushed == 0, "no stack is left over");
    return 201;
}

int H5Eset_current_stack(tamis::hdf5::hid_t stack) {
    tamis::tests::require(stack == 201, "the stack that was made becomes the current one");
    tamis::tests::fake.messages += tamis::tests::fake.pushed;
    tamis::tests::fake.pushed = 0;
    return 0;
}

int H5Epush2(tamis::hdf5::hid_t stack, const char* file, const char* function, unsigned, tamis::hdf5::hid_t cls,
             tamis::hdf5::hid_t major, tamis::hdf5::hid_t minor, const char* format, ...) {
    using tamis::tests::require;
    char text[1000];
    std::va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    require(stack == 201 && std::strcmp(file, "tamis") == 0 && function[0] != '\0',
            "a message says where it comes from");
    require(cls == H5E_ERR_CLS_g && major == H5E_PLINE_g && minor > H5E_PLINE_g, "a message has its error numbers");
    require(std::strncmp(text, "zfp: ", 5) == 0 && length > 10 && length < 400, "a message is a line of text");
    require(std::strcmp(text, "zfp: failed") != 0, "a message says what failed");
    ++tamis::tests::fake.pushed;
    return 0;
}

int H5Tget_class(tamis::hdf5::hid_t) { return 3; }
std::size_t H5Tget_size(tamis::hdf5::hid_t) { return 2; }
int H5Tequal(tamis::hdf5::hid_t a, tamis::hdf5::hid_t b) { return a == b; }
int H5Sget_simple_extent_ndims(tamis::hdf5::hid_t) { return tamis::tests::fake.rank; }

int H5Sget_simple_extent_dims(tamis::hdf5::hid_t, unsigned long long* extents, unsigned long long* maximum) {
    if (tamis::tests::fake.refuses_extents) return -1;
    std::size_t axis = 0;
    for (const auto extent : tamis::tests::fake.extents) extents[axis++] = extent;
    tamis::tests::require(maximum == nullptr, "the largest extents are not asked for");
    return static_cast<int>(axis);
}

int H5Pget_nfilters(tamis::hdf5::hid_t) { return static_cast<int>(tamis::tests::fake.pipeline.size()); }

int H5Pget_filter2(tamis::hdf5::hid_t, unsigned index, unsigned* flags, std::size_t* count, unsigned* values,
                   std::size_t name_nbytes, char* name, unsigned* config) {
    const auto& pipeline = tamis::tests::fake.pipeline;
    if (index >= pipeline.size()) return -1;
    const auto& filter = pipeline[index];
    if (flags != nullptr) *flags = filter.flags;
    if (config != nullptr) *config = 3;
    if (name != nullptr && name_nbytes > 0) std::snprintf(name, name_nbytes, "filter of number %d", filter.id);
    if (count != nullptr) {
        for (std::size_t i = 0; values != nullptr && i < *count && i < filter.values.size(); ++i)
            values[i] = filter.values[i];
        *count = filter.values.size();  // all that there are, as libhdf5 does
    }
    return filter.id;
}

int H5Pget_filter_by_id2(tamis::hdf5::hid_t dcpl, int id, unsigned* flags, std::size_t* count, unsigned* values,
                         std::size_t name_nbytes, char* name, unsigned* config) {
    const auto& pipeline = tamis::tests::fake.pipeline;
    if (tamis::tests::fake.refuses_values) return -1;
    for (unsigned i = 0; i < pipeline.size(); ++i)
        if (pipeline[i].id == id)
            return H5Pget_filter2(dcpl, i, flags, count, values, name_nbytes, name, config) < 0 ? -1 : 0;
    return -1;
}

int H5Pmodify_filter(tamis::hdf5::hid_t, int id, unsigned flags, std::size_t count, const unsigned* values) {
    if (tamis::tests::fake.refuses_change) return -1;
    for (auto& filter : tamis::tests::fake.pipeline)
        if (filter.id == id) {
            filter.flags = flags;
            filter.values.assign(values, values + count);
            return 0;
        }
    return -1;
}

int H5Pset_filter(tamis::hdf5::hid_t, int id, unsigned flags, std::size_t count, const unsigned* values) {
    if (tamis::tests::fake.refuses_change) return -1;
    tamis::tests::fake.pipeline.push_back({id, flags, {values, values + count}});
    return 0;
}

int H5Premove_filter(tamis::hdf5::hid_t, int id) {
    const auto count = std::erase_if(tamis::tests::fake.pipeline, [&](const auto& filter) { return filter.id == id; });
    return count > 0 ? 0 : -1;
}

int H5Pfill_value_defined(tamis::hdf5::hid_t, int* status) {
    *status = tamis::tests::fake.fill_status;
    return 0;
}

int H5Pget_fill_value(tamis::hdf5::hid_t, tamis::hdf5::hid_t type, void* value) {
    constexpr std::size_t nbytes[] = {0, 4, 4, 8, 8, 4, 4, 8, 8, 4, 4, 8, 8};
    tamis::tests::require(type >= 1 && type <= 12, "the fill value is asked for in the dataset's type");
    std::memcpy(value, &tamis::tests::fake.fill, nbytes[type]);
    return 0;
}

int H5Pexist(tamis::hdf5::hid_t, const char* name) {
    if (std::strcmp(name, "zfp_controls") == 0) return !tamis::tests::fake.controls.empty();
    tamis::tests::require(std::strcmp(name, "tamis_zfp_unproven") == 0, "two properties are asked for");
    return tamis::tests::fake.has_property;
}

int H5Pget_size(tamis::hdf5::hid_t, const char* name, std::size_t* nbytes) {
    tamis::tests::require(std::strcmp(name, "zfp_controls") == 0, "one property has a value");
    *nbytes = tamis::tests::fake.controls.size();
    return 0;
}

int H5Pget(tamis::hdf5::hid_t, const char* name, void* value) {
    tamis::tests::require(std::strcmp(name, "zfp_controls") == 0, "one property has a value");
    std::memcpy(value, tamis::tests::fake.controls.data(), tamis::tests::fake.controls.size());
    return 0;
}
}

#pragma GCC visibility pop

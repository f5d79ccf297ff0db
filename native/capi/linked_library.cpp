// Functions and variables of the libhdf5 that the program links, by name, in place of those of the library that called:
// hdf5/library.cpp.

#include <cstring>

#include "capi/linked.hpp"

#pragma GCC visibility push(default)

extern "C" {

// Of whatever type: only addresses are taken. hdf5/interface.hpp has the types.
void H5Epush2(), H5Ecreate_stack(), H5Eset_current_stack(), H5Tget_class(), H5Tget_size(), H5Tequal(),
    H5Sget_simple_extent_ndims(), H5Sget_simple_extent_dims(), H5Pget_nfilters(), H5Pget_filter2(),
    H5Pget_filter_by_id2(), H5Pmodify_filter(), H5Premove_filter(), H5Pset_filter(), H5Pfill_value_defined(),
    H5Pget_fill_value(), H5Pexist(), H5Pget_size(), H5Pget();

extern hid_t H5E_ERR_CLS_g, H5E_PLINE_g, H5E_BADTYPE_g, H5E_BADVALUE_g, H5E_CANTGET_g, H5E_CANTINIT_g, H5E_CANTFILTER_g,
    H5E_READERROR_g, H5T_IEEE_F32LE_g, H5T_IEEE_F32BE_g, H5T_IEEE_F64LE_g, H5T_IEEE_F64BE_g, H5T_STD_I32LE_g,
    H5T_STD_I32BE_g, H5T_STD_I64LE_g, H5T_STD_I64BE_g, H5T_STD_U32LE_g, H5T_STD_U32BE_g, H5T_STD_U64LE_g,
    H5T_STD_U64BE_g;
}

#pragma GCC visibility pop

namespace tamis::hdf5 {

namespace {

struct Function {
    const char* name;
    void (*address)();
};

struct Variable {
    const char* name;
    hid_t* address;
};

constexpr Function functions[] = {
    {"H5Epush2", H5Epush2},
    {"H5Ecreate_stack", H5Ecreate_stack},
    {"H5Eset_current_stack", H5Eset_current_stack},
    {"H5Tget_class", H5Tget_class},
    {"H5Tget_size", H5Tget_size},
    {"H5Tequal", H5Tequal},
    {"H5Sget_simple_extent_ndims", H5Sget_simple_extent_ndims},
    {"H5Sget_simple_extent_dims", H5Sget_simple_extent_dims},
    {"H5Pget_nfilters", H5Pget_nfilters},
    {"H5Pget_filter2", H5Pget_filter2},
    {"H5Pget_filter_by_id2", H5Pget_filter_by_id2},
    {"H5Pmodify_filter", H5Pmodify_filter},
    {"H5Premove_filter", H5Premove_filter},
    {"H5Pset_filter", H5Pset_filter},
    {"H5Pfill_value_defined", H5Pfill_value_defined},
    {"H5Pget_fill_value", H5Pget_fill_value},
    {"H5Pexist", H5Pexist},
    {"H5Pget_size", H5Pget_size},
    {"H5Pget", H5Pget},
};

constexpr Variable variables[] = {
    {"H5E_ERR_CLS_g", &H5E_ERR_CLS_g},       {"H5E_PLINE_g", &H5E_PLINE_g},
    {"H5E_BADTYPE_g", &H5E_BADTYPE_g},       {"H5E_BADVALUE_g", &H5E_BADVALUE_g},
    {"H5E_CANTGET_g", &H5E_CANTGET_g},       {"H5E_CANTINIT_g", &H5E_CANTINIT_g},
    {"H5E_CANTFILTER_g", &H5E_CANTFILTER_g}, {"H5E_READERROR_g", &H5E_READERROR_g},
    {"H5T_IEEE_F32LE_g", &H5T_IEEE_F32LE_g}, {"H5T_IEEE_F32BE_g", &H5T_IEEE_F32BE_g},
    {"H5T_IEEE_F64LE_g", &H5T_IEEE_F64LE_g}, {"H5T_IEEE_F64BE_g", &H5T_IEEE_F64BE_g},
    {"H5T_STD_I32LE_g", &H5T_STD_I32LE_g},   {"H5T_STD_I32BE_g", &H5T_STD_I32BE_g},
    {"H5T_STD_I64LE_g", &H5T_STD_I64LE_g},   {"H5T_STD_I64BE_g", &H5T_STD_I64BE_g},
    {"H5T_STD_U32LE_g", &H5T_STD_U32LE_g},   {"H5T_STD_U32BE_g", &H5T_STD_U32BE_g},
    {"H5T_STD_U64LE_g", &H5T_STD_U64LE_g},   {"H5T_STD_U64BE_g", &H5T_STD_U64BE_g},
};

}  // namespace

Library::Library(const void*) {}

Library::~Library() = default;

void* Library::symbol(const char* name) const {
    for (const Function& function : functions)
        if (std::strcmp(function.name, name) == 0) return reinterpret_cast<void*>(function.address);
    for (const Variable& variable : variables)
        if (std::strcmp(variable.name, name) == 0) return variable.address;
    return nullptr;
}

}  // namespace tamis::hdf5

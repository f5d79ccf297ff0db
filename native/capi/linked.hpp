// The calls of libhdf5 that the library makes: the program that links it brings them. None is loaded by name, so that
// it may be a static library.
#pragma once

#include "hdf5/interface.hpp"

// Visible: they are defined elsewhere.
#pragma GCC visibility push(default)

extern "C" {

using tamis::hdf5::herr_t;
using tamis::hdf5::hid_t;
using tamis::hdf5::htri_t;

herr_t H5open();
herr_t H5get_libversion(unsigned* major, unsigned* minor, unsigned* release);
herr_t H5Zregister(const void* filter_class);
herr_t H5Zunregister(int id);
htri_t H5Pisa_class(hid_t plist, hid_t plist_class);
herr_t H5Pinsert2(hid_t plist, const char* name, std::size_t nbytes, void* value, void* set, void* get, void* remove,
                  void* copy, void* compare, void* close);
herr_t H5Pset(hid_t plist, const char* name, const void* value);
herr_t H5Eauto_is_v2(hid_t stack, unsigned* is_v2);
herr_t H5Eget_auto2(hid_t stack, herr_t (**report)(hid_t stack, void* data), void** data);
extern hid_t H5P_CLS_DATASET_CREATE_ID_g;
}

#pragma GCC visibility pop

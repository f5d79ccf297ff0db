#include "hdf5/library.hpp"

#include "tamis/system/shared_library.hpp"

namespace tamis::hdf5 {

Library::Library(const void* caller) : handle_(system::library_around(caller)) {}

Library::~Library() { system::close(handle_); }

void* Library::symbol(const char* name) const { return system::symbol(handle_, name); }

}  // namespace tamis::hdf5

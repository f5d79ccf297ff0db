#include "hdf5/library.hpp"

#include <dlfcn.h>

namespace tamis::hdf5 {

Library::Library(const void* caller) {
    Dl_info info{};
    // RTLD_NOLOAD: the library is there already, we only want its handle. The main program has no handle by name.
    if (dladdr(caller, &info) != 0 && info.dli_fname != nullptr)
        handle_ = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle_ == nullptr) handle_ = dlopen(nullptr, RTLD_LAZY);
}

Library::~Library() {
    if (handle_ != nullptr) dlclose(handle_);
}

void* Library::symbol(const char* name) const { return handle_ == nullptr ? nullptr : dlsym(handle_, name); }

}  // namespace tamis::hdf5

// The shared library that called us. The plugin links neither HDF5 nor netCDF: one process may hold several of each,
// and each must get its own calls back.
#pragma once

namespace tamis::hdf5 {

class Library {
public:
    // The library that holds `caller`, a return address inside it.
    explicit Library(const void* caller);
    ~Library();
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    // A function or variable of the library, or of those that it links; null where there is none.
    void* symbol(const char* name) const;

    // False where there is no such function.
    template <class Function>
    bool bind(Function& function, const char* name) const {
        function = reinterpret_cast<Function>(symbol(name));
        return function != nullptr;
    }

private:
    [[maybe_unused]] void* handle_ = nullptr;  // none in capi/linked_library.cpp
};

}  // namespace tamis::hdf5

// Shared libraries that the process has loaded already, and what they define.
#pragma once

#include <cstddef>

#ifdef _WIN32
#include "tamis/system/windows.hpp"
#else
#include <dlfcn.h>
#endif

namespace tamis::system {

// Keeps a library loaded until it is closed; null where there is none.
using SharedLibrary = void*;

#ifdef _WIN32

namespace detail {

// The function or variable of a module, or of those that are `steps` imports away from it.
inline FARPROC find(HMODULE module, const char* name, unsigned steps) {
    if (steps == 0) return GetProcAddress(module, name);
    const auto* const base = reinterpret_cast<const unsigned char*>(module);
    const auto* const dos = reinterpret_cast<const IMAGE_DOS_HEADER*>(base);
    const auto* const headers = reinterpret_cast<const IMAGE_NT_HEADERS*>(base + dos->e_lfanew);
    const IMAGE_DATA_DIRECTORY& imports = headers->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT];
    if (imports.VirtualAddress == 0) return nullptr;
    // in bounds: the system read this table when it loaded the module; an entry without a name ends it
    const auto* entry = reinterpret_cast<const IMAGE_IMPORT_DESCRIPTOR*>(base + imports.VirtualAddress);
    for (; entry->Name != 0; ++entry) {
        const HMODULE other = GetModuleHandleA(reinterpret_cast<const char*>(base + entry->Name));
        if (other == nullptr) continue;
        if (const FARPROC found = find(other, name, steps - 1); found != nullptr) return found;
    }
    return nullptr;
}

// Imports between a module of h5py and the library that it leads to, and one more.
inline constexpr unsigned most_steps = 2;

}  // namespace detail

// The library that holds an address; the program where there is none.
inline SharedLibrary library_around(const void* address) {
    HMODULE module = nullptr;
    if (GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, static_cast<const char*>(address), &module) == 0)
        GetModuleHandleExA(0, nullptr, &module);
    return module;
}

// The library at a path in UTF-8, if it is loaded.
inline SharedLibrary loaded_library(const char* path) {
    wchar_t wide[MAX_PATH * 4];
    HMODULE module = nullptr;
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, MAX_PATH * 4) != 0)
        GetModuleHandleExW(0, wide, &module);
    return module;
}

inline void close(SharedLibrary library) {
    if (library != nullptr) FreeLibrary(static_cast<HMODULE>(library));
}

// A function or variable of the library, or of those that it links, the nearest first; null where there is none.
inline void* symbol(SharedLibrary library, const char* name) {
    FARPROC found = nullptr;
    for (unsigned steps = 0; library != nullptr && found == nullptr && steps <= detail::most_steps; ++steps)
        found = detail::find(static_cast<HMODULE>(library), name, steps);
    return reinterpret_cast<void*>(found);
}

#else

// The library that holds an address; the program where there is none.
inline SharedLibrary library_around(const void* address) {
    Dl_info info{};
    SharedLibrary library = nullptr;
    // RTLD_NOLOAD: the library is there already, we only want its handle. The main program has no handle by name.
    if (dladdr(address, &info) != 0 && info.dli_fname != nullptr)
        library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return library != nullptr ? library : dlopen(nullptr, RTLD_LAZY);
}

// The library at a path, if it is loaded.
inline SharedLibrary loaded_library(const char* path) { return dlopen(path, RTLD_LAZY | RTLD_NOLOAD); }

inline void close(SharedLibrary library) {
    if (library != nullptr) dlclose(library);
}

// A function or variable of the library, or of those that it links, the nearest first; null where there is none.
inline void* symbol(SharedLibrary library, const char* name) {
    return library == nullptr ? nullptr : dlsym(library, name);
}

#endif

}  // namespace tamis::system

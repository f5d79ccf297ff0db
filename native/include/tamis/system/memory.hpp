// What the C library knows of memory that it gave.
#pragma once

#include <cstddef>

#ifdef __APPLE__
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif

namespace tamis::system {

// The bytes that may be used of memory from malloc.
inline std::size_t usable_nbytes(void* memory) {
#ifdef _WIN32
    return _msize(memory);
#elif defined __APPLE__
    return malloc_size(memory);
#else
    return malloc_usable_size(memory);
#endif
}

}  // namespace tamis::system

// What GCC's C++ runtime has in its headers alone, and Clang's (libc++) calls: with it, the static library that one
// compiler built is linked by the other, too. Everything else that the library calls has the same name in both.
#include <new>

#ifdef _LIBCPP_VERSION
namespace std {

__attribute__((weak)) bad_alloc::bad_alloc() noexcept {}
__attribute__((weak)) bad_array_new_length::bad_array_new_length() noexcept {}

}  // namespace std
#endif

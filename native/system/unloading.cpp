// Ends the static objects of a library when it is unloaded, as HDF5 unloads its plugins. GCC links code of its own for
// that (crtbeginS.o), and zig none: the process then called their destructors at its end, where no code was any more.
#ifdef __ELF__
extern "C" {
extern __attribute__((visibility("hidden"))) void* __dso_handle;  // its address stands for the library
void __cxa_finalize(void* library);
}

namespace {

// A second call, by GCC's own code, finds nothing left.
__attribute__((destructor)) void end_static_objects() { __cxa_finalize(&__dso_handle); }

}  // namespace
#endif

// The header of Windows, without the macros that names of ours would meet. Only the headers beside it include it.
#pragma once

#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#undef near
#undef far
#undef NEAR
#undef FAR
#define NEAR  // what its other headers make of the two
#define FAR
#endif

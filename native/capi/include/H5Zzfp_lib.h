/* The filter in a program that links it, without a plugin. */
#ifndef H5Z_ZFP_LIB_H
#define H5Z_ZFP_LIB_H

#include "H5Zzfp_plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Register this library's filter with the program's HDF5, in place of any other filter of its number, also one of a
 * plugin. Returns 1; -1 if HDF5 refuses it. It may be called again. */
extern int H5Z_zfp_initialize(void);

/* Take the filter back, if H5Z_zfp_initialize registered it; HDF5 then looks for a plugin again. Returns 1; -1 if HDF5
 * refuses, as it does while datasets with the filter are open. */
extern int H5Z_zfp_finalize(void);

#ifdef __cplusplus
}
#endif

#endif

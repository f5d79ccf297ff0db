/* The properties interface: one call for a dataset creation property list, without cd_values.
 *
 * Each returns a negative number if it fails, as calls of HDF5 do: the list is unchanged, the reason is on HDF5's error
 * stack, and HDF5 prints it, unless H5Eset_auto2 says otherwise. The filter is made mandatory, and is the last of the
 * list's pipeline: what follows it may be added afterwards. A later call replaces the request of an earlier one.
 *
 * These calls know neither type nor chunk. What is wrong for them is refused by H5Dcreate.
 */
#ifndef H5Z_ZFP_PROPS_H
#define H5Z_ZFP_PROPS_H

#include <hdf5.h>

#include "H5Zzfp_plugin.h"

#if H5_VERS_MAJOR == 1 && H5_VERS_MINOR < 10
#error "expected HDF5 1.10 or newer, whose identifiers have 64 bits"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Bits per value, 1/512 to 8192. They are rounded to whole bits per block of 4^d values, and a block of float takes at
 * least 9, one of double at least 12: H5Pget_zfp_rate of the created dataset's list says what became of the request. */
extern herr_t H5Pset_zfp_rate(hid_t plist, double rate);
/* Bit planes per block of 4^d values, 1 to 64. */
extern herr_t H5Pset_zfp_precision(hid_t plist, unsigned int prec);
/* Largest absolute error, finite; it is rounded down to a power of two. 0 means all bit planes. */
extern herr_t H5Pset_zfp_accuracy(hid_t plist, double acc);
/* Bits per block at least and at most, bit planes per block, and the exponent of the lowest bit plane: minbits not
 * above maxbits or 32768, maxbits 1 or more, maxprec 1 to 64. */
extern herr_t H5Pset_zfp_expert(hid_t plist, unsigned int minbits, unsigned int maxbits, unsigned int maxprec,
                                int minexp);
/* Every bit is kept. */
extern herr_t H5Pset_zfp_reversible(hid_t plist);

/* What a property list says, whether a call above or H5Pset_filter made it or H5Dget_create_plist read it from a file.
 *
 * H5Pget_zfp_mode returns H5Z_ZFP_MODE_RATE and so on, 0 without the filter, or -1. The others fail if the list has
 * another mode than theirs; only H5Pget_zfp_expert then works, too, because all modes have these four numbers once the
 * dataset is created. A file stores the rate and the accuracy that it keeps: the rate in whole bits per block, the
 * accuracy as the power of two below. A pointer to a number may be NULL if you do not need it. */
extern int H5Pget_zfp_mode(hid_t plist);
extern herr_t H5Pget_zfp_rate(hid_t plist, double* rate);
extern herr_t H5Pget_zfp_precision(hid_t plist, unsigned int* prec);
extern herr_t H5Pget_zfp_accuracy(hid_t plist, double* acc);
extern herr_t H5Pget_zfp_expert(hid_t plist, unsigned int* minbits, unsigned int* maxbits, unsigned int* maxprec,
                                int* minexp);

/* The macros of H5Zzfp_plugin.h for Fortran and other languages: *cd_nelmts holds the capacity before. */
extern void H5Pset_zfp_rate_cdata_f(double rate, size_t* cd_nelmts, unsigned int* cd_values);
extern void H5Pset_zfp_precision_cdata_f(unsigned int prec, size_t* cd_nelmts, unsigned int* cd_values);
extern void H5Pset_zfp_accuracy_cdata_f(double acc, size_t* cd_nelmts, unsigned int* cd_values);
extern void H5Pset_zfp_expert_cdata_f(unsigned int minbits, unsigned int maxbits, unsigned int maxprec, int minexp,
                                      size_t* cd_nelmts, unsigned int* cd_values);
extern void H5Pset_zfp_reversible_cdata_f(size_t* cd_nelmts, unsigned int* cd_values);

#ifdef __cplusplus
}
#endif

#endif

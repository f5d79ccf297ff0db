/* The generic interface: cd_values for H5Pset_filter(dcpl, H5Z_FILTER_ZFP, flags, count, cd_values).
 *
 * It needs no library, only the plugin at run time. A file stores other words than these: the getters of
 * H5Zzfp_props.h read both.
 *
 * cd_values    0    1       2         3         4         5
 * rate         1    0       rate, as 8 bytes in this machine's order
 * precision    2    0       precision
 * accuracy     3    0       accuracy, as 8 bytes in this machine's order
 * expert       4    0       minbits   maxbits   maxprec   minexp
 * reversible   5
 */
#ifndef H5Z_ZFP_PLUGIN_H
#define H5Z_ZFP_PLUGIN_H

#include <stddef.h>
#include <string.h>

#include "H5Zzfp_version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each of these fills cd_values and returns how many it takes; 0, with nothing changed, if `capacity` is too small.
 * The numbers are not checked: they return the same count for those that make no sense. H5Dcreate refuses a rate or an
 * accuracy that is negative or not finite; a precision of 0 or above 64 means all 64 bit planes, as in H5Z-ZFP. */

static inline size_t H5Zzfp_cd_of_double(unsigned mode, double number, size_t capacity, unsigned* cd_values) {
    if (capacity < 4) return 0;
    cd_values[0] = mode;
    cd_values[1] = 0;
    memcpy(cd_values + 2, &number, sizeof number);
    return 4;
}

static inline size_t H5Zzfp_cd_of_rate(double rate, size_t capacity, unsigned* cd_values) {
    return H5Zzfp_cd_of_double(H5Z_ZFP_MODE_RATE, rate, capacity, cd_values);
}

static inline size_t H5Zzfp_cd_of_accuracy(double accuracy, size_t capacity, unsigned* cd_values) {
    return H5Zzfp_cd_of_double(H5Z_ZFP_MODE_ACCURACY, accuracy, capacity, cd_values);
}

static inline size_t H5Zzfp_cd_of_precision(unsigned precision, size_t capacity, unsigned* cd_values) {
    if (capacity < 3) return 0;
    cd_values[0] = H5Z_ZFP_MODE_PRECISION;
    cd_values[1] = 0;
    cd_values[2] = precision;
    return 3;
}

static inline size_t H5Zzfp_cd_of_expert(unsigned minbits, unsigned maxbits, unsigned maxprec, int minexp,
                                         size_t capacity, unsigned* cd_values) {
    if (capacity < 6) return 0;
    cd_values[0] = H5Z_ZFP_MODE_EXPERT;
    cd_values[1] = 0;
    cd_values[2] = minbits;
    cd_values[3] = maxbits;
    cd_values[4] = maxprec;
    cd_values[5] = (unsigned)minexp;
    return 6;
}

static inline size_t H5Zzfp_cd_of_reversible(size_t capacity, unsigned* cd_values) {
    if (capacity < 1) return 0;
    cd_values[0] = H5Z_ZFP_MODE_REVERSIBLE;
    return 1;
}

/* What cd_values as above request: 0 where they request another mode. */

static inline double H5Zzfp_double_of_cd(unsigned mode, size_t count, const unsigned* cd_values) {
    double number = 0;
    if (count >= 4 && cd_values[0] == mode) memcpy(&number, cd_values + 2, sizeof number);
    return number;
}

static inline int H5Zzfp_cd_has_mode(unsigned mode, size_t needed, size_t count, const unsigned* cd_values) {
    return count >= needed && cd_values[0] == mode;
}

#ifdef __cplusplus
}
#endif

/* The same as macros, as H5Z-ZFP has them: N is a variable that holds the capacity of CD before, and the count after.
 */

#define H5Z_ZFP_SET_COUNT_(N, COUNT)                  \
    do {                                              \
        const size_t h5z_zfp_count_ = (COUNT);        \
        if (h5z_zfp_count_ > 0) (N) = h5z_zfp_count_; \
    } while (0)

#define H5Pset_zfp_rate_cdata(R, N, CD) H5Z_ZFP_SET_COUNT_(N, H5Zzfp_cd_of_rate((R), (size_t)(N), (CD)))
#define H5Pset_zfp_precision_cdata(P, N, CD) H5Z_ZFP_SET_COUNT_(N, H5Zzfp_cd_of_precision((P), (size_t)(N), (CD)))
#define H5Pset_zfp_accuracy_cdata(A, N, CD) H5Z_ZFP_SET_COUNT_(N, H5Zzfp_cd_of_accuracy((A), (size_t)(N), (CD)))
#define H5Pset_zfp_expert_cdata(MIB, MAB, MAP, MIE, N, CD) \
    H5Z_ZFP_SET_COUNT_(N, H5Zzfp_cd_of_expert((MIB), (MAB), (MAP), (MIE), (size_t)(N), (CD)))
#define H5Pset_zfp_reversible_cdata(N, CD) H5Z_ZFP_SET_COUNT_(N, H5Zzfp_cd_of_reversible((size_t)(N), (CD)))

#define H5Pget_zfp_rate_cdata(N, CD) H5Zzfp_double_of_cd(H5Z_ZFP_MODE_RATE, (size_t)(N), (CD))
#define H5Pget_zfp_accuracy_cdata(N, CD) H5Zzfp_double_of_cd(H5Z_ZFP_MODE_ACCURACY, (size_t)(N), (CD))
#define H5Pget_zfp_precision_cdata(N, CD) \
    ((double)(H5Zzfp_cd_has_mode(H5Z_ZFP_MODE_PRECISION, 3, (size_t)(N), (CD)) ? (CD)[2] : 0))
#define H5Pget_zfp_expert_cdata(N, CD, MIB, MAB, MAP, MIE)                   \
    do {                                                                     \
        if (H5Zzfp_cd_has_mode(H5Z_ZFP_MODE_EXPERT, 6, (size_t)(N), (CD))) { \
            (MIB) = (CD)[2], (MAB) = (CD)[3], (MAP) = (CD)[4];               \
            (MIE) = (int)(CD)[5];                                            \
        }                                                                    \
    } while (0)
#define H5Pget_zfp_reversible_cdata(N, CD) H5Zzfp_cd_has_mode(H5Z_ZFP_MODE_REVERSIBLE, 1, (size_t)(N), (CD))

#endif

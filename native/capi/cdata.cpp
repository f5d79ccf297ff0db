// The macros of the generic interface as functions.

#include "H5Zzfp_props.h"

extern "C" {

[[gnu::visibility("default")]] void H5Pset_zfp_rate_cdata_f(double rate, size_t* cd_nelmts, unsigned* cd_values) {
    H5Pset_zfp_rate_cdata(rate, *cd_nelmts, cd_values);
}

[[gnu::visibility("default")]] void H5Pset_zfp_precision_cdata_f(unsigned prec, size_t* cd_nelmts,
                                                                 unsigned* cd_values) {
    H5Pset_zfp_precision_cdata(prec, *cd_nelmts, cd_values);
}

[[gnu::visibility("default")]] void H5Pset_zfp_accuracy_cdata_f(double acc, size_t* cd_nelmts, unsigned* cd_values) {
    H5Pset_zfp_accuracy_cdata(acc, *cd_nelmts, cd_values);
}

[[gnu::visibility("default")]] void H5Pset_zfp_expert_cdata_f(unsigned minbits, unsigned maxbits, unsigned maxprec,
                                                              int minexp, size_t* cd_nelmts, unsigned* cd_values) {
    H5Pset_zfp_expert_cdata(minbits, maxbits, maxprec, minexp, *cd_nelmts, cd_values);
}

[[gnu::visibility("default")]] void H5Pset_zfp_reversible_cdata_f(size_t* cd_nelmts, unsigned* cd_values) {
    H5Pset_zfp_reversible_cdata(*cd_nelmts, cd_values);
}
}

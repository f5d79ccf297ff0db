/* Every call with arguments that it refuses, and what HDF5's error stack says; then what a list says that is not zfp's.
 */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>

#include "H5Zzfp.h"

static herr_t print(unsigned n, const H5E_error2_t* error, void* data) {
    (void)n, (void)data;
    printf("    %s\n", error->desc);
    return 0;
}

static herr_t count_report(hid_t stack, void* count) {
    ++*(int*)count;
    return (int)H5Eget_num(stack) > 0 ? 0 : -1;
}

#define TRY(call)                                                            \
    do {                                                                     \
        const int result = (int)(call);                                      \
        printf("%s: %d\n", #call, result);                                   \
        if (result < 0) H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, print, NULL); \
        H5Eclear2(H5E_DEFAULT);                                              \
    } while (0)

int main(void) {
    const hsize_t shape[] = {8, 8, 8, 8, 8}, chunk[] = {4, 4, 4, 4, 4}, one[] = {1};
    double number = 0;
    unsigned a = 0, b = 0, c = 0, cd_values[6] = {7, 7, 7, 7, 7, 7};
    int exponent = 0;
    size_t count;
    if (H5Z_zfp_finalize() != 1 || H5Z_zfp_initialize() != 1 || H5Z_zfp_initialize() != 1) return 1;
    const hid_t access = H5Pcreate(H5P_DATASET_ACCESS), dcpl = H5Pcreate(H5P_DATASET_CREATE), none = -1;

    /* As after a call of HDF5 itself: printed, given to a function of the program, or only left on the stack. */
    int reports = 0;
    if (H5Pset_zfp_precision(dcpl, 0) >= 0) return 2;
    H5Eset_auto2(H5E_DEFAULT, count_report, &reports);
    if (H5Pset_zfp_rate(dcpl, 0.001) >= 0 || H5Pget_zfp_rate(dcpl, &number) >= 0) return 3;
    printf("reported %d times\n", reports);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const hid_t file = H5Fcreate("refusals.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    TRY(H5Pget_zfp_mode(dcpl));
    TRY(H5Pget_zfp_mode(access));
    TRY(H5Pget_zfp_mode(none));
    TRY(H5Pset_zfp_rate(access, 8));
    TRY(H5Pset_zfp_reversible(none));
    TRY(H5Pset_zfp_rate(dcpl, 0));
    TRY(H5Pset_zfp_rate(dcpl, -1));
    TRY(H5Pset_zfp_rate(dcpl, NAN));
    TRY(H5Pset_zfp_rate(dcpl, 0.001));
    TRY(H5Pset_zfp_rate(dcpl, 8193));
    TRY(H5Pset_zfp_precision(dcpl, 0));
    TRY(H5Pset_zfp_precision(dcpl, 200));
    TRY(H5Pset_zfp_precision(access, 20));
    TRY(H5Pset_zfp_accuracy(dcpl, NAN));
    TRY(H5Pset_zfp_accuracy(dcpl, -1));
    TRY(H5Pset_zfp_accuracy(dcpl, INFINITY));
    TRY(H5Pset_zfp_expert(dcpl, 2, 1, 64, 0));
    TRY(H5Pset_zfp_expert(dcpl, 1, 100, 65, 0));
    TRY(H5Pset_zfp_expert(dcpl, 1, 100, 0, 0));
    TRY(H5Pset_zfp_expert(dcpl, 0, 0, 64, 0));
    TRY(H5Pget_nfilters(dcpl));

    TRY(H5Pset_zfp_rate(dcpl, 8));
    TRY(H5Pget_zfp_accuracy(dcpl, &number));
    TRY(H5Pget_zfp_precision(dcpl, &a));
    TRY(H5Pget_zfp_expert(dcpl, &a, &b, &c, &exponent));
    TRY(H5Pset_zfp_accuracy(dcpl, 0.1)); /* the last call counts */
    TRY(H5Pget_nfilters(dcpl));
    TRY(H5Pget_zfp_rate(dcpl, &number));
    TRY(H5Pget_zfp_expert(dcpl, &a, &b, &c, &exponent));
    printf("%u %u %u %d\n", a, b, c, exponent);
    TRY(H5Pget_zfp_accuracy(dcpl, NULL));
    TRY(H5Pget_zfp_expert(dcpl, NULL, NULL, NULL, NULL));

    /* What the setters do take, at the ends of their ranges. */
    TRY(H5Pset_zfp_rate(dcpl, 1. / 512));
    TRY(H5Pset_zfp_rate(dcpl, 8192));
    TRY(H5Pset_zfp_precision(dcpl, 1));
    TRY(H5Pset_zfp_precision(dcpl, 64));
    TRY(H5Pset_zfp_accuracy(dcpl, 0));
    TRY(H5Pset_zfp_accuracy(dcpl, 0.1));

    const hid_t line = H5Screate_simple(1, shape, NULL), space = H5Screate_simple(5, shape, NULL);
    TRY(H5Dcreate2(file, "contiguous", H5T_NATIVE_FLOAT, line, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    H5Pset_chunk(dcpl, 1, shape);
    const hid_t text = H5Tcreate(H5T_STRING, 8), wide = H5Tcopy(H5T_NATIVE_DOUBLE);
    H5Tset_size(wide, 9);
    TRY(H5Dcreate2(file, "text", text, line, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    TRY(H5Dcreate2(file, "wide", wide, line, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    TRY(H5Dcreate2(file, "short", H5T_NATIVE_SHORT, line, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    TRY(H5Dcreate2(file, "integers", H5T_NATIVE_INT, line, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    H5Pset_chunk(dcpl, 1, one);
    TRY(H5Dcreate2(file, "one", H5T_NATIVE_FLOAT, line, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    H5Pset_chunk(dcpl, 5, chunk);
    TRY(H5Dcreate2(file, "five", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));

    count = 3;
    H5Pset_zfp_rate_cdata(8, count, cd_values); /* too few: nothing is changed */
    printf("%zu %u\n", count, cd_values[0]);
    cd_values[0] = H5Z_ZFP_MODE_RATE;
    H5Pset_filter(dcpl, H5Z_FILTER_ZFP, 0, count, cd_values);
    printf("%g %g\n", H5Pget_zfp_rate_cdata(count, cd_values), H5Pget_zfp_accuracy_cdata(count, cd_values));
    TRY(H5Pset_zfp_reversible(dcpl));
    TRY(H5Pget_zfp_mode(dcpl));
    TRY(H5Pget_nfilters(dcpl));

    /* A filter in use cannot be taken back. */
    H5Pset_chunk(dcpl, 1, shape);
    const hid_t used = H5Dcreate2(file, "used", H5T_NATIVE_FLOAT, line, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    TRY(H5Z_zfp_finalize());
    H5Dclose(used);
    TRY(H5Zfilter_avail(H5Z_FILTER_ZFP));
    H5Tclose(text), H5Tclose(wide), H5Sclose(line), H5Sclose(space), H5Pclose(dcpl), H5Pclose(access), H5Fclose(file);
    TRY(H5Z_zfp_initialize());
    TRY(H5Z_zfp_finalize());
    TRY(H5Zfilter_avail(H5Z_FILTER_ZFP));
    return 0;
}

/* Every mode of ZFP through both interfaces: written, read back, and inspected.
 *
 *     h5cc modes.c $(tamis config --cflags --libs) -lm -o modes && ./modes modes.h5
 */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "H5Zzfp.h"

enum { ROWS = 60, COLUMNS = 100 };

static double values[ROWS][COLUMNS], back[ROWS][COLUMNS];

static void check(int ok, const char* what) {
    if (ok) return;
    fprintf(stderr, "failed: %s\n", what);
    H5Eprint2(H5E_DEFAULT, stderr);
    exit(1);
}

/* The properties interface: one call. */
static herr_t set_properties(int mode, hid_t dcpl) {
    switch (mode) {
        case H5Z_ZFP_MODE_RATE:
            return H5Pset_zfp_rate(dcpl, 8.5);
        case H5Z_ZFP_MODE_PRECISION:
            return H5Pset_zfp_precision(dcpl, 20);
        case H5Z_ZFP_MODE_ACCURACY:
            return H5Pset_zfp_accuracy(dcpl, 0.001);
        case H5Z_ZFP_MODE_EXPERT:
            return H5Pset_zfp_expert(dcpl, 64, 512, 30, -12);
        default:
            return H5Pset_zfp_reversible(dcpl);
    }
}

/* The generic interface: cd_values for H5Pset_filter, for programs that link no filter but load a plugin. */
static herr_t set_cd_values(int mode, hid_t dcpl) {
    unsigned cd_values[H5Z_ZFP_CD_NELMTS_MEM];
    size_t count = H5Z_ZFP_CD_NELMTS_MEM;
    switch (mode) {
        case H5Z_ZFP_MODE_RATE:
            H5Pset_zfp_rate_cdata(8.5, count, cd_values);
            break;
        case H5Z_ZFP_MODE_PRECISION:
            H5Pset_zfp_precision_cdata(20, count, cd_values);
            break;
        case H5Z_ZFP_MODE_ACCURACY:
            H5Pset_zfp_accuracy_cdata(0.001, count, cd_values);
            break;
        case H5Z_ZFP_MODE_EXPERT:
            H5Pset_zfp_expert_cdata(64, 512, 30, -12, count, cd_values);
            break;
        default:
            H5Pset_zfp_reversible_cdata(count, cd_values);
    }
    return H5Pset_filter(dcpl, H5Z_FILTER_ZFP, H5Z_FLAG_MANDATORY, count, cd_values);
}

/* The content of a property list, new or read from a file. */
static void print_parameters(hid_t dcpl) {
    double number;
    unsigned minbits, maxbits, maxprec, precision;
    int minexp;
    switch (H5Pget_zfp_mode(dcpl)) {
        case H5Z_ZFP_MODE_RATE:
            check(H5Pget_zfp_rate(dcpl, &number) >= 0, "H5Pget_zfp_rate");
            printf("rate %g", number);
            break;
        case H5Z_ZFP_MODE_PRECISION:
            check(H5Pget_zfp_precision(dcpl, &precision) >= 0, "H5Pget_zfp_precision");
            printf("precision %u", precision);
            break;
        case H5Z_ZFP_MODE_ACCURACY:
            check(H5Pget_zfp_accuracy(dcpl, &number) >= 0, "H5Pget_zfp_accuracy");
            printf("accuracy %g", number);
            break;
        case H5Z_ZFP_MODE_EXPERT:
            check(H5Pget_zfp_expert(dcpl, &minbits, &maxbits, &maxprec, &minexp) >= 0, "H5Pget_zfp_expert");
            printf("expert %u %u %u %d", minbits, maxbits, maxprec, minexp);
            break;
        case H5Z_ZFP_MODE_REVERSIBLE:
            printf("reversible");
            break;
        default:
            printf("not zfp");
    }
}

static double largest_error(void) {
    double largest = 0;
    for (int i = 0; i < ROWS; ++i)
        for (int j = 0; j < COLUMNS; ++j) largest = fmax(largest, fabs(values[i][j] - back[i][j]));
    return largest;
}

static void write_and_read(hid_t file, const char* name, hid_t dcpl) {
    const hsize_t shape[] = {ROWS, COLUMNS};
    const hid_t space = H5Screate_simple(2, shape, NULL);
    hid_t dataset = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    check(dataset >= 0, "H5Dcreate2");
    check(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, "H5Dwrite");
    check(H5Dclose(dataset) >= 0, "H5Dclose");

    dataset = H5Dopen2(file, name, H5P_DEFAULT);
    check(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0, "H5Dread");
    const hid_t stored = H5Dget_create_plist(dataset);
    printf("%-24s asked ", name);
    print_parameters(dcpl);
    printf(", stored ");
    print_parameters(stored);
    printf(": %llu bytes, error %.2g\n", (unsigned long long)H5Dget_storage_size(dataset), largest_error());
    H5Pclose(stored);
    H5Dclose(dataset);
    H5Sclose(space);
}

int main(int count, char** arguments) {
    const char* modes[] = {"", "rate", "precision", "accuracy", "expert", "reversible"};
    const hsize_t chunk[] = {20, 50};
    for (int i = 0; i < ROWS; ++i)
        for (int j = 0; j < COLUMNS; ++j) values[i][j] = 20 + 15 * sin(i / 9.0) * cos(j / 13.0);

    check(H5Z_zfp_initialize() > 0, "H5Z_zfp_initialize");
    const hid_t file = H5Fcreate(count > 1 ? arguments[1] : "modes.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    check(file >= 0, "H5Fcreate");
    for (int mode = H5Z_ZFP_MODE_RATE; mode <= H5Z_ZFP_MODE_REVERSIBLE; ++mode)
        for (int generic = 0; generic < 2; ++generic) {
            char name[40];
            const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
            H5Pset_chunk(dcpl, 2, chunk);
            check((generic ? set_cd_values : set_properties)(mode, dcpl) >= 0, "to set the filter");
            snprintf(name, sizeof name, "%s_%s", modes[mode], generic ? "generic" : "properties");
            write_and_read(file, name, dcpl);
            H5Pclose(dcpl);
        }
    check(H5Fclose(file) >= 0, "H5Fclose");
    check(H5Z_zfp_finalize() > 0, "H5Z_zfp_finalize");
    return 0;
}

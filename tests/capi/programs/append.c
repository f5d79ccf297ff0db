/* Appends steps to /T, one by one: append FILE FILL STEPS. Its chunks have four steps. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

#include "H5Zzfp.h"

enum { n = 1024 };

int main(int count, char** arguments) {
    if (count != 4 || H5Z_zfp_initialize() < 0) return 1;
    const float fill = (float)atof(arguments[2]);
    const hid_t file = H5Fcreate(arguments[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t none[] = {0, n}, most[] = {H5S_UNLIMITED, n}, chunk[] = {4, n}, one[] = {1, n};
    const hid_t space = H5Screate_simple(2, none, most), row = H5Screate_simple(2, one, NULL);
    if (H5Pset_chunk(dcpl, 2, chunk) < 0 || H5Pset_zfp_accuracy(dcpl, 0.01) < 0) return 2;
    if (H5Pset_fill_value(dcpl, H5T_NATIVE_FLOAT, &fill) < 0) return 3;
    const hid_t dataset = H5Dcreate2(file, "T", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    for (int step = 0; step < atoi(arguments[3]); ++step) {
        float values[n];
        for (int i = 0; i < n; ++i) values[i] = (float)(280 + step) + (float)(i % 64) / 8;
        const hsize_t extent[] = {(hsize_t)step + 1, n}, start[] = {(hsize_t)step, 0};
        if (H5Dset_extent(dataset, extent) < 0) return 4;
        const hid_t all = H5Dget_space(dataset);
        H5Sselect_hyperslab(all, H5S_SELECT_SET, start, NULL, one, NULL);
        if (H5Dwrite(dataset, H5T_NATIVE_FLOAT, row, all, H5P_DEFAULT, values) < 0) return 5;
        H5Sclose(all);
    }
    H5Sclose(space), H5Sclose(row), H5Pclose(dcpl);
    if (H5Dclose(dataset) < 0 || H5Fclose(file) < 0) return 6;
    return H5Z_zfp_finalize() == 1 ? 0 : 7;
}

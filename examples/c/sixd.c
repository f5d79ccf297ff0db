/* A tensor of 3x3 on a grid, growing in time: ZFP takes four axes longer than 1, so a chunk has one component, all of
 * the grid, and four steps. Steps are collected in memory until they fill a chunk: a chunk that is written repeatedly
 * would be encoded each time, and its errors would add up.
 *
 *     h5cc sixd.c $(tamis config --cflags --libs) -lm -o sixd && ./sixd sixd.h5
 */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "H5Zzfp.h"

enum { N = 11, C = 3, DEPTH = 4, STEPS = 9 };

static double gathered[N][N][N][C][C][DEPTH];

static void check(int ok, const char* what) {
    if (ok) return;
    fprintf(stderr, "failed: %s\n", what);
    H5Eprint2(H5E_DEFAULT, stderr);
    exit(1);
}

static double value(int x, int y, int z, int i, int j, int t) {
    return (1 + i + 3 * j) * sin(x / 5.0 + t / 7.0) * cos(y / 6.0) * cos(z / 8.0);
}

static void gather(int t) {
    for (int x = 0; x < N; ++x)
        for (int y = 0; y < N; ++y)
            for (int z = 0; z < N; ++z)
                for (int i = 0; i < C; ++i)
                    for (int j = 0; j < C; ++j) gathered[x][y][z][i][j][t % DEPTH] = value(x, y, z, i, j, t);
}

/* Append the first `count` of the collected steps; the last one is `last`. */
static void append(hid_t dataset, int last, int count) {
    const hsize_t extent[] = {N, N, N, C, C, (hsize_t)last + 1};
    const hsize_t memory_shape[] = {N, N, N, C, C, DEPTH}, zero[] = {0, 0, 0, 0, 0, 0};
    const hsize_t start[] = {0, 0, 0, 0, 0, (hsize_t)(last + 1 - count)}, part[] = {N, N, N, C, C, (hsize_t)count};
    check(H5Dset_extent(dataset, extent) >= 0, "H5Dset_extent");
    const hid_t memory = H5Screate_simple(6, memory_shape, NULL), space = H5Dget_space(dataset);
    H5Sselect_hyperslab(memory, H5S_SELECT_SET, zero, NULL, part, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, part, NULL);
    check(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, gathered) >= 0, "H5Dwrite");
    H5Sclose(memory);
    H5Sclose(space);
}

int main(int count, char** arguments) {
    const hsize_t shape[] = {N, N, N, C, C, 0}, limits[] = {N, N, N, C, C, H5S_UNLIMITED};
    const hsize_t chunk[] = {N, N, N, 1, 1, DEPTH};
    check(H5Z_zfp_initialize() > 0, "H5Z_zfp_initialize");
    const hid_t file = H5Fcreate(count > 1 ? arguments[1] : "sixd.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(6, shape, limits), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, 6, chunk);
    check(H5Pset_zfp_rate(dcpl, 12) >= 0, "H5Pset_zfp_rate");
    const hid_t dataset = H5Dcreate2(file, "tensor", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    check(dataset >= 0, "H5Dcreate2");
    for (int t = 0; t < STEPS; ++t) {
        gather(t);
        if (t % DEPTH == DEPTH - 1 || t == STEPS - 1) append(dataset, t, t % DEPTH + 1);
    }
    printf("%llu bytes of %zu\n", (unsigned long long)H5Dget_storage_size(dataset), sizeof gathered / DEPTH * STEPS);
    check(H5Dclose(dataset) >= 0, "H5Dclose");
    H5Pclose(dcpl);
    H5Sclose(space);
    check(H5Fclose(file) >= 0, "H5Fclose");
    H5Z_zfp_finalize();
    return 0;
}

/* Chunks that the program itself encodes and writes directly (H5Dwrite_chunk), then read through the filter; and the
 * reverse: chunks read directly and decoded here. So the codec runs outside HDF5's lock, in any number of threads.
 *
 *     h5cc chunks.c $(tamis config --cflags --libs) $(tamis config --libs --codec) -lm -o chunks && ./chunks chunks.h5
 */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "H5Zzfp.h"
#include "tamis.h"

enum { STEPS = 3, ROWS = 70, COLUMNS = 90 };

static float values[STEPS][ROWS][COLUMNS], back[STEPS][ROWS][COLUMNS];

static void check(int ok, const char* what) {
    if (ok) return;
    fprintf(stderr, "failed: %s: %s\n", what, tamis_last_error());
    H5Eprint2(H5E_DEFAULT, stderr);
    exit(1);
}

/* Shape and parameters of the chunks, as the dataset stores them: without axes of length 1. */
static void read_parameters(hid_t dataset, tamis_array* chunk, tamis_zfp_params* params) {
    unsigned flags, config, cd_values[H5Z_ZFP_CD_NELMTS_MAX];
    size_t count = H5Z_ZFP_CD_NELMTS_MAX;
    const hid_t dcpl = H5Dget_create_plist(dataset);
    check(H5Pget_filter_by_id2(dcpl, H5Z_FILTER_ZFP, &flags, &count, cd_values, 0, NULL, &config) >= 0, "the filter");
    check(tamis_zfp_read_cd_values(cd_values, count, chunk, params) == TAMIS_OK, "tamis_zfp_read_cd_values");
    H5Pclose(dcpl);
}

int main(int count, char** arguments) {
    const hsize_t shape[] = {STEPS, ROWS, COLUMNS}, chunk_shape[] = {1, ROWS, COLUMNS};
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < ROWS; ++i)
            for (int j = 0; j < COLUMNS; ++j) values[t][i][j] = (float)(300 + 20 * sin(i / 11.0 + t) * cos(j / 17.0));

    check(H5Z_zfp_initialize() > 0, "H5Z_zfp_initialize");
    const hid_t file = H5Fcreate(count > 1 ? arguments[1] : "chunks.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(3, shape, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, 3, chunk_shape);
    check(H5Pset_zfp_accuracy(dcpl, 0.01) >= 0, "H5Pset_zfp_accuracy");
    const hid_t direct = H5Dcreate2(file, "direct", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    const hid_t filtered = H5Dcreate2(file, "filtered", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    check(direct >= 0 && filtered >= 0, "H5Dcreate2");
    check(H5Dwrite(filtered, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, "H5Dwrite");

    tamis_array chunk;
    tamis_zfp_params params;
    read_parameters(direct, &chunk, &params);
    const size_t capacity = tamis_zfp_max_nbytes(&chunk, &params);
    void* stream = malloc(capacity);
    for (hsize_t t = 0; t < STEPS; ++t) {
        const hsize_t origin[] = {t, 0, 0};
        size_t nbytes;
        check(tamis_zfp_encode(&chunk, &params, 0, values[t], stream, capacity, &nbytes, 2) == TAMIS_OK, "encode");
        check(H5Dwrite_chunk(direct, H5P_DEFAULT, 0, origin, nbytes, stream) >= 0, "H5Dwrite_chunk");
    }
    check(H5Dread(direct, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0, "H5Dread");

    double largest = 0;
    for (hsize_t t = 0; t < STEPS; ++t) {
        const hsize_t origin[] = {t, 0, 0};
        static float decoded[ROWS][COLUMNS];
        hsize_t nbytes;
        uint32_t mask;
        check(H5Dget_chunk_storage_size(filtered, origin, &nbytes) >= 0 && nbytes <= capacity, "the chunk's size");
        check(H5Dread_chunk(filtered, H5P_DEFAULT, origin, &mask, stream) >= 0 && mask == 0, "H5Dread_chunk");
        check(tamis_zfp_decode(&chunk, &params, stream, nbytes, 0, decoded, 2) == TAMIS_OK, "decode");
        for (int i = 0; i < ROWS; ++i)
            for (int j = 0; j < COLUMNS; ++j) {
                check(decoded[i][j] == back[t][i][j], "both ways give the same values");
                largest = fmax(largest, fabs((double)decoded[i][j] - values[t][i][j]));
            }
    }
    printf("rank %u, %zux%zu, error %.2g of 0.01\n", chunk.rank, chunk.shape[0], chunk.shape[1], largest);
    check(largest <= 0.01, "the accuracy");
    free(stream);
    check(H5Dclose(direct) >= 0 && H5Dclose(filtered) >= 0, "H5Dclose");
    H5Pclose(dcpl);
    H5Sclose(space);
    check(H5Fclose(file) >= 0, "H5Fclose");
    H5Z_zfp_finalize();
    return 0;
}

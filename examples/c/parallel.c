/* Each process of an MPI program writes its part of one dataset, in one collective call: HDF5 1.10.2 and newer then
 * filter chunks in parallel. Whole chunks per process are fastest; shared ones are sent to one of their owners.
 *
 *     h5pcc parallel.c $(tamis config --cflags --libs) -lm -o parallel && mpirun -n 4 ./parallel parallel.h5
 */
#include <hdf5.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "H5Zzfp.h"

enum { ROWS = 32, COLUMNS = 64 }; /* of one process */

static double values[ROWS][COLUMNS], back[ROWS][COLUMNS];

static void check(int ok, const char* what) {
    if (ok) return;
    fprintf(stderr, "failed: %s\n", what);
    H5Eprint2(H5E_DEFAULT, stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int count, char** arguments) {
    int rank, size;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < ROWS; ++i)
        for (int j = 0; j < COLUMNS; ++j) values[i][j] = sin((rank * ROWS + i) / 9.0) * cos(j / 13.0);

    check(H5Z_zfp_initialize() > 0, "H5Z_zfp_initialize");
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE); /* HDF5 allows no other for filtered writes */
    const hid_t file = H5Fcreate(count > 1 ? arguments[1] : "parallel.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    check(file >= 0, "H5Fcreate");

    const hsize_t shape[] = {(hsize_t)size * ROWS, COLUMNS}, chunk[] = {ROWS / 2, COLUMNS / 2};
    const hsize_t start[] = {(hsize_t)rank * ROWS, 0}, part[] = {ROWS, COLUMNS};
    const hid_t space = H5Screate_simple(2, shape, NULL), memory = H5Screate_simple(2, part, NULL);
    const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, 2, chunk);
    check(H5Pset_zfp_accuracy(dcpl, 1e-4) >= 0, "H5Pset_zfp_accuracy");
    const hid_t dataset = H5Dcreate2(file, "field", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    check(dataset >= 0, "H5Dcreate2");
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, part, NULL);
    check(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, transfer, values) >= 0, "H5Dwrite");
    check(H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, space, transfer, back) >= 0, "H5Dread");

    double largest = 0, all = 0;
    for (int i = 0; i < ROWS; ++i)
        for (int j = 0; j < COLUMNS; ++j) largest = fmax(largest, fabs(values[i][j] - back[i][j]));
    MPI_Reduce(&largest, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    const unsigned long long nbytes = H5Dget_storage_size(dataset);
    if (rank == 0) printf("%d processes, %llu bytes, error %.2g of 1e-4\n", size, nbytes, all);
    check(largest <= 1e-4, "the accuracy");

    check(H5Dclose(dataset) >= 0, "H5Dclose");
    H5Pclose(dcpl);
    H5Sclose(space);
    H5Sclose(memory);
    H5Pclose(transfer);
    H5Pclose(access);
    check(H5Fclose(file) >= 0, "H5Fclose");
    H5Z_zfp_finalize();
    MPI_Finalize();
    return 0;
}

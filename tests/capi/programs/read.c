/* The mode, the accuracy and the values of /x. */
#include <hdf5.h>
#include <stdio.h>

#include "H5Zzfp.h"

int main(int count, char** arguments) {
    static double values[1000];
    double accuracy;
    if (count != 2 || H5Z_zfp_initialize() < 0) return 1;
    const hid_t file = H5Fopen(arguments[1], H5F_ACC_RDONLY, H5P_DEFAULT), dataset = H5Dopen2(file, "x", H5P_DEFAULT);
    const hid_t dcpl = H5Dget_create_plist(dataset);
    if (H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) return 2;
    if (H5Pget_zfp_accuracy(dcpl, &accuracy) < 0) return 3;
    printf("%d %.17g\n", H5Pget_zfp_mode(dcpl), accuracy);
    for (int i = 0; i < 1000; ++i) printf("%.9g\n", values[i]);
    H5Pclose(dcpl), H5Dclose(dataset), H5Fclose(file);
    return H5Z_zfp_finalize() == 1 ? 0 : 4;
}

/* An array in memory, encoded and decoded by the codec, without HDF5.
 *
 *     cc codec.c $(tamis config --cflags --libs --codec) -lm -o codec && ./codec
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tamis.h"

enum { ROWS = 200, COLUMNS = 300, THREADS = 4 };

static double values[ROWS][COLUMNS], back[ROWS][COLUMNS];

static void check(int code, const char* what) {
    if (code == TAMIS_OK) return;
    fprintf(stderr, "failed: %s: %s\n", what, tamis_last_error());
    exit(1);
}

int main(void) {
    const tamis_array array = {TAMIS_DOUBLE, 2, {ROWS, COLUMNS}};
    tamis_zfp_params params;
    size_t nbytes;
    double error = 0;
    for (int i = 0; i < ROWS; ++i)
        for (int j = 0; j < COLUMNS; ++j) values[i][j] = 20 + 15 * sin(i / 9.0) * cos(j / 13.0);

    check(tamis_zfp_set_accuracy(&params, 0.001), "the accuracy");
    const size_t capacity = tamis_zfp_max_nbytes(&array, &params);
    void* stream = malloc(capacity);
    if (stream == NULL) return 1;
    check(tamis_zfp_encode(&array, &params, 0, values, stream, capacity, &nbytes, THREADS), "to encode");
    check(tamis_zfp_decode(&array, &params, stream, nbytes, 0, back, THREADS), "to decode");
    free(stream);

    for (int i = 0; i < ROWS; ++i)
        for (int j = 0; j < COLUMNS; ++j) error = fmax(error, fabs(back[i][j] - values[i][j]));
    printf("%zu bytes of %zu, error %.2g\n", nbytes, sizeof values, error);
    return error > 0.001;
}

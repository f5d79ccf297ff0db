/* The codec: every mode and type, headers, threads, and all that it refuses. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tamis.h"

#define REQUIRE(condition)                                                                  \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, tamis_last_error()); \
            return 1;                                                                       \
        }                                                                                   \
    } while (0)

#define REFUSE(code, call)                                                       \
    do {                                                                         \
        REQUIRE((call) == (code));                                               \
        printf("%d %s: %s\n", code, tamis_error_text(code), tamis_last_error()); \
    } while (0)

enum { ROWS = 700, COLUMNS = 900 };

static double values[ROWS][COLUMNS], back[ROWS][COLUMNS];

static int run(void) {
    const tamis_array array = {TAMIS_DOUBLE, 2, {ROWS, COLUMNS}};
    tamis_array other, bad = array;
    tamis_zfp_params params, read;
    size_t nbytes = 0, again = 0, bit = 0;
    const unsigned stored[] = {0x10105111, 0x0570667a, 0x0130004a, 0xca900090};
    const unsigned swapped[] = {0x00500020, 0x7a667005, 0xf30f0000, 0x0000f083};

    for (int i = 0; i < ROWS; ++i)
        for (int j = 0; j < COLUMNS; ++j) values[i][j] = sin(i / 50.0) + cos(j / 70.0);
    REQUIRE(tamis_zfp_set_accuracy(&params, 1e-3) == TAMIS_OK && params.minexp == -10);
    const size_t capacity = tamis_zfp_max_nbytes(&array, &params);
    REQUIRE(capacity > sizeof values);
    unsigned char *stream = malloc(capacity), *second = malloc(capacity);
    REQUIRE(stream != NULL && second != NULL);
    REQUIRE(tamis_zfp_encode(&array, &params, 1, values, stream, capacity, &nbytes, 1) == TAMIS_OK);
    REQUIRE(tamis_zfp_encode(&array, &params, 1, values, second, capacity, &again, 4) == TAMIS_OK);
    REQUIRE(nbytes == again && memcmp(stream, second, nbytes) == 0 && memcmp(stream, "zfp\5", 4) == 0);
    REQUIRE(tamis_zfp_encode(&array, &params, 1, values, second, nbytes, &again, 0) == TAMIS_OK);
    REQUIRE(tamis_zfp_read_header(stream, nbytes, &other, &read, &bit) == TAMIS_OK);
    REQUIRE(other.type == array.type && other.rank == 2 && other.shape[0] == ROWS && other.shape[1] == COLUMNS);
    REQUIRE(bit == 96 && memcmp(&read, &params, sizeof params) == 0);
    for (unsigned threads = 0; threads < 4; threads += 3) {
        memset(back, 0, sizeof back);
        REQUIRE(tamis_zfp_decode(&other, &read, stream, nbytes, bit, back, threads) == TAMIS_OK);
        for (int i = 0; i < ROWS; ++i)
            for (int j = 0; j < COLUMNS; ++j) REQUIRE(fabs(values[i][j] - back[i][j]) <= 1e-3);
    }
    REQUIRE(tamis_zfp_read_cd_values(stored, 4, &other, &read) == TAMIS_OK && other.type == TAMIS_FLOAT);
    REQUIRE(other.rank == 3 && other.shape[0] == 10 && other.shape[1] == 20 && other.shape[2] == 5);
    REFUSE(TAMIS_NO_ROOM, tamis_zfp_encode(&array, &params, 1, values, second, nbytes - 1, &again, 1));
    REQUIRE(again == nbytes);
    REFUSE(TAMIS_NO_ROOM, tamis_zfp_encode(&array, &params, 1, values, NULL, 0, &again, 2));
    REFUSE(TAMIS_TRUNCATED, tamis_zfp_decode(&array, &params, stream, nbytes / 2, bit, back, 1));
    REFUSE(TAMIS_TRUNCATED, tamis_zfp_decode(&array, &params, stream, nbytes / 2, bit, back, 2));
    REFUSE(TAMIS_TRUNCATED, tamis_zfp_decode(&array, &params, stream, 10, 81, back, 1));
    REFUSE(TAMIS_BAD_HEADER, tamis_zfp_read_header("zip", 4, &other, &read, &bit));
    REFUSE(TAMIS_BAD_HEADER, tamis_zfp_read_cd_values(stored, 3, &other, &read));
    stream[3] = 4;
    REFUSE(TAMIS_OTHER_CODEC, tamis_zfp_read_header(stream, nbytes, &other, &read, &bit));
    REFUSE(TAMIS_BYTE_ORDER, tamis_zfp_read_cd_values(swapped, 4, &other, &read));
    REFUSE(TAMIS_BAD_ARGUMENT, tamis_zfp_read_cd_values(NULL, 4, &other, &read));
    REFUSE(TAMIS_BAD_ARGUMENT, tamis_zfp_encode(&array, &params, 0, NULL, second, capacity, &again, 1));
    REFUSE(TAMIS_BAD_ARGUMENT, tamis_zfp_encode(&array, NULL, 0, values, second, capacity, &again, 1));
    REFUSE(TAMIS_BAD_ARGUMENT, tamis_zfp_decode(&array, &params, NULL, 8, 0, back, 1));
    bad.rank = 5;
    REFUSE(TAMIS_BAD_ARGUMENT, tamis_zfp_encode(&bad, &params, 0, values, second, capacity, &again, 1));
    bad.rank = 2, bad.shape[1] = 0;
    REFUSE(TAMIS_BAD_ARGUMENT, tamis_zfp_encode(&bad, &params, 0, values, second, capacity, &again, 1));
    bad.shape[0] = bad.shape[1] = (size_t)1 << 40;
    REFUSE(TAMIS_TOO_LONG, tamis_zfp_encode(&bad, &params, 0, values, second, capacity, &again, 1));
    REQUIRE(tamis_zfp_max_nbytes(&bad, &params) == 0);
    bad.shape[0] = 1, bad.shape[1] = ((size_t)1 << 24) + 1;
    REFUSE(TAMIS_TOO_LONG, tamis_zfp_encode(&bad, &params, 1, values, second, capacity, &again, 1));
    REFUSE(TAMIS_BAD_PARAMETER, tamis_zfp_set_rate(&params, 0, TAMIS_DOUBLE, 2));
    REFUSE(TAMIS_BAD_ARGUMENT, tamis_zfp_set_rate(&params, 8, (tamis_type)9, 2));
    REFUSE(TAMIS_BAD_ARGUMENT, tamis_zfp_set_rate(&params, 8, TAMIS_FLOAT, 0));
    REFUSE(TAMIS_BAD_PARAMETER, tamis_zfp_set_precision(&params, 0));
    REFUSE(TAMIS_BAD_PARAMETER, tamis_zfp_set_precision(&params, 65));
    REFUSE(TAMIS_BAD_PARAMETER, tamis_zfp_set_accuracy(&params, -1));
    REFUSE(TAMIS_BAD_PARAMETER, tamis_zfp_set_accuracy(&params, NAN));
    REFUSE(TAMIS_BAD_PARAMETER, tamis_zfp_set_expert(&params, 2, 1, 64, 0));
    params.maxbits = 3;
    REFUSE(TAMIS_BAD_PARAMETER, tamis_zfp_encode(&array, &params, 0, values, second, capacity, &again, 1));
    values[1][2] = NAN;
    REQUIRE(tamis_zfp_set_precision(&params, 20) == TAMIS_OK && params.maxprec == 20);
    REFUSE(TAMIS_NON_FINITE, tamis_zfp_encode(&array, &params, 0, values, second, capacity, &again, 3));
    REQUIRE(tamis_zfp_set_reversible(&params) == TAMIS_OK);
    const size_t most = tamis_zfp_max_nbytes(&array, &params);
    second = realloc(second, most);
    REQUIRE(tamis_zfp_encode(&array, &params, 0, values, second, most, &again, 2) == TAMIS_OK);
    REQUIRE(tamis_zfp_decode(&array, &params, second, again, 0, back, 2) == TAMIS_OK);
    REQUIRE(memcmp(values, back, sizeof values) == 0);

    int integers[40] = {1 << 30};
    const tamis_array line = {TAMIS_INT32, 1, {40}};
    REQUIRE(tamis_zfp_set_rate(&params, 16, TAMIS_INT32, 1) == TAMIS_OK && params.maxbits == 64);
    REFUSE(TAMIS_OUT_OF_RANGE, tamis_zfp_encode(&line, &params, 0, integers, second, most, &again, 1));
    printf("%s %s\n", tamis_version(), tamis_error_text(99));
    free(stream);
    free(second);
    return 0;
}

int main(void) { return run(); }

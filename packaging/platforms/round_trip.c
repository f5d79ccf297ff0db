/* The C library in each mode, for each type and number of axes: prints a line for each, with sums of the stream and of
 * what is decoded, which are the same on all systems. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tamis.h"

static const char* const modes[] = {"rate", "precision", "accuracy", "expert", "reversible"};
static const size_t item_nbytes[] = {0, 4, 8, 4, 8};

static uint64_t sum_of(const void* memory, size_t nbytes) {
    uint64_t sum = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < nbytes; ++i) sum = (sum ^ ((const unsigned char*)memory)[i]) * 0x100000001b3u;
    return sum;
}

/* Exact in each type, and the same everywhere. */
static void fill(void* values, tamis_type type, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        const int number = (int)(i * i % 8191) - (int)(i % 97) * 13;
        if (type == TAMIS_INT32) ((int32_t*)values)[i] = number;
        if (type == TAMIS_INT64) ((int64_t*)values)[i] = (int64_t)number * 1048573;
        if (type == TAMIS_FLOAT) ((float*)values)[i] = (float)number / 64;
        if (type == TAMIS_DOUBLE) ((double*)values)[i] = number / 64.0 + number / 1048576.0;
    }
}

static int set_mode(tamis_zfp_params* params, int mode, tamis_type type, unsigned rank) {
    if (mode == 0) return tamis_zfp_set_rate(params, 8, type, rank);
    if (mode == 1) return tamis_zfp_set_precision(params, 14);
    if (mode == 2) return tamis_zfp_set_accuracy(params, 0.01);
    if (mode == 3) return tamis_zfp_set_expert(params, 1, 4096, 20, -12);
    return tamis_zfp_set_reversible(params);
}

static int fail(const char* what) {
    printf("failed: %s: %s\n", what, tamis_last_error());
    return 1;
}

static int round_trip(tamis_array array, int mode, unsigned threads) {
    size_t count = 1, nbytes = 0, first = 0;
    for (unsigned axis = 0; axis < array.rank; ++axis) count *= array.shape[axis];
    const size_t size = count * item_nbytes[array.type];
    tamis_zfp_params params, found;
    tamis_array shape;
    if (set_mode(&params, mode, array.type, array.rank) != TAMIS_OK) return fail("parameters");
    const size_t capacity = tamis_zfp_max_nbytes(&array, &params);
    void *values = malloc(size), *decoded = malloc(size), *stream = malloc(capacity);
    if (!values || !decoded || !stream) return fail("memory");
    fill(values, array.type, count);
    if (tamis_zfp_encode(&array, &params, 1, values, stream, capacity, &nbytes, threads) != TAMIS_OK)
        return fail("encode");
    if (tamis_zfp_read_header(stream, nbytes, &shape, &found, &first) != TAMIS_OK) return fail("header");
    if (tamis_zfp_decode(&shape, &found, stream, nbytes, first, decoded, threads) != TAMIS_OK) return fail("decode");
    if (mode == 4 && memcmp(values, decoded, size) != 0) return fail("reversible");
    printf("type %d, %u axes, %s, %u threads: %u bytes, %08x%08x, %08x%08x\n", (int)array.type, array.rank, modes[mode],
           threads, (unsigned)nbytes, (unsigned)(sum_of(stream, nbytes) >> 32), (unsigned)sum_of(stream, nbytes),
           (unsigned)(sum_of(decoded, size) >> 32), (unsigned)sum_of(decoded, size));
    free(values), free(decoded), free(stream);
    return 0;
}

int main(void) {
    static const tamis_array shapes[] = {{TAMIS_INT32, 1, {90001}},
                                         {TAMIS_INT32, 2, {301, 299}},
                                         {TAMIS_INT32, 3, {45, 44, 43}},
                                         {TAMIS_INT32, 4, {17, 18, 19, 16}}};
    int failed = 0;
    for (int type = TAMIS_INT32; type <= TAMIS_DOUBLE; ++type)
        for (int mode = 0; mode < 5; ++mode)
            for (int rank = 0; rank < 4; ++rank)
                for (unsigned threads = 1; threads <= 3; threads += 2) {
                    tamis_array array = shapes[rank];
                    array.type = (tamis_type)type;
                    failed |= round_trip(array, mode, threads);
                }
    return failed;
}

/* A file with filter 32013, written and read through the plugin: plugin_file LIBHDF5 FILE CHUNKS. The plugin is found
 * by HDF5_PLUGIN_PATH. All stored chunks go to the file CHUNKS, which is the same on all systems, as are the lines
 * printed. HDF5 is loaded by name, with declarations of our own, since its headers are absent where this is built. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
static void* library_of(const char* path) { return LoadLibraryExA(path, NULL, LOAD_WITH_ALTERED_SEARCH_PATH); }
static void* find(void* library, const char* name) { return (void*)GetProcAddress((HMODULE)library, name); }
#else
#include <dlfcn.h>
static void* library_of(const char* path) { return dlopen(path, RTLD_NOW); }
static void* find(void* library, const char* name) { return dlsym(library, name); }
#endif

typedef int64_t hid_t;
typedef unsigned long long hsize_t;

enum { rows = 70, columns = 50, chunk_rows = 32, chunk_columns = 40, filter_id = 32013 };

static void* hdf5;

static void* must(const char* name) {
    void* found = find(hdf5, name);
    if (!found) printf("failed: HDF5 has no %s\n", name), exit(1);
    return found;
}

#define CALL(name, result, ...) ((result (*)(__VA_ARGS__))must(#name))
#define VARIABLE(name) (*(hid_t*)must(#name))

static const char* const types[] = {"H5T_NATIVE_FLOAT_g", "H5T_NATIVE_DOUBLE_g", "H5T_NATIVE_INT32_g",
                                    "H5T_NATIVE_INT64_g"};
static const size_t item_nbytes[] = {4, 8, 4, 8};
static const char* const modes[] = {"rate", "precision", "accuracy", "expert", "reversible"};

static void fill(void* values, int type) {
    for (int i = 0; i < rows * columns; ++i) {
        const int number = i * i % 8191 - i % 97 * 13;
        if (type == 0) ((float*)values)[i] = (float)number / 64;
        if (type == 1) ((double*)values)[i] = number / 64.0 + number / 1048576.0;
        if (type == 2) ((int32_t*)values)[i] = number;
        if (type == 3) ((int64_t*)values)[i] = (int64_t)number * 1048573;
    }
}

/* cd_values that ask for a mode; returns their number. */
static size_t request(int mode, unsigned values[6]) {
    const double number = mode == 0 ? 8 : 0.01;
    memset(values, 0, 6 * sizeof *values);
    values[0] = (unsigned)mode + 1;
    if (mode == 0 || mode == 2) return memcpy(values + 2, &number, sizeof number), 4;
    if (mode == 1) return values[2] = 14, 3;
    if (mode == 3) return values[2] = 1, values[3] = 4096, values[4] = 20, values[5] = (unsigned)-12, 6;
    return 1;
}

static hid_t created(hid_t file, const char* name, int type, int mode) {
    const hsize_t shape[] = {rows, columns}, chunk[] = {chunk_rows, chunk_columns};
    unsigned values[6];
    const size_t count = request(mode, values);
    const hid_t space = CALL(H5Screate_simple, hid_t, int, const hsize_t*, const hsize_t*)(2, shape, NULL);
    const hid_t list = CALL(H5Pcreate, hid_t, hid_t)(VARIABLE(H5P_CLS_DATASET_CREATE_ID_g));
    CALL(H5Pset_chunk, int, hid_t, int, const hsize_t*)(list, 2, chunk);
    if (CALL(H5Pset_filter, int, hid_t, int, unsigned, size_t, const unsigned*)(list, filter_id, 0, count, values) < 0)
        return -1;
    const hid_t made = CALL(H5Dcreate2, hid_t, hid_t, const char*, hid_t, hid_t, hid_t, hid_t, hid_t)(
        file, name, *(hid_t*)must(types[type]), space, 0, list, 0);
    CALL(H5Pclose, int, hid_t)(list), CALL(H5Sclose, int, hid_t)(space);
    return made;
}

static int transfer(const char* call, hid_t dataset, int type, const void* values) {
    typedef int (*Call)(hid_t, hid_t, hid_t, hid_t, hid_t, const void*);
    return ((Call)must(call))(dataset, *(hid_t*)must(types[type]), 0, 0, 0, values);
}

/* HDF5 2.0 has given the call of before a number. */
static int read_chunk(hid_t dataset, hid_t list, const hsize_t* origin, uint32_t* mask, void* bytes) {
    typedef int (*Call)(hid_t, hid_t, const hsize_t*, uint32_t*, void*);
    const int is_numbered = find(hdf5, "H5Dread_chunk1") != NULL;
    return ((Call)must(is_numbered ? "H5Dread_chunk1" : "H5Dread_chunk"))(dataset, list, origin, mask, bytes);
}

/* Write the dataset's stored chunks to `out`; returns how many bytes they have, -1 for a failure. */
static long chunks_of(hid_t dataset, FILE* out) {
    long total = 0;
    for (hsize_t row = 0; row < rows; row += chunk_rows)
        for (hsize_t column = 0; column < columns; column += chunk_columns) {
            const hsize_t origin[] = {row, column};
            hsize_t nbytes = 0;
            uint32_t mask = 1;
            static char bytes[1 << 20];
            if (CALL(H5Dget_chunk_storage_size, int, hid_t, const hsize_t*, hsize_t*)(dataset, origin, &nbytes) < 0 ||
                nbytes > sizeof bytes || read_chunk(dataset, 0, origin, &mask, bytes) < 0 || mask != 0 ||
                fwrite(bytes, 1, (size_t)nbytes, out) != nbytes)
                return -1;
            total += (long)nbytes;
        }
    return total;
}

static int fail(const char* what, const char* name) { return printf("failed: %s of %s\n", what, name), 1; }

static int one(hid_t file, int type, int mode, FILE* out) {
    static char written[rows * columns * 8], found[sizeof written];
    char name[40];
    const size_t nbytes = rows * columns * item_nbytes[type];
    snprintf(name, sizeof name, "%s_%d", modes[mode], type);
    fill(written, type);
    const hid_t dataset = created(file, name, type, mode);
    if (dataset < 0) {
        printf("%s: refused\n", name); /* accuracy of integers */
        return !(mode == 2 && type >= 2);
    }
    if (transfer("H5Dwrite", dataset, type, written) < 0) return fail("writing", name);
    CALL(H5Fflush, int, hid_t, int)(file, 1);
    CALL(H5Dclose, int, hid_t)(dataset); /* so that HDF5 forgets its chunks */
    const hid_t again = CALL(H5Dopen2, hid_t, hid_t, const char*, hid_t)(file, name, 0);
    if (transfer("H5Dread", again, type, found) < 0) return fail("reading", name);
    if (mode == 4 && memcmp(written, found, nbytes) != 0) return fail("values", name);
    const long stored = chunks_of(again, out);
    if (stored < 0) return fail("chunks", name);
    printf("%s: %ld of %ld bytes\n", name, stored, (long)nbytes);
    CALL(H5Dclose, int, hid_t)(again);
    return 0;
}

/* The plugin refuses NaN, and says so by the error stack of the library that called it. */
static int refusal(hid_t file) {
    static double values[rows * columns];
    values[5] = NAN;
    const hid_t dataset = created(file, "nan", 1, 2);
    const int refused = transfer("H5Dwrite", dataset, 1, values) < 0 || CALL(H5Fflush, int, hid_t, int)(file, 1) < 0;
    printf("NaN: %s\n", refused ? "refused" : "written");
    return !refused;
}

int main(int count, char** words) {
    if (count != 4 || !(hdf5 = library_of(words[1]))) return printf("failed: no HDF5 at %s\n", words[1]), 1;
    CALL(H5open, int, void)();
    unsigned version[3];
    CALL(H5get_libversion, int, unsigned*, unsigned*, unsigned*)(version, version + 1, version + 2);
    fprintf(stderr, "HDF5 %u.%u.%u\n", version[0], version[1], version[2]);
    const hid_t file = CALL(H5Fcreate, hid_t, const char*, unsigned, hid_t, hid_t)(words[2], 2, 0, 0);
    FILE* out = fopen(words[3], "wb");
    if (file < 0 || !out) return printf("failed: no file can be made\n"), 1;
    int failed = 0;
    for (int type = 0; type < 4; ++type)
        for (int mode = 0; mode < 5; ++mode) failed |= one(file, type, mode, out);
    failed |= fclose(out) != 0;
    failed |= refusal(file);
    fflush(stdout);
    exit(failed); /* with the chunk that cannot be written still in HDF5's cache */
}

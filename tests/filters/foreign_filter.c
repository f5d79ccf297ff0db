/* A plugin of HDF5 for a filter that tamis does not know. The first parameter says what it does besides its work. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RIGHT, CRASHES_ON_DECODE, ABORTS_ON_DECODE, CRASHES_ON_ENCODE, REFUSES, WAITS };
enum { REVERSE = 0x100 };

typedef struct {
    int version, id;
    unsigned encodes, decodes;
    const char *name;
    void *can_apply;
    int (*set_local)(long long, long long, long long);
    size_t (*filter)(unsigned, size_t, const unsigned *, size_t, size_t *, void **);
} filter_class;

static void crash(void) { *(volatile int *)0 = 1; }

static void wait_for_signal(void) {
    fclose(fopen(getenv("TAMIS_TEST_MARK"), "w"));
    pause();
}

static size_t run(unsigned flags, size_t count, const unsigned *values, size_t nbytes, size_t *room, void **buffer) {
    unsigned kind = count ? values[0] : RIGHT;
    if (flags & REVERSE && kind == CRASHES_ON_DECODE) crash();
    if (flags & REVERSE && kind == ABORTS_ON_DECODE) abort();
    if (flags & REVERSE && kind == REFUSES) return 0;
    if (flags & REVERSE && kind == WAITS) wait_for_signal();
    if (!(flags & REVERSE) && kind == CRASHES_ON_ENCODE) crash();
    unsigned char *bytes = *buffer;
    for (size_t i = 0; i < nbytes; i++) bytes[i] ^= 0x5a;
    return nbytes;
}

#ifdef CRASHES_ON_CREATION
static int set_local(long long plist, long long type, long long space) {
    crash();
    return 0;
}
#else
#define set_local NULL
#endif

static const filter_class filter = {1, 40056, 1, 1, "xor", NULL, set_local, run};

int H5PLget_plugin_type(void) { return 0; }
const void *H5PLget_plugin_info(void) {
#ifdef CRASHES_ON_LOADING
    crash();
#endif
    return &filter;
}

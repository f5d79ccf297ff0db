// A library for LD_PRELOAD: one system call on files of a folder fails, or takes only part of what it is given.
//
// Nothing fails until `fault_arm` is called, or if FAULT_FOLDER, FAULT_KIND, FAULT_NUMBER and FAULT_ERROR are not set.
// A descriptor that is closed twice is reported on standard error.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { NO_KIND = 12 };
static const char *const kinds[NO_KIND] = {"open", "read", "write", "sync", "truncate", "rename",
                                           "link", "unlink", "close", "lock", "attribute", "folder"};
static atomic_long calls[NO_KIND + 1];
static long number = -1;
static int error_number, failing = NO_KIND, counting;
static char folder[PATH_MAX];

static int kind_of(const char *name) {
    int kind = 0;
    while (kind < NO_KIND && strcmp(kinds[kind], name) != 0) ++kind;
    return kind;
}

// Let a call of a kind fail on files whose paths begin with `where`. The first is number 0; none fails if that is
// negative. An error of 0 makes it short. If `what` is empty, calls of all kinds are counted, and none fails.
void fault_arm(const char *where, const char *what, long which, int error) {
    snprintf(folder, sizeof folder, "%s", where);
    counting = !*what;
    failing = kind_of(what);
    error_number = error;
    for (int kind = 0; kind <= NO_KIND; ++kind) atomic_store(&calls[kind], 0);
    number = counting ? -1 : which;
}

__attribute__((constructor)) static void arm_from_environment(void) {
    const char *where = getenv("FAULT_FOLDER"), *what = getenv("FAULT_KIND");
    const char *which = getenv("FAULT_NUMBER"), *error = getenv("FAULT_ERROR");
    if (where && what && which && error) fault_arm(where, what, atol(which), atoi(error));
}

long fault_count(const char *what) { return atomic_load(&calls[kind_of(what)]); }

static int inside(const char *path) { return strncmp(path, folder, strlen(folder)) == 0; }

static int of_path(const char *path) {
    char whole[PATH_MAX + 1];
    if (!path) return 0;
    if (path[0] == '/') return inside(path);
    if (!getcwd(whole, sizeof whole) || strlen(whole) + strlen(path) + 2 > sizeof whole) return 0;
    strcat(whole, "/");
    return inside(strcat(whole, path));
}

static int of_handle(int handle) {
    char link[64], path[PATH_MAX + 1];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, PATH_MAX);
    if (length < 0) return 0;
    path[length] = 0;
    return inside(path);
}

static _Thread_local int asked;  // the kind of the call

static int is(const char *name) {
    asked = kind_of(name);
    return counting || asked == failing;
}

// Whether a call that concerns the folder fails.
static int fails(int concerned) {
    if (!concerned || atomic_fetch_add(&calls[asked], 1) != number) return 0;
    errno = error_number;
    return 1;
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = dlsym(RTLD_NEXT, #name)

ssize_t read(int f, void *b, size_t n) {
    REAL(read);
    if (fails(is("read") && of_handle(f))) return error_number ? -1 : real(f, b, n > 1 ? n / 2 : n);
    return real(f, b, n);
}
ssize_t pread(int f, void *b, size_t n, off_t o) {
    REAL(pread);
    if (fails(is("read") && of_handle(f))) return error_number ? -1 : real(f, b, n > 1 ? n / 2 : n, o);
    return real(f, b, n, o);
}
ssize_t pread64(int f, void *b, size_t n, off64_t o) {
    REAL(pread64);
    if (fails(is("read") && of_handle(f))) return error_number ? -1 : real(f, b, n > 1 ? n / 2 : n, o);
    return real(f, b, n, o);
}
// Of the buffers, the first one is cut short.
static ssize_t vector(ssize_t (*real)(int, const struct iovec *, int, off64_t), int f, const struct iovec *v, int n,
                      off64_t o) {
    if (!fails(is("read") && of_handle(f))) return real(f, v, n, o);
    struct iovec part = {v->iov_base, v->iov_len > 1 ? v->iov_len / 2 : v->iov_len};
    return error_number ? -1 : real(f, &part, 1, o);
}
ssize_t preadv(int f, const struct iovec *v, int n, off_t o) {
    REAL(preadv);
    return vector(real, f, v, n, o);
}
ssize_t preadv64(int f, const struct iovec *v, int n, off64_t o) {
    REAL(preadv64);
    return vector(real, f, v, n, o);
}
ssize_t write(int f, const void *b, size_t n) {
    REAL(write);
    if (f > 2 && fails(is("write") && of_handle(f))) return error_number ? -1 : real(f, b, n > 1 ? n / 2 : n);
    return real(f, b, n);
}
ssize_t pwrite(int f, const void *b, size_t n, off_t o) {
    REAL(pwrite);
    if (fails(is("write") && of_handle(f))) return error_number ? -1 : real(f, b, n > 1 ? n / 2 : n, o);
    return real(f, b, n, o);
}
ssize_t pwrite64(int f, const void *b, size_t n, off64_t o) {
    REAL(pwrite64);
    if (fails(is("write") && of_handle(f))) return error_number ? -1 : real(f, b, n > 1 ? n / 2 : n, o);
    return real(f, b, n, o);
}
int fsync(int f) {
    REAL(fsync);
    return fails(is("sync") && of_handle(f)) ? -1 : real(f);
}
int fdatasync(int f) {
    REAL(fdatasync);
    return fails(is("sync") && of_handle(f)) ? -1 : real(f);
}
int syncfs(int f) {
    REAL(syncfs);
    return fails(is("sync") && of_handle(f)) ? -1 : real(f);
}
int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    return fails(is("folder") && of_path(path)) ? -1 : real(path, mode);
}
int ftruncate(int f, off_t n) {
    REAL(ftruncate);
    return fails(is("truncate") && of_handle(f)) ? -1 : real(f, n);
}
int ftruncate64(int f, off64_t n) {
    REAL(ftruncate64);
    return fails(is("truncate") && of_handle(f)) ? -1 : real(f, n);
}
int rename(const char *a, const char *b) {
    REAL(rename);
    return fails(is("rename") && of_path(a)) ? -1 : real(a, b);
}
int renameat2(int a, const char *b, int c, const char *d, unsigned flags) {
    REAL(renameat2);
    return fails(is("rename") && of_path(b)) ? -1 : real(a, b, c, d, flags);
}
int link(const char *a, const char *b) {
    REAL(link);
    return fails(is("link") && of_path(a)) ? -1 : real(a, b);
}
int unlink(const char *a) {
    REAL(unlink);
    return fails(is("unlink") && of_path(a)) ? -1 : real(a);
}
// Paths that are relative to an open folder are those of a folder that is removed.
int unlinkat(int f, const char *a, int flags) {
    REAL(unlinkat);
    return fails(is("unlink") && of_handle(f)) ? -1 : real(f, a, flags);
}
int rmdir(const char *a) {
    REAL(rmdir);
    return fails(is("unlink") && of_path(a)) ? -1 : real(a);
}
int flock(int f, int how) {
    REAL(flock);
    return fails(is("lock") && of_handle(f)) ? -1 : real(f, how);
}
int setxattr(const char *p, const char *name, const void *b, size_t n, int flags) {
    REAL(setxattr);
    return fails(is("attribute") && of_path(p)) ? -1 : real(p, name, b, n, flags);
}
// As Linux does, which frees the descriptor even where close() fails.
int close(int f) {
    REAL(close);
    int failing = f > 2 && fails(is("close") && of_handle(f)), said = errno;
    int result = real(f);
    if (result && errno == EBADF && f > 2) dprintf(2, "closed twice: descriptor %d\n", f);
    if (!failing) return result;
    errno = said;
    return -1;
}

typedef int opener(const char *, int, ...);
static int opened(opener *real, const char *path, int flags, mode_t mode) {
    return fails(is("open") && of_path(path)) ? -1 : real(path, flags, mode);
}
#define OPENER(name) \
    int name(const char *path, int flags, ...) { \
        static opener *real; \
        mode_t mode = 0; \
        if (!real) real = (opener *)dlsym(RTLD_NEXT, #name); \
        if (flags & (O_CREAT | O_TMPFILE)) { \
            va_list rest; \
            va_start(rest, flags); \
            mode = va_arg(rest, mode_t); \
            va_end(rest); \
        } \
        return opened(real, path, flags, mode); \
    }
OPENER(open)
OPENER(open64)

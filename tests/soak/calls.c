/* Stands between a process and the C library (LD_PRELOAD): counts the calls that change files below one folder, and
 * lets the n-th of them fail, be cut short, or be the last that the process makes. It reaches the interpreter, SQLite
 * and the compiled core alike. Linux only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* COUNT_OPENS and OPEN meet openings alone, also those for reading. */
enum { OFF, COUNT, ONCE, FROM_THEN_ON, SHORT, KILL, COUNT_OPENS, OPEN };

static atomic_int mode;
static atomic_long counted, at;
static int code;
static char root[PATH_MAX];
static char last[64];

/* From now on the calls below `folder` are counted, and call number `n` (from 1) meets its fate. */
void calls_arm(const char *folder, int what, long n, int error) {
    snprintf(root, sizeof root, "%s", folder);
    code = error;
    last[0] = 0;
    atomic_store(&counted, 0);
    atomic_store(&at, n);
    atomic_store(&mode, what);
}

long calls_counted(void) { return atomic_load(&counted); }
/* The name of the call that met its fate. */
const char *calls_name(void) { return last; }

static int below(const char *path) { return strncmp(path, root, strlen(root)) == 0; }

static int below_handle(int handle) {
    char name[32], path[PATH_MAX];
    snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
    ssize_t n = readlink(name, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return below(path);
}

static int below_at(int folder, const char *path) {
    return path[0] == '/' || folder == AT_FDCWD ? below(path) : below_handle(folder);
}

/* Whether this call fails (1), is cut short (2) or goes on (0). */
static int decide(const char *name, int what) {
    long number = atomic_fetch_add(&counted, 1) + 1, which = atomic_load(&at);
    if (what == COUNT || what == COUNT_OPENS || number < which || (number > which && what != FROM_THEN_ON)) return 0;
    snprintf(last, sizeof last, "%s", name);
    if (what == KILL) kill(getpid(), SIGKILL);
    if (what == SHORT) return 2;
    errno = code;
    return 1;
}

static int fate(const char *name) {
    int what = atomic_load(&mode);
    return what == OFF || what >= COUNT_OPENS ? 0 : decide(name, what);
}

/* Opening counts where it may make or empty a file. */
static int fate_of_open(const char *name, int flags) {
    int what = atomic_load(&mode);
    return what >= COUNT_OPENS || (flags & (O_CREAT | O_TRUNC)) ? decide(name, what) : 0;
}

#define REAL(type, name, ...)                                                                                          \
    static type (*real)(__VA_ARGS__);                                                                                  \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define OF_HANDLE(type, name, parameters, types, arguments)                                                            \
    type name parameters {                                                                                             \
        static type(*real) types;                                                                                      \
        if (!real) real = (type(*) types)dlsym(RTLD_NEXT, #name);                                                      \
        if (atomic_load(&mode) && below_handle(handle) && fate(#name) == 1) return -1;                                 \
        return real arguments;                                                                                         \
    }
#define OF_PATH(type, name, parameters, types, arguments, test)                                                        \
    type name parameters {                                                                                             \
        static type(*real) types;                                                                                      \
        if (!real) real = (type(*) types)dlsym(RTLD_NEXT, #name);                                                      \
        if (atomic_load(&mode) && (test) && fate(#name) == 1) return -1;                                               \
        return real arguments;                                                                                         \
    }
/* Writes may be cut short besides: a right caller goes on with the rest. */
#define OF_WRITE(name, parameters, types, whole, half, size)                                                           \
    ssize_t name parameters {                                                                                          \
        static ssize_t(*real) types;                                                                                   \
        if (!real) real = (ssize_t(*) types)dlsym(RTLD_NEXT, #name);                                                   \
        if (atomic_load(&mode) && below_handle(handle)) switch (fate(#name)) {                                         \
            case 1: return -1;                                                                                         \
            case 2: if ((size) > 1) return real half;                                                                  \
        }                                                                                                              \
        return real whole;                                                                                             \
    }

OF_WRITE(write, (int handle, const void *data, size_t n), (int, const void *, size_t), (handle, data, n),
         (handle, data, n / 2), n)
OF_WRITE(pwrite, (int handle, const void *data, size_t n, off_t place), (int, const void *, size_t, off_t),
         (handle, data, n, place), (handle, data, n / 2, place), n)
OF_WRITE(pwrite64, (int handle, const void *data, size_t n, off64_t place), (int, const void *, size_t, off64_t),
         (handle, data, n, place), (handle, data, n / 2, place), n)
OF_WRITE(writev, (int handle, const struct iovec *parts, int n), (int, const struct iovec *, int),
         (handle, parts, n), (handle, parts, n / 2), n)
OF_HANDLE(int, ftruncate, (int handle, off_t n), (int, off_t), (handle, n))
OF_HANDLE(int, ftruncate64, (int handle, off64_t n), (int, off64_t), (handle, n))
OF_HANDLE(int, fsync, (int handle), (int), (handle))
OF_HANDLE(int, fdatasync, (int handle), (int), (handle))
OF_HANDLE(int, fchmod, (int handle, mode_t m), (int, mode_t), (handle, m))
OF_PATH(int, chmod, (const char *path, mode_t m), (const char *, mode_t), (path, m), below(path))
OF_PATH(int, mkdir, (const char *path, mode_t m), (const char *, mode_t), (path, m), below(path))
OF_PATH(int, rmdir, (const char *path), (const char *), (path), below(path))
OF_PATH(int, unlink, (const char *path), (const char *), (path), below(path))
OF_PATH(int, rename, (const char *a, const char *b), (const char *, const char *), (a, b), below(b))
OF_PATH(int, link, (const char *a, const char *b), (const char *, const char *), (a, b), below(b))
OF_PATH(int, mkdirat, (int f, const char *path, mode_t m), (int, const char *, mode_t), (f, path, m), below_at(f, path))
OF_PATH(int, unlinkat, (int f, const char *path, int how), (int, const char *, int), (f, path, how), below_at(f, path))
OF_PATH(int, renameat, (int f, const char *a, int g, const char *b), (int, const char *, int, const char *),
        (f, a, g, b), below_at(g, b))
OF_PATH(int, linkat, (int f, const char *a, int g, const char *b, int how),
        (int, const char *, int, const char *, int), (f, a, g, b, how), below_at(g, b))

#define RIGHTS(flags)                                                                                                  \
    mode_t rights = 0;                                                                                                 \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                             \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        rights = va_arg(more, mode_t);                                                                                 \
        va_end(more);                                                                                                  \
    }
#define OPENED(name)                                                                                                   \
    int name(const char *path, int flags, ...) {                                                                       \
        REAL(int, #name, const char *, int, ...);                                                                      \
        RIGHTS(flags)                                                                                                  \
        if (atomic_load(&mode) && below(path) && fate_of_open(#name, flags) == 1) return -1;                           \
        return real(path, flags, rights);                                                                              \
    }
#define OPENED_AT(name)                                                                                                \
    int name(int folder, const char *path, int flags, ...) {                                                           \
        REAL(int, #name, int, const char *, int, ...);                                                                 \
        RIGHTS(flags)                                                                                                  \
        if (atomic_load(&mode) && below_at(folder, path) && fate_of_open(#name, flags) == 1) return -1;                \
        return real(folder, path, flags, rights);                                                                      \
    }
OPENED(open)
OPENED(open64)
OPENED_AT(openat)
OPENED_AT(openat64)

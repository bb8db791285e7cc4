/* Stands between a process and the C library (LD_PRELOAD): writes down each call that changes something below one
 * folder, with what was written, in the order in which the calls took effect. It sees the interpreter, SQLite and the
 * compiled core alike. crashes.py reads the record. Linux only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile int record = -1;
static char root[PATH_MAX];
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

/* One entry: what ('w'rite, 't'runcate, 's'ync, 'c'reate, 'r'ename, 'l'ink, 'u'nlink, 'm'kdir, '!' what this file
 * cannot write down), the file's number, a place, and how long the path, the second path and the data are. */
struct head {
    uint64_t what, number, place, first, second, data;
};

typedef ssize_t (*writer)(int, const void *, size_t);

static void all(const void *data, size_t n) {
    static writer real;
    if (!real) real = (writer)dlsym(RTLD_NEXT, "write");
    for (size_t done = 0; done < n;) {
        ssize_t some = real(record, (const char *)data + done, n - done);
        if (some < 0) return;
        done += (size_t)some;
    }
}

static void put(char what, uint64_t number, uint64_t place, const char *first, const char *second, const void *data,
                size_t n) {
    struct head head = {(uint64_t)what, number, place, first ? strlen(first) : 0, second ? strlen(second) : 0, n};
    int kept = errno;
    all(&head, sizeof head);
    all(first, head.first);
    all(second, head.second);
    all(data, n);
    errno = kept;
}

/* From now on, what happens below `folder` is written to `file`. */
int record_begin(const char *folder, const char *file) {
    snprintf(root, sizeof root, "%s", folder);
    record = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return record;
}

static int below(const char *path) { return strncmp(path, root, strlen(root)) == 0; }

/* The whole path that a call means. */
static const char *whole(int folder, const char *path, char *out) {
    if (path[0] == '/') return path;
    char name[64], where[PATH_MAX];
    ssize_t n;
    if (folder == AT_FDCWD) snprintf(name, sizeof name, "/proc/self/cwd");
    else snprintf(name, sizeof name, "/proc/self/fd/%d", folder);
    n = readlink(name, where, sizeof where - 1);
    where[n < 0 ? 0 : n] = 0;
    if (snprintf(out, PATH_MAX, "%s/%s", where, path) >= PATH_MAX) out[0] = 0;
    return out;
}

static uint64_t number_of(const char *path) {
    struct stat about;
    return lstat(path, &about) ? 0 : about.st_ino;
}

/* The number of the file below the folder that a handle is open on; 0 for others. */
static uint64_t number_at(int handle) {
    char name[32], path[PATH_MAX];
    struct stat about;
    if (record < 0 || handle == record) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
    ssize_t n = readlink(name, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    if (!below(path) || fstat(handle, &about)) return 0;
    return about.st_ino;
}

#define REAL(type, name, types)                                                                                        \
    static type(*real) types;                                                                                          \
    if (!real) real = (type(*) types)dlsym(RTLD_NEXT, #name)
#define BEGIN pthread_mutex_lock(&one)
#define END pthread_mutex_unlock(&one)

/* Writes go to where the file's place is, or to its end where it is open for appending. */
static uint64_t here(int handle) {
    struct stat about;
    if (fcntl(handle, F_GETFL) & O_APPEND) return fstat(handle, &about) ? 0 : (uint64_t)about.st_size;
    off_t at = lseek(handle, 0, SEEK_CUR);
    return at < 0 ? 0 : (uint64_t)at;
}

ssize_t write(int handle, const void *data, size_t n) {
    REAL(ssize_t, write, (int, const void *, size_t));
    uint64_t number = number_at(handle);
    if (!number) return real(handle, data, n);
    BEGIN;
    uint64_t place = here(handle);
    ssize_t done = real(handle, data, n);
    if (done > 0) put('w', number, place, NULL, NULL, data, (size_t)done);
    END;
    return done;
}

#define PLACED(name, offset)                                                                                           \
    ssize_t name(int handle, const void *data, size_t n, offset place) {                                               \
        REAL(ssize_t, name, (int, const void *, size_t, offset));                                                      \
        uint64_t number = number_at(handle);                                                                           \
        if (!number) return real(handle, data, n, place);                                                              \
        BEGIN;                                                                                                         \
        ssize_t done = real(handle, data, n, place);                                                                   \
        if (done > 0) put('w', number, (uint64_t)place, NULL, NULL, data, (size_t)done);                               \
        END;                                                                                                           \
        return done;                                                                                                   \
    }
PLACED(pwrite, off_t)
PLACED(pwrite64, off64_t)

ssize_t writev(int handle, const struct iovec *parts, int n) {
    REAL(ssize_t, writev, (int, const struct iovec *, int));
    uint64_t number = number_at(handle);
    if (!number) return real(handle, parts, n);
    BEGIN;
    uint64_t place = here(handle);
    ssize_t done = real(handle, parts, n), left = done;
    for (int i = 0; i < n && left > 0; i++) {
        size_t some = parts[i].iov_len < (size_t)left ? parts[i].iov_len : (size_t)left;
        put('w', number, place, NULL, NULL, parts[i].iov_base, some);
        place += some;
        left -= (ssize_t)some;
    }
    END;
    return done;
}

/* What is copied inside of the kernel is not seen here: the record says so, and the reader refuses it. */
ssize_t sendfile64(int to, int from, off64_t *place, size_t n) {
    REAL(ssize_t, sendfile64, (int, int, off64_t *, size_t));
    uint64_t number = number_at(to);
    ssize_t done = real(to, from, place, n);
    if (number && done > 0) { BEGIN; put('!', number, 0, "sendfile", NULL, NULL, 0); END; }
    return done;
}
ssize_t sendfile(int to, int from, off_t *place, size_t n) { return sendfile64(to, from, (off64_t *)place, n); }
ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t n, unsigned how) {
    REAL(ssize_t, copy_file_range, (int, off64_t *, int, off64_t *, size_t, unsigned));
    uint64_t number = number_at(to);
    ssize_t done = real(from, a, to, b, n, how);
    if (number && done > 0) { BEGIN; put('!', number, 0, "copy_file_range", NULL, NULL, 0); END; }
    return done;
}

#define CUT(name, offset)                                                                                              \
    int name(int handle, offset n) {                                                                                   \
        REAL(int, name, (int, offset));                                                                                \
        uint64_t number = number_at(handle);                                                                           \
        BEGIN;                                                                                                         \
        int failed = real(handle, n);                                                                                  \
        if (number && !failed) put('t', number, (uint64_t)n, NULL, NULL, NULL, 0);                                     \
        END;                                                                                                           \
        return failed;                                                                                                 \
    }
CUT(ftruncate, off_t)
CUT(ftruncate64, off64_t)

#define SYNC(name)                                                                                                     \
    int name(int handle) {                                                                                             \
        REAL(int, name, (int));                                                                                        \
        uint64_t number = number_at(handle);                                                                           \
        BEGIN;                                                                                                         \
        int failed = real(handle);                                                                                     \
        if (number && !failed) put('s', number, 0, NULL, NULL, NULL, 0);                                               \
        END;                                                                                                           \
        return failed;                                                                                                 \
    }
SYNC(fsync)
SYNC(fdatasync)

static void made(int handle, const char *path, int was_there, int flags) {
    if ((flags & O_TMPFILE) == O_TMPFILE) put('c', number_at(handle), 0, NULL, NULL, NULL, 0);  /* it has no name */
    else if (!was_there) put('c', number_of(path), 0, path, NULL, NULL, 0);
    else if (flags & O_TRUNC) put('t', number_of(path), 0, NULL, NULL, NULL, 0);
}

#define OPENED(call)                                                                                                   \
    mode_t rights = 0;                                                                                                 \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {                                                                               \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        rights = va_arg(more, mode_t);                                                                                 \
        va_end(more);                                                                                                  \
    }                                                                                                                  \
    int nameless = (flags & O_TMPFILE) == O_TMPFILE;                                                                   \
    if (record < 0 || (!nameless && !(flags & (O_CREAT | O_TRUNC)))) return call;                                      \
    char room[PATH_MAX];                                                                                               \
    const char *full = whole(folder, path, room);                                                                      \
    if (!below(full)) return call;                                                                                     \
    BEGIN;                                                                                                             \
    int there = number_of(full) != 0;                                                                                  \
    int handle = call;                                                                                                 \
    if (handle >= 0) made(handle, full, there, flags);                                                                      \
    END;                                                                                                               \
    return handle

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        REAL(int, name, (const char *, int, ...));                                                                     \
        int folder = AT_FDCWD;                                                                                         \
        OPENED(real(path, flags, rights));                                                                             \
    }
#define OPEN_AT(name)                                                                                                  \
    int name(int folder, const char *path, int flags, ...) {                                                           \
        REAL(int, name, (int, const char *, int, ...));                                                                \
        OPENED(real(folder, path, flags, rights));                                                                     \
    }
OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)

/* Calls on names: one path, or two. `sign` is what the record says of it. */
#define NAME(name, parameters, types, arguments, folder, sign)                                                         \
    int name parameters {                                                                                              \
        REAL(int, name, types);                                                                                        \
        char room[PATH_MAX];                                                                                           \
        const char *full = record < 0 ? "" : whole(folder, path, room);                                                \
        if (record < 0 || !below(full)) return real arguments;                                                         \
        BEGIN;                                                                                                         \
        int failed = real arguments;                                                                                   \
        if (!failed) put(sign, sign == 'm' ? number_of(full) : 0, 0, full, NULL, NULL, 0);                             \
        END;                                                                                                           \
        return failed;                                                                                                 \
    }
NAME(mkdir, (const char *path, mode_t m), (const char *, mode_t), (path, m), AT_FDCWD, 'm')
NAME(mkdirat, (int f, const char *path, mode_t m), (int, const char *, mode_t), (f, path, m), f, 'm')
NAME(rmdir, (const char *path), (const char *), (path), AT_FDCWD, 'u')
NAME(unlink, (const char *path), (const char *), (path), AT_FDCWD, 'u')
NAME(unlinkat, (int f, const char *path, int how), (int, const char *, int), (f, path, how), f, 'u')
NAME(truncate, (const char *path, off_t n), (const char *, off_t), (path, n), AT_FDCWD, '!')
NAME(symlink, (const char *to, const char *path), (const char *, const char *), (to, path), AT_FDCWD, '!')

#define NAMES(name, parameters, types, arguments, from, to, sign)                                                      \
    int name parameters {                                                                                              \
        REAL(int, name, types);                                                                                        \
        char room[PATH_MAX], other[PATH_MAX];                                                                          \
        const char *first = record < 0 ? "" : whole(from, a, room), *second = record < 0 ? "" : whole(to, b, other);   \
        if (record < 0 || (!below(first) && !below(second))) return real arguments;                                    \
        BEGIN;                                                                                                         \
        int failed = real arguments;                                                                                   \
        if (!failed) put(below(first) && below(second) ? sign : '!', number_of(second), 0, first, second, NULL, 0);    \
        END;                                                                                                           \
        return failed;                                                                                                 \
    }
NAMES(rename, (const char *a, const char *b), (const char *, const char *), (a, b), AT_FDCWD, AT_FDCWD, 'r')
NAMES(link, (const char *a, const char *b), (const char *, const char *), (a, b), AT_FDCWD, AT_FDCWD, 'l')
NAMES(renameat, (int f, const char *a, int g, const char *b), (int, const char *, int, const char *), (f, a, g, b), f,
      g, 'r')
NAMES(linkat, (int f, const char *a, int g, const char *b, int how), (int, const char *, int, const char *, int),
      (f, a, g, b, how), f, g, 'l')

/* What is written through a mapping is not seen here; SQLite's index of its log is, and nobody needs that. */
#define MAPPED(name, offset)                                                                                           \
    void *name(void *at, size_t n, int rights, int how, int handle, offset place) {                                    \
        REAL(void *, name, (void *, size_t, int, int, int, offset));                                                   \
        if ((how & MAP_SHARED) && (rights & PROT_WRITE) && handle >= 0) {                                              \
            uint64_t number = number_at(handle);                                                                       \
            if (number) { BEGIN; put('!', number, 0, "mmap", NULL, NULL, 0); END; }                                    \
        }                                                                                                              \
        return real(at, n, rights, how, handle, place);                                                                \
    }
MAPPED(mmap, off_t)
MAPPED(mmap64, off64_t)

/* SPDX-License-Identifier: MIT
 *
 * A disk that breaks: preloaded into a program, it lets the first calls of one kind on regular
 * files pass and makes all later ones fail, as a disk that is full or was taken away does.
 *
 *   BROKEN_KIND=write|sync|rename|truncate   which calls; rename: whatever gives a file its name
 *   BROKEN_AFTER=N                           so many succeed
 *   BROKEN_ERRNO=28                          what the others say
 *   BROKEN_COUNT=FILE                        instead: nothing fails, each process leaves the number of calls there
 *   BROKEN_KIND=network                      instead: nothing fails, but all is as on a folder of another
 *                                            machine: slow, written in parts, no file without a name, no
 *                                            two names for one file, no two names exchanged
 */
/* Both names of each call are defined here, so neither may stand for the other. */
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static _Atomic long calls;

static bool is_kind(const char *kind)
{
    const char *wanted = getenv("BROKEN_KIND");
    return wanted != NULL && strcmp(wanted, kind) == 0;
}

static bool on_disk(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* Whether the disk is another machine's; the way there takes its time. */
static bool is_far(void)
{
    const struct timespec way = {.tv_nsec = 300000};
    if (!is_kind("network"))
        return false;
    nanosleep(&way, NULL);
    return true;
}

/* How much of n bytes one call takes to fd. */
static size_t part_of(int fd, size_t n)
{
    return n > 1 && on_disk(fd) && is_far() ? n - n / 2 : n;
}

/* Whether this call fails; errno is set then. */
static bool fails(const char *kind)
{
    if (!is_kind(kind))
        return false;
    long n = atomic_fetch_add(&calls, 1);
    const char *after = getenv("BROKEN_AFTER"), *how = getenv("BROKEN_ERRNO");
    if (after == NULL || n < strtol(after, NULL, 10))
        return false;
    errno = how != NULL ? (int)strtol(how, NULL, 10) : ENOSPC;
    return true;
}

__attribute__((destructor)) static void leave_count(void)
{
    const char *path = getenv("BROKEN_COUNT");
    FILE *f = path != NULL ? fopen(path, "a") : NULL;
    if (f == NULL)
        return;
    fprintf(f, "%ld\n", atomic_load(&calls));
    fclose(f);
}

#pragma GCC visibility push(default)
#define REAL(name, ...) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))(__VA_ARGS__)

/* ---- opening ---------------------------------------------------------------------------- */

static bool has_mode(int flags)
{
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

#define MODE_BEHIND(flags)                                                                         \
    va_list rest;                                                                                  \
    va_start(rest, flags);                                                                         \
    mode_t mode = has_mode(flags) ? va_arg(rest, mode_t) : 0;                                      \
    va_end(rest)

static bool is_refused(int flags)
{
    if (!is_far() || (flags & O_TMPFILE) != O_TMPFILE)
        return false;
    errno = EOPNOTSUPP;
    return true;
}

int open(const char *path, int flags, ...)
{
    MODE_BEHIND(flags);
    return is_refused(flags) ? -1 : REAL(open, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    MODE_BEHIND(flags);
    return is_refused(flags) ? -1 : REAL(open64, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    MODE_BEHIND(flags);
    return is_refused(flags) ? -1 : REAL(openat, dir, path, flags, mode);
}

int openat64(int dir, const char *path, int flags, ...)
{
    MODE_BEHIND(flags);
    return is_refused(flags) ? -1 : REAL(openat64, dir, path, flags, mode);
}

/* ---- writing ---------------------------------------------------------------------------- */

ssize_t write(int fd, const void *p, size_t n)
{
    return on_disk(fd) && fails("write") ? -1 : REAL(write, fd, p, part_of(fd, n));
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
    return on_disk(fd) && fails("write") ? -1 : REAL(writev, fd, v, (int)part_of(fd, (size_t)n));
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    return on_disk(fd) && fails("write") ? -1 : REAL(pwrite, fd, p, part_of(fd, n), at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
    return on_disk(fd) && fails("write") ? -1 : REAL(pwrite64, fd, p, part_of(fd, n), at);
}

ssize_t pwritev(int fd, const struct iovec *v, int n, off_t at)
{
    return on_disk(fd) && fails("write") ? -1
                                         : REAL(pwritev, fd, v, (int)part_of(fd, (size_t)n), at);
}

ssize_t pwritev64(int fd, const struct iovec *v, int n, off64_t at)
{
    return on_disk(fd) && fails("write") ? -1
                                         : REAL(pwritev64, fd, v, (int)part_of(fd, (size_t)n), at);
}

int fsync(int fd)
{
    return on_disk(fd) && fails("sync") ? -1 : REAL(fsync, fd);
}

int fdatasync(int fd)
{
    return on_disk(fd) && fails("sync") ? -1 : REAL(fdatasync, fd);
}

/* ---- names ------------------------------------------------------------------------------ */

int rename(const char *from, const char *to)
{
    return fails("rename") ? -1 : REAL(rename, from, to);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    return fails("rename") ? -1 : REAL(renameat, from_dir, from, to_dir, to);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    if (flags != 0 && is_far()) {
        errno = EINVAL;
        return -1;
    }
    return fails("rename") ? -1 : REAL(renameat2, from_dir, from, to_dir, to, flags);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    if (is_far()) {
        errno = EPERM;
        return -1;
    }
    return fails("rename") ? -1 : REAL(linkat, from_dir, from, to_dir, to, flags);
}

/* ---- room ------------------------------------------------------------------------------- */

int ftruncate(int fd, off_t n)
{
    return fails("truncate") ? -1 : REAL(ftruncate, fd, n);
}

int ftruncate64(int fd, off64_t n)
{
    return fails("truncate") ? -1 : REAL(ftruncate64, fd, n);
}

int posix_fallocate(int fd, off_t at, off_t n)
{
    return fails("truncate") ? errno : REAL(posix_fallocate, fd, at, n);
}

int posix_fallocate64(int fd, off64_t at, off64_t n)
{
    return fails("truncate") ? errno : REAL(posix_fallocate64, fd, at, n);
}

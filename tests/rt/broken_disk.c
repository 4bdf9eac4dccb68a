/* SPDX-License-Identifier: MIT
 *
 * A disk that breaks: preloaded into a program, it lets the first calls of one kind on regular
 * files pass and makes all later ones fail, as a disk that is full or was taken away does.
 *
 *   BROKEN_KIND=write|sync|rename|truncate   which calls
 *   BROKEN_AFTER=N                           so many succeed
 *   BROKEN_ERRNO=28                          what the others say
 *   BROKEN_COUNT=FILE                        instead: nothing fails, the number of calls is left there
 */
/* Both names of each call are defined here, so neither may stand for the other. */
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
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
    FILE *f = path != NULL ? fopen(path, "w") : NULL;
    if (f == NULL)
        return;
    fprintf(f, "%ld\n", atomic_load(&calls));
    fclose(f);
}

#pragma GCC visibility push(default)
#define REAL(name, ...) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))(__VA_ARGS__)

ssize_t write(int fd, const void *p, size_t n)
{
    return on_disk(fd) && fails("write") ? -1 : REAL(write, fd, p, n);
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
    return on_disk(fd) && fails("write") ? -1 : REAL(writev, fd, v, n);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    return on_disk(fd) && fails("write") ? -1 : REAL(pwrite, fd, p, n, at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
    return on_disk(fd) && fails("write") ? -1 : REAL(pwrite64, fd, p, n, at);
}

int fsync(int fd)
{
    return on_disk(fd) && fails("sync") ? -1 : REAL(fsync, fd);
}

int fdatasync(int fd)
{
    return on_disk(fd) && fails("sync") ? -1 : REAL(fdatasync, fd);
}

int rename(const char *from, const char *to)
{
    return fails("rename") ? -1 : REAL(rename, from, to);
}

int ftruncate(int fd, off_t n)
{
    return fails("truncate") ? -1 : REAL(ftruncate, fd, n);
}

int ftruncate64(int fd, off64_t n)
{
    return fails("truncate") ? -1 : REAL(ftruncate64, fd, n);
}

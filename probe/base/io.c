/* SPDX-License-Identifier: MIT
 *
 * io: mapped reading and paths.
 */
#include "probe/base/io.h"

#include "probe/base/arena.h"
#include "probe/base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading ---------------------------------------------------------- */

static enum ms_rc check_mappable(const struct stat *st, const char *path, size_t max,
                                 struct ms_err *err)
{
    if (S_ISDIR(st->st_mode))
        return ms_fail(err, MS_E_UNSUPPORTED, "%s: is a directory, expected a file", path);
    if (!S_ISREG(st->st_mode))
        return ms_fail(err, MS_E_UNSUPPORTED, "%s: is not a regular file", path);
    if ((uint64_t)st->st_size > max)
        return ms_fail(err, MS_E_LIMIT, "%s: %lld bytes, more than the %zu allowed", path,
                       (long long)st->st_size, max);
    return MS_OK;
}

enum ms_rc ms_file_map(struct ms_file *f, const char *path, size_t max, struct ms_err *err)
{
    *f = (struct ms_file){"", 0};
    /* O_NONBLOCK: opening a pipe must not wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return ms_fail_sys(err, "%s", path);
    struct stat st;
    enum ms_rc rc =
        fstat(fd, &st) != 0 ? ms_fail_sys(err, "%s", path) : check_mappable(&st, path, max, err);
    if (rc == MS_OK && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            rc = ms_fail_sys(err, "%s: cannot map", path);
        else
            *f = (struct ms_file){p, (size_t)st.st_size};
    }
    close(fd);
    return rc;
}

void ms_file_release(const struct ms_file *f)
{
    if (f->n != 0)
        (void)madvise((void *)(uintptr_t)f->p, f->n, MADV_DONTNEED);
}

void ms_file_release_part(const struct ms_file *f, size_t from, size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t first = (from + page - 1) / page * page, end = (from + n) / page * page;
    if (first < end && end <= f->n)
        (void)madvise((void *)(uintptr_t)(f->p + first), end - first, MADV_DONTNEED);
}

void ms_file_unmap(struct ms_file *f)
{
    if (f->n != 0)
        munmap((void *)(uintptr_t)f->p, f->n);
    *f = (struct ms_file){"", 0};
}

/* ---- paths ------------------------------------------------------------ */

enum ms_kind ms_path_kind(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return MS_KIND_NONE;
    if (S_ISDIR(st.st_mode))
        return MS_KIND_DIR;
    return S_ISREG(st.st_mode) ? MS_KIND_FILE : MS_KIND_OTHER;
}

enum ms_rc ms_want_dir(const char *path, struct ms_err *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return ms_fail_sys(err, "%s", path);
    if (S_ISDIR(st.st_mode))
        return MS_OK;
    errno = ENOTDIR;
    return ms_fail_sys(err, "%s", path);
}

enum ms_rc ms_fail_kind(const char *path, struct ms_err *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return ms_fail_sys(err, "%s", path);
    return ms_fail(err, MS_E_NOTFOUND, "%s: is neither a file nor a directory", path);
}

char *ms_path_join(const char *dir, const char *name)
{
    if (name[0] == '/' || dir[0] == '\0')
        return ms_str_dup(ms_str_of(name));
    size_t n = strlen(dir);
    bool slash = dir[n - 1] == '/';
    size_t size = n + strlen(name) + 2;
    char *p = ms_alloc(size);
    if (p != NULL)
        snprintf(p, size, "%s%s%s", dir, slash ? "" : "/", name);
    return p;
}

static struct ms_str without_slashes(const char *path)
{
    struct ms_str s = ms_str_of(path);
    while (s.n > 1 && s.p[s.n - 1] == '/')
        s.n--;
    return s;
}

struct ms_str ms_path_base(const char *path)
{
    struct ms_str s = without_slashes(path);
    int64_t at = s.n > 1 ? ms_str_rfind(s, '/') : -1;
    return ms_str_sub(s, (uint32_t)(at + 1), s.n);
}

struct ms_str ms_path_dir(const char *path)
{
    struct ms_str s = without_slashes(path);
    int64_t at = ms_str_rfind(s, '/');
    if (at < 0)
        return MS_STR(".");
    return ms_str_sub(s, 0, at == 0 ? 1 : (uint32_t)at);
}

static enum ms_rc make_dir(const char *path, struct ms_err *err)
{
    if (mkdir(path, 0777) == 0)
        return MS_OK;
    int sys = errno;
    if (ms_path_kind(path) == MS_KIND_DIR)
        return MS_OK;
    errno = sys; /* why there is none, not how it is missing */
    return ms_fail_sys(err, "%s: cannot make the directory", path);
}

/* Most often the one above is there, so it is looked for only when it is missing. */
static enum ms_rc make_dirs(char *z, struct ms_err *err)
{
    char *slash = strrchr(z, '/');
    if (mkdir(z, 0777) == 0)
        return MS_OK;
    if (errno == ENOENT && slash != NULL && slash != z) {
        *slash = '\0';
        enum ms_rc rc = make_dirs(z, err);
        *slash = '/';
        if (rc != MS_OK)
            return rc;
    }
    return make_dir(z, err);
}

enum ms_rc ms_mkdirs(const char *path, struct ms_err *err)
{
    if (path[0] == '\0')
        return ms_fail(err, MS_E_ARG, "the name of a directory is empty");
    char *z = ms_str_dup(without_slashes(path));
    if (z == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = make_dirs(z, err);
    ms_free(z);
    return rc;
}

static int by_natural_order(const void *a, const void *b)
{
    return ms_str_cmp_natural(*(const struct ms_str *)a, *(const struct ms_str *)b);
}

static enum ms_rc list_into(struct ms_dir *d, DIR *dir, const char *path, struct ms_err *err)
{
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(dir);
        if (e == NULL)
            return errno != 0 ? ms_fail_sys(err, "%s", path) : MS_OK;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        struct ms_str name = ms_arena_str(d->arena, ms_str_of(e->d_name));
        struct ms_str *slot = name.p != NULL ? ms_vec_push(&d->names) : NULL;
        if (slot == NULL)
            return ms_fail(err, MS_E_NOMEM, "%s: %s", path, ms_rc_text(MS_E_NOMEM));
        *slot = name;
    }
}

enum ms_rc ms_dir_list(struct ms_dir *d, const char *path, struct ms_err *err)
{
    *d = (struct ms_dir){.arena = ms_arena_new(SIZE_MAX)};
    if (d->arena == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", path, ms_rc_text(MS_E_NOMEM));
    DIR *dir = opendir(path);
    enum ms_rc rc = dir == NULL ? ms_fail_sys(err, "%s", path) : list_into(d, dir, path, err);
    if (dir != NULL)
        closedir(dir);
    if (rc != MS_OK)
        ms_dir_free(d);
    else if (d->names.n != 0)
        qsort(d->names.p, d->names.n, sizeof *d->names.p, by_natural_order);
    return rc;
}

void ms_dir_free(struct ms_dir *d)
{
    ms_arena_free(d->arena);
    d->arena = NULL;
    ms_vec_free(&d->names);
}

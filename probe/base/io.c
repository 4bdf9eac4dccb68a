/* SPDX-License-Identifier: MIT
 *
 * io: mapped reading, atomic writing.
 *
 * A file is written to "path.PID.tmp" and renamed into place at commit, so
 * readers see the old file or the new one.  The names of all temporaries are
 * kept in a fixed table, because the handler of Ctrl-C may neither allocate
 * nor lock when it removes them.
 */
#include "probe/base/io.h"

#include "probe/base/arena.h"
#include "probe/base/mem.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
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

void ms_file_sequential(const struct ms_file *f)
{
    if (f->n != 0)
        madvise((void *)(uintptr_t)f->p, f->n, MADV_SEQUENTIAL);
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

/* ---- temporary names -------------------------------------------------- */

enum { TMP_SLOTS = 64 };

/* The lock is between threads; the handler takes none and reads only slots in use,
 * which become so when their path is whole. */
static pthread_mutex_t tmp_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    atomic_bool used;
    char path[PATH_MAX];
} tmp_names[TMP_SLOTS];

bool ms_tmp_register(const char *path)
{
    size_t size = strlen(path) + 1;
    if (size > PATH_MAX)
        return false;
    pthread_mutex_lock(&tmp_lock);
    int i = 0;
    while (i < TMP_SLOTS && tmp_names[i].used)
        i++;
    if (i < TMP_SLOTS) {
        memcpy(tmp_names[i].path, path, size);
        tmp_names[i].used = true;
    }
    pthread_mutex_unlock(&tmp_lock);
    return i < TMP_SLOTS;
}

void ms_tmp_forget(const char *path)
{
    pthread_mutex_lock(&tmp_lock);
    for (int i = 0; i < TMP_SLOTS; i++) {
        if (tmp_names[i].used && strcmp(tmp_names[i].path, path) == 0) {
            tmp_names[i].used = false;
            break;
        }
    }
    pthread_mutex_unlock(&tmp_lock);
}

bool ms_tmp_unlink_all(void)
{
    bool any = false;
    for (int i = 0; i < TMP_SLOTS; i++) {
        if (tmp_names[i].used)
            any |= unlink(tmp_names[i].path) == 0;
    }
    return any;
}

/* ---- writing ---------------------------------------------------------- */

enum { OUT_BUFFER = 256 * 1024, LONGEST_PRINTF = 1 << 20 };
static_assert((int)MS_OUT_ROOM < (int)OUT_BUFFER, "room must fit the buffer");

struct ms_out {
    int fd;
    bool own_fd, lazy;
    size_t used;
    uint64_t flushed;
    struct ms_err err; /* the first failure */
    char *path, *tmp;  /* tmp is NULL for a descriptor or device, whose name is in path */
    char buf[OUT_BUFFER];
};

static void out_free(struct ms_out *o)
{
    ms_free(o->path);
    ms_free(o->tmp);
    ms_free(o);
}

static struct ms_out *out_new(const char *path)
{
    struct ms_out *o = ms_alloc(sizeof *o);
    if (o == NULL)
        return NULL;
    /* The buffer needs no zeroing. */
    memset(o, 0, offsetof(struct ms_out, buf));
    o->fd = -1;
    o->path = ms_str_dup(ms_str_of(path));
    if (o->path == NULL) {
        ms_free(o);
        return NULL;
    }
    return o;
}

static enum ms_rc make_parent(const char *path, struct ms_err *err)
{
    struct ms_str dir = ms_path_dir(path);
    char *z = ms_str_dup(dir);
    if (z == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_mkdirs(z, err);
    ms_free(z);
    return rc;
}

/* A link to a file stays, and the file it leads to is replaced. */
static const char *target_of(const char *path, char real[PATH_MAX])
{
    return realpath(path, real) != NULL ? real : path;
}

static enum ms_rc tmp_name(char **tmp, const char *path, struct ms_err *err)
{
    struct ms_buf b = {.max = PATH_MAX - 1};
    ms_buf_printf(&b, "%s.%d.tmp", path, (int)getpid());
    enum ms_rc rc = b.bad;
    if (rc != MS_OK) {
        ms_buf_free(&b);
        return ms_fail(err, rc, "%s: %s", path,
                       rc == MS_E_LIMIT ? "name too long" : ms_rc_text(rc));
    }
    ms_buf_z(&b);
    *tmp = b.p;
    return MS_OK;
}

static enum ms_rc new_tmp(char **tmp, const char *path, struct ms_err *err)
{
    *tmp = NULL;
    if (path[0] == '\0')
        return ms_fail(err, MS_E_ARG, "the name of the file to write is empty");
    MS_TRY(make_parent(path, err));
    enum ms_kind kind = ms_path_kind(path);
    if (kind == MS_KIND_DIR)
        return ms_fail(err, MS_E_ARG, "%s: is a directory, expected a file name", path);
    if (kind == MS_KIND_OTHER)
        return ms_fail(err, MS_E_ARG, "%s: is not a regular file", path);
    char real[PATH_MAX];
    MS_TRY(tmp_name(tmp, target_of(path, real), err));
    /* Registered before it exists, so that no moment is left in which an interrupt misses it. */
    ms_tmp_register(*tmp);
    return MS_OK;
}

/* Is it "base.PID.tmp" of a process that is gone, or the same behind "base.RANK"? */
static bool is_of_the_dead(const char *name, struct ms_str base)
{
    if (strncmp(name, base.p, base.n) != 0 || name[base.n] != '.')
        return false;
    const struct ms_str rest = ms_str_of(name + base.n);
    if (!ms_str_ends(rest, MS_STR(".tmp")) || strspn(rest.p, ".tmp0123456789") != rest.n)
        return false;
    const struct ms_str before = ms_str_sub(rest, 0, rest.n - (uint32_t)strlen(".tmp"));
    const char *dot = before.n != 0 ? memrchr(before.p, '.', before.n) : NULL;
    int64_t pid;
    return dot != NULL &&
           ms_str_i64(ms_str_sub(before, (size_t)(dot + 1 - before.p), before.n), &pid) &&
           pid > 0 && pid <= INT32_MAX && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* A process may be gone here and live on another host that shares the folder; then it writes now and
 * then. */
static bool is_old(int dir, const char *name)
{
    enum { LONG_AGO = 3600 };
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           time(NULL) - st.st_mtime > LONG_AGO;
}

/* Removes what killed processes left of their attempts at path. */
static void remove_left(const char *path)
{
    char *name = ms_str_dup(ms_path_dir(path));
    DIR *d = name != NULL ? opendir(name) : NULL;
    ms_free(name);
    if (d == NULL)
        return;
    const struct ms_str base = ms_path_base(path);
    const struct dirent *e;
    while ((e = readdir(d)) != NULL) {
        if (is_of_the_dead(e->d_name, base) && is_old(dirfd(d), e->d_name))
            unlinkat(dirfd(d), e->d_name, 0);
    }
    closedir(d);
}

enum ms_rc ms_tmp_new(char **tmp, const char *path, struct ms_err *err)
{
    char real[PATH_MAX];
    MS_TRY(new_tmp(tmp, path, err));
    remove_left(target_of(path, real));
    return MS_OK;
}

/* A device or pipe is written to as it is: a rename would replace /dev/null itself.
 * O_NONBLOCK: a pipe that nobody reads is an error, nothing to wait for. */
static enum ms_rc open_device(struct ms_out *o, const char *path, struct ms_err *err)
{
    o->own_fd = true;
    o->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (o->fd < 0)
        return ms_fail_sys(err, "%s: cannot write", path);
    fcntl(o->fd, F_SETFL, 0);
    return MS_OK;
}

/* A file that only its owner may read shall not become readable by being written anew. */
static void keep_mode(int fd, const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0)
        fchmod(fd, st.st_mode & 0777);
}

static enum ms_rc open_tmp(struct ms_out *o, const char *path, struct ms_err *err)
{
    o->own_fd = true;
    MS_TRY(new_tmp(&o->tmp, path, err));
    /* What a killed process of the same number left, or a link put there to be followed. */
    unlink(o->tmp);
    o->fd = open(o->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (o->fd >= 0) {
        keep_mode(o->fd, path);
        return MS_OK;
    }
    enum ms_rc rc = ms_fail_sys(err, "%s: cannot write", path);
    ms_tmp_forget(o->tmp);
    return rc;
}

enum ms_rc ms_out_create(struct ms_out **out, const char *path, struct ms_err *err)
{
    *out = NULL;
    struct ms_out *o = out_new(path);
    if (o == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", path, ms_rc_text(MS_E_NOMEM));
    bool device = ms_path_kind(path) == MS_KIND_OTHER;
    enum ms_rc rc = device ? open_device(o, path, err) : open_tmp(o, path, err);
    if (rc == MS_OK)
        *out = o;
    else
        out_free(o);
    return rc;
}

enum ms_rc ms_out_fd(struct ms_out **out, int fd, const char *name, struct ms_err *err)
{
    *out = out_new(name);
    if (*out == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", name, ms_rc_text(MS_E_NOMEM));
    (*out)->fd = fd;
    return MS_OK;
}

/* A shared terminal or pipe may have been made non-blocking by another program. */
static bool wait_writable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return poll(&p, 1, -1) >= 0 || errno == EINTR;
}

static void write_all(struct ms_out *o, const char *p, size_t n)
{
    while (n != 0 && o->err.rc == MS_OK) {
        ssize_t w = write(o->fd, p, n);
        if (w < 0 && (errno == EINTR || (errno == EAGAIN && wait_writable(o->fd))))
            continue;
        if (w < 0) {
            ms_fail_sys(&o->err, "%s: cannot write", o->path);
            return;
        }
        p += w;
        n -= (size_t)w;
        o->flushed += (uint64_t)w;
    }
}

static void drain(struct ms_out *o)
{
    size_t n = o->used;
    o->used = 0;
    write_all(o, o->buf, n);
}

char *ms_out_room(struct ms_out *o, size_t n)
{
    assert(n <= MS_OUT_ROOM);
    if (n > OUT_BUFFER - o->used)
        drain(o);
    return o->buf + o->used;
}

void ms_out_used(struct ms_out *o, size_t n)
{
    o->used += n;
    assert(o->used <= OUT_BUFFER);
}

void ms_out_write(struct ms_out *o, const void *p, size_t n)
{
    if (n == 0)
        return;
    if (n > OUT_BUFFER - o->used) {
        drain(o);
        if (n >= OUT_BUFFER) {
            write_all(o, p, n);
            return;
        }
    }
    memcpy(o->buf + o->used, p, n);
    o->used += n;
}

void ms_out_lazy(struct ms_out *o)
{
    o->lazy = true;
}

void ms_out_puts(struct ms_out *o, const char *z)
{
    ms_out_write(o, z, strlen(z));
}

void ms_out_str(struct ms_out *o, struct ms_str s)
{
    ms_out_write(o, s.p, s.n);
}

void ms_out_putc(struct ms_out *o, char c)
{
    *ms_out_room(o, 1) = c;
    o->used++;
}

MS_PRINTF(2, 0)
static void printf_long(struct ms_out *o, const char *fmt, va_list ap)
{
    struct ms_buf b = {.max = LONGEST_PRINTF};
    ms_buf_vprintf(&b, fmt, ap);
    if (b.bad != MS_OK)
        ms_fail(&o->err, b.bad, "%s: %s", o->path, ms_rc_text(b.bad));
    else
        ms_out_write(o, b.p, b.n);
    ms_buf_free(&b);
}

/* Short text, the usual case, is formatted where it belongs. */
void ms_out_printf(struct ms_out *o, const char *fmt, ...)
{
    char *room = ms_out_room(o, MS_OUT_ROOM);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(room, MS_OUT_ROOM, fmt, ap);
    va_end(ap);
    if (n >= 0 && n < MS_OUT_ROOM) {
        ms_out_used(o, (size_t)n);
        return;
    }
    va_start(ap, fmt);
    printf_long(o, fmt, ap);
    va_end(ap);
}

uint64_t ms_out_size(const struct ms_out *o)
{
    return o->flushed + o->used;
}

static enum ms_rc hand_over(const struct ms_out *o, struct ms_err *err)
{
    if (o->err.rc != MS_OK && err != NULL && err->rc == MS_OK)
        *err = o->err;
    return o->err.rc;
}

enum ms_rc ms_out_flush(struct ms_out *o, struct ms_err *err)
{
    drain(o);
    return hand_over(o, err);
}

/* A rename is durable only once the directory is on disk as well; a file system
 * that cannot fsync a directory is left alone. */
static void sync_parent(const char *path)
{
    struct ms_str dir = ms_path_dir(path);
    char *z = ms_str_dup(dir);
    int fd = z != NULL ? open(z, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    ms_free(z);
}

static enum ms_rc publish(int fd, const char *tmp, const char *path, bool lazy, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    if (!lazy && fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
        rc = ms_fail_sys(err, "%s: cannot write", path);
    if (close(fd) != 0 && rc == MS_OK)
        rc = ms_fail_sys(err, "%s: cannot write", path);
    char real[PATH_MAX];
    const char *target = target_of(path, real);
    if (rc == MS_OK && rename(tmp, target) != 0)
        rc = ms_fail_sys(err, "%s: cannot put in place", path);
    if (rc != MS_OK)
        unlink(tmp);
    else if (!lazy)
        sync_parent(target);
    ms_tmp_forget(tmp);
    return rc;
}

enum ms_rc ms_tmp_publish(int fd, const char *tmp, const char *path, struct ms_err *err)
{
    return publish(fd, tmp, path, false, err);
}

enum ms_rc ms_tmp_place(int fd, const char *tmp, const char *path, struct ms_err *err)
{
    return publish(fd, tmp, path, true, err);
}

/* Close and remove a file that shall not appear. */
static void discard(struct ms_out *o)
{
    close(o->fd);
    if (o->tmp == NULL)
        return;
    unlink(o->tmp);
    ms_tmp_forget(o->tmp);
}

enum ms_rc ms_out_commit(struct ms_out *o, struct ms_err *err)
{
    drain(o);
    if (o->own_fd && o->tmp != NULL && o->err.rc == MS_OK)
        (void)!publish(o->fd, o->tmp, o->path, o->lazy, &o->err); /* kept in o->err */
    else if (o->own_fd)
        discard(o);
    enum ms_rc rc = hand_over(o, err);
    out_free(o);
    return rc;
}

void ms_out_abort(struct ms_out *o)
{
    if (o == NULL)
        return;
    if (o->own_fd)
        discard(o);
    out_free(o);
}

enum ms_rc ms_stdout_finish(struct ms_err *err)
{
    if (fflush(stdout) != 0)
        return ms_fail_sys(err, "standard output: cannot write");
    if (ferror(stdout) != 0) /* errno has long been about something else */
        return ms_fail(err, MS_E_IO, "standard output: an earlier write failed");
    return MS_OK;
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

/* SPDX-License-Identifier: MIT
 *
 * io_write: files that appear whole or not at all, and buffered writing with a kept first failure.
 *
 * Where the file system can, what is written has no name until it is whole
 * (O_TMPFILE), so that even a killed process leaves nothing.  Elsewhere, and
 * for writers that need a real name, it is "path.PID.tmp", renamed into place;
 * the names of all such are kept in a fixed table, because the handler of
 * Ctrl-C may neither allocate nor lock when it removes them.
 */
#include "probe/base/io.h"

#include "probe/base/mem.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- names that an interrupt removes ---------------------------------- */
enum { TMP_SLOTS = 64, TREE_DEPTH = 4 };

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

/* Allocates nothing, as it is called by the handler too.  depth: of folders below this one. */
static bool remove_tree(int parent, const char *name, int depth)
{
    _Alignas(struct dirent64) char list[2048];
    int dir =
        depth >= 0 ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    ssize_t n;
    while (dir >= 0 && (n = getdents64(dir, list, sizeof list)) > 0) {
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *e = (const void *)(list + at);
            at += e->d_reclen;
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
                unlinkat(dir, e->d_name, 0) != 0)
                remove_tree(dir, e->d_name, depth - 1);
        }
    }
    if (dir >= 0)
        close(dir);
    return unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

bool ms_tmp_remove(const char *path)
{
    return unlink(path) == 0 || (errno == EISDIR && remove_tree(AT_FDCWD, path, TREE_DEPTH));
}

bool ms_tmp_unlink_all(void)
{
    bool any = false;
    for (int i = 0; i < TMP_SLOTS; i++) {
        if (tmp_names[i].used)
            any |= ms_tmp_remove(tmp_names[i].path);
    }
    return any;
}
/* ---- making one ------------------------------------------------------- */

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

static enum ms_rc check_place(const char *path, struct ms_err *err)
{
    if (path[0] == '\0')
        return ms_fail(err, MS_E_ARG, "the name of the file to write is empty");
    MS_TRY(make_parent(path, err));
    enum ms_kind kind = ms_path_kind(path);
    if (kind == MS_KIND_DIR)
        return ms_fail(err, MS_E_ARG, "%s: is a directory, expected a file name", path);
    if (kind == MS_KIND_OTHER)
        return ms_fail(err, MS_E_ARG, "%s: is not a regular file", path);
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
    *tmp = NULL;
    MS_TRY(check_place(path, err));
    MS_TRY(tmp_name(tmp, target_of(path, real), err));
    /* Registered before it exists, so that no moment is left in which an interrupt misses it. */
    ms_tmp_register(*tmp);
    remove_left(target_of(path, real));
    return MS_OK;
}

/* A file that only its owner may read shall not become readable by being written anew. */
static void keep_mode(int fd, const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0)
        fchmod(fd, st.st_mode & 0777);
}

/* Where a file without a name is found while fd is open on it. */
#define BY_NUMBER "/proc/self/fd/"

static bool is_nameless(const char *tmp)
{
    return strncmp(tmp, BY_NUMBER, strlen(BY_NUMBER)) == 0;
}

/* A file without a name in the folder of tmp.  A tmp that is there already, or too long, is left to
 * open_named. */
static int open_nameless(const char *tmp)
{
    struct stat st;
    if (lstat(tmp, &st) == 0 || errno != ENOENT)
        return -1;
    char *folder = ms_str_dup(ms_path_dir(tmp));
    int fd = folder != NULL ? open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666) : -1;
    ms_free(folder);
    return fd;
}

/* Replaces *tmp by the way to fd; false where there is none, as without /proc. */
static bool take_number(char **tmp, int fd)
{
    char way[sizeof BY_NUMBER + 16];
    snprintf(way, sizeof way, "%s%d", BY_NUMBER, fd);
    char *name = fd >= 0 && access(way, F_OK) == 0 ? ms_str_dup(ms_str_of(way)) : NULL;
    if (name == NULL)
        return false;
    ms_free(*tmp);
    *tmp = name;
    return true;
}

static int open_named(const char *tmp)
{
    ms_tmp_register(tmp);
    /* What a killed process of the same number left, or a link put there to be followed. */
    unlink(tmp);
    return open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static enum ms_rc open_either(int *fd, char **tmp, const char *path, struct ms_err *err)
{
    *fd = open_nameless(*tmp);
    if (!take_number(tmp, *fd)) {
        if (*fd >= 0)
            close(*fd);
        *fd = open_named(*tmp);
    }
    if (*fd >= 0) {
        keep_mode(*fd, path);
        return MS_OK;
    }
    enum ms_rc rc = ms_fail_sys(err, "%s: cannot write", path);
    ms_tmp_forget(*tmp);
    return rc;
}

enum ms_rc ms_tmp_open(int *fd, char **tmp, const char *path, struct ms_err *err)
{
    char real[PATH_MAX];
    *tmp = NULL;
    MS_TRY(check_place(path, err));
    MS_TRY(tmp_name(tmp, target_of(path, real), err));
    enum ms_rc rc = open_either(fd, tmp, path, err);
    if (rc != MS_OK) {
        ms_free(*tmp);
        *tmp = NULL;
    }
    return rc;
}

void ms_tmp_discard(int fd, const char *tmp)
{
    close(fd);
    if (!is_nameless(tmp))
        unlink(tmp);
    ms_tmp_forget(tmp);
}

/* ---- putting it in place ---------------------------------------------- */

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

static bool copy_all(int from, int to)
{
    ssize_t n = 1;
    while (n > 0)
        n = sendfile(to, from, NULL, 1 << 30);
    return n == 0 && fsync(to) == 0;
}

/* For the places where files may be made and renamed but not linked. */
static bool copy_to(const char *tmp, const char *named)
{
    struct stat st;
    int from = open(tmp, O_RDONLY | O_CLOEXEC);
    int to = open(named, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool whole = from >= 0 && to >= 0 && fstat(from, &st) == 0 &&
                 fchmod(to, st.st_mode & 0777) == 0 && copy_all(from, to);
    int sys = errno;
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    errno = sys;
    return whole;
}

/* A link replaces nothing, so that a file which is there gets its successor by a name beside it. */
static bool give_name(const char *tmp, const char *target)
{
    if (linkat(AT_FDCWD, tmp, AT_FDCWD, target, AT_SYMLINK_FOLLOW) == 0)
        return true;
    char beside[PATH_MAX + 32];
    snprintf(beside, sizeof beside, "%s.%d.tmp", target, (int)getpid());
    ms_tmp_register(beside);
    unlink(beside);
    bool there =
        linkat(AT_FDCWD, tmp, AT_FDCWD, beside, AT_SYMLINK_FOLLOW) == 0 || copy_to(tmp, beside);
    bool placed = there && rename(beside, target) == 0;
    int sys = errno;
    if (!placed)
        unlink(beside);
    ms_tmp_forget(beside);
    errno = sys;
    return placed;
}

/* Some file systems tell only at close what they could not write. */
static bool is_written(int fd, bool lazy)
{
    if (!lazy && fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
        return false;
    int copy = dup(fd);
    return copy < 0 || close(copy) == 0;
}

static enum ms_rc publish(int fd, const char *tmp, const char *path, bool lazy, struct ms_err *err)
{
    char real[PATH_MAX];
    const char *target = target_of(path, real);
    enum ms_rc rc = MS_OK;
    if (!is_written(fd, lazy))
        rc = ms_fail_sys(err, "%s: cannot write", path);
    else if (is_nameless(tmp) ? !give_name(tmp, target) : rename(tmp, target) != 0)
        rc = ms_fail_sys(err, "%s: cannot put in place", path);
    if (rc != MS_OK) {
        ms_tmp_discard(fd, tmp);
        return rc;
    }
    if (!lazy)
        sync_parent(target);
    close(fd);
    ms_tmp_forget(tmp);
    return MS_OK;
}

enum ms_rc ms_tmp_publish(int fd, const char *tmp, const char *path, struct ms_err *err)
{
    return publish(fd, tmp, path, false, err);
}

enum ms_rc ms_tmp_place(int fd, const char *tmp, const char *path, struct ms_err *err)
{
    return publish(fd, tmp, path, true, err);
}

/* ---- buffered writing ------------------------------------------------------ */

enum { OUT_BUFFER = 256 * 1024, LONGEST_PRINTF = 1 << 20, SEND_EARLY = 8 << 20 };
static_assert((int)MS_OUT_ROOM < (int)OUT_BUFFER, "room must fit the buffer");

struct ms_out {
    int fd;
    bool lazy;
    size_t used;
    uint64_t flushed, sent;
    struct ms_err err; /* the first failure */
    char *path, *tmp;  /* tmp is NULL for a device, whose name is in path */
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

/* A device or pipe is written to as it is: a rename would replace /dev/null itself.
 * O_NONBLOCK: a pipe that nobody reads is an error, nothing to wait for. */
static enum ms_rc open_device(struct ms_out *o, const char *path, struct ms_err *err)
{
    o->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (o->fd < 0)
        return ms_fail_sys(err, "%s: cannot write", path);
    fcntl(o->fd, F_SETFL, 0);
    return MS_OK;
}

static enum ms_rc open_file(struct ms_out *o, const char *path, struct ms_err *err)
{
    return ms_tmp_open(&o->fd, &o->tmp, path, err);
}

enum ms_rc ms_out_create(struct ms_out **out, const char *path, struct ms_err *err)
{
    *out = NULL;
    struct ms_out *o = out_new(path);
    if (o == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", path, ms_rc_text(MS_E_NOMEM));
    bool device = ms_path_kind(path) == MS_KIND_OTHER;
    enum ms_rc rc = device ? open_device(o, path, err) : open_file(o, path, err);
    if (rc == MS_OK)
        *out = o;
    else
        out_free(o);
    return rc;
}

/* What is on its way to the disk early needs not be waited for in the end. */
static void send_early(struct ms_out *o)
{
    uint64_t n = o->flushed - o->sent;
    if (o->tmp == NULL || o->lazy || n < SEND_EARLY)
        return;
    (void)sync_file_range(o->fd, (off_t)o->sent, (off_t)n, SYNC_FILE_RANGE_WRITE);
    o->sent = o->flushed;
}

static void write_all(struct ms_out *o, const char *p, size_t n)
{
    while (n != 0 && o->err.rc == MS_OK) {
        ssize_t w = write(o->fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0) {
            ms_fail_sys(&o->err, "%s: cannot write", o->path);
            return;
        }
        p += w;
        n -= (size_t)w;
        o->flushed += (uint64_t)w;
    }
    send_early(o);
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

static void discard(struct ms_out *o)
{
    if (o->tmp != NULL)
        ms_tmp_discard(o->fd, o->tmp);
    else
        close(o->fd);
}

static void publish_out(struct ms_out *o)
{
    (void)!(o->lazy ? ms_tmp_place(o->fd, o->tmp, o->path, &o->err) /* kept in o->err */
                    : ms_tmp_publish(o->fd, o->tmp, o->path, &o->err));
}

enum ms_rc ms_out_commit(struct ms_out *o, struct ms_err *err)
{
    drain(o);
    if (o->tmp != NULL && o->err.rc == MS_OK)
        publish_out(o);
    else
        discard(o);
    enum ms_rc rc = hand_over(o, err);
    out_free(o);
    return rc;
}

void ms_out_abort(struct ms_out *o)
{
    if (o == NULL)
        return;
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

/* SPDX-License-Identifier: MIT
 *
 * io_write: files that appear whole or not at all, and buffered writing with a kept first failure.
 *
 * Where the file system supports O_TMPFILE, a file has no name until it is complete, so that even a
 * killed process leaves nothing behind. Elsewhere, and for writers that need a real name, the file
 * is "path.PID.RANDOM.tmp" and is renamed into place. The random part is needed because process ids
 * can be equal in two containers that share a folder. A fixed table holds all these names, because
 * the handler of Ctrl-C, which removes the files, may neither allocate nor lock.
 *
 * When two processes write one file, the process that finishes last leaves the file of the other
 * unchanged: a writer remembers what was at the path when it began.
 */
#include "probe/base/io_int.h"

#include "probe/base/calm.h"
#include "probe/base/mem.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { RANDOM_BYTES = 16, RANDOM_TEXT = 2 * RANDOM_BYTES };

/* ---- making a temporary name ----------------------------------------------- */

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

/* Returns the file to replace. A symbolic link stays, and the file that the link leads to is
 * replaced. */
static const char *target_of(const char *path, char real[PATH_MAX])
{
    return realpath(path, real) != NULL ? real : path;
}

/* Draws random hexadecimal digits, so that names are unique across hosts. */
static bool draw_random(char text[RANDOM_TEXT + 1])
{
    unsigned char raw[RANDOM_BYTES];
    if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
        return false;
    for (int i = 0; i < RANDOM_BYTES; i++)
        snprintf(text + (ptrdiff_t)2 * i, 3, "%02x", raw[i]);
    return true;
}

/* Returns the prefix of a name that is kept in its temporary name, so that the temporary name fits
 * NAME_MAX. */
static struct ms_str kept_part(struct ms_str base)
{
    enum { BEHIND = sizeof ".2147483647..tmp" - 1 + RANDOM_TEXT };
    return ms_str_sub(base, 0, base.n < NAME_MAX - BEHIND ? base.n : NAME_MAX - BEHIND);
}

static enum ms_rc tmp_name(char **tmp, const char *path, struct ms_err *err)
{
    struct ms_buf b = {.max = PATH_MAX - 1};
    char drawn[RANDOM_TEXT + 1];
    if (!draw_random(drawn))
        return ms_fail_sys(err, "%s: no random number for a temporary name", path);
    const struct ms_str base = ms_path_base(path);
    ms_buf_printf(&b, "%.*s%.*s.%d.%s.tmp", (int)(base.p - path), path, MS_STR_ARG(kept_part(base)),
                  (int)getpid(), drawn);
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
    if (ms_path_base(path).n > NAME_MAX) {
        errno = ENAMETOOLONG;
        return ms_fail_sys(err, "%s: cannot write", path);
    }
    MS_TRY(make_parent(path, err));
    enum ms_kind kind = ms_path_kind(path);
    if (kind == MS_KIND_DIR)
        return ms_fail(err, MS_E_ARG, "%s: is a directory, expected a file name", path);
    if (kind == MS_KIND_OTHER)
        return ms_fail(err, MS_E_ARG, "%s: is not a regular file", path);
    return MS_OK;
}

/* Tells whether every part between dots is hexadecimal digits or "tmp", as in the temporary name of
 * a temporary name. */
static bool is_all_ours(struct ms_str parts)
{
    struct ms_str part;
    while (ms_str_split(&parts, '.', &part)) {
        size_t hex = 0;
        while (hex < part.n && memchr("0123456789abcdef", part.p[hex], 16) != NULL)
            hex++;
        if (hex != part.n && !ms_str_is(part, "tmp"))
            return false;
    }
    return true;
}

/* Tells whether the name is "base.PID.RANDOM.tmp" or "base.RANK.PID.RANDOM.tmp" of a process that
 * no longer exists, or that of its journal. */
static bool is_of_the_dead(const char *name, struct ms_str base)
{
    if (strncmp(name, base.p, base.n) != 0 || name[base.n] != '.')
        return false;
    struct ms_str rest = ms_str_of(name + base.n);
    const struct ms_str journal = MS_STR("-journal");
    rest.n -= ms_str_ends(rest, journal) ? journal.n : 0;
    if (rest.n < RANDOM_TEXT + 5 || !ms_str_ends(rest, MS_STR(".tmp")))
        return false;
    rest.n -= RANDOM_TEXT + 5;
    const char *drawn = rest.p + rest.n;
    if (*drawn != '.' || strspn(drawn + 1, "0123456789abcdef") != RANDOM_TEXT)
        return false;
    const char *dot = rest.n != 0 ? memrchr(rest.p, '.', rest.n) : NULL;
    int64_t pid;
    return dot != NULL && is_all_ours(rest) &&
           ms_str_i64(ms_str_sub(rest, (size_t)(dot + 1 - rest.p), rest.n), &pid) && pid > 0 &&
           pid <= INT32_MAX && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* Tells whether a file was last written over an hour ago. A process id unknown on this host may be
 * alive on another host that shares the folder; such a process writes its file now and then. */
static bool is_old(int dir, const char *name)
{
    enum { LONG_AGO = 3600 };
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           time(NULL) - st.st_mtime > LONG_AGO;
}

/* Removes temporary files that killed processes left beside path. */
static void remove_left(const char *path)
{
    char *name = ms_str_dup(ms_path_dir(path));
    DIR *d = name != NULL ? opendir(name) : NULL;
    ms_free(name);
    if (d == NULL)
        return;
    const struct ms_str base = kept_part(ms_path_base(path));
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
    /* Registered before the file exists, so that an interrupt in between cannot leave the file
     * behind. */
    ms_tmp_register(*tmp);
    enum ms_rc rc = ms_tmp__remember(*tmp, path, err);
    if (rc == MS_OK) {
        remove_left(target_of(path, real));
        return MS_OK;
    }
    ms_tmp_forget(*tmp);
    ms_free(*tmp);
    *tmp = NULL;
    return rc;
}

/* Copies the permissions of the file at path, so that rewriting a private file does not make it
 * readable for others. */
static void keep_mode(int fd, const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0)
        fchmod(fd, st.st_mode & 0777);
}

/* Path prefix of an unnamed file while its descriptor is open. */
#define BY_NUMBER "/proc/self/fd/"

static bool is_nameless(const char *tmp)
{
    return strncmp(tmp, BY_NUMBER, strlen(BY_NUMBER)) == 0;
}

/* Opens an unnamed file in the folder of tmp; -1 when that fails, or when tmp exists or is too
 * long, which open_named then reports. */
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

/* Replaces *tmp by the /proc path of fd; false when there is none, for example without /proc. */
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
    if (*fd < 0) {
        enum ms_rc rc = ms_fail_sys(err, "%s: cannot write", path);
        ms_tmp_forget(*tmp);
        return rc;
    }
    keep_mode(*fd, path);
    enum ms_rc rc = ms_tmp__remember(*tmp, path, err);
    if (rc != MS_OK)
        ms_tmp_discard(*fd, *tmp);
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

/* ---- renaming into place ---------------------------------------------- */

/* Makes a rename durable, which needs the directory on disk as well. A file system that cannot
 * fsync a directory is left alone. */
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

/* Copies the file, for file systems that allow creating and renaming but not linking. */
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

static bool give_name_beside(const char *tmp, const char *beside, const char *target)
{
    ms_tmp_register(beside);
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

/* Gives an unnamed file its name. linkat cannot replace an existing file, so in that case the file
 * first gets a name beside the target and is renamed over it. */
static enum ms_rc give_name(const char *tmp, const char *target, const char *path,
                            struct ms_err *err)
{
    char *beside;
    if (linkat(AT_FDCWD, tmp, AT_FDCWD, target, AT_SYMLINK_FOLLOW) == 0)
        return MS_OK;
    MS_TRY(tmp_name(&beside, target, err));
    const bool placed = give_name_beside(tmp, beside, target);
    const int sys = errno;
    ms_free(beside);
    errno = sys;
    return placed ? MS_OK : ms_fail_sys(err, "%s: cannot put in place", path);
}

static enum ms_rc put_in_place(const char *tmp, const char *target, const char *path,
                               struct ms_err *err)
{
    if (is_nameless(tmp))
        return give_name(tmp, target, path, err);
    return rename(tmp, target) == 0 ? MS_OK : ms_fail_sys(err, "%s: cannot put in place", path);
}

/* Calls fsync and close; some file systems report a failed write only at close. */
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
    else if (ms_tmp__was_written(tmp, target))
        rc = ms_fail(err, MS_E_IO,
                     "%s: another process wrote it meanwhile; that file is left alone", path);
    else
        rc = put_in_place(tmp, target, path, err);
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
    char *path, *tmp;  /* tmp is NULL for a device, which is written at path */
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
    /* Everything but the buffer, which needs no zeroing. */
    memset(o, 0, offsetof(struct ms_out, buf));
    o->fd = -1;
    o->path = ms_str_dup(ms_str_of(path));
    if (o->path == NULL) {
        ms_free(o);
        return NULL;
    }
    return o;
}

/* Opens a device or pipe directly, because a rename would replace /dev/null itself. With O_NONBLOCK
 * a pipe without a reader is an error instead of a wait. */
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

/* Starts writing full pieces to the disk early, so that the final fsync waits for less. */
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
        struct ms_calm calm = {.is_off = true};
        if (o->tmp != NULL) /* a file, and not a pipe of the command line */
            ms_calm_file(&calm);
        ssize_t w = write(o->fd, p, n);
        ms_calm_end(&calm);
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

enum ms_rc ms_out_sink(void *ctx, const char *p, size_t n, struct ms_err *err)
{
    (void)err;
    ms_out_write(ctx, p, n);
    return MS_OK;
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

/* Formats short text, the usual case, directly in the buffer. */
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

static void discard_file(struct ms_out *o)
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
        discard_file(o);
    enum ms_rc rc = hand_over(o, err);
    out_free(o);
    return rc;
}

void ms_out_abort(struct ms_out *o)
{
    if (o == NULL)
        return;
    discard_file(o);
    out_free(o);
}

enum ms_rc ms_stdout_finish(struct ms_err *err)
{
    if (fflush(stdout) != 0)
        return ms_fail_sys(err, "standard output: cannot write");
    if (ferror(stdout) != 0) /* errno no longer belongs to the failed write */
        return ms_fail(err, MS_E_IO, "standard output: an earlier write failed");
    return MS_OK;
}

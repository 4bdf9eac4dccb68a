/* SPDX-License-Identifier: MIT
 *
 * io_write: buffered writing with a kept first failure.
 */
#include "probe/base/io.h"

#include "probe/base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

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

static void publish(struct ms_out *o)
{
    (void)!(o->lazy ? ms_tmp_place(o->fd, o->tmp, o->path, &o->err) /* kept in o->err */
                    : ms_tmp_publish(o->fd, o->tmp, o->path, &o->err));
}

enum ms_rc ms_out_commit(struct ms_out *o, struct ms_err *err)
{
    drain(o);
    if (o->tmp != NULL && o->err.rc == MS_OK)
        publish(o);
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

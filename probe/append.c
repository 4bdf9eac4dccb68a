/* SPDX-License-Identifier: MIT
 *
 * append: growing documents.
 *
 * One write puts the new members and the tail over the old tail, so a reader
 * meets a complete document at any time, and a kill in the middle of the write
 * costs at most what that write was adding.
 */
#include "probe/append.h"

#include "probe/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

/* One record's text at most; a tensor's description is a few hundred bytes. */
#define TEXT_MAX ((size_t)1 << 30)

enum ms_rc probe__append_open(struct probe__append *a, const char *path, const char *tail_0,
                              const char *tail, struct ms_err *err)
{
    struct ms_buf text = a->json.buf; /* of a file before this one */
    *a = (struct probe__append){.fd = -1, .tail_0 = tail_0, .tail = tail};
    ms_jwrite_init(&a->json, 1, TEXT_MAX);
    a->json.buf.p = text.p;
    a->json.buf.cap = text.cap;
    a->path = ms_str_dup(ms_str_of(path));
    if (a->path == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", path, ms_rc_text(MS_E_NOMEM));
    a->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (a->fd >= 0)
        return MS_OK;
    ms_fail_sys(err, "%s: cannot write", path);
    probe__append_close(a);
    return err != NULL ? err->rc : MS_E_IO;
}

static enum ms_rc write_at(const struct probe__append *a, struct iovec *part, uint64_t at,
                           struct ms_err *err)
{
    for (unsigned i = 0; i < 2;) {
        ssize_t n = pwritev(a->fd, part + i, (int)(2 - i), (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ms_fail_sys(err, "%s: cannot write", a->path);
        at += (uint64_t)n;
        for (; i < 2 && (size_t)n >= part[i].iov_len; i++)
            n -= (ssize_t)part[i].iov_len;
        if (i < 2) {
            part[i].iov_base = (char *)part[i].iov_base + n;
            part[i].iov_len -= (size_t)n;
        }
    }
    return MS_OK;
}

/* A full disk took part of a write: put the old tail back, whose place is there already. */
static void take_back(const struct probe__append *a)
{
    size_t n = a->in_file != NULL ? strlen(a->in_file) : 0;
    struct iovec part[2] = {{(void *)(uintptr_t)a->in_file, n}, {NULL, 0}};
    if (n != 0 && write_at(a, part, a->end, NULL) == MS_OK)
        (void)!ftruncate(a->fd, (off_t)(a->end + n)); /* the failure to report has happened */
}

enum ms_rc probe__append_flush(struct probe__append *a, struct ms_err *err)
{
    if (a->json.err.rc != MS_OK)
        return ms_fail(err, a->json.err.rc, "%s: %s", a->path, a->json.err.msg);
    const char *tail = a->members ? a->tail : a->tail_0;
    if (a->json.buf.n == 0 && a->in_file == tail)
        return MS_OK; /* it is all there */
    struct iovec part[2] = {{a->json.buf.p, a->json.buf.n},
                            {(void *)(uintptr_t)tail, strlen(tail)}};
    /* The official readers take this lock.  One that holds it must not stall the program that
     * dumps, and need not: the document is complete on both sides of the write. */
    bool locked = flock(a->fd, LOCK_EX | LOCK_NB) == 0;
    enum ms_rc rc = write_at(a, part, a->end, err);
    if (rc == MS_OK) {
        a->end += a->json.buf.n;
        a->in_file = tail;
        ms_buf_clear(&a->json.buf);
    } else {
        take_back(a);
    }
    if (locked)
        flock(a->fd, LOCK_UN);
    return rc;
}

void probe__append_member(struct probe__append *a, struct ms_str text)
{
    ms_jwrite_members(&a->json, text);
    a->members = true;
}

void probe__append_close(struct probe__append *a)
{
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
    ms_free(a->path);
    a->path = NULL;
}

void probe__append_free(struct probe__append *a)
{
    ms_jwrite_free(&a->json);
}

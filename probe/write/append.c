/* SPDX-License-Identifier: MIT
 *
 * append: JSON documents that grow at their end.
 *
 * A reader sees a complete document at any time: an addition becomes visible at once or, when the
 * process is killed during the write, not at all.
 */
#include "probe/write/append.h"

#include "probe/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

/* Most bytes of one record's text; the description of a tensor takes a few hundred. */
#define TEXT_MAX ((size_t)1 << 30)

/* Opens the directory of "dir/name" and builds the hidden name of the second file in it. */
static enum ms_rc open_dir(struct probe__append *a, struct ms_err *err)
{
    const char *slash = strrchr(a->path, '/');
    size_t dir_n = slash != NULL ? (size_t)(slash - a->path) + 1 : 0;
    char *dir = dir_n != 0 ? ms_str_dup((struct ms_str){a->path, (uint32_t)dir_n})
                           : ms_str_dup(MS_STR("."));
    struct ms_buf name = {.max = TEXT_MAX};
    ms_buf_printf(&name, ".%s.next", a->path + dir_n);
    a->next_name = name.bad == MS_OK ? ms_str_dup(ms_buf_slice(&name)) : NULL;
    ms_buf_free(&name);
    if (dir != NULL && a->next_name != NULL)
        a->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ms_free(dir);
    if (a->next_name == NULL || dir == NULL)
        return ms_no_memory(err);
    return a->dir >= 0 ? MS_OK : ms_fail_sys(err, "%s: cannot write", a->path);
}

static const char *name_of(const struct probe__append *a)
{
    const char *slash = strrchr(a->path, '/');
    return slash != NULL ? slash + 1 : a->path;
}

static enum ms_rc open_next(struct probe__append *a, struct ms_err *err)
{
    a->next = openat(a->dir, a->next_name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    a->next_end = 0;
    return a->next >= 0 ? MS_OK : ms_fail_sys(err, "%s: cannot write", a->path);
}

static void drop_next(struct probe__append *a)
{
    if (a->next < 0)
        return;
    close(a->next);
    a->next = -1;
    (void)unlinkat(a->dir, a->next_name, 0);
}

enum ms_rc probe__append_open(struct probe__append *a, const char *path, const char *tail_0,
                              const char *tail, struct ms_err *err)
{
    struct ms_buf text = a->json.buf, behind = a->behind; /* reused buffers */
    *a = (struct probe__append){
        .fd = -1, .dir = -1, .next = -1, .tail_0 = tail_0, .tail = tail, .behind = behind};
    ms_jwrite_init(&a->json, 1, TEXT_MAX);
    a->json.buf.p = text.p;
    a->json.buf.cap = text.cap;
    a->behind.max = a->json.buf.max;
    ms_buf_clear(&a->behind);
    a->path = ms_str_dup(ms_str_of(path));
    if (a->path == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", path, ms_rc_text(MS_E_NOMEM));
    enum ms_rc rc = open_dir(a, err);
    if (rc == MS_OK)
        rc = open_next(a, err);
    if (rc != MS_OK)
        probe__append_close(a);
    return rc;
}

/* ---- writing ---------------------------------------------------------- */

static enum ms_rc write_at(const struct probe__append *a, int fd, struct iovec *part, unsigned n,
                           uint64_t at, struct ms_err *err)
{
    for (unsigned i = 0; i < n;) {
        ssize_t done = pwritev(fd, part + i, (int)(n - i), (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return ms_fail_sys(err, "%s: cannot write", a->path);
        at += (uint64_t)done;
        for (; i < n && (size_t)done >= part[i].iov_len; i++)
            done -= (ssize_t)part[i].iov_len;
        if (i < n) {
            part[i].iov_base = (char *)part[i].iov_base + done;
            part[i].iov_len -= (size_t)done;
        }
    }
    return MS_OK;
}

static struct iovec part_of(const char *p, size_t n)
{
    return (struct iovec){(void *)(uintptr_t)p, n};
}

/* Restores the old tail after a write that a full disk cut short; its bytes are already
 * allocated. */
static void take_back(const struct probe__append *a)
{
    size_t n = a->in_file != NULL ? strlen(a->in_file) : 0;
    struct iovec part = part_of(a->in_file, n);
    if (n != 0 && write_at(a, a->fd, &part, 1, a->end, NULL) == MS_OK)
        (void)!ftruncate(a->fd, (off_t)(a->end + n)); /* the failed write is the error to report */
}

/* Tells whether `behind` holds the whole body; a second file then needs no copy of the first. */
static bool is_whole(const struct probe__append *a)
{
    return a->behind.n == a->end;
}

/* Records that the pending text is written to the first file alone. */
static void note_behind(struct probe__append *a)
{
    enum { WHOLE_MAX = 1 << 16 };
    if (a->next < 0 && (!is_whole(a) || a->end + a->json.buf.n > WHOLE_MAX))
        return; /* `behind` would no longer hold the whole body */
    ms_buf_str(&a->behind, ms_buf_slice(&a->json.buf));
    if (a->behind.bad == MS_OK)
        return;
    ms_buf_clear(&a->behind);
    drop_next(a); /* the second file is made anew at the next flush that needs one */
}

static enum ms_rc write_here(struct probe__append *a, const char *tail, struct ms_err *err)
{
    struct iovec part[2] = {part_of(a->json.buf.p, a->json.buf.n), part_of(tail, strlen(tail))};
    enum ms_rc rc = write_at(a, a->fd, part, 2, a->end, err);
    if (rc != MS_OK) {
        take_back(a);
        return rc;
    }
    note_behind(a);
    a->end += a->json.buf.n;
    return MS_OK;
}

/* Creates a second file, whose body together with `behind` equals the body of the first. */
static enum ms_rc make_next(struct probe__append *a, struct ms_err *err)
{
    char block[1 << 14];
    MS_TRY(open_next(a, err));
    if (is_whole(a))
        return MS_OK;
    ms_buf_clear(&a->behind);
    while (a->next_end < a->end) {
        uint64_t left = a->end - a->next_end;
        ssize_t n =
            pread(a->fd, block, left < sizeof block ? left : sizeof block, (off_t)a->next_end);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return ms_fail_sys(err, "%s: cannot read", a->path);
        struct iovec part = part_of(block, (size_t)n);
        MS_TRY(write_at(a, a->next, &part, 1, a->next_end, err));
        a->next_end += (uint64_t)n;
    }
    return MS_OK;
}

static void swap_files(struct probe__append *a)
{
    const int fd = a->fd;
    const uint64_t end = a->end;
    a->fd = a->next;
    a->next = fd;
    a->end = a->next_end + a->behind.n + a->json.buf.n;
    a->next_end = end;
    struct ms_buf text = a->behind;
    a->behind = a->json.buf;
    a->json.buf = text;
}

/* Makes the second file the visible one. */
static enum ms_rc show_next(struct probe__append *a, struct ms_err *err)
{
    bool is_first = a->fd < 0;
    if (!is_first && renameat2(a->dir, a->next_name, a->dir, name_of(a), RENAME_EXCHANGE) == 0) {
        swap_files(a);
        return MS_OK;
    }
    if (renameat(a->dir, a->next_name, a->dir, name_of(a)) != 0)
        return ms_fail_sys(err, "%s: cannot write", a->path);
    swap_files(a);
    if (a->next >= 0)
        close(a->next); /* replaced by the renameat: not all file systems can exchange files */
    a->next = -1;
    a->in_place = !is_first;
    return MS_OK;
}

static enum ms_rc write_beside(struct probe__append *a, const char *tail, struct ms_err *err)
{
    enum ms_rc rc = a->next < 0 ? make_next(a, err) : MS_OK;
    struct iovec part[3] = {part_of(a->behind.p, a->behind.n),
                            part_of(a->json.buf.p, a->json.buf.n), part_of(tail, strlen(tail))};
    if (rc == MS_OK)
        rc = write_at(a, a->next, part, 3, a->next_end, err);
    if (rc == MS_OK)
        rc = show_next(a, err);
    if (rc != MS_OK)
        drop_next(a); /* frees its space when the disk is full */
    return rc;
}

/* Tells whether the text and its tail lie within one page of the file. No system has pages
 * smaller than PAGE. */
static bool fits_page(const struct probe__append *a, const char *tail)
{
    enum { PAGE = 4096 };
    return a->end / PAGE == (a->end + a->json.buf.n + strlen(tail) - 1) / PAGE;
}

enum ms_rc probe__append_flush(struct probe__append *a, struct ms_err *err)
{
    if (a->json.err.rc != MS_OK)
        return ms_fail(err, a->json.err.rc, "%s: %s", a->path, a->json.err.msg);
    const char *tail = a->members ? a->tail : a->tail_0;
    if (a->json.buf.n == 0 && a->in_file == tail)
        return MS_OK; /* nothing to write */
    if (a->dir < 0)
        return ms_fail(err, MS_E_IO, "%s: is closed", a->path != NULL ? a->path : "?");
    /* The official readers take this lock. A reader that holds the lock must not stall the
     * training, and need not: the document is complete before and after the write. */
    const int fd = a->fd;
    bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    bool here = fd >= 0 && (a->in_place || fits_page(a, tail));
    enum ms_rc rc = here ? write_here(a, tail, err) : write_beside(a, tail, err);
    if (rc == MS_OK) {
        a->in_file = tail;
        ms_buf_clear(&a->json.buf);
    }
    if (locked && (fd == a->fd || fd == a->next))
        flock(fd, LOCK_UN);
    return rc;
}

void probe__append_member(struct probe__append *a, struct ms_str text)
{
    ms_jwrite_members(&a->json, text);
    a->members = true;
}

void probe__append_close(struct probe__append *a)
{
    if (a->path == NULL)
        return; /* was never opened */
    drop_next(a);
    if (a->fd >= 0)
        close(a->fd);
    if (a->dir >= 0)
        close(a->dir);
    a->fd = a->dir = -1;
    ms_free(a->path);
    ms_free(a->next_name);
    a->path = a->next_name = NULL;
}

void probe__append_free(struct probe__append *a)
{
    ms_jwrite_free(&a->json);
    ms_buf_free(&a->behind);
}

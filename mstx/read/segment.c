/* SPDX-License-Identifier: MIT
 *
 * segment: opens one segment file.  The file is untrusted: each header field is
 * checked, and the number of records is the least of the head, the capacity and
 * the size of the file.
 */
#include "mstx/read/segment.h"

#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { COPY_TRIES_MAX = 8 };
static const size_t SEGMENT_BYTES_MAX = (size_t)1 << 34;

void mstx__problem(const struct mstx_problems *to, const char *file, struct ms_err *err)
{
    to->fn(to->ctx, file, err);
    ms_err_clear(err);
}

void mstx__problem_text(const struct mstx_problems *to, const char *file, const char *fmt, ...)
{
    struct ms_err err = {0};
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ms_fail(&err, MS_E_FORMAT, "%s", text);
    mstx__problem(to, file, &err);
}

/* ---- header ----------------------------------------------------------------- */

static enum ms_rc fail_shape(const struct mstx_seg *h, uint32_t kind, struct ms_err *err)
{
    const uint32_t record = kind == MSTX_KIND_RING ? MSTX_REC_SIZE : 1;
    if (h->kind != kind)
        return ms_fail_at(err, MS_E_FORMAT, 0, offsetof(struct mstx_seg, kind),
                          "kind is %" PRIu32 ", expected %" PRIu32, h->kind, kind);
    if (h->header_size != MSTX_SEG_HEADER)
        return ms_fail_at(err, MS_E_FORMAT, 0, offsetof(struct mstx_seg, header_size),
                          "header size is %" PRIu32 ", expected %d", h->header_size,
                          (int)MSTX_SEG_HEADER);
    if (h->record_size != record)
        return ms_fail_at(err, MS_E_FORMAT, 0, offsetof(struct mstx_seg, record_size),
                          "record size is %" PRIu32 ", expected %" PRIu32, h->record_size, record);
    return ms_fail_at(err, MS_E_FORMAT, 0, offsetof(struct mstx_seg, capacity),
                      "capacity is %" PRIu64 ", more than any recorder makes", h->capacity);
}

static enum ms_rc fail_fault(enum mstx_seg_fault fault, const struct mstx_seg *h, size_t n,
                             uint32_t kind, struct ms_err *err)
{
    switch (fault) {
    case MSTX_SEG_SHORT:
        return ms_fail(err, MS_E_FORMAT, "%zu bytes are too few for a header of %d", n,
                       (int)MSTX_SEG_HEADER);
    case MSTX_SEG_FOREIGN:
        return ms_fail(err, MS_E_FORMAT, "does not begin with %s: no segment file", MSTX_SEG_MAGIC);
    case MSTX_SEG_SWAPPED:
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "was written on a machine of the other byte order (mark %08" PRIx32
                       "); read it on such a machine",
                       h->endian);
    case MSTX_SEG_NEWER:
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "is of format version %u.%u, this program reads version %d; use a newer "
                       "msprobe",
                       h->major, h->minor, MSTX_SEG_MAJOR);
    default:
        return fail_shape(h, kind, err);
    }
}

static enum ms_rc check_identity(const struct mstx_seg *h, struct ms_err *err)
{
    if (h->clock < MSTX_CLOCK_TSC || h->clock > MSTX_CLOCK_MONOTONIC)
        return ms_fail_at(err, MS_E_FORMAT, 0, offsetof(struct mstx_seg, clock),
                          "clock is %" PRIu32 ", which is none of the known", h->clock);
    if (memchr(h->host, '\0', sizeof h->host) == NULL)
        return ms_fail_at(err, MS_E_FORMAT, 0, offsetof(struct mstx_seg, host),
                          "host name has no end");
    if (h->rank < -1)
        return ms_fail_at(err, MS_E_FORMAT, 0, offsetof(struct mstx_seg, rank), "rank is %" PRId32,
                          h->rank);
    return MS_OK;
}

static enum ms_rc check_header(struct mstx_segment *s, uint32_t kind, struct ms_err *err)
{
    memset(&s->head, 0, sizeof s->head);
    memcpy(&s->head, s->file.p, s->file.n < sizeof s->head ? s->file.n : sizeof s->head);
    enum mstx_seg_fault fault = mstx_seg_check(s->file.p, s->file.n, kind);
    if (fault != MSTX_SEG_GOOD)
        return fail_fault(fault, &s->head, s->file.n, kind, err);
    return check_identity(&s->head, err);
}

/* ---- records ---------------------------------------------------------------- */

static uint64_t load_acquire(const struct mstx_segment *s, size_t offset)
{
    const void *at = s->file.p + offset;
    return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
}

/* Returns the number of complete records; reports a head beyond the capacity or the end of the
 * file. */
static uint64_t count_records(const struct mstx_segment *s, const struct mstx_problems *to)
{
    uint64_t head = load_acquire(s, offsetof(struct mstx_seg, head));
    uint64_t held = (s->file.n - MSTX_SEG_HEADER) / s->head.record_size;
    uint64_t least = head < s->head.capacity ? head : s->head.capacity;
    if (head > s->head.capacity)
        mstx__problem_text(to, s->path, "head is %" PRIu64 ", behind the capacity of %" PRIu64,
                           head, s->head.capacity);
    if (least > held)
        mstx__problem_text(to, s->path, "is cut off: holds %" PRIu64 " of %" PRIu64 " %s", held,
                           least, s->head.record_size == 1 ? "bytes of text" : "records");
    return least < held ? least : held;
}

/* Copies the records of a live flight recorder, which may reuse the file at any time: a copy is
 * valid when the part number is the same before and after it was made. */
static enum ms_rc copy_live_flight(struct mstx_segment *s, const struct mstx_problems *to,
                                   struct ms_err *err)
{
    for (int i = 0; i < COPY_TRIES_MAX; i++) {
        uint64_t part = load_acquire(s, offsetof(struct mstx_seg, part));
        s->n = count_records(s, to);
        struct mstx_rec *copy = ms_realloc(s->copy, (s->n + 1) * sizeof *copy);
        if (copy == NULL)
            return ms_no_memory(err);
        s->copy = copy;
        memcpy(copy, s->rec, s->n * sizeof *copy);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (part != 0 && load_acquire(s, offsetof(struct mstx_seg, part)) == part) {
            s->head.part = part;
            s->rec = copy;
            return MS_OK;
        }
    }
    s->n = 0;
    return ms_fail(err, MS_E_IO, "is reused faster than it can be read; stop the recording first");
}

static enum ms_rc find_records(struct mstx_segment *s, const struct mstx_problems *to,
                               struct ms_err *err)
{
    const void *first = s->file.p + MSTX_SEG_HEADER;
    s->rec = first;
    if (s->head.kind == MSTX_KIND_RING && s->head.part == 0)
        return MS_OK; /* prepared and not in use yet */
    const uint32_t live_flight = MSTX_SEG_FLIGHT;
    const uint32_t state = s->head.state & (MSTX_SEG_FLIGHT | MSTX_SEG_CLOSED | MSTX_SEG_SNAPSHOT);
    if (s->head.kind == MSTX_KIND_RING && state == live_flight)
        return copy_live_flight(s, to, err);
    s->n = count_records(s, to);
    return MS_OK;
}

static enum ms_rc map_and_check(struct mstx_segment *s, uint32_t kind, struct ms_err *err)
{
    MS_TRY(ms_file_map(&s->file, s->path, SEGMENT_BYTES_MAX, err));
    enum ms_rc rc = check_header(s, kind, err);
    if (rc != MS_OK)
        ms_err_wrap(err, "%s", s->path);
    return rc;
}

/* Maps a segment.  strings.seg of a live process grows, first the file and then the head, so a head
 * beyond the mapped size means that the file has grown (map again) or is cut off. */
static enum ms_rc map_all(struct mstx_segment *s, uint32_t kind, struct ms_err *err)
{
    enum ms_rc rc = map_and_check(s, kind, err);
    for (int i = 0; rc == MS_OK && kind == MSTX_KIND_STRINGS && i < COPY_TRIES_MAX; i++) {
        struct stat st;
        if (load_acquire(s, offsetof(struct mstx_seg, head)) <= s->file.n - MSTX_SEG_HEADER ||
            stat(s->path, &st) != 0 || (size_t)st.st_size == s->file.n)
            break;
        ms_file_unmap(&s->file);
        rc = map_and_check(s, kind, err);
    }
    return rc;
}

enum ms_rc mstx__segment_open(struct mstx_segment *s, const char *path, uint32_t kind,
                              const struct mstx_problems *to, struct ms_err *err)
{
    *s = (struct mstx_segment){.path = ms_str_dup(ms_str_of(path))};
    if (s->path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = map_all(s, kind, err);
    if (rc == MS_OK) {
        rc = find_records(s, to, err);
        if (rc != MS_OK)
            ms_err_wrap(err, "%s", path);
    }
    if (rc != MS_OK)
        mstx__segment_close(s);
    return rc;
}

void mstx__segment_close(struct mstx_segment *s)
{
    ms_file_unmap(&s->file);
    ms_free(s->copy);
    ms_free(s->path);
    *s = (struct mstx_segment){0};
}

/* ---- texts ------------------------------------------------------------------ */

bool mstx__entry_next(const struct mstx_segment *s, uint64_t *at, struct mstx_entry *e,
                      const struct mstx_problems *to)
{
    if (*at >= s->n)
        return false;
    const char *bytes = s->file.p + MSTX_SEG_HEADER + *at;
    uint64_t left = s->n - *at;
    bool fits = left >= sizeof e->head;
    if (fits) {
        memcpy(&e->head, bytes, sizeof e->head);
        fits = e->head.size <= left && e->head.size % 8 == 0 && e->head.size > sizeof e->head &&
               e->head.len < e->head.size - sizeof e->head;
    }
    if (!fits) {
        mstx__problem_text(to, s->path,
                           "text entry at byte %" PRIu64 " makes no sense; texts "
                           "behind it are lost",
                           *at + MSTX_SEG_HEADER);
        *at = s->n;
        return false;
    }
    e->text = (struct ms_str){bytes + sizeof e->head, e->head.len};
    *at += e->head.size;
    return true;
}

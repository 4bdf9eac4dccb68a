/* SPDX-License-Identifier: MIT
 *
 * segment: one segment file of a capture, checked before use.
 */
#ifndef MSTX_READ_SEGMENT_H
#define MSTX_READ_SEGMENT_H

#include "mstx/format/capture.h"

#include "probe/base/io.h"

#include <stdbool.h>

/* Receives a problem with a file; the reader goes on with the other files.  Clears err. */
typedef void (*mstx_problem_fn)(void *ctx, const char *file, struct ms_err *err);
struct mstx_problems {
    mstx_problem_fn fn;
    void *ctx;
};
void mstx__problem(const struct mstx_problems *to, const char *file, struct ms_err *err);
/* Reports a problem with a formatted text. */
void mstx__problem_text(const struct mstx_problems *to, const char *file, const char *fmt, ...)
    MS_PRINTF(3, 4);

struct mstx_segment {
    char *path;
    struct ms_file file;
    struct mstx_seg head; /* a copy, checked */
    const struct mstx_rec *rec;
    uint64_t n;            /* complete records at rec; in strings.seg bytes */
    struct mstx_rec *copy; /* of a live flight recorder, else NULL */
};

/* Opens a segment of the expected kind.  Fails when a header field is wrong, and names the field; a
 * file that is cut off gives the records that are left and is reported to `to`. */
enum ms_rc mstx__segment_open(struct mstx_segment *s, const char *path, uint32_t kind,
                              const struct mstx_problems *to, struct ms_err *err) MS_MUST_USE;
void mstx__segment_close(struct mstx_segment *s);

/* One entry of strings.seg; text is borrowed from the mapped file. */
struct mstx_entry {
    struct mstx_text head;
    struct ms_str text;
};
/* Reads the entry at offset *at, 0 for the first, and advances *at; returns false at the end or at
 * damage, which is reported to `to`. */
bool mstx__entry_next(const struct mstx_segment *s, uint64_t *at, struct mstx_entry *e,
                      const struct mstx_problems *to);

#endif

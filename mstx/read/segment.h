/* SPDX-License-Identifier: MIT
 *
 * segment: one segment file of a capture, checked before use.
 */
#ifndef MSTX_READ_SEGMENT_H
#define MSTX_READ_SEGMENT_H

#include "mstx/format/capture.h"

#include "probe/base/io.h"

#include <stdbool.h>

/* Where a reader puts what is wrong with a file; it goes on with the others.  err is cleared. */
typedef void (*mstx_problem_fn)(void *ctx, const char *file, struct ms_err *err);
struct mstx_problems {
    mstx_problem_fn fn;
    void *ctx;
};
void mstx__problem(const struct mstx_problems *to, const char *file, struct ms_err *err);
/* The same with a text made here. */
void mstx__problem_text(const struct mstx_problems *to, const char *file, const char *fmt, ...)
    MS_PRINTF(3, 4);

struct mstx_segment {
    char *path;
    struct ms_file file;
    struct mstx_seg head; /* a copy, checked */
    const struct mstx_rec *rec;
    uint64_t n;            /* complete records at rec; in strings.seg bytes */
    struct mstx_rec *copy; /* where the writer may reuse the file while we read */
};

/* kind is the one expected.  Fails with what is wrong with which header field; a file that is cut off
 * gives what is left and is told to `to`. */
enum ms_rc mstx__segment_open(struct mstx_segment *s, const char *path, uint32_t kind,
                              const struct mstx_problems *to, struct ms_err *err) MS_MUST_USE;
void mstx__segment_close(struct mstx_segment *s);

/* One entry of strings.seg: head is a copy, text lies in the file. */
struct mstx_entry {
    struct mstx_text head;
    struct ms_str text;
};
/* *at is where to read, 0 to begin; false at the end.  Damage ends the walk and is told to `to`. */
bool mstx__entry_next(const struct mstx_segment *s, uint64_t *at, struct mstx_entry *e,
                      const struct mstx_problems *to);

#endif

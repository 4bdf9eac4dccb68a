/* SPDX-License-Identifier: MIT
 *
 * trace_text: the text of a trace file, which may be compressed by gzip.
 */
#ifndef MSTX_FOREIGN_TRACE_TEXT_H
#define MSTX_FOREIGN_TRACE_TEXT_H

#include "probe/base/io.h"

struct mstx_trace_text {
    const char *p;
    size_t n;
    struct ms_file file; /* mapped, when it is not compressed */
    char *unpacked;      /* on the heap, when it is */
};

/* Maps the file, or unpacks it into memory.  A compressed file that is cut off gives what it holds; one
 * that grows beyond every measure of a trace is refused. */
enum ms_rc mstx__trace_text_open(struct mstx_trace_text *t, const char *path,
                                 struct ms_err *err) MS_MUST_USE;
void mstx__trace_text_close(struct mstx_trace_text *t);

#endif

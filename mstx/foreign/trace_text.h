/* SPDX-License-Identifier: MIT
 *
 * trace_text: the text of a trace, which may be compressed.
 */
#ifndef MSTX_FOREIGN_TRACE_TEXT_H
#define MSTX_FOREIGN_TRACE_TEXT_H

#include "probe/base/io.h"

struct mstx_trace_text {
    const char *p;
    size_t n;
    struct ms_file file; /* the mapped file, when it is not compressed */
    char *unpacked;      /* the text on the heap, when it is compressed */
};

/* Maps a file, or unpacks a compressed one into memory.  A compressed file that is cut off gives
 * the text that it holds; a decompression bomb is rejected. */
enum ms_rc mstx__trace_text_open(struct mstx_trace_text *t, const char *path,
                                 struct ms_err *err) MS_MUST_USE;
void mstx__trace_text_close(struct mstx_trace_text *t);
/* Copies the first bytes of the text, at most `room`; returns their number, 0 when the file cannot be
 * read. */
size_t mstx__trace_text_head(const char *path, char *to, size_t room);

#endif

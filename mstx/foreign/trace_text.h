/* SPDX-License-Identifier: MIT
 *
 * trace_text: the text of a trace, which may be compressed, whole or piece by piece.
 *
 *     trace_text_begin ─► read [p, p + n) ─► trace_text_more ─► ... until is_whole ─► trace_text_close
 *
 * A compressed text is unpacked as far as it has been read, never onto the disk, so a piece bounds
 * the memory.
 */
#ifndef MSTX_FOREIGN_TRACE_TEXT_H
#define MSTX_FOREIGN_TRACE_TEXT_H

#include "probe/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero bytes behind the text that may be read. */
enum { MSTX_TRACE_TEXT_PAD = 64 };

struct mstx_trace_source;

struct mstx_trace_text {
    const char *p;
    size_t n;
    bool is_whole; /* the text ends at p + n */
    bool is_cut;   /* the compressed file is cut off or damaged; the text is what it holds */
    /* internal, as are all below */
    struct mstx_trace_source *from;
    char *room;
    size_t room_n;
};

/* Opens a file and reads the first piece of its text.  A decompression bomb is rejected when its
 * text has grown too large. */
enum ms_rc mstx__trace_text_begin(struct mstx_trace_text *t, const char *path,
                                  struct ms_err *err) MS_MUST_USE;
/* Drops the first bytes and reads more; the rest of the text moves.  Reads something, or sets
 * is_whole. */
enum ms_rc mstx__trace_text_more(struct mstx_trace_text *t, size_t dropped,
                                 struct ms_err *err) MS_MUST_USE;
/* Returns how many bytes of the file the text so far was unpacked from. */
uint64_t mstx__trace_text_taken(const struct mstx_trace_text *t);
/* Opens a file and reads all its text. */
enum ms_rc mstx__trace_text_open(struct mstx_trace_text *t, const char *path,
                                 struct ms_err *err) MS_MUST_USE;
void mstx__trace_text_close(struct mstx_trace_text *t);
/* Copies the first bytes of the text, at most `room`; returns their number, 0 when the file cannot be
 * read. */
size_t mstx__trace_text_head(const char *path, char *to, size_t room);

#endif

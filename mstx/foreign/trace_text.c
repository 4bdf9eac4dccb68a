/* SPDX-License-Identifier: MIT
 *
 * trace_text: see the header.
 */
#include "mstx/foreign/trace_text.h"

#include "mstx/foreign/trace_source.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/vec.h"

#include <string.h>

/* Bytes that are read at once, which fit into the caches of a processor, and the longest text. */
enum { PIECE = 1 << 18 };
static const size_t MOST = (size_t)1 << 36;

void mstx__trace_text_close(struct mstx_trace_text *t)
{
    mstx__trace_source_close(t->from);
    ms_free(t->room);
    *t = (struct mstx_trace_text){0};
}

/* Makes room for a piece behind the text and its padding. */
static enum ms_rc make_room(struct mstx_trace_text *t, size_t piece, struct ms_err *err)
{
    const size_t want = t->n + piece + MSTX_TRACE_TEXT_PAD;
    if (want > MOST)
        return ms_fail(err, MS_E_LIMIT, "the text has a part of more than %zu bytes", MOST);
    if (want > t->room_n && !ms_vec_grow(&t->room, &t->room_n, want, 1))
        return ms_no_memory(err);
    t->p = t->room;
    return MS_OK;
}

enum ms_rc mstx__trace_text_more(struct mstx_trace_text *t, size_t dropped, struct ms_err *err)
{
    ms_assert(dropped <= t->n && !t->is_whole);
    t->n -= dropped;
    if (dropped != 0)
        memmove(t->room, t->room + dropped, t->n);
    /* An event that is longer than a piece is looked at again from its beginning: twice as much each
     * time, so that all looks together take no longer than the last one. */
    const size_t piece = t->n > PIECE ? t->n : PIECE;
    MS_TRY(make_room(t, piece, err));
    size_t got = 1;
    for (const size_t want = t->n + piece; t->n < want && got != 0; t->n += got)
        MS_TRY(mstx__trace_source_read(t->from, t->room + t->n, want - t->n, &got, err));
    memset(t->room + t->n, 0, MSTX_TRACE_TEXT_PAD);
    t->is_whole = got == 0;
    t->is_cut = mstx__trace_source_is_cut(t->from);
    return MS_OK;
}

uint64_t mstx__trace_text_taken(const struct mstx_trace_text *t)
{
    return mstx__trace_source_taken(t->from);
}

enum ms_rc mstx__trace_text_begin(struct mstx_trace_text *t, const char *path, struct ms_err *err)
{
    *t = (struct mstx_trace_text){0};
    MS_TRY(mstx__trace_source_open(&t->from, path, err));
    const enum ms_rc rc = mstx__trace_text_more(t, 0, err);
    if (rc != MS_OK) {
        ms_err_wrap(err, "%s", path);
        mstx__trace_text_close(t);
    }
    return rc;
}

enum ms_rc mstx__trace_text_open(struct mstx_trace_text *t, const char *path, struct ms_err *err)
{
    MS_TRY(mstx__trace_text_begin(t, path, err));
    enum ms_rc rc = MS_OK;
    while (rc == MS_OK && !t->is_whole)
        rc = mstx__trace_text_more(t, 0, err);
    if (rc != MS_OK) {
        ms_err_wrap(err, "%s", path);
        mstx__trace_text_close(t);
    }
    return rc;
}

size_t mstx__trace_text_head(const char *path, char *to, size_t room)
{
    struct mstx_trace_source *from;
    size_t n = 0, got = 1;
    if (mstx__trace_source_open(&from, path, NULL) != MS_OK)
        return 0;
    for (; n < room && got != 0; n += got) {
        if (mstx__trace_source_read(from, to + n, room - n, &got, NULL) != MS_OK)
            break;
    }
    mstx__trace_source_close(from);
    return n;
}

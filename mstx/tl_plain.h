/* SPDX-License-Identifier: MIT
 *
 * tl_plain: plain values - numbers, texts, lists, dicts - out of a pickle or JSON.
 *
 * Nothing in a pickle is executed: the few functions that PyTorch's own pickler names make typed lists
 * out of plain ones and give their argument; every other name is refused.  Whatever the bytes, memory
 * stays in proportion to them.
 */
#ifndef MSTX_TL_PLAIN_H
#define MSTX_TL_PLAIN_H

#include "probe/base/arena.h"
#include "probe/base/str.h"

enum mstx_plain_kind {
    MSTX_PLAIN_NONE,
    MSTX_PLAIN_BOOL,
    MSTX_PLAIN_INT,
    MSTX_PLAIN_REAL,
    MSTX_PLAIN_TEXT,
    MSTX_PLAIN_LIST, /* and tuples */
    MSTX_PLAIN_DICT  /* items: key, value, key, value, .. */
};
struct mstx_plain {
    enum mstx_plain_kind kind;
    int64_t i; /* of a bool 0 or 1 */
    double f;
    struct ms_str s; /* may lie in the bytes that were read */
    struct mstx_plain **item;
    size_t n, cap;
};

/* Read all of p; values live in the arena. */
enum ms_rc mstx_plain_read(struct mstx_plain **out, struct ms_str bytes, struct ms_arena *a,
                           struct ms_err *err) MS_MUST_USE;
/* Does it begin like a pickle of protocol 2 or later? */
bool mstx_plain_is_pickle(struct ms_str bytes);

/* Of a dict; NULL: it is none, or has no such key. */
const struct mstx_plain *mstx_plain_get(const struct mstx_plain *v, const char *key);
/* What a value says, or `other` where it says nothing of that kind.  v may be NULL. */
int64_t mstx_plain_int(const struct mstx_plain *v, int64_t other);
double mstx_plain_real(const struct mstx_plain *v, double other);
struct ms_str mstx_plain_text(const struct mstx_plain *v);

#endif

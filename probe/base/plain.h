/* SPDX-License-Identifier: MIT
 *
 * plain: plain values - numbers, texts, lists, dictionaries - as a pickle or JSON holds them.
 *
 * Values live in an arena and point at each other, so one value may lie in several places and a list of a
 * damaged pickle may hold itself: whoever walks values limits the depth.
 */
#ifndef PROBE_BASE_PLAIN_H
#define PROBE_BASE_PLAIN_H

#include "probe/base/arena.h"
#include "probe/base/str.h"

enum ms_plain_kind {
    MS_PLAIN_NONE,
    MS_PLAIN_BOOL, /* i: 0 or 1 */
    MS_PLAIN_INT,  /* i */
    MS_PLAIN_REAL, /* f */
    MS_PLAIN_TEXT, /* s, which may lie in the input */
    /* From here on: n items. */
    MS_PLAIN_TUPLE,
    MS_PLAIN_LIST,
    MS_PLAIN_DICT,    /* key, value, key, value, .. */
    MS_PLAIN_CALL,    /* a name that would be called, and its arguments as a tuple */
    MS_PLAIN_OUTSIDE, /* the identifier of an object that a pickle keeps outside */
    /* Without items again: */
    MS_PLAIN_NAME, /* i: what the rules of the pickle say of a name */
    MS_PLAIN_MARK, /* inside the pickle machine alone */
};
struct ms_plain {
    enum ms_plain_kind kind;
    uint32_t n, cap; /* items, and for how many there is room */
    union {
        int64_t i;
        double f;
        struct ms_str s;
        struct ms_plain **item;
    };
};

/* A value of a kind, zeroed; NULL: the arena has no room. */
struct ms_plain *ms_plain_new(struct ms_arena *a, enum ms_plain_kind kind);
/* Appends an item to a container; false: the arena has no room. */
bool ms_plain_add(struct ms_arena *a, struct ms_plain *to, struct ms_plain *item);

/* The readers below take NULL as a value that says nothing. */
uint32_t ms_plain_len(const struct ms_plain *v);
/* Item i, or a value of kind MS_PLAIN_NONE where there are not as many. */
const struct ms_plain *ms_plain_item(const struct ms_plain *v, uint32_t i);
/* What a dictionary holds under a key; NULL: v is no dictionary, or has no such key. */
const struct ms_plain *ms_plain_get(const struct ms_plain *v, const char *key);
/* The number or text of a value, or `other` where the value is of another kind. */
int64_t ms_plain_int(const struct ms_plain *v, int64_t other);
double ms_plain_real(const struct ms_plain *v, double other);
struct ms_str ms_plain_text(const struct ms_plain *v);

#endif

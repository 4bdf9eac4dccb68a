/* SPDX-License-Identifier: MIT
 *
 * plain: plain values - numbers, texts, lists, dictionaries - as a pickle or JSON holds them.
 *
 * Values live in an arena and point at each other. One value may occur in several places, and a
 * list in a damaged pickle may contain itself, so a function that walks values must limit the
 * depth.
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
    MS_PLAIN_TEXT, /* s, which may point into the input */
    /* Kinds with n items: */
    MS_PLAIN_TUPLE,
    MS_PLAIN_LIST,
    MS_PLAIN_DICT,    /* key, value, key, value, .. */
    MS_PLAIN_CALL,    /* a recorded call: the name, and its arguments as a tuple */
    MS_PLAIN_OUTSIDE, /* identifier of an object that is stored outside the pickle */
    /* Kinds without items: */
    MS_PLAIN_NAME, /* i: the number that the pickle's rules give the name */
    MS_PLAIN_MARK, /* used only inside the pickle reader */
};
struct ms_plain {
    enum ms_plain_kind kind;
    uint32_t n, cap; /* items, and the capacity */
    union {
        int64_t i;
        double f;
        struct ms_str s;
        struct ms_plain **item;
    };
};

/* Creates a zeroed value of a kind; NULL when the arena is full. */
struct ms_plain *ms_plain_new(struct ms_arena *a, enum ms_plain_kind kind);
/* Appends an item to a container; false when the arena is full. */
bool ms_plain_add(struct ms_arena *a, struct ms_plain *to, struct ms_plain *item);

/* The readers below treat NULL as an empty value. */
uint32_t ms_plain_len(const struct ms_plain *v);
/* Returns item i, or a value of kind MS_PLAIN_NONE when there are fewer items. */
const struct ms_plain *ms_plain_item(const struct ms_plain *v, uint32_t i);
/* Returns the value under a key; NULL when v is no dictionary or has no such key. */
const struct ms_plain *ms_plain_get(const struct ms_plain *v, const char *key);
/* Return the number or text of a value, or `other` for a value of another kind. */
int64_t ms_plain_int(const struct ms_plain *v, int64_t other);
double ms_plain_real(const struct ms_plain *v, double other);
struct ms_str ms_plain_text(const struct ms_plain *v);

#endif

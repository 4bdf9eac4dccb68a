/* SPDX-License-Identifier: MIT
 *
 * str: text slices (a pointer and a length, usually into a mapped file) and a growing text buffer
 * with a maximum.
 */
#ifndef PROBE_BASE_STR_H
#define PROBE_BASE_STR_H

#include "probe/base/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A text slice, neither NUL-terminated nor owned. */
struct ms_str {
    const char *p;
    uint32_t n;
};

#define MS_STR(lit) ((struct ms_str){(lit), (uint32_t)(sizeof(lit) - 1)})
/* printf("%.*s", MS_STR_ARG(s)) */
#define MS_STR_ARG(s) (int)(s).n, (s).p
#define MS_STR_NONE   ((struct ms_str){NULL, 0})

/* UTF-8's byte order mark, which some editors put before a text. */
#define MS_UTF8_MARK "\xEF\xBB\xBF"

static inline struct ms_str ms_str_of(const char *z)
{
    return (struct ms_str){z, (uint32_t)strlen(z)};
}
static inline bool ms_str_eq(struct ms_str a, struct ms_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
static inline bool ms_str_is(struct ms_str a, const char *z)
{
    size_t n = strlen(z);
    return a.n == n && (n == 0 || memcmp(a.p, z, n) == 0);
}
static inline bool ms_str_starts(struct ms_str a, struct ms_str prefix)
{
    return a.n >= prefix.n && (prefix.n == 0 || memcmp(a.p, prefix.p, prefix.n) == 0);
}
static inline bool ms_str_ends(struct ms_str a, struct ms_str suffix)
{
    return a.n >= suffix.n &&
           (suffix.n == 0 || memcmp(a.p + (a.n - suffix.n), suffix.p, suffix.n) == 0);
}
/* Returns the part [from, to) of s; positions past the end are clamped. Inline, because readers of
 * dumps cut each name several times: as a call it took 1 % of a comparison of 100,000 operators. */
static inline struct ms_str ms_str_sub(struct ms_str s, uint32_t from, uint32_t to)
{
    if (to > s.n)
        to = s.n;
    if (from > to)
        from = to;
    /* NULL + from would be undefined. */
    return (struct ms_str){from != 0 ? s.p + from : s.p, to - from};
}
/* Compares by bytes; a prefix comes before a longer text. */
int ms_str_cmp(struct ms_str a, struct ms_str b);
/* Compares in natural order: runs of digits compare by value, so rank2 comes before rank10. */
int ms_str_cmp_natural(struct ms_str a, struct ms_str b);
/* Return the position of the first or last c, or -1. */
int64_t ms_str_find(struct ms_str s, char c);
int64_t ms_str_rfind(struct ms_str s, char c);
/* Returns the position of needle, or -1. */
int64_t ms_str_find_str(struct ms_str s, struct ms_str needle);
static inline bool ms_str_has(struct ms_str s, const char *word)
{
    return ms_str_find_str(s, ms_str_of(word)) >= 0;
}
/* The same without regard to the case of ASCII letters. */
bool ms_str_has_folded(struct ms_str s, struct ms_str word);
bool ms_str_is_folded(struct ms_str s, const char *z);
/* Moves *s behind the prefix; false when *s does not start with it. */
static inline bool ms_str_skip(struct ms_str *s, const char *prefix)
{
    const struct ms_str p = ms_str_of(prefix);
    if (!ms_str_starts(*s, p))
        return false;
    *s = ms_str_sub(*s, p.n, s->n);
    return true;
}
/* Number of digits from `at` on. */
uint32_t ms_str_digits(struct ms_str s, uint32_t at);
/* Takes the part before sep off *rest (all of *rest when there is no sep). Returns false when *rest
 * is used up, that is when p is NULL. */
bool ms_str_split(struct ms_str *rest, char sep, struct ms_str *part);
/* Tells whether s is not empty and has only digits. */
bool ms_str_all_digits(struct ms_str s);
/* Parses all of s as an unsigned decimal number; false when s is not one or does not fit. */
bool ms_str_u64(struct ms_str s, uint64_t *out);
/* Parses a decimal number with an optional minus sign. */
bool ms_str_i64(struct ms_str s, int64_t *out);
uint64_t ms_str_hash(struct ms_str s);
/* Adds a value to a hash. */
static inline uint64_t ms_hash_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}
/* Returns a NUL-terminated heap copy, freed with ms_free; NULL when out of memory. */
char *ms_str_dup(struct ms_str s);
/* Returns the length of the well-formed UTF-8 sequence at p (1 to 4), or 0. */
unsigned ms_utf8_len(const char *p, size_t n);

/* Writes text from a file in a form that is safe in a message: shortened, on one line, without
 * terminal control characters. */
enum { MS_STR_SHOWN = 120 };
const char *ms_str_shown(char buf[MS_STR_SHOWN], struct ms_str s);

/* A growing text. Initialise it with a maximum: struct ms_buf b = {.max = 1 << 20}; A failure
 * (memory or maximum) is kept in `bad` and later calls do nothing, so a chain of puts needs one
 * check at the end. */
struct ms_buf {
    char *p;
    size_t n, cap, max;
    enum ms_rc bad;
};

/* Appends n bytes after growing the buffer; the slow path of ms_buf_put. */
void ms_buf_put_growing(struct ms_buf *b, const void *p, size_t n);
static inline void ms_buf_put(struct ms_buf *b, const void *p, size_t n)
{
    if (n == 0 || n >= b->cap - b->n || b->n + n > b->max || b->bad != MS_OK) {
        ms_buf_put_growing(b, p, n);
        return;
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
}
static inline void ms_buf_puts(struct ms_buf *b, const char *z)
{
    ms_buf_put(b, z, strlen(z));
}
static inline void ms_buf_str(struct ms_buf *b, struct ms_str s)
{
    ms_buf_put(b, s.p, s.n);
}
static inline void ms_buf_putc(struct ms_buf *b, char c)
{
    ms_buf_put(b, &c, 1);
}
void ms_buf_printf(struct ms_buf *b, const char *fmt, ...) MS_PRINTF(2, 3);
void ms_buf_vprintf(struct ms_buf *b, const char *fmt, va_list ap) MS_PRINTF(2, 0);
/* Returns room for n more bytes; NULL on failure. The caller then adds the number of bytes written
 * to b->n. */
char *ms_buf_room(struct ms_buf *b, size_t n);
/* Returns the text with a NUL behind it, valid until the next change; "" when empty or bad. */
const char *ms_buf_z(struct ms_buf *b);
struct ms_str ms_buf_slice(const struct ms_buf *b);
/* Reports the failure kept in `bad`, if any. */
enum ms_rc ms_buf_check(const struct ms_buf *b, struct ms_err *err);
void ms_buf_clear(struct ms_buf *b);
void ms_buf_free(struct ms_buf *b);

/* Tells whether a terminal obeys a byte instead of showing it: a control character of one byte, or
 * the second byte of one of two (U+0080 to U+009F). Tabs and ends of lines are wanted. */
bool ms_is_obeyed(char before, char byte);

#endif

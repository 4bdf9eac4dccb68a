/* SPDX-License-Identifier: MIT
 *
 * str: slices and buffers.  Nothing here knows where a slice points.
 */
#include "probe/base/str.h"

#include "probe/base/mem.h"
#include "probe/base/scan.h"

#include <ctype.h>
#include <stdio.h>

int ms_str_cmp(struct ms_str a, struct ms_str b)
{
    uint32_t n = a.n < b.n ? a.n : b.n;
    int c = n != 0 ? memcmp(a.p, b.p, n) : 0;
    return c != 0 ? c : (a.n > b.n) - (a.n < b.n);
}

uint32_t ms_str_digits(struct ms_str s, uint32_t at)
{
    uint32_t n = 0;
    while (at + n < s.n && ms_is_digit(s.p[at + n]))
        n++;
    return n;
}

/* Compares two runs of digits by value, without a limit on their length. */
static int cmp_digits(struct ms_str a, struct ms_str b)
{
    while (a.n > 1 && a.p[0] == '0')
        a = ms_str_sub(a, 1, a.n);
    while (b.n > 1 && b.p[0] == '0')
        b = ms_str_sub(b, 1, b.n);
    return a.n != b.n ? (a.n > b.n) - (a.n < b.n) : ms_str_cmp(a, b);
}

int ms_str_cmp_natural(struct ms_str a, struct ms_str b)
{
    uint32_t i = 0;
    uint32_t j = 0;
    while (i < a.n && j < b.n) {
        uint32_t da = ms_str_digits(a, i);
        uint32_t db = ms_str_digits(b, j);
        if (da != 0 && db != 0) {
            int c = cmp_digits(ms_str_sub(a, i, i + da), ms_str_sub(b, j, j + db));
            if (c != 0)
                return c;
            i += da;
            j += db;
            continue;
        }
        if (a.p[i] != b.p[j])
            return (unsigned char)a.p[i] < (unsigned char)b.p[j] ? -1 : 1;
        i++;
        j++;
    }
    int tail = (i < a.n) - (j < b.n);
    return tail != 0 ? tail : ms_str_cmp(a, b);
}

int64_t ms_str_find(struct ms_str s, char c)
{
    const char *at = s.n != 0 ? memchr(s.p, c, s.n) : NULL;
    return at != NULL ? at - s.p : -1;
}

int64_t ms_str_rfind(struct ms_str s, char c)
{
    const char *at = s.n != 0 ? memrchr(s.p, c, s.n) : NULL;
    return at != NULL ? at - s.p : -1;
}

int64_t ms_str_find_str(struct ms_str s, struct ms_str needle)
{
    if (needle.n == 0)
        return 0;
    const char *at = s.n != 0 ? memmem(s.p, s.n, needle.p, needle.n) : NULL;
    return at != NULL ? at - s.p : -1;
}

/* Returns the next byte c from p on, behind which all of a word fits; NULL: none. */
static const char *find_start(const char *p, const char *last, int c)
{
    return p <= last ? memchr(p, c, (size_t)(last - p) + 1) : NULL;
}

/* Compares only where the first letter stands, small or capital; memchr finds these some ten times as fast. */
bool ms_str_has_folded(struct ms_str s, struct ms_str word)
{
    if (word.n == 0 || word.n > s.n)
        return word.n == 0;
    const int small = tolower((unsigned char)*word.p), capital = toupper((unsigned char)*word.p);
    const char *last = s.p + (s.n - word.n);
    const char *a = find_start(s.p, last, small);
    const char *b = capital != small ? find_start(s.p, last, capital) : NULL;
    while (a != NULL || b != NULL) {
        const char **next = b == NULL || (a != NULL && a < b) ? &a : &b;
        if (strncasecmp(*next, word.p, word.n) == 0)
            return true;
        *next = find_start(*next + 1, last, **next);
    }
    return false;
}

bool ms_str_is_folded(struct ms_str s, const char *z)
{
    return s.n == strlen(z) && strncasecmp(s.p, z, s.n) == 0;
}

bool ms_str_split(struct ms_str *rest, char sep, struct ms_str *part)
{
    if (rest->p == NULL)
        return false;
    int64_t at = ms_str_find(*rest, sep);
    if (at < 0) {
        *part = *rest;
        *rest = MS_STR_NONE;
        return true;
    }
    *part = ms_str_sub(*rest, 0, (uint32_t)at);
    *rest = ms_str_sub(*rest, (uint32_t)at + 1, rest->n);
    return true;
}

bool ms_str_all_digits(struct ms_str s)
{
    return s.n != 0 && ms_str_digits(s, 0) == s.n;
}

bool ms_str_u64(struct ms_str s, uint64_t *out)
{
    uint64_t v = 0;
    if (!ms_str_all_digits(s))
        return false;
    for (uint32_t i = 0; i < s.n; i++) {
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
            return false;
    }
    *out = v;
    return true;
}

bool ms_str_i64(struct ms_str s, int64_t *out)
{
    bool negative = s.n != 0 && s.p[0] == '-';
    uint64_t v;
    if (!ms_str_u64(negative ? ms_str_sub(s, 1, s.n) : s, &v))
        return false;
    if (v > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

/* The hash takes eight bytes at a time, multiplies and folds: names are short (30 to 80 bytes), so
 * a long start-up would cost more than it gains. The tail is read as two overlapping words; nothing
 * past the slice is read. */
static uint64_t load64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t fold(uint64_t a, uint64_t b)
{
    __uint128_t m = (__uint128_t)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

uint64_t ms_str_hash(struct ms_str s)
{
    const uint64_t k0 = 0x9E3779B97F4A7C15U;
    const uint64_t k1 = 0xD6E8FEB86659FD93U;
    uint64_t h = s.n * k0;
    uint32_t i = 0;
    for (; s.n - i >= 16; i += 16)
        h = fold(load64(s.p + i) ^ k1, load64(s.p + i + 8) ^ h);
    uint64_t a = 0;
    uint64_t b = 0;
    uint32_t left = s.n - i;
    if (left >= 8) {
        a = load64(s.p + i);
        b = load64(s.p + s.n - 8);
    } else if (left != 0) {
        memcpy(&a, s.p + i, left);
    }
    return fold(fold(a ^ k1, b ^ h), k0);
}

char *ms_str_dup(struct ms_str s)
{
    char *z = ms_alloc((size_t)s.n + 1);
    if (z == NULL)
        return NULL;
    if (s.n != 0)
        memcpy(z, s.p, s.n);
    z[s.n] = '\0';
    return z;
}

unsigned ms_utf8_len(const char *p, size_t n)
{
    const unsigned char *u = (const unsigned char *)p;
    if (n == 0)
        return 0;
    if (u[0] < 0x80)
        return 1;
    unsigned len = u[0] >= 0xF0 ? 4 : u[0] >= 0xE0 ? 3 : 2;
    if (u[0] < 0xC2 || u[0] > 0xF4 || n < len)
        return 0;
    for (unsigned i = 1; i < len; i++) {
        if ((u[i] & 0xC0) != 0x80)
            return 0;
    }
    /* Rejects overlong forms, surrogates and code points above U+10FFFF by the second byte. */
    if ((u[0] == 0xE0 && u[1] < 0xA0) || (u[0] == 0xED && u[1] > 0x9F) ||
        (u[0] == 0xF0 && u[1] < 0x90) || (u[0] == 0xF4 && u[1] > 0x8F))
        return 0;
    return len;
}

/* Doubles the capacity, up to the maximum and its NUL; need is within that. */
static bool grow_buffer(struct ms_buf *b, size_t need)
{
    size_t cap = b->cap != 0 ? b->cap : 64;
    while (cap < need)
        cap = cap <= SIZE_MAX / 2 ? cap * 2 : need;
    if (cap - 1 > b->max)
        cap = b->max + 1;
    char *p = ms_realloc(b->p, cap);
    if (p == NULL) {
        b->bad = MS_E_NOMEM;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

char *ms_buf_room(struct ms_buf *b, size_t n)
{
    if (b->bad != MS_OK)
        return NULL;
    size_t need; /* one more byte, for the NUL of ms_buf_z */
    if (b->n > b->max || n > b->max - b->n || !ms_add_size(b->n + n, 1, &need)) {
        b->bad = MS_E_LIMIT;
        return NULL;
    }
    if (need > b->cap && !grow_buffer(b, need))
        return NULL;
    return b->p + b->n;
}

void ms_buf_put_growing(struct ms_buf *b, const void *p, size_t n)
{
    if (n == 0)
        return;
    char *to = ms_buf_room(b, n);
    if (to == NULL)
        return;
    memcpy(to, p, n);
    b->n += n;
}

void ms_buf_vprintf(struct ms_buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n < 0 && b->bad == MS_OK)
        b->bad = MS_E_ARG;
    char *to = n >= 0 ? ms_buf_room(b, (size_t)n) : NULL;
    if (to != NULL) {
        vsnprintf(to, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
}

void ms_buf_printf(struct ms_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ms_buf_vprintf(b, fmt, ap);
    va_end(ap);
}

const char *ms_buf_z(struct ms_buf *b)
{
    if (b->p == NULL || b->bad != MS_OK)
        return "";
    b->p[b->n] = '\0';
    return b->p;
}

struct ms_str ms_buf_slice(const struct ms_buf *b)
{
    return (struct ms_str){b->p, (uint32_t)b->n};
}

enum ms_rc ms_buf_check(const struct ms_buf *b, struct ms_err *err)
{
    if (b->bad == MS_OK)
        return MS_OK;
    if (b->bad == MS_E_LIMIT)
        return ms_fail(err, MS_E_LIMIT, "text longer than %zu bytes", b->max);
    return ms_fail(err, b->bad, "%s", ms_rc_text(b->bad));
}

void ms_buf_clear(struct ms_buf *b)
{
    b->n = 0;
    b->bad = MS_OK;
}

void ms_buf_free(struct ms_buf *b)
{
    ms_free(b->p);
    size_t max = b->max;
    *b = (struct ms_buf){.max = max};
}

const char *ms_str_shown(char buf[MS_STR_SHOWN], struct ms_str s)
{
    const uint32_t n = s.n < MS_STR_SHOWN ? s.n : MS_STR_SHOWN - 1;
    for (uint32_t i = 0; i < n; i++)
        buf[i] = (char)(s.p[i] >= ' ' && s.p[i] <= '~' ? s.p[i] : '?');
    buf[n] = '\0';
    return buf;
}

bool ms_is_obeyed(char before, char byte)
{
    const unsigned char c = (unsigned char)byte;
    const bool is_second = (unsigned char)before == 0xC2 && c >= 0x80 && c < 0xA0;
    return (c < ' ' && c != '\n' && c != '\t') || c == 0x7F || is_second;
}

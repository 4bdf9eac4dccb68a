/* SPDX-License-Identifier: MIT
 *
 * npy: reads NumPy's .npy.
 *
 *     \x93NUMPY  major minor  length (2 bytes in version 1, else 4)  header  data
 *
 * The header is a Python dict literal with exactly three keys; the parser accepts only the values
 * that these keys can have.
 */
#include "probe/tensor/tensor_int.h"

enum { MAX_HEADER = 64 << 10 };

struct header {
    struct ms_str descr;
    bool fortran;
    uint64_t shape[PROBE_MAX_DIMS];
    uint32_t ndim;
};

/* Scanner of the header text; `at` is an offset in the file, so that errors show the right byte. */
struct scan {
    const char *p;
    size_t at, end;
    struct ms_err *err;
};

static enum ms_rc report_bad(const struct scan *s, const char *what)
{
    return ms_fail_at(s->err, MS_E_FORMAT, 0, (int64_t)s->at, "%s in the header", what);
}

static void skip_spaces(struct scan *s)
{
    while (s->at < s->end && (s->p[s->at] == ' ' || s->p[s->at] == '\n'))
        s->at++;
}

/* Skips spaces, and c if it is next; returns whether it was. */
static bool take_char(struct scan *s, char c)
{
    skip_spaces(s);
    if (s->at == s->end || s->p[s->at] != c)
        return false;
    s->at++;
    return true;
}

static bool take_word(struct scan *s, const char *word)
{
    skip_spaces(s);
    const size_t n = strlen(word);
    if (s->end - s->at < n || memcmp(s->p + s->at, word, n) != 0)
        return false;
    s->at += n;
    return true;
}

static enum ms_rc read_string(struct scan *s, struct ms_str *out)
{
    const char quote = take_char(s, '\'') ? '\'' : '"';
    if (quote == '"' && !take_char(s, '"'))
        return report_bad(s, take_char(s, '[') ? "a structured type" : "expected a quoted text");
    const char *from = s->p + s->at;
    const char *to = memchr(from, quote, s->end - s->at);
    if (to == NULL)
        return report_bad(s, "a text without end");
    *out = (struct ms_str){from, (uint32_t)(to - from)};
    s->at += out->n + 1;
    return MS_OK;
}

static enum ms_rc read_size(struct scan *s, uint64_t *out)
{
    skip_spaces(s);
    const size_t from = s->at;
    while (s->at < s->end && s->p[s->at] >= '0' && s->p[s->at] <= '9')
        s->at++;
    if (!ms_str_u64((struct ms_str){s->p + from, (uint32_t)(s->at - from)}, out))
        return report_bad(s, "expected a size");
    return MS_OK;
}

static enum ms_rc read_shape(struct scan *s, struct header *h)
{
    h->ndim = 0;
    if (!take_char(s, '('))
        return report_bad(s, "expected '('");
    for (bool comma = true; !take_char(s, ')'); comma = take_char(s, ',')) {
        if (!comma)
            return report_bad(s, "expected ',' or ')'");
        if (h->ndim == PROBE_MAX_DIMS)
            return report_bad(s, "too many dimensions");
        MS_TRY(read_size(s, &h->shape[h->ndim]));
        h->ndim++;
    }
    return MS_OK;
}

static enum ms_rc read_bool(struct scan *s, bool *out)
{
    *out = take_word(s, "True");
    if (!*out && !take_word(s, "False"))
        return report_bad(s, "expected True or False");
    return MS_OK;
}

enum { HAS_DESCR = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

static enum ms_rc read_entry(struct scan *s, struct header *h, unsigned *seen)
{
    struct ms_str key;
    MS_TRY(read_string(s, &key));
    const unsigned bit = ms_str_is(key, "descr")           ? HAS_DESCR
                         : ms_str_is(key, "fortran_order") ? HAS_ORDER
                         : ms_str_is(key, "shape")         ? HAS_SHAPE
                                                           : 0;
    if (bit == 0)
        return report_bad(s, "an unknown key");
    if ((*seen & bit) != 0)
        return report_bad(s, "a key twice");
    *seen |= bit;
    if (!take_char(s, ':'))
        return report_bad(s, "expected ':'");
    switch (bit) {
    case HAS_DESCR:
        return read_string(s, &h->descr);
    case HAS_ORDER:
        return read_bool(s, &h->fortran);
    default:
        return read_shape(s, h);
    }
}

static enum ms_rc read_header(struct scan *s, struct header *h)
{
    unsigned seen = 0;
    if (!take_char(s, '{'))
        return report_bad(s, "expected '{'");
    for (bool comma = true; !take_char(s, '}'); comma = take_char(s, ',')) {
        if (!comma)
            return report_bad(s, "expected ',' or '}'");
        MS_TRY(read_entry(s, h, &seen));
    }
    if (seen != HAS_ALL)
        return report_bad(s, "descr, fortran_order or shape is missing");
    skip_spaces(s);
    return s->at == s->end ? MS_OK : report_bad(s, "something after '}'");
}

/* Finds the begin and the end of the header text. */
static enum ms_rc find_header(struct scan *s, const char *p, size_t n, struct ms_err *err)
{
    *s = (struct scan){.p = p, .err = err};
    if (n < 10)
        return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)n, "ends inside the header");
    const unsigned major = (unsigned char)p[6];
    if (major < 1 || major > 3)
        return ms_fail_at(err, MS_E_UNSUPPORTED, 0, 6, "format version %u; 1 to 3 are read", major);
    s->at = major == 1 ? 10 : 12;
    if (n < s->at)
        return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)n, "ends inside the header");
    const size_t length = major == 1 ? probe__le16(p + 8) : probe__le32(p + 8);
    if (length > MAX_HEADER)
        return ms_fail_at(err, MS_E_LIMIT, 0, 8, "a header of %zu bytes; %d are read", length,
                          MAX_HEADER);
    if (length > n - s->at)
        return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)n, "ends inside the header of %zu bytes",
                          length);
    s->end = s->at + length;
    return MS_OK;
}

static enum ms_rc find_type(const struct scan *s, struct ms_str descr, enum ms_dtype *t, bool *swap)
{
    *t = ms_dtype_of_numpy(descr, swap);
    if (*t != MS_DT_NONE)
        return MS_OK;
    const char kind = descr.n >= 2 ? descr.p[1] : '\0';
    const char *why = kind == 'O'                  ? "Python objects are not read"
                      : kind == 'U' || kind == 'S' ? "text has no numbers to read"
                                                   : "this type is not read";
    char shown[MS_STR_SHOWN];
    return ms_fail_at(s->err, MS_E_UNSUPPORTED, 0, descr.p - s->p, "descr '%s': %s",
                      ms_str_shown(shown, descr), why);
}

static void strides_of_fortran_order(struct probe_tensor *t)
{
    uint64_t step = 1;
    for (uint32_t d = 0; d < t->ndim; d++) {
        t->stride[d] = step;
        step *= t->shape[d] != 0 ? t->shape[d] : 1;
    }
}

enum ms_rc probe__npy_read(struct probe_tensor *t, const char *p, size_t n, struct ms_err *err)
{
    struct scan s;
    struct header h = {0};
    enum ms_dtype dtype;
    bool swap;
    MS_TRY(find_header(&s, p, n, err));
    MS_TRY(read_header(&s, &h));
    MS_TRY(find_type(&s, h.descr, &dtype, &swap));
    MS_TRY(probe__tensor_set(t, dtype, h.shape, h.ndim, err));
    const uint64_t want = t->count * ms_dtype_size(dtype);
    const size_t have = n - s.end;
    if (want != have)
        return ms_fail_at(err, MS_E_FORMAT, 0, (int64_t)s.end,
                          "%zu bytes of data, but the header describes %llu", have,
                          (unsigned long long)want);
    if (h.fortran)
        strides_of_fortran_order(t);
    return probe__tensor_place(t, p + s.end, have, 0, swap, err);
}

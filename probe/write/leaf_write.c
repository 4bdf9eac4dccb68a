/* SPDX-License-Identifier: MIT
 *
 * leaf_write: statistics by the official rules, digests, and the field names of the framework. A
 * tensor of any strides is read block by block in place; nothing is allocated.
 *
 * Most of a dump is leaves, and for a small tensor the text costs more than the statistics. So a
 * leaf is formatted here, in the buffer of the JSON writer, at half the cost of one call of the writer
 * for each token.
 */
#include "probe/write/leaf_write.h"

#include "probe/base/num.h"
#include "probe/dump/leaf.h"

#include <assert.h>
#include <math.h>

/* ---- describing ------------------------------------------------------- */

enum ms_rc probe__describe(const struct probe_tensor_desc *d, struct probe_tensor *t,
                           struct ms_err *err)
{
    uint64_t dense = 1;
    *t = (struct probe_tensor){.ndim = d->ndim, .data = d->data, .count = 1, .contiguous = true};
    t->dtype = d->dtype != NULL ? ms_dtype_parse(ms_str_of(d->dtype)) : MS_DT_NONE;
    if (t->dtype == MS_DT_NONE)
        return ms_fail(err, MS_E_ARG, "unknown dtype '%s'", d->dtype != NULL ? d->dtype : "");
    if (d->ndim > PROBE_MAX_DIMS)
        return ms_fail(err, MS_E_LIMIT, "%u dimensions, more than %d", d->ndim, PROBE_MAX_DIMS);
    for (uint32_t i = d->ndim; i-- > 0;) {
        t->shape[i] = d->shape[i];
        t->stride[i] = d->stride != NULL ? d->stride[i] : dense;
        t->contiguous &= t->stride[i] == dense || t->shape[i] == 1;
        if (__builtin_mul_overflow(t->count, t->shape[i], &t->count) ||
            __builtin_mul_overflow(dense, t->shape[i] != 0 ? t->shape[i] : 1, &dense))
            return ms_fail(err, MS_E_LIMIT, "the sizes of a shape multiply beyond 64 bits");
    }
    if (t->count != 0 && t->data == NULL)
        return ms_fail(err, MS_E_ARG, "a tensor without data");
    return MS_OK;
}

/* ---- text ------------------------------------------------------------- */

enum {
    LINES = 16,
    LINE = 64,
    WORD_MAX = 128
}; /* lines but those of the shape; bytes, indent apart */

/* Members of a leaf. The buffer has room for the longest possible leaf, so writes are not checked. */
struct leaf {
    char *at;
    unsigned indent;
    bool first;
};

/* Begins to write members at the end of the buffer; false: there is no memory. */
static bool begin_members(struct leaf *l, struct ms_jwrite *json, uint32_t ndim)
{
    const size_t lines = LINES + ndim;
    l->indent = json->depth;
    l->first = true;
    l->at = ms_jwrite_begin_members(json, lines * (LINE + l->indent + 1) + 2 * (size_t)WORD_MAX);
    return l->at != NULL;
}

static void append_bytes(struct leaf *l, const char *p, size_t n)
{
    memcpy(l->at, p, n);
    l->at += n;
}
#define PUT(l, literal) append_bytes((l), (literal), sizeof(literal) - 1)

static void put_line(struct leaf *l, unsigned indent)
{
    l->at = ms_jwrite_line(l->at, indent);
}

/* Writes a key of plain letters; `key` includes the quotes and the colon. */
static void put_key(struct leaf *l, const char *key, size_t n)
{
    if (!l->first)
        *l->at++ = ',';
    l->first = false;
    put_line(l, l->indent);
    append_bytes(l, key, n);
}
#define KEY(l, key) put_key((l), "\"" key "\": ", sizeof("\"" key "\": ") - 1)

static void put_f64(struct leaf *l, double v)
{
    l->at += ms_num_f64(l->at, v);
}

static void put_bool(struct leaf *l, bool v)
{
    if (v)
        PUT(l, "true");
    else
        PUT(l, "false");
}

/* Writes the lowest `digits` hexadecimal digits of v. */
static void put_hex(struct leaf *l, uint64_t v, unsigned digits)
{
    for (unsigned i = digits; i-- > 0;)
        *l->at++ = "0123456789abcdef"[v >> (4 * i) & 15];
}

/* ---- statistics ------------------------------------------------------- */

/* Value to write for one of Max, Min, Mean and Norm. */
struct figure {
    enum { NO_FIGURE, TRUTH, WHOLE, NATURAL, REAL, LATER } kind;
    double v;
    uint64_t bits; /* value of WHOLE (an int64_t), NATURAL and LATER */
};

static bool is_whole(enum ms_dtype_kind kind)
{
    return kind == MS_DTK_INT || kind == MS_DTK_UINT;
}

/* Finds the largest and smallest 64-bit integer; a double cannot hold most of them. */
static void whole_range(const struct probe_tensor *t, uint64_t *max, uint64_t *min)
{
    const uint64_t flip = t->dtype == MS_DT_I64 ? UINT64_C(1) << 63 : 0; /* to unsigned order */
    struct probe_pieces pieces;
    uint64_t hi = 0, lo = UINT64_MAX, n;
    probe_pieces_start(&pieces, t);
    for (const char *p; (p = probe_pieces_next(&pieces, &n)) != NULL;) {
        for (uint64_t i = 0; i < n; i++) {
            uint64_t v;
            memcpy(&v, p + i * sizeof v, sizeof v);
            v ^= flip;
            hi = v > hi ? v : hi;
            lo = v < lo ? v : lo;
        }
    }
    probe_pieces_end(&pieces);
    *max = hi ^ flip;
    *min = lo ^ flip;
}

/* Tells whether max and min are exact as doubles, which holds below 2^53. */
static bool is_exact(const struct probe_tensor *t, const struct ms_stats *s)
{
    return ms_dtype_size(t->dtype) < sizeof(uint64_t) || (s->max < 0x1p53 && s->min > -0x1p53);
}

static void set_range(const struct probe_tensor *t, const struct ms_stats *s, struct figure *max,
                      struct figure *min)
{
    enum ms_dtype_kind kind = ms_dtype_kind(t->dtype);
    max->kind = kind == MS_DTK_BOOL     ? TRUTH
                : t->dtype == MS_DT_U64 ? NATURAL
                : is_whole(kind)        ? WHOLE
                                        : REAL;
    min->kind = max->kind;
    /* The absolute value of a complex number is rounded as well. */
    max->v = s->nan != 0 ? (double)NAN : ms_dtype_round(t->dtype, s->max);
    min->v = s->nan != 0 ? (double)NAN : ms_dtype_round(t->dtype, s->min);
    if (!is_whole(kind))
        return;
    if (is_exact(t, s)) {
        max->bits = (uint64_t)(int64_t)s->max;
        min->bits = (uint64_t)(int64_t)s->min;
    } else {
        whole_range(t, &max->bits, &min->bits);
    }
}

/* The official tool reduces in the tensor's own type, so mean and norm are rounded to that. */
static struct figure reduce_figure(const struct probe__style *style, enum ms_dtype t, double v)
{
    return (struct figure){REAL, ms_dtype_round(style->unrounded ? MS_DT_F32 : t, v), 0};
}

static bool is_tiny_float(enum ms_dtype t)
{
    return ms_dtype_kind(t) == MS_DTK_FLOAT && ms_dtype_size(t) == 1;
}

/* Tells whether the official tool converts the tensor to float32 before it reduces, as for most
 * types of MindSpore. */
static bool is_cast(const struct probe__style *style, const struct probe_tensor *t)
{
    return style->mindspore && !style->all_numbers &&
           (is_tiny_float(t->dtype) ||
            (t->ndim != 0 && (t->dtype == MS_DT_F64 || is_whole(ms_dtype_kind(t->dtype)))));
}

static void figures_of_cast(const struct ms_stats *s, struct figure f[PROBE_STATS])
{
    const bool bad = s->nan != 0;
    const double v[PROBE_STATS] = {[PROBE_STAT_MAX] = bad ? (double)NAN : s->max,
                                   [PROBE_STAT_MIN] = bad ? (double)NAN : s->min,
                                   [PROBE_STAT_MEAN] = ms_stats_mean(s),
                                   [PROBE_STAT_NORM] = ms_stats_norm(s)};
    for (unsigned i = 0; i < PROBE_STATS; i++)
        f[i] = (struct figure){REAL, ms_dtype_round(MS_DT_F32, v[i]), 0};
}

/* Sets those of the four statistics that the official tool has for the dtype, by the table in
 * the format's statistics rules. */
static void figures_of(const struct probe__style *style, const struct probe_tensor *t,
                       const struct ms_stats *s, struct figure f[PROBE_STATS])
{
    enum ms_dtype_kind kind = ms_dtype_kind(t->dtype);
    if (t->count == 0 || (is_tiny_float(t->dtype) && !style->mindspore))
        return;
    if (is_cast(style, t)) {
        figures_of_cast(s, f);
        return;
    }
    set_range(t, s, &f[PROBE_STAT_MAX], &f[PROBE_STAT_MIN]);
    if (t->ndim == 0 && (is_whole(kind) || kind == MS_DTK_FLOAT)) {
        f[PROBE_STAT_MEAN] = f[PROBE_STAT_NORM] = f[PROBE_STAT_MAX];
        return;
    }
    bool narrow = kind == MS_DTK_FLOAT && t->dtype != MS_DT_F64;
    bool all = narrow || (style->all_numbers && kind != MS_DTK_BOOL);
    bool complex = kind == MS_DTK_COMPLEX;
    enum ms_dtype as = narrow || complex ? t->dtype : MS_DT_F64;
    if (all || complex)
        f[PROBE_STAT_MEAN] = reduce_figure(style, as, ms_stats_mean(s));
    if (all || (complex && style->mindspore))
        f[PROBE_STAT_NORM] = reduce_figure(style, as, ms_stats_norm(s));
}

static void put_figure(struct leaf *l, struct figure f)
{
    switch (f.kind) {
    case NO_FIGURE:
        PUT(l, "null");
        break;
    case TRUTH:
        put_bool(l, f.v != 0);
        break;
    case WHOLE:
        l->at += ms_num_i64(l->at, (int64_t)f.bits);
        break;
    case NATURAL:
        l->at += ms_num_u64(l->at, f.bits);
        break;
    case REAL:
        put_f64(l, f.v);
        break;
    case LATER:
        *l->at++ = PROBE__LATER;
        put_hex(l, f.bits, PROBE__LATER_BYTES - 1);
        break;
    }
}

static void put_stats(struct leaf *l, const struct probe__style *style,
                      const struct probe_tensor *t, const struct probe__leaf_as *as, bool *odd)
{
    struct figure f[PROBE_STATS] = {{NO_FIGURE, 0, 0}};
    struct ms_stats s;
    if (as->later != 0) {
        for (unsigned i = 0; i < PROBE_STATS; i++)
            f[i] = (struct figure){LATER, 0, (uint64_t)as->later << 4 | i};
    } else if (!as->is_blank) {
        probe_tensor_stats(t, &s);
        *odd |= (s.nan | s.pinf | s.ninf) != 0;
        figures_of(style, t, &s, f);
    }
    KEY(l, "Max");
    put_figure(l, f[PROBE_STAT_MAX]);
    KEY(l, "Min");
    put_figure(l, f[PROBE_STAT_MIN]);
    KEY(l, "Mean");
    put_figure(l, f[PROBE_STAT_MEAN]);
    KEY(l, "Norm");
    put_figure(l, f[PROBE_STAT_NORM]);
}

bool probe__is_odd(const struct probe_tensor *t)
{
    struct ms_stats s;
    probe_tensor_stats(t, &s);
    return (s.nan | s.pinf | s.ninf) != 0;
}

/* ---- digests ---------------------------------------------------------- */

/* Updates the CRC with the same values as float32. */
static uint32_t crc_of_bf16(uint32_t crc, const char *p, uint64_t count)
{
    enum { CHUNK = 1024 };
    uint32_t wide[CHUNK];
    for (uint64_t at = 0; at < count; at += CHUNK) {
        const size_t n = count - at < CHUNK ? count - at : CHUNK;
        for (size_t i = 0; i < n; i++) {
            uint16_t v;
            memcpy(&v, p + (at + i) * sizeof v, sizeof v);
            wide[i] = (uint32_t)v << 16;
        }
        crc = ms_crc32(crc, wide, n * sizeof *wide);
    }
    return crc;
}

static void put_crc(struct leaf *l, const struct probe__style *style, const struct probe_tensor *t,
                    const struct probe__leaf_as *as)
{
    const bool is_widened = style->mindspore && t->dtype == MS_DT_BF16;
    struct probe_pieces pieces;
    uint32_t crc = 0;
    uint64_t n;
    if (as->is_blank || probe_tensor_is_endless(t)) {
        KEY(l, "md5");
        PUT(l, "null");
        return;
    }
    probe_pieces_start(&pieces, t);
    for (const void *p; (p = probe_pieces_next(&pieces, &n)) != NULL;)
        crc = is_widened ? crc_of_bf16(crc, p, n) : ms_crc32(crc, p, n * ms_dtype_size(t->dtype));
    probe_pieces_end(&pieces);
    KEY(l, "md5");
    PUT(l, "\"");
    put_hex(l, crc, 8);
    PUT(l, "\"");
}

/* XORs all elements; every block but the last is a whole number of 64-bit words. */
static uint64_t xor_of(const struct probe_tensor *t)
{
    struct probe_pieces pieces;
    uint64_t xor = 0, n;
    probe_pieces_start(&pieces, t);
    for (const void *p; (p = probe_pieces_next(&pieces, &n)) != NULL;)
        xor ^= ms_xor64(p, n *ms_dtype_size(t->dtype));
    probe_pieces_end(&pieces);
    return xor;
}

/* Writes the XOR digest: null for an empty tensor, the value itself for a real scalar, else hex. */
static void put_xor(struct leaf *l, const struct probe_tensor *t, const struct probe__leaf_as *as)
{
    KEY(l, "md5");
    if (t->count == 0 || as->is_blank || probe_tensor_is_endless(t)) {
        PUT(l, "null");
    } else if (t->ndim == 0 && ms_dtype_kind(t->dtype) == MS_DTK_FLOAT) {
        double v;
        ms_dtype_to_f64(t->dtype, t->data, 1, &v);
        put_f64(l, v);
    } else {
        PUT(l, "\"0x");
        put_hex(l, xor_of(t), 16);
        PUT(l, "\"");
    }
}

/* ---- the leaf --------------------------------------------------------- */

/* Writes a short plain word from outside, such as a class or a type. */
static void put_word(struct leaf *l, const char *word)
{
    PUT(l, "\"");
    append_bytes(l, word, strnlen(word, WORD_MAX));
    PUT(l, "\"");
}

static void put_type(struct leaf *l, const struct probe__style *style, enum ms_dtype t,
                     const struct probe__leaf_as *as)
{
    const char *name = style->mindspore ? ms_dtype_mindspore(t) : ms_dtype_torch(t);
    KEY(l, "type");
    if (as->type != NULL)
        put_word(l, as->type);
    else if (style->mindspore)
        PUT(l, "\"mindspore.Tensor\"");
    else
        PUT(l, "\"torch.Tensor\"");
    KEY(l, "dtype");
    if (as->dtype != NULL) {
        put_word(l, as->dtype);
        return;
    }
    if (style->mindspore)
        PUT(l, "\"");
    else
        PUT(l, "\"torch.");
    append_bytes(l, name, strlen(name));
    PUT(l, "\"");
}

static void put_shape(struct leaf *l, const struct probe_tensor *t)
{
    KEY(l, "shape");
    PUT(l, "[");
    for (uint32_t i = 0; i < t->ndim; i++) {
        if (i != 0)
            PUT(l, ",");
        put_line(l, l->indent + 1);
        l->at += ms_num_u64(l->at, t->shape[i]);
    }
    if (t->ndim != 0)
        put_line(l, l->indent);
    PUT(l, "]");
}

void probe__leaf_begin(struct ms_jwrite *json, const struct probe__style *style,
                       const struct probe_tensor *t, const struct probe__leaf_as *as, bool *odd)
{
    struct leaf l;
    ms_jwrite_obj(json);
    assert(t->ndim <= PROBE_MAX_DIMS);
    if (!begin_members(&l, json, t->ndim))
        return;
    put_type(&l, style, t->dtype, as);
    put_shape(&l, t);
    if (!style->bare && style->summary == PROBE_SUMMARY_XOR)
        put_xor(&l, t, as); /* an XOR stands before requires_grad, a CRC after it */
    else if (!style->bare)
        put_stats(&l, style, t, as, odd);
    if (!style->mindspore) {
        KEY(&l, "requires_grad");
        put_bool(&l, as->requires_grad);
    }
    const bool has_crc = !style->bare && style->summary == PROBE_SUMMARY_MD5;
    if (as->extra.n != 0) {
        ms_jwrite_end_members(json, l.at);
        ms_jwrite_members(json, as->extra);
        if (!has_crc || !begin_members(&l, json, 0))
            return;
    }
    if (has_crc)
        put_crc(&l, style, t, as);
    ms_jwrite_end_members(json, l.at);
}

/* ---- records whose figures come later ----------------------------------------------- */

enum { TEXT_MAX = 1 << 30, NUMBER_BITS = 4 };

bool probe__late_add(struct probe__late *l, struct ms_str record)
{
    l->text.max = TEXT_MAX;
    const size_t before = l->text.n;
    size_t *end = ms_vec_push(&l->ends);
    if (end == NULL)
        return false;
    ms_buf_str(&l->text, record);
    *end = l->text.n;
    if (l->text.bad == MS_OK)
        return true;
    l->text.bad = MS_OK;
    l->text.n = before;
    l->ends.n--;
    return false;
}

static uint64_t read_hex(const char *p, unsigned digits)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < digits; i++)
        v = v << 4 | (uint64_t)(p[i] <= '9' ? p[i] - '0' : p[i] - 'a' + 10);
    return v;
}

static void put_late_figure(struct ms_buf *b, const struct probe__figure *f)
{
    char digits[MS_NUM_MAX];
    switch (f->kind) {
    case PROBE_NUM_BOOL:
        ms_buf_puts(b, f->v != 0 ? "true" : "false");
        break;
    case PROBE_NUM_INT:
        ms_buf_put(b, digits, ms_num_i64(digits, f->i));
        break;
    case PROBE_NUM_FLOAT:
        ms_buf_put(b, digits, ms_num_f64(digits, f->v));
        break;
    default:
        ms_buf_puts(b, "null");
        break;
    }
}

static void fill_in(struct ms_buf *out, struct ms_str record, const struct probe__figure *f,
                    size_t n)
{
    static const struct probe__figure none = {.kind = PROBE_NUM_NULL};
    const char *p = record.p;
    const char *end = record.p + record.n;
    ms_buf_clear(out);
    for (const char *at; (at = memchr(p, PROBE__LATER, (size_t)(end - p))) != NULL;
         p = at + PROBE__LATER_BYTES) {
        uint64_t id = read_hex(at + 1, PROBE__LATER_BYTES - 1);
        uint64_t i = ((id >> NUMBER_BITS) - 1) * PROBE_STATS + (id & (PROBE_STATS - 1));
        ms_buf_put(out, p, (size_t)(at - p));
        put_late_figure(out, i < n ? &f[i] : &none);
    }
    ms_buf_put(out, p, (size_t)(end - p));
}

void probe__late_release(struct probe__late *l, const struct probe__figure *f, size_t nfigures,
                         probe__record_fn visit, void *ctx)
{
    struct ms_buf out = {.max = TEXT_MAX};
    size_t begin = 0;
    for (size_t i = 0; i < l->ends.n; i++) {
        fill_in(&out, (struct ms_str){l->text.p + begin, (uint32_t)(l->ends.p[i] - begin)}, f,
                nfigures);
        if (out.bad == MS_OK)
            visit(ctx, ms_buf_slice(&out));
        out.bad = MS_OK;
        begin = l->ends.p[i];
    }
    l->ends.n = 0;
    ms_buf_clear(&l->text);
    ms_buf_free(&out);
}

void probe__late_free(struct probe__late *l)
{
    ms_buf_free(&l->text);
    ms_vec_free(&l->ends);
}

/* SPDX-License-Identifier: MIT
 *
 * leaf_write: figures by the official rules, digests, and the words of the
 * framework.  A tensor of any strides is read piece by piece where it lies;
 * nothing is allocated.
 */
#include "probe/leaf_write.h"

#include "probe/leaf.h"

#include <math.h>
#include <stdio.h>

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

/* ---- elements --------------------------------------------------------- */

/* Contiguous bytes of a tensor, a piece at a time: its own memory, all at once, or gathered. */
struct pieces {
    const struct probe_tensor *t;
    uint64_t at;
    char scratch[(size_t)MS_STATS_BLOCK * 16];
};

/* Not an initialiser, which would clear the scratch as well. */
static void pieces_start(struct pieces *p, const struct probe_tensor *t)
{
    p->t = t;
    p->at = 0;
}

static const char *next_piece(struct pieces *p, size_t *bytes)
{
    const uint64_t left = p->t->count - p->at;
    const uint64_t n = p->t->contiguous || left < MS_STATS_BLOCK ? left : MS_STATS_BLOCK;
    if (n == 0)
        return NULL;
    const char *piece = probe_tensor_elements(p->t, p->at, n, p->scratch);
    p->at += n;
    *bytes = (size_t)n * ms_dtype_size(p->t->dtype);
    return piece;
}

/* ---- figures ---------------------------------------------------------- */

/* What to write for Max, Min, Mean and Norm. */
struct figure {
    enum { NO_FIGURE, TRUTH, WHOLE, NATURAL, REAL } kind;
    double v;
    uint64_t bits; /* of WHOLE, an int64_t, and NATURAL */
};

static bool is_whole(enum ms_dtype_kind kind)
{
    return kind == MS_DTK_INT || kind == MS_DTK_UINT;
}

/* Largest and smallest of 64-bit integers, most of which no double holds. */
static void whole_range(const struct probe_tensor *t, uint64_t *max, uint64_t *min)
{
    const uint64_t flip = t->dtype == MS_DT_I64 ? UINT64_C(1) << 63 : 0; /* orders the bits */
    struct pieces pieces;
    uint64_t hi = 0;
    uint64_t lo = UINT64_MAX;
    size_t bytes;
    pieces_start(&pieces, t);
    for (const char *p = next_piece(&pieces, &bytes); p != NULL; p = next_piece(&pieces, &bytes)) {
        for (const char *end = p + bytes; p != end; p += sizeof hi) {
            uint64_t v;
            memcpy(&v, p, sizeof v);
            v ^= flip;
            hi = v > hi ? v : hi;
            lo = v < lo ? v : lo;
        }
    }
    *max = hi ^ flip;
    *min = lo ^ flip;
}

/* A double holds every whole number below 2^53, and keeps the order of those beyond. */
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
static struct figure reduced(const struct probe__style *style, enum ms_dtype t, double v)
{
    return (struct figure){REAL, ms_dtype_round(style->unrounded ? MS_DT_F32 : t, v), 0};
}

/* Which of the four the official tool has for a type: the table of the format's statistics rules. */
static void figures_of(const struct probe__style *style, const struct probe_tensor *t,
                       const struct ms_stats *s, struct figure f[PROBE_STATS])
{
    enum ms_dtype_kind kind = ms_dtype_kind(t->dtype);
    if (t->count == 0 || (kind == MS_DTK_FLOAT && ms_dtype_size(t->dtype) == 1))
        return;
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
        f[PROBE_STAT_MEAN] = reduced(style, as, ms_stats_mean(s));
    if (all || (complex && style->mindspore))
        f[PROBE_STAT_NORM] = reduced(style, as, ms_stats_norm(s));
}

static void put_figure(struct ms_jwrite *json, struct figure f)
{
    switch (f.kind) {
    case NO_FIGURE:
        ms_jwrite_null(json);
        break;
    case TRUTH:
        ms_jwrite_bool(json, f.v != 0);
        break;
    case WHOLE:
        ms_jwrite_i64(json, (int64_t)f.bits);
        break;
    case NATURAL:
        ms_jwrite_u64(json, f.bits);
        break;
    case REAL:
        ms_jwrite_f64(json, f.v);
        break;
    }
}

static void put_stats(struct ms_jwrite *json, const struct probe__style *style,
                      const struct probe_tensor *t, bool *odd)
{
    struct figure f[PROBE_STATS] = {{NO_FIGURE, 0, 0}};
    struct ms_stats s;
    probe_tensor_stats(t, &s);
    *odd |= (s.nan | s.pinf | s.ninf) != 0;
    figures_of(style, t, &s, f);
    for (int i = 0; i < PROBE_STATS; i++) {
        ms_jwrite_key(json, ms_str_of(probe_stat_names[i]));
        put_figure(json, f[i]);
    }
}

bool probe__is_odd(const struct probe_tensor *t)
{
    struct ms_stats s;
    probe_tensor_stats(t, &s);
    return (s.nan | s.pinf | s.ninf) != 0;
}

/* ---- digests ---------------------------------------------------------- */

static void put_crc(struct ms_jwrite *json, const struct probe_tensor *t)
{
    char text[16];
    struct pieces pieces;
    uint32_t crc = 0;
    size_t bytes;
    pieces_start(&pieces, t);
    for (const char *p = next_piece(&pieces, &bytes); p != NULL; p = next_piece(&pieces, &bytes))
        crc = ms_crc32(crc, p, bytes);
    snprintf(text, sizeof text, "%08x", crc);
    ms_jwrite_kstr(json, "md5", text);
}

/* Every piece but the last is a whole number of words. */
static uint64_t xor_of(const struct probe_tensor *t)
{
    struct pieces pieces;
    uint64_t xor = 0;
    size_t bytes;
    pieces_start(&pieces, t);
    for (const char *p = next_piece(&pieces, &bytes); p != NULL; p = next_piece(&pieces, &bytes))
        xor ^= ms_xor64(p, bytes);
    return xor;
}

/* Nothing of an empty tensor, a real number without dimensions as itself, all else in hex. */
static void put_xor(struct ms_jwrite *json, const struct probe_tensor *t)
{
    char text[24];
    ms_jwrite_key(json, MS_STR("md5"));
    if (t->count == 0) {
        ms_jwrite_null(json);
    } else if (t->ndim == 0 && ms_dtype_kind(t->dtype) == MS_DTK_FLOAT) {
        double v;
        ms_dtype_to_f64(t->dtype, t->data, 1, &v);
        ms_jwrite_f64(json, v);
    } else {
        snprintf(text, sizeof text, "0x%016llx", (unsigned long long)xor_of(t));
        ms_jwrite_str(json, ms_str_of(text));
    }
}

/* ---- the leaf --------------------------------------------------------- */

static void put_type(struct ms_jwrite *json, const struct probe__style *style,
                     const struct probe_tensor *t)
{
    char dtype[64] = "torch.";
    size_t n = strlen(dtype);
    struct ms_str name =
        ms_str_of(style->mindspore ? ms_dtype_mindspore(t->dtype) : ms_dtype_torch(t->dtype));
    memcpy(dtype + n, name.p, name.n);
    if (!style->mindspore)
        name = (struct ms_str){dtype, (uint32_t)n + name.n};
    ms_jwrite_kstr(json, "type", style->mindspore ? "mindspore.Tensor" : "torch.Tensor");
    ms_jwrite_key(json, MS_STR("dtype"));
    ms_jwrite_str(json, name);
    ms_jwrite_key(json, MS_STR("shape"));
    ms_jwrite_arr(json);
    for (uint32_t i = 0; i < t->ndim; i++)
        ms_jwrite_u64(json, t->shape[i]);
    ms_jwrite_arr_end(json);
}

void probe__leaf_begin(struct ms_jwrite *json, const struct probe__style *style,
                       const struct probe_tensor *t, bool requires_grad, bool *odd)
{
    const bool xor = style->summary == PROBE_SUMMARY_XOR;
    ms_jwrite_obj(json);
    put_type(json, style, t);
    if (!style->bare && xor)
        put_xor(json, t); /* before requires_grad, and a CRC after it */
    else if (!style->bare)
        put_stats(json, style, t, odd);
    if (!style->mindspore)
        ms_jwrite_kbool(json, "requires_grad", requires_grad);
    if (!style->bare && style->summary == PROBE_SUMMARY_MD5)
        put_crc(json, t);
}

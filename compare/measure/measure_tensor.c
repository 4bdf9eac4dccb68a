/* SPDX-License-Identifier: MIT
 *
 * measure_tensor: reads the tensor files of every pair once.
 *
 * Large tensors are cut into chunks of a fixed size. All threads measure chunks of any
 * pairs, and the chunks of one pair are joined in order. The two files of a chunk are mapped
 * only while the chunk is read, so memory does not grow with the size of the tensors.
 */
#include "compare/measure/fold.h"
#include "compare/measure/measure_one.h"
#include "compare/measure/multiply.h"
#include "compare/measure/tensor_file.h"

#include "probe/base/assert.h"
#include "probe/base/log.h"
#include "probe/base/num.h"
#include "probe/tensor/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- distances of float16 ------------------------------------------------- */

/* Distances of float16 elements in float16 steps. The main pass widens elements to float32, which
 * has about a thousand times more values near zero, so these distances are counted separately. */
struct half_ulps {
    uint64_t sum, max;
};

enum { SIGN = 0x8000, REST = 0x7fff, INFINITE = 0x7c00, HALF_BLOCK = 4096 };

/* Maps a float16 to an integer such that neighbours differ by one and both zeros are equal. */
static int32_t half_place(uint16_t bits)
{
    int32_t rest = bits & REST;
    return (bits & SIGN) != 0 ? -rest : rest;
}

static uint32_t half_apart(uint16_t n, uint16_t b)
{
    int32_t d = half_place(n) - half_place(b);
    uint32_t far = (uint32_t)(d < 0 ? -d : d);
    return (n & REST) < INFINITE && (b & REST) < INFINITE ? far : 0;
}

static void half_ulps_add(struct half_ulps *u, const void *n, const void *b, size_t m)
{
    uint16_t x[HALF_BLOCK], y[HALF_BLOCK];
    for (size_t at = 0; at < m; at += HALF_BLOCK) {
        size_t k = m - at < HALF_BLOCK ? m - at : HALF_BLOCK;
        uint32_t sum = 0, max = 0; /* 4096 distances below 2^16 fit */
        memcpy(x, (const char *)n + at * sizeof *x, k * sizeof *x);
        memcpy(y, (const char *)b + at * sizeof *y, k * sizeof *y);
        for (size_t i = 0; i < k; i++) {
            uint32_t far = half_apart(x[i], y[i]);
            sum += far;
            max = far > max ? far : max;
        }
        u->sum += sum;
        u->max = max > u->max ? max : u->max;
    }
}

static void half_ulps_join(struct half_ulps *u, const struct half_ulps *next)
{
    u->sum += next->sum;
    u->max = next->max > u->max ? next->max : u->max;
}

/* ---- golden zeros --------------------------------------------------------- */

/* For a golden zero, msprobe 1.x divides by the epsilon of double precision whatever the type is;
 * msprobe 26 divides by that of float32 where it computes in float32. The main pass follows msprobe
 * 26; a second look at elements with a golden zero keeps this difference out of the main pass. */
struct golden_zeros {
    float max_rel;
    uint64_t thousandth, five; /* elements that only the main pass counts as close */
};

enum { ZERO_BLOCK = 512 };

static float relative_error(float n, float step)
{
    return fabsf(((n + step) - step) / step);
}

static void note_zero(struct golden_zeros *z, float n)
{
    float old = relative_error(n, 0x1p-52F), cur = relative_error(n, 0x1p-23F);
    z->max_rel = old > z->max_rel ? old : z->max_rel;
    z->thousandth += cur < 0.001F && old >= 0.001F;
    z->five += cur < 0.005F && old >= 0.005F;
}

static void zeros_add(struct golden_zeros *z, enum ms_dtype tn, const void *n, enum ms_dtype tb,
                      const void *b, size_t m)
{
    double x[ZERO_BLOCK], y[ZERO_BLOCK];
    if (!cmp_facts_single(tn, tb)) /* double types use this epsilon in the main pass too */
        return;
    for (size_t at = 0; at < m; at += ZERO_BLOCK) {
        size_t k = m - at < ZERO_BLOCK ? m - at : ZERO_BLOCK;
        ms_dtype_to_f64(tn, (const char *)n + at * ms_dtype_size(tn), k, x);
        ms_dtype_to_f64(tb, (const char *)b + at * ms_dtype_size(tb), k, y);
        for (size_t i = 0; i < k; i++) {
            if (y[i] == 0 && isfinite(x[i]))
                note_zero(z, (float)x[i]);
        }
    }
}

static void zeros_join(struct golden_zeros *z, const struct golden_zeros *next)
{
    z->max_rel = next->max_rel > z->max_rel ? next->max_rel : z->max_rel;
    z->thousandth += next->thousandth;
    z->five += next->five;
}

static void zeros_apply(const struct golden_zeros *z, struct cmp_facts *f)
{
    f->max_rel = (double)z->max_rel > f->max_rel ? (double)z->max_rel : f->max_rel;
    f->thousandth -= z->thousandth;
    f->five -= z->five;
}

#define CHUNK ((uint64_t)4 << 20) /* elements: a multiple of CMP_METRIC_BLOCK */
enum { BATCH = 4096 };
/* Batches of large tensors are shorter, so that progress is reported more often. */
#define BATCH_ELEMENTS (CHUNK * 64)

/* A chunk of one pair and its results. Processes send chunks to each other as raw bytes. */
struct chunk {
    uint32_t pair, index;
    bool done; /* measured by this process or another one */
    /* used: elements of the target that the operator wrote; the rest count as zeros */
    uint64_t bytes, used;
    struct cmp_figures fig; /* final when state is not OK */
    enum ms_dtype tn, tb;
    struct cmp_facts facts;
    struct golden_zeros zeros; /* with rules.golden_zero_by_double */
    struct half_ulps halves;   /* with conf.ext */
};

/* Settings that decide how two tensors are measured. */
struct terms {
    const struct cmp_rules *rules;
    bool ext;        /* measure what the extended columns need */
    bool keeps_axes; /* axes of length 1 count in the comparison of shapes */
};

struct batch {
    const struct cmp_rows *c;
    struct cmp_measured *m;
    struct terms terms;
    MS_VEC(struct chunk) chunks;
    uint64_t elements; /* estimate */
    /* with several processes: this process measures every parts-th chunk, beginning with `part` */
    unsigned part, parts;
    size_t before; /* chunks of earlier batches */
    uint64_t bytes;
    struct ms_buf *packed;
};

/* ---- numbers of chunks ------------------------------------------------------ */

static uint64_t elements_of(const struct cmp__side *s, uint32_t row)
{
    struct probe_leaf leaf;
    uint64_t dim[PROBE_MAX_DIMS], n = 1;
    unsigned ndim;
    probe_row_leaf(s->dump, cmp__side_row(s, row), &leaf);
    if (!probe_leaf_shape(&leaf, dim, PROBE_MAX_DIMS, &ndim))
        return 1;
    for (unsigned i = 0; i < ndim; i++) {
        if (__builtin_mul_overflow(n, dim[i], &n))
            return 1;
    }
    return n;
}

static bool has_folds(const struct cmp_rows *c, const struct cmp__pair *p)
{
    size_t n;
    (void)cmp__folds_of(c, (uint32_t)(p - c->pairs.p), &n);
    return n != 0;
}

/* Returns the number of chunks of a pair, by the shape in the dump. */
static uint32_t chunks_of(const struct cmp_rows *c, const struct cmp_measured *m,
                          const struct cmp__pair *p)
{
    if (cmp__data_name(&c->t, p->t).n == 0 || cmp__data_name(&c->b, p->b).n == 0)
        return 0;
    /* folded and multiplied tensors are measured in one piece */
    if (has_folds(c, p) || cmp__has_factors(m->factors, c, p))
        return 1;
    uint64_t n = elements_of(&c->t, p->t) / CHUNK + 1;
    return n < 1 << 20 ? (uint32_t)n : 1 << 20;
}

/* ---- one chunk ------------------------------------------------------------------ */

/* A range of elements of two tensors. Elements of the target from `used` on count as zeros. */
struct stretch {
    const struct probe_tensor *n, *b;
    uint64_t from, to, used;
    void *n_space, *b_space; /* buffers for elements that cannot be read directly from the file */
};

static enum ms_rc gather_space(struct stretch *s, struct ms_err *err)
{
    bool copies = !s->n->contiguous || s->used < s->to;
    if (copies)
        s->n_space = ms_alloc(CMP_METRIC_BLOCK * ms_dtype_size(s->n->dtype));
    if (!s->b->contiguous)
        s->b_space = ms_alloc(CMP_METRIC_BLOCK * ms_dtype_size(s->b->dtype));
    if ((copies && s->n_space == NULL) || (!s->b->contiguous && s->b_space == NULL))
        return ms_no_memory(err);
    return MS_OK;
}

static const void *target_elements(const struct stretch *s, uint64_t at, uint64_t m)
{
    const char *p = probe_tensor_elements(s->n, at, m, s->n_space);
    if (at + m <= s->used)
        return p;
    uint64_t kept = s->used > at ? s->used - at : 0;
    size_t size = ms_dtype_size(s->n->dtype);
    char *space = s->n_space;
    if (p != space)
        memcpy(space, p, kept * size);
    memset(space + kept * size, 0, (m - kept) * size);
    return space;
}

static enum ms_rc measure_stretch(struct chunk *ch, const struct terms *terms, struct stretch *s,
                                  struct ms_err *err)
{
    enum ms_rc rc = gather_space(s, err);
    uint64_t step = s->n_space == NULL && s->b_space == NULL ? CHUNK : CMP_METRIC_BLOCK;
    for (uint64_t at = s->from; at < s->to && rc == MS_OK; at += step) {
        uint64_t m = s->to - at < step ? s->to - at : step;
        const void *n = target_elements(s, at, m);
        const void *b = probe_tensor_elements(s->b, at, m, s->b_space);
        cmp_facts_add(&ch->facts, s->n->dtype, n, s->b->dtype, b, (size_t)m, terms->ext);
        if (terms->rules->golden_zero_by_double)
            zeros_add(&ch->zeros, s->n->dtype, n, s->b->dtype, b, (size_t)m);
        if (terms->ext && s->n->dtype == MS_DT_F16 && s->b->dtype == MS_DT_F16)
            half_ulps_add(&ch->halves, n, b, (size_t)m);
    }
    ms_free(s->n_space);
    ms_free(s->b_space);
    return rc;
}

/* Returns the number of leading elements that the operator wrote; axes of length 1 are skipped. */
static uint64_t used_elements(const struct cmp_rows *c, uint32_t row, const struct probe_tensor *n)
{
    uint64_t rows = cmp__used_rows(c, row);
    uint32_t axis = 0;
    while (axis < n->ndim && n->shape[axis] == 1)
        axis++;
    return axis == n->ndim || rows >= n->shape[axis] ? UINT64_MAX
                                                     : rows * (n->count / n->shape[axis]);
}

/* Returns the only element; of a complex number the real part, as for larger tensors. */
static double only_element(const struct probe_tensor *t)
{
    double v;
    float single;
    if (t->dtype == MS_DT_C64) {
        memcpy(&single, t->data, sizeof single);
        return (double)single;
    }
    if (t->dtype == MS_DT_C128)
        memcpy(&v, t->data, sizeof v);
    else
        ms_dtype_to_f64(t->dtype, t->data, 1, &v);
    return v;
}

/* Measures a single element, in the arithmetic that numpy 1 uses for its type. */
static void measure_scalar(struct chunk *ch, const struct probe_tensor *n,
                           const struct probe_tensor *b, const struct cmp_rules *rules)
{
    double x = only_element(n), y = only_element(b);
    bool single = cmp_facts_single(n->dtype, b->dtype), in_f32 = single || rules->single_scalars;
    double d = single ? (double)fabsf((float)x - (float)y) : fabs(x - y);
    if (rules->numpy_scalars)
        d = cmp__numpy_apart(n->dtype, x, b->dtype, y);
    double step = y == 0 ? (in_f32 ? 0x1p-23 : 0x1p-52) : 0;
    double below = y + step, above = x + step;
    double rel = in_f32 ? (double)fabsf(((float)above - (float)below) / (float)below)
                        : fabs((above - below) / below);
    if (rules->golden_zero_by_double)
        rel = cmp__numpy_relative(n->dtype, x, b->dtype, y);
    ch->fig.state = CMP_STATE_SCALAR;
    ch->fig.metric[CMP_MAX_ABS] = d;
    ch->fig.metric[CMP_MAX_REL] = rel;
}

static bool is_shaped_as(const struct probe_tensor *a, const struct probe_tensor *b)
{
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0;
}

static enum ms_rc measure_alike(const struct terms *terms, struct chunk *ch, uint32_t last,
                                const struct probe_tensor *n, const struct probe_tensor *b,
                                struct ms_err *err)
{
    ch->tn = n->dtype;
    ch->tb = b->dtype;
    if (n->count == 0 || b->count == 0) {
        ch->fig.state = n->count == 0 ? CMP_STATE_EMPTY : CMP_STATE_SHAPE;
        return MS_OK;
    }
    if (terms->keeps_axes ? !is_shaped_as(n, b) : !cmp__same_shape(n, b)) {
        ch->fig.state = CMP_STATE_SHAPE;
        return MS_OK;
    }
    if (n->count == 1 && (n->ndim == 0 || !terms->keeps_axes)) {
        measure_scalar(ch, n, b, terms->rules);
        return MS_OK;
    }
    uint64_t from = CHUNK * ch->index, to = from + CHUNK;
    if (from > n->count)
        from = n->count;
    if (to > n->count || ch->index == last)
        to = n->count;
    ch->bytes = (to - from) * (ms_dtype_size(n->dtype) + ms_dtype_size(b->dtype));
    struct stretch s = {.n = n, .b = b, .from = from, .to = to, .used = ch->used};
    return measure_stretch(ch, terms, &s, err);
}

/* Views a complex tensor as real numbers with one more axis for the real and the imaginary part. */
static struct probe_tensor parts_of(const struct probe_tensor *t)
{
    struct probe_tensor p = *t;
    for (uint32_t i = 0; i < p.ndim; i++)
        p.stride[i] *= 2;
    p.shape[p.ndim] = 2;
    p.stride[p.ndim++] = 1;
    p.count *= 2;
    p.dtype = ms_dtype_part(t->dtype);
    return p;
}

static bool has_parts(const struct probe_tensor *t)
{
    return ms_dtype_part(t->dtype) != MS_DT_NONE && t->ndim < PROBE_MAX_DIMS;
}

/* Measures complex tensors by parts where the rules say so; the official tool drops the imaginary
 * parts. */
static enum ms_rc measure_open(const struct terms *terms, struct chunk *ch, uint32_t last,
                               const struct probe_tensor *n, const struct probe_tensor *b,
                               struct ms_err *err)
{
    if (!terms->rules->complex_by_parts || !has_parts(n) || !has_parts(b))
        return measure_alike(terms, ch, last, n, b, err);
    struct probe_tensor x = parts_of(n), y = parts_of(b);
    if (ch->used != UINT64_MAX)
        ch->used *= 2;
    return measure_alike(terms, ch, last, &x, &y, err);
}

/* Multiplies the sides by their matrices before they are measured. */
static enum ms_rc measure_products(const struct batch *batch, struct chunk *ch,
                                   const struct probe_tensor *n, const struct probe_tensor *b,
                                   struct ms_err *err)
{
    const struct cmp_rows *c = batch->c;
    const struct cmp__factors *f = batch->m->factors;
    const struct cmp_rules *rules = c->set->conf.rules;
    struct cmp__product x = {0}, y = {0};
    struct ms_err why = {0};
    const struct cmp__pair *p = &c->pairs.p[ch->pair];
    enum ms_rc rc =
        cmp__multiply(f, rules, true, cmp__data_name(&c->t, p->t), n, ch->used, &x, &why);
    if (rc == MS_OK)
        rc = cmp__multiply(f, rules, false, cmp__data_name(&c->b, p->b), b, UINT64_MAX, &y, &why);
    if (rc == MS_OK) {
        ch->used = x.own != NULL ? UINT64_MAX : ch->used;
        rc = measure_open(&batch->terms, ch, ch->index, &x.t, &y.t, err);
    } else if (rc == MS_E_NOMEM) {
        rc = ms_no_memory(err);
    } else {
        ms_info("%s", why.msg);
        ch->fig.state = CMP_STATE_UNREADABLE;
        rc = MS_OK;
    }
    ms_free(x.own);
    ms_free(y.own);
    return rc;
}

static enum ms_rc measure_folded(const struct cmp_rows *c, struct chunk *ch, struct ms_err *err)
{
    struct ms_err why = {0};
    ch->tn = ch->tb = MS_DT_F32;
    ch->fig.state = cmp__fold_facts(c, ch->pair, &ch->facts, &ch->bytes, &why);
    if (why.rc == MS_E_NOMEM)
        return ms_fail(err, MS_E_NOMEM, "%s", why.msg);
    if (why.rc != MS_OK)
        ms_info("%s", why.msg);
    return MS_OK;
}

/* Tells whether the official tool reads this file: only .pt from PyTorch and .npy from the other
 * frameworks. */
static bool is_own_format(const struct cmp__side *s, uint32_t row)
{
    return ms_str_ends(cmp__data_name(s, row), cmp__is_pytorch(s) ? MS_STR(".pt") : MS_STR(".npy"));
}

static bool is_readable(const struct cmp_rows *c, const struct cmp__pair *p)
{
    return !c->set->conf.rules->own_formats ||
           (is_own_format(&c->t, p->t) && is_own_format(&c->b, p->b));
}

static enum ms_rc measure_chunk(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    struct batch *batch = ctx;
    const struct cmp_rows *c = batch->c;
    struct chunk *ch = &batch->chunks.p[item];
    const struct cmp__pair *p = &c->pairs.p[ch->pair];
    struct probe_tensor n = {0}, b = {0};
    struct ms_err why = {0};
    bool more = item + 1 < batch->chunks.n && batch->chunks.p[item + 1].pair == ch->pair;
    (void)worker;
    if ((batch->before + item) % batch->parts != batch->part)
        return MS_OK;
    ch->done = true;
    if (has_folds(c, p))
        return measure_folded(c, ch, err);
    if (!is_readable(c, p)) {
        ch->fig.state = CMP_STATE_UNREADABLE;
        return MS_OK;
    }
    if (cmp__open_tensor(c->t.dump, c->t_dir, cmp__data_name(&c->t, p->t), &n, &why) != MS_OK ||
        cmp__open_tensor(c->b.dump, c->b_dir, cmp__data_name(&c->b, p->b), &b, &why) != MS_OK) {
        probe_tensor_close(&n);
        if (why.rc == MS_E_NOMEM)
            return ms_fail(err, MS_E_NOMEM, "%s", why.msg);
        ms_info("%s", why.msg);
        ch->fig.state = CMP_STATE_UNREADABLE;
        return MS_OK;
    }
    ch->used = used_elements(c, p->t, &n);
    enum ms_rc rc =
        cmp__has_factors(batch->m->factors, c, p)
            ? measure_products(batch, ch, &n, &b, err)
            : measure_open(&batch->terms, ch, more ? UINT32_MAX : ch->index, &n, &b, err);
    probe_tensor_close(&n);
    probe_tensor_close(&b);
    return rc;
}

/* ---- from facts to figures ---------------------------------------------------------- */

double cmp__round12(double x)
{
    char text[400]; /* the largest double has 309 digits before the point */
    if (!isfinite(x))
        return x;
    int n = snprintf(text, sizeof text, "%.12f", x);
    (void)ms_num_parse_f64(text, (size_t)n, &x);
    return x;
}

static double cosine_of(const struct cmp_facts *f)
{
    double n = sqrt(f->nn), b = sqrt(f->bb);
    const double tiny = 2.220446049250313e-16;
    if (n <= tiny && b <= tiny)
        return 1;
    if (n <= tiny || b <= tiny)
        return NAN;
    double cosine = f->nb / (n * b);
    return cosine > 0.9999 ? round(cosine * 1e6) / 1e6 : cosine;
}

static unsigned mantissa_bits(enum ms_dtype t)
{
    return t == MS_DT_F16 ? 10 : t == MS_DT_BF16 ? 7 : 23;
}

/* Returns the step of the coarser type in float32 steps, in which distances were counted. */
static double ulp_unit(enum ms_dtype a, enum ms_dtype b)
{
    if (!cmp_facts_single(a, b))
        return 1;
    unsigned bits = mantissa_bits(a) < mantissa_bits(b) ? mantissa_bits(a) : mantissa_bits(b);
    return ldexp(1, 23 - (int)bits);
}

/* Whole numbers have a step of 1. */
static void put_ulps(struct cmp_ext *e, const struct chunk *ch, const struct cmp_facts *f)
{
    double unit = ulp_unit(ch->tn, ch->tb), sum = f->sum_ulp / unit, max = f->max_ulp / unit;
    if (ms_dtype_is_whole(ch->tn) && ms_dtype_is_whole(ch->tb)) {
        sum = f->sum_abs_d;
        max = f->max_abs;
    } else if (ch->tn == MS_DT_F16 && ch->tb == MS_DT_F16) {
        sum = (double)ch->halves.sum;
        max = (double)ch->halves.max;
    }
    e->mean_ulp = sum / (double)f->count;
    e->max_ulp = max;
}

static struct cmp_ext ext_of(const struct chunk *ch, const struct cmp_facts *f, bool all)
{
    struct cmp_ext e = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    double count = (double)f->count;
    e.rel_l2 = f->dd == 0 ? 0 : f->bb > 0 ? sqrt(f->dd / f->bb) : HUGE_VAL;
    e.sqnr_db = -20 * log10(e.rel_l2);
    e.scale = f->bb > 0 ? f->nb / f->bb : NAN;
    if (all || cmp_facts_whole(ch->tn, ch->tb))
        e.bit_equal = (double)f->bit_equal / count;
    if (!all)
        return e;
    put_ulps(&e, ch, f);
    e.bias = f->sum_abs_d > 0 ? fabs(f->sum_d) / f->sum_abs_d : 0;
    return e;
}

static void conclude_chunk(const struct terms *terms, const struct chunk *ch,
                           const struct cmp_facts *f, struct cmp_figures *fig)
{
    *fig = ch->fig;
    if (fig->state == CMP_STATE_SCALAR) {
        fig->metric[CMP_MAX_ABS] = cmp__round12(fig->metric[CMP_MAX_ABS]);
        fig->metric[CMP_MAX_REL] = cmp__round12(fig->metric[CMP_MAX_REL]);
        return;
    }
    if (fig->state != CMP_STATE_OK)
        return;
    if (f->mask_diff != 0 || (f->sign_diff != 0 && !terms->rules->ignores_signs)) {
        fig->state = CMP_STATE_MASKS;
        return;
    }
    fig->metric[CMP_COSINE] = f->count == 1 ? HUGE_VAL : cmp__round12(cosine_of(f));
    fig->metric[CMP_EUCLID] = sqrt(f->dd);
    fig->metric[CMP_MAX_ABS] = cmp__round12(f->max_abs);
    fig->metric[CMP_MAX_REL] = cmp__round12(f->max_rel);
    fig->metric[CMP_THOUSANDTH] = cmp__round12((double)f->thousandth / (double)f->count);
    fig->metric[CMP_FIVE] = cmp__round12((double)f->five / (double)f->count);
    fig->ext = ext_of(ch, f, terms->ext);
}

/* Joins the chunks of each pair, which follow each other. The first chunk that could not be
 * measured decides the state of the pair. */
static void conclude_batch(struct batch *batch)
{
    for (size_t i = 0, end; i < batch->chunks.n; i = end) {
        struct chunk *first = &batch->chunks.p[i];
        struct cmp_facts f = first->facts;
        batch->m->bytes_read += first->bytes;
        for (end = i + 1; end < batch->chunks.n && batch->chunks.p[end].pair == first->pair;
             end++) {
            const struct chunk *next = &batch->chunks.p[end];
            cmp_facts_join(&f, &next->facts);
            zeros_join(&first->zeros, &next->zeros);
            half_ulps_join(&first->halves, &next->halves);
            batch->m->bytes_read += next->bytes;
            if (first->fig.state == CMP_STATE_OK)
                first->fig.state = next->fig.state;
        }
        zeros_apply(&first->zeros, &f);
        conclude_chunk(&batch->terms, first, &f, &batch->m->figures.p[first->pair]);
    }
}

/* ---- all pairs ------------------------------------------------------------------------ */

static void pack_batch(struct batch *batch)
{
    for (size_t i = 0; i < batch->chunks.n; i++) {
        const struct chunk *ch = &batch->chunks.p[i];
        if (!ch->done)
            continue;
        batch->bytes += ch->bytes;
        ms_buf_put(batch->packed, ch, sizeof *ch);
    }
}

static enum ms_rc measure_batch(struct batch *batch, struct ms_pool *pool, struct ms_err *err)
{
    if (batch->chunks.n == 0)
        return MS_OK;
    MS_TRY(ms_pool_run(pool, batch->chunks.n, measure_chunk, batch, err));
    if (batch->packed != NULL)
        pack_batch(batch);
    else
        conclude_batch(batch);
    batch->before += batch->chunks.n;
    batch->chunks.n = 0;
    batch->elements = 0;
    return batch->packed != NULL ? ms_buf_check(batch->packed, err) : MS_OK;
}

/* Adds all chunks of a pair; a batch holds whole pairs. */
static enum ms_rc add_chunks(struct batch *batch, uint32_t pair, uint32_t n, struct ms_err *err)
{
    if (!ms_vec_reserve(&batch->chunks, batch->chunks.n + n))
        return ms_no_memory(err);
    for (uint32_t i = 0; i < n; i++)
        batch->chunks.p[batch->chunks.n++] =
            (struct chunk){.pair = pair, .index = i, .used = UINT64_MAX};
    return MS_OK;
}

static void report_progress(const struct batch *batch, size_t pairs)
{
    const struct cmp_rows *c = batch->c;
    const struct cmp_progress p = {.what = "measuring",
                                   .share =
                                       c->pairs.n != 0 ? (double)pairs / (double)c->pairs.n : 1,
                                   .amount = batch->m->bytes_read + batch->bytes,
                                   .is_bytes = true};
    cmp__progress(c->set, &p);
}

static enum ms_rc measure_all(struct batch *batch, struct ms_pool *pool, struct ms_err *err)
{
    const struct cmp_rows *c = batch->c;
    for (uint32_t i = 0; i < c->pairs.n; i++) {
        uint32_t n = chunks_of(c, batch->m, &c->pairs.p[i]);
        if (n == 0) {
            batch->m->figures.p[i] = (struct cmp_figures){.state = CMP_STATE_NO_DATA};
            continue;
        }
        MS_TRY(add_chunks(batch, i, n, err));
        batch->elements += elements_of(&c->t, c->pairs.p[i].t);
        if (batch->chunks.n < BATCH && batch->elements < BATCH_ELEMENTS)
            continue;
        MS_TRY(measure_batch(batch, pool, err));
        report_progress(batch, i);
    }
    enum ms_rc rc = measure_batch(batch, pool, err);
    report_progress(batch, c->pairs.n);
    return rc;
}

/* msprobe 1.x does not remove axes of length 1 from PyTorch tensors. */
static struct terms terms_of(const struct cmp_rows *c)
{
    const struct cmp_conf *conf = &c->set->conf;
    return (struct terms){.rules = conf->rules,
                          .ext = conf->ext,
                          .keeps_axes = conf->rules->keeps_axes && cmp__is_pytorch(&c->t)};
}

static enum ms_rc fill_figures(struct batch *batch, struct ms_pool *pool, struct ms_err *err)
{
    size_t pairs = batch->c->pairs.n;
    ms_assert(batch->part < batch->parts);
    if (!ms_vec_reserve(&batch->m->figures, pairs + 1))
        return ms_no_memory(err);
    batch->m->figures.n = pairs;
    enum ms_rc rc = measure_all(batch, pool, err);
    ms_vec_free(&batch->chunks);
    return rc;
}

enum ms_rc cmp__measure_tensors(const struct cmp_rows *c, struct cmp_measured *m,
                                struct ms_pool *pool, struct ms_err *err)
{
    struct batch batch = {.c = c, .m = m, .terms = terms_of(c), .parts = 1};
    return fill_figures(&batch, pool, err);
}

void cmp__measured_free(struct cmp_measured *m)
{
    cmp__factors_free(m->factors);
    ms_vec_free(&m->figures);
    ms_vec_free(&m->noise);
}

enum ms_rc cmp__measure_two(const struct cmp_rules *rules, bool ext, const struct probe_tensor *n,
                            const struct probe_tensor *b, struct cmp_figures *fig,
                            struct ms_err *err)
{
    const struct terms terms = {.rules = rules, .ext = ext};
    struct chunk ch = {.used = UINT64_MAX};
    MS_TRY(measure_open(&terms, &ch, 0, n, b, err));
    struct cmp_facts f = ch.facts;
    zeros_apply(&ch.zeros, &f);
    conclude_chunk(&terms, &ch, &f, fig);
    return MS_OK;
}

/* ---- by several processes ------------------------------------------------------------- */

enum ms_rc cmp__measure_part(const struct cmp_rows *c, struct cmp_measured *m, struct ms_pool *pool,
                             unsigned part, unsigned parts, struct ms_buf *packed,
                             struct ms_err *err)
{
    struct batch batch = {
        .c = c, .m = m, .terms = terms_of(c), .part = part, .parts = parts, .packed = packed};
    return fill_figures(&batch, pool, err);
}

/* Lists all chunks in order; first[pair] is the index of the pair's first chunk. */
static enum ms_rc list_chunks(struct batch *batch, size_t *first, struct ms_err *err)
{
    const struct cmp_rows *c = batch->c;
    for (uint32_t i = 0; i < c->pairs.n; i++) {
        first[i] = batch->chunks.n;
        MS_TRY(add_chunks(batch, i, chunks_of(c, batch->m, &c->pairs.p[i]), err));
    }
    first[c->pairs.n] = batch->chunks.n;
    return MS_OK;
}

static enum ms_rc unpack(struct batch *batch, const size_t *first, struct ms_str packed,
                         struct ms_err *err)
{
    struct chunk ch;
    for (uint32_t at = 0; at < packed.n; at += (uint32_t)sizeof ch) {
        if (packed.n - at < sizeof ch)
            return ms_fail(err, MS_E_FORMAT, "half a chunk from another process");
        memcpy(&ch, packed.p + at, sizeof ch);
        if (ch.pair >= batch->c->pairs.n || ch.index >= first[ch.pair + 1] - first[ch.pair])
            return ms_fail(err, MS_E_FORMAT, "another process has found other tensors");
        batch->chunks.p[first[ch.pair] + ch.index] = ch;
    }
    return MS_OK;
}

static enum ms_rc join_all(struct batch *batch, size_t *first, const struct ms_str *packed,
                           unsigned parts, struct ms_err *err)
{
    MS_TRY(list_chunks(batch, first, err));
    for (unsigned i = 0; i < parts; i++)
        MS_TRY(unpack(batch, first, packed[i], err));
    for (size_t i = 0; i < batch->chunks.n; i++) {
        if (!batch->chunks.p[i].done)
            return ms_fail(err, MS_E_FORMAT, "no process has measured tensor pair %u",
                           batch->chunks.p[i].pair);
    }
    conclude_batch(batch);
    return MS_OK;
}

enum ms_rc cmp__measure_join(const struct cmp_rows *c, struct cmp_measured *m,
                             const struct ms_str *packed, unsigned parts, struct ms_err *err)
{
    ms_assert(m->figures.n == c->pairs.n); /* this process has measured its part */
    struct batch batch = {.c = c, .m = m, .terms = terms_of(c)};
    size_t *first = ms_calloc(c->pairs.n + 1, sizeof *first);
    enum ms_rc rc = first != NULL ? join_all(&batch, first, packed, parts, err) : ms_no_memory(err);
    ms_vec_free(&batch.chunks);
    ms_free(first);
    return rc;
}

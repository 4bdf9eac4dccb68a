/* SPDX-License-Identifier: MIT
 *
 * quant_ckpt: see the header.
 */
#include "compare/quantise/quant_ckpt.h"

#include "probe/base/mapsafe.h"
#include "probe/base/mem.h"
#include "probe/quantise/quant_number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { PIECE = 512, MOST_BYTES = 16, NAME_BYTES = 1024, FLOATS_MAX_BITS = 30 };

/* ---- elements ------------------------------------------------------------------------- */

static enum ms_rc allocate(struct quant_values *v, uint64_t count, struct ms_err *err)
{
    if (count >> FLOATS_MAX_BITS != 0)
        return ms_fail(err, MS_E_LIMIT, "%llu elements are more than this command holds in memory",
                       (unsigned long long)count);
    v->v = ms_alloc(((size_t)count + 1) * sizeof *v->v);
    v->count = count;
    return v->v != NULL ? MS_OK : ms_no_memory(err);
}

enum ms_rc quant_ckpt_load(const struct probe_ckpt *c, const struct probe_ckpt_entry *e,
                           struct quant_values *v, struct ms_err *err)
{
    char scratch[PIECE * MOST_BYTES];
    *v = (struct quant_values){.ndim = e->ndim, .dtype = e->dtype};
    MS_TRY(allocate(v, e->count, err));
    memcpy(v->shape, e->shape, e->ndim * sizeof *v->shape);
    for (uint64_t at = 0; at < e->count; at += PIECE) {
        const uint64_t n = e->count - at < PIECE ? e->count - at : PIECE;
        quant_to_floats(e->dtype, probe_ckpt_elements(c, e, at, n, scratch), (size_t)n, v->v + at);
    }
    probe_ckpt_release(c, e);
    return MS_OK;
}

static bool is_weight(const struct probe_ckpt_entry *e)
{
    return e->role == PROBE_CKPT_WEIGHT && e->ndim >= 2 && e->count != 0 &&
           ms_dtype_kind(e->dtype) == MS_DTK_FLOAT && ms_dtype_size(e->dtype) >= 2;
}

static enum ms_rc each_weight(const struct probe_ckpt *c, quant_weight_fn *fn, void *ctx,
                              struct ms_progress *bar, struct ms_err *err)
{
    for (size_t i = 0; i < probe_ckpt_count(c); i++) {
        ms_progress_part(bar, i, probe_ckpt_count(c), MS_PACE_WEIGHTS);
        const struct probe_ckpt_entry *e = probe_ckpt_entry(c, i);
        struct quant_values v = {0};
        if (!is_weight(e))
            continue;
        enum ms_rc rc = quant_ckpt_load(c, e, &v, err);
        if (rc == MS_OK)
            rc = fn(ctx, e, &v, err);
        quant_values_free(&v);
        MS_TRY(rc);
    }
    return MS_OK;
}

enum ms_rc quant_ckpt_open(struct probe_ckpt **c, const char *path, struct ms_err *err)
{
    const enum ms_rc rc = probe_ckpt_open(c, path, err);
    const bool is_refused = err != NULL && err->sys == EACCES;
    if (rc != MS_OK && !is_refused && ms_path_kind(path) == MS_KIND_DIR)
        ms_err_hint(
            err,
            "nor a dump, which has dump.json, or rank*/ or step*/ directories that lead to one");
    return rc;
}

enum ms_rc quant_each_weight(const char *path, quant_weight_fn *fn, void *ctx,
                             struct ms_progress *bar, struct ms_err *err)
{
    struct probe_ckpt *c;
    MS_TRY(quant_ckpt_open(&c, path, err));
    ms_mapsafe_begin();
    enum ms_rc rc = each_weight(c, fn, ctx, bar, err);
    if (ms_mapsafe_end() && rc == MS_OK)
        rc = ms_fail(err, MS_E_IO, "%s: became shorter while it was read", path);
    probe_ckpt_close(c);
    return rc;
}

/* ---- what lies beside a weight -------------------------------------------------------------- */

struct parts {
    const struct probe_ckpt *c;
    const struct probe_ckpt_entry *golden;
    struct ms_str layer; /* the name without ".weight" */
    uint64_t rows, cols; /* of the golden weight */
};

static const struct probe_ckpt_entry *beside(const struct parts *p, const char *ending)
{
    char name[NAME_BYTES];
    const int n = snprintf(name, sizeof name, "%.*s%s", MS_STR_ARG(p->layer), ending);
    if (n < 0 || (size_t)n >= sizeof name)
        return NULL;
    const struct probe_ckpt_entry *e = probe_ckpt_find(p->c, (struct ms_str){name, (uint32_t)n});
    return e != NULL && e->dtype != MS_DT_NONE && e->count != 0 ? e : NULL;
}

static const struct probe_ckpt_entry *first_beside(const struct parts *p,
                                                   const char *const *endings)
{
    const struct probe_ckpt_entry *e = NULL;
    for (; e == NULL && *endings != NULL; endings++)
        e = beside(p, *endings);
    return e;
}

/* Values that are spread over a weight: one, one for each row or column, or one for each box. */
struct spread {
    struct quant_values v;
    uint64_t down, across; /* rows and columns that share one */
    uint64_t width;        /* values in a row of them */
};

static bool fit_spread(struct spread *s, uint64_t rows, uint64_t cols)
{
    const struct quant_values *v = &s->v;
    uint64_t a = 1, b = 1;
    if (v->ndim >= 2) {
        a = v->shape[0];
        b = v->count / a;
    } else if (v->count == rows) {
        a = rows;
    } else {
        b = v->count;
    }
    if (a == 0 || b == 0 || a > rows || b > cols)
        return false;
    s->down = (rows + a - 1) / a;
    s->across = (cols + b - 1) / b;
    s->width = b;
    return (rows + s->down - 1) / s->down == a && (cols + s->across - 1) / s->across == b;
}
static float spread_at(const struct spread *s, uint64_t row, uint64_t col)
{
    return s->v.v == NULL ? 0 : s->v.v[row / s->down * s->width + col / s->across];
}

static enum ms_rc load_spread(const struct parts *p, const struct probe_ckpt_entry *e,
                              struct spread *s, bool *fits, struct ms_err *err)
{
    *s = (struct spread){.down = 1, .across = 1};
    *fits = true;
    if (e == NULL)
        return MS_OK;
    MS_TRY(quant_ckpt_load(p->c, e, &s->v, err));
    *fits = fit_spread(s, p->rows, p->cols);
    return MS_OK;
}

static void give_up(struct quant_values *v)
{
    quant_values_free(v);
}

/* ---- codes of whole bytes ------------------------------------------------------------------- */

static const char *const scale_endings[] = {".weight_scale", ".weight_scale_inv", ".scale",
                                            ".scales",       ".weight.scale",     ".SCB",
                                            "_scale",        "_scale_inv",        NULL};
static const char *const zero_endings[] = {".weight_zero_point", ".zero_point", ".zero_points",
                                           NULL};

/* Turns codes, already in v as numbers, to values. */
static enum ms_rc apply_scales(const struct parts *p, const struct probe_ckpt_entry *scale,
                               float factor, struct quant_values *v, struct ms_err *err)
{
    struct spread s, z = {0};
    bool fits[2] = {true, true};
    enum ms_rc rc = load_spread(p, scale, &s, &fits[0], err);
    if (rc == MS_OK)
        rc = load_spread(p, first_beside(p, zero_endings), &z, &fits[1], err);
    if (rc == MS_OK && fits[0] && fits[1]) {
        for (uint64_t i = 0; i < v->count; i++) {
            const uint64_t row = i / p->cols, col = i % p->cols;
            v->v[i] = (v->v[i] - spread_at(&z, row, col)) * spread_at(&s, row, col) * factor;
        }
    } else {
        give_up(v);
    }
    quant_values_free(&s.v);
    quant_values_free(&z.v);
    return rc;
}

static enum ms_rc read_bytes(const struct parts *p, const struct probe_ckpt_entry *e,
                             struct quant_values *v, struct ms_err *err)
{
    const struct probe_ckpt_entry *scale = first_beside(p, scale_endings);
    MS_TRY(quant_ckpt_load(p->c, e, v, err));
    if (ms_dtype_kind(e->dtype) == MS_DTK_FLOAT && ms_dtype_size(e->dtype) >= 2)
        return MS_OK;
    v->dtype = MS_DT_F32;
    if (scale == NULL) {
        give_up(v);
        return MS_OK;
    }
    return apply_scales(p, scale, ms_str_ends(scale->name, MS_STR(".SCB")) ? 1.0f / 127 : 1, v,
                        err);
}

/* ---- packed codes ---------------------------------------------------------------------------- */

/* Returns the bytes of an entry, gathered on the heap. */
static uint8_t *bytes_of(const struct probe_ckpt *c, const struct probe_ckpt_entry *e,
                         struct ms_err *err)
{
    const size_t size = ms_dtype_size(e->dtype);
    uint8_t *all = ms_alloc((size_t)e->count * size + 1);
    char scratch[PIECE * MOST_BYTES];
    if (all == NULL) {
        (void)ms_no_memory(err);
        return NULL;
    }
    for (uint64_t at = 0; at < e->count; at += PIECE) {
        const uint64_t n = e->count - at < PIECE ? e->count - at : PIECE;
        memcpy(all + at * size, probe_ckpt_elements(c, e, at, n, scratch), (size_t)n * size);
    }
    return all;
}

static unsigned nibble(const uint8_t *p, uint64_t i)
{
    return i % 2 == 0 ? p[i / 2] & 15u : p[i / 2] >> 4;
}

static enum ms_rc new_values(const struct parts *p, struct quant_values *v, struct ms_err *err)
{
    *v = (struct quant_values){.ndim = 2, .shape = {p->rows, p->cols}, .dtype = MS_DT_F32};
    return allocate(v, p->rows * p->cols, err);
}

/* Two e2m1 in a byte, the lower half first, with scales of e4m3 and one for the tensor; scales of MXFP4 are
 * powers of two. */
static enum ms_rc read_e2m1(const struct parts *p, const struct probe_ckpt_entry *codes,
                            const struct probe_ckpt_entry *scale,
                            const struct probe_ckpt_entry *whole, bool inverse,
                            struct quant_values *v, struct ms_err *err)
{
    struct quant_values one = {0};
    const uint64_t count = p->rows * p->cols;
    if (codes->count * ms_dtype_size(codes->dtype) != (count + 1) / 2 || scale == NULL)
        return MS_OK;
    uint8_t *all = bytes_of(p->c, codes, err);
    enum ms_rc rc = all != NULL ? new_values(p, v, err) : MS_E_NOMEM;
    if (rc == MS_OK && whole != NULL)
        rc = quant_ckpt_load(p->c, whole, &one, err);
    const float factor = one.v == NULL ? 1 : inverse ? 1 / one.v[0] : one.v[0];
    for (uint64_t i = 0; rc == MS_OK && i < count; i++)
        v->v[i] = (float)quant_decode(QUANT_E2M1, (uint8_t)nibble(all, i));
    if (rc == MS_OK)
        rc = apply_scales(p, scale, factor, v, err);
    ms_free(all);
    quant_values_free(&one);
    return rc;
}

/* Powers of two as bytes, which the file calls whole numbers. */
static enum ms_rc read_mxfp4(const struct parts *p, const struct probe_ckpt_entry *codes,
                             const struct probe_ckpt_entry *scale, struct quant_values *v,
                             struct ms_err *err)
{
    const uint64_t count = p->rows * p->cols;
    if (codes->count != count / 2 || scale == NULL || scale->count == 0 ||
        ms_dtype_size(scale->dtype) != 1 || count % scale->count != 0)
        return MS_OK;
    uint8_t *all = bytes_of(p->c, codes, err), *powers = bytes_of(p->c, scale, err);
    enum ms_rc rc = all != NULL && powers != NULL ? new_values(p, v, err) : MS_E_NOMEM;
    for (uint64_t i = 0; rc == MS_OK && i < count; i++)
        v->v[i] = (float)quant_decode(QUANT_E2M1, (uint8_t)nibble(all, i)) *
                  quant_power_value(powers[i / (count / scale->count)]);
    ms_free(all);
    ms_free(powers);
    return rc;
}

/* ---- GPTQ, AWQ, compressed-tensors: eight codes of 4 bits in 32 --------------------------------- */

enum { IN_WORD = 8 };

struct words {
    uint32_t *weight, *zeros;
    struct spread scale; /* of groups x columns of the input-major weight */
    uint64_t in, out, groups;
    bool awq;
};

/* AWQ stores the columns of a word in this order. */
static unsigned awq_place(unsigned column)
{
    static const unsigned places[IN_WORD] = {0, 4, 1, 5, 2, 6, 3, 7};
    return places[column];
}

static unsigned word_code(const struct words *w, uint64_t in, uint64_t out)
{
    const uint32_t word = w->awq ? w->weight[in * (w->out / IN_WORD) + out / IN_WORD]
                                 : w->weight[in / IN_WORD * w->out + out];
    return word >> 4 * (w->awq ? awq_place(out % IN_WORD) : (unsigned)(in % IN_WORD)) & 15;
}
/* GPTQ stores the zero point less one. */
static unsigned word_zero(const struct words *w, uint64_t group, uint64_t out)
{
    if (w->zeros == NULL)
        return 8;
    const uint32_t word = w->zeros[group * (w->out / IN_WORD) + out / IN_WORD];
    const unsigned at = (unsigned)(out % IN_WORD);
    return (word >> 4 * (w->awq ? awq_place(at) : at) & 15) + (w->awq ? 0 : 1);
}

static enum ms_rc unpack_words(const struct parts *p, const struct words *w, struct quant_values *v,
                               struct ms_err *err)
{
    MS_TRY(new_values(p, v, err));
    const uint64_t in_group = w->in / w->groups;
    for (uint64_t o = 0; o < w->out; o++) {
        for (uint64_t i = 0; i < w->in; i++) {
            const uint64_t g = i / in_group;
            v->v[o * w->in + i] = ((float)word_code(w, i, o) - (float)word_zero(w, g, o)) *
                                  w->scale.v.v[g * w->out + o];
        }
    }
    return MS_OK;
}

static enum ms_rc read_words(const struct parts *p, const struct probe_ckpt_entry *e,
                             struct quant_values *v, struct ms_err *err)
{
    const struct probe_ckpt_entry *scales = beside(p, ".scales"), *zeros = beside(p, ".qzeros");
    struct words w = {.in = p->cols, .out = p->rows};
    if (scales == NULL || e->ndim != 2 || ms_dtype_size(e->dtype) != 4 || scales->ndim != 2 ||
        scales->shape[1] != w.out || w.in % IN_WORD != 0 || w.out % IN_WORD != 0 ||
        e->count != w.in * w.out / IN_WORD || w.in % scales->shape[0] != 0)
        return MS_OK;
    w.groups = scales->shape[0];
    w.awq = e->shape[0] == w.in;
    if (zeros != NULL &&
        (zeros->count != w.groups * w.out / IN_WORD || ms_dtype_size(zeros->dtype) != 4))
        return MS_OK;
    w.weight = (uint32_t *)(void *)bytes_of(p->c, e, err);
    w.zeros = zeros != NULL ? (uint32_t *)(void *)bytes_of(p->c, zeros, err) : NULL;
    enum ms_rc rc = w.weight != NULL && (zeros == NULL || w.zeros != NULL)
                        ? quant_ckpt_load(p->c, scales, &w.scale.v, err)
                        : MS_E_NOMEM;
    if (rc == MS_OK)
        rc = unpack_words(p, &w, v, err);
    ms_free(w.weight);
    ms_free(w.zeros);
    quant_values_free(&w.scale.v);
    return rc;
}

/* Codes in the order of the input, offset by 8. */
static enum ms_rc read_packed(const struct parts *p, const struct probe_ckpt_entry *e,
                              struct quant_values *v, struct ms_err *err)
{
    const struct probe_ckpt_entry *scale = beside(p, ".weight_scale");
    const uint64_t count = p->rows * p->cols;
    if (ms_dtype_size(e->dtype) == 1)
        return read_e2m1(p, e, scale, beside(p, ".weight_global_scale"), true, v, err);
    if (scale == NULL || ms_dtype_size(e->dtype) != 4 || p->cols % IN_WORD != 0 ||
        e->count != count / IN_WORD)
        return MS_OK;
    uint8_t *all = bytes_of(p->c, e, err);
    enum ms_rc rc = all != NULL ? new_values(p, v, err) : MS_E_NOMEM;
    for (uint64_t i = 0; rc == MS_OK && i < count; i++)
        v->v[i] = (float)nibble(all, i) - 8;
    ms_free(all);
    return rc == MS_OK ? apply_scales(p, scale, 1, v, err) : rc;
}

/* ---- a weight ------------------------------------------------------------------------------- */

static enum ms_rc dequantise(const struct parts *p, struct quant_values *v, struct ms_err *err)
{
    static const char *const mx_scales[] = {"_scales", ".scales", NULL};
    const struct probe_ckpt_entry *e = probe_ckpt_find(p->c, p->golden->name);
    const struct probe_ckpt_entry *words = beside(p, ".qweight"),
                                  *packed = beside(p, ".weight_packed");
    const struct probe_ckpt_entry *blocks = beside(p, "_blocks");
    if (e != NULL && e->dtype == MS_DT_U8 && e->count == p->golden->count / 2)
        return read_e2m1(p, e, beside(p, ".weight_scale"), beside(p, ".weight_scale_2"), false, v,
                         err);
    if (e != NULL && e->dtype != MS_DT_NONE && e->count == p->golden->count)
        return read_bytes(p, e, v, err);
    if (words != NULL)
        return read_words(p, words, v, err);
    if (packed != NULL)
        return read_packed(p, packed, v, err);
    if (blocks != NULL)
        return read_mxfp4(p, blocks, first_beside(p, mx_scales), v, err);
    return MS_OK;
}

enum ms_rc quant_ckpt_dequantise(const struct probe_ckpt *c, const struct probe_ckpt_entry *golden,
                                 struct quant_values *v, struct ms_err *err)
{
    struct parts p = {.c = c, .golden = golden, .layer = golden->name};
    *v = (struct quant_values){0};
    if (golden->ndim < 2 || golden->count == 0)
        return MS_OK;
    if (ms_str_ends(p.layer, MS_STR(".weight")))
        p.layer.n -= (uint32_t)strlen(".weight");
    p.rows = golden->shape[0];
    p.cols = golden->count / p.rows;
    const enum ms_rc rc = dequantise(&p, v, err);
    if (rc == MS_OK)
        return MS_OK;
    quant_values_free(v);
    return ms_err_wrap(err, "%.*s", MS_STR_ARG(golden->name));
}

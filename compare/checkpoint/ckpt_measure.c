/* SPDX-License-Identifier: MIT
 *
 * ckpt_measure: sums of squares and products of two tensors, by the kernels of `compare`.
 *
 * As in the official tool a NaN or infinity makes the figures what IEEE arithmetic makes of them; the
 * kernels leave such elements out, so their tensors, which are rare, are summed again in doubles.
 */
#include "compare/checkpoint/ckpt_measure.h"

#include "compare/measure/metric.h"
#include "probe/base/mem.h"

#include <math.h>
#include <string.h>

/* Elements of a piece: some pages, a multiple of CMP_METRIC_BLOCK. */
enum { PIECE = 64 * CMP_METRIC_BLOCK, MAX_SIZE = 16 };
/* A piece is read into memory, measured, and its pages are given back after this many bytes. */
static const uint64_t release_bytes = (uint64_t)64 << 20;

struct pair {
    const struct probe_ckpt *ckpt[2];
    const struct probe_ckpt_entry *e[2];
    char *scratch[2];
};

bool ckpt_same_shape(const struct probe_ckpt_entry *x, const struct probe_ckpt_entry *y)
{
    return x->ndim == y->ndim && memcmp(x->shape, y->shape, x->ndim * sizeof *x->shape) == 0;
}

static void release(const struct pair *p)
{
    probe_ckpt_release(p->ckpt[0], p->e[0]);
    probe_ckpt_release(p->ckpt[1], p->e[1]);
}

/* Passes every piece of both sides to a function. */
typedef void piece_fn(void *ctx, const struct pair *p, const void *a, const void *b, size_t n);

static void each_piece(const struct pair *p, piece_fn *fn, void *ctx)
{
    uint64_t unreleased = 0;
    for (uint64_t at = 0; at < p->e[0]->count; at += PIECE) {
        const uint64_t left = p->e[0]->count - at, n = left < PIECE ? left : PIECE;
        const void *a = probe_ckpt_elements(p->ckpt[0], p->e[0], at, n, p->scratch[0]);
        const void *b = probe_ckpt_elements(p->ckpt[1], p->e[1], at, n, p->scratch[1]);
        fn(ctx, p, a, b, (size_t)n);
        unreleased += n * ms_dtype_size(p->e[0]->dtype);
        if (unreleased >= release_bytes) {
            release(p);
            unreleased = 0;
        }
    }
    release(p);
}

struct sums {
    struct cmp_facts facts;
    bool equal;
};

static void add_facts(void *ctx, const struct pair *p, const void *a, const void *b, size_t n)
{
    struct sums *s = ctx;
    cmp_facts_add(&s->facts, p->e[0]->dtype, a, p->e[1]->dtype, b, n, false);
    if (s->equal && p->e[0]->dtype == p->e[1]->dtype)
        s->equal = memcmp(a, b, n * ms_dtype_size(p->e[0]->dtype)) == 0;
}

static void add_doubles(void *ctx, const struct pair *p, const void *a, const void *b, size_t n)
{
    struct cmp_facts *f = ctx;
    enum { FEW = 512 };
    double x[FEW], y[FEW];
    const size_t size[2] = {ms_dtype_size(p->e[0]->dtype), ms_dtype_size(p->e[1]->dtype)};
    for (size_t at = 0; at < n; at += FEW) {
        const size_t m = n - at < FEW ? n - at : FEW;
        ms_dtype_to_f64(p->e[0]->dtype, (const char *)a + at * size[0], m, x);
        ms_dtype_to_f64(p->e[1]->dtype, (const char *)b + at * size[1], m, y);
        for (size_t i = 0; i < m; i++) {
            f->nn += x[i] * x[i];
            f->bb += y[i] * y[i];
            f->nb += x[i] * y[i];
            f->dd += (x[i] - y[i]) * (x[i] - y[i]);
        }
    }
}

static void conclude(const struct cmp_facts *f, struct ckpt_figures *out)
{
    out->l2 = sqrt(f->dd);
    out->norm[0] = sqrt(f->nn);
    out->norm[1] = sqrt(f->bb);
    out->has_cos = (f->nn == 0) == (f->bb == 0);
    out->cos = f->nn == 0 ? 1 : f->nb / (out->norm[0] * out->norm[1]);
}

enum ms_rc ckpt_measure(const struct probe_ckpt *a, const struct probe_ckpt_entry *x,
                        const struct probe_ckpt *b, const struct probe_ckpt_entry *y,
                        struct ckpt_figures *f, struct ms_err *err)
{
    struct pair p = {.ckpt = {a, b}, .e = {x, y}};
    struct sums s = {.equal = true};
    char *scratch = ms_alloc((size_t)2 * PIECE * MAX_SIZE);
    if (scratch == NULL)
        return ms_no_memory(err);
    p.scratch[0] = scratch;
    p.scratch[1] = scratch + (size_t)PIECE * MAX_SIZE;
    each_piece(&p, add_facts, &s);
    if (s.facts.special != 0) {
        s.facts = (struct cmp_facts){0};
        each_piece(&p, add_doubles, &s.facts);
    }
    ms_free(scratch);
    conclude(&s.facts, f);
    f->equal = x->dtype == y->dtype ? s.equal : f->l2 == 0;
    return MS_OK;
}

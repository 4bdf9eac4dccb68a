/* SPDX-License-Identifier: MIT
 *
 * metric: choosing the passes, and bringing elements into the form they take.
 */
#include "compare/metric_int.h"

#include "probe/base/cpu.h"

#include <string.h>

static const struct cmp__kernel *best_kernel(void)
{
#if defined(__x86_64__)
    if (ms_cpu_has(MS_CPU_AVX512))
        return &cmp__metric_avx512;
    if (ms_cpu_has(MS_CPU_AVX2))
        return &cmp__metric_avx2;
#endif
    return &cmp__metric_plain;
}

/* ---- blocks --------------------------------------------------------------- */

static bool is_small_float(enum ms_dtype t)
{
    return t == MS_DT_F32 || t == MS_DT_F16 || t == MS_DT_BF16;
}

bool cmp_facts_single(enum ms_dtype tn, enum ms_dtype tb)
{
    return is_small_float(tn) && is_small_float(tb);
}

/* Zeroes at the end fill the last group and are counted out again. */
static void fill_up(struct cmp_facts *f, size_t extra, bool ext)
{
    f->thousandth -= extra;
    f->five -= extra;
    f->bit_equal -= ext ? extra : 0;
}

static size_t whole_groups(size_t n)
{
    return (n + CMP__GROUP - 1) / CMP__GROUP * CMP__GROUP;
}

/* n elements with zeroes up to a whole group: where they lie, or in `room`. */
static const void *filled(const void *p, size_t n, size_t size, void *room)
{
    size_t all = whole_groups(n);
    if (all == n)
        return p;
    memset((char *)room + n * size, 0, (all - n) * size);
    return p == room ? p : memcpy(room, p, n * size);
}

static enum cmp__source source_of(enum ms_dtype t)
{
    return t == MS_DT_F16 ? CMP__F16 : t == MS_DT_BF16 ? CMP__BF16 : CMP__F32;
}

/* Whole groups as float32: where they lie, or in out. */
static const void *to_single(const struct cmp__kernel *k, enum ms_dtype t, const void *p, size_t n,
                             float *out)
{
    if (t == MS_DT_F32)
        return p;
    k->widen(source_of(t), p, out, n);
    return out;
}

/* Equal types are widened in registers.  NaN and inf are rare: they are looked for only in blocks
 * that have one. */
static void add_single(struct cmp_facts *f, const struct cmp__kernel *k, enum ms_dtype tn,
                       const void *n, enum ms_dtype tb, const void *b, size_t count, bool ext)
{
    float x[CMP_METRIC_BLOCK], y[CMP_METRIC_BLOCK], xs[CMP_METRIC_BLOCK], ys[CMP_METRIC_BLOCK];
    size_t all = whole_groups(count);
    n = filled(n, count, ms_dtype_size(tn), x);
    b = filled(b, count, ms_dtype_size(tb), y);
    if (tn != tb || !k->single[source_of(tn)][ext](f, n, b, all)) {
        n = to_single(k, tn, n, all, xs);
        b = to_single(k, tb, b, all, ys);
        if (tn == tb || !k->single[CMP__F32][ext](f, n, b, all))
            (void)k->single_careful[ext](f, n, b, all);
    }
    fill_up(f, all - count, ext);
}

/* Of complex numbers the official tool takes the real part. */
static void real_parts(enum ms_dtype t, const char *p, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++) {
        float re;
        if (t == MS_DT_C128) {
            memcpy(&out[i], p + 16 * i, sizeof out[i]);
        } else {
            memcpy(&re, p + 8 * i, sizeof re);
            out[i] = (double)re;
        }
    }
}

/* A real number of any type, in whole groups: where they lie, or in out. */
static const void *to_double(enum ms_dtype t, const void *p, size_t n, double *out)
{
    if (t == MS_DT_F64)
        return filled(p, n, sizeof *out, out);
    if (t == MS_DT_C64 || t == MS_DT_C128)
        real_parts(t, p, n, out);
    else
        ms_dtype_to_f64(t, p, n, out);
    return filled(out, n, sizeof *out, out);
}

static void add_double(struct cmp_facts *f, const struct cmp__kernel *k, enum ms_dtype tn,
                       const void *n, enum ms_dtype tb, const void *b, size_t count, bool ext)
{
    double x[CMP_METRIC_BLOCK], y[CMP_METRIC_BLOCK];
    size_t all = whole_groups(count);
    n = to_double(tn, n, count, x);
    b = to_double(tb, b, count, y);
    if (!k->whole[ext](f, n, b, all))
        (void)k->whole_careful[ext](f, n, b, all);
    fill_up(f, all - count, ext);
}

bool cmp_facts_whole(enum ms_dtype tn, enum ms_dtype tb)
{
    enum ms_dtype_kind kind = ms_dtype_kind(tn);
    return tn == tb && (kind == MS_DTK_BOOL || kind == MS_DTK_INT || kind == MS_DTK_UINT);
}

#define COUNT_EQUAL(type)                                                                          \
    do {                                                                                           \
        type x, y;                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                           \
            memcpy(&x, a + i * sizeof x, sizeof x);                                                \
            memcpy(&y, b + i * sizeof y, sizeof y);                                                \
            equal += x == y;                                                                       \
        }                                                                                          \
        return equal;                                                                              \
    } while (0)

/* Whole numbers that are the same; most blocks are so altogether. */
static uint64_t count_equal(const char *a, const char *b, size_t n, size_t size)
{
    uint64_t equal = 0;
    if (memcmp(a, b, n * size) == 0)
        return n;
    if (size == 1)
        COUNT_EQUAL(uint8_t);
    if (size == 2)
        COUNT_EQUAL(uint16_t);
    if (size == 4)
        COUNT_EQUAL(uint32_t);
    COUNT_EQUAL(uint64_t);
}

void cmp_facts_add(struct cmp_facts *f, enum ms_dtype tn, const void *n, enum ms_dtype tb,
                   const void *b, size_t count, bool ext)
{
    const struct cmp__kernel *k = best_kernel();
    const char *pn = n, *pb = b;
    bool single = cmp_facts_single(tn, tb), whole = !ext && cmp_facts_whole(tn, tb);
    while (count != 0) {
        size_t m = count < CMP_METRIC_BLOCK ? count : CMP_METRIC_BLOCK;
        if (single)
            add_single(f, k, tn, pn, tb, pb, m, ext);
        else
            add_double(f, k, tn, pn, tb, pb, m, ext);
        if (whole)
            f->bit_equal += count_equal(pn, pb, m, ms_dtype_size(tn));
        pn += m * ms_dtype_size(tn);
        pb += m * ms_dtype_size(tb);
        f->count += m;
        count -= m;
    }
}

void cmp_facts_join(struct cmp_facts *f, const struct cmp_facts *next)
{
    f->count += next->count;
    f->special += next->special;
    f->mask_diff += next->mask_diff;
    f->sign_diff += next->sign_diff;
    f->thousandth += next->thousandth;
    f->five += next->five;
    f->bit_equal += next->bit_equal;
    f->nn += next->nn;
    f->bb += next->bb;
    f->nb += next->nb;
    f->dd += next->dd;
    f->sum_d += next->sum_d;
    f->sum_abs_d += next->sum_abs_d;
    f->sum_ulp += next->sum_ulp;
    f->max_abs = cmp__larger(f->max_abs, next->max_abs);
    f->max_rel = cmp__larger(f->max_rel, next->max_rel);
    f->max_ulp = cmp__larger(f->max_ulp, next->max_ulp);
}

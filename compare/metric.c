/* SPDX-License-Identifier: MIT
 *
 * metric: choosing the inner loop, and bringing elements into the form it takes.
 */
#include "compare/metric.h"

#include "probe/base/cpu.h"

#include <math.h>
#include <string.h>

/* The same sums on every machine: no fused multiply-add behind our back.  (gcc leaves it alone in
 * standard C.) */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

enum { LANES = 8 };
typedef uint16_t v8h __attribute__((vector_size(16)));
typedef float v8f __attribute__((vector_size(32)));
typedef int32_t v8i __attribute__((vector_size(32)));
typedef double v8d __attribute__((vector_size(64)));
typedef int64_t v8l __attribute__((vector_size(64)));

#define SUM(v) (((v)[0] + (v)[4]) + ((v)[2] + (v)[6]) + (((v)[1] + (v)[5]) + ((v)[3] + (v)[7])))

#define NAME(x) x##_plain
#define TARGET
#include "compare/metric_body.h"
#undef NAME
#undef TARGET
#if defined __x86_64__
#define NAME(x) x##_avx2
#define TARGET  __attribute__((target("avx2")))
#include "compare/metric_body.h"
#undef NAME
#undef TARGET
#define NAME(x) x##_avx512
#define TARGET  __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl")))
#include "compare/metric_body.h"
#undef NAME
#undef TARGET
#endif

struct kernel {
    void (*single)(struct cmp_facts *, const void *, const void *, size_t);
    void (*whole)(struct cmp_facts *, const void *, const void *, size_t);
    void (*widen_f16)(const void *, float *, size_t);
    void (*widen_bf16)(const void *, float *, size_t);
};

#define KERNEL(set)                                                                                \
    {                                                                                              \
        single_##set, whole_##set, widen_f16_##set, widen_bf16_##set                               \
    }

static const struct kernel *best_kernel(void)
{
    static const struct kernel plain = KERNEL(plain);
#if defined __x86_64__
    static const struct kernel avx2 = KERNEL(avx2), avx512 = KERNEL(avx512);
    if (ms_cpu_has(MS_CPU_AVX512))
        return &avx512;
    if (ms_cpu_has(MS_CPU_AVX2))
        return &avx2;
#endif
    return &plain;
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

/* Zeroes at the end fill the last eight and are counted out again. */
static void fill_up(struct cmp_facts *f, size_t extra)
{
    f->thousandth -= extra;
    f->five -= extra;
    f->bit_equal -= extra;
}

/* n elements as float32, with zeroes up to a multiple of eight: where they lie, or in out. */
static const void *to_single(const struct kernel *k, enum ms_dtype t, const void *p, size_t n,
                             float *out)
{
    size_t even = n - n % LANES;
    if (t == MS_DT_F32 && n == even)
        return p;
    for (size_t i = n; i % LANES != 0; i++)
        out[i] = 0;
    if (t == MS_DT_F32)
        return memcpy(out, p, n * sizeof *out);
    uint16_t last[LANES] = {0};
    void (*widen)(const void *, float *, size_t) = t == MS_DT_F16 ? k->widen_f16 : k->widen_bf16;
    widen(p, out, even);
    if (n != even) {
        memcpy(last, (const char *)p + 2 * even, 2 * (n - even));
        widen(last, out + even, LANES);
    }
    return out;
}

static void add_single(struct cmp_facts *f, const struct kernel *k, enum ms_dtype tn, const void *n,
                       enum ms_dtype tb, const void *b, size_t count)
{
    float x[CMP_METRIC_BLOCK], y[CMP_METRIC_BLOCK];
    size_t even = (count + LANES - 1) / LANES * LANES;
    k->single(f, to_single(k, tn, n, count, x), to_single(k, tb, b, count, y), even);
    fill_up(f, even - count);
}

/* A real number of any type; of complex ones the official tool takes the real part. */
static void to_double(enum ms_dtype t, const void *p, size_t n, double *out)
{
    if (t == MS_DT_C64 || t == MS_DT_C128) {
        for (size_t i = 0; i < n; i++) {
            float re;
            if (t == MS_DT_C128) {
                memcpy(&out[i], (const char *)p + 16 * i, sizeof out[i]);
            } else {
                memcpy(&re, (const char *)p + 8 * i, sizeof re);
                out[i] = (double)re;
            }
        }
    } else {
        ms_dtype_to_f64(t, p, n, out);
    }
    for (; n % LANES != 0; n++)
        out[n] = 0;
}

static void add_double(struct cmp_facts *f, const struct kernel *k, enum ms_dtype tn, const void *n,
                       enum ms_dtype tb, const void *b, size_t count)
{
    double x[CMP_METRIC_BLOCK], y[CMP_METRIC_BLOCK];
    size_t even = (count + LANES - 1) / LANES * LANES;
    to_double(tn, n, count, x);
    to_double(tb, b, count, y);
    k->whole(f, x, y, even);
    fill_up(f, even - count);
}

void cmp_facts_add(struct cmp_facts *f, enum ms_dtype tn, const void *n, enum ms_dtype tb,
                   const void *b, size_t count)
{
    const struct kernel *k = best_kernel();
    const char *pn = n, *pb = b;
    bool single = cmp_facts_single(tn, tb);
    while (count != 0) {
        size_t m = count < CMP_METRIC_BLOCK ? count : CMP_METRIC_BLOCK;
        if (single)
            add_single(f, k, tn, pn, tb, pb, m);
        else
            add_double(f, k, tn, pn, tb, pb, m);
        pn += m * ms_dtype_size(tn);
        pb += m * ms_dtype_size(tb);
        f->count += m;
        count -= m;
    }
}

static double larger(double a, double b)
{
    return a > b ? a : b;
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
    f->max_abs = larger(f->max_abs, next->max_abs);
    f->max_rel = larger(f->max_rel, next->max_rel);
    f->max_ulp = larger(f->max_ulp, next->max_ulp);
}

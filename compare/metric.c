/* SPDX-License-Identifier: MIT
 *
 * metric: choosing the inner loop, and bringing elements into the form it takes.
 */
#include "compare/metric.h"

#include "compare/metric_sums.h"

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
typedef uint32_t v8u __attribute__((vector_size(32)));
typedef double v4d __attribute__((vector_size(32)));
typedef int64_t v4l __attribute__((vector_size(32)));
typedef uint64_t v4u __attribute__((vector_size(32)));

#define FIRST(v) __builtin_shufflevector(v, v, 0, 1, 2, 3)
#define LAST(v)  __builtin_shufflevector(v, v, 4, 5, 6, 7)
#define WIDEN(v) __builtin_convertvector(v, v4d)

/* These are macros because gcc splits vectors before it inlines functions, and would do so for the
 * wrong instruction set. */
#define ADD_MORE(p, d, ad)                                                                         \
    sum_d##p += (d);                                                                               \
    sum_abs##p += (ad);

static double larger_of(double a, double b)
{
    return a > b ? a : b;
}

static double largest_lane(const v4d *v)
{
    return larger_of(larger_of((*v)[0], (*v)[1]), larger_of((*v)[2], (*v)[3]));
}

static double most8(const v8f *v)
{
    double most = (double)(*v)[0];
    for (int i = 1; i < 8; i++)
        most = larger_of(most, (double)(*v)[i]);
    return most;
}

static uint64_t total8(const v8i *v)
{
    uint64_t n = 0;
    for (int i = 0; i < 8; i++)
        n += (uint64_t)(*v)[i];
    return n;
}

static uint64_t total4(const v4l *v)
{
    return (uint64_t)(*v)[0] + (uint64_t)(*v)[1] + (uint64_t)(*v)[2] + (uint64_t)(*v)[3];
}

static bool has_negative8(const v8i *v)
{
    int32_t any = 0;
    for (int i = 0; i < 8; i++)
        any |= (*v)[i];
    return any < 0;
}

static bool has_negative4(const v4l *v)
{
    return ((*v)[0] | (*v)[1] | (*v)[2] | (*v)[3]) < 0;
}

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

typedef bool (*pass_fn)(struct cmp_facts *, const void *, const void *, size_t);
struct kernel {
    pass_fn single[2][2]; /* [full][ext] */
    pass_fn whole[2][2];
    void (*widen_f16)(const void *, float *, size_t);
    void (*widen_bf16)(const void *, float *, size_t);
};

#define PASSES(name, set)                                                                          \
    {                                                                                              \
        {name##_##set, name##_ext_##set},                                                          \
        {                                                                                          \
            name##_full_##set, name##_full_ext_##set                                               \
        }                                                                                          \
    }
#define KERNEL(set)                                                                                \
    {                                                                                              \
        PASSES(single, set), PASSES(whole, set), widen_f16_##set, widen_bf16_##set                 \
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
static void fill_up(struct cmp_facts *f, size_t extra, bool ext)
{
    f->thousandth -= extra;
    f->five -= extra;
    f->bit_equal -= ext ? extra : 0;
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
                       enum ms_dtype tb, const void *b, size_t count, bool ext)
{
    float x[CMP_METRIC_BLOCK], y[CMP_METRIC_BLOCK];
    size_t even = (count + LANES - 1) / LANES * LANES;
    const void *p = to_single(k, tn, n, count, x), *q = to_single(k, tb, b, count, y);
    /* NaN and inf are rare: look for them only in blocks that have one */
    if (!k->single[0][ext](f, p, q, even))
        k->single[1][ext](f, p, q, even);
    fill_up(f, even - count, ext);
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
                       enum ms_dtype tb, const void *b, size_t count, bool ext)
{
    double x[CMP_METRIC_BLOCK], y[CMP_METRIC_BLOCK];
    size_t even = (count + LANES - 1) / LANES * LANES;
    to_double(tn, n, count, x);
    to_double(tb, b, count, y);
    if (!k->whole[0][ext](f, x, y, even))
        k->whole[1][ext](f, x, y, even);
    fill_up(f, even - count, ext);
}

void cmp_facts_add(struct cmp_facts *f, enum ms_dtype tn, const void *n, enum ms_dtype tb,
                   const void *b, size_t count, bool ext)
{
    const struct kernel *k = best_kernel();
    const char *pn = n, *pb = b;
    bool single = cmp_facts_single(tn, tb);
    while (count != 0) {
        size_t m = count < CMP_METRIC_BLOCK ? count : CMP_METRIC_BLOCK;
        if (single)
            add_single(f, k, tn, pn, tb, pb, m, ext);
        else
            add_double(f, k, tn, pn, tb, pb, m, ext);
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
    f->max_abs = larger_of(f->max_abs, next->max_abs);
    f->max_rel = larger_of(f->max_rel, next->max_rel);
    f->max_ulp = larger_of(f->max_ulp, next->max_ulp);
}

/* SPDX-License-Identifier: MIT
 *
 * stats: blocks and lanes, the plain version for every type, and the choice of a kernel. The plain
 * version also processes the elements that a kernel leaves: the last few of a block.
 */
#include "probe/tensor/stats.h"

#include "probe/base/cpu.h"
#include "probe/tensor/stats_int.h"

#include <math.h>

static const double inf = (double)INFINITY;

void ms_stats_init(struct ms_stats *s)
{
    *s = (struct ms_stats){.min = inf, .max = -inf};
}

static void lanes_init(struct ms__lanes *l)
{
    *l = (struct ms__lanes){.min = inf, .max = -inf};
}

/* Returns one fixed NaN for every NaN and +0 for every zero, because the NaN that an operation
 * yields and the smaller of the two zeros differ between machines. */
static double canonical_nan(double v)
{
    return isnan(v) ? (double)NAN : v + 0.0;
}

void ms_stats_join(struct ms_stats *s, const struct ms_stats *next)
{
    s->count += next->count;
    s->nan += next->nan;
    s->pinf += next->pinf;
    s->ninf += next->ninf;
    s->zero += next->zero;
    s->min = canonical_nan(next->min < s->min ? next->min : s->min);
    s->max = canonical_nan(next->max > s->max ? next->max : s->max);
    s->sum = canonical_nan(s->sum + next->sum);
    s->sumsq = canonical_nan(s->sumsq + next->sumsq);
}

void ms_stats_repeat(struct ms_stats *s, uint64_t times)
{
    s->count *= times;
    s->nan *= times;
    s->pinf *= times;
    s->ninf *= times;
    s->zero *= times;
    s->sum = canonical_nan(s->sum * (double)times);
    s->sumsq = canonical_nan(s->sumsq * (double)times);
}

/* ---- the plain version ---------------------------------------------------- */

/* Adds a number to a lane; a NaN counts as +0. The kernels add +0 as well, which changes nothing,
 * since a lane never holds -0; a branch would cost more. */
static void lane_add(struct ms__lanes *l, size_t lane, double v)
{
    l->nan += v != v;
    l->pinf += v == inf;
    l->ninf += v == -inf;
    l->zero += v == 0;
    l->min = v < l->min ? v : l->min;
    l->max = v > l->max ? v : l->max;
    const double number = v == v ? v : 0;
    /* Separate statements, so that no compiler contracts them into a fused multiply-add with one
     * rounding. */
    const double square = number * number;
    l->sum[lane] += number;
    l->sumsq[lane] += square;
}

/* Adds elements [from, n) of a block; from is a multiple of MS__LANES. */
static void add_plain(struct ms__lanes *l, enum ms_dtype t, const char *p, size_t from, size_t n)
{
    enum { CHUNK = 16 * MS__LANES };
    double v[CHUNK];
    const size_t size = ms_dtype_size(t);
    for (size_t at = from; at < n; at += CHUNK) {
        const size_t k = n - at < CHUNK ? n - at : CHUNK;
        ms_dtype_to_f64(t, p + at * size, k, v);
        for (size_t i = 0; i < k; i++)
            lane_add(l, i % MS__LANES, v[i]);
    }
}

/* ---- blocks --------------------------------------------------------------- */

static const struct ms__stats_kernels *kernels_for(enum ms_dtype t)
{
    static const struct ms__stats_kernels none;
#if defined(__x86_64__)
    if (ms_cpu_has(MS_CPU_AVX512))
        return &ms__stats_avx512[t];
    if (ms_cpu_has(MS_CPU_AVX2))
        return &ms__stats_avx2[t];
#elif defined(__aarch64__)
    if (ms_cpu_has(MS_CPU_NEON))
        return &ms__stats_neon[t];
#else
    (void)t;
#endif
    return &none;
}

/* Joins the lanes as a tree. Unrolled by hand, because this runs for every block and a compiler
 * then uses the vector registers. */
static double tree_sum(const double lane[MS__LANES])
{
    double v[MS__LANES / 2];
    for (size_t i = 0; i < MS__LANES / 2; i++)
        v[i] = lane[i] + lane[i + MS__LANES / 2];
    for (size_t i = 0; i < 4; i++)
        v[i] += v[i + 4];
    for (size_t i = 0; i < 2; i++)
        v[i] += v[i + 2];
    return v[0] + v[1];
}

/* Computes a block: the kernel as much as it can, the plain version the rest. */
static void run_kernel(struct ms__lanes *l, ms__stats_kernel kernel, enum ms_dtype t, const char *p,
                       size_t n)
{
    lanes_init(l);
    add_plain(l, t, p, kernel != NULL ? kernel(p, n, l) : 0, n);
}

/* Ends a block after its quick pass. When sumsq is not finite, the block holds a NaN or an infinity
 * and is computed again with the careful kernel. */
static void end_block(struct ms_stats *s, struct ms__lanes *l, enum ms_dtype t, const char *p,
                      size_t n)
{
    const ms__stats_kernel careful = kernels_for(t)->careful;
    double sumsq = tree_sum(l->sumsq);
    if (!isfinite(sumsq) && careful != NULL) {
        run_kernel(l, careful, t, p, n);
        sumsq = tree_sum(l->sumsq);
    }
    const struct ms_stats block = {.count = n,
                                   .nan = l->nan,
                                   .pinf = l->pinf,
                                   .ninf = l->ninf,
                                   .zero = l->zero,
                                   .min = l->min,
                                   .max = l->max,
                                   .sum = tree_sum(l->sum),
                                   .sumsq = sumsq};
    ms_stats_join(s, &block);
}

/* Adds one block of at most MS_STATS_BLOCK elements. */
static void add_block(struct ms_stats *s, enum ms_dtype t, const char *p, size_t n)
{
    struct ms__lanes l;
    run_kernel(&l, kernels_for(t)->quick, t, p, n);
    end_block(s, &l, t, p, n);
}

/* Adds whole blocks, two at a time; returns the number of elements added. Data too large for the
 * cache is not paired, because reading from two places is then no faster. */
static size_t add_pairs(struct ms_stats *s, enum ms_dtype t, const char *p, size_t n)
{
    const ms__stats_pair pair = kernels_for(t)->pair;
    const size_t block = MS_STATS_BLOCK * ms_dtype_size(t);
    enum { CACHED_MAX = 1 << 23 };
    struct ms__lanes l[2];
    size_t done = 0;
    if (pair == NULL || n > CACHED_MAX / ms_dtype_size(t))
        return 0;
    for (; n - done >= 2 * MS_STATS_BLOCK; done += 2 * MS_STATS_BLOCK) {
        pair(p, l);
        end_block(s, &l[0], t, p, MS_STATS_BLOCK);
        end_block(s, &l[1], t, p + block, MS_STATS_BLOCK);
        p += 2 * block;
    }
    return done;
}

/* Adds a block of a type without its own kernel: converts the elements to doubles and uses the
 * kernel for doubles. */
static void add_block_as_f64(struct ms_stats *s, enum ms_dtype t, const char *p, size_t n)
{
    double v[MS_STATS_BLOCK];
    ms_dtype_to_f64(t, p, n, v);
    add_block(s, MS_DT_F64, (const char *)v, n);
}

void ms_stats_add(struct ms_stats *s, enum ms_dtype t, const void *p, size_t n)
{
    const size_t size = ms_dtype_size(t);
    if (size == 0 || n == 0)
        return;
    const bool own = kernels_for(t)->quick != NULL || kernels_for(MS_DT_F64)->quick == NULL;
    const size_t paired = add_pairs(s, t, p, n);
    const char *at = (const char *)p + paired * size;
    for (size_t left = n - paired; left != 0;) {
        const size_t block = left < MS_STATS_BLOCK ? left : MS_STATS_BLOCK;
        if (own)
            add_block(s, t, at, block);
        else
            add_block_as_f64(s, t, at, block);
        at += block * size;
        left -= block;
    }
}

double ms_stats_mean(const struct ms_stats *s)
{
    return s->count == 0 || s->nan != 0 ? (double)NAN : s->sum / (double)s->count;
}

double ms_stats_norm(const struct ms_stats *s)
{
    return s->count == 0 || s->nan != 0 ? (double)NAN : sqrt(s->sumsq);
}

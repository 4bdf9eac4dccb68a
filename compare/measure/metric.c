/* SPDX-License-Identifier: MIT
 *
 * metric: selects the passes and converts elements into the form that the passes read.
 */
#include "compare/measure/metric_int.h"

#include "probe/base/cpu.h"

#include <math.h>
#include <string.h>

static const struct cmp__kernel *best_kernel(void)
{
#if defined(__x86_64__)
    if (ms_cpu_has(MS_CPU_AVX512))
        return &cmp__metric_avx512;
    if (ms_cpu_has(MS_CPU_AVX2))
        return &cmp__metric_avx2;
#elif defined(__aarch64__)
    if (ms_cpu_has(MS_CPU_NEON))
        return &cmp__metric_neon;
#endif
    return &cmp__metric_plain;
}

/* ---- conversion of elements --------------------------------------------------- */

/* 8-bit floats are included: the official tool reads them as float32. */
static bool is_small_float(enum ms_dtype t)
{
    return ms_dtype_kind(t) == MS_DTK_FLOAT && ms_dtype_size(t) <= sizeof(float);
}

bool cmp_facts_single(enum ms_dtype tn, enum ms_dtype tb)
{
    return is_small_float(tn) && is_small_float(tb);
}

bool cmp_facts_whole(enum ms_dtype tn, enum ms_dtype tb)
{
    enum ms_dtype_kind kind = ms_dtype_kind(tn);
    return tn == tb && (kind == MS_DTK_BOOL || kind == MS_DTK_INT || kind == MS_DTK_UINT);
}

/* Returns CMP__SOURCES for a type that no pass reads directly. */
static enum cmp__source source_of(enum ms_dtype t)
{
    static const uint8_t sources[MS_DT_MAX] = {
        [MS_DT_F32] = CMP__F32 + 1,     [MS_DT_F16] = CMP__F16 + 1,
        [MS_DT_BF16] = CMP__BF16 + 1,   [MS_DT_F8E4M3] = CMP__E4M3 + 1,
        [MS_DT_F8E5M2] = CMP__E5M2 + 1, [MS_DT_C64] = CMP__C64 + 1,
        [MS_DT_C128] = CMP__C128 + 1,   [MS_DT_F64] = CMP__F64 + 1,
        [MS_DT_I64] = CMP__I64 + 1,     [MS_DT_U64] = CMP__U64 + 1,
        [MS_DT_I32] = CMP__I32 + 1,     [MS_DT_U32] = CMP__U32 + 1,
        [MS_DT_I16] = CMP__I16 + 1,     [MS_DT_U16] = CMP__U16 + 1,
        [MS_DT_I8] = CMP__I8 + 1,       [MS_DT_U8] = CMP__U8 + 1,
        [MS_DT_BOOL] = CMP__BOOL + 1};
    return sources[t] != 0 ? (enum cmp__source)(sources[t] - 1) : CMP__SOURCES;
}

static size_t whole_groups(size_t n)
{
    return (n + CMP__GROUP - 1) / CMP__GROUP * CMP__GROUP;
}

/* Returns n elements padded with zeros to a whole group: p itself when no padding is needed, else
 * `room`. */
static const void *fill_room(const void *p, size_t n, size_t size, void *room)
{
    size_t all = whole_groups(n);
    if (all == n)
        return p;
    memset((char *)room + n * size, 0, (all - n) * size);
    return p == room ? p : memcpy(room, p, n * size);
}

/* Subtracts the counts of the zeros that pad the last group. */
static void fill_up(struct cmp_facts *f, size_t extra, bool equal)
{
    f->thousandth -= extra;
    f->five -= extra;
    f->bit_equal -= equal ? extra : 0;
}

union room {
    double whole[CMP_METRIC_BLOCK];
    float single[CMP_METRIC_BLOCK];
    double complex[2 * CMP_METRIC_BLOCK];
};

/* Reads the real parts, as for the larger complex types. */
static void half_complex(const void *p, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++)
        ms_dtype_to_f64(MS_DT_F16, (const uint16_t *)p + 2 * i, 1, &out[i]);
}

/* Converts elements of any type to doubles in `out`, padded to whole groups. */
static const void *to_double(const struct cmp__kernel *k, enum ms_dtype t, const void *p, size_t n,
                             union room *out)
{
    union room raw;
    if (source_of(t) != CMP__SOURCES) {
        k->to_double(source_of(t), fill_room(p, n, ms_dtype_size(t), &raw), out->whole,
                     whole_groups(n));
        return out;
    }
    if (t == MS_DT_C32)
        half_complex(p, n, out->whole);
    else
        ms_dtype_to_f64(t, p, n, out->whole);
    return fill_room(out, n, sizeof *out->whole, out);
}

/* Converts 8-bit floats that no pass reads with a table of all 256 values. */
static void by_table(enum ms_dtype t, const uint8_t *p, size_t n, float *out)
{
    enum { VALUES = 256 };
    uint8_t all[VALUES];
    double value[VALUES];
    float table[VALUES];
    for (size_t i = 0; i < VALUES; i++)
        all[i] = (uint8_t)i;
    ms_dtype_to_f64(t, all, VALUES, value);
    for (size_t i = 0; i < VALUES; i++)
        table[i] = (float)value[i];
    for (size_t i = 0; i < n; i++)
        out[i] = table[p[i]];
}

/* Converts small floats to float32 in `out`, padded to whole groups. */
static const void *to_single(const struct cmp__kernel *k, enum ms_dtype t, const void *p, size_t n,
                             union room *out)
{
    union room raw;
    if (source_of(t) != CMP__SOURCES) {
        k->to_single(source_of(t), fill_room(p, n, ms_dtype_size(t), &raw), out->single,
                     whole_groups(n));
        return out;
    }
    by_table(t, p, n, out->single);
    return fill_room(out, n, sizeof *out->single, out);
}

/* ---- blocks --------------------------------------------------------------- */

struct block {
    const struct cmp__kernel *k;
    enum ms_dtype tn, tb;
    const void *n, *b;
    size_t count;
    bool ext;
};

/* State that is carried from block to block. */
struct known {
    /* zeros: blocks that are assumed to have golden zeros; expect: their number after the next
     * failed try */
    unsigned zeros, expect;
    struct cmp__ceiling ceiling;
    double max_rel; /* the max_rel that ceiling was made for; negative: none yet */
};

/* Adds a block with the fastest pass that is likely to succeed. Golden zeros are either rare or in
 * every block: after a block with zeros, the next is tried without looking for zeros, and each
 * failed try doubles the number of blocks until the next try (exponential back-off). */
static bool add_pass(struct cmp_facts *f, const struct block *in, const cmp__pass_fn pass[][2],
                     const void *n, const void *b, struct known *known)
{
    enum { LONGEST = 15 };
    const size_t all = whole_groups(in->count);
    if (known->zeros != 0) {
        known->zeros--;
    } else if (pass[CMP__LOOK_NONE][in->ext](f, n, b, all)) {
        known->expect = 0;
        return true;
    } else {
        known->zeros = known->expect;
        known->expect = known->expect < LONGEST ? 2 * known->expect + 1 : LONGEST;
    }
    return pass[CMP__LOOK_ZEROS][in->ext](f, n, b, all);
}

/* Adds a block of converted elements. NaN and inf are rare, so the careful pass runs only on blocks
 * that contain some. */
static void add_converted(struct cmp_facts *f, const struct block *in, bool was_tried,
                          struct known *known)
{
    union room x, y;
    const bool single = cmp_facts_single(in->tn, in->tb);
    const void *n = (single ? to_single : to_double)(in->k, in->tn, in->n, in->count, &x);
    const void *b = (single ? to_single : to_double)(in->k, in->tb, in->b, in->count, &y);
    if (was_tried || !add_pass(f, in, in->k->pass[single ? CMP__F32 : CMP__F64], n, b, known))
        (void)(single ? in->k->single_careful
                      : in->k->double_careful)[in->ext](f, n, b, whole_groups(in->count));
}

static void add_block(struct cmp_facts *f, const struct block *in, struct known *known)
{
    union room x, y;
    enum cmp__source from = in->tn == in->tb ? source_of(in->tn) : CMP__SOURCES;
    bool tried = from != CMP__SOURCES;
    if (!tried ||
        !add_pass(f, in, in->k->pass[from], fill_room(in->n, in->count, ms_dtype_size(in->tn), &x),
                  fill_room(in->b, in->count, ms_dtype_size(in->tb), &y), known))
        add_converted(f, in, tried, known);
    fill_up(f, whole_groups(in->count) - in->count, in->ext || cmp_facts_whole(in->tn, in->tb));
}

/* ---- small whole numbers ---------------------------------------------------- */

/* Returns the largest relative error of v or -v against a golden zero. */
static double against_zero(double v)
{
    const double eps = 0x1p-52;
    double above = v + eps, below = -v + eps;
    return cmp__larger((above - eps) / eps, -(below - eps) / eps);
}

/* Returns the largest number whose error against a golden zero is at most max_rel. */
static uint16_t most_at_zero(double max_rel, double most)
{
    double v = floor(fmin(max_rel * 0x1p-52, most));
    return (uint16_t)(against_zero(v) > max_rel ? v - 1 : v);
}

/* Finds the fraction p / q with p, q <= most that equals r, by continued fractions. r is the
 * rounded quotient of two such numbers, so p / q is one of its convergents: any other fraction with
 * so small a divisor differs from r by more than the last bit of r. */
static void fraction_of(double r, double most, struct cmp__ceiling *c)
{
    double p = 1, q = 0, last_p = 0, last_q = 1, x = r;
    while (!(p / q == r)) {
        double whole = floor(x), next_p = whole * p + last_p, next_q = whole * q + last_q;
        if (!(next_p <= most && next_q <= most))
            return;
        last_p = p, last_q = q;
        p = next_p, q = next_q;
        x = 1 / (x - whole);
    }
    c->p = (uint16_t)p;
    c->q = (uint16_t)q;
}

/* Returns the ceiling for a largest error so far, which is either p / q or the error of a number
 * against zero. */
static struct cmp__ceiling ceiling_of(double max_rel, double most)
{
    struct cmp__ceiling c = {.q = 1, .thousand = 1000, .five = 200};
    if (max_rel > most) {
        c.p = (uint16_t)most;
        c.at_zero = most_at_zero(max_rel, most);
    } else {
        fraction_of(max_rel, most, &c);
    }
    return c;
}

static double most_of(enum cmp__source from)
{
    return from == CMP__U16 ? UINT16_MAX : from == CMP__I16 ? INT16_MAX : UINT8_MAX;
}

static bool add_small(struct cmp_facts *f, const struct block *in, struct known *known)
{
    enum cmp__source from = source_of(in->tn);
    if (in->tn != in->tb || from < CMP__U16 || from == CMP__SOURCES || in->ext ||
        in->count != CMP_METRIC_BLOCK)
        return false;
    if (f->max_rel != known->max_rel)
        known->ceiling = ceiling_of(f->max_rel, most_of(from)), known->max_rel = f->max_rel;
    return in->k->small[from - CMP__U16](f, in->n, in->b, &known->ceiling);
}

void cmp_facts_add(struct cmp_facts *f, enum ms_dtype tn, const void *n, enum ms_dtype tb,
                   const void *b, size_t count, bool ext)
{
    struct block in = {best_kernel(), tn, tb, n, b, 0, ext};
    struct known known = {.max_rel = -1};
    for (; count != 0; count -= in.count) {
        in.count = count < CMP_METRIC_BLOCK ? count : CMP_METRIC_BLOCK;
        if (!add_small(f, &in, &known))
            add_block(f, &in, &known);
        in.n = (const char *)in.n + in.count * ms_dtype_size(tn);
        in.b = (const char *)in.b + in.count * ms_dtype_size(tb);
        f->count += in.count;
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

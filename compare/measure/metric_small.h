/* SPDX-License-Identifier: MIT
 *
 * metric_small: the pass over a block of 8- or 16-bit integers in integer arithmetic, which
 * is exact and fits more elements into a register. A part of metric_simd.h.
 *
 * A relative error is a fraction d / |b| of small numbers, so products decide whether it is
 * below 0.001 or 0.005. There is no division: where the largest error could be raised, which
 * is rare, the pass gives up. It also gives up where a difference or divisor of signed
 * 16-bit numbers is above 32767.
 *
 * Unsigned 16-bit numbers are reduced by 32768 so that the signed multiplication can be
 * used; the sums are corrected for this at the end.
 */
typedef int16_t vw __attribute__((vector_size(BYTES)));
typedef uint16_t vu __attribute__((vector_size(BYTES)));
typedef uint32_t vui __attribute__((vector_size(BYTES)));

#ifndef LESS_W
#define WORDS_MASK    vu
#define LESS_W(a, b)  (vu)((a) < (b))
#define SAME_W(a, b)  (vu)((a) == (b))
#define COUNT_W(n, m) ((n) - (m))
#endif

enum { WORDS = BYTES / 2 };

/* For 16-bit numbers each sum is kept in two parts, multiples of 65536 and the rest. */
struct small_state {
    vi nn[2], bb[2], nb[2];
    vi n, b;                                /* sums of numbers reduced by 32768 */
    vu equal, thousandth, five, most, bits; /* bits: bitwise or of all differences */
    WORDS_MASK over;
    vi over_wide; /* the sign bit is set where max_rel could be raised */
};

INLINE bool is_wide(const enum cmp__source from)
{
    return from == CMP__I16 || from == CMP__U16;
}

INLINE void load_words(vw *out, const char *p, size_t at, const enum cmp__source from)
{
    if (is_wide(from))
        memcpy(out, p + at * sizeof(int16_t), sizeof *out);
    else
        *out = from == CMP__I8 ? WORDS_I8(p + at) : WORDS_U8(p + at);
    if (from == CMP__U16)
        *out ^= INT16_MIN;
}

INLINE void magnitude_of(vu *out, const vw *v)
{
    const vw opposite = (vw)(0 - (vu)*v); /* for -32768: 32768 as unsigned */
    *out = (vu)MAX_WORD(*v, opposite);
}

/* Adds products two by two. The sum of two products of 16-bit numbers is above -2^31 and at most
 * 2^31, so the sum minus one fits into 32 bits. */
INLINE void add_products_of_words(vi sum[2], const vw *x, const vw *y, const bool wide)
{
    vi product = MULTIPLY_ADD(*x, *y);
    if (!wide) {
        sum[0] += product;
        return;
    }
    product = (vi)((vui)product - 1);
    sum[0] += product & 0xffff;
    sum[1] += product >> 16;
}

/* Finds elements with d * q > b * p + at_zero. For 16-bit numbers, pairs (d, b) are multiplied by
 * the pair (q, -p). */
INLINE void look_for_larger(struct small_state *s, const vu *d, const vu *b,
                            const struct cmp__ceiling *c, const bool wide)
{
    if (!wide) {
        s->over |= LESS_W(*b * c->p + c->at_zero, *d * c->q);
        return;
    }
    const uint32_t pair = c->q | (0u - c->p) << 16;
    const vw by = (vw)((vi){0} + (int32_t)pair);
    const vw even = (vw)(((vui)*d & 0xffff) | (vui)*b << 16);
    const vw odd = (vw)((vui)*d >> 16 | ((vui)*b & 0xffff0000));
    s->over_wide |= (c->at_zero - MULTIPLY_ADD(even, by)) | (c->at_zero - MULTIPLY_ADD(odd, by));
}

/* Finds the same elements for unsigned numbers, by the halves of the products; where b is zero,
 * at_zero replaces b * p. */
INLINE void look_for_larger_unsigned(struct small_state *s, const vu *d, const vu *b,
                                     const struct cmp__ceiling *c)
{
    const vu q = (vu){0} + c->q, p = (vu){0} + c->p;
    const vu low = *b * p | ((vu)(*b == 0) & c->at_zero), high = UPPER_HALF(*b, p);
    const vu d_low = *d * q, d_high = UPPER_HALF(*d, q);
    s->over |= LESS_W(high, d_high) | (SAME_W(high, d_high) & LESS_W(low, d_low));
}

/* Counts equal elements and those with a small relative error. Above d = 65 for 0.001 and d = 327
 * for 0.005 no 16-bit divisor is large enough, and the products would overflow. */
INLINE void count_words_unsigned(struct small_state *s, const vu *d, const vu *b,
                                 const struct cmp__ceiling *c)
{
    const WORDS_MASK equal = LESS_W(*d, (vu){0} + 1);
    s->equal = COUNT_W(s->equal, equal);
    s->thousandth =
        COUNT_W(s->thousandth, equal | (LESS_W(*d * c->thousand, *b) & LESS_W(*d, (vu){0} + 66)));
    s->five = COUNT_W(s->five, equal | (LESS_W(*d * c->five, *b) & LESS_W(*d, (vu){0} + 328)));
}

/* The same for signed numbers and bytes; the limits are 32 and 163. */
INLINE void count_words(struct small_state *s, const vu *d, const vu *b,
                        const struct cmp__ceiling *c, const bool wide)
{
    const WORDS_MASK equal = LESS_W(*d, (vu){0} + 1);
    s->equal = COUNT_W(s->equal, equal);
    if (!wide) {
        s->five = COUNT_W(s->five, equal | LESS_W(*d * c->five, *b));
        return;
    }
    const vu few = (vu)MIN_WORD(*d, (vw){0} + 33), more = (vu)MIN_WORD(*d, (vw){0} + 164);
    s->thousandth = COUNT_W(s->thousandth, equal | LESS_W(few * c->thousand, *b));
    s->five = COUNT_W(s->five, equal | LESS_W(more * c->five, *b));
}

INLINE void step_words(struct small_state *s, const vw *x, const vw *y,
                       const struct cmp__ceiling *c, const enum cmp__source from)
{
    const bool wide = is_wide(from);
    vu d = (vu)MAX_WORD(*x, *y), b = (vu)*y;
    d += d - (vu)*x - (vu)*y;
    if (from == CMP__I8 || from == CMP__I16)
        magnitude_of(&b, y);
    add_products_of_words(s->nn, x, x, wide);
    add_products_of_words(s->bb, y, y, wide);
    add_products_of_words(s->nb, x, y, wide);
    s->most = (vu)MAX_UNSIGNED(d, s->most);
    if (from == CMP__U16) {
        s->n += MULTIPLY_ADD(*x, (vw){0} + 1);
        s->b += MULTIPLY_ADD(*y, (vw){0} + 1);
        b ^= 0x8000;
        count_words_unsigned(s, &d, &b, c);
        look_for_larger_unsigned(s, &d, &b, c);
        return;
    }
    s->bits |= d;
    count_words(s, &d, &b, c, wide);
    look_for_larger(s, &d, &b, c, wide);
}

INLINE uint64_t sum_of_words(const vu *v)
{
    const vu each = *v;
    uint64_t sum = 0;
    for (size_t i = 0; i < WORDS; i++)
        sum += each[i];
    return sum;
}

INLINE double sum_of_ints(const vi sum[2], const bool wide)
{
    const vi low = sum[0], high = sum[1];
    int64_t total = wide ? CMP_METRIC_BLOCK / 2 : 0;
    for (size_t i = 0; i < FLOATS; i++)
        total += low[i] + (wide ? (int64_t)high[i] * 65536 : 0);
    return (double)total;
}

INLINE bool was_raised(const struct small_state *s, const bool wide)
{
    WORDS_MASK over = s->over;
    const vi over_wide = s->over_wide;
    const vu bits = s->bits;
    bool raised = false;
    if (!wide)
        return memcmp(&over, &(WORDS_MASK){0}, sizeof over) != 0;
    for (size_t i = 0; i < FLOATS; i++)
        raised |= over_wide[i] < 0;
    for (size_t i = 0; i < WORDS; i++)
        raised |= bits[i] > INT16_MAX;
    return raised;
}

/* Returns the sum over a block of x y - (x - 32768) (y - 32768), from the sums of both factors. */
INLINE double beyond_products(const vi *x, const vi *y)
{
    const vi each_x = *x, each_y = *y;
    int64_t total = (int64_t)CMP_METRIC_BLOCK << 30;
    for (size_t i = 0; i < FLOATS; i++)
        total += ((int64_t)each_x[i] + each_y[i]) * 32768;
    return (double)total;
}

INLINE void take_small(struct cmp_facts *f, const struct small_state *s,
                       const enum cmp__source from)
{
    const bool wide = is_wide(from);
    double nn = sum_of_ints(s->nn, wide), bb = sum_of_ints(s->bb, wide),
           nb = sum_of_ints(s->nb, wide);
    const vu most = s->most;
    if (from == CMP__U16) {
        nn += beyond_products(&s->n, &s->n);
        bb += beyond_products(&s->b, &s->b);
        nb += beyond_products(&s->n, &s->b);
    }
    f->nn += nn;
    f->bb += bb;
    f->nb += nb;
    f->dd += nn + bb - 2 * nb;
    for (size_t i = 0; i < WORDS; i++)
        f->max_abs = cmp__larger(f->max_abs, (double)most[i]);
    f->thousandth += sum_of_words(wide ? &s->thousandth : &s->equal);
    f->bit_equal += sum_of_words(&s->equal);
    f->five += sum_of_words(&s->five);
}

/* Adds a block of flags by counting bits: 64 bytes become one mask of those that are set. */
INLINE bool pass_flags(struct cmp_facts *f, const char *n, const char *b)
{
    uint64_t set_n = 0, set_b = 0, both = 0;
    for (size_t i = 0; i < CMP_METRIC_BLOCK; i += 64) {
        read_ahead(n, b, i, 64);
        const uint64_t x = MASK_OF_SET(n + i), y = MASK_OF_SET(b + i);
        set_n += (uint64_t)__builtin_popcountll(x);
        set_b += (uint64_t)__builtin_popcountll(y);
        both += (uint64_t)__builtin_popcountll(x & y);
    }
    const uint64_t differ = set_n + set_b - 2 * both;
    /* One against a golden zero has the largest possible error, 2^52; zero against a golden one has
     * the error 1. */
    if (f->max_rel < (set_n != both ? 0x1p52 : differ != 0 ? 1 : 0))
        return false;
    f->nn += (double)set_n;
    f->bb += (double)set_b;
    f->nb += (double)both;
    f->dd += (double)differ;
    f->max_abs = cmp__larger(f->max_abs, differ != 0 ? 1 : 0);
    f->thousandth += CMP_METRIC_BLOCK - differ;
    f->five += CMP_METRIC_BLOCK - differ;
    f->bit_equal += CMP_METRIC_BLOCK - differ;
    return true;
}

INLINE bool pass_small(struct cmp_facts *f, const char *n, const char *b,
                       const struct cmp__ceiling *ceiling, const enum cmp__source from)
{
    const struct cmp__ceiling c = *ceiling;
    struct small_state s = {0};
    if (from == CMP__BOOL)
        return pass_flags(f, n, b);
    for (size_t i = 0; i < CMP_METRIC_BLOCK; i += WORDS) {
        vw x, y;
        read_ahead(n, b, i * size_of(from), WORDS * size_of(from));
        load_words(&x, n, i, from);
        load_words(&y, b, i, from);
        step_words(&s, &x, &y, &c, from);
    }
    if (was_raised(&s, from == CMP__I16))
        return false;
    take_small(f, &s, from);
    return true;
}

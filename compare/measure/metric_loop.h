/* SPDX-License-Identifier: MIT
 *
 * metric_loop: the pass over two arrays, for one element type. metric_simd.h defines these
 * macros for it, and this file undefines them:
 *
 *     FOR_ELEM(x)  x with a suffix for the element type
 *     ELEM         float or double, with VEC and INT for vectors of them and of integers of that size
 *     BITS         bits of an element; MAGNITUDE and INFINITY_BITS belong to its format
 *     EPS          the distance from 1 to the next number
 *     MAX_BITS     the larger elements of two vectors of integers
 *     MAX_NUMBERS  the same for integers that are the bits of numbers other than NaN
 *     ADD_AT_ZERO, COUNT_LESS   those for its type
 *     LOAD         loads a vector from memory
 *     SAME         tells which elements are equal as they are in memory
 *     SPREAD, SPREAD_ULPS   add vector number `nth` of a group to the sums
 *     RUN, SAME_RUN, SPREAD_SAME   the number of elements tested at once for equal bits on
 *                               both sides, the test, and the addition of equal elements,
 *                               which leaves the sums of differences unchanged
 */

struct FOR_ELEM(state) {
    struct sums sums;
    INT max_rel; /* bit patterns without sign sort like the numbers; infinity and NaN come last */
    INT below1, below5, equal;
    INT special, mask_diff, sign_diff;
    uint64_t same;
};

/* Counts NaN and inf and replaces them by zero. */
INLINE void FOR_ELEM(screen)(struct FOR_ELEM(state) * s, VEC *x, VEC *y)
{
    INT xi = (INT)*x, yi = (INT)*y, xm = xi & MAGNITUDE, ym = yi & MAGNITUDE;
    INT x_inf = xm == INFINITY_BITS, y_inf = ym == INFINITY_BITS;
    INT x_nan = xm > INFINITY_BITS, y_nan = ym > INFINITY_BITS;
    INT bad = x_inf | y_inf | x_nan | y_nan;
    s->special -= bad;
    s->mask_diff -= (x_inf ^ y_inf) | (x_nan ^ y_nan);
    s->sign_diff -= x_inf & y_inf & (xi != yi);
    *x = (VEC)(xi & ~bad);
    *y = (VEC)(yi & ~bad);
}

/* Computes relative errors in the element's own precision. Without `zeros`, a golden zero gives an
 * infinity or NaN in max_rel. */
INLINE void FOR_ELEM(relate)(struct FOR_ELEM(state) * s, const VEC *x, const VEC *y,
                             const bool zeros)
{
    VEC above = *x, below = *y;
    if (zeros) {
        above = ADD_AT_ZERO(*x, *y, EPS);
        below = ADD_AT_ZERO(*y, *y, EPS);
    }
    INT rel = (INT)((above - below) / below) & MAGNITUDE;
    s->below1 = COUNT_LESS(s->below1, rel, (INT)((VEC){0} + (ELEM)0.001));
    s->below5 = COUNT_LESS(s->below5, rel, (INT)((VEC){0} + (ELEM)0.005));
    s->max_rel = zeros ? MAX_NUMBERS(rel, s->max_rel) : MAX_BITS(rel, s->max_rel);
}

INLINE void FOR_ELEM(step)(struct FOR_ELEM(state) * s, const unsigned nth, VEC *x, VEC *y,
                           const enum cmp__source from, const enum cmp__look look, const bool ext)
{
    if (look == CMP__LOOK_SPECIAL)
        FOR_ELEM(screen)(s, x, y);
    FOR_ELEM(relate)(s, x, y, look != CMP__LOOK_NONE);
    SPREAD(&s->sums, nth, x, y, from, ext);
    if (ext) {
        INT xi = (INT)*x, yi = (INT)*y;
        xi ^= (xi >> (BITS - 1)) & MAGNITUDE;
        yi ^= (yi >> (BITS - 1)) & MAGNITUDE;
        SPREAD_ULPS(&s->sums, nth, &xi, &yi);
    }
}

INLINE uint64_t FOR_ELEM(count_of)(const INT *counts)
{
    const INT each = *counts;
    uint64_t n = 0;
    for (size_t i = 0; i < BYTES * 8 / BITS; i++)
        n += (uint64_t)each[i];
    return n;
}

INLINE void FOR_ELEM(take)(struct cmp_facts *f, const struct FOR_ELEM(state) * s,
                           const bool careful, const bool ext)
{
    const VEC max_rel = (VEC)s->max_rel;
    take_sums(f, &s->sums);
    for (size_t i = 0; i < BYTES * 8 / BITS; i++)
        f->max_rel = cmp__larger(f->max_rel, (double)max_rel[i]);
    f->thousandth += FOR_ELEM(count_of)(&s->below1);
    f->five += FOR_ELEM(count_of)(&s->below5);
    if (careful) {
        f->special += FOR_ELEM(count_of)(&s->special);
        f->mask_diff += FOR_ELEM(count_of)(&s->mask_diff);
        f->sign_diff += FOR_ELEM(count_of)(&s->sign_diff);
    }
    if (ext)
        take_ext(f, &s->sums);
    f->bit_equal += FOR_ELEM(count_of)(&s->equal);
    f->thousandth += s->same;
    f->five += s->same;
    f->bit_equal += ext ? s->same : 0;
}

/* Adds a group that has the same bits on both sides. */
INLINE void FOR_ELEM(add_same)(struct FOR_ELEM(state) * s, const void *n, size_t at,
                               const enum cmp__source from)
{
    for (unsigned nth = 0; nth < CMP__GROUP * BITS / 8 / BYTES; nth++) {
        VEC x;
        LOAD(&x, n, at + nth * (BYTES * 8 / BITS), from);
        SPREAD_SAME(&s->sums, nth, &x);
    }
    s->same += CMP__GROUP;
}

INLINE bool FOR_ELEM(has_infinite)(const INT *bits)
{
    const INT each = *bits;
    bool infinite = false;
    for (size_t i = 0; i < BYTES * 8 / BITS; i++)
        infinite |= each[i] >= INFINITY_BITS;
    return infinite;
}

INLINE bool FOR_ELEM(pass)(struct cmp_facts *f, const void *n, const void *b, size_t count,
                           const enum cmp__source from, const enum cmp__look look, const bool ext)
{
    const bool careful = look == CMP__LOOK_SPECIAL;
    enum { WIDTH = BYTES * 8 / BITS };
    struct FOR_ELEM(state) s = {0};
    const size_t run = RUN(from);
    for (size_t i = 0, end; i < count; i = end) {
        end = run < count - i ? i + run : count;
        if (!careful && end - i == run && SAME_RUN(n, b, i, from)) {
            for (size_t k = i; k < end; k += CMP__GROUP) {
                read_ahead(n, b, k * size_of(from), CMP__GROUP * size_of(from));
                FOR_ELEM(add_same)(&s, n, k, from);
            }
            continue;
        }
        for (; i < end; i += CMP__GROUP) {
#define ONE(nth)                                                                                   \
    if ((nth)*WIDTH < CMP__GROUP) {                                                                \
        VEC x, y;                                                                                  \
        LOAD(&x, n, i + (nth)*WIDTH, from);                                                        \
        LOAD(&y, b, i + (nth)*WIDTH, from);                                                        \
        if (ext || from > CMP__C128)                                                               \
            s.equal -= SAME(&x, &y, n, b, i + (nth)*WIDTH, from);                                  \
        FOR_ELEM(step)(&s, nth, &x, &y, from, look, ext);                                          \
    }
            read_ahead(n, b, i * size_of(from), CMP__GROUP * size_of(from));
            ONE(0) ONE(1) ONE(2) ONE(3) ONE(4) ONE(5) ONE(6) ONE(7)
#undef ONE
        }
    }
    if (!careful && !all_finite(&s.sums))
        return false;
    if (look == CMP__LOOK_NONE && FOR_ELEM(has_infinite)(&s.max_rel))
        return false;
    FOR_ELEM(take)(f, &s, careful, ext);
    return true;
}

#undef ELEM
#undef VEC
#undef INT
#undef BITS
#undef MAGNITUDE
#undef INFINITY_BITS
#undef EPS
#undef MAX_BITS
#undef MAX_NUMBERS
#undef ADD_AT_ZERO
#undef COUNT_LESS
#undef LOAD
#undef SAME
#undef SPREAD
#undef SPREAD_ULPS
#undef RUN
#undef SAME_RUN
#undef SPREAD_SAME
#undef FOR_ELEM

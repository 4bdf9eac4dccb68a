/* SPDX-License-Identifier: MIT
 *
 * metric_loop: the pass over two arrays, for one element type.  metric_body.h defines
 *
 *     BODY    name of the function
 *     EXT     1: also what only the extended columns show
 *     FULL    1: NaN and inf are counted and taken for zero; 0: give up when there is one
 *     ELEM    float or double, with VEC and INT for 32 bytes of them and of integers of that size
 *     BITS    of an element, with MAGNITUDE, INFINITY_BITS and UNSIGNED for its format
 *     EPS     the step at 1
 *     TOTAL, HAS_NEGATIVE, MOST   functions over the lanes of INT and VEC
 *     GATHER_FULL, GATHER_EXT     take what FULL and EXT have counted
 *     SPREAD  SPREAD(x, y) adds a pair of vectors to the sums, which have eight lanes
 */

/* n elements, a multiple of eight; false when FULL would have been needed. */
TARGET static bool BODY(struct cmp_facts *f, const void *n, const void *b, size_t count)
{
    const ELEM thousandth = (ELEM)0.001, five = (ELEM)0.005;
    v4d nn0 = {0}, bb0 = {0}, nb0 = {0}, dd0 = {0}, max_abs0 = {0};
    v4d nn1 = {0}, bb1 = {0}, nb1 = {0}, dd1 = {0}, max_abs1 = {0};
    VEC max_rel = {0};
    INT below1 = {0}, below5 = {0};
#if FULL
    INT special = {0}, mask_diff = {0}, sign_diff = {0};
#else
    INT beyond = {0};
#endif
#if EXT
    v4d sum_d0 = {0}, sum_abs0 = {0}, sum_ulp0 = {0}, max_ulp0 = {0};
    v4d sum_d1 = {0}, sum_abs1 = {0}, sum_ulp1 = {0}, max_ulp1 = {0};
    INT equal = {0};
#endif
    for (size_t i = 0; i < count; i += LANES) {
        for (size_t k = i; k < i + LANES; k += 32 / sizeof(ELEM)) {
            VEC x, y;
            memcpy(&x, (const char *)n + k * sizeof(ELEM), sizeof x);
            memcpy(&y, (const char *)b + k * sizeof(ELEM), sizeof y);
            INT xi = (INT)x, yi = (INT)y;
            INT xm = xi & MAGNITUDE, ym = yi & MAGNITUDE;
#if EXT
            equal -= xi == yi;
#endif
#if FULL
            INT x_inf = xm == INFINITY_BITS, y_inf = ym == INFINITY_BITS;
            INT x_nan = xm > INFINITY_BITS, y_nan = ym > INFINITY_BITS;
            INT bad = x_inf | y_inf | x_nan | y_nan;
            special -= bad;
            mask_diff -= (x_inf ^ y_inf) | (x_nan ^ y_nan);
            sign_diff -= x_inf & y_inf & (xi != yi);
            x = (VEC)(xi & ~bad);
            y = (VEC)(yi & ~bad);
#else
            /* the sum's top bit is set where the exponent has no room left */
            beyond |= (INT)((UNSIGNED)xm + (MAGNITUDE - INFINITY_BITS + 1));
            beyond |= (INT)((UNSIGNED)ym + (MAGNITUDE - INFINITY_BITS + 1));
#endif
            /* relative error, in the element's own precision */
            VEC step = (VEC)((y == 0) & (INT)((VEC){0} + EPS));
            VEC rel = (VEC)((INT)(((x + step) - (y + step)) / (y + step)) & MAGNITUDE);
            below1 -= rel < thousandth;
            below5 -= rel < five;
            INT more = rel > max_rel;
            max_rel = (VEC)((more & (INT)rel) | (~more & (INT)max_rel));
            SPREAD(x, y)
        }
    }
#if !FULL
    if (HAS_NEGATIVE(&beyond))
        return false;
#endif
    GATHER(f)
    GATHER_FULL(f)
    GATHER_EXT(f)
    return true;
}

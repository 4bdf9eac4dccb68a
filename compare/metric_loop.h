/* SPDX-License-Identifier: MIT
 *
 * metric_loop: the pass over two arrays, for one element type.  metric_body.h defines
 *
 *     BODY    name of the function
 *     ELEM    float or double, with VEC and INT for eight of them and of integers of that size
 *     BITS    of an element, with MAGNITUDE and INFINITY_BITS of its format
 *     EPS     the step at 1
 */

/* n elements, a multiple of eight. */
TARGET static void BODY(struct cmp_facts *f, const void *n, const void *b, size_t count)
{
    const ELEM thousandth = (ELEM)0.001, five = (ELEM)0.005;
    v8d nn = {0}, bb = {0}, nb = {0}, dd = {0}, sum_d = {0}, sum_abs = {0}, max_abs = {0};
    v8d sum_ulp = {0}, max_ulp = {0};
    VEC max_rel = {0};
    INT special = {0}, mask_diff = {0}, sign_diff = {0}, below1 = {0}, below5 = {0}, equal = {0};
    for (size_t i = 0; i < count; i += LANES) {
        VEC x, y;
        memcpy(&x, (const char *)n + i * sizeof(ELEM), sizeof x);
        memcpy(&y, (const char *)b + i * sizeof(ELEM), sizeof y);
        INT xi = (INT)x, yi = (INT)y;
        INT xm = xi & MAGNITUDE, ym = yi & MAGNITUDE;
        INT x_inf = xm == INFINITY_BITS, y_inf = ym == INFINITY_BITS;
        INT x_nan = xm > INFINITY_BITS, y_nan = ym > INFINITY_BITS;
        INT bad = x_inf | y_inf | x_nan | y_nan;
        special -= bad;
        mask_diff -= (x_inf ^ y_inf) | (x_nan ^ y_nan);
        sign_diff -= x_inf & y_inf & (xi != yi);
        equal -= xi == yi;
        x = (VEC)(xi & ~bad);
        y = (VEC)(yi & ~bad);

        /* relative error, in the element's own precision */
        VEC step = (VEC)((y == 0) & (INT)((VEC){0} + EPS));
        VEC rel = (VEC)((INT)(((x + step) - (y + step)) / (y + step)) & MAGNITUDE);
        below1 -= rel < thousandth;
        below5 -= rel < five;
        INT more = rel > max_rel;
        max_rel = (VEC)((more & (INT)rel) | (~more & (INT)max_rel));

        /* sums, in double */
        v8d xd = __builtin_convertvector(x, v8d), yd = __builtin_convertvector(y, v8d);
        v8d d = xd - yd;
        v8d ad = (v8d)((v8l)d & INT64_MAX);
        nn += xd * xd;
        bb += yd * yd;
        nb += xd * yd;
        dd += d * d;
        sum_d += d;
        sum_abs += ad;
        v8l larger = ad > max_abs;
        max_abs = (v8d)((larger & (v8l)ad) | (~larger & (v8l)max_abs));

        /* distance on the number line: negative numbers count down */
        xi = (INT)x;
        yi = (INT)y;
        xi ^= (xi >> (BITS - 1)) & MAGNITUDE;
        yi ^= (yi >> (BITS - 1)) & MAGNITUDE;
        v8d ulp = __builtin_convertvector(xi, v8d) - __builtin_convertvector(yi, v8d);
        ulp = (v8d)((v8l)ulp & INT64_MAX);
        sum_ulp += ulp;
        larger = ulp > max_ulp;
        max_ulp = (v8d)((larger & (v8l)ulp) | (~larger & (v8l)max_ulp));
    }
    f->nn += SUM(nn);
    f->bb += SUM(bb);
    f->nb += SUM(nb);
    f->dd += SUM(dd);
    f->sum_d += SUM(sum_d);
    f->sum_abs_d += SUM(sum_abs);
    f->sum_ulp += SUM(sum_ulp);
    for (unsigned k = 0; k < LANES; k++) {
        f->special += (uint64_t)special[k];
        f->mask_diff += (uint64_t)mask_diff[k];
        f->sign_diff += (uint64_t)sign_diff[k];
        f->thousandth += (uint64_t)below1[k];
        f->five += (uint64_t)below5[k];
        f->bit_equal += (uint64_t)equal[k];
        f->max_abs = max_abs[k] > f->max_abs ? max_abs[k] : f->max_abs;
        f->max_rel = (double)max_rel[k] > f->max_rel ? (double)max_rel[k] : f->max_rel;
        f->max_ulp = max_ulp[k] > f->max_ulp ? max_ulp[k] : f->max_ulp;
    }
}

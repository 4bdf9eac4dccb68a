/* SPDX-License-Identifier: MIT
 *
 * measure_stat: differences of Max, Min, Mean and Norm.
 *
 * Two numbers give a difference and a percentage; any other combination gives one word for
 * both cells:
 *
 *     NPU \ Bench   number   nan    inf    -inf   device  N/A   other
 *     number        n - b    Nan    -inf   inf    Diff    N/A   Diff
 *     nan           Nan      (same) Nan    Nan    Diff    N/A   Diff
 *     inf           inf      Nan    (same) inf    Diff    N/A   Diff
 *     -inf          -inf     Nan    -inf   (same) Diff    N/A   Diff
 *     device        Diff     Diff   Diff   Diff   N/A     N/A   Diff
 *     other         Diff     Diff   Diff   Diff   Diff    N/A   Diff
 */
#include "compare/measure/measure_stat.h"
#include "compare/read/item.h"
#include "probe/base/num.h"
#include "probe/base/scan.h"

#include <math.h>
#include <stdio.h>

/* Tells whether both cells have the same text; 1 and 1.0 differ, and so do 0.0 and -0.0. */
static bool same_text(const struct cmp_value *n, const struct cmp_value *b)
{
    if (n->is_text || b->is_text)
        return ms_str_eq(n->text, b->text);
    if (n->kind != b->kind)
        return false;
    if (n->kind != CMP_VALUE_NUMBER)
        return ms_str_eq(n->text, b->text);
    if (n->is_int != b->is_int)
        return false;
    if (n->is_int)
        return ms_str_eq(n->text, b->text);
    return n->v == b->v && signbit(n->v) == signbit(b->v);
}

static const char *word_for(enum cmp_value_kind n, enum cmp_value_kind b)
{
    if (n == CMP_VALUE_NA || b == CMP_VALUE_NA)
        return "N/A";
    if (n == b && n != CMP_VALUE_NAN && n != CMP_VALUE_TEXT)
        return "N/A";
    if (n >= CMP_VALUE_DEVICE || b >= CMP_VALUE_DEVICE)
        return "Diff";
    if (n == CMP_VALUE_NAN || b == CMP_VALUE_NAN)
        return "Nan";
    if (n == CMP_VALUE_NUMBER)
        return b == CMP_VALUE_INF ? "-inf" : "inf";
    return n == CMP_VALUE_INF ? "inf" : "-inf";
}

static struct cmp_delta one_word(const char *word)
{
    struct ms_str s = ms_str_of(word);
    return (struct cmp_delta){
        .diff = s, .rel = s, .rel_value = NAN, .rel_inf = ms_str_ends(s, MS_STR("inf"))};
}

static void put_f64(struct ms_buf *b, double x)
{
    char text[MS_NUM_MAX];
    if (isfinite(x))
        ms_buf_put(b, text, ms_num_f64(text, x));
    else
        ms_buf_puts(b, isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
}

static enum ms_rc keep_f64(struct cmp_view *v, double x, const char *unit, struct ms_str *out,
                           struct ms_err *err)
{
    put_f64(&v->scratch, x);
    ms_buf_puts(&v->scratch, unit);
    return cmp__keep(v, out, err);
}

/* ---- the official tool's reading of a number ------------------------------ */

enum { PANDAS_DIGITS = 17 };

static double power_of_ten(int n)
{
    char text[8];
    double v = 1;
    int len = snprintf(text, sizeof text, "1e%d", n);
    (void)ms_num_parse_f64(text, (size_t)len, &v);
    return v;
}

/* Parses a number as older versions of pandas did: up to 17 digits, leading zeros included, are
 * summed up in a double that is scaled once, so that 0.26045331358909607 becomes 0.260453313589096.
 * The differences in the official tables are those of such numbers. */
static double as_pandas_reads(const struct cmp_value *x)
{
    struct ms_str s = x->text;
    if (isinf(x->v)) /* the text Infinity */
        return x->v;
    double sum = 0;
    int digits = 0, exponent = 0;
    uint32_t i = 0;
    bool negative = false, fraction = false;
    for (; i < s.n && s.p[i] != 'e' && s.p[i] != 'E'; i++) {
        if (!ms_is_digit(s.p[i])) { /* skips white space, the sign and the point */
            negative |= s.p[i] == '-';
            fraction |= s.p[i] == '.';
        } else if (digits < PANDAS_DIGITS) {
            sum = sum * 10 + (s.p[i] - '0');
            digits++;
            exponent -= fraction;
        } else {
            exponent += !fraction;
        }
    }
    int64_t written = 0;
    struct ms_str e = ms_str_sub(s, i + 1, s.n);
    if (e.n != 0 && e.p[0] == '+')
        e = ms_str_sub(e, 1, e.n);
    if (ms_str_i64(e, &written) && written > -1000 && written < 1000)
        exponent += (int)written;
    if (exponent > 308)
        sum = HUGE_VAL;
    else if (exponent > 0)
        sum *= power_of_ten(exponent);
    else if (exponent >= -308)
        sum /= power_of_ten(-exponent);
    else
        sum = sum / power_of_ten(-308 - exponent) / 1e308;
    return negative ? -sum : sum;
}

/* ---- differences ------------------------------------------------------------ */

/* Writes the size of a difference relative to b. */
static enum ms_rc divide_difference(struct cmp_view *v, double diff, double b, struct cmp_delta *d,
                                    struct ms_err *err)
{
    if (b == 0) {
        d->rel = MS_STR("inf");
        d->rel_value = NAN;
        d->rel_inf = true;
        return MS_OK;
    }
    double percent = fabs(diff / b) * 100;
    d->rel_value = percent / 100;
    return keep_f64(v, percent, "%", &d->rel, err);
}

static enum ms_rc subtract_stats(struct cmp_view *v, double n, double b, struct cmp_delta *d,
                                 struct ms_err *err)
{
    MS_TRY(keep_f64(v, n - b, "", &d->diff, err));
    return divide_difference(v, n - b, b, d, err);
}

/* Subtracts whole numbers with wrap-around; their ratio is computed in floating point. */
static enum ms_rc subtract_whole(struct cmp_view *v, struct ms_str n, struct ms_str b,
                                 struct cmp_delta *d, struct ms_err *err)
{
    char text[MS_NUM_MAX];
    int64_t x = 0, y = 0;
    ms_str_i64(n, &x);
    ms_str_i64(b, &y);
    int64_t diff = (int64_t)((uint64_t)x - (uint64_t)y);
    MS_TRY(divide_difference(v, (double)diff, (double)y, d, err));
    ms_buf_put(&v->scratch, text, ms_num_i64(text, diff));
    return cmp__keep(v, &d->diff, err);
}

/* Subtracts as pandas does; whole: both columns are of an integer type. */
static enum ms_rc subtract_in_pandas(struct cmp_view *v, const struct cmp_value *n,
                                     const struct cmp_value *b, bool whole, struct cmp_delta *d,
                                     struct ms_err *err)
{
    return whole ? subtract_whole(v, n->text, b->text, d, err)
                 : subtract_stats(v, as_pandas_reads(n), as_pandas_reads(b), d, err);
}

enum ms_rc cmp__measure_stats(const struct cmp_setup *set, struct cmp_view *v, struct cmp_row *row,
                              struct ms_err *err)
{
    if (set->conf.rules->measure_stats != NULL)
        return set->conf.rules->measure_stats(v, row, err);
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        const struct cmp_value *n = &row->t.stat[i], *b = &row->b.stat[i];
        struct cmp_delta *d = &row->delta[i];
        *d = (struct cmp_delta){.rel_value = 0};
        if (same_text(n, b))
            d->diff = d->rel = MS_STR("0");
        else if (n->kind != CMP_VALUE_NUMBER || b->kind != CMP_VALUE_NUMBER)
            *d = one_word(word_for(n->kind, b->kind));
        else if (set->conf.rules->pandas_numbers)
            MS_TRY(subtract_in_pandas(v, n, b, set->whole[i], d, err));
        else
            MS_TRY(subtract_stats(v, n->v, b->v, d, err));
    }
    return MS_OK;
}

/* ---- 1.x ---------------------------------------------------------------- */

static bool has_number(const struct cmp_value *x)
{
    return x->kind == CMP_VALUE_NUMBER || x->kind == CMP_VALUE_NAN || x->kind == CMP_VALUE_INF ||
           x->kind == CMP_VALUE_NINF;
}

double cmp__value_number(const struct cmp_value *x)
{
    if (x->kind == CMP_VALUE_NUMBER)
        return x->v;
    return x->kind == CMP_VALUE_INF ? HUGE_VAL : x->kind == CMP_VALUE_NINF ? -HUGE_VAL : NAN;
}

/* Measures as msprobe 1.x does: infinities are subtracted like numbers, and a golden value of zero
 * gives no relative error, not even for 0 / 0. */
static enum ms_rc measure_old(struct cmp_view *v, const struct cmp_value *n,
                              const struct cmp_value *b, struct cmp_delta *d, struct ms_err *err)
{
    double x = cmp__value_number(n), y = cmp__value_number(b);
    if (!has_number(n) || !has_number(b)) {
        *d = one_word("N/A");
        return MS_OK;
    }
    if (isnan(x - y)) {
        *d = one_word("Nan");
        return MS_OK;
    }
    *d = (struct cmp_delta){.rel_value = 0};
    MS_TRY(subtract_stats(v, x, y, d, err));
    if (y == 0) {
        d->rel = MS_STR("N/A");
        d->rel_inf = false;
    }
    return MS_OK;
}

enum ms_rc cmp__measure_stats_old(struct cmp_view *v, struct cmp_row *row, struct ms_err *err)
{
    for (unsigned i = 0; i < PROBE_STATS; i++)
        MS_TRY(measure_old(v, &row->t.stat[i], &row->b.stat[i], &row->delta[i], err));
    return MS_OK;
}

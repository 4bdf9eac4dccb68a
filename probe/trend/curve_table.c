/* SPDX-License-Identifier: MIT
 *
 * curve_table: see the header.
 */
#include "probe/trend/curve_table.h"

#include "probe/base/csv.h"
#include "probe/trend/notable.h"

#include <inttypes.h>
#include <math.h>

enum { PARTS = 24, LEVELS = 8, SENTENCE_MAX = 4096 };
static const double DECADES = 2; /* a course over more than these is drawn by its logarithm */

struct course {
    double first, last, least, most; /* of its numbers; NaN: it has none */
    int64_t ended; /* step from which it has no number any more; -1: it has to the end */
};

static struct course look_at(const struct probe_curve *c)
{
    struct course s = {NAN, NAN, NAN, NAN, -1};
    for (size_t i = 0; i < c->n; i++) {
        const double v = c->at[i].value;
        if (isnan(v)) {
            s.ended = s.ended < 0 && !isnan(s.first) ? c->at[i].step : s.ended;
            continue;
        }
        s.first = isnan(s.first) ? v : s.first;
        s.least = fmin(s.least, v);
        s.most = fmax(s.most, v);
        s.last = v;
        s.ended = -1;
    }
    return s;
}

/* ---- the drawing --------------------------------------------------------------------------- */

static double height_of(const struct course *s, double v)
{
    const bool is_wide = s->least > 0 && s->most / s->least > pow(10, DECADES);
    const double low = is_wide ? log(s->least) : s->least, high = is_wide ? log(s->most) : s->most;
    return high > low ? ((is_wide ? log(v) : v) - low) / (high - low) : 0;
}

/* Draws a part of the course by its largest number: a block, "×" where there is none. */
static void put_part(const struct probe_curve *c, const struct course *s, size_t from, size_t to,
                     struct ms_buf *out)
{
    double most = NAN;
    for (size_t i = from; i < to; i++)
        most = fmax(most, c->at[i].value);
    if (isnan(most))
        ms_buf_puts(out, "×");
    else /* U+2581 to U+2588 */
        ms_buf_printf(out, "\xe2\x96%c", 0x81 + (int)(height_of(s, most) * (LEVELS - 1) + 0.5));
}

static void put_course(const struct probe_curve *c, const struct course *s, struct ms_buf *out)
{
    const size_t parts = c->n < PARTS ? c->n : PARTS;
    for (size_t i = 0; i < parts; i++)
        put_part(c, s, i * c->n / parts, (i + 1) * c->n / parts, out);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static void put_sentence(const struct probe_notable *n, const char *stat, struct ms_buf *out)
{
    struct ms_message m;
    struct ms_buf text = {.max = SENTENCE_MAX};
    probe_notable_tell(n, stat, &m);
    ms_message_speak(ms_message_stored(&m), &text);
    ms_csv_put(out, ms_buf_slice(&text), MS_CSV_OWN);
    ms_buf_free(&text);
}

/* Writes what stands out: the end of its numbers, or that it moved before the gradient jumped. */
static void put_verdict(const struct probe_notables *found, const char *stat,
                        const struct probe_curve *c, const struct course *s, struct ms_buf *out)
{
    if (s->ended >= 0) {
        ms_buf_printf(out, "error,no number from step %" PRId64 " on", s->ended);
        return;
    }
    const struct probe_notable *n = found->all.p, *end = n + found->all.n;
    while (n < end && (n->curve != c || n->kind != PROBE_NOTABLE_SPIKE))
        n++;
    ms_buf_puts(out, n < end ? "warning," : ",");
    if (n < end)
        put_sentence(n, stat, out);
}

static void put_row(const struct probe_notables *found, const char *stat,
                    const struct probe_curve *c, struct ms_buf *out)
{
    const struct course s = look_at(c);
    ms_csv_put(out, c->name, MS_CSV_OWN);
    ms_buf_putc(out, ',');
    ms_csv_put(out, c->metric, MS_CSV_OWN);
    ms_buf_printf(out, ",%" PRId64 ",%zu,%.6g,%.6g,%.6g,%.6g,", c->rank, c->n, s.first, s.last,
                  s.least, s.most);
    put_course(c, &s, out);
    ms_buf_putc(out, ',');
    put_verdict(found, stat, c, &s, out);
    ms_buf_putc(out, '\n');
}

enum ms_rc probe_curve_table(const struct probe_curves *c, struct ms_buf *out, struct ms_err *err)
{
    struct probe_notables found;
    MS_TRY(probe_notables_find(&found, c, err));
    ms_buf_puts(out, "name,metric,rank,steps,first,last,least,most,course,Result,text\n");
    for (size_t i = 0; i < c->curves.n; i++)
        put_row(&found, c->stat, &c->curves.p[i], out);
    probe_notables_free(&found);
    return ms_buf_check(out, err);
}

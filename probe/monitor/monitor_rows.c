/* SPDX-License-Identifier: MIT
 *
 * monitor_rows: the figures of one tensor.
 */
#include "probe/monitor/monitor_int.h"

#include <math.h>
#include <stdio.h>

/* ---- elements below eps ------------------------------------------------ */

static uint64_t count_below_f32(const char *p, size_t n, float eps)
{
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++) {
        float v;
        memcpy(&v, p + i * sizeof v, sizeof v);
        count += fabsf(v) < eps;
    }
    return count;
}

static uint64_t count_below_any(enum ms_dtype t, const char *p, size_t n, double eps)
{
    enum { AT_ONCE = 256 };
    double v[AT_ONCE];
    uint64_t count = 0;
    for (size_t i = 0; i < n; i += AT_ONCE) {
        const size_t few = n - i < AT_ONCE ? n - i : AT_ONCE;
        ms_dtype_to_f64(t, p + i * ms_dtype_size(t), few, v);
        for (size_t k = 0; k < few; k++)
            count += fabs(v[k]) < eps;
    }
    return count;
}

/* As torch.sum(torch.abs(x) < eps) / x.numel(): eps in the precision of the tensor, the quotient in float32. */
static double share_below(const struct probe_tensor *t, double eps)
{
    struct probe_pieces pieces;
    uint64_t below = 0, n;
    const void *p;
    const double rounded = ms_dtype_round(ms_dtype_is_whole(t->dtype) ? MS_DT_F32 : t->dtype, eps);
    if (t->count == 0 || probe_tensor_is_endless(t))
        return NAN;
    probe_pieces_start(&pieces, t);
    while ((p = probe_pieces_next(&pieces, &n)) != NULL)
        below += t->dtype == MS_DT_F32 ? count_below_f32(p, n, (float)rounded)
                                       : count_below_any(t->dtype, p, n, rounded);
    probe_pieces_end(&pieces);
    return (double)((float)below / (float)t->count);
}

/* ---- all figures ------------------------------------------------------- */

static void describe(struct probe_mon_row *row, const struct probe_tensor *t, const char *dtype)
{
    const enum ms_dtype_kind kind = ms_dtype_kind(t->dtype);
    row->kind = kind == MS_DTK_BOOL                         ? PROBE_MON_BOOLS
                : kind == MS_DTK_INT || kind == MS_DTK_UINT ? PROBE_MON_INTS
                                                            : PROBE_MON_FLOATS;
    row->ndim = t->ndim;
    memcpy(row->shape, t->shape, t->ndim * sizeof *t->shape);
    snprintf(row->dtype, sizeof row->dtype, "%s", dtype);
}

static void figures_of(struct probe_mon_row *row, const struct ms_stats *s, enum ms_dtype t)
{
    const bool has_order = s->count != 0 && s->nan == 0 && ms_dtype_kind(t) != MS_DTK_COMPLEX;
    row->figures[PROBE_MON_MIN] = has_order ? s->min : NAN;
    row->figures[PROBE_MON_MAX] = has_order ? s->max : NAN;
    row->figures[PROBE_MON_NORM] = s->count != 0 ? ms_stats_norm(s) : 0;
    row->figures[PROBE_MON_MEAN] = ms_stats_mean(s);
    row->figures[PROBE_MON_NANS] = (double)s->nan;
    if (!has_order && row->kind != PROBE_MON_FLOATS)
        row->kind = PROBE_MON_FLOATS; /* an empty tensor of whole numbers has NaN */
}

void probe_monitor_figures(struct probe_mon_row *row, const struct probe_tensor *t,
                           const char *dtype, uint32_t ops, double eps)
{
    struct ms_stats stats;
    const uint32_t cheap = 1U << PROBE_MON_SHAPE | 1U << PROBE_MON_DTYPE | 1U << PROBE_MON_ZEROS;
    describe(row, t, dtype);
    for (unsigned i = 0; i < PROBE_MON_OPS; i++)
        row->figures[i] = NAN;
    if ((ops & ~cheap) != 0) {
        probe_tensor_stats(t, &stats);
        figures_of(row, &stats, t->dtype);
    }
    row->has_id = t->ndim == 0;
    row->figures[PROBE_MON_ID] = row->has_id ? row->figures[PROBE_MON_MIN] : NAN;
    if ((ops >> PROBE_MON_ZEROS & 1) != 0)
        row->figures[PROBE_MON_ZEROS] = share_below(t, eps);
}

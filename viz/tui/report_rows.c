/* SPDX-License-Identifier: MIT
 *
 * report_rows: see the header.
 */
#include "viz/tui/report_rows.h"

#include "mstx/conclude/alike_rows.h"
#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdio.h>
#include <stdlib.h>

const char *const tui_report_columns[TUI_TABLES][8] = {
    [TUI_RANGES] = {"as read", "total", "count", "mean", "max", "name"},
    [TUI_COLLECTIVES] = {"as read", "total", "calls", "mean", "bytes", "waits", "name"},
    [TUI_RANKS] = {"as read", "rank", "mean step", "computes", "waits", "others wait", "steps"},
    [TUI_BREAKDOWN] = {"as read", "comp", "comm", "wait", "idle", "name"},
};

/* ---- figures --------------------------------------------------------------------------------- */

static double share(int64_t ns, int64_t n)
{
    return n != 0 ? (double)ns / (double)n : 0;
}

/* The figure of a column; names are compared as texts. */
static double figure_of(enum tui_table table, unsigned column, const struct viz_sum *s)
{
    const double mean = share(s->total, s->count);
    switch (table) {
    case TUI_RANGES:
        return column == 1   ? (double)s->total
               : column == 2 ? (double)s->count
               : column == 3 ? mean
                             : (double)s->longest;
    case TUI_COLLECTIVES:
        return column == 1   ? (double)s->total
               : column == 2 ? (double)s->count
               : column == 3 ? mean
               : column == 4 ? (double)s->bytes
                             : (double)s->waited;
    case TUI_RANKS:
        return column == 1   ? -(double)s->process
               : column == 2 ? mean
               : column == 3 ? share(s->use[VIZ_COMPUTES], s->measured)
               : column == 4 ? share(s->use[VIZ_WAITS], s->measured)
               : column == 5 ? share(s->blame, s->measured)
                             : (double)s->count;
    default:
        ms_assert(column >= 1 && column <= VIZ_USES);
        return (double)s->use[column - 1];
    }
}

/* What makes an entry odd among those of its family. */
static double oddness(enum tui_table table, const struct viz_sum *s)
{
    return (double)(table == TUI_COLLECTIVES ? s->waited : table == TUI_RANGES ? s->total : 0);
}

static void add_sum(struct viz_sum *to, const struct viz_sum *s)
{
    to->count += s->count;
    to->total += s->total;
    to->longest = s->longest > to->longest ? s->longest : to->longest;
    to->measured += s->measured;
    to->blame += s->blame;
    for (int i = 0; i < VIZ_USES; i++)
        to->use[i] += s->use[i];
    to->bytes += s->bytes;
    to->joins += s->joins;
    to->waited += s->waited;
    if (s->times > to->times) {
        to->times = s->times;
        to->last = s->last;
    }
    if (s->call.length_ns > to->call.length_ns)
        to->call = s->call;
}

/* ---- folding --------------------------------------------------------------------------------- */

static enum ms_rc add_row(struct tui_report_rows *r, struct tui_report_row row, struct ms_err *err)
{
    struct tui_report_row *slot = ms_vec_push(&r->rows);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = row;
    return MS_OK;
}

enum { BEHAVIOUR_MAX = 160, GRID = 20 };

/* Writes how a rank uses its steps, in units of a part of the mean step of all. */
static void write_behaviour(enum tui_table table, const struct viz_sum *s, double unit,
                            char text[BEHAVIOUR_MAX])
{
    const double mean = share(s->total, s->count), n = (double)(s->measured != 0 ? s->measured : 1);
    if (table == TUI_BREAKDOWN)
        snprintf(text, BEHAVIOUR_MAX, "%.0f %.0f %.0f %.0f", (double)s->use[0] / unit,
                 (double)s->use[1] / unit, (double)s->use[2] / unit, (double)s->use[3] / unit);
    else
        snprintf(text, BEHAVIOUR_MAX, "%.0f %.0f %.0f %.0f", mean / unit,
                 (double)s->use[VIZ_COMPUTES] / n / unit, (double)s->use[VIZ_WAITS] / n / unit,
                 (double)s->blame / n / unit);
}

static double mean_of_all(enum tui_table table, const struct tui_report_entry *entry, size_t n)
{
    struct viz_sum all = {.count = 0};
    for (size_t i = 0; i < n; i++)
        add_sum(&all, &entry[i].sum);
    if (table != TUI_BREAKDOWN)
        return share(all.total, all.count);
    return share(all.use[0] + all.use[1] + all.use[2] + all.use[3], (int64_t)n);
}

/* Ranks are alike that use their steps alike; ranges and collectives whose names differ in numbers alone. */
static enum ms_rc find_families(enum tui_table table, const struct tui_report_entry *entry,
                                size_t n, struct mstx_foldable *foldable, struct ms_err *err)
{
    const bool is_by_name = table == TUI_RANGES || table == TUI_COLLECTIVES;
    const double mean = mean_of_all(table, entry, n), unit = mean > 0 ? mean / GRID : 1;
    char behaviour[BEHAVIOUR_MAX];
    struct mstx_families families;
    MS_TRY(mstx__families_begin(&families, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < n && rc == MS_OK; i++) {
        const struct viz_sum *s = &entry[i].sum;
        foldable[i] = (struct mstx_foldable){.value = oddness(table, s),
                                             .weight = is_by_name ? (double)s->total : 1};
        write_behaviour(table, s, unit, behaviour);
        rc = is_by_name
                 ? mstx__family_find(&families, s->domain, entry[i].name, &foldable[i].family, err)
                 : mstx__family_find(&families, ms_str_of(behaviour), MS_STR(""),
                                     &foldable[i].family, err);
    }
    mstx__families_free(&families);
    return rc;
}

static enum ms_rc add_folded(struct tui_report_rows *r, const struct tui_report_entry *entry,
                             const struct mstx_folds *folds, struct ms_err *err)
{
    for (size_t i = 0; i < folds->rows.n; i++) {
        const struct mstx_folded *f = &folds->rows.p[i];
        const uint32_t *member = folds->member + f->first;
        struct tui_report_row row = {member[0], f->n, entry[member[0]].sum};
        for (uint32_t k = 1; k < f->n; k++) {
            add_sum(&row.sum, &entry[member[k]].sum);
            row.first = member[k] < row.first ? member[k] : row.first;
        }
        row.sum.name = entry[row.first].sum.name;
        row.sum.process = entry[row.first].sum.process;
        MS_TRY(add_row(r, row, err));
    }
    return MS_OK;
}

static enum ms_rc fold(struct tui_report_rows *r, enum tui_table table,
                       const struct tui_report_entry *entry, size_t n, struct ms_err *err)
{
    struct mstx_folds folds;
    struct mstx_foldable *foldable = ms_calloc(n + 1, sizeof *foldable);
    if (foldable == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = find_families(table, entry, n, foldable, err);
    if (rc == MS_OK)
        rc = mstx__rows_fold(foldable, n, &folds, err);
    ms_free(foldable);
    if (rc != MS_OK)
        return rc;
    rc = add_folded(r, entry, &folds, err);
    mstx__folds_free(&folds);
    return rc;
}

/* ---- sorting --------------------------------------------------------------------------------- */

struct order {
    const struct tui_report_entry *entry;
    enum tui_table table;
    unsigned column;
    bool is_reversed, is_name;
};

static bool is_name_column(enum tui_table table, unsigned column)
{
    return table != TUI_RANKS && tui_report_columns[table][column + 1] == NULL;
}

/* Greater figures and earlier names first; as it came among equals. */
static int by_column(const void *pa, const void *pb, void *ctx)
{
    const struct tui_report_row *a = pa, *b = pb;
    const struct order *o = ctx;
    int order = 0;
    if (o->is_name)
        order = ms_str_cmp_natural(o->entry[a->first].name, o->entry[b->first].name);
    else if (o->column != 0)
        order = MS_ORDER(figure_of(o->table, o->column, &b->sum),
                         figure_of(o->table, o->column, &a->sum), 0);
    if (order == 0)
        order = MS_ORDER(a->first, b->first, 0);
    return o->is_reversed ? -order : order;
}

/* Folded names come with the odd ones first; ranks as they came, which is those first that others wait for. */
static bool has_order_of_folds(enum tui_table table)
{
    return table == TUI_RANGES || table == TUI_COLLECTIVES;
}

enum ms_rc tui_report_make(struct tui_report_rows *r, enum tui_table table,
                           const struct tui_report_entry *entry, size_t n, struct ms_err *err)
{
    struct order o = {entry, table, r->column, r->is_reversed,
                      r->column != 0 && is_name_column(table, r->column)};
    enum ms_rc rc = MS_OK;
    r->rows.n = 0;
    if (r->is_folded)
        rc = fold(r, table, entry, n, err);
    for (size_t i = 0; !r->is_folded && i < n && rc == MS_OK; i++)
        rc = add_row(r, (struct tui_report_row){(uint32_t)i, 1, entry[i].sum}, err);
    if (rc == MS_OK && (r->column != 0 || r->is_reversed || !has_order_of_folds(table)))
        qsort_r(r->rows.p, r->rows.n, sizeof *r->rows.p, by_column, &o);
    r->most = 0;
    for (size_t i = 0; i < r->rows.n; i++)
        r->most = r->rows.p[i].sum.total > r->most ? r->rows.p[i].sum.total : r->most;
    r->is_made = rc == MS_OK;
    return rc;
}

void tui_report_sort_next(struct tui_report_rows *r, enum tui_table table)
{
    r->column++;
    if (tui_report_columns[table][r->column] == NULL)
        r->column = 0;
    r->is_made = false;
}

void tui_report_free(struct tui_report_rows *r)
{
    ms_vec_free(&r->rows);
}

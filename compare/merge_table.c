/* SPDX-License-Identifier: MIT
 *
 * merge_table: one file of a rank's result.  Columns are found by their names, so tables
 * of any version will do.
 */
#include "compare/merge_int.h"
#include "compare/xlsx_read.h"
#include "probe/base/io.h"
#include "probe/base/num.h"
#include "probe/csvread.h"

#include <math.h>

#define CSV_MAX ((size_t)1 << 36)
enum { COLUMNS = 256, NO_COLUMN = UINT32_MAX };

static const char *const of_tensors[] = {"Cosine",
                                         "EucDist",
                                         "MaxAbsErr",
                                         "MaxRelativeErr",
                                         "One Thousandth Err Ratio",
                                         "Five Thousandths Err Ratio",
                                         "Requires_grad Consistent",
                                         NULL};
static const char *const of_statistics[] = {"Max diff",
                                            "Min diff",
                                            "Mean diff",
                                            "L2norm diff",
                                            "MaxRelativeErr",
                                            "MinRelativeErr",
                                            "MeanRelativeErr",
                                            "NormRelativeErr",
                                            "Requires_grad Consistent",
                                            NULL};

/* The table that is being read. */
struct table {
    struct cmp_merge *m;
    struct cmp_merge_rank *rank;
    const struct cmp_merge_conf *conf;
    bool has_header, has_rows;
    uint32_t sheet;
    uint32_t name, npu_max, bench_max, figure[CMP_MERGE_FIGURES]; /* columns */
    struct ms_buf text;
};

/* ---- the header ------------------------------------------------------------- */

static uint32_t column_of(const struct cmp_xlsx_row *row, const char *name)
{
    for (uint32_t i = 0; i < row->n; i++) {
        if (ms_str_is(row->cells[i].text, name))
            return i;
    }
    return NO_COLUMN;
}

static const char *const *figures_of(const struct cmp_xlsx_row *row, struct ms_err *err)
{
    if (column_of(row, "Cosine") != NO_COLUMN)
        return of_tensors;
    if (column_of(row, "Max diff") != NO_COLUMN)
        return of_statistics;
    if (column_of(row, "NPU MD5") != NO_COLUMN)
        ms_fail(err, MS_E_UNSUPPORTED, "a result of checksums has no figures to merge");
    else
        ms_fail(err, MS_E_FORMAT, "not a table of msprobe compare");
    return NULL;
}

static const char *named(const char *const *list, struct ms_str name)
{
    for (; *list != NULL; list++) {
        if (ms_str_is(name, *list))
            return *list;
    }
    return NULL;
}

/* The figures that are merged: those of the configuration, or all of this kind of table. */
static enum ms_rc choose_figures(struct cmp_merge *m, const struct cmp_merge_conf *conf,
                                 const char *const *known, struct ms_err *err)
{
    if (conf->index.n > CMP_MERGE_FIGURES)
        return ms_fail(err, MS_E_LIMIT, "compare_index names more than %d figures",
                       CMP_MERGE_FIGURES);
    const char *chosen[CMP_MERGE_FIGURES];
    unsigned n = 0;
    for (size_t i = 0; i < conf->index.n; i++) {
        chosen[n] = named(known, conf->index.p[i]);
        if (chosen[n++] == NULL)
            return ms_fail(err, MS_E_ARG, "has no column '%.*s' of compare_index",
                           MS_STR_ARG(conf->index.p[i]));
    }
    for (size_t i = 0; conf->index.n == 0 && known[i] != NULL; i++)
        chosen[n++] = known[i];
    memcpy(m->figures, chosen, n * sizeof *chosen);
    m->nfigures = n;
    return MS_OK;
}

static enum ms_rc take_header(struct table *t, const struct cmp_xlsx_row *row, struct ms_err *err)
{
    const char *const *known = figures_of(row, err);
    if (known == NULL)
        return err->rc;
    if (t->m->nfigures == 0)
        MS_TRY(choose_figures(t->m, t->conf, known, err));
    t->name = column_of(row, "NPU Name");
    t->npu_max = column_of(row, "NPU max");
    t->bench_max = column_of(row, "Bench max");
    for (unsigned i = 0; i < t->m->nfigures; i++) {
        t->figure[i] = column_of(row, t->m->figures[i]);
        if (t->figure[i] == NO_COLUMN)
            return ms_fail(err, MS_E_FORMAT, "has no column '%s', which other ranks have",
                           t->m->figures[i]);
    }
    if (t->name == NO_COLUMN)
        return ms_fail(err, MS_E_FORMAT, "has no column 'NPU Name'");
    t->has_header = true;
    t->sheet = row->sheet;
    return MS_OK;
}

/* ---- rows ----------------------------------------------------------------------- */

static struct cmp_xlsx_cell cell(const struct cmp_xlsx_row *row, uint32_t column)
{
    return column < row->n ? row->cells[column] : (struct cmp_xlsx_cell){.text = MS_STR("")};
}

/* "Distributed.all_reduce" stands for every row in whose name it is followed by a dot; conf->api.n:
 * the name belongs to none. */
static size_t api_of(const struct cmp_merge_conf *conf, struct ms_str name)
{
    for (size_t i = 0; i < conf->api.n; i++) {
        struct ms_str api = conf->api.p[i], rest = name;
        for (int64_t at; (at = ms_str_find_str(rest, api)) >= 0;) {
            rest = ms_str_sub(rest, (uint32_t)at + api.n, rest.n);
            if (rest.n != 0 && rest.p[0] == '.')
                return i;
        }
    }
    return conf->api.n;
}

static bool says_nothing(struct ms_str figure)
{
    return ms_str_is(figure, "N/A") || ms_str_is(figure, "unsupported") || ms_str_is(figure, "Nan");
}

/* A number of a workbook as Python shows it, which reads whole ones as integers of any size. */
static void put_value(struct ms_buf *out, const struct cmp_xlsx_cell *c)
{
    double v;
    if (!c->number || !ms_num_parse_f64(c->text.p, c->text.n, &v) || !isfinite(v)) {
        ms_buf_str(out, c->text);
        return;
    }
    if (v == trunc(v)) {
        ms_buf_printf(out, "%.0f", v == 0 ? 0.0 : v);
        return;
    }
    char text[MS_NUM_MAX];
    ms_buf_str(out, (struct ms_str){text, ms_num_f64(text, v)});
}

/* A figure; where there is none, what the two sides are. */
static enum ms_rc keep_figure(struct table *t, const struct cmp_xlsx_row *row, unsigned i,
                              struct cmp_merge_cell *out, struct ms_err *err)
{
    struct cmp_xlsx_cell c = cell(row, t->figure[i]);
    struct cmp_xlsx_cell npu = cell(row, t->npu_max), bench = cell(row, t->bench_max);
    ms_buf_clear(&t->text);
    if (says_nothing(c.text)) {
        ms_buf_puts(&t->text, "NPU:");
        put_value(&t->text, &npu);
        ms_buf_puts(&t->text, "  Bench:");
        put_value(&t->text, &bench);
    } else {
        ms_buf_str(&t->text, c.text);
    }
    *out = (struct cmp_merge_cell){.text = ms_arena_str(t->m->arena, ms_buf_slice(&t->text))};
    return out->text.p != NULL ? ms_buf_check(&t->text, err) : ms_arena_fail(t->m->arena, err);
}

static enum ms_rc keep_name(struct table *t, struct ms_str name, size_t api, uint32_t *id,
                            struct ms_err *err)
{
    bool added = false;
    *id = ms_map_put_copy(&t->m->names, name, t->m->arena, &added);
    struct cmp_merge_place *place = *id != MS_MAP_NONE && added ? ms_vec_push(&t->m->places) : NULL;
    if (place != NULL)
        *place = (struct cmp_merge_place){t->rank->rank, api};
    return *id != MS_MAP_NONE && (place != NULL || !added) ? MS_OK : ms_no_memory(err);
}

/* Of rows with one name the first counts. */
static enum ms_rc keep_row(struct table *t, const struct cmp_xlsx_row *row, struct ms_str name,
                           size_t api, struct ms_err *err)
{
    struct cmp_merge_rank *r = t->rank;
    uint32_t id;
    MS_TRY(keep_name(t, name, api, &id, err));
    size_t first = (size_t)id * t->m->nfigures, end = first + t->m->nfigures;
    if (!ms_vec_reserve(&r->cells, end))
        return ms_no_memory(err);
    while (r->cells.n < end)
        r->cells.p[r->cells.n++] = (struct cmp_merge_cell){0};
    if (r->cells.p[first].text.p != NULL)
        return MS_OK;
    r->rows++;
    for (unsigned i = 0; i < t->m->nfigures; i++)
        MS_TRY(keep_figure(t, row, i, &r->cells.p[first + i], err));
    return MS_OK;
}

/* Each sheet begins with a header. */
static enum ms_rc take_row(void *ctx, const struct cmp_xlsx_row *row, struct ms_err *err)
{
    struct table *t = ctx;
    if (!t->has_header || t->sheet != row->sheet)
        return take_header(t, row, err);
    t->has_rows = true;
    struct ms_str name = cell(row, t->name).text;
    size_t api = api_of(t->conf, name);
    return api < t->conf->api.n ? keep_row(t, row, name, api, err) : MS_OK;
}

/* ---- csv ---------------------------------------------------------------------------- */

/* In our csv an infinity has a space before it. */
static struct cmp_xlsx_cell csv_cell(struct ms_str field)
{
    if (field.n != 0 && field.p[0] == ' ')
        field = ms_str_sub(field, 1, field.n);
    return (struct cmp_xlsx_cell){.text = field};
}

static enum ms_rc read_rows(struct table *t, struct probe_csv *r, struct ms_err *err)
{
    struct cmp_xlsx_cell cells[COLUMNS];
    bool more;
    for (;;) {
        MS_TRY(probe_csv_next(r, &more, err));
        if (!more)
            return MS_OK;
        if (r->fields.n > COLUMNS)
            return ms_fail(err, MS_E_LIMIT, "line %u has more than %d columns", r->line, COLUMNS);
        for (size_t i = 0; i < r->fields.n; i++)
            cells[i] = csv_cell(r->fields.p[i]);
        const struct cmp_xlsx_row row = {cells, r->fields.n, 0, r->line};
        MS_TRY(take_row(t, &row, err));
    }
}

static enum ms_rc read_csv(struct table *t, const char *path, struct ms_err *err)
{
    struct ms_file f;
    struct probe_csv r;
    MS_TRY(ms_file_map(&f, path, CSV_MAX, err));
    probe_csv_init(&r, f.p, f.n);
    enum ms_rc rc = read_rows(t, &r, err);
    probe_csv_free(&r);
    ms_file_unmap(&f);
    return rc != MS_OK ? ms_err_wrap(err, "%s", path), rc : MS_OK;
}

enum ms_rc cmp__merge_table(struct cmp_merge *m, struct cmp_merge_rank *r, const char *path,
                            const struct cmp_merge_conf *conf, struct ms_err *err)
{
    struct table t = {.m = m, .rank = r, .conf = conf, .text.max = 1 << 20};
    enum ms_rc rc = ms_str_ends(ms_str_of(path), MS_STR(".csv"))
                        ? read_csv(&t, path, err)
                        : cmp_xlsx_read(path, take_row, &t, err);
    if (rc == MS_OK && !t.has_rows)
        rc = ms_fail(err, MS_E_FORMAT, "%s: the table has no rows", path);
    ms_buf_free(&t.text);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * merge: finds the results of all ranks and writes their figures side by side.
 */
#include "compare/official/merge.h"

#include "compare/read/yaml_doc.h"
#include "compare/write/sheet.h"
#include "compare/write/xlsx_read.h"

#include "probe/base/csv.h"
#include "probe/base/io.h"
#include "probe/base/nearest.h"
#include "probe/base/num.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- one file of a rank --------------------------------------------------- */

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

/* State while a table is read. */
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

static const char *find_name(const char *const *list, struct ms_str name)
{
    for (; *list != NULL; list++) {
        if (ms_str_is(name, *list))
            return *list;
    }
    return NULL;
}

/* Chooses the figures to merge: those of the configuration, or all figures of this kind of
 * table. */
static enum ms_rc choose_figures(struct cmp_merge *m, const struct cmp_merge_conf *conf,
                                 const char *const *known, struct ms_err *err)
{
    if (conf->index.n > CMP_MERGE_FIGURES)
        return ms_fail(err, MS_E_LIMIT, "compare_index names more than %d figures",
                       CMP_MERGE_FIGURES);
    const char *chosen[CMP_MERGE_FIGURES];
    unsigned n = 0;
    for (size_t i = 0; i < conf->index.n; i++) {
        chosen[n] = find_name(known, conf->index.p[i]);
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

static struct cmp_xlsx_cell cell_at(const struct cmp_xlsx_row *row, uint32_t column)
{
    return column < row->n ? row->cells[column] : (struct cmp_xlsx_cell){.text = MS_STR("")};
}

/* Returns the index of the configured API of a row, or conf->api.n. "Distributed.all_reduce"
 * matches every name in which a dot follows it. */
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

/* Writes a number of a workbook as Python prints it; Python reads integral values as integers of
 * any size. */
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

/* Keeps a figure, or the values of both sides when there is none. */
static enum ms_rc keep_figure(struct table *t, const struct cmp_xlsx_row *row, unsigned i,
                              struct cmp_merge_cell *out, struct ms_err *err)
{
    struct cmp_xlsx_cell c = cell_at(row, t->figure[i]);
    struct cmp_xlsx_cell npu = cell_at(row, t->npu_max), bench = cell_at(row, t->bench_max);
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

/* Keeps the figures of a row; of rows with the same name only the first. */
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

/* Handles a row; the first row of each sheet is the header. */
static enum ms_rc take_row(void *ctx, const struct cmp_xlsx_row *row, struct ms_err *err)
{
    struct table *t = ctx;
    if (!t->has_header || t->sheet != row->sheet)
        return take_header(t, row, err);
    t->has_rows = true;
    struct ms_str name = cell_at(row, t->name).text;
    size_t api = api_of(t->conf, name);
    return api < t->conf->api.n ? keep_row(t, row, name, api, err) : MS_OK;
}

/* ---- csv ---------------------------------------------------------------------------- */

/* Returns a csv field as a cell, without the space that our csv files put before an infinity. */
static struct cmp_xlsx_cell csv_cell(struct ms_str field)
{
    if (field.n != 0 && field.p[0] == ' ')
        field = ms_str_sub(field, 1, field.n);
    return (struct cmp_xlsx_cell){.text = field};
}

static enum ms_rc read_rows(struct table *t, struct ms_csv *r, struct ms_err *err)
{
    struct cmp_xlsx_cell cells[COLUMNS];
    bool more;
    for (;;) {
        MS_TRY(ms_csv_next(r, &more, err));
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
    struct ms_csv r;
    MS_TRY(ms_file_map(&f, path, CSV_MAX, err));
    ms_csv_init(&r, f.p, f.n);
    enum ms_rc rc = read_rows(t, &r, err);
    ms_csv_free(&r);
    ms_file_unmap(&f);
    return rc != MS_OK ? ms_err_wrap(err, "%s", path), rc : MS_OK;
}

/* Reads the configured rows from one file of a rank's result. Columns are found by name, so tables
 * of any version work. Unless the configuration names figures, the first table decides which ones
 * are merged. */
static enum ms_rc merge_table(struct cmp_merge *m, struct cmp_merge_rank *r, const char *path,
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

enum { TEXT_MAX = 1 << 30, NAME_DIGITS = 14 };

/* ---- the configuration --------------------------------------------------- */

/* Tells whether a YAML value is null. */
static bool is_nothing(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    const struct ms_str text = {(const char *)node->data.scalar.value,
                                (uint32_t)node->data.scalar.length};
    return text.n == 0 || ms_str_is(text, "~") || ms_str_is(text, "null");
}

static enum ms_rc take_list(struct cmp_merge_conf *c, bool api, yaml_document_t *doc,
                            yaml_node_t *node, struct ms_err *err)
{
    if (is_nothing(node))
        return MS_OK;
    if (node->type != YAML_SEQUENCE_NODE)
        return cmp__yaml_refuse(node, "a list", err);
    for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top;
         i++) {
        struct ms_str text;
        MS_TRY(cmp__yaml_scalar(yaml_document_get_node(doc, *i), &text, err));
        struct ms_str *slot = api ? ms_vec_push(&c->api) : ms_vec_push(&c->index);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = ms_arena_str(c->arena, text);
        if (slot->p == NULL)
            return ms_arena_fail(c->arena, err);
    }
    return MS_OK;
}

static enum ms_rc take_conf(void *into, yaml_document_t *doc, yaml_node_t *root, struct ms_err *err)
{
    struct cmp_merge_conf *c = into;
    if (root->type != YAML_MAPPING_NODE)
        return cmp__yaml_refuse(root, "'api: [..]' and 'compare_index: [..]'", err);
    for (yaml_node_pair_t *i = root->data.mapping.pairs.start; i < root->data.mapping.pairs.top;
         i++) {
        struct ms_str key;
        yaml_node_t *value = yaml_document_get_node(doc, i->value);
        MS_TRY(cmp__yaml_scalar(yaml_document_get_node(doc, i->key), &key, err));
        if (ms_str_is(key, "api"))
            MS_TRY(take_list(c, true, doc, value, err));
        else if (ms_str_is(key, "compare_index"))
            MS_TRY(take_list(c, false, doc, value, err));
        else
            return cmp__yaml_refuse(yaml_document_get_node(doc, i->key), "api or compare_index",
                                    err);
    }
    if (c->api.n == 0)
        return ms_fail(err, MS_E_FORMAT, "'api' names no operator");
    return MS_OK;
}

static enum ms_rc conf_begin(struct cmp_merge_conf *c, struct ms_err *err)
{
    *c = (struct cmp_merge_conf){.arena = ms_arena_new(TEXT_MAX)};
    return c->arena != NULL ? MS_OK : ms_no_memory(err);
}

enum ms_rc cmp_merge_conf_parse(struct cmp_merge_conf *c, const char *name, struct ms_str text,
                                struct ms_err *err)
{
    MS_TRY(conf_begin(c, err));
    enum ms_rc rc = cmp__yaml_load(name, text, take_conf, c, err);
    if (rc != MS_OK)
        cmp_merge_conf_free(c);
    return rc;
}

enum ms_rc cmp_merge_conf_read(struct cmp_merge_conf *c, const char *path, struct ms_err *err)
{
    MS_TRY(conf_begin(c, err));
    enum ms_rc rc = cmp__yaml_load_file(path, take_conf, c, err);
    if (rc != MS_OK)
        cmp_merge_conf_free(c);
    return rc;
}

void cmp_merge_conf_free(struct cmp_merge_conf *c)
{
    ms_vec_free(&c->api);
    ms_vec_free(&c->index);
    ms_arena_free(c->arena);
    *c = (struct cmp_merge_conf){0};
}

/* ---- file names ---------------------------------------------------------- */

static bool take_number(struct ms_str *s, uint64_t *number, uint32_t *digits)
{
    uint32_t n = 0;
    while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9')
        n++;
    *digits = n;
    bool fine = ms_str_u64(ms_str_sub(*s, 0, n), number);
    *s = ms_str_sub(*s, n, s->n);
    return fine;
}

/* Accepts compare_result_rank3_20260814102107.xlsx, compare_result_rank3-rank3_...,
 * ..._part_1.csv. */
bool cmp__merge_name(struct ms_str name, uint64_t *rank, uint64_t *stamp)
{
    uint64_t again, part;
    uint32_t digits;
    if (!ms_str_skip(&name, "compare_result_rank") || !take_number(&name, rank, &digits))
        return false;
    if (ms_str_skip(&name, "-rank") && (!take_number(&name, &again, &digits) || again != *rank))
        return false;
    if (!ms_str_skip(&name, "_") || !take_number(&name, stamp, &digits) || digits != NAME_DIGITS)
        return false;
    if (ms_str_skip(&name, "_part_") && !take_number(&name, &part, &digits))
        return false;
    return ms_str_is(name, ".xlsx") || ms_str_is(name, ".csv");
}

static enum ms_rc note_problem(struct cmp_merge *m, struct ms_err *err, const char *fmt, ...)
    MS_PRINTF(3, 4);
static enum ms_rc note_problem(struct cmp_merge *m, struct ms_err *err, const char *fmt, ...)
{
    struct ms_buf b = {.max = 1 << 16};
    va_list ap;
    va_start(ap, fmt);
    ms_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    struct ms_str kept = ms_arena_str(m->arena, ms_buf_slice(&b));
    const char **slot = kept.p != NULL ? ms_vec_push(&m->notes) : NULL;
    ms_buf_free(&b);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = kept.p;
    return MS_OK;
}

/* Adds a file to the entry of its rank; of several results of a rank the latest counts. */
static enum ms_rc add_path(struct cmp_merge *m, uint64_t rank, uint64_t stamp, const char *path,
                           struct ms_err *err)
{
    struct cmp_merge_rank *r = NULL;
    for (size_t i = 0; i < m->ranks.n && r == NULL; i++)
        r = m->ranks.p[i].rank == rank ? &m->ranks.p[i] : NULL;
    if (r == NULL) {
        r = ms_vec_push(&m->ranks);
        if (r == NULL)
            return ms_no_memory(err);
        *r = (struct cmp_merge_rank){.rank = rank, .stamp = stamp};
    }
    if (stamp < r->stamp)
        return note_problem(m, err, "%s: an older result of rank%llu, left out", path,
                            (unsigned long long)rank);
    if (stamp > r->stamp)
        MS_TRY(note_problem(m, err, "%s: an older result of rank%llu, left out", r->paths.p[0],
                            (unsigned long long)rank));
    if (stamp > r->stamp)
        r->paths.n = 0;
    r->stamp = stamp;
    const char **slot = ms_vec_push(&r->paths);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = path;
    return MS_OK;
}

static int by_rank(const void *a, const void *b)
{
    const struct cmp_merge_rank *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static enum ms_rc offer_file(struct cmp_merge *m, const char *dir, struct ms_str name,
                             struct ms_err *err)
{
    uint64_t rank, stamp;
    bool is_table = ms_str_ends(name, MS_STR(".xlsx")) || ms_str_ends(name, MS_STR(".csv"));
    if (!is_table)
        return MS_OK;
    if (!cmp__merge_name(name, &rank, &stamp))
        return note_problem(m, err, "%.*s: not the result of a rank, left out", MS_STR_ARG(name));
    struct ms_buf path = {.max = 1 << 16};
    ms_buf_printf(&path, "%s/%.*s", dir, MS_STR_ARG(name));
    struct ms_str kept = ms_arena_str(m->arena, ms_buf_slice(&path));
    ms_buf_free(&path);
    return kept.p != NULL ? add_path(m, rank, stamp, kept.p, err) : ms_no_memory(err);
}

static enum ms_rc find_files(struct cmp_merge *m, const char *dir, struct ms_err *err)
{
    struct ms_dir d;
    MS_TRY(ms_dir_list(&d, dir, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < d.names.n && rc == MS_OK; i++)
        rc = offer_file(m, dir, d.names.p[i], err);
    ms_dir_free(&d);
    MS_TRY(rc);
    if (m->ranks.n != 0)
        qsort(m->ranks.p, m->ranks.n, sizeof *m->ranks.p, by_rank);
    if (m->ranks.n >= 2)
        return MS_OK;
    ms_fail(err, MS_E_NOTFOUND, "%s: results of %zu ranks; merging takes two or more", dir,
            m->ranks.n);
    ms_err_hint(err, "they are called compare_result_rankN_TIME.xlsx or .csv");
    return MS_E_NOTFOUND;
}

/* ---- the ranks ---------------------------------------------------------------- */

static enum ms_rc read_rank(struct cmp_merge *m, struct cmp_merge_rank *r,
                            const struct cmp_merge_conf *conf, struct ms_err *err)
{
    for (size_t i = 0; i < r->paths.n; i++)
        MS_TRY(merge_table(m, r, r->paths.p[i], conf, err));
    for (size_t i = 0; i < conf->api.n && r->rows == 0; i++)
        MS_TRY(note_problem(m, err, "rank%llu has no row of %.*s", (unsigned long long)r->rank,
                            MS_STR_ARG(conf->api.p[i])));
    return MS_OK;
}

/* Reads all ranks; a rank that cannot be read is noted and left out. */
static enum ms_rc read_ranks(struct cmp_merge *m, const struct cmp_merge_conf *conf,
                             struct ms_err *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->ranks.n; i++) {
        struct cmp_merge_rank r = m->ranks.p[i];
        struct ms_err why = {0};
        enum ms_rc rc = read_rank(m, &r, conf, &why);
        m->ranks.p[i] = r;
        if (rc == MS_E_NOMEM || rc == MS_E_INTERRUPTED) {
            *err = why;
            return rc;
        }
        if (rc != MS_OK) {
            MS_TRY(note_problem(m, err, "rank%llu is left out: %s", (unsigned long long)r.rank,
                                why.msg));
            ms_vec_free(&r.paths);
            ms_vec_free(&r.cells);
            m->ranks.p[i] = (struct cmp_merge_rank){0};
            continue;
        }
        m->ranks.p[i] = (struct cmp_merge_rank){0};
        m->ranks.p[kept++] = r;
    }
    m->ranks.n = kept;
    if (kept == 0 || m->names.keys.n == 0)
        return ms_fail(err, MS_E_NOTFOUND, "nothing to merge: %s",
                       kept == 0 ? "no rank's result could be used"
                                 : "no row belongs to an operator of the configuration");
    return MS_OK;
}

enum ms_rc cmp_merge_read(struct cmp_merge *m, const char *dir, const struct cmp_merge_conf *conf,
                          struct ms_err *err)
{
    *m = (struct cmp_merge){.arena = ms_arena_new(TEXT_MAX)};
    enum ms_rc rc = m->arena != NULL ? find_files(m, dir, err) : ms_no_memory(err);
    return rc == MS_OK ? read_ranks(m, conf, err) : rc;
}

void cmp_merge_free(struct cmp_merge *m)
{
    for (size_t i = 0; i < m->ranks.n; i++) {
        ms_vec_free(&m->ranks.p[i].paths);
        ms_vec_free(&m->ranks.p[i].cells);
    }
    ms_vec_free(&m->ranks);
    ms_vec_free(&m->notes);
    ms_map_free(&m->names);
    ms_vec_free(&m->places);
    ms_arena_free(m->arena);
    *m = (struct cmp_merge){0};
}

/* ---- the workbook --------------------------------------------------------------- */

struct sheets {
    const struct cmp_merge *m;
    const uint32_t *order; /* indices of names in output order */
    lxw_format *bold;
    struct ms_buf text;
};

static lxw_error put_header(struct sheets *s, lxw_worksheet *sheet)
{
    lxw_error e = worksheet_write_string(sheet, 0, 0, "NPU Name", s->bold);
    worksheet_freeze_panes(sheet, 1, 1);
    for (size_t i = 0; i < s->m->ranks.n && e == LXW_NO_ERROR; i++) {
        char name[32];
        snprintf(name, sizeof name, "rank%llu", (unsigned long long)s->m->ranks.p[i].rank);
        e = worksheet_write_string(sheet, 0, (lxw_col_t)(i + 1), name, s->bold);
    }
    return e;
}

/* Writes a cell with its native type; the tables of compare store many figures as text. */
static lxw_error put_cell(struct sheets *s, lxw_worksheet *sheet, lxw_row_t row, lxw_col_t column,
                          const struct cmp_merge_cell *cell)
{
    double v;
    const struct ms_str text = cell->text;
    if (text.p == NULL)
        return LXW_NO_ERROR;
    if (ms_num_parse_f64(text.p, text.n, &v) && isfinite(v))
        return worksheet_write_number(sheet, row, column, v, NULL);
    if (ms_str_is(text, "True") || ms_str_is(text, "False"))
        return worksheet_write_boolean(sheet, row, column, ms_str_is(text, "True"), NULL);
    return cmp__workbook_text(sheet, row, column, cell->text, NULL, &s->text);
}

static lxw_error put_row(struct sheets *s, lxw_worksheet *sheet, lxw_row_t row, unsigned figure)
{
    uint32_t name = s->order[row - 1];
    lxw_error e = cmp__workbook_text(sheet, row, 0, ms_map_key(&s->m->names, name), NULL, &s->text);
    for (size_t i = 0; i < s->m->ranks.n && e == LXW_NO_ERROR; i++) {
        const struct cmp_merge_rank *r = &s->m->ranks.p[i];
        size_t at = (size_t)name * s->m->nfigures + figure;
        if (at < r->cells.n)
            e = put_cell(s, sheet, row, (lxw_col_t)(i + 1), &r->cells.p[at]);
    }
    return e;
}

static enum ms_rc put_sheet(struct sheets *s, lxw_workbook *book, unsigned figure,
                            struct ms_err *err)
{
    lxw_worksheet *sheet = workbook_add_worksheet(book, s->m->figures[figure]);
    if (sheet == NULL)
        return ms_no_memory(err);
    lxw_error e = put_header(s, sheet);
    for (uint32_t i = 0; i < s->m->names.keys.n && e == LXW_NO_ERROR; i++)
        e = put_row(s, sheet, i + 1, figure);
    if (e != LXW_NO_ERROR)
        return ms_fail(err, MS_E_IO, "xlsx: %s", lxw_strerror(e));
    return ms_buf_check(&s->text, err);
}

/* Orders names by rank of first occurrence, then by API, then in the order of reading. */
static int by_place(const void *a, const void *b, void *places)
{
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct cmp_merge_place *all = places, *x = &all[i], *y = &all[k];
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->api != y->api)
        return x->api < y->api ? -1 : 1;
    return (i > k) - (i < k);
}

static enum ms_rc put_sheets(struct sheets *s, const char *path, struct ms_err *err)
{
    struct cmp__workbook file;
    MS_TRY(cmp__workbook_open(&file, path, err));
    s->bold = workbook_add_format(file.book);
    if (s->bold != NULL)
        format_set_bold(s->bold);
    enum ms_rc rc = MS_OK;
    for (unsigned i = 0; i < s->m->nfigures && rc == MS_OK; i++)
        rc = put_sheet(s, file.book, i, err);
    return cmp__workbook_close(&file, rc, err);
}

enum ms_rc cmp_merge_write(const struct cmp_merge *m, const char *path, struct ms_err *err)
{
    enum { SHEET_ROWS = 1048575 };
    uint32_t n = (uint32_t)m->names.keys.n;
    if (n > SHEET_ROWS)
        return ms_fail(err, MS_E_LIMIT, "%u rows; a sheet holds %d: name fewer operators", n,
                       SHEET_ROWS);
    uint32_t *order = ms_calloc(n + 1, sizeof *order);
    if (order == NULL)
        return ms_no_memory(err);
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof *order, by_place, m->places.p);
    struct sheets s = {.m = m, .order = order, .text.max = 1 << 20};
    enum ms_rc rc = put_sheets(&s, path, err);
    ms_buf_free(&s.text);
    ms_free(order);
    return rc;
}

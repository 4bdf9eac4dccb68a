/* SPDX-License-Identifier: MIT
 *
 * out_table: writes the table of a comparison as csv or as a workbook.
 */
#include "compare/write/out_table_int.h"

#include "compare/table/comparison.h"
#include "compare/write/out.h"
#include "compare/write/sheet.h"
#include "compare/write/table.h"
#include "probe/base/trace.h"

#include <stdio.h>

/* ---- csv -------------------------------------------------------------------- */

/* Writes a comparison as csv.
 *
 * Several threads make the text of blocks of operators; the text is written to the file in
 * order. Thus only a few blocks are in memory at a time, and the file is the same for any
 * number of threads. */

enum { BLOCK_TEXT_MAX = 1 << 30 };

struct cmp__table_bounds cmp__table_bounds = {
    .block_rows = 512, .part_rows = 1000000, .sheet_rows = 1048500};

struct block {
    size_t first, end; /* groups */
    struct ms_buf text;
    MS_VEC(size_t) row_ends; /* offsets in text */
    struct cmp_summary sum;
};

struct csv {
    const struct cmp *c;
    unsigned columns;
    struct block *blocks; /* two sets of `most`: one is filled while the other is written */
    size_t most;
    struct cmp_view *views; /* one for each thread */
};

/* ---- blocks ------------------------------------------------------------- */

static enum ms_rc put_group(const struct csv *csv, size_t group, struct cmp_view *v,
                            struct block *b, struct ms_err *err)
{
    struct cmp_cell cells[CMP_COLUMNS];
    MS_TRY(cmp_view_group(csv->c, group, v, err));
    cmp_summary_add(&b->sum, csv->c, group, v);
    for (size_t i = 0; i < v->rows.n; i++) {
        MS_TRY(cmp_table_cells(&csv->c->set, csv->c, v, i, cells, err));
        for (unsigned k = 0; k < csv->columns; k++) {
            if (k != 0)
                ms_buf_putc(&b->text, ',');
            cmp_csv_cell(&b->text, &cells[k]);
        }
        ms_buf_putc(&b->text, '\n');
        size_t *end = ms_vec_push(&b->row_ends);
        if (end == NULL)
            return ms_no_memory(err);
        *end = b->text.n;
    }
    return ms_buf_check(&b->text, err);
}

static enum ms_rc fill_block(const struct csv *csv, struct block *b, unsigned worker,
                             struct ms_err *err)
{
    struct cmp_view *v = &csv->views[worker];
    ms_buf_clear(&b->text);
    b->row_ends.n = 0;
    b->sum = (struct cmp_summary){0};
    MS_TRY(cmp_view_renew(v, err));
    for (size_t g = b->first; g < b->end; g++)
        MS_TRY(put_group(csv, g, v, b, err));
    return MS_OK;
}

/* Cuts the next blocks, at most as many as are processed at once. */
static size_t cut_blocks(const struct csv *csv, struct block *blocks, size_t *group)
{
    size_t groups = cmp_groups(csv->c), n = 0;
    for (; n < csv->most && *group < groups; n++) {
        struct block *b = &blocks[n];
        size_t rows = 0;
        b->first = *group;
        while (*group < groups && rows < cmp__table_bounds.block_rows)
            rows += cmp_group_rows(csv->c, (*group)++);
        b->end = *group;
    }
    return n;
}

/* ---- files ---------------------------------------------------------------- */

static void put_header(struct ms_out *out, const char *const *names, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (i != 0)
            ms_out_putc(out, ',');
        ms_out_puts(out, names[i]);
    }
    ms_out_putc(out, '\n');
}

/* Output files of at most a million rows each; the first of several is named _part_1. */
struct parts {
    const struct csv *csv;
    const char *const *names;
    const char *stem;
    struct cmp_files *files;
    struct ms_out *out;
    size_t number, rows;
    bool several;
};

static enum ms_rc next_part(struct parts *p, struct ms_err *err)
{
    if (p->out != NULL) {
        struct ms_out *done = p->out;
        p->out = NULL;
        MS_TRY(ms_out_commit(done, err));
    }
    struct ms_buf path = {.max = 1 << 16};
    ms_buf_puts(&path, p->stem);
    if (p->several)
        ms_buf_printf(&path, "_part_%zu", ++p->number);
    ms_buf_puts(&path, ".csv");
    p->rows = 0;
    enum ms_rc rc = cmp_files_add(p->files, ms_buf_slice(&path), err);
    if (rc == MS_OK)
        rc = ms_out_create(&p->out, ms_buf_z(&path), err);
    ms_buf_free(&path);
    if (rc == MS_OK)
        put_header(p->out, p->names, p->csv->columns);
    return rc;
}

static enum ms_rc put_block(struct parts *p, const struct block *b, struct ms_err *err)
{
    size_t done = 0, from = 0;
    while (done < b->row_ends.n) {
        if (p->rows == cmp__table_bounds.part_rows)
            MS_TRY(next_part(p, err));
        size_t n = b->row_ends.n - done;
        if (n > cmp__table_bounds.part_rows - p->rows)
            n = cmp__table_bounds.part_rows - p->rows;
        size_t to = b->row_ends.p[done + n - 1];
        ms_out_write(p->out, b->text.p + from, to - from);
        p->rows += n;
        done += n;
        from = to;
    }
    return MS_OK;
}

/* One step of the pipeline: new blocks are filled while the previous ones are written. */
struct step {
    const struct csv *csv;
    struct parts *parts;
    struct block *fresh, *ready;
    size_t nfresh, nready;
};

static enum ms_rc step_item(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    const struct step *s = ctx;
    if (item > 0)
        return fill_block(s->csv, &s->fresh[item - 1], worker, err);
    for (size_t i = 0; i < s->nready; i++)
        MS_TRY(put_block(s->parts, &s->ready[i], err));
    return MS_OK;
}

static enum ms_rc write_blocks(const struct csv *csv, struct parts *p, struct ms_pool *pool,
                               struct cmp_summary *sum, struct ms_err *err)
{
    struct step s = {
        .csv = csv, .parts = p, .fresh = csv->blocks, .ready = csv->blocks + csv->most};
    size_t group = 0;
    MS_TRY(next_part(p, err));
    do {
        s.nfresh = cut_blocks(csv, s.fresh, &group);
        MS_TRY(ms_pool_run(pool, s.nfresh + 1, step_item, &s, err));
        for (size_t i = 0; i < s.nfresh; i++)
            cmp_summary_join(sum, &s.fresh[i].sum);
        cmp__report_written(csv->c, group);
        struct block *done = s.ready;
        s.ready = s.fresh;
        s.nready = s.nfresh;
        s.fresh = done;
    } while (s.nready != 0);
    struct ms_out *out = p->out;
    p->out = NULL;
    return ms_out_commit(out, err);
}

static void csv_free(struct csv *csv, unsigned threads)
{
    for (size_t i = 0; csv->blocks != NULL && i < 2 * csv->most; i++) {
        ms_buf_free(&csv->blocks[i].text);
        ms_vec_free(&csv->blocks[i].row_ends);
    }
    for (unsigned i = 0; csv->views != NULL && i < threads; i++)
        cmp_view_free(&csv->views[i]);
    ms_free(csv->blocks);
    ms_free(csv->views);
}

static enum ms_rc csv_init(struct csv *csv, unsigned threads, struct ms_err *err)
{
    csv->most = (size_t)threads * 4;
    csv->blocks = ms_calloc(2 * csv->most, sizeof *csv->blocks);
    csv->views = ms_calloc(threads, sizeof *csv->views);
    if (csv->blocks == NULL || csv->views == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < 2 * csv->most; i++)
        csv->blocks[i].text.max = BLOCK_TEXT_MAX;
    for (unsigned i = 0; i < threads; i++) {
        MS_TRY(cmp_view_init(&csv->views[i], err));
        csv->views[i].values = csv->c->values;
    }
    return MS_OK;
}

enum ms_rc cmp_write_csv(const struct cmp *c, const char *stem, struct ms_pool *pool,
                         struct cmp_summary *sum, struct cmp_files *files, struct ms_err *err)
{
    const char *names[CMP_COLUMNS];
    struct csv csv = {.c = c, .columns = cmp_table_columns(&c->set, cmp_has_stack(c), names)};
    struct parts p = {.csv = &csv,
                      .names = names,
                      .stem = stem,
                      .files = files,
                      .several = cmp_rows(c) > cmp__table_bounds.part_rows};
    unsigned threads = ms_pool_threads(pool);
    struct ms_span span = ms_span_begin("write csv");
    enum ms_rc rc = csv_init(&csv, threads, err);
    if (rc == MS_OK)
        rc = write_blocks(&csv, &p, pool, sum, err);
    ms_out_abort(p.out);
    csv_free(&csv, threads);
    ms_span_end(&span);
    return rc;
}

/* ---- workbook --------------------------------------------------------------- */

/* Writes a comparison as a workbook, row by row, without keeping rows in memory.
 *
 * Rows are coloured by their verdict. The header row is frozen. */

enum { RENEW_ROWS = 1024 };

struct book {
    const struct cmp *c;
    const char *const *names;
    unsigned columns;
    lxw_workbook *workbook;
    lxw_worksheet *sheet;
    lxw_format *bold, *fill[CMP_LEVELS], *colour[CMP_RED + 1];
    size_t sheets, sheet_rows; /* number of sheets, and rows in each */
    lxw_row_t row;
    size_t sheet_no;
    struct ms_buf text;
};

static lxw_format *make_fill(lxw_workbook *w, lxw_color_t colour)
{
    lxw_format *f = workbook_add_format(w);
    if (f != NULL)
        format_set_bg_color(f, colour);
    return f;
}

/* Returns the fill colour of a row's verdict. msprobe 1.x has its own rules for colours and applies
 * them only with highlight. */
static lxw_format *fill_of(const struct book *b, const struct cmp_view *v,
                           const struct cmp_row *row)
{
    const struct cmp_rules *rules = b->c->set.conf.rules;
    if (rules->colour_row == NULL)
        return b->fill[row->level];
    return b->c->set.conf.highlight ? b->colour[rules->colour_row(&b->c->set, v, row, NULL)] : NULL;
}

/* msprobe 1.x gives the sheet this name in a workbook with colours. */
static const char *only_sheet(const struct book *b)
{
    return b->c->set.conf.highlight ? "Sheet" : "Sheet1";
}

static void new_sheet(struct book *b)
{
    char name[32];
    snprintf(name, sizeof name, "part_%zu", b->sheet_no++);
    b->sheet = workbook_add_worksheet(b->workbook, b->sheets > 1 ? name : only_sheet(b));
    b->row = 0;
    if (b->sheet == NULL)
        return;
    for (unsigned i = 0; i < b->columns; i++)
        worksheet_write_string(b->sheet, 0, (lxw_col_t)i, b->names[i], b->bold);
    worksheet_freeze_panes(b->sheet, 1, 0);
    b->row = 1;
}

/* Returns the text of a cell. In a workbook with colours msprobe 1.x adds a tab to inf and nan. */
static struct ms_str text_of(const struct book *b, const struct cmp_cell *cell)
{
    static const char *const words[][2] = {{"inf", "inf\t"}, {"-inf", "-inf\t"}, {"nan", "nan\t"}};
    for (unsigned i = 0; i < 3 && b->c->set.conf.highlight; i++) {
        if (ms_str_is(cell->text, words[i][0]))
            return ms_str_of(words[i][1]);
    }
    return cell->text;
}

static lxw_error put_cell(struct book *b, lxw_col_t column, const struct cmp_cell *cell,
                          lxw_format *f)
{
    if (cell->number)
        return worksheet_write_number(b->sheet, b->row, column, cell->v, f);
    if (cell->truth)
        return worksheet_write_boolean(b->sheet, b->row, column, cell->v != 0, f);
    return cmp__workbook_text(b->sheet, b->row, column, text_of(b, cell), f, &b->text);
}

static enum ms_rc put_row(struct book *b, const struct cmp_cell *cells, lxw_format *f,
                          struct ms_err *err)
{
    if (b->row > b->sheet_rows)
        new_sheet(b);
    if (b->sheet == NULL)
        return ms_no_memory(err);
    for (unsigned i = 0; i < b->columns; i++) {
        lxw_error e = put_cell(b, (lxw_col_t)i, &cells[i], f);
        if (e != LXW_NO_ERROR)
            return ms_fail(err, e == LXW_ERROR_MEMORY_MALLOC_FAILED ? MS_E_NOMEM : MS_E_IO,
                           "xlsx: %s", lxw_strerror(e));
    }
    b->row++;
    return ms_buf_check(&b->text, err);
}

static enum ms_rc write_group(struct book *b, struct cmp_view *v, struct ms_err *err)
{
    struct cmp_cell cells[CMP_COLUMNS];
    for (size_t i = 0; i < v->rows.n; i++) {
        MS_TRY(cmp_table_cells(&b->c->set, b->c, v, i, cells, err));
        MS_TRY(put_row(b, cells, fill_of(b, v, &v->rows.p[i]), err));
    }
    return MS_OK;
}

static enum ms_rc put_all(struct book *b, struct cmp_summary *sum, struct ms_err *err)
{
    struct cmp_view v;
    MS_TRY(cmp_view_init(&v, err));
    v.values = b->c->values;
    enum ms_rc rc = MS_OK;
    size_t since = 0;
    new_sheet(b);
    for (size_t g = 0; g < cmp_groups(b->c) && rc == MS_OK; g++) {
        if ((since += cmp_group_rows(b->c, g)) > RENEW_ROWS) {
            rc = cmp_view_renew(&v, err);
            since = 0;
            cmp__report_written(b->c, g);
        }
        if (rc == MS_OK)
            rc = cmp_view_group(b->c, g, &v, err);
        if (rc == MS_OK) {
            cmp_summary_add(sum, b->c, g, &v);
            rc = write_group(b, &v, err);
        }
    }
    cmp__report_written(b->c, cmp_groups(b->c));
    cmp_view_free(&v);
    return rc;
}

static void take_formats(struct book *b)
{
    lxw_workbook *w = b->workbook;
    b->bold = workbook_add_format(w);
    if (b->bold != NULL)
        format_set_bold(b->bold);
    b->fill[CMP_WARNING] = make_fill(w, 0xfff2b3);
    b->fill[CMP_ERROR] = make_fill(w, 0xf8c4c0);
    b->fill[CMP_UNMATCHED] = make_fill(w, 0xe0e0e0);
    b->colour[CMP_YELLOW] = make_fill(w, 0xffff00);
    b->colour[CMP_RED] = make_fill(w, 0xff0000);
}

static enum ms_rc write_book(struct book *b, const char *path, struct cmp_summary *sum,
                             struct ms_err *err)
{
    struct cmp__workbook file;
    MS_TRY(cmp__workbook_open(&file, path, err));
    b->workbook = file.book;
    take_formats(b);
    enum ms_rc rc = put_all(b, sum, err);
    return cmp__workbook_close(&file, rc, err);
}

enum ms_rc cmp_write_xlsx(const struct cmp *c, const char *stem, struct cmp_summary *sum,
                          struct cmp_files *files, struct ms_err *err)
{
    const char *names[CMP_COLUMNS];
    struct book b = {.c = c, .names = names, .text.max = 1 << 24};
    struct ms_buf path = {.max = 1 << 16};
    struct ms_span span = ms_span_begin("write xlsx");
    b.columns = cmp_table_columns(&c->set, cmp_has_stack(c), names);
    const size_t most = cmp__table_bounds.sheet_rows;
    b.sheets = (cmp_rows(c) + most - 1) / most;
    b.sheet_rows = b.sheets > 1 ? (cmp_rows(c) + b.sheets - 1) / b.sheets : most;
    ms_buf_printf(&path, "%s.xlsx", stem);
    enum ms_rc rc = cmp_files_add(files, ms_buf_slice(&path), err);
    if (rc == MS_OK)
        rc = write_book(&b, ms_buf_z(&path), sum, err);
    ms_buf_free(&b.text);
    ms_buf_free(&path);
    ms_span_end(&span);
    return rc;
}

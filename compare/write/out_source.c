/* SPDX-License-Identifier: MIT
 *
 * out_source: writes the suspects, and the role of every node, as tables.
 *
 *     suspects_TIME.csv  roles_TIME.csv       or, as two sheets,  suspects_TIME.xlsx
 */
#include "compare/source/source.h"
#include "compare/write/out.h"

#include "compare/write/sheet.h"
#include "compare/write/table.h"

#include "probe/base/io.h"

#include <math.h>
#include <stdio.h>

enum { SHEET_ROWS = 1048500, CELLS = 16, FLUSH = 1 << 16 };

/* Destination of rows: a csv file or a sheet. */
struct table {
    struct ms_out *out;
    lxw_workbook *book;
    lxw_worksheet *sheet;
    lxw_row_t row;
    const char *name, *const *columns; /* columns: NULL after the last */
    unsigned sheets;
    struct ms_buf text;
};

/* ---- one row ---------------------------------------------------------------------- */

struct line {
    struct cmp_cell cell[CELLS];
    char digits[CELLS][32];
    unsigned n;
};

static void put_text(struct line *l, struct ms_str s)
{
    l->cell[l->n++] = (struct cmp_cell){.text = s.p != NULL ? s : MS_STR(""), .foreign = true};
}

static void put_number(struct line *l, double x, int digits)
{
    struct cmp_cell *c = &l->cell[l->n];
    *c = (struct cmp_cell){.text = MS_STR("")};
    if (isfinite(x)) {
        int n = snprintf(l->digits[l->n], sizeof l->digits[l->n], "%.*g", digits, x);
        *c = (struct cmp_cell){.text = {l->digits[l->n], (uint32_t)n}, .number = true, .v = x};
    }
    l->n++;
}

/* Figures are floats. */
static void put_figure(struct line *l, double x)
{
    put_number(l, x, 6);
}

/* Writes a count; a negative count is not known and leaves the cell empty. */
static void put_count(struct line *l, int64_t n)
{
    put_number(l, n >= 0 ? (double)n : NAN, 17);
}

/* ---- tables ------------------------------------------------------------------------- */

static enum ms_rc write_csv(struct table *t, const struct line *l, struct ms_err *err)
{
    for (unsigned i = 0; i < l->n; i++) {
        if (i != 0)
            ms_buf_putc(&t->text, ',');
        cmp_csv_cell(&t->text, &l->cell[i]);
    }
    ms_buf_putc(&t->text, '\n');
    MS_TRY(ms_buf_check(&t->text, err));
    if (t->text.n < FLUSH)
        return MS_OK;
    ms_out_write(t->out, t->text.p, t->text.n);
    ms_buf_clear(&t->text);
    return MS_OK;
}

static enum ms_rc new_sheet(struct table *t, struct ms_err *err)
{
    char name[32];
    snprintf(name, sizeof name, t->sheets == 0 ? "%s" : "%s_%u", t->name, t->sheets + 1);
    t->sheets++;
    t->sheet = workbook_add_worksheet(t->book, name);
    if (t->sheet == NULL)
        return ms_no_memory(err);
    for (unsigned i = 0; t->columns[i] != NULL; i++)
        worksheet_write_string(t->sheet, 0, (lxw_col_t)i, t->columns[i], NULL);
    worksheet_freeze_panes(t->sheet, 1, 0);
    t->row = 1;
    return MS_OK;
}

static enum ms_rc write_sheet(struct table *t, const struct line *l, struct ms_err *err)
{
    if (t->row > SHEET_ROWS)
        MS_TRY(new_sheet(t, err));
    for (unsigned i = 0; i < l->n; i++) {
        const struct cmp_cell *c = &l->cell[i];
        lxw_error e =
            c->number ? worksheet_write_number(t->sheet, t->row, (lxw_col_t)i, c->v, NULL)
                      : cmp__workbook_text(t->sheet, t->row, (lxw_col_t)i, c->text, NULL, &t->text);
        if (e != LXW_NO_ERROR)
            return ms_fail(err, e == LXW_ERROR_MEMORY_MALLOC_FAILED ? MS_E_NOMEM : MS_E_IO,
                           "xlsx: %s", lxw_strerror(e));
    }
    t->row++;
    return ms_buf_check(&t->text, err);
}

static enum ms_rc write_line(struct table *t, const struct line *l, struct ms_err *err)
{
    return t->book != NULL ? write_sheet(t, l, err) : write_csv(t, l, err);
}

/* ---- contents ------------------------------------------------------------------------ */

static const char *const suspect_columns[] = {
    "place", "target", "golden", "module", "rank",    "step", "role",      "why", "in",
    "out",   "floor",  "factor", "later",  "pattern", "text", "certainty", NULL};

static enum ms_rc write_suspects(const struct cmp_source *source, struct table *t,
                                 struct ms_buf *text, struct ms_err *err)
{
    const struct cmp_suspect *s;
    size_t n = cmp_source_suspects(source, &s);
    for (const struct cmp_suspect *end = s + n; n != 0 && s < end; s++) {
        struct line l = {.n = 0};
        put_count(&l, s->place);
        put_text(&l, s->target);
        put_text(&l, s->golden);
        put_text(&l, s->module);
        put_count(&l, s->rank);
        put_count(&l, s->step);
        put_text(&l, ms_str_of(cmp_role_names[s->role]));
        put_text(&l, ms_str_of(cmp_why_names[s->why]));
        put_figure(&l, s->in);
        put_figure(&l, s->out);
        put_figure(&l, s->floor);
        put_figure(&l, s->factor);
        put_count(&l, (int64_t)s->later);
        put_text(&l, ms_str_of(s->pattern != NULL ? s->pattern : ""));
        ms_buf_clear(text);
        ms_message_speak(s->message, text);
        MS_TRY(ms_buf_check(text, err));
        put_text(&l, ms_buf_slice(text));
        put_figure(&l, s->certainty);
        MS_TRY(write_line(t, &l, err));
    }
    return MS_OK;
}

static enum ms_rc put_suspects(const struct cmp_source *source, struct table *t, struct ms_err *err)
{
    struct ms_buf text = {.max = 4 * MS_MESSAGE_MAX};
    const enum ms_rc rc = write_suspects(source, t, &text, err);
    ms_buf_free(&text);
    return rc;
}

static const char *const role_columns[] = {"rank", "step", "target", "golden",  "role",
                                           "in",   "out",  "floor",  "suspect", NULL};

static enum ms_rc put_roles(const struct cmp_source *source, struct table *t, struct ms_err *err)
{
    struct cmp_source_place at = {0, 0};
    struct cmp_source_node n;
    while (cmp_source_next(source, &at, &n)) {
        struct line l = {.n = 0};
        put_count(&l, n.rank);
        put_count(&l, n.step);
        put_text(&l, n.target);
        put_text(&l, n.golden);
        put_text(&l, ms_str_of(cmp_role_names[n.verdict.role]));
        put_figure(&l, n.verdict.in);
        put_figure(&l, n.verdict.out);
        put_figure(&l, n.verdict.floor);
        put_count(&l, n.verdict.suspect != 0 ? (int64_t)n.verdict.suspect : -1);
        MS_TRY(write_line(t, &l, err));
    }
    return MS_OK;
}

static const struct {
    const char *name, *const *columns;
    enum ms_rc (*write_rows)(const struct cmp_source *, struct table *, struct ms_err *);
} tables[] = {{"suspects", suspect_columns, put_suspects}, {"roles", role_columns, put_roles}};
enum { TABLES = sizeof tables / sizeof *tables };

/* ---- files --------------------------------------------------------------------------------- */

static enum ms_rc take_path(struct ms_buf *path, const char *dir, const char *name,
                            const char *stamp, const char *end, struct cmp_files *files,
                            struct ms_err *err)
{
    ms_buf_clear(path);
    ms_buf_printf(path, "%s/%s_%s.%s", dir, name, stamp, end);
    MS_TRY(ms_buf_check(path, err));
    return cmp_files_add(files, ms_buf_slice(path), err);
}

static enum ms_rc write_one_csv(const struct cmp_source *source, unsigned which, const char *path,
                                struct ms_err *err)
{
    struct table t = {.text.max = 1 << 24};
    MS_TRY(ms_out_create(&t.out, path, err));
    for (unsigned i = 0; tables[which].columns[i] != NULL; i++)
        ms_buf_printf(&t.text, "%s%s", i != 0 ? "," : "", tables[which].columns[i]);
    ms_buf_putc(&t.text, '\n');
    enum ms_rc rc = tables[which].write_rows(source, &t, err);
    if (rc == MS_OK) {
        ms_out_write(t.out, t.text.p, t.text.n);
        rc = ms_out_commit(t.out, err);
    } else {
        ms_out_abort(t.out);
    }
    ms_buf_free(&t.text);
    return rc;
}

static enum ms_rc write_book(const struct cmp_source *source, const char *path, struct ms_err *err)
{
    struct cmp__workbook file;
    enum ms_rc rc = MS_OK;
    MS_TRY(cmp__workbook_open(&file, path, err));
    for (unsigned i = 0; i < TABLES && rc == MS_OK; i++) {
        struct table t = {.book = file.book,
                          .name = tables[i].name,
                          .columns = tables[i].columns,
                          .text.max = 1 << 24};
        rc = new_sheet(&t, err);
        if (rc == MS_OK)
            rc = tables[i].write_rows(source, &t, err);
        ms_buf_free(&t.text);
    }
    return cmp__workbook_close(&file, rc, err);
}

enum ms_rc cmp_write_suspects(const struct cmp_source *source, const char *dir, const char *stamp,
                              bool xlsx, struct cmp_files *files, struct ms_err *err)
{
    struct ms_buf path = {.max = 1 << 16};
    enum ms_rc rc = MS_OK;
    for (unsigned i = 0; i < TABLES && rc == MS_OK && !xlsx; i++) {
        rc = take_path(&path, dir, tables[i].name, stamp, "csv", files, err);
        if (rc == MS_OK)
            rc = write_one_csv(source, i, ms_buf_z(&path), err);
    }
    if (xlsx) {
        rc = take_path(&path, dir, tables[0].name, stamp, "xlsx", files, err);
        if (rc == MS_OK)
            rc = write_book(source, ms_buf_z(&path), err);
    }
    ms_buf_free(&path);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * sheet: writes rows of cells into a file.
 */
#include "compare/write/sheet.h"

#include "probe/base/csv.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"

#include <math.h>
#include <string.h>

/* ---- text --------------------------------------------------------------- */

void cmp_csv_cell(struct ms_buf *b, const struct cmp_cell *cell)
{
    if (cell->infinite)
        ms_buf_putc(b, ' ');
    if (cell->number || cell->infinite)
        ms_buf_str(b, cell->text);
    else
        ms_csv_put(b, cell->text, cell->foreign ? MS_CSV_FOREIGN : MS_CSV_OWN);
}

/* ---- counts ------------------------------------------------------------------ */

void cmp_sheet_sum_free(struct cmp_sheet_sum *sum)
{
    for (size_t i = 0; i < sum->notes.n; i++)
        ms_free(sum->notes.p[i]);
    ms_vec_free(&sum->notes);
}

enum ms_rc cmp__sheet_note(struct cmp_sheet_sum *sum, struct ms_buf *text, struct ms_err *err)
{
    char **slot = ms_vec_push(&sum->notes);
    if (slot != NULL)
        *slot = ms_str_dup(ms_buf_slice(text));
    ms_buf_clear(text);
    return slot != NULL && *slot != NULL ? MS_OK : ms_no_memory(err);
}

void cmp__sheet_count(struct cmp_sheet_sum *sum, const char *verdict)
{
    bool yes = strcmp(verdict, "Yes") == 0, no = strcmp(verdict, "No") == 0;
    sum->rows++;
    sum->yes += yes;
    sum->no += no;
    sum->rest += !yes && !no;
}

/* ---- cells --------------------------------------------------------------------- */

static struct cmp_cell *next_cell(struct cmp__sheet *s)
{
    static struct cmp_cell spill; /* receives the cells beyond CMP_COLUMNS; never read */
    return s->n < CMP_COLUMNS ? &s->cell[s->n++] : &spill;
}

void cmp__sheet_text(struct cmp__sheet *s, struct ms_str text)
{
    *next_cell(s) = (struct cmp_cell){.text = text.p != NULL ? text : MS_STR(""), .foreign = true};
}

void cmp__sheet_word(struct cmp__sheet *s, const char *text)
{
    *next_cell(s) = (struct cmp_cell){.text = ms_str_of(text)};
}

void cmp__sheet_number(struct cmp__sheet *s, double v)
{
    struct cmp_cell *cell = next_cell(s);
    *cell = (struct cmp_cell){.text = MS_STR("nan"), .v = v};
    if (isinf(v)) {
        cell->infinite = true;
        cell->text = v > 0 ? MS_STR("inf") : MS_STR("-inf");
    } else if (!isnan(v)) {
        char *text = ms_arena_text(s->arena, MS_NUM_MAX);
        cell->number = text != NULL;
        if (text != NULL)
            cell->text = (struct ms_str){text, ms_num_f64(text, v)};
        else
            s->rc = ms_arena_fail(s->arena, s->err);
    }
}

void cmp__sheet_blanks(struct cmp__sheet *s, unsigned n, const char *word)
{
    while (n-- > 0)
        cmp__sheet_word(s, word);
}

void cmp__sheet_names(struct cmp__sheet *s, const char *const *names)
{
    for (; *names != NULL; names++)
        cmp__sheet_word(s, *names);
}

struct ms_str cmp__sheet_keep(struct cmp__sheet *s, struct ms_str text)
{
    struct ms_str kept = ms_arena_str(s->arena, text);
    if (kept.p == NULL && s->rc == MS_OK)
        s->rc = ms_arena_fail(s->arena, s->err);
    return kept.p != NULL ? kept : MS_STR("");
}

/* ---- rows ----------------------------------------------------------------------- */

static enum ms_rc end_csv_row(struct cmp__sheet *s)
{
    ms_buf_clear(&s->text);
    for (unsigned i = 0; i < s->n; i++) {
        if (i != 0)
            ms_buf_putc(&s->text, ',');
        cmp_csv_cell(&s->text, &s->cell[i]);
    }
    ms_buf_putc(&s->text, '\n');
    ms_out_str(s->csv, ms_buf_slice(&s->text));
    return ms_buf_check(&s->text, s->err);
}

static enum ms_rc end_sheet_row(struct cmp__sheet *s)
{
    lxw_error e = LXW_NO_ERROR;
    for (unsigned i = 0; i < s->n && e == LXW_NO_ERROR; i++)
        e = s->cell[i].number
                ? worksheet_write_number(s->sheet, s->row, (lxw_col_t)i, s->cell[i].v, NULL)
                : cmp__workbook_text(s->sheet, s->row, (lxw_col_t)i, s->cell[i].text, NULL,
                                     &s->text);
    s->row++;
    return e == LXW_NO_ERROR ? MS_OK : ms_fail(s->err, MS_E_IO, "xlsx: %s", lxw_strerror(e));
}

static enum ms_rc renew(struct cmp__sheet *s)
{
    enum { ROW_TEXT_MAX = 1 << 26 };
    ms_arena_free(s->arena);
    s->arena = ms_arena_new(ROW_TEXT_MAX);
    return s->arena != NULL ? MS_OK : ms_no_memory(s->err);
}

void cmp__sheet_end_row(struct cmp__sheet *s)
{
    if (s->rc == MS_OK)
        s->rc = s->csv != NULL ? end_csv_row(s) : end_sheet_row(s);
    s->n = 0;
    if (s->rc == MS_OK)
        s->rc = renew(s);
}

enum ms_rc cmp__sheet_open(struct cmp__sheet *s, const char *path, bool xlsx, struct ms_err *err)
{
    *s = (struct cmp__sheet){.text.max = 1 << 24, .err = err};
    MS_TRY(renew(s));
    enum ms_rc rc =
        xlsx ? cmp__workbook_open(&s->book, path, err) : ms_out_create(&s->csv, path, err);
    if (rc == MS_OK && xlsx) {
        s->sheet = workbook_add_worksheet(s->book.book, "Sheet1");
        if (s->sheet == NULL)
            rc = cmp__workbook_close(&s->book, ms_no_memory(err), err);
    }
    if (rc != MS_OK)
        ms_arena_free(s->arena);
    return rc;
}

enum ms_rc cmp__sheet_close(struct cmp__sheet *s, enum ms_rc rc)
{
    rc = rc != MS_OK ? rc : s->rc;
    ms_arena_free(s->arena);
    ms_buf_free(&s->text);
    if (s->csv == NULL)
        return cmp__workbook_close(&s->book, rc, s->err);
    if (rc == MS_OK)
        return ms_out_commit(s->csv, s->err);
    ms_out_abort(s->csv);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * sheet: writes rows of cells into a csv file or a workbook.
 */
#include "compare/write/sheet.h"
#include "probe/base/csv.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/base/zip.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- workbooks -------------------------------------------------------------- */

/* FRAME: lower bound of the XML around the rows of a sheet; MARGIN: upper bound of this XML plus
 * the last row. */
enum { CELL_MAX = 32767, SHEETS = PROBE_ZIP_MEMBERS / 2, FRAME = 400, MARGIN = 1 << 16 };

static void forget(struct cmp__workbook *w)
{
    ms_tmp_folder_remove(w->folder);
    ms_free(w->tmp);
    *w = (struct cmp__workbook){0};
}

enum ms_rc cmp__workbook_open(struct cmp__workbook *w, const char *path, struct ms_err *err)
{
    *w = (struct cmp__workbook){.path = path};
    MS_TRY(ms_tmp_folder(&w->folder, "rows", err));
    lxw_workbook_options how = {.constant_memory = LXW_TRUE, .tmpdir = w->folder};
    enum ms_rc rc = ms_tmp_open(&w->fd, &w->tmp, path, err);
    w->book = rc == MS_OK ? workbook_new_opt(w->tmp, &how) : NULL;
    if (w->book != NULL)
        return MS_OK;
    if (rc == MS_OK) {
        rc = ms_no_memory(err);
        ms_tmp_discard(w->fd, w->tmp);
    }
    forget(w);
    return rc;
}

/* ---- failures that libxlsxwriter does not report ------------------------------
 * libxlsxwriter keeps rows in temporary files; a full disk leaves an incomplete workbook without an
 * error. So the space is checked before the workbook is assembled, and the size of the rows
 * after. */

/* Stores the bytes of the rows of each sheet so far. */
static enum ms_rc note_rows(const struct cmp__workbook *w, uint64_t *rows, uint32_t most,
                            struct ms_err *err)
{
    const lxw_worksheet *sheet;
    uint32_t n = 0;
    LXW_FOREACH_WORKSHEET(sheet, w->book)
    {
        FILE *f = sheet->optimize_tmpfile;
        if (n == most || f == NULL)
            break;
        if (fflush(f) != 0 || ferror(f) != 0)
            return ms_fail_sys(err, "%s: cannot write its temporary files", w->path);
        rows[n++] = (uint64_t)ftello(f);
    }
    return MS_OK;
}

/* Checks that there is space for the second file in which libxlsxwriter assembles a sheet. */
static enum ms_rc check_room(const struct cmp__workbook *w, uint64_t bytes, struct ms_err *err)
{
    char *path = ms_path_join(w->folder, "room");
    char *tmp = NULL;
    int fd;
    enum ms_rc rc = path != NULL ? ms_tmp_open(&fd, &tmp, path, err) : ms_no_memory(err);
    ms_free(path);
    if (rc != MS_OK)
        return rc;
    errno = posix_fallocate(fd, 0, (off_t)bytes);
    if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)
        rc = ms_fail_sys(err, "%s: cannot write its temporary files", w->path);
    ms_tmp_discard(fd, tmp);
    ms_free(tmp);
    return rc;
}

static enum ms_rc check_rooms(const struct cmp__workbook *w, const uint64_t *rows, uint32_t most,
                              struct ms_err *err)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < most; i++)
        largest = rows[i] > largest ? rows[i] : largest;
    return largest > MARGIN ? check_room(w, largest + MARGIN, err) : MS_OK;
}

static enum ms_rc find_rows(const char *path, const struct ms_file *f, const uint64_t *rows,
                            uint32_t most, struct ms_err *err)
{
    struct probe_zip zip;
    MS_TRY(probe_zip_read(&zip, f->p, f->n, PROBE_ZIP_MEMBERS, err));
    for (uint32_t i = 0; i < most && rows[i] != 0; i++) {
        char name[48];
        snprintf(name, sizeof name, "xl/worksheets/sheet%u.xml", i + 1);
        const struct probe_zip_member *m = probe_zip_find(&zip, MS_STR_NONE, name);
        if (m == NULL || m->unpacked < rows[i] + FRAME) {
            ms_fail(err, MS_E_IO, "%s: its temporary files could not be written", path);
            ms_err_hint(err, "make room where TMPDIR leads, or write csv");
            return MS_E_IO;
        }
    }
    return MS_OK;
}

static enum ms_rc check_rows(const struct cmp__workbook *w, const uint64_t *rows, uint32_t most,
                             struct ms_err *err)
{
    struct ms_file f;
    MS_TRY(ms_file_map(&f, w->tmp, SIZE_MAX, err));
    enum ms_rc rc = find_rows(w->path, &f, rows, most, err);
    ms_file_unmap(&f);
    return rc;
}

static enum ms_rc finish(const struct cmp__workbook *w, struct ms_err *err)
{
    errno = 0;
    lxw_error e = workbook_close(w->book);
    if (e == LXW_NO_ERROR)
        return MS_OK;
    return errno != 0 ? ms_fail_sys(err, "%s: cannot write", w->path)
                      : ms_fail(err, MS_E_IO, "%s: %s", w->path, lxw_strerror(e));
}

enum ms_rc cmp__workbook_close(struct cmp__workbook *w, enum ms_rc rc, struct ms_err *err)
{
    uint64_t rows[SHEETS] = {0};
    if (rc == MS_OK)
        rc = note_rows(w, rows, SHEETS, err);
    if (rc == MS_OK)
        rc = check_rooms(w, rows, SHEETS, err);
    enum ms_rc end = finish(w, rc == MS_OK ? err : NULL);
    rc = rc != MS_OK ? rc : end;
    if (rc == MS_OK)
        rc = check_rows(w, rows, SHEETS, err);
    if (rc == MS_OK)
        rc = ms_tmp_publish(w->fd, w->tmp, w->path, err);
    else
        ms_tmp_discard(w->fd, w->tmp);
    forget(w);
    return rc;
}

/* Cuts text to the length of a cell, between two characters. */
static struct ms_str cut_to_cell(struct ms_str s)
{
    uint32_t n = s.n < CELL_MAX ? s.n : CELL_MAX;
    while (n != 0 && n < s.n && (s.p[n] & 0xc0) == 0x80)
        n--;
    return ms_str_sub(s, 0, n);
}

lxw_error cmp__workbook_text(lxw_worksheet *sheet, lxw_row_t row, lxw_col_t column, struct ms_str s,
                             lxw_format *format, struct ms_buf *scratch)
{
    ms_buf_clear(scratch);
    ms_buf_str(scratch, cut_to_cell(s));
    return worksheet_write_string(sheet, row, column, ms_buf_z(scratch), format);
}

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

static enum ms_rc renew_sheet(struct cmp__sheet *s)
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
        s->rc = renew_sheet(s);
}

enum ms_rc cmp__sheet_open(struct cmp__sheet *s, const char *path, bool xlsx, struct ms_err *err)
{
    *s = (struct cmp__sheet){.text.max = 1 << 24, .err = err};
    MS_TRY(renew_sheet(s));
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

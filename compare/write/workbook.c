/* SPDX-License-Identifier: MIT
 *
 * workbook: writes with libxlsxwriter into a temporary file that gets its name when
 * complete.
 */
#include "compare/write/workbook.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/zip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

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

lxw_error cmp__workbook_text(lxw_worksheet *sheet, lxw_row_t row, lxw_col_t column, struct ms_str s,
                             lxw_format *format, struct ms_buf *scratch)
{
    ms_buf_clear(scratch);
    if (s.n > CELL_MAX)
        s.n = CELL_MAX;
    while (s.n == CELL_MAX && (s.p[s.n - 1] & 0xc0) == 0x80)
        s.n--;
    ms_buf_str(scratch, s);
    return worksheet_write_string(sheet, row, column, ms_buf_z(scratch), format);
}

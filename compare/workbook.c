/* SPDX-License-Identifier: MIT
 *
 * workbook: libxlsxwriter writes a file that gets its name when it is whole.
 */
#include "compare/workbook.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

enum { CELL_MAX = 32767 };

static void forget(struct cmp__workbook *w)
{
    ms_free(w->tmp);
    *w = (struct cmp__workbook){0};
}

enum ms_rc cmp__workbook_open(struct cmp__workbook *w, const char *path, struct ms_err *err)
{
    *w = (struct cmp__workbook){.path = path};
    lxw_workbook_options how = {.constant_memory = LXW_TRUE};
    MS_TRY(ms_tmp_open(&w->fd, &w->tmp, path, err));
    w->book = workbook_new_opt(w->tmp, &how);
    if (w->book != NULL)
        return MS_OK;
    ms_tmp_discard(w->fd, w->tmp);
    forget(w);
    return ms_no_memory(err);
}

enum ms_rc cmp__workbook_close(struct cmp__workbook *w, enum ms_rc rc, struct ms_err *err)
{
    lxw_error e = workbook_close(w->book);
    if (rc == MS_OK && e != LXW_NO_ERROR)
        rc = ms_fail(err, MS_E_IO, "%s: %s", w->path, lxw_strerror(e));
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

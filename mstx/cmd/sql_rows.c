/* SPDX-License-Identifier: MIT
 *
 * sql_rows: see the header.
 */
#include "mstx/cmd/sql_rows.h"

#include "probe/base/jprint.h"

#include <stdio.h>

enum { BOX_CELL = 2000 };
/* Whole numbers up to here are exact in a browser, which reads each number as a double. */
static const int64_t EXACT_MOST = (int64_t)1 << 53;

/* ---- text ------------------------------------------------------------- */

/* Escapes tabs and line breaks, which would look like the next column or row. */
static void print_cell(struct ms_str s)
{
    for (uint32_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '\t' || c == '\n' || c == '\r')
            fputs(c == '\t' ? "\\t" : c == '\n' ? "\\n" : "\\r", stdout);
        else
            putchar((unsigned char)c < 0x20 || c == 0x7F ? '?' : c);
    }
}

enum ms_rc mstx__sql_print_text(struct ms_stmt *st, struct ms_err *err)
{
    int n = ms_stmt_columns(st);
    for (int i = 0; i < n; i++) {
        if (i != 0)
            putchar('\t');
        print_cell(ms_str_of(ms_stmt_column_name(st, i)));
    }
    putchar('\n');
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        for (int i = 0; i < n; i++) {
            if (i != 0)
                putchar('\t');
            print_cell(ms_stmt_get_str(st, i));
        }
        putchar('\n');
    }
    return rc;
}

/* ---- JSON ------------------------------------------------------------- */

static void json_value(struct ms_jwrite *w, struct ms_stmt *st, int i)
{
    if (ms_stmt_is_null(st, i))
        ms_jwrite_null(w);
    else if (ms_stmt_is_i64(st, i))
        ms_jwrite_i64(w, ms_stmt_get_i64(st, i));
    else if (ms_stmt_is_f64(st, i))
        ms_jwrite_f64(w, ms_stmt_get_f64(st, i));
    else
        ms_jwrite_str(w, ms_stmt_get_str(st, i));
}

enum ms_rc mstx__sql_print_json(struct ms_stmt *st, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    w.strict = true;
    ms_jwrite_arr(&w);
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        ms_jwrite_obj(&w);
        for (int i = 0; i < ms_stmt_columns(st); i++) {
            ms_jwrite_key(&w, ms_str_of(ms_stmt_column_name(st, i)));
            json_value(&w, st, i);
        }
        ms_jwrite_obj_end(&w);
    }
    ms_jwrite_arr_end(&w);
    return ms_jprint_end(&w, rc, err);
}

/* ---- the box of the viewers --------------------------------------------- */

static bool is_exact(int64_t v)
{
    return v >= -EXACT_MOST && v <= EXACT_MOST;
}

/* Tells whether a value is written as text: a text, a blob, a number that a browser would round. */
static bool is_text(struct ms_stmt *st, int i)
{
    if (ms_stmt_is_i64(st, i))
        return !is_exact(ms_stmt_get_i64(st, i));
    return !ms_stmt_is_null(st, i) && !ms_stmt_is_f64(st, i);
}

/* Writes a row for the box; long texts are cut. */
static void box_row(struct ms_jwrite *w, struct ms_stmt *st, int columns)
{
    ms_jwrite_arr(w);
    for (int i = 0; i < columns; i++) {
        if (is_text(st, i))
            ms_jwrite_str(w, ms_str_sub(ms_stmt_get_str(st, i), 0, BOX_CELL));
        else
            json_value(w, st, i);
    }
    ms_jwrite_arr_end(w);
}

enum ms_rc mstx__sql_print_box(struct ms_stmt *st, int64_t most, struct ms_err *err)
{
    struct ms_jwrite w;
    bool more = false;
    const int columns = ms_stmt_columns(st);
    enum ms_rc rc = MS_OK;
    ms_jprint_begin(&w);
    w.indent = 0;
    w.strict = true;
    ms_jwrite_obj(&w);
    ms_jwrite_key(&w, MS_STR("columns"));
    ms_jwrite_arr(&w);
    for (int i = 0; i < columns; i++)
        ms_jwrite_str(&w, ms_str_of(ms_stmt_column_name(st, i)));
    ms_jwrite_arr_end(&w);
    ms_jwrite_key(&w, MS_STR("rows"));
    ms_jwrite_arr(&w);
    for (int64_t n = 0; (more = ms_stmt_next(st, &rc, err)) && n < most; n++)
        box_row(&w, st, columns);
    ms_jwrite_arr_end(&w);
    ms_jwrite_kbool(&w, "more", more);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, rc, err);
}

/* SPDX-License-Identifier: MIT
 *
 * table_csv: see the header.
 */
#include "mstx/official/table_csv.h"

#include "probe/base/csv.h"
#include "probe/base/num.h"

#include <inttypes.h>
#include <stdio.h>

static bool is_ns(const char *column)
{
    return ms_str_ends(ms_str_of(column), MS_STR("Ns"));
}

static void write_real(struct ms_out *o, double v)
{
    char text[MS_NUM_MAX];
    ms_out_write(o, text, ms_num_f64(text, v));
}

static void write_cell(struct ms_out *o, struct ms_stmt *st, int i, double divide)
{
    if (ms_stmt_is_null(st, i))
        return;
    const bool whole = ms_stmt_is_i64(st, i);
    if (divide != 1 && (whole || ms_stmt_is_f64(st, i)))
        write_real(o, ms_stmt_get_f64(st, i) / divide);
    else if (whole)
        ms_out_printf(o, "%" PRId64, ms_stmt_get_i64(st, i));
    else if (ms_stmt_is_f64(st, i))
        write_real(o, ms_stmt_get_f64(st, i));
    else
        ms_csv_write(o, ms_stmt_get_str(st, i), MS_CSV_FOREIGN);
}

static void write_name(struct ms_out *o, const char *name, const struct mstx_unit *unit)
{
    char text[160];
    if (unit != NULL && is_ns(name))
        snprintf(text, sizeof text, "%.*s(%s)", (int)strlen(name) - 2, name, unit->name);
    else
        snprintf(text, sizeof text, "%s", name);
    ms_csv_write(o, ms_str_of(text), MS_CSV_OWN);
}

static enum ms_rc write_rows(struct ms_stmt *st, const struct mstx_unit *unit, struct ms_out *o,
                             struct ms_err *err)
{
    const int n = ms_stmt_columns(st);
    for (int i = 0; i < n; i++) {
        if (i != 0)
            ms_out_putc(o, ',');
        write_name(o, ms_stmt_column_name(st, i), unit);
    }
    ms_out_putc(o, '\n');
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        for (int i = 0; i < n; i++) {
            if (i != 0)
                ms_out_putc(o, ',');
            write_cell(o, st, i, unit != NULL && is_ns(ms_stmt_column_name(st, i)) ? unit->ns : 1);
        }
        ms_out_putc(o, '\n');
    }
    return rc;
}

enum ms_rc mstx__write_table_csv(struct ms_store *s, const char *table,
                                 const struct mstx_unit *unit, const char *path, struct ms_err *err)
{
    char sql[160];
    struct ms_stmt *st;
    struct ms_out *o;
    snprintf(sql, sizeof sql, "SELECT * FROM %s ORDER BY rowid", table);
    MS_TRY(ms_store_prepare(s, &st, sql, err));
    enum ms_rc rc = ms_out_create(&o, path, err);
    if (rc == MS_OK) {
        rc = write_rows(st, unit, o, err);
        if (rc == MS_OK)
            rc = ms_out_commit(o, err);
        else
            ms_out_abort(o);
    }
    ms_stmt_free(st);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * recipe_csv: a table as the official text output has it.
 */
#include "mstx/recipe.h"

#include "mstx/tl_export.h"

#include <inttypes.h>
#include <stdio.h>

static void put_cell(struct ms_out *o, struct ms_stmt *st, int i)
{
    if (ms_stmt_is_null(st, i))
        return;
    if (ms_stmt_is_i64(st, i))
        ms_out_printf(o, "%" PRId64, ms_stmt_get_i64(st, i));
    else if (ms_stmt_is_f64(st, i))
        ms_out_printf(o, "%.17g", ms_stmt_get_f64(st, i));
    else
        mstx__csv_text(o, ms_stmt_get_str(st, i));
}

static enum ms_rc put_rows(struct ms_stmt *st, struct ms_out *o, struct ms_err *err)
{
    bool more;
    const int n = ms_stmt_columns(st);
    for (int i = 0; i < n; i++)
        ms_out_printf(o, "%s%s", i != 0 ? "," : "", ms_stmt_column_name(st, i));
    ms_out_putc(o, '\n');
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        for (int i = 0; i < n; i++) {
            if (i != 0)
                ms_out_putc(o, ',');
            put_cell(o, st, i);
        }
        ms_out_putc(o, '\n');
        rc = ms_stmt_step(st, &more, err);
    }
    return rc;
}

enum ms_rc mstx__recipe_csv(struct ms_store *s, const char *table, const char *path,
                            struct ms_err *err)
{
    char sql[96];
    struct ms_stmt *st;
    struct ms_out *o;
    snprintf(sql, sizeof sql, "SELECT * FROM %s ORDER BY rowid", table);
    MS_TRY(ms_store_prepare(s, &st, sql, err));
    enum ms_rc rc = ms_out_create(&o, path, err);
    if (rc == MS_OK) {
        rc = put_rows(st, o, err);
        if (rc == MS_OK)
            rc = ms_out_commit(o, err);
        else
            ms_out_abort(o);
    }
    ms_stmt_free(st);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * recipe_answers: see the header.
 */
#include "mstx/official/recipe_answers.h"

#include "probe/base/human.h"
#include "probe/base/store_vtab.h"

#include <inttypes.h>
#include <stdio.h>

enum { LINE = 512 };

/* human_time(ns): "1.25 ms". */
static void human_time(const struct ms_value *arg, char scratch[MS_FUNCTION_SCRATCH],
                       struct ms_value *out)
{
    char text[MS_HUMAN_MAX];
    if (arg->type != MS_VALUE_INT && arg->type != MS_VALUE_REAL)
        return;
    const double ns = arg->type == MS_VALUE_REAL ? arg->f : (double)arg->i;
    const bool fits = ns > -9e18 && ns < 9e18;
    const int n = snprintf(scratch, MS_FUNCTION_SCRATCH, "%s",
                           fits ? ms_human_time(text, (int64_t)ns) : "very long");
    *out = (struct ms_value){.type = MS_VALUE_TEXT, .s = {scratch, (uint32_t)n}};
}

enum ms_rc mstx__tell_answer(struct ms_store *s, const char *sql, mstx_line_fn fn,
                             struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_add_function(s, "human_time", 1, human_time, err));
    MS_TRY(ms_store_prepare(s, &st, sql, err));
    enum ms_rc rc = MS_OK;
    for (int i = 0; i < MSTX_ANSWER_LINES && ms_stmt_next(st, &rc, err); i++) {
        char line[LINE];
        snprintf(line, sizeof line, "%.*s", MS_STR_ARG(ms_stmt_get_str(st, 0)));
        fn(line);
    }
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__tell_rows(struct ms_store *s, const char *table, mstx_line_fn fn,
                           struct ms_err *err)
{
    struct ms_stmt *st;
    char sql[128], line[LINE];
    bool more;
    snprintf(sql, sizeof sql, "SELECT count(*) FROM \"%s\"", table);
    MS_TRY(ms_store_prepare(s, &st, sql, err));
    const enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more) {
        const int64_t n = ms_stmt_get_i64(st, 0);
        snprintf(line, sizeof line, "%s: %" PRId64 " row%s", table, n, n == 1 ? "" : "s");
        fn(line);
    }
    ms_stmt_free(st);
    return rc;
}

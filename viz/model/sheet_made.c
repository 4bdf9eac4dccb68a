/* SPDX-License-Identifier: MIT
 *
 * sheet_made: see the header.
 */
#include "viz/model/sheet_made.h"

#include "mstx/differ/against.h"
#include "mstx/memory/mem_read.h"
#include "mstx/memory/mem_report.h"
#include "probe/trend/curve_table.h"

enum { TEXT_MAX = 1 << 30 };

/* Opens the text when it was written; gives it back when it was not. */
static enum ms_rc take(struct viz_sheet **s, enum ms_rc rc, struct ms_buf *text, struct ms_err *err)
{
    if (rc == MS_OK)
        return viz_sheet_take(s, text, err);
    ms_buf_free(text);
    return rc;
}

enum ms_rc viz_sheet_of_trend(struct viz_sheet **s, const char *path, struct ms_err *err)
{
    struct probe_curves curves;
    struct ms_buf text = {.max = TEXT_MAX};
    MS_TRY(probe_curves_read(&curves, path, NULL, NULL, err));
    const enum ms_rc rc = probe_curve_table(&curves, &text, err);
    probe_curves_free(&curves);
    return take(s, rc, &text, err);
}

enum ms_rc viz_sheet_of_memory(struct viz_sheet **s, const char *path, struct ms_err *err)
{
    struct mstx_mem_log *log = NULL;
    struct mstx_mem_report report = {0};
    struct ms_buf text = {.max = TEXT_MAX};
    enum ms_rc rc = mstx__mem_read(&log, path, NULL, err);
    if (rc == MS_OK)
        rc = mstx__mem_report_make(&report, path, log, err);
    if (rc == MS_OK)
        rc = mstx__mem_report_table(&report, &text, err);
    mstx__mem_report_free(&report);
    mstx__mem_log_free(log);
    return take(s, rc, &text, err);
}

static enum ms_rc make_flame(char **flame, const struct mstx_against *a, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jwrite_init(&w, 0, TEXT_MAX);
    enum ms_rc rc = mstx_against_flame(a, &w, err);
    if (rc == MS_OK)
        rc = ms_jwrite_finish(&w, err);
    *flame = rc == MS_OK ? ms_str_dup(ms_buf_slice(&w.buf)) : NULL;
    ms_jwrite_free(&w);
    return rc == MS_OK && *flame == NULL ? ms_no_memory(err) : rc;
}

enum ms_rc viz_sheet_of_runs(struct viz_sheet **s, char **flame, const char *new_path,
                             const char *old_path, struct ms_err *err)
{
    const struct mstx_step_range all = {0, UINT32_MAX};
    const struct mstx_against_how how = {
        .old_path = old_path, .new_path = new_path, .old_steps = all, .new_steps = all};
    struct mstx_against a;
    struct ms_buf text = {.max = TEXT_MAX};
    *flame = NULL;
    enum ms_rc rc = mstx_against_read(&a, &how, err);
    if (rc == MS_OK)
        rc = mstx_against_table(&a, &text, err);
    if (rc == MS_OK)
        rc = make_flame(flame, &a, err);
    mstx_against_free(&a);
    return take(s, rc, &text, err);
}

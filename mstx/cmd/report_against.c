/* SPDX-License-Identifier: MIT
 *
 * report_against: see the header.
 */
#include "mstx/cmd/report_against.h"

#include "probe/base/jprint.h"
#include "probe/base/num.h"
#include "probe/base/screen.h"
#include "probe/settings/run_settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT_MAX = 1 << 30 };

/* Reads "2%" or "0.02"; no gate is -1. */
static enum ms_rc parse_gate(const char *text, double *gate, struct ms_err *err)
{
    char *end;
    *gate = -1;
    if (text == NULL)
        return MS_OK;
    *gate = strtod(text, &end);
    if (end == text || !isfinite(*gate) || *gate < 0 ||
        (*end == '%' ? end[1] != '\0' : *end != '\0'))
        return ms_fail(err, MS_E_ARG, "--gate %s: a share as 2%% or 0.02 is needed", text);
    *gate = *end == '%' ? *gate / 100 : *gate;
    return MS_OK;
}

/* Reads "5" or "5-20". */
static enum ms_rc parse_steps(const char *text, struct mstx_step_range *r, struct ms_err *err)
{
    *r = (struct mstx_step_range){0, UINT32_MAX};
    if (text == NULL)
        return MS_OK;
    struct ms_str first = ms_str_of(text), last = first;
    const int64_t dash = ms_str_find(first, '-');
    if (dash >= 0) {
        last = ms_str_sub(first, (uint32_t)dash + 1, first.n);
        first = ms_str_sub(first, 0, (uint32_t)dash);
    }
    if (!ms_str_i64(first, &r->first) || !ms_str_i64(last, &r->last) || r->first < 0 ||
        r->first > r->last)
        return ms_fail(err, MS_E_ARG, "--steps %s: a step as 5 or steps as 5-20 are needed", text);
    return MS_OK;
}

/* Begins with what the runs were configured differently in. */
static enum ms_rc put_settings(const struct mstx_report_against *how, struct ms_buf *text,
                               struct ms_err *err)
{
    struct ms_settings_diff d;
    MS_TRY(ms_settings_differ(&d, how->old_path, how->new_path, err));
    ms_settings_diff_text(&d, how->most, text);
    ms_settings_diff_free(&d);
    return MS_OK;
}

static enum ms_rc print_against(const struct mstx_report_against *how, const struct mstx_against *a,
                                double gate, struct ms_err *err)
{
    if (how->form == MSTX_REPORT_JSON) {
        struct ms_jwrite w;
        ms_jprint_begin(&w);
        mstx_against_json(a, gate, &w);
        return ms_jprint_end(&w, MS_OK, err);
    }
    struct ms_buf text = {.max = TEXT_MAX};
    if (how->form == MSTX_REPORT_MARKDOWN)
        mstx_against_markdown(a, how->most, &text);
    else if (how->form == MSTX_REPORT_JUNIT)
        mstx_against_junit(a, gate, &text);
    else {
        const enum ms_rc rc = put_settings(how, &text, err);
        if (rc != MS_OK) {
            ms_buf_free(&text);
            return rc;
        }
        mstx_against_text(a, how->most, &text);
    }
    if (how->form == MSTX_REPORT_TEXT)
        return ms_screen_print(&text, err);
    const enum ms_rc rc = ms_buf_check(&text, err);
    if (rc == MS_OK)
        fwrite(text.p, 1, text.n, stdout);
    ms_buf_free(&text);
    return rc;
}

enum ms_rc mstx__report_against(const struct mstx_report_against *how, bool *slower,
                                struct ms_err *err)
{
    struct mstx_against_how what = {.old_path = how->old_path,
                                    .new_path = how->new_path,
                                    .noise = how->noise.items,
                                    .noises = how->noise.n};
    double gate;
    if (how->form == MSTX_REPORT_PROMETHEUS)
        return ms_fail(err, MS_E_ARG, "--against has no form prometheus");
    MS_TRY(parse_gate(how->gate, &gate, err));
    MS_TRY(parse_steps(how->steps, &what.new_steps, err));
    MS_TRY(parse_steps(how->old_steps != NULL ? how->old_steps : how->steps, &what.old_steps, err));
    struct mstx_against a;
    enum ms_rc rc = mstx_against_read(&a, &what, err);
    if (rc == MS_OK)
        rc = print_against(how, &a, gate, err);
    *slower = rc == MS_OK && gate >= 0 && mstx_against_slower(&a) > gate;
    mstx_against_free(&a);
    return rc;
}

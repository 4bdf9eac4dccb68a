/* SPDX-License-Identifier: MIT
 *
 * report_against: `msprobe report NEW --against OLD`.
 */
#ifndef MSTX_CMD_REPORT_AGAINST_H
#define MSTX_CMD_REPORT_AGAINST_H

#include "mstx/differ/against.h"

#include "probe/base/opt.h"

enum mstx_report_form {
    MSTX_REPORT_TEXT,
    MSTX_REPORT_JSON,
    MSTX_REPORT_PROMETHEUS,
    MSTX_REPORT_MARKDOWN,
    MSTX_REPORT_JUNIT
};

struct mstx_report_against {
    const char *old_path, *new_path;
    struct ms_opt_list noise;
    const char *steps, *old_steps, *gate; /* as given; NULL: not given */
    enum mstx_report_form form;
    size_t most;
};

/* Compares the runs and prints the answer.  *slower tells that the gate is closed. */
enum ms_rc mstx__report_against(const struct mstx_report_against *how, bool *slower,
                                struct ms_err *err) MS_MUST_USE;

#endif

/* SPDX-License-Identifier: MIT
 *
 * compare_args: the options of `msprobe compare`.
 */
#ifndef COMPARE_CMD_COMPARE_ARGS_H
#define COMPARE_CMD_COMPARE_ARGS_H

#include "compare/compare.h"
#include "compare/official/rules_official.h"
#include "probe/base/opt.h"

enum { FORMAT_TEXT, FORMAT_JSON };
enum { ALIGN_AUTO, ALIGN_ALWAYS, ALIGN_EXACT, ALIGN_FUZZY };
enum { COMPAT_NOT_SAID = -1 };
enum { MODE_AUTO, MODE_OFFLINE_DATA, MODE_TORCHAIR, MODE_OFFLINE_MODEL, MODE_ATB, MODES };
enum { COMPARE_MOST = 8 }; /* ranks that are listed each alone */
enum { FOREIGN = 8 };      /* options of modes that only the official tool has */

struct compare_args {
    const char *target, *golden, *output;
    const char *cell, *api, *layer, *data;
    const char *input, *noise;
    const char *pins, *explain, *config;
    int64_t most;
    int mode, compat, format, align;
    bool fuzzy, xlsx, ext, exit_code, tensor_log, diff, stack_mode, compare_only;
    bool consistent, write_mapping, highlight;
    const char *ranks, *steps;
    int backend; /* enum cmp_consistent */
    const char *foreign[FOREIGN];
};

extern const struct ms_opt compare_opts[];
/* Fails when options contradict each other, or belong to a mode that is not supported. */
enum ms_rc compare_args_check(const struct compare_args *a, struct ms_err *err);

#endif

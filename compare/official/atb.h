/* SPDX-License-Identifier: MIT
 *
 * atb: compares two dumps of the ATB library, each a directory with statistic.csv and,
 * if tensors were saved, the .bin files that it names.
 *
 * Tensors are paired by the ids and names of their operators, input or output, and
 * index.
 */
#ifndef COMPARE_OFFICIAL_ATB_H
#define COMPARE_OFFICIAL_ATB_H

#include "compare/write/out.h"
#include "compare/write/sheet.h"

struct cmp_atb_conf {
    bool strict; /* as the official table: rows without a partner are left out */
    const char *stamp;
};
/* Writes DIR/atb_stats_compare_result_STAMP.xlsx, or atb_tensor_... */
enum ms_rc cmp_compare_atb(const char *target, const char *golden, const char *dir,
                           const struct cmp_atb_conf *conf, struct cmp_sheet_sum *sum,
                           struct cmp_files *files, struct ms_err *err) MS_MUST_USE;

#endif

/* SPDX-License-Identifier: MIT
 *
 * kernels: compares dumps of MindSpore's static graphs, kernel by kernel.
 *
 *     .../rank_0/net/graph/3/   Add.Default_Add-op1.0.0.1715.input.0.DEFAULT.NCHW.npy ...
 *     .../0/net/1/3/            statistic.csv
 *
 * The last directory is the step; the rank is the fourth or third part from the end.
 * Kernels are paired by operator, task, input or output, slot and occurrence; kernels
 * without a partner are listed too.
 */
#ifndef COMPARE_OFFICIAL_KERNELS_H
#define COMPARE_OFFICIAL_KERNELS_H

#include "compare/write/out.h"
#include "compare/write/sheet.h"

struct cmp_kernel_conf {
    const char *ranks, *steps; /* "0,1"; NULL or empty: all */
    bool xlsx;
    bool strict;       /* as the official table: order, texts and digits */
    const char *stamp; /* timestamp in the file names */
};

/* Writes DIR/compare_result_RANK_STEP_STAMP.csv for each rank and step that both sides have. */
enum ms_rc cmp_compare_kernels(const char *target, const char *golden, const char *dir,
                               const struct cmp_kernel_conf *conf, struct cmp_sheet_sum *sum,
                               struct cmp_files *files, struct ms_err *err) MS_MUST_USE;

#endif

/* SPDX-License-Identifier: MIT
 *
 * kernels: dumps of MindSpore's static graphs, kernel by kernel.
 *
 *     .../rank_0/net/graph/3/   Add.Default_Add-op1.0.0.1715.input.0.DEFAULT.NCHW.npy ...
 *     .../0/net/1/3/            statistic.csv
 *
 * The last directory is the step; the rank is the fourth from there, or the third.
 * Kernels are paired by op, task, input or output and slot, and by how manieth time
 * they ran; what has no partner is listed too.
 */
#ifndef COMPARE_OFFICIAL_KERNELS_H
#define COMPARE_OFFICIAL_KERNELS_H

#include "compare/write/out.h"
#include "compare/write/sheet.h"

struct cmp_kernel_conf {
    const char *ranks, *steps; /* "0,1"; NULL or empty: all */
    bool xlsx;
    bool strict;       /* as the official table: its order, words and digits */
    const char *stamp; /* of the names of files */
};

/* Write DIR/compare_result_RANK_STEP_STAMP.csv for each rank and step that both sides have. */
enum ms_rc cmp_compare_kernels(const char *target, const char *golden, const char *dir,
                               const struct cmp_kernel_conf *conf, struct cmp_sheet_sum *sum,
                               struct cmp_files *files, struct ms_err *err) MS_MUST_USE;

#endif

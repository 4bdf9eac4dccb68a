/* SPDX-License-Identifier: MIT
 *
 * old_input: the json in which msprobe 1.x takes its paths (-i compare.json).
 */
#ifndef COMPARE_OLD_INPUT_H
#define COMPARE_OLD_INPUT_H

#include "probe/base/str.h"

struct cmp_old_input {
    char *target, *golden; /* npu_path, bench_path; on the heap */
};

enum ms_rc cmp_old_input_read(struct cmp_old_input *in, const char *path,
                              struct ms_err *err) MS_MUST_USE;
void cmp_old_input_free(struct cmp_old_input *in);

#endif

/* SPDX-License-Identifier: MIT
 *
 * old_input: the json in which msprobe 1.x takes its paths (-i compare.json).
 */
#ifndef COMPARE_OFFICIAL_OLD_INPUT_H
#define COMPARE_OFFICIAL_OLD_INPUT_H

#include "probe/base/arena.h"
#include "probe/base/map.h"

struct cmp_old_input {
    char *target, *golden; /* npu_path, bench_path; on the heap */
    char *stack;           /* stack_path; NULL: not there */
    char *ranks, *steps;   /* rank_id, step_id as "0,1": kernels of graphs; NULL: not there */
    bool trees;            /* common: the paths are trees of .npy files */
    struct ms_arena *arena;
    struct ms_map npu_names;           /* map_dict: names of files ... */
    MS_VEC(struct ms_str) bench_names; /* ... and what they are called on the other side */
};

enum ms_rc cmp_old_input_read(struct cmp_old_input *in, const char *path,
                              struct ms_err *err) MS_MUST_USE;
/* The same of text; name stands for the path. */
enum ms_rc cmp_old_input_parse(struct cmp_old_input *in, const char *name, struct ms_str text,
                               struct ms_err *err) MS_MUST_USE;
void cmp_old_input_free(struct cmp_old_input *in);

#endif

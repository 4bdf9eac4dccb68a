/* SPDX-License-Identifier: MIT
 *
 * old_input: the JSON file from which msprobe 1.x reads its paths (-i compare.json).
 */
#ifndef COMPARE_OFFICIAL_OLD_INPUT_H
#define COMPARE_OFFICIAL_OLD_INPUT_H

#include "probe/base/arena.h"
#include "probe/base/map.h"

struct cmp_old_input {
    char *target, *golden; /* npu_path, bench_path; on the heap */
    char *stack;           /* stack_path; NULL: missing */
    /* rank_id, step_id as "0,1", for kernels of static graphs; NULL: missing */
    char *ranks, *steps;
    bool trees; /* common: the paths are trees of .npy files */
    struct ms_arena *arena;
    struct ms_map npu_names;           /* map_dict: names of target files ... */
    MS_VEC(struct ms_str) bench_names; /* ... and of the golden files, by index */
};

enum ms_rc cmp_old_input_read(struct cmp_old_input *in, const char *path,
                              struct ms_err *err) MS_MUST_USE;
/* Parses the text; name is used in messages instead of the path. */
enum ms_rc cmp_old_input_parse(struct cmp_old_input *in, const char *name, struct ms_str text,
                               struct ms_err *err) MS_MUST_USE;
void cmp_old_input_free(struct cmp_old_input *in);

#endif

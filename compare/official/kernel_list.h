/* SPDX-License-Identifier: MIT
 *
 * kernel_list: the kernels of a side, by rank and step.
 */
#ifndef COMPARE_OFFICIAL_KERNEL_LIST_H
#define COMPARE_OFFICIAL_KERNEL_LIST_H

#include "probe/base/arena.h"
#include "probe/base/vec.h"
#include "probe/dump/dump.h"

/* A tensor of a kernel: a file, or a line of statistic.csv. */
struct cmp__kernel {
    struct ms_str key;
    uint64_t time;
    uint32_t nth;     /* index among the kernels of the same key, in order of time */
    uint32_t listed;  /* index in the order of the dump */
    const char *path; /* path of the .npy file or of statistic.csv */
    bool is_file;
    struct ms_str dtype, shape;
    double stat[PROBE_STATS];
};
struct cmp__kernel_place {
    int64_t rank, step;
    MS_VEC(struct cmp__kernel) list; /* sorted by key, then by nth */
};
struct cmp__kernel_side {
    struct ms_arena *arena;
    MS_VEC(struct cmp__kernel_place) places; /* sorted by rank, then by step */
};

/* Lists the kernels below root. ranks and steps: lists of numbers, NULL for all. */
enum ms_rc cmp__kernels_find(struct cmp__kernel_side *s, const char *root, const char *ranks,
                             const char *steps, struct ms_err *err);
void cmp__kernels_free(struct cmp__kernel_side *s);

/* Parses a file name such as "Add.Default_Add-op1.0.0.1715.output.0.DEFAULT.NCHW.npy" into key and
 * time; returns false for any other name. */
bool cmp__kernel_name(struct ms_str name, struct ms_buf *key, uint64_t *time);

#endif

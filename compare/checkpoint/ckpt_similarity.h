/* SPDX-License-Identifier: MIT
 *
 * ckpt_similarity: the weights of two checkpoints side by side: the official ckpt_similarity.json.
 */
#ifndef COMPARE_CHECKPOINT_CKPT_SIMILARITY_H
#define COMPARE_CHECKPOINT_CKPT_SIMILARITY_H

#include "compare/checkpoint/ckpt_measure.h"
#include "probe/base/vec.h"

/* A weight that both have, as both have it. */
struct ckpt_row {
    const struct probe_ckpt_entry *a, *b;
    bool same_shape;
    struct ckpt_figures f; /* only with same_shape */
};

struct ckpt_similarity {
    struct probe_ckpt *c[2];
    MS_VEC(struct ckpt_row) rows;                    /* in natural order */
    MS_VEC(const struct probe_ckpt_entry *) only[2]; /* weights of one side */
    uint64_t values;                                 /* plain states compared (with states) */
};

/* Called after each weight; returns false to stop with MS_E_INTERRUPTED. */
typedef bool ckpt_progress_fn(void *ctx, size_t done, size_t all);

/* Opens and compares two checkpoints. all: also optimizer states and every other tensor. */
enum ms_rc ckpt_similarity_new(struct ckpt_similarity *s, const char *a, const char *b, bool all,
                               ckpt_progress_fn *progress, void *ctx,
                               struct ms_err *err) MS_MUST_USE;
/* Writes {"name": {"l2", "cos", "numel", "shape"}} as the official tool does. */
enum ms_rc ckpt_similarity_write(const struct ckpt_similarity *s, const char *path,
                                 struct ms_err *err) MS_MUST_USE;
void ckpt_similarity_free(struct ckpt_similarity *s);

#endif

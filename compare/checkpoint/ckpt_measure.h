/* SPDX-License-Identifier: MIT
 *
 * ckpt_measure: how far two tensors of two checkpoints are apart, read in pieces.
 */
#ifndef COMPARE_CHECKPOINT_CKPT_MEASURE_H
#define COMPARE_CHECKPOINT_CKPT_MEASURE_H

#include "probe/base/err.h"
#include "probe/checkpoint/checkpoint.h"

struct ckpt_figures {
    double l2;      /* norm of the difference */
    double cos;     /* cosine of the angle between them; 1 for two zeros */
    double norm[2]; /* of each side */
    bool has_cos;   /* false: one of them is zero */
    bool equal;     /* all elements have the same bits, or, of two types, the same values */
};

/* Measures two tensors of one shape. Memory for two pieces of a few thousand elements is all it needs;
 * pages that were read are given back. */
enum ms_rc ckpt_measure(const struct probe_ckpt *a, const struct probe_ckpt_entry *x,
                        const struct probe_ckpt *b, const struct probe_ckpt_entry *y,
                        struct ckpt_figures *f, struct ms_err *err) MS_MUST_USE;
bool ckpt_same_shape(const struct probe_ckpt_entry *x, const struct probe_ckpt_entry *y);

#endif

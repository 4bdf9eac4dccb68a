/* SPDX-License-Identifier: MIT
 *
 * leaf_write: how a tensor is described: the JSON of a leaf up to the name of
 * its file, which the caller adds.
 */
#ifndef PROBE_WRITE_LEAF_WRITE_H
#define PROBE_WRITE_LEAF_WRITE_H

#include "probe/base/jwrite.h"
#include "probe/probe.h"
#include "probe/tensor/tensor.h"

enum { PROBE__LEAF_DEPTH = 120 };

/* What the leaves of one dump have in common. */
struct probe__style {
    enum probe_summary summary;
    bool mindspore;   /* its words instead of those of PyTorch */
    bool bare;        /* type, dtype and shape alone: no figures and no digest */
    bool all_numbers; /* Mean and Norm of every number type */
    bool unrounded;   /* Mean and Norm as float32 also of narrower types */
};

/* Take a description from outside: refuses an unknown type, too many dimensions, a size beyond 64
 * bits, and elements without memory. */
enum ms_rc probe__describe(const struct probe_tensor_desc *d, struct probe_tensor *t,
                           struct ms_err *err) MS_MUST_USE;

/* What is not to be seen from the elements. */
struct probe__leaf_as {
    bool requires_grad;
    bool is_blank;       /* its figures are null: there are no elements, or none that count */
    const char *type;    /* a class of its own; NULL: the framework's tensor */
    const char *dtype;   /* in full; NULL: that of the elements */
    struct ms_str extra; /* text of further members, behind requires_grad */
    uint32_t later;      /* not 0: figures come later, under this number */
};

/* Figures that come later are in the text as this byte and nine digits of hex, eight of the number
 * and one of the figure; JSON has no such byte, so the places are found again. */
enum { PROBE__LATER = 1, PROBE__LATER_BYTES = 10 };

/* Opens the leaf's object and leaves it open, at a depth of at most PROBE__LEAF_DEPTH.  *odd is set
 * when a NaN or an infinity was met, which is only seen where figures are made. */
void probe__leaf_begin(struct ms_jwrite *json, const struct probe__style *style,
                       const struct probe_tensor *t, const struct probe__leaf_as *as, bool *odd);
/* Does the tensor hold a NaN or an infinity? */
bool probe__is_odd(const struct probe_tensor *t);

#endif

/* SPDX-License-Identifier: MIT
 *
 * leaf_write: the JSON description of a tensor (a leaf), up to the name of its file, which the
 * caller adds.
 */
#ifndef PROBE_WRITE_LEAF_WRITE_H
#define PROBE_WRITE_LEAF_WRITE_H

#include "probe/base/jwrite.h"
#include "probe/base/str.h"
#include "probe/base/vec.h"
#include "probe/dump/leaf.h"
#include "probe/probe.h"
#include "probe/tensor/tensor.h"

/* Settings shared by all leaves of one dump. */
struct probe__style {
    enum probe_summary summary;
    bool mindspore;   /* field names of MindSpore instead of PyTorch */
    bool bare;        /* type, dtype and shape alone: no statistics and no digest */
    bool all_numbers; /* Mean and Norm for every number type */
    bool unrounded;   /* Mean and Norm as float32 also for narrower types */
};

/* Checks and converts a description from outside: refuses an unknown dtype, too many dimensions,
 * a size beyond 64 bits, and elements without memory. */
enum ms_rc probe__describe(const struct probe_tensor_desc *d, struct probe_tensor *t,
                           struct ms_err *err) MS_MUST_USE;

/* Properties of a leaf that the elements do not show. */
struct probe__leaf_as {
    bool requires_grad;
    bool is_blank;       /* statistics are null: no elements, or none that are valid */
    const char *type;    /* class name; NULL: the framework's tensor */
    const char *dtype;   /* full text; NULL: the dtype of the elements */
    struct ms_str extra; /* JSON text of further members, after requires_grad */
    uint32_t later;      /* not 0: statistics arrive later, under this number */
};

/* Opens the leaf's object and leaves it open. *odd is
 * set when the statistics show a NaN or an infinity; without statistics it is never set. */
void probe__leaf_begin(struct ms_jwrite *json, const struct probe__style *style,
                       const struct probe_tensor *t, const struct probe__leaf_as *as, bool *odd);
/* Tells whether the tensor holds a NaN or an infinity. */
bool probe__is_odd(const struct probe_tensor *t);

/* ---- statistics that come later ------------------------------------------------------- */

/* Records whose statistics are still being computed on a device wait in order, together with all
 * later records, until the program hands over the statistics of many tensors at once. In place of a
 * statistic stands a placeholder: this byte and nine hex digits, eight of the tensor's number and one
 * of the statistic. JSON never contains the byte, so a scan finds the placeholders. */
enum { PROBE__LATER = 1, PROBE__LATER_BYTES = 10 };

/* One of the four statistics of a tensor, as a JSON value. */
struct probe__figure {
    enum probe_num_kind kind; /* NULL, BOOL, INT or FLOAT */
    double v;                 /* of BOOL and FLOAT */
    int64_t i;                /* of INT */
};

/* Zero it first. */
struct probe__late {
    struct ms_buf text;  /* text of all waiting records */
    MS_VEC(size_t) ends; /* end offset of each */
};

static inline bool probe__late_any(const struct probe__late *l)
{
    return l->ends.n != 0;
}
/* Adds a waiting record; false: out of memory, or too much text waits. */
bool probe__late_add(struct probe__late *l, struct ms_str record) MS_MUST_USE;

typedef void (*probe__record_fn)(void *ctx, struct ms_str record);
/* Passes every record, its placeholders filled in, to `visit`. The statistics of tensor n, from
 * 1, begin at f[(n - 1) * PROBE_STATS]; a tensor without statistics gets nulls. */
void probe__late_release(struct probe__late *l, const struct probe__figure *f, size_t nfigures,
                         probe__record_fn visit, void *ctx);
void probe__late_free(struct probe__late *l);

#endif

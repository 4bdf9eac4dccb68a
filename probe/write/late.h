/* SPDX-License-Identifier: MIT
 *
 * late: records whose figures are still being made on a device.  They wait here
 * in their order, with all that come after them, until the program hands over
 * the figures of many tensors at once.
 */
#ifndef PROBE_WRITE_LATE_H
#define PROBE_WRITE_LATE_H

#include "probe/base/str.h"
#include "probe/base/vec.h"
#include "probe/dump/leaf.h"

/* One of a tensor's four figures, in the words of JSON. */
struct probe__figure {
    enum probe_num_kind kind; /* NULL, BOOL, INT or FLOAT */
    double v;                 /* of BOOL and FLOAT */
    int64_t i;                /* of INT */
};

/* Zero it first. */
struct probe__late {
    struct ms_buf text;  /* of all records that wait */
    MS_VEC(size_t) ends; /* where each ends */
};

static inline bool probe__late_any(const struct probe__late *l)
{
    return l->ends.n != 0;
}
/* false: there is no memory, or too much waits. */
bool probe__late_add(struct probe__late *l, struct ms_str record) MS_MUST_USE;

typedef void (*probe__take_record)(void *ctx, struct ms_str record);
/* Give every record, its places filled in, to `take`.  Tensor number n, from 1, has the figures
 * from f[(n - 1) * PROBE_STATS] on; one without figures gets nulls. */
void probe__late_release(struct probe__late *l, const struct probe__figure *f, size_t nfigures,
                         probe__take_record take, void *ctx);
void probe__late_free(struct probe__late *l);

#endif

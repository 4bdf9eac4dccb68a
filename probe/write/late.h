/* SPDX-License-Identifier: MIT
 *
 * late: records whose statistics are still being computed on a device. They wait here in order,
 * together with all later records, until the program hands over the statistics of many tensors at
 * once.
 */
#ifndef PROBE_WRITE_LATE_H
#define PROBE_WRITE_LATE_H

#include "probe/base/str.h"
#include "probe/base/vec.h"
#include "probe/dump/leaf.h"

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

typedef void (*probe__take_record)(void *ctx, struct ms_str record);
/* Passes every record, its placeholders filled in, to `take`. The statistics of tensor n, from
 * 1, begin at f[(n - 1) * PROBE_STATS]; a tensor without statistics gets nulls. */
void probe__late_release(struct probe__late *l, const struct probe__figure *f, size_t nfigures,
                         probe__take_record take, void *ctx);
void probe__late_free(struct probe__late *l);

#endif

/* SPDX-License-Identifier: MIT
 *
 * histogram: distribution of a tensor's elements, if the dump kept its file.
 */
#ifndef VIZ_MODEL_HISTOGRAM_H
#define VIZ_MODEL_HISTOGRAM_H

#include "viz/model/session.h"

enum { VIZ_BINS = 64 };

struct viz_histogram {
    const char *dtype;
    uint64_t count;           /* number of elements */
    uint64_t nan, inf, zeros; /* counts among the elements */
    double low, high;         /* range of the finite elements */
    uint64_t bin[VIZ_BINS];   /* equal parts of [low, high] */
};

/* Reads the file that the dump names for an item of a node; callers cannot name a file
 * themselves. MS_E_NOTFOUND: the graph was opened without its dump, or the tensor was not kept. */
enum ms_rc viz_histogram_read(struct viz_histogram *h, const struct viz_session *s,
                              struct graph_view *v, struct graph_spot at, struct ms_str node,
                              struct ms_str item, struct ms_err *err) MS_MUST_USE;

#endif

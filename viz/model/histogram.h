/* SPDX-License-Identifier: MIT
 *
 * histogram: how the elements of a tensor are spread, where its file was kept.
 */
#ifndef VIZ_MODEL_HISTOGRAM_H
#define VIZ_MODEL_HISTOGRAM_H

#include "viz/model/session.h"

enum { VIZ_BINS = 64 };

struct viz_histogram {
    const char *dtype;
    uint64_t count;           /* elements */
    uint64_t nan, inf, zeros; /* of them */
    double low, high;         /* of those that are finite */
    uint64_t bin[VIZ_BINS];   /* equal parts of [low, high] */
};

/* Of an item of a node, by the file that the dump says of it: nobody else can name a file.
 * MS_E_NOTFOUND: the graph was opened without its dump, or no tensor was kept. */
enum ms_rc viz_histogram_read(struct viz_histogram *h, const struct viz_session *s,
                              struct graph_view *v, struct graph_spot at, struct ms_str node,
                              struct ms_str item, struct ms_err *err) MS_MUST_USE;

#endif

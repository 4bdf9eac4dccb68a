/* SPDX-License-Identifier: MIT
 *
 * graph_id: how a database names its trees: "NPU_0_1" is the target of step 0, rank 1.
 */
#ifndef COMPARE_GRAPH_BUILD_GRAPH_ID_H
#define COMPARE_GRAPH_BUILD_GRAPH_ID_H

#include "probe/base/str.h"

#include <stdbool.h>

struct graph__place { /* identifies a tree among ranks and steps */
    int64_t step, rank;
    bool golden;
};

/* Value of the column data_source. */
static inline struct ms_str graph__side_name(bool golden)
{
    return golden ? MS_STR("Bench") : MS_STR("NPU");
}
static inline void graph__put_graph_id(struct ms_buf *out, struct graph__place place)
{
    ms_buf_printf(out, "%s_%lld_%lld", place.golden ? "Bench" : "NPU", (long long)place.step,
                  (long long)place.rank);
}

#endif

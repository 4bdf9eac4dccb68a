/* SPDX-License-Identifier: MIT
 *
 * name_totals: count, total, mean and percentiles of every name in every domain.
 */
#ifndef MSTX_CONCLUDE_NAME_TOTALS_H
#define MSTX_CONCLUDE_NAME_TOTALS_H

#include "mstx/rundb/run_query.h"

#include "probe/base/vec.h"

/* All events of one name in one domain. Percentiles are exact up to 4096 events, then within 0.4 %.
 * share: of the run's time on the tracks where the name occurs. */
struct mstx_name_row {
    struct ms_str domain, name;
    uint64_t events, marks, unfinished;
    int64_t total_ns, mean_ns, p50_ns, p99_ns, max_ns;
    double share;
    uint32_t tracks;
};
typedef MS_VEC(struct mstx_name_row) mstx_name_rows;

/* A selection: tracks (indices) between two times. */
struct mstx_part {
    const uint32_t *tracks;
    size_t n;
    int64_t from, to;
};

/* Lists rows by descending total, then descending count, then name.  Texts are borrowed from tl. */
enum ms_rc mstx_names_measure(struct mstx_tl *tl, mstx_name_rows *rows,
                              struct ms_err *err) MS_MUST_USE;
/* Lists rows of a selection: durations are clipped to it, and shares are parts of its time. */
enum ms_rc mstx_names_measure_part(struct mstx_tl *tl, const struct mstx_part *part,
                                   mstx_name_rows *rows, struct ms_err *err) MS_MUST_USE;

#endif

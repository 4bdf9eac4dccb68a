/* SPDX-License-Identifier: MIT
 *
 * breakdown: what the devices of each rank did and why they did nothing, from traces in which a
 * profiler recorded kernels and the calls that launched them.
 *
 * All times are unions: two kernels at once count once.
 */
#ifndef MSTX_CONCLUDE_BREAKDOWN_H
#define MSTX_CONCLUDE_BREAKDOWN_H

#include "mstx/format/device_work.h"
#include "mstx/rundb/run_query.h"

#include "probe/base/jwrite.h"
#include "probe/base/vec.h"

/* Why a stream was idle before a kernel: it had not been launched yet; the gap between two kernels
 * that were both launched is that of any two kernels (up to 30 us); another reason, such as a wait
 * for an event of another stream. */
enum mstx_idle { MSTX_IDLE_HOST, MSTX_IDLE_KERNEL, MSTX_IDLE_OTHER, MSTX_IDLES };

struct mstx_stream_idle {
    uint32_t device, stream;
    int64_t ns[MSTX_IDLES];
};

/* Pairs of a call of the runtime and the event of the device that it caused. */
struct mstx_launches {
    uint64_t pairs;
    uint64_t brief;   /* the call takes longer than its event */
    uint64_t slow;    /* the call takes more than 50 us */
    uint64_t late;    /* the event begins more than 100 us after the end of the call */
    uint64_t at_once; /* the event begins before the call ends */
    int64_t median_delay_ns, most_delay_ns; /* of an even number the upper median */
};

struct mstx_kernel_sum {
    uint32_t name;
    enum mstx_work work;
    uint64_t count;
    int64_t total_ns, least_ns, most_ns;
};

struct mstx_rank_breakdown {
    int32_t rank;
    uint32_t process; /* index */
    int64_t window_ns, busy_ns, work_ns[MSTX_WORKS];
    int64_t overlap_ns; /* of computation and communication */
    struct mstx_launches launches;
    MS_VEC(struct mstx_stream_idle) idle;
    MS_VEC(struct mstx_kernel_sum) kernel; /* longest total first */
};
typedef MS_VEC(struct mstx_rank_breakdown) mstx_breakdown;

/* Measures every process that has kernels. */
enum ms_rc mstx_breakdown_measure(struct mstx_tl *tl, mstx_breakdown *b,
                                  struct ms_err *err) MS_MUST_USE;
void mstx_breakdown_free(mstx_breakdown *b);

/* Writes tables with at most `most` rows each; 0: all. */
void mstx_breakdown_text(struct mstx_tl *tl, const mstx_breakdown *b, size_t most,
                         struct ms_buf *out);
/* Writes the list of ranks. */
void mstx_breakdown_json(struct mstx_tl *tl, const mstx_breakdown *b, struct ms_jwrite *w);

#endif

/* SPDX-License-Identifier: MIT
 *
 * clock_sync: see the header.
 */
#include "mstx/rt/clock_sync.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mstx/rt/process_ring.h"
#include "mstx/rt/segment_file.h"
#include "mstx/rt/ticks.h"

#define API __attribute__((visibility("default")))

enum { BEST = 10 };

/* Selects the ten shortest round trips, shortest first. Returns how many there are. */
static size_t find_shortest(const struct mstx_ping *ping, size_t n, size_t best[BEST])
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const struct mstx_ping *p = &ping[i];
        const int64_t trip = (p->back - p->sent) - (p->left - p->came);
        size_t at = kept < BEST ? kept++ : BEST;
        for (; at > 0; at--) {
            const struct mstx_ping *q = &ping[best[at - 1]];
            if ((q->back - q->sent) - (q->left - q->came) <= trip)
                break;
            if (at < BEST)
                best[at] = best[at - 1];
        }
        if (at < BEST)
            best[at] = i;
    }
    return kept;
}

static int by_value(const void *pa, const void *pb)
{
    const int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return a < b ? -1 : a > b;
}

static int64_t offset_by(const struct mstx_ping *p)
{
    return ((p->came - p->sent) + (p->left - p->back)) / 2;
}

/* The true offset lies within half a round trip of the offset of any ping. So the median of the ten
 * shortest is clamped to the interval of the shortest one: in a disturbed row all others may be
 * biased to one side. The uncertainty reaches from the result to the farther end of that
 * interval. */
API void mstx_clock_estimate(const struct mstx_ping *ping, size_t n, struct mstx_clock_point *out)
{
    ms_assert(n > 0);
    size_t best[BEST], kept = find_shortest(ping, n, best);
    int64_t offset[BEST];
    for (size_t i = 0; i < kept; i++)
        offset[i] = offset_by(&ping[best[i]]);
    qsort(offset, kept, sizeof *offset, by_value);
    const struct mstx_ping *p = &ping[best[0]];
    const int64_t unsure = ((p->back - p->sent) - (p->left - p->came) + 1) / 2;
    const int64_t median = (offset[(kept - 1) / 2] + offset[kept / 2]) / 2;
    const int64_t middle = offset_by(p), low = middle - unsure, high = middle + unsure;
    const int64_t held = median < low ? low : median > high ? high : median;
    *out = (struct mstx_clock_point){
        .at_ns = p->sent + (p->back - p->sent) / 2,
        .offset_ns = held,
        .uncertainty_ns = unsure + llabs(held - middle),
    };
}

API int64_t mstx_clock_now(void)
{
    return rt_clock_steady();
}

API uint64_t mstx_clock_host(void)
{
    uint8_t id[16];
    uint64_t half[2];
    rt_file_boot_id(id);
    memcpy(half, id, sizeof half);
    return half[0] ^ half[1] * 31;
}

API enum mstx_clock_wish mstx_clock_wish(void)
{
    const char *v = secure_getenv("MSTX_CLOCK_SYNC");
    if (v == NULL || (strcmp(v, "0") != 0 && strcmp(v, "1") != 0))
        return MSTX_CLOCK_IF_NEEDED;
    return v[0] == '1' ? MSTX_CLOCK_ALWAYS : MSTX_CLOCK_NEVER;
}

/* Ranks of one host share its clock. Compares the launcher's count of local ranks with that of all
 * ranks. The answer is the same on all ranks of a job, which matters because a collective call may
 * follow. */
API bool mstx_clock_one_host(void)
{
    static const char *const pairs[][2] = {{"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"},
                                           {"MPI_LOCALNRANKS", "PMI_SIZE"},
                                           {"LOCAL_WORLD_SIZE", "WORLD_SIZE"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const char *here = getenv(pairs[i][0]), *all = getenv(pairs[i][1]);
        if (here != NULL && all != NULL)
            return strcmp(here, all) == 0;
    }
    const char *nodes = getenv("SLURM_STEP_NUM_NODES");
    return nodes != NULL && strcmp(nodes, "1") == 0;
}

int64_t mstx_clock_every_ns(void)
{
    const char *v = secure_getenv("MSTX_CLOCK_EVERY");
    const long s = v != NULL ? strtol(v, NULL, 10) : 0;
    return (s > 0 && s < 86400 ? s : 60) * INT64_C(1000000000);
}

void mstx_clock_job(char *out, size_t cap)
{
    ms_assert(cap > 0);
    static const char *const names[] = {"PMIX_NAMESPACE", "PMI_JOBID", "TORCHELASTIC_RUN_ID",
                                        "SLURM_STEP_ID"};
    const char *job = NULL;
    for (size_t i = 0; job == NULL && i < sizeof names / sizeof *names; i++)
        job = getenv(names[i]);
    snprintf(out, cap, "%s", job != NULL ? job : "job");
    for (char *c = out; *c != '\0'; c++)
        *c = *c == '/' ? '_' : *c;
}

API void mstx_clock_tell(const struct mstx_clock_point *p)
{
    ms_assert(p->uncertainty_ns >= 0);
    struct mstx_rec rec = {.ticks = rt_ticks(),
                           .id = (uint64_t)p->offset_ns,
                           .name = p->uncertainty_ns > UINT32_MAX ? UINT32_MAX
                                                                  : (uint32_t)p->uncertainty_ns,
                           .type = MSTX_REC_SYNC,
                           .arg = (uint64_t)p->at_ns};
    if (!rt_is_running())
        return;
    rt_process_write(&rec);
}

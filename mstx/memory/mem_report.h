/* SPDX-License-Identifier: MIT
 *
 * mem_report: the answers of `msprobe memory`, found once and written as text or JSON.
 */
#ifndef MSTX_MEMORY_MEM_REPORT_H
#define MSTX_MEMORY_MEM_REPORT_H

#include "mstx/memory/mem_growth.h"
#include "mstx/memory/mem_peak.h"

#include "probe/base/jwrite.h"

/* The answers of one space. */
struct mstx_mem_answer {
    const struct mstx_mem_space *space;
    struct mstx_mem_peak peak;
    struct mstx_mem_growth growth;
};
struct mstx_mem_report {
    const char *path;
    const struct mstx_mem_log *log;
    MS_VEC(struct mstx_mem_answer) answers; /* the greatest peak first */
    /* Devices of one kind whose ranks differ: peaks of the least and the most, and their ranks. */
    bool has_ranks;
    uint64_t least, most;
    int32_t least_rank, most_rank;
};

/* Finds the answers; log must live as long as the report. */
enum ms_rc mstx__mem_report_make(struct mstx_mem_report *r, const char *path,
                                 const struct mstx_mem_log *log, struct ms_err *err) MS_MUST_USE;
void mstx__mem_report_free(struct mstx_mem_report *r);
/* Tells whether the peaks of ranks differ by more than a tenth. */
bool mstx__mem_ranks_differ(const struct mstx_mem_report *r);
/* What another setting of the allocator would change. */
enum mstx_mem_advice {
    MSTX_MEM_FITS,       /* nothing worth a change, or not known */
    MSTX_MEM_FRAGMENTED, /* much of what is reserved is not used, in holes */
    MSTX_MEM_WOULD_FIT   /* a failed request would fit into the free parts together */
};
enum mstx_mem_advice mstx__mem_advice(const struct mstx_mem_answer *a);
/* Tells whether there is something to act on: growth, a failed request, ranks out of balance. */
bool mstx__mem_has_findings(const struct mstx_mem_report *r);

/* Writes the text for people: one sentence for each answer, then tables of at most `most` rows
 * (0: all). */
void mstx__mem_report_text(const struct mstx_mem_report *r, size_t most, struct ms_buf *out);
void mstx__mem_report_json(const struct mstx_mem_report *r, size_t most, struct ms_jwrite *w);
/* Appends all answers as one table, CSV; a row's Result is "error" for a request that failed, "warning" for what every
 * step leaves behind. */
enum ms_rc mstx__mem_report_table(const struct mstx_mem_report *r, struct ms_buf *out,
                                  struct ms_err *err) MS_MUST_USE;
/* Write what the report has more or less than that of another run. */
void mstx__mem_against_text(const struct mstx_mem_report *r, const struct mstx_mem_report *old,
                            size_t most, struct ms_buf *out);
void mstx__mem_against_json(const struct mstx_mem_report *r, const struct mstx_mem_report *old,
                            size_t most, struct ms_jwrite *w);

#endif

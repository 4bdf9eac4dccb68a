/* SPDX-License-Identifier: MIT
 *
 * surroundings: what is known of a run beside its times: program, ranks, hosts, batch, and how much
 * each operation sends.  A step that takes longer because of these has no place to blame.
 */
#ifndef MSTX_DIFFER_SURROUNDINGS_H
#define MSTX_DIFFER_SURROUNDINGS_H

#include "mstx/differ/profile.h"

/* A communication operation in a run. */
struct mstx_traffic {
    char *op;
    double bytes; /* of a call, the mean */
};
struct mstx_run_facts {
    const char *path;    /* borrowed */
    size_t ranks, steps; /* ranks: processes with steps */
    int64_t hosts;
    char *program;                       /* of its first process with steps */
    double batch;                        /* elements of a batch, the mean; 0: unknown */
    MS_VEC(struct mstx_traffic) traffic; /* by name */
};

/* The facts are to be freed after a failure, too. */
enum ms_rc mstx__facts_read(struct mstx_run_facts *f, struct mstx_tl *tl,
                            const struct mstx_profile *p, struct ms_err *err) MS_MUST_USE;
void mstx__facts_free(struct mstx_run_facts *f);

/* Something beside the times in which two runs differ. */
enum { MSTX_FACTS_MAX = 12, MSTX_FACT_TEXT = 64 };
struct mstx_fact {
    char what[MSTX_FACT_TEXT], old[MSTX_FACT_TEXT], new[MSTX_FACT_TEXT];
};
/* Lists the facts that differ and are known of both runs; returns their number. */
size_t mstx__facts_differ(const struct mstx_run_facts *old, const struct mstx_run_facts *new,
                          struct mstx_fact fact[MSTX_FACTS_MAX]);

#endif

/* SPDX-License-Identifier: MIT
 *
 * findings: what is wrong with a run, one row of the table findings each.
 *
 * Findings are concluded once, when a run is imported, and stored in run.db, where `report` and the
 * viewers read them.
 */
#ifndef MSTX_CONCLUDE_FINDINGS_H
#define MSTX_CONCLUDE_FINDINGS_H

#include "mstx/rundb/run_query.h"

#include "probe/base/message.h"
#include "probe/base/vec.h"

enum mstx_severity { MSTX_INFO_FINDING, MSTX_WARNING_FINDING, MSTX_ERROR_FINDING };
struct mstx_finding {
    const char *kind;
    enum mstx_severity severity;
    int32_t rank;                  /* -1: none in particular */
    int64_t first_step, last_step; /* -1: none */
    double value;
    int64_t from_ns, to_ns; /* Unix time of what it is about; 0: steps and rank say when */
    struct ms_message said;
    char evidence[160]; /* a query that shows the rows it was concluded from; "": none */
};
typedef MS_VEC(struct mstx_finding) mstx_findings;

/* A new finding whose message has no arguments yet; NULL: no memory. */
struct mstx_finding *mstx__finding_add(mstx_findings *to, const char *kind,
                                       const struct ms_message_kind *message,
                                       enum mstx_severity severity, int32_t rank, double value);
/* Sets the message of a kind that is stored under that name with its arguments, and the sentence as
 * it is stored where there is no such kind. */
void mstx__finding_set_message(struct mstx_finding *f, struct ms_said said, struct ms_str sentence);
/* Adds the arguments pid, rank and name, by which people look for a process. */
void mstx__message_process(struct ms_message *m, int32_t rank, int64_t pid, struct ms_str name);

/* The kind of that name, which findings borrow; NULL: there is none. */
const char *mstx__finding_kind(struct ms_str text);
/* Is it about ranks that work together? */
bool mstx__finding_is_of_cluster(const char *kind);
const char *mstx_severity_text(enum mstx_severity s);
/* Puts the worst first; what concerns ranks that work together comes before the others. */
void mstx__findings_sort(mstx_findings *v);
/* The finding that explains the run best, about ranks that work together: the first line for people;
 * NULL: there is none. */
const struct mstx_finding *mstx_findings_headline(const mstx_findings *v);

/* Writes the rows of the table findings, and reads them back in the same order. */
struct ms_store;
enum ms_rc mstx__findings_save(const mstx_findings *v, struct ms_store *s,
                               struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx_findings_read(struct mstx_tl *tl, mstx_findings *v, struct ms_err *err) MS_MUST_USE;

#endif

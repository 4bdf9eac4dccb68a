/* SPDX-License-Identifier: MIT
 *
 * findings: problems of a run, each a row of the table findings.
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
    int32_t rank;                  /* -1: no single rank */
    int64_t first_step, last_step; /* -1: none */
    double value;
    int64_t from_ns, to_ns; /* Unix time to show in a viewer; 0: given by steps and rank */
    struct ms_message message;
    char evidence[160]; /* SQL that shows the rows from which it was concluded; "": none */
};
typedef MS_VEC(struct mstx_finding) mstx_findings;

/* Adds a finding whose message has no arguments yet; returns NULL when out of memory. */
struct mstx_finding *mstx__finding_add(mstx_findings *to, const char *kind,
                                       const struct ms_message_kind *message,
                                       enum mstx_severity severity, int32_t rank, double value);
/* The same of a kind that is not stored among the findings of a run, as advice is. */
struct mstx_finding *mstx__finding_begin(mstx_findings *to, const char *kind,
                                         const struct ms_message_kind *message,
                                         enum mstx_severity severity, int32_t rank, double value);
/* Sets the message from its stored name and arguments, or the stored sentence when the name is
 * unknown. */
void mstx__finding_set_message(struct mstx_finding *f, struct ms_stored_message message,
                               struct ms_str sentence);
/* Adds the arguments pid, rank and name, which identify a process. */
void mstx__message_process(struct ms_message *m, int32_t rank, int64_t pid, struct ms_str name);

/* Returns the kind with that name, for findings to borrow; NULL: unknown. */
const char *mstx__finding_kind(struct ms_str text);
/* Tells whether a kind is about several ranks together. */
bool mstx__finding_is_of_cluster(const char *kind);
const char *mstx_severity_text(enum mstx_severity s);
/* Sorts the worst first; findings about several ranks together come before others. */
void mstx__findings_sort(mstx_findings *v);
/* Returns the finding about several ranks together that explains the run best, shown as the
 * headline; NULL: none. */
const struct mstx_finding *mstx_findings_headline(const mstx_findings *v);

/* Writes the rows of the table findings, and reads them back in the same order. */
struct ms_store;
enum ms_rc mstx__findings_save(const mstx_findings *v, struct ms_store *s,
                               struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx_findings_read(struct mstx_tl *tl, mstx_findings *v, struct ms_err *err) MS_MUST_USE;

#endif

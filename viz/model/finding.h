/* SPDX-License-Identifier: MIT
 *
 * finding: the findings shown on the first screen of both viewers.
 *
 * The findings of a timeline are stored in its run.db, those of a comparison in its .vis.db. Here
 * both are one list, the most severe first, each with the place of its evidence.
 */
#ifndef VIZ_MODEL_FINDING_H
#define VIZ_MODEL_FINDING_H

#include "compare/graph/view/graph_view.h"
#include "viz/model/place.h"
#include "viz/words/words.h"

struct viz_reader;

/* From most to least severe. */
enum viz_severity { VIZ_ERROR, VIZ_WARNING, VIZ_INFO };

struct viz_finding {
    enum viz_severity severity;
    struct ms_str kind;            /* "straggler", "introduces", ... */
    struct ms_str text;            /* one sentence */
    struct ms_str ranks;           /* as in the database: "2", "0,1"; "" for none */
    int64_t first_step, last_step; /* -1: none */
    double value;
    struct viz_place place;
};

enum { VIZ_FINDINGS_MOST = 2000 }; /* of a timeline in the list */

struct viz_findings {
    MS_VEC(struct viz_finding) list;
    uint64_t unlisted[VIZ_INFO + 1]; /* further ones by severity; the list ends with their number */
    struct ms_arena *arena;
    enum viz_language language;
};

/* Tells whether a finding is about a rank: "0,3" lists its ranks. */
bool viz_finding_has_rank(const struct viz_finding *f, int64_t rank);
/* Returns the letter of a severity: E, W or i. */
char viz_severity_letter(enum viz_severity s);
const char *viz_severity_name(enum viz_severity s);
/* Sets the place of a run's finding: its own time range, or the cluster screen when the finding
 * is about all ranks. False: the range of its steps applies. rank, step: -1 for none. */
bool viz_finding_place(struct viz_place *to, struct ms_str kind, int64_t rank, int64_t step,
                       int64_t from_ns, int64_t to_ns);
/* Reads the findings of the open input; of a timeline the VIZ_FINDINGS_MOST most severe. */
enum ms_rc viz_findings_read(struct viz_findings *f, const struct viz_reader *r,
                             enum viz_language language, struct ms_err *err) MS_MUST_USE;
void viz_findings_free(struct viz_findings *f);

/* Sets the page to the node at which a comparison first goes wrong: the first suspect; where none was
 * searched or found, the earliest node, in the order in which calls ended, whose inputs agree with the golden side and whose outputs do not. The error
 * arises there, and later failures are inherited. It is searched among errors, or among warnings
 * when there are no errors. Without such a node, the earliest node of that state; without any, no
 * row. */
enum ms_rc viz_first_divergence(struct graph_view *v, struct graph_spot at, struct graph_page *page,
                                struct ms_err *err) MS_MUST_USE;

/* Findings that a viewer derives from a graph: kind, arguments ("?": optional). */
#define VIZ_FINDING_KINDS(X)                                                                       \
    X(divergence, "step rank errors warnings unmatched overflows? node?")                          \
    X(overflow, "nodes step rank")                                                                 \
    X(sure, "text percent")                                                                        \
    X(unlisted, "more")

#define VIZ_FINDING_KIND(name, args)                                                               \
    static const struct ms_message_kind viz_say_##name = {#name, args};
VIZ_FINDING_KINDS(VIZ_FINDING_KIND)

#endif

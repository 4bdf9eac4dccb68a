/* SPDX-License-Identifier: MIT
 *
 * notable: what a person should look at in curves: where numbers end, where the gradient jumps and what moved before
 * it, where a run leaves another one.
 */
#ifndef PROBE_TREND_NOTABLE_H
#define PROBE_TREND_NOTABLE_H

#include "probe/base/message.h"
#include "probe/trend/curves.h"

enum probe_notable_kind {
    PROBE_NOTABLE_NOT_FINITE, /* curve: the first that has no number any more; value: its last number */
    PROBE_NOTABLE_SPIKE, /* value: times the usual norm; curve: what moved first, `lead` steps before; its
                                 value over its usual one: `moved` */
    PROBE_NOTABLE_DEVIATION, /* curve: the first that differs; value: relative difference */
};

struct probe_notable {
    enum probe_notable_kind kind;
    int64_t step, lead, rank;
    const struct probe_curve *curve; /* NULL: none stands out */
    double value, moved;
    size_t others; /* curves with the same at this step */
};

struct probe_notables {
    MS_VEC(struct probe_notable) all; /* by step */
    double floor; /* of a comparison: what the runs differ by at their first step; 0: nothing */
};

/* Looks at one run. */
enum ms_rc probe_notables_find(struct probe_notables *f, const struct probe_curves *c,
                               struct ms_err *err) MS_MUST_USE;
/* Looks at a run beside another one. A difference counts when it is larger than `tolerance` and ten times larger than
 * what the runs differ by at their first step. */
enum ms_rc probe_notables_compare(struct probe_notables *f, const struct probe_curves *c,
                                  const struct probe_curves *golden, double tolerance,
                                  struct ms_err *err) MS_MUST_USE;
void probe_notables_free(struct probe_notables *f);

/* What is said of them: kind, arguments ("?": optional). */
#define PROBE_NOTABLE_KINDS(X)                                                                     \
    X(trend_end, "step rank curve metric stat value others?")                                      \
    X(trend_spike, "step rank times curve? metric? stat? lead? moved? others?")                    \
    X(trend_deviation, "step rank curve metric stat value others?")
/* Makes the message of one; stat: the statistic that the curves show. */
void probe_notable_tell(const struct probe_notable *n, const char *stat, struct ms_message *m);

#endif

/* SPDX-License-Identifier: MIT
 *
 * selfcheck: finds contradictions inside one dump, without a second run.
 *
 *     finite       gradients and outputs are numbers where their inputs are
 *     replica      parameters that ranks share are equal on them
 *     collective   outputs of a collective are equal in its group
 *     unchanged    parameters keep their values within a step, and change between steps
 *     mirror       backward runs against forward, with the shapes of forward
 *
 * The dump does not record which ranks share parameters, so this is inferred: a parameter is
 * reported when most ranks have one value and some another, or when the ranks are divided
 * differently than for other parameters of its kind.
 */
#ifndef COMPARE_CHECK_SELFCHECK_H
#define COMPARE_CHECK_SELFCHECK_H

#include "probe/base/par.h"
#include "probe/base/progress.h"
#include "probe/dump/dump.h"
#include "probe/dump/find.h"

enum self_kind {
    SELF_FINITE,
    SELF_REPLICA,
    SELF_COLLECTIVE,
    SELF_UNCHANGED,
    SELF_MIRROR,
    SELF_KINDS
};
/* "finite", ... */
extern const char *const self_kind_names[SELF_KINDS];

struct self_finding {
    enum self_kind kind;
    bool error;          /* false: a warning, which may have a legitimate reason */
    const char *pattern; /* "nan", "differs on one rank", ... */
    struct ms_str node;  /* name of the record */
    struct ms_str row;   /* name of the row; may be empty */
    struct ms_str text;  /* a sentence */
    int64_t rank, step;  /* -1: not known */
    uint32_t order;      /* position of the record in its dump */
    uint32_t more;       /* number of records with the same fault that are not listed */
};

/* Numbers of checks, so that "no finding" has a meaning. */
struct self_scope {
    size_t dumps, tensors, bad_tensors;
    size_t looked[SELF_KINDS]; /* checks of each kind */
    size_t unclear;            /* collectives whose outputs differ on all ranks */
};

struct self_check {
    struct probe_places places;
    MS_VEC(struct self_finding) findings; /* errors first, then in order of execution */
    MS_VEC(struct ms_str) failures;       /* reasons why dumps could not be read */
    struct self_scope scope;
    struct ms_arena *arena;
};

/* Checks all dumps under a path, opened with flags (PROBE_OPEN_TOLERANT). A dump that cannot be
 * read is listed in failures; an error means that none could be read. pool, par and bar,
 * which shows how far it is, may be NULL. The processes of par share the dumps, and process 0 gets the
 * result. */
enum ms_rc self_check_run(struct self_check *s, const char *path, unsigned flags,
                          struct ms_pool *pool, struct ms_par *par, struct ms_progress *bar,
                          struct ms_err *err) MS_MUST_USE;
void self_check_free(struct self_check *s);

#endif

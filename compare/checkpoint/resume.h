/* SPDX-License-Identifier: MIT
 *
 * resume: is a resumed run the continued one? Compares what a run saved when it stopped, or what it would
 * have saved had it gone on, with what the resumed run saved.
 *
 * With equal counters of steps every state has to be the same. When the second checkpoint is later, states
 * have to be ones that the first can have led to: counters have advanced by as much, second moments have
 * not shrunk faster than their decay, weights are still those of the same layer.
 */
#ifndef COMPARE_CHECKPOINT_RESUME_H
#define COMPARE_CHECKPOINT_RESUME_H

#include "compare/checkpoint/ckpt_measure.h"
#include "probe/base/vec.h"

/* What is wrong with a state, in the order in which one leads to the other: a state that is missing or
 * wrong at the start makes values differ later. */
enum resume_kind {
    RESUME_MISSING,   /* the resumed run has no such state */
    RESUME_SHAPE,     /* another shape */
    RESUME_DTYPE,     /* another type, or values that went through a narrower one */
    RESUME_SWAPPED,   /* the values of another state */
    RESUME_RESTARTED, /* a counter began anew */
    RESUME_COUNTER,   /* a counter or setting has another value */
    RESUME_RANDOM,    /* a random generator is in another state */
    RESUME_ZEROED,    /* moments began at zero again */
    RESUME_VALUE,     /* other values */
};

struct resume_finding {
    enum resume_kind kind;
    enum probe_ckpt_role role;
    struct ms_str name, other; /* other: with RESUME_SWAPPED */
    double relative;           /* of values: norm of the difference by the norm */
    int rank;                  /* internal: place in the chain of causes */
    char text[320];            /* a sentence */
};

struct resume_result {
    struct probe_ckpt *c[2];
    bool has_steps, later;
    double steps[2];                        /* counters of steps */
    MS_VEC(struct resume_finding) findings; /* the cause first */
    uint64_t tensors, values;               /* compared */
    uint64_t extra;                         /* states that the second has alone */
};

/* Compares checkpoint b of the resumed run with checkpoint a. */
enum ms_rc resume_check(struct resume_result *r, const char *a, const char *b,
                        struct ms_err *err) MS_MUST_USE;
void resume_free(struct resume_result *r);
/* Returns the word of a role: "optimizer". */
const char *resume_role_text(enum probe_ckpt_role role);
/* Returns the word of a kind for programs: "missing". */
const char *resume_kind_text(enum resume_kind kind);

#endif

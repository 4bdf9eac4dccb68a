/* SPDX-License-Identifier: MIT
 *
 * blame_pick: finds the records of both dumps that are to be judged: a suspect of the comparison, an
 * operator by its name, or all operators.
 */
#ifndef COMPARE_BLAME_BLAME_PICK_H
#define COMPARE_BLAME_BLAME_PICK_H

#include "compare/blame/blame.h"
#include "probe/base/arena.h"
#include "probe/base/pool.h"
#include "probe/base/vec.h"

/* A pair of records and where they lie. */
struct blame_pick {
    const char *target_json, *golden_json; /* dump.json of both */
    struct ms_str target, golden;          /* names of the records */
    int64_t rank, step;                    /* -1: unknown */
    uint32_t place;                        /* of the suspect; 0: it was not asked for as one */
};
struct blame_picks {
    struct ms_arena *arena;
    MS_VEC(struct blame_pick) list;
};

/* Picks a suspect of the comparison of both runs, from 1 on. */
enum ms_rc blame_pick_suspect(struct blame_picks *p, const char *target, const char *golden,
                              uint32_t place, struct ms_err *err) MS_MUST_USE;
/* Picks an operator of the target by its name, in the first pair of dumps that has it. */
enum ms_rc blame_pick_name(struct blame_picks *p, const char *target, const char *golden,
                           struct ms_str name, struct ms_err *err) MS_MUST_USE;
/* Picks all records that have the same name on both sides. */
enum ms_rc blame_pick_all(struct blame_picks *p, const char *target, const char *golden,
                          struct ms_err *err) MS_MUST_USE;
void blame_picks_free(struct blame_picks *p);

/* An opened dump of which a record is used. */
struct blame_opened {
    struct probe_dump *dump;
    char *tensors;
};
/* Opens a dump.json and finds a record in it; blame_close is needed even after a failure. */
enum ms_rc blame_open(struct blame_opened *o, const char *json, struct ms_str name,
                      struct blame_record *r, struct ms_err *err) MS_MUST_USE;
void blame_close(struct blame_opened *o);
/* Opens both records of a pair and judges them. */
enum ms_rc blame_judge_pick(const struct blame_pick *pick, struct blame *b, size_t limit,
                            struct ms_err *err) MS_MUST_USE;

#endif

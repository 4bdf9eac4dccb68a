/* SPDX-License-Identifier: MIT
 *
 * rank_pairs: finds which dumps of two runs are compared with each other.
 *
 * A path names one rank's files, a directory of ranks, or a directory of steps. Dumps of
 * both sides with the same numbers below their paths are a pair; two single ranks are a
 * pair whatever their numbers are.
 */
#ifndef COMPARE_GRAPH_RUN_RANK_PAIRS_H
#define COMPARE_GRAPH_RUN_RANK_PAIRS_H

#include "compare/graph/graph.h"
#include "probe/base/vec.h"
#include "probe/dump/find.h"

struct graph__rank_pair { /* dumps of one rank and step */
    const char *dir[2];   /* target, golden; NULL without a golden side */
    int64_t step, rank;
};

struct graph__rank_pairs {
    const struct graph_conf *conf;
    struct probe_places places[2];        /* own the directories' names */
    MS_VEC(struct graph__rank_pair) list; /* by step, then by rank */
};

/* Returns true when there is a golden side. */
bool graph__is_dual(const struct graph_conf *c);
/* Passes a formatted line to conf->note. */
void graph__note_line(const struct graph_conf *c, const char *fmt, ...) MS_PRINTF(2, 3);

/* Fills r->list. Call graph__free_rank_pairs even after an error. */
enum ms_rc graph__find_rank_pairs(struct graph__rank_pairs *r, const struct graph_conf *conf,
                                  struct ms_err *err) MS_MUST_USE;
void graph__free_rank_pairs(struct graph__rank_pairs *r);
/* Returns rank and step of a dump from its path below `top`; dir is not set. */
struct graph__rank_pair graph__numbers_of(const struct probe_place *p, const char *top);
/* Returns the part of the dump's directory below `top`. */
const char *graph__path_below(const struct probe_place *p, const char *top);
uint32_t graph__count_steps(const struct graph__rank_pairs *r);
/* Appends the ranks or steps that occur, each once, as a JSON list. */
enum ms_rc graph__put_numbers(struct ms_buf *out, const struct graph__rank_pairs *r, bool steps,
                              struct ms_err *err);

#endif

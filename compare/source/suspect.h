/* SPDX-License-Identifier: MIT
 *
 * suspect: raw suspects as the rules find them, and the list made from them.
 */
#ifndef COMPARE_SOURCE_SUSPECT_H
#define COMPARE_SOURCE_SUSPECT_H

#include "compare/observe/part.h"
#include "compare/source/source.h"

/* A suspect before sorting. */
struct source__raw {
    uint32_t part, node, leaf; /* leaf: index in part->leaves, or OBSERVE__NONE */
    uint32_t reader;           /* the node that shows another order of values, or OBSERVE__NONE */
    uint32_t seen;             /* the node whose values show the difference */
    uint8_t why, cls;
    bool forward;
    bool is_other;             /* explains the reader as the suspect there does, and goes with it */
    bool may_read_other_order; /* another order of what the node reads explains it as well */
    bool is_parting;  /* the values of both sides part here, so all others come behind it */
    uint32_t instead; /* golden node in whose place the node runs, or OBSERVE__NONE */
    float s, in, out, floor, factor;
};
/* Classes in order of importance; suspect_order.c refines the order. */
enum source__class { SOURCE__NUM, SOURCE__HARD, SOURCE__SOFT, SOURCE__STRUCTURE };

/* Tells whether a suspect is a cast that the next one reverts, so that it only drops digits. */
static inline bool source__is_reverted_cast(const struct source__raw *r)
{
    return r->why == CMP_WHY_EXTRA && r->cls == SOURCE__HARD;
}

struct cmp_source {
    MS_VEC(struct observe__part *) parts;
    MS_VEC(struct source__raw) raws;
    MS_VEC(struct cmp_suspect) list;
    struct ms_str undecided[CMP_UNDECIDED]; /* operators whose tensors would decide */
    size_t nundecided;
    MS_VEC(struct ms_stored_message) notes;
    struct ms_arena *arena;
    bool found;
};

/* Sorts the raw suspects, assigns roles and fills the list. */
enum ms_rc source__rank_suspects(struct cmp_source *s, struct ms_err *err);
/* Writes the notes on the runs as a whole. Call after judging. */
enum ms_rc source__note(struct cmp_source *s, struct ms_err *err);
/* Copies a message into the arena of the search. */
enum ms_rc source__keep_message(struct cmp_source *s, const struct ms_message *m,
                                struct ms_stored_message *out, struct ms_err *err);
/* Writes the sentence and the pattern of a suspect. */
enum ms_rc source__describe(struct cmp_source *s, const struct source__raw *raw,
                            struct cmp_suspect *out, struct ms_err *err);
/* Describes the pattern of a difference, such as "sign flipped"; returns false when none is
 * recognized. place: of the suspect in the list. */
bool source__find_pattern(const struct observe__part *p, const struct source__raw *r,
                          uint32_t place, struct ms_buf *b);
/* Finds the path of the module around a node; empty where it is unknown. */
enum ms_rc source__find_module(const struct observe__part *p, unsigned side, struct ms_str node,
                               struct ms_arena *arena, struct ms_str *out, struct ms_err *err);

#endif

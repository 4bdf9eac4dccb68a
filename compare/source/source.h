/* SPDX-License-Identifier: MIT
 *
 * source: which operator introduces the difference between two runs.
 *
 * A difference travels: behind the operator that makes it, everything differs.  So
 * each node is held against its own context - what it read, its parameters, its
 * forward partner, the other ranks of its collective - and against the noise that
 * the pair of runs has shown so far.  What comes out more wrong than both explain
 * is a suspect.  Suspects are listed in order of execution, the strong ones first.
 *
 *     struct cmp_source *s;
 *     cmp_source_new(&s, err);
 *     for each rank and step:
 *         cmp_open(&c, ...);  cmp_measure(c, ...);
 *         cmp_source_add(s, c, rank, step, pool, err);   part 0, 1, ...
 *         cmp_close(c);                                  it is not needed any more
 *     cmp_source_find(s, err);
 *     n = cmp_source_suspects(s, &list);                 empty: nothing is wrong
 *     v = cmp_source_node(s, part, target_node);         role of any node
 *     cmp_source_free(s);
 *
 * The result depends on the dumps alone: not on threads, nor on the order in which
 * ranks and steps were added.
 */
#ifndef COMPARE_SOURCE_H
#define COMPARE_SOURCE_H

#include "compare/compare.h"

/* What a node does with the difference. */
enum cmp_role {
    CMP_ROLE_CLEAN, /* no difference beyond the noise, before or behind it */
    CMP_ROLE_INTRODUCES,
    CMP_ROLE_AMPLIFIES,
    CMP_ROLE_PROPAGATES,
    CMP_ROLE_ABSORBS,
    CMP_ROLES
};
/* "clean", "introduces", ... */
extern const char *const cmp_role_names[CMP_ROLES];

/* The rule that made a suspect. */
enum cmp_why {
    CMP_WHY_FLAG,      /* NaN or inf comes out and none went in */
    CMP_WHY_DIFFERS,   /* md5: equal inputs, another output */
    CMP_WHY_VALUE,     /* the output differs more than inputs and noise explain */
    CMP_WHY_NORM,      /* its norm does, below the noise of single elements */
    CMP_WHY_PRECEDENT, /* the first difference at all, where an equal call was exact before */
    CMP_WHY_ROUNDED,   /* the output holds no more digits than a lower type has */
    CMP_WHY_PARAMETER, /* a parameter differs */
    CMP_WHY_INPUT,     /* data that no node made differs */
    CMP_WHY_WIRING,    /* an input comes from another node than on the golden side */
    CMP_WHY_MISSING,   /* the target does not have this node */
    CMP_WHY_EXTRA,     /* the golden side does not */
    CMP_WHY_MOVED,     /* it runs at another place */
    CMP_WHY_SHAPE,
    CMP_WHY_DTYPE,
    CMP_WHY_GRAD,   /* requires_grad */
    CMP_WHY_SCALAR, /* a plain argument */
    CMP_WHYS
};
/* "flag", "differs", ... */
extern const char *const cmp_why_names[CMP_WHYS];

struct cmp_suspect {
    uint32_t place;                    /* 1 is the one to look at first */
    uint32_t part;                     /* the cmp_source_add that it is of, counted from 0 */
    uint32_t target_node, golden_node; /* of that pair of dumps; MS_MAP_NONE: it has none */
    struct ms_str target, golden;      /* their names; p is NULL where there is none */
    struct ms_str module;              /* around it, by construct.json; may be empty */
    int rank, step;                    /* -1: not known */
    const int *ranks;                  /* all ranks on which it is one */
    size_t nranks;
    enum cmp_why why;
    enum cmp_role role;
    const struct ms_str *group; /* target nodes that run in place of the golden one, itself too */
    size_t ngroup;
    /* Relative differences of what goes in and what comes out, what noise explains of it, and how
     * many times that much it is (at least 1); NaN where there is no such figure. */
    double in, out, floor, factor;
    double score;        /* log10 of the factor; what kind of thing it is where there is none */
    size_t later;        /* nodes behind it that carry a difference on */
    const char *pattern; /* "scaled by 2", "sign flipped", ...; NULL: none is known */
    struct ms_str text;  /* one sentence of evidence */
};

/* Of one node. */
struct cmp_verdict {
    enum cmp_role role;
    float in, out, floor; /* NaN: it has no partner or nothing that can be measured */
    uint32_t suspect;     /* its place in the list, 0: it is none */
};

struct cmp_source;

enum ms_rc cmp_source_new(struct cmp_source **s, struct ms_err *err) MS_MUST_USE;
void cmp_source_free(struct cmp_source *s);
/* Observe a pair of dumps; tensor dumps must have been measured.  -1: rank or step is not known.
 * pool may be NULL. */
enum ms_rc cmp_source_add(struct cmp_source *s, const struct cmp *c, int rank, int step,
                          struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
/* Judge what was added.  Once, before the questions below. */
enum ms_rc cmp_source_find(struct cmp_source *s, struct ms_err *err) MS_MUST_USE;

/* In order; the list lives as long as s. */
size_t cmp_source_suspects(const struct cmp_source *s, const struct cmp_suspect **list);
/* What holds for the runs as a whole and is nobody's fault, one line each: other precision, another
 * start. */
size_t cmp_source_notes(const struct cmp_source *s, const struct ms_str **list);
/* All nodes of the target, by step, rank and order of execution. */
struct cmp_source_place { /* zero to start */
    size_t part;
    uint32_t node;
};
struct cmp_source_node {
    struct ms_str target, golden; /* p is NULL where it has no partner */
    int rank, step;
    struct cmp_verdict verdict;
};
bool cmp_source_next(const struct cmp_source *s, struct cmp_source_place *at,
                     struct cmp_source_node *out);
/* part as above. */
struct cmp_verdict cmp_source_node(const struct cmp_source *s, uint32_t part, uint32_t target_node);

#endif

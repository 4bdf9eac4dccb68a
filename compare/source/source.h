/* SPDX-License-Identifier: MIT
 *
 * source: finds the operator that introduces the difference between two runs.
 *
 * After the operator that introduces a difference, everything differs. Therefore each
 * node is compared with its own context (inputs, parameters, forward partner, the other
 * ranks of its collective) and with the noise that the pair of runs has shown so far. A
 * node whose output differs by more than both explain is a suspect. Suspects are listed
 * in execution order, strong ones first.
 *
 *     struct cmp_source *s;
 *     cmp_source_new(&s, err);
 *     for each rank and step:
 *         cmp_open(&c, ...);  cmp_measure(c, ...);
 *         cmp_source_add(s, c, rank, step, pool, err);   part 0, 1, ...
 *         cmp_close(c);                                  c is not needed any more
 *     cmp_source_find(s, err);
 *     n = cmp_source_suspects(s, &list);                 0: no suspect
 *     v = cmp_source_node(s, part, target_node);         role of any node
 *     cmp_source_free(s);
 *
 * The result depends on the dumps alone: not on threads, nor on the order in which
 * ranks and steps were added.
 */
#ifndef COMPARE_SOURCE_SOURCE_H
#define COMPARE_SOURCE_SOURCE_H

#include "compare/compare.h"

#include "probe/base/message.h"

/* Effect of a node on a difference. */
enum cmp_role {
    CMP_ROLE_CLEAN, /* no difference beyond noise in its inputs and outputs */
    CMP_ROLE_INTRODUCES,
    CMP_ROLE_AMPLIFIES,
    CMP_ROLE_PROPAGATES,
    CMP_ROLE_ABSORBS,
    CMP_ROLES
};
/* Names of the roles: "clean", "introduces", ... */
extern const char *const cmp_role_names[CMP_ROLES];

/* The rule that found a suspect. */
enum cmp_why {
    CMP_WHY_FLAG,    /* NaN or infinity comes out and none went in */
    CMP_WHY_DIFFERS, /* md5: equal inputs, different output */
    CMP_WHY_VALUE,   /* the output differs by more than inputs and noise explain */
    /* the norm of the output differs by more than explained, its elements do not */
    CMP_WHY_NORM,
    CMP_WHY_PRECEDENT, /* first difference of exact runs, although an equal call was exact */
    CMP_WHY_ROUNDED,   /* the output has only the digits of a lower type */
    CMP_WHY_PARAMETER, /* a parameter differs */
    CMP_WHY_INPUT,     /* an input that no node made differs */
    CMP_WHY_WIRING,    /* an input comes from another node than on the golden side */
    CMP_WHY_MISSING,   /* the target lacks this node */
    CMP_WHY_EXTRA,     /* the golden side lacks this node */
    CMP_WHY_MOVED,     /* the node runs at another position */
    CMP_WHY_SHAPE,
    CMP_WHY_DTYPE,
    CMP_WHY_GRAD,   /* requires_grad differs */
    CMP_WHY_SCALAR, /* a plain argument differs */
    CMP_WHY_UPDATE, /* the update writes other parameters, and the gradients agree */
    CMP_WHY_BRANCH, /* gradients part here, and the forward passes agree */
    CMP_WHYS
};
/* Names of the rules: "flag", "differs", ... */
extern const char *const cmp_why_names[CMP_WHYS];

struct cmp_suspect {
    uint32_t place;                    /* 1: look at this suspect first */
    uint32_t part;                     /* index of its cmp_source_add, from 0 */
    uint32_t target_node, golden_node; /* nodes of that pair of dumps, or MS_MAP_NONE */
    struct ms_str target, golden;      /* names of the nodes; p is NULL where there is none */
    struct ms_str module;              /* module around it, from construct.json; may be empty */
    int rank, step;                    /* -1: unknown */
    const int *ranks;                  /* all ranks on which the node is a suspect */
    size_t nranks;
    enum cmp_why why;
    enum cmp_role role;
    /* target nodes that run in place of the golden node, including target */
    const struct ms_str *group;
    size_t ngroup;
    /* Relative difference of inputs and outputs, the difference that noise explains, and the ratio
     * of out to what is explained, at least 1. NaN: unknown. */
    double in, out, floor, factor;
    double
        certainty; /* probability that this is the mistake; those of all suspects sum up to less than 1 */
    double score; /* log10 of the factor; a constant of the rule where there is no factor */
    /* another order of what the node reads, which statistics do not show, explains it as well */
    bool may_read_other_order;
    /* target node that may read values of this node's input in another order; MS_MAP_NONE: this is no such suspect */
    uint32_t reader;
    size_t later;        /* number of later nodes that carry a difference on */
    size_t more;         /* number of other nodes that are suspects for the same reason */
    const char *pattern; /* "scaled by 2", "sign flipped", ...; NULL: unknown */
    struct ms_stored_message message; /* the evidence, see compare/source/suspect_kinds.h */
};

/* Verdict on one node. */
struct cmp_verdict {
    enum cmp_role role;
    float in, out, floor; /* NaN: no partner, or nothing was measured */
    uint32_t suspect;     /* place in the list of suspects; 0: it is none */
};

struct cmp_source;

enum ms_rc cmp_source_new(struct cmp_source **s, struct ms_err *err) MS_MUST_USE;
void cmp_source_free(struct cmp_source *s);
/* Observes a pair of dumps; tensor dumps must have been measured. rank or step is -1 where unknown.
 * pool may be NULL. */
enum ms_rc cmp_source_add(struct cmp_source *s, const struct cmp *c, int rank, int step,
                          struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
/* Judges all parts that were added. Call once, before the functions below. */
enum ms_rc cmp_source_find(struct cmp_source *s, struct ms_err *err) MS_MUST_USE;

/* Returns the number of suspects and sets *list to them, suspect 1 first. s owns the list. */
size_t cmp_source_suspects(const struct cmp_source *s, const struct cmp_suspect **list);
enum { CMP_UNDECIDED = 3 };
/* Returns how many operators, at most CMP_UNDECIDED, should be dumped as tensors to decide, and sets *names
 * to them. 0: nothing differs, or suspect 1 is more likely right than wrong and reads no values that may be in another
 * order. */
size_t cmp_source_undecided(const struct cmp_source *s, const struct ms_str **names);
/* Returns the number of notes: how the runs differ as a whole without a fault, such as another
 * precision or other initial parameters. */
size_t cmp_source_notes(const struct cmp_source *s, const struct ms_stored_message **list);
/* Position in the iteration over all nodes of the target, by step, rank and execution order. */
struct cmp_source_place { /* start with zeros */
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
/* Returns the verdict on a node of the target; part as in cmp_suspect. */
struct cmp_verdict cmp_source_node(const struct cmp_source *s, uint32_t part, uint32_t target_node);

#endif

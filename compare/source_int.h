/* SPDX-License-Identifier: MIT
 *
 * source_int: what the stages of the error source share.
 *
 *     cmp ─► value: leaves as numbers ─► flow: who made which input ─┐
 *         └► pair: nodes side by side ───────────────────────────────┴► observe: leaf pairs
 *                 part 0, 1, ... ─► judge: contexts, floors, rules ─► rank ─► text
 *
 * Of two of a kind, 0 is the golden side and 1 the target.
 */
#ifndef COMPARE_SOURCE_INT_H
#define COMPARE_SOURCE_INT_H

#include "compare/align.h"
#include "compare/cmp_int.h"
#include "compare/source.h"
#include "compare/source_value.h"

#define SOURCE__NONE UINT32_MAX

/* ---- side: one dump as values and who made them ------------------------------- */

struct source__side {
    const struct probe_dump *dump;
    struct source__value *value; /* by row */
    bool borrowed;               /* value is the comparison's */
    uint32_t *maker; /* by row: the node that wrote what is read there, or what a module hands on */
};

/* Read all rows that have not been read; the arrays are freed by source__side_free. */
enum ms_rc source__read(struct source__side *s, struct ms_pool *pool, struct ms_err *err);
void source__side_free(struct source__side *s);
static inline bool source__is_input(const struct probe_row *r)
{
    return r->section <= PROBE_SEC_INPUT;
}
static inline bool source__is_output(const struct probe_row *r)
{
    return r->section == PROBE_SEC_OUTPUT || r->section >= PROBE_SEC_PGRAD;
}

/* ---- flow: who made which input --------------------------------------------- */

enum ms_rc source__trace(struct source__side *s, struct ms_err *err);

/* ---- op: what an operator's name says ----------------------------------------- */

enum source__op_flags {
    SOURCE__SWITCH = 1 << 0,  /* passes gradients through a mask made of its input */
    SOURCE__COMM = 1 << 1,    /* its output depends on other ranks */
    SOURCE__RECEIVE = 1 << 2, /* ... on what one of them sent */
    SOURCE__SEND = 1 << 3,
    SOURCE__CAST = 1 << 4,    /* changes nothing but the type */
    SOURCE__WEIGHED = 1 << 5, /* arguments from the second on are parameters */
    SOURCE__LOOKUP = 1 << 6,  /* the second argument is a parameter */
    SOURCE__NORMS = 1 << 7,   /* layer_norm and its like, which have an eps */
    SOURCE__DROPS = 1 << 8,
    SOURCE__MASKS = 1 << 9,
    SOURCE__ADDS = 1 << 10,
    SOURCE__WILD = 1 << 11,  /* its backward may make differences much larger */
    SOURCE__EXACT = 1 << 12, /* moves values or rounds each once: equal bits give equal bits */
    SOURCE__EVEN = 1 << 13,  /* its backward hands on gradients as they are */
};
unsigned source__op_flags(struct ms_str api);

/* ---- part: one rank and step -------------------------------------------------- */

enum source__attr {
    SOURCE__SHAPE = 1 << 0,
    SOURCE__DTYPE = 1 << 1,
    SOURCE__GRAD = 1 << 2,
    SOURCE__SCALAR = 1 << 3
};
enum source__leaf_flags {
    SOURCE__FLAGGED = 1 << 0,  /* NaN or inf on one side alone */
    SOURCE__MEASURED = 1 << 1, /* e says something */
    SOURCE__REAL = 1 << 2,     /* floats */
    SOURCE__IS_OUT = 1 << 3,
    SOURCE__IS_PARAM = 1 << 4,
    SOURCE__ROOT = 1 << 5,        /* read, and made by no node on either side */
    SOURCE__OPPOSITE = 1 << 6,    /* the statistics are those of the negative */
    SOURCE__SAME_SET = 1 << 7,    /* equal statistics, though the values differ */
    SOURCE__PLAINLY = 1 << 8,     /* a plain value */
    SOURCE__FINE_GOLDEN = 1 << 9, /* holds numbers that its type cannot hold */
    SOURCE__FINE_TARGET = 1 << 10,
    SOURCE__CLIPPED = 1 << 11, /* the target's maximum is lower, its minimum the same */
    SOURCE__SHIFTED = 1 << 12, /* maximum, minimum and mean moved alike */
    SOURCE__COARSE = 1 << 13, /* the target's extremes fit into a lower type than the golden ones */
    SOURCE__FINE = 1 << 14,   /* ... do not fit into any */
    SOURCE__RESUMMED = 1 << 15, /* equal extremes, and sums that differ in their last digits */
};

/* A row of the target and its partner. */
struct source__leaf {
    uint32_t row[2];   /* SOURCE__NONE: that side has no such row */
    uint32_t maker[2]; /* nodes of this part, SOURCE__NONE */
    float e, en;       /* relative difference; of the norm alone */
    float scale;       /* the factor between the two sides; NaN: there is none */
    float count;       /* elements */
    float noise;       /* difference of a second run; 0: not known */
    uint32_t value;    /* hash: of the golden value; of plain values, of the difference */
    uint32_t path;     /* in part->paths */
    uint32_t said;     /* in part->said, SOURCE__NONE */
    uint16_t flags;
    uint8_t attrs, dtype[2];
};

enum source__node_flags {
    SOURCE__IN_FLAGGED = 1 << 0,
    SOURCE__OUT_FLAGGED = 1 << 1,
    SOURCE__OUT_MEASURED = 1 << 2,
    SOURCE__TURNED = 1 << 3, /* what comes out has the other sign, nothing that goes in has */
    SOURCE__BEHIND = 1 << 4, /* it is made of what the first inexact operator made */
};

struct source__node {
    uint32_t id[2];       /* of the dumps; SOURCE__NONE */
    uint32_t leaf, nleaf; /* in part->leaves */
    uint32_t forward;     /* node of this part that this one is the backward of */
    uint32_t op;
    bool moved;   /* it runs at another place than on the golden side */
    bool is_read; /* a later node of either side reads what it made */
    bool young;   /* too little was seen before it to know the noise */
    uint8_t kind, dir;
    /* what the judge finds out */
    uint8_t flags, role;
    uint8_t attrs_in, attrs_out;
    float in, in_norm, out, out_norm, floor, floor_norm, rho, rho_norm;
    float tiny;       /* the part of the floor that types explain */
    uint8_t coarse;   /* the coarsest low type, MS_DT_NONE */
    float unit;       /* rounding that its output carries: its own, or of what it was made of */
    uint32_t suspect; /* place in the list */
};

struct source__op {
    struct ms_str name; /* "Functional.linear" */
    unsigned flags;
};

/* How a plain value or a shape is written on both sides; p is NULL where it is not. */
struct source__said {
    struct ms_str text[2];
};

struct source__part {
    int rank, step;
    uint32_t number;
    enum probe_mode mode;
    bool cross;    /* two frameworks or programs: other operators, other arguments */
    bool finite;   /* ... and nothing of the golden side is NaN or inf, whatever is its partner */
    bool has_apis; /* modules are there for the eye only */
    char *path[2]; /* of the dumps */
    struct ms_map ops_by_name;
    MS_VEC(struct source__op) ops;
    MS_VEC(struct source__node) nodes; /* in order of execution */
    MS_VEC(struct source__leaf) leaves;
    MS_VEC(struct ms_str) names[2]; /* by node of the dump */
    MS_VEC(uint32_t) by_target;     /* node of this part by node of the target */
    MS_VEC(uint32_t) members;       /* target nodes of fused groups: node, n, members ... */
    MS_VEC(struct ms_str) paths;    /* of the target's rows, then of the golden ones */
    MS_VEC(struct source__said) said;
    uint32_t golden_paths;             /* where those begin */
    float root_floor, root_floor_norm; /* NaN: not known */
    float median;                      /* of all differences of this part */
    /* what makes the runs as a whole differ */
    uint8_t other[2];                /* golden and target type that most often go together ... */
    double other_share, other_noise; /* ... in that share of the outputs; what it explains */
    uint32_t parameters, unlike;     /* distinct ones; those far apart */
    bool other_start;                /* most of them are */
    struct ms_arena *arena;
};

/* ---- leaf: two values side by side --------------------------------------------- */

enum { SOURCE__NORM_COUNT = 64 }; /* of fewer elements a norm averages nothing */

/* What two values say of each other, by their statistics or digests; NULL: that side has none. */
void source__compare(const struct source__value *golden, const struct source__value *target,
                     enum probe_mode mode, bool cross, struct source__leaf *leaf);

/* Facts that a pair of tensor files holds. */
struct source__facts {
    double e;      /* relative L2 of elements finite on both sides; of whole numbers, the root of
                      the share that differs */
    double e_nz;   /* e without elements that are zero on one side alone */
    bool flagged;  /* NaN or inf on one side alone */
    bool measured; /* both files could be read and have one shape */
};
enum ms_rc source__look(const struct cmp *c, uint32_t golden_row, uint32_t target_row,
                        struct source__facts *facts, struct ms_err *err);

/* ---- pair: which node is which ------------------------------------------------- */

struct source__pairing {
    const struct cmp *c;
    const struct probe_dump *dump[2];
    const struct source__side *side[2];
    struct ms_pool *pool;
    uint32_t *mate[2];          /* by node, SOURCE__NONE */
    bool *moved;                /* by node of the target: it runs at another place */
    uint32_t *row_mate;         /* by target row; NULL: rows meet by their paths */
    const struct cmp_align *al; /* of two frameworks; NULL: rows meet by their paths */
    struct cmp_align *own;      /* what was made here for lack of another */
    uint32_t *golden_path;      /* by path of the target */
};
enum ms_rc source__pair(struct source__pairing *q, const struct cmp *c,
                        const struct source__side side[2], bool cross, struct ms_pool *pool,
                        struct ms_err *err);
/* Are these two programs, of two frameworks or of operators that the other does not call? */
enum ms_rc source__is_cross(const struct cmp *c, bool *cross, struct ms_err *err);
/* Mates of forward operators of one framework; *done: false when the runs are too far apart. */
enum ms_rc source__align(struct source__pairing *q, bool *done, struct ms_err *err);
void source__pairing_free(struct source__pairing *q);

/* Of two programs: forget differences of values that have nothing to do with each other. */
enum ms_rc source__settle_cross(struct source__part *p, struct ms_err *err);

/* Pair the nodes and observe their leaves. */
enum ms_rc source__observe(struct source__part *p, const struct cmp *c, struct ms_pool *pool,
                           struct ms_err *err);
void source__part_free(struct source__part *p);
/* ---- judge -------------------------------------------------------------------- */

/* A suspect before the list is settled. */
struct source__raw {
    uint32_t part, node, leaf; /* leaf: of part->leaves, SOURCE__NONE */
    uint8_t why, cls;
    bool forward;
    float s, in, out, floor, factor;
};
/* In order of importance, but for the rules of ranking. */
enum source__class { SOURCE__NUM, SOURCE__HARD, SOURCE__SOFT, SOURCE__STRUCTURE };

struct cmp_source {
    MS_VEC(struct source__part *) parts;
    MS_VEC(struct source__raw) raws;
    MS_VEC(struct cmp_suspect) list;
    MS_VEC(struct ms_str) notes;
    struct ms_arena *arena;
    bool found;
};

/* What goes into a collective or is sent, on any rank. */
struct source__context {
    float e, en;
    float told_e, told_s; /* what suspects made of it, and how strong those are */
    uint8_t flags, attrs;
};
struct source__comms {
    struct ms_map names; /* "STEP/NAME" -> context */
    MS_VEC(struct source__context) list;
    struct ms_arena *arena;
};
enum ms_rc source__gather_comms(const struct cmp_source *s, struct source__comms *comms,
                                struct ms_err *err);
void source__comms_free(struct source__comms *comms);
struct source__context *source__comm_of(const struct source__comms *comms,
                                        const struct source__part *p, const struct source__node *n);

/* Parameters further apart than that belong to another model, or to another moment of it. */
#define SOURCE__UNLIKE 0.02

/* Judge a part: what is suspect goes to s->raws.  explained: an earlier step went wrong, so other
 * parameters are its consequence. */
enum ms_rc source__judge(struct cmp_source *s, uint32_t part, const struct source__comms *comms,
                         bool explained, struct ms_err *err);
/* Drop raw suspects that only seem to make worse what an earlier one made. */
enum ms_rc source__drop_explained(struct cmp_source *s, const struct source__comms *comms,
                                  struct ms_err *err);
/* Sort the raw suspects, settle roles, and write the list. */
enum ms_rc source__rank(struct cmp_source *s, struct ms_err *err);
/* What holds for the runs as a whole, after judging. */
enum ms_rc source__note(struct cmp_source *s, struct ms_err *err);
/* The sentence and the pattern of a suspect. */
enum ms_rc source__tell(struct cmp_source *s, const struct source__raw *raw,
                        struct cmp_suspect *out, struct ms_err *err);
/* What the difference looks like, where that is known; place: of the suspect in the list. */
bool source__find_pattern(const struct source__part *p, const struct source__raw *r, uint32_t place,
                          struct ms_buf *b);
/* Path of the module around a node; empty where it is not known. */
enum ms_rc source__find_module(const struct source__part *p, unsigned side, struct ms_str node,
                               struct ms_arena *arena, struct ms_str *out, struct ms_err *err);
/* How coarse a leaf's types are; *differ: the sides have different ones. */
double source__roundoff(const struct source__leaf *l, bool *differ);

static inline struct ms_str source__name(const struct source__part *p, unsigned side, uint32_t id)
{
    return id != SOURCE__NONE ? p->names[side].p[id] : MS_STR_NONE;
}

#endif

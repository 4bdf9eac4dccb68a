/* SPDX-License-Identifier: MIT
 *
 * part: the observations of one rank and step.
 *
 * In arrays of two, index 0 is the golden side and 1 the target.
 */
#ifndef COMPARE_OBSERVE_PART_H
#define COMPARE_OBSERVE_PART_H

#include "compare/compare.h"
#include "compare/read/leaf_values.h"

#define OBSERVE__NONE UINT32_MAX

enum observe__attr {
    OBSERVE__SHAPE = 1 << 0,
    OBSERVE__DTYPE = 1 << 1,
    OBSERVE__GRAD = 1 << 2,
    OBSERVE__SCALAR = 1 << 3
};
enum observe__leaf_flags {
    OBSERVE__FLAGGED = 1 << 0,  /* NaN or infinity on one side alone */
    OBSERVE__MEASURED = 1 << 1, /* e is known */
    OBSERVE__REAL = 1 << 2,     /* floating point */
    OBSERVE__IS_OUT = 1 << 3,
    OBSERVE__IS_PARAM = 1 << 4,
    OBSERVE__ROOT = 1 << 5, /* an input that no node wrote, on either side */
    /* the target's statistics are those of the negated golden value */
    OBSERVE__OPPOSITE = 1 << 6,
    OBSERVE__SAME_SET = 1 << 7,    /* statistics are equal although the values differ */
    OBSERVE__PLAINLY = 1 << 8,     /* a plain value */
    OBSERVE__FINE_GOLDEN = 1 << 9, /* golden numbers have more digits than their type holds */
    OBSERVE__FINE_TARGET = 1 << 10,
    OBSERVE__CLIPPED = 1 << 11,  /* the target's maximum is lower, its minimum equal */
    OBSERVE__SHIFTED = 1 << 12,  /* maximum, minimum and mean moved by the same amount */
    OBSERVE__COARSE = 1 << 13,   /* the target's extremes fit a lower type than the golden ones */
    OBSERVE__FINE = 1 << 14,     /* the target's extremes fit no lower type */
    OBSERVE__RESUMMED = 1 << 15, /* extremes are equal, sums differ in their last digits */
};

/* A row of the target and the golden row that is its partner. */
struct observe__leaf {
    uint32_t row[2];   /* OBSERVE__NONE: that side has no such row */
    uint32_t maker[2]; /* nodes of this part, or OBSERVE__NONE */
    float e, en;       /* relative difference; that of the norm */
    float scale;       /* target divided by golden; NaN: no common factor */
    float count;       /* number of elements */
    float norm;        /* the larger of both sides' norms; 0: unknown */
    float noise;       /* difference to a second golden run; 0: unknown */
    uint32_t value;    /* hash of the golden value; of a plain value, of both values */
    uint32_t target;   /* of two tensors: hash of the target's value */
    uint32_t path;     /* index in part->paths */
    uint32_t texts;    /* index in part->said, or OBSERVE__NONE */
    uint16_t flags;
    uint8_t attrs, dtype[2];
};

/* Verdict on an operator that only one side has. */
enum observe__structure {
    OBSERVE__PAIRED,
    OBSERVE__HARMLESS,  /* the values behind it agree */
    OBSERVE__UNDECIDED, /* the values before it differ already */
    OBSERVE__HARMFUL,   /* the values before it agree and those behind it do not */
    OBSERVE__REPEATED,  /* it computes again what an earlier operator has computed */
};

enum observe__node_flags {
    OBSERVE__IN_FLAGGED = 1 << 0,
    OBSERVE__OUT_FLAGGED = 1 << 1,
    OBSERVE__OUT_MEASURED = 1 << 2,
    OBSERVE__TURNED = 1 << 3, /* an output has the opposite sign, but no input */
    OBSERVE__BEHIND = 1 << 4, /* depends on the first inexact operator */
};

struct observe__node {
    uint32_t id[2];       /* nodes of the dumps; or OBSERVE__NONE */
    uint32_t leaf, nleaf; /* range in part->leaves */
    uint32_t forward;     /* for a backward node: its forward node in this part */
    uint32_t op;
    bool replaced;    /* its region has operators of both sides */
    bool recomputed;  /* one side computes it again during backward */
    bool second_pass; /* a later backward pass has replaced its record */
    bool moved;       /* it runs at another position than on the golden side */
    bool is_read;     /* a later node of either side reads its output */
    bool lasts;       /* a later value carries the difference of its output on */
    bool fades;       /* its output differs, or has no counterpart, and no later value does */
    uint8_t backward; /* bit set of the sides that have its backward */
    bool young;       /* too few values precede the node to know the noise */
    uint8_t kind, dir;
    /* results of judging */
    uint8_t flags, role, structure;
    uint32_t region; /* first node of its region; see regions.h */
    /* for the first node of a region: difference of the values after the region; NaN: no node reads
     * them */
    float border;
    uint8_t attrs_in, attrs_out;
    float in, in_norm, out, out_norm, floor, floor_norm, rho, rho_norm;
    float tiny;       /* the part of the floor that types explain */
    uint8_t coarse;   /* the coarsest low type, or MS_DT_NONE */
    float unit;       /* unit of rounding of its output: its own, or inherited */
    uint32_t suspect; /* place in the list of suspects; 0: none */
};

struct observe__op {
    struct ms_str name; /* "Functional.linear" */
    unsigned flags;
    uint16_t family; /* of align/, or ALIGN__FAM_UNKNOWN */
};

/* Texts of a plain value or shape on both sides; p is NULL where a side has none. */
struct observe__value_texts {
    struct ms_str text[2];
};

/* Operators at which the forward values of both sides part. */
struct observe__parting {
    uint32_t node[2]; /* of the dumps; OBSERVE__NONE: that side has none */
    bool is_found;
};

struct observe__part {
    int rank, step;
    uint32_t number;
    enum probe_mode mode;
    bool cross;      /* two frameworks or programs: other operators and arguments */
    bool frameworks; /* two frameworks: other kernels compute the same function */
    bool is_graph;   /* one side is a compiled graph, the other the same framework's functions */
    /* number of micro batches that one side runs for each of the other; 0: equal */
    uint32_t batches;
    uint8_t batches_side;
    bool finite;   /* used when cross: no golden value is NaN or infinite */
    bool has_apis; /* operators are recorded; modules are then not judged */
    char *path[2]; /* of the dumps */
    struct ms_map ops_by_name;
    MS_VEC(struct observe__op) ops;
    MS_VEC(struct observe__node) nodes; /* in execution order */
    MS_VEC(struct observe__leaf) leaves;
    MS_VEC(struct ms_str) names[2]; /* by node of the dump */
    MS_VEC(uint32_t) by_target;     /* by node of the target: node of this part */
    MS_VEC(uint32_t) members;       /* for each fused operator: target node, count, members */
    MS_VEC(struct ms_str) paths;    /* paths of the target's rows, then of the golden rows */
    MS_VEC(struct observe__value_texts) texts;
    uint32_t golden_paths;             /* index of the first golden path */
    float root_floor, root_floor_norm; /* NaN: unknown */
    float median;                      /* median of all differences in this part */
    /* Differences of the runs as a whole. */
    /* golden and target type of the most frequent systemic pair, */
    uint8_t other[2];
    double other_share, other_noise; /* its share of all outputs, the difference it explains */
    uint32_t parameters, unlike;     /* number of distinct parameters; of those far apart */
    bool other_start;                /* most parameters are far apart */
    uint8_t *losses[2]; /* by node of the dump: bits of enum observe__loss; NULL: not searched */
    bool starts_differ; /* the sides have different parameters */
    double alike;       /* values that differ by less are one value on both sides */
    /* used when cross: how far parameters are apart before and after the update, and their gradients; NaN:
     * unknown */
    float start_gap, update_gap, gradient_gap;
    bool do_updates_agree;    /* see update_results.h */
    bool ends_differ;         /* the forward passes end with different values */
    uint32_t last_forward[2]; /* nodes that make these values, or OBSERVE__NONE */
    /* used when cross: the forward passes of both sides end with NaN, which this node is the first to make on both;
     * else OBSERVE__NONE */
    uint32_t broken;
    struct observe__parting parting, backward_parting;
    struct ms_arena *arena;
};

static inline struct ms_str observe__name(const struct observe__part *p, unsigned side, uint32_t id)
{
    return id != OBSERVE__NONE ? p->names[side].p[id] : MS_STR_NONE;
}

#endif

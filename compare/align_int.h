/* SPDX-License-Identifier: MIT
 *
 * align_int: what the stages of an alignment share.
 *
 *     dump, construct ─► side ─┐   anchors: values that exist once on each side
 *                              ├─► modules: those that own parameters, in order, k to 1
 *     dump, construct ─► side ─┘   segments: ops between two anchors, three rounds
 *                                  vote: modules that hold the same pairs
 *                                  complete: members, parts, backward ─► pairs
 *
 * Index 0 of a pair of things is the golden side, 1 the target.  Nothing depends
 * on addresses or hash order, so equal input gives equal output.
 */
#ifndef COMPARE_ALIGN_INT_H
#define COMPARE_ALIGN_INT_H

#include "compare/align.h"
#include "probe/base/arena.h"
#include "probe/base/map.h"
#include "probe/base/vec.h"

#define ALIGN__NONE UINT32_MAX

/* ---- families: what an operator's name says ------------------------------ */

struct align__family {
    const char *name;
    bool view;
    uint64_t members[3], tails[3], last[3]; /* of a fused family: sets of others */
};

/* Both sides' names, and what is learned about those in no table. */
struct align__names {
    struct ms_map apis;       /* names as written */
    MS_VEC(uint16_t) family;  /* by name; ALIGN__FAM_UNKNOWN */
    MS_VEC(uint32_t) twin;    /* by golden name: its usual partner, when one of both is unknown */
    MS_VEC(float) twin_share; /* how usual, 0 to 1 */
};
#define ALIGN__FAM_UNKNOWN UINT16_MAX

enum ms_rc align__names_put(struct align__names *names, struct ms_str api, uint32_t *id,
                            struct ms_err *err);
void align__names_free(struct align__names *names);
/* Family of an api name such as "__add__" or "norm.RmsNorm". */
uint16_t align__family_find(struct ms_str api);
const char *align__family_text(uint16_t family);
bool align__family_is_view(uint16_t family);
bool align__family_is_split(uint16_t family);
/* What the family is when a parameter is read: a matmul is a linear then, an add one of a bias. */
uint16_t align__family_with_weight(uint16_t family);
bool align__family_is_collective(uint16_t family); /* those of tensor parallelism */
bool align__family_is_linear(uint16_t family);     /* linear or matmul */
/* Can `tail` be the last of the operators that run in place of `fused`? */
bool align__family_fuses(uint16_t fused, uint16_t tail);
/* 1: the same; 0.7: one is the usual tail of the other; 0.5: a possible tail; 0.1: an inner member;
 * 0: nothing in common. */
float align__family_likeness(uint16_t a, uint16_t b);

/* ---- dims: shapes without layout ----------------------------------------- */

enum { ALIGN__NDIM = 8 };
struct align__dim {
    uint64_t n;              /* product of all */
    uint64_t d[ALIGN__NDIM]; /* ascending, without ones; the largest if there are more */
    uint32_t nd, next;
};
struct align__dims { /* of both sides */
    MS_VEC(struct align__dim) list;
    uint32_t *slots, mask;
};

struct align__dim align__dim_of(const uint64_t *d, unsigned nd);
bool align__dim_same(const struct align__dim *a, const struct align__dim *b);
enum ms_rc align__dims_put(struct align__dims *dims, const struct align__dim *key, uint32_t *id,
                           struct ms_err *err);
void align__dims_free(struct align__dims *dims);
/* How many pieces along one axis one makes of the other, 2 or more; 0: it does not. */
uint64_t align__dims_ratio(const struct align__dims *dims, uint32_t a, uint32_t b);
/* One could be 2 to 8 pieces of the other along one axis. */
bool align__dims_piece(const struct align__dims *dims, uint32_t a, uint32_t b);

/* ---- side: one dump as forward ops, values and modules ------------------- */

enum align__class { ALIGN__FLOAT, ALIGN__INT, ALIGN__BOOL, ALIGN__OTHER };

enum { ALIGN__MAX, ALIGN__MIN, ALIGN__MEAN, ALIGN__NORM };
struct align__value { /* tensors of one side that are the same */
    uint64_t n;
    double stat[4];
    uint64_t digest; /* of the md5 text; 0: none */
    float ln_norm, ln_peak;
    uint32_t producer;        /* first op that has it as output; ALIGN__NONE */
    uint32_t module;          /* that has it as parameter; ALIGN__NONE, ALIGN__MANY */
    uint32_t first_use, uses; /* in side.users */
    uint8_t cls;
    bool known; /* the statistics can be compared */
};
#define ALIGN__MANY (UINT32_MAX - 1)

struct align__tensor {
    uint32_t value, dims, row;
};

struct align__op {
    uint32_t node, parent, api;
    uint32_t first; /* tensors: ins, params, outs */
    uint32_t twin;  /* the recomputation of this call, or ALIGN__NONE */
    uint32_t back;  /* node of its backward, or ALIGN__NONE */
    uint16_t family, nin, nparam, nout;
    bool last;   /* of its module's direct ops */
    bool passes; /* what it writes is what it reads */
};

struct align__module {
    uint32_t node; /* of the dump, ALIGN__NONE: only construct.json has it */
    uint32_t parent;
    uint32_t lo, hi;       /* first and last op inside; lo > hi: none */
    uint32_t direct;       /* last op directly inside, or ALIGN__NONE */
    uint32_t place;        /* how many ops come before its record */
    uint32_t params, outs; /* tensors */
    uint32_t twin;         /* the recomputation of this call, or ALIGN__NONE */
    uint32_t back;         /* node of its backward, or ALIGN__NONE */
    uint16_t nparam, nout;
    bool again;              /* it is a recomputation itself */
    struct ms_str name;      /* whole */
    struct ms_str path, cls; /* last part and class name */
};

struct align__side {
    const struct probe_dump *dump;
    MS_VEC(struct align__op) ops;
    MS_VEC(struct align__op) again; /* recomputed ops, which take no part in the search */
    MS_VEC(struct align__module) modules;
    MS_VEC(struct align__tensor) tensors;
    MS_VEC(struct align__value) values;
    uint32_t *users;     /* ops by value: side.values[v].first_use .. */
    bool owns;           /* it tells which tensors are parameters */
    struct ms_map index; /* module names -> modules */
    struct ms_arena *arena;
};

/* Which nodes of a dump are recomputations; the list is in the arena.  By forward node: its place
 * in the tree and its backward, or MS_MAP_NONE. */
enum ms_rc align__repeats(struct ms_arena *arena, const struct cmp_align_input *in,
                          const uint32_t *in_tree, const uint32_t *back, bool **again,
                          struct ms_err *err);
/* Read one side; names and dims take what it has of them. */
enum ms_rc align__side_read(struct align__side *s, const struct cmp_align_input *in,
                            struct align__names *names, struct align__dims *dims,
                            struct ms_err *err);
/* Say everything of a side in names and dims of another, which are added to. */
enum ms_rc align__side_renumber(struct align__side *s, const struct align__names *own_names,
                                const struct align__dims *own_dims, struct align__names *names,
                                struct align__dims *dims, struct ms_err *err);
void align__side_free(struct align__side *s);
/* What a row holds, as far as it is a tensor: false when it is none. */
bool align__row_value(const struct probe_dump *dump, uint32_t row, struct align__value *v,
                      struct align__dim *dim);

static inline const struct align__tensor *align__ins(const struct align__side *s,
                                                     const struct align__op *o)
{
    return s->tensors.p + o->first;
}
static inline const struct align__tensor *align__params(const struct align__side *s,
                                                        const struct align__op *o)
{
    return s->tensors.p + o->first + o->nin;
}
static inline const struct align__tensor *align__outs(const struct align__side *s,
                                                      const struct align__op *o)
{
    return s->tensors.p + o->first + o->nin + o->nparam;
}
static inline const struct align__tensor *align__module_params(const struct align__side *s,
                                                               const struct align__module *m)
{
    return s->tensors.p + m->params;
}
static inline const struct align__tensor *align__module_outs(const struct align__side *s,
                                                             const struct align__module *m)
{
    return s->tensors.p + m->outs;
}
/* Does module m, or one around it, equal `up`? */
bool align__inside(const struct align__side *s, uint32_t m, uint32_t up);

/* ---- value: how alike two values are ------------------------------------- */

/* Distance of statistics, 0: equal; below 0: cannot be told. */
float align__distance(const struct align__value *a, const struct align__value *b);
/* 1 for distance 0, falling with a long tail to 0 at 1. */
float align__likeness(float distance);

/* ---- chain: the heaviest increasing subsequence -------------------------- */

struct align__link {
    uint32_t a, b;
    float weight;
    float distance; /* of the values that made it */
};
/* Keep of links those of the heaviest chain that increases strictly in a and b, sorted. */
enum ms_rc align__chain(struct align__link *links, size_t *n, struct ms_err *err);

/* ---- path: monotone matching of two rows of things ----------------------- */

struct align__path {
    uint32_t rows, cols;
    const uint32_t *lo, *hi; /* columns allowed by row, not falling; NULL: all */
    unsigned merge;          /* up to so many rows may meet one column, and the reverse; 1: none */
    const uint8_t
        *reach[2]; /* the same of those that end at a row and at a column, with merge > 1 */
    /* Score of rows r - k + 1 .. r with columns c - l + 1 .. c, where k or l is 1; a match needs
     * more than 0. */
    float (*score)(void *ctx, uint32_t r, uint32_t c, unsigned k, unsigned l);
    void *ctx;
};
struct align__match {
    uint32_t r, c;
    uint8_t k, l;
};
struct align__path_room { /* kept between calls */
    MS_VEC(float) best;
    MS_VEC(uint8_t) step;
    MS_VEC(uint64_t) start;
    MS_VEC(struct align__match) out; /* the result, ascending */
};
enum ms_rc align__path_find(const struct align__path *p, struct align__path_room *room,
                            uint64_t *cells, struct ms_err *err);
void align__path_room_free(struct align__path_room *room);

/* ---- the whole ----------------------------------------------------------- */

/* Words of a module's name: distinct, by number. */
enum { ALIGN__WORDS = 8 };
struct align__words {
    uint32_t id[ALIGN__WORDS];
    uint32_t n;
};

struct align__ctx {
    struct align__side side[2];
    struct align__names names;
    struct align__dims dims;
    struct ms_arena *arena;
    struct ms_pool *pool; /* NULL: the caller alone */
    float sigma, strict;  /* noise of equal values; likeness that counts as equality */
    bool by_value;        /* else structure alone */
    uint64_t cut[2]; /* a side's ranks hold one of so many pieces of sharded tensors; 1: whole */
    MS_VEC(struct align__link) anchors; /* ops */
    uint32_t *op[2];                    /* partner by op, ALIGN__NONE */
    uint32_t *mod[2];                   /* partner by module: pairs and parts, for context */
    uint32_t *mod_pair[2];              /* partner by module: pairs alone */
    uint32_t *mod_dp[2];                /* partner by module from the order of parameter modules */
    MS_VEC(struct align__link) parts;   /* modules: k:1, a or b repeated */
    uint32_t *vmap;                     /* golden value -> target value */
    uint32_t *vmap_back;
    struct align__words *words[2]; /* by module */
    float *word_weight;            /* by word: rare ones weigh more */
    uint64_t cells;
    unsigned round; /* from 0 to before ALIGN__ROUNDS */
};
enum { ALIGN__ROUNDS = 3 };

/* Fill anchors with ops whose values meet; settle sigma, strict and by_value. */
enum ms_rc align__anchors(struct align__ctx *c, struct ms_err *err);
/* Match parameter modules; fills mod, mod_dp and parts and adds to anchors. */
enum ms_rc align__modules(struct align__ctx *c, struct ms_err *err);
/* Mean over the module with more parameters of the best likeness, 0 where values do not count;
 * *met tells whether any sizes are equal. */
float align__param_likeness(const struct align__ctx *c, const struct align__module *a,
                            const struct align__module *b, bool *met);
/* One round over the segments between anchors; fills op. */
enum ms_rc align__segments(struct align__ctx *c, struct ms_err *err);
/* Pair modules that hold pairs; fills mod_pair and mod. */
enum ms_rc align__vote(struct align__ctx *c, struct ms_err *err);
/* Are two sizes equal, or those of a whole and one rank's piece of it? */
static inline bool align__same_size(const struct align__ctx *c, uint64_t golden, uint64_t target)
{
    return golden == target || golden * c->cut[0] == target * c->cut[1];
}
/* The split that reads what an op produces, or ALIGN__NONE. */
uint32_t align__split_behind(const struct align__side *s, uint32_t op);
/* Pair modules that have no ops inside, by their order. */
enum ms_rc align__loose_modules(struct align__ctx *c, struct ms_err *err);

/* ---- complete: what is emitted -------------------------------------------- */

struct align__members { /* ops that run in place of one op of a pair */
    uint32_t first, n;  /* in list */
};
struct cmp_align {
    struct align__ctx c;
    MS_VEC(struct cmp_align_pair) pairs;
    uint32_t *first_pair; /* by target node, one more than there are: where its pairs begin */
    uint32_t *of_golden;  /* by golden node: best target node */
    struct align__members *members[2]; /* by op */
    MS_VEC(uint32_t) list;             /* members: nodes */
    uint32_t *op_of[2];                /* by node: forward op, or ALIGN__NONE */
    uint32_t *back_of[2];              /* by node: the op whose backward it is, or ALIGN__NONE */
    uint32_t *module_of[2];            /* by node: forward module, or ALIGN__NONE */
    size_t anchors;
};

/* What is fused goes with the last of the ops that run in its place, also where no value tells
 * which that is. */
void align__settle_tails(struct align__ctx *c);
/* Drop pairs that are too weak to be shown. */
void align__prune(struct align__ctx *c);
/* Pair what is left by name, where that keeps the order of the pairs around it: runs of one framework
 * alone. */
enum ms_rc align__same_names(struct cmp_align *al, struct ms_err *err);
/* Find the members of every pair. */
enum ms_rc align__find_members(struct cmp_align *al, struct ms_err *err);
/* Write down all pairs, of ops, modules, backward and parameter gradients. */
enum ms_rc align__emit(struct cmp_align *al, const struct cmp_align_pin *pins, size_t npins,
                       struct ms_err *err);

/* ---- score: how well two ops go together --------------------------------- */

struct align__evidence {
    float family, shape, out, in, param, shared_use; /* param < 0: sizes never meet */
    int8_t module;                                   /* twice the context: 2, 0, -1, -2 */
    bool same_in;                                    /* an input is the partner of the other's */
    bool veto, families_known;
    bool refuted; /* inputs agree, outputs do not */
    bool blind;   /* no outputs that can be compared */
    bool last;    /* both or neither is the last of its module */
    bool ends;    /* both are */
    bool unread;  /* nobody reads what one of them writes */
    bool views[2];
    float score;
};
/* The evidence for golden op a and target op b; what comes behind a veto is not filled in. */
void align__weigh(const struct align__ctx *c, uint32_t a, uint32_t b, struct align__evidence *e);
/* Is the pair good enough to be shown? */
bool align__accept(const struct align__ctx *c, const struct align__evidence *e);
/* Shared words of two modules' names, 0 to 1; rare words count more. */
float align__word_likeness(const struct align__ctx *c, uint32_t a, uint32_t b);
enum ms_rc align__words_read(struct align__ctx *c, struct ms_err *err);
/* Likeness of two ops' operators, by table or by what was learned. */
float align__op_likeness(const struct align__ctx *c, const struct align__op *a,
                         const struct align__op *b);
/* Learn which names in no table belong together from pairs found so far. */
enum ms_rc align__learn(struct align__ctx *c, const struct align__link *pairs, size_t n,
                        struct ms_err *err);

#endif

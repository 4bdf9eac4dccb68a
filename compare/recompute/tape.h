/* SPDX-License-Identifier: MIT
 *
 * tape: float64 arrays, the operations between them, and how far a program that computes the same
 * in another type may be off.
 *
 * A tape is a list of nodes, each computed when it is made. A node holds its exact value, as far as
 * float64 is exact, and for each element a bound of the error that a computation in the type of the
 * tape may have. The bound has two parts: errors of the operands, which are passed on in full
 * (|df/dx| times the error of x, summed up over all operands), and the rounding of the operation
 * itself. A sum of n terms t is rounded n - 1 times to the precision of its partial sums; as
 * roundings are independent, their errors grow as the root of the number of terms:
 *
 *     u * sqrt((n - 1) * (sum(t^2) / 2 + sum(t)^2 / 3))
 *
 * Types of 16 bits are summed up in float32 within blocks of TAPE_BLOCK terms, as tensor cores and
 * vector units do, and at least once in the type itself between blocks.
 *
 * All functions take nodes by number and return a number. A failure is kept in the tape, and a
 * function that gets TAPE_NONE returns TAPE_NONE, so a formula is checked once, at its end.
 */
#ifndef COMPARE_RECOMPUTE_TAPE_H
#define COMPARE_RECOMPUTE_TAPE_H

#include "probe/base/arena.h"
#include "probe/base/dtype.h"
#include "probe/base/vec.h"

enum { TAPE_DIMS = 8, TAPE_BLOCK = 32 };
#define TAPE_NONE UINT32_MAX

typedef uint32_t tape_id;

struct tape_shape {
    unsigned ndim;
    uint64_t dim[TAPE_DIMS];
};

/* A function of one variable with up to two constants, its derivative, and how exact programs
 * compute both: units of rounding relative to the result, and absolute. */
struct tape_function {
    const char *name;
    double (*f)(double x, double a, double b);
    double (*df)(double x, double a, double b); /* NULL: constant in pieces, no gradient */
    float f_rel, f_abs, df_rel, df_abs;
};

enum tape_kind {
    TAPE_LEAF,
    TAPE_UNARY,
    TAPE_ADD,
    TAPE_SUB,
    TAPE_MUL,
    TAPE_DIV,
    TAPE_POW,
    TAPE_MAX2,
    TAPE_MIN2,
    TAPE_ATAN2,
    TAPE_WHERE,
    TAPE_MATMUL,
    TAPE_GATHER,
    TAPE_SCATTER,
    TAPE_RESHAPE,
    TAPE_SUM,
    TAPE_MAX,
    TAPE_MIN,
    TAPE_PROD,
    TAPE_CUMSUM
};

struct tape_node {
    enum tape_kind kind;
    tape_id in[3];
    struct tape_shape shape;
    size_t n;       /* elements */
    double *v, *e;  /* values; bounds of their errors, NULL: exact */
    int64_t *index; /* of GATHER and SCATTER: element of the other side, -1: none */
    const struct tape_function *fn;
    double a, b;   /* constants of UNARY */
    bool is_slope; /* UNARY: the derivative of fn */
};

struct tape {
    struct ms_arena *arena;
    MS_VEC(struct tape_node) nodes;
    double unit;     /* half a unit in the last place of 1 in the type of results between */
    double sum_unit; /* the same of partial sums within a block */
    struct ms_err err;
};

/* Makes a tape of at most `limit` bytes that bounds computations in type t. */
enum ms_rc tape_new(struct tape *t, enum ms_dtype type, size_t limit,
                    struct ms_err *err) MS_MUST_USE;
void tape_free(struct tape *t);
/* Half a unit in the last place of 1; 0 for types that are no floating point numbers. */
double tape_unit_of(enum ms_dtype type);

static inline struct tape_node *tape_at(const struct tape *t, tape_id id)
{
    return &t->nodes.p[id];
}
/* Keeps the first failure; returns TAPE_NONE. */
tape_id tape_fail(struct tape *t, enum ms_rc rc, const char *fmt, ...) MS_PRINTF(3, 4);
bool tape_failed(const struct tape *t);
size_t tape_shape_count(const struct tape_shape *s);
bool tape_shape_eq(const struct tape_shape *a, const struct tape_shape *b);

/* Makes a node without an operation; its values are not set. */
tape_id tape_leaf(struct tape *t, const struct tape_shape *shape);
tape_id tape_constant(struct tape *t, double v);
/* Makes a leaf of the given elements, each with an error of `relative` times its value. */
void tape_set_error(struct tape *t, tape_id id, double relative);

/* Elementwise; shapes are broadcast. */
tape_id tape_unary(struct tape *t, const struct tape_function *fn, tape_id x, double a, double b);
tape_id tape_slope(struct tape *t, const struct tape_function *fn, tape_id x, double a, double b);
tape_id tape_binary(struct tape *t, enum tape_kind kind, tape_id x, tape_id y);
/* Elements of y where mask is not 0, else those of z. */
tape_id tape_where(struct tape *t, tape_id mask, tape_id y, tape_id z);

static inline tape_id tape_add(struct tape *t, tape_id x, tape_id y)
{
    return tape_binary(t, TAPE_ADD, x, y);
}
static inline tape_id tape_sub(struct tape *t, tape_id x, tape_id y)
{
    return tape_binary(t, TAPE_SUB, x, y);
}
static inline tape_id tape_mul(struct tape *t, tape_id x, tape_id y)
{
    return tape_binary(t, TAPE_MUL, x, y);
}
static inline tape_id tape_div(struct tape *t, tape_id x, tape_id y)
{
    return tape_binary(t, TAPE_DIV, x, y);
}

/* Batched product of matrices of at least two axes each; swap exchanges the last two axes first. */
tape_id tape_matmul(struct tape *t, tape_id x, bool swap_x, tape_id y, bool swap_y);

/* ---- moving elements ---------------------------------------------------- */

/* Makes a node whose element i is element index[i] of x, or `fill` where index[i] is -1; the index
 * lies in the arena of the tape. */
tape_id tape_gather(struct tape *t, tape_id x, const struct tape_shape *shape, int64_t *index,
                    double fill);
/* Adds up the elements of x at the places index[i] of a node of the given shape. */
tape_id tape_scatter(struct tape *t, tape_id x, const struct tape_shape *shape, int64_t *index);
/* Room for the index of a node of this shape; NULL on failure. */
int64_t *tape_index(struct tape *t, const struct tape_shape *shape);
/* Elements at offset + the dot product of position and stride (in elements). */
tape_id tape_strided(struct tape *t, tape_id x, const struct tape_shape *shape,
                     const int64_t *stride, int64_t offset);
tape_id tape_reshape(struct tape *t, tape_id x, const struct tape_shape *shape);
tape_id tape_permute(struct tape *t, tape_id x, const unsigned *axes);
tape_id tape_swap(struct tape *t, tape_id x, unsigned one, unsigned other);
tape_id tape_expand(struct tape *t, tape_id x, const struct tape_shape *shape);
/* Elements [from, from + n) of an axis, every step-th. */
tape_id tape_slice(struct tape *t, tape_id x, unsigned axis, uint64_t from, uint64_t n,
                   int64_t step);
/* Adds elements before and behind an axis. */
tape_id tape_pad(struct tape *t, tape_id x, unsigned axis, int64_t before, int64_t behind,
                 double fill);
tape_id tape_concat(struct tape *t, const tape_id *x, size_t n, unsigned axis);
/* Sums x up to the shape that was broadcast to that of x. */
tape_id tape_unbroadcast(struct tape *t, tape_id x, const struct tape_shape *shape);
/* Sets *out to the shape that a and b are broadcast to; false when they do not go together. */
bool tape_broadcast(const struct tape_shape *a, const struct tape_shape *b, struct tape_shape *out);

/* ---- reductions ---------------------------------------------------------- */

/* Reduces the axes in the bit mask `axes`; kind is SUM, MAX, MIN or PROD. */
tape_id tape_reduce(struct tape *t, enum tape_kind kind, tape_id x, unsigned axes, bool keep);
tape_id tape_mean(struct tape *t, tape_id x, unsigned axes, bool keep);
tape_id tape_cumsum(struct tape *t, tape_id x, unsigned axis);
/* Number of elements that each result of such a reduction is made of. */
double tape_reduced(const struct tape *t, tape_id x, unsigned axes);

/* ---- gradients ------------------------------------------------------------ */

/* Computes the gradients of sum(y * seed) with respect to n leaves, as nodes of the tape, TAPE_NONE
 * for a leaf that y does not depend on. */
void tape_gradients(struct tape *t, const tape_id *y, const tape_id *seed, size_t ny,
                    const tape_id *leaves, size_t n, tape_id *out);

/* The same for sums of terms that a caller adds up itself: the error of n terms with these sums. */
double tape_sum_error(const struct tape *t, double n, double sum, double squares);

#endif

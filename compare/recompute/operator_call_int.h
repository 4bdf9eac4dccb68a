/* SPDX-License-Identifier: MIT
 *
 * operator_call_int: how operators read their arguments and give their results.
 */
#ifndef COMPARE_RECOMPUTE_OPERATOR_CALL_INT_H
#define COMPARE_RECOMPUTE_OPERATOR_CALL_INT_H

#include "compare/recompute/functions.h"
#include "compare/recompute/operator_call.h"

#include <math.h>

typedef void rec_operator_fn(struct rec_call *c);
struct rec_operator {
    const char *name;
    rec_operator_fn *compute;
};
/* The parts of the table, each ended by a row without a name. */
extern const struct rec_operator rec_elementwise[], rec_activations[], rec_products[],
    rec_convolutions[], rec_norms[], rec_reductions[], rec_shapes[], rec_pools[], rec_losses[],
    rec_steps[], rec_attentions[];

/* Finds an argument; NULL when it is absent or None. at: its position, -1 for none. */
const struct rec_value *rec_find(const struct rec_call *c, int at, const char *name);
/* Node of a tensor; a number becomes a constant; TAPE_NONE when absent. */
tape_id rec_tensor(const struct rec_call *c, int at, const char *name);
/* The same, and fails when it is absent. */
tape_id rec_want(const struct rec_call *c, int at, const char *name);
double rec_number(const struct rec_call *c, int at, const char *name, double otherwise);
/* A whole number; larger ones than 4e9 are cut to that. */
int64_t rec_whole(const struct rec_call *c, int at, const char *name, int64_t otherwise);
bool rec_flag(const struct rec_call *c, int at, const char *name, bool otherwise);
struct ms_str rec_text(const struct rec_call *c, int at, const char *name, const char *otherwise);
/* Reads a number or a list of numbers to n places: one number is repeated. Absent: all are
 * `otherwise`. Fails when it has another length. */
void rec_numbers(const struct rec_call *c, int at, const char *name, int64_t *out, unsigned n,
                 int64_t otherwise);
/* Reads a list of at most `most` whole numbers, or the numbers from position `at` to the end;
 * returns how many. */
unsigned rec_list(const struct rec_call *c, int at, const char *name, int64_t *out, unsigned most);
/* Nodes of a list of tensors; returns how many. */
size_t rec_tensors(const struct rec_call *c, int at, const char *name, tape_id *out, size_t most);
/* Axes of a reduction as bits; all when absent. */
unsigned rec_axes(const struct rec_call *c, int at, const char *name, unsigned ndim);
/* An axis, counted from the end when negative. */
unsigned rec_axis(const struct rec_call *c, int at, const char *name, int64_t otherwise,
                  unsigned ndim);

void rec_give(struct rec_call *c, tape_id node);
void rec_unsupported(struct rec_call *c, const char *fmt, ...) MS_PRINTF(2, 3);
/* Says that a module did not record something, for which its default was taken. */
void rec_assume(struct rec_call *c, const char *what);

static inline struct tape_shape rec_shape(const struct rec_call *c, tape_id x)
{
    return x != TAPE_NONE ? tape_at(c->tape, x)->shape : (struct tape_shape){0};
}
/* A leaf with the same values through which no gradient goes. */
tape_id rec_detach(struct tape *t, tape_id x);

/* exp(x - max) / sum along an axis, and its logarithm. */
tape_id rec_softmax(struct tape *t, tape_id x, unsigned axis);
tape_id rec_log_softmax(struct tape *t, tape_id x, unsigned axis);
/* Elements of an axis picked by index, as torch.index_select does. */
tape_id rec_index_select(struct tape *t, tape_id x, unsigned axis, tape_id index);

/* ---- windows of convolutions and pools -------------------------------------- */

enum { REC_SPACE = 3 };
struct rec_window {
    unsigned n; /* axes of space */
    int64_t in[REC_SPACE], out[REC_SPACE], size[REC_SPACE], stride[REC_SPACE], pad[REC_SPACE],
        dilation[REC_SPACE];
    bool adaptive;       /* windows of unequal sizes, at most `size` */
    bool elements_first; /* the axes of a window lie before those of positions */
};
/* Element of `lead` images that each place of each window reads, -1 outside: of shape {lead,
 * positions, elements of a window}, or with the last two exchanged. */
int64_t *rec_windows(struct tape *t, const struct rec_window *w, uint64_t lead,
                     struct tape_shape *shape);

#endif

/* SPDX-License-Identifier: MIT
 *
 * reproduce_cut: the smallest part of the inputs that shows the same result.
 *
 * Most operators treat the rows of their first axis alike. Whether one does is tried: the inputs
 * whose first axis is as long as that of the result are cut to one row, and the result must then be
 * that row of the whole result.
 */
#include "compare/reproduce/reproduce_int.h"

#include <math.h>

static struct tape_shape one_row(const struct tape_shape *of)
{
    struct tape_shape s = *of;
    s.dim[0] = 1;
    return s;
}

static bool has_rows(const struct tape_shape *s, uint64_t rows)
{
    return s->ndim != 0 && s->dim[0] == rows;
}

/* Makes a leaf of one row. */
static tape_id row_of(struct tape *t, tape_id x, uint64_t row)
{
    const struct tape_shape whole = tape_at(t, x)->shape, s = one_row(&whole);
    const tape_id id = tape_leaf(t, &s);
    if (id != TAPE_NONE)
        memcpy(tape_at(t, id)->v, tape_at(t, x)->v + row * tape_at(t, id)->n,
               tape_at(t, id)->n * sizeof(double));
    return id;
}

/* Copies arguments with those of `rows` rows cut. */
static void cut_list(struct tape *t, struct rec_value *list, size_t n, uint64_t rows, uint64_t row)
{
    for (size_t i = 0; i < n && !tape_failed(t); i++) {
        struct rec_value *v = &list[i];
        if (v->kind == REC_TENSOR && !v->is_parameter &&
            has_rows(&tape_at(t, v->node)->shape, rows))
            v->node = row_of(t, v->node, row);
    }
}

static struct rec_value *copy_list(struct tape *t, const struct rec_value *list, size_t n)
{
    struct rec_value *copy = ms_arena_calloc(t->arena, n + 1, sizeof *copy);
    if (copy != NULL && n != 0)
        memcpy(copy, list, n * sizeof *copy);
    return copy;
}

/* Tells whether a result is the wanted row of the whole one. */
static bool is_that_row(const struct tape_node *part, const struct tape_node *whole, uint64_t row)
{
    for (size_t i = 0; i < part->n; i++) {
        const double a = part->v[i], b = whole->v[row * part->n + i];
        if (!(a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-12 * fabs(b)))
            return false;
    }
    return true;
}

/* Computes the cut call; exact results are put to `exact`. */
static bool try_cut(struct blame_work *s, const struct blame_operands *in, uint64_t row,
                    tape_id *exact)
{
    struct rec_call c = {.tape = &s->tape,
                         .op = blame_operator_of(probe_node_name(s->record.dump, s->record.node)),
                         .args = in->args,
                         .named = in->named,
                         .nargs = in->nargs,
                         .nnamed = in->nnamed,
                         .result = s->out.list[0].dtype,
                         .result_shape = one_row(&s->out.list[0].shape)};
    if (rec_compute(&c, NULL) != MS_OK)
        return false;
    for (size_t i = 0; i < s->out.n; i++) {
        const size_t place = s->out.list[i].place;
        exact[i] = place < c.nout ? c.out[place] : TAPE_NONE;
        if (exact[i] == TAPE_NONE)
            continue;
        const struct tape_node *part = tape_at(&s->tape, exact[i]),
                               *whole = tape_at(&s->tape, s->exact[i]);
        if (part->n * s->out.list[0].shape.dim[0] != whole->n || !is_that_row(part, whole, row))
            return false;
    }
    return true;
}

bool reproduce__cut(struct blame_work *s, uint64_t row)
{
    const struct tape_shape whole = s->out.n != 0 ? s->out.list[0].shape : (struct tape_shape){0};
    const uint64_t rows = whole.ndim != 0 ? whole.dim[0] : 0;
    if (s->is_backward || rows < 2 || row >= rows)
        return false;
    for (size_t i = 0; i < s->out.n; i++)
        if (!has_rows(&s->out.list[i].shape, rows) || s->exact[i] == TAPE_NONE)
            return false;
    struct blame_operands in = s->in;
    tape_id *exact = ms_arena_calloc(s->tape.arena, s->out.n + 1, sizeof *exact);
    in.args = copy_list(&s->tape, in.args, in.nargs);
    in.named = copy_list(&s->tape, in.named, in.nnamed);
    if (exact == NULL || in.args == NULL || in.named == NULL)
        return false;
    cut_list(&s->tape, in.args, in.nargs, rows, row);
    cut_list(&s->tape, in.named, in.nnamed, rows, row);
    if (!try_cut(s, &in, row, exact))
        return false;
    s->in = in;
    s->exact = exact;
    for (size_t i = 0; i < s->out.n; i++) {
        struct blame_result *r = &s->out.list[i];
        r->n /= rows;
        r->v += row * r->n;
        r->shape = one_row(&r->shape);
    }
    return true;
}

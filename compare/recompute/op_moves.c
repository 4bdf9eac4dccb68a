/* SPDX-License-Identifier: MIT
 *
 * op_moves: operators that move elements: views, joins, indices, embeddings.
 */
#include "compare/recompute/operator_call_int.h"

/* The recorded shape of the result says what -1 stands for. */
static void op_reshape(struct rec_call *c)
{
    rec_give(c, tape_reshape(c->tape, rec_want(c, 0, "input"), &c->result_shape));
}

static void op_expand(struct rec_call *c)
{
    rec_give(c, tape_expand(c->tape, rec_want(c, 0, "input"), &c->result_shape));
}

static void op_permute(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    const unsigned ndim = rec_shape(c, x).ndim;
    int64_t list[TAPE_DIMS];
    unsigned axes[TAPE_DIMS], seen = 0;
    const char *name = rec_find(c, -1, "axis") != NULL ? "axis" : "dims";
    const unsigned n = rec_list(c, 1, name, list, TAPE_DIMS);
    for (unsigned i = 0; i < n; i++) {
        axes[i] = (unsigned)(list[i] < 0 ? list[i] + ndim : list[i]);
        seen |= axes[i] < TAPE_DIMS ? 1U << axes[i] : 0;
    }
    if (n != ndim || seen != (1U << ndim) - 1)
        rec_unsupported(c, "an order of axes that is none");
    else
        rec_give(c, tape_permute(c->tape, x, axes));
}

/* MindSpore's transpose takes an order of axes as its second argument. */
static void op_transpose(struct rec_call *c)
{
    const struct rec_value *order = rec_find(c, 1, "dim0");
    if (order == NULL || order->kind == REC_LIST) {
        op_permute(c);
        return;
    }
    const tape_id x = rec_want(c, 0, "input");
    const unsigned n = rec_shape(c, x).ndim;
    rec_give(c, tape_swap(c->tape, x, rec_axis(c, 1, "dim0", 0, n), rec_axis(c, 2, "dim1", 1, n)));
}

static void op_t(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    rec_give(c, rec_shape(c, x).ndim == 2 ? tape_swap(c->tape, x, 0, 1) : x);
}

static void op_cat(struct rec_call *c)
{
    tape_id list[REC_OUTPUTS];
    const size_t n = rec_tensors(c, 0, "tensors", list, REC_OUTPUTS);
    if (n == 0 || n == REC_OUTPUTS) {
        rec_unsupported(c, "no list of tensors");
        return;
    }
    rec_give(c,
             tape_concat(c->tape, list, n, rec_axis(c, 1, "dim", 0, rec_shape(c, list[0]).ndim)));
}

static void op_stack(struct rec_call *c)
{
    tape_id list[REC_OUTPUTS];
    const size_t n = rec_tensors(c, 0, "tensors", list, REC_OUTPUTS);
    struct tape_shape s = n != 0 ? rec_shape(c, list[0]) : (struct tape_shape){0};
    if (n == 0 || n == REC_OUTPUTS || s.ndim == TAPE_DIMS) {
        rec_unsupported(c, "no list of tensors");
        return;
    }
    const unsigned axis = rec_axis(c, 1, "dim", 0, s.ndim + 1);
    memmove(&s.dim[axis + 1], &s.dim[axis], (s.ndim - axis) * sizeof s.dim[0]);
    s.dim[axis] = 1;
    s.ndim++;
    for (size_t i = 0; i < n; i++)
        list[i] = tape_reshape(c->tape, list[i], &s);
    rec_give(c, tape_concat(c->tape, list, n, axis));
}

/* Gives consecutive parts of an axis. */
static void give_parts(struct rec_call *c, tape_id x, unsigned axis, const int64_t *sizes,
                       unsigned n)
{
    uint64_t at = 0;
    for (unsigned i = 0; i < n && !tape_failed(c->tape); i++) {
        if (sizes[i] < 0) {
            rec_unsupported(c, "a part of negative length");
            return;
        }
        rec_give(c, tape_slice(c->tape, x, axis, at, (uint64_t)sizes[i], 1));
        at += (uint64_t)sizes[i];
    }
}

static void give_equal_parts(struct rec_call *c, tape_id x, unsigned axis, uint64_t size)
{
    const uint64_t len = rec_shape(c, x).ndim != 0 ? rec_shape(c, x).dim[axis] : 0;
    for (uint64_t at = 0; size != 0 && at < len && !tape_failed(c->tape); at += size)
        rec_give(c, tape_slice(c->tape, x, axis, at, at + size <= len ? size : len - at, 1));
}

static void op_split(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    const unsigned axis = rec_axis(c, 2, "dim", 0, rec_shape(c, x).ndim);
    const struct rec_value *v = rec_find(c, 1, "split_size_or_sections");
    int64_t sizes[REC_OUTPUTS];
    if (v != NULL && v->kind == REC_LIST)
        give_parts(c, x, axis, sizes, rec_list(c, 1, "split_size_or_sections", sizes, REC_OUTPUTS));
    else if (v != NULL && v->kind == REC_NUMBER && v->number >= 1 && v->number < 1e12)
        give_equal_parts(c, x, axis, (uint64_t)v->number);
    else
        rec_unsupported(c, "a split without sizes");
}

static void op_chunk(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    const struct tape_shape s = rec_shape(c, x);
    const unsigned axis = rec_axis(c, 2, "dim", 0, s.ndim);
    const int64_t chunks = rec_whole(c, 1, "chunks", 1);
    if (chunks < 1 || s.ndim == 0)
        rec_unsupported(c, "no chunks");
    else
        give_equal_parts(c, x, axis, (s.dim[axis] + (uint64_t)chunks - 1) / (uint64_t)chunks);
}

static void op_narrow(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    const int64_t from = rec_whole(c, 2, "start", 0), n = rec_whole(c, 3, "length", 0);
    if (from < 0 || n < 0)
        rec_unsupported(c, "a part of negative length");
    else
        rec_give(c, tape_slice(c->tape, x, rec_axis(c, 1, "dim", 0, rec_shape(c, x).ndim),
                               (uint64_t)from, (uint64_t)n, 1));
}

static void op_flip(struct rec_call *c)
{
    tape_id x = rec_want(c, 0, "input");
    const struct tape_shape s = rec_shape(c, x);
    const unsigned axes = rec_axes(c, 1, "dims", s.ndim);
    for (unsigned i = 0; i < s.ndim; i++)
        if ((axes >> i & 1) != 0 && s.dim[i] != 0)
            x = tape_slice(c->tape, x, i, s.dim[i] - 1, s.dim[i], -1);
    rec_give(c, x);
}

static void op_roll(struct rec_call *c)
{
    tape_id x = rec_want(c, 0, "input");
    const struct tape_shape s = rec_shape(c, x);
    int64_t shifts[TAPE_DIMS], dims[TAPE_DIMS];
    const struct rec_value *d = rec_find(c, 2, "dims");
    if (d == NULL) {
        rec_unsupported(c, "roll without axes");
        return;
    }
    const unsigned n = d->kind == REC_LIST ? (unsigned)d->n : 1;
    rec_numbers(c, 1, "shifts", shifts, n <= TAPE_DIMS ? n : TAPE_DIMS, 0);
    rec_numbers(c, 2, "dims", dims, n <= TAPE_DIMS ? n : TAPE_DIMS, 0);
    for (unsigned i = 0; i < n && i < TAPE_DIMS && !tape_failed(c->tape); i++) {
        const unsigned axis = (unsigned)(dims[i] < 0 ? dims[i] + s.ndim : dims[i]);
        if (axis >= s.ndim || s.dim[axis] == 0) {
            rec_unsupported(c, "roll along an axis that is not there");
            return;
        }
        const int64_t len = (int64_t)s.dim[axis], by = ((shifts[i] % len) + len) % len;
        const tape_id part[2] = {
            tape_slice(c->tape, x, axis, (uint64_t)(len - by) % (uint64_t)len, (uint64_t)by, 1),
            tape_slice(c->tape, x, axis, 0, (uint64_t)(len - by), 1)};
        if (by != 0)
            x = tape_concat(c->tape, part, 2, axis);
    }
    rec_give(c, x);
}

static void op_repeat(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input");
    const struct tape_shape to = c->result_shape, from = rec_shape(c, x);
    int64_t *index = x != TAPE_NONE && to.ndim >= from.ndim ? tape_index(t, &to) : NULL;
    if (index == NULL) {
        rec_unsupported(c, "a repeated tensor with fewer axes");
        return;
    }
    const unsigned lead = to.ndim - from.ndim;
    const size_t n = tape_shape_count(&to);
    for (size_t i = 0; i < n; i++) {
        size_t rest = i, at = 0, step = 1;
        for (unsigned d = to.ndim; d-- > 0;) {
            const size_t place = rest % to.dim[d];
            rest /= to.dim[d];
            if (d >= lead && from.dim[d - lead] != 0) {
                at += place % from.dim[d - lead] * step;
                step *= from.dim[d - lead];
            }
        }
        index[i] = (int64_t)at;
    }
    rec_give(c, tape_at(t, x)->n != 0 ? tape_gather(t, x, &to, index, 0) : x);
}

static void op_repeat_interleave(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input");
    struct tape_shape s = rec_shape(c, x);
    const struct rec_value *times = rec_find(c, 1, "repeats"), *dim = rec_find(c, 2, "dim");
    if (times == NULL || times->kind != REC_NUMBER ||
        !(times->number >= 0 && times->number < 1e9) || dim == NULL || s.ndim == 0 ||
        s.ndim == TAPE_DIMS) {
        rec_unsupported(c, "a repetition with a tensor of counts");
        return;
    }
    const unsigned axis = rec_axis(c, 2, "dim", 0, s.ndim);
    memmove(&s.dim[axis + 2], &s.dim[axis + 1], (s.ndim - axis - 1) * sizeof s.dim[0]);
    s.dim[axis + 1] = 1;
    s.ndim++;
    const tape_id wide = tape_reshape(t, x, &s);
    s.dim[axis + 1] = (uint64_t)times->number;
    rec_give(c, tape_reshape(t, tape_expand(t, wide, &s), &c->result_shape));
}

static void triangle(struct rec_call *c, bool lower)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input");
    const struct tape_shape s = rec_shape(c, x);
    const int64_t diagonal = rec_whole(c, 1, "diagonal", 0);
    int64_t *index = s.ndim >= 2 ? tape_index(t, &s) : NULL;
    if (index == NULL)
        return;
    const uint64_t rows = s.dim[s.ndim - 2], columns = s.dim[s.ndim - 1];
    for (size_t i = 0; i < tape_at(t, x)->n; i++) {
        const int64_t d = (int64_t)(i % columns) - (int64_t)(i / columns % rows);
        index[i] = (lower ? d <= diagonal : d >= diagonal) ? (int64_t)i : -1;
    }
    rec_give(c, tape_gather(t, x, &s, index, 0));
}

static void op_tril(struct rec_call *c)
{
    triangle(c, true);
}

static void op_triu(struct rec_call *c)
{
    triangle(c, false);
}

/* ---- indices ------------------------------------------------------------------------ */

/* Position that an index names on an axis of length len; -1 when there is none. */
static int64_t place_of(double index, uint64_t len)
{
    const double at = index < 0 ? index + (double)len : index;
    return at >= 0 && at < (double)len ? (int64_t)at : -1;
}

tape_id rec_index_select(struct tape *t, tape_id x, unsigned axis, tape_id index)
{
    if (x == TAPE_NONE || index == TAPE_NONE)
        return TAPE_NONE;
    const struct tape_shape s = tape_at(t, x)->shape, is = tape_at(t, index)->shape;
    if (axis >= s.ndim || s.ndim - 1 + is.ndim > TAPE_DIMS)
        return tape_fail(t, MS_E_UNSUPPORTED, "an index of too many axes");
    struct tape_shape to = {.ndim = s.ndim - 1 + is.ndim};
    size_t outer = 1, inner = 1, len = s.dim[axis], picks = tape_at(t, index)->n;
    for (unsigned i = 0; i < to.ndim; i++)
        to.dim[i] = i < axis             ? s.dim[i]
                    : i < axis + is.ndim ? is.dim[i - axis]
                                         : s.dim[i + 1 - is.ndim];
    for (unsigned i = 0; i < s.ndim; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : s.dim[i];
    int64_t *at = tape_index(t, &to), *next = at;
    for (size_t o = 0; at != NULL && o < outer; o++)
        for (size_t p = 0; p < picks; p++) {
            const int64_t place = place_of(tape_at(t, index)->v[p], len);
            if (place < 0)
                return tape_fail(t, MS_E_FORMAT, "an index points outside of its tensor");
            for (size_t i = 0; i < inner; i++)
                *next++ = (int64_t)((o * len + (size_t)place) * inner + i);
        }
    return tape_gather(t, x, &to, at, 0);
}

static void op_index_select(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input");
    rec_give(c, rec_index_select(c->tape, x, rec_axis(c, 1, "dim", 0, rec_shape(c, x).ndim),
                                 rec_want(c, 2, "index")));
}

/* MindSpore's Gather(params, indices, axis). */
static void op_primitive_gather(struct rec_call *c)
{
    const tape_id x = rec_want(c, 0, "input_params");
    rec_give(c, rec_index_select(c->tape, x, rec_axis(c, 2, "axis", 0, rec_shape(c, x).ndim),
                                 rec_want(c, 1, "input_indices")));
}

/* embedding(input, weight, padding_idx): the row padding_idx gets no gradient. */
static void op_embedding(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id ids = rec_want(c, 0, "input"), w = rec_want(c, 1, "weight");
    const tape_id y = rec_index_select(t, w, 0, ids);
    const double pad = rec_number(c, 2, "padding_idx", NAN);
    if (y == TAPE_NONE || isnan(pad) || rec_shape(c, w).ndim != 2) {
        rec_give(c, y);
        return;
    }
    const struct tape_shape s = rec_shape(c, y);
    const tape_id mask = tape_leaf(t, &s);
    const uint64_t width = rec_shape(c, w).dim[1], rows = rec_shape(c, w).dim[0];
    for (size_t i = 0; mask != TAPE_NONE && i < tape_at(t, mask)->n; i++)
        tape_at(t, mask)->v[i] =
            place_of(tape_at(t, ids)->v[i / width], rows) != place_of(pad, rows);
    rec_give(c, tape_where(t, mask, y, rec_detach(t, y)));
}

/* torch.gather: one index for each element of the result. */
static void op_gather(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input"), index = rec_want(c, 2, "index");
    const struct tape_shape s = rec_shape(c, x), to = rec_shape(c, index);
    const unsigned axis = rec_axis(c, 1, "dim", 0, s.ndim);
    int64_t *at =
        x != TAPE_NONE && index != TAPE_NONE && s.ndim == to.ndim ? tape_index(t, &to) : NULL;
    if (at == NULL) {
        rec_unsupported(c, "an index with other axes");
        return;
    }
    for (size_t i = 0; i < tape_at(t, index)->n; i++) {
        size_t rest = i, step = 1;
        at[i] = 0;
        for (unsigned d = s.ndim; d-- > 0;) {
            const int64_t own = (int64_t)(rest % to.dim[d]);
            const int64_t place = d == axis ? place_of(tape_at(t, index)->v[i], s.dim[d]) : own;
            rest /= to.dim[d];
            if (place < 0 || place >= (int64_t)s.dim[d]) {
                rec_unsupported(c, "an index points outside of its tensor");
                return;
            }
            at[i] += place * (int64_t)step;
            step *= s.dim[d];
        }
    }
    rec_give(c, tape_gather(t, x, &to, at, 0));
}

static void op_one_hot(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input");
    const struct tape_shape s = c->result_shape;
    const tape_id id = s.ndim != 0 ? tape_leaf(t, &s) : TAPE_NONE;
    const uint64_t classes = s.ndim != 0 ? s.dim[s.ndim - 1] : 0;
    if (x == TAPE_NONE || id == TAPE_NONE || tape_at(t, x)->n * classes != tape_at(t, id)->n) {
        rec_unsupported(c, "classes that do not fit");
        return;
    }
    for (size_t i = 0; i < tape_at(t, id)->n; i++)
        tape_at(t, id)->v[i] = tape_at(t, x)->v[i / classes] == (double)(i % classes);
    rec_give(c, id);
}

static void op_pad(struct rec_call *c)
{
    tape_id x = rec_want(c, 0, "input");
    int64_t pads[2 * TAPE_DIMS] = {0};
    const struct rec_value *list = rec_find(c, 1, "pad");
    const unsigned ndim = rec_shape(c, x).ndim;
    const unsigned n =
        list != NULL && list->kind == REC_LIST && list->n <= 2 * ndim ? (unsigned)list->n : 0;
    const struct ms_str mode = rec_text(c, 2, "mode", "constant");
    if (n == 0 || n % 2 != 0 || !ms_str_is(mode, "constant")) {
        rec_unsupported(c, "a padding that repeats elements");
        return;
    }
    rec_numbers(c, 1, "pad", pads, n, 0);
    for (unsigned i = 0; i < n / 2; i++)
        x = tape_pad(c->tape, x, ndim - 1 - i, pads[2 * i], pads[2 * i + 1],
                     rec_number(c, 3, "value", 0));
    rec_give(c, x);
}

const struct rec_operator rec_shapes[] = {{"reshape", op_reshape},
                                          {"Reshape", op_reshape},
                                          {"reshape_as", op_reshape},
                                          {"view", op_reshape},
                                          {"view_as", op_reshape},
                                          {"flatten", op_reshape},
                                          {"Flatten", op_reshape},
                                          {"unflatten", op_reshape},
                                          {"ravel", op_reshape},
                                          {"squeeze", op_reshape},
                                          {"unsqueeze", op_reshape},
                                          {"ExpandDims", op_reshape},
                                          {"expand", op_expand},
                                          {"expand_as", op_expand},
                                          {"broadcast_to", op_expand},
                                          {"BroadcastTo", op_expand},
                                          {"transpose", op_transpose},
                                          {"swapaxes", op_transpose},
                                          {"t", op_t},
                                          {"permute", op_permute},
                                          {"Transpose", op_permute},
                                          {"cat", op_cat},
                                          {"concat", op_cat},
                                          {"concatenate", op_cat},
                                          {"stack", op_stack},
                                          {"split", op_split},
                                          {"split_with_sizes", op_split},
                                          {"chunk", op_chunk},
                                          {"narrow", op_narrow},
                                          {"flip", op_flip},
                                          {"roll", op_roll},
                                          {"repeat", op_repeat},
                                          {"tile", op_repeat},
                                          {"Tile", op_repeat},
                                          {"repeat_interleave", op_repeat_interleave},
                                          {"tril", op_tril},
                                          {"triu", op_triu},
                                          {"index_select", op_index_select},
                                          {"Gather", op_primitive_gather},
                                          {"embedding", op_embedding},
                                          {"Embedding", op_embedding},
                                          {"gather", op_gather},
                                          {"one_hot", op_one_hot},
                                          {"pad", op_pad},
                                          {NULL, NULL}};

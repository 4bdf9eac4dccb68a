/* SPDX-License-Identifier: MIT
 *
 * op_attentions: attention and rotary position embeddings.
 */
#include "compare/recompute/operator_call_int.h"

/* Repeats the heads of keys and values until there are as many as those of queries. */
static tape_id repeat_heads(struct rec_call *c, tape_id x, uint64_t heads)
{
    struct tape_shape s = rec_shape(c, x);
    if (x == TAPE_NONE || s.ndim < 3 || s.dim[s.ndim - 3] == heads)
        return x;
    const unsigned at = s.ndim - 3;
    const uint64_t own = s.dim[at];
    if (own == 0 || heads % own != 0 || s.ndim == TAPE_DIMS) {
        rec_unsupported(c, "heads of keys that do not divide those of queries");
        return TAPE_NONE;
    }
    struct tape_shape one = s, many = s;
    memmove(&one.dim[at + 2], &one.dim[at + 1], 2 * sizeof one.dim[0]);
    one.dim[at + 1] = 1;
    one.ndim++;
    many = one;
    many.dim[at + 1] = heads / own;
    s.dim[at] = heads;
    return tape_reshape(c->tape, tape_expand(c->tape, tape_reshape(c->tape, x, &one), &many), &s);
}

/* Lower triangle of ones, from the top left. */
static tape_id causal_mask(struct tape *t, uint64_t rows, uint64_t columns)
{
    const struct tape_shape s = {.ndim = 2, .dim = {rows, columns}};
    const tape_id id = tape_leaf(t, &s);
    for (size_t i = 0; id != TAPE_NONE && i < tape_at(t, id)->n; i++)
        tape_at(t, id)->v[i] = i % columns <= i / columns;
    return id;
}

static tape_id keep_where(struct tape *t, tape_id scores, tape_id mask)
{
    return tape_where(t, mask, scores, tape_constant(t, -INFINITY));
}

static tape_id weigh_values(struct tape *t, tape_id scores, tape_id values)
{
    const unsigned n = scores != TAPE_NONE ? tape_at(t, scores)->shape.ndim : 1;
    return tape_matmul(t, scores != TAPE_NONE ? rec_softmax(t, scores, n - 1) : TAPE_NONE, false,
                       values, false);
}

static void op_scaled_dot_product_attention(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id q = rec_want(c, 0, "query");
    tape_id k = rec_want(c, 1, "key"), v = rec_want(c, 2, "value");
    const struct tape_shape s = rec_shape(c, q);
    const struct rec_value *mask = rec_find(c, 3, "attn_mask");
    if (q == TAPE_NONE || k == TAPE_NONE || v == TAPE_NONE || s.ndim < 2)
        return;
    if (rec_number(c, 4, "dropout_p", 0) != 0) {
        rec_unsupported(c, "a dropout is random: its mask is not in the dump");
        return;
    }
    if (s.ndim >= 3 && rec_flag(c, 7, "enable_gqa", false)) {
        k = repeat_heads(c, k, s.dim[s.ndim - 3]);
        v = repeat_heads(c, v, s.dim[s.ndim - 3]);
    }
    const double scale = rec_number(c, 6, "scale", 1 / sqrt((double)s.dim[s.ndim - 1]));
    /* Kernels scale the queries, the scores, or both by the root: each is one more rounding. */
    tape_id scores = tape_linear(t, tape_matmul(t, q, false, k, true), scale, 0);
    if (rec_flag(c, 5, "is_causal", false))
        scores = keep_where(t, scores,
                            causal_mask(t, s.dim[s.ndim - 2], rec_shape(c, k).dim[s.ndim - 2]));
    if (mask != NULL && mask->dtype == MS_DT_BOOL)
        scores = keep_where(t, scores, mask->node);
    else if (mask != NULL)
        scores = tape_add(t, scores, mask->node);
    rec_give(c, weigh_values(t, scores, v));
}

/* Moves the heads of a layout to {batch, heads, length, width}; false for another layout. */
static tape_id heads_first(struct rec_call *c, tape_id x, struct ms_str layout, uint64_t heads)
{
    struct tape *t = c->tape;
    struct tape_shape s = rec_shape(c, x);
    if (ms_str_is(layout, "BNSD") && s.ndim == 4)
        return x;
    if (ms_str_is(layout, "BSND") && s.ndim == 4)
        return tape_swap(t, x, 1, 2);
    const bool bsh = ms_str_is(layout, "BSH"), sbh = ms_str_is(layout, "SBH");
    if ((!bsh && !sbh) || s.ndim != 3 || heads == 0 || s.dim[2] % heads != 0) {
        rec_unsupported(c, "a layout of attention that is not recomputed");
        return TAPE_NONE;
    }
    const struct tape_shape four = {.ndim = 4,
                                    .dim = {s.dim[0], s.dim[1], heads, s.dim[2] / heads}};
    static const unsigned from_bsh[] = {0, 2, 1, 3}, from_sbh[] = {1, 2, 0, 3};
    return tape_permute(t, tape_reshape(t, x, &four), bsh ? from_bsh : from_sbh);
}

static tape_id layout_of(struct rec_call *c, tape_id y, struct ms_str layout)
{
    struct tape *t = c->tape;
    static const unsigned to_bsnd[] = {0, 2, 1, 3}, to_sbh[] = {2, 0, 1, 3};
    if (ms_str_is(layout, "BNSD"))
        return y;
    return tape_reshape(t, tape_permute(t, y, ms_str_is(layout, "SBH") ? to_sbh : to_bsnd),
                        &c->result_shape);
}

/* npu_fusion_attention(query, key, value, head_num, input_layout, pse, padding_mask, atten_mask,
 * scale, keep_prob, ...): a mask that is not 0 hides. */
static void op_npu_fusion_attention(struct rec_call *c)
{
    struct tape *t = c->tape;
    const double heads = rec_number(c, 3, "head_num", 0),
                 sparse = rec_number(c, -1, "sparse_mode", 0);
    const struct ms_str layout = rec_text(c, 4, "input_layout", "");
    const tape_id x = rec_want(c, 0, "query"), mask = rec_tensor(c, 7, "atten_mask");
    const tape_id q = heads_first(c, x, layout, heads >= 1 && heads < 1e6 ? (uint64_t)heads : 0);
    if (q == TAPE_NONE)
        return;
    const struct tape_shape s = rec_shape(c, q);
    const uint64_t width = s.dim[3];
    tape_id kv[2] = {rec_want(c, 1, "key"), rec_want(c, 2, "value")};
    for (unsigned i = 0; i < 2 && kv[i] != TAPE_NONE; i++) {
        const uint64_t last = rec_shape(c, kv[i]).dim[rec_shape(c, kv[i]).ndim - 1];
        kv[i] =
            repeat_heads(c, heads_first(c, kv[i], layout, width != 0 ? last / width : 0), s.dim[1]);
    }
    if (rec_number(c, 9, "keep_prob", 1) != 1 || rec_tensor(c, 5, "pse") != TAPE_NONE ||
        sparse > 1) {
        rec_unsupported(c, "attention with dropout, a position bias or a compressed mask");
        return;
    }
    tape_id scores =
        tape_linear(t, tape_matmul(t, q, false, kv[0], true), rec_number(c, 8, "scale", 1), 0);
    if (mask != TAPE_NONE)
        scores = tape_where(t, mask, tape_constant(t, -INFINITY), scores);
    rec_give(c, layout_of(c, weigh_values(t, scores, kv[1]), layout));
}

/* x * cos + rotated(x) * sin, where the halves of the last axis are exchanged and one of them
 * negated. */
static tape_id rotate(struct tape *t, tape_id x, tape_id cos, tape_id sin)
{
    if (x == TAPE_NONE)
        return x;
    const struct tape_shape s = tape_at(t, x)->shape;
    const unsigned axis = s.ndim - 1;
    if (s.ndim == 0 || s.dim[axis] % 2 != 0)
        return tape_fail(t, MS_E_UNSUPPORTED, "an axis of odd length has no halves");
    const uint64_t half = s.dim[axis] / 2;
    const tape_id part[2] = {tape_neg(t, tape_slice(t, x, axis, half, half, 1)),
                             tape_slice(t, x, axis, 0, half, 1)};
    return tape_add(t, tape_mul(t, x, cos), tape_mul(t, tape_concat(t, part, 2, axis), sin));
}

static void op_rotary_mul(struct rec_call *c)
{
    rec_give(c,
             rotate(c->tape, rec_want(c, 0, "input"), rec_want(c, 1, "r1"), rec_want(c, 2, "r2")));
}

/* apply_rotary_pos_emb(q, k, cos, sin, ...): cos and sin get an axis for the heads. */
static void op_apply_rotary(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id q = rec_want(c, 0, "q"), k = rec_want(c, 1, "k");
    tape_id cs[2] = {rec_want(c, 2, "cos"), rec_want(c, 3, "sin")};
    for (unsigned i = 0; i < 2 && cs[i] != TAPE_NONE && q != TAPE_NONE; i++) {
        struct tape_shape s = rec_shape(c, cs[i]);
        if (s.ndim + 1 == rec_shape(c, q).ndim && s.ndim == 3) {
            s = (struct tape_shape){.ndim = 4, .dim = {s.dim[0], 1, s.dim[1], s.dim[2]}};
            cs[i] = tape_reshape(t, cs[i], &s);
        }
    }
    rec_give(c, rotate(t, q, cs[0], cs[1]));
    rec_give(c, rotate(t, k, cs[0], cs[1]));
}

const struct rec_operator rec_attentions[] = {
    {"scaled_dot_product_attention", op_scaled_dot_product_attention},
    {"npu_fusion_attention", op_npu_fusion_attention},
    {"npu_rotary_mul", op_rotary_mul},
    {"rotary_position_embedding", op_rotary_mul},
    {"apply_rotary_pos_emb", op_apply_rotary},
    {NULL, NULL}};

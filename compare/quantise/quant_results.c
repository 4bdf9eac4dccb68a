/* SPDX-License-Identifier: MIT
 *
 * quant_results: tensors that have been judged.
 */
#include "compare/quantise/quant_compare.h"

/* Elements of a tensor that are judged; of a larger one its first rows. */
static const uint64_t judged_most = (uint64_t)1 << 22;

enum ms_rc quant__add_tensor(struct quant_comparison *c, const struct quant_tensor_result *t,
                             struct ms_err *err)
{
    struct quant_tensor_result *slot = ms_vec_push(&c->tensors);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = *t;
    slot->name = ms_arena_str(c->arena, t->name);
    slot->node = ms_arena_str(c->arena, t->node);
    return slot->name.p != NULL && slot->node.p != NULL ? MS_OK : ms_arena_fail(c->arena, err);
}

static double precision_of(enum ms_dtype t)
{
    return t == MS_DT_BF16 ? 0x1p-8 : t == MS_DT_F16 ? 0x1p-10 : 1e-6;
}

struct quant_table quant__fold(const float *v, const uint64_t *shape, uint32_t ndim,
                               enum ms_dtype dtype, bool is_weight)
{
    struct quant_table t = {v, 1, 1, precision_of(dtype)};
    for (uint32_t d = 0; d < ndim; d++)
        *((is_weight ? d == 0 : d + 1 < ndim) ? &t.rows : &t.cols) *= shape[d];
    if (ndim < 2) {
        t.cols *= t.rows;
        t.rows = 1;
    }
    if (t.cols != 0 && t.rows * t.cols > judged_most)
        t.rows = judged_most / t.cols != 0 ? judged_most / t.cols : 1;
    return t;
}

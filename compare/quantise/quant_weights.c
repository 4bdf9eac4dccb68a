/* SPDX-License-Identifier: MIT
 *
 * quant_weights: the weights of a quantised checkpoint beside those of one in floats.
 */
#include "compare/quantise/quant_ckpt.h"
#include "compare/quantise/quant_compare.h"

struct checkpoints {
    struct quant_comparison *c;
    const struct probe_ckpt *target;
};

static enum ms_rc judge_weight(void *ctx, const struct probe_ckpt_entry *e,
                               const struct quant_values *golden, struct ms_err *err)
{
    const struct checkpoints *s = ctx;
    struct quant_tensor_result r = {.name = e->name,
                                    .node = e->name,
                                    .role = QUANT_WEIGHT,
                                    .kind = e->ndim > 2 ? QUANT_CONV : QUANT_LINEAR,
                                    .step = -1,
                                    .rank = -1};
    struct quant_values v;
    MS_TRY(quant_ckpt_dequantise(s->target, e, &v, err));
    if (v.v == NULL) {
        s->c->unmatched[1]++;
        return MS_OK;
    }
    const struct quant_table f = quant__fold(golden->v, e->shape, e->ndim, e->dtype, true);
    const struct quant_table q = quant__fold(v.v, e->shape, e->ndim, v.dtype, true);
    enum ms_rc rc = quant_judge(&r.v, &f, &q, true, err);
    quant_values_free(&v);
    return rc == MS_OK ? quant__add_tensor(s->c, &r, err) : rc;
}

enum ms_rc quant__checkpoints(struct quant_comparison *c, const char *target, const char *golden,
                              struct ms_progress *bar, struct ms_err *err)
{
    struct probe_ckpt *t;
    MS_TRY(quant_ckpt_open(&t, target, err));
    struct checkpoints s = {c, t};
    enum ms_rc rc = quant_each_weight(golden, judge_weight, &s, bar, err);
    probe_ckpt_close(t);
    return rc;
}

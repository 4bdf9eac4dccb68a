/* SPDX-License-Identifier: MIT
 *
 * test_update_rules: which gradients that enter the update are judged, on a part that is made by hand as a
 * dump of operators alone.
 */
#include "compare/source/update_rules.h"
#include "tests/support/check.h"

enum { CLIP, DECAY, NODES };
enum { LARGE, CANCELLED, WEIGHT, LEAVES };

struct hand {
    struct observe__op op;
    struct observe__node node[NODES];
    struct observe__leaf leaf[LEAVES];
    struct observe__part part;
    struct cmp_source source;
    struct source__judge judge;
    struct ms_err err;
};

/* A norm of two gradients, of which the second differs and has a norm; then a weight is changed in place. */
static void set_up(struct hand *h, float norm)
{
    *h = (struct hand){.op = {.name = MS_STR("Tensor.mul_")}};
    for (uint32_t i = 0; i < NODES; i++)
        h->node[i] = (struct observe__node){
            .kind = PROBE_NODE_API, .dir = PROBE_FORWARD, .region = OBSERVE__NONE, .tiny = 1e-6F};
    for (uint32_t i = 0; i < LEAVES; i++)
        h->leaf[i] = (struct observe__leaf){.flags = OBSERVE__MEASURED | OBSERVE__REAL,
                                            .maker = {OBSERVE__NONE, OBSERVE__NONE},
                                            .norm = 1};
    h->leaf[CANCELLED].e = 0.3F;
    h->leaf[CANCELLED].norm = norm;
    h->leaf[WEIGHT].norm = 100;
    h->node[CLIP].nleaf = 2;
    h->node[DECAY].leaf = WEIGHT;
    h->node[DECAY].nleaf = 1;
    h->part.ops.p = &h->op;
    h->part.ops.n = 1;
    h->part.nodes.p = h->node;
    h->part.nodes.n = NODES;
    h->part.leaves.p = h->leaf;
    h->part.leaves.n = LEAVES;
    h->judge = (struct source__judge){
        .s = &h->source, .p = &h->part, .judged = OBSERVE__NONE, .loose = OBSERVE__NONE};
}

static size_t suspects_of(struct hand *h)
{
    source__weigh_gradients(&h->judge);
    ck_assert_int_eq(source__check_update(&h->judge, CLIP, &h->err), MS_OK);
    return h->source.raws.n;
}

START_TEST(rounding_of_terms_that_cancel_is_no_suspect_where_operators_alone_are_recorded)
{
    struct hand h;
    set_up(&h, 1e-7F);
    ck_assert_uint_eq(suspects_of(&h), 0);
    ck_assert(h.judge.gradient_norm > 0);
    ms_vec_free(&h.source.raws);
}
END_TEST

START_TEST(a_gradient_of_weight_that_differs_is_a_suspect)
{
    struct hand h;
    set_up(&h, 0.1F);
    ck_assert_uint_eq(suspects_of(&h), 1);
    ms_vec_free(&h.source.raws);
}
END_TEST

TEST_MAIN("update_rules",
          rounding_of_terms_that_cancel_is_no_suspect_where_operators_alone_are_recorded,
          a_gradient_of_weight_that_differs_is_a_suspect)

/* SPDX-License-Identifier: MIT
 *
 * test_second_pass: which records of backward are taken for those of a second pass, on a part of a few nodes
 * that is made by hand.
 */
#include "compare/source/second_pass.h"
#include "tests/support/check.h"

/* A convolution, its backward, one that reads its gradient, and a scale of the penalty on the gradient. */
enum { CONV, CONV_BACK, EARLIER_BACK, SCALE, LAST_BACK, NODES };
enum { GRADIENT, PASSED_ON, SCALED, UNMADE, LEAVES };

struct hand {
    struct observe__node node[NODES];
    struct observe__leaf leaf[LEAVES];
    struct observe__part part;
    struct source__judge judge;
};

static void set_up(struct hand *h)
{
    *h = (struct hand){.part = {.has_apis = true}};
    for (uint32_t i = 0; i < NODES; i++) {
        bool backward = i != CONV && i != SCALE;
        h->node[i] = (struct observe__node){.kind = PROBE_NODE_API,
                                            .dir = backward ? PROBE_BACKWARD : PROBE_FORWARD,
                                            .forward = backward ? CONV : OBSERVE__NONE};
    }
    h->node[CONV].is_read = true;
    h->node[SCALE].id[1] = OBSERVE__NONE; /* the target lacks it */
    for (uint32_t i = 0; i < LEAVES; i++)
        h->leaf[i] = (struct observe__leaf){
            .flags = OBSERVE__MEASURED, .e = 0.5F, .maker = {OBSERVE__NONE, OBSERVE__NONE}};
    h->leaf[GRADIENT].flags |= OBSERVE__ROOT;
    h->leaf[PASSED_ON].maker[0] = h->leaf[PASSED_ON].maker[1] = CONV_BACK;
    h->node[CONV_BACK].leaf = GRADIENT;
    h->node[EARLIER_BACK].leaf = PASSED_ON;
    h->node[CONV_BACK].nleaf = h->node[EARLIER_BACK].nleaf = 1;
    h->part.nodes.p = h->node;
    h->part.nodes.n = NODES;
    h->part.leaves.p = h->leaf;
    h->part.leaves.n = LEAVES;
    h->judge = (struct source__judge){.p = &h->part, .after_backward = NODES};
}

START_TEST(a_record_before_the_operator_that_is_missing_is_of_a_second_pass)
{
    struct hand h;
    set_up(&h);
    source__mark_second_passes(&h.judge);
    ck_assert(h.node[CONV_BACK].second_pass);
    ck_assert(h.node[EARLIER_BACK].second_pass);
    ck_assert(!h.node[LAST_BACK].second_pass);
    ck_assert(!source__is_comparable(&h.judge, CONV_BACK));
    ck_assert(source__is_comparable(&h.judge, CONV));
}
END_TEST

START_TEST(where_no_later_operator_parts_the_gradient_counts)
{
    struct hand h;
    set_up(&h);
    h.node[SCALE].id[1] = 0;
    source__mark_second_passes(&h.judge);
    ck_assert(!h.node[CONV_BACK].second_pass);
    set_up(&h);
    h.node[SCALE].id[1] = 0;
    h.node[SCALE].leaf = SCALED; /* it makes another value of equal ones */
    h.node[SCALE].nleaf = 1;
    h.leaf[SCALED].flags |= OBSERVE__IS_OUT;
    source__mark_second_passes(&h.judge);
    ck_assert(h.node[CONV_BACK].second_pass);
}
END_TEST

START_TEST(a_gradient_that_nobody_could_record_counts)
{
    struct hand h;
    set_up(&h);
    h.node[CONV].is_read = false; /* as of a loss that is not recorded */
    source__mark_second_passes(&h.judge);
    ck_assert(!h.node[CONV_BACK].second_pass);
    set_up(&h);
    h.leaf[GRADIENT].e = 1e-7F;
    source__mark_second_passes(&h.judge);
    ck_assert(!h.node[CONV_BACK].second_pass);
}
END_TEST

/* The minus of a force is not recorded: the loss reads what no operator made. */
START_TEST(a_loss_that_parts_by_what_is_not_recorded_ends_the_first_pass)
{
    for (unsigned is_weight = 0; is_weight < 2;
         is_weight++) { /* a step before may have changed it */
        struct hand h;
        set_up(&h);
        h.node[CONV].is_read = false;
        h.node[SCALE].id[1] = 0;
        h.node[SCALE].leaf = SCALED;
        h.node[SCALE].nleaf = 2;
        h.leaf[SCALED].flags |= OBSERVE__IS_OUT;
        h.leaf[UNMADE].flags |= OBSERVE__ROOT | (is_weight ? OBSERVE__IS_PARAM : 0);
        source__mark_second_passes(&h.judge);
        ck_assert_int_eq(h.node[CONV_BACK].second_pass, !is_weight);
        ck_assert(!h.node[LAST_BACK].second_pass);
    }
}
END_TEST

TEST_MAIN("second_pass", a_record_before_the_operator_that_is_missing_is_of_a_second_pass,
          where_no_later_operator_parts_the_gradient_counts,
          a_gradient_that_nobody_could_record_counts,
          a_loss_that_parts_by_what_is_not_recorded_ends_the_first_pass)

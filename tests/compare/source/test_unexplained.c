/* SPDX-License-Identifier: MIT
 *
 * test_unexplained: what is named when no rule has found anything, and which suspects of the backward
 * pass are dropped, on parts of a few nodes that are made by hand.
 */
#include "compare/source/border.h"
#include "compare/source/raw_suspects.h"
#include "compare/source/unexplained.h"
#include "tests/support/check.h"

#include <math.h>

enum { FIRST, LONE, READER, GRADIENT, BACKWARD, NODES };
enum { READ = 0, OF_PARAMETER = 1, LEAVES = 2 };

struct hand {
    struct observe__op op;
    struct observe__node node[NODES];
    struct observe__leaf leaf[LEAVES];
    struct observe__part part;
    struct cmp_source source;
    struct source__judge judge;
    struct ms_err err;
};

static struct observe__node node_of(unsigned kind, unsigned dir, float out)
{
    return (struct observe__node){.kind = (uint8_t)kind,
                                  .dir = (uint8_t)dir,
                                  .flags = OBSERVE__OUT_MEASURED,
                                  .out = out,
                                  .floor = 1e-6F,
                                  .tiny = 1e-6F};
}

/* FIRST agrees; LONE exists in the golden run only; READER reads it and is off by `off`; the gradient of a
 * parameter is off by `gradient`. */
static void set_up(struct hand *h, float off, float gradient)
{
    *h = (struct hand){.part = {.has_apis = true, .root_floor = NAN}};
    h->node[FIRST] = node_of(PROBE_NODE_API, PROBE_FORWARD, 1e-7F);
    h->node[LONE] = node_of(PROBE_NODE_API, PROBE_FORWARD, 0);
    h->node[LONE].id[1] = OBSERVE__NONE;
    h->node[READER] = node_of(PROBE_NODE_API, PROBE_FORWARD, off);
    h->node[READER].leaf = READ;
    h->node[READER].nleaf = 1;
    h->node[GRADIENT] = node_of(PROBE_NODE_PGRAD, PROBE_BACKWARD, gradient);
    h->node[GRADIENT].leaf = OF_PARAMETER;
    h->node[GRADIENT].nleaf = 1;
    h->node[BACKWARD] = node_of(PROBE_NODE_API, PROBE_BACKWARD, off);
    h->leaf[READ] = (struct observe__leaf){.maker = {LONE, FIRST}};
    h->leaf[OF_PARAMETER] = (struct observe__leaf){
        .maker = {OBSERVE__NONE, OBSERVE__NONE}, .flags = OBSERVE__MEASURED, .e = gradient};
    h->part.ops.p = &h->op;
    h->part.ops.n = 1;
    h->part.nodes.p = h->node;
    h->part.nodes.n = NODES;
    h->part.leaves.p = h->leaf;
    h->part.leaves.n = LEAVES;
    h->judge = (struct source__judge){.s = &h->source, .p = &h->part, .after_backward = NODES};
}

/* Returns the number of suspects that are added where `known` were there. */
static size_t explain(struct hand *h, size_t known)
{
    const size_t before = h->source.raws.n;
    ck_assert_int_eq(source__check_unexplained(&h->judge, known, &h->err), MS_OK);
    return h->source.raws.n - before;
}

START_TEST(an_operator_without_a_partner_before_a_jump_is_named)
{
    struct hand h;
    set_up(&h, 0.5F, 0.1F);
    ck_assert_uint_eq(explain(&h, 0), 1);
    ck_assert_uint_eq(h.source.raws.p[0].node, LONE);
    ck_assert_int_eq(h.source.raws.p[0].why, CMP_WHY_MISSING);
    ms_vec_free(&h.source.raws);

    set_up(&h, 0.5F, 0.1F); /* of the target */
    h.node[LONE].id[0] = OBSERVE__NONE;
    h.node[LONE].id[1] = 0;
    h.leaf[READ].maker[0] = FIRST;
    h.leaf[READ].maker[1] = LONE;
    ck_assert_uint_eq(explain(&h, 0), 1);
    ck_assert_uint_eq(h.source.raws.p[0].node, LONE);
    ck_assert_int_eq(h.source.raws.p[0].why, CMP_WHY_EXTRA);
    ms_vec_free(&h.source.raws);

    set_up(&h, 0.5F, 0.1F); /* everything has a partner */
    h.leaf[READ].maker[0] = FIRST;
    ck_assert_uint_eq(explain(&h, 0), 1);
    ck_assert_uint_eq(h.source.raws.p[0].node, READER);
    ck_assert_int_eq(h.source.raws.p[0].why, CMP_WHY_VALUE);
    ms_vec_free(&h.source.raws);
}
END_TEST

START_TEST(nothing_is_named_without_a_jump_or_a_consequence)
{
    struct hand h;
    set_up(&h, 0.005F, 0.1F); /* too small */
    ck_assert_uint_eq(explain(&h, 0), 0);
    set_up(&h, 0.5F, 0.1F); /* values before differ nearly as much */
    h.node[FIRST].out = 0.009F;
    ck_assert_uint_eq(explain(&h, 0), 0);
    set_up(&h, 0.5F, 1e-7F); /* gradients agree: another formula */
    ck_assert_uint_eq(explain(&h, 0), 0);
    set_up(&h, 0.5F, 0.1F); /* low precision */
    h.judge.low = true;
    ck_assert_uint_eq(explain(&h, 0), 0);
    set_up(&h, 0.5F, 0.1F); /* a rule has found something */
    struct source__raw raw = source__raw_of(&h.node[FIRST], CMP_WHY_VALUE, SOURCE__NUM, 1);
    ck_assert_int_eq(source__add_suspect(&h.judge, FIRST, raw, &h.err), MS_OK);
    ck_assert_uint_eq(explain(&h, 0), 0);
    ck_assert_uint_eq(explain(&h, 1), 1);
    ms_vec_free(&h.source.raws);
}
END_TEST

/* Adds a suspect of a value at FIRST and BACKWARD, and a shape at BACKWARD; returns what remains. */
static size_t drop(struct hand *h)
{
    const uint32_t node[] = {FIRST, BACKWARD, BACKWARD};
    const enum cmp_why why[] = {CMP_WHY_VALUE, CMP_WHY_VALUE, CMP_WHY_SHAPE};
    for (unsigned i = 0; i < 3; i++) {
        struct source__raw raw = source__raw_of(&h->node[node[i]], why[i], SOURCE__NUM, 1);
        ck_assert_int_eq(source__add_suspect(&h->judge, node[i], raw, &h->err), MS_OK);
    }
    source__drop_inner_gradients(&h->judge);
    return h->source.raws.n;
}

START_TEST(inner_gradients_of_two_frameworks_are_dropped_where_those_of_parameters_agree)
{
    struct hand h;
    set_up(&h, 0.5F, 1e-7F);
    h.part.frameworks = true;
    ck_assert_uint_eq(drop(&h), 2);
    ck_assert_uint_eq(h.source.raws.p[0].node, FIRST);
    ck_assert_int_eq(h.source.raws.p[1].why, CMP_WHY_SHAPE);
    ms_vec_free(&h.source.raws);
    set_up(&h, 0.5F, 0.1F); /* gradients of parameters differ */
    h.part.frameworks = true;
    ck_assert_uint_eq(drop(&h), 3);
    ms_vec_free(&h.source.raws);
    set_up(&h, 0.5F, 1e-7F); /* one framework */
    ck_assert_uint_eq(drop(&h), 3);
    ms_vec_free(&h.source.raws);
}
END_TEST

TEST_MAIN("unexplained", an_operator_without_a_partner_before_a_jump_is_named,
          nothing_is_named_without_a_jump_or_a_consequence,
          inner_gradients_of_two_frameworks_are_dropped_where_those_of_parameters_agree)

/* SPDX-License-Identifier: MIT
 *
 * test_certainty: how sure suspects are, on lists that are made by hand.
 */
#include "compare/source/certainty.h"
#include "tests/support/check.h"

enum { NODES = 5, SUSPECTS = 4 };

struct hand {
    struct observe__node node[NODES];
    struct ms_str name[NODES];
    struct observe__part part, *parts;
    struct cmp_suspect list[SUSPECTS];
    struct cmp_source source;
};

/* Nodes A to E of the target run in this order, all forward. */
static void set_up(struct hand *h, enum probe_mode mode)
{
    static const char *const names[NODES] = {"A", "B", "C", "D", "E"};
    *h = (struct hand){.part = {.mode = mode, .has_apis = true, .number = 7}};
    for (uint32_t i = 0; i < NODES; i++) {
        h->node[i] = (struct observe__node){.kind = i == 0 ? PROBE_NODE_MODULE : PROBE_NODE_API,
                                            .dir = PROBE_FORWARD,
                                            .id = {i, i}};
        h->name[i] = ms_str_of(names[i]);
    }
    h->part.nodes.p = h->node;
    h->part.names[1].p = h->name;
    h->part.nodes.n = h->part.names[1].n = NODES;
    h->parts = &h->part;
    h->source.parts.p = &h->parts;
    h->source.parts.n = 1;
    h->source.list.p = h->list;
}

static void add(struct hand *h, enum cmp_why why, double score, uint32_t node)
{
    uint32_t place = (uint32_t)++h->source.list.n;
    h->list[place - 1] = (struct cmp_suspect){.place = place,
                                              .part = 7,
                                              .why = why,
                                              .score = score,
                                              .in = 0.1,
                                              .target_node = node,
                                              .target = h->name[node],
                                              .later = 3};
    h->node[node].suspect = place;
}

/* Returns how sure a list of one suspect is of it. */
static double certainty_of(enum probe_mode mode, enum cmp_why why, double score)
{
    struct hand h;
    set_up(&h, mode);
    add(&h, why, score, 2);
    source__rate_suspects(&h.source);
    return h.list[0].certainty;
}

START_TEST(evidence_decides)
{
    const enum probe_mode mode = PROBE_MODE_SUMMARY;
    double exact = certainty_of(mode, CMP_WHY_SCALAR, 1),
           alone = certainty_of(mode, CMP_WHY_EXTRA, 0),
           value = certainty_of(mode, CMP_WHY_VALUE, 4), grad = certainty_of(mode, CMP_WHY_GRAD, 1),
           sign = certainty_of(mode, CMP_WHY_DTYPE, 1),
           small = certainty_of(mode, CMP_WHY_VALUE, 0.9);
    ck_assert(exact > 0.98 && exact < 1);
    ck_assert(exact > alone && alone > value && value > grad && grad > sign && sign > small);
    ck_assert(small < 0.2 && grad > 0.5 && sign < 0.5);
    ck_assert_double_eq(certainty_of(mode, CMP_WHY_FLAG, 0), alone);
    ck_assert_double_eq(certainty_of(mode, CMP_WHY_PARAMETER, 0), exact);
    struct hand
        h; /* that a parameter is in another order is inferred from what its statistics do not show */
    set_up(&h, mode);
    add(&h, CMP_WHY_PARAMETER, 4, 2);
    h.list[0].in = 0;
    source__rate_suspects(&h.source);
    ck_assert_double_eq(h.list[0].certainty, certainty_of(mode, CMP_WHY_INPUT, 4));
    ck_assert(certainty_of(PROBE_MODE_MD5, CMP_WHY_EXTRA, 0) < alone);
    ck_assert(certainty_of(PROBE_MODE_TENSOR, CMP_WHY_EXTRA, 0) > alone);
}
END_TEST

START_TEST(a_difference_that_ends_is_less_sure)
{
    struct hand h;
    set_up(&h, PROBE_MODE_SUMMARY);
    add(&h, CMP_WHY_EXTRA, 0, 2);
    h.list[0].later = 0;
    source__rate_suspects(&h.source);
    ck_assert(h.list[0].certainty < certainty_of(PROBE_MODE_SUMMARY, CMP_WHY_EXTRA, 0));
}
END_TEST

/* Small differences are usual between two programs. */
START_TEST(a_small_difference_of_two_programs_counts_as_any)
{
    struct hand h;
    set_up(&h, PROBE_MODE_SUMMARY);
    h.part.frameworks = true;
    add(&h, CMP_WHY_VALUE, 0.9, 2);
    source__rate_suspects(&h.source);
    ck_assert_double_gt(h.list[0].certainty, 0.7);
}
END_TEST

START_TEST(what_a_level_records_decides)
{
    struct hand h;
    double of[3];
    for (unsigned i = 0; i < 3; i++) { /* both, operators alone, modules alone */
        set_up(&h, PROBE_MODE_SUMMARY);
        h.node[0].kind = i == 1 ? PROBE_NODE_API : PROBE_NODE_MODULE;
        h.part.has_apis = i != 2;
        add(&h, CMP_WHY_VALUE, 4, 2);
        source__rate_suspects(&h.source);
        of[i] = h.list[0].certainty;
    }
    ck_assert(of[0] > of[2] && of[1] > of[2]);
}
END_TEST

START_TEST(all_sum_up_to_less_than_one)
{
    struct hand h;
    double sum = 0;
    set_up(&h, PROBE_MODE_SUMMARY);
    for (uint32_t i = 0; i < SUSPECTS; i++)
        add(&h, CMP_WHY_PARAMETER, 5, i);
    source__rate_suspects(&h.source);
    ck_assert_uint_eq(h.source.list.n, SUSPECTS);
    for (uint32_t i = 0; i < SUSPECTS; i++) {
        sum += h.list[i].certainty;
        ck_assert(i == 0 || h.list[i].certainty < h.list[i - 1].certainty);
    }
    ck_assert(sum < 1);
    ck_assert_uint_eq(h.source.nundecided, 0);
}
END_TEST

static void expect_undecided(const struct hand *h, const char *a, const char *b, const char *c)
{
    const char *const want[CMP_UNDECIDED] = {a, b, c};
    const struct ms_str *names;
    ck_assert_uint_eq(cmp_source_undecided(&h->source, &names), CMP_UNDECIDED);
    for (unsigned i = 0; i < CMP_UNDECIDED; i++)
        ck_assert(ms_str_is(names[i], want[i]));
}

/* Suspects are named once each, then what runs before the first of them. */
START_TEST(what_is_hardly_ever_right_accuses_nobody)
{
    struct hand h;
    set_up(&h, PROBE_MODE_SUMMARY);
    add(&h, CMP_WHY_VALUE, 0.9, 3);
    add(&h, CMP_WHY_VALUE, 0.9, 1);
    source__rate_suspects(&h.source);
    ck_assert_uint_eq(h.source.list.n, 0);
    ck_assert_uint_eq(h.node[3].suspect, 0);
    expect_undecided(&h, "D", "B", "C");
}
END_TEST

START_TEST(what_is_more_often_wrong_than_right_says_what_would_decide)
{
    struct hand h;
    set_up(&h, PROBE_MODE_SUMMARY);
    h.node[3].dir = PROBE_BACKWARD;
    add(&h, CMP_WHY_DTYPE, 1, 4);
    source__rate_suspects(&h.source);
    ck_assert_uint_eq(h.source.list.n, 1);
    ck_assert_uint_eq(h.node[4].suspect, 1);
    expect_undecided(&h, "E", "C", "B");
}
END_TEST

/* Suspect 1 is right more often than not, and tensors of what may be in another order would still decide. */
START_TEST(what_may_be_in_another_order_would_decide)
{
    struct hand h;
    const struct ms_str *names;
    set_up(&h, PROBE_MODE_SUMMARY);
    add(&h, CMP_WHY_VALUE, 4, 3);
    add(&h, CMP_WHY_INPUT, 1, 1);
    add(&h, CMP_WHY_VALUE, 4, 4);
    h.list[1].reader = 3;
    h.list[2].reader = MS_MAP_NONE;
    source__rate_suspects(&h.source);
    ck_assert_uint_eq(h.source.nundecided, 0);
    h.list[0].may_read_other_order = true;
    source__rate_suspects(&h.source);
    ck_assert_double_gt(h.list[0].certainty, 0.6);
    ck_assert_double_lt(h.list[0].certainty, certainty_of(PROBE_MODE_SUMMARY, CMP_WHY_VALUE, 4));
    ck_assert_uint_eq(cmp_source_undecided(&h.source, &names), 2);
    ck_assert(ms_str_is(names[0], "D") && ms_str_is(names[1], "B"));
}
END_TEST

/* Nothing decides better than tensors do. */
START_TEST(tensors_decide)
{
    struct hand h;
    set_up(&h, PROBE_MODE_TENSOR);
    add(&h, CMP_WHY_VALUE, 0.9, 3);
    source__rate_suspects(&h.source);
    ck_assert_uint_eq(h.source.list.n, 1);
    ck_assert_uint_eq(h.source.nundecided, 0);
}
END_TEST

TEST_MAIN("certainty", evidence_decides, a_difference_that_ends_is_less_sure,
          a_small_difference_of_two_programs_counts_as_any, what_a_level_records_decides,
          all_sum_up_to_less_than_one, what_is_hardly_ever_right_accuses_nobody,
          what_is_more_often_wrong_than_right_says_what_would_decide,
          what_may_be_in_another_order_would_decide, tensors_decide)

/* SPDX-License-Identifier: MIT
 *
 * highlight: each rule of the colours of msprobe 1, where it holds and where it just
 * does not.
 */
#include "compare/official/rules_official.h"
#include "tests/support/cmp_fixture.h"

#define LEAF(max, grad)                                                                            \
    "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[2],\"Max\":" max            \
    ",\"Min\":0.0,\"Mean\":0.0,\"Norm\":1.0,\"requires_grad\":" grad "}"

static const struct {
    const char *in_t, *in_b, *out_t, *out_b; /* maxima of an input and of the output */
    enum cmp_colour colour;
    const char *reasons;
} cases[] = {
    {"1.0", "1.0", "1.0", "1.0", CMP_PLAIN, ""},
    {"1.0", "1.0", "NaN", "1.0", CMP_RED, "maximum or minimum is nan, -inf, or inf"},
    {"1.0", "1.0", "Infinity", "1.0", CMP_RED,
     "maximum or minimum is nan, -inf, or inf\nmaximum relative error exceeds 0.5"},
    {"1.0", "1.0", "1.0", "NaN", CMP_PLAIN, ""},
    {"2e12", "1e12", "2.1e10", "1e12", CMP_RED,
     "maximum absolute error exceeds 1e+10\nmaximum relative error exceeds 0.5"},
    /* errors 2 and 20, of much larger numbers */
    {"1002.0", "1000.0", "100020.0", "100000.0", CMP_YELLOW,
     "maximum absolute error of both input/parameters and output exceed 1, with the output larger "
     "by an order of magnitude"},
    {"1002.0", "1000.0", "100019.0", "100000.0", CMP_PLAIN, ""},
    {"1001.0", "1000.0", "100020.0", "100000.0", CMP_PLAIN,
     ""}, /* the input's error is not above 1 */
    {"1.0", "1.0", "1.6", "1.0", CMP_RED, "maximum relative error exceeds 0.5"},
    {"1.0", "1.0", "1.5", "1.0", CMP_YELLOW,
     "The output's maximum relative error exceeds 0.1, while the input/parameter's is below 0.01"},
    {"1.0", "1.0", "1.05", "1.0", CMP_PLAIN, ""},
    {"1.02", "1.0", "1.5", "1.0", CMP_PLAIN, ""},
};

static void open_case(struct fixture *f, size_t i)
{
    char t[900], b[900];
    static const char leaf[] =
        "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[2],"
        "\"Min\":0.0,\"Mean\":0.0,\"Norm\":1.0,\"requires_grad\":false,"
        "\"Max\":";
    snprintf(t, sizeof t, "\"Torch.a.0.forward\": {\"input_args\": [%s%s}], \"output\": [%s%s}]}",
             leaf, cases[i].in_t, leaf, cases[i].out_t);
    snprintf(b, sizeof b, "\"Torch.a.0.forward\": {\"input_args\": [%s%s}], \"output\": [%s%s}]}",
             leaf, cases[i].in_b, leaf, cases[i].out_b);
    fixture_pair(f, t, b);
    f->conf.rules = cmp_rules_of(CMP_OLD);
    fixture_open(f);
}

START_TEST(an_output_is_coloured_for_itself_and_against_its_input)
{
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ms_buf why = {.max = 1 << 12};
        open_case(&f, i);
        const struct cmp_row *row = fixture_row(&f, "Torch.a.0.forward.output.0");
        enum cmp_colour colour = cmp__highlight(&f.c->set, &f.v, row, &why);
        ck_assert_msg(colour == cases[i].colour && strcmp(ms_buf_z(&why), cases[i].reasons) == 0,
                      "case %zu: colour %d, '%s'", i, colour, ms_buf_z(&why));
        ms_buf_free(&why);
    }
    fixture_free(&f);
}
END_TEST

/* As the official tool, which joins the reasons of all pairs. */
START_TEST(a_reason_is_given_once_for_every_input_that_it_holds_for)
{
    struct fixture f;
    struct ms_buf why = {.max = 1 << 12};
    fixture_init(&f);
    f.conf.rules = cmp_rules_of(CMP_OLD);
    fixture_pair(&f,
                 "\"Torch.a.0.forward\": {\"input_args\": [" LEAF("1.0", "true") "," LEAF(
                     "1.0", "true") "], \"output\": [" LEAF("1.6", "true") "]}",
                 "\"Torch.a.0.forward\": {\"input_args\": [" LEAF("1.0", "true") "," LEAF(
                     "1.0", "true") "], \"output\": [" LEAF("1.0", "false") "]}");
    fixture_open(&f);
    const struct cmp_row *row = fixture_row(&f, "Torch.a.0.forward.output.0");
    ck_assert_int_eq(cmp__highlight(&f.c->set, &f.v, row, &why), CMP_RED);
    ck_assert_str_eq(ms_buf_z(&why), "maximum relative error exceeds 0.5\n"
                                     "maximum relative error exceeds 0.5");
    ms_buf_free(&why);
    fixture_free(&f);
}
END_TEST

START_TEST(another_requires_grad_is_yellow_on_any_row)
{
    struct fixture f;
    struct ms_buf why = {.max = 1 << 12};
    fixture_init(&f);
    f.conf.rules = cmp_rules_of(CMP_OLD);
    fixture_pair(&f, "\"Torch.a.0.forward\": {\"input_args\": [" LEAF("1.0", "true") "]}",
                 "\"Torch.a.0.forward\": {\"input_args\": [" LEAF("1.0", "false") "]}");
    fixture_open(&f);
    const struct cmp_row *row = fixture_row(&f, "Torch.a.0.forward.input.0");
    ck_assert_int_eq(cmp__highlight(&f.c->set, &f.v, row, &why), CMP_YELLOW);
    ck_assert_str_eq(ms_buf_z(&why), "requires_grad is inconsistent");
    ms_buf_free(&why);
    fixture_free(&f);
}
END_TEST

static const struct {
    const char *target, *golden; /* records of Torch.a.0.forward */
    const char *row;
    const char *reasons;
} known[] = {
    /* the first row of an op counts as an input, be it an output */
    {"\"output\": [" LEAF("1.6", "true") "," LEAF("1.6", "true") "]",
     "\"output\": [" LEAF("1.0", "true") "," LEAF("1.0", "true") "]", "Torch.a.0.forward.output.0",
     ""},
    {"\"output\": [" LEAF("1.6", "true") "," LEAF("1.6", "true") "]",
     "\"output\": [" LEAF("1.0", "true") "," LEAF("1.0", "true") "]", "Torch.a.0.forward.output.1",
     "maximum relative error exceeds 0.5"},
    /* a rank is text, which is no input to hold an output against */
    {"\"input_kwargs\": {\"dst\": {\"type\": \"int\", \"value\": 3}}, \"output\": [" LEAF(
         "1.6", "true") "]",
     "\"input_kwargs\": {\"dst\": {\"type\": \"int\", \"value\": 3}}, \"output\": [" LEAF(
         "1.0", "true") "]",
     "Torch.a.0.forward.output.0", ""},
    /* requires_grad has the last word */
    {"\"input_args\": [" LEAF("1.0", "true") "], \"output\": [" LEAF("1.2", "true") "]",
     "\"input_args\": [" LEAF("1.0", "true") "], \"output\": [" LEAF("1.0", "false") "]",
     "Torch.a.0.forward.output.0",
     "The output's maximum relative error exceeds 0.1, while the input/parameter's is below 0.01\n"
     "requires_grad is inconsistent"},
};

START_TEST(what_counts_as_an_input_and_which_reason_comes_last)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct fixture f;
        char t[900], b[900];
        struct ms_buf why = {.max = 1 << 12};
        fixture_init(&f);
        f.conf.rules = cmp_rules_of(CMP_OLD);
        snprintf(t, sizeof t, "\"Torch.a.0.forward\": {%s}", known[i].target);
        snprintf(b, sizeof b, "\"Torch.a.0.forward\": {%s}", known[i].golden);
        fixture_pair(&f, t, b);
        fixture_open(&f);
        (void)cmp__highlight(&f.c->set, &f.v, fixture_row(&f, known[i].row), &why);
        ck_assert_msg(strcmp(ms_buf_z(&why), known[i].reasons) == 0, "case %zu: '%s'", i,
                      ms_buf_z(&why));
        ms_buf_free(&why);
        fixture_free(&f);
    }
}
END_TEST

/* The mark of a cosine of one element is no cosine. */
START_TEST(one_element_says_nothing_of_directions)
{
    struct fixture f;
    struct ms_buf why = {.max = 1 << 12};
    fixture_init(&f);
    f.conf.rules = cmp_rules_of(CMP_OLD);
    fixture_pair(&f,
                 "\"Torch.a.0.forward\": {\"input_args\": [" LEAF(
                     "1.0", "true") "], \"output\": [" LEAF("1.0", "true") "]}",
                 "\"Torch.a.0.forward\": {\"input_args\": [" LEAF(
                     "1.0", "true") "], \"output\": [" LEAF("1.0", "true") "]}");
    fixture_open(&f);
    const struct cmp_row *row = fixture_row(&f, "Torch.a.0.forward.output.0");
    f.c->set.mode = PROBE_MODE_TENSOR;
    for (size_t i = 0; i < f.v.rows.n; i++) {
        f.v.rows.p[i].fig = (struct cmp_figures){.state = CMP_STATE_OK};
        f.v.rows.p[i].fig.metric[CMP_COSINE] = i == 0 ? HUGE_VAL : 1;
    }
    ck_assert_int_eq(cmp__highlight(&f.c->set, &f.v, row, &why), CMP_PLAIN);
    ms_buf_free(&why);
    fixture_free(&f);
}
END_TEST

START_TEST(zeros_on_one_side_have_no_cosine)
{
    static const struct {
        double cosine, scale;
        const char *message;
    } zeros[] = {
        {NAN, NAN, "Cannot compare by Cosine Similarity, All the data is Zero in Bench dump data."},
        {NAN, 0, "Cannot compare by Cosine Similarity, All the data is Zero in npu dump data."},
        {1, NAN, ""}, /* both */
        {0.5, 2, ""},
    };
    struct fixture f;
    fixture_init(&f);
    f.conf.rules = cmp_rules_of(CMP_OLD);
    fixture_pair(&f, "\"Torch.a.0.forward\": {\"input_args\": [" LEAF("1.0", "true") "]}",
                 "\"Torch.a.0.forward\": {\"input_args\": [" LEAF("1.0", "true") "]}");
    fixture_open(&f);
    f.c->set.mode = PROBE_MODE_TENSOR;
    struct cmp_row row = *fixture_row(&f, "Torch.a.0.forward.input.0");
    row.fig = (struct cmp_figures){.state = CMP_STATE_OK};
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        struct cmp_row_verdict verdict;
        row.fig.metric[CMP_COSINE] = zeros[i].cosine;
        row.fig.ext.scale = zeros[i].scale;
        ck_ok(cmp__judge_old(&f.c->set, &f.v, &row, &verdict, &f.err), f.err);
        ck_assert_msg(ms_str_is(verdict.message, zeros[i].message), "case %zu: %.*s", i,
                      MS_STR_ARG(verdict.message));
    }
    fixture_free(&f);
}
END_TEST

TEST_MAIN("highlight", what_counts_as_an_input_and_which_reason_comes_last,
          one_element_says_nothing_of_directions, zeros_on_one_side_have_no_cosine,
          an_output_is_coloured_for_itself_and_against_its_input,
          a_reason_is_given_once_for_every_input_that_it_holds_for,
          another_requires_grad_is_yellow_on_any_row)

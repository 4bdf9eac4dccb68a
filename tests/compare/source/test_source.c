/* SPDX-License-Identifier: MIT
 *
 * test_source: each rule of the error source on the smallest pair of runs that shows it.
 *
 * A run is a list of calls that read and write numbered values.  Statistics follow
 * from the number alone, times 1 + err[number] in the target.
 */
#include "compare/source/source.h"
#include "tests/support/cmp_fixture.h"
#include "tests/support/said.h"

#include <math.h>

enum { VALUES = 64, CALLS = 64, NOTHING = -1 };

/* A call; values are numbers, NOTHING for none. */
struct call {
    const char *name;
    int in[3], out;
    const char *scalar; /* JSON of a plain argument; NULL: there is none */
    const char *dtype;  /* of the output; NULL: float32 */
};

struct run {
    struct call call[CALLS];
    double err[VALUES];  /* relative difference of each value; NaN: the value is NaN */
    double sums[VALUES]; /* the same of its sums alone: other elements, or another order of them */
    double scale;        /* of all values */
    bool md5, low;       /* low: every value is one of bfloat16 */
    const char *shape, *grad;
    int odd;  /* the value that has that shape or requires_grad */
    int mask; /* the value that is a tensor of truth values */
};

static struct run plain(void)
{
    return (struct run){.scale = 1, .odd = NOTHING, .mask = NOTHING};
}

static void put_stats(struct ms_buf *b, const struct run *r, int v, enum ms_dtype type)
{
    double f = r->scale * (1 + r->err[v]), sums = 1 + r->sums[v];
    if (isnan(f)) {
        ms_buf_puts(b, "\"Max\": NaN, \"Min\": NaN, \"Mean\": NaN, \"Norm\": NaN");
        return;
    }
    double high = 1 + 0.37 * v, low = -(0.8 + 0.21 * v);
    ms_buf_printf(b, "\"Max\": %.17g, \"Min\": %.17g, \"Mean\": %.17g, \"Norm\": %.17g",
                  ms_dtype_round(type, f * (f < 0 ? low : high)),
                  ms_dtype_round(type, f * (f < 0 ? high : low)), f * sums * 0.01 * (v + 1),
                  fabs(f) * sums * (10.0 + v));
}

static void put_tensor(struct ms_buf *b, const struct run *r, int v, const char *dtype)
{
    bool odd = v == r->odd;
    dtype = v == r->mask ? "bool" : r->low ? "bfloat16" : dtype;
    ms_buf_printf(b, "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.%s\", \"shape\": %s, ", dtype,
                  odd && r->shape != NULL ? r->shape : "[8, 16]");
    put_stats(b, r, v, r->low ? MS_DT_BF16 : MS_DT_F64);
    ms_buf_printf(b, ", \"requires_grad\": %s", odd && r->grad != NULL ? r->grad : "true");
    if (r->md5)
        ms_buf_printf(b, ", \"md5\": \"%08x\"", (unsigned)(v * 77 + 1 + (r->err[v] != 0) * 1000));
    ms_buf_puts(b, "}");
}

static void put_inputs(struct ms_buf *b, const struct run *r, const struct call *c)
{
    bool any = false;
    for (unsigned i = 0; i < 3; i++) {
        if (c->in[i] == NOTHING)
            continue;
        ms_buf_puts(b, any ? ", " : "");
        put_tensor(b, r, c->in[i], "float32");
        any = true;
    }
    if (c->scalar != NULL)
        ms_buf_printf(b, "%s{\"type\": \"float\", \"value\": %s}", any ? ", " : "", c->scalar);
}

static void put_call(struct ms_buf *b, const struct run *r, const struct call *c)
{
    bool backward = strstr(c->name, ".backward") != NULL;
    ms_buf_printf(b, "\"%s\": {\"%s\": [", c->name, backward ? "input" : "input_args");
    put_inputs(b, r, c);
    ms_buf_puts(b, backward ? "], \"output\": [" : "], \"input_kwargs\": {}, \"output\": [");
    if (c->out != NOTHING)
        put_tensor(b, r, c->out, c->dtype != NULL ? c->dtype : "float32");
    ms_buf_puts(b, "]}");
}

static void write_run(struct fixture *f, char side, const struct run *r)
{
    struct ms_buf b = {.max = 1 << 20};
    for (unsigned i = 0; i < CALLS && r->call[i].name != NULL; i++) {
        ms_buf_puts(&b, i != 0 ? ",\n" : "");
        put_call(&b, r, &r->call[i]);
    }
    fixture_dump(f, side, "statistics", "pytorch", ms_buf_z(&b));
    ms_buf_free(&b);
}

static void add_pair(struct fixture *f, struct cmp_source *s, const struct run *golden,
                     const struct run *target, int rank, int step)
{
    write_run(f, 'b', golden);
    write_run(f, 't', target);
    ck_ok(cmp_open(&f->c, &f->conf, f->t, f->b, NULL, &f->err), f->err);
    ck_ok(cmp_source_add(s, f->c, rank, step, NULL, &f->err), f->err);
    cmp_close(f->c);
    f->c = NULL;
}

/* The first suspect of a pair. */
struct answer {
    size_t n;
    char name[3][64];
    char undecided[64]; /* the first operator whose tensors would decide; empty: there is none */
    enum cmp_why why;
    char pattern[64], text[512], note[256];
    int rank, step;
    size_t nranks;
};

static struct answer answer_of(const struct cmp_source *s)
{
    const struct cmp_suspect *list;
    struct answer a = {.n = cmp_source_suspects(s, &list)};
    for (size_t i = 0; i < a.n && i < 3; i++) {
        struct ms_str name = list[i].target.p != NULL ? list[i].target : list[i].golden;
        snprintf(a.name[i], sizeof a.name[i], "%.*s", MS_STR_ARG(name));
    }
    const struct ms_str *undecided;
    if (cmp_source_undecided(s, &undecided) != 0)
        snprintf(a.undecided, sizeof a.undecided, "%.*s", MS_STR_ARG(undecided[0]));
    const struct ms_stored_message *notes;
    if (cmp_source_notes(s, &notes) != 0)
        say_in_english(notes[0], a.note, sizeof a.note);
    if (a.n == 0)
        return a;
    a.why = list[0].why;
    a.rank = list[0].rank;
    a.step = list[0].step;
    a.nranks = list[0].nranks;
    snprintf(a.pattern, sizeof a.pattern, "%s", list[0].pattern != NULL ? list[0].pattern : "");
    say_in_english(list[0].message, a.text, sizeof a.text);
    return a;
}

static struct answer ask(const struct run *golden, const struct run *target)
{
    struct fixture f;
    struct cmp_source *s;
    fixture_init(&f);
    ck_ok(cmp_source_new(&s, &f.err), f.err);
    add_pair(&f, s, golden, target, 0, 0);
    ck_ok(cmp_source_find(s, &f.err), f.err);
    struct answer a = answer_of(s);
    cmp_source_free(s);
    fixture_free(&f);
    return a;
}

/* x0 -> linear(w1) -> 2 -> gelu -> 3 -> linear(w4) -> 5 -> relu -> 6 -> softmax -> 7, then back. */
static struct run model(void)
{
    struct run r = plain();
    const struct call calls[] = {
        {"Functional.linear.0.forward", {0, 1, NOTHING}, 2, NULL, NULL},
        {"Functional.gelu.0.forward", {2, NOTHING, NOTHING}, 3, NULL, NULL},
        {"Functional.linear.1.forward", {3, 4, NOTHING}, 5, NULL, NULL},
        {"Functional.relu.0.forward", {5, NOTHING, NOTHING}, 6, NULL, NULL},
        {"Functional.softmax.0.forward", {6, NOTHING, NOTHING}, 7, "-1.0", NULL},
        {"Functional.linear.2.forward", {7, 8, NOTHING}, 9, NULL, NULL},
        {"Functional.layer_norm.0.forward", {9, 10, NOTHING}, 11, "1e-05", NULL},
        {"Tensor.mul.0.forward", {11, NOTHING, NOTHING}, 12, "2.0", NULL},
        {"Tensor.mul.0.backward", {20, NOTHING, NOTHING}, 21, NULL, NULL},
        {"Functional.layer_norm.0.backward", {21, NOTHING, NOTHING}, 22, NULL, NULL},
        {"Functional.linear.2.backward", {22, NOTHING, NOTHING}, 23, NULL, NULL},
        {"Functional.softmax.0.backward", {23, NOTHING, NOTHING}, 24, NULL, NULL},
        {"Functional.relu.0.backward", {24, NOTHING, NOTHING}, 25, NULL, NULL},
    };
    memcpy(r.call, calls, sizeof calls);
    return r;
}

static void spoil(struct run *r, int from, int to, double e)
{
    for (int i = from; i <= to; i++)
        r->err[i] = e;
}

START_TEST(equal_runs_have_no_suspect)
{
    struct run g = model(), t = model();
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

START_TEST(the_first_operator_that_differs_is_named)
{
    struct run g = model(), t = model();
    spoil(&t, 3, 3, 0.05);
    spoil(&t, 5, 7, 0.05);
    t.err[9] = t.err[11] = t.err[12] = 0.05;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.gelu.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_VALUE);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_ptr_nonnull(strstr(a.text, "inputs agree exactly"));
    ck_assert_ptr_nonnull(strstr(a.text, "later nodes only propagate it"));
    ck_assert_str_eq(a.pattern, "scaled by 1.05");
}
END_TEST

START_TEST(a_small_difference_early_beats_a_larger_one_late)
{
    struct run g = model(), t = model();
    t.err[3] = 0.01;
    t.err[5] = t.err[6] = 0.01;
    t.err[7] = 0.3;
    t.err[9] = t.err[11] = t.err[12] = 0.3;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.gelu.0.forward");
    ck_assert_str_eq(a.name[1], "Functional.softmax.0.forward");
}
END_TEST

/* What reaches an operator may differ more than its statistics show. */
START_TEST(what_an_earlier_suspect_made_explains_a_little_more)
{
    struct run g = model(), t = model();
    t.err[3] = 0.05;
    t.err[5] = t.err[6] = 0.01;
    t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.05;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.gelu.0.forward");
    ck_assert_uint_eq(a.n, 1);
    t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.5; /* so much more is not explained */
    ck_assert_str_eq(ask(&g, &t).name[1], "Functional.softmax.0.forward");
}
END_TEST

START_TEST(equal_statistics_by_chance_are_no_precedent)
{
    struct run g = model(), t = model();
    t.err[5] = t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 1.7e-7;
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    t.err[5] = t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 6e-7;
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.linear.1.forward");
}
END_TEST

/* Statistics of values in another order are equal, or equal but for the order of summation; what
 * mixes the elements next shows it, though nothing seems to come in. */
START_TEST(another_order_is_named_by_the_operator_that_made_it)
{
    struct run g = model(), t = model();
    t.sums[2] = 3e-8;
    t.err[5] = t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.3;
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.linear.0.forward");
    t.sums[3] = 2e-8;
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.linear.0.forward");
    t.err[3] = 2e-8; /* other elements: noise, and no order */
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.linear.1.forward");
}
END_TEST

START_TEST(another_argument_has_an_effect_where_the_norm_alone_moves)
{
    struct run g = model(), t = model();
    g.low = t.low = true;
    t.call[4].scalar = "-2.0";
    t.err[9] = t.err[11] = t.err[12] = 0.3;
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.linear.2.forward");
    t.sums[7] = 5e-3;
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.softmax.0.forward");
}
END_TEST

START_TEST(noise_on_everything_is_no_suspect_and_hides_no_fault)
{
    struct run g = model(), t = model();
    for (int i = 0; i < VALUES; i++)
        t.err[i] = 1e-5 * (1 + (i * 7) % 5);
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.01;
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.softmax.0.forward");
}
END_TEST

START_TEST(the_first_norm_moves_as_much_as_what_the_runs_start_with)
{
    static const int parameters[] = {1, 4, 8, 10};
    struct run g = model(), t = model();
    for (unsigned i = 0; i < 4; i++) {
        t.err[parameters[i]] = 1e-3;
        t.sums[parameters[i]] = -1e-3;
    }
    t.err[2] = t.err[3] = t.err[5] = t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 8e-4;
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    t.err[2] = t.err[3] = t.err[5] = t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 8e-3;
    ck_assert_str_eq(ask(&g, &t).undecided,
                     "Functional.linear.0.forward"); /* eight times as far apart */
}
END_TEST

START_TEST(a_parameter_that_differs_is_named_by_its_reader)
{
    struct run g = model(), t = model();
    t.err[4] = 0.02;
    t.err[5] = t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.02;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.1.forward");
    ck_assert_int_eq(a.why, CMP_WHY_PARAMETER);
    ck_assert_ptr_nonnull(strstr(a.text, "input.1 is a parameter"));
}
END_TEST

START_TEST(other_data_is_named_where_it_comes_in)
{
    struct run g = model(), t = model();
    t.err[0] = 0.1;
    t.err[2] = t.err[3] = t.err[5] = t.err[6] = t.err[7] = 0.1;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_INPUT);
}
END_TEST

START_TEST(the_first_nan_is_named)
{
    struct run g = model(), t = model();
    spoil(&t, 5, 7, NAN);
    t.err[9] = t.err[11] = t.err[12] = NAN;
    spoil(&t, 20, 25, NAN);
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.1.forward");
    ck_assert_int_eq(a.why, CMP_WHY_FLAG);
    ck_assert_uint_eq(a.n, 1); /* a gradient without a maker is its consequence */
}
END_TEST

START_TEST(nan_on_both_sides_is_no_difference)
{
    struct run g = model(), t = model();
    g.err[6] = t.err[6] = NAN;
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

START_TEST(a_forward_difference_explains_the_backward_pass)
{
    struct run g = model(), t = model();
    t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.02;
    spoil(&t, 20, 25, 0.06);
    t.err[20] = 0;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.softmax.0.forward");
}
END_TEST

START_TEST(a_gradient_that_alone_differs_is_named)
{
    struct run g = model(), t = model();
    spoil(&t, 23, 25, 0.1);
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.2.backward");
}
END_TEST

START_TEST(what_hands_gradients_on_makes_them_no_worse)
{
    struct run g = model(), t = model();
    g.low = t.low = true;
    t.err[2] = 4e-3;
    t.err[25] =
        -(t.sums[25] = -0.03); /* eight units: an activation may do that, a change of layout not */
    g.call[12].name = t.call[12].name = "Functional.gelu.1.backward";
    ck_assert_str_eq(ask(&g, &t).undecided, "");
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    g.call[12].name = t.call[12].name = "Tensor.transpose.0.backward";
    ck_assert_str_eq(ask(&g, &t).undecided, "Tensor.transpose.0.backward");
}
END_TEST

START_TEST(a_turned_sign_is_told)
{
    struct run g = model(), t = model();
    t.err[7] = -2;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.softmax.0.forward");
    ck_assert_str_eq(a.pattern, "sign flipped");
    t.err[7] = 1;
    ck_assert_str_eq(ask(&g, &t).pattern, "scaled by 2");
}
END_TEST

/* ---- wiring and structure ------------------------------------------------------ */

/* The model and steps of its optimizer: each takes a gradient and makes a parameter. */
static struct run trained(unsigned steps)
{
    static const struct call step[] = {
        {"Tensor.add_.0.forward", {25, 30, NOTHING}, 31, NULL, NULL},
        {"Tensor.add_.1.forward", {24, 32, NOTHING}, 33, NULL, NULL},
        {"Tensor.add_.2.forward", {23, 34, NOTHING}, 35, NULL, NULL},
    };
    struct run r = model();
    memcpy(&r.call[13], step, steps * sizeof *step);
    return r;
}

START_TEST(equal_updates_have_no_suspect)
{
    struct run g = trained(3), t = trained(3);
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

START_TEST(a_gradient_changed_after_backward_is_named_where_it_is_used)
{
    struct run g = trained(2), t = trained(2);
    g.call[14].in[0] = t.call[14].in[0] = 40; /* made by no operator */
    t.err[40] = 0.5;
    t.err[33] = 0.05;
    struct answer a = ask(&g, &t);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_str_eq(a.name[0], "Tensor.add_.1.forward");
    ck_assert_int_eq(a.why, CMP_WHY_INPUT);
}
END_TEST

START_TEST(a_step_that_one_side_alone_makes_is_named)
{
    struct run g = trained(2), t = trained(3);
    struct answer a = ask(&g, &t);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_str_eq(a.name[0], "Tensor.add_.2.forward");
    ck_assert_int_eq(a.why, CMP_WHY_EXTRA);
    a = ask(&t, &g);
    ck_assert_str_eq(a.name[0], "Tensor.add_.2.forward");
    ck_assert_int_eq(a.why, CMP_WHY_MISSING);
}
END_TEST

/* An optimizer that is one operator leaves no record. */
START_TEST(a_side_without_recorded_updates_accuses_nobody)
{
    struct run g = trained(0), t = trained(3);
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

START_TEST(an_input_from_another_operator_is_named)
{
    struct run g = model(), t = model();
    t.call[5].in[0] = 6; /* linear.2 reads what relu wrote, not softmax */
    t.err[9] = t.err[11] = t.err[12] = 0.4;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.2.forward");
    ck_assert_int_eq(a.why, CMP_WHY_WIRING);
    ck_assert_ptr_nonnull(
        strstr(a.text, "comes from Functional.relu.0.forward on the target side"));
}
END_TEST

static void remove_call(struct run *r, unsigned at)
{
    memmove(&r->call[at], &r->call[at + 1], (CALLS - at - 1) * sizeof r->call[0]);
}

START_TEST(a_missing_operator_with_effect_is_named)
{
    struct run g = model(), t = model();
    t.call[5].in[0] = 6;
    remove_call(&t, 4); /* softmax */
    t.err[9] = t.err[11] = t.err[12] = 0.4;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.softmax.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_MISSING);
    ck_assert_ptr_nonnull(strstr(a.text, "missing from the target"));
}
END_TEST

START_TEST(a_missing_mask_is_told)
{
    struct run g = model(), t = model();
    g.call[4].name = t.call[4].name = "Tensor.masked_fill.0.forward";
    t.call[5].in[0] = 6;
    remove_call(&t, 4);
    t.err[9] = t.err[11] = t.err[12] = 0.4;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Tensor.masked_fill.0.forward");
    ck_assert_str_eq(a.pattern, "mask missing");
}
END_TEST

START_TEST(a_cast_and_back_is_named_though_types_differ_everywhere)
{
    struct run g = model(), t = model();
    for (unsigned i = 0; t.call[i].name != NULL; i++)
        t.call[i].dtype = "bfloat16";
    memmove(&t.call[4], &t.call[2], (CALLS - 4) * sizeof t.call[0]);
    t.call[2] =
        (struct call){"Tensor.to.0.forward", {3, NOTHING, NOTHING}, 40, "\"float16\"", "float16"};
    t.call[3] =
        (struct call){"Tensor.to.1.forward", {40, NOTHING, NOTHING}, 3, "\"bfloat16\"", "bfloat16"};
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Tensor.to.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_EXTRA);
    t.call[3].in[0] = 3; /* two casts apart from each other: that is how the target computes */
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

START_TEST(an_operator_more_without_effect_is_a_note)
{
    struct run g = model(), t = model();
    memmove(&t.call[3], &t.call[2], (CALLS - 3) * sizeof t.call[0]);
    t.call[2] = (struct call){"Tensor.clone.0.forward", {3, NOTHING, NOTHING}, 3, NULL, NULL};
    struct answer a = ask(&g, &t);
    ck_assert_uint_eq(a.n, 0);
    ck_assert_str_eq(a.note, "the target alone runs clone; values behind it agree exactly");
    t.err[7] = t.err[9] = 0.2;
    a = ask(&g, &t);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_str_eq(a.name[0], "Functional.softmax.0.forward");
}
END_TEST

START_TEST(another_operator_with_the_same_values_is_a_note)
{
    struct run g = model(), t = model();
    memmove(&t.call[4], &t.call[3], (CALLS - 4) * sizeof t.call[0]);
    t.call[3] = (struct call){"Tensor.neg.0.forward", {5, NOTHING, NOTHING}, 40, NULL, NULL};
    t.call[4] = (struct call){"Tensor.clamp.0.forward", {40, NOTHING, NOTHING}, 6, NULL, NULL};
    struct answer a = ask(&g, &t);
    ck_assert_uint_eq(a.n, 0);
    ck_assert_str_eq(a.note, "the target runs neg, clamp where the golden side runs relu; values "
                             "behind it agree exactly");
    t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.1;
    a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.relu.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_MISSING);
}
END_TEST

START_TEST(an_operator_that_is_computed_again_is_a_note)
{
    struct run g = model(), t = model();
    unsigned last = 0;
    while (t.call[last].name != NULL)
        last++;
    memmove(&t.call[10], &t.call[9], (last - 9) * sizeof t.call[0]);
    t.call[9] = (struct call){"Functional.gelu.1.forward", {2, NOTHING, NOTHING}, 3, NULL, NULL};
    struct answer a = ask(&g, &t);
    ck_assert_uint_eq(a.n, 0);
    ck_assert_str_eq(a.note, "the target runs 1 forward operator again during backward (activation "
                             "checkpointing); it repeats the values of the first run");
}
END_TEST

/* A part of the loss that no recorded operator reads has its effect through its gradient. */
START_TEST(an_operator_more_with_a_backward_alone_is_named)
{
    struct run g = model(), t = model();
    memmove(&t.call[3], &t.call[2], (CALLS - 3) * sizeof t.call[0]);
    t.call[2] = (struct call){"Tensor.clone.0.forward", {3, NOTHING, NOTHING}, 50, NULL, NULL};
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    unsigned last = 0;
    while (t.call[last].name != NULL)
        last++;
    t.call[last] = (struct call){"Tensor.clone.0.backward", {51, NOTHING, NOTHING}, 52, NULL, NULL};
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Tensor.clone.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_EXTRA);
}
END_TEST

/* Parts of a value are cut from the graph and joined again: values agree, the gradient behind them does not. */
START_TEST(an_operator_that_passes_a_value_without_its_gradient_is_named)
{
    struct run g = model(), t = model();
    g.call[13] =
        (struct call){"Functional.linear.1.backward", {25, NOTHING, NOTHING}, 26, NULL, NULL};
    t.call[13] =
        (struct call){"Functional.linear.1.backward", {27, NOTHING, NOTHING}, 28, NULL, NULL};
    memmove(&t.call[4], &t.call[3], (CALLS - 4) * sizeof t.call[0]);
    t.call[3] = (struct call){"Torch.cat.0.forward", {40, 41, NOTHING}, 5, NULL, NULL};
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Torch.cat.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_EXTRA);
}
END_TEST

/* A module whose operator no dump records, as rms_norm, does the work itself. */
START_TEST(a_module_without_recorded_operators_is_named)
{
    struct run g = model(), t = model();
    memmove(&g.call[4], &g.call[3], (CALLS - 4) * sizeof g.call[0]);
    g.call[3] =
        (struct call){"Module.norm.RMSNorm.forward.0", {5, NOTHING, NOTHING}, 40, NULL, NULL};
    g.call[4].in[0] = 40;
    memcpy(t.call, g.call, sizeof t.call);
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    spoil(&t, 6, 7, 0.05);
    t.err[40] = t.err[9] = t.err[11] = t.err[12] = 0.05;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Module.norm.RMSNorm.forward.0");
    ck_assert_int_eq(a.why, CMP_WHY_VALUE);
}
END_TEST

/* ---- attributes ------------------------------------------------------------------ */

START_TEST(another_type_shape_or_argument_is_named)
{
    struct run g = model(), t = model();
    t.call[3].dtype = "bfloat16";
    ck_assert_int_eq(ask(&g, &t).why, CMP_WHY_DTYPE);
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.relu.0.forward");
    t = model();
    t.odd = 7;
    t.shape = "[16, 8]";
    ck_assert_int_eq(ask(&g, &t).why, CMP_WHY_SHAPE);
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.softmax.0.forward");
    t.shape = NULL;
    t.grad = "false";
    ck_assert_int_eq(ask(&g, &t).why, CMP_WHY_GRAD);
}
END_TEST

START_TEST(another_argument_is_told_with_both_values)
{
    struct run g = model(), t = model();
    t.call[6].scalar = "0.001";
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.layer_norm.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_SCALAR);
    ck_assert_str_eq(a.pattern, "eps differs");
    ck_assert_ptr_nonnull(strstr(a.text, "0.001 on the target side and 1e-05 on the golden side"));
    t.call[6].scalar = "0.00001";
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

START_TEST(an_argument_of_one_side_alone_counts)
{
    struct run g = model(), t = model();
    t.call[1].scalar = "1.0";
    ck_assert_uint_eq(ask(&g, &t).n, 0); /* its default, as far as values tell */
    spoil(&t, 3, 12, 0.01);
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.gelu.0.forward");
    ck_assert_ptr_nonnull(strstr(a.text, "absent on the golden side"));
}
END_TEST

START_TEST(another_precision_everywhere_is_nobodys_fault)
{
    struct run g = model(), t = model();
    for (unsigned i = 0; t.call[i].name != NULL; i++)
        t.call[i].dtype = "bfloat16";
    g.call[7].scalar = "\"torch.float32\""; /* a cast to what the run computes in */
    t.call[7].scalar = "\"torch.bfloat16\"";
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

/* A chain of products and normalizations, of which the normalizations run in float16. */
START_TEST(normalizations_alone_are_not_chosen_for_a_low_type)
{
    enum { PAIRS = 6 };
    char name[2 * PAIRS][40];
    struct run g = plain(), t;
    for (int i = 0; i < 2 * PAIRS; i++) {
        snprintf(name[i], sizeof name[i], "Functional.%s.%d.forward",
                 i % 2 == 0 ? "linear" : "layer_norm", i / 2);
        g.call[i] = (struct call){name[i], {i, 20 + i, NOTHING}, i + 1, NULL, NULL};
    }
    t = g;
    for (int i = 1; i < 2 * PAIRS; i += 2)
        t.call[i].dtype = "float16";
    spoil(&t, 2, 2 * PAIRS, 3e-4);
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.layer_norm.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_VALUE);
}
END_TEST

START_TEST(noise_of_a_second_run_explains_as_much)
{
    struct fixture f;
    struct cmp_source *s;
    struct run g = model(), t = model(), n = model();
    char noise[128];
    t.err[7] = 0.02;
    n.err[7] = 0.01;
    fixture_init(&f);
    snprintf(noise, sizeof noise, "%s/n/dump.json", f.dir);
    write_run(&f, 'n', &n);
    f.conf.noise_floor = noise;
    f.conf.noise_step = f.conf.noise_rank = -1;
    ck_ok(cmp_source_new(&s, &f.err), f.err);
    add_pair(&f, s, &g, &t, 0, 0);
    ck_ok(cmp_source_find(s, &f.err), f.err);
    ck_assert_uint_eq(answer_of(s).n, 0);
    cmp_source_free(s);
    fixture_free(&f);
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.softmax.0.forward");
}
END_TEST

/* ---- the runs as a whole ------------------------------------------------------------------ */

/* The only note of a pair without a suspect; "" where there is none. */
static const char *note_of(const struct run *golden, const struct run *target)
{
    static char text[256];
    struct fixture f;
    struct cmp_source *s;
    const struct cmp_suspect *list;
    const struct ms_stored_message *notes;
    fixture_init(&f);
    ck_ok(cmp_source_new(&s, &f.err), f.err);
    add_pair(&f, s, golden, target, 0, 0);
    ck_ok(cmp_source_find(s, &f.err), f.err);
    size_t n = cmp_source_notes(s, &notes);
    ck_assert_uint_eq(cmp_source_suspects(s, &list), 0);
    ck_assert_uint_le(n, 1);
    text[0] = '\0';
    if (n != 0)
        say_in_english(notes[0], text, sizeof text);
    cmp_source_free(s);
    fixture_free(&f);
    return text;
}

START_TEST(other_weights_at_the_start_are_a_note_and_no_suspects)
{
    struct run g = plain(), t;
    const struct call calls[] = {
        {"Functional.linear.0.forward", {0, 1, NOTHING}, 2, NULL, NULL},
        {"Functional.linear.1.forward", {2, 3, NOTHING}, 4, NULL, NULL},
        {"Functional.linear.2.forward", {4, 5, NOTHING}, 6, NULL, NULL},
        {"Functional.linear.3.forward", {6, 7, NOTHING}, 8, NULL, NULL},
        {"Functional.layer_norm.0.forward", {8, 9, NOTHING}, 10, NULL, NULL},
    };
    memcpy(g.call, calls, sizeof calls);
    t = g;
    ck_assert_str_eq(note_of(&g, &t), "");
    for (int i = 1; i < 9; i++)
        t.err[i] = 0.05 + 0.01 * i;
    t.err[9] = 0.7; /* far beyond the others, and no news */
    t.err[10] = 0.5;
    ck_assert_ptr_nonnull(strstr(note_of(&g, &t), "5 of 5 parameters differ"));
}
END_TEST

START_TEST(another_precision_is_a_note)
{
    struct run g = model(), t = model();
    for (unsigned i = 0; t.call[i].name != NULL; i++)
        t.call[i].dtype = "bfloat16";
    ck_assert_ptr_nonnull(
        strstr(note_of(&g, &t), "100 % of its outputs in bfloat16 where the golden side has"));
}
END_TEST

/* ---- md5 -------------------------------------------------------------------------- */

START_TEST(checksums_name_the_first_that_differs)
{
    struct run g = model(), t = model();
    g.md5 = t.md5 = true;
    spoil(&t, 6, 7, 1e-9);
    t.err[9] = t.err[11] = t.err[12] = 1e-9;
    spoil(&t, 21, 25, 1e-9);
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.relu.0.forward");
    ck_assert_uint_eq(a.n, 1);
}
END_TEST

/* ---- ranks and steps ------------------------------------------------------------------ */

/* linear, then a sum over ranks, then gelu. */
static struct run rank_model(void)
{
    struct run r = plain();
    const struct call calls[] = {
        {"Functional.linear.0.forward", {0, 1, NOTHING}, 2, NULL, NULL},
        {"Distributed.all_reduce.0.forward", {2, NOTHING, NOTHING}, 3, NULL, NULL},
        {"Functional.gelu.0.forward", {3, NOTHING, NOTHING}, 4, NULL, NULL},
    };
    memcpy(r.call, calls, sizeof calls);
    return r;
}

/* Of two ranks the second's linear is named, and nothing else. */
static void expect_linear_of_rank_1(struct run *sound, struct run *faulty)
{
    struct fixture f;
    struct cmp_source *s;
    struct run g = rank_model();
    fixture_init(&f);
    ck_ok(cmp_source_new(&s, &f.err), f.err);
    add_pair(&f, s, &g, sound, 0, 0);
    add_pair(&f, s, &g, faulty, 1, 0);
    ck_ok(cmp_source_find(s, &f.err), f.err);
    struct answer a = answer_of(s);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_str_eq(a.name[0], "Functional.linear.0.forward");
    ck_assert_int_eq(a.rank, 1);
    cmp_source_free(s);
    fixture_free(&f);
}

START_TEST(a_collective_is_explained_by_another_rank)
{
    struct run sound = rank_model(), faulty = rank_model();
    sound.err[3] = sound.err[4] = 0.1;
    faulty.err[2] = faulty.err[3] = faulty.err[4] = 0.1;
    expect_linear_of_rank_1(&sound, &faulty);
}
END_TEST

START_TEST(another_rank_explains_a_little_more)
{
    struct run sound = rank_model(), faulty = rank_model();
    sound.err[3] = faulty.err[3] = 0.02;
    faulty.err[2] = sound.err[4] = faulty.err[4] = 0.1;
    expect_linear_of_rank_1(&sound, &faulty);
}
END_TEST

START_TEST(one_fault_on_all_ranks_is_one_suspect)
{
    struct fixture f;
    struct cmp_source *s;
    struct run g = rank_model(), t = rank_model();
    t.err[2] = t.err[3] = t.err[4] = 0.1;
    fixture_init(&f);
    ck_ok(cmp_source_new(&s, &f.err), f.err);
    for (int rank = 3; rank >= 0; rank--)
        add_pair(&f, s, &g, &t, rank, 0);
    ck_ok(cmp_source_find(s, &f.err), f.err);
    struct answer a = answer_of(s);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_uint_eq(a.nranks, 4);
    ck_assert_int_eq(a.rank, 0);
    cmp_source_free(s);
    fixture_free(&f);
}
END_TEST

START_TEST(an_earlier_step_explains_the_parameters_of_a_later_one)
{
    struct fixture f;
    struct cmp_source *s;
    struct run g = rank_model(), first = rank_model(), second = rank_model();
    first.err[4] = 0.2;
    second.err[1] = second.err[2] = second.err[3] = second.err[4] = 0.1;
    fixture_init(&f);
    ck_ok(cmp_source_new(&s, &f.err), f.err);
    add_pair(&f, s, &g, &second, 0, 1);
    add_pair(&f, s, &g, &first, 0, 0);
    ck_ok(cmp_source_find(s, &f.err), f.err);
    struct answer a = answer_of(s);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_str_eq(a.name[0], "Functional.gelu.0.forward");
    ck_assert_int_eq(a.step, 0);
    cmp_source_free(s);
    fixture_free(&f);
}
END_TEST

/* ---- metamorphic -------------------------------------------------------------------------- */

static void rename_calls(struct run *r)
{
    static char names[CALLS][64];
    for (unsigned i = 0; r->call[i].name != NULL; i++) {
        const char *dot = strchr(r->call[i].name, '.');
        snprintf(names[i], sizeof names[i], "Custom%s", dot);
        r->call[i].name = names[i];
    }
}

START_TEST(other_prefixes_and_scales_do_not_move_the_suspect)
{
    struct run g = model(), t = model();
    t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.03;
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.softmax.0.forward");
    g.scale = t.scale = 1e12;
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.softmax.0.forward");
    g.scale = t.scale = 1e-12;
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.softmax.0.forward");
    rename_calls(&g);
    rename_calls(&t);
    ck_assert_str_eq(ask(&g, &t).name[0], "Custom.softmax.0.forward");
}
END_TEST

START_TEST(swapped_sides_name_the_same_operator)
{
    struct run g = model(), t = model();
    t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.03;
    ck_assert_str_eq(ask(&t, &g).name[0], "Functional.softmax.0.forward");
}
END_TEST

/* ---- odd input ------------------------------------------------------------------------------- */

START_TEST(empty_and_halved_dumps_are_judged_for_what_they_have)
{
    struct run none = plain(), g = model(), t = model();
    ck_assert_uint_eq(ask(&none, &none).n, 0);
    t.call[4].name = NULL; /* the target ended early */
    struct answer a = ask(&g, &t);
    for (size_t i = 0; i < a.n && i < 3; i++)
        ck_assert_ptr_nonnull(strstr(a.name[i], ".forward"));
    ck_assert_uint_eq(ask(&none, &g).n > 0, 1);
}
END_TEST

START_TEST(roles_are_told_of_every_node)
{
    struct fixture f;
    struct cmp_source *s;
    struct run g = model(), t = model();
    t.err[3] = t.err[5] = t.err[6] = 0.05;
    t.err[7] = 1e-9;
    fixture_init(&f);
    ck_ok(cmp_source_new(&s, &f.err), f.err);
    add_pair(&f, s, &g, &t, 0, 0);
    ck_ok(cmp_source_find(s, &f.err), f.err);
    ck_assert_int_eq(cmp_source_node(s, 0, 0).role, CMP_ROLE_CLEAN);
    ck_assert_int_eq(cmp_source_node(s, 0, 1).role, CMP_ROLE_INTRODUCES);
    ck_assert_uint_eq(cmp_source_node(s, 0, 1).suspect, 1);
    ck_assert_int_eq(cmp_source_node(s, 0, 2).role, CMP_ROLE_PROPAGATES);
    ck_assert_int_eq(cmp_source_node(s, 0, 4).role, CMP_ROLE_ABSORBS);
    ck_assert_int_eq(cmp_source_node(s, 0, 1000).role, CMP_ROLE_CLEAN);
    ck_assert_int_eq(cmp_source_node(s, 7, 0).role, CMP_ROLE_CLEAN);
    cmp_source_free(s);
    fixture_free(&f);
}
END_TEST

/* ---- what only seems to agree, or to differ ------------------------------------ */

static void insert_call(struct run *r, unsigned at, struct call call)
{
    memmove(&r->call[at + 1], &r->call[at], (CALLS - at - 1) * sizeof r->call[0]);
    r->call[at] = call;
}

/* An assignment returns nothing; what it overwrites may be memory that was never written. */
START_TEST(memory_that_an_assignment_overwrites_is_no_input)
{
    const struct call write = {
        "Tensor.__setitem__.0.forward", {40, 41, NOTHING}, NOTHING, NULL, NULL};
    struct run g = model(), t = model();
    insert_call(&g, 4, write);
    insert_call(&t, 4, write);
    t.err[40] = 3;
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    t.err[40] = NAN;
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    t.err[40] = 0;
    t.err[41] = 3;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Tensor.__setitem__.0.forward");
    ck_assert_ptr_nonnull(strstr(a.text, "differs by 0.75"));
    ck_assert_ptr_null(strstr(a.text, "NaN"));
}
END_TEST

START_TEST(an_operator_that_reorders_values_is_named_before_their_reader)
{
    struct run g = model(), t = model();
    insert_call(&t, 2, (struct call){"Torch.roll.0.forward", {3, NOTHING, NOTHING}, 3, NULL, NULL});
    t.err[5] = t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.2;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Torch.roll.0.forward");
    ck_assert_str_eq(a.name[1], "Functional.linear.1.forward");
    ck_assert_ptr_nonnull(strstr(a.text, "Functional.linear.1.forward makes other values of it"));
}
END_TEST

START_TEST(parts_that_are_joined_in_another_order_are_named_before_their_reader)
{
    struct run g = model(), t = model();
    insert_call(&t, 2, (struct call){"Torch.cat.0.forward", {3, NOTHING, NOTHING}, 3, NULL, NULL});
    t.err[5] = t.err[6] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.2;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Torch.cat.0.forward");
    ck_assert_ptr_nonnull(strstr(a.text, "Functional.linear.1.forward makes other values of it"));
}
END_TEST

/* x * 2 - x.detach() hands its value on and doubles its gradient. */
START_TEST(an_operator_more_that_changes_the_gradient_alone_is_named)
{
    struct run g = model(), t = model();
    insert_call(&t, 5, (struct call){"Tensor.neg.0.forward", {7, NOTHING, NOTHING}, 7, NULL, NULL});
    const struct call back = {"Tensor.neg.0.backward", {23, NOTHING, NOTHING}, 44, NULL, NULL};
    insert_call(&t, 12, back);
    ck_assert_str_eq(t.call[13].name, "Functional.softmax.0.backward");
    t.call[13].in[0] = 44;
    t.err[24] = t.err[25] = 0.5;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Tensor.neg.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_EXTRA);
}
END_TEST

/* A sum of what is computed from the same data moves with it: a parameter between has another order. */
START_TEST(a_parameter_in_another_order_is_named_where_the_data_explains_nothing)
{
    struct run g = model(), t = model();
    const struct call sum = {"Tensor.__add__.0.forward", {5, 3, NOTHING}, 43, NULL, NULL};
    insert_call(&g, 3, sum);
    insert_call(&t, 3, sum);
    g.call[4].in[0] = t.call[4].in[0] = 43;
    t.sums[43] = t.sums[6] = t.sums[7] = 0.2;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.1.forward");
    ck_assert_int_eq(a.why, CMP_WHY_PARAMETER);
    ck_assert_str_eq(a.name[1], "Tensor.__add__.0.forward");
}
END_TEST

/* A sum of two tensors cannot be wrong by itself where it is not off by one factor or shift. */
START_TEST(data_in_another_order_is_named_before_the_sum_that_shows_it)
{
    struct run g = model(), t = model();
    const struct call sum = {"Tensor.__add__.0.forward", {3, 61, NOTHING}, 43, NULL, NULL};
    insert_call(&g, 2, sum);
    insert_call(&t, 2, sum);
    g.call[3].in[0] = t.call[3].in[0] = 43;
    t.sums[43] = t.sums[5] = t.sums[6] = t.sums[7] = 0.2;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_INPUT);
    ck_assert_str_eq(a.name[1], "Tensor.__add__.0.forward");
    g.call[2].in[1] = t.call[2].in[1] = g.odd = 60;
    g.shape = "[4, 16]"; /* of another size: it may differ */
    ck_assert_str_eq(ask(&g, &t).name[0], "Tensor.__add__.0.forward");
    g.call[2].in[1] = t.call[2].in[1] = 61;
    g.odd = NOTHING;
    t.sums[43] = 0;
    t.err[43] = 0.2;
    a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Tensor.__add__.0.forward");
}
END_TEST

START_TEST(arguments_of_another_form_are_no_suspect)
{
    struct run g = model(), t = model();
    t.call[4].name = "Torch.special_softmax.0.forward";
    t.call[4].scalar = "3.0";
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

/* Gradients of a loss that is not recorded come from outside the dump. */
START_TEST(rounding_of_a_gradient_from_outside_is_no_suspect)
{
    struct run g = model(), t = model();
    spoil(&t, 20, 25, 8e-6);
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    spoil(&t, 20, 25, 8e-3);
    ck_assert_str_eq(ask(&g, &t).name[0], "Tensor.mul.0.backward");
}
END_TEST

/* Clipping by hand multiplies in place; the optimizer reads the same gradient on both sides. */
START_TEST(an_update_of_another_form_is_no_step)
{
    struct run g = trained(2), t = trained(2);
    insert_call(&g, 13,
                (struct call){"Torch.neg.0.forward", {25, NOTHING, NOTHING}, 60, NULL, NULL});
    insert_call(&g, 14,
                (struct call){"Torch.div.0.forward", {60, NOTHING, NOTHING}, 50, NULL, NULL});
    insert_call(&t, 13,
                (struct call){"Tensor.mul_.0.forward", {25, NOTHING, NOTHING}, 50, NULL, NULL});
    g.call[15].in[0] = t.call[14].in[0] = 50;
    ck_assert_uint_eq(ask(&g, &t).n, 0);
}
END_TEST

/* Groups of parameters change the order of an optimizer's loop, but no value. */
START_TEST(updates_are_paired_by_their_parameter)
{
    struct run g = trained(3), t = trained(3);
    const struct call first = g.call[13];
    memmove(&t.call[13], &t.call[14], 2 * sizeof first);
    t.call[15] = first;
    for (unsigned i = 0; i < 3; i++)
        t.call[13 + i].name = g.call[13 + i].name;
    ck_assert_uint_eq(ask(&g, &t).n, 0);
    t.err[31] = 0.3; /* the step that now comes last */
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Tensor.add_.2.forward");
    ck_assert_int_eq(a.why, CMP_WHY_VALUE);
}
END_TEST

/* The maximum of second moments is the second moment itself in the first step. */
START_TEST(an_operator_more_inside_the_steps_is_another_optimizer)
{
    struct run g = trained(2), t = trained(2);
    const struct call root = {"Tensor.sqrt.0.forward", {31, NOTHING, NOTHING}, 36, NULL, NULL};
    insert_call(&g, 14, root);
    insert_call(&t, 14, root);
    insert_call(&t, 14,
                (struct call){"Torch.maximum.0.forward", {31, 31, NOTHING}, 31, NULL, NULL});
    struct answer a = ask(&g, &t);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_str_eq(a.name[0], "Torch.maximum.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_EXTRA);
}
END_TEST

/* A loss is read by no node, and another implementation of it has no partner. */
START_TEST(another_loss_is_named_where_its_value_differs)
{
    struct run g = model(), t = model();
    g.odd = t.odd = 44;
    g.shape = t.shape = "[]";
    insert_call(
        &g, 8,
        (struct call){"Functional.l1_loss.0.forward", {12, NOTHING, NOTHING}, 44, NULL, NULL});
    insert_call(
        &g, 9,
        (struct call){"Functional.l1_loss.0.backward", {48, NOTHING, NOTHING}, 20, NULL, NULL});
    insert_call(&t, 8,
                (struct call){"Tensor.exp.0.forward", {12, NOTHING, NOTHING}, 46, NULL, NULL});
    insert_call(&t, 9,
                (struct call){"Tensor.sum.0.forward", {46, NOTHING, NOTHING}, 44, NULL, NULL});
    insert_call(&t, 10,
                (struct call){"Tensor.sum.0.backward", {48, NOTHING, NOTHING}, 47, NULL, NULL});
    insert_call(&t, 11,
                (struct call){"Tensor.exp.0.backward", {47, NOTHING, NOTHING}, 20, NULL, NULL});
    struct answer a = ask(&g, &t);
    ck_assert_msg(a.n == 0, "%s: %s", a.name[0], a.text);
    t.err[44] = 0.2;
    a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.l1_loss.0.forward");
    ck_assert_ptr_nonnull(strstr(a.text, "what is computed with it differs by 0.17"));
}
END_TEST

/* All masks have the statistics True and False. */
START_TEST(another_mask_is_named_before_its_reader)
{
    struct run g = model(), t = model();
    insert_call(&t, 4,
                (struct call){"Tensor.__and__.0.forward", {40, NOTHING, NOTHING}, 41, NULL, NULL});
    g.call[4].in[1] = t.call[5].in[1] = g.mask = t.mask = 41;
    t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.2;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Tensor.__and__.0.forward");
    ck_assert_ptr_nonnull(strstr(a.text, "Functional.softmax.0.forward makes other values of it"));
}
END_TEST

TEST_MAIN(
    "source", equal_runs_have_no_suspect, the_first_operator_that_differs_is_named,
    a_small_difference_early_beats_a_larger_one_late,
    what_an_earlier_suspect_made_explains_a_little_more,
    equal_statistics_by_chance_are_no_precedent,
    another_order_is_named_by_the_operator_that_made_it,
    another_argument_has_an_effect_where_the_norm_alone_moves, another_rank_explains_a_little_more,
    noise_on_everything_is_no_suspect_and_hides_no_fault,
    the_first_norm_moves_as_much_as_what_the_runs_start_with,
    a_parameter_that_differs_is_named_by_its_reader, other_data_is_named_where_it_comes_in,
    the_first_nan_is_named, nan_on_both_sides_is_no_difference,
    a_forward_difference_explains_the_backward_pass, a_gradient_that_alone_differs_is_named,
    what_hands_gradients_on_makes_them_no_worse, a_turned_sign_is_told,
    equal_updates_have_no_suspect, a_gradient_changed_after_backward_is_named_where_it_is_used,
    a_step_that_one_side_alone_makes_is_named, a_side_without_recorded_updates_accuses_nobody,
    an_input_from_another_operator_is_named, a_missing_operator_with_effect_is_named,
    a_missing_mask_is_told, a_cast_and_back_is_named_though_types_differ_everywhere,
    other_weights_at_the_start_are_a_note_and_no_suspects, another_precision_is_a_note,
    an_operator_more_without_effect_is_a_note, another_operator_with_the_same_values_is_a_note,
    an_operator_that_is_computed_again_is_a_note, an_operator_more_with_a_backward_alone_is_named,
    an_operator_that_passes_a_value_without_its_gradient_is_named,
    a_module_without_recorded_operators_is_named, another_type_shape_or_argument_is_named,
    another_argument_is_told_with_both_values, an_argument_of_one_side_alone_counts,
    another_precision_everywhere_is_nobodys_fault,
    normalizations_alone_are_not_chosen_for_a_low_type, noise_of_a_second_run_explains_as_much,
    checksums_name_the_first_that_differs, a_collective_is_explained_by_another_rank,
    one_fault_on_all_ranks_is_one_suspect, an_earlier_step_explains_the_parameters_of_a_later_one,
    other_prefixes_and_scales_do_not_move_the_suspect, swapped_sides_name_the_same_operator,
    empty_and_halved_dumps_are_judged_for_what_they_have, roles_are_told_of_every_node,
    memory_that_an_assignment_overwrites_is_no_input,
    an_operator_that_reorders_values_is_named_before_their_reader,
    parts_that_are_joined_in_another_order_are_named_before_their_reader,
    an_operator_more_that_changes_the_gradient_alone_is_named,
    a_parameter_in_another_order_is_named_where_the_data_explains_nothing,
    data_in_another_order_is_named_before_the_sum_that_shows_it,
    arguments_of_another_form_are_no_suspect, rounding_of_a_gradient_from_outside_is_no_suspect,
    an_update_of_another_form_is_no_step, updates_are_paired_by_their_parameter,
    an_operator_more_inside_the_steps_is_another_optimizer,
    another_loss_is_named_where_its_value_differs, another_mask_is_named_before_its_reader)

/* SPDX-License-Identifier: MIT
 *
 * test_source_whole: what is said of runs as a whole, of ranks and steps, and of what only seems to differ.
 */
#include "tests/support/model_runs.h"

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

/* ---- sums that cancel --------------------------------------------------------------- */

#define NUMBERS(dtype, high, norm)                                                                 \
    "{\"type\": \"torch.Tensor\", \"dtype\": \"torch." dtype "\", \"shape\": [64, 64], "           \
    "\"Max\": " high ", \"Min\": -" high ", \"Mean\": 0.01, \"Norm\": " norm                       \
    ", \"requires_grad\": false}"
/* What rounding takes from a value: the rounded value less the value. */
#define ROUNDED(dtype, high, norm, rest, rest_norm)                                                                                                                   \
    "\"Tensor.round.0.forward\": {\"input_args\": [" NUMBERS(                                                                                                         \
        dtype, high,                                                                                                                                                  \
        norm) "], \"input_kwargs\": {}, \"output\": [" NUMBERS(dtype, "4.25",                                                                                         \
                                                               "101.5") "]},\n\"Tensor.__sub__.0."                                                                    \
                                                                        "forward\": "                                                                                 \
                                                                        "{\"input_args\": "                                                                           \
                                                                        "[" NUMBERS(                                                                                  \
                                                                            dtype, "4.25",                                                                            \
                                                                            "101.5") ","                                                                              \
                                                                                     " " NUMBERS(dtype, high, norm) "], \"input_kwargs\": {}, \"output\": [" NUMBERS( \
                                                                                         dtype,                                                                       \
                                                                                         rest,                                                                        \
                                                                                         rest_norm) "]}"

static size_t suspects_of(const char *golden, const char *target)
{
    struct fixture f;
    struct cmp_source *s;
    const struct cmp_suspect *list;
    fixture_init(&f);
    ck_ok(cmp_source_new(&s, &f.err), f.err);
    fixture_dump(&f, 'b', "statistics", "pytorch", golden);
    fixture_dump(&f, 't', "statistics", "pytorch", target);
    ck_ok(cmp_open(&f.c, &f.conf, f.t, f.b, NULL, &f.err), f.err);
    ck_ok(cmp_source_add(s, f.c, 0, 0, NULL, &f.err), f.err);
    ck_ok(cmp_source_find(s, &f.err), f.err);
    const size_t n = cmp_source_suspects(s, &list);
    cmp_close(f.c);
    f.c = NULL;
    cmp_source_free(s);
    fixture_free(&f);
    return n;
}

START_TEST(a_sum_whose_terms_cancel_widens_their_difference)
{
    const char *golden = ROUNDED("float16", "4.2196", "100.89", "0.0166", "0.917");
    /* the value is off by a quarter of a unit of float16, its sum with the rounded one by 5 % */
    ck_assert_uint_eq(
        suspects_of(golden, ROUNDED("float16", "4.2187", "100.87", "0.0175", "0.918")), 0);
    ck_assert_uint_eq(suspects_of(golden, ROUNDED("float16", "4.2187", "100.87", "0.0332", "1.83")),
                      1);
}
END_TEST

/* ---- the update --------------------------------------------------------------------- */

#define CALL(name, in, out)                                                                        \
    "\"" name ".forward\": {\"input_args\": [" in "], \"input_kwargs\": {}, \"output\": [" out "]" \
    "}"
#define F(high, norm) NUMBERS("float32", high, norm)
/* A layer, its backward pass, and how the gradient is clipped; then a weight and its average change. */
#define STEP(clip, left)                                                                           \
    "\"Module.fc.Linear.forward.0\": {\"input_args\": [" F(                                        \
        "1.5",                                                                                     \
        "40.0") "], \"input_kwargs\": "                                                            \
                "{}, \"parameters\": "                                                             \
                "{\"weight\": " F("0.9", "30.0") "}, \"output\": [" F("2.5", "60.0") "]},\n" CALL( \
                    "Functional.linear."                                                           \
                    "0",                                                                           \
                    F("1.5", "40.0") ", " F("0"                                                    \
                                            "."                                                    \
                                            "9",                                                   \
                                            "3"                                                    \
                                            "0"                                                    \
                                            "."                                                    \
                                            "0"),                                                  \
                    F("2.5",                                                                       \
                      "60.0")) ",\n"                                                               \
                               "\"Fun"                                                             \
                               "ction"                                                             \
                               "al."                                                               \
                               "linea"                                                             \
                               "r.0."                                                              \
                               "backw"                                                             \
                               "ard\""                                                             \
                               ": "                                                                \
                               "{\"in"                                                             \
                               "put\""                                                             \
                               ": "                                                                \
                               "[" F("0.1", "2.0") "], \"output\": [" F(                           \
                                   "0.2",                                                          \
                                   "3.0") "]},\n\"Module.fc.Linear.parameters_grad.0\": "          \
                                          "{\"weight\": [" F(                                      \
                                              "0"                                                  \
                                              "."                                                  \
                                              "4",                                                 \
                                              "8"                                                  \
                                              "."                                                  \
                                              "0") "]},\n" clip                                    \
                                                   ",\n" CALL(                                     \
                                                       "Tensor.mul_.0", F("0.4", "8.0"),           \
                                                       F("0.05",                                   \
                                                         "1.0")) ",\n" CALL("Tenso"                \
                                                                            "r."                   \
                                                                            "add_."                \
                                                                            "0",                   \
                                                                            F("0."                 \
                                                                              "9",                 \
                                                                              "30."                \
                                                                              "0") ", " F("0.05",  \
                                                                                          "1.0"),  \
                                                                            left)
#define NORM                                                                                       \
    CALL("Torch._foreach_norm.0", F("0.4", "8.0"), F("8.0", "8.0"))                                \
    ",\n" CALL("Tensor.__add__.0", F("8.0", "8.0"), F("8.1", "8.1"))
#define BY_HAND                                                                                    \
    CALL("Tensor.__pow__.0", F("0.4", "8.0"), F("0.16", "0.9"))                                    \
    ",\n" CALL("Tensor.__add__.0", F("0.16", "0.9"), F("0.2", "1.0"))

START_TEST(clipping_by_hand_is_no_suspect_where_the_update_is_the_same)
{
    const char *golden = STEP(NORM, F("0.85", "29.5"));
    ck_assert_uint_eq(suspects_of(golden, STEP(BY_HAND, F("0.85", "29.5"))), 0);
    ck_assert_uint_ge(suspects_of(golden, STEP(BY_HAND, F("0.65", "22.5"))), 1);
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
    ck_assert_uint_eq(ask(&none, &g).n, 0); /* what recorded nothing says nothing */
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

/* A softmax makes of permuted rows permuted rows, unless a part of what it reads did not move with them. */
START_TEST(data_in_another_order_is_named_before_what_it_is_mixed_in)
{
    struct run g = model(), t = model();
    const struct call mask = {"Tensor.masked_fill.0.forward", {5, 61, NOTHING}, 43, NULL, NULL};
    for (struct run *r = &g; r != NULL; r = r == &g ? &t : NULL) {
        insert_call(r, 3, mask);
        r->call[4].in[0] = 43;
        r->call[5].scalar = NULL;
    }
    t.sums[7] = t.sums[9] = t.sums[11] = t.sums[12] = 0.2;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_INPUT);
    ck_assert_str_eq(a.name[1], "Functional.softmax.0.forward");
    for (struct run *r = &g; r != NULL;
         r = r == &g ? &t : NULL) /* one before it would have shown it */
        insert_call(
            r, 4,
            (struct call){"Functional.softmax.1.forward", {43, NOTHING, NOTHING}, 44, NULL, NULL});
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.softmax.0.forward");
    for (struct run *r = &g; r != NULL; r = r == &g ? &t : NULL) {
        remove_call(r, 4);
        remove_call(r, 3);
    }
    g.call[3].in[0] = t.call[3].in[0] = 5; /* all of it moves together: that is no reason */
    ck_assert_str_eq(ask(&g, &t).name[0], "Functional.softmax.0.forward");
}
END_TEST

START_TEST(parts_joined_in_another_order_are_named_at_the_join)
{
    struct run g = model(), t = model();
    insert_call(&g, 3, (struct call){"Torch.cat.0.forward", {3, 5, 2}, 43, NULL, NULL});
    insert_call(&t, 3, (struct call){"Torch.cat.0.forward", {2, 3, 5}, 43, NULL, NULL});
    g.call[4].in[0] = t.call[4].in[0] = 43;
    t.err[6] = t.err[7] = t.err[9] = 0.2;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Torch.cat.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_WIRING);
}
END_TEST

/* relu(a) + b for relu(a + b). */
START_TEST(an_operator_that_moved_and_reads_other_values_is_named)
{
    struct run g = model(), t = model();
    insert_call(&g, 3, (struct call){"Tensor.__add__.0.forward", {5, 3, NOTHING}, 43, NULL, NULL});
    g.call[4].in[0] = 43;
    insert_call(&t, 4, (struct call){"Tensor.__add__.0.forward", {6, 3, NOTHING}, 43, NULL, NULL});
    t.call[5].in[0] = 43;
    g.call[5].in[0] = 6;
    t.err[6] = t.err[43] = t.err[7] = t.err[9] = t.err[11] = t.err[12] = 0.2;
    struct answer a = ask(&g, &t);
    ck_assert(strcmp(a.name[0], "Functional.relu.0.forward") == 0 ||
              strcmp(a.name[0], "Tensor.__add__.0.forward") == 0);
    ck_assert(a.why == CMP_WHY_MOVED || a.why == CMP_WHY_WIRING);
    ck_assert_ptr_nonnull(strstr(a.text, "differs by"));
}
END_TEST

START_TEST(what_replaces_parameters_behind_the_update_is_named)
{
    struct run g = trained(3), t = trained(3);
    t.call[16] = (struct call){"Tensor.clamp.0.forward", {31, NOTHING, NOTHING}, 50, NULL, NULL};
    ck_assert_uint_eq(ask(&g, &t).n, 0); /* a single one may be a figure */
    t.call[17] = (struct call){"Tensor.clamp.1.forward", {33, NOTHING, NOTHING}, 51, NULL, NULL};
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Tensor.clamp.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_EXTRA);
    ck_assert_int_eq(ask(&t, &g).why, CMP_WHY_MISSING);
    t.call[18] = (struct call){"Tensor.add.0.forward", {50, 51, NOTHING}, 52, NULL, NULL};
    ck_assert_uint_eq(ask(&g, &t).n, 0); /* read: a figure that is logged */
}
END_TEST

/* A sum of two tensors cannot be wrong by itself where it is not off by one factor or shift. Data that it reads
 * itself may be in another order as well as what else it reads. */
START_TEST(data_in_another_order_is_named_before_the_sum_that_shows_it)
{
    struct run g = model(), t = model();
    const struct call other = {"Functional.gelu.7.forward", {61, NOTHING, NOTHING}, 42, NULL, NULL};
    const struct call sum = {"Tensor.__add__.0.forward", {3, 42, NOTHING}, 43, NULL, NULL};
    for (struct run *r = &g; r != NULL; r = r == &g ? &t : NULL) {
        insert_call(r, 2, other);
        insert_call(r, 3, sum);
        r->call[4].in[0] = 43;
    }
    t.sums[43] = t.sums[5] = t.sums[6] = t.sums[7] = 0.2;
    struct answer a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Functional.linear.0.forward");
    ck_assert_int_eq(a.why, CMP_WHY_INPUT);
    ck_assert_str_eq(a.name[1], "Tensor.__add__.0.forward");
    g.call[3].in[1] = t.call[3].in[1] = 61;
    a = ask(&g, &t);
    ck_assert_str_eq(a.name[0], "Tensor.__add__.0.forward");
    ck_assert_str_eq(a.name[1], "Functional.linear.0.forward");
    g.call[3].in[1] = t.call[3].in[1] = g.odd = 60;
    g.shape = "[4, 16]"; /* of another size: it may differ */
    ck_assert_str_eq(ask(&g, &t).name[0], "Tensor.__add__.0.forward");
    g.call[3].in[1] = t.call[3].in[1] = 61;
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

TEST_MAIN("source_whole", another_rank_explains_a_little_more,
          other_weights_at_the_start_are_a_note_and_no_suspects, another_precision_is_a_note,
          a_sum_whose_terms_cancel_widens_their_difference,
          clipping_by_hand_is_no_suspect_where_the_update_is_the_same,
          checksums_name_the_first_that_differs, a_collective_is_explained_by_another_rank,
          one_fault_on_all_ranks_is_one_suspect,
          an_earlier_step_explains_the_parameters_of_a_later_one,
          other_prefixes_and_scales_do_not_move_the_suspect, swapped_sides_name_the_same_operator,
          empty_and_halved_dumps_are_judged_for_what_they_have, roles_are_told_of_every_node,
          memory_that_an_assignment_overwrites_is_no_input,
          an_operator_that_reorders_values_is_named_before_their_reader,
          parts_that_are_joined_in_another_order_are_named_before_their_reader,
          an_operator_more_that_changes_the_gradient_alone_is_named,
          a_parameter_in_another_order_is_named_where_the_data_explains_nothing,
          data_in_another_order_is_named_before_the_sum_that_shows_it,
          data_in_another_order_is_named_before_what_it_is_mixed_in,
          parts_joined_in_another_order_are_named_at_the_join,
          an_operator_that_moved_and_reads_other_values_is_named,
          what_replaces_parameters_behind_the_update_is_named,
          arguments_of_another_form_are_no_suspect,
          rounding_of_a_gradient_from_outside_is_no_suspect, an_update_of_another_form_is_no_step,
          updates_are_paired_by_their_parameter,
          an_operator_more_inside_the_steps_is_another_optimizer,
          another_loss_is_named_where_its_value_differs, another_mask_is_named_before_its_reader)

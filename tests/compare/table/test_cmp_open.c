/* SPDX-License-Identifier: MIT
 *
 * cmp_open: which dumps can be compared with which, by framework, task and rules, and what is said of
 * those that cannot.
 */
#include "tests/support/cmp_fixture.h"

#include "compare/table/comparison.h"

#define LEAF "\"Torch.a.0.forward\":{\"output\":[" TENSOR("1.0", "0.0", "0.5", "1.0") "]}"
#define DIGEST                                                                                     \
    "\"Torch.a.0.forward\":{\"output\":[{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\","   \
    "\"shape\":[2],\"Max\":1.0,\"Min\":0.0,\"Mean\":0.5,\"Norm\":1.0,\"md5\":\"0123abcd\"}]}"

static enum ms_rc opens(struct fixture *f)
{
    fixture_close(f);
    ms_err_clear(&f->err);
    const enum ms_rc rc = cmp_open(&f->c, &f->conf, f->t, f->b, NULL, &f->err);
    ck_assert((rc == MS_OK) == (f->c != NULL));
    if (rc == MS_OK)
        ck_ok(cmp_view_init(&f->v, &f->err), f->err);
    return rc;
}

static void refused(struct fixture *f, enum ms_rc rc, const char *why)
{
    ck_assert_int_eq(opens(f), rc);
    ck_says(f->err, why);
}

START_TEST(frameworks_go_together_as_the_rules_say)
{
    static const char *const names[] = {"pytorch", "mindspore", "mindtorch"};
    static const bool fine[3][3] = {{true, false, false}, {true, true, false}, {true, true, false}};
    static const enum cmp_compat both[] = {CMP_CUR, CMP_STRICT, CMP_OLD};
    struct fixture f;
    fixture_init(&f);
    for (int rules = 0; rules < 3; rules++) {
        f.conf.rules = cmp_rules_of(both[rules]);
        for (int t = 0; t < 3; t++) {
            for (int b = 0; b < 3; b++) {
                fixture_dump(&f, 't', "statistics", names[t], LEAF);
                fixture_dump(&f, 'b', "statistics", names[b], LEAF);
                const bool passes = rules == 0 || fine[t][b];
                ck_assert_msg((opens(&f) == MS_OK) == passes, "%d: %s, %s", rules, names[t],
                              names[b]);
                if (passes) {
                    ck_assert(f.c->set.cross == ((t == 0) != (b == 0)));
                    continue;
                }
                char words[64];
                snprintf(words, sizeof words, "cannot compare %s with %s", names[t], names[b]);
                ck_says(f.err, words);
                ck_says(f.err, f.conf.rules->name);
                ck_assert((strstr(f.err.msg, "swap target and golden") != NULL) == (t == 0));
            }
        }
    }
    fixture_free(&f);
}
END_TEST

START_TEST(a_framework_that_is_not_known_is_named)
{
    struct fixture f;
    fixture_init(&f);
    for (int side = 0; side < 2; side++) {
        fixture_dump(&f, "tb"[side], "statistics", "jax", LEAF);
        fixture_dump(&f, "bt"[side], "statistics", "pytorch", LEAF);
        refused(&f, MS_E_UNSUPPORTED, "dumps of 'jax' cannot be compared");
        ck_says(f.err, side == 0 ? "/t/dump.json" : "/b/dump.json");
    }
    fixture_free(&f);
}
END_TEST

START_TEST(both_sides_are_dumped_alike)
{
    struct fixture f;
    fixture_init(&f);
    fixture_dump(&f, 't', "statistics", "pytorch", LEAF);
    fixture_dump(&f, 'b', "md5", "pytorch", DIGEST);
    refused(&f, MS_E_ARG, "both sides must be dumped alike");
    ck_says(f.err, "/t/dump.json holds statistics");
    fixture_dump(&f, 't', "structure", "pytorch", LEAF);
    fixture_dump(&f, 'b', "structure", "pytorch", LEAF);
    refused(&f, MS_E_UNSUPPORTED, "a dump of task 'structure' has no values");
    fixture_dump(&f, 't', "tensor", "pytorch", LEAF);
    fixture_dump(&f, 'b', "tensor", "pytorch", LEAF);
    ck_assert_int_eq(opens(&f), MS_OK);
    ck_assert_int_eq(cmp_mode(f.c), PROBE_MODE_TENSOR);
    f.conf.summarise = true;
    ck_assert_int_eq(opens(&f), MS_OK);
    ck_assert_int_eq(cmp_mode(f.c), PROBE_MODE_SUMMARY);
    fixture_dump(&f, 't', "md5", "pytorch", DIGEST);
    fixture_dump(&f, 'b', "md5", "pytorch", DIGEST);
    ck_assert_int_eq(opens(&f), MS_OK);
    ck_assert_int_eq(cmp_mode(f.c), PROBE_MODE_MD5);
    fixture_free(&f);
}
END_TEST

START_TEST(names_of_mindspore_are_translated_for_mindspore_alone)
{
    struct fixture f;
    fixture_init(&f);
    f.conf.api.on = true;
    fixture_pair(&f, LEAF, LEAF);
    refused(&f, MS_E_ARG, "-am translates MindSpore names, but the target is a pytorch dump");
    fixture_dump(&f, 't', "statistics", "mindspore", LEAF);
    ck_assert_int_eq(opens(&f), MS_OK);
    fixture_free(&f);
}
END_TEST

START_TEST(training_beside_inference_is_of_pytorch)
{
    struct fixture f;
    fixture_init(&f);
    f.conf.consistent = CMP_CONSISTENT_FSDP;
    fixture_pair(&f, LEAF, LEAF);
    ck_assert_int_eq(opens(&f), MS_OK);
    for (int side = 0; side < 2; side++) {
        fixture_dump(&f, "tb"[side], "statistics", "mindspore", LEAF);
        fixture_dump(&f, "bt"[side], "statistics", "pytorch", LEAF);
        refused(&f, MS_E_UNSUPPORTED, "--consistent_check knows training by PyTorch alone");
    }
    fixture_free(&f);
}
END_TEST

static bool is_told(const struct fixture *f, const char *what)
{
    const struct ms_str *list;
    const size_t n = cmp_problems(f->c, &list);
    for (size_t i = 0; i < n; i++) {
        if (ms_str_find_str(list[i], ms_str_of(what)) >= 0)
            return true;
    }
    return false;
}

START_TEST(a_side_without_rows_is_told)
{
    struct fixture f;
    fixture_init(&f);
    for (int empty = 0; empty < 4; empty++) {
        fixture_pair(&f, (empty & 1) != 0 ? "" : LEAF, (empty & 2) != 0 ? "" : LEAF);
        ck_assert_int_eq(opens(&f), MS_OK);
        ck_assert(cmp_is_empty(f.c) == (empty != 0));
        ck_assert(is_told(&f, "t/dump.json: has nothing in it") == ((empty & 1) != 0));
        ck_assert(is_told(&f, "b/dump.json: has nothing in it") == ((empty & 2) != 0));
    }
    fixture_free(&f);
}
END_TEST

START_TEST(what_is_wrong_with_a_second_run_is_told_of_its_option)
{
    char path[128];
    struct fixture f;
    fixture_init(&f);
    fixture_pair(&f, LEAF, LEAF);
    snprintf(path, sizeof path, "%s/n/dump.json", f.dir);
    f.conf.noise_floor = path;
    refused(&f, MS_E_NOTFOUND, "--noise_floor");
    fixture_dump(&f, 'n', "statistics", "pytorch", LEAF);
    ck_assert_int_eq(opens(&f), MS_OK);
    fixture_dump(&f, 'n', "md5", "pytorch", DIGEST);
    refused(&f, MS_E_ARG, "both sides must be dumped alike");
    ck_says(f.err, "--noise_floor");
    fixture_free(&f);
}
END_TEST

START_TEST(a_configuration_that_is_missing_is_an_error_for_tensors_alone)
{
    struct fixture f;
    fixture_init(&f);
    f.conf.config = "/nonexistent/config.yaml";
    fixture_pair(&f, LEAF, LEAF);
    ck_assert_int_eq(opens(&f), MS_OK);
    fixture_dump(&f, 't', "tensor", "pytorch", LEAF);
    fixture_dump(&f, 'b', "tensor", "pytorch", LEAF);
    refused(&f, MS_E_NOTFOUND, "/nonexistent/config.yaml");
    fixture_free(&f);
}
END_TEST

TEST_MAIN("cmp_open", frameworks_go_together_as_the_rules_say,
          a_framework_that_is_not_known_is_named, both_sides_are_dumped_alike,
          names_of_mindspore_are_translated_for_mindspore_alone,
          training_beside_inference_is_of_pytorch, a_side_without_rows_is_told,
          what_is_wrong_with_a_second_run_is_told_of_its_option,
          a_configuration_that_is_missing_is_an_error_for_tensors_alone)

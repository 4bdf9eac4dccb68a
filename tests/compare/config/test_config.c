/* SPDX-License-Identifier: MIT */
#include "compare/config/config_value.h"
#include "compare/config/config_zip.h"
#include "compare/config/hyper_params.h"
#include "compare/config/similar.h"

#include "tests/support/check.h"

#include <unistd.h>

/* Printed by difflib.SequenceMatcher(None, a, b).ratio() of Python 3.11. */
static const struct {
    const char *a, *b;
    double ratio;
} alike[] = {
    {"", "", 1.0},
    {"abc", "", 0.0},
    {"hidden_size", "hidden_sizes", 0.9565217391304348},
    {"global_batch_size", "global_batchsize", 0.9696969696969697},
    {"seed", "seeed", 0.8888888888888888},
    {"abxcd", "abcd", 0.8888888888888888},
    {"num_layers", "layers_num", 0.6},
    {"tensor_model_parallel_size", "pipeline_model_parallel_size", 0.8148148148148148},
};

START_TEST(texts_are_as_alike_as_python_says)
{
    ck_assert_double_eq_tol(cfg_similar(ms_str_of(alike[_i].a), ms_str_of(alike[_i].b)),
                            alike[_i].ratio, 1e-15);
}
END_TEST

START_TEST(equality_is_that_of_python)
{
    static const char *const equal[][2] = {
        {"1", "1.0"},           {"true", "1"},
        {"[1, 2]", "[1.0, 2]"}, {"{\"a\": 1, \"b\": 2}", "{\"b\": 2, \"a\": 1}"},
        {"null", "null"},       {"\"a\"", "\"a\""}};
    static const char *const other[][2] = {{"1", "\"1\""},
                                           {"null", "0"},
                                           {"[1]", "[1, 2]"},
                                           {"{\"a\": 1}", "{\"b\": 1}"},
                                           {"NaN", "NaN"}};
    struct ms_arena *a = ms_arena_new(1 << 20);
    struct ms_err e = {0};
    const struct ms_plain *v[2];
    for (size_t i = 0; i < sizeof equal / sizeof *equal; i++) {
        for (int k = 0; k < 2; k++)
            ck_ok(cfg_value_parse(&v[k], "x", ms_str_of(equal[i][k]), a, &e), e);
        ck_assert_msg(cfg_value_equal(v[0], v[1]), "%s", equal[i][0]);
    }
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        for (int k = 0; k < 2; k++)
            ck_ok(cfg_value_parse(&v[k], "x", ms_str_of(other[i][k]), a, &e), e);
        ck_assert_msg(!cfg_value_equal(v[0], v[1]), "%s", other[i][0]);
    }
    ms_arena_free(a);
}
END_TEST

START_TEST(an_archive_reads_back)
{
    char path[64];
    struct cfg_zip_out out;
    struct cfg_zip z;
    struct ms_err e = {0};
    struct ms_arena *a = ms_arena_new(1 << 20);
    static const char *const texts[] = {"{}", "", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    static const char *const names[] = {"env", "empty", "deep/er/file"};
    snprintf(path, sizeof path, "/tmp/msprobe-test-config-%d.zip", (int)getpid());
    ck_ok(cfg_zip_create(&out, path, &e), e);
    for (int i = 0; i < 3; i++)
        ck_ok(cfg_zip_add(&out, names[i], ms_str_of(texts[i]), &e), e);
    ck_ok(cfg_zip_finish(&out, MS_OK, &e), e);
    ck_ok(cfg_zip_open(&z, path, &e), e);
    ck_assert_uint_eq(z.zip.members.n, 3);
    for (int i = 0; i < 3; i++) {
        struct ms_str text;
        const struct probe_zip_member *m = probe_zip_large_find(&z.zip, ms_str_of(names[i]));
        ck_assert_ptr_nonnull(m);
        ck_ok(cfg_zip_text(&z, m, a, &text, &e), e);
        ck_assert(ms_str_is(text, texts[i]));
    }
    cfg_zip_close(&z);
    ck_assert_int_eq(unlink(path), 0);
    ms_arena_free(a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("config");
    TCase *t = tcase_create("config");
    tcase_add_loop_test(t, texts_are_as_alike_as_python_says, 0, sizeof alike / sizeof *alike);
    tcase_add_test(t, equality_is_that_of_python);
    tcase_add_test(t, an_archive_reads_back);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

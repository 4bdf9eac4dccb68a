/* SPDX-License-Identifier: MIT */
#include "probe/base/io.h"
#include "probe/settings/run_settings.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <unistd.h>

static void write_text(const char *path, const char *text)
{
    struct ms_out *o;
    struct ms_err e = {0};
    ck_ok(ms_out_create(&o, path, &e), e);
    ms_out_puts(o, text);
    ck_ok(ms_out_commit(o, &e), e);
}

/* The differences as text, until the next call. */
static const char *text_of(const char *old, const char *new)
{
    static struct ms_buf text = {.max = 1 << 16};
    struct ms_settings_diff d;
    struct ms_err e = {0};
    ms_buf_clear(&text);
    ck_ok(ms_settings_differ(&d, old, new, &e), e);
    ms_settings_diff_text(&d, 0, &text);
    ms_settings_diff_free(&d);
    return ms_buf_z(&text);
}

START_TEST(secrets_are_known_by_name_and_the_list_can_be_changed)
{
    unsetenv("MSPROBE_SECRETS");
    ck_assert(ms_is_secret(MS_STR("GITHUB_TOKEN")));
    ck_assert(ms_is_secret(MS_STR("aws_Secret_x")));
    ck_assert(!ms_is_secret(MS_STR("HOME")));
    setenv("MSPROBE_SECRETS", "home,x", 1);
    ck_assert(!ms_is_secret(MS_STR("GITHUB_TOKEN")));
    ck_assert(ms_is_secret(MS_STR("HOME")));
    setenv("MSPROBE_SECRETS", "", 1);
    ck_assert(!ms_is_secret(MS_STR("GITHUB_TOKEN")));
    unsetenv("MSPROBE_SECRETS");
}
END_TEST

START_TEST(what_can_explain_most_comes_first)
{
    char *folder;
    struct ms_err e = {0};
    char a[300], b[300], inner[300];
    ck_ok(ms_tmp_folder(&folder, "settings", &e), e);
    snprintf(a, sizeof a, "%s/a/settings.json", folder);
    snprintf(b, sizeof b, "%s/b/settings.json", folder);
    write_text(a, "{\"options\": {\"lr\": \"1\"}, \"environment\": {\"EDITOR\": \"x\", \"SHLVL\": "
                  "\"1\", \"HCCL_DETERMINISTIC\": \"1\"}, \"packages\": {\"torch\": \"2.1\", "
                  "\"six\": \"1\"}}");
    write_text(b, "{\"options\": {\"lr\": \"2\"}, \"environment\": {\"EDITOR\": \"y\", \"SHLVL\": "
                  "\"2\"}, \"packages\": {\"torch\": \"2.2\", \"six\": \"1\"}}");
    snprintf(a, sizeof a, "%s/a", folder);
    snprintf(b, sizeof b, "%s/b", folder);
    ck_assert_str_eq(text_of(a, b), "configured differently, what can explain most first:\n"
                                    "  packages torch: 2.1 -> 2.2\n"
                                    "  environment HCCL_DETERMINISTIC: 1 -> (not set)\n"
                                    "  options lr: 1 -> 2\n"
                                    "  environment EDITOR: x -> y\n\n");
    ck_assert_str_eq(text_of(a, a), "");
    ck_assert_str_eq(text_of(a, folder), "");
    snprintf(inner, sizeof inner, "%s/b/step0/rank0", folder);
    ck_ok(ms_mkdirs(inner, &e), e);
    ck_assert_str_ne(text_of(a, inner), "");
    ms_tmp_folder_remove(folder);
}
END_TEST

START_TEST(packages_are_compared_where_both_runs_have_some)
{
    char *old, *new, path[300];
    struct ms_err e = {0};
    ck_ok(ms_tmp_folder(&old, "settings", &e), e);
    ck_ok(ms_tmp_folder(&new, "settings", &e), e);
    snprintf(path, sizeof path, "%s/settings.json", old);
    write_text(path,
               "{\"packages\": {\"torch\": \"2.1\", \"six\": \"1\"}, \"options\": {\"lr\": 1}}");
    snprintf(path, sizeof path, "%s/settings.json", new);
    write_text(path, "{\"packages\": {}, \"options\": {\"lr\": 2}}");
    ck_assert_ptr_nonnull(strstr(text_of(old, new), "options lr: 1 -> 2"));
    ck_assert_ptr_null(strstr(text_of(old, new), "packages"));
    ck_assert_ptr_null(strstr(text_of(new, old), "packages"));
    write_text(path, "{\"packages\": {\"torch\": \"2.2\"}}");
    ck_assert_ptr_nonnull(strstr(text_of(old, new), "packages torch: 2.1 -> 2.2"));
    ck_assert_ptr_nonnull(strstr(text_of(old, new), "packages six: 1 -> (not set)"));
    ms_tmp_folder_remove(old);
    ms_tmp_folder_remove(new);
}
END_TEST

START_TEST(a_damaged_file_is_an_error_with_its_place)
{
    char *folder, path[300];
    struct ms_settings_diff d;
    struct ms_err e = {0};
    ck_ok(ms_tmp_folder(&folder, "settings", &e), e);
    snprintf(path, sizeof path, "%s/settings.json", folder);
    write_text(path, "{\"options\": {\"lr\": }}");
    ck_assert_int_eq(ms_settings_differ(&d, folder, folder, &e), MS_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(e.msg, "settings.json: line 1, byte 19"));
    ms_tmp_folder_remove(folder);
}
END_TEST

START_TEST(a_program_is_recorded)
{
    char words[5][16] = {"train", "--lr", "0.1", "--api-key=x", "--flag"};
    char *program[] = {words[0], words[1], words[2], words[3], words[4], NULL}, *folder;
    char path[300];
    struct ms_err e = {0};
    struct ms_file f;
    setenv("MY_PASSWORD", "hidden", 1);
    setenv("MY_SETTING", "shown", 1);
    ck_ok(ms_tmp_folder(&folder, "settings", &e), e);
    ck_ok(ms_settings_write(folder, program, &e), e);
    snprintf(path, sizeof path, "%s/settings.json", folder);
    ck_ok(ms_file_map(&f, path, SIZE_MAX, &e), e);
    const struct ms_str text = {f.p, (uint32_t)f.n};
    ck_assert(ms_str_has(text, "\"lr\": \"0.1\"") && ms_str_has(text, "\"flag\": \"True\""));
    ck_assert(ms_str_has(text, "MY_SETTING") && !ms_str_has(text, "hidden"));
    ck_assert(!ms_str_has(text, "api-key"));
    ms_file_unmap(&f);
    ms_tmp_folder_remove(folder);
}
END_TEST

TEST_MAIN("run_settings", secrets_are_known_by_name_and_the_list_can_be_changed,
          what_can_explain_most_comes_first, packages_are_compared_where_both_runs_have_some,
          a_damaged_file_is_an_error_with_its_place, a_program_is_recorded)

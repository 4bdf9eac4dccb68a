/* SPDX-License-Identifier: MIT
 *
 * test_bisect: the configuration of each pass.
 */
#include "compare/bisect/bisect_record.h"
#include "probe/base/io.h"
#include "tests/support/check.h"

static const char *config_of(const struct ms_str *names, size_t n)
{
    static char text[4096];
    struct ms_err err = {0};
    struct ms_file f;
    char dir[64], path[128];
    snprintf(path, sizeof path, "%s/config.json", scratch_dir(dir));
    const struct bisect_record r = {
        .command = "true", .dir = "/d", .step = 7, .names = names, .n = n};
    ck_ok(bisect_write_config(&r, path, &err), err);
    ck_ok(ms_file_map(&f, path, sizeof text - 1, &err), err);
    snprintf(text, sizeof text, "%.*s", (int)f.n, f.p);
    ms_file_unmap(&f);
    scratch_remove(dir);
    return text;
}

START_TEST(the_first_pass_records_statistics_of_all)
{
    const char *text = config_of(NULL, 0);
    ck_assert_ptr_nonnull(strstr(text, "\"task\": \"statistics\""));
    ck_assert_ptr_nonnull(strstr(text, "\"step\": [7]"));
    ck_assert_ptr_nonnull(strstr(text, "\"list\": []"));
}
END_TEST

START_TEST(the_second_pass_records_tensors_of_suspects_and_of_their_forward_records)
{
    const struct ms_str names[] = {MS_STR("Torch.matmul.3.forward"),
                                   MS_STR("Module.a.Linear.backward.0")};
    const char *text = config_of(names, 2);
    ck_assert_ptr_nonnull(strstr(text, "\"task\": \"tensor\""));
    ck_assert_ptr_nonnull(
        strstr(text, "\"list\": [\"Torch.matmul.3.forward\", \"Module.a.Linear.backward.0\", "
                     "\"Module.a.Linear.forward.0\"]"));
}
END_TEST

TEST_MAIN("bisect", the_first_pass_records_statistics_of_all,
          the_second_pass_records_tensors_of_suspects_and_of_their_forward_records)

/* SPDX-License-Identifier: MIT
 *
 * stage: what a folder that came from elsewhere may name as the stage of its process.
 */
#include "mstx/format/stage.h"
#include "tests/support/scratch_run.h"

#include <errno.h>
#include <glob.h>

static char capture[128], stranger[128];

/* A capture of the user, and the folder of a process that names it as its stage. */
static void set_up(void)
{
    struct maker m;
    glob_t found;
    char pattern[128];
    begin_run(&m, 0);
    maker_ring(&m, 1, 1, 4242);
    maker_mark(&m, 10, maker_text(&m, "precious"), 0);
    maker_end_ring(&m);
    maker_end(&m);
    snprintf(pattern, sizeof pattern, "%s/rank_0/*", run);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    snprintf(capture, sizeof capture, "%s", found.gl_pathv[0]);
    globfree(&found);
    snprintf(stranger, sizeof stranger, "%s/stranger", dir);
    ck_assert_int_eq(mkdir(stranger, 0700), 0);
}

static void tear_down(void)
{
    scratch_remove(dir);
}

static const char *in(const char *folder, const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static size_t segments_in(const char *folder)
{
    glob_t found;
    const size_t n = glob(in(folder, "*.seg"), 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    if (n != 0)
        globfree(&found);
    return n;
}

START_TEST(a_capture_is_no_stage)
{
    const size_t n = segments_in(capture);
    ck_assert_uint_gt(n, 0);
    write_file(in(capture, "control"), "x", 1);
    write_file(in(stranger, "staged"), capture, strlen(capture));
    ck_assert_int_eq(mstx_stage_recover(stranger), EPERM);
    ck_assert_uint_eq(segments_in(capture), n);
    ck_assert_uint_eq(segments_in(stranger), 0);
}
END_TEST

START_TEST(what_a_stage_holds_is_moved)
{
    const size_t n = segments_in(capture);
    write_file(in(stranger, "staged"), capture, strlen(capture));
    unlink(in(capture, "control"));
    write_file(in(capture, ".seg"), "x", 1); /* has no name before its suffix */
    ck_assert_int_eq(mstx_stage_recover(stranger), 0);
    ck_assert_uint_eq(segments_in(stranger), n);
    ck_assert_int_eq(access(in(stranger, ".seg"), F_OK), -1);
    ck_assert_int_eq(access(in(capture, ".seg"), F_OK), 0);
    unlink(in(capture, ".seg"));
    rmdir(capture);
    ck_assert_int_eq(access(in(stranger, "staged"), F_OK), -1);
    ck_assert_int_eq(mstx_stage_recover(stranger), 0); /* nothing is left to do */
}
END_TEST

START_TEST(only_a_file_names_a_stage)
{
    const char *staged = in(stranger, "staged");
    ck_assert_int_eq(mkfifo(staged, 0600), 0); /* nobody writes into it */
    ck_assert_int_eq(mstx_stage_recover(stranger), EINVAL);
    ck_assert_int_eq(unlink(staged), 0);
    ck_assert_int_eq(mkdir(staged, 0700), 0);
    ck_assert_int_eq(mstx_stage_recover(stranger), EINVAL);
    ck_assert_int_eq(rmdir(staged), 0);
    ck_assert_int_eq(symlink("other", staged), 0);
    ck_assert_int_eq(mstx_stage_recover(stranger), ELOOP);
    ck_assert_int_eq(unlink(staged), 0);
    write_file(staged, "\n", 1);
    ck_assert_int_eq(mstx_stage_recover(stranger), ENOENT);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("stage");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_capture_is_no_stage);
    tcase_add_test(tc, what_a_stage_holds_is_moved);
    tcase_add_test(tc, only_a_file_names_a_stage);
    return run_case("stage", tc);
}

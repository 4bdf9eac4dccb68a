/* SPDX-License-Identifier: MIT
 *
 * Directories that are one run, and folders in which runs lie.
 */
#include "mstx/import/run_roots.h"
#include "probe/base/io.h"
#include "tests/support/check.h"
#include "tests/support/make_capture.h"

static struct ms_err err;
static char dir[64], run[80];

static void set_up(void)
{
    ms_err_clear(&err);
    scratch_dir(dir);
    snprintf(run, sizeof run, "%s/run", dir);
}

static void tear_down(void)
{
    scratch_remove(dir);
}

/* A path below the run. */
static const char *at(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", run, name);
    return path;
}

/* An empty segment: where it lies counts. */
static void put_segment(const char *process)
{
    char path[600];
    snprintf(path, sizeof path, "%s", at(process));
    ck_ok(ms_mkdirs(path, &err), err);
    strcat(path, "/r0000.0001.seg");
    write_file(path, "", 0);
}

static void put_rank(const char *rank)
{
    char name[128];
    snprintf(name, sizeof name, "%s/h.1.a", rank);
    put_segment(name);
}

static void expect_refusal(const char *path, const char *why)
{
    ms_err_clear(&err);
    ck_assert_int_eq(mstx__want_one_run(path, &err), MS_E_UNSUPPORTED);
    ck_assert_msg(strstr(err.msg, why) != NULL, "%s", err.msg);
}

START_TEST(a_run_has_its_ranks_in_it_or_in_folders_of_nodes)
{
    put_rank("rank_0");
    put_rank("rank_1");
    ck_ok(mstx__want_one_run(run, &err), err);
    ck_ok(mstx__want_one_run(at("rank_0"), &err), err);
    ck_ok(mstx__want_one_run(at("rank_0/h.1.a"), &err), err);
    ck_ok(mstx__want_one_run(at("/"), &err), err);
    put_rank("node1/rank_2");
    put_rank("node2/rank_3");
    put_rank("node1/rank_none");
    put_rank("node2/rank_none");
    ck_ok(mstx__want_one_run(run, &err), err);
}
END_TEST

START_TEST(a_folder_of_runs_is_none)
{
    put_rank("monday/rank_0");
    put_rank("monday/rank_1");
    expect_refusal(run, "is no run, but holds one");
    expect_refusal(run, "/run/monday");
    expect_refusal(dir, "/run/monday");
    put_rank("tuesday/rank_1");
    expect_refusal(run, "holds several runs");
    ck_ok(mstx__want_one_run(at("monday"), &err), err);
    put_segment("loose");
    expect_refusal(run, "holds several runs");
    put_rank("alone/one/rank_none");
    put_rank("alone/two/rank_none");
    expect_refusal(at("alone"), "holds several runs");
}
END_TEST

TEST_MAIN_AROUND(set_up, tear_down, "run_roots", a_run_has_its_ranks_in_it_or_in_folders_of_nodes,
                 a_folder_of_runs_is_none)

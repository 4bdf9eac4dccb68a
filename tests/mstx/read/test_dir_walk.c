/* SPDX-License-Identifier: MIT
 *
 * dir_walk: which directories a search enters, and that it ends.
 */
#include "tests/support/check.h"

#include "mstx/read/dir_walk.h"
#include "probe/base/io.h"

#include <sys/stat.h>
#include <unistd.h>

static char top[64];
static struct mstx_dir_walk walk;

static const char *at(const char *name)
{
    static char path[4][160];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", top, name);
    return p;
}

static bool enters(const char *path)
{
    struct ms_err err = {0};
    bool is_entered = true;
    ck_ok(mstx__dir_walk_enter(&walk, path, &is_entered, &err), err);
    return is_entered;
}

static void set_up(void)
{
    walk = (struct mstx_dir_walk){.keys = NULL};
    scratch_dir(top);
    ck_assert_int_eq(mkdir(at("run"), 0700), 0);
    ck_assert_int_eq(mkdir(at("run/rank0"), 0700), 0);
    ck_assert_int_eq(mkdir(at("run/rank00"), 0700), 0);
    ck_assert_int_eq(mkdir(at("elsewhere"), 0700), 0);
}

static void tear_down(void)
{
    mstx__dir_walk_free(&walk);
    scratch_remove(top);
}

START_TEST(a_directory_is_entered_once)
{
    ck_assert(enters(at("run/rank0")) && enters(at("run/rank00")));
    ck_assert(!enters(at("run/rank0")) && !enters(at("run/../run/rank00")));
    ck_assert(!enters(at("run/none")));
    write_file(at("run/file"), "x", 1);
    ck_assert(!enters(at("run/file")));
    mstx__dir_walk_free(&walk);
    ck_assert(enters(at("run/rank0")));
    mstx__dir_walk_free(&walk);
}
END_TEST

START_TEST(a_link_to_another_folder_is_followed_once)
{
    ck_assert_int_eq(symlink("../elsewhere", at("run/rank1")), 0);
    ck_assert_int_eq(symlink("rank00", at("run/rank2")), 0);
    ck_assert(enters(at("run/rank1")) && !enters(at("elsewhere")) && !enters(at("run/rank1")));
    ck_assert(enters(at("run/rank2")) && !enters(at("run/rank00")));
}
END_TEST

/* To itself, to the directory that holds it, to one above, to /; rank0 does not hold rank00. */
START_TEST(a_link_to_what_holds_it_is_not_followed)
{
    static const char *const ups[] = {".", "..", "../..", "/", "../rank0", "../../run/", "self"};
    for (size_t i = 0; i < sizeof ups / sizeof *ups; i++) {
        ck_assert_int_eq(symlink(ups[i], at("run/rank0/self")), 0);
        ck_assert_msg(!enters(at("run/rank0/self")), "%s", ups[i]);
        ck_assert_int_eq(unlink(at("run/rank0/self")), 0);
    }
    ck_assert_int_eq(symlink("../rank0", at("run/rank00/beside")), 0);
    ck_assert(enters(at("run/rank00/beside")));
    ck_assert_int_eq(chdir(at("run")), 0);
    ck_assert_int_eq(symlink("..", "up"), 0);
    ck_assert(!enters("up") && !enters("./up") && enters("rank00"));
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

TEST_MAIN_AROUND(set_up, tear_down, "dir_walk", a_directory_is_entered_once,
                 a_link_to_another_folder_is_followed_once, a_link_to_what_holds_it_is_not_followed)

/* SPDX-License-Identifier: MIT
 *
 * Figures of control groups, in folders of the test: these functions are static, so their file is part of this
 * test.
 */
#include "mstx/rt/throttling.c"

#include "tests/support/check.h"

#include <sys/stat.h>

static char root[64];

static void make_group(const char *path, const char *figures)
{
    char name[PATH];
    snprintf(name, sizeof name, "%s%s", root, path);
    mkdir(name, 0755);
    snprintf(name, sizeof name, "%s%s/cpu.stat", root, path);
    FILE *f = fopen(name, "w");
    ck_assert_ptr_nonnull(f);
    fputs(figures, f);
    fclose(f);
}

static void begin(void)
{
    snprintf(root, sizeof root, "%s", "/tmp/test_throttling.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    make_group("", "usage_usec 9\nnr_throttled 1\nthrottled_usec 5\n");
    make_group("/a", "usage_usec 9\n");
    make_group("/a/b", "nr_throttled 1\nthrottled_time 7000");
}

static void end(void)
{
    static const char *const made[] = {"/a/b/cpu.stat", "/a/b", "/a/cpu.stat", "/a",
                                       "/cpu.stat",     ""};
    rt_throttling_end();
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        char name[PATH];
        snprintf(name, sizeof name, "%s%s", root, made[i]);
        remove(name);
    }
}

START_TEST(a_group_and_those_above_it_count)
{
    begin();
    add_groups(root, "/a/b");
    ck_assert_int_eq(groups.count, 2); /* one of the three has no limit */
    ck_assert_uint_eq(throttled_ns(), 12000);
    make_group("/a/b", "throttled_time 8000\n");
    ck_assert_uint_eq(throttled_ns(), 13000);
    end();
    ck_assert_uint_eq(throttled_ns(), 0);
}
END_TEST

/* So it is in a container that shows paths of its host. */
START_TEST(of_an_unseen_group_the_root_counts)
{
    begin();
    add_groups(root, "/docker/0123");
    ck_assert_int_eq(groups.count, 1);
    ck_assert_uint_eq(throttled_ns(), 5000);
    rt_throttling_end();
    add_groups(root, "");
    ck_assert_int_eq(groups.count, 1);
    end();
}
END_TEST

START_TEST(no_more_groups_than_there_is_room_for)
{
    begin();
    for (int i = 0; i < GROUPS + 2; i++)
        add_groups(root, "");
    ck_assert_int_eq(groups.count, GROUPS);
    ck_assert_uint_eq(throttled_ns(), 5000 * GROUPS);
    end();
}
END_TEST

START_TEST(a_number_stands_behind_its_key)
{
    ck_assert_uint_eq(number_of("throttled_usec 12\n", "throttled_usec"), 12);
    ck_assert_uint_eq(number_of("a 1\nthrottled_usec 12", "throttled_usec"), 12);
    ck_assert_uint_eq(number_of("nr_throttled_usec 3\nthrottled_usecs 4\n", "throttled_usec"), 0);
    ck_assert_uint_eq(number_of("", "throttled_usec"), 0);
}
END_TEST

START_TEST(controllers_are_whole_words)
{
    ck_assert(has_cpu("cpu") && has_cpu("cpu,cpuacct") && has_cpu("cpuacct,cpu"));
    ck_assert(!has_cpu("cpuacct") && !has_cpu("cpuset,memory") && !has_cpu(""));
}
END_TEST

START_TEST(lines_of_other_controllers_are_none)
{
    char text[] = "7:memory:/\n6:cpuset:/\nno line\n5:cpu\n";
    add_lines(text);
    ck_assert_int_eq(groups.count, 0);
}
END_TEST

TEST_MAIN("throttling", a_group_and_those_above_it_count, of_an_unseen_group_the_root_counts,
          no_more_groups_than_there_is_room_for, a_number_stands_behind_its_key,
          controllers_are_whole_words, lines_of_other_controllers_are_none)

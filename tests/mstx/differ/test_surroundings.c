/* SPDX-License-Identifier: MIT
 *
 * surroundings: which facts of two runs are told.
 */
#include "mstx/differ/surroundings.h"
#include "tests/support/check.h"

#include <string.h>

static char gather[] = "AllGather", reduce[] = "AllReduce", barrier[] = "Barrier", send[] = "Send";
static char train[] = "train", train2[] = "train2";
static struct mstx_traffic few[] = {{gather, 100}, {reduce, 1000}, {send, 64}};
static struct mstx_traffic more[] = {{reduce, 2000}, {barrier, 0}, {send, 64.1}};

static struct mstx_run_facts facts(char *program, size_t ranks, double batch)
{
    struct mstx_run_facts f = {.path = "run", .ranks = ranks, .steps = 10, .hosts = 1};
    f.program = program;
    f.batch = batch;
    return f;
}

static bool tells(const struct mstx_fact *f, size_t n, const char *what, const char *old,
                  const char *new)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(f[i].what, what) == 0)
            return strcmp(f[i].old, old) == 0 && strcmp(f[i].new, new) == 0;
    }
    return false;
}

START_TEST(equal_runs_have_nothing_to_tell)
{
    struct mstx_fact f[MSTX_FACTS_MAX];
    const struct mstx_run_facts a = facts(train, 2, 32);
    ck_assert_uint_eq(mstx__facts_differ(&a, &a, f), 0);
}
END_TEST

START_TEST(what_differs_is_told_with_both_values)
{
    struct mstx_fact f[MSTX_FACTS_MAX];
    const struct mstx_run_facts old = facts(train, 2, 32);
    struct mstx_run_facts new = facts(train2, 4, 64);
    new.hosts = 2;
    const size_t n = mstx__facts_differ(&old, &new, f);
    ck_assert_uint_eq(n, 4);
    ck_assert(tells(f, n, "program", "train", "train2"));
    ck_assert(tells(f, n, "ranks with steps", "2", "4"));
    ck_assert(tells(f, n, "hosts", "1", "2"));
    ck_assert(tells(f, n, "elements of a batch", "32", "64"));
}
END_TEST

START_TEST(a_batch_that_one_run_does_not_know_is_not_told)
{
    struct mstx_fact f[MSTX_FACTS_MAX];
    const struct mstx_run_facts old = facts(train, 2, 0), new = facts(train, 2, 64);
    ck_assert_uint_eq(mstx__facts_differ(&old, &new, f), 0);
}
END_TEST

/* Operations of one run alone are new or gone places; bytes within a hundredth are the same. */
START_TEST(bytes_of_an_operation_are_told)
{
    struct mstx_fact f[MSTX_FACTS_MAX];
    struct mstx_run_facts old = facts(train, 2, 0), new = old;
    old.traffic.p = few;
    new.traffic.p = more;
    old.traffic.n = new.traffic.n = 3;
    const size_t n = mstx__facts_differ(&old, &new, f);
    ck_assert_uint_eq(n, 1);
    ck_assert(tells(f, n, "mean bytes of AllReduce", "1.00 kB", "2.00 kB"));
}
END_TEST

START_TEST(a_list_of_facts_has_an_end)
{
    static struct mstx_traffic a[40], b[40];
    static char name[40][8];
    struct mstx_fact f[MSTX_FACTS_MAX];
    struct mstx_run_facts old = facts(train, 2, 0), new = old;
    for (int i = 0; i < 40; i++) {
        snprintf(name[i], sizeof name[i], "op%02d", i);
        a[i] = (struct mstx_traffic){name[i], 100};
        b[i] = (struct mstx_traffic){name[i], 300};
    }
    old.traffic.p = a;
    new.traffic.p = b;
    old.traffic.n = new.traffic.n = 40;
    ck_assert_uint_eq(mstx__facts_differ(&old, &new, f), MSTX_FACTS_MAX);
}
END_TEST

TEST_MAIN("surroundings", equal_runs_have_nothing_to_tell, what_differs_is_told_with_both_values,
          a_batch_that_one_run_does_not_know_is_not_told, bytes_of_an_operation_are_told,
          a_list_of_facts_has_an_end)

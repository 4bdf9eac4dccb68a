/* SPDX-License-Identifier: MIT
 *
 * A layout is written as a list of paths under a scratch directory: "x/" makes a
 * directory, "x" a file, "x->y" a link.  What is found is written the same way.
 */
#include "probe/dump/find.h"

#include "probe/base/mem.h"

#include "tests/support/check.h"

#include <sys/stat.h>

static struct ms_err err;
static struct probe_places places;
static char dir[64];

static void make(const char *item)
{
    char path[256];
    const char *link = strstr(item, "->");
    int n = snprintf(path, sizeof path, "%s/%.*s", dir,
                     (int)(link != NULL ? link - item : (long)strlen(item)), item);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    ck_ok(ms_mkdirs(path, &err), err);
    *slash = '/';
    if (link != NULL)
        ck_assert_int_eq(symlink(link + 2, path), 0);
    else if (path[n - 1] != '/')
        write_file(path, "{}", 2);
}

/* Items separated by blanks. */
static void layout(const char *items)
{
    char copy[512];
    char *save = NULL;
    snprintf(copy, sizeof copy, "%s", items);
    scratch_dir(dir);
    for (char *p = strtok_r(copy, " ", &save); p != NULL; p = strtok_r(NULL, " ", &save))
        make(p);
}

static void look_at(const char *sub)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s%s", dir, sub[0] != '\0' ? "/" : "", sub);
    ms_err_clear(&err);
    ck_ok(probe_find(&places, path, &err), err);
}

/* "part:step.rank=path-of-json " for each place; "-" where the path does not say. */
static void ck_found(const char *want)
{
    struct ms_buf b = {.max = 1 << 16};
    size_t skip = strlen(dir) + 1;
    for (size_t i = 0; i < places.list.n; i++) {
        const struct probe_place *p = &places.list.p[i];
        char step[24] = "-";
        char rank[24] = "-";
        if (p->step >= 0)
            snprintf(step, sizeof step, "%lld", (long long)p->step);
        if (p->rank >= 0)
            snprintf(rank, sizeof rank, "%lld", (long long)p->rank);
        ck_assert(strncmp(p->json, p->dir, strlen(p->dir)) == 0);
        ms_buf_printf(&b, "%s%s%s.%s=%s ", p->part, p->part[0] != '\0' ? ":" : "", step, rank,
                      p->json + skip);
    }
    ck_assert_str_eq(ms_buf_z(&b), want);
    ms_buf_free(&b);
}

static void tear_down(void)
{
    probe_places_free(&places);
    scratch_remove(dir);
}

static const struct {
    const char *layout, *look_at, *found;
    size_t notes;
} cases[] = {
    /* The same dump by each of its names. */
    {"step0/rank0/dump.json", "step0/rank0/dump.json", "0.0=step0/rank0/dump.json ", 0},
    {"step0/rank0/dump.json", "step0/rank0", "0.0=step0/rank0/dump.json ", 0},
    {"step0/rank0/dump.json", "step0", "0.0=step0/rank0/dump.json ", 0},
    {"step0/rank0/dump.json", "", "0.0=step0/rank0/dump.json ", 0},
    /* Numbers order, not letters. */
    {"step10/rank0/dump.json step2/rank10/dump.json step2/rank9/dump.json", "",
     "2.9=step2/rank9/dump.json 2.10=step2/rank10/dump.json 10.0=step10/rank0/dump.json ", 0},
    /* Processes without a rank come after the ranks, by their number. */
    {"step0/proc977/dump.json", "", "0.0=step0/proc977/dump.json ", 1},
    {"step0/proc1012/dump.json step0/proc977/dump.json step0/rank3/dump.json step0/rank1/dump.json",
     "",
     "0.1=step0/rank1/dump.json 0.3=step0/rank3/dump.json 0.4=step0/proc977/dump.json "
     "0.5=step0/proc1012/dump.json ",
     2},
    {"step0/pid12/dump.json step0/rank/dump.json", "step0",
     "0.0=step0/rank/dump.json 0.1=step0/pid12/dump.json ", 1},
    /* Bare words of older runs, and names the official tool would not take. */
    {"step/rank/dump.json", "", "0.0=step/rank/dump.json ", 0},
    {"step0/rank007/dump.json step0/rank5/dump.json", "",
     "0.5=step0/rank5/dump.json 0.7=step0/rank007/dump.json ", 0},
    {"step0/rank0/dump.json step0/rank-1/dump.json step0/rank1a/dump.json step0/Rank2/dump.json "
     "step0/proc/dump.json step0/rank99999999999999999999/dump.json",
     "", "0.0=step0/rank0/dump.json ", 0},
    /* The split of static graph and PyNative. */
    {"graph/step0/rank0/dump.json pynative/step0/rank0/dump.json pynative/step1/rank0/dump.json",
     "",
     "graph:0.0=graph/step0/rank0/dump.json pynative:0.0=pynative/step0/rank0/dump.json "
     "pynative:1.0=pynative/step1/rank0/dump.json ",
     0},
    {"pynative/step3/rank1/dump.json", "", "pynative:3.1=pynative/step3/rank1/dump.json ", 0},
    {"graph/step0/rank0/dump.json", "graph", "0.0=graph/step0/rank0/dump.json ", 0},
    /* Values saved by hand. */
    {"step0/rank0/debug.json", "", "0.0=step0/rank0/debug.json ", 0},
    {"step0/rank0/debug.json step0/rank0/dump.json", "step0/rank0", "0.0=step0/rank0/dump.json ",
     0},
    /* Files of any name, anywhere. */
    {"mine.json", "mine.json", "-.-=mine.json ", 0},
    {"x/rank4/other.json", "x/rank4/other.json", "-.4=x/rank4/other.json ", 0},
    {"dump.json", "", "-.-=dump.json ", 0},
    {"step0/proc5/dump.json", "step0/proc5", "0.-=step0/proc5/dump.json ", 0},
    /* A rank without a dump is told of; the others count. */
    {"step0/rank0/ step0/rank1/dump.json step0/rank2/stack.json", "", "0.1=step0/rank1/dump.json ",
     2},
    /* Files that only have the name of a directory. */
    {"rank step0/rank0/dump.json step1 step0/proc3", "", "0.0=step0/rank0/dump.json ", 0},
    {"rank0/notes.txt step4/rank0/dump.json", "", "4.0=step4/rank0/dump.json ", 1},
    /* Links are followed, once. */
    {"real/dump.json step0/rank0->../real", "", "0.0=step0/rank0/dump.json ", 0},
    {"step0/rank0/dump.json step0/rank0/rank1->. step0/rank1->rank1", "",
     "0.0=step0/rank0/dump.json ", 1},
};

START_TEST(each_layout_is_known)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        layout(cases[i].layout);
        look_at(cases[i].look_at);
        ck_found(cases[i].found);
        ck_assert_msg(places.notes.n == cases[i].notes, "case %zu: %zu notes", i, places.notes.n);
        tear_down();
    }
}
END_TEST

START_TEST(notes_say_which_rank_a_process_was_given)
{
    layout("step0/rank1/dump.json step0/proc12/dump.json");
    look_at("step0");
    ck_assert_uint_eq(places.notes.n, 1);
    ck_assert_ptr_nonnull(
        strstr(places.notes.p[0], "step0/proc12: rank not known, taken as rank 2"));
    tear_down();
}
END_TEST

static const struct {
    const char *layout, *look_at, *says;
    enum ms_rc rc;
} missing[] = {
    {"x/", "", "no dump in this directory; expected dump.json, or rank*/ or step*/", MS_E_NOTFOUND},
    {"step0/rank0/", "", "step0/rank0: no dump.json in it", MS_E_NOTFOUND},
    {"step0/rank0->rank0", "", "step0/rank0: a link that leads nowhere", MS_E_NOTFOUND},
    {"step0/rank0/dump.json->dump.json", "", "no dump.json in it", MS_E_NOTFOUND},
    {"step0/rank0/dump.json/x", "", "no dump.json in it", MS_E_NOTFOUND},
    {"graph/x pynative/step0/", "", "no dump in this directory", MS_E_NOTFOUND},
};

START_TEST(a_directory_without_a_dump_is_an_error_that_says_what_was_looked_for)
{
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        size_t live = ms_mem_live();
        layout(missing[i].layout);
        ms_err_clear(&err);
        ck_assert_int_eq(probe_find(&places, dir, &err), missing[i].rc);
        ck_says(err, missing[i].says);
        ck_says(err, dir);
        scratch_remove(dir);
        ck_assert_uint_eq(ms_mem_live(), live);
    }
}
END_TEST

START_TEST(a_directory_that_cannot_be_read_is_an_error)
{
    bool is_root = geteuid() == 0; /* who may read everything */
    ms_err_clear(&err);
    layout("step0/rank0/dump.json");
    ck_assert_int_eq(chmod(dir, 0), 0);
    ck_assert_int_eq(is_root ? seteuid(65534) : 0, 0);
    ck_assert_int_ne(probe_find(&places, dir, &err), MS_OK);
    ck_says(err, "Permission denied");
    ck_assert_int_eq(is_root ? seteuid(0) : 0, 0);
    chmod(dir, 0755);
    scratch_remove(dir);
}
END_TEST

/* Opening the file says what is wrong, with its own words. */
START_TEST(what_is_no_directory_is_taken_for_a_file)
{
    ck_ok(probe_find(&places, "/nowhere/step1/rank2/dump.json", &err), err);
    ck_assert_uint_eq(places.list.n, 1);
    ck_assert_int_eq(places.list.p[0].step, 1);
    ck_assert_int_eq(places.list.p[0].rank, 2);
    ck_assert_str_eq(places.list.p[0].dir, "/nowhere/step1/rank2");
    probe_places_free(&places);
}
END_TEST

START_TEST(every_failed_allocation_is_a_clean_error)
{
    layout("step0/rank0/dump.json step0/proc1/dump.json step0/rank1/ step1/rank0/debug.json");
    size_t live = ms_mem_live();
    for (uint64_t n = 1;; n++) {
        ms_err_clear(&err);
        ms_mem_fail_at(n);
        enum ms_rc rc = probe_find(&places, dir, &err);
        bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        if (rc == MS_OK)
            probe_places_free(&places);
        ck_assert_uint_eq(ms_mem_live(), live);
        if (!failed)
            break;
        ck_assert_msg(rc == MS_E_NOMEM, "allocation %d: %d %s", (int)n, rc, err.msg);
    }
    scratch_remove(dir);
}
END_TEST

START_TEST(an_empty_dump_of_a_debugger_stands_behind_its_debug_json)
{
    static const char debugger[] = "{\"task\": null, \"level\": \"debug\", \"data\": {}}";
    char path[128];
    layout("step0/rank0/debug.json step0/rank0/dump.json step0/rank1/dump.json");
    snprintf(path, sizeof path, "%s/step0/rank0/dump.json", dir);
    write_file(path, debugger, sizeof debugger - 1);
    snprintf(path, sizeof path, "%s/step0/rank1/dump.json", dir);
    write_file(path, debugger, sizeof debugger - 1);
    look_at("step0");
    ck_found("0.0=step0/rank0/debug.json 0.1=step0/rank1/dump.json ");
    probe_places_free(&places);
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("find", each_layout_is_known, notes_say_which_rank_a_process_was_given,
          a_directory_without_a_dump_is_an_error_that_says_what_was_looked_for,
          a_directory_that_cannot_be_read_is_an_error, what_is_no_directory_is_taken_for_a_file,
          an_empty_dump_of_a_debugger_stands_behind_its_debug_json,
          every_failed_allocation_is_a_clean_error)

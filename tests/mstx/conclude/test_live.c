/* SPDX-License-Identifier: MIT
 *
 * What is said of open calls in a run that may still be going.
 */
#include "mstx/conclude/conclude.h"
#include "tests/support/scratch_run.h"

/* A run of rank 2, whose last event is "work", with a conclusion that it has not come to a collective in
 * which three others wait since some seconds before the end; and what is found when the process has that
 * state and the limit is so many seconds.  Free it. */
static char *found_with(const char *state, int64_t waited_s, int64_t limit_s)
{
    struct ms_err e = {0};
    struct ms_store *s;
    struct ms_stmt *st;
    struct maker m;
    char db[128], sql[1024];
    bool more;
    begin_run(&m, 2);
    maker_ring(&m, 1, 1, 4242);
    maker_begin_range(&m, 0, 1, maker_text(&m, "work"), 0);
    finish_and_open(&m);
    mstx_tl_close(tl);
    tl = NULL;
    snprintf(db, sizeof db, "%s/run.db", run);
    snprintf(
        sql, sizeof sql,
        "UPDATE processes SET state = '%s';"
        "INSERT INTO conclusions SELECT 'hang', 'error', 2, NULL, NULL, 3,"
        " max(end_ns) - %" PRId64 ", 'stored', 'not_joined',"
        " '{\"rank\": 2, \"op\": \"AllReduce\", \"seq\": 7, \"comm\": \"dp0\", \"waiting\": 3}'"
        " FROM processes",
        state, waited_s * 1000000000);
    ck_ok(ms_store_edit(&s, db, &e), e);
    ck_ok(ms_store_exec(s, sql, &e), e);
    ms_store_close(s);
    ck_ok(mstx__conclude(db, limit_s * 1000000000, &e), e);
    ck_ok(ms_store_open(&s, db, &e), e);
    ck_ok(ms_store_prepare(s, &st,
                           "SELECT group_concat(severity || ' ' || kind || ': ' || text, char(10))"
                           " FROM findings",
                           &e),
          e);
    ck_ok(ms_stmt_step(st, &more, &e), e);
    struct ms_str all = ms_stmt_get_str(st, 0);
    char *text = strndup(all.p != NULL ? all.p : "", all.n);
    ms_stmt_free(st);
    ms_store_close(s);
    scratch_remove(dir);
    return text;
}

static void check_found_at(int64_t limit_s, const char *state, int64_t waited_s, const char *holds,
                           const char * not )
{
    char *text = found_with(state, waited_s, limit_s);
    ck_assert_msg(strstr(text, holds) != NULL, "no '%s' in:\n%s", holds, text);
    ck_assert_msg(strstr(text, not ) == NULL, "'%s' in:\n%s", not, text);
    free(text);
}

static void check_found(const char *state, int64_t waited_s, const char *holds, const char * not )
{
    check_found_at(MSTX_MISSING_AFTER_S, state, waited_s, holds, not );
}

#define SINCE "info unfinished: AllReduce (call 7 of dp0) is in progress since "

START_TEST(an_open_call_of_a_running_job_is_in_progress)
{
    check_found("running", 12, SINCE "12.0 s: 3 ranks wait for rank 2, which is in work",
                "missing");
    check_found("not finished", 299, SINCE "299.0 s", "missing");
}
END_TEST

START_TEST(who_is_awaited_for_longer_than_the_limit_is_missing)
{
    check_found("running", 301,
                "error hang: rank 2 is missing from AllReduce (call 7 of dp0), in which 3 ranks"
                " have waited for 301.0 s while it is in work",
                "in progress since");
}
END_TEST

START_TEST(the_limit_for_who_is_missing_is_chosen)
{
    check_found_at(10, "running", 9, SINCE "9.0 s", "missing");
    check_found_at(10, "running", 10, "error hang: rank 2 is missing from AllReduce",
                   "in progress since");
    check_found_at(600, "running", 599, SINCE "599.0 s", "missing");
}
END_TEST

/* What the last import into this database was told. */
static void check_limit(const char *db, const char *limit)
{
    struct ms_err e = {0};
    struct ms_store *s;
    struct ms_stmt *st;
    bool more;
    ck_ok(ms_store_open(&s, db, &e), e);
    ck_ok(ms_store_prepare(s, &st, "SELECT value FROM meta WHERE key = 'missing_after'", &e), e);
    ck_ok(ms_stmt_step(st, &more, &e), e);
    ck_assert_int_eq(more, limit != NULL);
    if (limit != NULL)
        ck_assert_msg(ms_str_eq(ms_stmt_get_str(st, 0), ms_str_of(limit)), "not %s", limit);
    ms_stmt_free(st);
    ms_store_close(s);
}

START_TEST(an_import_by_a_viewer_keeps_the_limit)
{
    struct ms_err e = {0};
    struct mstx_import_result r;
    struct mstx_import_how how = {.missing_after_s = 12.5};
    struct maker m;
    char db[128];
    begin_run(&m, 2);
    maker_ring(&m, 1, 1, 4242);
    maker_begin_range(&m, 0, 1, maker_text(&m, "work"), 0);
    finish_and_open(&m);
    mstx_tl_close(tl);
    tl = NULL;
    snprintf(db, sizeof db, "%s/run.db", run);
    check_limit(db, NULL);
    ck_ok(mstx_import_as(run, db, &how, &r, &e), e);
    check_limit(db, "12.5");
    ck_ok(mstx_import(run, db, &r, &e), e);
    check_limit(db, "12.5");
    how.missing_after_s = MSTX_MISSING_AFTER_S;
    ck_ok(mstx_import_as(run, db, &how, &r, &e), e);
    check_limit(db, NULL);
    scratch_remove(dir);
}
END_TEST

START_TEST(whose_process_has_ended_is_missing)
{
    check_found("killed", 1, "error hang: rank 2 is missing from AllReduce", "in progress");
    check_found("finished", 1, "error hang: rank 2 is missing from AllReduce", "in progress");
}
END_TEST

START_TEST(ranges_of_a_running_process_are_in_progress)
{
    check_found("running", 1, "has 1 range in progress", "never ended");
    check_found("killed", 1, "has 1 range that never ended", "in progress");
}
END_TEST

/* ---- calls that a framework marks itself ------------------------------------------------ */

#define SAID(op, more)                                                                             \
    "{\"count\": \"4\", \"dataType\": \"fp32\", \"groupName\": \"g\", \"opName\": \"" op           \
    "\", \"streamId\": \"0\", \"groupSize\": \"3\", \"groupRanks\": \"0 1 2\"" more "}"

/* Adds one rank of three: all make two all-reduces; `last` is the text of a call that does not return, NULL:
 * none. */
static void add_rank(int32_t rank, const char *last)
{
    struct maker m;
    if (rank == 0)
        begin_run(&m, rank);
    else
        maker_begin(&m, run, rank, 4242 + (uint32_t)rank);
    const uint16_t domain = maker_domain(&m, "communication");
    const uint32_t all = maker_text(&m, SAID("HcclAllreduce", ""));
    maker_ring(&m, 1, 1, 4242 + (uint32_t)rank);
    for (uint64_t k = 0; k < 2; k++) {
        maker_begin_range(&m, 1000 * k, k + 1, all, domain);
        maker_end_range(&m, 1000 * k + 500, k + 1, all, domain, 1000 * k, 0);
    }
    if (last != NULL)
        maker_begin_range(&m, 5000, 9, maker_text(&m, last), domain);
    maker_mark(&m, 3000000000, maker_text(&m, "later"), 0);
    maker_end_ring(&m);
    maker_end(&m);
}

static void check_hangs(const char *expected)
{
    open_path(run);
    ck_rows(mstx_tl_store(tl), "SELECT severity, text FROM findings WHERE kind = 'hang'", expected);
    end_run();
}

START_TEST(a_rank_is_missing_from_a_call_of_a_framework)
{
    add_rank(0, SAID("HcclAllreduce", ""));
    add_rank(1, NULL);
    add_rank(2, SAID("HcclAllreduce", ""));
    check_hangs("error|rank 1 is missing from AllReduce (call 2 of g), in which 2 ranks waited at"
                " the end;");
    for (int32_t r = 0; r < 3; r++) /* all wait in the same call: nobody is missing */
        add_rank(r, SAID("HcclAllreduce", ""));
    check_hangs("");
}
END_TEST

START_TEST(a_peer_is_missing_from_a_transfer_of_a_framework)
{
    add_rank(0, SAID("HcclRecv", ", \"srcRank\": \"1\""));
    add_rank(1, NULL);
    add_rank(2, NULL);
    check_hangs(
        "error|rank 1 is missing from the other end of Recv of g, in which 1 rank waited for"
        " 3.0 s;");
    add_rank(0, SAID("HcclRecv", ", \"srcRank\": \"1\""));
    add_rank(1, SAID("HcclSend", ", \"destRank\": \"0\""));
    add_rank(2, NULL);
    check_hangs("");
}
END_TEST

TEST_MAIN("live", an_open_call_of_a_running_job_is_in_progress,
          who_is_awaited_for_longer_than_the_limit_is_missing,
          the_limit_for_who_is_missing_is_chosen, an_import_by_a_viewer_keeps_the_limit,
          whose_process_has_ended_is_missing, ranges_of_a_running_process_are_in_progress,
          a_rank_is_missing_from_a_call_of_a_framework,
          a_peer_is_missing_from_a_transfer_of_a_framework)

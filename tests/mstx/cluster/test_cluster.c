/* SPDX-License-Identifier: MIT
 *
 * What ranks say together: formulas, and simulated runs whose truth is known.
 */
#include "mstx/cluster/cluster.h"
#include "mstx/conclude/run_ready.h"
#include "mstx/conclude/run_report.h"
#include "mstx/format/comm_rates.h"
#include "tests/gen/sim.h"
#include "tests/support/scratch_run.h"

#include <math.h>

static struct sim sim;
static struct mstx_report report;

/* Two tensor ranks, two stages, four replicas on hosts whose clocks are 10 ms apart. */
static void simulate(enum sim_fault fault, double amount)
{
    struct ms_err e = {0};
    sim = (struct sim){.tp = 2,
                       .pp = 2,
                       .dp = 4,
                       .steps = 12,
                       .micro = 2,
                       .layers = 2,
                       .buckets = 2,
                       .per_host = 4,
                       .jitter = 0.01,
                       .noise = 0.03,
                       .imbalance = 0.05,
                       .clock_ms = 10,
                       .drift_ppm = 20,
                       .fault = fault,
                       .amount = amount,
                       .seed = 11};
    scratch_dir(dir);
    snprintf(run, sizeof run, "%s/run", dir);
    sim_write(&sim, run);
    open_path(run);
    ck_ok(mstx_report_read(tl, false, &report, &e), e);
}

static void end_simulation(void)
{
    mstx_report_free(&report);
    end_run();
}

static const struct mstx_finding *first_of(const char *kind)
{
    for (size_t i = 0; i < report.findings.n; i++) {
        if (strcmp(report.findings.p[i].kind, kind) == 0)
            return &report.findings.p[i];
    }
    return NULL;
}

static int64_t ask(const char *sql)
{
    struct ms_stmt *st;
    struct ms_err e = {0};
    bool more;
    ck_ok(ms_store_prepare(mstx_tl_store(tl), &st, sql, &e), e);
    ck_ok(ms_stmt_step(st, &more, &e), e);
    int64_t v = more ? ms_stmt_get_i64(st, 0) : -1;
    ms_stmt_free(st);
    return v;
}

START_TEST(bandwidths_are_those_of_the_ring)
{
    /* 1,048,576 fp32 on 8 ranks in 100 us: 41.94 and 73.40 GB/s */
    const double s = mstx_comm_algorithm_bytes(MSTX_COMM_ALLREDUCE, 4194304, 8);
    ck_assert_double_eq_tol(s / 1e5, 41.94, 0.01);
    ck_assert_double_eq_tol(s / 1e5 * mstx_comm_bus_factor(MSTX_COMM_ALLREDUCE, 8), 73.40, 0.01);
    ck_assert_double_eq(mstx_comm_algorithm_bytes(MSTX_COMM_ALLGATHER, 100, 8), 800);
    ck_assert_double_eq(mstx_comm_bus_factor(MSTX_COMM_ALLGATHER, 8), 0.875);
    ck_assert_double_eq(mstx_comm_bus_factor(MSTX_COMM_BROADCAST, 8), 1);
    ck_assert_double_eq(mstx_comm_algorithm_bytes(MSTX_COMM_BARRIER, 100, 8), 0);
}
END_TEST

START_TEST(spans_that_touch_are_one)
{
    struct mstx_cl_span at[] = {{5, 9}, {1, 3}, {3, 4}, {6, 7}};
    mstx_cl_spans s = {0};
    ck_assert(ms_vec_reserve(&s, 4));
    memcpy(s.p, at, sizeof at);
    s.n = 4;
    mstx__spans_join(&s);
    ck_assert_uint_eq(s.n, 2);
    ck_assert_int_eq(s.p[0].start, 1);
    ck_assert_int_eq(s.p[0].end, 4);
    ck_assert_int_eq(s.p[1].end, 9);
    ms_vec_free(&s);
}
END_TEST

START_TEST(a_step_is_divided_into_computing_communication_and_the_rest)
{
    struct mstx_cluster c = {0};
    struct mstx_cl_part p = {.rank = 0, .host = MS_STR("a"), .knows_work = true};
    struct mstx_cl_step *s = ms_vec_push(&p.steps);
    *s = (struct mstx_cl_step){.number = 7, .start_ns = 100, .end_ns = 200};
    struct mstx_cl_span *work = ms_vec_push(&p.work), *comm = ms_vec_push(&p.comm);
    *work = (struct mstx_cl_span){110, 150};
    *comm = (struct mstx_cl_span){140, 180};
    mstx__cluster_part(&c, &p);
    ck_assert_uint_eq(c.step.n, 1);
    s = c.step.p;
    ck_assert_int_eq(s->computing_ns, 40);
    ck_assert_int_eq(s->comm_ns, 40);
    ck_assert_int_eq(s->overlapped_ns, 10);
    ck_assert_int_eq(s->free_ns, 30);
    ck_assert_int_eq(s->preparing_ns, 10);
    mstx__cluster_part_free(&p);
    mstx__cluster_free(&c);
}
END_TEST

START_TEST(a_clean_run_blames_nobody)
{
    simulate(SIM_CLEAN, 0);
    ck_assert_msg(mstx_findings_headline(&report.findings) == NULL, "%s",
                  sentence_of(&report.findings.p[0].message));
    ck_assert_int_eq(ask("SELECT count(*) FROM rank_steps"), 16 * 12);
    /* one all-reduce of all ranks a step, with all of them */
    ck_assert_int_eq(ask("SELECT count(*) FROM joins WHERE ranks = 16"), 12);
    ck_assert_int_eq(ask("SELECT count(*) FROM joins WHERE missing <> 0 OR agrees = 0"), 0);
    /* a step is computing and communication, as there is no device */
    ck_assert_int_eq(ask("SELECT count(*) FROM rank_steps WHERE computing_ns + communication_ns"
                         " <> end_ns - start_ns"),
                     0);
    end_simulation();
}
END_TEST

START_TEST(a_slow_rank_is_named_in_the_first_line)
{
    simulate(SIM_STRAGGLER, 0.05);
    const struct mstx_finding *f = mstx_findings_headline(&report.findings);
    ck_assert_ptr_nonnull(f);
    ck_assert_str_eq(f->kind, "straggler");
    ck_assert_int_eq(f->rank, sim.rank);
    ck_assert_double_eq_tol(f->value, 0.05, 0.02);
    struct ms_buf b = {.max = 1 << 20};
    char start[32];
    snprintf(start, sizeof start, "rank %d makes the others wait", sim.rank);
    mstx_report_text(tl, &report, run, 5, &b);
    ck_assert_msg(strncmp(ms_buf_z(&b), start, strlen(start)) == 0, "%.80s", b.p);
    ms_buf_free(&b);
    end_simulation();
}
END_TEST

START_TEST(when_a_rank_became_slow_is_told)
{
    simulate(SIM_FAIL_SLOW, 0.1);
    const struct mstx_finding *f = first_of("fail_slow");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(f->rank, sim.rank);
    ck_assert_int_eq(f->first_step, 6);
    ck_assert_int_eq(f->last_step, 11);
    end_simulation();
}
END_TEST

START_TEST(slow_links_are_named_by_their_ends_or_their_communicator)
{
    simulate(SIM_SLOW_PAIR, 0.3);
    const struct mstx_finding *f = first_of("slow_link");
    char words[64];
    snprintf(words, sizeof words, "from rank %d to rank %d ", sim.rank, sim.other);
    ck_assert_ptr_nonnull(f);
    ck_assert_msg(strstr(sentence_of(&f->message), words) != NULL, "%s", sentence_of(&f->message));
    ck_assert_double_eq_tol(f->value, 1 / 0.7, 0.1);
    end_simulation();
    simulate(SIM_SLOW_GROUP, 0.3);
    f = first_of("slow_link");
    snprintf(words, sizeof words, "ranks %d .. %d ", sim.rank, sim.other);
    ck_assert_ptr_nonnull(f);
    ck_assert_msg(strstr(sentence_of(&f->message), words) != NULL, "%s", sentence_of(&f->message));
    end_simulation();
}
END_TEST

START_TEST(the_rank_whose_program_differs_is_named)
{
    simulate(SIM_MISMATCH, 0);
    const struct mstx_finding *f = first_of("mismatch");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(f->rank, sim.rank);
    ck_assert_int_eq(ask("SELECT count(*) FROM joins WHERE agrees = 0"), 2);
    end_simulation();
}
END_TEST

START_TEST(a_rank_that_does_not_come_is_named_and_so_is_one_without_capture)
{
    simulate(SIM_HANG, 0);
    const struct mstx_finding *f = first_of("hang");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(f->rank, sim.rank);
    end_simulation();
    simulate(SIM_MISSING, 0);
    ck_assert_msg(mstx_findings_headline(&report.findings) == NULL, "%s",
                  sentence_of(&report.findings.p[0].message));
    ck_assert_int_gt(ask("SELECT count(*) FROM joins WHERE missing = 1"), 0);
    f = first_of("absent");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(f->rank, sim.rank);
    ck_assert_int_eq((int)f->value, 1);
    end_simulation();
    simulate(SIM_CLEAN, 0);
    ck_assert_ptr_null(first_of("absent"));
    end_simulation();
}
END_TEST

START_TEST(a_summary_concludes_what_the_whole_does)
{
    const struct mstx_import_how how = {.summary = true};
    struct mstx_import_result r;
    struct ms_err e = {0};
    char db[96];
    simulate(SIM_STRAGGLER, 0.05);
    const int64_t waited = ask("SELECT sum(waited_ns) FROM joins");
    const int64_t notes = ask("SELECT count(*) FROM conclusions");
    mstx_report_free(&report);
    mstx_tl_close(tl);
    snprintf(db, sizeof db, "%s/summary.db", dir);
    ck_ok(mstx_import_as(run, db, &how, &r, &e), e);
    open_path(db);
    ck_ok(mstx_report_read(tl, false, &report, &e), e);
    ck_assert_int_eq(ask("SELECT sum(waited_ns) FROM joins"), waited);
    ck_assert_int_eq(ask("SELECT count(*) FROM conclusions"), notes);
    ck_assert_int_eq(ask("SELECT count(*) FROM comm_ops"), 0);
    end_simulation();
}
END_TEST

/* The first query over all calls fills the index of blobs; those after it fetch only blobs that may hold
 * their rows.  `rank + 0` keeps a condition from the table, so SQLite compares each row. */
START_TEST(queries_of_a_rank_agree_before_and_after_the_index_is_filled)
{
    static const char *const what[] = {"count(*)", "sum(start_ns % 1000003)"};
    static const char *const also[] = {"", " AND seq BETWEEN 3 AND 9"};
    simulate(SIM_CLEAN, 0);
    for (int i = 0; i < 4; i++) { /* twice each */
        for (int rank = -1; rank <= sim.tp * sim.pp * sim.dp; rank++) {
            char sql[2][160];
            for (int k = 0; k < 2; k++)
                snprintf(sql[k], sizeof sql[k], "SELECT %s FROM comm_ops WHERE %s = %d%s",
                         what[i % 2], k == 0 ? "rank" : "rank + 0", rank, also[i % 2]);
            ck_assert_int_eq(ask(sql[0]), ask(sql[1]));
        }
    }
    ck_assert_int_gt(ask("SELECT count(*) FROM comm_ops WHERE rank = 0"), 0);
    end_simulation();
}
END_TEST

/* A number that no program counts up to, as damage makes it, asks for no memory. */
START_TEST(damaged_numbers_are_counted_and_passed_over)
{
    struct mstx_cluster c = {0};
    struct ms_err err = {0};
    mstx__cluster_group(&c, 1, MS_STR(""), 2, NULL, 0);
    for (int rank = 0; rank < 2; rank++) {
        struct mstx_cl_part p = {.rank = rank, .host = MS_STR("a")};
        const uint32_t seq[] = {0, 1, UINT32_MAX};
        for (int i = 0; i < 3; i++) {
            struct mstx_cl_call *k = ms_vec_push(&p.calls);
            *k = (struct mstx_cl_call){.start_ns = 10 * i,
                                       .dur_ns = 5 - rank,
                                       .group = 1,
                                       .seq = seq[i],
                                       .peer = -1,
                                       .op = MSTX_COMM_BARRIER};
        }
        mstx__cluster_part(&c, &p);
        mstx__cluster_part_free(&p);
    }
    ck_assert_int_eq(mstx__cluster_conclude(&c, &err), MS_OK);
    ck_assert_uint_eq(c.strange, 2);
    ck_assert_uint_eq(c.join.n, 2);
    ck_assert_int_eq(c.join.p[0].transfer_ns, 4);
    ck_assert_int_eq(c.join.p[0].waited_ns, 1);
    ck_assert_uint_eq(c.join.p[0].last, 1);
    mstx__cluster_free(&c);
}
END_TEST

/* What was recorded begins late in a long run, and on one rank a little later than on the other. */
START_TEST(calls_of_a_late_window_are_joined_by_their_numbers)
{
    struct mstx_cluster c = {0};
    struct ms_err err = {0};
    mstx__cluster_group(&c, 1, MS_STR("late"), 2, NULL, 0);
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct mstx_cl_part p = {.rank = (int32_t)rank, .host = MS_STR("a")};
        for (uint32_t i = rank; i < 10; i++) {
            struct mstx_cl_call *k = ms_vec_push(&p.calls);
            *k = (struct mstx_cl_call){.start_ns = 10 * i,
                                       .dur_ns = 5 - rank,
                                       .group = 1,
                                       .seq = 4000000 + i,
                                       .peer = -1,
                                       .op = MSTX_COMM_BARRIER};
        }
        mstx__cluster_part(&c, &p);
        mstx__cluster_part_free(&p);
    }
    ck_assert_int_eq(mstx__cluster_conclude(&c, &err), MS_OK);
    ck_assert_uint_eq(c.strange, 0);
    ck_assert_uint_eq(c.join.n, 10);
    ck_assert_uint_eq(c.join.p[0].seq, 4000000);
    ck_assert_int_eq(c.join.p[0].transfer_ns, -1); /* the other's call was before its window */
    ck_assert_int_eq(c.join.p[9].transfer_ns, 4);
    mstx__cluster_free(&c);
}
END_TEST

/* Imports the run into a database of that name by threads, joining so many calls at a time. */
static void import_in_rounds(const char *name, size_t calls, unsigned threads, struct ms_file *db)
{
    struct ms_err e = {0};
    struct mstx_import_result r;
    const struct mstx_import_how how = {.round_calls = calls, .threads = threads};
    char path[96];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_ok(mstx_import_as(run, path, &how, &r, &e), e);
    ck_ok(ms_file_map(db, path, SIZE_MAX, &e), e);
}

START_TEST(rounds_and_threads_give_the_same_bytes)
{
    static const enum sim_fault faults[] = {SIM_CLEAN, SIM_SLOW_PAIR, SIM_MISMATCH, SIM_MISSING,
                                            SIM_HANG};
    static const size_t lengths[] = {1, 50, 333};
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        struct ms_file whole, parts;
        simulate(faults[f], 0.5);
        import_in_rounds("whole.db", 0, 1, &whole);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            import_in_rounds("parts.db", lengths[i], 1 + (unsigned)i, &parts);
            ck_assert_uint_eq(parts.n, whole.n);
            ck_assert(memcmp(parts.p, whole.p, whole.n) == 0);
            ms_file_unmap(&parts);
        }
        ms_file_unmap(&whole);
        end_simulation();
    }
}
END_TEST

TEST_MAIN("cluster", rounds_and_threads_give_the_same_bytes, bandwidths_are_those_of_the_ring,
          spans_that_touch_are_one, a_step_is_divided_into_computing_communication_and_the_rest,
          a_clean_run_blames_nobody, a_slow_rank_is_named_in_the_first_line,
          when_a_rank_became_slow_is_told, slow_links_are_named_by_their_ends_or_their_communicator,
          the_rank_whose_program_differs_is_named,
          a_rank_that_does_not_come_is_named_and_so_is_one_without_capture,
          a_summary_concludes_what_the_whole_does, damaged_numbers_are_counted_and_passed_over,
          queries_of_a_rank_agree_before_and_after_the_index_is_filled,
          damaged_numbers_are_counted_and_passed_over,
          calls_of_a_late_window_are_joined_by_their_numbers)

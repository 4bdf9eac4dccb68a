/* SPDX-License-Identifier: MIT
 *
 * Reports of small runs: what they find, in which order, and how they say it to people
 * and to programs.
 */
#include "mstx/conclude/run_report.h"
#include "tests/support/scratch_run.h"

static struct mstx_report report;

static void make_report(void)
{
    struct ms_err e = {0};
    ck_ok(mstx_report_read(tl, true, &report, &e), e);
}

static void end_report(void)
{
    mstx_report_free(&report);
    end_run();
}

/* Steps of a microsecond each, the fifth takes three; on one thread of that rank. */
static void make_steps(int32_t rank)
{
    struct maker m;
    char name[16];
    begin_run(&m, rank);
    maker_ring(&m, 1, 1, 4242);
    for (uint64_t i = 0, t = 0; i < 6; i++) {
        uint64_t dur = i == 5 ? 3000 : 1000;
        snprintf(name, sizeof name, "step %d", (int)i);
        uint32_t id = maker_text(&m, name);
        maker_begin_range(&m, t, i + 1, id, 0);
        maker_end_range(&m, t + dur, i + 1, id, 0, t, 0);
        t += dur + 10;
    }
    m.head.dropped = 1;
    finish_and_open(&m);
}

static void check_holds(const char *text, const char *words)
{
    ck_assert_msg(strstr(text, words) != NULL, "no '%s' in:\n%s", words, text);
}

/* The text for people; free it. */
static char *text_of(size_t most)
{
    struct ms_buf b = {.max = 1 << 20};
    mstx_report_text(tl, &report, "the/run", most, &b);
    ck_assert_int_eq(b.bad, MS_OK);
    char *text = strdup(ms_buf_z(&b));
    ms_buf_free(&b);
    return text;
}

START_TEST(a_slow_step_and_lost_records_are_found)
{
    make_steps(2);
    make_report();
    ck_assert_int_eq(report.steps.source, MSTX_STEPS_RANGES);
    ck_assert_int_eq(report.step_median_ns, 1000);
    ck_assert_uint_eq(report.findings.n, 2);
    const struct mstx_finding *f = report.findings.p;
    ck_assert_str_eq(f[0].kind, "drop");
    ck_assert_str_eq(sentence_of(&f[0].message),
                     "rank 2 (process 4242) lost 1 record while recording; figures of"
                     " it are too low");
    ck_assert_str_eq(f[1].kind, "slow_step");
    ck_assert_str_eq(sentence_of(&f[1].message),
                     "step 5 of rank 2 (process 4242) took 3.00 us, 3.0 times the"
                     " median of all steps");
    ck_assert_int_eq(f[1].first_step, 5);
    ck_assert_int_eq(f[1].rank, 2);
    end_report();
}
END_TEST

/* Twelve steps, of which those with a bit in `slow` take longer, the later the longer. */
static void make_slow_steps(unsigned slow)
{
    struct maker m;
    char name[16];
    begin_run(&m, 2);
    maker_ring(&m, 1, 1, 4242);
    for (uint64_t i = 0, t = 0; i < 12; i++) {
        const uint64_t dur = (slow >> i & 1) != 0 ? 2000 + 100 * i : 1000;
        snprintf(name, sizeof name, "step %d", (int)i);
        uint32_t id = maker_text(&m, name);
        maker_begin_range(&m, t, i + 1, id, 0);
        maker_end_range(&m, t + dur, i + 1, id, 0, t, 0);
        t += dur + 10;
    }
    finish_and_open(&m);
}

START_TEST(slow_steps_are_one_finding)
{
    make_slow_steps(1 << 1 | 1 << 4 | 1 << 5 | 1 << 6);
    make_report();
    ck_assert_uint_eq(report.findings.n, 1);
    ck_assert_str_eq(sentence_of(&report.findings.p[0].message),
                     "step 6 of rank 2 (process 4242) took 2.60 us, 2.6 times the median of all"
                     " steps; 3 more steps took over 1.5 times the median: 1, 4-6 in all");
    ck_assert_int_eq(report.findings.p[0].first_step, 6);
    end_report();
}
END_TEST

START_TEST(the_text_lists_the_worst_findings_and_counts_the_others)
{
    make_steps(2);
    make_report();
    ck_assert_uint_eq(report.findings.n, 2);
    char *one = text_of(1), *all = text_of(0);
    check_holds(one, "  warning  rank 2 (process 4242) lost 1 record");
    check_holds(one, "  ... 1 more (warning 1); --most 0 shows all\n");
    ck_assert_ptr_null(strstr(one, "times the median of all steps"));
    check_holds(all, "times the median of all steps");
    ck_assert_ptr_null(strstr(all, "shows all"));
    free(one);
    free(all);
    end_report();
}
END_TEST

START_TEST(the_text_names_steps_from_the_slowest)
{
    make_steps(2);
    make_report();
    char *text = text_of(2);
    check_holds(text, "the/run: 1 process, 1 track, 6 events in 8.05 us\n");
    check_holds(text, "steps: 6 by ranges, median 1.00 us; the slowest\n"
                      "  rank   2  step      5       3.00 us    3.00 x median\n"
                      "  rank   2  step      0       1.00 us    1.00 x median\n"
                      "  ... 4 more; --most 0 shows all\n");
    check_holds(text, "default        step 5 ");
    check_holds(text, " %  and 4 alike\n");
    free(text);
    text = text_of(0);
    ck_assert_ptr_null(strstr(text, "more"));
    free(text);
    end_report();
}
END_TEST

START_TEST(a_process_without_a_rank_is_named_by_host_and_pid)
{
    make_steps(-1);
    make_report();
    char *text = text_of(0);
    check_holds(text, "  testhost:4242  step      5 ");
    check_holds(text, "step 5 of process 4242 took");
    ck_assert_ptr_null(strstr(text, "-1"));
    free(text);
    end_report();
}
END_TEST

START_TEST(marks_and_a_period_make_steps_that_last_until_the_next)
{
    struct maker m;
    begin_run(&m, 0);
    uint32_t step = maker_text(&m, "iteration"), work = maker_text(&m, "work");
    maker_ring(&m, 1, 1, 4242);
    for (uint64_t i = 0; i < 8; i++)
        maker_mark(&m, 100 * i, step, 0);
    maker_end_ring(&m);
    maker_end(&m);
    maker_begin(&m, run, 1, 5000);
    step = maker_text(&m, "epoch");
    maker_ring(&m, 1, 1, 5000);
    for (uint64_t i = 0; i < 7; i++) {
        maker_mark(&m, 200000 * i, step, 0);
        maker_mark(&m, 200000 * i + 100000, work, 0);
    }
    finish_and_open(&m);
    make_report();
    ck_assert_int_eq(report.steps.source, MSTX_STEPS_MARKS); /* of the process with the most */
    ck_assert_uint_eq(report.steps.list.n, 7 + 6);
    for (size_t i = 0; i < report.steps.list.n; i++) {
        const struct mstx_step *s = &report.steps.list.p[i];
        ck_assert_uint_eq(s->process, i < 7 ? 0 : 1);
        ck_assert_uint_eq(s->number, i < 7 ? i : i - 7);
        ck_assert_int_eq(s->end_ns - s->start_ns, i < 7 ? 100 : 200000);
    }
    end_report();
}
END_TEST

START_TEST(percentiles_are_those_of_the_sorted_durations)
{
    struct maker m;
    begin_run(&m, 0);
    uint32_t a = maker_text(&m, "a");
    maker_ring(&m, 1, 1, 4242);
    for (uint64_t i = 0; i < 100; i++) { /* 1 .. 100 in another order */
        maker_begin_range(&m, 1000 * i, i + 1, a, 0);
        maker_end_range(&m, 1000 * i + 1 + i * 37 % 100, i + 1, a, 0, 1000 * i, 0);
    }
    finish_and_open(&m);
    make_report();
    const struct mstx_name_row *row = report.names.p;
    ck_assert_uint_eq(report.names.n, 1);
    ck_assert_int_eq(row->total_ns, 5050);
    ck_assert_int_eq(row->mean_ns, 50);
    ck_assert_int_eq(row->p50_ns, 50);
    ck_assert_int_eq(row->p99_ns, 99);
    ck_assert_int_eq(row->max_ns, 100);
    end_report();
}
END_TEST

START_TEST(a_run_without_events_has_nothing_to_say)
{
    struct maker m;
    begin_run(&m, 0);
    maker_ring(&m, 1, 1, 4242);
    finish_and_open(&m);
    make_report();
    char *text = text_of(0);
    ck_assert_str_eq(text, "the/run: 1 process, 0 tracks, 0 events in 0 ns\n\nfindings\n  none\n");
    free(text);
    end_report();
}
END_TEST

START_TEST(the_json_keeps_its_contract)
{
    make_steps(2);
    make_report();
    struct ms_jwrite w;
    struct ms_err e = {0};
    ms_jwrite_init(&w, 0, 1 << 20);
    mstx_report_json(tl, &report, "r", NULL, &w);
    ck_ok(ms_jwrite_finish(&w, &e), e);
    const char *text = ms_buf_z(&w.buf);
    static const char *const parts[] = {
        "{\"run\": {\"path\": \"r\", \"start_ns\": 1717575960000000000, ",
        "\"steps_by\": \"ranges\", \"step_median_ns\": 1000}, \"findings\": [{\"kind\": \"drop\","
        " \"severity\": \"warning\", \"ranks\": [2], \"steps\": [], \"value\": 1",
        "{\"kind\": \"slow_step\", \"severity\": \"warning\", \"ranks\": [2], \"steps\": [5, 5],"
        " \"value\": 3",
        "\"where\": null, \"evidence\": null}], \"steps\": [{\"rank\": 2, \"step\": 0, "
        "\"start_ns\":"
        " 1717575960000000000, \"duration_ns\": 1000}, ",
        "\"ranks\": [{\"rank\": 2, \"host\": \"testhost\", \"pid\": 4242, \"state\": \"finished\","
        " \"records\": 12, \"events\": 6, \"unfinished\": 0, \"dropped\": 1, ",
        "\"names\": [{\"domain\": \"default\", \"name\": \"step 5\", \"count\": 1, "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        check_holds(text, parts[i]);
    ms_jwrite_free(&w);
    end_report();
}
END_TEST

START_TEST(findings_are_kept_in_the_database)
{
    make_steps(2);
    ck_rows(mstx_tl_store(tl),
            "SELECT kind, severity, ranks, first_step, last_step FROM findings ORDER BY id",
            "drop|warning|2||;slow_step|warning|2|5|5;");
    ck_rows(mstx_tl_store(tl), "SELECT message, args, place FROM findings WHERE kind = 'drop'",
            "drop|{\"pid\": 4242, \"rank\": 2, \"records\": 1}|;");
    ck_rows(mstx_tl_store(tl), "SELECT count(*), max(number) FROM steps", "6|5;");
    end_run();
}
END_TEST

/* As where each epoch counts from 0. */
START_TEST(steps_whose_number_returns_are_all_kept)
{
    struct maker m;
    char name[16];
    begin_run(&m, 0);
    maker_ring(&m, 1, 1, 4242);
    for (uint64_t i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "step %d", (int)(i % 3));
        uint32_t id = maker_text(&m, name);
        maker_begin_range(&m, 2000 * i, i + 1, id, 0);
        maker_end_range(&m, 2000 * i + 1000, i + 1, id, 0, 2000 * i, 0);
    }
    finish_and_open(&m);
    make_report();
    ck_assert_uint_eq(report.steps.list.n, 6);
    ck_rows(mstx_tl_store(tl),
            "SELECT count(*), sum(end_ns - start_ns), group_concat(number) FROM steps",
            "6|6000|0,1,2,0,1,2;");
    end_report();
}
END_TEST

TEST_MAIN("run_report", a_slow_step_and_lost_records_are_found, slow_steps_are_one_finding,
          the_text_lists_the_worst_findings_and_counts_the_others,
          the_text_names_steps_from_the_slowest, a_process_without_a_rank_is_named_by_host_and_pid,
          marks_and_a_period_make_steps_that_last_until_the_next,
          percentiles_are_those_of_the_sorted_durations, a_run_without_events_has_nothing_to_say,
          the_json_keeps_its_contract, findings_are_kept_in_the_database,
          steps_whose_number_returns_are_all_kept)

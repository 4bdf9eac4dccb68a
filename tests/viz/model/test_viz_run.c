/* SPDX-License-Identifier: MIT
 *
 * What a viewer was asked to open, and the timeline's lanes, findings and sums.
 */
#include "tests/support/graph_files.h"
#include "tests/support/view_files.h"

#include "mstx/conclude/name_totals.h"
#include "probe/base/log.h"
#include "probe/base/store.h"
#include "viz/model/finding.h"
#include "viz/model/tracks.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct viz_tracks tracks;

static void set_up(void)
{
    view_set_up();
    tracks = (struct viz_tracks){.arena = NULL};
}

static void tear_down(void)
{
    viz_tracks_free(&tracks);
    view_tear_down();
}

/* Ten steps of 10 us of which the sixth is slow; work fills half of each step. */
static void put_trace(void)
{
    struct ms_buf b = {.max = 1 << 20};
    int64_t at = 1000;
    ms_buf_puts(&b, "[" EVENT("other", "2", "9", "1000", "50"));
    for (int i = 0; i < 10; i++) {
        int64_t length = i == 5 ? 100 : 10;
        ms_buf_printf(&b, "," EVENT("step %d", "1", "1", "%lld", "%lld"), i, (long long)at,
                      (long long)length);
        ms_buf_printf(&b, "," EVENT("work", "1", "1", "%lld", "5"), (long long)at);
        at += length;
    }
    ms_buf_puts(&b, "]");
    put_events(ms_buf_slice(&b));
    ms_buf_free(&b);
}

static void open_trace(void)
{
    put_trace();
    open_path(events_path, NULL);
    ck_ok(viz_tracks_make(&tracks, reader.tl, &err), err);
}

static size_t lane_of_process(uint32_t process)
{
    for (size_t i = 0; i < tracks.lanes.n; i++) {
        if (tracks.lanes.p[i].process == process)
            return i;
    }
    ck_abort_msg("no lane of process %u", process);
}

START_TEST(a_trace_opens_as_a_timeline_alone)
{
    open_trace();
    ck_assert_ptr_nonnull(reader.tl);
    ck_assert_ptr_null(reader.graph);
    ck_assert(ms_str_is(viz_session_title(&session), "trace.json"));
}
END_TEST

START_TEST(a_run_db_opens_itself_and_is_left_as_it_is)
{
    char db[160], beside[200];
    open_trace();
    snprintf(db, sizeof db, "%s", session.timeline);
    viz_tracks_free(&tracks);
    viz_reader_close(&reader);
    viz_session_close(&session);
    ck_assert_int_eq(unlink(events_path), 0); /* a database outlives what it was made from */
    open_path(db, NULL);
    ck_assert_str_eq(session.timeline, db);
    ck_assert_uint_eq(mstx_tl_track_count(reader.tl), 2);
    uint64_t version = session.version;
    ck_ok(viz_session_refresh(&session, &err), err);
    ck_assert_uint_eq(session.version, version);
    snprintf(beside, sizeof beside, "%s.run.db", db);
    ck_assert_int_ne(access(beside, F_OK), 0);
}
END_TEST

START_TEST(a_pair_of_dumps_opens_as_a_graph_that_leaves_nothing_behind)
{
    char target[96], golden[96], made[256];
    snprintf(target, sizeof target, "%s/t", dir);
    snprintf(golden, sizeof golden, "%s/g", dir);
    put_rank(target, ".", "{\"Torch.f.0.forward\":null}",
             DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("2.0"))), NULL);
    put_rank(golden, ".", "{\"Torch.f.0.forward\":null}",
             DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("1.0"))), NULL);
    open_path(target, golden);
    ck_assert_ptr_null(reader.tl);
    ck_assert(graph_view_about(reader.graph)->dual);
    snprintf(made, sizeof made, "%s", session.made);
    ck_assert_int_eq(access(made, F_OK), 0);
    viz_reader_close(&reader);
    viz_session_close(&session);
    ck_assert_int_ne(access(made, F_OK), 0);
}
END_TEST

START_TEST(a_graph_in_a_directory_is_opened_as_it_is)
{
    char target[96], out[96];
    struct graph_made made;
    snprintf(target, sizeof target, "%s/t", dir);
    snprintf(out, sizeof out, "%s/o", dir);
    put_rank(target, ".", "{\"Torch.f.0.forward\":null}",
             DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("2.0"))), NULL);
    struct graph_conf conf = {.target = target, .out_dir = out};
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    open_path(out, NULL);
    ck_assert_str_eq(session.graph, made.path);
    ck_assert_ptr_null(session.made);
    viz_reader_close(&reader);
    viz_session_close(&session);
    open_path(made.path, NULL);
    ck_assert_ptr_nonnull(reader.graph);
}
END_TEST

/* As a writer does that is killed behind a change in WAL mode. */
static void leave_wal(const char *path)
{
    struct ms_store *s;
    pid_t child = fork();
    if (child == 0) {
        bool ok = ms_store_edit(&s, path, &err) == MS_OK &&
                  ms_store_exec(s, "PRAGMA journal_mode=WAL; CREATE TABLE more(x)", &err) == MS_OK;
        _exit(ok ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

/* What is written to stderr while a path is opened. */
static void open_and_listen(const char *what, char *said, size_t room)
{
    char name[128];
    snprintf(name, sizeof name, "%s/said", dir);
    const int kept = dup(2), to = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(to, 0);
    ck_assert_int_eq(dup2(to, 2), 2);
    open_path(what, NULL);
    ck_assert_int_eq(dup2(kept, 2), 2);
    const ssize_t n = pread(to, said, room - 1, 0);
    ck_assert_int_ge(n, 0);
    said[n] = '\0';
    close(to);
    close(kept);
}

START_TEST(a_graph_with_a_wal_is_copied_once)
{
    char target[96], out[96], said[2048];
    struct graph_made made;
    snprintf(target, sizeof target, "%s/t", dir);
    snprintf(out, sizeof out, "%s/o", dir);
    put_rank(target, ".", "{\"Torch.f.0.forward\":null}",
             DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("2.0"))), NULL);
    struct graph_conf conf = {.target = target, .out_dir = out};
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    leave_wal(made.path);
    open_and_listen(made.path, said, sizeof said);
    ck_assert_ptr_nonnull(reader.graph);
    ck_assert_str_ne(session.graph, made.path);
    ck_assert_str_eq(session.origin, made.path);
    const char *first = strstr(said, "a private copy is read");
    ck_assert_msg(first != NULL && strstr(first + 1, "a private copy is read") == NULL, "%s", said);
}
END_TEST

START_TEST(another_database_with_a_wal_is_no_graph)
{
    char db[96];
    struct ms_store *s;
    snprintf(db, sizeof db, "%s/x.db", dir);
    ck_ok(ms_store_create(&s, db, &err), err);
    ck_ok(ms_store_exec(s, "CREATE TABLE t(id)", &err), err);
    ck_ok(ms_store_commit(s, &err), err);
    leave_wal(db);
    ms_log_set_level(MS_LOG_ERROR);
    struct viz_conf c = {.path = db};
    ck_assert_int_ne(viz_session_open(&session, &c, &err), MS_OK);
    ck_assert_ptr_null(session.graph);
}
END_TEST

START_TEST(what_cannot_be_shown_says_what_was_looked_for)
{
    struct viz_conf conf = {.path = dir};
    ck_assert_int_eq(viz_session_open(&session, &conf, &err), MS_E_NOTFOUND);
    ck_says(err, "dump.json");
    ms_err_clear(&err);
    conf.path = "/nonexistent/run";
    ck_assert_int_eq(viz_session_open(&session, &conf, &err), MS_E_NOTFOUND);
    ck_says(err, "/nonexistent/run");
}
END_TEST

START_TEST(a_file_that_changed_is_read_again)
{
    open_trace();
    uint64_t version = session.version;
    ck_ok(viz_session_refresh(&session, &err), err);
    ck_assert_uint_eq(session.version, version);
    write_file(events_path, "[" EVENT("new", "1", "1", "5", "7") "]",
               strlen("[" EVENT("new", "1", "1", "5", "7") "]"));
    ck_ok(viz_session_refresh(&session, &err), err);
    ck_assert_uint_eq(session.version, version + 1);
}
END_TEST

START_TEST(findings_lead_to_the_time_of_their_steps)
{
    struct viz_findings f;
    open_trace();
    ck_ok(viz_findings_read(&f, &reader, VIZ_ENGLISH, &err), err);
    ck_assert_uint_ge(f.list.n, 1);
    const struct viz_finding *slow = NULL;
    for (size_t i = 0; i < f.list.n; i++) {
        if (f.list.p[i].first_step == 5)
            slow = &f.list.p[i];
        ck_assert(i == 0 || f.list.p[i - 1].severity <= f.list.p[i].severity);
    }
    ck_assert_ptr_nonnull(slow);
    ck_assert_int_eq(slow->place.screen, VIZ_TIMELINE);
    ck_assert_int_eq(slow->place.to - slow->place.from, 100000);
    viz_findings_free(&f);
}
END_TEST

static void check_slow_step(enum viz_language language, const char *words)
{
    struct viz_findings f;
    bool found = false;
    ck_ok(viz_findings_read(&f, &reader, language, &err), err);
    for (size_t i = 0; i < f.list.n; i++)
        found |= ms_str_find_str(f.list.p[i].text, ms_str_of(words)) >= 0;
    ck_assert_msg(found, "no '%s'", words);
    viz_findings_free(&f);
}

START_TEST(findings_speak_the_language_of_the_reader)
{
    viz_words_install();
    open_trace();
    check_slow_step(VIZ_ENGLISH, "times the median of all steps");
    check_slow_step(VIZ_CHINESE, "是所有步中位数的");
}
END_TEST

/* Such a database has neither messages nor times of findings. */
START_TEST(findings_of_an_older_database_are_read_as_they_are)
{
    struct ms_store *s;
    viz_words_install();
    open_trace();
    ck_ok(ms_store_edit(&s, session.timeline, &err), err);
    ck_ok(ms_store_exec(s,
                        "ALTER TABLE findings DROP COLUMN message;"
                        "ALTER TABLE findings DROP COLUMN args;"
                        "ALTER TABLE findings DROP COLUMN from_ns;"
                        "ALTER TABLE findings DROP COLUMN to_ns",
                        &err),
          err);
    ms_store_close(s);
    viz_reader_close(&reader);
    ck_ok(viz_reader_open(&reader, &session, &err), err);
    check_slow_step(VIZ_CHINESE, "times the median of all steps");
}
END_TEST

START_TEST(lanes_of_a_closed_process_are_not_seen_unless_pinned)
{
    viz_seen seen = {0};
    open_trace();
    size_t process = lane_of_process(0);
    ck_ok(viz_tracks_seen(&tracks, &seen, &err), err);
    ck_assert_uint_eq(seen.n, tracks.lanes.n);
    tracks.lanes.p[process].open = false;
    ck_ok(viz_tracks_seen(&tracks, &seen, &err), err);
    ck_assert_uint_eq(seen.n, tracks.lanes.n - 1);
    tracks.lanes.p[process + 1].pinned = true;
    ck_ok(viz_tracks_seen(&tracks, &seen, &err), err);
    ck_assert_uint_eq(seen.n, tracks.lanes.n);
    ck_assert_uint_eq(seen.p[0], process + 1);
    ms_vec_free(&seen);
}
END_TEST

START_TEST(a_closed_process_shows_how_busy_it_is)
{
    struct viz_busy part[4];
    int64_t start, end;
    open_trace();
    mstx_tl_span(reader.tl, &start, &end);
    size_t process = 0;
    for (size_t i = 0; i < mstx_tl_process_count(reader.tl); i++) {
        if (mstx_tl_process(reader.tl, i)->end_ns == end)
            process = i;
    }
    ck_ok(viz_tracks_busy(&tracks, reader.tl, lane_of_process((uint32_t)process), start - 190000,
                          end, part, 4, &err),
          err);
    /* 380 us in four parts, the run fills the last two */
    ck_assert_float_eq_tol(part[0].share, 0, 0.01f);
    ck_assert_float_eq_tol(part[1].share, 0, 0.01f);
    ck_assert_float_eq_tol(part[2].share, 1, 0.01f);
    ck_assert_float_eq_tol(part[3].share, 1, 0.01f);
    ck_assert(part[2].name != 0);
}
END_TEST

START_TEST(a_selection_counts_durations_as_far_as_they_lie_in_it)
{
    mstx_name_rows rows = {0};
    int64_t start, end;
    open_trace();
    mstx_tl_span(reader.tl, &start, &end);
    uint32_t chosen[8];
    size_t n = 0;
    for (size_t i = 0; i < mstx_tl_track_count(reader.tl); i++) {
        if (mstx_tl_track(reader.tl, i)->events == 20)
            chosen[n++] = (uint32_t)i;
    }
    ck_assert_uint_eq(n, 1);
    /* from 3 us within "step 0" and its work to 2 us within "step 2" */
    struct mstx_part part = {chosen, n, start + 3000, start + 22000};
    ck_ok(mstx_names_measure_part(reader.tl, &part, &rows, &err), err);
    int64_t work = 0, step0 = 0, step1 = 0;
    for (size_t i = 0; i < rows.n; i++) {
        work = ms_str_is(rows.p[i].name, "work") ? rows.p[i].total_ns : work;
        step0 = ms_str_is(rows.p[i].name, "step 0") ? rows.p[i].total_ns : step0;
        step1 = ms_str_is(rows.p[i].name, "step 1") ? rows.p[i].total_ns : step1;
    }
    ck_assert_int_eq(work, 2000 + 5000 + 2000);
    ck_assert_int_eq(step0, 7000);
    ck_assert_int_eq(step1, 10000);
    ms_vec_free(&rows);
}
END_TEST

TEST_MAIN_AROUND(set_up, tear_down, "viz_run", a_trace_opens_as_a_timeline_alone,
                 a_run_db_opens_itself_and_is_left_as_it_is,
                 a_pair_of_dumps_opens_as_a_graph_that_leaves_nothing_behind,
                 a_graph_in_a_directory_is_opened_as_it_is, a_graph_with_a_wal_is_copied_once,
                 another_database_with_a_wal_is_no_graph,
                 what_cannot_be_shown_says_what_was_looked_for, a_file_that_changed_is_read_again,
                 findings_lead_to_the_time_of_their_steps,
                 findings_speak_the_language_of_the_reader,
                 findings_of_an_older_database_are_read_as_they_are,
                 lanes_of_a_closed_process_are_not_seen_unless_pinned,
                 a_closed_process_shows_how_busy_it_is,
                 a_selection_counts_durations_as_far_as_they_lie_in_it)

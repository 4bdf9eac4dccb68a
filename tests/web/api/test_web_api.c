/* SPDX-License-Identifier: MIT
 *
 * Every question of the page, asked of a small timeline and a small comparison.
 */
#include "tests/support/graph_files.h"
#include "tests/support/runs_itself.h"
#include "tests/support/view_files.h"

#include "probe/base/jread.h"
#include "probe/tensor/tensor.h"
#include "web/api/api.h"
#include "web/api/metrics.h"
#include "web/api/slice_pack.h"
#include "web/api/tables.h"
#include "web/serve/route.h"

#include <math.h>
#include <sys/stat.h>

static struct ms_buf answer;
static struct web_tables *tables;

static void set_up(void)
{
    view_set_up();
    answer = (struct ms_buf){.max = 1 << 24};
    tables = web_tables_new();
}

static void tear_down(void)
{
    ms_buf_free(&answer);
    web_tables_free(tables);
    view_tear_down();
}

#define CONSTRUCT                                                                                  \
    "{\"Module.m.M.forward.0\":null,\"Torch.f.0.forward\":\"Module.m.M.forward.0\","               \
    "\"Torch.g.0.forward\":\"Module.m.M.forward.0\"}"

static void open_pair(void)
{
    char target[96], golden[96];
    snprintf(target, sizeof target, "%s/t", dir);
    snprintf(golden, sizeof golden, "%s/g", dir);
    put_rank(target, ".", CONSTRUCT,
             DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"),
                         FLAT("1.0")) "," RECORD("Torch.g.0.forward", FLAT("1.0"), FLAT("9.0"))),
             NULL);
    put_rank(golden, ".", CONSTRUCT,
             DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"),
                         FLAT("1.0")) "," RECORD("Torch.g.0.forward", FLAT("1.0"), FLAT("1.0"))),
             NULL);
    open_path(target, golden);
}

static void open_trace(void)
{
    put_events(MS_STR("[" EVENT("step 0", "1", "1", "100", "10") "," EVENT(
        "<b>work</b>", "1", "1", "101", "4") "," EVENT("step 1", "1", "1", "110", "20") "]"));
    open_path(events_path, NULL);
}

/* Ask as the server does; the answer, JSON or bytes, is in `answer` with a zero behind it. */
static enum ms_rc ask(const char *path, const char *text)
{
    struct web_query query;
    struct ms_jwrite w;
    const struct web_route *route = web_route_find(ms_str_of(path));
    ck_assert_msg(route != NULL, "no route %s", path);
    ck_ok(web_query_parse(&query, ms_str_of(text), &err), err);
    ms_jwrite_init(&w, 0, WEB_REPLY_MAX);
    w.strict = true;
    ms_buf_clear(&answer);
    struct web_call call = {&query, &session, &reader, tables, &w, &answer, -1, -1};
    enum ms_rc rc = web_route_run(route, &call, &err);
    if (rc == MS_OK && !route->binary) {
        ck_ok(ms_jwrite_finish(&w, &err), err);
        ms_buf_put(&answer, w.buf.p, w.buf.n);
    }
    ms_buf_putc(&answer, '\0');
    answer.n--;
    ms_jwrite_free(&w);
    web_query_free(&query);
    return rc;
}

static void says(const char *path, const char *text, const char *part)
{
    ck_ok(ask(path, text), err);
    ck_assert_msg(strstr(answer.p, part) != NULL, "%s?%s: expected '%s' in '%s'", path, text, part,
                  answer.p);
}

static void refused(const char *path, const char *text, enum ms_rc rc, const char *words)
{
    enum ms_rc got = ask(path, text);
    ck_assert_msg(got == rc, "%s?%s: rc %d, expected %d (%s)", path, text, got, rc, err.msg);
    ck_says(err, words);
    ms_err_clear(&err);
}

START_TEST(no_path_but_a_known_one_is_a_route)
{
    ck_assert_ptr_nonnull(web_route_find(MS_STR("/api/about")));
    ck_assert_ptr_null(web_route_find(MS_STR("/api/about/")));
    ck_assert_ptr_null(web_route_find(MS_STR("/api/../etc/passwd")));
    ck_assert_ptr_null(web_route_find(MS_STR("/api/")));
    ck_assert_ptr_null(web_route_find(MS_STR("")));
    ck_assert_ptr_null(web_asset_find(MS_STR("//style.css")));
    ck_assert_ptr_null(web_asset_find(MS_STR("/../web/page/style.css")));
    ck_assert_ptr_nonnull(web_asset_find(MS_STR("/shared/api.js")));
    ck_assert_ptr_null(web_asset_find(MS_STR("/shared/../style.css")));
    ck_assert_ptr_null(web_asset_find(MS_STR("/shared/")));
    ck_assert_ptr_null(web_asset_find(MS_STR("/shared")));
    ck_assert_ptr_null(web_asset_find(MS_STR("/api.js")));
}
END_TEST

START_TEST(what_changes_something_is_marked_so)
{
    ck_assert(web_route_find(MS_STR("/api/match"))->writes);
    ck_assert(web_route_find(MS_STR("/api/unmatch"))->writes);
    ck_assert(web_route_find(MS_STR("/api/undo"))->writes);
    ck_assert(!web_route_find(MS_STR("/api/node"))->writes);
}
END_TEST

START_TEST(what_is_not_open_says_what_opens_it)
{
    open_trace();
    refused("/api/children", "", MS_E_NOTFOUND, "no graph is open");
    viz_reader_close(&reader);
    viz_session_close(&session);
    open_pair();
    refused("/api/lanes", "", MS_E_NOTFOUND, "no timeline is open");
}
END_TEST

START_TEST(a_trace_tells_its_lanes_steps_and_findings)
{
    open_trace();
    says("/api/about", "", "\"events\": 3");
    says("/api/lanes", "", "\"fields\": [\"label\", \"process\", \"rank\", \"track\", \"kind\"");
    says("/api/lanes", "", "[\"thread 1\", 0, -1, 0, \"thread\", \"default\", 3, 1, 2]");
    says("/api/steps", "", "[0, 1, 10000, 20000]");
    says("/api/steps", "most=1", "[[0, 1, 10000, 20000]]");
    says("/api/step", "process=0&t=6000", "[0, 1, 10000, 20000]");
    says("/api/step", "process=0&t=6000&back=1", "[0, 0, 0, 10000]");
    says("/api/step", "process=0&t=26000", "null");
    says("/api/findings", "", "[");
    says("/api/find", "tracks=0&t=-1&q=WORK", "<b>work</b>");
    says("/api/find", "tracks=0&t=5000&back=1", "<b>work</b>");
    says("/api/find", "tracks=0&t=-1&q=nothing", "null");
    says("/api/cluster", "", "\"ranks\": []");
    says("/api/cluster", "", "\"use\": [");
    says("/api/collective", "process=0&start=0", "null");
    says("/api/replay", "from=0&to=10000", "[]");
    says("/api/replay", "processes=0&from=0&to=10000", "[]");
    says("/api/about", "", "\"replay\": false");
    says("/api/sum", "tracks=0&from=0&to=10000", "\"total\": 10000");
    says("/api/collective", "rank=0&from=0&to=10000", "null");
    says("/api/alike", "", "[");
    says("/api/cluster", "", "\"every\": []");
}
END_TEST

START_TEST(hits_are_counted_and_listed_in_order_of_time)
{
    open_trace();
    says("/api/hits", "q=STEP",
         "{\"count\": 2, \"cut\": false, \"rows\": [[0, 0, 10000, 0, \"step 0\"], "
         "[0, 10000, 20000, 0, \"step 1\"]]}");
    says("/api/hits", "q=step&limit=1", "{\"count\": 2, \"cut\": false, \"rows\": [[0, 0, 10000");
    says("/api/hits", "q=step&t=1", "\"rows\": [[0, 10000, 20000");
    says("/api/hits", "q=%22%2Fstep+%5B1-9%5D%2F%22", "\"count\": 1");
    says("/api/hits", "q=dur%3E15us", "\"count\": 1, \"cut\": false, \"rows\": [[0, 10000, 20000");
    says("/api/hits", "q=-step+dur%3C5us",
         "\"count\": 1, \"cut\": false, \"rows\": [[0, 1000, 4000");
    says("/api/hits", "q=rank%3A7", "\"count\": 0");
    says("/api/hits", "q=kind%3Acomm", "\"count\": 0");
    says("/api/hits", "q=kind%3Amark+domain%3Adefault", "\"count\": 3");
    refused("/api/hits", "q=dur%3E15", MS_E_ARG, "write dur>5ms");
    refused("/api/hits", "q=state%3AE", MS_E_ARG, "terms of the graph");
}
END_TEST

/* Of 40 lanes with 20 hits each the earliest ones are listed, whatever lanes have them: in lane k they begin at
 * 1000 + 7 (k * 11 % 40) us, every 50 us. */
START_TEST(hits_of_many_lanes_are_the_earliest_ones)
{
    struct ms_buf trace = {.max = 1 << 20};
    char want[160];
    for (int i = 0; i < 40 * 20; i++) {
        const int lane = i / 20, at = 1000 + 7 * (lane * 11 % 40) + 50 * (i % 20);
        ms_buf_printf(&trace,
                      "%s{\"name\": \"hit %d\", \"ph\": \"X\", \"pid\": 1, \"tid\": %d,"
                      " \"ts\": %d, \"dur\": 5}",
                      i == 0 ? "[" : ",", i % 20, lane + 1, at);
    }
    ms_buf_puts(&trace, "]");
    put_events(ms_buf_slice(&trace));
    open_path(events_path, NULL);
    says("/api/hits", "q=hit&limit=9", "{\"count\": 800, \"cut\": false, \"rows\": [[0, 0, 5000");
    for (int at = 0, n = 0; n < 9; at++) { /* at: in us */
        for (int lane = 0; lane < 40 && n < 9; lane++) {
            const int first = 7 * (lane * 11 % 40);
            if (at < first || (at - first) % 50 != 0)
                continue;
            n++;
            snprintf(want, sizeof want, "[%d, %d, 5000, 0, \"hit %d\"]%s", lane, 1000 * at,
                     (at - first) / 50, n == 9 ? "]" : ", ");
            says("/api/hits", "q=hit&limit=9", want);
        }
    }
    says("/api/hits", "q=hit+dur%3E1us&limit=9", "{\"count\": 800, \"cut\": false");
    ms_buf_free(&trace);
}
END_TEST

START_TEST(a_comparison_has_no_terms_of_slices)
{
    open_pair();
    refused("/api/search", "q=dur%3E5ms", MS_E_ARG, "terms of the timeline");
    refused("/api/table", "q=kind%3Acomm", MS_E_ARG, "terms of the timeline");
}
END_TEST

static int choices;
static void count_choice(void)
{
    choices++;
}

/* A folder with two dumps and a trace. */
static void open_folder(void)
{
    char path[160];
    static const char *const names[] = {"a", "sub/b"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        put_rank(path, ".", CONSTRUCT, DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("1.0"))),
                 NULL);
    }
    put_events(MS_STR("[" EVENT("step 0", "1", "1", "100", "10") "]"));
    struct viz_conf conf = {.path = dir, .can_choose = true, .on_choice = count_choice};
    ck_ok(viz_session_open(&session, &conf, &err), err);
    ck_ok(viz_reader_open(&reader, &session, &err), err);
}

START_TEST(a_folder_lists_what_can_be_opened)
{
    open_folder();
    ck_assert_ptr_null(session.timeline);
    says("/api/shelf", "", "\"name\": \"a\", \"kind\": 3, \"what\": \"a dump\"");
    says("/api/shelf", "", "\"name\": \"sub/b\"");
    says("/api/shelf", "", "\"name\": \"trace.json\", \"kind\": 6");
    says("/api/about", "", "\"shelf\": ");
    refused("/api/lanes", "", MS_E_NOTFOUND, "no timeline is open");
}
END_TEST

START_TEST(a_choice_is_of_the_folder_and_nothing_else)
{
    char *path, *golden;
    open_folder();
    choices = 0;
    refused("/api/choose", "name=..%2F..", MS_E_NOTFOUND, "nothing in this folder");
    refused("/api/choose", "name=%2Fetc", MS_E_NOTFOUND, "nothing in this folder");
    refused("/api/choose", "name=sub", MS_E_NOTFOUND, "nothing in this folder");
    refused("/api/choose", "name=a&golden=zzz", MS_E_NOTFOUND, "nothing in this folder");
    ck_assert(!viz_session_chosen(&session, &path, &golden));
    says("/api/choose", "name=a&golden=sub%2Fb", "true");
    ck_assert_int_eq(choices, 1);
    ck_assert(viz_session_chosen(&session, &path, &golden));
    ck_assert(ms_str_ends(ms_str_of(path), MS_STR("/a")));
    ck_assert(ms_str_ends(ms_str_of(golden), MS_STR("/sub/b")));
    free(path);
    free(golden);
    says("/api/choose", "", "true");
    ck_assert(viz_session_chosen(&session, &path, &golden));
    ck_assert_ptr_null(path);
}
END_TEST

START_TEST(without_a_folder_nothing_is_chosen)
{
    open_trace();
    refused("/api/shelf", "", MS_E_NOTFOUND, "not with a folder");
    refused("/api/choose", "name=a", MS_E_NOTFOUND, "not with a folder");
    refused("/api/trend", "", MS_E_NOTFOUND, "no statistics over steps");
}
END_TEST

static void open_table(void)
{
    static const char csv[] = "NPU Name,NormRelativeErr,Result\nb,0.5%,pass\n\"a, "
                              "x\",12.5%,error\nc,N/A,warning\nd,3%,pass\n";
    char path[160];
    snprintf(path, sizeof path, "%s/compare_result_1.csv", dir);
    write_file(path, csv, sizeof csv - 1);
    struct viz_conf conf = {.path = path, .can_choose = true};
    ck_ok(viz_session_open(&session, &conf, &err), err);
    ck_ok(viz_reader_open(&reader, &session, &err), err);
}

START_TEST(a_table_is_sorted_and_filtered)
{
    open_table();
    says("/api/about", "",
         "\"sheet\": {\"rows\": 4, \"columns\": [\"NPU Name\", \"NormRelativeErr\", \"Result\"]}");
    says("/api/sheet", "",
         "{\"rows\": [{\"row\": 0, \"state\": \"pass\", \"values\": [\"b\", \"0.5%\", \"pass\"]}");
    says("/api/sheet", "", "\"total\": 4");
    says("/api/sheet", "sort=1&desc=1&limit=1",
         "{\"rows\": [{\"row\": 1, \"state\": \"error\", \"values\": [\"a, x\"");
    says("/api/sheet", "sort=1&limit=1", "{\"rows\": [{\"row\": 0,");
    says("/api/sheet", "sort=1&first=3",
         "{\"rows\": [{\"row\": 2,"); /* what is no number comes last */
    says("/api/sheet", "sort=0&limit=1", "{\"rows\": [{\"row\": 1,");
    says("/api/sheet", "failing=1", "\"total\": 2");
    says("/api/sheet", "q=A,%20X", "\"total\": 1");
    says("/api/sheet", "q=nothing", "{\"rows\": [], \"total\": 0}");
    refused("/api/sheet", "sort=3", MS_E_ARG, "sort");
}
END_TEST

START_TEST(a_table_that_is_cut_is_refused)
{
    static const char csv[] = "NPU Name,Result\n\"a,pass\n";
    char path[160];
    snprintf(path, sizeof path, "%s/compare_result_1.csv", dir);
    write_file(path, csv, sizeof csv - 1);
    struct viz_conf conf = {.path = path, .can_choose = true};
    ck_assert_int_eq(viz_session_open(&session, &conf, &err), MS_E_FORMAT);
}
END_TEST

/* A monitor's csv file: the gradient of one layer over four steps, of which the last is no number. */
static void open_monitor(void)
{
    static const char csv[] =
        "vpp_stage,name,step,norm\n0,fc.weight,0,1.5\n0,fc.weight,1,2.5\n0,fc.weight,2,2.0\n"
        "0,fc.weight,3,nan\n";
    char path[160];
    snprintf(path, sizeof path, "%s/Dec03_21-34-40-rank0-x", dir);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/Dec03_21-34-40-rank0-x/grad_reduced_0-3.csv", dir);
    write_file(path, csv, sizeof csv - 1);
    open_path(dir, NULL);
}

START_TEST(statistics_over_steps_are_a_map_and_curves)
{
    open_monitor();
    says("/api/about", "", "\"trend\": true");
    says("/api/trend", "", "\"metric\": \"grad_reduced\"");
    says("/api/trend", "", "[1.5, 2.5, 2.0, \"nan\"]");
    says("/api/trend", "metric=grad_reduced&target=fc.weight",
         "\"points\": [[0, 1.5], [1, 2.5], [2, 2.0], [3, null]]");
    says("/api/findings", "lang=en", "has no finite norm any more");
    says("/api/findings", "lang=en",
         "\"place\": \"overview?step=3&rank=0&q=grad_reduced%20fc.weight\"");
}
END_TEST

/* The columns of one track as the page reads them. */
START_TEST(slices_travel_as_columns)
{
    enum { HEAD = 8, TRACK = 16, SHAPE = 8 };
    uint32_t head[2], track[4];
    double start[3];
    float length[3];
    uint16_t shape[3];
    open_trace();
    ck_ok(ask("/api/slices", "tracks=0&from=0&to=30000&px=16384"), err);
    memcpy(head, answer.p, sizeof head);
    ck_assert_uint_eq(head[0], 2);
    ck_assert_uint_eq(head[1], 1);
    memcpy(track, answer.p + HEAD, sizeof track);
    ck_assert_uint_eq(track[0], 0);
    ck_assert_uint_eq(track[1], 3);
    ck_assert_uint_eq(track[3], 0); /* nothing was joined, nothing is linked */
    const char *at = answer.p + HEAD + TRACK + track[2] * SHAPE;
    memcpy(start, at, sizeof start);
    memcpy(length, at + sizeof start, sizeof length);
    memcpy(shape, at + sizeof start + sizeof length, sizeof shape);
    ck_assert_double_eq(start[1], 1000);
    ck_assert_float_eq(length[1], 4000);
    ck_assert_double_eq(start[2], 10000);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_lt(shape[i], track[2]);
    ck_assert_uint_eq(answer.n % 8, 0);
}
END_TEST

START_TEST(columns_that_do_not_fit_are_wide)
{
    enum { N = 70000 }; /* more shapes than 16 bits count */
    enum { COUNTS = 1, LINKS = 2, WIDE_SHAPES = 4, WIDE_DURATIONS = 8 };
    struct web_slices pack = {0};
    mstx_events events = {0};
    uint32_t track[4], last;
    ck_assert(ms_vec_reserve(&events, N));
    for (uint32_t i = 0; i < N; i++)
        events.p[events.n++] =
            (struct mstx_event){.start_ns = i, .dur_ns = 1, .name = i + 1, .count = 1};
    ck_ok(web_slices_put(&pack, &answer, 7, false, 0, &events, &err), err);
    memcpy(track, answer.p, sizeof track);
    ck_assert_uint_eq(track[2], N);
    ck_assert_uint_eq(track[3], WIDE_SHAPES);
    memcpy(&last, answer.p + answer.n - sizeof last, sizeof last);
    ck_assert_uint_eq(last, N - 1);
    events.n = 2;
    events.p[0].count = 2;
    events.p[1].size = 4711;
    events.p[1].dur_ns = (1 << 24) + 1; /* a float would round it */
    ms_buf_clear(&answer);
    ck_ok(web_slices_put(&pack, &answer, 7, false, 0, &events, &err), err);
    memcpy(track, answer.p, sizeof track);
    ck_assert_uint_eq(track[3], COUNTS | LINKS | WIDE_DURATIONS);
    ms_vec_free(&events);
    web_slices_free(&pack);
}
END_TEST

START_TEST(senseless_values_of_a_timeline_are_refused)
{
    open_trace();
    refused("/api/slices", "tracks=9", MS_E_ARG, "tracks");
    refused("/api/slices", "tracks=x", MS_E_ARG, "tracks");
    refused("/api/slices", "from=5&to=4", MS_E_ARG, "later");
    refused("/api/slices", "px=0", MS_E_ARG, "px");
    refused("/api/slices", "px=100000000", MS_E_ARG, "px");
    refused("/api/slices", "from=99999999999999999", MS_E_ARG, "from");
    refused("/api/busy", "process=7", MS_E_ARG, "process");
    refused("/api/busy", "process=-1", MS_E_ARG, "process");
    refused("/api/replay", "processes=99", MS_E_ARG, "processes");
    refused("/api/replay", "processes=0,0,0,0,0,0,0,0,0,0,0,0,0", MS_E_LIMIT, "processes");
    refused("/api/replay", "processes=0&px=0", MS_E_ARG, "px");
    refused("/api/strings", "ids=-1", MS_E_ARG, "ids");
    says("/api/strings", "ids=4000000000", "[\"\"]");
}
END_TEST

#define G "Torch.g.0.forward"

START_TEST(a_pair_tells_its_nodes)
{
    open_pair();
    says("/api/about", "", "\"dual\": true");
    says("/api/children", "", "DefaultModel");
    says("/api/children", "target=Module.m.M.forward.0&partner=Module.m.M.forward.0", G);
    says("/api/path", "name=" G, "Module.m.M.forward.0");
    says("/api/node", "name=" G, "Err_message");
    says("/api/matrix", "name=" G, "\"step\": 0");
    says("/api/search", "q=torch.G", G);
    says("/api/search", "q=state:E", G);
    says("/api/next", "state=error&from=-1", "\"state\": \"error\"");
    says("/api/next", "state=error&from=100", "\"rows\": []");
    says("/api/first", "", G);
    says("/api/flow", "name=" G, "\"rows\": [");
    says("/api/findings", "", "the difference begins at " G);
}
END_TEST

START_TEST(statements_may_only_look)
{
    open_pair();
    says("/api/sql", "graph=1&q=SELECT count(*) AS n FROM tb_nodes", "\"columns\": [\"n\"]");
    refused("/api/sql", "graph=1&q=DROP TABLE tb_nodes", MS_E_ARG, "not authorized");
    refused("/api/sql", "graph=1&q=ATTACH '/x' AS y", MS_E_ARG, "not authorized");
    refused("/api/sql", "graph=1&q=PRAGMA user_version=1", MS_E_ARG, "not authorized");
    refused("/api/sql", "graph=1&q=SELECT load_extension('x')", MS_E_ARG, "load_extension");
    refused("/api/sql", "graph=1&q=SELECT fts3_tokenizer('simple')", MS_E_ARG, "not authorized");
    refused("/api/sql", "graph=1&q=selec", MS_E_ARG, "syntax");
    refused("/api/sql", "graph=1&q=--", MS_E_ARG, "a SELECT is expected");
    refused("/api/sql", "graph=1&q=SELECT 1; SELECT 2", MS_E_ARG, "one statement at a time");
    refused("/api/sql", "graph=1&q=SELECT 1; nonsense", MS_E_ARG, "one statement at a time");
    says("/api/sql", "graph=1&q=SELECT 1 ; -- that is all", "[[1]]");
    refused("/api/sql", "graph=1", MS_E_ARG, "q is missing");
    refused("/api/sql", "q=SELECT 1", MS_E_NOTFOUND, "no timeline");
    says("/api/children", "", "DefaultModel");
}
END_TEST

/* A browser reads a number as a double, and no infinity. */
START_TEST(numbers_of_a_statement_reach_a_browser_as_they_are)
{
    open_pair();
    says("/api/sql", "graph=1&q=SELECT 9e999, -9e999, 1.5", "[[9e999, -9e999, 1.5]]");
    says("/api/sql", "graph=1&q=SELECT 9007199254740992, -9007199254740992",
         "[[9007199254740992, -9007199254740992]]");
    says("/api/sql", "graph=1&q=SELECT 9007199254740993, -9223372036854775807",
         "[[\"9007199254740993\", \"-9223372036854775807\"]]");
}
END_TEST

START_TEST(events_can_be_asked_for)
{
    open_trace();
    says("/api/sql", "q=SELECT count(*) FROM events", "[[3]]");
}
END_TEST

START_TEST(rows_have_their_worst_figure)
{
    open_pair();
    says("/api/figures", "metric=NormRelativeErr&names=Torch.f.0.forward\n" G "\nnone",
         "[0.0, 8.0, null]");
    refused("/api/figures", "metric=name&names=" G, MS_E_ARG, "metric");
    refused("/api/figures", "metric=nonsense&names=" G, MS_E_ARG, "figures");
}
END_TEST

/* A tensor whose file the dump names is read; nothing else is. */
START_TEST(elements_of_kept_tensors_are_counted)
{
    char path[192], target[96];
    const float v[] = {0, 1, 2, 3, (float)NAN, (float)INFINITY};
    const uint64_t shape[] = {6};
    snprintf(target, sizeof target, "%s/t", dir);
    put_rank(target, ".", CONSTRUCT,
             DUMP(RECORD("Torch.f.0.forward",
                         "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[6],"
                         "\"Max\":1.0,\"Min\":1.0,\"Mean\":1.0,\"Norm\":1.0,"
                         "\"data_name\":\"Torch.f.0.forward.input.0.npy\"}",
                         FLAT("1.0"))),
             NULL);
    snprintf(path, sizeof path, "%s/dump_tensor_data", target);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/dump_tensor_data/Torch.f.0.forward.input.0.npy", target);
    ck_ok(probe_npy_write(path, MS_DT_F32, shape, 1, v, &err), err);
    open_path(target, NULL);
    says("/api/histogram", "name=Torch.f.0.forward&item=Torch.f.0.forward.input.0",
         "\"nan\": 1, \"inf\": 1, \"zeros\": 1, \"low\": 0.0, \"high\": 3.0");
    refused("/api/histogram", "name=Torch.f.0.forward&item=Torch.f.0.forward.output.0",
            MS_E_NOTFOUND, "no file");
    refused("/api/histogram", "name=Torch.f.0.forward&item=../../etc/passwd", MS_E_NOTFOUND,
            "no file");
}
END_TEST

START_TEST(senseless_values_of_a_graph_are_refused)
{
    open_pair();
    refused("/api/node", "name=nothing", MS_E_NOTFOUND, "nothing");
    refused("/api/node", "", MS_E_ARG, "name is missing");
    refused("/api/node", "name=x' OR '1'='1", MS_E_NOTFOUND, "x' OR '1'='1");
    refused("/api/children", "limit=0", MS_E_ARG, "limit");
    refused("/api/children", "limit=99999999", MS_E_ARG, "limit");
    refused("/api/children", "step=x", MS_E_ARG, "step");
    refused("/api/next", "state=strange", MS_E_ARG, "state");
    refused("/api/search", "q=/(/", MS_E_ARG, "");
}
END_TEST

START_TEST(a_pair_is_taken_apart_and_undone)
{
    open_pair();
    says("/api/unmatch", "target=" G, "\"matched\": 1");
    says("/api/node", "name=" G, "\"unmatched\"");
    says("/api/undo", "", "\"matched\": 0");
    says("/api/node", "name=" G, "\"state\": \"error\"");
    refused("/api/undo", "", MS_E_NOTFOUND, "");
    refused("/api/match", "target=" G, MS_E_ARG, "partner is missing");
}
END_TEST

#define F "Torch.f.0.forward"

/* Is one text in front of another in the answer? */
static bool comes_before(const char *a, const char *b)
{
    const char *pa = strstr(answer.p, a), *pb = strstr(answer.p, b);
    ck_assert_msg(pa != NULL && pb != NULL, "%s and %s in %s", a, b, answer.p);
    return pa < pb;
}

START_TEST(the_table_has_a_row_for_each_input_and_output)
{
    open_pair();
    says("/api/table", "", "\"total\": 4");
    ck_assert(comes_before(F ".input.0", G ".output.0"));
    says("/api/table", "first=3&limit=1", G ".output.0");
    ck_assert_ptr_null(strstr(answer.p, F));
    says("/api/table", "first=4", "\"rows\": []");
}
END_TEST

START_TEST(the_table_is_sorted_and_filtered)
{
    open_pair();
    says("/api/table", "sort=name&desc=1", "\"total\": 4");
    ck_assert(comes_before(G ".input.0", F ".input.0"));
    says("/api/table", "sort=Max&desc=1&limit=1", G ".output.0");
    says("/api/table", "sort=Max", "\"total\": 4");
    ck_assert(comes_before(F ".input.0", G ".output.0"));
    says("/api/table", "q=torch.g", "\"total\": 2");
    says("/api/table", "failing=1", "\"total\": 1");
    says("/api/table", "q=nothing", "\"total\": 0");
    says("/api/table", "q=-state:E", "\"total\": 2");
}
END_TEST

START_TEST(the_table_finds_the_nearest_error)
{
    open_pair();
    says("/api/table", "error=1", "\"at\": 3, \"total\": 4");
    says("/api/table", "error=1&first=3", "\"at\": null");
    says("/api/table", "error=-1&first=3", "\"at\": null");
    says("/api/table", "error=1&first=4294967295", "\"at\": null");
    says("/api/table", "sort=order&desc=1&error=-1&first=3", "\"at\": 0");
    says("/api/table", "failing=1&error=1", "\"at\": null"); /* the first row is it */
    says("/api/table", "q=nothing&error=1", "\"at\": null");
}
END_TEST

START_TEST(the_first_rows_are_there_before_the_table_is_read)
{
    open_pair();
    says("/api/table", "quick=1&limit=2", "\"more\": true");
    says("/api/table", "quick=1&limit=2", "\"total\": 2,");
    ck_assert_ptr_nonnull(strstr(answer.p, "Torch.f.0.forward.input.0"));
    says("/api/table", "quick=1&limit=50",
         "\"total\": 4}"); /* all of them: nothing is left to count */
    says("/api/table", "limit=1", "\"total\": 4}");
    says("/api/table", "quick=1&limit=2", "\"total\": 4}"); /* it is known by now */
    says("/api/table", "quick=1&limit=2&q=Torch.g", "\"total\": 2}");
}
END_TEST

START_TEST(facts_say_what_was_compared)
{
    open_pair();
    says("/api/facts", "", "\"framework\": \"pytorch\"");
    ck_assert_ptr_nonnull(strstr(answer.p, "\"tool\": \"msprobe "));
    ck_assert_ptr_nonnull(strstr(answer.p, "\"bytes\": "));
    ck_assert_ptr_null(strstr(answer.p, "\"timeline\""));
}
END_TEST

/* The page takes them from what import stored. */
START_TEST(facts_of_steps_are_stored)
{
    open_trace();
    says("/api/sql", "q=SELECT+key,+value+FROM+meta+WHERE+key+LIKE+'step%25'+ORDER+BY+key",
         "\"rows\": [[\"step_median_ns\", \"10000\"], [\"steps\", \"2\"]]");
    says("/api/facts", "", "\"steps\": 2, \"step_median_ns\": 10000");
}
END_TEST

START_TEST(facts_of_a_trace_leave_out_what_is_not_known)
{
    open_trace();
    says("/api/facts", "", "\"steps\": 2");
    ck_assert_ptr_nonnull(strstr(answer.p, "\"step_median_ns\": 10000"));
    ck_assert_ptr_null(strstr(answer.p, "\"world\""));
    ck_assert_ptr_null(strstr(answer.p, "\"overhead\""));
    ck_assert_ptr_null(strstr(answer.p, "null"));
}
END_TEST

START_TEST(a_module_has_its_children_on_every_rank)
{
    open_pair();
    says("/api/strip", "name=Module.m.M.forward.0",
         "{\"ranks\": [0], \"nodes\": [{\"name\": \"Torch.f.0.forward\", \"short\": \"Torch.f.0\", "
         "\"states\": [\"pass\"]}, {\"name\": \"Torch.g.0.forward\", \"short\": \"Torch.g.0\", "
         "\"states\": [\"error\"]}]}");
    says("/api/strip", "name=Torch.f.0.forward", "\"nodes\": []");
    refused("/api/strip", "", MS_E_ARG, "name is missing");
}
END_TEST

START_TEST(a_difference_is_followed_along_the_execution_order)
{
    open_pair();
    says("/api/profile", "",
         "{\"figure\": \"NormRelativeErr\", \"nodes\": 4, \"floor\": 2.399999914359796e-07, "
         "\"points\": [[0, 0.0, \"pass\", \"Torch.f.0.forward\"], "
         "[1, 8.0, \"error\", \"Torch.g.0.forward\"]], "
         "\"suspects\": [[1, \"Torch.g.0.forward\"]]}");
    says("/api/profile", "rank=7", "\"nodes\": 0, ");
}
END_TEST

START_TEST(a_suspect_is_named_in_its_finding)
{
    open_pair();
    says("/api/findings", "", "\"text\": \"introduces ");
    ck_assert_ptr_nonnull(strstr(answer.p, " % sure)\", \"ranks\": \"0\""));
    ck_assert_ptr_nonnull(strstr(answer.p, "graph?step=0&rank=0&node=Torch.g.0.forward"));
}
END_TEST

START_TEST(senseless_values_of_a_table_are_refused)
{
    open_pair();
    refused("/api/table", "sort=strange", MS_E_ARG, "sort");
    refused("/api/table", "limit=0", MS_E_ARG, "limit");
    refused("/api/table", "first=-1", MS_E_ARG, "first");
    refused("/api/table", "q=state:nonsense", MS_E_ARG, "state");
    says("/api/table", "step=77", "\"total\": 0");
}
END_TEST

START_TEST(every_file_of_the_page_is_there_and_whole)
{
    size_t n = 0;
    for (const struct web_asset *a; (a = web_asset_at(n)) != NULL; n++) {
        ms_buf_clear(&answer);
        ck_ok(web_asset_inflate(a, &answer, &err), err);
        ck_assert_uint_gt(answer.n, 40);
        ck_assert_ptr_eq(web_asset_find(ms_str_of(a->path)), a);
    }
    ck_assert_uint_gt(n, 10);
}
END_TEST

/* Path of a module as a module in the folder of `from` names it: "./x.js" or "../shared/x.js". */
static struct ms_str resolve(const char *from, struct ms_str name, char path[256])
{
    int folder = (int)(strrchr(from, '/') - from);
    while (ms_str_starts(name, MS_STR("../"))) {
        name = ms_str_sub(name, 3, name.n);
        while (folder > 0 && from[--folder] != '/')
            ;
    }
    if (ms_str_starts(name, MS_STR("./")))
        name = ms_str_sub(name, 2, name.n);
    snprintf(path, 256, "%.*s/%.*s", folder, from, MS_STR_ARG(name));
    return ms_str_of(path);
}

START_TEST(every_module_that_is_imported_is_there)
{
    size_t imports = 0;
    for (size_t i = 0; web_asset_at(i) != NULL; i++) {
        const struct web_asset *a = web_asset_at(i);
        ms_buf_clear(&answer);
        ck_ok(web_asset_inflate(a, &answer, &err), err);
        const char *text = ms_buf_z(&answer);
        for (const char *dot = text; (dot = strstr(dot, "'.")) != NULL; dot++) {
            char path[256];
            struct ms_str name = {dot + 1, (uint32_t)strcspn(dot + 1, "'\n")};
            if (name.p[name.n] != '\'' || !ms_str_ends(name, MS_STR(".js")))
                continue;
            imports++;
            ck_assert_msg(web_asset_find(resolve(a->path, name, path)) != NULL, "%s asks for %s",
                          a->path, path);
        }
    }
    ck_assert_uint_gt(imports, 50);
}
END_TEST

START_TEST(metrics_are_lines_of_prometheus)
{
    struct web_metrics m = {.start_ns = 0};
    open_trace();
    web_metrics_count(&m, true, 1000, 10);
    ck_ok(web_metrics_write(&m, &reader, &answer, &err), err);
    ms_buf_putc(&answer, '\0');
    ck_assert_ptr_nonnull(strstr(answer.p, "msprobe_http_requests_total{result=\"ok\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(answer.p, "msprobe_findings{severity=\"error\"} "));
}
END_TEST

START_TEST(failures_have_their_status)
{
    ck_assert_uint_eq(web_status_of(MS_OK), 200);
    ck_assert_uint_eq(web_status_of(MS_E_ARG), 400);
    ck_assert_uint_eq(web_status_of(MS_E_NOTFOUND), 404);
    ck_assert_uint_eq(web_status_of(MS_E_LIMIT), 413);
    ck_assert_uint_eq(web_status_of(MS_E_IO), 500);
}
END_TEST

TEST_MAIN_AROUND(set_up, tear_down, "web_api", no_path_but_a_known_one_is_a_route,
                 hits_are_counted_and_listed_in_order_of_time,
                 hits_of_many_lanes_are_the_earliest_ones, a_table_is_sorted_and_filtered,
                 a_table_that_is_cut_is_refused, a_comparison_has_no_terms_of_slices,
                 a_folder_lists_what_can_be_opened, a_choice_is_of_the_folder_and_nothing_else,
                 without_a_folder_nothing_is_chosen, statistics_over_steps_are_a_map_and_curves,
                 what_changes_something_is_marked_so, what_is_not_open_says_what_opens_it,
                 a_trace_tells_its_lanes_steps_and_findings, slices_travel_as_columns,
                 columns_that_do_not_fit_are_wide, senseless_values_of_a_timeline_are_refused,
                 a_pair_tells_its_nodes, statements_may_only_look,
                 numbers_of_a_statement_reach_a_browser_as_they_are, events_can_be_asked_for,
                 rows_have_their_worst_figure, elements_of_kept_tensors_are_counted,
                 senseless_values_of_a_graph_are_refused, a_pair_is_taken_apart_and_undone,
                 the_table_has_a_row_for_each_input_and_output, the_table_is_sorted_and_filtered,
                 the_table_finds_the_nearest_error,
                 the_first_rows_are_there_before_the_table_is_read, facts_say_what_was_compared,
                 facts_of_steps_are_stored, facts_of_a_trace_leave_out_what_is_not_known,
                 a_module_has_its_children_on_every_rank,
                 a_difference_is_followed_along_the_execution_order,
                 a_suspect_is_named_in_its_finding, senseless_values_of_a_table_are_refused,
                 every_file_of_the_page_is_there_and_whole, every_module_that_is_imported_is_there,
                 metrics_are_lines_of_prometheus, failures_have_their_status)

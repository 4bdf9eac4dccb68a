/* SPDX-License-Identifier: MIT
 *
 * Chrome traces of other programs: every form that is taken, what is left out, and
 * files that end anywhere.
 */
#include "tests/support/scratch_run.h"

static char source[96], db[96];

static enum ms_rc import_text(const char *text, size_t n, struct ms_err *err)
{
    struct mstx_import_result r;
    write_file(source, text, n);
    unlink(db);
    return mstx_import(source, db, &r, err);
}

static void set_up(void)
{
    scratch_dir(dir);
    snprintf(source, sizeof source, "%s/t.json", dir);
    snprintf(db, sizeof db, "%s/run.db", dir);
}

/* "name start dur kind flags args;" for each event, in order of tracks; counters: name start value. */
static enum ms_rc put_event(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    static const char *const kinds[] = {"mark", "range", "push"};
    struct ms_buf *b = ctx;
    (void)err;
    ms_buf_printf(b, "%.*s %" PRId64 " ", MS_STR_ARG(mstx_tl_text(tl, e->name)), e->start_ns);
    if (e->kind == MSTX_EV_COUNTER)
        ms_buf_printf(b, "= %g;", mstx_event_value(e));
    else
        ms_buf_printf(b, "+%" PRId64 " %s%s%s%.*s;", e->dur_ns, kinds[e->kind],
                      e->flags & MSTX_EVF_UNFINISHED ? " open" : "", e->args != 0 ? " " : "",
                      MS_STR_ARG(mstx_tl_text(tl, e->args)));
    return MS_OK;
}

/* A file of which nothing is left is refused with what is wrong with it. */
static void check_events(const char *json, const char *expected)
{
    struct ms_err e = {0};
    struct ms_buf b = {.max = 1 << 20};
    set_up();
    const enum ms_rc rc = import_text(json, strlen(json), &e);
    if (rc == MS_E_FORMAT && expected[0] == '\0') {
        ck_says(e, "left out");
        end_run();
        return;
    }
    ck_ok(rc, e);
    open_path(db);
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++)
        ck_ok(mstx_tl_walk(tl, i, NULL, put_event, &b, &e), e);
    ck_assert_msg(strcmp(ms_buf_z(&b), expected) == 0, "%s\n gives    %s\n expected %s", json, b.p,
                  expected);
    ms_buf_free(&b);
    end_run();
}

#define AT(ts) "\"pid\":1,\"tid\":2,\"ts\":" ts

START_TEST(every_phase_has_its_events)
{
    static const struct {
        const char *json, *events;
    } cases[] = {
        {"[{\"ph\":\"X\",\"name\":\"a\"," AT("1") ",\"dur\":2}]", "a 1000 +2000 range;"},
        {"{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\"," AT("1") ",\"dur\":2}]}",
         "a 1000 +2000 range;"},
        {"{\"x\":{\"y\":[1]},\"otherData\":{\"start_unix_ns\":\"5000\"},\"traceEvents\":"
         "[{\"ph\":\"X\",\"name\":\"a\"," AT("1") "}],\"z\":null}",
         "a 6000 +0 range;"},
        {"[{\"ph\":\"B\",\"name\":\"a\"," AT("1") "},{\"ph\":\"B\",\"name\":\"b\"," AT(
             "2") "},{\"ph\":\"E\"," AT("3") "},{\"ph\":\"E\"," AT("5") "}]",
         "a 1000 +4000 push;b 2000 +1000 push;"},
        {"[{\"ph\":\"i\",\"name\":\"a\"," AT("1") "},{\"ph\":\"I\",\"name\":\"b\"," AT(
             "2") "},{\"ph\":\"R\",\"name\":\"c\"," AT("3") "}]",
         "a 1000 +0 mark;b 2000 +0 mark;c 3000 +0 mark;"},
        {"[{\"ph\":\"C\",\"name\":\"v\"," AT("1") ",\"args\":{\"x\":7}},"
                                                  "{\"ph\":\"C\",\"name\":\"v\"," AT(
                                                      "2") ",\"args\":{\"x\":0.5}}]",
         "v 1000 = 7;v 2000 = 0.5;"},
        {"[{\"ph\":\"b\",\"id\":1,\"cat\":\"c\",\"name\":\"a\"," AT(
             "1") "},{\"ph\":\"b\","
                  "\"id\":2,\"cat\":"
                  "\"c\",\"name\":"
                  "\"a\"," AT("2") "},{\"ph\":\"e\",\"id\":1,\"cat\":\"c\",\"name\":\"a\"," AT(
                      "9") "},{"
                           "\"ph\":"
                           "\"e\","
                           "\"id\":"
                           "2,"
                           "\"cat\":"
                           "\"c\","
                           "\"name\""
                           ":\"a\""
                           "," AT("5") "}]",
         "a 1000 +8000 range;a 2000 +3000 range;"},
        {"[{\"ph\":\"X\",\"name\":\"a\"," AT("\"1717575960208126.869\"") ",\"dur\":0.001}]",
         "a 1717575960208126869 +1 range;"},
        {"[{\"ph\":\"X\",\"name\":\"a\"," AT("1e3") ",\"dur\":1.5e0}]", "a 1000000 +1500 range;"},
        {"[{\"ph\":\"X\",\"name\":\"\\u00e4\\n\"," AT(
             "1") ",\"args\":{\"k\":{\"l\":[1,{\"m\":\"}\"}]},\"n\":null}}]",
         "\xc3\xa4\n 1000 +0 range {\"k\":{\"l\":[1,{\"m\":\"}\"}]}, \"n\":null};"},
        {"[]", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_events(cases[i].json, cases[i].events);
}
END_TEST

START_TEST(what_has_no_place_is_left_out)
{
    static const struct {
        const char *json, *events;
    } cases[] = {
        {"[{\"ph\":\"X\",\"name\":\"a\"},{\"name\":\"a\"," AT("1") "},{},[1],\"x\",7,null]", ""},
        {"[{\"ph\":\"X\"," AT("1") "}]", "(no name) 1000 +0 range;"},
        {"[{\"ph\":\"X\",\"name\":\"a\",\"ts\":2}]", "a 2000 +0 range;"},
        {"[{\"ph\":5,\"name\":\"a\"," AT("1") "},{\"ph\":\"XX\"," AT("1") "}]", ""},
        {"[{\"ph\":\"X\",\"name\":[1],\"dur\":{\"x\":1},\"args\":3," AT("1") "}]",
         "(no name) 1000 +0 range;"},
        {"[{\"ph\":\"X\",\"name\":\"a\",\"dur\":-5," AT("1") "}]", "a 1000 +0 range;"},
        {"[{\"ph\":\"X\",\"name\":\"a\"," AT("true") "},{\"ph\":\"X\"," AT("\"x\"") "}]", ""},
        {"[{\"ph\":\"X\",\"name\":\"a\"," AT("1e300") "},{\"ph\":\"X\"," AT("-1e300") "}]", ""},
        {"[{\"ph\":\"E\"," AT("1") "},{\"ph\":\"e\",\"id\":1," AT("2") "}]", ""},
        {"[{\"ph\":\"C\",\"name\":\"v\"," AT("1") ",\"args\":{\"x\":\"7\"}}]", ""},
        {"[{\"ph\":\"C\",\"name\":\"v\"," AT("1") "}]", ""},
        {"[{\"ph\":\"B\",\"name\":\"a\"," AT("1") "},{\"ph\":\"i\",\"name\":\"b\"," AT("4") "}]",
         "a 1000 +3000 push open;b 4000 +0 mark;"},
        {"[{\"ph\":\"B\",\"name\":\"a\"," AT("5") "},{\"ph\":\"E\"," AT("1") "}]",
         "a 5000 +0 push;"},
        {"[{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":2},"
         "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":7}},"
         "{\"ph\":\"X\",\"name\":\"a\"," AT("1") "}]",
         "a 1000 +0 range;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_events(cases[i].json, cases[i].events);
}
END_TEST

static const char whole[] =
    "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"start_unix_ns\":\"1000\"},\"traceEvents\":[\n"
    "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"rank 4 x\"}},\n"
    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":2,\"args\":{\"name\":\"main\"}},\n"
    "{\"ph\":\"B\",\"name\":\"a\\u00e4\"," AT(
        "1.5") "},\n"
               "{\"ph\":\"X\",\"name\":\"b\"," AT(
                   "\"2.125\"") ",\"dur\":1,\"args\":{\"k\":[1,{\"l\":2}],"
                                "\"domain\":\"d\"}},\n"
                                "{\"ph\":\"C\",\"name\":\"v\"," AT("3") ",\"args\":{\"x\":-0.5}},\n"
                                                                        "{\"ph\":\"E\"," AT(
                                                                            "4") "}]}\n";

START_TEST(metadata_names_processes_and_threads)
{
    struct ms_err e = {0};
    set_up();
    ck_ok(import_text(whole, sizeof whole - 1, &e), e);
    open_path(db);
    ck_assert_int_eq(mstx_tl_process(tl, 0)->rank, 4);
    ck_assert(ms_str_is(mstx_tl_process(tl, 0)->name, "rank 4 x"));
    ck_assert(ms_str_is(mstx_tl_track(tl, 0)->name, "main"));
    ck_assert(ms_str_is(mstx_tl_track(tl, 1)->name, "v"));
    ck_rows(mstx_tl_store(tl), "SELECT count(*) FROM problems", "0;");
    end_run();
}
END_TEST

/* A shorter file never holds more, and a file that was cut off says so. */
START_TEST(a_file_cut_at_any_byte_is_read_up_to_there)
{
    uint64_t last = 0;
    set_up();
    for (size_t n = 0; n < sizeof whole - 2; n++) {
        struct ms_err e = {0};
        if (import_text(whole, n, &e) != MS_OK) {
            ck_assert_uint_eq(last, 0); /* nothing was read yet */
            if (n >= 2)
                ck_says(e, "is cut off");
            continue;
        }
        open_path(db);
        uint64_t events = 0;
        for (size_t i = 0; i < mstx_tl_track_count(tl); i++)
            events += mstx_tl_track(tl, i)->events;
        ck_assert_msg(events >= last, "%zu bytes hold %d events", n, (int)events);
        last = events;
        ck_rows(mstx_tl_store(tl), "SELECT sum(instr(text, 'is cut off') > 0) FROM problems", "1;");
        mstx_tl_close(tl);
    }
    ck_assert_uint_eq(last, 3);
    scratch_remove(dir);
}
END_TEST

START_TEST(what_is_no_trace_is_refused_with_its_place)
{
    static const char *const texts[] = {"7",     "\"x\"", "hello",          "[{]",
                                        "[1 2]", "{}",    "{\"data\": {}}", "{\"traceEvents\": 1}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ms_err e = {0};
        set_up();
        ck_assert_msg(import_text(texts[i], strlen(texts[i]), &e) == MS_E_FORMAT, "%s", texts[i]);
        ck_says(e, "t.json");
        ck_assert_int_ne(access(db, F_OK), 0);
        scratch_remove(dir);
    }
}
END_TEST

TEST_MAIN("import_foreign", every_phase_has_its_events, what_has_no_place_is_left_out,
          metadata_names_processes_and_threads, a_file_cut_at_any_byte_is_read_up_to_there,
          what_is_no_trace_is_refused_with_its_place)

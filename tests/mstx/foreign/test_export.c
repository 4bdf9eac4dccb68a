/* SPDX-License-Identifier: MIT
 *
 * Exports of small runs, compared to the last byte with what they have to be.
 */
#include "tests/support/scratch_run.h"

static void check_text(const char *got, const char *expected)
{
    size_t i = 0;
    while (got[i] != '\0' && got[i] == expected[i])
        i++;
    ck_assert_msg(got[i] == expected[i], "differs at byte %zu: '%.80s', expected '%.80s'", i,
                  got + i, expected + i);
}

static void check_export(stream_fn fn, const char *expected)
{
    size_t n;
    char *text = exported(fn, &n);
    check_text(text, expected);
    free(text);
}

static void check_csv(const char *rows)
{
    static const char header[] = "Device_id,pid,tid,category,event_type,payload_type,"
                                 "payload_value,Start_time(us),End_time(us),message_type,message,"
                                 "domain,Device Start_time(us),Device End_time(us)\n";
    char path[96];
    struct ms_err e = {0};
    size_t n;
    snprintf(path, sizeof path, "%s/out.csv", dir);
    ck_ok(mstx_export_csv(tl, path, &e), e);
    char *text = slurp(path, &n);
    ck_assert_int_eq(strncmp(text, header, sizeof header - 1), 0);
    check_text(text + sizeof header - 1, rows);
    free(text);
}

/* One of each: a range with a nested push, a mark in a domain, a counter. */
static void make_small(void)
{
    struct maker m;
    begin_run(&m, 0);
    uint32_t step = maker_text(&m, "step"), load = maker_text(&m, "load");
    uint32_t loss = maker_text(&m, "loss");
    uint16_t io = maker_domain(&m, "io");
    maker_ring(&m, 1, 1, 4242);
    maker_begin_range(&m, 1000, 1, step, 0);
    maker_push(&m, 1500, 0, load);
    maker_pop(&m, 2001, 0, load, 1500);
    maker_mark(&m, 2500, load, io);
    maker_rec(&m, MSTX_REC_COUNTER, 2600, 0, loss, 0, (uint64_t)-7, 0);
    maker_end_range(&m, 4123, 1, step, 0, 1000, 0);
    finish_and_open(&m);
}

/* Two ranges that overlap without nesting, one that never ends. */
static void make_overlapping(void)
{
    struct maker m;
    begin_run(&m, 3);
    uint32_t a = maker_text(&m, "a"), b = maker_text(&m, "b"), c = maker_text(&m, "c");
    maker_ring(&m, 1, 1, 4242);
    maker_begin_range(&m, 0, 1, a, 0);
    maker_begin_range(&m, 1000, 2, b, 0);
    maker_end_range(&m, 2000, 1, a, 0, 0, 0);
    maker_end_range(&m, 3000, 2, b, 0, 1000, 0);
    maker_begin_range(&m, 3500, 3, c, 0);
    maker_mark(&m, 4000, a, 0);
    finish_and_open(&m);
}

static const char *const odd_names[] = {
    "say \"hi\", twice",    "=1+1", "@cmd", "line\nbreak\ttab", "\x01\x7f",
    "\xc3\xa4\xe8\xae\xad", "-2",   "\tx",  "back\\slash"};
enum { ODD = sizeof odd_names / sizeof *odd_names };

static void make_odd(void)
{
    struct maker m;
    uint32_t id[ODD];
    begin_run(&m, 0);
    for (int i = 0; i < ODD; i++)
        id[i] = maker_text(&m, odd_names[i]);
    uint16_t d = maker_domain(&m, "=a\"b");
    maker_ring(&m, 1, 1, 4242);
    for (int i = 0; i < ODD; i++)
        maker_mark(&m, 1000 * (uint64_t)i, id[i], d);
    finish_and_open(&m);
}

/* A capture in which nothing was marked. */
static void make_empty(void)
{
    struct maker m;
    begin_run(&m, 0);
    maker_ring(&m, 1, 1, 4242);
    finish_and_open(&m);
}

/* ---- csv -------------------------------------------------------------------- */

#define CSV(tid, type, start, end, text, domain)                                                   \
    "host,4242," tid ",N/A," type ",N/A,N/A,17175759600000" start ",17175759600000" end            \
    ",N/A," text "," domain ",N/A,N/A\n"

START_TEST(csv_has_a_row_for_every_mark_and_range)
{
    make_small();
    check_csv(CSV("4242", "start/end", "01.000", "04.123", "step", "default")
                  CSV("4242", "push/pop", "01.500", "02.001", "load", "default")
                      CSV("4242", "marker", "02.500", "02.500", "load", "io"));
    end_run();
}
END_TEST

/* A range and a mark on a stream, with the times at which the device came there. */
static void make_device(void)
{
    struct maker m;
    begin_run(&m, 0);
    uint32_t ex = maker_text(&m, "ex"), tick = maker_text(&m, "tick");
    maker_ring(&m, 1, 1, 4242);
    maker_rec(&m, MSTX_REC_STREAM, 350, 0x30, 0, 0, 2, 0);
    maker_rec(&m, MSTX_REC_BEGIN, 1000, 2, ex, 0, 0x30, MSTX_F_STREAM);
    maker_end_range(&m, 2000, 2, ex, 0, 1000, 0);
    maker_rec(&m, MSTX_REC_MARK, 3000, 9, tick, 0, 0x30, MSTX_F_STREAM);
    maker_mark(&m, 4000, tick, 0);
    maker_rec(&m, MSTX_REC_DEVICE, 1000, 2, 0, 0, 5000001500, 0);
    maker_rec(&m, MSTX_REC_DEVICE, 1000, 2, 1, 0, 5000002750, 0);
    maker_rec(&m, MSTX_REC_DEVICE, 3000, 9, 0, 0, 5000003250, 0);
    finish_and_open(&m);
}

START_TEST(csv_tells_when_an_event_was_reached_on_its_device)
{
    make_device();
    check_csv("2,4242,4242,N/A,start/end,N/A,N/A,1717575960000001.000,1717575960000002.000,N/A,ex,"
              "default,1717575960000001.500,1717575960000002.750\n"
              "2,4242,4242,N/A,marker,N/A,N/A,1717575960000003.000,1717575960000003.000,N/A,tick,"
              "default,1717575960000003.250,1717575960000003.250\n" CSV(
                  "4242", "marker", "04.000", "04.000", "tick", "default"));
    end_run();
}
END_TEST

START_TEST(csv_quotes_what_would_break_a_row_and_disarms_formulas)
{
    make_odd();
#define ODD_ROW(t, text) CSV("4242", "marker", t ".000", t ".000", text, "\"'=a\"\"b\"")
    check_csv(ODD_ROW("00", "\"say \"\"hi\"\", twice\"") ODD_ROW("01", "\"'=1+1\"")
                  ODD_ROW("02", "\"'@cmd\"") ODD_ROW("03", "\"line\nbreak\ttab\"")
                      ODD_ROW("04", "\x01\x7f") ODD_ROW("05", "\xc3\xa4\xe8\xae\xad")
                          ODD_ROW("06", "-2") ODD_ROW("07", "\"'\tx\"")
                              ODD_ROW("08", "back\\slash"));
    end_run();
}
END_TEST

START_TEST(csv_of_an_empty_run_is_a_header)
{
    make_empty();
    check_csv("");
    end_run();
}
END_TEST

START_TEST(csv_writes_times_before_1970_as_numbers)
{
    char path[96];
    static const char trace[] = "[{\"name\":\"a\",\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":-1.5,"
                                "\"dur\":1.25}]";
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/t.json", dir);
    write_file(path, trace, sizeof trace - 1);
    open_path(path);
    check_csv("host,1,2,N/A,start/end,N/A,N/A,-1.500,-0.250,N/A,a,default,N/A,N/A\n");
    end_run();
}
END_TEST

/* ---- chrome ----------------------------------------------------------------- */

#define CHROME_HEAD(start)                                                                         \
    "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"start_unix_ns\":\"" start "\"},\"traceEvents\":" \
    "["
#define CHROME_PROCESS(label)                                                                      \
    "\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"" label    \
    "\"}},\n{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":1,\"tid\":0,"                    \
    "\"args\":{\"sort_index\":0}}"
#define CHROME_THREAD(tid, name)                                                                   \
    ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":" tid                             \
    ",\"args\":{\"name\":\"" name "\"}}"
#define CHROME_EVENT(name, ph, tid, rest)                                                          \
    ",\n{\"name\":\"" name "\",\"ph\":\"" ph "\",\"pid\":1,\"tid\":" tid "," rest "}"
#define ARGS(type, domain) "\"args\":{\"event_type\":\"" type "\",\"domain\":\"" domain "\"}"

START_TEST(chrome_holds_slices_instants_and_counters)
{
    make_small();
    check_export(
        mstx_export_chrome,
        CHROME_HEAD("1717575960000001000") CHROME_PROCESS("rank 0 (testhost:4242)")
            CHROME_THREAD("1", "Thread 4242") CHROME_EVENT(
                "step", "X", "1", "\"ts\":0.000,\"dur\":3.123," ARGS("start/end", "default"))
                CHROME_EVENT("load", "X", "1",
                             "\"ts\":0.500,\"dur\":0.501," ARGS("push/pop", "default"))
                    CHROME_THREAD("2", "Thread 4242 [io]") CHROME_EVENT(
                        "load", "i", "2", "\"ts\":1.500,\"s\":\"t\"," ARGS("marker", "io"))
                        CHROME_THREAD("3", "loss") CHROME_EVENT(
                            "loss", "C", "3", "\"ts\":1.600,\"args\":{\"value\":-7}") "\n]}\n");
    end_run();
}
END_TEST

START_TEST(chrome_makes_async_pairs_of_what_overlaps)
{
    make_overlapping();
    check_export(
        mstx_export_chrome,
        CHROME_HEAD("1717575960000000000") CHROME_PROCESS("rank 3 (testhost:4242)")
            CHROME_THREAD("1", "Thread 4242") CHROME_EVENT(
                "a", "X", "1", "\"ts\":0.000,\"dur\":2.000," ARGS("start/end", "default"))
                CHROME_EVENT(
                    "b", "b", "1",
                    "\"cat\":\"default\",\"id\":1,\"ts\":1.000," ARGS("start/end", "default"))
                    CHROME_EVENT("b", "e", "1", "\"cat\":\"default\",\"id\":1,\"ts\":3.000")
                        CHROME_EVENT(
                            "c", "X", "1",
                            "\"ts\":3.500,\"dur\":0.500,\"args\":{\"event_type\":\"start/end\","
                            "\"domain\":\"default\",\"unfinished\":true}")
                            CHROME_EVENT(
                                "a", "i", "1",
                                "\"ts\":4.000,\"s\":\"t\"," ARGS("marker", "default")) "\n]}\n");
    end_run();
}
END_TEST

START_TEST(chrome_escapes_names)
{
    static const char *const escaped[ODD] = {
        "say \\\"hi\\\", twice", "=1+1", "@cmd", "line\\nbreak\\ttab", "\\u0001\\u007f",
        "\\u00e4\\u8bad",        "-2",   "\\tx", "back\\\\slash"};
    size_t n;
    make_odd();
    char *text = exported(mstx_export_chrome, &n);
    for (int i = 0; i < ODD; i++) {
        char wanted[96];
        snprintf(wanted, sizeof wanted, "\n{\"name\":\"%s\",\"ph\":\"i\"", escaped[i]);
        ck_assert_msg(strstr(text, wanted) != NULL, "no %s in %s", wanted, text);
    }
    ck_assert_ptr_nonnull(strstr(text, "\"Thread 4242 [=a\\\"b]\""));
    free(text);
    end_run();
}
END_TEST

START_TEST(chrome_of_an_empty_run_has_its_process)
{
    make_empty();
    check_export(mstx_export_chrome,
                 CHROME_HEAD("0") CHROME_PROCESS("rank 0 (testhost:4242)") "\n]}\n");
    end_run();
}
END_TEST

START_TEST(a_process_without_a_rank_is_named_by_its_place)
{
    struct maker m;
    begin_run(&m, -1);
    maker_ring(&m, 1, 1, 4242);
    finish_and_open(&m);
    check_export(mstx_export_chrome, CHROME_HEAD("0") CHROME_PROCESS("testhost:4242") "\n]}\n");
    end_run();
}
END_TEST

START_TEST(a_foreign_process_keeps_its_name)
{
    char path[96];
    static const char trace[] =
        "[{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"rank 5 gpu\"}},"
        "{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":1}]";
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/t.json", dir);
    write_file(path, trace, sizeof trace - 1);
    open_path(path);
    ck_assert_int_eq(mstx_tl_process(tl, 0)->rank, 5);
    check_export(mstx_export_chrome, CHROME_HEAD("0") CHROME_PROCESS("rank 5 gpu") "\n]}\n");
    end_run();
}
END_TEST

/* ---- trace-view ------------------------------------------------------------- */

/* (4242 << 10) | (6 << 5) | 31 */
#define VIEW_PID "4344031"

START_TEST(trace_view_is_a_bare_array_with_times_as_text)
{
    make_small();
    size_t n;
    char *text = exported(mstx_export_trace_view, &n);
    static const char *const lines[] = {
        "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":" VIEW_PID ",\"tid\":0,",
        "{\"name\":\"process_labels\",\"ph\":\"M\",\"pid\":" VIEW_PID
        ",\"tid\":0,\"args\":{\"labels\":\"CPU\"}}",
        "\"args\":{\"sort_index\":6}}",
        "{\"name\":\"step\",\"ph\":\"X\",\"pid\":" VIEW_PID
        ",\"tid\":4242,\"ts\":\"1717575960000001.000\",\"dur\":3.123," ARGS("start/end", "default"),
        "{\"name\":\"load\",\"ph\":\"X\",\"pid\":" VIEW_PID
        ",\"tid\":1073741826,\"ts\":\"1717575960000002.500\",\"dur\":0.000," ARGS("marker", "io")};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        ck_assert_msg(strstr(text, lines[i]) != NULL, "no %s in %s", lines[i], text);
    ck_assert_int_eq(strncmp(text, lines[0], strlen(lines[0])), 0);
    ck_assert_str_eq(text + n - 4, "}\n]\n");
    free(text);
    end_run();
}
END_TEST

/* (4242 << 10) | (14 << 5) | 2 */
#define DEVICE_PID "4344258"

START_TEST(trace_view_leads_from_the_host_to_the_stream)
{
    make_device();
    size_t n;
    char *text = exported(mstx_export_trace_view, &n);
    static const char *const lines[] = {
        ",\"tid\":4242,\"args\":{\"name\":\"Thread 4242\"}}",
        "{\"name\":\"ex\",\"ph\":\"X\",\"pid\":" VIEW_PID
        ",\"tid\":4242,\"ts\":\"1717575960000001.000\",\"dur\":1.000," ARGS("start/end", "default"),
        "{\"name\":\"MsTx_4000000002\",\"ph\":\"s\",\"pid\":" VIEW_PID
        ",\"tid\":4242,\"cat\":\"MsTx\",\"id\":\"4000000002\",\"ts\":\"1717575960000001.000\"}",
        "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":" DEVICE_PID
        ",\"tid\":0,\"args\":{\"name\":\"Ascend Hardware\"}}",
        "\"args\":{\"labels\":\"NPU 2\"}}",
        "\"args\":{\"sort_index\":14}}",
        ",\"args\":{\"name\":\"Stream 0\"}}",
        "{\"name\":\"ex\",\"ph\":\"X\",\"pid\":" DEVICE_PID
        ",\"tid\":0,\"ts\":\"1717575960000001.500\",\"dur\":1.250,"
        "\"args\":{\"Physic Stream Id\":0,\"Task Id\":1,\"domain\":\"default\"}}",
        "{\"name\":\"MsTx_4000000002\",\"ph\":\"f\",\"pid\":" DEVICE_PID
        ",\"tid\":0,\"bp\":\"e\",\"cat\":\"MsTx\",\"id\":\"4000000002\","
        "\"ts\":\"1717575960000001.500\"}",
        "{\"name\":\"MsTx_4000000003\",\"ph\":\"f\",\"pid\":" DEVICE_PID};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        ck_assert_msg(strstr(text, lines[i]) != NULL, "no %s in %s", lines[i], text);
    free(text);
    end_run();
}
END_TEST

/* ---- perfetto --------------------------------------------------------------- */

/* A reader of protobuf, as small as the format allows. */
struct field {
    unsigned number, wire;
    uint64_t v; /* varint or fixed64 */
    const uint8_t *p;
    size_t n; /* of bytes */
};

static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        *v |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool take_field(const uint8_t **at, const uint8_t *end, struct field *f)
{
    uint64_t tag;
    if (*at == end)
        return false;
    ck_assert(take_varint(at, end, &tag));
    f->number = (unsigned)(tag >> 3);
    f->wire = tag & 7;
    if (f->wire == 1) {
        ck_assert_int_ge(end - *at, 8);
        memcpy(&f->v, *at, 8);
        *at += 8;
        return true;
    }
    ck_assert(take_varint(at, end, &f->v));
    ck_assert(f->wire == 0 || f->wire == 2);
    if (f->wire == 2) {
        ck_assert_uint_le(f->v, (uint64_t)(end - *at));
        f->p = *at;
        f->n = (size_t)f->v;
        *at += f->n;
    }
    return true;
}

/* Every message with its fields, as text: 11{9:1 10:3} */
static void describe(const uint8_t *p, size_t n, const char *path, struct ms_buf *out)
{
    /* fields that hold messages, by the path to them */
    static const char *const messages[] = {".1.11.4", ".1",      ".1.6",    ".1.6.1",
                                           ".1.11",   ".1.12",   ".1.60",   ".1.60.3",
                                           ".1.60.4", ".1.60.8", ".1.12.1", ".1.12.2"};
    const uint8_t *at = p;
    struct field f = {0};
    while (take_field(&at, p + n, &f)) {
        char below[64];
        bool is_message = false;
        snprintf(below, sizeof below, "%.50s.%u", path, f.number);
        for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
            is_message |= strcmp(below, messages[i]) == 0;
        ms_buf_printf(out, "%u", f.number);
        if (is_message) {
            ms_buf_putc(out, '{');
            describe(f.p, f.n, below, out);
            ms_buf_puts(out, f.number == 1 && path[0] == '\0' ? "}\n" : "}");
        } else if (f.wire == 2) {
            ms_buf_printf(out, ":'%.*s' ", (int)f.n, (const char *)f.p);
        } else {
            ms_buf_printf(out, ":%" PRId64 " ", (int64_t)f.v);
        }
    }
}

static void check_perfetto(const char *expected)
{
    size_t n;
    struct ms_buf b = {.max = 1 << 20};
    char *bytes = exported(mstx_export_perfetto, &n);
    describe((const uint8_t *)bytes, n, "", &b);
    check_text(ms_buf_z(&b), expected);
    ms_buf_free(&b);
    free(bytes);
}

/* A process, a thread in it, a slice with an interned name and a flow, and its end: bytes put
 * together by hand from the tables of the format. */
START_TEST(the_reader_of_these_tests_reads_a_trace_made_by_hand)
{
    static const char trace[] =
        "\x0a\x14\x50\x01\x68\x01\xe2\x03\x0d\x08\x0a\x1a\x09\x08\x2a\x32\x05\x72\x61\x6e\x6b\x30"
        "\x0a\x17\x50\x01\x68\x02\xe2\x03\x10\x08\x0b\x28\x0a\x22\x0a\x08\x2a\x10\x2b\x2a\x04\x6d"
        "\x61\x69\x6e"
        "\x0a\x25\x40\xe8\x07\x50\x01\x68\x02\x62\x0a\x12\x08\x08\x01\x12\x04\x73\x74\x65\x70\x5a"
        "\x10\x48\x01\x58\x0b\x50\x01\xf9\x02\x07\x00\x00\x00\x00\x00\x00\x00"
        "\x0a\x0d\x40\xb8\x17\x50\x01\x68\x02\x5a\x04\x48\x02\x58\x0b";
    struct ms_buf b = {.max = 1 << 12};
    describe((const uint8_t *)trace, sizeof trace - 1, "", &b);
    check_text(ms_buf_z(&b), "1{10:1 13:1 60{1:10 3{1:42 6:'rank0' }}}\n"
                             "1{10:1 13:2 60{1:11 5:10 4{1:42 2:43 5:'main' }}}\n"
                             "1{8:1000 10:1 13:2 12{2{1:1 2:'step' }}11{9:1 11:11 10:1 47:7 }}\n"
                             "1{8:3000 10:1 13:2 11{9:2 11:11 }}\n");
    ms_buf_free(&b);
}
END_TEST

START_TEST(perfetto_interns_names_and_puts_overlaps_on_tracks_of_their_own)
{
    make_overlapping();
    check_perfetto(
        "1{6{1{1:6 2:0 }1{1:1 2:1717575960000000000 }}}\n"
        "1{10:1 13:3 60{1:1 2:'rank 3 (testhost:4242)' 3{1:4242 6:'rank 3 (testhost:4242)' }}}\n"
        "1{10:1 13:2 60{1:2 2:'thread 4242' 5:1 }}\n"
        "1{10:1 13:2 12{1{1:1 2:'default' }}}\n"
        "1{10:1 13:2 12{2{1:1 2:'a' }}}\n"
        "1{8:0 11{3:1 9:1 10:1 11:2 }10:1 13:2 }\n"
        "1{10:1 13:2 60{1:3 2:'thread 4242' 5:1 }}\n"
        "1{10:1 13:2 12{2{1:2 2:'b' }}}\n"
        "1{8:1000 11{3:1 9:1 10:2 11:3 }10:1 13:2 }\n"
        "1{8:2000 11{9:2 11:2 }10:1 13:2 }\n"
        "1{10:1 13:2 12{2{1:3 2:'c' }}}\n"
        "1{8:3500 11{3:1 9:1 10:3 11:2 4{2:1 10:'unfinished' }}10:1 13:2 }\n"
        "1{8:4000 11{3:1 9:3 10:1 11:2 }10:1 13:2 }\n"
        "1{8:4000 11{9:2 11:2 }10:1 13:2 }\n"
        "1{8:3000 11{9:2 11:3 }10:1 13:2 }\n");
    end_run();
}
END_TEST

START_TEST(perfetto_has_counters_and_categories)
{
    make_small();
    check_perfetto(
        "1{6{1{1:6 2:0 }1{1:1 2:1717575960000001000 }}}\n"
        "1{10:1 13:3 60{1:1 2:'rank 0 (testhost:4242)' 3{1:4242 6:'rank 0 (testhost:4242)' }}}\n"
        "1{10:1 13:2 60{1:2 2:'thread 4242' 5:1 }}\n"
        "1{10:1 13:2 12{1{1:1 2:'default' }}}\n"
        "1{10:1 13:2 12{2{1:1 2:'step' }}}\n"
        "1{8:0 11{3:1 9:1 10:1 11:2 }10:1 13:2 }\n"
        "1{10:1 13:2 12{2{1:2 2:'load' }}}\n"
        "1{8:500 11{3:1 9:1 10:2 11:2 }10:1 13:2 }\n"
        "1{8:1001 11{9:2 11:2 }10:1 13:2 }\n"
        "1{8:3123 11{9:2 11:2 }10:1 13:2 }\n"
        "1{10:1 13:2 60{1:66 2:'thread 4242 [io]' 5:1 }}\n"
        "1{10:1 13:2 12{1{1:2 2:'io' }}}\n"
        "1{8:1500 11{3:2 9:3 10:2 11:66 }10:1 13:2 }\n"
        "1{10:1 13:2 60{1:130 2:'loss' 5:1 8{}}}\n"
        "1{10:1 13:2 12{1{1:3 2:'default' }}}\n"
        "1{8:1600 11{9:4 11:130 30:-7 }10:1 13:2 }\n");
    end_run();
}
END_TEST

START_TEST(perfetto_leads_from_the_host_to_the_stream)
{
    make_device();
    size_t n;
    struct ms_buf b = {.max = 1 << 20};
    char *bytes = exported(mstx_export_perfetto, &n);
    describe((const uint8_t *)bytes, n, "", &b);
    for (int i = 1; i <= 2; i++) {
        char from[40], to[40];
        snprintf(from, sizeof from, "47:%lld ", (1LL << 40) + i);
        snprintf(to, sizeof to, "48:%lld ", (1LL << 40) + i);
        ck_assert_msg(strstr(ms_buf_z(&b), from) != NULL, "no %s in %s", from, ms_buf_z(&b));
        ck_assert_msg(strstr(ms_buf_z(&b), to) != NULL, "no %s in %s", to, ms_buf_z(&b));
    }
    ms_buf_free(&b);
    free(bytes);
    end_run();
}
END_TEST

START_TEST(perfetto_of_an_empty_run_has_its_process)
{
    make_empty();
    check_perfetto("1{6{1{1:6 2:0 }1{1:1 2:0 }}}\n"
                   "1{10:1 13:3 60{1:1 2:'rank 0 (testhost:4242)' "
                   "3{1:4242 6:'rank 0 (testhost:4242)' }}}\n");
    end_run();
}
END_TEST

TEST_MAIN("export", csv_has_a_row_for_every_mark_and_range,
          csv_tells_when_an_event_was_reached_on_its_device,
          csv_quotes_what_would_break_a_row_and_disarms_formulas, csv_of_an_empty_run_is_a_header,
          csv_writes_times_before_1970_as_numbers, chrome_holds_slices_instants_and_counters,
          chrome_makes_async_pairs_of_what_overlaps, chrome_escapes_names,
          chrome_of_an_empty_run_has_its_process, a_process_without_a_rank_is_named_by_its_place,
          a_foreign_process_keeps_its_name, trace_view_is_a_bare_array_with_times_as_text,
          trace_view_leads_from_the_host_to_the_stream,
          the_reader_of_these_tests_reads_a_trace_made_by_hand,
          perfetto_interns_names_and_puts_overlaps_on_tracks_of_their_own,
          perfetto_has_counters_and_categories, perfetto_leads_from_the_host_to_the_stream,
          perfetto_of_an_empty_run_has_its_process)

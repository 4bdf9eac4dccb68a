/* SPDX-License-Identifier: MIT
 *
 * Texts of traces: read piece by piece, compressed, cut; and the fast reader of events, which must agree
 * with the one that reads everything.
 */
#include "tests/support/scratch_run.h"

#include "mstx/foreign/trace_item_fast.h"
#include "mstx/foreign/trace_text.h"
#include "mstx/rundb/events_table.h"

#include <stdlib.h>
#include <zlib.h>

/* ---- the fast reader ---------------------------------------------------------------- */

static struct mstx_trace_json json;

static void same_text(struct ms_str a, struct ms_str b, const char *of)
{
    ck_assert_msg(ms_str_eq(a, b), "'%.*s' instead of '%.*s' in %s", MS_STR_ARG(a), MS_STR_ARG(b),
                  of);
}

static void same_items(const struct mstx_trace_item *a, const struct mstx_trace_item *b,
                       const char *of)
{
    const struct ms_str x[] = {
        a->name,       a->phase,           a->category,  a->id,     a->pid,     a->tid,
        a->label,      a->domain,          a->type,      a->number, a->comm.op, a->comm.type,
        a->comm.group, a->comm.group_text, a->comm.ranks};
    const struct ms_str y[] = {
        b->name,       b->phase,           b->category,  b->id,     b->pid,     b->tid,
        b->label,      b->domain,          b->type,      b->number, b->comm.op, b->comm.type,
        b->comm.group, b->comm.group_text, b->comm.ranks};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        same_text(x[i], y[i], of);
    const int64_t v[] = {
        a->ts,        a->dur,         a->has_ts,      a->end_tid,   a->is_unfinished,
        a->stream,    a->device,      a->correlation, a->comm.sent, a->comm.received,
        a->comm.size, a->comm.source, a->comm.target};
    const int64_t w[] = {
        b->ts,        b->dur,         b->has_ts,      b->end_tid,   b->is_unfinished,
        b->stream,    b->device,      b->correlation, b->comm.sent, b->comm.received,
        b->comm.size, b->comm.source, b->comm.target};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        ck_assert_msg(v[i] == w[i], "number %zu of %s", i, of);
}

/* Reads an event both ways, from memory of just its size. Returns whether the fast reader took it. */
static bool read_both(const char *event, size_t n)
{
    char *text = ms_calloc(1, n + MSTX_TRACE_TEXT_PAD), args[4096];
    struct mstx_trace_item fast, slow;
    memcpy(text, event, n);
    const char *end = *text == '{' ? mstx__trace_item_fast(&json, &fast, text, text + n) : NULL;
    const uint32_t args_n = end != NULL ? fast.args.n : 0;
    ck_assert_uint_lt(args_n, sizeof args);
    memcpy(args, args_n != 0 ? fast.args.p : "", args_n);
    ms_jread_init(&json.j, text, n, MS_JREAD_TOLERANT);
    if (end != NULL) {
        ck_assert_int_eq(ms_jread_next(&json.j), MS_J_OBJ);
        ck_assert_msg(mstx__trace_item_read(&json, &slow), "only the fast reader takes %s", event);
        ck_assert_msg(!json.j.truncated && json.j.at == end, "another end of %s", event);
        same_items(&fast, &slow, event);
        same_text((struct ms_str){args, args_n}, slow.args, event);
    }
    ms_free(text);
    return end != NULL;
}

static const char *const usual[] = {
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::zeros\", \"pid\": 77, \"tid\": 78,\n"
    "    \"ts\": 1661203462598738.125, \"dur\": 19, \"args\": {\n  \"External id\": 1,\"Input "
    "Dims\": "
    "[[], [5, 2], [{\"a\": null}]], \"Call stack\": \"\", \"x\" : true, \"y\": -1.5e-3 }}",
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel\",\"pid\":0,\"tid\":\"stream "
    "7\",\"ts\":5,"
    "\"dur\":0.1234,\"args\":{\"device\":3,\"stream\":7,\"correlation\":12,\"Collective name\":"
    "\"allreduce\",\"In msg nelems\":100,\"Out msg nelems\":101,\"Group "
    "size\":2,\"dtype\":\"Float\","
    "\"Process Group Name\":\"3\",\"Process Group Description\":\"dp\",\"Process Group Ranks\":"
    "\"[4, 6]\",\"Src Rank\":1,\"Dst Rank\":2}}",
    "{\"ph\":\"s\",\"id\":1869557,\"pid\":1,\"tid\":2,\"ts\":4,\"cat\":\"ac2g\",\"name\":\"ac2g\","
    "\"bp\":\"e\"}",
    "{ \"name\" : \"c\" , \"ph\" : \"C\" , \"ts\" : 0 , \"pid\" : -1 , \"args\" : { } , \"z\" : [ "
    "] }",
};
enum { USUAL = sizeof usual / sizeof *usual };

static void begin_reading(void)
{
    json = (struct mstx_trace_json){.arena = ms_arena_new(1 << 30), .args = {.max = 1 << 20}};
    ck_assert_ptr_nonnull(json.arena);
}

static void end_reading(void)
{
    ms_arena_free(json.arena);
    ms_buf_free(&json.args);
}

START_TEST(the_fast_reader_takes_usual_events)
{
    begin_reading();
    for (size_t i = 0; i < USUAL; i++)
        ck_assert_msg(read_both(usual[i], strlen(usual[i])), "%s", usual[i]);
    end_reading();
}
END_TEST

START_TEST(the_fast_reader_leaves_the_rest)
{
    static const char *const others[] = {
        "{\"name\":\"a\\nb\"}",
        "{\"name\":\"\xc3\xa4\"}",
        "{\"ts\":\"5\"}",
        "{\"ts\":-5}",
        "{\"ts\":5e3}",
        "{\"ts\":05}",
        "{\"ts\":5.}",
        "{\"args\":{\"name\":\"python\"}}",
        "{\"args\":{\"domain\":\"d\"}}",
        "{\"args\":{\"unfinished\":true}}",
        "{\"args\":{\"a\":NaN}}",
        "{\"args\":5}",
        "{\"x\":[[[[[[[[[[1]]]]]]]]]]}",
        "{\"a\":1,}",
        "{\"a\":1",
        "{}",
        "{\"a\" 1}",
        "{\"a\":tru}",
        "{\"a\":[1 2]}",
    };
    begin_reading();
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!read_both(others[i], strlen(others[i])), "%s", others[i]);
    end_reading();
}
END_TEST

/* Whatever is changed in an event, the fast reader leaves it or reads what the other reads. */
START_TEST(both_readers_agree_on_changed_events)
{
    static const char bytes[] = "{}[]\",:0-.eE \n\\tfn5\x01\xc3";
    uint64_t state = 88172645463325252u, taken = 0;
    char event[1024];
    begin_reading();
    for (unsigned round = 0; round < 60000; round++) {
        size_t n = strlen(usual[round % USUAL]);
        memcpy(event, usual[round % USUAL], n + 1);
        for (unsigned k = 0; k <= round % 3; k++) {
            state = ms_hash_mix(state, round);
            event[state % n] = bytes[(state >> 32) % (sizeof bytes - 1)];
        }
        if (round % 7 == 0)
            event[n = state >> 20 & 127] = '\0';
        taken += read_both(event, n);
    }
    ck_assert_uint_gt(taken, 5000);
    end_reading();
}
END_TEST

/* ---- pieces --------------------------------------------------------------------------- */

enum { EVENTS = 12000, LONG_AT = 5000, LONG = 700000 };

/* A trace of several pieces, with an event that is longer than a piece. */
static void make_trace(struct ms_buf *b)
{
    *b = (struct ms_buf){.max = 1 << 24};
    ms_buf_puts(b, "{\"schemaVersion\": 1, \"traceEvents\": [\n");
    for (unsigned i = 0; i < EVENTS; i++) {
        ms_buf_printf(
            b,
            "%s{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op %u\",\"pid\":1,\"tid\":2,\"ts\":%u,"
            "\"dur\":1,\"args\":{\"number\": %u%s",
            i != 0 ? ",\n" : "", i % 10, 2 * i, i, i == LONG_AT ? ", \"long\": \"" : "");
        for (unsigned k = 0; i == LONG_AT && k < LONG; k++)
            ms_buf_putc(b, 'x');
        ms_buf_puts(b, i == LONG_AT ? "\"}}" : "}}");
    }
    ms_buf_puts(b, "], \"distributedInfo\": {\"rank\": 3}}");
    ck_assert_int_eq(b->bad, MS_OK);
}

static void write_packed(const char *path, const char *p, size_t n, const char *mode)
{
    gzFile f = gzopen(path, mode);
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(gzwrite(f, p, (unsigned)n), (int)n);
    ck_assert_int_eq(gzclose(f), Z_OK);
}

static void ask(const char *sql, const char *want)
{
    struct ms_stmt *st;
    struct ms_err e = {0};
    bool more;
    ck_ok(ms_store_prepare(mstx_tl_store(tl), &st, sql, &e), e);
    ck_ok(ms_stmt_step(st, &more, &e), e);
    const struct ms_str got = more ? ms_stmt_get_str(st, 0) : MS_STR("no row");
    ck_assert_msg(ms_str_is(got, want), "%s: '%.*s'", sql, MS_STR_ARG(got));
    ms_stmt_free(st);
}

static void open_events(const char *path)
{
    struct ms_err e = {0};
    open_path(path);
    ck_ok(mstx_tl_add_events(tl, &e), e);
}

static void check_all_events(void)
{
    ask("SELECT count(*) FROM problems", "0");
    ask("SELECT rank FROM processes", "3");
    ask("SELECT count(*) FROM events", "12000");
    ask("SELECT sum(json_extract(args, '$.number')) FROM events", "71994000");
    ask("SELECT length(json_extract(args, '$.long')) FROM events WHERE start_ns = 10000000",
        "700000");
    end_run();
}

START_TEST(a_trace_is_read_in_pieces)
{
    struct ms_buf b;
    char path[96];
    make_trace(&b);
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/t.json", dir);
    write_file(path, b.p, b.n);
    open_events(path);
    check_all_events();
    ms_buf_free(&b);
}
END_TEST

/* As pigz and `cat a.gz b.gz` make them. */
START_TEST(compressed_parts_follow_each_other)
{
    struct ms_buf b;
    char path[96];
    make_trace(&b);
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/t.json.gz", dir);
    write_packed(path, b.p, 100000, "wb");
    write_packed(path, b.p + 100000, b.n - 100000, "ab");
    open_events(path);
    check_all_events();
    ms_buf_free(&b);
}
END_TEST

START_TEST(a_cut_compressed_trace_keeps_whole_events_and_says_so)
{
    struct ms_buf b;
    struct ms_file f;
    struct ms_err e = {0};
    char path[96], cut[96];
    make_trace(&b);
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/t.json.gz", dir);
    snprintf(cut, sizeof cut, "%s/cut.json.gz", dir);
    write_packed(path, b.p, b.n, "wb");
    ck_ok(ms_file_map(&f, path, 1 << 24, &e), e);
    write_file(cut, f.p, f.n / 3);
    ms_file_unmap(&f);
    open_events(cut);
    ask("SELECT count(*) FROM problems WHERE text LIKE '%cut off or damaged; the whole events%'",
        "1");
    ask("SELECT count(*) > 1000 FROM events", "1");
    ask("SELECT count(*) FROM events WHERE dur_ns <> 1000 OR args IS NULL", "0");
    end_run();
    ms_buf_free(&b);
}
END_TEST

START_TEST(an_error_tells_its_byte)
{
    struct ms_buf b;
    struct ms_err e = {0};
    char path[96], byte[32];
    make_trace(&b);
    const size_t at = b.n - 100;
    b.p[at] = '\x01';
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/t.json", dir);
    write_file(path, b.p, b.n);
    ck_assert_int_eq(mstx_run_open(&tl, path, NULL, &e), MS_E_FORMAT);
    snprintf(byte, sizeof byte, "byte %zu:", at);
    ck_assert_msg(strstr(e.msg, byte) != NULL, "'%s' without '%s'", e.msg, byte);
    scratch_remove(dir);
    ms_buf_free(&b);
}
END_TEST

/* ---- archives ------------------------------------------------------------------------- */

static void put2(struct ms_buf *b, unsigned v)
{
    ms_buf_putc(b, (char)(v & 255));
    ms_buf_putc(b, (char)(v >> 8));
}

static void put4(struct ms_buf *b, size_t v)
{
    put2(b, (unsigned)(v & 65535));
    put2(b, (unsigned)(v >> 16));
}

/* What the header of a file and its entry in the directory have in common. */
static void put_head(struct ms_buf *b, unsigned method, struct ms_str name, size_t packed, size_t n)
{
    put2(b, 20);
    put2(b, 0);
    put2(b, method);
    put4(b, 0);
    put4(b, 0);
    put4(b, packed);
    put4(b, n);
    put2(b, name.n);
    put2(b, 0);
}

static void put_entry(struct ms_buf *b, unsigned method, struct ms_str name, size_t packed,
                      size_t n, size_t at)
{
    ms_buf_put(b, "PK\1\2", 4);
    put2(b, 20);
    put_head(b, method, name, packed, n);
    put2(b, 0);
    put2(b, 0);
    put2(b, 0);
    put4(b, 0);
    put4(b, at);
    ms_buf_str(b, name);
}

static void put_file(struct ms_buf *b, struct ms_buf *entries, unsigned method, const char *name,
                     const char *text)
{
    static unsigned char packed[1 << 16];
    const size_t n = strlen(text), at = b->n;
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)text,
                  .avail_in = (unsigned)n,
                  .next_out = packed,
                  .avail_out = sizeof packed};
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    const size_t size = method == 8 ? z.total_out : n;
    deflateEnd(&z);
    ms_buf_put(b, "PK\3\4", 4);
    put_head(b, method, ms_str_of(name), size, n);
    ms_buf_puts(b, name);
    ms_buf_put(b, method == 8 ? (const char *)packed : text, size);
    put_entry(entries, method, ms_str_of(name), size, n, at);
}

#define TRACE                                                                                      \
    "{\"schemaVersion\":1,\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\","       \
    "\"ts\":1,\"dur\":1}]}"

/* Three traces, one as it is, and a file that is none. */
static void make_archive(struct ms_buf *b)
{
    struct ms_buf entries = {.max = 1 << 16};
    *b = (struct ms_buf){.max = 1 << 20};
    put_file(b, &entries, 8, "t/rank-0.json", TRACE);
    put_file(b, &entries, 0, "t/rank-1.json", TRACE);
    put_file(b, &entries, 8, "readme.txt", TRACE);
    put_file(b, &entries, 8, "t/rank-7.json", TRACE);
    const size_t at = b->n;
    ms_buf_str(b, ms_buf_slice(&entries));
    ms_buf_put(b, "PK\5\6\0\0\0\0", 8);
    put2(b, 4);
    put2(b, 4);
    put4(b, entries.n);
    put4(b, at);
    put2(b, 0);
    ms_buf_free(&entries);
    ck_assert_int_eq(b->bad, MS_OK);
}

START_TEST(the_traces_of_an_archive_are_one_run)
{
    struct ms_buf b;
    char path[96];
    make_archive(&b);
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/job.zip", dir);
    write_file(path, b.p, b.n);
    open_events(path);
    ask("SELECT group_concat(rank) FROM ranks", "0,1,7");
    ask("SELECT count(*) FROM events", "3");
    ask("SELECT count(*) FROM problems", "0");
    end_run();
    ms_buf_free(&b);
}
END_TEST

/* Whatever byte of it is changed, an archive is read or refused with a reason. */
START_TEST(a_damaged_archive_is_refused_or_read)
{
    struct ms_buf b;
    struct mstx_import_result r;
    char path[96], db[96];
    unsigned good = 0, bad = 0;
    make_archive(&b);
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/job.zip", dir);
    snprintf(db, sizeof db, "%s/run.db", dir);
    for (size_t i = 0; i < b.n; i += 3) {
        struct ms_err e = {0};
        b.p[i] = (char)~b.p[i];
        write_file(path, b.p, i % 2 == 0 ? b.n : b.n - i / 2);
        b.p[i] = (char)~b.p[i];
        const enum ms_rc rc = mstx_import(path, db, &r, &e);
        ck_assert_msg(rc == MS_OK || e.msg[0] != '\0', "byte %zu", i);
        good += rc == MS_OK;
        bad += rc != MS_OK;
    }
    ck_assert_uint_gt(good, 20);
    ck_assert_uint_gt(bad, 20);
    scratch_remove(dir);
    ms_buf_free(&b);
}
END_TEST

TEST_MAIN("trace_text", the_fast_reader_takes_usual_events, the_fast_reader_leaves_the_rest,
          both_readers_agree_on_changed_events, a_trace_is_read_in_pieces,
          compressed_parts_follow_each_other, a_cut_compressed_trace_keeps_whole_events_and_says_so,
          an_error_tells_its_byte, the_traces_of_an_archive_are_one_run,
          a_damaged_archive_is_refused_or_read)

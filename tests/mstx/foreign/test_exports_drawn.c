/* SPDX-License-Identifier: MIT
 *
 * Drawn Chrome traces: what is imported is what was drawn, and what is exported as Chrome trace, as csv
 * and for Perfetto is that again, read by other readers than the product's where there is none.
 */
#include "tests/support/csv_table.h"
#include "tests/support/scratch_run.h"

#include <math.h>
#include <zlib.h>

enum { CASES = 40, EVENTS = 60, LINES = 400, NAMES = 7 };

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* ---- lists of events -------------------------------------------------------------------------------- */

/* An event as one line of text: what happened, on which thread, when. */
struct lines {
    char *text[LINES];
    size_t n;
};

static void add_line(struct lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add_line(struct lines *l, const char *fmt, ...)
{
    va_list ap;
    ck_assert_uint_lt(l->n, LINES);
    va_start(ap, fmt);
    ck_assert_int_ge(vasprintf(&l->text[l->n++], fmt, ap), 0);
    va_end(ap);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void check_lines(struct lines *have, struct lines *want, const char *what, uint64_t seed)
{
    qsort(have->text, have->n, sizeof *have->text, by_text);
    qsort(want->text, want->n, sizeof *want->text, by_text);
    for (size_t i = 0; i < have->n && i < want->n; i++)
        ck_assert_msg(strcmp(have->text[i], want->text[i]) == 0, "%s of %llu:\n'%s', not\n'%s'",
                      what, (unsigned long long)seed, have->text[i], want->text[i]);
    ck_assert_msg(have->n == want->n, "%s of %llu: %zu events, not %zu", what,
                  (unsigned long long)seed, have->n, want->n);
}

static void free_lines(struct lines *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->text[i]);
    l->n = 0;
}

/* ---- a drawn trace ------------------------------------------------------------------------------------ */

static const char *const names[NAMES][2] = {{"step", "step"},
                                            {"a b", "a b"},
                                            {"say \\\"x\\\"", "say \"x\""},
                                            {"\\u00e4\\n", "\xc3\xa4\n"},
                                            {"back\\\\", "back\\"},
                                            {"x,y", "x,y"},
                                            {"=1", "=1"}};

/* kind: r range, p push/pop, m mark, i or f counter */
struct drawn {
    char kind;
    uint32_t pid, tid, end_tid, name;
    int64_t start, dur;
    bool unfinished;
    const char *args, *domain;
    int64_t value;
};

static struct drawn event[EVENTS];
static size_t events;
static int64_t base, last; /* ns */
static struct ms_buf json;

static void put_time(const char *key, int64_t ns)
{
    const bool as_text = below(4) == 0;
    ms_buf_printf(&json, ",\"%s\":%s%lld.%03lld%s", key, as_text ? "\"" : "",
                  (long long)(ns / 1000), (long long)(ns % 1000), as_text ? "\"" : "");
}

static void put_head(const struct drawn *e, const char *phase)
{
    ms_buf_printf(&json, ",\n{\"name\":\"%s\",\"ph\":\"%s\",\"pid\":%u,\"tid\":%u",
                  names[e->name][0], phase, e->pid, e->tid);
}

static void put_args(const struct drawn *e, const char *type)
{
    const char *between = "";
    ms_buf_puts(&json, ",\"args\":{");
    if (type != NULL)
        ms_buf_printf(&json, "\"event_type\":\"%s\"", type), between = ",";
    if (e->domain != NULL)
        ms_buf_printf(&json, "%s\"domain\":\"%s\"", between, e->domain), between = ",";
    if (e->args != NULL)
        ms_buf_printf(&json, "%s%.*s", between, (int)strlen(e->args) - 2, e->args + 1),
            between = ",";
    if (e->unfinished)
        ms_buf_printf(&json, "%s\"unfinished\":true", between), between = ",";
    if (e->end_tid != 0)
        ms_buf_printf(&json, "%s\"end_tid\":%u", between, e->end_tid);
    ms_buf_puts(&json, "}}");
}

static struct drawn *draw_event(char kind, uint32_t tid)
{
    static const char *const args[] = {"{\"a\": 1}", "{\"b\": \"x\", \"c\": [1, {\"d\": null}]}"};
    struct drawn *e = &event[events++];
    ck_assert_uint_le(events, EVENTS);
    *e = (struct drawn){.kind = kind,
                        .pid = 7 + 5 * below(2),
                        .tid = tid,
                        .name = below(NAMES),
                        .start = below(1000000),
                        .args = below(3) == 0 ? args[below(2)] : NULL};
    e->domain = e->pid == 7 && tid == 2 ? "d" : NULL;
    return e;
}

static void end_at(int64_t ns)
{
    last = ns > last ? ns : last;
}

/* Threads 1 and 2 have ranges that overlap as they like. */
static void draw_range(void)
{
    struct drawn *e = draw_event('r', 1 + below(2));
    e->dur = below(300000);
    e->unfinished = below(6) == 0;
    e->end_tid = below(6) == 0 ? 77 : 0;
    end_at(e->start + e->dur);
    if (below(2) == 0) {
        put_head(e, "X");
        put_time("ts", e->start);
        put_time("dur", e->dur);
        put_args(e, below(2) == 0 ? "start/end" : NULL);
        return;
    }
    put_head(e, "b");
    ms_buf_printf(&json, ",\"cat\":\"c\",\"id\":%zu", events);
    put_time("ts", e->start);
    put_args(e, NULL);
    put_head(e, "e");
    ms_buf_printf(&json, ",\"cat\":\"c\",\"id\":%zu", events);
    put_time("ts", e->start + e->dur);
    ms_buf_puts(&json, "}");
}

/* Thread 300 has nested pushes, the inner one within the outer one. */
static void draw_pushes(int64_t from)
{
    struct drawn *outer = draw_event('p', 300), *inner = draw_event('p', 300);
    inner->pid = outer->pid;
    outer->start = from;
    outer->dur = 9000;
    inner->start = from + below(4000);
    inner->dur = below(4000);
    end_at(from + 9000);
    for (int i = 0; i < 2; i++) {
        put_head(i == 0 ? outer : inner, "B");
        put_time("ts", (i == 0 ? outer : inner)->start);
        put_args(i == 0 ? outer : inner, NULL);
    }
    for (int i = 1; i >= 0; i--) {
        const struct drawn *e = i == 0 ? outer : inner;
        put_head(e, "E");
        put_time("ts", e->start + e->dur);
        ms_buf_puts(&json, "}");
    }
}

static void draw_mark(void)
{
    static const char *const phases[] = {"i", "I", "R", "X"};
    struct drawn *e = draw_event('m', 1 + below(2));
    const uint32_t phase = below(4);
    end_at(e->start);
    put_head(e, phases[phase]);
    put_time("ts", e->start);
    put_args(e, phase == 3 ? "marker" : NULL);
}

static void draw_counter(void)
{
    struct drawn *e = draw_event(below(2) == 0 ? 'i' : 'f', 9);
    e->args = NULL;
    e->value = (int64_t)below(2000) - 1000;
    end_at(e->start);
    put_head(e, "C");
    put_time("ts", e->start);
    ms_buf_printf(&json, ",\"args\":{\"v\":%lld%s}}", (long long)e->value,
                  e->kind == 'f' ? ".5" : "");
}

static void put_names(void)
{
    for (uint32_t pid = 7; pid <= 12; pid += 5) {
        ms_buf_printf(&json,
                      ",\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,\"args\":{"
                      "\"name\":\"rank %u p\"}}",
                      pid, pid);
        for (uint32_t tid = 1; tid <= 3; tid++)
            ms_buf_printf(&json,
                          ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,"
                          "\"args\":{\"name\":\"T %u %u\"}}",
                          pid, tid < 3 ? tid : 300, pid, tid < 3 ? tid : 300);
    }
}

static void draw_trace(uint64_t seed)
{
    state = seed;
    events = 0;
    base = last = 0;
    json = (struct ms_buf){.max = 1 << 20};
    base = below(2) == 0 ? 0 : INT64_C(1700000000000000000) + below(1000000);
    ms_buf_printf(&json,
                  "{\"otherData\":{\"x\":[1],\"start_unix_ns\":\"%lld\"},\"more\":{},"
                  "\"traceEvents\":[{\"ph\":\"M\"}",
                  (long long)base);
    put_names();
    for (int i = 0; i < 20; i++) {
        const uint32_t kind = below(6);
        if (kind < 3)
            draw_range();
        else if (kind == 3)
            draw_pushes(i * 20000);
        else if (kind == 4)
            draw_mark();
        else
            draw_counter();
    }
    ms_buf_puts(&json, "]}\n");
}

static int64_t length_of(const struct drawn *e)
{
    return e->unfinished && e->dur == 0 ? last - e->start : e->dur;
}

/* Lines of what was drawn; with_kind: pushes and ranges are told apart, as threads that end them are. */
static void drawn_lines(struct lines *l, bool with_kind)
{
    for (size_t i = 0; i < events; i++) {
        const struct drawn *e = &event[i];
        const char *name = names[e->name][1];
        if (e->kind == 'i' || e->kind == 'f')
            add_line(l, "counter of rank %u p: %s at %lld: %g", e->pid, name,
                     (long long)(base + e->start),
                     (double)e->value + (e->kind == 'i' ? 0
                                         : e->value < 0 ? -0.5
                                                        : 0.5));
        else
            add_line(l, "%s on T %u %u: %s at %lld for %lld%s%s, %u",
                     e->kind == 'm'                ? "mark"
                     : e->kind == 'p' && with_kind ? "push"
                                                   : "range",
                     e->pid, e->tid, name, (long long)(base + e->start), (long long)length_of(e),
                     e->args != NULL ? e->args : "", e->unfinished ? " unfinished" : "",
                     with_kind ? e->end_tid : 0);
    }
}

/* ---- what was imported ---------------------------------------------------------------------------------- */

struct walk {
    struct lines *lines;
    const struct mstx_track *track;
};

static enum ms_rc take_event(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    const struct walk *w = ctx;
    struct ms_str name = mstx_tl_text(tl, e->name), args = mstx_tl_text(tl, e->args);
    (void)err;
    if (e->kind == MSTX_EV_COUNTER) {
        add_line(w->lines, "counter of %.*s: %.*s at %lld: %g",
                 MS_STR_ARG(mstx_tl_process(tl, w->track->process)->name), MS_STR_ARG(name),
                 (long long)e->start_ns, mstx_event_value(e));
        return MS_OK;
    }
    const int64_t at = ms_str_find_str(w->track->name, MS_STR(" ["));
    struct ms_str thread = ms_str_sub(w->track->name, 0, at >= 0 ? (uint32_t)at : w->track->name.n);
    add_line(w->lines, "%s on %.*s: %.*s at %lld for %lld%.*s%s, %u",
             e->kind == MSTX_EV_MARK      ? "mark"
             : e->kind == MSTX_EV_PUSHPOP ? "push"
                                          : "range",
             MS_STR_ARG(thread), MS_STR_ARG(name), (long long)e->start_ns, (long long)e->dur_ns,
             MS_STR_ARG(args), (e->flags & MSTX_EVF_UNFINISHED) != 0 ? " unfinished" : "",
             e->end_tid);
    return MS_OK;
}

static void imported_lines(struct lines *l)
{
    struct ms_err err = {0};
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++) {
        struct walk w = {l, mstx_tl_track(tl, i)};
        ck_ok(mstx_tl_walk(tl, i, NULL, take_event, &w, &err), err);
    }
}

static void open_text(const char *name, const char *text, size_t n)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    write_file(path, text, n);
    open_path(path);
}

static void open_drawn(uint64_t seed)
{
    scratch_dir(dir);
    draw_trace(seed);
    open_text("t.json", json.p, json.n);
    ms_buf_free(&json);
}

static void check_imported(const char *what, uint64_t seed)
{
    struct lines have = {.n = 0}, want = {.n = 0};
    imported_lines(&have);
    drawn_lines(&want, true);
    check_lines(&have, &want, what, seed);
    free_lines(&have);
    free_lines(&want);
}

START_TEST(a_chrome_trace_is_read_as_it_was_drawn_and_written_as_it_was_read)
{
    for (uint64_t seed = 1; seed < CASES; seed++) {
        size_t n;
        open_drawn(seed);
        check_imported("import", seed);
        ck_assert_int_eq(mstx_tl_process(tl, 0)->rank, 7);
        char *text = exported(mstx_export_chrome, &n);
        mstx_tl_close(tl);
        open_text("again.json", text, n);
        check_imported("export", seed);
        free(text);
        end_run();
    }
}
END_TEST

/* Compressed traces are read like others, those that were cut off up to their end. */
START_TEST(a_compressed_trace_is_read_as_it_was_drawn)
{
    for (uint64_t seed = 1; seed < 6; seed++) {
        char path[96];
        scratch_dir(dir);
        draw_trace(seed);
        snprintf(path, sizeof path, "%s/t.json.gz", dir);
        gzFile f = gzopen(path, "wb");
        ck_assert_ptr_nonnull(f);
        ck_assert_int_eq(gzwrite(f, json.p, (unsigned)json.n), (int)json.n);
        ck_assert_int_eq(gzclose(f), Z_OK);
        ms_buf_free(&json);
        open_path(path);
        check_imported("import of a compressed trace", seed);
        end_run();
    }
}
END_TEST

/* ---- csv -------------------------------------------------------------------------------------------------- */

static int64_t ns_of(const char *us)
{
    long long whole, part;
    ck_assert_int_eq(sscanf(us, "%lld.%3lld", &whole, &part), 2);
    return whole * 1000 + part;
}

static void csv_lines(struct lines *l)
{
    struct ms_err err = {0};
    char path[96];
    snprintf(path, sizeof path, "%s/out.csv", dir);
    ck_ok(mstx_export_csv(tl, path, &err), err);
    struct table_text t = table_of_csv(path);
    for (size_t i = 1; i < t.n; i++) {
        char *const *cell = t.line[i].cell;
        ck_assert_uint_eq(t.line[i].n, 14);
        ck_assert_str_eq(cell[0], "host");
        ck_assert(i == 1 || ns_of(t.line[i - 1].cell[7]) <= ns_of(cell[7]));
        add_line(l, "%s %s/%s [%s] %s at %lld until %lld", cell[4], cell[1], cell[2], cell[11],
                 cell[10][0] == '\'' ? cell[10] + 1 : cell[10], (long long)ns_of(cell[7]),
                 (long long)ns_of(cell[8]));
    }
    table_free(&t);
}

START_TEST(csv_has_a_row_for_every_drawn_event_in_order_of_time)
{
    for (uint64_t seed = 1; seed < CASES; seed++) {
        struct lines have = {.n = 0}, want = {.n = 0};
        open_drawn(seed);
        csv_lines(&have);
        for (size_t i = 0; i < events; i++) {
            const struct drawn *e = &event[i];
            if (e->kind == 'i' || e->kind == 'f')
                continue;
            add_line(&want, "%s %u/%u [%s] %s at %lld until %lld",
                     e->kind == 'm'   ? "marker"
                     : e->kind == 'p' ? "push/pop"
                                      : "start/end",
                     e->pid, e->tid, e->domain != NULL ? e->domain : "default", names[e->name][1],
                     (long long)(base + e->start), (long long)(base + e->start + length_of(e)));
        }
        check_lines(&have, &want, "csv", seed);
        free_lines(&have);
        free_lines(&want);
        end_run();
    }
}
END_TEST

/* ---- Perfetto ----------------------------------------------------------------------------------------------- */

struct span {
    const uint8_t *p, *end;
};

static uint64_t take_varint(struct span *s)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        ck_assert(s->p < s->end && shift < 64);
        v |= (uint64_t)(*s->p & 0x7f) << shift;
        if (*s->p++ < 0x80)
            return v;
    }
}

/* The next field: its number; its value, or its bytes. */
static unsigned take_field(struct span *s, uint64_t *v, struct span *bytes)
{
    const uint64_t tag = take_varint(s);
    *bytes = (struct span){NULL, NULL};
    if ((tag & 7) == 1) {
        ck_assert(s->end - s->p >= 8);
        memcpy(v, s->p, 8);
        s->p += 8;
    } else {
        *v = take_varint(s);
    }
    if ((tag & 7) == 2) {
        ck_assert(*v <= (uint64_t)(s->end - s->p));
        *bytes = (struct span){s->p, s->p + *v};
        s->p += *v;
    }
    return (unsigned)(tag >> 3);
}

/* The field of a number, or 0; the last one where there are several. */
static uint64_t number_in(struct span s, unsigned field, struct span *bytes)
{
    uint64_t v, found = 0;
    struct span b;
    *bytes = (struct span){NULL, NULL};
    while (s.p < s.end) {
        if (take_field(&s, &v, &b) == field) {
            found = v;
            *bytes = b;
        }
    }
    return found;
}

static uint64_t number_of(struct span s, unsigned field)
{
    struct span b;
    return number_in(s, field, &b);
}

static bool has_field(struct span s, unsigned field)
{
    uint64_t v;
    struct span b;
    while (s.p < s.end) {
        if (take_field(&s, &v, &b) == field)
            return true;
    }
    return false;
}

static struct span message_of(struct span s, unsigned field)
{
    struct span b;
    number_in(s, field, &b);
    return b;
}

static char *text_of(struct span s, unsigned field)
{
    struct span b = message_of(s, field);
    return b.p != NULL ? strndup((const char *)b.p, (size_t)(b.end - b.p)) : strdup("");
}

enum { UUIDS = 2048, DEPTH = 64, IDS = 4096 };

static struct {
    char *track[UUIDS], *name[IDS], *category[IDS];
    uint64_t parent[UUIDS], pid[UUIDS];
    struct span open[UUIDS][DEPTH];
    int64_t since[UUIDS][DEPTH];
    unsigned depth[UUIDS];
    int64_t base;
    bool cleared;
} decoded;

static void take_track(struct span t)
{
    const uint64_t uuid = number_of(t, 1);
    ck_assert_uint_lt(uuid, UUIDS);
    free(decoded.track[uuid]);
    decoded.track[uuid] = text_of(t, 2);
    decoded.parent[uuid] = number_of(t, 5);
    decoded.pid[uuid] = number_of(message_of(t, 3), 1);
}

static void take_interned(struct span s)
{
    uint64_t v;
    struct span b;
    while (s.p < s.end) {
        const unsigned kind = take_field(&s, &v, &b);
        const uint64_t id = number_of(b, 1);
        ck_assert(id < IDS && (kind == 1 || kind == 2));
        char **slot = kind == 1 ? &decoded.category[id] : &decoded.name[id];
        ck_assert_ptr_null(*slot); /* once is enough */
        *slot = text_of(b, 2);
    }
}

/* Attributes and the note that an event has no end. */
static void notes_of(struct span e, char **args, bool *unfinished)
{
    uint64_t v;
    struct span b;
    *args = strdup("");
    *unfinished = false;
    while (e.p < e.end) {
        if (take_field(&e, &v, &b) != 4)
            continue;
        char *name = text_of(b, 10);
        *unfinished |= strcmp(name, "unfinished") == 0 && number_of(b, 2) == 1;
        if (strcmp(name, "args") == 0) {
            free(*args);
            *args = text_of(b, 9);
        }
        free(name);
    }
}

static void add_decoded(struct lines *l, struct span e, const char *kind, int64_t start,
                        int64_t dur)
{
    const uint64_t uuid = number_of(e, 11), id = number_of(e, 10), category = number_of(e, 3);
    char *args;
    bool unfinished;
    ck_assert(id < IDS && decoded.name[id] != NULL && uuid < UUIDS && decoded.track[uuid] != NULL);
    ck_assert(category < IDS && decoded.category[category] != NULL);
    ck_assert_uint_eq(decoded.pid[decoded.parent[uuid]],
                      strncmp(decoded.track[uuid], "T 7", 3) == 0 ? 7 : 12);
    notes_of(e, &args, &unfinished);
    const int thread = (int)strcspn(decoded.track[uuid], "[");
    ck_assert_str_eq(decoded.track[uuid] + thread,
                     strcmp(decoded.category[category], "d") == 0 ? "[d]" : "");
    add_line(l, "%s on %.*s: %s at %lld for %lld%s%s, 0", kind,
             decoded.track[uuid][thread] != 0 ? thread - 1 : thread, decoded.track[uuid],
             decoded.name[id], (long long)start, (long long)dur, args,
             unfinished ? " unfinished" : "");
    free(args);
}

static void take_counter(struct lines *l, struct span e, uint64_t uuid, int64_t t)
{
    const uint64_t whole = number_of(e, 30), bits = number_of(e, 44);
    double v = (double)(int64_t)whole;
    if (has_field(e, 44))
        memcpy(&v, &bits, sizeof v);
    add_line(l, "counter of %s: %s at %lld: %g", decoded.track[decoded.parent[uuid]],
             decoded.track[uuid], (long long)t, v);
}

static void take_track_event(struct lines *l, struct span e, int64_t t)
{
    const uint64_t type = number_of(e, 9), uuid = number_of(e, 11);
    ck_assert_uint_lt(uuid, UUIDS);
    ck_assert_ptr_nonnull(decoded.track[uuid]);
    unsigned *depth = &decoded.depth[uuid];
    if (type == 4) {
        take_counter(l, e, uuid, t);
    } else if (type == 3) {
        add_decoded(l, e, "mark", t, 0);
    } else if (type == 1) {
        ck_assert_uint_lt(*depth, DEPTH);
        decoded.open[uuid][*depth] = e;
        decoded.since[uuid][(*depth)++] = t;
    } else {
        ck_assert(type == 2 && *depth > 0);
        const int64_t since = decoded.since[uuid][--*depth];
        add_decoded(l, decoded.open[uuid][*depth], "range", since, t - since);
    }
}

static void take_packet(struct lines *l, struct span p)
{
    struct span b;
    if (has_field(p, 6)) { /* clocks: 1 is real time, 6 that of the trace */
        uint64_t v;
        struct span clocks = message_of(p, 6);
        while (clocks.p < clocks.end) {
            take_field(&clocks, &v, &b);
            if (number_of(b, 1) == 1)
                decoded.base = (int64_t)number_of(b, 2);
            ck_assert(number_of(b, 1) == 1 || (number_of(b, 1) == 6 && number_of(b, 2) == 0));
        }
        return;
    }
    ck_assert_uint_eq(number_of(p, 10), 1);
    ck_assert_uint_eq(number_of(p, 13), decoded.cleared ? 2 : 3);
    decoded.cleared = true;
    if (has_field(p, 60))
        take_track(message_of(p, 60));
    if (has_field(p, 12))
        take_interned(message_of(p, 12));
    if (has_field(p, 11))
        take_track_event(l, message_of(p, 11), decoded.base + (int64_t)number_of(p, 8));
}

static void perfetto_lines(struct lines *l)
{
    size_t n;
    char *text = exported(mstx_export_perfetto, &n);
    struct span s = {(const uint8_t *)text, (const uint8_t *)text + n}, b;
    uint64_t v;
    memset(&decoded, 0, sizeof decoded);
    while (s.p < s.end) {
        ck_assert_uint_eq(take_field(&s, &v, &b), 1);
        take_packet(l, b);
    }
    for (size_t i = 0; i < UUIDS; i++) {
        ck_assert_uint_eq(decoded.depth[i], 0);
        free(decoded.track[i]);
    }
    for (size_t i = 0; i < IDS; i++) {
        free(decoded.name[i]);
        free(decoded.category[i]);
    }
    free(text);
}

START_TEST(perfetto_is_decoded_to_what_was_drawn)
{
    for (uint64_t seed = 1; seed < CASES; seed++) {
        struct lines have = {.n = 0}, want = {.n = 0};
        open_drawn(seed);
        perfetto_lines(&have);
        drawn_lines(&want, false);
        check_lines(&have, &want, "perfetto", seed);
        free_lines(&have);
        free_lines(&want);
        end_run();
    }
}
END_TEST

TEST_MAIN_WITHIN(60, "exports_drawn",
                 a_chrome_trace_is_read_as_it_was_drawn_and_written_as_it_was_read,
                 a_compressed_trace_is_read_as_it_was_drawn,
                 csv_has_a_row_for_every_drawn_event_in_order_of_time,
                 perfetto_is_decoded_to_what_was_drawn)

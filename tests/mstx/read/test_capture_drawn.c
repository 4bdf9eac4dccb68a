/* SPDX-License-Identifier: MIT
 *
 * capture_drawn: drawn captures: records of every type with every flag, continuations, texts of every
 * kind, several parts and threads. The lanes that are read of them are those on record, and so is
 * what is made of a segment file of which a byte is wrong.
 */
#include "mstx/read/control.h"
#include "mstx/read/records.h"
#include "probe/base/map.h"
#include "probe/base/mem.h"
#include "tests/support/make_capture.h"
#include "tests/support/recorded.h"

#include <inttypes.h>
#include <sys/mman.h>

enum { CAPTURES = 200, RECORDS = 60, TEXTS = 12 };

static struct ms_err err;
static struct ms_buf *told; /* where problems are told */

static void hear(void *ctx, const char *file, struct ms_err *e)
{
    (void)ctx;
    const struct ms_str name = ms_path_base(file);
    ms_buf_printf(told, " {%.*s: %s}", MS_STR_ARG(name), e->msg);
}
static const struct mstx_problems problems = {.fn = hear};

/* ---- a sink of texts ------------------------------------------------------------------ */

static struct ms_map interned;

static uint32_t intern(void *ctx, struct ms_str text)
{
    bool added;
    struct ms_arena *arena = ctx;
    return text.n == 0 ? 0 : ms_map_put_copy(&interned, text, arena, &added) + 1;
}

static struct ms_str get(const void *ctx, uint32_t id)
{
    (void)ctx;
    return id != 0 && id <= interned.keys.n ? ms_map_key(&interned, id - 1) : MS_STR("");
}

static void put_name(struct ms_buf *b, uint32_t id)
{
    recorded_text(b, "t", get(NULL, id));
}

/* ---- drawing ---------------------------------------------------------------------------- */

static uint64_t state;

#define below(n) recorded_below(&state, (n))

static void draw_texts(struct maker *m)
{
    static const char *const text[] = {"forward",
                                       "MPI_Send",
                                       "cmdline=/usr/bin/train --x",
                                       "loss",
                                       "clock_cost_ticks=37",
                                       "clock_cost_ticks=x",
                                       "cmdline="};
    for (unsigned i = 0; i < TEXTS; i++) {
        const char *t = text[below(7)];
        const uint16_t kind = (uint16_t)(i < 4 ? MSTX_TEXT : 1 + below(12));
        if (kind == MSTX_GROUP) {
            struct {
                struct mstx_comm_group g;
                int32_t world[2];
                char name[4];
            } group = {{77, 2, 1, 2, 0}, {0, 5}, "dp0"};
            maker_entry(m, kind, 0, below(3), &group, sizeof group - 1);
            continue;
        }
        maker_entry(m, kind, (uint16_t)below(3), kind == MSTX_THREAD ? 70 + below(4) : below(6), t,
                    (uint32_t)strlen(t));
    }
}

/* Begins that have no end yet. */
struct begun {
    uint64_t ticks[RECORDS * 4], id[RECORDS * 4];
    uint32_t name[RECORDS * 4];
    unsigned n;
};

static void draw_continuation(struct maker *m, bool more)
{
    union {
        struct mstx_rec rec;
        struct mstx_rec_attr attr;
        struct mstx_rec_mem mem;
        struct mstx_rec_payload payload;
        struct mstx_rec_data data;
        struct mstx_rec_comm comm;
        struct mstx_rec_comm_part part;
    } u;
    memset(&u, 0, sizeof u);
    const uint8_t type = (uint8_t)(MSTX_REC_CONT + below(7));
    switch (type) {
    case MSTX_REC_ATTR:
        u.attr = (struct mstx_rec_attr){.payload = below(300),
                                        .category = below(6),
                                        .argb = 0xff000000u + below(999),
                                        .payload_type = below(8),
                                        .fields = below(8)};
        break;
    case MSTX_REC_PAYLOAD:
        u.payload = (struct mstx_rec_payload){
            .schema = below(30), .bytes = below(30), .index = below(2), .total = below(40)};
        break;
    case MSTX_REC_DATA:
        u.data = (struct mstx_rec_data){.bytes = {1, 2, (uint8_t)below(9)}, .n = below(26)};
        break;
    case MSTX_REC_MEMORY:
        u.mem = (struct mstx_rec_mem){.address = below(4) * 4096,
                                      .size = below(4096),
                                      .device = below(2),
                                      .by_pointer = below(3)};
        break;
    case MSTX_REC_COMM:
        u.comm = (struct mstx_rec_comm){.count = below(99),
                                        .group = below(3),
                                        .seq = below(9),
                                        .peer = (int32_t)below(3) - 1,
                                        .dtype = (uint8_t)below(6),
                                        .op = (uint8_t)below(12),
                                        .lib = (uint8_t)below(4),
                                        .tag_code = (uint16_t)below(4),
                                        .elem = 4};
        break;
    default:
        u.part = (struct mstx_rec_comm_part){.sent = below(99),
                                             .received = below(99),
                                             .peer = (int32_t)below(3),
                                             .tag = (int32_t)below(9),
                                             .polls = below(4)};
    }
    u.rec.type = type;
    u.rec.flags = more ? MSTX_F_MORE : 0;
    u.rec.domain = (uint16_t)below(3);
    maker_raw(m, &u);
}

static void draw_end(struct mstx_rec *r, struct begun *begun)
{
    r->arg = r->ticks - 1 - 2 * below(3); /* ticks of a begin are even */
    if (begun->n == 0 || below(8) == 0)
        return;
    const unsigned i = below(begun->n);
    r->arg = begun->ticks[i];
    r->id = begun->id[i];
    r->name = begun->name[i];
    begun->n--;
    begun->ticks[i] = begun->ticks[begun->n];
    begun->id[i] = begun->id[begun->n];
    begun->name[i] = begun->name[begun->n];
}

static void draw_record(struct maker *m, uint64_t *t, struct begun *begun)
{
    static const uint8_t often[] = {MSTX_REC_BEGIN, MSTX_REC_END, MSTX_REC_MARK, MSTX_REC_CALL,
                                    MSTX_REC_PUSH,  MSTX_REC_POP, MSTX_REC_END};
    const uint32_t more = below(3) == 0 ? 1 + below(3) : 0;
    *t += 2 * (1 + below(40));
    struct mstx_rec r = {.ticks = TICKS_0 + *t,
                         .id = below(4),
                         .name = below(TEXTS + 2),
                         .domain = (uint16_t)below(4),
                         .type = below(2) == 0 ? often[below(7)] : (uint8_t)below(30),
                         .flags = (uint8_t)(below(4) == 0 ? below(128) << 1 : 0),
                         .arg = below(3)};
    if (r.type == MSTX_REC_END || r.type == MSTX_REC_POP)
        draw_end(&r, begun);
    if (r.type == MSTX_REC_CALL)
        r.arg = below(2) == 0 ? 0 : r.ticks + below(50);
    if (r.type == MSTX_REC_THREAD)
        r.id = 70 + below(4);
    if (r.type == MSTX_REC_USE && below(3) == 0)
        r.id = MSTX_USE_UNKNOWN;
    const bool begins = r.type == MSTX_REC_BEGIN || r.type == MSTX_REC_PUSH ||
                        (r.type == MSTX_REC_CALL && r.arg == 0);
    if (begins) {
        begun->ticks[begun->n] = r.ticks;
        begun->id[begun->n] = r.id;
        begun->name[begun->n++] = r.name;
    }
    r.flags = (uint8_t)((r.flags & ~MSTX_F_MORE) | (more != 0 ? MSTX_F_MORE : 0));
    maker_raw(m, &r);
    for (uint32_t i = 0; i < more; i++)
        draw_continuation(m, i + 1 < more);
}

static void draw_capture(const char *run, unsigned seed)
{
    struct maker m;
    struct begun begun = {.n = 0};
    uint64_t t[3] = {0, 1000000,
                     2000000}; /* ticks of rings differ, so that no order is by chance */
    state = seed;
    maker_begin(&m, run, (int32_t)(seed % 3), 77);
    draw_texts(&m);
    for (uint32_t part = 1; part <= 2; part++) {
        for (uint32_t ring = 0; ring < 3; ring++) {
            maker_ring(&m, ring, part, 70 + ring);
            m.head.dropped = below(5);
            for (uint32_t i = below(RECORDS); i > 0; i--)
                draw_record(&m, &t[ring], &begun);
            maker_end_ring(&m);
        }
    }
    maker_end(&m);
}

/* ---- what is read ------------------------------------------------------------------------ */

static void put_extra(struct ms_buf *b, const struct mstx_lanes *l, uint32_t extra)
{
    if (extra == 0)
        return;
    const struct mstx_extra *x = &l->extra.p[extra - 1];
    ms_buf_printf(b, " (%" PRIu64 " %" PRIu64 " %u", x->arg, x->size, x->end_tid);
    put_name(b, x->args);
    if (x->comm != 0)
        ms_buf_printf(b, " comm %08x", ms_crc32(0, &l->comm.p[x->comm - 1], MSTX_REC_SIZE));
    if (x->parts != 0)
        ms_buf_printf(
            b, " parts %08x",
            ms_crc32(0, &l->parts.p[x->parts - 1], 2 * sizeof(struct mstx_rec_comm_part)));
    ms_buf_puts(b, ")");
}

static void put_lanes(struct ms_buf *b, const struct mstx_lanes *l)
{
    for (size_t i = 0; i < l->lane.n; i++) {
        const struct mstx_lane *lane = &l->lane.p[i];
        ms_buf_printf(b, "\nlane %d %u %d %u", lane->kind, lane->tid, lane->is_mono_ns,
                      lane->device);
        put_name(b, lane->domain);
        put_name(b, lane->name);
        put_name(b, lane->unit);
        for (size_t k = 0; k < lane->ev.n; k++) {
            const struct mstx_raw *r = &lane->ev.p[k];
            ms_buf_printf(b, "\n  %" PRIu64 "..%" PRIu64 " %" PRIu64 " %u %u", r->begin, r->end,
                          r->id, r->kind, r->flags);
            put_name(b, r->name);
            put_extra(b, l, r->extra);
        }
    }
    ms_buf_printf(b, "\nnewest %" PRIu64 " records %" PRIu64 " dropped %" PRIu64, l->newest,
                  l->records, l->dropped);
    ms_buf_printf(b, " unfinished %" PRIu64 " lost %" PRIu64 " bad %" PRIu64, l->unfinished,
                  l->no_device, l->bad);
}

static void put_texts(struct ms_buf *b, struct mstx_texts *t)
{
    for (uint32_t i = 0; i < TEXTS + 2; i++)
        put_name(b, mstx__text_id(t, i));
    for (uint16_t i = 0; i < 5; i++)
        put_name(b, mstx__domain_id(t, i));
    for (size_t i = 0; i < t->keyed.n; i++) {
        const struct mstx_keyed *k = &t->keyed.p[i];
        struct mstx_comm_known g = {0};
        const struct mstx_keyed *found = mstx__texts_find(t, k->kind, k->domain, k->key);
        const bool is_group = mstx__comm_group_parse(k->text, &g);
        ms_buf_printf(b, " %u %u %" PRIu64 " %d at %td, %d %d %u", k->kind, k->domain, k->key,
                      mstx__texts_is_newest(t, i), found - t->keyed.p, is_group, g.rank, g.listed);
        put_name(b, k->name);
        recorded_text(b, "group", g.name);
    }
    ms_buf_printf(b, " notes %zu hangs %zu mpi %d cost %" PRIu64, t->notes.n, t->hangs.n,
                  t->names_mpi, t->clock_cost);
    put_name(b, t->process_name);
}

static void read_capture(struct ms_buf *b, struct mstx_lanes *l, const char *run)
{
    struct mstx_procs procs;
    struct ms_arena *arena = ms_arena_new(SIZE_MAX);
    const struct mstx_text_sink sink = {.ctx = arena, .intern = intern, .get = get};
    ck_ok(mstx__procs_find(&procs, run, NULL, &err), err);
    ck_assert_uint_eq(procs.list.n, 1);
    struct mstx_proc *p = procs.list.p;
    ck_ok(mstx__proc_open(p, &problems, &err), err);
    for (size_t i = 0; i < p->seg.n; i++)
        ms_buf_printf(b, " ring %u part %" PRIu64, p->seg.p[i].head.ring, p->seg.p[i].head.part);
    struct mstx_texts t;
    ck_ok(mstx__texts_read(&t, p, &sink, &problems, &err), err);
    put_texts(b, &t);
    mstx__lanes_read(l, p, &t);
    ck_assert(!l->no_memory);
    put_lanes(b, l);
    mstx__texts_free(&t);
    mstx__procs_free(&procs);
    ms_map_free(&interned);
    ms_arena_free(arena);
}

START_TEST(drawn_captures)
{
    struct ms_buf all = {.max = 1 << 20};
    struct mstx_lanes lanes;
    const size_t live = ms_mem_live();
    ck_ok(mstx__lanes_new(&lanes, &err), err);
    for (unsigned seed = 0; seed < CAPTURES; seed++) {
        char dir[64], run[80];
        struct ms_buf b = {.max = 1 << 20};
        scratch_dir(dir);
        snprintf(run, sizeof run, "%s/run", dir);
        draw_capture(run, seed);
        told = &b;
        read_capture(&b, &lanes, run);
        if (recorded_shows)
            printf("== %u\n%s\n", seed, ms_buf_z(&b));
        ms_buf_printf(&all, "capture %u: %08x\n", seed, ms_crc32(0, b.p, b.n));
        ms_buf_free(&b);
        scratch_remove(dir);
    }
    mstx__lanes_free(&lanes);
    recorded_check(&all, "captures");
    ck_assert_uint_eq(ms_mem_live(), live);
}
END_TEST

/* ---- one file --------------------------------------------------------------------------- */

/* The header's two parts that are not zero and the bytes behind it, in one piece. */
enum { IDENTITY = 272, WRITER = 1024, WRITER_SIZE = 160, KEPT = IDENTITY + WRITER_SIZE };

static void answer_segment(struct ms_buf *b, const char *p, size_t n, uint32_t kind)
{
    static char file[MSTX_SEG_HEADER];
    char path[64];
    struct mstx_segment s;
    struct ms_err e = {0};
    memset(file, 0, sizeof file);
    memcpy(file, p, n < IDENTITY ? n : IDENTITY);
    if (n > IDENTITY)
        memcpy(file + WRITER, p + IDENTITY, n < KEPT ? n - IDENTITY : WRITER_SIZE);
    const int fd = memfd_create("seg", 0), fixed = 99; /* a number that answers may name */
    const size_t head = n < KEPT ? n : sizeof file;
    ck_assert_int_eq(write(fd, file, head), (ssize_t)head);
    if (n > KEPT)
        ck_assert_int_eq(write(fd, p + KEPT, n - KEPT), (ssize_t)(n - KEPT));
    ck_assert_int_eq(dup2(fd, fixed), fixed);
    close(fd);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fixed);
    told = b;
    if (mstx__segment_open(&s, path, kind, &problems, &e) != MS_OK) {
        ms_buf_printf(b, " %d %s", e.rc,
                      strchr(e.msg + 14, ' ') != NULL ? strchr(e.msg + 14, ' ') : "");
        close(fixed);
        return;
    }
    ms_buf_printf(b, " n %" PRIu64 " %d rank %d part %" PRIu64, s.n, s.copy != NULL, s.head.rank,
                  s.head.part);
    struct mstx_entry entry;
    for (uint64_t at = 0;
         kind == MSTX_KIND_STRINGS && mstx__entry_next(&s, &at, &entry, &problems);) {
        ms_buf_printf(b, " %" PRIu64 ":%u", at, entry.head.id);
        recorded_text(b, "", entry.text);
    }
    mstx__segment_close(&s);
    close(fixed);
}

static void answer_ring(struct ms_buf *b, const char *p, size_t n)
{
    answer_segment(b, p, n, MSTX_KIND_RING);
}

static void answer_strings(struct ms_buf *b, const char *p, size_t n)
{
    answer_segment(b, p, n, MSTX_KIND_STRINGS);
}

static size_t pack_file(char *to, const char *folder, const char *name)
{
    char path[400];
    struct ms_file f;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_ok(ms_file_map(&f, path, SIZE_MAX, &err), err);
    const size_t behind = f.n - MSTX_SEG_HEADER;
    memcpy(to, f.p, IDENTITY);
    memcpy(to + IDENTITY, f.p + WRITER, WRITER_SIZE);
    memcpy(to + KEPT, f.p + MSTX_SEG_HEADER, behind);
    ms_file_unmap(&f);
    return KEPT + behind;
}

START_TEST(segments_with_a_wrong_byte)
{
    static char p[8192];
    char dir[64], run[80];
    struct maker m;
    struct ms_buf b = {.max = 1 << 21};
    scratch_dir(dir);
    snprintf(run, sizeof run, "%s/run", dir);
    maker_begin(&m, run, 0, 77);
    maker_text(&m, "one");
    maker_domain(&m, "another");
    maker_text(&m, "a third, longer one");
    maker_ring(&m, 1, 1, 77);
    for (unsigned i = 0; i < 3; i++)
        maker_mark(&m, i, 1, 0);
    maker_end_ring(&m);
    maker_ring(&m, 2, 1, 77);
    maker_mark(&m, 1, 1, 0);
    m.head.state = MSTX_SEG_FLIGHT;
    maker_end_ring(&m);
    maker_end(&m);
    recorded_file(&b, "ring", p, pack_file(p, m.dir, "r0001.0001.seg"), answer_ring);
    recorded_file(&b, "flight", p, pack_file(p, m.dir, "r0002.0001.seg"), answer_ring);
    recorded_file(&b, "strings", p, pack_file(p, m.dir, MSTX_STRINGS), answer_strings);
    scratch_remove(dir);
    recorded_check(&b, "segments");
}
END_TEST

RECORDED_MAIN("capture_drawn", drawn_captures, segments_with_a_wrong_byte)

/* SPDX-License-Identifier: MIT
 *
 * rt_drawn: drawn calls of the recorder in a process of their own: the records that it leaves, but for
 * their times, are those on record: marks with attributes and payloads of every length, ranges that are
 * ended twice, in another domain or thread, pushes without end, segments that are filled, kept and
 * reused.
 */
#include "mstx/rt/comm_range.h"
#include "mstx/rt/domain.h"
#include "mstx/rt/mark.h"
#include "mstx/rt/recorder.h"
#include "mstx/rt/slot.h"
#include "tests/support/capture_read.h"
#include "tests/support/recorded.h"

#include <inttypes.h>
#include <pthread.h>
#include <sys/wait.h>

enum { PROCESSES = 60, CALLS = 400, DOMAINS = 3, KEPT = 64 };

static uint64_t state;
static char out[64];
static struct rt_domain *domains[DOMAINS];
static uint64_t kept[KEPT]; /* ids of ranges, some of them ended */
static unsigned kept_count;

#define below(n) recorded_below(&state, (n))

static struct rt_domain *domain(void)
{
    return domains[below(DOMAINS)];
}

static const char *message(void)
{
    static const char *const text[] = {"forward",
                                       "backward",
                                       "step",
                                       "=refused",
                                       "",
                                       NULL,
                                       "a rather long text that takes more than one word"};
    return text[below(below(9) == 0 ? 7 : 3)];
}

static void keep(uint64_t id)
{
    kept[kept_count++ % KEPT] = id;
}

/* ---- events ---------------------------------------------------------------------------- */

static struct rt_attr attr;
static struct rt_payload payloads[4];
static struct mstx_rec ready[3];

static struct rt_event draw_event(void)
{
    static const size_t sizes[] = {0,  1,  8,  15, 16,  17,   23,   24,   25,
                                   40, 47, 48, 49, 100, 4095, 4096, 4097, 9000};
    static uint8_t bytes[9000];
    struct rt_event e = {.name = rt_text_id(rt_ring_of_thread(), "event"),
                         .flags = below(3) == 0 ? MSTX_F_NVTX : 0};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7);
    if (below(2) == 0) {
        attr = (struct rt_attr){.fields = below(8),
                                .category = below(9),
                                .argb = below(99),
                                .payload_type = below(7),
                                .payload = below(999)};
        e.attr = &attr;
    }
    if (below(3) == 0) {
        e.npayloads = below(5);
        e.payloads = payloads;
        for (size_t i = 0; i < e.npayloads; i++)
            payloads[i] = (struct rt_payload){below(30), sizes[below(18)], bytes};
    }
    if (below(8) == 0) {
        e.nready = 1 + below(3);
        for (uint32_t i = 0; i < e.nready; i++)
            ready[i] = (struct mstx_rec){.ticks = below(9),
                                         .type = MSTX_REC_ATTR,
                                         .flags = i + 1 < e.nready ? MSTX_F_MORE : 0};
        e.ready = ready;
    }
    return e;
}

static void note(enum rt_tap_kind kind, struct rt_domain *d, const char *text, void *stream,
                 uint32_t id, uint64_t *other)
{
    /* What a tap receives is recorded as a counter. */
    (void)d;
    (void)stream;
    (void)id;
    if (kind == RT_TAP_START)
        *other = 5;
    rt_counter(domains[1], rt_text_id(rt_ring_of_thread(), "tap"),
               (uint64_t)kind * 100 + (text != NULL ? strlen(text) : 0) +
                   (other != NULL ? *other * 1000 : 0),
               false);
}

static void *end_elsewhere(void *id)
{
    rt_range_end(domains[0], *(uint64_t *)id);
    rt_mark(domains[1], "elsewhere", NULL);
    return NULL;
}

static void call_memory(void)
{
    struct rt_domain *d = domain();
    const struct mstx_rec_mem mem = {.address = below(99),
                                     .size = below(99),
                                     .domain = d->number,
                                     .type = MSTX_REC_MEMORY,
                                     .device = below(3)};
    rt_memory(d, (uint8_t)(MSTX_REC_HEAP + below(4)), below(9), below(3), below(9),
              below(2) == 0 ? &mem : NULL);
}

static void call_range(void)
{
    struct rt_event e;
    switch (below(8)) {
    case 0:
    case 1:
        keep(rt_range_start(domain(), message(), below(9) == 0 ? (void *)(uintptr_t)0x77 : NULL));
        break;
    case 2:
        e = draw_event();
        keep(rt_range_start_event(domain(), &e));
        break;
    case 3:
        e = draw_event();
        (void)rt_range_end_event(domain(), kept[below(KEPT)], &e);
        break;
    case 4:
        rt_range_end(domain(), below(4) == 0 ? below(5) * 977 : kept[below(KEPT)]);
        break;
    case 5:
        keep(rt_range_ghost());
        break;
    default:
        rt_range_end(domains[0], kept[below(KEPT)]);
    }
}

static void call_drawn(void)
{
    struct rt_event e;
    switch (below(11)) {
    case 0:
        rt_mark(domain(), message(), below(9) == 0 ? (void *)(uintptr_t)0x55 : NULL);
        break;
    case 1:
        e = draw_event();
        rt_mark_event(domain(), &e);
        break;
    case 2:
        e = draw_event();
        (void)rt_push(domain(), &e);
        break;
    case 3:
        e = draw_event();
        (void)rt_pop(domain(), &e);
        break;
    case 4:
        rt_counter(domain(), rt_text_id(rt_ring_of_thread(), "loss"), below(9), below(2) == 0);
        break;
    case 5:
        call_memory();
        break;
    default:
        call_range();
    }
}

/* ---- processes ------------------------------------------------------------------------------ */

static void configure(unsigned seed)
{
    rt_read_env(&rt.conf);
    snprintf(rt.conf.out, sizeof rt.conf.out, "%s", out);
    rt.conf.quiet = 2;
    rt.conf.rank = (int32_t)(seed % 3) - 1;
    rt.conf.segment_bytes = 16 << 10;
    rt.conf.policy = RT_BLOCK;
    rt.conf.flight_s = seed % 4 == 1 ? 1e-9 : seed % 4 == 2 ? 1e6 : 0;
    atomic_store(&rt.recording, 1);
}

static void many_marks(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char text[16];
        snprintf(text, sizeof text, "text %u", i % 700);
        rt_mark(domains[i % DOMAINS], text, NULL);
    }
}

/* More pushes than there is room for, and one pop more than pushes. */
static void many_pushes(void)
{
    const struct rt_event e = {.name = rt_text_id(rt_ring_of_thread(), "push")};
    int sum = 0;
    for (int i = 0; i < RT_PUSHES + 3; i++)
        sum += rt_push(domains[(unsigned)i % 2], &e);
    for (int i = 0; i < RT_PUSHES + 3; i++)
        sum += rt_pop(domains[(unsigned)i % 3 == 0], &e);
    rt_counter(domains[0], e.name, (uint64_t)(int64_t)sum, false);
}

/* More open ranges than a chunk has slots; those that are left open are listed. */
static void count_open(void *arg, uint32_t id, uint64_t ticks)
{
    (void)ticks;
    *(uint64_t *)arg = *(uint64_t *)arg * 31 + id;
}

static void many_ranges(void)
{
    uint64_t id[200], open = 0;
    for (int i = 0; i < 200; i++)
        id[i] = rt_range_start(domains[i % 2], "range", NULL);
    for (int i = 0; i < 200; i += 3)
        rt_range_end(domains[i % 2], id[i]);
    rt_ranges_each(domains[1]->number, count_open, &open);
    rt_counter(domains[0], 0, open, false);
    rt_counter(domains[0], 0, rt_slots_open(), false);
    for (int i = 0; i < 200; i++)
        rt_counter(domains[0],
                   rt_range_is_open((uint32_t)id[i]) ? rt_range_text((uint32_t)id[i]) : 0,
                   rt_range_is_open((uint32_t)id[i]), false);
}

static void run(unsigned seed)
{
    pthread_t thread;
    state = seed;
    configure(seed);
    domains[0] = &rt_domains[0];
    domains[1] = rt_domain_create("one");
    domains[2] = rt_domain_create("two");
    rt_domain_refresh();
    if (seed % 5 == 3)
        rt_set_tap(RT_TAP_NEXT, note);
    if (seed % 5 == 4)
        rt_domain_filter("one,default", NULL);
    rt_mark(domains[0], "first", NULL);
    for (unsigned i = 0; i < CALLS; i++)
        call_drawn();
    if (seed % 6 == 0)
        many_pushes();
    if (seed % 6 == 1)
        many_ranges();
    if (seed % 6 == 2)
        many_marks(5000);
    if (seed % 6 == 3) {
        uint64_t id = rt_range_start(domains[0], "of two threads", NULL);
        if (pthread_create(&thread, NULL, end_elsewhere, &id) == 0)
            pthread_join(thread, NULL);
        rt_range_end(domains[0], id);
    }
    if (seed % 6 == 4) {
        rt_domain_destroy(domains[2]);
        rt_mark(domains[2], "too late", NULL);
    }
    exit(0);
}

/* ---- records ---------------------------------------------------------------------------------- */

/* The place of the begin that has these ticks, for ends. */
static int64_t begin_of(const struct cap *c, size_t at)
{
    const struct mstx_rec *end = &c->rec[at].r;
    for (size_t i = at; i-- > 0;) {
        const struct mstx_rec *r = &c->rec[i].r;
        if ((r->type == MSTX_REC_BEGIN || r->type == MSTX_REC_PUSH) && r->ticks == end->arg &&
            r->id == end->id)
            return (int64_t)(at - i);
    }
    return 0;
}

static void put_record(struct ms_buf *b, const struct cap *c, size_t i)
{
    const struct cap_rec *k = &c->rec[i];
    const struct mstx_rec *r = &k->r;
    ms_buf_printf(b, "\n%u.%" PRIu64 " %u %u ", k->ring, k->part, r->type, r->flags);
    if (r->type >= MSTX_REC_CONT) {
        ms_buf_printf(b, "%08x", ms_crc32(0, r, sizeof *r));
        return;
    }
    const bool is_end = r->type == MSTX_REC_END || r->type == MSTX_REC_POP;
    ms_buf_printf(b, "%" PRIu64 " %s %s", r->type == MSTX_REC_THREAD ? 0 : r->id,
                  r->type <= MSTX_REC_COUNTER ? cap_text(c, r->name) : "",
                  r->domain != 0 ? cap_domain(c, r->domain) : "");
    if (is_end)
        ms_buf_printf(b, " %" PRId64, begin_of(c, i));
    else
        ms_buf_printf(b, " %" PRIu64, r->arg);
}

static void put_capture(struct ms_buf *b)
{
    struct cap c;
    if (cap_load(&c, 1, out) == 0) {
        ms_buf_puts(b, "none");
        return;
    }
    ms_buf_printf(b, "%zu files, %zu texts, %" PRIu64 " dropped, %u open, rank %d", c.files,
                  c.ntexts - cap_says(&c, MSTX_INFO, ""), c.dropped, c.open_files, c.head.rank);
    for (size_t i = 1; i <= c.ntexts; i++) {
        const struct mstx_text *e = c.text[i];
        if (e->kind != MSTX_INFO && e->kind != MSTX_THREAD)
            ms_buf_printf(b, "\n%u %u %" PRIu64 " %s", e->kind, e->domain, e->key,
                          (const char *)(e + 1));
    }
    for (size_t i = 0; i < c.n; i++) {
        if (c.rec[i].ring != 0 && c.rec[i].r.type != MSTX_REC_USE)
            put_record(b, &c, i);
    }
    cap_free(&c);
}

static const char *directory(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(out, sizeof out, "%.30s/msprobe-rt-drawn-%d", tmp != NULL ? tmp : "/tmp",
             (int)getpid());
    return out;
}

START_TEST(drawn_processes)
{
    struct ms_buf all = {.max = 1 << 20};
    directory();
    for (unsigned seed = 0; seed < PROCESSES; seed++) {
        struct ms_buf b = {.max = 1 << 24};
        int status;
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0)
            run(seed);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
        put_capture(&b);
        if (recorded_shows)
            printf("== %u\n%s\n", seed, ms_buf_z(&b));
        ms_buf_printf(&all, "process %u: %08x\n", seed, ms_crc32(0, b.p, b.n));
        ms_buf_free(&b);
        scratch_remove(out);
    }
    /* A flight recorder keeps by time: under valgrind, where a process takes seconds, it keeps less. */
    if (getenv("TIMES_ARE_OTHERS") != NULL)
        ms_buf_free(&all);
    else
        recorded_check(&all, "processes");
}
END_TEST

RECORDED_MAIN("rt_drawn", drawn_processes)

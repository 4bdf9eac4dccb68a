/* SPDX-License-Identifier: MIT
 *
 * advice: see the header.
 */
#include "mstx/conclude/advice.h"

#include "mstx/conclude/breakdown.h"
#include "mstx/conclude/finding_kinds.h"
#include "mstx/rundb/run_schema.h"

#include "probe/base/order.h"
#include "probe/base/store.h"

#include <inttypes.h>
#include <stdio.h>

/* The least share of the steps that is worth a line.  Set before the first recording of the programs of
 * tests/programs/wasteful.py, whose causes take 50 to 96 % of the steps. */
static const double LEAST_SHARE = 0.1;
/* Launches of which most take longer than what they launch, and the least number that tells. */
static const double MOSTLY = 0.5;
enum { LAUNCHES_LEAST = 100, PACKET_BYTES = 1 << 16, PACKETS_LEAST = 8, SYNCS_LEAST = 2 };

/* One profiled process. */
struct host {
    struct mstx_tl *tl;
    const struct mstx_process *p;
    const struct mstx_rank_breakdown *device; /* NULL: it has no kernels */
    uint32_t index;
    int64_t base_ns; /* all steps; without steps the time in which its devices worked; else 0 */
    int64_t steps;
    int64_t idle_ns; /* of the devices, waiting for the host; without devices base_ns */
    mstx_findings *to;
};

/* ---- one piece of advice --------------------------------------------------------------- */

struct piece {
    const char *kind;
    const struct ms_message_kind *message;
    int64_t events, total_ns, gain_ns;
};

/* Adds a piece of advice, unless it would save little. */
static enum ms_rc advise(const struct host *h, const struct piece *a, const char *where,
                         struct ms_err *err)
{
    const double share = h->base_ns > 0 ? (double)a->gain_ns / (double)h->base_ns : 0;
    if (share < LEAST_SHARE)
        return MS_OK;
    struct mstx_finding *f =
        mstx__finding_begin(h->to, a->kind, a->message, MSTX_INFO_FINDING, h->p->rank, share);
    if (f == NULL)
        return ms_no_memory(err);
    mstx__message_process(&f->message, h->p->rank, h->p->pid, h->p->name);
    ms_message_i64(&f->message, "events", a->events);
    ms_message_i64(&f->message, "total_ns", a->total_ns);
    ms_message_i64(&f->message, "gain_ns", a->gain_ns / (h->steps != 0 ? h->steps : 1));
    ms_message_f64(&f->message, "share", share);
    if (h->steps != 0)
        ms_message_i64(&f->message, "steps", h->steps);
    snprintf(f->evidence, sizeof f->evidence,
             "SELECT name, start_ns, dur_ns FROM events WHERE pid = %" PRIu32 " AND %s", h->p->pid,
             where);
    return MS_OK;
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- what the host does ------------------------------------------------------------------- */

/* Ranges of threads, known by patterns of GLOB.  Ranges of one cause may lie within each other, so of
 * the names that match, the one that takes longest counts. */
enum { NAMES = 2, NAME_SHOWN = 80 };
static const struct {
    const char *kind;
    const struct ms_message_kind *message;
    const char *name[NAMES];
    int64_t least;   /* events in a step */
    bool on_devices; /* only where the process has a device */
} causes[] = {
    {"data_loading", &mstx_say_advise_data, {"enumerate(DataLoader)*", ""}, 0, false},
    {"garbage_collection",
     &mstx_say_advise_garbage,
     {"Python GC*", "<built-in function collect>"},
     0,
     false},
    {"synchronisation", &mstx_say_advise_sync, {"*Synchronize*", ""}, SYNCS_LEAST, true},
};

/* Sums the name that takes longest of those that match. */
static enum ms_rc sum_named(const struct host *h, const char *const name[NAMES], struct piece *a,
                            char shown[NAME_SHOWN], struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(mstx_tl_store(h->tl), &st,
                            "SELECT sum(n.events), sum(n.total_ns), s.value FROM tracks t"
                            " JOIN names n ON n.track = t.id JOIN strings s ON s.id = n.name"
                            " WHERE t.process = ? AND t.kind = 0"
                            " AND (s.value GLOB ? OR s.value GLOB ?)"
                            " GROUP BY s.id ORDER BY 2 DESC LIMIT 1",
                            err));
    ms_stmt_i64(st, 1, h->index + 1);
    for (int i = 0; i < NAMES; i++)
        ms_stmt_str(st, 2 + i, ms_str_of(name[i]));
    const enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more) {
        const struct ms_str text = ms_stmt_get_str(st, 2);
        a->events = ms_stmt_get_i64(st, 0);
        a->total_ns = ms_stmt_get_i64(st, 1);
        const bool is_plain = ms_str_find(text, '\'') < 0 && text.n < NAME_SHOWN / 2 + 30;
        snprintf(shown, NAME_SHOWN, is_plain ? "= '%.*s'" : "GLOB '%.*s'",
                 MS_STR_ARG(is_plain ? text : ms_str_of(name[0])));
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc advise_causes(const struct host *h, struct ms_err *err)
{
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        struct piece a = {.kind = causes[i].kind, .message = causes[i].message};
        char shown[NAME_SHOWN] = "", where[NAME_SHOWN + 8];
        if (causes[i].on_devices && h->device == NULL)
            continue;
        MS_TRY(sum_named(h, causes[i].name, &a, shown, err));
        if (a.events < causes[i].least * h->steps)
            continue;
        a.gain_ns = lesser(a.total_ns, h->idle_ns);
        snprintf(where, sizeof where, "name %s", shown);
        MS_TRY(advise(h, &a, where, err));
    }
    return MS_OK;
}

/* ---- what the devices do ------------------------------------------------------------------- */

/* Returns how long the devices waited for the host: that share of their idle time which was so on
 * their streams. */
static int64_t waited_for_host(const struct mstx_rank_breakdown *b)
{
    double host = 0, all = 0;
    for (size_t i = 0; i < b->idle.n; i++) {
        host += (double)b->idle.p[i].ns[MSTX_IDLE_HOST];
        for (int k = 0; k < MSTX_IDLES; k++)
            all += (double)b->idle.p[i].ns[k];
    }
    return all > 0 ? (int64_t)((double)(b->window_ns - b->busy_ns) * host / all) : 0;
}

static enum ms_rc advise_devices(const struct host *h, struct ms_err *err)
{
    const struct mstx_rank_breakdown *b = h->device;
    const struct mstx_launches *l = &b->launches;
    const bool is_brief =
        l->pairs >= LAUNCHES_LEAST && (double)l->brief >= MOSTLY * (double)l->pairs;
    const struct piece waits = {.kind = is_brief ? "brief_kernels" : "host_bound",
                                .message =
                                    is_brief ? &mstx_say_advise_brief : &mstx_say_advise_host,
                                .events = is_brief ? (int64_t)l->brief : (int64_t)l->pairs,
                                .total_ns = b->window_ns - b->busy_ns,
                                .gain_ns = h->idle_ns};
    MS_TRY(advise(h, &waits, "domain = 'kernels'", err));
    const int64_t exposed = b->work_ns[MSTX_WORK_COMM] - b->overlap_ns;
    const struct piece comm = {.kind = "exposed_communication",
                               .message = &mstx_say_advise_overlap,
                               .total_ns = b->work_ns[MSTX_WORK_COMM],
                               .gain_ns =
                                   lesser(exposed, b->work_ns[MSTX_WORK_COMPUTE] - b->overlap_ns)};
    return advise(h, &comm, "domain = 'kernels' AND name GLOB '*ccl*'", err);
}

static enum ms_rc advise_packets(const struct host *h, struct ms_err *err)
{
    struct piece a = {.kind = "small_packets", .message = &mstx_say_advise_packets};
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(mstx_tl_store(h->tl), &st,
                            "SELECT count(*), sum(end_ns - start_ns) FROM comm_ops"
                            " WHERE process = ? AND bytes BETWEEN 1 AND ?",
                            err));
    ms_stmt_i64(st, 1, h->index + 1);
    ms_stmt_i64(st, 2, PACKET_BYTES - 1);
    const enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more) {
        a.events = ms_stmt_get_i64(st, 0);
        a.total_ns = a.gain_ns = ms_stmt_get_i64(st, 1);
    }
    ms_stmt_free(st);
    if (rc != MS_OK || a.events < PACKETS_LEAST * (h->steps != 0 ? h->steps : 1))
        return rc;
    return advise(h, &a, "domain = 'kernels' AND name GLOB '*ccl*'", err);
}

/* ---- all processes -------------------------------------------------------------------------- */

static void measure_base(struct host *h, const struct mstx_steps *steps, const mstx_breakdown *b)
{
    for (size_t i = 0; i < steps->list.n; i++) {
        const struct mstx_step *s = &steps->list.p[i];
        if (s->process != h->index)
            continue;
        h->steps++;
        h->base_ns += s->end_ns - s->start_ns;
    }
    h->idle_ns = h->base_ns;
    for (size_t i = 0; i < b->n; i++) {
        if (b->p[i].process != h->index)
            continue;
        h->device = &b->p[i];
        h->idle_ns = waited_for_host(h->device);
        h->base_ns = h->steps != 0 ? h->base_ns : h->device->window_ns;
    }
}

static int by_share(const void *pa, const void *pb)
{
    const struct mstx_finding *a = pa, *b = pb;
    return (a->value < b->value) - (a->value > b->value);
}

static enum ms_rc advise_all(struct mstx_tl *tl, const struct mstx_steps *steps,
                             const mstx_breakdown *b, mstx_findings *to, struct ms_err *err)
{
    for (uint32_t i = 0; i < mstx_tl_process_count(tl); i++) {
        struct host h = {.tl = tl, .p = mstx_tl_process(tl, i), .index = i, .to = to};
        if (!ms_str_is(h.p->tool, MSTX_TOOL_KINETO))
            continue;
        measure_base(&h, steps, b);
        MS_TRY(advise_causes(&h, err));
        if (h.device != NULL)
            MS_TRY(advise_devices(&h, err));
        MS_TRY(advise_packets(&h, err));
    }
    ms_vec_sort(to, by_share);
    return MS_OK;
}

/* Tells whether a profiler recorded any process. */
static bool has_profile(struct mstx_tl *tl)
{
    for (uint32_t i = 0; i < mstx_tl_process_count(tl); i++) {
        if (ms_str_is(mstx_tl_process(tl, i)->tool, MSTX_TOOL_KINETO))
            return true;
    }
    return false;
}

enum ms_rc mstx_advice_measure(struct mstx_tl *tl, const struct mstx_steps *steps,
                               mstx_findings *advice, struct ms_err *err)
{
    mstx_breakdown b = {0};
    if (!has_profile(tl))
        return MS_OK;
    enum ms_rc rc = mstx_breakdown_measure(tl, &b, err);
    if (rc == MS_OK)
        rc = advise_all(tl, steps, &b, advice, err);
    mstx_breakdown_free(&b);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * mem_from_run: the heaps and regions that allocators announced in a run, through mstx or NVTX or
 * by the recorder of `msprobe run --memory`, which names each region with its stack.
 *
 * A region becomes a block, a heap becomes memory that the allocator holds. A stack in a name is
 * folded, "train.py:12 step;adam.py:80 step", the outermost frame first.
 */
#include "mstx/memory/mem_kinds.h"
#include "mstx/memory/mem_read.h"

#include "mstx/conclude/run_ready.h"
#include "mstx/conclude/steps.h"
#include "mstx/format/memory_names.h"

#include "probe/base/order.h"

#include <string.h>

struct heap {
    int64_t at_ns, bytes;
};

struct reader {
    struct mstx_mem_log *log;
    struct mstx_tl *tl;
    mstx_mem_events events;
    MS_VEC(struct heap) heaps; /* taken (> 0) and given back (< 0) */
    struct ms_map names;       /* numbers of texts, as bytes */
    MS_VEC(uint32_t) site;     /* by name */
};

/* ---- who allocates ------------------------------------------------------------------------- */

/* Reads "train.py:12 step" into a frame. */
static struct mstx_mem_frame frame_of(struct ms_str text)
{
    struct mstx_mem_frame f = {.file = MS_STR(""), .function = text};
    const int64_t space = ms_str_find(text, ' ');
    const int64_t colon = space > 0 ? ms_str_rfind(ms_str_sub(text, 0, (uint32_t)space), ':') : -1;
    if (colon > 0 && ms_str_i64(ms_str_sub(text, (uint32_t)colon + 1, (uint32_t)space), &f.line)) {
        f.file = ms_str_sub(text, 0, (uint32_t)colon);
        f.function = ms_str_sub(text, (uint32_t)space + 1, text.n);
    }
    return f;
}

static enum ms_rc make_site(struct reader *r, struct ms_str name, uint32_t *number,
                            struct ms_err *err)
{
    enum { FRAMES_MAX = 256 };
    struct mstx_mem_frame frame[FRAMES_MAX];
    struct mstx_mem_site site = {0};
    struct ms_str part;
    size_t n = 0;
    if (!ms_str_skip(&name, MSTX_MEMORY_STACK)) {
        site.op = ms_str_is(name, "region") ? 0 : mstx__mem_text(r->log, name);
        return mstx__mem_site(r->log, &site, number, err);
    }
    while (n < FRAMES_MAX && ms_str_split(&name, ';', &part))
        frame[n++] = frame_of(part);
    for (size_t i = 0; i < n / 2; i++) { /* the innermost first */
        const struct mstx_mem_frame other = frame[i];
        frame[i] = frame[n - 1 - i];
        frame[n - 1 - i] = other;
    }
    MS_TRY(mstx__mem_site_of_stack(r->log, frame, n, false, &site, err));
    return mstx__mem_site(r->log, &site, number, err);
}

static enum ms_rc find_site(struct reader *r, uint32_t name, uint32_t *number, struct ms_err *err)
{
    bool added;
    const uint32_t at = ms_map_put_copy(
        &r->names, (struct ms_str){(const char *)&name, sizeof name}, r->log->arena, &added);
    uint32_t *slot = at != MS_MAP_NONE && added ? ms_vec_push(&r->site) : NULL;
    if (at == MS_MAP_NONE || (added && slot == NULL))
        return ms_no_memory(err);
    if (added)
        MS_TRY(make_site(r, mstx_tl_text(r->tl, name), slot, err));
    *number = r->site.p[at];
    return MS_OK;
}

/* ---- regions and heaps ---------------------------------------------------------------------- */

static enum ms_rc add_heap(struct reader *r, const struct mstx_event *e, struct ms_err *err)
{
    const bool ends = !(e->flags & MSTX_EVF_UNFINISHED);
    struct heap *slot = ms_vec_push(&r->heaps);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct heap){e->start_ns, (int64_t)e->size};
    slot = ends ? ms_vec_push(&r->heaps) : slot;
    if (slot == NULL)
        return ms_no_memory(err);
    if (ends)
        *slot = (struct heap){e->start_ns + e->dur_ns, -(int64_t)e->size};
    return MS_OK;
}

static enum ms_rc add_region(void *ctx, const struct mstx_event *e, struct ms_err *err)
{
    struct reader *r = ctx;
    struct mstx_mem_event m = {.at_ns = e->start_ns, .address = e->arg, .bytes = (int64_t)e->size};
    if (e->kind != MSTX_EV_REGION || e->size == 0 || e->size > MSTX_MEM_BYTES_MAX)
        return MS_OK;
    if (ms_str_is(mstx_tl_text(r->tl, e->name), "heap"))
        return add_heap(r, e, err);
    MS_TRY(find_site(r, e->name, &m.site, err));
    for (int i = 0; i < 2; i++) {
        struct mstx_mem_event *slot = ms_vec_push(&r->events);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = m;
        if (e->flags & MSTX_EVF_UNFINISHED)
            break;
        m.at_ns = e->start_ns + e->dur_ns;
        m.bytes = 0;
    }
    return MS_OK;
}

static int by_time(const void *pa, const void *pb)
{
    const struct heap *a = pa, *b = pb;
    return MS_ORDER(a->at_ns, b->at_ns, MS_ORDER(b->bytes, a->bytes, 0));
}

/* Tells heaps as pools. A pool belongs to the number of blocks that were begun before it. */
static enum ms_rc tell_heaps(struct reader *r, struct mstx_mem_space *s, struct ms_err *err)
{
    size_t block = 0;
    ms_vec_sort(&r->heaps, by_time);
    for (size_t i = 0; i < r->heaps.n; i++) {
        while (block < s->blocks.n && s->blocks.p[block].begin_ns <= r->heaps.p[i].at_ns)
            block++;
        MS_TRY(mstx__mem_pool_change(s, r->heaps.p[i].bytes, err));
        s->pools.p[s->pools.n - 1].event = block != 0 ? s->blocks.p[block - 1].begin : 0;
    }
    return MS_OK;
}

/* A record of a free has no stack: it happens in the phase of the allocation before it. */
static enum ms_rc set_phases(struct reader *r, struct ms_err *err)
{
    uint8_t phase = MSTX_PHASE_NONE;
    MS_TRY(mstx__mem_sort(&r->events, err));
    for (size_t i = 0; i < r->events.n; i++) {
        struct mstx_mem_event *e = &r->events.p[i];
        const uint8_t own = r->log->sites.p[e->site].phase;
        if (e->bytes > 0 && own != MSTX_PHASE_NONE)
            phase = own;
        e->phase = phase;
    }
    return MS_OK;
}

static enum ms_rc copy_steps(const struct mstx_steps *steps, uint32_t process,
                             struct mstx_mem_space *s, struct ms_err *err)
{
    for (size_t i = 0; i < steps->list.n; i++) {
        const struct mstx_step *from = &steps->list.p[i];
        struct mstx_mem_step *to = from->process == process ? ms_vec_push(&s->steps) : NULL;
        if (from->process != process)
            continue;
        if (to == NULL)
            return ms_no_memory(err);
        *to = (struct mstx_mem_step){from->number, from->start_ns, from->end_ns};
    }
    return MS_OK;
}

static enum ms_rc read_track(struct reader *r, size_t track, const struct mstx_steps *steps,
                             struct ms_err *err)
{
    const struct mstx_track *t = mstx_tl_track(r->tl, track);
    const struct mstx_process *p = mstx_tl_process(r->tl, t->process);
    struct mstx_mem_space *s;
    struct ms_buf name = {.max = 1 << 12};
    r->events.n = r->heaps.n = 0;
    MS_TRY(mstx_tl_walk(r->tl, track, NULL, add_region, r, err));
    if (ms_str_is(t->domain, MSTX_MEMORY_DOMAIN))
        ms_buf_puts(&name, "cpu");
    else
        ms_buf_printf(&name, "device %u", t->device);
    if (p->rank < 0)
        ms_buf_printf(&name, " of process %u", p->pid);
    enum ms_rc rc = ms_buf_check(&name, err);
    if (rc == MS_OK)
        rc = mstx__mem_space(r->log, p->rank, ms_buf_slice(&name), &s, err);
    ms_buf_free(&name);
    MS_TRY(rc);
    MS_TRY(copy_steps(steps, t->process, s, err));
    MS_TRY(set_phases(r, err));
    MS_TRY(mstx__mem_replay(s, &r->events, err));
    return tell_heaps(r, s, err);
}

static enum ms_rc read_tracks(struct reader *r, const char *path, struct ms_err *err)
{
    struct mstx_steps steps = {0};
    size_t read = 0;
    MS_TRY(mstx_steps_find(r->tl, &steps, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < mstx_tl_track_count(r->tl) && rc == MS_OK; i++) {
        if (mstx_tl_track(r->tl, i)->kind != MSTX_TRACK_MEMORY)
            continue;
        rc = read_track(r, i, &steps, err);
        read++;
    }
    mstx_steps_free(&steps);
    if (rc == MS_OK && read == 0)
        rc = ms_fail(err, MS_E_NOTFOUND,
                     "%s: the run has no record of memory use; record it with 'msprobe run "
                     "--memory'",
                     path);
    return rc;
}

enum ms_rc mstx__mem_from_run(struct mstx_mem_log *log, const char *path, int32_t rank,
                              struct ms_err *err)
{
    struct reader r = {.log = log};
    (void)rank;
    MS_TRY(mstx_run_open(&r.tl, path, NULL, err));
    enum ms_rc rc = read_tracks(&r, path, err);
    if (rc == MS_OK)
        rc = mstx__tl_check(r.tl, err);
    mstx_tl_close(r.tl);
    ms_vec_free(&r.events);
    ms_vec_free(&r.heaps);
    ms_vec_free(&r.site);
    ms_map_free(&r.names);
    return rc;
}

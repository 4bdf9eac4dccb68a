/* SPDX-License-Identifier: MIT
 *
 * mem_log: see the header. The open blocks of a space are found by address in a table with linear
 * probing, whose removed entries close up, so that its size follows the blocks that live at once
 * and not those of the whole record.
 */
#include "mstx/memory/mem_log.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdio.h>
#include <string.h>

static const size_t TEXTS_MAX = (size_t)4 << 30;

const char *mstx__mem_kind_text(enum mstx_mem_kind kind)
{
    static const char *const texts[] = {
#define MSTX_MEM_KIND(name, text) text,
        MSTX_MEM_KINDS(MSTX_MEM_KIND)
#undef MSTX_MEM_KIND
    };
    ms_assert(kind < MSTX_MEM_KIND_COUNT);
    return texts[kind];
}

/* ---- open blocks by address ------------------------------------------------------------ */

struct entry {
    uint64_t address;
    uint32_t block; /* index + 1; 0: free */
};
struct mstx_mem_live {
    struct entry *entry;
    size_t mask, used;
};

static size_t slot_of(const struct mstx_mem_live *l, uint64_t address)
{
    return (size_t)(ms_hash_mix(0, address)) & l->mask;
}

static struct entry *live_find(const struct mstx_mem_live *l, uint64_t address)
{
    for (size_t i = slot_of(l, address);; i = (i + 1) & l->mask) {
        struct entry *e = &l->entry[i];
        if (e->block == 0 || e->address == address)
            return e;
    }
}

static bool live_resize(struct mstx_mem_live *l, size_t slots)
{
    const struct mstx_mem_live old = *l;
    struct entry *more = ms_calloc(slots, sizeof *more);
    if (more == NULL)
        return false;
    l->entry = more;
    l->mask = slots - 1;
    for (size_t i = 0; old.entry != NULL && i <= old.mask; i++) {
        if (old.entry[i].block != 0)
            *live_find(l, old.entry[i].address) = old.entry[i];
    }
    ms_free(old.entry);
    return true;
}

static bool live_put(struct mstx_mem_live *l, uint64_t address, uint32_t block)
{
    if (l->entry == NULL || 2 * (l->used + 1) > l->mask) {
        if (!live_resize(l, l->entry == NULL ? 64 : 2 * (l->mask + 1)))
            return false;
    }
    struct entry *e = live_find(l, address);
    l->used += e->block == 0;
    *e = (struct entry){address, block + 1};
    return true;
}

/* Removes an entry and moves those behind it that would no longer be found. */
static void live_remove(struct mstx_mem_live *l, struct entry *e)
{
    size_t hole = (size_t)(e - l->entry);
    ms_assert(e->block != 0 && l->used > 0);
    for (size_t i = (hole + 1) & l->mask; l->entry[i].block != 0; i = (i + 1) & l->mask) {
        const size_t home = slot_of(l, l->entry[i].address);
        if (((i - home) & l->mask) >= ((i - hole) & l->mask)) {
            l->entry[hole] = l->entry[i];
            hole = i;
        }
    }
    l->entry[hole].block = 0;
    l->used--;
}

/* ---- the log ----------------------------------------------------------------------------- */

enum ms_rc mstx__mem_log_new(struct mstx_mem_log **out, struct ms_err *err)
{
    struct mstx_mem_log *log = ms_calloc(1, sizeof *log);
    *out = log;
    if (log == NULL)
        return ms_no_memory(err);
    log->arena = ms_arena_new(TEXTS_MAX);
    struct mstx_mem_site *nobody = ms_vec_push(&log->sites);
    if (nobody != NULL)
        *nobody = (struct mstx_mem_site){0};
    if (log->arena != NULL && nobody != NULL && ms_map_put(&log->texts, MS_STR(""), NULL) == 0)
        return MS_OK;
    mstx__mem_log_free(log);
    *out = NULL;
    return ms_no_memory(err);
}

static void space_free(struct mstx_mem_space *s)
{
    ms_vec_free(&s->blocks);
    ms_vec_free(&s->changes);
    ms_vec_free(&s->pools);
    ms_vec_free(&s->steps);
    ms_vec_free(&s->failures);
    ms_vec_free(&s->totals);
    if (s->live != NULL)
        ms_free(s->live->entry);
    ms_free(s->live);
    ms_free(s);
}

void mstx__mem_log_free(struct mstx_mem_log *log)
{
    if (log == NULL)
        return;
    for (size_t i = 0; i < log->spaces.n; i++)
        space_free(log->spaces.p[i]);
    ms_vec_free(&log->spaces);
    ms_vec_free(&log->sites);
    ms_vec_free(&log->notes);
    ms_map_free(&log->texts);
    ms_map_free(&log->site_keys);
    ms_arena_free(log->arena);
    ms_free(log);
}

enum ms_rc mstx__mem_space(struct mstx_mem_log *log, int32_t rank, struct ms_str device,
                           struct mstx_mem_space **out, struct ms_err *err)
{
    for (size_t i = 0; i < log->spaces.n; i++) {
        *out = log->spaces.p[i];
        if ((*out)->rank == rank && ms_str_eq((*out)->device, device))
            return MS_OK;
    }
    struct mstx_mem_space *s = ms_calloc(1, sizeof *s);
    struct mstx_mem_space **slot = s != NULL ? ms_vec_push(&log->spaces) : NULL;
    if (slot == NULL) {
        ms_free(s);
        return ms_no_memory(err);
    }
    *slot = *out = s;
    s->rank = rank;
    s->live = ms_calloc(1, sizeof *s->live);
    s->device = ms_arena_str(log->arena, device);
    return s->live != NULL && s->device.p != NULL ? MS_OK : ms_no_memory(err);
}

uint32_t mstx__mem_text(struct mstx_mem_log *log, struct ms_str text)
{
    return text.n == 0 ? 0 : ms_map_put_copy(&log->texts, text, log->arena, NULL);
}

struct ms_str mstx__mem_text_of(const struct mstx_mem_log *log, uint32_t text)
{
    return ms_map_key(&log->texts, text);
}

enum ms_rc mstx__mem_site(struct mstx_mem_log *log, const struct mstx_mem_site *site,
                          uint32_t *number, struct ms_err *err)
{
    struct {
        uint32_t text[4], rest;
    } key = {{site->module, site->op, site->frame, site->stack},
             (uint32_t)site->phase << 8 | site->kind};
    bool added;
    const struct ms_str k = {(const char *)&key, sizeof key};
    const uint32_t at = ms_map_put_copy(&log->site_keys, k, log->arena, &added);
    if (site->module == MS_MAP_NONE || site->op == MS_MAP_NONE || site->frame == MS_MAP_NONE ||
        site->stack == MS_MAP_NONE || at == MS_MAP_NONE)
        return ms_no_memory(err);
    *number = at + 1;
    struct mstx_mem_site *slot = added ? ms_vec_push(&log->sites) : NULL;
    if (!added)
        return MS_OK;
    if (slot == NULL)
        return ms_no_memory(err);
    ms_assert(log->sites.n == (size_t)at + 2);
    *slot = *site;
    return MS_OK;
}

enum ms_rc mstx__mem_note(struct mstx_mem_log *log, struct ms_err *err, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    struct ms_str *slot = ms_vec_push(&log->notes);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = ms_arena_str(log->arena, ms_str_of(text));
    return slot->p != NULL ? MS_OK : ms_no_memory(err);
}

/* ---- events -------------------------------------------------------------------------------- */

static enum ms_rc add_change(struct mstx_mem_space *s, int64_t bytes, struct ms_err *err)
{
    if (s->changes.n >= MSTX_MEM_EVENTS_MAX)
        return ms_fail(err, MS_E_LIMIT, "more than 4,294,967,294 events of one device");
    int64_t *slot = ms_vec_push(&s->changes);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = bytes;
    return MS_OK;
}

static enum ms_rc open_block(struct mstx_mem_space *s, const struct mstx_mem_block *b,
                             struct ms_err *err)
{
    if (b->bytes > MSTX_MEM_BYTES_MAX)
        return ms_fail(err, MS_E_FORMAT, "an allocation of %llu bytes, more than any device has",
                       (unsigned long long)b->bytes);
    struct mstx_mem_block *slot = ms_vec_push(&s->blocks);
    if (slot == NULL || !live_put(s->live, b->address, (uint32_t)(s->blocks.n - 1)))
        return ms_no_memory(err);
    *slot = *b;
    return MS_OK;
}

enum ms_rc mstx__mem_earlier(struct mstx_mem_space *s, uint64_t address, uint64_t bytes,
                             uint32_t site, uint8_t kind, struct ms_err *err)
{
    ms_assert(s->changes.n == 0);
    const struct mstx_mem_block b = {.begin_ns = MSTX_MEM_NO_TIME,
                                     .end_ns = MSTX_MEM_NO_TIME,
                                     .address = address,
                                     .bytes = bytes,
                                     .begin = 0,
                                     .end = MSTX_MEM_NEVER,
                                     .site = site,
                                     .kind = kind};
    return open_block(s, &b, err);
}

/* Ends a block with the next event. */
static enum ms_rc close_block(struct mstx_mem_space *s, struct entry *e, int64_t at_ns,
                              uint8_t phase, struct ms_err *err)
{
    struct mstx_mem_block *b = &s->blocks.p[e->block - 1];
    MS_TRY(add_change(s, -(int64_t)b->bytes, err));
    b->end = (uint32_t)s->changes.n;
    b->end_ns = at_ns;
    b->end_phase = phase;
    live_remove(s->live, e);
    return MS_OK;
}

enum ms_rc mstx__mem_alloc(struct mstx_mem_space *s, int64_t at_ns, uint64_t address,
                           uint64_t bytes, uint32_t site, uint8_t kind, struct ms_err *err)
{
    struct entry *e = s->live->entry != NULL ? live_find(s->live, address) : NULL;
    if (e != NULL && e->block != 0)
        MS_TRY(close_block(s, e, at_ns, MSTX_PHASE_NONE, err));
    if (bytes <= MSTX_MEM_BYTES_MAX)
        MS_TRY(add_change(s, (int64_t)bytes, err));
    const struct mstx_mem_block b = {.begin_ns = at_ns,
                                     .end_ns = MSTX_MEM_NO_TIME,
                                     .address = address,
                                     .bytes = bytes,
                                     .begin = (uint32_t)s->changes.n,
                                     .end = MSTX_MEM_NEVER,
                                     .site = site,
                                     .kind = kind};
    return open_block(s, &b, err);
}

enum ms_rc mstx__mem_free(struct mstx_mem_space *s, int64_t at_ns, uint64_t address, uint8_t phase,
                          bool *found, struct ms_err *err)
{
    struct entry *e = s->live->entry != NULL ? live_find(s->live, address) : NULL;
    *found = e != NULL && e->block != 0;
    if (*found)
        return close_block(s, e, at_ns, phase, err);
    s->unmatched++;
    return MS_OK;
}

enum ms_rc mstx__mem_pool_change(struct mstx_mem_space *s, int64_t bytes, struct ms_err *err)
{
    struct mstx_mem_pool *slot = ms_vec_push(&s->pools);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct mstx_mem_pool){(uint32_t)s->changes.n, bytes};
    return MS_OK;
}

/* ---- events in any order ------------------------------------------------------------------- */

/* Of one time, in the order of the input: qsort need not be stable, so the order is a key. */
struct ordered {
    int64_t at_ns;
    size_t index;
};

static int by_time(const void *pa, const void *pb)
{
    const struct ordered *a = pa, *b = pb;
    return MS_ORDER(a->at_ns, b->at_ns, MS_ORDER(a->index, b->index, 0));
}

enum ms_rc mstx__mem_sort(mstx_mem_events *events, struct ms_err *err)
{
    size_t i = 1;
    while (i < events->n && events->p[i - 1].at_ns <= events->p[i].at_ns)
        i++;
    if (i >= events->n)
        return MS_OK;
    struct ordered *order = ms_alloc(events->n * sizeof *order);
    struct mstx_mem_event *sorted = ms_alloc(events->n * sizeof *sorted);
    if (order != NULL && sorted != NULL) {
        for (i = 0; i < events->n; i++)
            order[i] = (struct ordered){events->p[i].at_ns, i};
        ms_sort(order, events->n, sizeof *order, by_time);
        for (i = 0; i < events->n; i++)
            sorted[i] = events->p[order[i].index];
        memcpy(events->p, sorted, events->n * sizeof *sorted);
    }
    const bool done = order != NULL && sorted != NULL;
    ms_free(order);
    ms_free(sorted);
    return done ? MS_OK : ms_no_memory(err);
}

/* Tells the blocks that are freed, or freed again, without having been allocated: they lived
 * before the record. Addresses seen so far are kept in a table of their own. */
static enum ms_rc tell_earlier(struct mstx_mem_space *s, const mstx_mem_events *events,
                               struct ms_err *err)
{
    struct mstx_mem_live seen = {0};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < events->n && rc == MS_OK; i++) {
        const struct mstx_mem_event *e = &events->p[i];
        const bool is_new = seen.entry == NULL || live_find(&seen, e->address)->block == 0;
        if (is_new && e->bytes < 0)
            rc = mstx__mem_earlier(s, e->address, (uint64_t)-e->bytes, 0, MSTX_MEM_UNKNOWN, err);
        if (is_new && rc == MS_OK && !live_put(&seen, e->address, 0))
            rc = ms_no_memory(err);
    }
    ms_free(seen.entry);
    return rc;
}

enum ms_rc mstx__mem_replay(struct mstx_mem_space *s, mstx_mem_events *events, struct ms_err *err)
{
    MS_TRY(mstx__mem_sort(events, err));
    if (s->changes.n == 0)
        MS_TRY(tell_earlier(s, events, err));
    for (size_t i = 0; i < events->n; i++) {
        const struct mstx_mem_event *e = &events->p[i];
        bool found;
        if (e->bytes > 0)
            MS_TRY(mstx__mem_alloc(s, e->at_ns, e->address, (uint64_t)e->bytes, e->site, e->kind,
                                   err));
        else
            MS_TRY(mstx__mem_free(s, e->at_ns, e->address, e->phase, &found, err));
    }
    return MS_OK;
}

enum ms_rc mstx__mem_lists_grow(mstx_mem_lists *lists, const struct mstx_mem_log *log,
                                struct ms_err *err)
{
    while (lists->n < log->spaces.n) {
        mstx_mem_events *slot = ms_vec_push(lists);
        if (slot == NULL)
            return ms_no_memory(err);
        memset(slot, 0, sizeof *slot);
    }
    return MS_OK;
}

enum ms_rc mstx__mem_lists_add(mstx_mem_lists *lists, size_t space, const struct mstx_mem_event *e,
                               struct ms_err *err)
{
    ms_assert(space < lists->n);
    struct mstx_mem_event *slot = ms_vec_push(&lists->p[space]);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = *e;
    return MS_OK;
}

enum ms_rc mstx__mem_lists_replay(mstx_mem_lists *lists, struct mstx_mem_log *log,
                                  struct ms_err *err)
{
    ms_assert(lists->n <= log->spaces.n);
    for (size_t i = 0; i < lists->n; i++)
        MS_TRY(mstx__mem_replay(log->spaces.p[i], &lists->p[i], err));
    return MS_OK;
}

void mstx__mem_lists_free(mstx_mem_lists *lists)
{
    for (size_t i = 0; i < lists->n; i++)
        ms_vec_free(&lists->p[i]);
    ms_vec_free(lists);
}

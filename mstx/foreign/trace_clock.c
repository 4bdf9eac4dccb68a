/* SPDX-License-Identifier: MIT
 *
 * trace_clock: see the header.
 */
#include "mstx/foreign/trace_clock.h"

#include "probe/base/assert.h"
#include "probe/base/order.h"

#include <stdlib.h>
#include <string.h>

/* Traces tell microseconds with three decimals at most; some have none. */
static const int64_t ROUNDING_NS = 1000;

/* ---- what is shared ------------------------------------------------------------------- */

enum { OF_OTHERS, OF_TRACE, CLOCKS };

/* Clocks are aligned by small positive times, as those since a start of the system are. */
static const int64_t FIRST_NS = (int64_t)1 << 50;

/* A communicator of the trace: how many collectives it has, and whether they are those of others. */
struct told {
    uint32_t count;
    bool differs;
};
struct joining {
    struct mstx_trace_clocks *c;
    const mstx_trace_meetings *m;
    struct ms_map groups; /* of this trace */
    MS_VEC(struct told) told;
    struct mstx_meetings met;
    int64_t origin[CLOCKS]; /* time 0 of each clock where they are aligned */
};

static struct ms_str key_of_group(const struct mstx_trace_meeting *m)
{
    return (struct ms_str){(const char *)&m->group, sizeof m->group};
}

struct call_key {
    uint64_t group;
    uint64_t seq;
};

static uint32_t find_call(const struct mstx_trace_clocks *c, const struct mstx_trace_meeting *m)
{
    const struct call_key key = {m->group, m->seq};
    return ms_map_get(&c->calls, (struct ms_str){(const char *)&key, sizeof key});
}

/* Finds what this trace says of the communicator, NULL when out of memory. */
static struct told *told_of(struct joining *j, const struct mstx_trace_meeting *m)
{
    bool is_new;
    const uint32_t at = ms_map_put(&j->groups, key_of_group(m), &is_new);
    struct told *t = at == MS_MAP_NONE ? NULL : is_new ? ms_vec_push(&j->told) : &j->told.p[at];
    if (t != NULL && is_new)
        *t = (struct told){0};
    return t;
}

/* Compares the collectives of each communicator with those of the traces before. */
static bool compare_groups(struct joining *j)
{
    for (size_t i = 0; i < j->m->n; i++) {
        const struct mstx_trace_meeting *m = &j->m->p[i];
        struct told *t = told_of(j, m);
        if (t == NULL)
            return false;
        const uint32_t at = find_call(j->c, m);
        t->count++;
        t->differs |= at != MS_MAP_NONE &&
                      (j->c->call.p[at].op != m->op || j->c->call.p[at].bytes != m->bytes);
    }
    for (uint32_t g = 0; g < j->told.n; g++) {
        const uint32_t at = ms_map_get(&j->c->groups, ms_map_key(&j->groups, g));
        j->told.p[g].differs |= at != MS_MAP_NONE && j->c->count.p[at] != j->told.p[g].count;
    }
    return true;
}

static bool is_told_alike(struct joining *j, const struct mstx_trace_meeting *m)
{
    return !j->told.p[ms_map_get(&j->groups, key_of_group(m))].differs;
}

/* ---- the clock -------------------------------------------------------------------------- */

static bool add_meeting(struct joining *j, const struct mstx_trace_meeting *m, uint32_t host,
                        int64_t base_ns)
{
    const struct mstx_meeting one = {.uid = m->group,
                                     .seq = m->seq,
                                     .host = host,
                                     .start = m->start_ns + base_ns - j->origin[host],
                                     .end = m->end_ns + base_ns - j->origin[host],
                                     .op = m->op};
    return mstx__meeting_add(&j->met, &one);
}

/* Collects the collectives that both this trace and others have. */
static bool collect_shared(struct joining *j, int64_t base_ns, size_t *shared)
{
    for (size_t i = 0; i < j->m->n; i++) {
        const struct mstx_trace_meeting *m = &j->m->p[i];
        const uint32_t at = is_told_alike(j, m) ? find_call(j->c, m) : MS_MAP_NONE;
        if (at == MS_MAP_NONE)
            continue;
        const struct mstx_trace_meeting *other = &j->c->call.p[at];
        if (*shared == 0) {
            j->origin[OF_OTHERS] = other->start_ns - FIRST_NS;
            j->origin[OF_TRACE] = m->start_ns + base_ns - FIRST_NS;
        }
        if (!add_meeting(j, other, OF_OTHERS, 0) || !add_meeting(j, m, OF_TRACE, base_ns))
            return false;
        ++*shared;
    }
    return true;
}

/* Returns by how much the times of the trace break the bounds of the shared collectives. */
static int64_t contradiction(struct joining *j, const struct mstx_trace_time *t)
{
    int64_t most = 0;
    for (size_t i = 0; i < j->m->n; i++) {
        const struct mstx_trace_meeting *m = &j->m->p[i];
        const uint32_t at = is_told_alike(j, m) ? find_call(j->c, m) : MS_MAP_NONE;
        if (at == MS_MAP_NONE)
            continue;
        const struct mstx_trace_meeting *o = &j->c->call.p[at];
        const int64_t early = o->start_ns - mstx__trace_time(t, m->end_ns);
        const int64_t late = mstx__trace_time(t, m->start_ns) - o->end_ns;
        most = early > most ? early : most;
        most = late > most ? late : most;
    }
    return most;
}

/* Takes the points at which the clock of the trace is known from the aligned clocks. */
static void take_points(const struct joining *j, struct mstx_clocks *clocks,
                        struct mstx_trace_time *t, struct mstx_trace_joined *joined)
{
    struct mstx_host_clock *of = &clocks->host.p[OF_TRACE];
    t->moved = *of;
    of->apart.p = NULL;
    of->apart.n = of->apart.cap = 0;
    if (t->moved.apart.n == 0)
        return;
    for (size_t i = 0; i < t->moved.apart.n; i++) {
        struct mstx_apart *a = &t->moved.apart.p[i];
        a->at_ns += j->origin[OF_TRACE];
        a->offset_ns += j->origin[OF_OTHERS] - j->origin[OF_TRACE];
        joined->unsure_ns =
            a->uncertainty_ns > joined->unsure_ns ? a->uncertainty_ns : joined->unsure_ns;
    }
    joined->offset_ns = t->moved.apart.p[0].offset_ns;
}

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Moves the clock by one offset, if there is one that keeps all bounds. Devices end a collective nearly
 * together, so the median of the differences between their ends is a better guess than the middle of
 * the bounds. */
static bool move_evenly(struct joining *j, struct mstx_trace_time *t,
                        struct mstx_trace_joined *joined)
{
    int64_t low = INT64_MIN, high = INT64_MAX;
    MS_VEC(int64_t) ends = {0};
    bool ok = true;
    for (size_t i = 0; i < j->m->n && ok; i++) {
        const struct mstx_trace_meeting *m = &j->m->p[i];
        const uint32_t at = is_told_alike(j, m) ? find_call(j->c, m) : MS_MAP_NONE;
        if (at == MS_MAP_NONE)
            continue;
        const struct mstx_trace_meeting *o = &j->c->call.p[at];
        const int64_t least = o->start_ns - mstx__trace_time(t, m->end_ns);
        const int64_t most = o->end_ns - mstx__trace_time(t, m->start_ns);
        int64_t *slot = ms_vec_push(&ends);
        ok = slot != NULL;
        low = least > low ? least : low;
        high = most < high ? most : high;
        if (ok)
            *slot = o->end_ns - mstx__trace_time(t, m->end_ns);
    }
    struct mstx_apart *point = ok && low <= high ? ms_vec_push(&t->moved.apart) : NULL;
    if (point != NULL) {
        ms_vec_sort(&ends, by_number);
        const int64_t middle = ends.p[ends.n / 2];
        const int64_t offset = middle < low ? low : middle > high ? high : middle;
        joined->offset_ns = offset;
        joined->unsure_ns = offset - low > high - offset ? offset - low : high - offset;
        *point = (struct mstx_apart){.at_ns = t->base_ns + j->m->p[0].start_ns,
                                     .offset_ns = offset,
                                     .uncertainty_ns = joined->unsure_ns,
                                     .method = MSTX_APART_MEETINGS};
    }
    ms_vec_free(&ends);
    return joined->is_joined = point != NULL;
}

/* Moves the clock along one line for every two minutes. */
static enum ms_rc move_along(struct joining *j, struct mstx_trace_time *t,
                             struct mstx_trace_joined *joined, struct ms_err *err)
{
    struct mstx_clocks clocks = {0};
    enum ms_rc rc = MS_OK;
    if (!ms_vec_reserve(&clocks.host, CLOCKS))
        return ms_no_memory(err);
    clocks.host.n = CLOCKS;
    for (uint8_t i = 0; i < CLOCKS; i++)
        clocks.host.p[i] = (struct mstx_host_clock){.boot_id = {i}};
    rc = mstx__meetings_align(&j->met, &clocks, OF_OTHERS, err);
    if (rc == MS_OK)
        take_points(j, &clocks, t, joined);
    mstx__clocks_free(&clocks);
    joined->is_joined = rc == MS_OK && contradiction(j, t) <= ROUNDING_NS;
    if (!joined->is_joined)
        mstx__trace_time_free(t);
    return rc;
}

/* ---- what is known afterwards ------------------------------------------------------------- */

static bool keep_call(struct joining *j, struct ms_arena *keys, const struct mstx_trace_meeting *m,
                      const struct mstx_trace_time *t)
{
    struct mstx_trace_clocks *c = j->c;
    const struct call_key key = {m->group, m->seq};
    bool is_new;
    const uint32_t at =
        ms_map_put_copy(&c->calls, (struct ms_str){(const char *)&key, sizeof key}, keys, &is_new);
    struct mstx_trace_meeting *slot = at == MS_MAP_NONE ? NULL
                                      : is_new          ? ms_vec_push(&c->call)
                                                        : &c->call.p[at];
    if (slot == NULL)
        return false;
    const int64_t start = mstx__trace_time(t, m->start_ns), end = mstx__trace_time(t, m->end_ns);
    if (is_new) {
        *slot = *m;
        slot->start_ns = start;
        slot->end_ns = end;
    } else if (is_told_alike(j, m)) {
        slot->start_ns = start > slot->start_ns ? start : slot->start_ns;
        slot->end_ns = end < slot->end_ns ? end : slot->end_ns;
    }
    return true;
}

static bool keep_all(struct joining *j, struct ms_arena *keys, const struct mstx_trace_time *t)
{
    for (size_t i = 0; i < j->m->n; i++) {
        if (!keep_call(j, keys, &j->m->p[i], t))
            return false;
    }
    for (uint32_t g = 0; g < j->told.n; g++) {
        bool is_new;
        if (ms_map_put_copy(&j->c->groups, ms_map_key(&j->groups, g), keys, &is_new) == MS_MAP_NONE)
            return false;
        uint32_t *slot = is_new ? ms_vec_push(&j->c->count) : NULL;
        if (is_new && slot == NULL)
            return false;
        if (is_new)
            *slot = j->told.p[g].count;
    }
    return true;
}

enum ms_rc mstx__trace_clock_join(struct mstx_trace_clocks *c, const mstx_trace_meetings *m,
                                  struct ms_arena *keys, struct mstx_trace_time *t,
                                  struct mstx_trace_joined *joined, struct ms_err *err)
{
    struct joining j = {.c = c, .m = m};
    ms_assert(t->moved.apart.n == 0);
    *joined = (struct mstx_trace_joined){0};
    bool ok = compare_groups(&j) && collect_shared(&j, t->base_ns, &joined->shared);
    joined->disagrees = ok && contradiction(&j, t) > ROUNDING_NS;
    enum ms_rc rc = ok ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK && joined->disagrees)
        rc = move_evenly(&j, t, joined) ? MS_OK : move_along(&j, t, joined, err);
    /* A trace whose clock stays apart would contradict all that follow. */
    if (rc == MS_OK && (!joined->disagrees || joined->is_joined) && !keep_all(&j, keys, t))
        rc = ms_no_memory(err);
    ms_map_free(&j.groups);
    ms_vec_free(&j.told);
    ms_vec_free(&j.met.list);
    return rc;
}

double mstx__trace_drift(const struct mstx_trace_time *t)
{
    ms_assert(t->moved.apart.n != 0);
    const struct mstx_apart *first = t->moved.apart.p, *last = first + t->moved.apart.n - 1;
    const double run = (double)(last->at_ns - first->at_ns);
    return run > 0 ? (double)(last->offset_ns - first->offset_ns) / run : 0;
}

void mstx__trace_time_free(struct mstx_trace_time *t)
{
    ms_vec_free(&t->moved.apart);
    t->moved = (struct mstx_host_clock){0};
}

void mstx__trace_clocks_free(struct mstx_trace_clocks *c)
{
    ms_map_free(&c->calls);
    ms_map_free(&c->groups);
    ms_vec_free(&c->call);
    ms_vec_free(&c->count);
}

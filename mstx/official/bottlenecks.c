/* SPDX-License-Identifier: MIT
 *
 * bottlenecks: the longest communication operations of the first rank; who came last to each, and where
 * that rank lost its time.
 *
 *     fast   ── a ── b ──│███████████ operation │     waits for the slow one: the longest
 *     slow   ── a ────── b ───────────│████████ │     the shortest
 *
 * Both end together, so the difference of the ends is that of the clocks.  The tasks before the operation
 * are paired by their names, from the operation back to where both ranks were level.
 */
#include "mstx/official/bottlenecks.h"

#include "mstx/official/rank_rows.h"
#include "mstx/official/sql/bottlenecks.h"
#include "mstx/official/us_text.h"

#include "probe/base/map.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdio.h>
#include <stdlib.h>

/* Bounds of the official tool: nanoseconds, and shares of an operation and of launches. */
enum { LEVEL_NS = 1000000, WAIT_NS = 100000 };
static const double SLOW_SHARE = 0.05, DEVICE_SHARE = 0.5;

static const struct mstx_rank_query find_calls[] = {
    {.columns = "name, start, end", .needs = "COMMUNICATION_OP", .sql = sql_read_calls},
};
static const struct mstx_rank_query find_tasks[] = {
    {.columns = "name, start, end, is_call", .needs = "TASK", .sql = sql_read_device},
    {.columns = "name, start, end, is_call",
     .needs = "PYTORCH_API",
     .optional = true,
     .sql = sql_read_framework},
    {.columns = "name, start, end, is_call",
     .needs = "CANN_API",
     .optional = true,
     .sql = sql_read_runtime},
    {.columns = "start, end, cann_start, cann_end, op_end",
     .needs = "TASK",
     .optional = true,
     .sql = sql_read_launches},
};
enum { DEVICE, FRAMEWORK, RUNTIME, LEVELS, LAUNCHES = LEVELS, QUERIES };
static const char *const level_names[LEVELS] = {"Device", "PyTorch", "CANN"};

struct call {
    int64_t rank, start, end;
    uint32_t name;
};
struct task {
    int64_t start, end;
    uint32_t name;
    bool is_call; /* a part of a communication operation: all with its name are one */
};
struct launch {
    int64_t start, end, cann_start, cann_end, op_end;
};
typedef MS_VEC(struct task) tasks;
/* What one rank did, in the order of the rows. */
struct history {
    int64_t rank;
    tasks level[LEVELS];
    MS_VEC(struct launch) launch;
};

struct bottlenecks {
    struct mstx_recipe *r;
    struct ms_arena *arena;
    struct ms_map names;
    MS_VEC(struct call) first; /* of each rank and name */
    MS_VEC(uint32_t) seen;     /* by name: the last of the ranks, counted from 1, that has it */
    uint32_t ranks;
    MS_VEC(struct call) top; /* of the first rank, the longest first */
    MS_VEC(struct history) history;
    struct ms_stmt *add;
};

/* ---- reading ------------------------------------------------------------------------------ */

static bool put_name(struct bottlenecks *b, struct ms_str text, uint32_t *name)
{
    *name = ms_map_put_copy(&b->names, text.p != NULL ? text : MS_STR(""), b->arena, NULL);
    return *name != MS_MAP_NONE;
}

static int longest_first(const void *pa, const void *pb)
{
    const struct call *a = pa, *b = pb;
    return MS_ORDER(b->end - b->start, a->end - a->start, MS_ORDER(a->start, b->start, 0));
}

/* Tells whether the rank that is being read has had the name; *ok is set to false without memory. */
static bool was_seen(struct bottlenecks *b, uint32_t name, bool *ok)
{
    while (b->seen.n <= name && *ok) {
        uint32_t *slot = ms_vec_push(&b->seen);
        *ok = slot != NULL;
        if (slot != NULL)
            *slot = 0;
    }
    const bool was = !*ok || b->seen.p[name] == b->ranks;
    if (*ok)
        b->seen.p[name] = b->ranks;
    return was;
}

/* Keeps the first call of each name, and of the first rank the longest calls. */
static enum ms_rc take_calls(void *ctx, size_t query, int64_t rank,
                             const struct mstx__rank_rows *rows, struct ms_err *err)
{
    struct bottlenecks *b = ctx;
    const bool is_target = b->ranks++ == 0;
    (void)query;
    for (size_t i = 0; i < rows->cells.n; i += 3) {
        const struct mstx__cell *cell = &rows->cells.p[i];
        struct call c = {rank, mstx__cell_number(&cell[1]), mstx__cell_number(&cell[2]), 0};
        bool ok = put_name(b, mstx__cell_text(rows, cell), &c.name);
        struct call *slot = is_target && ok ? ms_vec_push(&b->top) : &c;
        struct call *first = !ok || was_seen(b, c.name, &ok) ? &c : ms_vec_push(&b->first);
        if (!ok || slot == NULL || first == NULL)
            return ms_no_memory(err);
        *slot = *first = c;
    }
    if (is_target && b->top.n > 1)
        qsort(b->top.p, b->top.n, sizeof *b->top.p, longest_first);
    return MS_OK;
}

static bool is_wanted(const struct bottlenecks *b, int64_t rank);

static enum ms_rc take_tasks(struct bottlenecks *b, tasks *to, const struct mstx__rank_rows *rows,
                             struct ms_err *err)
{
    for (size_t i = 0; i < rows->cells.n; i += 4) {
        const struct mstx__cell *cell = &rows->cells.p[i];
        struct task *t = ms_vec_push(to);
        if (t == NULL || !put_name(b, mstx__cell_text(rows, cell), &t->name))
            return ms_no_memory(err);
        t->start = mstx__cell_number(&cell[1]);
        t->end = mstx__cell_number(&cell[2]);
        t->is_call = mstx__cell_number(&cell[3]) != 0;
    }
    return MS_OK;
}

static enum ms_rc take_launches(struct history *h, const struct mstx__rank_rows *rows,
                                struct ms_err *err)
{
    for (size_t i = 0; i < rows->cells.n; i += 5) {
        const struct mstx__cell *cell = &rows->cells.p[i];
        struct launch *l = ms_vec_push(&h->launch);
        if (l == NULL)
            return ms_no_memory(err);
        *l = (struct launch){mstx__cell_number(&cell[0]), mstx__cell_number(&cell[1]),
                             mstx__cell_number(&cell[2]), mstx__cell_number(&cell[3]),
                             mstx__cell_number(&cell[4])};
    }
    return MS_OK;
}

static struct history *history_of(struct bottlenecks *b, int64_t rank)
{
    for (size_t i = 0; i < b->history.n; i++) {
        if (b->history.p[i].rank == rank)
            return &b->history.p[i];
    }
    struct history *h = ms_vec_push(&b->history);
    if (h != NULL)
        *h = (struct history){.rank = rank};
    return h;
}

static enum ms_rc take_rows(void *ctx, size_t query, int64_t rank,
                            const struct mstx__rank_rows *rows, struct ms_err *err)
{
    struct bottlenecks *b = ctx;
    if (!is_wanted(b, rank))
        return MS_OK;
    struct history *h = history_of(b, rank);
    if (h == NULL)
        return ms_no_memory(err);
    return query == LAUNCHES ? take_launches(h, rows, err)
                             : take_tasks(b, &h->level[query], rows, err);
}

/* ---- who was slow ------------------------------------------------------------------------------ */

/* Finds the ranks that waited longest and shortest in the operation: the first and the last of
 * equals. */
static void find_pair(const struct bottlenecks *b, uint32_t name, const struct call **fast,
                      const struct call **slow)
{
    *fast = *slow = NULL;
    for (size_t i = 0; i < b->first.n; i++) {
        const struct call *c = &b->first.p[i];
        if (c->name != name)
            continue;
        const int64_t ns = c->end - c->start;
        if (*fast == NULL || ns > (*fast)->end - (*fast)->start)
            *fast = c;
        if (*slow == NULL || ns <= (*slow)->end - (*slow)->start)
            *slow = c;
    }
}

static bool is_apart(const struct call *fast, const struct call *slow)
{
    const double long_ns = (double)(fast->end - fast->start);
    return (long_ns - (double)(slow->end - slow->start)) / long_ns >= SLOW_SHARE;
}

static bool is_wanted(const struct bottlenecks *b, int64_t rank)
{
    for (size_t i = 0; i < b->top.n; i++) {
        const struct call *fast, *slow;
        find_pair(b, b->top.p[i].name, &fast, &slow);
        if (fast->rank == rank || slow->rank == rank)
            return true;
    }
    return false;
}

/* ---- where it lost its time ---------------------------------------------------------------------- */

static int latest_first(const void *pa, const void *pb)
{
    const struct task *a = pa, *b = pb;
    return MS_ORDER(b->start, a->start, 0);
}

static int by_name(const void *pa, const void *pb)
{
    const struct task *a = pa, *b = pb;
    return MS_ORDER(a->is_call, b->is_call, MS_ORDER(a->name, b->name, 0));
}

/* Copies the tasks that ended before a time, the latest first; parts of one operation are one task. */
static bool tasks_before(const tasks *all, int64_t until, tasks *to)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        struct task *slot = all->p[i].end <= until ? ms_vec_push(to) : NULL;
        if (all->p[i].end <= until && slot == NULL)
            return false;
        if (slot != NULL)
            *slot = all->p[i];
    }
    if (to->n != 0)
        qsort(to->p, to->n, sizeof *to->p, by_name);
    for (size_t i = 0; i < to->n; i++) {
        struct task *last = n != 0 ? &to->p[n - 1] : NULL;
        const struct task t = to->p[i];
        if (last == NULL || !t.is_call || !last->is_call || last->name != t.name) {
            to->p[n++] = t;
            continue;
        }
        last->start = t.start < last->start ? t.start : last->start;
        last->end = t.end > last->end ? t.end : last->end;
    }
    to->n = n;
    if (n != 0)
        qsort(to->p, n, sizeof *to->p, latest_first);
    return true;
}

struct gap {
    uint32_t name;
    int64_t ns;
};

static void keep_greater(struct gap *g, uint32_t name, int64_t ns, bool is_first)
{
    if (is_first || ns > g->ns)
        *g = (struct gap){name, ns};
}

/* Chains of equal names in a list: the next place of each, UINT32_MAX at the end. */
struct chains {
    uint32_t *head, *next;
};

static bool make_chains(struct chains *c, const tasks *of, size_t names)
{
    *c = (struct chains){ms_alloc((names + 1) * sizeof *c->head),
                         ms_alloc((of->n + 1) * sizeof *c->next)};
    if (c->head == NULL || c->next == NULL)
        return false;
    memset(c->head, 0xff, (names + 1) * sizeof *c->head);
    for (size_t i = of->n; i-- > 0;) {
        c->next[i] = c->head[of->p[i].name];
        c->head[of->p[i].name] = (uint32_t)i;
    }
    return true;
}

/* Pairs tasks of both ranks until they were level; false when they never were. */
static bool pair_tasks(const tasks *slow, const tasks *fast, struct chains *c, int64_t shift,
                       struct gap *lost, struct gap *late)
{
    uint32_t from = 0;
    bool any = false;
    for (size_t i = 0; i < slow->n; i++) {
        const struct task *s = &slow->p[i];
        uint32_t *at = &c->head[s->name];
        while (*at != UINT32_MAX && *at < from)
            *at = c->next[*at];
        if (*at == UINT32_MAX)
            continue;
        const struct task *f = &fast->p[*at];
        const int64_t behind = s->start - f->start + shift;
        from = *at + 1;
        keep_greater(lost, s->name, (s->end - s->start) - (f->end - f->start), !any);
        keep_greater(late, s->name, behind, !any);
        any = true;
        if (behind < LEVEL_NS)
            return true;
    }
    return false;
}

struct reason {
    char text[1024];
};

static void say_gaps(const struct bottlenecks *b, size_t level, const struct gap *lost,
                     const struct gap *late, struct reason *out)
{
    char us[MSTX_US_TEXT], late_us[MSTX_US_TEXT];
    const size_t n = strlen(out->text);
    const struct ms_str x = ms_map_key(&b->names, lost->name),
                        y = ms_map_key(&b->names, late->name);
    snprintf(
        out->text + n, sizeof out->text - n,
        "%s: max duration-diff op %.200s, diff %s us, max start-time-diff op %.200s, diff %s us.",
        level_names[level], x.p, mstx__us_text(lost->ns, us), y.p,
        mstx__us_text(late->ns, late_us));
}

/* Compares one level of both ranks and says so; *found tells whether they were level once. */
static enum ms_rc compare_level(struct bottlenecks *b, size_t level, const struct call *fast,
                                const struct call *slow, bool *found, struct reason *out,
                                struct ms_err *err)
{
    tasks s = {0}, f = {0};
    struct chains c = {0};
    struct gap lost, late;
    const struct history *hs = history_of(b, slow->rank), *hf = history_of(b, fast->rank);
    /* The official tool compares the time of a device's task with bytes, which are always greater. */
    const bool all = b->r->strict && level == DEVICE;
    const bool ok = hs != NULL && hf != NULL &&
                    tasks_before(&hs->level[level], all ? INT64_MAX : slow->start, &s) &&
                    tasks_before(&hf->level[level], all ? INT64_MAX : fast->start, &f) &&
                    make_chains(&c, &f, b->names.keys.n);
    *found = ok && pair_tasks(&s, &f, &c, fast->end - slow->end, &lost, &late);
    if (*found)
        say_gaps(b, level, &lost, &late, out);
    ms_vec_free(&s);
    ms_vec_free(&f);
    ms_free(c.head);
    ms_free(c.next);
    return ok ? MS_OK : ms_no_memory(err);
}

/* Tells whether most launches of a time waited for the device rather than for the framework; *any:
 * whether there are launches. */
static bool waits_for_device(struct bottlenecks *b, int64_t rank, int64_t from, int64_t to,
                             bool *any)
{
    const struct history *h = history_of(b, rank);
    size_t n = 0, waits = 0;
    for (size_t i = 0; h != NULL && i < h->launch.n; i++) {
        const struct launch *l = &h->launch.p[i];
        if (l->start <= from || l->end >= to)
            continue;
        n++;
        waits += (l->start - l->cann_end) - (l->cann_start - l->op_end) > WAIT_NS;
    }
    *any = n != 0;
    return n != 0 && (double)waits / (double)n > DEVICE_SHARE;
}

static enum ms_rc explain_host(struct bottlenecks *b, const struct call *fast,
                               const struct call *slow, struct reason *out, struct ms_err *err)
{
    struct reason runtime = {""};
    bool found;
    snprintf(out->text, sizeof out->text, "[Host-bound] ");
    MS_TRY(compare_level(b, FRAMEWORK, fast, slow, &found, out, err));
    if (!found) {
        snprintf(out->text, sizeof out->text,
                 "[Host-bound] Tasks are not aligned between slow and fast NPU from the beginning");
        return MS_OK;
    }
    MS_TRY(compare_level(b, RUNTIME, fast, slow, &found, &runtime, err));
    const size_t n = strlen(out->text);
    if (found)
        snprintf(out->text + n, sizeof out->text - n, " | %.480s", runtime.text);
    return MS_OK;
}

static enum ms_rc explain_device(struct bottlenecks *b, const struct call *fast,
                                 const struct call *slow, struct reason *out, struct ms_err *err)
{
    bool found;
    snprintf(out->text, sizeof out->text, "[Device-bound]");
    MS_TRY(compare_level(b, DEVICE, fast, slow, &found, out, err));
    if (!found)
        snprintf(
            out->text, sizeof out->text,
            "[Device-bound] Tasks are not aligned between slow and fast NPU from the beginning");
    return MS_OK;
}

static enum ms_rc explain(struct bottlenecks *b, const struct call *fast, const struct call *slow,
                          struct reason *out, struct ms_err *err)
{
    bool any;
    const int64_t shift = fast->end - slow->end;
    if (!is_apart(fast, slow)) {
        snprintf(out->text, sizeof out->text,
                 "[Completed] No slow NPU detected: execution time difference is less than 0.05%%");
        return MS_OK;
    }
    const bool on_device = waits_for_device(b, slow->rank, fast->start - shift, slow->end, &any);
    if (any)
        return on_device ? explain_device(b, fast, slow, out, err)
                         : explain_host(b, fast, slow, out, err);
    snprintf(out->text, sizeof out->text,
             "[Failed] Insufficient data for analyzing slow NPU bottleneck");
    return MS_OK;
}

/* ---- rows ------------------------------------------------------------------------------------------ */

static enum ms_rc add_row(struct bottlenecks *b, const struct call *c, struct ms_err *err)
{
    const struct call *fast, *slow;
    struct reason why = {""};
    char from[MSTX_US_TEXT], to[MSTX_US_TEXT];
    find_pair(b, c->name, &fast, &slow);
    MS_TRY(explain(b, fast, slow, &why, err));
    ms_stmt_str(b->add, 1, mstx__us_text_exact(c->start, from));
    ms_stmt_str(b->add, 2, mstx__us_text_exact(c->end, to));
    ms_stmt_f64(b->add, 3, (double)(c->end - c->start) / 1000);
    ms_stmt_str(b->add, 4, ms_map_key(&b->names, c->name));
    ms_stmt_null(b->add, 5);
    ms_stmt_null(b->add, 6);
    if (is_apart(fast, slow)) {
        ms_stmt_i64(b->add, 5, slow->rank);
        ms_stmt_i64(b->add, 6, fast->rank);
    }
    ms_stmt_str(b->add, 7, ms_str_of(why.text));
    return ms_stmt_run(b->add, err);
}

static enum ms_rc find_all(struct bottlenecks *b, struct ms_err *err)
{
    struct mstx_recipe *r = b->r;
    MS_TRY(ms_store_exec(r->s, sql_make_bottlenecks, err));
    MS_TRY(ms_store_prepare(r->s, &b->add, sql_add_bottleneck, err));
    MS_TRY(mstx__recipe_visit_rows(r, find_calls, 1, take_calls, b, err));
    b->top.n = b->top.n < (size_t)r->top ? b->top.n : (size_t)r->top;
    if (b->top.n == 0)
        return MS_OK;
    MS_TRY(mstx__recipe_visit_rows(r, find_tasks, QUERIES, take_rows, b, err));
    for (size_t i = 0; i < b->top.n; i++)
        MS_TRY(add_row(b, &b->top.p[i], err));
    return MS_OK;
}

static void free_all(struct bottlenecks *b)
{
    for (size_t i = 0; i < b->history.n; i++) {
        for (size_t k = 0; k < LEVELS; k++)
            ms_vec_free(&b->history.p[i].level[k]);
        ms_vec_free(&b->history.p[i].launch);
    }
    ms_vec_free(&b->history);
    ms_vec_free(&b->first);
    ms_vec_free(&b->top);
    ms_vec_free(&b->seen);
    ms_map_free(&b->names);
    ms_arena_free(b->arena);
    ms_stmt_free(b->add);
}

enum ms_rc mstx__find_bottlenecks(struct mstx_recipe *r, struct ms_err *err)
{
    struct bottlenecks b = {.r = r, .arena = ms_arena_new((size_t)1 << 34)};
    const enum ms_rc rc = b.arena != NULL ? find_all(&b, err) : ms_no_memory(err);
    free_all(&b);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * sums: a statement that is left open between the slices, and a row for each key.
 */
#include "viz/model/sums.h"

#include "probe/base/clock.h"
#include "probe/base/store.h"

#include <stdlib.h>

enum { TEXT_MOST = 1 << 28, LOOK_AT_CLOCK = 256 };

static const char *const sql[] = {
    [VIZ_SUM_NAMES] = "SELECT n.name, n.events, n.total_ns, n.max_ns, t.domain FROM names n"
                      " JOIN tracks t ON t.id = n.track WHERE t.kind IN (0, 3)",
    [VIZ_SUM_COLLECTIVES] = "SELECT n.name, n.events, n.total_ns, n.max_ns, t.domain FROM tracks t"
                            " JOIN names n ON n.track = t.id"
                            " WHERE t.kind IN (0, 3) AND t.domain = 'communication'",
    [VIZ_SUM_RANKS] = "SELECT process - 1, 1, end_ns - start_ns, end_ns - start_ns FROM steps",
};
static const char USES_SQL[] =
    "SELECT process - 1, computing_ns, exposed_ns, waiting_ns, blame_ns, end_ns - start_ns"
    " FROM rank_steps";

void viz_sums_free(struct viz_sums *s)
{
    ms_stmt_free(s->st);
    ms_vec_free(&s->rows);
    ms_map_free(&s->keys);
    ms_arena_free(s->arena);
    *s = (struct viz_sums){.done = false};
}

/* A rank without steps has its row too. */
static enum ms_rc add_processes(struct viz_sums *s, struct mstx_tl *tl, struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_process_count(tl); i++) {
        struct viz_sum *row = ms_vec_push(&s->rows);
        if (row == NULL)
            return ms_no_memory(err);
        *row = (struct viz_sum){.process = (uint32_t)i, .domain = MS_STR("")};
    }
    return MS_OK;
}

enum ms_rc viz_sums_begin(struct viz_sums *s, struct mstx_tl *tl, enum viz_sums_of of,
                          struct ms_err *err)
{
    viz_sums_free(s);
    s->of = of;
    s->tl = tl;
    s->arena = ms_arena_new(TEXT_MOST);
    enum ms_rc rc = s->arena != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK && of == VIZ_SUM_RANKS)
        rc = add_processes(s, tl, err);
    if (rc == MS_OK)
        rc = ms_store_prepare(mstx_tl_store(tl), &s->st, sql[of], err);
    s->done = rc != MS_OK; /* there is nothing to go on with */
    return rc;
}

/* The row of a name in a domain, made when there is none yet. */
static struct viz_sum *row_of_name(struct viz_sums *s, uint32_t name, struct ms_str domain)
{
    char text[256];
    uint32_t n = domain.n < sizeof text - sizeof name ? domain.n : sizeof text - sizeof name;
    bool added;
    memcpy(text, &name, sizeof name);
    memcpy(text + sizeof name, domain.p != NULL ? domain.p : "", n);
    struct ms_str key = {text, n + (uint32_t)sizeof name};
    uint32_t i = ms_map_put_copy(&s->keys, key, s->arena, &added);
    if (i == MS_MAP_NONE)
        return NULL;
    if (!added)
        return &s->rows.p[i];
    struct viz_sum *row = ms_vec_push(&s->rows);
    if (row != NULL)
        *row = (struct viz_sum){.name = name,
                                .domain = ms_str_sub(ms_map_key(&s->keys, i), sizeof name, key.n)};
    return row;
}

static enum ms_rc add_entry(struct viz_sums *s, struct ms_err *err)
{
    uint64_t key = (uint64_t)ms_stmt_get_i64(s->st, 0);
    struct viz_sum *row;
    if (s->of == VIZ_SUM_RANKS) {
        if (key >= s->rows.n) /* a step of no process: the file is damaged */
            return MS_OK;
        row = &s->rows.p[key];
    } else {
        row = row_of_name(s, (uint32_t)key, ms_stmt_get_str(s->st, 4));
    }
    if (row == NULL)
        return ms_no_memory(err);
    int64_t longest = ms_stmt_get_i64(s->st, 3);
    row->count += ms_stmt_get_i64(s->st, 1);
    row->total += ms_stmt_get_i64(s->st, 2);
    row->longest = longest > row->longest ? longest : row->longest;
    return MS_OK;
}

/* Waiting is counted within communication that nothing hides, and both within the step. */
static void add_use(struct viz_sums *s)
{
    uint64_t key = (uint64_t)ms_stmt_get_i64(s->st, 0);
    if (key >= s->rows.n)
        return;
    struct viz_sum *row = &s->rows.p[key];
    int64_t computes = ms_stmt_get_i64(s->st, 1), exposed = ms_stmt_get_i64(s->st, 2);
    int64_t waits = ms_stmt_get_i64(s->st, 3),
            idles = ms_stmt_get_i64(s->st, 5) - computes - exposed;
    waits = waits < exposed ? waits : exposed;
    row->measured++;
    row->blame += ms_stmt_get_i64(s->st, 4);
    row->use[VIZ_COMPUTES] += computes;
    row->use[VIZ_SENDS] += exposed - waits;
    row->use[VIZ_WAITS] += waits;
    row->use[VIZ_IDLES] += idles > 0 ? idles : 0;
}

const struct viz_sum *viz_sums_use(const struct viz_sums *s, size_t process)
{
    for (size_t i = 0; s->done && i < s->rows.n; i++) {
        if (s->rows.p[i].process == process)
            return s->rows.p[i].measured != 0 ? &s->rows.p[i] : NULL;
    }
    return NULL;
}

/* ---- the end -------------------------------------------------------------------------- */

static int falling(int64_t a, int64_t b)
{
    return a > b ? -1 : a < b;
}

static int by_total(const void *pa, const void *pb)
{
    const struct viz_sum *a = pa, *b = pb;
    int c = falling(a->total, b->total);
    c = c != 0 ? c : falling(a->count, b->count);
    return c != 0 ? c : a->name < b->name ? -1 : a->name > b->name;
}

static int by_blame(const void *pa, const void *pb)
{
    const struct viz_sum *a = pa, *b = pb;
    int c = falling(a->blame, b->blame);
    c = c != 0 ? c : falling(viz_sum_mean(a), viz_sum_mean(b));
    return c != 0 ? c : a->process < b->process ? -1 : a->process > b->process;
}

static void finish(struct viz_sums *s)
{
    ms_stmt_free(s->st);
    s->st = NULL;
    s->done = true;
    if (s->rows.n != 0)
        qsort(s->rows.p, s->rows.n, sizeof *s->rows.p,
              s->of == VIZ_SUM_RANKS ? by_blame : by_total);
    if (s->of != VIZ_SUM_RANKS && s->rows.n > VIZ_SUMS_MOST)
        s->rows.n = VIZ_SUMS_MOST;
}

/* Behind the last row of one statement comes the next, or the end. */
static enum ms_rc turn_over(struct viz_sums *s, struct ms_err *err)
{
    if (s->of != VIZ_SUM_RANKS || s->uses) {
        finish(s);
        return MS_OK;
    }
    ms_stmt_free(s->st);
    s->st = NULL;
    s->uses = true;
    return ms_store_prepare(mstx_tl_store(s->tl), &s->st, USES_SQL, err);
}

enum ms_rc viz_sums_work(struct viz_sums *s, int64_t end_ns, struct ms_err *err)
{
    bool more = true;
    while (!s->done) {
        MS_TRY(ms_stmt_step(s->st, &more, err));
        if (!more)
            MS_TRY(turn_over(s, err));
        else if (s->uses)
            add_use(s);
        else
            MS_TRY(add_entry(s, err));
        if (++s->read % LOOK_AT_CLOCK == 0 && ms_clock_ns() >= end_ns)
            return MS_OK;
    }
    return MS_OK;
}

/* SPDX-License-Identifier: MIT
 *
 * comm_measure: see the header.
 */
#include "mstx/conclude/comm_measure.h"

#include "mstx/format/comm.h"
#include "mstx/rundb/packed_tables.h"

#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/base/store.h"

#include <stdlib.h>

/* ---- sums ------------------------------------------------------------------- */

/* One operation on one communicator. */
struct sum {
    int64_t group; /* MSTX_ROWS_NULL: a communicator without description */
    uint8_t op;
    int64_t calls, bytes, total_ns, max_ns;
    int64_t processes, process; /* number of processes, and the last one; calls come by process */
};

struct sums {
    MS_VEC(struct sum) list;
    MS_VEC(uint32_t) slot; /* hash table of indices + 1; size a power of two */
};

static size_t slot_of(const struct sums *s, int64_t group, uint8_t op)
{
    const uint64_t key = ((uint64_t)group << 8 | op) * 0x9E3779B97F4A7C15u;
    size_t at = (size_t)(key >> 20) & (s->slot.n - 1);
    for (; s->slot.p[at] != 0; at = (at + 1) & (s->slot.n - 1)) {
        const struct sum *k = &s->list.p[s->slot.p[at] - 1];
        if (k->group == group && k->op == op)
            break;
    }
    return at;
}

static bool grow_sums(struct sums *s)
{
    const size_t want = s->slot.n != 0 ? 2 * s->slot.n : 256;
    if (2 * s->list.n < s->slot.n)
        return true;
    if (!ms_vec_reserve(&s->slot, want))
        return false;
    s->slot.n = want;
    memset(s->slot.p, 0, want * sizeof *s->slot.p);
    for (size_t i = 0; i < s->list.n; i++)
        s->slot.p[slot_of(s, s->list.p[i].group, s->list.p[i].op)] = (uint32_t)i + 1;
    return true;
}

/* Returns the sum of an operation on a communicator, adding it when it is new; NULL when out of
 * memory. */
static struct sum *sum_of(struct sums *s, int64_t group, uint8_t op)
{
    if (!grow_sums(s))
        return NULL;
    uint32_t *slot = &s->slot.p[slot_of(s, group, op)];
    if (*slot != 0)
        return &s->list.p[*slot - 1];
    struct sum *made = ms_vec_push(&s->list);
    if (made == NULL)
        return NULL;
    *made = (struct sum){.group = group, .op = op};
    *slot = (uint32_t)s->list.n;
    return made;
}

static int64_t add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void count_call(struct sum *k, int64_t process, int64_t bytes, int64_t ns)
{
    k->calls++;
    k->bytes = add(k->bytes, bytes);
    k->total_ns = add(k->total_ns, ns);
    k->max_ns = ns > k->max_ns ? ns : k->max_ns;
    k->processes += k->process != process;
    k->process = process;
}

/* Tells whether an operation is a collective or a transfer; other calls are shown among the names
 * only. */
static bool is_measured(unsigned op)
{
    const enum mstx_comm_class class = mstx_comm_op_class(op);
    return class == MSTX_CLASS_COLL || class == MSTX_CLASS_P2P || class == MSTX_CLASS_ONESIDE;
}

static enum ms_rc count_calls(void *ctx, struct mstx_rows *rows, struct ms_err *err)
{
    static const unsigned wanted[] = {MSTX_CALL_GROUP, MSTX_CALL_OP,   MSTX_CALL_PROCESS,
                                      MSTX_CALL_COUNT, MSTX_CALL_ELEM, MSTX_CALL_DUR};
    struct sums *s = ctx;
    const int64_t *cell[6];
    for (int c = 0; c < 6; c++) {
        cell[c] = mstx__rows_column(rows, wanted[c], err);
        if (cell[c] == NULL)
            return MS_E_FORMAT;
    }
    for (uint32_t i = 0; i < rows->n; i++) {
        const uint8_t op = (uint8_t)cell[1][i];
        struct sum *k = is_measured(op) ? sum_of(s, cell[0][i], op) : NULL;
        if (k == NULL && is_measured(op))
            return ms_no_memory(err);
        if (k != NULL)
            count_call(k, cell[2][i], (int64_t)((uint64_t)cell[3][i] * (uint64_t)cell[4][i]),
                       cell[5][i]);
    }
    return MS_OK;
}

/* ---- rows ------------------------------------------------------------------- */

/* A sum with the total of its communicator, for sorting. */
struct place {
    const struct sum *sum;
    int64_t group_ns; /* of all operations on the communicator */
};

static int by_group(const void *pa, const void *pb)
{
    const struct place *a = pa, *b = pb;
    return MS_ORDER(a->sum->group, b->sum->group, 0);
}

/* Orders by communicator, the longest total first; communicators without description come last. */
static int by_weight(const void *pa, const void *pb)
{
    const struct place *a = pa, *b = pb;
    const bool no_a = a->sum->group == MSTX_ROWS_NULL, no_b = b->sum->group == MSTX_ROWS_NULL;
    if (no_a != no_b)
        return no_a ? 1 : -1;
    if (a->group_ns != b->group_ns)
        return a->group_ns > b->group_ns ? -1 : 1;
    if (a->sum->group != b->sum->group)
        return by_group(pa, pb);
    if (a->sum->total_ns != b->sum->total_ns)
        return a->sum->total_ns > b->sum->total_ns ? -1 : 1;
    return strcmp(mstx_comm_op_text(a->sum->op), mstx_comm_op_text(b->sum->op));
}

static void put_in_order(struct place *p, size_t n)
{
    if (n == 0)
        return;
    qsort(p, n, sizeof *p, by_group);
    for (size_t i = 0, end; i < n; i = end) {
        int64_t sum = 0;
        for (end = i; end < n && p[end].sum->group == p[i].sum->group; end++)
            sum = add(sum, p[end].sum->total_ns);
        for (size_t k = i; k < end; k++)
            p[k].group_ns = sum;
    }
    qsort(p, n, sizeof *p, by_weight);
}

static enum ms_rc take_row(mstx_comm_rows *rows, const struct sum *s, struct ms_str group,
                           int64_t size, struct ms_err *err)
{
    struct mstx_comm_row *r = ms_vec_push(rows);
    if (r == NULL)
        return ms_no_memory(err);
    *r = (struct mstx_comm_row){.group = ms_str_dup(group),
                                .op = ms_str_dup(ms_str_of(mstx_comm_op_text(s->op))),
                                .id = s->group != MSTX_ROWS_NULL ? s->group : 0,
                                .size = size,
                                .calls = s->calls,
                                .bytes = s->bytes,
                                .total_ns = s->total_ns,
                                .mean_ns = s->total_ns / s->calls,
                                .max_ns = s->max_ns,
                                .ranks = s->processes};
    return r->group != NULL && r->op != NULL ? MS_OK : ms_no_memory(err);
}

/* Adds a row with the name and size of the communicator from comm_groups. */
static enum ms_rc name_row(mstx_comm_rows *rows, const struct sum *s, struct ms_stmt *st,
                           struct ms_err *err)
{
    bool more;
    ms_stmt_i64(st, 1, s->group); /* MSTX_ROWS_NULL matches no row */
    MS_TRY(ms_stmt_step(st, &more, err));
    const bool is_named = more && !ms_stmt_is_null(st, 0);
    const struct ms_str name = is_named ? ms_stmt_get_str(st, 0) : MS_STR("(not known)");
    const int64_t size = more && !ms_stmt_is_null(st, 1) ? ms_stmt_get_i64(st, 1) : -1;
    enum ms_rc rc = take_row(rows, s, name, size, err);
    ms_stmt_reset(st);
    return rc;
}

static enum ms_rc make_rows(struct mstx_tl *tl, const struct sums *s, mstx_comm_rows *rows,
                            struct ms_err *err)
{
    struct ms_stmt *st;
    struct place *p = ms_calloc(s->list.n + 1, sizeof *p);
    if (p == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < s->list.n; i++)
        p[i].sum = &s->list.p[i];
    put_in_order(p, s->list.n);
    enum ms_rc rc = ms_store_prepare(mstx_tl_store(tl), &st,
                                     "SELECT name, size FROM comm_groups WHERE id = ?", err);
    for (size_t i = 0; rc == MS_OK && i < s->list.n; i++)
        rc = name_row(rows, p[i].sum, st, err);
    ms_stmt_free(st);
    ms_free(p);
    return rc;
}

enum ms_rc mstx_comm_measure(struct mstx_tl *tl, mstx_comm_rows *rows, struct ms_err *err)
{
    struct sums s = {0};
    *rows = (mstx_comm_rows){0};
    enum ms_rc rc = mstx__packed_each_call(mstx__tl_packed(tl), count_calls, &s, err);
    if (rc == MS_OK)
        rc = make_rows(tl, &s, rows, err);
    ms_vec_free(&s.list);
    ms_vec_free(&s.slot);
    if (rc != MS_OK)
        mstx_comm_rows_free(rows);
    return rc;
}

void mstx_comm_rows_free(mstx_comm_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        ms_free(rows->p[i].group);
        ms_free(rows->p[i].op);
    }
    ms_vec_free(rows);
}

/* ---- clocks ----------------------------------------------------------------- */

enum ms_rc mstx_clocks_measure(struct mstx_tl *tl, struct mstx_clock_summary *s, struct ms_err *err)
{
    static const char sql[] =
        "SELECT count(*), coalesce(max(best), 0) FROM"
        " (SELECT max(uncertainty_ns) AS best FROM clock_offsets GROUP BY host)";
    struct ms_stmt *st;
    bool there;
    *s = (struct mstx_clock_summary){0};
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, sql, err));
    enum ms_rc rc = ms_stmt_step(st, &there, err);
    if (rc == MS_OK && there)
        *s = (struct mstx_clock_summary){ms_stmt_get_i64(st, 0), ms_stmt_get_i64(st, 1)};
    ms_stmt_free(st);
    return rc;
}

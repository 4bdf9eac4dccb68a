/* SPDX-License-Identifier: MIT
 *
 * to_ascend_comm: see the header.
 */
#include "mstx/foreign/to_ascend_comm.h"

#include "mstx/foreign/export.h"
#include "mstx/foreign/sql/to_ascend_comm.h"
#include "mstx/format/comm_marked.h"

#include "probe/base/assert.h"
#include "probe/base/map.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct mstx_ascend_comm {
    struct ms_store *to;
    const struct mstx_ascend_groups *groups;
    struct mstx_ascend_how how;
    struct mstx_own_texts texts;
    struct ms_stmt *from, *add;
    bool more; /* `from` has a current row */
    MS_VEC(struct mstx_ascend_call) held;
    struct mstx_ascend_counts counts;
    int64_t rows;
};

/* ---- communicators ---------------------------------------------------------- */

static const struct mstx_ascend_group *group_of(const struct mstx_ascend_comm *c,
                                                const struct mstx_ascend_call *k)
{
    ms_assert(k->group < c->groups->list.n);
    return &c->groups->list.p[k->group];
}

enum ms_rc mstx__ascend_groups_write(struct mstx_tl *tl, int32_t rank, struct ms_store *to,
                                     struct ms_err *err)
{
    struct ms_stmt *from, *add = NULL;
    bool more = false;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &from, sql_list_groups, err));
    ms_stmt_i64(from, 1, rank);
    ms_stmt_i64(from, 2, MSTX_ALL_RANKS);
    enum ms_rc rc = ms_store_prepare(to, &add, sql_add_groups, err);
    if (rc == MS_OK)
        rc = ms_stmt_step(from, &more, err);
    if (rc == MS_OK && more && !ms_str_is(ms_stmt_get_str(from, 0), "{}")) {
        ms_stmt_str(add, 1, ms_stmt_get_str(from, 0));
        rc = ms_stmt_run(add, err);
    }
    ms_stmt_free(from);
    ms_stmt_free(add);
    return rc;
}

enum ms_rc mstx__ascend_comm_table(struct ms_store *to, struct ms_err *err)
{
    return ms_store_exec(to, sql_create_table, err);
}

static enum ms_rc prepare_statements(struct mstx_ascend_comm *c, struct mstx_tl *tl,
                                     struct ms_err *err)
{
    MS_TRY(mstx__ascend_comm_table(c->to, err));
    MS_TRY(ms_store_prepare(c->to, &c->add, sql_add_call, err));
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &c->from, sql_read_calls, err));
    mstx__bind_processes(c->from, 1, tl, c->how.rank);
    return ms_stmt_step(c->from, &c->more, err);
}

enum ms_rc mstx__ascend_comm_new(struct mstx_ascend_comm **out, struct mstx_tl *tl,
                                 const struct mstx_ascend_groups *groups,
                                 const struct mstx_ascend_how *how, struct ms_store *to,
                                 const struct mstx_own_texts *texts, struct ms_err *err)
{
    bool yes;
    *out = NULL;
    MS_TRY(mstx__run_has_calls(tl, &yes, err));
    if (!yes)
        return MS_OK;
    struct mstx_ascend_comm *c = ms_calloc(1, sizeof *c);
    if (c == NULL)
        return ms_no_memory(err);
    c->to = to;
    c->groups = groups;
    c->how = *how;
    c->texts = *texts;
    enum ms_rc rc = prepare_statements(c, tl, err);
    if (rc == MS_OK)
        *out = c;
    else
        mstx__ascend_comm_free(c);
    return rc;
}

void mstx__ascend_comm_free(struct mstx_ascend_comm *c)
{
    if (c == NULL)
        return;
    ms_stmt_free(c->from);
    ms_stmt_free(c->add);
    ms_vec_free(&c->held);
    mstx__ascend_counts_free(&c->counts);
    ms_free(c);
}

/* Holds the rows that start at t. Earlier rows belong to other ranks and are skipped. */
static enum ms_rc hold_calls_at(struct mstx_ascend_comm *c, int64_t t, struct ms_err *err)
{
    if (c->held.n != 0 && c->held.p[0].start == t)
        return MS_OK;
    c->held.n = 0;
    while (c->more && ms_stmt_get_i64(c->from, 2) <= t) {
        if (ms_stmt_get_i64(c->from, 2) == t) {
            struct mstx_ascend_call *slot = ms_vec_push(&c->held);
            if (slot == NULL)
                return ms_no_memory(err);
            *slot = mstx__ascend_call_of_row(c->groups, c->from);
        }
        MS_TRY(ms_stmt_step(c->from, &c->more, err));
    }
    return MS_OK;
}

/* Finds the held row of an event and removes the row, because two calls of a thread may have equal
 * times when the clock is coarse. */
static struct mstx_ascend_call *
find_held_call(struct mstx_ascend_comm *c, const struct mstx_track *t, const struct mstx_event *ev)
{
    for (size_t i = 0; i < c->held.n; i++) {
        struct mstx_ascend_call *k = &c->held.p[i];
        if (k->process == t->process && k->tid == t->tid && k->end == ev->start_ns + ev->dur_ns) {
            k->process = UINT32_MAX;
            return k;
        }
    }
    return NULL;
}

/* ---- writing ---------------------------------------------------------------- */

static enum ms_rc find_text_id(struct mstx_ascend_comm *c, const char *text, int64_t *id,
                               struct ms_err *err)
{
    return c->texts.id(c->texts.ctx, ms_str_of(text), id, err);
}

static enum ms_rc add_call_row(struct mstx_ascend_comm *c, uint32_t process,
                               const struct mstx_ascend_call *k, int64_t connection,
                               struct ms_err *err)
{
    enum { NOT_A_TYPE = 65534 }; /* N/A of ENUM_HCCL_DATA_TYPE */
    struct mstx_ascend_names names;
    const struct mstx_ascend_group *group = group_of(c, k);
    int64_t name_id, type_id, group_id;
    MS_TRY(mstx__ascend_name_call(&names, &c->counts, c->groups, process, k, err));
    if (k->starts && c->how.without_starts)
        return MS_OK;
    MS_TRY(find_text_id(c, names.name, &name_id, err));
    MS_TRY(find_text_id(c, names.type, &type_id, err));
    MS_TRY(c->texts.id(c->texts.ctx, group->name, &group_id, err));
    const int64_t dtype = k->rec.dtype <= MSTX_TYPE_FP8E8M0 ? k->rec.dtype : NOT_A_TYPE;
    const int64_t column[] = {name_id,  k->start,   k->end, connection,
                              group_id, c->rows++,  dtype,  (int64_t)k->rec.count,
                              type_id,  group->size};
    for (int i = 0; i < 10; i++)
        ms_stmt_i64(c->add, i + 1, column[i]);
    return ms_stmt_run(c->add, err);
}

enum ms_rc mstx__ascend_comm_event(struct mstx_ascend_comm *c, const struct mstx_track *t,
                                   const struct mstx_event *ev, int64_t connection,
                                   int64_t *message, struct ms_err *err)
{
    char text[512];
    MS_TRY(hold_calls_at(c, ev->start_ns, err));
    const struct mstx_ascend_call *k = find_held_call(c, t, ev);
    if (k == NULL)
        return MS_OK;
    if (!k->is_said) {
        mstx_comm_message(text, sizeof text, &k->rec, group_of(c, k)->name.p, k->stream);
        MS_TRY(find_text_id(c, text, message, err));
    }
    return add_call_row(c, t->process, k, connection, err);
}

enum ms_rc mstx__ascend_comm_all(struct mstx_ascend_comm *c, int64_t connection, struct ms_err *err)
{
    while (c->more) {
        const struct mstx_ascend_call k = mstx__ascend_call_of_row(c->groups, c->from);
        MS_TRY(add_call_row(c, k.process, &k, connection++, err));
        MS_TRY(ms_stmt_step(c->from, &c->more, err));
    }
    return MS_OK;
}

enum ms_rc mstx__ascend_comm_finish(struct mstx_ascend_comm *c, struct ms_err *err)
{
    return ms_store_exec(c->to, sql_take_device_times, err);
}

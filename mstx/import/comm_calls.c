/* SPDX-License-Identifier: MIT
 *
 * comm_calls: calls, packed, and the table comm_groups.
 *
 * A communicator has one row for all its ranks: each process has its own number for a communicator,
 * but its uid is the same in all.  Calls on a communicator without description have no group.
 */
#include "mstx/import/comm_calls.h"

#include "mstx/format/comm_marked.h"
#include "mstx/rundb/packed_tables.h"
#include "mstx/rundb/run_write.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A communicator, identified by its uid. */
struct group_row {
    uint64_t uid;
    int64_t id;
    uint32_t seq[MSTX_SEQUENCES]; /* next sequence number of the process for calls without one */
};

struct mstx_comm_writer {
    struct mstx_writer *to; /* NULL: nothing is written */
    struct mstx_packed_out out;
    struct ms_stmt *add_group;
    MS_VEC(struct group_row) known; /* in order of appearance; index + 1 is the id */
    MS_VEC(uint32_t) id_of;         /* number in the process to index in known + 1 */
    MS_VEC(uint32_t) slot; /* hash table of uids: index in known + 1; size a power of two */
    uint32_t process;
    int32_t rank;
    int64_t calls;
    bool is_part, is_mute;
    size_t elsewhere; /* of a part: number of communicators whose rows process 0 writes */
};

static enum ms_rc prepare(struct mstx_comm_writer *w, struct ms_err *err)
{
    struct ms_store *s = mstx__writer_store(w->to);
    MS_TRY(mstx__packed_calls_new(&w->out, s, err));
    return ms_store_prepare(s, &w->add_group, "INSERT INTO comm_groups VALUES(?,?,?,?,?)", err);
}

enum ms_rc mstx__comm_writer_new(struct mstx_comm_writer **out, struct mstx_writer *to,
                                 struct ms_err *err)
{
    struct mstx_comm_writer *w = ms_calloc(1, sizeof *w);
    *out = NULL;
    if (w == NULL)
        return ms_no_memory(err);
    w->to = to;
    const enum ms_rc rc = to != NULL ? prepare(w, err) : MS_OK;
    if (rc == MS_OK)
        *out = w;
    else
        mstx__comm_writer_free(w);
    return rc;
}

void mstx__comm_writer_mute(struct mstx_comm_writer *w)
{
    w->is_mute = true;
}

void mstx__comm_writer_part(struct mstx_comm_writer *w)
{
    ms_assert(!w->is_part);
    w->is_part = true;
    w->is_mute = false;
    w->elsewhere = w->known.n;
}

void mstx__comm_writer_free(struct mstx_comm_writer *w)
{
    if (w == NULL)
        return;
    mstx__packed_free(&w->out);
    ms_stmt_free(w->add_group);
    ms_vec_free(&w->known);
    ms_vec_free(&w->id_of);
    ms_vec_free(&w->slot);
    ms_free(w);
}

void mstx__comm_writer_process(struct mstx_comm_writer *w, uint32_t process, int32_t rank,
                               uint64_t calls)
{
    ms_assert(w->out.rows.n == 0);
    w->process = process;
    w->rank = rank;
    w->calls = (int64_t)calls;
    w->id_of.n = 0;
    for (size_t i = 0; i < w->known.n; i++)
        memset(w->known.p[i].seq, 0, sizeof w->known.p[i].seq);
}

static bool grow_slots(struct mstx_comm_writer *w)
{
    size_t want = w->slot.n == 0 ? 64 : w->slot.n * 2;
    if (w->known.n * 2 < w->slot.n)
        return true;
    if (!ms_vec_reserve(&w->slot, want))
        return false;
    memset(w->slot.p, 0, want * sizeof *w->slot.p);
    w->slot.n = want;
    for (size_t i = 0; i < w->known.n; i++) {
        size_t at = (size_t)(w->known.p[i].uid * 0x9E3779B97F4A7C15u >> 32) & (want - 1);
        while (w->slot.p[at] != 0)
            at = (at + 1) & (want - 1);
        w->slot.p[at] = (uint32_t)i + 1;
    }
    return true;
}

/* Returns the index of a uid, adding it (*is_new) when it is unknown; SIZE_MAX when out of
 * memory. */
static size_t place_of(struct mstx_comm_writer *w, uint64_t uid, bool *is_new)
{
    *is_new = false;
    if (!grow_slots(w))
        return SIZE_MAX;
    size_t mask = w->slot.n - 1, at = (size_t)(uid * 0x9E3779B97F4A7C15u >> 32) & mask;
    for (; w->slot.p[at] != 0; at = (at + 1) & mask) {
        if (w->known.p[w->slot.p[at] - 1].uid == uid)
            return w->slot.p[at] - 1;
    }
    struct group_row *g = ms_vec_push(&w->known);
    if (g == NULL)
        return SIZE_MAX;
    *g = (struct group_row){.uid = uid, .id = (int64_t)w->known.n};
    if (w->is_part)
        g->id += MSTX_COMM_LATER - 1 - (int64_t)w->elsewhere;
    w->slot.p[at] = (uint32_t)w->known.n;
    *is_new = true;
    return w->known.n - 1;
}

static enum ms_rc write_row(struct mstx_comm_writer *w, int64_t id, uint64_t uid,
                            struct ms_str name, int64_t size, struct ms_str ranks,
                            struct ms_err *err)
{
    ms_assert(id >= 1);
    if (w->add_group == NULL || w->is_mute)
        return MS_OK;
    ms_stmt_i64(w->add_group, 1, id);
    ms_stmt_str(w->add_group, 2, name);
    ms_stmt_i64(w->add_group, 3, (int64_t)uid);
    ms_stmt_i64(w->add_group, 4, size);
    ms_stmt_str(w->add_group, 5, ranks.n != 0 ? ranks : MS_STR(""));
    return ms_stmt_run(w->add_group, err);
}

static enum ms_rc write_group(struct mstx_comm_writer *w, int64_t id,
                              const struct mstx_comm_known *g, struct ms_err *err)
{
    struct ms_buf ranks = {.max = (size_t)1 << 24};
    for (uint32_t i = 0; i < g->listed; i++) {
        int32_t r;
        memcpy(&r, g->world + i * sizeof r, sizeof r);
        ms_buf_printf(&ranks, i != 0 ? ",%" PRId32 : "%" PRId32, r);
    }
    enum ms_rc rc = ranks.bad != MS_OK
                        ? ms_no_memory(err)
                        : write_row(w, id, g->uid, g->name, g->size, ms_buf_slice(&ranks), err);
    ms_buf_free(&ranks);
    return rc;
}

enum ms_rc mstx__comm_writer_meet(struct mstx_comm_writer *w, const struct mstx_comm_known *g,
                                  bool *is_new, struct ms_err *err)
{
    const size_t place = place_of(w, g->uid, is_new);
    if (place == SIZE_MAX)
        return ms_no_memory(err);
    return *is_new ? write_group(w, w->known.p[place].id, g, err) : MS_OK;
}

enum ms_rc mstx__comm_writer_adopt(struct mstx_comm_writer *w, uint64_t uid, struct ms_str name,
                                   int64_t size, struct ms_str ranks, int64_t *id,
                                   struct ms_err *err)
{
    bool is_new;
    const size_t place = place_of(w, uid, &is_new);
    if (place == SIZE_MAX)
        return ms_no_memory(err);
    *id = w->known.p[place].id;
    return is_new ? write_row(w, *id, uid, name, size, ranks, err) : MS_OK;
}

enum ms_rc mstx__comm_writer_group(struct mstx_comm_writer *w, uint32_t number,
                                   const struct mstx_comm_known *g, struct ms_err *err)
{
    const uint32_t most = 1 << 24; /* bounds the table when the number is damaged */
    bool is_new;
    if (number > most)
        return MS_OK;
    size_t place = place_of(w, g->uid, &is_new);
    if (place == SIZE_MAX)
        return ms_no_memory(err);
    if (number >= w->id_of.n) {
        size_t want = (size_t)number + number / 2 + 16;
        if (!ms_vec_reserve(&w->id_of, want))
            return ms_no_memory(err);
        memset(w->id_of.p + w->id_of.n, 0, (want - w->id_of.n) * sizeof *w->id_of.p);
        w->id_of.n = want;
    }
    w->id_of.p[number] = (uint32_t)place + 1;
    return is_new ? write_group(w, w->known.p[place].id, g, err) : MS_OK;
}

uint32_t mstx__comm_writer_id(const struct mstx_comm_writer *w, uint32_t number)
{
    const uint32_t place = number < w->id_of.n ? w->id_of.p[number] : 0;
    return place != 0 ? (uint32_t)w->known.p[place - 1].id : 0;
}

static void put_moved(struct mstx_rows_out *r, const struct mstx_comm_fact *f)
{
    const struct mstx_rec_comm_part *last = f->end != NULL ? f->end : f->part;
    /* the peer of a sendrecv is the rank it sends to, not the one it receives from */
    const bool tells_source = f->end != NULL && f->rec->op != MSTX_COMM_SENDRECV;
    const int32_t peer = tells_source ? f->end->peer : f->rec->peer;
    const bool asks = mstx_comm_op_asks(f->rec->op);
    const int64_t polls = f->end != NULL && f->end->polls != 0 ? f->end->polls : 1;
    const int64_t moved = f->part != NULL ? (int64_t)f->part->sent : MSTX_ROWS_NULL;
    const int64_t sent = asks ? polls : moved;
    const int64_t received = last != NULL && !asks ? (int64_t)last->received : MSTX_ROWS_NULL;
    const int64_t tag = f->part != NULL && f->part->tag >= 0 ? f->part->tag : MSTX_ROWS_NULL;
    mstx__rows_put(r, MSTX_CALL_SENT, sent);
    mstx__rows_put(r, MSTX_CALL_RECEIVED, received);
    mstx__rows_put(r, MSTX_CALL_PEER, mstx_rows_known(peer >= 0, peer));
    mstx__rows_put(r, MSTX_CALL_TAG, tag);
}

static void put_kind(struct mstx_rows_out *r, const struct mstx_rec_comm *c, uint32_t group)
{
    ms_assert(r->n < MSTX_ROWS_MAX);
    const bool counts = mstx_comm_op_class(c->op) < MSTX_SEQUENCES && group != 0;
    mstx__rows_put(r, MSTX_CALL_GROUP, mstx_rows_known(group != 0, group));
    mstx__rows_put(r, MSTX_CALL_SEQ, mstx_rows_known(counts, c->seq));
    mstx__rows_put(r, MSTX_CALL_OP, c->op);
    mstx__rows_put(r, MSTX_CALL_LIB, c->lib);
    mstx__rows_put(r, MSTX_CALL_TYPE, c->dtype);
    mstx__rows_put(r, MSTX_CALL_REDUCE, c->reduce);
    mstx__rows_put(r, MSTX_CALL_COUNT, (int64_t)c->count);
    mstx__rows_put(r, MSTX_CALL_ELEM, c->elem);
    mstx__rows_put(r, MSTX_CALL_FLAGS, c->flags & ~MSTX_F_MORE);
}

enum ms_rc mstx__comm_writer_flush(struct mstx_comm_writer *w, struct ms_err *err)
{
    return mstx__packed_flush(&w->out, w->calls - w->out.rows.n + 1, err);
}

/* Adds the row of a call.  group is the id of a row of comm_groups, 0 for none. */
static enum ms_rc write_call(struct mstx_comm_writer *w, const struct mstx_comm_fact *f,
                             uint32_t group, const struct mstx_event *ev, uint32_t tid,
                             uint32_t name, struct ms_err *err)
{
    ms_assert(w->out.rows.n < MSTX_ROWS_MAX);
    struct mstx_rows_out *r = &w->out.rows;
    const bool has_stream = (ev->flags & MSTX_EVF_STREAM) != 0;
    mstx__rows_put(r, MSTX_CALL_ID, ++w->calls);
    mstx__rows_put(r, MSTX_CALL_PROCESS, w->process);
    mstx__rows_put(r, MSTX_CALL_RANK, mstx_rows_known(w->rank >= 0, w->rank));
    mstx__rows_put(r, MSTX_CALL_TID, tid);
    mstx__rows_put(r, MSTX_CALL_NAME, name);
    put_kind(r, f->rec, group);
    put_moved(r, f);
    mstx__rows_put(r, MSTX_CALL_STREAM, mstx_rows_known(has_stream, (int64_t)ev->arg));
    mstx__rows_put(r, MSTX_CALL_START, ev->start_ns);
    mstx__rows_put(r, MSTX_CALL_DUR, ev->dur_ns);
    mstx__rows_put(r, MSTX_CALL_DEVICE, (int64_t)ev->size); /* of the event and its device side */
    return ++r->n < MSTX_ROWS_MAX ? MS_OK : mstx__comm_writer_flush(w, err);
}

enum ms_rc mstx__comm_writer_call(struct mstx_comm_writer *w, const struct mstx_comm_fact *f,
                                  const struct mstx_event *ev, uint32_t tid, struct ms_err *err)
{
    ms_assert(f->rec->type == MSTX_REC_COMM);
    return write_call(w, f, mstx__comm_writer_id(w, f->rec->group), ev, tid, ev->name, err);
}

enum ms_rc mstx__comm_writer_add_marked(struct mstx_comm_writer *w, struct ms_str text,
                                        const struct mstx_event *ev, uint32_t tid,
                                        struct ms_err *err)
{
    struct mstx_comm_marked marked;
    bool is_new;
    if (!mstx__comm_parse_marked(text, &marked))
        return MS_OK;
    const struct mstx_comm_known g = {.uid = ms_str_hash(ms_str_of(marked.group)),
                                      .size = marked.size,
                                      .rank = -1,
                                      .world = (const char *)marked.world,
                                      .listed = marked.listed,
                                      .name = ms_str_of(marked.group)};
    size_t place = place_of(w, g.uid, &is_new);
    if (place == SIZE_MAX)
        return ms_no_memory(err);
    if (is_new)
        MS_TRY(write_group(w, w->known.p[place].id, &g, err));
    const struct mstx_comm_fact f = {.rec = &marked.rec};
    const enum mstx_comm_class class = mstx_comm_op_class(marked.rec.op);
    if (class < MSTX_SEQUENCES)
        marked.rec.seq = w->known.p[place].seq[class]++;
    struct mstx_event e = *ev;
    if ((e.flags & MSTX_EVF_STREAM) == 0 && marked.stream != 0) {
        e.flags |= MSTX_EVF_STREAM;
        e.arg = marked.stream;
    }
    const uint32_t name = mstx__writer_text(w->to, ms_str_of(marked.op));
    return write_call(w, &f, (uint32_t)w->known.p[place].id, &e, tid, name, err);
}

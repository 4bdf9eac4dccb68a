/* SPDX-License-Identifier: MIT
 *
 * cluster_save: see the header.
 */
#include "mstx/import/cluster_save.h"

#include "mstx/rundb/run_write.h"

#include "probe/base/assert.h"
#include "probe/base/store_bulk.h"

enum { NULL_HERE = -1 };

/* Binds the columns of a row; a negative number means unknown and becomes NULL. */
static void bind_columns(struct ms_stmt *st, const int64_t *column, int n)
{
    for (int i = 0; i < n; i++) {
        if (column[i] < 0)
            ms_stmt_null(st, i + 1);
        else
            ms_stmt_i64(st, i + 1, column[i]);
    }
}

static enum ms_rc put_steps(const struct mstx_cluster *c, struct ms_bulk *to, struct ms_err *err)
{
    for (size_t i = 0; i < c->step.n; i++) {
        const struct mstx_cl_step *s = &c->step.p[i];
        const int32_t rank = c->process.p[s->process].rank;
        int64_t column[] = {s->process + 1,   rank,
                            s->number,        s->start_ns,
                            s->end_ns,        s->computing_ns,
                            s->comm_ns,       s->comm_ns - s->overlapped_ns,
                            s->overlapped_ns, s->free_ns,
                            s->bubble_ns,     s->preparing_ns,
                            s->waiting_ns,    s->blame_ns};
        for (size_t k = 0; k < sizeof column / sizeof *column; k++)
            column[k] = column[k] < 0 ? MS_BULK_NULL : column[k];
        MS_TRY(ms_bulk_row(to, column, err));
    }
    return ms_bulk_flush(to, err);
}

static enum ms_rc save_steps(const struct mstx_cluster *c, struct ms_store *s, struct ms_err *err)
{
    struct ms_bulk *to;
    MS_TRY(ms_bulk_new(&to, s, "INSERT INTO rank_steps VALUES", "(?,?,?,?,?,?,?,?,?,?,?,?,?,?)", 14,
                       err));
    enum ms_rc rc = put_steps(c, to, err);
    ms_bulk_free(to);
    return rc;
}

static void put_join(const struct mstx_cluster *c, const struct mstx_cl_join *j,
                     struct mstx_rows_out *r)
{
    ms_assert(j->group < c->group.n && j->ranks >= 1);
    const struct mstx_cl_group *g = &c->group.p[j->group];
    const bool known = j->transfer_ns > 0;
    const int64_t missing = g->size >= 0 && g->size > j->ranks ? g->size - j->ranks : 0;
    const int64_t last = known ? c->process.p[j->last].rank : -1;
    mstx__rows_put(r, MSTX_JOIN_GROUP, g->id);
    mstx__rows_put(r, MSTX_JOIN_SEQ, j->seq);
    mstx__rows_put(r, MSTX_JOIN_OP, j->op);
    mstx__rows_put(r, MSTX_JOIN_STEP, mstx_rows_known(j->step != MSTX_NO_STEP, j->step));
    mstx__rows_put(r, MSTX_JOIN_RANKS, j->ranks);
    mstx__rows_put(r, MSTX_JOIN_MISSING, missing);
    mstx__rows_put(r, MSTX_JOIN_AGREES, j->agrees);
    mstx__rows_put(r, MSTX_JOIN_BYTES, (int64_t)j->bytes);
    mstx__rows_put(r, MSTX_JOIN_START, j->start_ns);
    mstx__rows_put(r, MSTX_JOIN_TRANSFER, mstx_rows_known(j->transfer_ns >= 0, j->transfer_ns));
    mstx__rows_put(r, MSTX_JOIN_SKEW, mstx_rows_known(known, j->skew_ns));
    mstx__rows_put(r, MSTX_JOIN_WAITED, mstx_rows_known(known, j->waited_ns));
    mstx__rows_put(r, MSTX_JOIN_LAST, mstx_rows_known(last >= 0, last));
    r->n++;
}

enum ms_rc mstx__joins_begin(struct mstx_join_saver *j, struct ms_store *s, struct ms_err *err)
{
    j->stretch = 0;
    return mstx__packed_joins_new(&j->out, s, err);
}

/* Packs each stretch of MSTX_JOINS_TOGETHER places into one blob, so that blobs depend neither on the
 * number of importing processes nor on the ranges. */
enum ms_rc mstx__joins_save(struct mstx_join_saver *j, const struct mstx_cluster *c,
                            struct ms_err *err)
{
    for (size_t i = 0; i < c->join.n; i++) {
        const struct mstx_cl_join *join = &c->join.p[i];
        const struct mstx_cl_group *g = &c->group.p[join->group];
        const size_t here = (g->place + join->seq - g->first_seq) / MSTX_JOINS_TOGETHER;
        ms_assert(here >= j->stretch);
        if (here != j->stretch)
            MS_TRY(mstx__joins_finish(j, err));
        j->stretch = here;
        put_join(c, join, &j->out.rows);
    }
    return MS_OK;
}

enum ms_rc mstx__joins_finish(struct mstx_join_saver *j, struct ms_err *err)
{
    return mstx__packed_flush(&j->out, (int64_t)j->stretch + 1, err);
}

void mstx__joins_end(struct mstx_join_saver *j)
{
    mstx__packed_free(&j->out);
}

static enum ms_rc save_links(const struct mstx_cluster *c, struct ms_stmt *st, struct ms_err *err)
{
    for (size_t i = 0; i < c->link.n; i++) {
        const struct mstx_cl_link *l = &c->link.p[i];
        const int64_t column[] = {
            l->src,       l->dst,   c->group.p[l->group].id, 0, (int64_t)l->bytes,
            l->hosts > 1, l->calls, l->transfer_ns};
        bind_columns(st, column, sizeof column / sizeof *column);
        ms_stmt_str(st, 4, ms_str_of(mstx_comm_op_text(l->op)));
        ms_stmt_f64(st, 9, l->transfer_ns > 0 ? (double)l->bytes / (double)l->transfer_ns : 0);
        ms_stmt_f64(st, 10, l->ratio);
        ms_stmt_f64(st, 11, l->z);
        MS_TRY(ms_stmt_run(st, err));
    }
    return MS_OK;
}

static enum ms_rc write_notes(const struct mstx_cluster *c, struct ms_stmt *st, struct ms_buf *text,
                              struct ms_err *err)
{
    for (size_t i = 0; i < c->note.n; i++) {
        const struct mstx_cl_note *n = &c->note.p[i];
        const int64_t column[] = {
            0, 0, n->rank, n->first_step, n->last_step, 0, n->at_ns != 0 ? n->at_ns : NULL_HERE};
        const struct ms_stored_message message = ms_message_stored(&n->message);
        ms_assert(ms_message_is_whole(&n->message));
        ms_buf_clear(text);
        ms_message_speak(message, text);
        MS_TRY(ms_buf_check(text, err));
        bind_columns(st, column, sizeof column / sizeof *column);
        ms_stmt_str(st, 1, ms_str_of(n->kind));
        ms_stmt_str(st, 2, ms_str_of(n->severity));
        ms_stmt_f64(st, 6, n->value);
        ms_stmt_str(st, 8, ms_buf_slice(text));
        ms_stmt_str(st, 9, message.kind);
        ms_stmt_str(st, 10, message.args);
        MS_TRY(ms_stmt_run(st, err));
    }
    return MS_OK;
}

static enum ms_rc save_notes(const struct mstx_cluster *c, struct ms_stmt *st, struct ms_err *err)
{
    struct ms_buf text = {.max = 4 * MS_MESSAGE_MAX};
    const enum ms_rc rc = write_notes(c, st, &text, err);
    ms_buf_free(&text);
    return rc;
}

struct table {
    size_t rows;
    const char *sql;
    enum ms_rc (*save)(const struct mstx_cluster *c, struct ms_stmt *st, struct ms_err *err);
};

static enum ms_rc save_table(const struct mstx_cluster *c, struct ms_store *s,
                             const struct table *t, struct ms_err *err)
{
    ms_assert(t->save != NULL);
    struct ms_stmt *st;
    if (t->rows == 0)
        return MS_OK;
    MS_TRY(ms_store_prepare(s, &st, t->sql, err));
    enum ms_rc rc = t->save(c, st, err);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx__cluster_save_joins(const struct mstx_cluster *c, struct ms_store *s,
                                    struct ms_err *err)
{
    struct mstx_join_saver j;
    MS_TRY(mstx__joins_begin(&j, s, err));
    enum ms_rc rc = mstx__joins_save(&j, c, err);
    if (rc == MS_OK)
        rc = mstx__joins_finish(&j, err);
    mstx__joins_end(&j);
    return rc;
}

enum ms_rc mstx__cluster_save(const struct mstx_cluster *c, struct ms_store *s, struct ms_err *err)
{
    const struct table tables[] = {
        {c->link.n, "INSERT INTO links VALUES(?,?,?,?,?,?,?,?,?,?,?)", save_links},
        {c->note.n, "INSERT INTO conclusions VALUES(?,?,?,?,?,?,?,?,?,?)", save_notes},
    };
    MS_TRY(save_steps(c, s, err));
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        MS_TRY(save_table(c, s, &tables[i], err));
    return MS_OK;
}

enum ms_rc mstx__cluster_save_all(const struct mstx_cluster *c, struct mstx_writer *w,
                                  struct ms_err *err)
{
    if (mstx__writer_bad(w)) /* the writer keeps the failure */
        return MS_OK;
    MS_TRY(mstx__cluster_save_joins(c, mstx__writer_store(w), err));
    return mstx__cluster_save(c, mstx__writer_store(w), err);
}

/* SPDX-License-Identifier: MIT
 *
 * cl_save: the tables rank_steps, joins, links and conclusions of run.db.
 */
#include "mstx/tl_cluster.h"

#include "mstx/tl_write.h"

enum { NULL_HERE = -1 };

/* Negative numbers are not known. */
static void bind(struct ms_stmt *st, const int64_t *column, int n)
{
    for (int i = 0; i < n; i++) {
        if (column[i] < 0)
            ms_stmt_null(st, i + 1);
        else
            ms_stmt_i64(st, i + 1, column[i]);
    }
}

static enum ms_rc save_steps(const struct mstx_cluster *c, struct ms_stmt *st, struct ms_err *err)
{
    for (size_t i = 0; i < c->step.n; i++) {
        const struct mstx_cl_step *s = &c->step.p[i];
        const int64_t column[] = {s->process + 1,   c->process.p[s->process].rank,
                                  s->number,        s->start_ns,
                                  s->end_ns,        s->computing_ns,
                                  s->comm_ns,       s->comm_ns - s->overlapped_ns,
                                  s->overlapped_ns, s->free_ns,
                                  s->bubble_ns,     s->preparing_ns,
                                  s->waiting_ns,    s->blame_ns};
        bind(st, column, sizeof column / sizeof *column);
        MS_TRY(ms_stmt_run(st, err));
    }
    return MS_OK;
}

static enum ms_rc save_joins(const struct mstx_cluster *c, struct ms_stmt *st, struct ms_err *err)
{
    for (size_t i = 0; i < c->join.n; i++) {
        const struct mstx_cl_join *j = &c->join.p[i];
        const struct mstx_cl_group *g = &c->group.p[j->group];
        const bool known = j->transfer_ns > 0;
        const int64_t column[] = {g->id,
                                  j->seq,
                                  0,
                                  j->step != MSTX_NO_STEP ? (int64_t)j->step : NULL_HERE,
                                  j->ranks,
                                  g->size >= 0 && g->size > j->ranks ? g->size - j->ranks : 0,
                                  j->agrees,
                                  (int64_t)j->bytes,
                                  j->start_ns,
                                  j->transfer_ns,
                                  known ? j->skew_ns : NULL_HERE,
                                  known ? j->waited_ns : NULL_HERE,
                                  known ? c->process.p[j->last].rank : NULL_HERE};
        const double rate =
            known ? mstx_cl_algorithm_bytes(j->op, j->bytes, j->ranks) / (double)j->transfer_ns : 0;
        bind(st, column, sizeof column / sizeof *column);
        ms_stmt_str(st, 3, ms_str_of(mstx_comm_op_text(j->op)));
        ms_stmt_f64(st, 14, rate);
        ms_stmt_f64(st, 15, rate * mstx_cl_bus_factor(j->op, j->ranks));
        MS_TRY(ms_stmt_run(st, err));
    }
    return MS_OK;
}

static enum ms_rc save_links(const struct mstx_cluster *c, struct ms_stmt *st, struct ms_err *err)
{
    for (size_t i = 0; i < c->link.n; i++) {
        const struct mstx_cl_link *l = &c->link.p[i];
        const int64_t column[] = {
            l->src,       l->dst,   c->group.p[l->group].id, 0, (int64_t)l->bytes,
            l->hosts > 1, l->calls, l->transfer_ns};
        bind(st, column, sizeof column / sizeof *column);
        ms_stmt_str(st, 4, ms_str_of(mstx_comm_op_text(l->op)));
        ms_stmt_f64(st, 9, l->transfer_ns > 0 ? (double)l->bytes / (double)l->transfer_ns : 0);
        ms_stmt_f64(st, 10, l->ratio);
        ms_stmt_f64(st, 11, l->z);
        MS_TRY(ms_stmt_run(st, err));
    }
    return MS_OK;
}

static enum ms_rc save_notes(const struct mstx_cluster *c, struct ms_stmt *st, struct ms_err *err)
{
    for (size_t i = 0; i < c->note.n; i++) {
        const struct mstx_cl_note *n = &c->note.p[i];
        const int64_t column[] = {
            0, 0, n->rank, n->first_step, n->last_step, 0, n->at_ns != 0 ? n->at_ns : NULL_HERE};
        bind(st, column, sizeof column / sizeof *column);
        ms_stmt_str(st, 1, ms_str_of(n->kind));
        ms_stmt_str(st, 2, ms_str_of(n->severity));
        ms_stmt_f64(st, 6, n->value);
        ms_stmt_str(st, 8, ms_str_of(n->text));
        MS_TRY(ms_stmt_run(st, err));
    }
    return MS_OK;
}

struct table {
    size_t rows;
    const char *sql;
    enum ms_rc (*save)(const struct mstx_cluster *c, struct ms_stmt *st, struct ms_err *err);
};

static enum ms_rc save(const struct mstx_cluster *c, struct ms_store *s, const struct table *t,
                       struct ms_err *err)
{
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
    const struct table joins = {
        c->join.n, "INSERT INTO joins VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", save_joins};
    return save(c, s, &joins, err);
}

enum ms_rc mstx__cluster_save(const struct mstx_cluster *c, struct ms_store *s, struct ms_err *err)
{
    const struct table tables[] = {
        {c->step.n, "INSERT INTO rank_steps VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)", save_steps},
        {c->link.n, "INSERT INTO links VALUES(?,?,?,?,?,?,?,?,?,?,?)", save_links},
        {c->note.n, "INSERT INTO conclusions VALUES(?,?,?,?,?,?,?,?)", save_notes},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        MS_TRY(save(c, s, &tables[i], err));
    return MS_OK;
}

enum ms_rc mstx__cluster_save_all(const struct mstx_cluster *c, struct mstx_writer *w,
                                  struct ms_err *err)
{
    if (mstx__writer_bad(w)) /* it keeps why */
        return MS_OK;
    MS_TRY(mstx__cluster_save_joins(c, mstx__writer_store(w), err));
    return mstx__cluster_save(c, mstx__writer_store(w), err);
}

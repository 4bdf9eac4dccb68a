/* SPDX-License-Identifier: MIT
 *
 * tl_hang: see the header.  Who waits in a call is told by the ranks themselves; who has not
 * come to a collective is who of all ranks is not among them.
 */
#include "mstx/tl_hang.h"

#include "mstx/comm.h"
#include "mstx/tl_export.h"
#include "mstx/tl_report.h"

#include "probe/base/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- importing ---------------------------------------------------------------- */

static bool bind(struct ms_stmt *add, const struct ms_str text)
{
    struct mstx_hang h;
    if (text.n < sizeof h)
        return false;
    memcpy(&h, text.p, sizeof h);
    const uint32_t name = sizeof h, group = name + h.name_len, rest = group + h.group_len;
    if (rest > text.n)
        return false;
    const int64_t column[] = {(int64_t)h.uid, h.seq, h.size, h.on_device, h.waited_ns, h.tid, h.op};
    ms_stmt_str(add, 3, ms_str_sub(text, name, group));
    ms_stmt_str(add, 4, ms_str_sub(text, group, rest));
    for (int n = 0; n < 7; n++)
        ms_stmt_i64(add, 5 + n, column[n]);
    ms_stmt_str(add, 12, ms_str_sub(text, rest, text.n));
    return true;
}

void mstx__hangs_write(struct mstx_writer *w, uint32_t process, int32_t rank,
                       const struct mstx_texts *t)
{
    struct ms_err err = {0};
    struct ms_stmt *add = NULL;
    if (t->hangs.n == 0)
        return;
    enum ms_rc rc = ms_store_prepare(mstx__writer_store(w), &add,
                                     "INSERT INTO hangs VALUES(?,?,?,?,?,?,?,?,?,?,?,?)", &err);
    for (size_t i = 0; rc == MS_OK && i < t->hangs.n; i++) {
        ms_stmt_i64(add, 1, process);
        ms_stmt_i64(add, 2, rank);
        if (bind(add, t->hangs.p[i].text))
            rc = ms_stmt_run(add, &err);
    }
    if (rc != MS_OK)
        mstx__writer_fail(w, &err);
    ms_stmt_free(add);
}

/* ---- findings -------------------------------------------------------------------- */

/* "MPI_Allreduce (call 17) of MPI_COMM_WORLD", "MPI_Recv (call 3) from rank 2 of MPI_COMM_WORLD" */
static void put_call(char *out, size_t cap, struct ms_stmt *st)
{
    struct ms_str name = ms_stmt_get_str(st, 2), comm = ms_stmt_get_str(st, 3);
    const int64_t op = ms_stmt_get_i64(st, 5), peer = ms_stmt_get_i64(st, 9);
    char call[32] = "", with[32] = "";
    if (op > 0 && mstx_comm_op_class((unsigned)op) < MSTX_SEQUENCES)
        snprintf(call, sizeof call, " (call %" PRId64 ")", ms_stmt_get_i64(st, 4));
    if (peer >= 0 && mstx_comm_op_class((unsigned)op) == MSTX_CLASS_P2P)
        snprintf(with, sizeof with, " %s rank %" PRId64, op == MSTX_COMM_RECV ? "from" : "to",
                 peer);
    snprintf(out, cap, "%.*s%s%s%s%.*s", MS_STR_ARG(name), call, with, comm.n != 0 ? " of " : "",
             MS_STR_ARG(comm));
}

typedef void hang_text_fn(struct mstx_finding *f, struct ms_stmt *st);

static void waits(struct mstx_finding *f, struct ms_stmt *st)
{
    char call[160], who[MSTX_WHO_MAX];
    put_call(call, sizeof call, st);
    mstx__put_who(who, f->rank, ms_stmt_get_i64(st, 1), ms_stmt_get_str(st, 8));
    if (ms_stmt_get_i64(st, 7) != 0)
        snprintf(f->text, sizeof f->text,
                 "the device of %s did not come to %.*s on %.*s for %.1f s", who,
                 MS_STR_ARG(ms_stmt_get_str(st, 2)), MS_STR_ARG(ms_stmt_get_str(st, 3)), f->value);
    else
        snprintf(f->text, sizeof f->text, "%s waited in %.110s for %.1f s", who, call, f->value);
}

static void is_missing(struct mstx_finding *f, struct ms_stmt *st)
{
    char call[160];
    int64_t there = ms_stmt_get_i64(st, 1);
    put_call(call, sizeof call, st);
    snprintf(f->text, sizeof f->text,
             "rank %" PRId32 " did not come to %.110s, in which %" PRId64
             " rank%s waited for %.1f s",
             f->rank, call, there, there == 1 ? "" : "s", f->value);
}

/* Columns: rank, number for the text, name, comm, seq, op, waited_ns, on_device, process, peer or -1. */
static enum ms_rc find(struct mstx_tl *tl, struct mstx_report *r, const char *sql,
                       enum mstx_severity severity, hang_text_fn *text, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, sql, err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        struct mstx_finding *f =
            mstx__finding_add(r, "hang", severity, (int32_t)ms_stmt_get_i64(st, 0),
                              (double)ms_stmt_get_i64(st, 6) / 1e9);
        if (f == NULL) {
            rc = ms_no_memory(err);
            break;
        }
        text(f, st);
        rc = ms_stmt_step(st, &more, err);
    }
    ms_stmt_free(st);
    return rc;
}

/* A collective of all ranks that some are in and others are not: op 1 to 22 are collectives.  Who waits
 * elsewhere himself is to blame only where every rank waits for something. */
#define MISSING                                                                                    \
    "SELECT r.rank, count(DISTINCT h.rank), h.name, h.comm, h.seq, h.op, max(h.waited_ns), 0,"     \
    " '', -1"                                                                                      \
    " FROM hangs h JOIN ranks r ON r.rank >= 0 AND NOT EXISTS (SELECT 1 FROM hangs g"              \
    "  WHERE g.rank = r.rank AND g.name = h.name AND"                                              \
    "  (g.on_device = 1 OR (g.uid = h.uid AND g.seq = h.seq)))"                                    \
    " WHERE h.on_device = 0 AND h.uid <> 0 AND h.op BETWEEN 1 AND 22 AND h.size ="                 \
    "  (SELECT count(*) FROM ranks WHERE rank >= 0)"                                               \
    " AND (r.rank NOT IN (SELECT rank FROM hangs WHERE on_device = 0) OR NOT EXISTS"               \
    "  (SELECT 1 FROM ranks q WHERE q.rank >= 0 AND q.rank NOT IN (SELECT rank FROM hangs)))"      \
    " GROUP BY h.uid, h.seq, h.name, r.rank"
static_assert(MSTX_COMM_BARRIER == 1 && MSTX_COMM_NEIGHBOR_ALLTOALL_W == 22, "collectives");

/* With whom a transfer is, by the call that is still open. */
#define PEER                                                                                       \
    "coalesce((SELECT max(o.peer) FROM comm_ops o JOIN comm_groups g ON g.id = o.comm_group"       \
    " WHERE o.rank = h.rank AND o.seq = h.seq AND g.key = h.uid AND o.name = h.name"               \
    " AND o.class = 1), -1)"

enum ms_rc mstx__find_hangs(struct mstx_tl *tl, struct mstx_report *r, struct ms_err *err)
{
    size_t before = r->findings.n;
    MS_TRY(find(tl, r, MISSING " ORDER BY 1 LIMIT 100", MSTX_ERROR_FINDING, is_missing, err));
    bool is_explained = r->findings.n > before; /* then the others are its victims */
    return find(
        tl, r,
        "SELECT h.rank, p.pid, h.name, h.comm, h.seq, h.op, h.waited_ns, h.on_device, p.name, " PEER
        " FROM hangs h JOIN processes p ON p.id = h.process ORDER BY h.rank, h.on_device"
        " LIMIT 1000",
        is_explained ? MSTX_WARNING_FINDING : MSTX_ERROR_FINDING, waits, err);
}

enum ms_rc mstx__hangs_stacks(struct mstx_tl *tl, mstx_stacks_fn *fn, void *ctx, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st,
                            "SELECT rank, name, stacks FROM hangs WHERE stacks <> ''"
                            " ORDER BY rank, process, rowid",
                            err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
        fn(ctx, (int32_t)ms_stmt_get_i64(st, 0), ms_stmt_get_str(st, 1), ms_stmt_get_str(st, 2));
        rc = ms_stmt_step(st, &more, err);
    }
    ms_stmt_free(st);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * hang: see the header.  Each rank recorded the call in which it waits; all other ranks of the
 * communicator are missing from a collective.
 */
#include "mstx/conclude/hang.h"

#include "mstx/conclude/finding_kinds.h"
#include "mstx/conclude/live.h"
#include "mstx/format/comm.h"

#include "probe/base/store.h"

#include <string.h>

/* Adds the arguments call, seq, way, peer and comm. */
static void say_call(struct ms_message *m, struct ms_stmt *st)
{
    const uint8_t op = (uint8_t)ms_stmt_get_i64(st, 5);
    ms_message_str(m, "call", ms_stmt_get_str(st, 2));
    if (op != MSTX_COMM_NONE && mstx_comm_op_class(op) < MSTX_SEQUENCES)
        ms_message_i64(m, "seq", ms_stmt_get_i64(st, 4));
    if (!ms_stmt_is_null(st, 9) && ms_stmt_get_i64(st, 9) >= 0 && mstx_comm_op_has_peer(op)) {
        const bool is_from = op == MSTX_COMM_RECV || op == MSTX_COMM_PROBE;
        ms_message_str(m, "way",
                       ms_str_of(is_from                ? "from"
                                 : op == MSTX_COMM_SEND ? "to"
                                                        : "with"));
        ms_message_i64(m, "peer", ms_stmt_get_i64(st, 9));
    }
    if (ms_stmt_get_str(st, 3).n != 0)
        ms_message_str(m, "comm", ms_stmt_get_str(st, 3));
}

typedef void hang_say_fn(struct mstx_finding *f, struct ms_stmt *st);

static void say_waits(struct mstx_finding *f, struct ms_stmt *st)
{
    const bool on_device = ms_stmt_get_i64(st, 7) != 0;
    ms_message_begin(&f->message, on_device ? &mstx_say_device_late : &mstx_say_waits);
    mstx__message_process(&f->message, f->rank, ms_stmt_get_i64(st, 1), ms_stmt_get_str(st, 8));
    ms_message_f64(&f->message, "waited_s", f->value);
    if (!on_device) {
        say_call(&f->message, st);
        return;
    }
    ms_message_str(&f->message, "call", ms_stmt_get_str(st, 2));
    ms_message_str(&f->message, "stream", ms_stmt_get_str(st, 3));
}

static void say_misses(struct mstx_finding *f, struct ms_stmt *st,
                       const struct ms_message_kind *kind)
{
    ms_message_begin(&f->message, kind);
    ms_message_i64(&f->message, "rank", f->rank);
    ms_message_i64(&f->message, "waiting", ms_stmt_get_i64(st, 1));
    ms_message_f64(&f->message, "waited_s", f->value);
    say_call(&f->message, st);
}

static void say_misses_collective(struct mstx_finding *f, struct ms_stmt *st)
{
    say_misses(f, st, &mstx_say_misses_collective);
}

static void say_misses_transfer(struct mstx_finding *f, struct ms_stmt *st)
{
    say_misses(f, st, &mstx_say_misses_transfer);
}

/* Adds a finding for each row of a query with the columns rank, a number for the sentence, name,
 * comm, seq, op, waited_ns, on_device, process, peer or NULL. */
static enum ms_rc find_rows(struct mstx_tl *tl, mstx_findings *to, const char *sql,
                            enum mstx_severity severity, hang_say_fn *say, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, sql, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        struct mstx_finding *f = mstx__finding_add(to, "hang", &mstx_say_waits, severity,
                                                   (int32_t)ms_stmt_get_i64(st, 0),
                                                   (double)ms_stmt_get_i64(st, 6) / 1e9);
        if (f == NULL) {
            rc = ms_no_memory(err);
            break;
        }
        say(f, st);
        if (say == say_misses_collective)
            rc = mstx__say_where(tl, &f->message, f->rank, err);
    }
    ms_stmt_free(st);
    return rc;
}

#define WAITING "(SELECT rank FROM hangs WHERE on_device = 0)"

/* Ranks that are missing from a collective (op 1 to 22) in which other ranks wait.  A rank that
 * waits in another call counts as missing only when every rank waits in some call. */
#define COLLECTIVE                                                                                 \
    "SELECT r.rank, count(DISTINCT h.rank), h.name, h.comm, h.seq, h.op, max(h.waited_ns), 0,"     \
    " '', NULL"                                                                                    \
    " FROM hangs h JOIN ranks r ON r.rank >= 0 AND NOT EXISTS (SELECT 1 FROM hangs g"              \
    "  WHERE g.rank = r.rank AND g.name = h.name AND"                                              \
    "  (g.on_device = 1 OR (g.uid = h.uid AND g.seq = h.seq)))"                                    \
    " WHERE h.on_device = 0 AND h.uid <> 0 AND h.op BETWEEN 1 AND 22"                              \
    " AND (h.size = (SELECT count(*) FROM ranks WHERE rank >= 0) OR EXISTS"                        \
    "  (SELECT 1 FROM comm_groups c WHERE c.key = h.uid"                                           \
    "   AND instr(',' || c.ranks || ',', ',' || r.rank || ',') > 0))"                              \
    " AND (r.rank NOT IN " WAITING " OR NOT EXISTS"                                                \
    "  (SELECT 1 FROM ranks q WHERE q.rank >= 0 AND q.rank NOT IN (SELECT rank FROM hangs)))"      \
    " GROUP BY h.uid, h.seq, h.name, r.rank ORDER BY 1 LIMIT 100"
static_assert(MSTX_COMM_BARRIER == 1 && MSTX_COMM_NEIGHBOR_ALLTOALL_W == 22, "collectives");

/* Ranks at the other end of a waiting transfer that do not wait themselves.  A call that waits for
 * several transfers does not record which of them are complete: a transfer counts as complete when
 * the peer has started at least as many matching transfers. */
#define TRANSFER                                                                                   \
    "WITH t AS (SELECT h.*, o.tag, o.op AS way, o.start_ns, g.id AS comm_group,"                   \
    "  (SELECT key FROM json_each('[' || g.ranks || ']') WHERE value = h.rank) AS here,"           \
    "  (SELECT key FROM json_each('[' || g.ranks || ']') WHERE value = h.peer) AS there"           \
    " FROM hangs h LEFT JOIN comm_groups g ON g.key = h.uid"                                       \
    " LEFT JOIN comm_ops o ON o.rank = h.rank AND o.comm_group = g.id AND o.seq = h.seq"           \
    "  AND o.class = 1 AND o.name = h.name"                                                        \
    " WHERE h.on_device = 0 AND h.peer NOT IN " WAITING                                            \
    "  AND h.peer IN (SELECT rank FROM ranks) LIMIT 100),"                                         \
    " began AS MATERIALIZED (SELECT rank, comm_group, op, peer, tag, start_ns FROM comm_ops"       \
    "  WHERE class = 1 AND rank IN (SELECT rank FROM t UNION SELECT peer FROM t))"                 \
    " SELECT peer, count(DISTINCT rank), name, comm, seq, op, max(waited_ns), 0, '', NULL FROM t"  \
    " WHERE way IS NULL OR here IS NULL OR"                                                        \
    "  (SELECT count(*) FROM began b WHERE b.rank = t.peer AND b.comm_group = t.comm_group"        \
    "   AND (b.op <> t.way OR t.way = 'SendRecv') AND b.tag IN (t.tag, -1)"                        \
    "   AND (b.peer = t.here OR b.peer IS NULL) AND b.start_ns < t.start_ns + t.waited_ns)"        \
    "  < (SELECT count(*) FROM began b WHERE b.rank = t.rank AND b.comm_group = t.comm_group"      \
    "   AND b.op = t.way AND b.peer = t.there AND b.tag = t.tag AND b.start_ns <= t.start_ns)"     \
    " GROUP BY t.peer ORDER BY 1 LIMIT 100"

/* The ranks that wait.  When a call waits for several peers, peers that wait themselves are left
 * out if another peer does not. */
#define VICTIMS                                                                                    \
    "SELECT h.rank, p.pid, h.name, h.comm, h.seq, h.op, h.waited_ns, h.on_device, p.name, h.peer"  \
    " FROM hangs h JOIN processes p ON p.id = h.process"                                           \
    " WHERE h.peer IS NULL OR h.peer NOT IN " WAITING " OR NOT EXISTS"                             \
    "  (SELECT 1 FROM hangs g WHERE g.process = h.process AND g.tid = h.tid"                       \
    "   AND g.peer NOT IN " WAITING ")"                                                            \
    " ORDER BY h.rank, h.on_device LIMIT 1000"

enum ms_rc mstx__find_hangs(struct mstx_tl *tl, mstx_findings *to, struct ms_err *err)
{
    size_t before = to->n;
    MS_TRY(find_rows(tl, to, COLLECTIVE, MSTX_ERROR_FINDING, say_misses_collective, err));
    MS_TRY(find_rows(tl, to, TRANSFER, MSTX_ERROR_FINDING, say_misses_transfer, err));
    bool is_explained = to->n > before; /* waiting ranks are then only a consequence */
    return find_rows(tl, to, VICTIMS, is_explained ? MSTX_WARNING_FINDING : MSTX_ERROR_FINDING,
                     say_waits, err);
}

enum ms_rc mstx__hangs_stacks(struct mstx_tl *tl, mstx_stacks_fn *fn, void *ctx, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st,
                            "SELECT rank, name, stacks FROM hangs WHERE stacks <> ''"
                            " ORDER BY rank, process, rowid",
                            err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        fn(ctx, (int32_t)ms_stmt_get_i64(st, 0), ms_stmt_get_str(st, 1), ms_stmt_get_str(st, 2));
    ms_stmt_free(st);
    return rc;
}

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
    enum { FIRST = 5, COLUMNS = sizeof column / sizeof *column };
    ms_stmt_str(add, 3, ms_str_sub(text, name, group));
    ms_stmt_str(add, 4, ms_str_sub(text, group, rest));
    for (int n = 0; n < COLUMNS; n++)
        ms_stmt_i64(add, FIRST + n, column[n]);
    if (h.peer_plus_1 > 0)
        ms_stmt_i64(add, FIRST + COLUMNS, h.peer_plus_1 - 1);
    else
        ms_stmt_null(add, FIRST + COLUMNS);
    ms_stmt_str(add, FIRST + COLUMNS + 1, ms_str_sub(text, rest, text.n));
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
                                     "INSERT INTO hangs VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)", &err);
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

static void copy(char *out, size_t cap, struct ms_str s)
{
    snprintf(out, cap, "%.*s", MS_STR_ARG(s));
}

static void put_call(char out[MSTX_COMM_SPOKEN], struct ms_stmt *st)
{
    struct mstx_comm_told c = {.op = (uint8_t)ms_stmt_get_i64(st, 5),
                               .seq = (uint32_t)ms_stmt_get_i64(st, 4),
                               .peer =
                                   ms_stmt_is_null(st, 9) ? -1 : (int32_t)ms_stmt_get_i64(st, 9)};
    copy(c.name, sizeof c.name, ms_stmt_get_str(st, 2));
    copy(c.group, sizeof c.group, ms_stmt_get_str(st, 3));
    mstx_comm_speak(out, &c);
}

typedef void hang_text_fn(struct mstx_finding *f, struct ms_stmt *st);

static void waits(struct mstx_finding *f, struct ms_stmt *st)
{
    char call[MSTX_COMM_SPOKEN], who[MSTX_WHO_MAX];
    put_call(call, st);
    mstx__put_who(who, f->rank, ms_stmt_get_i64(st, 1), ms_stmt_get_str(st, 8));
    if (ms_stmt_get_i64(st, 7) != 0)
        snprintf(f->text, sizeof f->text,
                 "the device of %s did not come to %.*s on %.*s for %.1f s", who,
                 MS_STR_ARG(ms_stmt_get_str(st, 2)), MS_STR_ARG(ms_stmt_get_str(st, 3)), f->value);
    else
        snprintf(f->text, sizeof f->text, "%s waited in %.110s for %.1f s", who, call, f->value);
}

static void is_missed(struct mstx_finding *f, struct ms_stmt *st, const char *where)
{
    char call[MSTX_COMM_SPOKEN];
    const int64_t there = ms_stmt_get_i64(st, 1);
    put_call(call, st);
    snprintf(f->text, sizeof f->text,
             "rank %" PRId32 " did not come to %s%.110s, in which %" PRId64
             " rank%s waited for %.1f s",
             f->rank, where, call, there, there == 1 ? "" : "s", f->value);
}

static void misses_collective(struct mstx_finding *f, struct ms_stmt *st)
{
    is_missed(f, st, "");
}

static void misses_transfer(struct mstx_finding *f, struct ms_stmt *st)
{
    is_missed(f, st, "the other end of ");
}

/* Columns: rank, number for the text, name, comm, seq, op, waited_ns, on_device, process, peer or NULL. */
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

#define WAITING "(SELECT rank FROM hangs WHERE on_device = 0)"

/* A collective that some of its ranks are in and others are not: op 1 to 22 are collectives.  Who waits
 * elsewhere himself is to blame only where every rank waits for something. */
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

/* Who is waited for at the other end of a transfer and waits for nothing himself.  A call that waits for
 * several does not say which of them are done: those are, of which the other end had begun as many. */
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

/* Of several that one call waits for, those are passed over whose other end waits as well. */
#define VICTIMS                                                                                    \
    "SELECT h.rank, p.pid, h.name, h.comm, h.seq, h.op, h.waited_ns, h.on_device, p.name, h.peer"  \
    " FROM hangs h JOIN processes p ON p.id = h.process"                                           \
    " WHERE h.peer IS NULL OR h.peer NOT IN " WAITING " OR NOT EXISTS"                             \
    "  (SELECT 1 FROM hangs g WHERE g.process = h.process AND g.tid = h.tid"                       \
    "   AND g.peer NOT IN " WAITING ")"                                                            \
    " ORDER BY h.rank, h.on_device LIMIT 1000"

enum ms_rc mstx__find_hangs(struct mstx_tl *tl, struct mstx_report *r, struct ms_err *err)
{
    size_t before = r->findings.n;
    MS_TRY(find(tl, r, COLLECTIVE, MSTX_ERROR_FINDING, misses_collective, err));
    MS_TRY(find(tl, r, TRANSFER, MSTX_ERROR_FINDING, misses_transfer, err));
    bool is_explained = r->findings.n > before; /* then the others are its victims */
    return find(tl, r, VICTIMS, is_explained ? MSTX_WARNING_FINDING : MSTX_ERROR_FINDING, waits,
                err);
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

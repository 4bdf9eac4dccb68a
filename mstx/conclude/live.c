/* SPDX-License-Identifier: MIT
 *
 * live: see the header.
 */
#include "mstx/conclude/live.h"

#include "mstx/conclude/finding_kinds.h"
#include "mstx/format/note_kinds.h"
#include "mstx/rundb/events_table.h"

#include "probe/base/store.h"

#include <string.h>

bool mstx__may_run(struct ms_str state)
{
    return ms_str_is(state, "running") || ms_str_is(state, "not finished");
}

/* Reads the number that a query returns; `none` when there is no row or the number is NULL. */
static enum ms_rc read_number(struct mstx_tl *tl, const char *sql, int64_t rank, int64_t none,
                              int64_t *out, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *out = none;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, sql, err));
    if (ms_stmt_params(st) != 0)
        ms_stmt_i64(st, 1, rank);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more && !ms_stmt_is_null(st, 0))
        *out = ms_stmt_get_i64(st, 0);
    ms_stmt_free(st);
    return rc;
}

/* Searches only the last second of the rank and prefers an event that is still open. */
enum ms_rc mstx__say_where(struct mstx_tl *tl, struct ms_message *m, int32_t rank,
                           struct ms_err *err)
{
    struct ms_stmt *st;
    int64_t end_ns;
    bool more;
    MS_TRY(mstx_tl_add_events(tl, err));
    MS_TRY(read_number(tl, "SELECT max(end_ns) FROM processes WHERE rank = ?1", rank, 0, &end_ns,
                       err));
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st,
                            "SELECT name FROM events WHERE rank = ?1 AND end_ns >= ?2"
                            " AND name IS NOT NULL ORDER BY unfinished DESC, start_ns DESC LIMIT 1",
                            err));
    ms_stmt_i64(st, 1, rank);
    ms_stmt_i64(st, 2, end_ns - 1000000000);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more && ms_stmt_get_str(st, 0).n != 0)
        ms_message_str(m, "where", ms_str_sub(ms_stmt_get_str(st, 0), 0, 80));
    ms_stmt_free(st);
    return rc;
}

/* Replaces the message by one of another kind with the same arguments, the waiting time of the
 * others and the last event of the rank. */
static enum ms_rc say_anew(struct mstx_tl *tl, struct mstx_finding *f,
                           const struct ms_message_kind *kind, int64_t waited_ns,
                           struct ms_err *err)
{
    struct ms_message m;
    if (!ms_message_restore(&m, kind, ms_message_stored(&f->message).args))
        return MS_OK;
    ms_message_f64(&m, "waited_s", (double)waited_ns / 1e9);
    MS_TRY(mstx__say_where(tl, &m, f->rank, err));
    f->message = m;
    return MS_OK;
}

enum ms_rc mstx__rank_may_run(struct mstx_tl *tl, int32_t rank, bool *may_run, struct ms_err *err)
{
    int64_t running;
    MS_TRY(read_number(tl,
                       "SELECT count(*) FROM processes WHERE rank = ?1"
                       " AND state IN ('running', 'not finished')",
                       rank, 0, &running, err));
    *may_run = running != 0;
    return MS_OK;
}

enum ms_rc mstx__judge_open(struct mstx_tl *tl, struct mstx_finding *f, int64_t limit_ns,
                            struct ms_err *err)
{
    int64_t now_ns;
    bool may_run;
    if (strcmp(f->message.kind->name, mstx_note_not_joined.name) != 0 || f->from_ns == 0)
        return MS_OK;
    MS_TRY(mstx__rank_may_run(tl, f->rank, &may_run, err));
    if (!may_run) /* the process has ended and cannot arrive any more */
        return MS_OK;
    MS_TRY(read_number(tl, "SELECT max(end_ns) FROM processes", 0, f->from_ns, &now_ns, err));
    const int64_t waited_ns = now_ns > f->from_ns ? now_ns - f->from_ns : 0;
    if (waited_ns >= limit_ns)
        return say_anew(tl, f, &mstx_say_awaited, waited_ns, err);
    f->kind = "unfinished";
    f->severity = MSTX_INFO_FINDING;
    return say_anew(tl, f, &mstx_say_in_progress, waited_ns, err);
}

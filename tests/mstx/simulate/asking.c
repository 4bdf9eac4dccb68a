/* SPDX-License-Identifier: MIT
 *
 * asking: a run.db is asked, by a report as text and as JSON and by statements in SQL, while the disk
 * cannot be read, calls are cut short and interrupted, and the reader is killed.  An answer is that of
 * a healthy disk, or there is none and a sentence says why; and the file stays as it was.
 */
#include "tests/mstx/simulate/recording.h"

#include "mstx/conclude/run_report.h"
#include "mstx/rundb/events_table.h"
#include "probe/base/jwrite.h"
#include "probe/base/store.h"
#include "tests/mstx/simulate/seam.h"

#include <stdio.h>
#include <string.h>

enum { ANSWER_MAX = 1 << 22 };
static char wrong[1200];

static const char *const statements[] = {
    "SELECT name, kind, count(*), sum(dur_ns), max(end_ns) FROM events GROUP BY name, kind",
    "SELECT track, start_ns, name, args FROM events WHERE rank = 0 ORDER BY start_ns DESC, id",
    "SELECT count(*) FROM events WHERE start_ns > (SELECT avg(start_ns) FROM events)",
    "SELECT p.pid, t.name, t.events FROM processes p JOIN tracks t ON t.process = p.id",
    "SELECT kind, severity, text FROM findings",
    "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 50) "
    "SELECT i, (SELECT count(*) FROM events WHERE depth = i) FROM n",
    "SELECT s.value, json_array_length(json_group_array(e.start_ns)) FROM strings s "
    "JOIN events e ON e.name = s.value GROUP BY s.value",
};
enum { STATEMENTS = sizeof statements / sizeof *statements, TEXT = STATEMENTS, JSON, QUESTIONS };

/* ---- one question -------------------------------------------------------------------- */

static enum ms_rc put_rows(struct ms_stmt *st, struct ms_buf *to, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        for (int i = 0; i < ms_stmt_columns(st); i++) {
            ms_buf_str(to, ms_stmt_get_str(st, i));
            ms_buf_putc(to, '\t');
        }
        ms_buf_putc(to, '\n');
    }
    return rc;
}

/* As the SQL box of the viewers asks. */
static enum ms_rc put_statement(struct mstx_tl *tl, const char *sql, struct ms_buf *to,
                                struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(mstx_tl_add_events(tl, err));
    MS_TRY(ms_store_only_look(mstx_tl_store(tl), err));
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, sql, err));
    const enum ms_rc rc = put_rows(st, to, err);
    ms_stmt_free(st);
    return rc;
}

static void put_json(struct mstx_tl *tl, const struct mstx_report *r, struct ms_buf *to)
{
    struct ms_jwrite w;
    ms_jwrite_init(&w, 0, ANSWER_MAX);
    mstx_report_json(tl, r, "the run", NULL, &w);
    ms_buf_str(to, ms_buf_slice(&w.buf));
    ms_jwrite_free(&w);
}

static enum ms_rc put_report(struct mstx_tl *tl, bool json, struct ms_buf *to, struct ms_err *err)
{
    struct mstx_report r = {0};
    const enum ms_rc rc = mstx_report_read(tl, true, &r, err);
    if (rc == MS_OK && json)
        put_json(tl, &r, to);
    else if (rc == MS_OK)
        mstx_report_text(tl, &r, "the run", 0, to);
    mstx_report_free(&r);
    return rc;
}

static enum ms_rc answer(const char *db, int question, struct ms_buf *to, struct ms_err *err)
{
    struct mstx_tl *tl = NULL;
    enum ms_rc rc = mstx_tl_open(&tl, db, err);
    if (rc == MS_OK)
        rc = question < STATEMENTS ? put_statement(tl, statements[question], to, err)
                                   : put_report(tl, question == JSON, to, err);
    mstx_tl_close(tl);
    return rc == MS_OK ? ms_buf_check(to, err) : rc;
}

/* ---- under faults ---------------------------------------------------------------------- */

static void judge(int question, enum ms_rc rc, const struct ms_err *err, const struct ms_buf *is,
                  const struct ms_buf *due)
{
    if (rc != MS_OK && err->msg[0] == '\0')
        snprintf(wrong, sizeof wrong, "question %d has no answer and nothing says why", question);
    else if (rc == MS_OK && !ms_str_eq(ms_buf_slice(is), ms_buf_slice(due)))
        snprintf(wrong, sizeof wrong, "question %d has another answer where the disk fails",
                 question);
}

static void ask_under_faults(const char *db, int question, const struct ms_buf *due)
{
    static struct ms_buf is;
    static struct ms_err err;
    volatile enum ms_rc rc = MS_OK;
    volatile bool killed = true;
    is = (struct ms_buf){.max = ANSWER_MAX};
    err = (struct ms_err){0};
    sim_choose_faults();
    sim.faults.read = sim_chance(700) ? 1 + sim_below(128) : 0;
    sim.is_single = sim.on = true;
    if (setjmp(sim.death) == 0) {
        rc = answer(db, question, &is, &err);
        killed = false;
    }
    sim_end_faults();
    if (!killed)
        judge(question, rc, &err, &is, due);
    ms_buf_free(&is);
}

static void ask(const char *db, int question)
{
    struct ms_buf due = {.max = ANSWER_MAX};
    struct ms_err err = {0};
    if (answer(db, question, &due, &err) != MS_OK)
        snprintf(wrong, sizeof wrong, "question %d has no answer: %s", question, err.msg);
    else
        ask_under_faults(db, question, &due);
    ms_buf_free(&due);
}

const char *sim_asking(const char *db)
{
    static struct sim_file before, after;
    wrong[0] = '\0';
    const bool read = sim_read_file(db, &before);
    for (int q = 0; q < QUESTIONS && wrong[0] == '\0'; q++)
        ask(db, q);
    if (read && wrong[0] == '\0' && !(sim_read_file(db, &after) && sim_is_same(&before, &after)))
        snprintf(wrong, sizeof wrong, "a question changed the run.db");
    return wrong[0] != '\0' ? wrong : NULL;
}

/* SPDX-License-Identifier: MIT
 *
 * tui_time_steps: steps of the process under the cursor, asked for one by one.
 *
 * A process may have millions of steps, so none are kept: the database has them in
 * the order of time.
 */
#include "viz/tui_time.h"

#include "probe/base/store.h"

/* A number may return, as where each epoch counts from 0; a start does not. */
#define STEP "SELECT number, start_ns, end_ns FROM steps WHERE process = ?1"
static const char of_number[] = STEP " AND number = ?2 ORDER BY start_ns LIMIT 1";
static const char at_or_behind[] = STEP " AND start_ns >= ?2 ORDER BY start_ns LIMIT 1";
static const char before[] = STEP " AND start_ns < ?2 ORDER BY start_ns DESC LIMIT 1";

struct asked { /* a statement that gives one step */
    struct ms_stmt *st;
    int64_t process;
};

static enum ms_rc begin(struct tui_time *t, struct asked *q, const char *sql, struct ms_err *err)
{
    const struct viz_lane *l = tui_time_lane(t);
    q->process = l != NULL ? (int64_t)l->process + 1 : 0;
    return ms_store_prepare(mstx_tl_store(t->tl), &q->st, sql, err);
}

static enum ms_rc ask(const struct asked *q, int64_t value, struct mstx_step *s, bool *found,
                      struct ms_err *err)
{
    ms_stmt_i64(q->st, 1, q->process);
    ms_stmt_i64(q->st, 2, value);
    MS_TRY(ms_stmt_step(q->st, found, err));
    if (*found)
        *s = (struct mstx_step){.process = (uint32_t)q->process,
                                .number = (uint32_t)ms_stmt_get_i64(q->st, 0),
                                .start_ns = ms_stmt_get_i64(q->st, 1),
                                .end_ns = ms_stmt_get_i64(q->st, 2)};
    ms_stmt_reset(q->st);
    return MS_OK;
}

static enum ms_rc ask_once(struct tui_time *t, const char *sql, int64_t value, struct mstx_step *s,
                           bool *found, struct ms_err *err)
{
    struct asked q;
    MS_TRY(begin(t, &q, sql, err));
    enum ms_rc rc = ask(&q, value, s, found, err);
    ms_stmt_free(q.st);
    return rc;
}

enum ms_rc tui_time_step_at(struct tui_time *t, int64_t number, struct mstx_step *s, bool *found,
                            struct ms_err *err)
{
    return ask_once(t, of_number, number, s, found, err);
}

enum ms_rc tui_time_step_next(struct tui_time *t, bool back, struct mstx_step *s, bool *found,
                              struct ms_err *err)
{
    return ask_once(t, back ? before : at_or_behind, back ? t->time : t->time + 1, s, found, err);
}

enum ms_rc tui_time_steps(struct tui_time *t, struct ms_err *err)
{
    size_t most = (size_t)t->width / TUI_STEP_LEAST + 1;
    struct mstx_step s;
    struct asked q;
    int64_t from = t->w.from;
    bool found = true;
    t->steps.n = 0;
    MS_TRY(begin(t, &q, at_or_behind, err));
    enum ms_rc rc = MS_OK;
    while (rc == MS_OK && found && t->steps.n < most) {
        rc = ask(&q, from, &s, &found, err);
        struct mstx_step *slot =
            rc == MS_OK && found && s.start_ns < t->w.to ? ms_vec_push(&t->steps) : NULL;
        if (slot == NULL)
            break;
        *slot = s;
        from = s.start_ns + 1;
    }
    ms_stmt_free(q.st);
    return rc;
}

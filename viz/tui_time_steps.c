/* SPDX-License-Identifier: MIT
 *
 * tui_time_steps: steps of the process under the cursor, asked for one by one.
 *
 * A process may have millions of steps, so none are kept: their numbers grow with
 * time, and halving the numbers finds the step of a time in some twenty questions.
 */
#include "viz/tui_time.h"

#include "probe/base/store.h"

struct asked { /* a statement that gives a step by its number */
    struct ms_stmt *st;
    int64_t process;
};

static const char at_or_behind[] = "SELECT number, start_ns, end_ns FROM steps WHERE process = ?1"
                                   " AND number >= ?2 ORDER BY number LIMIT 1";
static const char before[] = "SELECT number, start_ns, end_ns FROM steps WHERE process = ?1"
                             " AND number < ?2 ORDER BY number DESC LIMIT 1";

static enum ms_rc begin(struct tui_time *t, struct asked *q, const char *sql, struct ms_err *err)
{
    const struct viz_lane *l = tui_time_lane(t);
    q->process = l != NULL ? (int64_t)l->process + 1 : 0;
    return ms_store_prepare(mstx_tl_store(t->tl), &q->st, sql, err);
}

static enum ms_rc ask(const struct asked *q, int64_t number, struct mstx_step *s, bool *found,
                      struct ms_err *err)
{
    ms_stmt_i64(q->st, 1, q->process);
    ms_stmt_i64(q->st, 2, number);
    MS_TRY(ms_stmt_step(q->st, found, err));
    if (*found)
        *s = (struct mstx_step){.process = (uint32_t)q->process,
                                .number = (uint32_t)ms_stmt_get_i64(q->st, 0),
                                .start_ns = ms_stmt_get_i64(q->st, 1),
                                .end_ns = ms_stmt_get_i64(q->st, 2)};
    ms_stmt_reset(q->st);
    return MS_OK;
}

/* The smallest number whose step begins at or behind ns; one behind the last when none does. */
static enum ms_rc number_at(const struct asked *q, int64_t ns, int64_t *number, struct ms_err *err)
{
    int64_t low = 0, high = (int64_t)UINT32_MAX + 1;
    struct mstx_step s;
    bool found;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        MS_TRY(ask(q, middle, &s, &found, err));
        if (!found || s.start_ns >= ns)
            high = middle;
        else
            low = (int64_t)s.number + 1;
    }
    *number = low;
    return MS_OK;
}

enum ms_rc tui_time_step_at(struct tui_time *t, int64_t number, struct mstx_step *s, bool *found,
                            struct ms_err *err)
{
    struct asked q;
    MS_TRY(begin(t, &q, at_or_behind, err));
    enum ms_rc rc = ask(&q, number, s, found, err);
    ms_stmt_free(q.st);
    *found = rc == MS_OK && *found && s->number == number;
    return rc;
}

enum ms_rc tui_time_step_next(struct tui_time *t, bool back, struct mstx_step *s, bool *found,
                              struct ms_err *err)
{
    struct asked q, p;
    int64_t number = 0;
    MS_TRY(begin(t, &q, at_or_behind, err));
    enum ms_rc rc = begin(t, &p, before, err);
    if (rc == MS_OK) {
        rc = number_at(&q, back ? t->time : t->time + 1, &number, err);
        if (rc == MS_OK)
            rc = ask(back ? &p : &q, number, s, found, err);
        ms_stmt_free(p.st);
    }
    ms_stmt_free(q.st);
    return rc;
}

enum ms_rc tui_time_steps(struct tui_time *t, struct ms_err *err)
{
    size_t most = (size_t)t->width / TUI_STEP_LEAST + 1;
    struct mstx_step s;
    struct asked q;
    int64_t number = 0;
    bool found = true;
    t->steps.n = 0;
    MS_TRY(begin(t, &q, at_or_behind, err));
    enum ms_rc rc = number_at(&q, t->w.from, &number, err);
    while (rc == MS_OK && found && t->steps.n < most) {
        rc = ask(&q, number, &s, &found, err);
        struct mstx_step *slot =
            rc == MS_OK && found && s.start_ns < t->w.to ? ms_vec_push(&t->steps) : NULL;
        if (slot == NULL)
            break;
        *slot = s;
        number = (int64_t)s.number + 1;
    }
    ms_stmt_free(q.st);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * events_table: the table "events".  Conditions on track, rank and time skip whole
 * tracks and chunks; SQLite checks all other conditions row by row.
 */
#include "mstx/rundb/events_table.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/base/store_vtab.h"

enum column {
    COL_TRACK,
    COL_RANK,
    COL_PID,
    COL_TID,
    COL_DOMAIN,
    COL_NAME,
    COL_KIND,
    COL_START,
    COL_END,
    COL_DUR,
    COL_DEPTH,
    COL_ID,
    COL_VALUE,
    COL_ADDRESS,
    COL_BYTES,
    COL_STREAM,
    COL_ARGS,
    COL_END_TID,
    COL_UNFINISHED,
};

struct scan {
    struct mstx_tl *tl;
    struct mstx_cursor *cursor;  /* NULL between tracks */
    const struct mstx_event *ev; /* NULL at the end */
    size_t track, last_track;    /* indices; last_track is one past the last */
    int64_t first_rank, last_rank;
    int64_t ends_from, starts_to;
};

static enum ms_rc open_scan(void *ctx, void **cursor, struct ms_err *err)
{
    struct scan *s = ms_calloc(1, sizeof *s);
    *cursor = s;
    if (s == NULL)
        return ms_no_memory(err);
    s->tl = ctx;
    return MS_OK;
}

static void end_track(struct scan *s)
{
    mstx__cursor_free(s->cursor);
    s->cursor = NULL;
    s->track++;
}

static void close_scan(void *cursor)
{
    struct scan *s = cursor;
    mstx__cursor_free(s->cursor);
    ms_free(s);
}

static bool is_wanted(const struct scan *s, const struct mstx_track *t)
{
    ms_assert(t->process < mstx_tl_process_count(s->tl));
    int32_t rank = mstx_tl_process(s->tl, t->process)->rank;
    return rank >= s->first_rank && rank <= s->last_rank && t->end_ns >= s->ends_from &&
           t->start_ns <= s->starts_to;
}

static enum ms_rc next_event(void *cursor, struct ms_err *err)
{
    struct scan *s = cursor;
    s->ev = NULL;
    while (s->track < s->last_track) {
        if (s->cursor == NULL && !is_wanted(s, mstx_tl_track(s->tl, s->track))) {
            s->track++;
            continue;
        }
        if (s->cursor == NULL) {
            MS_TRY(mstx__cursor_new(&s->cursor, s->tl, s->track, err));
            mstx__cursor_seek(s->cursor, s->ends_from);
        }
        MS_TRY(mstx__cursor_next(s->cursor, &s->ev, err));
        if (s->ev != NULL && s->ev->start_ns <= s->starts_to)
            return MS_OK;
        s->ev = NULL;
        end_track(s);
    }
    return MS_OK;
}

/* Narrows [*from, *to] by a bound. */
static void narrow(const struct ms_bound *b, int64_t *from, int64_t *to)
{
    if (b->op != MS_BOUND_LE)
        *from = ms_max_i64(*from, b->value);
    if (b->op != MS_BOUND_GE)
        *to = ms_min_i64(*to, b->value);
}

static enum ms_rc start_scan(void *cursor, const struct ms_bound *bound, int n, struct ms_err *err)
{
    struct scan *s = cursor;
    int64_t first = 1, last = (int64_t)mstx_tl_track_count(s->tl);
    mstx__cursor_free(s->cursor);
    s->cursor = NULL;
    s->first_rank = s->ends_from = INT64_MIN;
    s->last_rank = s->starts_to = INT64_MAX;
    for (int i = 0; i < n; i++) {
        if (bound[i].column == COL_TRACK)
            narrow(&bound[i], &first, &last);
        else if (bound[i].column == COL_RANK)
            narrow(&bound[i], &s->first_rank, &s->last_rank);
        else /* start or end: start <= end, so both kinds of bounds narrow both ranges */
            narrow(&bound[i], &s->ends_from, &s->starts_to);
    }
    s->track = first <= last ? (size_t)first - 1 : 0;
    s->last_track = first <= last ? (size_t)last : 0;
    return next_event(s, err);
}

static bool is_at_end(const void *cursor)
{
    return ((const struct scan *)cursor)->ev == NULL;
}

static void give_int(struct ms_value *v, int64_t i)
{
    v->type = MS_VALUE_INT;
    v->i = i;
}

static void give_text(struct ms_value *v, struct ms_str s)
{
    v->type = MS_VALUE_TEXT;
    v->s = s;
}

/* Returns a column that only some kinds of events have; NULL for the others. */
static void give_special(const struct scan *s, int column, struct ms_value *v)
{
    ms_assert(s->ev != NULL);
    const struct mstx_event *e = s->ev;
    if (column == COL_VALUE && e->kind == MSTX_EV_COUNTER) {
        v->type = e->flags & MSTX_EVF_FLOAT ? MS_VALUE_REAL : MS_VALUE_INT;
        v->i = (int64_t)e->arg;
        v->f = mstx_event_value(e);
    } else if (column == COL_ADDRESS && e->kind == MSTX_EV_REGION) {
        give_int(v, (int64_t)e->arg);
    } else if (column == COL_BYTES && e->kind == MSTX_EV_REGION) {
        give_int(v, (int64_t)e->size);
    } else if (column == COL_STREAM && e->flags & MSTX_EVF_STREAM) {
        give_int(v, (int64_t)e->arg);
    } else if (column == COL_ARGS && e->args != 0) {
        give_text(v, mstx_tl_text(s->tl, e->args));
    } else if (column == COL_END_TID && e->end_tid != 0) {
        give_int(v, e->end_tid);
    }
}

static void give_track(const struct scan *s, int column, struct ms_value *v)
{
    ms_assert(s->track < mstx_tl_track_count(s->tl));
    const struct mstx_track *t = mstx_tl_track(s->tl, s->track);
    const struct mstx_process *p = mstx_tl_process(s->tl, t->process);
    if (column == COL_DOMAIN)
        give_text(v, t->domain);
    else
        give_int(v, column == COL_TRACK  ? (int64_t)t->id
                    : column == COL_RANK ? (int64_t)p->rank
                    : column == COL_PID  ? (int64_t)p->pid
                                         : (int64_t)t->tid);
}

static enum ms_rc give_column(void *cursor, int column, struct ms_value *v, struct ms_err *err)
{
    static const char *const kinds[] = {"mark", "range", "push", "counter", "region"};
    const struct scan *s = cursor;
    const struct mstx_event *e = s->ev;
    switch ((enum column)column) {
    case COL_TRACK:
    case COL_RANK:
    case COL_PID:
    case COL_TID:
    case COL_DOMAIN:
        give_track(s, column, v);
        break;
    case COL_NAME:
        give_text(v, mstx_tl_text(s->tl, e->name));
        break;
    case COL_KIND:
        give_text(v, ms_str_of(kinds[e->kind]));
        break;
    case COL_START:
        give_int(v, e->start_ns);
        break;
    case COL_END:
        give_int(v, e->start_ns + e->dur_ns);
        break;
    case COL_DUR:
        give_int(v, e->dur_ns);
        break;
    case COL_DEPTH:
        give_int(v, e->depth);
        break;
    case COL_ID:
        give_int(v, (int64_t)e->id);
        break;
    case COL_UNFINISHED:
        give_int(v, (e->flags & MSTX_EVF_UNFINISHED) != 0);
        break;
    default:
        give_special(s, column, v);
    }
    return mstx__tl_check(s->tl, err);
}

static const struct ms_table events = {
    .name = "events",
    .columns = "track INTEGER, rank INTEGER, pid INTEGER, tid INTEGER, domain TEXT, name TEXT,"
               " kind TEXT, start_ns INTEGER, end_ns INTEGER, dur_ns INTEGER, depth INTEGER,"
               " id INTEGER, value NUMERIC, address INTEGER, bytes INTEGER, stream INTEGER,"
               " args TEXT, end_tid INTEGER, unfinished INTEGER",
    .usable = 1u << COL_TRACK | 1u << COL_RANK | 1u << COL_START | 1u << COL_END,
    .open = open_scan,
    .close = close_scan,
    .start = start_scan,
    .next = next_event,
    .at_end = is_at_end,
    .column = give_column,
};

enum ms_rc mstx_tl_add_events(struct mstx_tl *tl, struct ms_err *err)
{
    return ms_store_add_table(mstx_tl_store(tl), &events, tl, err);
}

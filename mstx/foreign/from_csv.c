/* SPDX-License-Identifier: MIT
 *
 * from_csv: see the header.
 */
#include "mstx/foreign/from_csv.h"

#include "mstx/foreign/trace_lanes.h"
#include "mstx/foreign/trace_text.h"
#include "mstx/format/comm_marked.h"
#include "mstx/rundb/run_schema.h"

#include "probe/base/csv.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum column { RANK, LANE, NAME, BEGIN, END, NEEDED, KIND = NEEDED, STEP, PEER, BYTES, COLUMNS };
static const char *const names[COLUMNS] = {"rank", "lane", "name", "begin_ns", "end_ns",
                                           "kind", "step", "peer", "bytes"};

struct step {
    int64_t number, start, end;
};
struct rank {
    int32_t rank;
    struct mstx_trace_lanes lanes;
    struct mstx_trace_rank part;
    MS_VEC(struct step) step;
};
struct table {
    struct mstx_trace_ranks *all;
    struct ms_csv csv;
    struct ms_arena *arena;
    int place[COLUMNS]; /* of each column in a row; -1: there is none */
    struct ms_map known;
    MS_VEC(struct rank *) ranks;
    uint64_t bad;
    uint32_t first_bad; /* line */
};

/* ---- columns ------------------------------------------------------------------------------------- */

static struct ms_str trim(struct ms_str s)
{
    while (s.n != 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = ms_str_sub(s, 1, s.n);
    while (s.n != 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static void find_columns(struct table *t)
{
    for (int c = 0; c < COLUMNS; c++) {
        t->place[c] = -1;
        for (size_t i = 0; i < t->csv.fields.n && t->place[c] < 0; i++) {
            if (ms_str_is_folded(trim(t->csv.fields.p[i]), names[c]))
                t->place[c] = (int)i;
        }
    }
}

static bool has_needed(const struct table *t)
{
    for (int c = 0; c < NEEDED; c++) {
        if (t->place[c] < 0)
            return false;
    }
    return true;
}

bool mstx__is_csv_table(struct ms_str head)
{
    struct table t = {0};
    bool more = false;
    const int64_t end = ms_str_find(head, '\n');
    ms_csv_init(&t.csv, head.p, end >= 0 ? (size_t)end : head.n);
    const bool is = ms_csv_next(&t.csv, &more, NULL) == MS_OK && more;
    find_columns(&t);
    const bool has = is && has_needed(&t);
    ms_csv_free(&t.csv);
    return has;
}

/* Returns a field; it is empty where the row or the table has none. */
static struct ms_str field_of(const struct table *t, enum column c)
{
    const int at = t->place[c];
    return at >= 0 && (size_t)at < t->csv.fields.n ? trim(t->csv.fields.p[at]) : MS_STR("");
}

/* Reads a whole number from `least`; the field may be empty when `none` is allowed and stands for it. */
static bool read_number(const struct table *t, enum column c, int64_t least, int64_t most,
                        int64_t *out)
{
    const struct ms_str field = field_of(t, c);
    return field.n == 0 || (ms_str_i64(field, out) && *out >= least && *out <= most);
}

/* ---- ranks ----------------------------------------------------------------------------------------- */

static struct rank *rank_of(struct table *t, int32_t number)
{
    bool added;
    const struct ms_str key = {(const char *)&number, sizeof number};
    const uint32_t at = ms_map_put_copy(&t->known, key, t->arena, &added);
    if (at == MS_MAP_NONE || !added)
        return at != MS_MAP_NONE && at < t->ranks.n ? t->ranks.p[at] : NULL;
    struct rank **slot = ms_vec_push(&t->ranks);
    if (slot == NULL)
        return NULL;
    *slot = ms_calloc(1, sizeof **slot);
    if (*slot == NULL)
        return NULL;
    (*slot)->rank = number;
    (*slot)->lanes = (struct mstx_trace_lanes){.w = t->all->w, .arena = t->arena};
    (*slot)->part.all = t->all;
    return *slot;
}

static bool extend_step(struct rank *r, const struct mstx_trace_item *it, int64_t number)
{
    const int64_t end = it->ts + it->dur;
    for (size_t i = r->step.n; i-- > 0;) { /* rows come mostly in order of their steps */
        struct step *s = &r->step.p[i];
        if (s->number != number)
            continue;
        s->start = it->ts < s->start ? it->ts : s->start;
        s->end = end > s->end ? end : s->end;
        return true;
    }
    struct step *slot = ms_vec_push(&r->step);
    if (slot != NULL)
        *slot = (struct step){number, it->ts, end};
    return slot != NULL;
}

/* ---- rows -------------------------------------------------------------------------------------------- */

enum kind { RANGE, MARK, KERNEL, MEMORY, COMM, KINDS };
static const char *const kinds[KINDS] = {"range", "mark", "kernel", "memory", "comm"};

static int kind_of(struct ms_str text)
{
    for (int i = 0; i < KINDS; i++) {
        if (ms_str_is_folded(text, kinds[i]))
            return i;
    }
    return text.n == 0 ? RANGE : -1;
}

struct row {
    struct mstx_trace_item it;
    int64_t rank, step, peer, bytes;
    int kind;
};

/* Reads the current row; false: it is not as it should be. */
static bool read_row(const struct table *t, struct row *row)
{
    const struct ms_str none = MS_STR("");
    int64_t end;
    *row = (struct row){.it = {.name = field_of(t, NAME),
                               .type = none,
                               .pid = MS_STR("0"),
                               .tid = field_of(t, LANE),
                               .has_ts = true,
                               .correlation = -1,
                               .stream = -1,
                               .comm = {none, none, none, none, none, -1, -1, -1, -1, -1}},
                        .rank = -1,
                        .step = -1,
                        .peer = -1,
                        .bytes = 0,
                        .kind = kind_of(field_of(t, KIND))};
    if (field_of(t, BEGIN).n == 0 || row->kind < 0 ||
        !read_number(t, BEGIN, -MSTX_TRACE_TIME_MOST, MSTX_TRACE_TIME_MOST, &row->it.ts))
        return false;
    end = row->it.ts;
    if (!read_number(t, END, row->it.ts, MSTX_TRACE_TIME_MOST, &end))
        return false;
    row->it.dur = end - row->it.ts;
    return read_number(t, RANK, -1, INT32_MAX, &row->rank) &&
           read_number(t, STEP, 0, UINT32_MAX - 1, &row->step) &&
           read_number(t, PEER, -1, INT32_MAX, &row->peer) &&
           read_number(t, BYTES, 0, INT64_MAX, &row->bytes);
}

/* Takes what a device did; a stream has the number of its lane, or that of its name's place. */
static bool add_device(struct rank *r, struct row *row)
{
    uint32_t index;
    uint64_t number;
    const struct ms_str lane = row->it.tid;
    row->it.device = 0;
    row->it.stream = ms_str_u64(lane, &number) && number <= UINT32_MAX
                         ? (int64_t)number
                         : (int64_t)(uint32_t)ms_str_hash(lane);
    struct mstx_trace_lane *l =
        mstx__trace_lanes_stream(&r->lanes, &row->it, MSTX_KERNELS_DOMAIN, &index);
    const struct mstx_event *e =
        l != NULL ? mstx__trace_lanes_add(&r->lanes, l, &row->it, MSTX_EV_RANGE) : NULL;
    if (e == NULL)
        return false;
    if (l->name.n == 0)
        l->name = ms_arena_str(r->lanes.arena, lane);
    if (row->kind == COMM && mstx__comm_op_find(row->it.name) != MSTX_COMM_NONE) {
        row->it.comm.op = row->it.name;
        row->it.comm.type = MS_STR("Byte");
        row->it.comm.group = MS_STR("world");
        row->it.comm.sent = row->bytes;
        row->it.comm.source = row->it.comm.target = row->peer;
    }
    const enum mstx_work work = row->kind == COMM     ? MSTX_WORK_COMM
                                : row->kind == MEMORY ? MSTX_WORK_MEMORY
                                                      : MSTX_WORK_COMPUTE;
    return mstx__trace_rank_span(&r->part, &row->it, work) &&
           mstx__trace_rank_call(&r->part, &row->it, (uint32_t)row->it.stream);
}

static bool add_row(struct table *t, struct row *row)
{
    uint32_t index;
    struct rank *r = rank_of(t, (int32_t)row->rank);
    if (r == NULL || (row->step >= 0 && !extend_step(r, &row->it, row->step)))
        return false;
    if (row->kind >= KERNEL)
        return add_device(r, row);
    struct mstx_trace_lane *l = mstx__trace_lanes_thread(&r->lanes, &row->it, &index);
    if (l == NULL ||
        mstx__trace_lanes_add(&r->lanes, l, &row->it,
                              row->kind == MARK ? MSTX_EV_MARK : MSTX_EV_RANGE) == NULL)
        return false;
    if (l->name.n == 0)
        l->name = ms_arena_str(r->lanes.arena, row->it.tid);
    return true;
}

static enum ms_rc read_rows(struct table *t, struct ms_err *err)
{
    bool more;
    MS_TRY(ms_csv_next(&t->csv, &more, err));
    find_columns(t);
    if (!more || !has_needed(t))
        return ms_fail(err, MS_E_FORMAT,
                       "lacks a column of: rank, lane, name, begin_ns, end_ns in its first line");
    for (;;) {
        struct row row;
        MS_TRY(ms_csv_next(&t->csv, &more, err));
        if (!more)
            return MS_OK;
        if (!read_row(t, &row)) {
            t->first_bad = t->bad++ == 0 ? t->csv.line : t->first_bad;
            continue;
        }
        if (!add_row(t, &row))
            return ms_no_memory(err);
    }
}

/* ---- writing -------------------------------------------------------------------------------------------- */

/* Adds the steps, as ranges of a lane of their own. */
static bool add_steps(struct rank *r)
{
    for (size_t i = 0; i < r->step.n; i++) {
        const struct step *s = &r->step.p[i];
        char name[32];
        uint32_t index;
        const int n = snprintf(name, sizeof name, "step %" PRId64, s->number);
        const struct mstx_trace_item it = {.name = {name, (uint32_t)n},
                                           .pid = MS_STR("0"),
                                           .tid = MS_STR("steps"),
                                           .ts = s->start,
                                           .dur = s->end - s->start,
                                           .correlation = -1};
        struct mstx_trace_lane *l = mstx__trace_lanes_thread(&r->lanes, &it, &index);
        if (l == NULL || mstx__trace_lanes_add(&r->lanes, l, &it, MSTX_EV_RANGE) == NULL ||
            !mstx__trace_rank_step(&r->part, s->number, s->start, s->end))
            return false;
        l->name = MS_STR("steps");
    }
    return true;
}

static enum ms_rc write_rank(struct table *t, struct rank *r, struct ms_err *err)
{
    const struct mstx_trace_about about = {
        .rank = r->rank, .tool = MSTX_TOOL_TABLE, .is_one = true};
    uint32_t host;
    int32_t *slot = ms_vec_push(&t->all->rank);
    if (slot == NULL || !add_steps(r))
        return ms_no_memory(err);
    *slot = r->rank;
    MS_TRY(mstx__trace_lanes_write(&r->lanes, &about, &host, err));
    return mstx__trace_rank_save(&r->part, r->rank, host, &r->lanes.time, err);
}

static enum ms_rc write_ranks(struct table *t, const char *path, struct ms_err *err)
{
    char text[96];
    for (size_t i = 0; i < t->ranks.n; i++)
        MS_TRY(write_rank(t, t->ranks.p[i], err));
    if (t->bad == 0)
        return MS_OK;
    snprintf(text, sizeof text, "%" PRIu64 " row%s cannot be read; the first is line %" PRIu32,
             t->bad, t->bad == 1 ? "" : "s", t->first_bad);
    mstx__writer_problem(t->all->w, path, text);
    return MS_OK;
}

static void free_table(struct table *t)
{
    for (size_t i = 0; i < t->ranks.n; i++) {
        if (t->ranks.p[i] == NULL)
            continue;
        mstx__trace_rank_free(&t->ranks.p[i]->part);
        mstx__trace_lanes_free(&t->ranks.p[i]->lanes);
        ms_vec_free(&t->ranks.p[i]->step);
        ms_free(t->ranks.p[i]);
    }
    ms_vec_free(&t->ranks);
    ms_map_free(&t->known);
    ms_csv_free(&t->csv);
    ms_arena_free(t->arena);
}

enum ms_rc mstx__import_csv(const char *path, struct mstx_trace_ranks *all, struct ms_err *err)
{
    struct table t = {.all = all, .arena = ms_arena_new((size_t)1 << 34)};
    struct mstx_trace_text text;
    if (t.arena == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = mstx__trace_text_open(&text, path, err);
    if (rc == MS_OK) {
        ms_csv_init(&t.csv, text.p, text.n);
        rc = read_rows(&t, err);
        if (rc != MS_OK)
            ms_err_wrap(err, "%s", path);
        if (rc == MS_OK)
            rc = write_ranks(&t, path, err);
        all->bytes_read += mstx__trace_text_taken(&text);
        mstx__trace_text_close(&text);
    }
    all->files += rc == MS_OK;
    free_table(&t);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * diff_trail: finds the operators that differ without an earlier difference that explains
 * them.
 *
 * The trails of all ranks are replayed. A rank is spoiled from its first differing operator
 * on; a communication passes this on to the receivers:
 *     all_reduce ...    every member receives from every other
 *     broadcast         all receive from the root        reduce: the root from all
 *     send, recv        the n-th recv of a pair of ranks receives from the n-th send
 *
 * An operator that differs on a rank that is not spoiled yet is to blame. A receiver waits
 * for its senders. When no sender can arrive (a rank without a dump, calls that do not
 * match), the rank that is furthest behind continues without them.
 */
#include "compare/check/diff.h"

#include "compare/table/comparison.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- effect of a communication ------------------------------------------- */

struct call {
    struct ms_str group; /* its ranks as text; empty: all ranks */
    int64_t peer;        /* src or dst; -1: not known */
    bool in_group;       /* peer is an index within the group */
};

/* Returns the rank at an index of a group such as "[4, 5]". */
static int64_t rank_of_member(struct ms_str group, int64_t member)
{
    struct ms_str rest = group, part;
    while (member >= 0 && ms_str_split(&rest, ',', &part)) {
        if (member-- != 0)
            continue;
        char digits[24];
        uint32_t n = 0;
        for (uint32_t i = 0; i < part.n && n < sizeof digits - 1; i++) {
            if (part.p[i] >= '0' && part.p[i] <= '9')
                digits[n++] = part.p[i];
        }
        digits[n] = 0;
        return n != 0 ? strtoll(digits, NULL, 10) : -1;
    }
    return -1;
}

static void read_row(const struct cmp_row *row, struct call *call)
{
    static const char *const peers[] = {"dst", "src", "group_dst", "group_src"};
    struct ms_str part = probe_name_last(row->t.name), text = row->t.stat[PROBE_STAT_MAX].text;
    int64_t number;
    if (row->is_output || !row->t.present)
        return;
    if (ms_str_ends(row->t.dtype, MS_STR("ProcessGroup")))
        call->group = text;
    for (unsigned i = 0; i < 4; i++) {
        if (ms_str_is(part, peers[i]) && ms_str_i64(text, &number)) {
            call->peer = number;
            call->in_group = i >= 2;
        }
    }
    /* positional arguments: send(tensor, dst), recv(tensor, src), broadcast(tensor, src),
     * reduce(tensor, dst) */
    if (call->peer < 0 && ms_str_is(part, "1") && ms_str_is(row->t.dtype, "<class 'int'>") &&
        ms_str_i64(text, &number))
        call->peer = number;
}

static struct call read_call(const struct cmp_view *v)
{
    struct call call = {.peer = -1};
    for (size_t i = 0; i < v->rows.n; i++)
        read_row(&v->rows.p[i], &call);
    if (call.in_group && call.group.n != 0)
        call.peer = rank_of_member(call.group, call.peer);
    return call;
}

static uint64_t meeting_between(int64_t from, int64_t to)
{
    char text[64];
    int n = snprintf(text, sizeof text, "%lld>%lld", (long long)from, (long long)to);
    return ms_str_hash((struct ms_str){text, (uint32_t)n});
}

static uint64_t meeting_of(struct ms_str api, struct ms_str group)
{
    return ms_str_hash(api) * 31 + (group.n != 0 ? ms_str_hash(group) : 0);
}

static bool is_any(struct ms_str api, const char *a, const char *b)
{
    return ms_str_is(api, a) || ms_str_is(api, b);
}

static void settle(struct cmp_step *s, struct ms_str api, const struct call *call, int64_t rank)
{
    bool sends = is_any(api, "send", "isend"), receives = is_any(api, "recv", "irecv");
    s->role = CMP_STEP_BOTH;
    s->meet = meeting_of(api, call->group);
    if ((sends || receives) && call->peer >= 0) {
        s->role = sends ? CMP_STEP_GIVES : CMP_STEP_TAKES;
        s->meet = sends ? meeting_between(rank, call->peer) : meeting_between(call->peer, rank);
    } else if (is_any(api, "broadcast", "scatter") && call->peer >= 0) {
        s->role = call->peer == rank ? CMP_STEP_GIVES : CMP_STEP_TAKES;
    } else if (is_any(api, "reduce", "gather") && call->peer >= 0) {
        s->role = call->peer == rank ? CMP_STEP_TAKES : CMP_STEP_GIVES;
    }
}

/* Returns a field of a P2P operation as text. */
static struct ms_str p2p_field(struct ms_str json, const char *field)
{
    struct ms_jread r;
    ms_jread_init(&r, json.p, json.n, 0);
    if (ms_jread_next(&r) != MS_J_OBJ)
        return MS_STR_NONE;
    while (ms_jread_next(&r) == MS_J_KEY) {
        bool here = ms_str_is(r.text, field);
        enum ms_jtok tok = ms_jread_next(&r);
        if (here && (tok == MS_J_STR || tok == MS_J_NUM))
            return r.text;
        ms_jread_skip(&r, tok);
    }
    return MS_STR_NONE;
}

/* Adds the members of a batch as separate steps, sends before receives. */
static enum ms_rc add_batch(struct cmp_trail *t, const struct cmp_view *v, struct cmp_step step,
                            int64_t rank, size_t *members, struct ms_err *err)
{
    for (int receives = 0; receives < 2; receives++) {
        for (size_t i = 0; i < v->rows.n; i++) {
            const struct cmp_row *row = &v->rows.p[i];
            struct call call = {.peer = -1};
            struct ms_str op = p2p_field(row->t.json, "op");
            bool mine = receives != 0 ? is_any(op, "recv", "irecv") : is_any(op, "send", "isend");
            if (row->is_output || !row->t.present || !mine ||
                !ms_str_i64(p2p_field(row->t.json, "peer"), &call.peer))
                continue;
            settle(&step, op, &call, rank);
            struct cmp_step *s = ms_vec_push(&t->steps);
            if (s == NULL)
                return ms_no_memory(err);
            *s = step;
            ++*members;
        }
    }
    return MS_OK;
}

enum ms_rc cmp_trail_add(struct cmp_trail *t, uint32_t group, const struct cmp_view *v,
                         bool differs, bool communicates, struct ms_err *err)
{
    struct cmp_step step = {
        .group = group, .segment = t->segments, .differs = differs, .communicates = communicates};
    size_t members = 0;
    t->segments += communicates;
    if (communicates) {
        struct call call = read_call(v);
        struct ms_str api = probe_name_part(v->op, 1);
        if (ms_str_is(api, "batch_isend_irecv"))
            MS_TRY(add_batch(t, v, step, t->rank, &members, err));
        settle(&step, api, &call, t->rank);
    }
    if (members != 0)
        return MS_OK;
    struct cmp_step *s = ms_vec_push(&t->steps);
    if (s == NULL)
        return ms_no_memory(err);
    *s = step;
    return MS_OK;
}

/* ---- replay ------------------------------------------------------------------- */

struct meeting {     /* the matching communication calls of several ranks */
    uint32_t givers; /* senders that have not arrived yet */
    uint32_t layer;
    bool spoiled;
};

struct runner {
    uint32_t at;    /* index of the next step */
    uint32_t layer; /* length of the longest chain of communications so far that led to this rank */
    bool spoiled, arrived;
    uint32_t blamed, blamed_layer;
};

struct run {
    const struct cmp_trail *trails;
    size_t n;
    struct runner *ranks;
    uint32_t **meeting; /* by rank and step */
    MS_VEC(struct meeting) meetings;
    struct ms_map names;
    struct ms_arena *arena;
};

/* Returns the number of a key in r->names. */
static uint32_t name_of(struct run *r, const void *p, uint32_t n)
{
    return ms_map_put_copy(&r->names, (struct ms_str){p, n}, r->arena, NULL);
}

/* Assigns a call to its meeting: the n-th calls of one kind on all ranks belong together. Each rank
 * counts its own calls, receiving ones separately from the others. */
static enum ms_rc find_meeting(struct run *r, size_t rank, size_t step, struct ms_map *counts,
                               uint32_t *seen, struct ms_err *err)
{
    const struct cmp_step *s = &r->trails[rank].steps.p[step];
    uint64_t own[2] = {s->meet, s->role == CMP_STEP_TAKES};
    uint32_t kind =
        ms_map_put_copy(counts, (struct ms_str){(char *)own, sizeof own}, r->arena, NULL);
    if (kind == MS_MAP_NONE)
        return ms_no_memory(err);
    uint64_t key[2] = {s->meet, seen[kind]++};
    uint32_t id = name_of(r, key, sizeof key);
    if (id == MS_MAP_NONE)
        return ms_no_memory(err);
    if (id == r->meetings.n) {
        struct meeting *m = ms_vec_push(&r->meetings);
        if (m == NULL)
            return ms_no_memory(err);
        *m = (struct meeting){0};
    }
    r->meetings.p[id].givers += s->role != CMP_STEP_TAKES;
    r->meeting[rank][step] = id;
    return MS_OK;
}

static enum ms_rc find_meetings(struct run *r, size_t rank, struct ms_err *err)
{
    size_t n = r->trails[rank].steps.n;
    struct ms_map counts = {0};
    uint32_t *seen = ms_calloc(n + 1, sizeof *seen);
    r->meeting[rank] = ms_alloc((n + 1) * sizeof **r->meeting);
    enum ms_rc rc = seen != NULL && r->meeting[rank] != NULL ? MS_OK : ms_no_memory(err);
    for (size_t i = 0; i < n && rc == MS_OK; i++) {
        if (r->trails[rank].steps.p[i].communicates)
            rc = find_meeting(r, rank, i, &counts, seen, err);
    }
    ms_map_free(&counts);
    ms_free(seen);
    return rc;
}

static void blame_step(struct runner *x, const struct cmp_step *s)
{
    if (!x->spoiled && s->differs) {
        x->blamed = s->group;
        x->blamed_layer = x->layer;
        x->spoiled = true;
    }
}

/* Contributes to the call what this rank sends; returns true when the rank may continue. */
static bool join_communication(struct run *r, size_t rank, const struct cmp_step *s, bool alone)
{
    struct runner *x = &r->ranks[rank];
    struct meeting *m = &r->meetings.p[r->meeting[rank][x->at]];
    bool takes = s->role != CMP_STEP_GIVES;
    if (!x->arrived && s->role != CMP_STEP_TAKES) {
        m->givers--;
        m->spoiled |= x->spoiled;
        m->layer = x->layer > m->layer ? x->layer : m->layer;
    }
    x->arrived = true;
    if (takes && m->givers != 0 && !alone)
        return false;
    if (takes) {
        x->spoiled |= m->spoiled;
        x->layer = m->layer > x->layer ? m->layer : x->layer;
    }
    blame_step(x, s);
    x->layer++;
    x->arrived = false;
    return true;
}

/* Advances this rank as far as possible; returns whether it advanced at all. */
static bool advance_rank(struct run *r, size_t rank, bool alone)
{
    struct runner *x = &r->ranks[rank];
    const struct cmp_trail *t = &r->trails[rank];
    uint32_t from = x->at;
    for (; x->at < t->steps.n; x->at++, alone = false) {
        const struct cmp_step *s = &t->steps.p[x->at];
        if (s->communicates && !join_communication(r, rank, s, alone))
            break;
        if (!s->communicates)
            blame_step(x, s);
    }
    return x->at != from;
}

/* Returns the unfinished rank with the fewest communications so far; r->n when all are finished. */
static size_t furthest_behind(const struct run *r)
{
    size_t found = r->n;
    for (size_t i = 0; i < r->n; i++) {
        if (r->ranks[i].at < r->trails[i].steps.n &&
            (found == r->n || r->ranks[i].layer < r->ranks[found].layer))
            found = i;
    }
    return found;
}

static void run_all(struct run *r)
{
    for (;;) {
        bool moved = false;
        for (size_t i = 0; i < r->n; i++)
            moved |= advance_rank(r, i, false);
        size_t stuck = moved ? 0 : furthest_behind(r);
        if (!moved && stuck == r->n)
            return;
        if (!moved)
            (void)advance_rank(r, stuck, true);
    }
}

static enum ms_rc prepare(struct run *r, struct ms_err *err)
{
    r->arena = ms_arena_new((size_t)4 << 30);
    r->ranks = ms_calloc(r->n + 1, sizeof *r->ranks);
    r->meeting = ms_calloc(r->n + 1, sizeof *r->meeting);
    if (r->arena == NULL || r->ranks == NULL || r->meeting == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < r->n; i++) {
        r->ranks[i].blamed = MS_MAP_NONE;
        MS_TRY(find_meetings(r, i, err));
    }
    return MS_OK;
}

static size_t collect(const struct run *r, bool earliest, uint32_t *blamed)
{
    uint32_t first = UINT32_MAX;
    size_t found = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct runner *x = &r->ranks[i];
        if (x->blamed != MS_MAP_NONE && x->blamed_layer < first)
            first = x->blamed_layer;
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct runner *x = &r->ranks[i];
        bool counts = x->blamed != MS_MAP_NONE && (!earliest || x->blamed_layer == first);
        blamed[i] = counts ? x->blamed : MS_MAP_NONE;
        found += counts;
    }
    return found;
}

enum ms_rc cmp_diff_blame(const struct cmp_trail *trails, size_t n, bool earliest, uint32_t *blamed,
                          size_t *found, struct ms_err *err)
{
    struct run r = {.trails = trails, .n = n};
    enum ms_rc rc = prepare(&r, err);
    *found = 0;
    if (rc == MS_OK) {
        run_all(&r);
        *found = collect(&r, earliest, blamed);
    }
    for (size_t i = 0; i < n && r.meeting != NULL; i++)
        ms_free(r.meeting[i]);
    ms_free(r.meeting);
    ms_free(r.ranks);
    ms_vec_free(&r.meetings);
    ms_map_free(&r.names);
    ms_arena_free(r.arena);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * graph_edit: matches nodes by hand in a stored graph.
 */
#include "compare/graph/view/graph_edit.h"
#include "compare/graph/build/graph_name.h"
#include "compare/graph/build/json_text.h"
#include "compare/graph/view/edit_rows.h"
#include "probe/base/arena.h"
#include "probe/base/assert.h"
#include "probe/base/io.h"
#include "probe/base/jread.h"
#include "probe/base/jwrite.h"
#include "probe/base/map.h"
#include "probe/base/str.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

/* ---- peers ------------------------------------------------------------------ */

/* Groups children by kind, so that each finds its counterparts on the other side
 * quickly.
 *
 *     place   c0 c3 c4 | c1 c5 | c2      children of one kind together, in their order
 *     first   0          3       5  6    by kind: where its children begin in place
 *     free    by place: the place itself if free, else a later place to search from
 *
 * A module may have a hundred thousand children of different kinds, so scanning all of
 * them for each child of the other side would be quadratic. */

/* Children of a node grouped by kind: class of a module, API of an operator. Add all, sort once,
 * then take. */
struct graph__peers {
    struct ms_map kinds;
    uint32_t n, *kind, *place, *first, *free;
    struct ms_arena *arena;
    struct ms_buf text;
};

/* Returns the part of a name that decides the kind: the class of a module, the API of an
 * operator. */
static struct ms_str likeness_of(struct ms_str name, bool api)
{
    unsigned n = probe_name_parts(name), back = api ? 2 : 4;
    if (n >= back && ms_str_all_digits(probe_name_part(name, n - back)))
        back++;
    return n >= back ? probe_name_part(name, n - back) : name;
}

static struct ms_str key_of(struct graph__peers *p, struct ms_str type, struct ms_str name)
{
    ms_buf_clear(&p->text);
    ms_buf_str(&p->text, type);
    ms_buf_putc(&p->text, ' ');
    ms_buf_str(&p->text, likeness_of(name, ms_str_is(type, "1")));
    return ms_buf_slice(&p->text);
}

static enum ms_rc peers_new(struct graph__peers *p, size_t n, struct ms_err *err)
{
    *p = (struct graph__peers){.text.max = 1 << 20};
    p->arena = ms_arena_new(SIZE_MAX);
    p->kind = ms_alloc((n + 1) * sizeof *p->kind);
    p->place = ms_alloc((n + 1) * sizeof *p->place);
    p->free = ms_alloc((n + 1) * sizeof *p->free);
    bool done = p->arena != NULL && p->kind != NULL && p->place != NULL && p->free != NULL;
    return done ? MS_OK : ms_no_memory(err);
}

/* Adds the next child; type is its node_type. A child that is taken belongs to no kind. */
static enum ms_rc peers_add(struct graph__peers *p, struct ms_str type, struct ms_str name,
                            bool taken, struct ms_err *err)
{
    uint32_t kind = MS_MAP_NONE;
    ms_assert(p->first == NULL); /* may not be sorted yet */
    if (!taken) {
        struct ms_str key = key_of(p, type, name);
        MS_TRY(ms_buf_check(&p->text, err));
        kind = ms_map_put_copy(&p->kinds, key, p->arena, NULL);
        if (kind == MS_MAP_NONE)
            return ms_no_memory(err);
    }
    p->kind[p->n++] = kind;
    return MS_OK;
}

static enum ms_rc peers_sort(struct graph__peers *p, struct ms_err *err)
{
    size_t kinds = p->kinds.keys.n;
    p->first = ms_calloc(kinds + 2, sizeof *p->first);
    if (p->first == NULL)
        return ms_no_memory(err);
    /* Counting sort: counts are kept one entry further along until the children are placed, which
     * advances the start of each kind. */
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->kind[i] != MS_MAP_NONE)
            p->first[p->kind[i] + 2]++;
    }
    for (size_t k = 2; k < kinds + 2; k++)
        p->first[k] += p->first[k - 1];
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->kind[i] != MS_MAP_NONE)
            p->place[p->first[p->kind[i] + 1]++] = i;
    }
    for (uint32_t i = 0; i <= p->n; i++)
        p->free[i] = i;
    return MS_OK;
}

/* Returns the first free place from `at` on, of any kind. Path halving as in union-find. */
static uint32_t free_from(struct graph__peers *p, uint32_t at)
{
    while (p->free[at] != at) {
        p->free[at] = p->free[p->free[at]];
        at = p->free[at];
    }
    return at;
}

/* Returns the first place in [from, end) of a child after `child`, by binary search. */
static uint32_t place_behind(const struct graph__peers *p, uint32_t from, uint32_t end,
                             uint32_t child)
{
    while (from < end) {
        uint32_t middle = from + (end - from) / 2;
        if (p->place[middle] <= child)
            from = middle + 1;
        else
            end = middle;
    }
    return from;
}

/* Takes the first free child of the same kind: after child `last` if there is one, as in most
 * modules, else from the beginning. Returns MS_MAP_NONE when there is none. */
static uint32_t pick_peer(struct graph__peers *p, struct ms_str type, struct ms_str name,
                          uint32_t last)
{
    ms_assert(p->first != NULL);
    uint32_t kind = ms_map_get(&p->kinds, key_of(p, type, name));
    if (kind == MS_MAP_NONE || p->text.bad != MS_OK)
        return MS_MAP_NONE;
    uint32_t from = p->first[kind], end = p->first[kind + 1], at = end;
    if (last != MS_MAP_NONE)
        at = free_from(p, place_behind(p, from, end, last));
    if (at >= end)
        at = free_from(p, from);
    if (at >= end)
        return MS_MAP_NONE;
    p->free[at] = at + 1;
    return p->place[at];
}

static void peers_free(struct graph__peers *p)
{
    ms_map_free(&p->kinds);
    ms_buf_free(&p->text);
    ms_free(p->kind);
    ms_free(p->place);
    ms_free(p->free);
    ms_free(p->first);
    ms_arena_free(p->arena);
    *p = (struct graph__peers){.n = 0};
}

/* ---- edits ------------------------------------------------------------------ */

/* Manual matching, in the format of the official plugin, so that changes
 * made in either viewer show up in the other.
 *
 * The dump may no longer exist, so figures are computed from the items in the database:
 * their text is read back into rows, which are then judged by the same rules.
 *
 * Pairs that were matched by hand can be written to a file and applied to another
 * database: {"TARGET NODE": "GOLDEN NODE"}, as the official plugin writes and reads it.
 * The plugin lists changed rows of both sides, so its files also contain reversed pairs;
 * a key that is not a node of the target is skipped. */

enum { NAME_MAX_BYTES = 1 << 20 };
#define FILE_MAX ((size_t)1 << 30)

/* ---- begin and end ------------------------------------------------------------------ */

/* Opens the database for a change. Call end_edit even after an error. */
static enum ms_rc begin_edit(struct graph__edit *e, const char *path, struct graph_spot at,
                             struct ms_err *err)
{
    MS_TRY(graph__edit_begin(e, path, at, err));
    return graph__stored_init(&e->judge, e->mode, err);
}

static enum ms_rc end_edit(struct graph__edit *e, enum ms_rc rc, struct ms_err *err)
{
    graph__stored_free(&e->judge);
    return graph__edit_end(e, rc, err);
}

/* ---- a pair ------------------------------------------------------------------------ */

/* Rewrites the items of a node, except in comparisons of digests or structure. */
static enum ms_rc renew_items(struct graph__edit *e, struct graph__edit_node *n, bool figures,
                              struct ms_err *err)
{
    int64_t row = figures ? 0 : -1;
    if (e->mode == PROBE_MODE_MD5 || e->mode == PROBE_MODE_STRUCTURE)
        return MS_OK;
    MS_TRY(graph__put_stored(&e->in, &e->judge, n->in, &row, err));
    MS_TRY(graph__put_stored(&e->out, &e->judge, n->out, &row, err));
    MS_TRY(graph__edit_keep(e, ms_buf_slice(&e->in), &n->in, err));
    return graph__edit_keep(e, ms_buf_slice(&e->out), &n->out, err);
}

static enum ms_rc judge_node(struct graph__edit *e, struct graph__edit_node *t,
                             const struct graph__edit_node *b, struct ms_err *err)
{
    struct graph__stored target = {t->in, t->out, t->dir.p}, golden = {b->in, b->out, b->dir.p};
    static const double index[GRAPH_STATES] = {NAN, 0, 0.5, 1};
    enum graph_state state = GRAPH_NONE;
    MS_TRY(graph__judge_stored(&e->judge, t->name, &target, &golden, &state, err));
    ms_assert(state < GRAPH_STATES);
    t->index = index[state];
    return renew_items(e, t, true, err);
}

/* Makes the link to a partner: ["PARENT", "NODE"]. */
static enum ms_rc link_to(struct graph__edit *e, const struct graph__edit_node *other,
                          struct ms_str *link, struct ms_err *err)
{
    ms_buf_clear(&e->text);
    ms_buf_putc(&e->text, '[');
    if (other->parent.n != 0) {
        graph__put_json(&e->text, other->parent);
        ms_buf_puts(&e->text, ", ");
    }
    graph__put_json(&e->text, other->name);
    ms_buf_putc(&e->text, ']');
    MS_TRY(ms_buf_check(&e->text, err));
    return graph__edit_keep(e, ms_buf_slice(&e->text), link, err);
}

static enum ms_rc join_nodes(struct graph__edit *e, const struct graph__edit_node *t,
                             const struct graph__edit_node *b, struct ms_err *err)
{
    struct graph__edit_node nt = *t, nb = *b;
    MS_TRY(link_to(e, b, &nt.link, err));
    MS_TRY(link_to(e, t, &nb.link, err));
    if (e->mode != PROBE_MODE_STRUCTURE)
        MS_TRY(judge_node(e, &nt, b, err));
    nt.modified = nb.modified = 1;
    MS_TRY(graph__edit_change(e, false, t, &nt, err));
    return graph__edit_change(e, true, b, &nb, err);
}

static enum ms_rc part_node(struct graph__edit *e, bool golden, const struct graph__edit_node *n,
                            struct ms_err *err)
{
    struct graph__edit_node after = *n;
    after.link = MS_STR("[]");
    after.index = NAN;
    after.modified = 1;
    if (!golden)
        MS_TRY(renew_items(e, &after, false, err));
    return graph__edit_change(e, golden, n, &after, err);
}

/* Makes the name of the same call in the other direction. */
static enum ms_rc find_opposite(struct graph__edit *e, struct ms_str name, struct ms_str *out,
                                struct ms_err *err)
{
    bool forward = ms_str_find_str(name, MS_STR("forward")) >= 0;
    ms_buf_clear(&e->text);
    graph__replace(&e->text, name, forward ? MS_STR("forward") : MS_STR("backward"),
                   forward ? MS_STR("backward") : MS_STR("forward"));
    MS_TRY(ms_buf_check(&e->text, err));
    return graph__edit_keep(e, ms_buf_slice(&e->text), out, err);
}

static enum ms_rc match_names(struct graph__edit *e, struct ms_str target, struct ms_str golden,
                              bool must, bool *done, struct ms_err *err)
{
    struct graph__edit_node t, b;
    *done = false;
    MS_TRY(graph__edit_read(e, false, target, &t, err));
    MS_TRY(graph__edit_read(e, true, golden, &b, err));
    bool free = t.there && b.there && graph__edit_is_unmatched(&t) && graph__edit_is_unmatched(&b);
    if (free && ms_str_eq(t.kind, b.kind)) {
        *done = true;
        return join_nodes(e, &t, &b, err);
    }
    if (!must)
        return MS_OK;
    if (!t.there || !b.there)
        return ms_fail(err, MS_E_NOTFOUND, "there is no node '%.*s'",
                       MS_STR_ARG(t.there ? golden : target));
    if (!free)
        return ms_fail(err, MS_E_ARG, "'%.*s' is matched already; unmatch it first",
                       MS_STR_ARG(graph__edit_is_unmatched(&t) ? golden : target));
    return ms_fail(err, MS_E_ARG, "'%.*s' and '%.*s' are not of one type", MS_STR_ARG(target),
                   MS_STR_ARG(golden));
}

static enum ms_rc match_both(struct graph__edit *e, struct ms_str target, struct ms_str golden,
                             bool must, bool *done, struct ms_err *err)
{
    struct ms_str ot, ob;
    bool other;
    MS_TRY(match_names(e, target, golden, must, done, err));
    if (!*done)
        return MS_OK;
    MS_TRY(find_opposite(e, target, &ot, err));
    MS_TRY(find_opposite(e, golden, &ob, err));
    return match_names(e, ot, ob, false, &other, err);
}

/* Matches two nodes, and the same calls in the other direction. */
static enum ms_rc match_pair(struct graph__edit *e, struct ms_str target, struct ms_str golden,
                             bool must, bool *done, struct ms_err *err)
{
    struct ms_arena *kept = NULL;
    MS_TRY(graph__edit_own_memory(e, &kept, err));
    enum ms_rc rc = match_both(e, target, golden, must, done, err);
    graph__edit_common_memory(e, kept);
    return rc;
}

/* ---- descendants --------------------------------------------------------------------- */

struct pair {
    struct ms_str t, b;
};

struct todo {
    MS_VEC(struct pair) list;
    uint64_t most; /* number of nodes, an upper bound, as each has one parent */
};

static enum ms_rc note_pair(struct todo *todo, struct ms_str target, struct ms_str golden,
                            struct ms_err *err)
{
    if (todo->list.n > todo->most)
        return ms_fail(err, MS_E_FORMAT, "node '%.*s' lies inside itself", MS_STR_ARG(target));
    struct pair *slot = ms_vec_push(&todo->list);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct pair){target, golden};
    return MS_OK;
}

static enum ms_rc list_peers(struct graph__peers *peers, const struct graph__edit_node *list,
                             size_t n, struct ms_err *err)
{
    MS_TRY(peers_new(peers, n, err));
    for (size_t i = 0; i < n; i++)
        MS_TRY(
            peers_add(peers, list[i].kind, list[i].name, !graph__edit_is_unmatched(&list[i]), err));
    return peers_sort(peers, err);
}

/* Pairs unmatched children with the same type and class or API, in order, and queues each pair so
 * that its children are paired too. */
static enum ms_rc match_lists(struct graph__edit *e, struct todo *todo,
                              const struct graph__edit_node *t, size_t nt,
                              const struct graph__edit_node *b, struct graph__peers *peers,
                              uint64_t *matched, struct ms_err *err)
{
    uint32_t last = MS_MAP_NONE;
    for (size_t i = 0; i < nt; i++) {
        uint32_t k = graph__edit_is_unmatched(&t[i]) ? pick_peer(peers, t[i].kind, t[i].name, last)
                                                     : MS_MAP_NONE;
        if (k == MS_MAP_NONE)
            continue;
        bool done;
        last = k;
        MS_TRY(match_pair(e, t[i].name, b[k].name, false, &done, err));
        MS_TRY(note_pair(todo, t[i].name, b[k].name, err));
        *matched += done;
    }
    return ms_buf_check(&peers->text, err);
}

static enum ms_rc match_children(struct graph__edit *e, struct todo *todo, struct pair p,
                                 uint64_t *matched, struct ms_err *err)
{
    struct graph__edit_node *t = NULL, *b = NULL;
    struct graph__peers peers = {.n = 0};
    size_t nt = 0, nb = 0;
    enum ms_rc rc = graph__edit_children(e, false, p.t, &t, &nt, err);
    if (rc == MS_OK)
        rc = graph__edit_children(e, true, p.b, &b, &nb, err);
    if (rc == MS_OK)
        rc = list_peers(&peers, b, nb, err);
    if (rc == MS_OK)
        rc = match_lists(e, todo, t, nt, b, &peers, matched, err);
    peers_free(&peers);
    ms_free(t);
    ms_free(b);
    return rc;
}

/* ---- what viewers call ------------------------------------------------------------------ */

enum ms_rc graph_match(const char *path, struct graph_spot at, struct ms_str target,
                       struct ms_str golden, struct ms_err *err)
{
    struct graph__edit e;
    bool done;
    enum ms_rc rc = begin_edit(&e, path, at, err);
    if (rc == MS_OK)
        rc = match_pair(&e, target, golden, true, &done, err);
    return end_edit(&e, rc, err);
}

enum ms_rc graph_match_below(const char *path, struct graph_spot at, struct ms_str target,
                             struct ms_str golden, uint64_t *matched, struct ms_err *err)
{
    struct graph__edit e;
    struct todo todo = {.most = 0};
    bool done = false;
    *matched = 0;
    enum ms_rc rc = begin_edit(&e, path, at, err);
    if (rc == MS_OK)
        rc = graph__edit_count(&e, &todo.most, err);
    if (rc == MS_OK)
        rc = match_pair(&e, target, golden, false, &done, err);
    if (rc == MS_OK)
        rc = note_pair(&todo, target, golden, err);
    *matched += done;
    for (size_t i = 0; rc == MS_OK && i < todo.list.n; i++)
        rc = match_children(&e, &todo, todo.list.p[i], matched, err);
    ms_vec_free(&todo.list);
    return end_edit(&e, rc, err);
}

/* Reads the name of the node's partner, the last name of the link. */
static enum ms_rc partner_of(struct graph__edit *e, const struct graph__edit_node *n,
                             struct ms_str *name, struct ms_err *err)
{
    struct ms_jread r;
    struct ms_str text;
    *name = MS_STR("");
    ms_jread_init(&r, n->link.p, n->link.n, 0);
    if (ms_jread_next(&r) != MS_J_ARR)
        return MS_OK;
    while (ms_jread_next(&r) == MS_J_STR) {
        MS_TRY(ms_jread_text(&r, &e->text, &text, err));
        MS_TRY(graph__edit_keep(e, text, name, err));
    }
    return MS_OK;
}

static enum ms_rc part_nodes(struct graph__edit *e, struct ms_str target, bool must,
                             struct ms_err *err)
{
    struct graph__edit_node t, b;
    struct ms_str partner;
    MS_TRY(graph__edit_read(e, false, target, &t, err));
    if (!t.there || graph__edit_is_unmatched(&t)) {
        if (!must)
            return MS_OK;
        return ms_fail(err, t.there ? MS_E_ARG : MS_E_NOTFOUND, "'%.*s' is %s", MS_STR_ARG(target),
                       t.there ? "not matched" : "no node of the target");
    }
    MS_TRY(partner_of(e, &t, &partner, err));
    MS_TRY(graph__edit_read(e, true, partner, &b, err));
    MS_TRY(part_node(e, false, &t, err));
    return b.there ? part_node(e, true, &b, err) : MS_OK;
}

/* Unmatches a node, and the same call in the other direction. */
static enum ms_rc part_both(struct graph__edit *e, struct ms_str target, bool must,
                            struct ms_err *err)
{
    struct ms_str other;
    struct ms_arena *kept = NULL;
    MS_TRY(graph__edit_own_memory(e, &kept, err));
    enum ms_rc rc = part_nodes(e, target, must, err);
    if (rc == MS_OK)
        rc = find_opposite(e, target, &other, err);
    if (rc == MS_OK)
        rc = part_nodes(e, other, false, err);
    graph__edit_common_memory(e, kept);
    return rc;
}

enum ms_rc graph_unmatch(const char *path, struct graph_spot at, struct ms_str target,
                         struct ms_err *err)
{
    struct graph__edit e;
    enum ms_rc rc = begin_edit(&e, path, at, err);
    if (rc == MS_OK)
        rc = part_both(&e, target, true, err);
    return end_edit(&e, rc, err);
}

/* Unmatches the children of a node. Children without a partner are visited too, since nodes below
 * them may have one. */
static enum ms_rc part_children(struct graph__edit *e, struct todo *todo, struct ms_str name,
                                uint64_t *parted, struct ms_err *err)
{
    struct graph__edit_node *t = NULL;
    size_t n = 0;
    enum ms_rc rc = graph__edit_children(e, false, name, &t, &n, err);
    for (size_t i = 0; rc == MS_OK && i < n; i++) {
        *parted += !graph__edit_is_unmatched(&t[i]);
        rc = part_both(e, t[i].name, false, err);
        if (rc == MS_OK)
            rc = note_pair(todo, t[i].name, MS_STR(""), err);
    }
    ms_free(t);
    return rc;
}

enum ms_rc graph_unmatch_below(const char *path, struct graph_spot at, struct ms_str target,
                               uint64_t *parted, struct ms_err *err)
{
    struct graph__edit e;
    struct todo todo = {.most = 0};
    *parted = 1;
    enum ms_rc rc = begin_edit(&e, path, at, err);
    if (rc == MS_OK)
        rc = graph__edit_count(&e, &todo.most, err);
    if (rc == MS_OK)
        rc = part_both(&e, target, true, err);
    if (rc == MS_OK)
        rc = note_pair(&todo, target, MS_STR(""), err);
    for (size_t i = 0; rc == MS_OK && i < todo.list.n; i++)
        rc = part_children(&e, &todo, todo.list.p[i].t, parted, err);
    ms_vec_free(&todo.list);
    return end_edit(&e, rc, err);
}

/* ---- undo ---------------------------------------------------------------------------------- */

static enum ms_rc read_old(struct graph__edit *e, struct ms_stmt *st, bool *golden,
                           struct graph__edit_node *old, struct ms_err *err)
{
    e->at.step = ms_stmt_get_i64(st, 0);
    e->at.rank = ms_stmt_get_i64(st, 1);
    *golden = ms_str_is(ms_stmt_get_str(st, 2), "Bench");
    MS_TRY(graph__edit_keep(e, ms_stmt_get_str(st, 3), &old->name, err));
    MS_TRY(graph__edit_keep(e, ms_stmt_get_str(st, 4), &old->link, err));
    MS_TRY(graph__edit_keep(e, ms_stmt_get_str(st, 5), &old->in, err));
    MS_TRY(graph__edit_keep(e, ms_stmt_get_str(st, 6), &old->out, err));
    old->index = ms_stmt_is_null(st, 7) ? NAN : ms_stmt_get_f64(st, 7);
    old->modified = ms_stmt_get_i64(st, 8);
    return MS_OK;
}

static enum ms_rc restore_node(struct graph__edit *e, bool golden, struct graph__edit_node *old,
                               struct ms_err *err)
{
    struct graph__edit_node now;
    MS_TRY(graph__edit_read(e, golden, old->name, &now, err));
    if (!now.there)
        return MS_OK;
    old->parent = now.parent;
    old->order = now.order;
    old->there = true;
    return graph__edit_change(e, golden, &now, old, err);
}

static enum ms_rc restore_row(struct graph__edit *e, struct ms_stmt *st, struct ms_err *err)
{
    struct graph__edit_node old = {.there = false};
    struct ms_arena *kept = NULL;
    bool golden;
    MS_TRY(graph__edit_own_memory(e, &kept, err));
    enum ms_rc rc = read_old(e, st, &golden, &old, err);
    if (rc == MS_OK)
        rc = restore_node(e, golden, &old, err);
    graph__edit_common_memory(e, kept);
    return rc;
}

/* Restores the rows of the last change in reverse order. */
static enum ms_rc restore_all(struct graph__edit *e, struct ms_err *err)
{
    struct ms_stmt *st;
    size_t n = 0;
    enum ms_rc rc = MS_OK;
    e->change = 0;
    MS_TRY(ms_store_prepare(e->store, &st,
                            "SELECT step, rank, data_source, node_name, link, input_data,"
                            " output_data, precision_index, modified FROM x_undo"
                            " WHERE change = (SELECT max(change) FROM x_undo) ORDER BY id DESC",
                            err));
    while (ms_stmt_next(st, &rc, err)) {
        rc = restore_row(e, st, err);
        if (rc != MS_OK)
            break;
        n++;
    }
    ms_stmt_free(st);
    if (rc == MS_OK && n == 0)
        rc = ms_fail(err, MS_E_NOTFOUND, "there is no change to take back");
    if (rc == MS_OK)
        rc = ms_store_exec(
            e->store, "DELETE FROM x_undo WHERE change = (SELECT max(change) FROM x_undo)", err);
    return rc;
}

enum ms_rc graph_undo(const char *path, struct ms_err *err)
{
    struct graph__edit e;
    enum ms_rc rc = begin_edit(&e, path, (struct graph_spot){0, 0, false}, err);
    if (rc == MS_OK)
        rc = restore_all(&e, err);
    return end_edit(&e, rc, err);
}

/* ---- pairs as a file: writing ------------------------------------------------------------------- */

static enum ms_rc put_pairs(struct ms_jwrite *w, struct ms_store *s, struct graph_spot at,
                            uint64_t *pairs, struct ms_err *err)
{
    struct ms_stmt *st;
    enum ms_rc rc = MS_OK;
    MS_TRY(ms_store_prepare(s, &st,
                            "SELECT node_name, json_extract(matched_node_link, '$[#-1]') FROM"
                            " tb_nodes WHERE step = ?1 AND rank = ?2 AND data_source = 'NPU' AND"
                            " modified = 1 AND json_array_length(matched_node_link) > 0"
                            " ORDER BY node_order",
                            err));
    ms_stmt_i64(st, 1, at.step);
    ms_stmt_i64(st, 2, at.rank);
    ms_jwrite_obj(w);
    while (ms_stmt_next(st, &rc, err)) {
        ms_jwrite_key(w, ms_stmt_get_str(st, 0));
        ms_jwrite_str(w, ms_stmt_get_str(st, 1));
        ++*pairs;
    }
    ms_jwrite_obj_end(w);
    ms_stmt_free(st);
    return rc == MS_OK ? ms_jwrite_finish(w, err) : rc;
}

/* Builds the path of the file of pairs: DIR/TAG_STEP_RANK.vis.config for DIR/TAG.vis.db. */
static enum ms_rc name_config(const char *db, struct graph_spot at, struct ms_buf *path,
                              struct ms_err *err)
{
    struct ms_str tag = ms_str_of(db);
    if (ms_str_ends(tag, MS_STR(".vis.db")))
        tag.n -= 7;
    ms_buf_clear(path);
    ms_buf_printf(path, "%.*s_%lld_%lld.vis.config", MS_STR_ARG(tag), (long long)at.step,
                  (long long)at.rank);
    return ms_buf_check(path, err);
}

static enum ms_rc write_text(const char *path, struct ms_str text, struct ms_err *err)
{
    struct ms_out *o;
    MS_TRY(ms_out_create(&o, path, err));
    ms_out_str(o, text);
    return ms_out_commit(o, err);
}

enum ms_rc graph_save_matches(const char *db, const char *beside, struct graph_spot at,
                              struct ms_buf *path, uint64_t *pairs, struct ms_err *err)
{
    struct ms_store *s;
    struct ms_jwrite w;
    *pairs = 0;
    MS_TRY(name_config(beside, at, path, err));
    MS_TRY(ms_want_no_link(ms_buf_z(path), err));
    MS_TRY(ms_store_open(&s, db, err));
    ms_jwrite_init(&w, 4, FILE_MAX);
    enum ms_rc rc = put_pairs(&w, s, at, pairs, err);
    ms_store_close(s);
    if (rc == MS_OK)
        rc = write_text(ms_buf_z(path), ms_buf_slice(&w.buf), err);
    ms_jwrite_free(&w);
    return rc;
}

/* ---- pairs as a file: reading -------------------------------------------------------------------- */

static enum ms_rc keep_name(const struct ms_jread *r, struct ms_buf *scratch, struct ms_arena *a,
                            struct ms_str *out, struct ms_err *err)
{
    struct ms_str text;
    MS_TRY(ms_jread_text(r, scratch, &text, err));
    *out = ms_arena_str(a, text);
    return out->p != NULL ? MS_OK : ms_arena_fail(a, err);
}

static enum ms_rc read_pairs(struct graph__names *names, struct ms_str text, struct ms_buf *scratch,
                             struct ms_err *err)
{
    struct ms_jread r;
    enum ms_jtok tok;
    ms_jread_init(&r, text.p, text.n, 0);
    tok = ms_jread_next(&r);
    if (tok != MS_J_OBJ && tok != MS_J_ERR)
        return ms_jread_reject(&r, err, "expected an object of target and golden nodes");
    while (tok != MS_J_ERR && (tok = ms_jread_next(&r)) == MS_J_KEY) {
        struct graph__two_names *pair = ms_vec_push(&names->list);
        if (pair == NULL)
            return ms_no_memory(err);
        MS_TRY(keep_name(&r, scratch, names->arena, &pair->target, err));
        tok = ms_jread_next(&r);
        if (tok != MS_J_STR && tok != MS_J_ERR)
            return ms_jread_reject(&r, err, "expected the name of a golden node");
        if (tok == MS_J_STR)
            MS_TRY(keep_name(&r, scratch, names->arena, &pair->golden, err));
    }
    if (tok != MS_J_ERR)
        tok = ms_jread_next(&r);
    return tok != MS_J_ERR ? MS_OK : ms_jread_fail(&r, err);
}

enum ms_rc graph__names_parse(struct graph__names *names, struct ms_str text, struct ms_err *err)
{
    struct ms_buf scratch = {.max = NAME_MAX_BYTES};
    names->list.p = NULL;
    names->list.n = names->list.cap = 0;
    names->arena = ms_arena_new(SIZE_MAX);
    enum ms_rc rc =
        names->arena != NULL ? read_pairs(names, text, &scratch, err) : ms_no_memory(err);
    ms_buf_free(&scratch);
    if (rc != MS_OK)
        graph__names_free(names);
    return rc;
}

void graph__names_free(struct graph__names *names)
{
    ms_vec_free(&names->list);
    ms_arena_free(names->arena);
    names->arena = NULL;
}

/* Matches the pairs whose nodes exist and have no partner, as one change. */
static enum ms_rc match_all(const char *path, struct graph_spot at,
                            const struct graph__names *names, uint64_t *matched, struct ms_err *err)
{
    struct graph__edit e;
    *matched = 0;
    enum ms_rc rc = begin_edit(&e, path, at, err);
    for (size_t i = 0; rc == MS_OK && i < names->list.n; i++) {
        bool done = false;
        rc = match_names(&e, names->list.p[i].target, names->list.p[i].golden, false, &done, err);
        *matched += done;
    }
    return end_edit(&e, rc, err);
}

enum ms_rc graph_match_saved(const char *db, struct graph_spot at, const char *config,
                             uint64_t *matched, struct ms_err *err)
{
    struct ms_file file;
    struct graph__names names;
    *matched = 0;
    MS_TRY(ms_file_map(&file, config, FILE_MAX, err));
    enum ms_rc rc = graph__names_parse(&names, (struct ms_str){file.p, (uint32_t)file.n}, err);
    ms_file_unmap(&file);
    if (rc != MS_OK)
        return ms_err_wrap(err, "%s", config), rc;
    rc = match_all(db, at, &names, matched, err);
    graph__names_free(&names);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * rank_comm: matches communication calls of different ranks.
 *
 * Every call gets a key that its partner can compute: for point-to-point calls
 * operation, peer and occurrence; for collectives group, operation and occurrence. All
 * calls of all ranks are noted first; then each call looks up its partners and the links
 * are written.
 */
#include "compare/graph/build/rank_comm.h"

#include "compare/graph/build/json_text.h"
#include "compare/graph/graph_rules.h"
#include "probe/base/assert.h"

#include <stdlib.h>

enum { TEXT_MAX = 1 << 24 };

enum class { CLASS_ALL, CLASS_P2P, CLASS_ROOTED };
enum role { ROLE_BOTH, ROLE_SEND, ROLE_RECEIVE };
static const char *const role_names[] = {"send_receive", "send", "receive"};

static const struct api {
    const char *name, *partner;
    const char *rank_at; /* path of the argument that holds the peer or root rank */
    /* path when the argument is passed by keyword instead of position, or the reverse; the official
     * tool ignores it */
    const char *or_at;
    enum class class;
    enum role role; /* role of the caller, or of the root of a rooted collective */
} apis[] = {
    {"send", "recv", "input.dst", "input.1", CLASS_P2P, ROLE_SEND},
    {"isend", "irecv", "input.dst", "input.1", CLASS_P2P, ROLE_SEND},
    {"recv", "send", "input.src", "input.1", CLASS_P2P, ROLE_RECEIVE},
    {"irecv", "isend", "input.src", "input.1", CLASS_P2P, ROLE_RECEIVE},
    {"broadcast", "broadcast", "input.1", "input.src", CLASS_ROOTED, ROLE_SEND},
    {"scatter", "scatter", "input.src", "input.2", CLASS_ROOTED, ROLE_SEND},
    {"gather", "gather", "input.dst", "input.2", CLASS_ROOTED, ROLE_RECEIVE},
    {"reduce", "reduce", "input.1", "input.dst", CLASS_ROOTED, ROLE_RECEIVE},
};
static const struct api collective = {"", "", NULL, NULL, CLASS_ALL, ROLE_BOTH};

/* A communication call, or one member of a batch. */
struct call {
    struct ms_str name;  /* name of the node */
    struct ms_str op;    /* send, all_reduce, ... */
    struct ms_str group; /* group_id */
    struct ms_str ranks; /* group_ranks as JSON */
    struct graph__place place;
    int64_t row; /* row of the node in the database */
    const struct api *api;
    int64_t peer; /* peer or root rank; -1: not recorded */
    uint32_t number;
    uint32_t node; /* index of the noted node */
    uint8_t over, state;
    bool batch;
};

struct link { /* from a call to its partner */
    uint32_t call;
    enum role role;
    int64_t rank; /* rank of the partner */
    uint32_t partner;
};

struct graph__comm {
    const struct graph_conf *conf;
    struct ms_arena *arena;
    MS_VEC(struct call) calls;
    struct ms_map keys; /* place, key and occurrence; the entry number is the index of the call */
    struct ms_map counted; /* the same without the occurrence */
    MS_VEC(uint32_t) counts;
    MS_VEC(struct link) links;
    uint32_t nodes;
    struct ms_buf text;
};

enum ms_rc graph__comm_new(struct graph__comm **out, const struct graph_conf *conf,
                           struct ms_err *err)
{
    struct graph__comm *c = ms_calloc(1, sizeof *c);
    *out = c;
    if (c == NULL)
        return ms_no_memory(err);
    c->conf = conf;
    c->text.max = TEXT_MAX;
    c->arena = ms_arena_new(SIZE_MAX);
    return c->arena != NULL ? MS_OK : ms_no_memory(err);
}

void graph__comm_free(struct graph__comm *c)
{
    if (c == NULL)
        return;
    ms_vec_free(&c->calls);
    ms_vec_free(&c->counts);
    ms_vec_free(&c->links);
    ms_map_free(&c->keys);
    ms_map_free(&c->counted);
    ms_buf_free(&c->text);
    ms_arena_free(c->arena);
    ms_free(c);
}

/* ---- keys ----------------------------------------------------------------------- */

static const struct api *api_of(struct ms_str op)
{
    for (size_t i = 0; i < sizeof apis / sizeof *apis; i++) {
        if (ms_str_is(op, apis[i].name))
            return &apis[i];
    }
    return &collective;
}

/* Returns the operation as used in keys: isend matches recv, so the "i" is dropped. The official
 * tool keeps the two apart. */
static struct ms_str key_name(const struct graph__comm *c, struct ms_str op)
{
    bool plain =
        c->conf->rules->isend_meets_recv && (ms_str_is(op, "isend") || ms_str_is(op, "irecv"));
    return plain ? ms_str_sub(op, 1, op.n) : op;
}

/* Writes the key, without occurrence, that a call of `op` with peer `peer` has at `place`. */
static void put_key(struct graph__comm *c, const struct call *call, struct graph__place place,
                    struct ms_str op, int64_t peer)
{
    op = key_name(c, op);
    ms_buf_clear(&c->text);
    graph__put_graph_id(&c->text, place);
    ms_buf_printf(&c->text, "|%d|%.*s", call->batch, MS_STR_ARG(op));
    if (call->api->class == CLASS_P2P)
        ms_buf_printf(&c->text, "|%lld", (long long)peer);
    if (call->api->class != CLASS_P2P || call->batch)
        ms_buf_printf(&c->text, "|%.*s", MS_STR_ARG(call->group));
}

static enum ms_rc copy(struct graph__comm *c, struct ms_str *s, struct ms_err *err)
{
    *s = ms_arena_str(c->arena, *s);
    return s->p != NULL ? MS_OK : ms_arena_fail(c->arena, err);
}

static enum ms_rc number_call(struct graph__comm *c, struct call *call, struct ms_err *err)
{
    bool added;
    put_key(c, call, call->place, call->op, call->peer);
    MS_TRY(ms_buf_check(&c->text, err));
    uint32_t id = ms_map_put_copy(&c->counted, ms_buf_slice(&c->text), c->arena, &added);
    uint32_t *count = id == GRAPH_NO ? NULL : added ? ms_vec_push(&c->counts) : &c->counts.p[id];
    if (count == NULL)
        return ms_no_memory(err);
    *count = added ? 1 : *count + 1;
    call->number = *count;
    ms_buf_printf(&c->text, "|%u", call->number);
    MS_TRY(ms_buf_check(&c->text, err));
    id = ms_map_put_copy(&c->keys, ms_buf_slice(&c->text), c->arena, NULL);
    return id != GRAPH_NO ? MS_OK : ms_no_memory(err);
}

static enum ms_rc add_call(struct graph__comm *c, struct call *call, struct ms_err *err)
{
    MS_TRY(copy(c, &call->op, err));
    MS_TRY(copy(c, &call->group, err));
    MS_TRY(copy(c, &call->ranks, err));
    MS_TRY(number_call(c, call, err));
    struct call *slot = ms_vec_push(&c->calls);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = *call;
    return MS_OK;
}

/* ---- noting ------------------------------------------------------------------- */

static const struct probe_row *row_at(const struct graph__tree *g, const struct cmp__op *op,
                                      const char *path)
{
    for (uint32_t i = 0; i < op->n; i++) {
        const struct probe_row *row = cmp__side_row(&g->side, op->first + i);
        if (ms_str_is(probe_row_path(g->side.dump, row), path))
            return row;
    }
    return NULL;
}

static int64_t rank_at(const struct graph__tree *g, const struct cmp__op *op, const char *path)
{
    const struct probe_row *row = path != NULL ? row_at(g, op, path) : NULL;
    struct probe_leaf leaf;
    int64_t rank;
    if (row == NULL)
        return -1;
    probe_row_leaf(g->side.dump, row, &leaf);
    return ms_str_i64(graph__json_member(leaf.json, "value"), &rank) ? rank : -1;
}

static void read_group(const struct graph__tree *g, const struct cmp__op *op, struct call *call)
{
    const struct probe_row *row = row_at(g, op, "input.group");
    struct probe_leaf leaf;
    if (row == NULL)
        return;
    probe_row_leaf(g->side.dump, row, &leaf);
    call->group = graph__json_member(leaf.json, "group_id");
    if (leaf.kind == PROBE_LEAF_GROUP)
        call->ranks = leaf.value_json;
}

/* Notes the members of a batch, which its output lists. */
static enum ms_rc note_batch(struct graph__comm *c, const struct graph__tree *g,
                             const struct cmp__op *op, const struct call *like, struct ms_err *err)
{
    for (uint32_t i = 0; i < op->n; i++) {
        const struct probe_row *row = cmp__side_row(&g->side, op->first + i);
        struct probe_leaf leaf;
        if (row->section != PROBE_SEC_OUTPUT || row->kind != PROBE_LEAF_P2P)
            continue;
        probe_row_leaf(g->side.dump, row, &leaf);
        struct call call = *like;
        call.batch = true;
        call.op = graph__json_member(leaf.json, "op");
        call.group = graph__json_member(leaf.json, "group_id");
        call.api = api_of(call.op);
        if (call.api->class == CLASS_P2P &&
            ms_str_i64(graph__json_member(leaf.json, "peer"), &call.peer))
            MS_TRY(add_call(c, &call, err));
    }
    return MS_OK;
}

static enum ms_rc note_node(struct graph__comm *c, const struct graph__tree *g, uint32_t node,
                            struct graph__place place, int64_t row, struct ms_err *err)
{
    const struct graph__node *n = &g->nodes.p[node];
    const struct cmp__op *op = &g->side.ops.p[n->op];
    struct call call = {.name = graph__name(g, node),
                        .op = probe_name_part(graph__name(g, node), 1),
                        .group = {"", 0},
                        .ranks = {"", 0},
                        .place = place,
                        .row = row,
                        .peer = -1,
                        .node = c->nodes++,
                        .over = n->over,
                        .state = n->state};
    MS_TRY(copy(c, &call.name, err));
    if (ms_str_is(call.op, "batch_isend_irecv"))
        return !c->conf->rules->link_batches || c->conf->batch == GRAPH_BATCH_NONE
                   ? MS_OK
                   : note_batch(c, g, op, &call, err);
    call.api = api_of(call.op);
    call.peer = rank_at(g, op, call.api->rank_at);
    if (call.peer < 0 && c->conf->rules->ranks_by_position)
        call.peer = rank_at(g, op, call.api->or_at);
    read_group(g, op, &call);
    return add_call(c, &call, err);
}

enum ms_rc graph__comm_note(struct graph__comm *c, const struct graph__tree *g,
                            struct graph__place place, int64_t first_row, struct ms_err *err)
{
    ms_assert(first_row >= 0);
    for (size_t i = 0; i < g->order.n; i++) {
        uint32_t node = g->order.p[i];
        if (g->nodes.p[node].op != GRAPH_NO &&
            ms_str_starts(graph__name(g, node), MS_STR("Distributed")))
            MS_TRY(note_node(c, g, node, place, first_row + (int64_t)i + 1, err));
    }
    return MS_OK;
}

/* ---- peers --------------------------------------------------------------- */

struct ms_str graph__comm_group(const struct graph__tree *g, uint32_t node)
{
    struct call call = {.group = {"", 0}, .ranks = {"", 0}};
    if (g->nodes.p[node].op != GRAPH_NO)
        read_group(g, &g->side.ops.p[g->nodes.p[node].op], &call);
    return call.ranks;
}

/* Returns the peer of the first member of a batch that sends to another rank, or -1. */
static int64_t batch_sends_to(const struct graph__tree *g, const struct cmp__op *op, int64_t self)
{
    for (uint32_t i = 0; i < op->n; i++) {
        const struct probe_row *row = cmp__side_row(&g->side, op->first + i);
        struct probe_leaf leaf;
        int64_t peer;
        if (row->section != PROBE_SEC_OUTPUT || row->kind != PROBE_LEAF_P2P)
            continue;
        probe_row_leaf(g->side.dump, row, &leaf);
        if (ms_str_is(graph__json_member(leaf.json, "op"), "isend") &&
            ms_str_i64(graph__json_member(leaf.json, "peer"), &peer) && peer != self)
            return peer;
    }
    return -1;
}

int64_t graph__comm_sends_to(const struct graph__tree *g, uint32_t node, int64_t self)
{
    struct ms_str name = graph__name(g, node);
    if (g->nodes.p[node].op == GRAPH_NO)
        return -1;
    const struct cmp__op *op = &g->side.ops.p[g->nodes.p[node].op];
    if (ms_str_find_str(name, MS_STR(".batch_isend_irecv.")) >= 0)
        return batch_sends_to(g, op, self);
    struct ms_str api = probe_name_part(name, 1);
    return ms_str_is(api, "send") || ms_str_is(api, "isend") ? rank_at(g, op, "input.dst") : -1;
}

/* ---- matching ------------------------------------------------------------ */

/* Returns the call of `rank` that matches this call, or GRAPH_NO. */
static uint32_t find_partner(struct graph__comm *c, const struct call *call, int64_t rank)
{
    struct graph__place there = call->place;
    there.rank = rank;
    struct ms_str op = call->api->class == CLASS_P2P ? ms_str_of(call->api->partner) : call->op;
    put_key(c, call, there, op, call->place.rank);
    ms_buf_printf(&c->text, "|%u", call->number);
    return ms_map_get(&c->keys, ms_buf_slice(&c->text));
}

static enum ms_rc add_link(struct graph__comm *c, uint32_t call, enum role role, uint32_t partner,
                           struct ms_err *err)
{
    struct link *l = ms_vec_push(&c->links);
    if (l == NULL)
        return ms_no_memory(err);
    *l = (struct link){call, role, c->calls.p[partner].place.rank, partner};
    return MS_OK;
}

static enum ms_rc meet_group(struct graph__comm *c, uint32_t i, struct ms_err *err)
{
    const struct call call = c->calls.p[i];
    enum role back = call.api->role == ROLE_SEND      ? ROLE_RECEIVE
                     : call.api->role == ROLE_RECEIVE ? ROLE_SEND
                                                      : ROLE_BOTH;
    struct ms_jread r;
    int64_t rank;
    if (call.ranks.n == 0 || (call.api->class == CLASS_ROOTED && call.peer != call.place.rank))
        return MS_OK;
    ms_jread_init(&r, call.ranks.p, call.ranks.n, 0);
    ms_jread_next(&r);
    while (ms_jread_next(&r) == MS_J_NUM) {
        if (!ms_jread_i64(&r, &rank) || rank == call.place.rank)
            continue;
        uint32_t partner = find_partner(c, &call, rank);
        MS_TRY(ms_buf_check(&c->text, err));
        if (partner == GRAPH_NO)
            continue;
        MS_TRY(add_link(c, i, call.api->role, partner, err));
        if (call.api->class == CLASS_ROOTED)
            MS_TRY(add_link(c, partner, back, i, err));
    }
    return MS_OK;
}

static enum ms_rc join_collective(struct graph__comm *c, uint32_t i, struct ms_err *err)
{
    const struct call call = c->calls.p[i];
    if (call.api->class != CLASS_P2P)
        return meet_group(c, i, err);
    uint32_t partner = call.peer >= 0 ? find_partner(c, &call, call.peer) : GRAPH_NO;
    MS_TRY(ms_buf_check(&c->text, err));
    return partner != GRAPH_NO ? add_link(c, i, call.api->role, partner, err) : MS_OK;
}

/* ---- writing -------------------------------------------------------------------- */

static const char *state_text(const struct graph__comm *c, const struct call *call)
{
    static const char *const over[] = {"Nan", "medium", "high", "critical"};
    static const char *const state[] = {"Nan", "0", "0.5", "1"};
    return c->conf->overflow ? over[call->over] : state[call->state];
}

static void put_partner(struct graph__comm *c, struct ms_buf *out, const struct link *l)
{
    const struct call *partner = &c->calls.p[l->partner];
    ms_buf_printf(out, "\"%lld\": [\"%s\", ", (long long)l->rank, state_text(c, partner));
    graph__put_json(out, partner->name);
    ms_buf_putc(out, ']');
}

/* Writes the links of one call, links[from .. to). */
static void put_call(struct graph__comm *c, struct ms_buf *out, size_t from, size_t to)
{
    ms_buf_printf(out, "{\"communications_type\": \"%s\", \"nodes_info\": {",
                  role_names[c->links.p[from].role]);
    for (size_t i = from; i < to; i++) {
        ms_buf_puts(out, i > from ? ", " : "");
        put_partner(c, out, &c->links.p[i]);
    }
    ms_buf_puts(out, "}}");
}

static size_t end_of_call(const struct graph__comm *c, size_t from, size_t end)
{
    size_t to = from + 1;
    while (to < end && c->links.p[to].call == c->links.p[from].call)
        to++;
    return to;
}

/* Writes the links of one node. A batch may have many calls. */
static void put_node(struct graph__comm *c, struct ms_buf *out, size_t from, size_t end)
{
    size_t first = end_of_call(c, from, end);
    bool list = first < end && c->conf->batch == GRAPH_BATCH_LIST;
    ms_buf_puts(out, list ? "[" : "");
    put_call(c, out, from, first);
    for (size_t i = first; list && i < end;) {
        size_t to = end_of_call(c, i, end);
        ms_buf_puts(out, ", ");
        put_call(c, out, i, to);
        i = to;
    }
    ms_buf_puts(out, list ? "]" : "");
}

static enum ms_rc put_links(struct graph__comm *c, size_t from, size_t end, graph__link_fn visit,
                            void *ctx, struct ms_err *err)
{
    const struct call *call = &c->calls.p[c->links.p[from].call];
    ms_buf_clear(&c->text);
    put_node(c, &c->text, from, end);
    MS_TRY(ms_buf_check(&c->text, err));
    return visit(ctx, call->row, ms_buf_slice(&c->text), err);
}

static int by_call(const void *a, const void *b)
{
    const struct link *x = a;
    const struct link *y = b;
    if (x->call != y->call)
        return x->call < y->call ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

enum ms_rc graph__comm_find_links(struct graph__comm *c, graph__link_fn visit, void *ctx,
                                  struct ms_err *err)
{
    ms_assert(c->links.n == 0);
    for (uint32_t i = 0; i < c->calls.n; i++)
        MS_TRY(join_collective(c, i, err));
    if (c->links.n == 0)
        return MS_OK;
    qsort(c->links.p, c->links.n, sizeof *c->links.p, by_call);
    for (size_t from = 0, to; from < c->links.n; from = to) {
        uint32_t node = c->calls.p[c->links.p[from].call].node;
        for (to = from + 1; to < c->links.n && c->calls.p[c->links.p[to].call].node == node; to++)
            ;
        MS_TRY(put_links(c, from, to, visit, ctx, err));
    }
    return MS_OK;
}

/* SPDX-License-Identifier: MIT
 *
 * api_strip: the children of a module with their state on every rank of a step.
 *
 *     {"ranks": [0, 1], "nodes": [{"name": NODE, "states": ["pass", "error"]}, ...]}
 *
 * null means that a rank has no such node.
 */
#include "web/api/api.h"

#include "probe/base/map.h"
#include "probe/base/mem.h"

enum { RANKS_MAX = 256, NODES_MAX = 200, ABSENT = 0, TEXT_MAX = 16 << 20 };

/* Indexed by the stored state: one more than the state itself, unmatched last. */
static const char *const words[] = {NULL, "none", "pass", "warning", "error", "unmatched"};

struct strip {
    struct ms_str parent;
    struct ms_map names; /* node names, in the order of the first rank that has them */
    struct ms_arena *arena;
    uint8_t state[NODES_MAX][RANKS_MAX];
};

static uint8_t state_code(const struct graph_row *r)
{
    return (uint8_t)(r->unmatched && !r->suspect ? GRAPH_STATES + 1 : (int)r->state + 1);
}

static enum ms_rc take_rank(struct strip *s, size_t rank, const struct graph_page *page,
                            struct ms_err *err)
{
    for (size_t i = 0; i < page->rows.n; i++) {
        const struct graph_row *row = &page->rows.p[i];
        bool full = s->names.keys.n == NODES_MAX;
        uint32_t at = full ? ms_map_get(&s->names, row->name)
                           : ms_map_put_copy(&s->names, row->name, s->arena, NULL);
        if (at == MS_MAP_NONE && !full)
            return ms_no_memory(err);
        if (at != MS_MAP_NONE)
            s->state[at][rank] = state_code(row);
    }
    return MS_OK;
}

static enum ms_rc read_ranks(struct strip *s, struct web_call *c, struct graph_spot at,
                             struct ms_str name, size_t n, struct ms_err *err)
{
    const struct graph_about *about = graph_view_about(c->reader->graph);
    struct graph_page page = {.more = false};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < n; i++) {
        at.rank = about->ranks.p[i];
        rc = graph_view_children(c->reader->graph, at, name, -1, -1, NODES_MAX, &page, err);
        if (rc == MS_OK)
            rc = take_rank(s, i, &page, err);
    }
    graph_page_free(&page);
    return rc;
}

static void put_node(struct ms_jwrite *w, const struct strip *s, uint32_t node, size_t ranks)
{
    ms_jwrite_obj(w);
    web_put_name(w, ms_map_key(&s->names, node), s->parent);
    ms_jwrite_key(w, MS_STR("states"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < ranks; i++) {
        if (s->state[node][i] == ABSENT)
            ms_jwrite_null(w);
        else
            ms_jwrite_str(w, ms_str_of(words[s->state[node][i]]));
    }
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

static void put_strip(struct ms_jwrite *w, const struct strip *s, const int64_t *ranks, size_t n)
{
    ms_jwrite_obj(w);
    ms_jwrite_key(w, MS_STR("ranks"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < n; i++)
        ms_jwrite_i64(w, ranks[i]);
    ms_jwrite_arr_end(w);
    ms_jwrite_key(w, MS_STR("nodes"));
    ms_jwrite_arr(w);
    for (uint32_t i = 0; i < s->names.keys.n; i++)
        put_node(w, s, i, n);
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

enum ms_rc web_api_strip(struct web_call *c, struct ms_err *err)
{
    const struct graph_about *about = graph_view_about(c->reader->graph);
    struct ms_str name = web_query_text(c->query, "name");
    size_t n = about->ranks.n < RANKS_MAX ? about->ranks.n : RANKS_MAX;
    struct graph_spot at;
    MS_TRY(web_read_spot(c, &at, err));
    if (name.n == 0)
        return ms_fail(err, MS_E_ARG, "name is missing");
    struct strip *s = ms_calloc(1, sizeof *s);
    if (s == NULL || (s->arena = ms_arena_new(TEXT_MAX)) == NULL) {
        ms_free(s);
        return ms_no_memory(err);
    }
    s->parent = name;
    enum ms_rc rc = read_ranks(s, c, at, name, n, err);
    if (rc == MS_OK)
        put_strip(c->json, s, about->ranks.p, n);
    ms_map_free(&s->names);
    ms_arena_free(s->arena);
    ms_free(s);
    return rc;
}

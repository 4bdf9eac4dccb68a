/* SPDX-License-Identifier: MIT
 *
 * graph_match: which node of the target stands for which of the golden side.
 *
 * Parents are settled before their children, by going through the order of the
 * tree from its end.
 */
#include "compare/graph_int.h"

#include "probe/base/scan.h"

enum { NAME_MAX_BYTES = 1 << 20 };

static void pair_up(struct graph__tree *t, uint32_t n, struct graph__tree *b, uint32_t m)
{
    t->nodes.p[n].match = m;
    b->nodes.p[m].match = n;
}

/* The same name below the same ancestors. */
enum ms_rc graph__match_same(struct graph__tree *t, struct graph__tree *b, struct ms_err *err)
{
    (void)err;
    pair_up(t, t->root, b, b->root);
    for (size_t i = t->order.n - 1; i-- > 0;) {
        uint32_t n = t->order.p[i];
        uint32_t m = graph__find(b, graph__name(t, n));
        uint32_t above = t->nodes.p[t->nodes.p[n].parent].match;
        if (m != GRAPH_NO && above != GRAPH_NO && b->nodes.p[m].parent == above)
            pair_up(t, n, b, m);
    }
    return MS_OK;
}

/* An inserted module leaves all below it at another place than on the other side. */
void graph__match_moved(struct graph__tree *t, struct graph__tree *b)
{
    for (size_t i = t->order.n; i-- > 0;) {
        uint32_t n = t->order.p[i];
        if (t->nodes.p[n].match != GRAPH_NO)
            continue;
        uint32_t m = graph__find(b, graph__name(t, n));
        if (m != GRAPH_NO && b->nodes.p[m].match == GRAPH_NO &&
            b->nodes.p[m].kind == t->nodes.p[n].kind)
            pair_up(t, n, b, m);
    }
}

/* ---- fuzzy ------------------------------------------------------------------ */

/* Digits between dots go, with one of the dots, and "_rank<digits>" goes. */
static void put_reduced(struct ms_buf *out, struct ms_str name)
{
    const struct ms_str rank = MS_STR("_rank");
    for (uint32_t i = 0; i < name.n;) {
        struct ms_str rest = ms_str_sub(name, i, name.n);
        uint32_t skip = name.p[i] == '.' ? 1 : ms_str_starts(rest, rank) ? rank.n : 0;
        uint32_t digits = skip;
        while (skip != 0 && digits < rest.n && ms_is_digit(rest.p[digits]))
            digits++;
        bool number = digits > skip;
        if (number && skip == 1 && digits < rest.n && rest.p[digits] == '.') {
            ms_buf_putc(out, '.');
            i += digits + 1;
        } else if (number && skip > 1) {
            i += digits;
        } else {
            ms_buf_putc(out, name.p[i++]);
        }
    }
}

/* Operators below a pair of modules meet by reduced name and occurrence. */
struct meeting {
    struct ms_map names;    /* reduced name and occurrence */
    MS_VEC(uint32_t) nodes; /* of the golden side */
    struct ms_map counted;  /* reduced names */
    MS_VEC(uint32_t) counts;
    struct ms_arena *arena;
    struct ms_buf name;
};

/* The key of the next operator of that name: in m->name until the next call. */
static enum ms_rc next_key(struct meeting *m, struct ms_str name, struct ms_err *err)
{
    bool added;
    ms_buf_clear(&m->name);
    put_reduced(&m->name, name);
    MS_TRY(ms_buf_check(&m->name, err));
    uint32_t id = ms_map_put_copy(&m->counted, ms_buf_slice(&m->name), m->arena, &added);
    uint32_t *slot = id == GRAPH_NO ? NULL : added ? ms_vec_push(&m->counts) : &m->counts.p[id];
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = added ? 0 : *slot + 1;
    ms_buf_printf(&m->name, "/%u", *slot);
    return ms_buf_check(&m->name, err);
}

static enum ms_rc list_golden(struct meeting *m, const struct graph__tree *b, uint32_t module,
                              struct ms_err *err)
{
    for (uint32_t n = b->nodes.p[module].first_child; n != GRAPH_NO; n = b->nodes.p[n].next) {
        if (b->nodes.p[n].kind != GRAPH_API)
            continue;
        MS_TRY(next_key(m, graph__name(b, n), err));
        uint32_t *slot = ms_vec_push(&m->nodes);
        if (slot == NULL ||
            ms_map_put_copy(&m->names, ms_buf_slice(&m->name), m->arena, NULL) == GRAPH_NO)
            return ms_no_memory(err);
        *slot = n;
    }
    return MS_OK;
}

static void forget(struct meeting *m)
{
    ms_map_free(&m->names);
    ms_map_free(&m->counted);
    m->nodes.n = m->counts.n = 0;
}

static enum ms_rc pair_children(struct meeting *m, struct graph__tree *t, uint32_t module,
                                struct graph__tree *b, struct ms_err *err)
{
    forget(m);
    MS_TRY(list_golden(m, b, t->nodes.p[module].match, err));
    ms_map_free(&m->counted);
    m->counts.n = 0;
    for (uint32_t n = t->nodes.p[module].first_child; n != GRAPH_NO; n = t->nodes.p[n].next) {
        if (t->nodes.p[n].kind != GRAPH_API)
            continue;
        MS_TRY(next_key(m, graph__name(t, n), err));
        uint32_t id = ms_map_get(&m->names, ms_buf_slice(&m->name));
        if (id != GRAPH_NO)
            pair_up(t, n, b, m->nodes.p[id]);
    }
    return MS_OK;
}

static enum ms_rc pair_all(struct meeting *m, struct graph__tree *t, struct graph__tree *b,
                           struct ms_err *err)
{
    for (size_t i = t->order.n; i-- > 0;) {
        uint32_t n = t->order.p[i];
        uint32_t found = graph__find(b, graph__name(t, n));
        if (t->nodes.p[n].kind == GRAPH_API || found == GRAPH_NO)
            continue;
        pair_up(t, n, b, found);
        MS_TRY(pair_children(m, t, n, b, err));
    }
    return MS_OK;
}

enum ms_rc graph__match_fuzzy(struct graph__tree *t, struct graph__tree *b, struct ms_err *err)
{
    struct meeting m = {.name.max = NAME_MAX_BYTES, .arena = ms_arena_new(SIZE_MAX)};
    enum ms_rc rc = m.arena != NULL ? pair_all(&m, t, b, err) : ms_no_memory(err);
    forget(&m);
    ms_vec_free(&m.nodes);
    ms_vec_free(&m.counts);
    ms_buf_free(&m.name);
    ms_arena_free(m.arena);
    return rc;
}

/* ---- mapped ------------------------------------------------------------------- */

enum ms_rc graph__match_mapped(struct graph__tree *t, struct graph__tree *b,
                               const struct cmp__pairs *names, struct ms_err *err)
{
    (void)err;
    for (size_t i = t->order.n; i-- > 0;) {
        uint32_t n = t->order.p[i];
        struct ms_str name = graph__name(t, n);
        uint32_t mapped = ms_map_get(&names->keys, name);
        uint32_t m = graph__find(b, mapped != GRAPH_NO ? names->values.p[mapped] : name);
        if (m != GRAPH_NO)
            pair_up(t, n, b, m);
    }
    return MS_OK;
}

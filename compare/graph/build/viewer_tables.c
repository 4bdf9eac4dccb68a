/* SPDX-License-Identifier: MIT
 *
 * graph_extra: the tables of a .vis.db that only our viewers read: sums over what
 * lies below a node, nodes by state, where a partner went, where values go, names.
 */
#include "compare/graph_extra.h"
#include "compare/graph_schema.h"

enum { TEXT_MAX = 1 << 30 };

struct tally {
    uint32_t error, warn, unmatched, over;
    uint8_t worst;
};

static void add_tally(struct tally *to, const struct tally *from)
{
    to->error += from->error;
    to->warn += from->warn;
    to->unmatched += from->unmatched;
    to->over += from->over;
    to->worst = from->worst > to->worst ? from->worst : to->worst;
}

/* The states of a node, as bits of 1 << state; unmatched is GRAPH_NONE. */
static struct tally own_tally(const struct graph__extra *x, const struct graph__node *n)
{
    bool unmatched = x->pair->dual && n->match == GRAPH_NO;
    return (struct tally){.error = n->state == GRAPH_ERROR,
                          .warn = n->state == GRAPH_WARNING,
                          .unmatched = unmatched,
                          .over = x->conf->overflow && n->over != GRAPH_OVER_NONE,
                          .worst = n->state};
}

static enum ms_rc store_rollup(struct graph__extra *x, uint32_t node, const struct tally *t,
                               struct ms_err *err)
{
    ms_buf_clear(&x->id);
    ms_buf_str(&x->id, x->prefix);
    ms_buf_putc(&x->id, '_');
    ms_buf_str(&x->id, graph__name(x->g, node));
    MS_TRY(ms_buf_check(&x->id, err));
    ms_stmt_str(x->rollup, 1, ms_buf_slice(&x->id));
    ms_stmt_i64(x->rollup, 2, t->worst);
    ms_stmt_i64(x->rollup, 3, t->error);
    ms_stmt_i64(x->rollup, 4, t->warn);
    ms_stmt_i64(x->rollup, 5, t->unmatched);
    ms_stmt_i64(x->rollup, 6, t->over);
    return ms_stmt_run(x->rollup, err);
}

/* Children stand before their parent, so one pass adds up. */
static enum ms_rc add_up(struct graph__extra *x, struct tally *t, struct ms_err *err)
{
    const struct graph__tree *g = x->g;
    for (size_t i = 0; i < g->order.n; i++) {
        uint32_t node = g->order.p[i];
        const struct graph__node *n = &g->nodes.p[node];
        if (n->first_child != GRAPH_NO)
            MS_TRY(store_rollup(x, node, &t[node], err));
        struct tally own = own_tally(x, n);
        add_tally(&t[node], &own);
        if (n->parent != GRAPH_NO)
            add_tally(&t[n->parent], &t[node]);
    }
    return MS_OK;
}

static enum ms_rc store_rollups(struct graph__extra *x, struct ms_err *err)
{
    struct tally *t = ms_calloc(x->g->nodes.n, sizeof *t);
    if (t == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = add_up(x, t, err);
    ms_free(t);
    return rc;
}

static enum ms_rc store_fate(struct graph__extra *x, uint32_t i, const struct graph__fate *f,
                             struct ms_err *err)
{
    static const char *const kinds[] = {"matched", "moved", "extra", "missing", "part"};
    ms_stmt_i64(x->align, 2, i);
    ms_stmt_str(x->align, 3, ms_str_of(kinds[f->kind]));
    ms_stmt_str(x->align, 4,
                f->partner != GRAPH_NO
                    ? graph__name(x->golden ? &x->pair->t : &x->pair->b, f->partner)
                    : MS_STR_NONE);
    ms_stmt_str(x->align, 5, f->how);
    ms_stmt_f64(x->align, 6, f->confidence);
    return ms_stmt_run(x->align, err);
}

static enum ms_rc store_fates(struct graph__extra *x, struct ms_err *err)
{
    ms_stmt_str(x->align, 1, x->prefix);
    for (uint32_t i = 0; x->pair->dual && i < x->g->order.n; i++) {
        struct graph__fate f = graph__fate_of(x->pair, x->golden, x->g->order.p[i]);
        if (!f.plain)
            MS_TRY(store_fate(x, i, &f, err));
    }
    return MS_OK;
}

static enum ms_rc store_edge(void *ctx, uint32_t src, uint32_t dst, struct ms_str slot,
                             struct ms_err *err)
{
    struct graph__extra *x = ctx;
    ms_stmt_i64(x->edge, 2, dst);
    ms_stmt_str(x->edge, 3, slot);
    ms_stmt_i64(x->edge, 4, src);
    return ms_stmt_run(x->edge, err);
}

static enum ms_rc store_edges(struct graph__extra *x, struct ms_err *err)
{
    if (x->flow == NULL)
        return MS_OK;
    ms_stmt_str(x->edge, 1, x->prefix);
    return graph__flow_find(x->flow, store_edge, x, err);
}

static enum ms_rc store_state(struct graph__extra *x, int state, uint32_t order, struct ms_err *err)
{
    ms_stmt_i64(x->state, 2, state);
    ms_stmt_i64(x->state, 3, order);
    return ms_stmt_run(x->state, err);
}

static enum ms_rc store_states(struct graph__extra *x, struct ms_err *err)
{
    ms_stmt_str(x->state, 1, x->prefix);
    for (uint32_t i = 0; i < x->g->order.n; i++) {
        const struct graph__node *n = &x->g->nodes.p[x->g->order.p[i]];
        bool unmatched = x->pair->dual && n->match == GRAPH_NO;
        if (unmatched || n->state != GRAPH_NONE)
            MS_TRY(store_state(x, unmatched ? GRAPH_NONE : n->state, i, err));
        if (x->conf->overflow && n->over != GRAPH_OVER_NONE)
            MS_TRY(store_state(x, GRAPH_STATE_OVERFLOW, i, err));
    }
    return MS_OK;
}

static enum ms_rc store_name_page(struct graph__extra *x, uint32_t first, struct ms_err *err)
{
    MS_TRY(ms_buf_check(&x->text, err));
    ms_stmt_i64(x->names, 2, first);
    ms_stmt_blob(x->names, 3, x->text.p, x->text.n);
    MS_TRY(ms_stmt_run(x->names, err));
    ms_buf_clear(&x->text);
    return MS_OK;
}

/* Every name in lower case with a line break behind it. */
static enum ms_rc store_names(struct graph__extra *x, struct ms_err *err)
{
    enum { PAGE = 1 << 18 };
    uint32_t first = 0;
    ms_buf_clear(&x->text);
    ms_stmt_str(x->names, 1, x->prefix);
    for (uint32_t i = 0; i < x->g->order.n; i++) {
        struct ms_str name = graph__name(x->g, x->g->order.p[i]);
        char *room = ms_buf_room(&x->text, (size_t)name.n + 1);
        for (uint32_t k = 0; room != NULL && k < name.n; k++)
            room[k] = name.p[k] >= 'A' && name.p[k] <= 'Z' ? (char)(name.p[k] + 32) : name.p[k];
        if (room != NULL) {
            room[name.n] = '\n';
            x->text.n += (size_t)name.n + 1;
        }
        if (x->text.n < PAGE && i + 1 < x->g->order.n)
            continue;
        MS_TRY(store_name_page(x, first, err));
        first = i + 1;
    }
    return MS_OK;
}

/* ---- all of them ----------------------------------------------------------------- */

enum ms_rc graph__extra_prepare(struct graph__extra *x, struct ms_store *store,
                                const struct graph_conf *conf, struct ms_err *err)
{
    *x = (struct graph__extra){
        .store = store, .conf = conf, .id.max = TEXT_MAX, .text.max = TEXT_MAX};
    MS_TRY(ms_store_exec(store, GRAPH_SQL_EXTRA, err));
    MS_TRY(
        ms_store_prepare(store, &x->rollup, "INSERT INTO x_rollup VALUES (?, ?, ?, ?, ?, ?)", err));
    MS_TRY(ms_store_prepare(store, &x->state, "INSERT INTO x_state VALUES (?, ?, ?)", err));
    MS_TRY(
        ms_store_prepare(store, &x->align, "INSERT INTO x_align VALUES (?, ?, ?, ?, ?, ?)", err));
    MS_TRY(
        ms_store_prepare(store, &x->edge, "INSERT OR IGNORE INTO x_edge VALUES (?, ?, ?, ?)", err));
    return ms_store_prepare(store, &x->names, "INSERT INTO x_names VALUES (?, ?, ?)", err);
}

enum ms_rc graph__extra_put(struct graph__extra *x, const struct graph__pair *p, bool golden,
                            struct ms_str prefix, struct graph__flow *flow, struct ms_err *err)
{
    x->pair = p;
    x->g = golden ? &p->b : &p->t;
    x->golden = golden;
    x->prefix = prefix;
    x->flow = flow;
    MS_TRY(store_rollups(x, err));
    MS_TRY(store_states(x, err));
    MS_TRY(store_fates(x, err));
    MS_TRY(graph__store_kin(x->store, p, golden, prefix, err));
    MS_TRY(store_edges(x, err));
    return store_names(x, err);
}

void graph__extra_free(struct graph__extra *x)
{
    ms_stmt_free(x->rollup);
    ms_stmt_free(x->state);
    ms_stmt_free(x->names);
    ms_stmt_free(x->align);
    ms_stmt_free(x->edge);
    ms_buf_free(&x->id);
    ms_buf_free(&x->text);
    *x = (struct graph__extra){0};
}

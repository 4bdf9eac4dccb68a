/* SPDX-License-Identifier: MIT
 *
 * pairs: merges two ordered lists of children.
 *
 * The target's children lead. Before each of them come the golden children that precede its partner
 * and have no partner on this level; a golden child whose partner is another child of this target
 * is emitted with that child.
 */
#include "viz/model/pairs.h"

#include "probe/base/scan.h"
#include "probe/dump/name.h"

enum { CHUNK = 130, ARENA_LIMIT = 1 << 30, SEEK_MOST = 16 };

/* Children of one side, in order, read in chunks. */
struct side {
    struct graph_view *v;
    struct graph_spot at;
    struct ms_str parent;
    int64_t micro, after; /* after: order of the last child consumed */
    int64_t until;        /* order of the last child to read; 0: all */
    struct graph_page page;
    size_t i;
    bool end;
};

/* Returns the current child, NULL at the end. */
static enum ms_rc side_peek(struct side *s, const struct graph_row **row, struct ms_err *err)
{
    *row = NULL;
    if (!s->end && s->i == s->page.rows.n) {
        MS_TRY(
            graph_view_children(s->v, s->at, s->parent, s->micro, s->after, CHUNK, &s->page, err));
        s->i = 0;
        s->end = s->page.rows.n == 0;
    }
    if (!s->end && s->until != 0 && s->page.rows.p[s->i].order > s->until)
        s->end = true;
    if (!s->end)
        *row = &s->page.rows.p[s->i];
    return MS_OK;
}

static void side_pass(struct side *s)
{
    s->after = s->page.rows.p[s->i++].order;
}

struct walk {
    struct viz_pairs *out;
    const struct viz_pairs_of *of;
    struct side target, golden;
    struct graph_page found; /* scratch of partner look-ups */
};

static enum ms_rc look_up(struct walk *w, bool golden, struct ms_str name,
                          const struct graph_row **row, struct ms_err *err)
{
    struct graph_spot at = {w->of->step, w->of->rank, golden};
    enum ms_rc rc = graph_view_path(w->target.v, at, name, &w->found, err);
    *row = NULL;
    if (rc == MS_OK && w->found.rows.n != 0)
        *row = &w->found.rows.p[w->found.rows.n - 1];
    return rc;
}

/* ---- rows of the page ---------------------------------------------------------- */

static enum ms_rc keep_text(struct viz_pairs *p, struct ms_str *s, struct ms_err *err)
{
    *s = ms_arena_str(p->arena, *s);
    return s->p != NULL ? MS_OK : ms_arena_fail(p->arena, err);
}

static enum ms_rc keep_row(struct viz_pairs *p, const struct graph_row *from, struct graph_row *to,
                           struct ms_err *err)
{
    *to = *from;
    MS_TRY(keep_text(p, &to->name, err));
    MS_TRY(keep_text(p, &to->parent, err));
    MS_TRY(keep_text(p, &to->partner, err));
    return keep_text(p, &to->overflow, err);
}

static enum ms_rc emit(struct walk *w, enum viz_where where, const struct graph_row *target,
                       const struct graph_row *golden, struct ms_err *err)
{
    struct viz_pairs *p = w->out;
    struct viz_pair *row = ms_vec_push(&p->rows);
    if (row == NULL)
        return ms_no_memory(err);
    *row = (struct viz_pair){.where = where};
    row->target.name = row->golden.name = MS_STR("");
    if (target != NULL)
        MS_TRY(keep_row(p, target, &row->target, err));
    if (golden != NULL)
        MS_TRY(keep_row(p, golden, &row->golden, err));
    const struct graph_row *of = target != NULL ? target : golden;
    const struct graph_about *about = graph_view_about(w->target.v);
    if (!of->has_children || !(about->dual || about->overflow)) /* not compared */
        return MS_OK;
    struct graph_spot at = {of->step, of->rank, target == NULL};
    return graph_view_rollup(w->target.v, at, of->name, &row->below, err);
}

/* ---- the walk ------------------------------------------------------------------ */

/* Emits a golden child unless a child of the target emits it. */
static enum ms_rc emit_golden(struct walk *w, const struct graph_row *g, struct ms_err *err)
{
    if (g->partner.n == 0)
        return emit(w, VIZ_ONLY_GOLDEN, NULL, g, err);
    const struct graph_row *partner;
    enum ms_rc rc = look_up(w, false, g->partner, &partner, err);
    if (rc == MS_E_NOTFOUND) {
        ms_err_clear(err);
        return emit(w, VIZ_ONLY_GOLDEN, NULL, g, err);
    }
    MS_TRY(rc);
    bool is_here = w->of->target.p != NULL && ms_str_eq(partner->parent, w->of->target);
    return is_here ? MS_OK : emit(w, VIZ_MOVED, NULL, g, err);
}

/* Emits the golden children before an order. */
static enum ms_rc emit_golden_until(struct walk *w, int64_t order, struct ms_err *err)
{
    const struct graph_row *g;
    MS_TRY(side_peek(&w->golden, &g, err));
    while (g != NULL && g->order < order) {
        MS_TRY(emit_golden(w, g, err));
        side_pass(&w->golden);
        MS_TRY(side_peek(&w->golden, &g, err));
    }
    return MS_OK;
}

static enum ms_rc emit_partnered(struct walk *w, const struct graph_row *t, struct ms_err *err)
{
    const struct graph_row *g;
    MS_TRY(side_peek(&w->golden, &g, err));
    if (g == NULL || !ms_str_eq(g->name, t->partner)) {
        enum ms_rc rc = look_up(w, true, t->partner, &g, err);
        if (rc == MS_E_NOTFOUND) { /* the partner does not exist */
            ms_err_clear(err);
            return emit(w, VIZ_ONLY_TARGET, t, NULL, err);
        }
        MS_TRY(rc);
        if (w->of->golden.p == NULL || !ms_str_eq(g->parent, w->of->golden))
            return emit(w, VIZ_MOVED, t, g, err);
        struct graph_row partner = *g;
        struct graph_page kept = w->found; /* owns the text of partner */
        w->found = (struct graph_page){.more = false};
        rc = emit_golden_until(w, partner.order, err);
        if (rc == MS_OK)
            rc = emit(w, VIZ_BOTH, t, &partner, err);
        graph_page_free(&kept);
        return rc;
    }
    MS_TRY(emit(w, VIZ_BOTH, t, g, err));
    side_pass(&w->golden);
    return MS_OK;
}

static enum ms_rc walk(struct walk *w, uint32_t limit, struct ms_err *err)
{
    const struct graph_row *t, *g;
    MS_TRY(side_peek(&w->target, &t, err));
    while (t != NULL && w->out->rows.n < limit) {
        if (t->partner.n == 0)
            MS_TRY(emit(w, VIZ_ONLY_TARGET, t, NULL, err));
        else
            MS_TRY(emit_partnered(w, t, err));
        side_pass(&w->target);
        MS_TRY(side_peek(&w->target, &t, err));
    }
    MS_TRY(side_peek(&w->golden, &g, err));
    while (t == NULL && g != NULL && w->out->rows.n < limit) {
        MS_TRY(emit_golden(w, g, err));
        side_pass(&w->golden);
        MS_TRY(side_peek(&w->golden, &g, err));
    }
    w->out->more = t != NULL || g != NULL;
    w->out->next = (struct viz_pair_cursor){w->target.after, w->golden.after};
    return MS_OK;
}

enum ms_rc viz_pairs_read(struct viz_pairs *p, struct graph_view *v, const struct viz_pairs_of *of,
                          struct viz_pair_cursor after, uint32_t limit, struct ms_err *err)
{
    bool dual = graph_view_about(v)->dual;
    ms_arena_free(p->arena);
    *p =
        (struct viz_pairs){.rows = {p->rows.p, 0, p->rows.cap}, .arena = ms_arena_new(ARENA_LIMIT)};
    if (p->arena == NULL)
        return ms_no_memory(err);
    struct walk w = {.out = p,
                     .of = of,
                     .target = {.v = v,
                                .at = {of->step, of->rank, false},
                                .parent = of->target,
                                .micro = of->micro,
                                .after = after.target,
                                .until = of->until.target,
                                .end = of->target.p == NULL},
                     .golden = {.v = v,
                                .at = {of->step, of->rank, true},
                                .parent = of->golden,
                                .micro = of->micro,
                                .after = after.golden,
                                .until = of->until.golden,
                                .end = !dual || of->golden.p == NULL}};
    enum ms_rc rc = walk(&w, limit, err);
    graph_page_free(&w.target.page);
    graph_page_free(&w.golden.page);
    graph_page_free(&w.found);
    return rc;
}

/* Computes a cursor before `child`; the golden side starts at the partner of the child, or of a
 * child soon after it. */
enum ms_rc viz_pairs_seek(struct graph_view *v, const struct viz_pairs_of *of,
                          const struct graph_row *child, struct viz_pair_cursor *cursor,
                          bool *found, struct ms_err *err)
{
    struct graph_page near = {.more = false}, path = {.more = false};
    struct graph_spot at = {of->step, of->rank, false}, other = {of->step, of->rank, true};
    enum ms_rc rc =
        graph_view_children(v, at, of->target, of->micro, child->order - 1, SEEK_MOST, &near, err);
    *cursor = (struct viz_pair_cursor){child->order - 1, -1};
    *found = of->golden.p == NULL || !graph_view_about(v)->dual;
    for (size_t i = 0; rc == MS_OK && !*found && i < near.rows.n; i++) {
        struct ms_str partner = near.rows.p[i].partner;
        if (partner.n == 0 || graph_view_path(v, other, partner, &path, NULL) != MS_OK)
            continue;
        const struct graph_row *g = &path.rows.p[path.rows.n - 1];
        *found = ms_str_eq(g->parent, of->golden) && g->order > 0;
        cursor->golden = *found ? g->order - 1 : -1;
    }
    graph_page_free(&near);
    graph_page_free(&path);
    return rc;
}

void viz_pairs_free(struct viz_pairs *p)
{
    ms_vec_free(&p->rows);
    ms_arena_free(p->arena);
    *p = (struct viz_pairs){.more = false};
}

/* ---- repeated layers ----------------------------------------------------------------- */

bool viz_same_but_number(struct ms_str a, struct ms_str b)
{
    uint32_t i = 0, j = 0;
    unsigned differing = 0;
    while (i < a.n && j < b.n) {
        uint32_t n = ms_str_digits(a, i), m = ms_str_digits(b, j);
        if ((n == 0) != (m == 0) || (n == 0 && a.p[i] != b.p[j]))
            return false;
        if (n == 0)
            n = m = 1;
        else if (!ms_str_eq(ms_str_sub(a, i, i + n), ms_str_sub(b, j, j + m)))
            differing++;
        i += n;
        j += m;
    }
    return i == a.n && j == b.n && differing == 1;
}

static bool is_clean(const struct viz_pair *r)
{
    return (r->target.state == GRAPH_NONE || r->target.state == GRAPH_PASS) &&
           r->target.overflow.n == 0 && r->below.error == 0 && r->below.warning == 0 &&
           r->below.unmatched == 0 && r->below.overflow == 0;
}

static bool is_repeat(const struct viz_pair *a, const struct viz_pair *b)
{
    if (a->where != b->where || !is_clean(b) || a->target.state != b->target.state ||
        a->target.kind != b->target.kind || !a->target.has_children || !b->target.has_children)
        return false;
    return viz_same_but_number(a->target.name, b->target.name) &&
           (a->golden.name.n == 0 || viz_same_but_number(a->golden.name, b->golden.name));
}

size_t viz_pairs_run(const struct viz_pairs *p, size_t first)
{
    size_t n = 1;
    if (p->rows.p[first].where == VIZ_ONLY_GOLDEN || !is_clean(&p->rows.p[first]))
        return 1;
    while (first + n < p->rows.n && is_repeat(&p->rows.p[first + n - 1], &p->rows.p[first + n]))
        n++;
    return n;
}

/* ---- short names -------------------------------------------------------------------- */

static struct ms_str without_end(struct ms_str s, const char *end)
{
    struct ms_str e = ms_str_of(end);
    return ms_str_ends(s, e) ? ms_str_sub(s, 0, s.n - e.n) : s;
}

/* Returns the part after "Module." or "Cell.", the prefixes of PyTorch and MindSpore for
 * modules; "" for an operator. */
static struct ms_str module_of(struct ms_str name)
{
    static const struct ms_str heads[] = {{"Module.", 7}, {"Cell.", 5}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (ms_str_starts(name, heads[i]))
            return ms_str_sub(name, heads[i].n, name.n);
    return MS_STR("");
}

/* Returns "layers.0" of "Module.layers.0.TransformerLayer.forward.0"; "" unless a module. */
static struct ms_str path_of(struct ms_str name)
{
    struct probe_name n = probe_name_parse(name);
    return n.kind == PROBE_NODE_MODULE ? probe_name_cut(n.path, 1) : MS_STR("");
}

struct ms_str viz_node_short(struct ms_str name, struct ms_str parent)
{
    struct ms_str path = path_of(parent);
    struct ms_str s = without_end(without_end(name, ".forward.0"), ".forward");
    s = ms_str_ends(s, MS_STR(".backward.0")) ? without_end(s, ".0") : s;
    struct ms_str module = module_of(s);
    if (module.n == 0)
        return s;
    bool within = path.n != 0 && module.n > path.n + 1 && ms_str_starts(module, path) &&
                  module.p[path.n] == '.';
    return within ? ms_str_sub(module, path.n + 1, module.n) : module;
}

/* SPDX-License-Identifier: MIT
 *
 * graph_edit: matching by hand, in the format of the official plugin, so that work
 * done in either viewer shows up in the other.
 *
 * The dump may be gone, so figures are made from the items that the database holds:
 * their text is read back into rows, which then go through the same rules.  Every
 * row that changes is first copied to x_undo under the number of the change.
 */
#include "compare/graph_bands.h"
#include "compare/graph_int.h"
#include "compare/graph_view.h"

#include <math.h>

enum { TEXT_MAX = 1 << 28, NAME_MAX_BYTES = 1 << 20 };

/* A row of tb_nodes as far as it is changed or decides about a change. */
struct node {
    struct ms_str name, parent, kind, link, in, out, dir;
    double index; /* precision_index; NaN: NULL */
    int64_t order, modified;
    bool there;
};

struct edit {
    struct ms_store *store;
    struct graph_spot at;
    struct ms_arena *arena;
    struct cmp cmp; /* mode and rules; it has no sides */
    struct graph_bands bands;
    struct cmp_view view;
    struct ms_buf in, out, text;
    int64_t change; /* its number in x_undo; 0: not recorded */
    bool tables;    /* x_rollup and x_state are there and true */
};

/* ---- rows ------------------------------------------------------------------- */

static struct ms_str side_name(bool golden)
{
    return golden ? MS_STR("Bench") : MS_STR("NPU");
}

static enum ms_rc prepare_at(struct edit *e, struct ms_stmt **st, const char *sql, bool golden,
                             struct ms_err *err)
{
    MS_TRY(ms_store_prepare(e->store, st, sql, err));
    ms_stmt_i64(*st, 1, e->at.step);
    ms_stmt_i64(*st, 2, e->at.rank);
    ms_stmt_str(*st, 3, side_name(golden));
    return MS_OK;
}

static enum ms_rc keep(struct edit *e, struct ms_str s, struct ms_str *out, struct ms_err *err)
{
    *out = ms_arena_str(e->arena, s.p != NULL ? s : MS_STR(""));
    return out->p != NULL ? MS_OK : ms_arena_fail(e->arena, err);
}

static enum ms_rc take_node(struct edit *e, struct ms_stmt *st, struct node *n, struct ms_err *err)
{
    struct ms_str *const texts[] = {&n->name, &n->parent, &n->kind, &n->link, &n->in, &n->out};
    for (int i = 0; i < 6; i++)
        MS_TRY(keep(e, ms_stmt_get_str(st, i), texts[i], err));
    n->index = ms_stmt_is_null(st, 6) ? NAN : ms_stmt_get_f64(st, 6);
    n->order = ms_stmt_get_i64(st, 7);
    n->modified = ms_stmt_get_i64(st, 8);
    n->there = true;
    return keep(e, ms_stmt_get_str(st, 9), &n->dir, err);
}

#define NODE_COLUMNS                                                                               \
    "node_name, up_node, node_type, matched_node_link, input_data, output_data,"                   \
    " precision_index, node_order, modified, dump_data_dir"

/* n->there is false when there is no such node. */
static enum ms_rc read_node(struct edit *e, bool golden, struct ms_str name, struct node *n,
                            struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *n = (struct node){.there = false};
    MS_TRY(prepare_at(e, &st,
                      "SELECT " NODE_COLUMNS " FROM tb_nodes"
                      " WHERE step = ?1 AND rank = ?2 AND data_source = ?3 AND node_name = ?4",
                      golden, err));
    ms_stmt_str(st, 4, name);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more)
        rc = take_node(e, st, n, err);
    ms_stmt_free(st);
    return rc;
}

/* ---- tables of ours ------------------------------------------------------------ */

static bool is_unmatched(const struct node *n)
{
    return n->link.n <= 2;
}

static enum graph_state state_of(const struct edit *e, const struct node *n)
{
    return isnan(n->index) ? GRAPH_NONE : graph__band_of(&e->bands, n->index);
}

static enum ms_rc put_graph_id(struct edit *e, bool golden, struct ms_str name, struct ms_str *id,
                               struct ms_err *err)
{
    ms_buf_clear(&e->text);
    graph__put_graph_id(&e->text, (struct graph__place){e->at.step, e->at.rank, golden});
    if (name.n != 0)
        ms_buf_printf(&e->text, "_%.*s", MS_STR_ARG(name));
    MS_TRY(ms_buf_check(&e->text, err));
    return keep(e, ms_buf_slice(&e->text), id, err);
}

/* Take a node out of x_state, or put it where its state belongs. */
static enum ms_rc index_state(struct edit *e, bool golden, const struct node *n, bool put,
                              struct ms_err *err)
{
    struct ms_stmt *st;
    struct ms_str id;
    enum graph_state state = state_of(e, n);
    if (put && !is_unmatched(n) && state == GRAPH_NONE)
        return MS_OK;
    MS_TRY(put_graph_id(e, golden, MS_STR(""), &id, err));
    MS_TRY(ms_store_prepare(e->store, &st,
                            put ? "INSERT OR REPLACE INTO x_state VALUES (?1, ?3, ?2)"
                                : "DELETE FROM x_state WHERE graph_id = ?1 AND node_order = ?2"
                                  " AND state < 4", /* an overflow stays one */
                            err));
    ms_stmt_str(st, 1, id);
    ms_stmt_i64(st, 2, n->order);
    if (put)
        ms_stmt_i64(st, 3, is_unmatched(n) ? GRAPH_NONE : (int64_t)state);
    enum ms_rc rc = ms_stmt_run(st, err);
    ms_stmt_free(st);
    return rc;
}

/* Without the columns behind the children's names, which may be many. */
static enum ms_rc read_parent(struct edit *e, bool golden, struct ms_str name,
                              struct ms_str *parent, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *parent = MS_STR("");
    MS_TRY(prepare_at(e, &st,
                      "SELECT up_node FROM tb_nodes"
                      " WHERE step = ?1 AND rank = ?2 AND data_source = ?3 AND node_name = ?4",
                      golden, err));
    ms_stmt_str(st, 4, name);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more)
        rc = keep(e, ms_stmt_get_str(st, 0), parent, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc add_above(struct edit *e, struct ms_stmt *st, bool golden, struct ms_str up,
                            struct ms_err *err)
{
    struct ms_str id;
    while (up.n != 0) {
        MS_TRY(put_graph_id(e, golden, up, &id, err));
        ms_stmt_str(st, 1, id);
        MS_TRY(ms_stmt_run(st, err));
        MS_TRY(read_parent(e, golden, up, &up, err));
    }
    return MS_OK;
}

/* What lies above a node counts it. */
static enum ms_rc count_above(struct edit *e, bool golden, const struct node *before,
                              const struct node *after, struct ms_err *err)
{
    struct ms_stmt *st;
    enum graph_state was = state_of(e, before), is = state_of(e, after);
    int error = (is == GRAPH_ERROR) - (was == GRAPH_ERROR);
    int warn = (is == GRAPH_WARNING) - (was == GRAPH_WARNING);
    int unmatched = is_unmatched(after) - is_unmatched(before);
    if (error == 0 && warn == 0 && unmatched == 0)
        return MS_OK;
    MS_TRY(ms_store_prepare(
        e->store, &st,
        "UPDATE x_rollup SET n_error = n_error + ?2, n_warn = n_warn + ?3,"
        " n_unmatched = n_unmatched + ?4, worst = CASE WHEN n_error + ?2 > 0 THEN 3"
        " WHEN n_warn + ?3 > 0 THEN 2 ELSE min(worst, 1) END WHERE id = ?1",
        err));
    ms_stmt_i64(st, 2, error);
    ms_stmt_i64(st, 3, warn);
    ms_stmt_i64(st, 4, unmatched);
    enum ms_rc rc = add_above(e, st, golden, before->parent, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc follow(struct edit *e, bool golden, const struct node *before,
                         const struct node *after, struct ms_err *err)
{
    if (!e->tables)
        return MS_OK;
    MS_TRY(index_state(e, golden, before, false, err));
    MS_TRY(index_state(e, golden, after, true, err));
    return count_above(e, golden, before, after, err);
}

/* ---- changing a row -------------------------------------------------------------- */

static void bind_node(struct ms_stmt *st, const struct node *n)
{
    ms_stmt_str(st, 4, n->name);
    ms_stmt_str(st, 5, n->link);
    ms_stmt_str(st, 6, n->in);
    ms_stmt_str(st, 7, n->out);
    if (isnan(n->index))
        ms_stmt_null(st, 8);
    else
        ms_stmt_f64(st, 8, n->index);
    ms_stmt_i64(st, 9, n->modified);
}

static enum ms_rc run_with(struct edit *e, const char *sql, bool golden, const struct node *n,
                           struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(prepare_at(e, &st, sql, golden, err));
    bind_node(st, n);
    if (e->change != 0)
        ms_stmt_i64(st, 10, e->change);
    enum ms_rc rc = ms_stmt_run(st, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc change_node(struct edit *e, bool golden, const struct node *before,
                              const struct node *after, struct ms_err *err)
{
    static const char remember[] =
        "INSERT INTO x_undo VALUES (NULL, ?10, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    static const char change[] =
        "UPDATE tb_nodes SET matched_node_link = ?5, input_data = ?6, output_data = ?7,"
        " precision_index = ?8, modified = ?9"
        " WHERE step = ?1 AND rank = ?2 AND data_source = ?3 AND node_name = ?4";
    int64_t number = e->change;
    if (number != 0)
        MS_TRY(run_with(e, remember, golden, before, err));
    e->change = 0; /* the other statement has no place for it */
    enum ms_rc rc = run_with(e, change, golden, after, err);
    e->change = number;
    return rc == MS_OK ? follow(e, golden, before, after, err) : rc;
}

/* ---- a pair ------------------------------------------------------------------------ */

/* Digests keep their items as they are. */
static enum ms_rc renew_items(struct edit *e, struct node *n, bool figures, struct ms_err *err)
{
    int64_t row = figures ? 0 : -1;
    if (e->cmp.mode == PROBE_MODE_MD5 || e->cmp.mode == PROBE_MODE_STRUCTURE)
        return MS_OK;
    MS_TRY(graph__put_stored(&e->in, &e->cmp, &e->view, n->in, &row, err));
    MS_TRY(graph__put_stored(&e->out, &e->cmp, &e->view, n->out, &row, err));
    MS_TRY(keep(e, ms_buf_slice(&e->in), &n->in, err));
    return keep(e, ms_buf_slice(&e->out), &n->out, err);
}

static enum ms_rc judge(struct edit *e, struct node *t, const struct node *b, struct ms_err *err)
{
    struct graph__stored target = {t->in, t->out, t->dir.p}, golden = {b->in, b->out, b->dir.p};
    MS_TRY(graph__read_stored(&e->cmp, &e->view, &target, &golden, err));
    static const double index[GRAPH_STATES] = {NAN, 0, 0.5, 1};
    e->view.op = t->name;
    t->index = index[graph__judge_rows(&e->cmp, false, &e->view)];
    return renew_items(e, t, true, err);
}

/* ["PARENT", "NODE"] of the partner. */
static enum ms_rc link_to(struct edit *e, const struct node *other, struct ms_str *link,
                          struct ms_err *err)
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
    return keep(e, ms_buf_slice(&e->text), link, err);
}

static enum ms_rc join_nodes(struct edit *e, const struct node *t, const struct node *b,
                             struct ms_err *err)
{
    struct node nt = *t, nb = *b;
    MS_TRY(link_to(e, b, &nt.link, err));
    MS_TRY(link_to(e, t, &nb.link, err));
    if (e->cmp.mode != PROBE_MODE_STRUCTURE)
        MS_TRY(judge(e, &nt, b, err));
    nt.modified = nb.modified = 1;
    MS_TRY(change_node(e, false, t, &nt, err));
    return change_node(e, true, b, &nb, err);
}

static enum ms_rc part_node(struct edit *e, bool golden, const struct node *n, struct ms_err *err)
{
    struct node after = *n;
    after.link = MS_STR("[]");
    after.index = NAN;
    after.modified = 1;
    if (!golden)
        MS_TRY(renew_items(e, &after, false, err));
    return change_node(e, golden, n, &after, err);
}

/* The other direction of a call: forward for backward. */
static enum ms_rc opposite(struct edit *e, struct ms_str name, struct ms_str *out,
                           struct ms_err *err)
{
    bool forward = ms_str_find_str(name, MS_STR("forward")) >= 0;
    ms_buf_clear(&e->text);
    graph__replace(&e->text, name, forward ? MS_STR("forward") : MS_STR("backward"),
                   forward ? MS_STR("backward") : MS_STR("forward"));
    MS_TRY(ms_buf_check(&e->text, err));
    return keep(e, ms_buf_slice(&e->text), out, err);
}

static enum ms_rc match_names(struct edit *e, struct ms_str target, struct ms_str golden, bool must,
                              bool *done, struct ms_err *err)
{
    struct node t, b;
    *done = false;
    MS_TRY(read_node(e, false, target, &t, err));
    MS_TRY(read_node(e, true, golden, &b, err));
    bool free = t.there && b.there && is_unmatched(&t) && is_unmatched(&b);
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
                       MS_STR_ARG(is_unmatched(&t) ? golden : target));
    return ms_fail(err, MS_E_ARG, "'%.*s' and '%.*s' are not of one type", MS_STR_ARG(target),
                   MS_STR_ARG(golden));
}

static enum ms_rc match_both(struct edit *e, struct ms_str target, struct ms_str golden, bool must,
                             bool *done, struct ms_err *err)
{
    struct ms_str ot, ob;
    bool other;
    MS_TRY(match_names(e, target, golden, must, done, err));
    if (!*done)
        return MS_OK;
    MS_TRY(opposite(e, target, &ot, err));
    MS_TRY(opposite(e, golden, &ob, err));
    return match_names(e, ot, ob, false, &other, err);
}

/* What is read for one of many changes is not needed after it. */
static enum ms_rc own_memory(struct edit *e, struct ms_arena **kept, struct ms_err *err)
{
    struct ms_arena *own = ms_arena_new(SIZE_MAX);
    if (own == NULL)
        return ms_no_memory(err);
    *kept = e->arena;
    e->arena = own;
    return MS_OK;
}

static void common_memory(struct edit *e, struct ms_arena *kept)
{
    ms_arena_free(e->arena);
    e->arena = kept;
}

/* The nodes and their opposites in direction. */
static enum ms_rc match_pair(struct edit *e, struct ms_str target, struct ms_str golden, bool must,
                             bool *done, struct ms_err *err)
{
    struct ms_arena *kept = NULL;
    MS_TRY(own_memory(e, &kept, err));
    enum ms_rc rc = match_both(e, target, golden, must, done, err);
    common_memory(e, kept);
    return rc;
}

/* ---- descendants --------------------------------------------------------------------- */

struct pair {
    struct ms_str t, b;
};

/* Without their items. */
static enum ms_rc children_of(struct edit *e, bool golden, struct ms_str parent, struct node **list,
                              size_t *n, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_VEC(struct node) all = {0};
    bool more;
    enum ms_rc rc;
    MS_TRY(prepare_at(e, &st,
                      "SELECT node_name, up_node, node_type, matched_node_link, '', '', NULL,"
                      " node_order, modified, '' FROM tb_nodes WHERE step = ?1 AND rank = ?2 AND"
                      " data_source = ?3 AND up_node = ?4 ORDER BY node_order",
                      golden, err));
    ms_stmt_str(st, 4, parent);
    while ((rc = ms_stmt_step(st, &more, err)) == MS_OK && more) {
        struct node *slot = ms_vec_push(&all);
        rc = slot != NULL ? take_node(e, st, slot, err) : ms_no_memory(err);
        if (rc != MS_OK)
            break;
    }
    ms_stmt_free(st);
    *list = all.p;
    *n = all.n;
    return rc;
}

struct todo {
    MS_VEC(struct pair) list;
};

static enum ms_rc note_pair(struct todo *todo, struct ms_str target, struct ms_str golden,
                            struct ms_err *err)
{
    struct pair *slot = ms_vec_push(&todo->list);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct pair){target, golden};
    return MS_OK;
}

static enum ms_rc list_peers(struct graph__peers *peers, const struct node *list, size_t n,
                             struct ms_err *err)
{
    MS_TRY(graph__peers_new(peers, n, err));
    for (size_t i = 0; i < n; i++)
        MS_TRY(graph__peers_add(peers, list[i].kind, list[i].name, !is_unmatched(&list[i]), err));
    return graph__peers_sort(peers, err);
}

/* Pair the unmatched children of one likeness in order, and note each pair for its own children's
 * sake. */
static enum ms_rc match_lists(struct edit *e, struct todo *todo, const struct node *t, size_t nt,
                              const struct node *b, struct graph__peers *peers, uint64_t *matched,
                              struct ms_err *err)
{
    uint32_t last = GRAPH_NO;
    for (size_t i = 0; i < nt; i++) {
        uint32_t k =
            is_unmatched(&t[i]) ? graph__peers_take(peers, t[i].kind, t[i].name, last) : GRAPH_NO;
        if (k == GRAPH_NO)
            continue;
        bool done;
        last = k;
        MS_TRY(match_pair(e, t[i].name, b[k].name, false, &done, err));
        MS_TRY(note_pair(todo, t[i].name, b[k].name, err));
        *matched += done;
    }
    return ms_buf_check(&peers->text, err);
}

static enum ms_rc match_children(struct edit *e, struct todo *todo, struct pair p,
                                 uint64_t *matched, struct ms_err *err)
{
    struct node *t = NULL, *b = NULL;
    struct graph__peers peers = {.n = 0};
    size_t nt = 0, nb = 0;
    enum ms_rc rc = children_of(e, false, p.t, &t, &nt, err);
    if (rc == MS_OK)
        rc = children_of(e, true, p.b, &b, &nb, err);
    if (rc == MS_OK)
        rc = list_peers(&peers, b, nb, err);
    if (rc == MS_OK)
        rc = match_lists(e, todo, t, nt, b, &peers, matched, err);
    graph__peers_free(&peers);
    ms_free(t);
    ms_free(b);
    return rc;
}

/* ---- begin and end --------------------------------------------------------------------- */

static enum ms_rc one_number(struct edit *e, const char *sql, int64_t *n, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *n = 0;
    MS_TRY(ms_store_prepare(e->store, &st, sql, err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more)
        *n = ms_stmt_get_i64(st, 0);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc set_mode(struct edit *e, struct ms_str task, struct ms_err *err)
{
    static const char *const names[] = {"summary", "md5", "all", "structure"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (!ms_str_is(task, names[i]))
            continue;
        e->cmp.mode = (enum probe_mode)i;
        return MS_OK;
    }
    return ms_fail(err, MS_E_ARG, "this file holds a single graph: there is nothing to match");
}

static enum ms_rc read_config(struct edit *e, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(e->store, &st, "SELECT task, node_colors FROM tb_config", err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && !more)
        rc = ms_fail(err, MS_E_FORMAT, "tb_config has no row");
    if (rc == MS_OK) {
        graph__bands_read(&e->bands, ms_stmt_get_str(st, 1));
        rc = set_mode(e, ms_stmt_get_str(st, 0), err);
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc begin(struct edit *e, const char *path, struct graph_spot at, struct ms_err *err)
{
    int64_t known = 0;
    *e = (struct edit){.at = at};
    e->in.max = e->out.max = TEXT_MAX;
    e->text.max = NAME_MAX_BYTES;
    e->arena = ms_arena_new(SIZE_MAX);
    if (e->arena == NULL)
        return ms_no_memory(err);
    MS_TRY(cmp_view_init(&e->view, err));
    MS_TRY(ms_store_edit(&e->store, path, err));
    MS_TRY(ms_store_exec(e->store,
                         "BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS x_undo (id INTEGER PRIMARY"
                         " KEY, change INTEGER, step INTEGER, rank INTEGER, data_source TEXT,"
                         " node_name TEXT, link TEXT, input_data TEXT, output_data TEXT,"
                         " precision_index REAL, modified INTEGER)",
                         err));
    MS_TRY(read_config(e, err));
    MS_TRY(one_number(e, "SELECT coalesce(max(change), 0) + 1 FROM x_undo", &e->change, err));
    bool ours = one_number(e,
                           "SELECT (SELECT count(*) FROM tb_nodes WHERE modified = 1) ="
                           " (SELECT CAST(value AS INTEGER) FROM x_meta WHERE key = 'modified')",
                           &known, NULL) == MS_OK;
    e->tables = ours && known != 0 && e->bands.usual;
    return MS_OK;
}

/* rc is what the change has come to: without MS_OK nothing of it stays. */
static enum ms_rc end(struct edit *e, enum ms_rc rc, struct ms_err *err)
{
    if (rc == MS_OK && e->tables)
        rc = ms_store_exec(e->store,
                           "UPDATE x_meta SET value = (SELECT count(*) FROM tb_nodes WHERE"
                           " modified = 1) WHERE key = 'modified'",
                           err);
    if (rc == MS_OK)
        rc = ms_store_exec(e->store, "COMMIT", err);
    ms_store_close(e->store);
    cmp_view_free(&e->view);
    ms_arena_free(e->arena);
    ms_buf_free(&e->in);
    ms_buf_free(&e->out);
    ms_buf_free(&e->text);
    return rc;
}

/* ---- what viewers call ------------------------------------------------------------------ */

enum ms_rc graph_match(const char *path, struct graph_spot at, struct ms_str target,
                       struct ms_str golden, struct ms_err *err)
{
    struct edit e;
    bool done;
    enum ms_rc rc = begin(&e, path, at, err);
    if (rc == MS_OK)
        rc = match_pair(&e, target, golden, true, &done, err);
    return end(&e, rc, err);
}

enum ms_rc graph_match_below(const char *path, struct graph_spot at, struct ms_str target,
                             struct ms_str golden, uint64_t *matched, struct ms_err *err)
{
    struct edit e;
    struct todo todo = {.list = {0}};
    bool done = false;
    *matched = 0;
    enum ms_rc rc = begin(&e, path, at, err);
    if (rc == MS_OK)
        rc = match_pair(&e, target, golden, false, &done, err);
    if (rc == MS_OK)
        rc = note_pair(&todo, target, golden, err);
    *matched += done;
    for (size_t i = 0; rc == MS_OK && i < todo.list.n; i++)
        rc = match_children(&e, &todo, todo.list.p[i], matched, err);
    ms_vec_free(&todo.list);
    return end(&e, rc, err);
}

enum ms_rc graph__match_all(const char *path, struct graph_spot at,
                            const struct graph__names *names, uint64_t *matched, struct ms_err *err)
{
    struct edit e;
    *matched = 0;
    enum ms_rc rc = begin(&e, path, at, err);
    for (size_t i = 0; rc == MS_OK && i < names->list.n; i++) {
        bool done = false;
        rc = match_names(&e, names->list.p[i].target, names->list.p[i].golden, false, &done, err);
        *matched += done;
    }
    return end(&e, rc, err);
}

/* The last name of the node's link. */
static enum ms_rc partner_of(struct edit *e, const struct node *n, struct ms_str *name,
                             struct ms_err *err)
{
    struct ms_jread r;
    struct ms_str text;
    *name = MS_STR("");
    ms_jread_init(&r, n->link.p, n->link.n, 0);
    if (ms_jread_next(&r) != MS_J_ARR)
        return MS_OK;
    while (ms_jread_next(&r) == MS_J_STR) {
        MS_TRY(ms_jread_text(&r, &e->text, &text, err));
        MS_TRY(keep(e, text, name, err));
    }
    return MS_OK;
}

static enum ms_rc part(struct edit *e, struct ms_str target, bool must, struct ms_err *err)
{
    struct node t, b;
    struct ms_str partner;
    MS_TRY(read_node(e, false, target, &t, err));
    if (!t.there || is_unmatched(&t)) {
        if (!must)
            return MS_OK;
        return ms_fail(err, t.there ? MS_E_ARG : MS_E_NOTFOUND, "'%.*s' is %s", MS_STR_ARG(target),
                       t.there ? "not matched" : "no node of the target");
    }
    MS_TRY(partner_of(e, &t, &partner, err));
    MS_TRY(read_node(e, true, partner, &b, err));
    MS_TRY(part_node(e, false, &t, err));
    return b.there ? part_node(e, true, &b, err) : MS_OK;
}

/* The node and its opposite in direction. */
static enum ms_rc part_both(struct edit *e, struct ms_str target, bool must, struct ms_err *err)
{
    struct ms_str other;
    struct ms_arena *kept = NULL;
    MS_TRY(own_memory(e, &kept, err));
    enum ms_rc rc = part(e, target, must, err);
    if (rc == MS_OK)
        rc = opposite(e, target, &other, err);
    if (rc == MS_OK)
        rc = part(e, other, false, err);
    common_memory(e, kept);
    return rc;
}

enum ms_rc graph_unmatch(const char *path, struct graph_spot at, struct ms_str target,
                         struct ms_err *err)
{
    struct edit e;
    enum ms_rc rc = begin(&e, path, at, err);
    if (rc == MS_OK)
        rc = part_both(&e, target, true, err);
    return end(&e, rc, err);
}

/* Children are looked into also where they have no partner: theirs may have one. */
static enum ms_rc part_children(struct edit *e, struct todo *todo, struct ms_str name,
                                uint64_t *parted, struct ms_err *err)
{
    struct node *t = NULL;
    size_t n = 0;
    enum ms_rc rc = children_of(e, false, name, &t, &n, err);
    for (size_t i = 0; rc == MS_OK && i < n; i++) {
        *parted += !is_unmatched(&t[i]);
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
    struct edit e;
    struct todo todo = {.list = {0}};
    *parted = 1;
    enum ms_rc rc = begin(&e, path, at, err);
    if (rc == MS_OK)
        rc = part_both(&e, target, true, err);
    if (rc == MS_OK)
        rc = note_pair(&todo, target, MS_STR(""), err);
    for (size_t i = 0; rc == MS_OK && i < todo.list.n; i++)
        rc = part_children(&e, &todo, todo.list.p[i].t, parted, err);
    ms_vec_free(&todo.list);
    return end(&e, rc, err);
}

/* ---- undo ---------------------------------------------------------------------------------- */

static enum ms_rc take_old(struct edit *e, struct ms_stmt *st, bool *golden, struct node *old,
                           struct ms_err *err)
{
    e->at.step = ms_stmt_get_i64(st, 0);
    e->at.rank = ms_stmt_get_i64(st, 1);
    *golden = ms_str_is(ms_stmt_get_str(st, 2), "Bench");
    MS_TRY(keep(e, ms_stmt_get_str(st, 3), &old->name, err));
    MS_TRY(keep(e, ms_stmt_get_str(st, 4), &old->link, err));
    MS_TRY(keep(e, ms_stmt_get_str(st, 5), &old->in, err));
    MS_TRY(keep(e, ms_stmt_get_str(st, 6), &old->out, err));
    old->index = ms_stmt_is_null(st, 7) ? NAN : ms_stmt_get_f64(st, 7);
    old->modified = ms_stmt_get_i64(st, 8);
    return MS_OK;
}

static enum ms_rc restore(struct edit *e, bool golden, struct node *old, struct ms_err *err)
{
    struct node now;
    MS_TRY(read_node(e, golden, old->name, &now, err));
    if (!now.there)
        return MS_OK;
    old->parent = now.parent;
    old->order = now.order;
    old->there = true;
    return change_node(e, golden, &now, old, err);
}

static enum ms_rc restore_row(struct edit *e, struct ms_stmt *st, struct ms_err *err)
{
    struct node old = {.there = false};
    struct ms_arena *kept = NULL;
    bool golden;
    MS_TRY(own_memory(e, &kept, err));
    enum ms_rc rc = take_old(e, st, &golden, &old, err);
    if (rc == MS_OK)
        rc = restore(e, golden, &old, err);
    common_memory(e, kept);
    return rc;
}

/* Rows of the last change, the last one first. */
static enum ms_rc restore_all(struct edit *e, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    size_t n = 0;
    enum ms_rc rc;
    e->change = 0;
    MS_TRY(ms_store_prepare(e->store, &st,
                            "SELECT step, rank, data_source, node_name, link, input_data,"
                            " output_data, precision_index, modified FROM x_undo"
                            " WHERE change = (SELECT max(change) FROM x_undo) ORDER BY id DESC",
                            err));
    while ((rc = ms_stmt_step(st, &more, err)) == MS_OK && more) {
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
    struct edit e;
    enum ms_rc rc = begin(&e, path, (struct graph_spot){0, 0, false}, err);
    if (rc == MS_OK)
        rc = restore_all(&e, err);
    return end(&e, rc, err);
}

/* SPDX-License-Identifier: MIT
 *
 * graph_old: converts .vis files of earlier versions to databases.
 *
 * A .vis file is one JSON object for a rank and step: nodes by name, in a comparison
 * below "NPU" and "Bench". Columns of the database are copied from the file as written;
 * only the order of nodes and the rows for stacks are computed. Values and colours are
 * kept whatever rules produced them, because the file also stores what its values mean.
 */
#include "compare/graph/build/graph_id.h"
#include "compare/graph/build/graph_schema.h"
#include "compare/graph/graph.h"
#include "probe/base/arena.h"
#include "probe/base/io.h"
#include "probe/base/jread.h"
#include "probe/base/map.h"
#include "probe/base/store.h"
#include "probe/base/vec.h"

#include <stdio.h>
#include <sys/stat.h>

enum { TEXT_MAX = 1 << 28, FIELDS = 12 };
enum field {
    F_TYPE,
    F_UP,
    F_SUBS,
    F_LINK,
    F_STACK,
    F_MICRO,
    F_INDEX,
    F_OVER,
    F_TALK,
    F_MERGED,
    F_IN,
    F_OUT
};
static const char *const fields[] = {"node_type",           "upnode",         "subnodes",
                                     "matched_node_link",   "stack_info",     "micro_step_id",
                                     "precision_index",     "overflow_level", "matched_distributed",
                                     "parallel_merge_info", "input_data",     "output_data"};

struct old_node {
    struct ms_str value[FIELDS]; /* JSON as written; empty: absent */
    bool listed;
};

struct old_side {
    struct ms_map names;
    MS_VEC(struct old_node) nodes;
    struct ms_str root, data_dir;
    bool there;
};

struct old_file {
    struct ms_file file;
    struct ms_arena *arena;
    struct old_side side[2];
    struct ms_str tips, colours, micro_steps, task, overflow;
    struct ms_store *store;
    struct ms_stmt *insert, *stack;
    struct ms_buf text, scratch;
    int64_t step, rank;
};

/* ---- reading ------------------------------------------------------------------ */

static enum ms_rc keep_text(struct old_file *f, const struct ms_jread *r, struct ms_str *out,
                            struct ms_err *err)
{
    struct ms_str s;
    MS_TRY(ms_jread_text(r, &f->scratch, &s, err));
    *out = ms_arena_str(f->arena, s);
    return out->p != NULL ? MS_OK : ms_arena_fail(f->arena, err);
}

/* Reads the value that follows a key, as written. */
static enum ms_rc take_raw(struct ms_jread *r, struct ms_str *out, struct ms_err *err)
{
    enum ms_jtok tok = ms_jread_next(r);
    const char *from = r->tok;
    if (tok == MS_J_ERR || ms_jread_skip(r, tok) == MS_J_ERR)
        return ms_jread_fail(r, err);
    *out = (struct ms_str){from, (uint32_t)(r->at - from)};
    return MS_OK;
}

static bool is_object(struct ms_str json)
{
    return json.n != 0 && json.p[0] == '{';
}

/* Reads a JSON string; "None", which old files write for a missing value, becomes empty. */
static enum ms_rc text_of(struct old_file *f, struct ms_str json, struct ms_str *out,
                          struct ms_err *err)
{
    struct ms_jread r;
    *out = MS_STR("");
    ms_jread_init(&r, json.p != NULL ? json.p : "", json.n, 0);
    if (json.n == 0 || ms_jread_next(&r) != MS_J_STR)
        return MS_OK;
    MS_TRY(keep_text(f, &r, out, err));
    if (ms_str_is(*out, "None"))
        *out = MS_STR("");
    return MS_OK;
}

/* Reads the members of a node and of its "data" object. */
static enum ms_rc read_fields(struct old_node *n, struct ms_str json, struct ms_err *err)
{
    struct ms_jread r;
    enum ms_jtok tok;
    ms_jread_init(&r, json.p, json.n, 0);
    ms_jread_next(&r);
    while ((tok = ms_jread_next(&r)) == MS_J_KEY) {
        struct ms_str key = r.text, raw = MS_STR_NONE;
        MS_TRY(take_raw(&r, &raw, err));
        if (ms_str_is(key, "data") && is_object(raw))
            MS_TRY(read_fields(n, raw, err));
        for (unsigned i = 0; i < FIELDS; i++) {
            if (ms_str_is(key, fields[i]))
                n->value[i] = raw;
        }
    }
    return tok == MS_J_ERR ? ms_jread_fail(&r, err) : MS_OK;
}

static enum ms_rc read_nodes(struct old_file *f, struct old_side *s, struct ms_str json,
                             struct ms_err *err)
{
    struct ms_jread r;
    enum ms_jtok tok;
    ms_jread_init(&r, json.p, json.n, 0);
    r.file = f->file.p;
    if (ms_jread_next(&r) != MS_J_OBJ)
        return ms_jread_reject(&r, err, "expected an object of nodes");
    while ((tok = ms_jread_next(&r)) == MS_J_KEY) {
        struct ms_str name, raw = MS_STR_NONE;
        MS_TRY(keep_text(f, &r, &name, err));
        MS_TRY(take_raw(&r, &raw, err));
        uint32_t id = ms_map_put(&s->names, name, NULL);
        if (id == MS_MAP_NONE || !ms_vec_reserve(&s->nodes, (size_t)id + 1))
            return ms_no_memory(err);
        s->nodes.n = s->names.keys.n;
        s->nodes.p[id] = (struct old_node){.listed = false};
        if (is_object(raw))
            MS_TRY(read_fields(&s->nodes.p[id], raw, err));
    }
    return tok == MS_J_ERR ? ms_jread_fail(&r, err) : MS_OK;
}

static enum ms_rc read_top(struct old_file *f, struct old_side *s, struct ms_str json,
                           struct ms_err *err)
{
    struct ms_jread r;
    enum ms_jtok tok;
    ms_jread_init(&r, json.p, json.n, 0);
    r.file = f->file.p;
    if (ms_jread_next(&r) != MS_J_OBJ)
        return ms_jread_reject(&r, err, "expected an object");
    while ((tok = ms_jread_next(&r)) == MS_J_KEY) {
        struct ms_str key = r.text, raw = MS_STR_NONE;
        MS_TRY(take_raw(&r, &raw, err));
        if (ms_str_is(key, "NPU"))
            MS_TRY(read_top(f, &f->side[0], raw, err));
        else if (ms_str_is(key, "Bench"))
            MS_TRY(read_top(f, &f->side[1], raw, err));
        else if (ms_str_is(key, "node"))
            MS_TRY(read_nodes(f, s, raw, err));
        else if (ms_str_is(key, "root"))
            MS_TRY(text_of(f, raw, &s->root, err));
        else if (ms_str_is(key, "dump_data_dir"))
            MS_TRY(text_of(f, raw, &s->data_dir, err));
        else if (ms_str_is(key, "ToolTip"))
            MS_TRY(text_of(f, raw, &f->tips, err));
        else if (ms_str_is(key, "Colors"))
            f->colours = raw;
        else if (ms_str_is(key, "MicroSteps"))
            f->micro_steps = raw;
        else if (ms_str_is(key, "OverflowCheck"))
            f->overflow = raw;
        else if (ms_str_is(key, "task"))
            MS_TRY(text_of(f, raw, &f->task, err));
    }
    s->there |= s->nodes.n != 0;
    return tok == MS_J_ERR ? ms_jread_fail(&r, err) : MS_OK;
}

/* ---- writing ---------------------------------------------------------------------- */

static int64_t parse_whole(struct ms_str json)
{
    int64_t v;
    return ms_str_i64(json, &v) ? v : ms_str_is(json, "true");
}

/* Writes a link without the prefix "N___" or "B___", which much older files put before every name
 * to mark the side. */
static void put_link(struct ms_buf *out, struct ms_str json)
{
    ms_buf_clear(out);
    for (uint32_t i = 0; i < json.n; i++) {
        struct ms_str rest = ms_str_sub(json, i, json.n);
        ms_buf_putc(out, json.p[i]);
        if (ms_str_starts(rest, MS_STR("\"N___")) || ms_str_starts(rest, MS_STR("\"B___")))
            i += 4;
    }
    if (json.n == 0 || json.p[0] != '[')
        ms_buf_clear(out);
    if (out->n == 0)
        ms_buf_puts(out, "[]");
}

static struct ms_str or_else(struct ms_str json, char first, struct ms_str other)
{
    return json.n != 0 && json.p[0] == first ? json : other;
}

static bool is_empty_list(struct ms_str json)
{
    for (uint32_t i = 0; i < json.n; i++) {
        if (json.p[i] == '"')
            return false;
    }
    return true;
}

static void bind_index(struct ms_stmt *st, struct ms_str json)
{
    double v;
    struct ms_jread r;
    ms_jread_init(&r, json.p != NULL ? json.p : "", json.n, 0);
    if (json.n != 0 && ms_jread_next(&r) == MS_J_NUM && ms_jread_f64(&r, &v))
        ms_stmt_f64(st, 8, v);
    else
        ms_stmt_null(st, 8);
}

static enum ms_rc put_stack(struct old_file *f, struct ms_str id, struct ms_str json,
                            struct ms_err *err)
{
    ms_stmt_str(f->stack, 1, id);
    ms_stmt_str(f->stack, 2, or_else(json, '[', MS_STR("[]")));
    return ms_stmt_run(f->stack, err);
}

static enum ms_rc put_row(struct old_file *f, unsigned side, uint32_t node, int64_t order,
                          struct ms_err *err)
{
    struct old_side *s = &f->side[side];
    const struct old_node *n = &s->nodes.p[node];
    struct ms_str name = ms_map_key(&s->names, node), up, type, over;
    struct ms_buf id = {.max = TEXT_MAX}, link = {.max = TEXT_MAX};
    graph__put_graph_id(&id, (struct graph__place){f->step, f->rank, side != 0});
    ms_buf_putc(&id, '_');
    ms_buf_str(&id, name);
    put_link(&link, n->value[F_LINK]);
    enum ms_rc rc = ms_buf_check(&id, err);
    if (rc == MS_OK)
        rc = ms_buf_check(&link, err);
    if (rc == MS_OK)
        rc = text_of(f, n->value[F_UP], &up, err);
    if (rc == MS_OK)
        rc = text_of(f, n->value[F_TYPE], &type, err);
    if (rc == MS_OK)
        rc = text_of(f, n->value[F_OVER], &over, err);
    if (rc == MS_OK)
        rc = put_stack(f, ms_buf_slice(&id), n->value[F_STACK], err);
    if (rc == MS_OK) {
        struct ms_str all = ms_buf_slice(&id);
        ms_stmt_str(f->insert, 1, all);
        ms_stmt_str(f->insert, 2, ms_str_sub(all, 0, all.n - name.n - 1));
        ms_stmt_i64(f->insert, 3, order);
        ms_stmt_str(f->insert, 4, name);
        ms_stmt_str(f->insert, 5,
                    type.n != 0               ? type
                    : n->value[F_TYPE].n != 0 ? n->value[F_TYPE]
                                              : MS_STR("0"));
        ms_stmt_str(f->insert, 6, ms_str_eq(name, s->root) ? MS_STR("") : up);
        ms_stmt_str(f->insert, 7, is_empty_list(n->value[F_SUBS]) ? MS_STR("") : n->value[F_SUBS]);
        bind_index(f->insert, n->value[F_INDEX]);
        ms_stmt_str(f->insert, 9, over.n != 0 ? over : MS_STR_NONE);
        ms_stmt_i64(f->insert, 10, parse_whole(n->value[F_MICRO]));
        ms_stmt_str(f->insert, 11, ms_buf_slice(&link));
        ms_stmt_str(f->insert, 12, all);
        ms_stmt_str(f->insert, 13,
                    is_empty_list(n->value[F_MERGED]) ? MS_STR("") : n->value[F_MERGED]);
        ms_stmt_str(f->insert, 14, or_else(n->value[F_IN], '{', MS_STR("{}")));
        ms_stmt_str(f->insert, 15, or_else(n->value[F_OUT], '{', MS_STR("{}")));
        ms_stmt_str(f->insert, 16, graph__side_name(side != 0));
        ms_stmt_str(f->insert, 17, s->data_dir);
        ms_stmt_i64(f->insert, 18, f->step);
        ms_stmt_i64(f->insert, 19, f->rank);
        ms_stmt_i64(f->insert, 20, ms_str_starts(name, MS_STR("Distributed")));
        ms_stmt_str(f->insert, 21, or_else(n->value[F_TALK], '{', MS_STR("{}")));
        rc = ms_stmt_run(f->insert, err);
    }
    ms_buf_free(&id);
    ms_buf_free(&link);
    return rc;
}

struct visit {
    uint32_t node;
    struct ms_jread at; /* position in the node's list of children */
};

static enum ms_rc push_visit(struct old_side *s, struct visit **stack, size_t *n, size_t *cap,
                             uint32_t node, struct ms_err *err)
{
    struct ms_str subs = s->nodes.p[node].value[F_SUBS];
    s->nodes.p[node].listed = true;
    if (*n == *cap && !ms_vec_grow(stack, cap, *n + 1, sizeof **stack))
        return ms_no_memory(err);
    struct visit *v = &(*stack)[(*n)++];
    v->node = node;
    ms_jread_init(&v->at, subs.p != NULL ? subs.p : "", subs.n, 0);
    if (subs.n != 0)
        ms_jread_next(&v->at);
    return MS_OK;
}

/* Writes the nodes of one side, children before their parent. A node that is listed twice is
 * written at its first place. */
static enum ms_rc put_side(struct old_file *f, unsigned side, uint64_t *written, struct ms_err *err)
{
    struct old_side *s = &f->side[side];
    struct visit *stack = NULL;
    size_t n = 0, cap = 0;
    uint32_t root = ms_map_get(&s->names, s->root);
    if (root == MS_MAP_NONE)
        return ms_fail(err, MS_E_FORMAT, "%.*s has no root node '%.*s'",
                       MS_STR_ARG(graph__side_name(side != 0)), MS_STR_ARG(s->root));
    enum ms_rc rc = push_visit(s, &stack, &n, &cap, root, err);
    while (rc == MS_OK && n > 0) {
        struct visit *v = &stack[n - 1];
        struct ms_str name;
        if (s->nodes.p[v->node].value[F_SUBS].n != 0 && ms_jread_next(&v->at) == MS_J_STR) {
            rc = keep_text(f, &v->at, &name, err);
            uint32_t child = rc == MS_OK ? ms_map_get(&s->names, name) : MS_MAP_NONE;
            if (child != MS_MAP_NONE && !s->nodes.p[child].listed)
                rc = push_visit(s, &stack, &n, &cap, child, err);
            continue;
        }
        rc = put_row(f, side, v->node, (int64_t)(*written)++, err);
        n--;
    }
    ms_free(stack);
    return rc;
}

static enum ms_rc put_config(struct old_file *f, struct ms_err *err)
{
    struct ms_stmt *st;
    bool dual = f->side[1].there;
    int64_t micro = parse_whole(f->micro_steps);
    ms_buf_clear(&f->text);
    ms_buf_printf(&f->text, "[%lld]", (long long)f->rank);
    size_t rank = f->text.n;
    ms_buf_printf(&f->text, "[%lld]", (long long)f->step);
    MS_TRY(ms_buf_check(&f->text, err));
    struct ms_str both = ms_buf_slice(&f->text);
    MS_TRY(ms_store_prepare(f->store, &st,
                            "INSERT INTO tb_config VALUES ('1', ?, ?, ?, ?, ?, ?, ?, ?)", err));
    ms_stmt_str(st, 1, dual ? MS_STR("compare") : MS_STR("build"));
    ms_stmt_str(st, 2, dual ? f->task.n != 0 ? f->task : MS_STR("summary") : MS_STR(""));
    ms_stmt_str(st, 3, f->tips.n != 0 ? f->tips : MS_STR_NONE);
    ms_stmt_i64(st, 4, micro > 0 ? micro : 1);
    ms_stmt_i64(st, 5, parse_whole(f->overflow));
    ms_stmt_str(st, 6, or_else(f->colours, '{', MS_STR("null")));
    ms_stmt_str(st, 7, ms_str_sub(both, 0, (uint32_t)rank));
    ms_stmt_str(st, 8, ms_str_sub(both, (uint32_t)rank, both.n));
    enum ms_rc rc = ms_stmt_run(st, err);
    ms_stmt_free(st);
    return rc;
}

#define INSERT                                                                                     \
    "INSERT INTO tb_nodes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?21,"    \
    " 0, ?14, ?15, ?16, ?17, ?18, ?19, ?20)"

static enum ms_rc fill(struct old_file *f, struct graph_made *made, struct ms_err *err)
{
    MS_TRY(ms_store_exec(f->store, GRAPH_SQL_NODES(GRAPH_ID) ";" GRAPH_SQL_OTHERS, err));
    MS_TRY(ms_store_prepare(f->store, &f->insert, INSERT, err));
    MS_TRY(ms_store_prepare(f->store, &f->stack, "INSERT INTO tb_stack VALUES (?, ?)", err));
    for (unsigned side = 0; side < 2; side++) {
        if (f->side[side].there)
            MS_TRY(put_side(f, side, &made->nodes[side], err));
    }
    MS_TRY(put_config(f, err));
    return ms_store_exec(f->store, GRAPH_SQL_INDEXES("tb_nodes") ";" GRAPH_SQL_INDEX6_WHOLE, err);
}

/* Returns the number after `word` in the file's name, or 0 when there is none. */
static int64_t number_behind(struct ms_str name, struct ms_str word)
{
    int64_t at = ms_str_find_str(name, word);
    uint64_t v = 0;
    uint32_t from = at >= 0 ? (uint32_t)at + word.n : name.n, to = from;
    while (to < name.n && name.p[to] >= '0' && name.p[to] <= '9')
        to++;
    return ms_str_u64(ms_str_sub(name, from, to), &v) && v <= INT32_MAX ? (int64_t)v : 0;
}

static enum ms_rc write_database(struct old_file *f, const char *path, struct graph_made *made,
                                 struct ms_err *err)
{
    MS_TRY(ms_store_create(&f->store, path, err));
    MS_TRY(fill(f, made, err));
    ms_stmt_free(f->insert);
    ms_stmt_free(f->stack);
    f->insert = f->stack = NULL;
    struct ms_store *s = f->store;
    f->store = NULL;
    MS_TRY(ms_store_commit(s, err));
    return chmod(path, 0640) == 0 ? MS_OK : ms_fail_sys(err, "%s", path);
}

static enum ms_rc convert(struct old_file *f, const char *vis, const char *out_dir,
                          struct graph_made *made, struct ms_err *err)
{
    struct ms_str base = ms_path_base(vis);
    f->arena = ms_arena_new(SIZE_MAX);
    if (f->arena == NULL)
        return ms_no_memory(err);
    MS_TRY(ms_file_map(&f->file, vis, UINT32_MAX - 1, err));
    struct ms_str all = {f->file.p, (uint32_t)f->file.n};
    if (read_top(f, &f->side[0], all, err) != MS_OK)
        return ms_err_wrap(err, "%s", vis);
    if (!f->side[0].there)
        return ms_fail(err, MS_E_FORMAT, "%s: holds no nodes", vis);
    f->rank = number_behind(base, MS_STR("rank"));
    f->step = number_behind(base, MS_STR("step"));
    MS_TRY(ms_mkdirs(out_dir, err));
    int n = snprintf(made->path, sizeof made->path, "%s/%.*s.db", out_dir, MS_STR_ARG(base));
    if (n < 0 || n >= (int)sizeof made->path)
        return ms_fail(err, MS_E_LIMIT, "%.100s...: the path is too long", out_dir);
    if (write_database(f, made->path, made, err) != MS_OK)
        return ms_err_wrap(err, "%s", vis);
    return MS_OK;
}

enum ms_rc graph_convert(const char *vis, const char *out_dir, struct graph_made *made,
                         struct ms_err *err)
{
    struct old_file f = {.file.p = "", .text.max = TEXT_MAX, .scratch.max = TEXT_MAX};
    *made = (struct graph_made){.ranks = 1, .steps = 1};
    enum ms_rc rc = convert(&f, vis, out_dir, made, err);
    ms_stmt_free(f.insert);
    ms_stmt_free(f.stack);
    ms_store_close(f.store);
    for (unsigned side = 0; side < 2; side++) {
        ms_map_free(&f.side[side].names);
        ms_vec_free(&f.side[side].nodes);
    }
    ms_file_unmap(&f.file);
    ms_arena_free(f.arena);
    ms_buf_free(&f.text);
    ms_buf_free(&f.scratch);
    return rc;
}

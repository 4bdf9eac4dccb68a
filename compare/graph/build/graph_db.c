/* SPDX-License-Identifier: MIT
 *
 * graph_db: writes the database of a graph.
 */
#include "compare/graph/build/graph_db.h"
#include "compare/graph/build/graph_schema.h"
#include "compare/graph/build/json_text.h"
#include "compare/graph/build/viewer_tables.h"
#include "probe/base/assert.h"
#include "probe/base/num.h"

#include <stdio.h>

/* ---- words ------------------------------------------------------------------ */

static const struct {
    enum probe_mode mode;
    const char *key;
} figures[GRAPH_TIPS] = {
    [GRAPH_TIP_MAX] = {PROBE_MODE_SUMMARY, "Max diff"},
    [GRAPH_TIP_MIN] = {PROBE_MODE_SUMMARY, "Min diff"},
    [GRAPH_TIP_MEAN] = {PROBE_MODE_SUMMARY, "Mean diff"},
    [GRAPH_TIP_NORM] = {PROBE_MODE_SUMMARY, "L2norm diff"},
    [GRAPH_TIP_MD5] = {PROBE_MODE_MD5, "md5"},
    [GRAPH_TIP_ONE_THOUSANDTH] = {PROBE_MODE_TENSOR, "One Thousandth Err Ratio"},
    [GRAPH_TIP_FIVE_THOUSANDTHS] = {PROBE_MODE_TENSOR, "Five Thousandths Err Ratio"},
    [GRAPH_TIP_COSINE] = {PROBE_MODE_TENSOR, "Cosine"},
    [GRAPH_TIP_MAX_ABS] = {PROBE_MODE_TENSOR, "MaxAbsErr"},
    [GRAPH_TIP_MAX_RELATIVE] = {PROBE_MODE_TENSOR, "MaxRelativeErr"},
};

/* Appends explanations of the figures and of the colours of states, as JSON objects. */
static void put_tips(struct ms_buf *out, enum probe_mode mode, const struct graph_words *words)
{
    const char *between = "{";
    if (mode == PROBE_MODE_STRUCTURE) {
        ms_buf_puts(out, words->structure_tips);
        return;
    }
    for (size_t i = 0; i < GRAPH_TIPS; i++) {
        if (figures[i].mode != mode)
            continue;
        ms_buf_puts(out, between);
        graph__put_json(out, ms_str_of(figures[i].key));
        ms_buf_puts(out, ": ");
        graph__put_json(out, ms_str_of(words->tip[i]));
        between = ", ";
    }
    ms_buf_putc(out, '}');
}

static void put_band(struct ms_buf *out, const char *colour, const char *range, const char *why,
                     const char *level)
{
    ms_buf_printf(out, "\"%s\": {\"value\": [%s], \"description\": ", colour, range);
    graph__put_json(out, ms_str_of(why));
    ms_buf_printf(out, ", \"accuracy_level\": \"%s\"}", level);
}

static void put_colours(struct ms_buf *out, enum probe_mode mode, const struct graph_words *words)
{
    ms_buf_putc(out, '{');
    if (mode != PROBE_MODE_STRUCTURE) { /* a structure has no verdicts */
        put_band(out, "#FFFCF3", "0, 0.3", words->colour[mode].pass, "pass");
        ms_buf_puts(out, ", ");
        put_band(out, "#FFDC7F", "0.3, 0.6", words->colour[mode].differs, "warning");
        ms_buf_puts(out, ", ");
        put_band(out, "#FF704D", "0.6, 1", words->colour[mode].differs, "error");
        ms_buf_puts(out, ", ");
    }
    put_band(out, "#C7C7C7", "", words->unmatched, "unmatched node");
    ms_buf_putc(out, '}');
}

void graph__put_repairs(struct ms_buf *out, const struct graph_conf *c)
{
    const struct repair {
        const char *what;
        bool on;
    } repairs[] = {
        {"digests of operators that make empty memory are no errors", !c->md5_index},
        {"what hangs below no root is attached to the root", true},
        {"a collection is as bad as its worst member in tensor comparisons too", true},
        {"members of a batch of point-to-point calls are linked", c->batch != GRAPH_BATCH_NONE},
        {"isend meets recv, and ranks count however they were passed", true},
        {"a dtype is what it means in its framework, not how it is spelt", true},
        {"who does not say requires_grad does not disagree", true},
        {"a gradient without a backward node hangs below the forward node", true},
        {"a backward node has the stack of a forward node that comes later", true},
        {"what lies at another place is matched and said to have moved",
         c->matching != CMP_MATCH_EXACT},
    };
    ms_assert(out->n == 0);
    for (size_t i = 0; i < sizeof repairs / sizeof *repairs; i++) {
        if (!repairs[i].on)
            continue;
        ms_buf_puts(out, out->n == 0 ? "[" : ", ");
        graph__put_json(out, ms_str_of(repairs[i].what));
    }
    ms_buf_putc(out, ']');
}

/* ---- database --------------------------------------------------------------- */

/* Writes trees as rows of a database.
 *
 * Making the JSON of a node takes about as long as storing it.  So while one
 * worker stores a batch of nodes, the others make the next one:
 *
 *     worker 0   store batch 0   store batch 1   ...
 *     others     make batch 1    make batch 2    ...
 *
 * A batch is divided into chunks. The text of a chunk holds the columns of its nodes one
 * after the other. Batches are stored in order, so the file does not depend on the
 * number of threads. */

enum {
    CHUNK = 256,
    CHUNKS_PER_THREAD = 2,
    MAX_CHUNKS = 128,
    TEXT_MAX = 1 << 30,
    RELEASE_EVERY = 16
};
enum column { COL_SUBS, COL_LINK, COL_IN, COL_OUT, COLS };

/* Columns of CHUNK nodes: column c of node i is text[end of the one before it .. end[i][c]). */
struct chunk {
    struct ms_buf text;
    uint32_t first, n; /* indices into the tree's order */
    MS_VEC(uint32_t) path;
    uint32_t end[CHUNK][COLS];
};

struct batch {
    struct chunk *chunks;
    size_t n;
};

struct graph__db {
    struct ms_store *store;
    struct ms_stmt *node, *slim, *stack, *link;
    struct graph__extra extra; /* used when the rules set viewer_tables */
    const struct graph_conf *conf;
    /* Of the tree being written: */
    struct graph__pair *pair;
    const struct graph__tree *g;
    struct graph__place place;
    struct ms_buf prefix, id, stack_id, text;
    struct ms_map stacks;         /* row number by list of frames; equal lists share a row */
    MS_VEC(uint32_t) stack_known; /* row by number of a list; GRAPH_NO: not looked up yet */
    const struct graph__db_calls *calls;
    struct graph__flow *flow; /* NULL: data flow is not stored */
    struct batch making, storing;
    uint32_t next; /* index of the first node that is in no batch yet */
    int64_t rows;  /* rows of tb_nodes so far, equal to the last rowid */
};

/* ---- texts ------------------------------------------------------------------ */

static void put_children(struct ms_buf *out, const struct graph__tree *g, uint32_t node)
{
    uint32_t n = g->nodes.p[node].first_child;
    struct ms_str other = graph__about(g, node).children;
    if (other.n != 0) {
        ms_buf_str(out, other);
        return;
    }
    if (n == GRAPH_NO)
        return;
    ms_buf_putc(out, '[');
    for (; n != GRAPH_NO; n = g->nodes.p[n].next) {
        graph__put_json(out, graph__name(g, n));
        ms_buf_puts(out, g->nodes.p[n].next != GRAPH_NO ? ", " : "]");
    }
}

/* Writes the names on the path from the root of the other side to the partner. */
static void put_link(struct chunk *c, const struct graph__tree *other, uint32_t node)
{
    struct ms_buf *out = &c->text;
    c->path.n = 0;
    for (; node != GRAPH_NO; node = other->nodes.p[node].parent) {
        uint32_t *slot = ms_vec_push(&c->path);
        if (slot == NULL) {
            out->bad = MS_E_NOMEM;
            return;
        }
        *slot = node;
    }
    ms_buf_putc(out, '[');
    for (size_t n = c->path.n; n > 0; n--) {
        graph__put_json(out, graph__name(other, c->path.p[n - 1]));
        ms_buf_puts(out, n > 1 ? ", " : "");
    }
    ms_buf_putc(out, ']');
}

/* ---- making a batch ---------------------------------------------------------- */

static const struct graph__tree *other_side(const struct graph__db *db)
{
    return db->place.golden ? &db->pair->t : &db->pair->b;
}

static enum ms_rc make_node(struct graph__db *db, struct chunk *c, uint32_t i,
                            struct graph__items *it, struct ms_err *err)
{
    uint32_t node = db->g->order.p[c->first + i];
    uint8_t state;
    put_children(&c->text, db->g, node);
    c->end[i][COL_SUBS] = (uint32_t)c->text.n;
    if (db->pair->dual)
        put_link(c, other_side(db), db->g->nodes.p[node].match);
    else
        ms_buf_puts(&c->text, "[]");
    c->end[i][COL_LINK] = (uint32_t)c->text.n;
    MS_TRY(db->calls->make(it, db->pair, db->g, node, &state, err));
    ms_buf_str(&c->text, ms_buf_slice(&it->in));
    c->end[i][COL_IN] = (uint32_t)c->text.n;
    ms_buf_str(&c->text, ms_buf_slice(&it->out));
    c->end[i][COL_OUT] = (uint32_t)c->text.n;
    if (!db->place.golden)
        db->pair->t.nodes.p[node].state = state;
    if (db->flow != NULL)
        MS_TRY(graph__flow_note(db->flow, node, &it->scratch, err));
    return ms_buf_check(&c->text, err);
}

static enum ms_rc make_chunk(struct graph__db *db, struct chunk *c, struct graph__items *it,
                             struct ms_err *err)
{
    ms_buf_clear(&c->text);
    for (uint32_t i = 0; i < c->n; i++)
        MS_TRY(make_node(db, c, i, it, err));
    return MS_OK;
}

/* Assigns the next nodes of the order to chunks. */
static void plan_batch(struct graph__db *db, size_t chunks)
{
    uint32_t total = (uint32_t)db->g->order.n;
    db->making.n = 0;
    while (db->making.n < chunks && db->next < total) {
        struct chunk *c = &db->making.chunks[db->making.n++];
        c->first = db->next;
        c->n = total - db->next < CHUNK ? total - db->next : CHUNK;
        db->next += c->n;
    }
}

/* ---- storing a batch ----------------------------------------------------------- */

static struct ms_str column_text(const struct chunk *c, uint32_t i, enum column col)
{
    uint32_t from = col > 0 ? c->end[i][col - 1] : i > 0 ? c->end[i - 1][COLS - 1] : 0;
    return (struct ms_str){c->text.p + from, c->end[i][col] - from};
}

/* Writes a list of frames as compact JSON, without the line breaks of the file. */
static void put_frames(struct ms_buf *out, struct ms_str frames)
{
    struct ms_jread r;
    const char *between = "";
    ms_jread_init(&r, frames.p, frames.n, 0);
    ms_jread_next(&r);
    ms_buf_putc(out, '[');
    while (ms_jread_next(&r) == MS_J_STR) {
        ms_buf_puts(out, between);
        ms_buf_putc(out, '"');
        ms_buf_str(out, r.text);
        ms_buf_putc(out, '"');
        between = ", ";
    }
    ms_buf_putc(out, ']');
}

static enum ms_rc add_stack(struct graph__db *db, struct ms_str list, uint32_t *row,
                            struct ms_err *err)
{
    bool added;
    *row = ms_map_put(&db->stacks, list, &added);
    if (*row == GRAPH_NO)
        return ms_no_memory(err);
    if (!added)
        return MS_OK;
    ms_buf_clear(&db->text);
    put_frames(&db->text, list);
    size_t json = db->text.n;
    graph__put_graph_id(&db->text, db->place);
    ms_buf_printf(&db->text, "_%u", *row);
    MS_TRY(ms_buf_check(&db->text, err));
    struct ms_str both = ms_buf_slice(&db->text);
    ms_stmt_str(db->stack, 1, ms_str_sub(both, (uint32_t)json, both.n));
    ms_stmt_str(db->stack, 2, ms_str_sub(both, 0, (uint32_t)json));
    return ms_stmt_run(db->stack, err);
}

static enum ms_rc stack_row(struct graph__db *db, uint32_t stack, uint32_t *row, struct ms_err *err)
{
    if (stack == GRAPH_STACK_EMPTY)
        return add_stack(db, MS_STR("[]"), row, err);
    if (stack == GRAPH_STACK_NO_FORWARD)
        return add_stack(db, ms_str_of(db->conf->rules->words->lost_stack), row, err);
    if (db->stack_known.p[stack] == GRAPH_NO)
        MS_TRY(add_stack(db, db->g->stacks.frames.p[stack], &db->stack_known.p[stack], err));
    *row = db->stack_known.p[stack];
    return MS_OK;
}

/* Returns the worst state among the members of a collection. */
static uint8_t state_of_collection(const struct graph__db *db, uint32_t node)
{
    uint8_t worst = GRAPH_PASS;
    if (!db->conf->rules->collections_by_members && db->pair->set.mode == PROBE_MODE_TENSOR)
        return worst;
    for (uint32_t n = db->g->nodes.p[node].first_child; n != GRAPH_NO; n = db->g->nodes.p[n].next)
        worst = db->g->nodes.p[n].state > worst ? db->g->nodes.p[n].state : worst;
    return worst;
}

static void bind_state(struct graph__db *db, int at, uint8_t state)
{
    if (state == GRAPH_NONE)
        ms_stmt_null(db->node, at);
    else if (state == GRAPH_WARNING)
        ms_stmt_f64(db->node, at, 0.5);
    else
        ms_stmt_i64(db->node, at, state == GRAPH_ERROR);
}

static const struct ms_str over_names[] = {{NULL, 0}, {"medium", 6}, {"high", 4}, {"critical", 8}};

static void bind_texts(struct graph__db *db, const struct chunk *c, uint32_t i)
{
    ms_stmt_str(db->node, 7, column_text(c, i, COL_SUBS));
    ms_stmt_str(db->node, 11, column_text(c, i, COL_LINK));
    ms_stmt_str(db->node, 14, column_text(c, i, COL_IN));
    ms_stmt_str(db->node, 15, column_text(c, i, COL_OUT));
}

static void bind_numbers(struct graph__db *db, uint32_t order, const struct graph__node *n)
{
    static const char *const kinds[] = {"0", "1", "", "", "", "", "", "", "8", "9"};
    ms_stmt_i64(db->node, 3, order);
    ms_stmt_str(db->node, 5, ms_str_of(kinds[n->kind]));
    bind_state(db, 8, n->state);
    ms_stmt_str(db->node, 9, db->conf->overflow ? over_names[n->over] : MS_STR_NONE);
    ms_stmt_i64(db->node, 10, n->micro);
    ms_stmt_i64(db->node, 18, db->place.step);
    ms_stmt_i64(db->node, 19, db->place.rank);
}

/* Stores the columns that the indexes need in the slim table (see GRAPH_SQL_SLIM). */
static enum ms_rc store_slim(struct graph__db *db, uint32_t order, const struct graph__node *n,
                             struct ms_str name, struct ms_err *err)
{
    db->rows++;
    ms_stmt_i64(db->slim, 1, db->place.step);
    ms_stmt_i64(db->slim, 2, db->place.rank);
    ms_stmt_str(db->slim, 3, graph__side_name(db->place.golden));
    ms_stmt_str(db->slim, 4, n->parent != GRAPH_NO ? graph__name(db->g, n->parent) : MS_STR(""));
    ms_stmt_i64(db->slim, 5, order);
    ms_stmt_str(db->slim, 6, name);
    ms_stmt_i64(db->slim, 7, n->micro);
    ms_stmt_i64(db->slim, 8, ms_str_starts(name, MS_STR("Distributed")));
    return ms_stmt_run(db->slim, err);
}

static enum ms_rc store_node(struct graph__db *db, const struct chunk *c, uint32_t i,
                             struct ms_err *err)
{
    uint32_t node = db->g->order.p[c->first + i];
    struct graph__node *n = &db->pair->t.nodes.p[node];
    if (db->place.golden)
        n = &db->pair->b.nodes.p[node];
    struct ms_str name = graph__name(db->g, node);
    uint32_t row;
    if (n->kind == GRAPH_COLLECTION && db->pair->dual && !db->place.golden)
        n->state = state_of_collection(db, node);
    MS_TRY(stack_row(db, n->stack, &row, err));
    ms_buf_clear(&db->id);
    ms_buf_str(&db->id, ms_buf_slice(&db->prefix));
    ms_buf_putc(&db->id, '_');
    ms_buf_str(&db->id, name);
    ms_buf_clear(&db->stack_id);
    ms_buf_str(&db->stack_id, ms_buf_slice(&db->prefix));
    ms_buf_printf(&db->stack_id, "_%u", row);
    MS_TRY(ms_buf_check(&db->id, err));
    MS_TRY(ms_buf_check(&db->stack_id, err));
    ms_stmt_str(db->node, 1, ms_buf_slice(&db->id));
    ms_stmt_str(db->node, 2, ms_buf_slice(&db->prefix));
    ms_stmt_str(db->node, 4, name);
    ms_stmt_str(db->node, 6, n->parent != GRAPH_NO ? graph__name(db->g, n->parent) : MS_STR(""));
    ms_stmt_str(db->node, 12, ms_buf_slice(&db->stack_id));
    ms_stmt_str(db->node, 16, graph__side_name(db->place.golden));
    ms_stmt_str(db->node, 17, db->g->data_dir != NULL ? ms_str_of(db->g->data_dir) : MS_STR_NONE);
    ms_stmt_i64(db->node, 20, ms_str_starts(name, MS_STR("Distributed")));
    ms_stmt_str(db->node, 13, graph__about(db->g, node).info);
    bind_texts(db, c, i);
    bind_numbers(db, c->first + i, n);
    MS_TRY(ms_stmt_run(db->node, err));
    return store_slim(db, c->first + i, n, name, err);
}

static enum ms_rc store_batch(struct graph__db *db, struct ms_err *err)
{
    for (size_t k = 0; k < db->storing.n; k++) {
        const struct chunk *c = &db->storing.chunks[k];
        for (uint32_t i = 0; i < c->n; i++)
            MS_TRY(store_node(db, c, i, err));
    }
    return MS_OK;
}

/* ---- a tree --------------------------------------------------------------------- */

/* Work item 0 stores the previous batch; the other items make the chunks of the next one. */
static enum ms_rc store_or_make(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    struct graph__db *db = ctx;
    if (item == 0)
        return store_batch(db, err);
    return make_chunk(db, &db->making.chunks[item - 1], &db->calls->items[worker], err);
}

/* Gives pages of the mapped dumps back: nodes are written roughly in the order of the dump, so pages
 * already read are not needed again. */
static void release_dumps(const struct graph__db *db)
{
    const struct probe_dump *t = db->pair->t.side.dump, *b = db->pair->b.side.dump;
    if (t != NULL && !t->borrowed)
        ms_file_release(&t->file);
    if (b != NULL && !b->borrowed)
        ms_file_release(&b->file);
}

static enum ms_rc put_all(struct graph__db *db, struct ms_pool *pool, struct ms_err *err)
{
    size_t threads = pool != NULL ? ms_pool_threads(pool) : 1;
    size_t chunks = threads * CHUNKS_PER_THREAD, batches = 0;
    db->storing.n = 0;
    do {
        plan_batch(db, chunks < MAX_CHUNKS ? chunks : MAX_CHUNKS);
        MS_TRY(ms_pool_run(pool, 1 + db->making.n, store_or_make, db, err));
        struct batch made = db->making;
        db->making = db->storing;
        db->storing = made;
        if (batches++ % RELEASE_EVERY == 0)
            release_dumps(db);
        db->calls->progress(db->calls->ctx, (double)db->next / (double)db->g->order.n);
    } while (db->storing.n != 0);
    return MS_OK;
}

/* ---- one tree ------------------------------------------------------------ */

static enum ms_rc begin_tree(struct graph__db *db, struct graph__pair *p, struct graph__place place,
                             struct ms_err *err)
{
    db->pair = p;
    db->place = place;
    db->g = place.golden ? &p->b : &p->t;
    db->next = 0;
    ms_buf_clear(&db->prefix);
    graph__put_graph_id(&db->prefix, place);
    ms_map_free(&db->stacks);
    size_t lists = db->g->stacks.frames.n;
    db->stack_known.n = 0;
    if (!ms_vec_reserve(&db->stack_known, lists + 1))
        return ms_no_memory(err);
    memset(db->stack_known.p, 0xff, (lists + 1) * sizeof *db->stack_known.p);
    return ms_buf_check(&db->prefix, err);
}

static void free_chunks(struct batch *b)
{
    for (size_t i = 0; b->chunks != NULL && i < MAX_CHUNKS; i++) {
        ms_buf_free(&b->chunks[i].text);
        ms_vec_free(&b->chunks[i].path);
    }
    ms_free(b->chunks);
    *b = (struct batch){0};
}

static enum ms_rc new_chunks(struct batch *b, struct ms_err *err)
{
    b->chunks = ms_calloc(MAX_CHUNKS, sizeof *b->chunks);
    for (size_t i = 0; b->chunks != NULL && i < MAX_CHUNKS; i++)
        b->chunks[i].text.max = TEXT_MAX;
    return b->chunks != NULL ? MS_OK : ms_no_memory(err);
}

enum ms_rc graph__db_put(struct graph__db *db, struct graph__pair *p, struct graph__place place,
                         struct ms_pool *pool, const struct graph__db_calls *calls,
                         struct ms_err *err)
{
    ms_assert(!place.golden || p->dual);
    db->calls = calls;
    MS_TRY(begin_tree(db, p, place, err));
    enum ms_rc rc = new_chunks(&db->making, err);
    if (rc == MS_OK)
        rc = new_chunks(&db->storing, err);
    /* Only the target's data flow is stored: golden nodes read and write what their partners do. */
    if (rc == MS_OK && db->conf->rules->viewer_tables && !place.golden)
        rc = graph__flow_new(&db->flow, db->g, err);
    if (rc == MS_OK)
        rc = put_all(db, pool, err);
    free_chunks(&db->making);
    free_chunks(&db->storing);
    if (rc == MS_OK && db->conf->rules->viewer_tables)
        rc =
            graph__extra_put(&db->extra, p, place.golden, ms_buf_slice(&db->prefix), db->flow, err);
    graph__flow_free(db->flow);
    db->flow = NULL;
    return rc;
}

int64_t graph__db_rows(const struct graph__db *db)
{
    return db->rows;
}

enum ms_rc graph__db_link(void *ctx, int64_t row, struct ms_str json, struct ms_err *err)
{
    struct graph__db *db = ctx;
    ms_assert(row > 0 && row <= db->rows);
    ms_stmt_str(db->link, 1, json);
    ms_stmt_i64(db->link, 2, row);
    return ms_stmt_run(db->link, err);
}

/* ---- the configuration row ----------------------------------------------- */

static struct ms_str task_of(const struct graph__config *c)
{
    static const char *const names[] = {"summary", "md5", "all", "structure"};
    return c->dual ? ms_str_of(names[c->mode]) : MS_STR("");
}

static enum ms_rc put_config(struct ms_stmt *st, const struct graph__config *c, bool overflow,
                             const struct graph_words *words, struct ms_buf *tips,
                             struct ms_buf *colours, struct ms_err *err)
{
    if (c->dual) {
        put_tips(tips, c->mode, words);
        put_colours(colours, c->mode, words);
    }
    MS_TRY(ms_buf_check(tips, err));
    MS_TRY(ms_buf_check(colours, err));
    ms_stmt_str(st, 1, c->dual ? MS_STR("compare") : MS_STR("build"));
    ms_stmt_str(st, 2, task_of(c));
    ms_stmt_str(st, 3, c->dual ? ms_buf_slice(tips) : MS_STR_NONE);
    ms_stmt_i64(st, 4, c->micro_steps);
    ms_stmt_i64(st, 5, overflow);
    ms_stmt_str(st, 6, c->dual ? ms_buf_slice(colours) : MS_STR("null"));
    ms_stmt_str(st, 7, c->ranks);
    ms_stmt_str(st, 8, c->steps);
    return ms_stmt_run(st, err);
}

enum ms_rc graph__db_config(struct graph__db *db, const struct graph__config *c, struct ms_err *err)
{
    struct ms_stmt *st;
    struct ms_buf tips = {.max = TEXT_MAX}, colours = {.max = TEXT_MAX};
    MS_TRY(ms_store_prepare(db->store, &st,
                            "INSERT INTO tb_config VALUES ('1', ?, ?, ?, ?, ?, ?, ?, ?)", err));
    enum ms_rc rc =
        put_config(st, c, db->conf->overflow, db->conf->rules->words, &tips, &colours, err);
    ms_stmt_free(st);
    ms_buf_free(&tips);
    ms_buf_free(&colours);
    return rc;
}

enum ms_rc graph__db_meta(struct graph__db *db, const char *key, const char *value,
                          struct ms_err *err)
{
    struct ms_stmt *st;
    if (!db->conf->rules->viewer_tables)
        return MS_OK;
    MS_TRY(ms_store_prepare(db->store, &st, "INSERT OR REPLACE INTO x_meta VALUES (?, ?)", err));
    ms_stmt_str(st, 1, ms_str_of(key));
    ms_stmt_str(st, 2, ms_str_of(value));
    enum ms_rc rc = ms_stmt_run(st, err);
    ms_stmt_free(st);
    return rc;
}

static void put_ranks(const struct cmp_suspect *s, struct ms_buf *text)
{
    for (size_t i = 0; i < s->nranks; i++)
        ms_buf_printf(text, "%s%d", i != 0 ? "," : "", s->ranks[i] < 0 ? 0 : s->ranks[i]);
}

static enum ms_rc store_suspect(struct ms_stmt *st, const struct cmp_suspect *s,
                                struct ms_buf *text, struct ms_err *err)
{
    ms_buf_clear(text);
    ms_message_speak(s->message, text);
    const uint32_t spoken = (uint32_t)text->n;
    put_ranks(s, text);
    MS_TRY(ms_buf_check(text, err));
    const struct ms_str both = ms_buf_slice(text);
    ms_stmt_i64(st, 1, s->place);
    ms_stmt_i64(st, 2, s->step < 0 ? 0 : s->step);
    ms_stmt_i64(st, 3, s->rank < 0 ? 0 : s->rank);
    ms_stmt_str(st, 4, s->target);
    ms_stmt_str(st, 5, s->golden);
    ms_stmt_str(st, 6, ms_str_of(cmp_role_names[s->role]));
    ms_stmt_str(st, 7, ms_str_of(cmp_why_names[s->why]));
    ms_stmt_f64(st, 8, s->score);
    ms_stmt_str(st, 9, ms_str_sub(both, 0, spoken));
    ms_stmt_str(st, 10, s->message.kind);
    ms_stmt_str(st, 11, s->message.args);
    ms_stmt_str(st, 12, ms_str_sub(both, spoken, both.n));
    ms_stmt_f64(st, 13, s->certainty);
    return ms_stmt_run(st, err);
}

enum ms_rc graph__db_findings(struct graph__db *db, const struct cmp_suspect *list, size_t n,
                              struct ms_err *err)
{
    struct ms_stmt *st;
    struct ms_buf text = {.max = 4 * MS_MESSAGE_MAX};
    MS_TRY(ms_store_prepare(db->store, &st,
                            "INSERT INTO x_findings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                            err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < n && rc == MS_OK; i++)
        rc = store_suspect(st, &list[i], &text, err);
    ms_buf_free(&text);
    ms_stmt_free(st);
    return rc;
}

/* ---- the file -------------------------------------------------------------------- */

/* Large pages halve the writes and leave less unused space in each. Rows are appended to their
 * tables, so a larger cache only costs memory: with 100,000 nodes per side, 267 MB with an 8 MB
 * cache and 385 MB with 64 MB, in the same time. */
static const char paging[] =
    "COMMIT; PRAGMA page_size=16384; PRAGMA cache_size=-8192; PRAGMA threads=4; BEGIN";

static enum ms_rc prepare(struct graph__db *db, struct ms_err *err)
{
    struct ms_store *s = db->store;
    MS_TRY(ms_store_exec(s, paging, err));
    MS_TRY(ms_store_exec(s, GRAPH_SQL_TABLES, err));
    MS_TRY(ms_store_prepare(s, &db->node, GRAPH_SQL_INSERT, err));
    MS_TRY(ms_store_prepare(s, &db->stack, "INSERT INTO tb_stack VALUES (?, ?)", err));
    MS_TRY(ms_store_prepare(s, &db->link,
                            "UPDATE tb_nodes SET matched_distributed = ? WHERE rowid = ?", err));
    MS_TRY(ms_store_prepare(s, &db->slim, GRAPH_SQL_INSERT_SLIM, err));
    if (!db->conf->rules->viewer_tables)
        return MS_OK;
    return graph__extra_prepare(&db->extra, s, db->conf, err);
}

enum ms_rc graph__db_new(struct graph__db **out, const struct graph_conf *conf, const char *path,
                         struct ms_err *err)
{
    struct graph__db *db = ms_calloc(1, sizeof *db);
    *out = NULL;
    if (db == NULL)
        return ms_no_memory(err);
    db->conf = conf;
    db->prefix.max = db->id.max = db->stack_id.max = db->text.max = TEXT_MAX;
    enum ms_rc rc = ms_store_create(&db->store, path, err);
    if (rc == MS_OK)
        rc = prepare(db, err);
    if (rc == MS_OK)
        *out = db;
    else
        graph__db_free(db);
    return rc;
}

static void free_statements(struct graph__db *db)
{
    struct ms_stmt **all[] = {&db->node, &db->slim, &db->stack, &db->link};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ms_stmt_free(*all[i]);
        *all[i] = NULL;
    }
    graph__extra_free(&db->extra);
}

void graph__db_free(struct graph__db *db)
{
    if (db == NULL)
        return;
    free_statements(db);
    ms_store_close(db->store);
    ms_buf_free(&db->prefix);
    ms_buf_free(&db->id);
    ms_buf_free(&db->stack_id);
    ms_buf_free(&db->text);
    ms_map_free(&db->stacks);
    ms_vec_free(&db->stack_known);
    ms_free(db);
}

static enum ms_rc make_indexes(struct graph__db *db, struct ms_err *err)
{
    /* External sort with temporary files lets other threads sort while this thread reads. */
    MS_TRY(ms_store_exec(db->store,
                         "COMMIT; PRAGMA temp_store=FILE; PRAGMA cache_size=-8192; BEGIN", err));
    MS_TRY(ms_store_exec(db->store, GRAPH_SQL_INDEXES("x_slim"), err));
    bool whole = db->conf->rules->whole_modified_index;
    if (!whole)
        MS_TRY(ms_store_exec(db->store, GRAPH_SQL_INDEX6, err));
    MS_TRY(ms_store_exec(db->store, GRAPH_SQL_HAND_OVER, err));
    MS_TRY(ms_store_exec(db->store, GRAPH_SQL_PRIMARY_KEY, err));
    return whole ? ms_store_exec(db->store, GRAPH_SQL_INDEX6_WHOLE, err) : MS_OK;
}

enum ms_rc graph__db_commit(struct graph__db *db, struct ms_err *err)
{
    ms_assert(db->store != NULL);
    free_statements(db);
    enum ms_rc rc = make_indexes(db, err);
    struct ms_store *s = db->store;
    if (rc == MS_OK) {
        db->store = NULL;
        rc = ms_store_commit(s, err);
    }
    graph__db_free(db);
    return rc;
}

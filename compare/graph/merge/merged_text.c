/* SPDX-License-Identifier: MIT
 *
 * merged_text: writes a merged tree as the three files of a dump.
 *
 * Records are copied from the dumps byte for byte, except for merged figures. Where the
 * outputs come from another rank, the record is assembled from two.
 */
#include "compare/graph/merge/merged_text.h"

#include "compare/graph/build/json_text.h"
#include "probe/base/jread.h"
#include "probe/base/jwrite.h"

enum { TEXT_MAX = INT32_MAX, VALUE_MAX = 1 << 24 };

struct text {
    struct graph__forest *f;
    struct graph__merged *m;
    MS_VEC(uint32_t) order;
    struct ms_map names;    /* names of nodes that are written */
    MS_VEC(uint32_t) owner; /* node by index of its name */
    struct ms_map stacks;   /* distinct lists of frames */
    MS_VEC(struct holders { MS_VEC(uint32_t) nodes; }) holders; /* nodes by list of frames */
};

struct step { /* a step of a depth-first walk */
    uint32_t node, next;
};

/* Lists the nodes to write: children before their parent, the root last. Of several nodes with one
 * name only the first is listed. */
static enum ms_rc list_nodes(struct text *t, uint32_t root, struct ms_err *err)
{
    struct graph__forest *f = t->f;
    MS_VEC(struct step) stack = {0};
    enum ms_rc rc = MS_OK;
    bool added;
    if (ms_vec_push(&stack) == NULL)
        return ms_no_memory(err);
    stack.p[0].node = root;
    stack.p[0].next = 0;
    while (rc == MS_OK && stack.n > 0) {
        uint32_t node = stack.p[stack.n - 1].node;
        const struct graph__fnode *n = graph__fnode(f, node);
        if (stack.p[stack.n - 1].next < n->children.n) {
            uint32_t child = n->children.p[stack.p[stack.n - 1].next++];
            uint32_t id = ms_map_put(&t->names, graph__fnode(f, child)->name, &added);
            if (id == GRAPH_NO || (added && ms_vec_push(&stack) == NULL) ||
                !ms_vec_reserve(&t->owner, (size_t)id + 1))
                rc = ms_no_memory(err);
            else if (added) {
                t->owner.p[id] = child;
                stack.p[stack.n - 1].node = child;
                stack.p[stack.n - 1].next = 0;
            }
            continue;
        }
        stack.n--;
        uint32_t *slot = ms_vec_push(&t->order);
        if (slot == NULL)
            rc = ms_no_memory(err);
        else
            *slot = node;
    }
    ms_vec_free(&stack);
    return rc;
}

static void put_figure(struct ms_buf *out, const struct probe_num *n)
{
    switch (n->kind) {
    case PROBE_NUM_ABSENT:
    case PROBE_NUM_NULL:
        ms_buf_puts(out, "null");
        break;
    default:
        ms_buf_str(out, n->text);
        break;
    }
}

/* Writes a leaf with the figures replaced by those of the patch. */
static void put_patched(struct ms_buf *out, struct ms_str json, const struct graph__patch *p)
{
    struct ms_jread r;
    const char *from = json.p;
    ms_jread_init(&r, json.p, json.n, 0);
    if (ms_jread_next(&r) != MS_J_OBJ) {
        ms_buf_str(out, json);
        return;
    }
    while (ms_jread_next(&r) == MS_J_KEY) {
        int stat = -1;
        for (int i = 0; i < PROBE_STATS; i++)
            stat = ms_str_is(r.text, probe_stat_names[i]) ? i : stat;
        enum ms_jtok tok = ms_jread_next(&r);
        const char *value = r.tok;
        ms_jread_skip(&r, tok);
        if (stat < 0 || p->stat[stat].kind == PROBE_NUM_OTHER)
            continue;
        ms_buf_put(out, from, (size_t)(value - from));
        put_figure(out, &p->stat[stat]);
        from = r.at;
    }
    ms_buf_put(out, from, (size_t)(json.p + json.n - from));
}

/* Copies a part of a record from the dump, with merged figures in place. */
static void put_part(struct ms_buf *out, const struct probe_dump *d, const struct graph__data *data,
                     uint64_t from, uint64_t to)
{
    const struct probe_node *n = &d->nodes.p[data->record];
    for (uint32_t row = n->first_row; row < n->first_row + n->nrows; row++) {
        const struct probe_row *at = &d->rows.p[row];
        const struct graph__patch *patch = NULL;
        for (size_t i = 0; i < data->patches.n; i++) {
            if (data->patches.p[i].row == row)
                patch = &data->patches.p[i];
        }
        if (patch == NULL || at->off < from || at->off >= to)
            continue;
        ms_buf_put(out, d->file.p + from, at->off - from);
        put_patched(out, (struct ms_str){d->file.p + at->off, at->len}, patch);
        from = at->off + at->len;
    }
    ms_buf_put(out, d->file.p + from, to - from);
}

/* Initialises a reader at the object of a record. */
static bool open_record(const struct probe_dump *d, uint32_t record, struct ms_jread *r)
{
    const char *p = d->file.p + d->nodes.p[record].off, *end = d->file.p + d->file.n;
    p += *p == '"';
    p += probe_node_name(d, record).n;
    while (p < end && *p != ':')
        p++;
    ms_jread_init(r, p + 1, (size_t)(end - p - 1), 0);
    return ms_jread_next(r) == MS_J_OBJ;
}

/* Writes the members of the record that are outputs, or all other members. */
static void put_members(struct ms_buf *out, const struct graph__forest *f,
                        const struct graph__data *data, bool *first)
{
    struct ms_jread r;
    if (data->record == GRAPH_NO)
        return;
    const struct probe_dump *d = f->ranks[data->rank].g->side.dump;
    if (!open_record(d, data->record, &r))
        return;
    while (ms_jread_next(&r) == MS_J_KEY) {
        bool output = ms_str_is(r.text, "output");
        const char *key = r.tok;
        struct ms_str name = r.text;
        enum ms_jtok tok = ms_jread_next(&r);
        ms_jread_skip(&r, tok);
        if (output != data->output || ms_str_is(name, "parallel_merge_info"))
            continue;
        ms_buf_puts(out, *first ? "" : ", ");
        *first = false;
        put_part(out, d, data, (uint64_t)(key - d->file.p), (uint64_t)(r.at - d->file.p));
    }
}

static struct ms_str keep_text(struct text *t, const struct ms_buf *text)
{
    struct ms_str copy = ms_arena_str(t->m->arena, ms_buf_slice(text));
    if (copy.p == NULL || text->bad != MS_OK)
        t->f->bad = MS_E_NOMEM;
    return copy.p != NULL ? copy : MS_STR("");
}

static struct ms_str info_of(struct text *t, const struct graph__fnode *n)
{
    if (n->info.n == 0)
        return MS_STR("");
    struct ms_buf *text = &t->f->text;
    ms_buf_clear(text);
    for (size_t i = 0; i < n->info.n; i++) {
        ms_buf_puts(text, i == 0 ? "[" : ", ");
        graph__put_json(text, n->info.p[i]);
    }
    ms_buf_putc(text, ']');
    return keep_text(t, text);
}

/* Lists the children of a node whose sub_nodes must be stored explicitly. The official tool does
 * not distinguish nodes of two ranks with the same name, so a parent can list children that belong
 * to another. Empty when all children are its own. */
static struct ms_str lost_children(struct text *t, const struct graph__fnode *n)
{
    struct graph__forest *f = t->f;
    size_t lost = 0;
    for (size_t i = 0; i < n->children.n; i++) {
        uint32_t id = ms_map_get(&t->names, graph__fnode(f, n->children.p[i])->name);
        lost += id == GRAPH_NO || t->owner.p[id] != n->children.p[i];
    }
    if (lost == 0 || !f->rules->list_lost_children)
        return MS_STR("");
    ms_buf_clear(&f->text);
    for (size_t i = 0; i < n->children.n; i++) {
        ms_buf_puts(&f->text, i == 0 ? "[" : ", ");
        graph__put_json(&f->text, graph__fnode(f, n->children.p[i])->name);
    }
    ms_buf_putc(&f->text, ']');
    return keep_text(t, &f->text);
}

/* Writes the record of a node; nothing for collections and modules without a record. */
static void put_record(struct text *t, const struct graph__fnode *n, struct ms_str info)
{
    struct graph__forest *f = t->f;
    struct ms_buf *out = &t->m->dump;
    bool first = true;
    const struct graph__data *in = &f->data.p[n->in], *output = &f->data.p[n->out];
    if (in->record == GRAPH_NO && output->record == GRAPH_NO)
        return;
    ms_buf_puts(out, out->p[out->n - 1] == '{' ? "\n" : ",\n");
    graph__put_json(out, n->name);
    ms_buf_puts(out, ": {");
    put_members(out, f, in, &first);
    put_members(out, f, output, &first);
    if (info.n != 0) {
        ms_buf_puts(out, first ? "\"parallel_merge_info\": " : ", \"parallel_merge_info\": ");
        ms_buf_str(out, info);
    }
    ms_buf_putc(out, '}');
}

static struct ms_str frames_of(const struct text *t, const struct graph__fnode *n)
{
    if (n->stack == GRAPH_STACK_NO_FORWARD)
        return ms_str_of(t->f->rules->words->lost_stack);
    return n->stack == GRAPH_STACK_EMPTY ? MS_STR_NONE
                                         : t->f->ranks[n->rank].g->stacks.frames.p[n->stack];
}

static enum ms_rc note_stack(struct text *t, uint32_t node, struct ms_err *err)
{
    bool added;
    struct ms_str frames = frames_of(t, graph__fnode(t->f, node));
    if (frames.p == NULL)
        return MS_OK;
    uint32_t id = ms_map_put(&t->stacks, frames, &added);
    struct holders *h = id == GRAPH_NO ? NULL
                        : added        ? ms_vec_push(&t->holders)
                                       : &t->holders.p[id];
    if (h != NULL && added)
        *h = (struct holders){.nodes = {0}};
    uint32_t *slot = h != NULL ? ms_vec_push(&h->nodes) : NULL;
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = node;
    return MS_OK;
}

static void put_stacks(struct text *t)
{
    struct ms_buf *out = &t->m->stack;
    ms_buf_putc(out, '{');
    for (uint32_t i = 0; i < t->holders.n; i++) {
        const struct holders *h = &t->holders.p[i];
        ms_buf_printf(out, "%s\"%u\": [[", i == 0 ? "\n" : ",\n", i);
        for (size_t k = 0; k < h->nodes.n; k++) {
            ms_buf_puts(out, k == 0 ? "" : ", ");
            graph__put_json(out, graph__fnode(t->f, h->nodes.p[k])->name);
        }
        ms_buf_puts(out, "], ");
        ms_buf_str(out, ms_map_key(&t->stacks, i));
        ms_buf_putc(out, ']');
    }
    ms_buf_puts(out, "}");
}

static enum ms_rc put_node(struct text *t, uint32_t node, struct ms_err *err)
{
    const struct graph__fnode *n = graph__fnode(t->f, node);
    struct ms_buf *out = &t->m->construct;
    struct graph__note *note = ms_vec_push(&t->m->notes);
    if (note == NULL)
        return ms_no_memory(err);
    *note = (struct graph__note){
        .micro = n->micro, .kind = n->kind, .over = n->over, .info = info_of(t, n)};
    note->children = lost_children(t, n);
    ms_buf_puts(out, out->n > 1 ? ",\n" : "\n");
    graph__put_json(out, n->name);
    ms_buf_puts(out, ": ");
    graph__put_json(out, graph__fnode(t->f, n->parent)->name);
    put_record(t, n, note->info);
    return note_stack(t, node, err);
}

static void begin_dump(struct text *t, const struct probe_dump *d)
{
    struct ms_buf *out = &t->m->dump;
    ms_buf_puts(out, "{\"task\": ");
    graph__put_json(out, d->task);
    ms_buf_puts(out, ", \"level\": ");
    graph__put_json(out, d->level);
    ms_buf_puts(out, ", \"framework\": ");
    graph__put_json(out, ms_str_of(probe_framework_text(d->framework)));
    ms_buf_puts(out, ", \"dump_data_dir\": ");
    if (d->data_dir.p != NULL)
        graph__put_json(out, d->data_dir);
    else
        ms_buf_puts(out, "null");
    ms_buf_puts(out, ", \"is_merged\": true, \"data\": {");
}

static enum ms_rc put_nodes(struct text *t, uint32_t rank, struct ms_err *err)
{
    const struct graph__rank *r = &t->f->ranks[rank];
    MS_TRY(list_nodes(t, r->root, err));
    begin_dump(t, r->g->side.dump);
    ms_buf_putc(&t->m->construct, '{');
    for (size_t i = 0; i + 1 < t->order.n; i++)
        MS_TRY(put_node(t, t->order.p[i], err));
    ms_buf_puts(&t->m->construct, "}");
    ms_buf_puts(&t->m->dump, "}}");
    put_stacks(t);
    MS_TRY(ms_buf_check(&t->m->construct, err));
    MS_TRY(ms_buf_check(&t->m->dump, err));
    return ms_buf_check(&t->m->stack, err);
}

enum ms_rc graph__put_merged(struct graph__forest *f, uint32_t rank, struct graph__merged *m,
                             struct ms_err *err)
{
    struct text t = {.f = f, .m = m};
    ms_assert(rank < f->n && f->bad == MS_OK);
    *m = (struct graph__merged){.rank = f->ranks[rank].rank,
                                .micro_steps = f->ranks[rank].g->micro_steps,
                                .stated = f->ranks[rank].g->built.micro_steps,
                                .construct.max = TEXT_MAX,
                                .dump.max = TEXT_MAX,
                                .stack.max = TEXT_MAX,
                                .arena = ms_arena_new(SIZE_MAX)};
    enum ms_rc rc = m->arena != NULL ? put_nodes(&t, rank, err) : ms_no_memory(err);
    for (size_t i = 0; i < t.holders.n; i++)
        ms_vec_free(&t.holders.p[i].nodes);
    ms_vec_free(&t.holders);
    ms_vec_free(&t.order);
    ms_vec_free(&t.owner);
    ms_map_free(&t.names);
    ms_map_free(&t.stacks);
    return rc;
}

/* ---- as files ------------------------------------------------------------------- */

/* Writes the JSON text with an indentation of two spaces per level. */
static void lay_out(struct ms_jwrite *w, struct ms_str text)
{
    struct ms_jread r;
    struct ms_buf scratch = {.max = VALUE_MAX};
    struct ms_str s;
    ms_jread_init(&r, text.p, text.n, 0);
    for (enum ms_jtok tok; (tok = ms_jread_next(&r)) > MS_J_END;) {
        if (tok == MS_J_OBJ)
            ms_jwrite_obj(w);
        else if (tok == MS_J_OBJ_END)
            ms_jwrite_obj_end(w);
        else if (tok == MS_J_ARR)
            ms_jwrite_arr(w);
        else if (tok == MS_J_ARR_END)
            ms_jwrite_arr_end(w);
        else if (tok == MS_J_KEY && ms_jread_text(&r, &scratch, &s, NULL) == MS_OK)
            ms_jwrite_key(w, s);
        else if (tok == MS_J_STR && ms_jread_text(&r, &scratch, &s, NULL) == MS_OK)
            ms_jwrite_str(w, s);
        else
            ms_jwrite_raw(w, (struct ms_str){r.tok, (uint32_t)(r.at - r.tok)});
    }
    ms_buf_free(&scratch);
}

static enum ms_rc write_text(struct ms_out *out, struct ms_str text, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jwrite_init(&w, 2, 1 << 20);
    w.drain = ms_out_sink;
    w.ctx = out;
    lay_out(&w, text);
    enum ms_rc rc = ms_jwrite_finish(&w, err);
    ms_jwrite_free(&w);
    return rc;
}

static enum ms_rc write_file(const char *dir, const char *name, struct ms_str text,
                             struct ms_err *err)
{
    struct ms_out *out;
    char *path = ms_path_join(dir, name);
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_out_create(&out, path, err);
    ms_free(path);
    MS_TRY(rc);
    rc = write_text(out, text, err);
    if (rc == MS_OK)
        return ms_out_commit(out, err);
    ms_out_abort(out);
    return rc;
}

enum ms_rc graph__write_merged(const struct graph__merged *m, const char *dir, struct ms_err *err)
{
    MS_TRY(ms_mkdirs(dir, err));
    MS_TRY(write_file(dir, "construct.json", ms_buf_slice(&m->construct), err));
    MS_TRY(write_file(dir, "dump.json", ms_buf_slice(&m->dump), err));
    return write_file(dir, "stack.json", ms_buf_slice(&m->stack), err);
}

/* SPDX-License-Identifier: MIT
 *
 * consistent: pairs the rows of a training run with those of an inference run.
 *
 * A row's key is its call, its path inside the record, its layer, and the module by
 * the name that the inference engine gives it:
 *
 *     training   Module._fsdp_wrapped_module.model.layers.0._fsdp_wrapped_module.self_attn.q_proj
 *     inference  Module.model.layers.0.self_attn.qkv_proj            key: 0, qkv_proj
 *
 * Rows that training records between the backward of the model and the next forward of its
 * embedding have no counterpart in inference and are left out.
 */
#include "compare/pair/consistent.h"

enum { KEY_MAX = 1 << 20 };

struct rename {
    const char *from, *to;
};
static const struct rename fsdp_names[] = {
    {"q_proj", "qkv_proj"},        {"k_proj", "qkv_proj"},      {"v_proj", "qkv_proj"},
    {"gate_proj", "gate_up_proj"}, {"up_proj", "gate_up_proj"}, {NULL, NULL}};
static const struct rename megatron_names[] = {{"word_embeddings", "embed_tokens"},
                                               {"self_attention", "self_attn"},
                                               {"linear_qkv", "qkv_proj"},
                                               {"q_layernorm", "q_norm"},
                                               {"k_layernorm", "k_norm"},
                                               {"core_attention", "attn"},
                                               {"linear_proj", "o_proj"},
                                               {"router", "gate"},
                                               {"linear_fc1", "gate_up_proj"},
                                               {"linear_fc2", "down_proj"},
                                               {NULL, NULL}};

/* ---- names ------------------------------------------------------------- */

/* Splits a record name into the name proper and its call: call number and direction, or
 * "parameters_grad". */
static void split_record(struct ms_str name, struct ms_str *base, struct ms_str *call)
{
    struct ms_str head = probe_name_cut(name, 2);
    struct ms_str two = ms_str_sub(name, probe_name_parts(name) > 2 ? head.n + 1 : 0, name.n);
    bool gradient = ms_str_starts(two, MS_STR("parameters_grad")) ||
                    ms_str_is(probe_name_last(name), "parameters_grad");
    *base = gradient ? probe_name_cut(name, 1) : head;
    *call = gradient ? MS_STR("parameters_grad") : two;
}

/* Returns the position of "layers.<digits>" at or after `from` and its digits; -1 when there is
 * none. */
static int64_t find_layer(struct ms_str s, uint32_t from, struct ms_str *digits)
{
    static const struct ms_str word = {"layers.", 7};
    for (;;) {
        int64_t at = ms_str_find_str(ms_str_sub(s, from, s.n), word);
        if (at < 0)
            return -1;
        uint32_t begin = from + (uint32_t)at + word.n, end = begin;
        while (end < s.n && s.p[end] >= '0' && s.p[end] <= '9')
            end++;
        if (end != begin) {
            *digits = ms_str_sub(s, begin, end);
            return from + at;
        }
        from = begin;
    }
}

/* Returns the text behind the last "layers.<digits>."; all of s when there is none. */
static struct ms_str behind_layers(struct ms_str s)
{
    struct ms_str rest = s, digits;
    for (uint32_t from = 0;;) {
        int64_t at = find_layer(s, from, &digits);
        if (at < 0)
            return rest;
        from = (uint32_t)(digits.p + digits.n - s.p);
        if (from < s.n && s.p[from] == '.')
            rest = ms_str_sub(s, from + 1, s.n);
    }
}

/* Returns the text behind the last `word` and the one character that follows that word. */
static struct ms_str behind_last(struct ms_str s, const char *word)
{
    struct ms_str w = ms_str_of(word);
    for (;;) {
        int64_t at = ms_str_find_str(s, w);
        if (at < 0 || (uint32_t)at + w.n >= s.n)
            return s;
        s = ms_str_sub(s, (uint32_t)at + w.n + 1, s.n);
    }
}

/* Returns a module's name without the wrappers around it; its class is the last component. */
static struct ms_str module_class(const struct cmp_rows *c, struct ms_str base, bool training)
{
    if (!training) {
        struct ms_str inner = behind_layers(base);
        bool outer = ms_str_starts(inner, MS_STR("Module.model."));
        return outer ? ms_str_sub(inner, 13, inner.n) : inner;
    }
    bool fsdp = c->set->conf.consistent == CMP_CONSISTENT_FSDP;
    struct ms_str inner = fsdp ? behind_last(base, "_fsdp_wrapped_module") : behind_layers(base);
    return behind_last(inner, "module.module");
}

static struct ms_str rename_layer(const struct rename *list, struct ms_str name)
{
    for (; list->from != NULL; list++) {
        if (ms_str_is(name, list->from))
            return ms_str_of(list->to);
    }
    return name;
}

/* Returns the name that the inference engine has for the module. */
static struct ms_str module_name(const struct cmp_rows *c, struct ms_str module, bool training)
{
    bool fsdp = c->set->conf.consistent == CMP_CONSISTENT_FSDP;
    if (fsdp && !training)
        return probe_name_last(module);
    int64_t dot = ms_str_find(module, '.');
    if (dot < 0)
        return module;
    struct ms_str inner = ms_str_sub(module, (uint32_t)dot + 1, module.n);
    return rename_layer(fsdp ? fsdp_names : megatron_names, inner);
}

static bool is_module(struct ms_str base)
{
    return ms_str_starts(base, MS_STR("Module.")) || ms_str_starts(base, MS_STR("Cell."));
}

/* ---- which records count -------------------------------------------------- */

/* Idle from the backward of the model to the next forward of the embedding. */
struct phase {
    bool idle;
};

static bool is_model(const struct cmp_rows *c, struct ms_str cls)
{
    if (c->set->conf.consistent == CMP_CONSISTENT_MEGATRON)
        return ms_str_is(cls, "GPTModel");
    return ms_str_is(cls, "Qwen2Model") || ms_str_is(cls, "Qwen3Model") ||
           ms_str_is(cls, "Qwen3MoeModel");
}

static bool is_embedding(const struct cmp_rows *c, struct ms_str cls)
{
    return ms_str_is(cls, c->set->conf.consistent == CMP_CONSISTENT_FSDP
                              ? "Embedding"
                              : "VocabParallelEmbedding");
}

static bool takes_part(const struct cmp_rows *c, struct phase *p, struct ms_str base,
                       struct ms_str call)
{
    struct ms_str cls = probe_name_last(base);
    if (ms_str_starts(call, MS_STR("backward.")) && is_model(c, cls))
        p->idle = true;
    else if (ms_str_starts(call, MS_STR("forward.")) && is_embedding(c, cls))
        p->idle = false;
    return !p->idle;
}

/* ---- keys ------------------------------------------------------------------ */

struct keyer {
    struct cmp_rows *c;
    struct ms_map keys, bases;
    MS_VEC(uint32_t) calls; /* by number of the base in `bases`: forward calls so far */
    struct ms_arena *arena;
    struct ms_buf text, name;
    /* by row of the table, golden and target: number of its key; MS_MAP_NONE: left out */
    uint32_t *key[2];
    uint32_t *first[2], *next[2]; /* linked list of the rows of a key, in table order */
};

/* Appends the call to the key. Forward calls are numbered again, because calls that were left out
 * have used up numbers. */
static enum ms_rc put_call(struct keyer *k, struct ms_str base, struct ms_str call,
                           struct ms_err *err)
{
    bool module = ms_str_starts(call, MS_STR("forward.")), added;
    bool api = ms_str_ends(call, MS_STR(".forward"));
    uint32_t id = ms_map_put_copy(&k->bases, base, k->arena, &added);
    if (id == MS_MAP_NONE || (added && !ms_vec_reserve(&k->calls, id + 1U)))
        return ms_no_memory(err);
    if (added)
        k->calls.p[k->calls.n++] = 0;
    if (module)
        ms_buf_printf(&k->text, "forward.%u", k->calls.p[id]++);
    else if (api)
        ms_buf_printf(&k->text, "%u.forward", k->calls.p[id]++);
    else
        ms_buf_str(&k->text, call);
    return MS_OK;
}

/* Makes the prefix of a key, which all rows of a record share. */
static enum ms_rc key_of_record(struct keyer *k, struct ms_str base, struct ms_str call,
                                bool training, struct ms_err *err)
{
    struct ms_str layer, inner = module_class(k->c, base, training);
    struct ms_str module = probe_name_cut(inner, 1);
    ms_buf_clear(&k->text);
    if (training)
        MS_TRY(put_call(k, base, call, err));
    else
        ms_buf_str(&k->text, call);
    ms_buf_putc(&k->text, '\n');
    if (find_layer(base, 0, &layer) >= 0)
        ms_buf_str(&k->text, layer);
    ms_buf_putc(&k->text, '\n');
    /* The official tool drops the names of operators here, so that all operators share one key. */
    bool whole = !k->c->set->conf.rules->forgets_operators && !is_module(base);
    ms_buf_str(&k->text, whole ? base : module_name(k->c, module, training));
    ms_buf_putc(&k->text, '\n');
    return MS_OK;
}

static enum ms_rc key_of_rows(struct keyer *k, int side, const struct cmp__op *op,
                              struct ms_err *err)
{
    const struct cmp__side *s = side != 0 ? &k->c->t : &k->c->b;
    struct ms_str node = probe_node_name(s->dump, op->node);
    size_t shared = k->text.n;
    for (uint32_t row = op->first; row < op->first + op->n; row++) {
        ms_buf_clear(&k->name);
        cmp__side_name(s, row, false, &k->name);
        struct ms_str name = ms_buf_slice(&k->name);
        bool inside = ms_str_starts(name, node);
        k->text.n = shared;
        ms_buf_str(&k->text, inside ? ms_str_sub(name, node.n, name.n) : name);
        MS_TRY(ms_buf_check(&k->text, err));
        k->key[side][row] = ms_map_put_copy(&k->keys, ms_buf_slice(&k->text), k->arena, NULL);
        if (k->key[side][row] == MS_MAP_NONE)
            return ms_no_memory(err);
    }
    return MS_OK;
}

static enum ms_rc make_keys(struct keyer *k, int side, struct ms_err *err)
{
    const struct cmp__side *s = side != 0 ? &k->c->t : &k->c->b;
    struct phase phase = {false};
    bool training = side == 1;
    for (size_t i = 0; i < s->ops.n; i++) {
        struct ms_str base, call;
        split_record(probe_node_name(s->dump, s->ops.p[i].node), &base, &call);
        if (base.n == 0 || (training && !takes_part(k->c, &phase, base, call)))
            continue;
        MS_TRY(key_of_record(k, base, call, training, err));
        MS_TRY(key_of_rows(k, side, &s->ops.p[i], err));
    }
    return MS_OK;
}

static uint32_t *new_index(size_t n)
{
    uint32_t *p = ms_alloc((n + 1) * sizeof *p);
    if (p != NULL)
        memset(p, 0xff, (n + 1) * sizeof *p);
    return p;
}

static enum ms_rc chain_rows(struct keyer *k, int side, size_t rows, struct ms_err *err)
{
    k->first[side] = new_index(k->keys.keys.n);
    k->next[side] = new_index(rows);
    if (k->first[side] == NULL || k->next[side] == NULL)
        return ms_no_memory(err);
    for (size_t row = rows; row-- > 0;) {
        uint32_t key = k->key[side][row];
        if (key == MS_MAP_NONE)
            continue;
        k->next[side][row] = k->first[side][key];
        k->first[side][key] = (uint32_t)row;
    }
    return MS_OK;
}

static enum ms_rc list_keys(struct keyer *k, struct ms_err *err)
{
    size_t rows[2] = {k->c->b.order.n, k->c->t.order.n};
    k->arena = ms_arena_new((size_t)16 << 30);
    if (k->arena == NULL)
        return ms_no_memory(err);
    for (int side = 0; side < 2; side++) {
        k->key[side] = new_index(rows[side]);
        if (k->key[side] == NULL)
            return ms_no_memory(err);
        MS_TRY(make_keys(k, side, err));
    }
    for (int side = 0; side < 2; side++)
        MS_TRY(chain_rows(k, side, rows[side], err));
    return MS_OK;
}

static void free_keys(struct keyer *k)
{
    ms_map_free(&k->keys);
    ms_map_free(&k->bases);
    ms_vec_free(&k->calls);
    ms_arena_free(k->arena);
    ms_buf_free(&k->text);
    ms_buf_free(&k->name);
    for (int side = 0; side < 2; side++) {
        ms_free(k->key[side]);
        ms_free(k->first[side]);
        ms_free(k->next[side]);
    }
}

/* ---- order --------------------------------------------------------------- */

/* Rows of the resulting table in two orders: by target row and by golden row. Rows without a row of
 * that side come last. */
struct table {
    MS_VEC(struct cmp__pair) rows;
    uint32_t *by[2]; /* golden, target */
    bool *used;
};

static uint32_t place_of(const struct cmp__pair *p, int side)
{
    return side != 0 ? p->t : p->b;
}

/* Counting sort by row number; MS_MAP_NONE comes last. */
static enum ms_rc sort_by(struct table *t, int side, size_t rows, struct ms_err *err)
{
    size_t n = t->rows.n;
    uint32_t *start = ms_calloc(rows + 2, sizeof *start);
    t->by[side] = ms_alloc((n + 1) * sizeof *t->by[side]);
    if (start == NULL || t->by[side] == NULL) {
        ms_free(start);
        return ms_no_memory(err);
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t p = place_of(&t->rows.p[i], side);
        start[(p == MS_MAP_NONE ? rows : p) + 1]++;
    }
    for (size_t i = 0; i < rows; i++)
        start[i + 1] += start[i];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t p = place_of(&t->rows.p[i], side);
        t->by[side][start[p == MS_MAP_NONE ? rows : p]++] = i;
    }
    ms_free(start);
    return MS_OK;
}

/* Chooses the next row of the table: one that is the earliest on both sides. When the two orders
 * contradict each other, the row is the target's next and the result is false; the official tool
 * stops there. */
static bool next_row(const struct table *t, uint32_t at_t, uint32_t at_b, uint32_t *row)
{
    const struct cmp__pair *x = &t->rows.p[at_t], *y = &t->rows.p[at_b];
    *row = at_t;
    if (x->b == MS_MAP_NONE || at_t == at_b)
        return true;
    if (y->t == MS_MAP_NONE) {
        *row = at_b;
        return true;
    }
    return false;
}

static enum ms_rc weave_tables(struct cmp_rows *c, struct table *t, uint32_t *order,
                               struct ms_err *err)
{
    size_t n = t->rows.n, i = 0, k = 0;
    for (size_t done = 0; done < n; done++) {
        while (t->used[t->by[1][i]])
            i++;
        while (t->used[t->by[0][k]])
            k++;
        uint32_t row;
        if (!next_row(t, t->by[1][i], t->by[0][k], &row) && c->set->conf.rules->refuses_orders)
            return ms_fail(err, MS_E_FORMAT,
                           "rows of training and inference come in orders that contradict each "
                           "other; leave out --compat %s",
                           c->set->conf.rules->name);
        t->used[row] = true;
        order[done] = row;
    }
    return MS_OK;
}

/* ---- pairs ----------------------------------------------------------------- */

static enum ms_rc put_row(struct table *t, uint32_t target, uint32_t golden, struct ms_err *err)
{
    struct cmp__pair *p = ms_vec_push(&t->rows);
    if (p == NULL)
        return ms_no_memory(err);
    *p = (struct cmp__pair){target, golden};
    return MS_OK;
}

/* Lists each row of the side that is not folded, and the rows of the folded side that no such row
 * matches. */
static enum ms_rc list_table(const struct keyer *k, struct table *t, struct ms_err *err)
{
    int many = cmp__folds_target(k->c->set) ? 1 : 0, one = 1 - many;
    size_t rows[2] = {k->c->b.order.n, k->c->t.order.n};
    for (uint32_t i = 0; i < rows[one]; i++) {
        uint32_t key = k->key[one][i];
        uint32_t first = key != MS_MAP_NONE ? k->first[many][key] : MS_MAP_NONE;
        if (key != MS_MAP_NONE)
            MS_TRY(many == 1 ? put_row(t, first, i, err) : put_row(t, i, first, err));
    }
    for (uint32_t i = 0; i < rows[many]; i++) {
        uint32_t key = k->key[many][i];
        if (key == MS_MAP_NONE || k->first[one][key] != MS_MAP_NONE)
            continue;
        MS_TRY(many == 1 ? put_row(t, i, MS_MAP_NONE, err) : put_row(t, MS_MAP_NONE, i, err));
    }
    return MS_OK;
}

static enum ms_rc put_pair(const struct keyer *k, const struct cmp__pair *row, struct ms_err *err)
{
    struct cmp_rows *c = k->c;
    int many = cmp__folds_target(c->set) ? 1 : 0;
    struct cmp__pair *p = ms_vec_push(&c->pairs);
    if (p == NULL)
        return ms_no_memory(err);
    *p = *row;
    if (row->t == MS_MAP_NONE || row->b == MS_MAP_NONE)
        return MS_OK;
    for (uint32_t i = k->next[many][place_of(row, many)]; i != MS_MAP_NONE; i = k->next[many][i]) {
        struct cmp__fold *f = ms_vec_push(&c->folds);
        if (f == NULL)
            return ms_no_memory(err);
        *f = (struct cmp__fold){(uint32_t)c->pairs.n - 1, i};
    }
    return MS_OK;
}

static enum ms_rc put_all(const struct keyer *k, struct table *t, struct ms_err *err)
{
    size_t n = t->rows.n;
    uint32_t *order = ms_alloc((n + 1) * sizeof *order);
    t->used = ms_calloc(n + 1, sizeof *t->used);
    enum ms_rc rc = order != NULL && t->used != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        rc = sort_by(t, 0, k->c->b.order.n, err);
    if (rc == MS_OK)
        rc = sort_by(t, 1, k->c->t.order.n, err);
    if (rc == MS_OK)
        rc = weave_tables(k->c, t, order, err);
    for (size_t i = 0; i < n && rc == MS_OK; i++)
        rc = put_pair(k, &t->rows.p[order[i]], err);
    ms_free(order);
    return rc;
}

enum ms_rc cmp__pair_consistent(struct cmp_rows *c, struct ms_err *err)
{
    struct keyer k = {.c = c, .text.max = KEY_MAX, .name.max = KEY_MAX};
    struct table t = {0};
    enum ms_rc rc = list_keys(&k, err);
    if (rc == MS_OK)
        rc = list_table(&k, &t, err);
    if (rc == MS_OK)
        rc = put_all(&k, &t, err);
    free_keys(&k);
    ms_vec_free(&t.rows);
    ms_free(t.by[0]);
    ms_free(t.by[1]);
    ms_free(t.used);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * mapping: reads the mapping files of the official tool, which are YAML, and names the partner
 * of a row by them.
 */
#include "compare/pair/mapping.h"
#include "compare/pair/api_twins.h"
#include "compare/read/yaml_doc.h"
#include "probe/dump/name.h"

/* ---- files ------------------------------------------------------------------ */

/* The mapping files of the official tool, which are YAML.
 *
 *     data, cell   name: name
 *     layer        Class: {name: name, ...}
 *     api          a list of {ms_api: .., pt_api: .., ms_args: [..], pt_args: [..], ...},
 *                  or a single one
 *
 * Everything is kept as text, in file order. When a key occurs twice, the last value wins. */

enum { API_PARTS = 4 };

static enum ms_rc new_arena(struct ms_arena **arena, struct ms_err *err)
{
    *arena = ms_arena_new(CMP__YAML_MAX);
    return *arena != NULL ? MS_OK : ms_no_memory(err);
}

/* ---- name: name ----------------------------------------------------------- */

static enum ms_rc put_pair(struct cmp__pairs *p, struct ms_arena *arena, struct ms_str key,
                           struct ms_str value, struct ms_err *err)
{
    bool added;
    uint32_t id = ms_map_put_copy(&p->keys, key, arena, &added);
    struct ms_str *slot = id == MS_MAP_NONE ? NULL
                          : added           ? ms_vec_push(&p->values)
                                            : &p->values.p[id];
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = ms_arena_str(arena, value);
    return slot->p != NULL ? MS_OK : ms_arena_fail(arena, err);
}

static enum ms_rc take_map(struct cmp__pairs *p, struct ms_arena *arena, yaml_document_t *doc,
                           yaml_node_t *node, struct ms_err *err)
{
    if (node->type != YAML_MAPPING_NODE)
        return cmp__yaml_refuse(node, "lines 'name: name'", err);
    for (yaml_node_pair_t *i = node->data.mapping.pairs.start; i < node->data.mapping.pairs.top;
         i++) {
        struct ms_str key, value;
        MS_TRY(cmp__yaml_scalar(yaml_document_get_node(doc, i->key), &key, err));
        MS_TRY(cmp__yaml_scalar(yaml_document_get_node(doc, i->value), &value, err));
        MS_TRY(put_pair(p, arena, key, value, err));
    }
    return MS_OK;
}

static enum ms_rc take_pairs(void *into, yaml_document_t *doc, yaml_node_t *root,
                             struct ms_err *err)
{
    struct cmp__pairs *p = into;
    return take_map(p, p->arena, doc, root, err);
}

static enum ms_rc pairs_done(struct cmp__pairs *p, enum ms_rc rc)
{
    if (rc != MS_OK)
        cmp__pairs_free(p);
    return rc;
}

enum ms_rc cmp__pairs_parse(struct cmp__pairs *p, const char *name, struct ms_str text,
                            struct ms_err *err)
{
    *p = (struct cmp__pairs){0};
    MS_TRY(new_arena(&p->arena, err));
    return pairs_done(p, cmp__yaml_load(name, text, take_pairs, p, err));
}

enum ms_rc cmp__pairs_read(struct cmp__pairs *p, const char *path, struct ms_err *err)
{
    *p = (struct cmp__pairs){0};
    MS_TRY(new_arena(&p->arena, err));
    return pairs_done(p, cmp__yaml_load_file(path, take_pairs, p, err));
}

void cmp__pairs_free(struct cmp__pairs *p)
{
    ms_map_free(&p->keys);
    ms_vec_free(&p->values);
    ms_arena_free(p->arena);
    *p = (struct cmp__pairs){0};
}

/* ---- layers ------------------------------------------------------------- */

enum ms_rc cmp__layers_new(struct cmp__layers *l, struct ms_err *err)
{
    *l = (struct cmp__layers){0};
    return new_arena(&l->arena, err);
}

static struct cmp__pairs *class_of(struct cmp__layers *l, struct ms_str name)
{
    bool added;
    uint32_t id = ms_map_put_copy(&l->classes, name, l->arena, &added);
    struct cmp__pairs *p = id == MS_MAP_NONE ? NULL
                           : added           ? ms_vec_push(&l->maps)
                                             : &l->maps.p[id];
    if (p != NULL && added)
        *p = (struct cmp__pairs){0};
    return p;
}

enum ms_rc cmp__layers_set(struct cmp__layers *l, struct ms_str cls, struct ms_str key,
                           struct ms_str value, struct ms_err *err)
{
    struct cmp__pairs *p = class_of(l, cls);
    return p != NULL ? put_pair(p, l->arena, key, value, err) : ms_no_memory(err);
}

static enum ms_rc take_class(struct cmp__layers *l, struct ms_str name, yaml_document_t *doc,
                             yaml_node_t *map, struct ms_err *err)
{
    if (ms_str_is(name, "Cell")) /* the old spelling of TopLayer */
        name = MS_STR("TopLayer");
    struct cmp__pairs *p = class_of(l, name);
    if (p == NULL)
        return ms_no_memory(err);
    MS_TRY(take_map(p, l->arena, doc, map, err));
    for (size_t i = 0; i < p->values.n; i++) {
        int64_t bracket = ms_str_find(p->values.p[i], '(');
        if (bracket >= 0)
            p->values.p[i].n = (uint32_t)bracket;
    }
    return MS_OK;
}

static enum ms_rc take_layers(void *into, yaml_document_t *doc, yaml_node_t *root,
                              struct ms_err *err)
{
    struct cmp__layers *l = into;
    if (root->type != YAML_MAPPING_NODE)
        return cmp__yaml_refuse(root, "class names with 'name: name' lines below them", err);
    for (yaml_node_pair_t *i = root->data.mapping.pairs.start; i < root->data.mapping.pairs.top;
         i++) {
        struct ms_str name;
        yaml_node_t *map = yaml_document_get_node(doc, i->value);
        MS_TRY(cmp__yaml_scalar(yaml_document_get_node(doc, i->key), &name, err));
        if (map == NULL)
            return ms_fail(err, MS_E_FORMAT, "class %.*s has no lines", MS_STR_ARG(name));
        MS_TRY(take_class(l, name, doc, map, err));
    }
    return MS_OK;
}

static enum ms_rc layers_done(struct cmp__layers *l, enum ms_rc rc)
{
    if (rc != MS_OK)
        cmp__layers_free(l);
    return rc;
}

enum ms_rc cmp__layers_parse(struct cmp__layers *l, const char *name, struct ms_str text,
                             struct ms_err *err)
{
    MS_TRY(cmp__layers_new(l, err));
    return layers_done(l, cmp__yaml_load(name, text, take_layers, l, err));
}

enum ms_rc cmp__layers_read(struct cmp__layers *l, const char *path, struct ms_err *err)
{
    MS_TRY(cmp__layers_new(l, err));
    return layers_done(l, cmp__yaml_load_file(path, take_layers, l, err));
}

void cmp__layers_free(struct cmp__layers *l)
{
    for (size_t i = 0; i < l->maps.n; i++) {
        l->maps.p[i].arena = NULL; /* the classes borrow the arena of l */
        cmp__pairs_free(&l->maps.p[i]);
    }
    ms_map_free(&l->classes);
    ms_vec_free(&l->maps);
    ms_arena_free(l->arena);
    *l = (struct cmp__layers){0};
}

/* ---- apis ----------------------------------------------------------------- */

/* Both spellings of each key are accepted; the first is the one that the official code reads. */
static const char *const part_keys[API_PARTS][2] = {{"args", "arg"},
                                                    {"output", "outputs"},
                                                    {"parameters", "parameter"},
                                                    {"parameters_grad", "parameters_grads"}};

static enum ms_rc copy_scalar(struct ms_arena *arena, const yaml_node_t *node, struct ms_str *out,
                              struct ms_err *err)
{
    struct ms_str text;
    MS_TRY(cmp__yaml_scalar(node, &text, err));
    *out = ms_arena_str(arena, text);
    return out->p != NULL ? MS_OK : ms_arena_fail(arena, err);
}

static enum ms_rc take_indices(struct ms_arena *arena, yaml_document_t *doc, yaml_node_t *node,
                               struct cmp__index_list *list, bool ms, struct ms_err *err)
{
    if (node->type != YAML_SEQUENCE_NODE)
        return cmp__yaml_refuse(node, "a list of positions or names", err);
    for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top;
         i++) {
        struct ms_str *slot = ms ? ms_vec_push(&list->ms) : ms_vec_push(&list->pt);
        if (slot == NULL)
            return ms_no_memory(err);
        MS_TRY(copy_scalar(arena, yaml_document_get_node(doc, *i), slot, err));
    }
    return MS_OK;
}

static bool is_part_key(struct ms_str key, unsigned part)
{
    return ms_str_is(key, part_keys[part][0]) || ms_str_is(key, part_keys[part][1]);
}

static enum ms_rc take_rule_key(struct cmp__api_rule *rule, struct ms_arena *arena,
                                yaml_document_t *doc, const yaml_node_pair_t *pair,
                                struct ms_err *err)
{
    struct ms_str key;
    yaml_node_t *value = yaml_document_get_node(doc, pair->value);
    MS_TRY(cmp__yaml_scalar(yaml_document_get_node(doc, pair->key), &key, err));
    bool ms = ms_str_starts(key, MS_STR("ms_"));
    if (value == NULL || (!ms && !ms_str_starts(key, MS_STR("pt_"))))
        return ms_fail(err, MS_E_FORMAT, "unknown key '%.*s'; keys begin with ms_ or pt_",
                       MS_STR_ARG(key));
    struct ms_str rest = ms_str_sub(key, 3, key.n);
    if (ms_str_is(rest, "api"))
        return copy_scalar(arena, value, ms ? &rule->ms : &rule->pt, err);
    for (unsigned i = 0; i < API_PARTS; i++) {
        if (is_part_key(rest, i))
            return take_indices(arena, doc, value, &rule->part[i], ms, err);
    }
    return ms_fail(err, MS_E_FORMAT,
                   "unknown key '%.*s'; there are api, args, output, parameters, parameters_grad",
                   MS_STR_ARG(key));
}

static enum ms_rc take_rule(struct cmp__api_rules *r, yaml_document_t *doc, yaml_node_t *node,
                            struct ms_err *err)
{
    if (node == NULL || node->type != YAML_MAPPING_NODE)
        return ms_fail(err, MS_E_FORMAT, "expected entries with ms_api and pt_api");
    struct cmp__api_rule *rule = ms_vec_push(&r->list);
    if (rule == NULL)
        return ms_no_memory(err);
    *rule = (struct cmp__api_rule){.valid = true};
    for (yaml_node_pair_t *i = node->data.mapping.pairs.start; i < node->data.mapping.pairs.top;
         i++)
        MS_TRY(take_rule_key(rule, r->arena, doc, i, err));
    if (rule->ms.n == 0 || rule->pt.n == 0)
        return cmp__yaml_refuse(node, "ms_api and pt_api in every entry", err);
    for (unsigned i = 0; i < API_PARTS; i++)
        rule->valid &= rule->part[i].ms.n == rule->part[i].pt.n;
    return MS_OK;
}

static enum ms_rc take_rules(void *into, yaml_document_t *doc, yaml_node_t *root,
                             struct ms_err *err)
{
    struct cmp__api_rules *r = into;
    if (root->type != YAML_SEQUENCE_NODE)
        return take_rule(r, doc, root, err);
    for (yaml_node_item_t *i = root->data.sequence.items.start; i < root->data.sequence.items.top;
         i++)
        MS_TRY(take_rule(r, doc, yaml_document_get_node(doc, *i), err));
    return MS_OK;
}

static enum ms_rc rules_done(struct cmp__api_rules *r, enum ms_rc rc)
{
    if (rc != MS_OK)
        cmp__api_rules_free(r);
    return rc;
}

enum ms_rc cmp__api_rules_parse(struct cmp__api_rules *r, const char *name, struct ms_str text,
                                struct ms_err *err)
{
    *r = (struct cmp__api_rules){0};
    MS_TRY(new_arena(&r->arena, err));
    return rules_done(r, cmp__yaml_load(name, text, take_rules, r, err));
}

enum ms_rc cmp__api_rules_read(struct cmp__api_rules *r, const char *path, struct ms_err *err)
{
    *r = (struct cmp__api_rules){0};
    MS_TRY(new_arena(&r->arena, err));
    return rules_done(r, cmp__yaml_load_file(path, take_rules, r, err));
}

void cmp__api_rules_free(struct cmp__api_rules *r)
{
    for (size_t i = 0; i < r->list.n; i++) {
        for (unsigned k = 0; k < API_PARTS; k++) {
            ms_vec_free(&r->list.p[i].part[k].ms);
            ms_vec_free(&r->list.p[i].part[k].pt);
        }
    }
    ms_vec_free(&r->list);
    ms_arena_free(r->arena);
    *r = (struct cmp__api_rules){0};
}

/* ---- names of partners ------------------------------------------------------ */

static void put_replaced(struct ms_buf *out, struct ms_str s, struct ms_str from, struct ms_str to,
                         bool all)
{
    int64_t at;
    while (from.n != 0 && (at = ms_str_find_str(s, from)) >= 0) {
        ms_buf_put(out, s.p, (size_t)at);
        ms_buf_str(out, to);
        s = ms_str_sub(s, (uint32_t)at + from.n, s.n);
        if (!all)
            break;
    }
    ms_buf_str(out, s);
}

/* Replaces in the text of a buffer. */
static void replace_in(struct ms_buf *text, struct ms_buf *scratch, struct ms_str from,
                       struct ms_str to, bool all)
{
    ms_buf_clear(scratch);
    ms_buf_str(scratch, ms_buf_slice(text));
    ms_buf_clear(text);
    put_replaced(text, ms_buf_slice(scratch), from, to, all);
}

static bool has_component(struct ms_str name, const char *word)
{
    struct ms_str part;
    while (ms_str_split(&name, '.', &part)) {
        if (ms_str_is(part, word))
            return true;
    }
    return false;
}

/* ---- api mapping ------------------------------------------------------ */

const size_t cmp__api_twin_count = sizeof cmp__api_twins / sizeof *cmp__api_twins;

static const char *twin_of(struct ms_str api)
{
    size_t from = 0, to = cmp__api_twin_count;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        int order = ms_str_cmp(ms_str_of(cmp__api_twins[mid].ms), api);
        if (order == 0)
            return cmp__api_twins[mid].pt;
        if (order < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return NULL;
}

void cmp__rename_builtin(struct ms_buf *name, struct ms_buf *scratch)
{
    struct ms_str s = ms_buf_slice(name);
    struct ms_str api = probe_name_head(s, 2);
    if (ms_str_starts(s, MS_STR("Mint."))) {
        replace_in(name, scratch, MS_STR("Mint"), MS_STR("Torch"), true);
    } else if (ms_str_starts(s, MS_STR("MintFunctional."))) {
        replace_in(name, scratch, MS_STR("MintFunctional"), MS_STR("Functional"), true);
    } else {
        const char *twin = twin_of(api);
        char key[256]; /* api points into the text that is replaced below */
        if (twin == NULL || api.n >= sizeof key)
            return;
        memcpy(key, api.p, api.n);
        replace_in(name, scratch, (struct ms_str){key, api.n}, ms_str_of(twin), true);
    }
}

static const char *const part_words[4] = {".input.", ".output.", ".parameters.",
                                          ".parameters_grad."};

static bool translate(const struct cmp__index_list *list, struct ms_str index, struct ms_str *to)
{
    for (size_t i = 0; i < list->ms.n; i++) {
        if (ms_str_eq(list->ms.p[i], index)) {
            *to = list->pt.p[i];
            return true;
        }
    }
    return false;
}

/* Translates the argument index behind ".input." or another part. Returns false when the rule does
 * not list the index. Unless whole is set, the entry of an argument also covers values nested
 * inside it. */
static bool translate_index(struct ms_buf *name, struct ms_buf *scratch,
                            const struct cmp__api_rule *rule, bool whole)
{
    struct ms_str s = ms_buf_slice(name);
    for (unsigned i = 0; i < 4; i++) {
        struct ms_str word = ms_str_of(part_words[i]), to;
        int64_t at = ms_str_find_str(s, word);
        if (at < 0)
            continue;
        uint32_t from = (uint32_t)at + word.n;
        struct ms_str index = ms_str_sub(s, from, s.n), rest = index;
        if (!translate(&rule->part[i], index, &to)) {
            ms_str_split(&rest, '.', &index);
            if (whole || !translate(&rule->part[i], index, &to))
                return false;
        }
        uint32_t end = from + index.n;
        ms_buf_clear(scratch);
        ms_buf_str(scratch, ms_str_sub(s, 0, from));
        ms_buf_str(scratch, to);
        ms_buf_str(scratch, ms_str_sub(s, end, s.n));
        ms_buf_clear(name);
        ms_buf_str(name, ms_buf_slice(scratch));
        return true;
    }
    return true;
}

bool cmp__rename_by_rules(const struct cmp__api_rules *rules, bool whole, struct ms_str original,
                          struct ms_buf *name, struct ms_buf *scratch)
{
    struct ms_str api = probe_name_head(original, 2);
    /* when several rules name one operator, the last wins */
    for (size_t i = rules->list.n; i-- > 0;) {
        const struct cmp__api_rule *rule = &rules->list.p[i];
        if (!rule->valid || !ms_str_eq(rule->ms, api))
            continue;
        ms_buf_clear(name);
        put_replaced(name, original, rule->ms, rule->pt, false);
        return translate_index(name, scratch, rule, whole);
    }
    return true;
}

/* ---- cell mapping ------------------------------------------------------- */

struct ms_str cmp__cell_part(struct ms_str name)
{
    static const char *const ends[] = {".forward.", ".backward.", ".parameters_grad"};
    int64_t dot = ms_str_find(name, '.'), end = INT64_MAX;
    for (size_t i = 0; i < sizeof ends / sizeof *ends && dot >= 0; i++) {
        int64_t at =
            ms_str_find_str(ms_str_sub(name, (uint32_t)dot + 1, name.n), ms_str_of(ends[i]));
        if (at >= 0 && at < end)
            end = at;
    }
    if (dot < 0 || end == INT64_MAX)
        return MS_STR_NONE;
    return ms_str_sub(name, (uint32_t)dot + 1, (uint32_t)(dot + 1 + end));
}

static bool is_cell_row(struct ms_str name)
{
    return ms_str_find_str(name, MS_STR(".forward.")) >= 0 ||
           ms_str_find_str(name, MS_STR(".backward.")) >= 0 ||
           has_component(name, "parameters_grad");
}

static void replace_part(struct ms_buf *name, struct ms_buf *scratch, uint32_t from, uint32_t to,
                         struct ms_str with)
{
    struct ms_str s = ms_buf_slice(name);
    ms_buf_clear(scratch);
    ms_buf_str(scratch, ms_str_sub(s, 0, from));
    ms_buf_str(scratch, with);
    ms_buf_str(scratch, ms_str_sub(s, to, s.n));
    ms_buf_clear(name);
    ms_buf_str(name, ms_buf_slice(scratch));
}

/* Maps the name of a cell: by the line of the whole name, else by all lines for parts of the
 * name. */
static void map_cell(const struct cmp__pairs *map, bool whole_only, struct ms_str cell,
                     struct ms_buf *out, struct ms_buf *scratch)
{
    uint32_t id = ms_map_get(&map->keys, cell);
    ms_buf_clear(out);
    ms_buf_str(out, id != MS_MAP_NONE ? map->values.p[id] : cell);
    for (uint32_t i = 0; i < map->keys.keys.n && id == MS_MAP_NONE && !whole_only; i++)
        replace_in(out, scratch, ms_map_key(&map->keys, i), map->values.p[i], false);
}

bool cmp__rename_cell(const struct cmp__pairs *map, bool whole_only, struct ms_buf *name,
                      struct ms_buf *scratch, struct ms_buf *cell)
{
    if (!is_cell_row(ms_buf_slice(name)))
        return false;
    replace_in(name, scratch, MS_STR("Cell"), MS_STR("Module"), false);
    struct ms_str s = ms_buf_slice(name), part = cmp__cell_part(s);
    if (map == NULL || part.p == NULL)
        return true;
    map_cell(map, whole_only, part, cell, scratch);
    uint32_t from = (uint32_t)(part.p - s.p);
    replace_part(name, scratch, from, from + part.n, ms_buf_slice(cell));
    return true;
}

/* ---- fuzzy -------------------------------------------------------------- */

void cmp__rename_fuzzy(struct ms_buf *name, struct ms_buf *scratch)
{
    struct ms_str s = ms_buf_slice(name);
    int64_t at = ms_str_find_str(s, MS_STR("forward"));
    if (at < 0)
        at = ms_str_find_str(s, MS_STR("backward"));
    if (at <= 0)
        return;
    /* left is "Torch.a.3.": cut at the dot before its last component */
    struct ms_str left = ms_str_sub(s, 0, (uint32_t)at - 1);
    int64_t dot = ms_str_rfind(left, '.');
    if (dot >= 0)
        replace_part(name, scratch, (uint32_t)dot + 1, (uint32_t)at, MS_STR(""));
}

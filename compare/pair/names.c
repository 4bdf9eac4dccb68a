/* SPDX-License-Identifier: MIT
 *
 * names: names that a mapping file may use, and those of a file that neither dump has.
 */
#include "compare/pair/names.h"
#include "compare/pair/mapping.h"

/* ---- names of a dump -------------------------------------------------------- */

enum { NAME_BYTES = 1 << 20, TOLD = 10 };

static enum ms_rc put_name(struct cmp__names *n, struct ms_str name, struct cmp__named what,
                           struct ms_err *err)
{
    bool added;
    if (ms_map_put_copy(&n->map, name, n->arena, &added) == MS_MAP_NONE)
        return ms_no_memory(err);
    if (!added)
        return MS_OK;
    struct cmp__named *slot = ms_vec_push(&n->list);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = what;
    return MS_OK;
}

static enum ms_rc put_rows(struct cmp__names *n, struct ms_err *err)
{
    struct ms_buf name = {.max = NAME_BYTES};
    enum ms_rc rc = MS_OK;
    for (uint32_t i = 0; i < n->dump->rows.n && rc == MS_OK; i++) {
        const struct probe_row *row = &n->dump->rows.p[i];
        ms_buf_clear(&name);
        probe_row_name(n->dump, row, &name);
        rc = ms_buf_check(&name, err);
        if (rc == MS_OK)
            rc = put_name(n, ms_buf_slice(&name), (struct cmp__named){row->node, i}, err);
    }
    ms_buf_free(&name);
    return rc;
}

enum ms_rc cmp__names_list(struct cmp__names *n, const struct probe_dump *d, bool nodes,
                           struct ms_err *err)
{
    *n = (struct cmp__names){.dump = d, .arena = ms_arena_new((size_t)8 << 30)};
    enum ms_rc rc = n->arena != NULL ? MS_OK : ms_no_memory(err);
    for (uint32_t i = 0; nodes && i < d->nodes.n && rc == MS_OK; i++)
        rc = put_name(n, probe_node_name(d, i), (struct cmp__named){i, MS_MAP_NONE}, err);
    return rc == MS_OK ? put_rows(n, err) : rc;
}

void cmp__names_free(struct cmp__names *n)
{
    ms_map_free(&n->map);
    ms_vec_free(&n->list);
    ms_arena_free(n->arena);
    *n = (struct cmp__names){0};
}

const struct cmp__named *cmp__names_find(const struct cmp__names *n, struct ms_str name)
{
    uint32_t at = ms_map_get(&n->map, name);
    return at != MS_MAP_NONE ? &n->list.p[at] : NULL;
}

void cmp__names_offer(const struct cmp__names *n, struct ms_near *near)
{
    for (uint32_t i = 0; i < n->map.keys.n; i++) /* texts of the arena end with a NUL */
        ms_near_offer(near, n->map.keys.p[i].p);
}

const char *cmp__names_near(const struct cmp__names *n, const char *word)
{
    struct ms_near near = {.word = word};
    cmp__names_offer(n, &near);
    return near.best;
}

/* ---- names that are nowhere --------------------------------------------- */

bool cmp__unknown_is_reported(const struct cmp__unknown *u)
{
    return u->n < TOLD;
}

enum ms_rc cmp__unknown_report(struct cmp__unknown *u, struct ms_str name, const char *near,
                               struct ms_err *err)
{
    if (u->n++ >= TOLD)
        return MS_OK;
    if (near == NULL)
        return cmp__problem(u->problems, err, "%s: the %s has no %s '%.*s'", u->file, u->side,
                            u->what, MS_STR_ARG(name));
    return cmp__problem(u->problems, err, "%s: the %s has no %s '%.*s'; did you mean '%s'?",
                        u->file, u->side, u->what, MS_STR_ARG(name), near);
}

enum ms_rc cmp__unknown_end(const struct cmp__unknown *u, struct ms_err *err)
{
    if (u->n <= TOLD)
        return MS_OK;
    return cmp__problem(u->problems, err, "%s: %zu more names that the %s does not have", u->file,
                        u->n - TOLD, u->side);
}

/* ---- names of mapping files ------------------------------------------------- */

/* Finds names in mapping files that neither dump has.
 *
 * The known names are a map of texts; a mapping file may use one of them or some components
 * of one. The suggestion for an unknown name is therefore chosen among all runs of as many
 * components. */

#define TEXTS_MAX ((size_t)2 << 30)
enum { TEXT_BYTES = 1 << 20 };

struct texts {
    struct ms_map map;
    struct ms_arena *arena;
};

static enum ms_rc texts_begin(struct texts *t, struct ms_err *err)
{
    *t = (struct texts){.arena = ms_arena_new(TEXTS_MAX)};
    return t->arena != NULL ? MS_OK : ms_no_memory(err);
}

static void texts_free(struct texts *t)
{
    ms_map_free(&t->map);
    ms_arena_free(t->arena);
}

static enum ms_rc texts_put(struct texts *t, struct ms_str text, struct ms_err *err)
{
    return ms_map_put_copy(&t->map, text, t->arena, NULL) != MS_MAP_NONE ? MS_OK
                                                                         : ms_no_memory(err);
}

/* ---- known names ------------------------------------------------------------ */

/* Tells whether the text contains the word; with whole, as complete components. */
static bool has_part(struct ms_str text, struct ms_str word, bool whole)
{
    int64_t found;
    for (uint32_t at = 0; at <= text.n; at += (uint32_t)found + 1) {
        found = ms_str_find_str(ms_str_sub(text, at, text.n), word);
        if (found < 0)
            return false;
        uint32_t from = at + (uint32_t)found, to = from + word.n;
        if (!whole ||
            ((from == 0 || text.p[from - 1] == '.') && (to == text.n || text.p[to] == '.')))
            return true;
    }
    return false;
}

static bool is_known(const struct ms_map *texts, struct ms_str word, bool whole)
{
    if (word.n == 0 || ms_map_get(texts, word) != MS_MAP_NONE)
        return true;
    for (uint32_t i = 0; i < texts->keys.n; i++) {
        if (has_part(ms_map_key(texts, i), word, whole))
            return true;
    }
    return false;
}

/* ---- suggestions --------------------------------------------------------------- */

/* Adds all runs of n components; of a shorter text the whole. */
static enum ms_rc put_runs(struct texts *runs, struct ms_str text, unsigned n, struct ms_err *err)
{
    struct ms_str rest = text, part = MS_STR("");
    for (unsigned have = probe_name_parts(text);; have--) {
        struct ms_str tail = rest;
        for (unsigned i = 0; i < n && ms_str_split(&tail, '.', &part); i++)
            ;
        uint32_t end = have > n ? (uint32_t)(part.p + part.n - rest.p) : rest.n;
        MS_TRY(texts_put(runs, ms_str_sub(rest, 0, end), err));
        if (have <= n || !ms_str_split(&rest, '.', &part))
            return MS_OK;
    }
}

static enum ms_rc offer_runs(struct texts *runs, const struct ms_map *texts, unsigned n,
                             struct ms_near *near, struct ms_err *err)
{
    for (uint32_t i = 0; i < texts->keys.n; i++)
        MS_TRY(put_runs(runs, ms_map_key(texts, i), n, err));
    for (uint32_t i = 0; i < runs->map.keys.n; i++) /* texts of the arena end with a NUL */
        ms_near_offer(near, runs->map.keys.p[i].p);
    return MS_OK;
}

static enum ms_rc report_unknown(struct cmp__unknown *u, const struct ms_map *texts,
                                 struct ms_str word, struct ms_err *err)
{
    if (!cmp__unknown_is_reported(u))
        return cmp__unknown_report(u, word, NULL, err);
    struct texts runs;
    MS_TRY(texts_begin(&runs, err));
    char *z = ms_str_dup(word);
    struct ms_near near = {.word = z};
    enum ms_rc rc = z != NULL ? offer_runs(&runs, texts, probe_name_parts(word), &near, err)
                              : ms_no_memory(err);
    if (rc == MS_OK)
        rc = cmp__unknown_report(u, word, near.best, err);
    ms_free(z);
    texts_free(&runs);
    return rc;
}

static enum ms_rc check_word(struct cmp__unknown *u, const struct ms_map *texts, struct ms_str word,
                             bool whole, struct ms_err *err)
{
    if (ms_str_is(word, "N/A") || is_known(texts, word, whole))
        return MS_OK;
    return report_unknown(u, texts, word, err);
}

/* ---- -am --------------------------------------------------------------------- */

static const char *const parts[] = {".input.", ".output.", ".parameters.", ".parameters_grad."};
enum { PARTS = sizeof parts / sizeof *parts };

/* Adds Functional.add.input.0 for the row Functional.add.3.forward.input.0; for the row
 * ...input.0.1 adds both Functional.add.input.0.1 and Functional.add.input.0. */
static enum ms_rc put_argument(struct texts *t, struct ms_str row, struct ms_buf *text,
                               struct ms_err *err)
{
    for (size_t i = 0; i < PARTS; i++) {
        int64_t at = ms_str_find_str(row, ms_str_of(parts[i]));
        if (at < 0)
            continue;
        struct ms_str index = ms_str_sub(row, (uint32_t)at + (uint32_t)strlen(parts[i]), row.n);
        ms_buf_clear(text);
        ms_buf_str(text, probe_name_head(row, 2));
        ms_buf_puts(text, parts[i]);
        ms_buf_str(text, index);
        MS_TRY(ms_buf_check(text, err));
        struct ms_str all = ms_buf_slice(text), first;
        uint32_t before = all.n - index.n;
        MS_TRY(texts_put(t, all, err));
        ms_str_split(&index, '.', &first);
        return texts_put(t, ms_str_sub(all, 0, before + first.n), err);
    }
    return MS_OK;
}

/* Lists the operators of a side that have rows, and their arguments. */
static enum ms_rc list_arguments(struct texts *t, const struct probe_dump *d, struct ms_err *err)
{
    struct ms_buf name = {.max = TEXT_BYTES}, text = {.max = TEXT_BYTES};
    enum ms_rc rc = MS_OK;
    for (uint32_t i = 0; i < d->nodes.n && rc == MS_OK; i++)
        rc = d->nodes.p[i].nrows != 0 ? texts_put(t, probe_name_head(probe_node_name(d, i), 2), err)
                                      : MS_OK;
    for (uint32_t i = 0; i < d->rows.n && rc == MS_OK; i++) {
        ms_buf_clear(&name);
        probe_row_name(d, &d->rows.p[i], &name);
        rc = ms_buf_check(&name, err);
        if (rc == MS_OK)
            rc = put_argument(t, ms_buf_slice(&name), &text, err);
    }
    ms_buf_free(&name);
    ms_buf_free(&text);
    return rc;
}

struct rule_check {
    struct cmp__unknown unknown[2]; /* golden, target */
    struct texts known[2];
    struct ms_buf text;
};

static enum ms_rc check_arguments(struct rule_check *k, const struct cmp__api_rule *rule,
                                  bool target, struct ms_err *err)
{
    for (size_t i = 0; i < PARTS; i++) {
        size_t n = target ? rule->part[i].ms.n : rule->part[i].pt.n;
        const struct ms_str *list = target ? rule->part[i].ms.p : rule->part[i].pt.p;
        for (size_t at = 0; at < n; at++) {
            ms_buf_clear(&k->text);
            ms_buf_str(&k->text, target ? rule->ms : rule->pt);
            ms_buf_puts(&k->text, parts[i]);
            ms_buf_str(&k->text, list[at]);
            MS_TRY(ms_buf_check(&k->text, err));
            if (ms_map_get(&k->known[target].map, ms_buf_slice(&k->text)) == MS_MAP_NONE)
                MS_TRY(report_unknown(&k->unknown[target], &k->known[target].map,
                                      ms_buf_slice(&k->text), err));
        }
    }
    return MS_OK;
}

static enum ms_rc check_rule(struct rule_check *k, struct cmp__api_rule *rule, struct ms_err *err)
{
    struct cmp__unknown *u = k->unknown;
    if (!rule->valid)
        return cmp__problem(u->problems, err,
                            "%s: the entry of '%.*s' is left out: it lists more of one side's "
                            "arguments than of the other's",
                            u->file, MS_STR_ARG(rule->ms));
    for (int target = 1; target >= 0; target--) {
        struct ms_str api = target ? rule->ms : rule->pt;
        if (ms_map_get(&k->known[target].map, api) != MS_MAP_NONE)
            continue;
        rule->valid = false;
        MS_TRY(report_unknown(&u[target], &k->known[target].map, api, err));
    }
    for (int target = 1; target >= 0 && rule->valid; target--)
        MS_TRY(check_arguments(k, rule, target, err));
    return MS_OK;
}

static enum ms_rc check_rules(struct rule_check *k, struct cmp_rows *c,
                              struct cmp__api_rules *rules, struct ms_err *err)
{
    MS_TRY(texts_begin(&k->known[0], err));
    MS_TRY(texts_begin(&k->known[1], err));
    MS_TRY(list_arguments(&k->known[0], c->b.dump, err));
    MS_TRY(list_arguments(&k->known[1], c->t.dump, err));
    for (size_t i = 0; i < rules->list.n; i++)
        MS_TRY(check_rule(k, &rules->list.p[i], err));
    MS_TRY(cmp__unknown_end(&k->unknown[1], err));
    return cmp__unknown_end(&k->unknown[0], err);
}

enum ms_rc cmp__check_rules(struct cmp_rows *c, struct cmp__api_rules *rules, struct ms_err *err)
{
    const char *file = c->set->conf.api.file;
    struct rule_check k = {.unknown = {{&c->problems, file, "golden side", "operator", 0},
                                       {&c->problems, file, "target", "operator", 0}},
                           .text.max = TEXT_BYTES};
    enum ms_rc rc = check_rules(&k, c, rules, err);
    ms_buf_free(&k.text);
    texts_free(&k.known[0]);
    texts_free(&k.known[1]);
    return rc;
}

/* ---- -cm --------------------------------------------------------------------- */

static enum ms_rc list_cells(struct texts *t, const struct probe_dump *d, struct ms_err *err)
{
    struct ms_buf name = {.max = TEXT_BYTES};
    enum ms_rc rc = MS_OK;
    for (uint32_t i = 0; i < d->nodes.n && rc == MS_OK; i++) {
        ms_buf_clear(&name);
        ms_buf_str(&name, probe_node_name(d, i));
        ms_buf_putc(&name, '.'); /* row names continue with a dot */
        rc = ms_buf_check(&name, err);
        struct ms_str cell = cmp__cell_part(ms_buf_slice(&name));
        if (rc == MS_OK && cell.p != NULL)
            rc = texts_put(t, cell, err);
    }
    ms_buf_free(&name);
    return rc;
}

static enum ms_rc check_cells_of(struct cmp__unknown *u, const struct probe_dump *d,
                                 const struct cmp__pairs *cells, bool target, struct ms_err *err)
{
    struct texts known;
    MS_TRY(texts_begin(&known, err));
    enum ms_rc rc = list_cells(&known, d, err);
    for (uint32_t i = 0; i < cells->keys.keys.n && rc == MS_OK; i++)
        rc = check_word(u, &known.map, target ? ms_map_key(&cells->keys, i) : cells->values.p[i],
                        false, err);
    texts_free(&known);
    return rc == MS_OK ? cmp__unknown_end(u, err) : rc;
}

enum ms_rc cmp__check_cells(struct cmp_rows *c, const struct cmp__pairs *cells, struct ms_err *err)
{
    struct cmp__unknown t = {&c->problems, c->set->conf.cell.file, "target", "module", 0};
    struct cmp__unknown b = {&c->problems, c->set->conf.cell.file, "golden side", "module", 0};
    MS_TRY(check_cells_of(&t, c->t.dump, cells, true, err));
    return check_cells_of(&b, c->b.dump, cells, false, err);
}

/* ---- -lm --------------------------------------------------------------------- */

/* Adds the modules around `path` that have no place of their own; their class is their name. */
static enum ms_rc put_containers(struct texts *classes, const struct ms_map *places,
                                 struct ms_str path, struct ms_err *err)
{
    for (int64_t dot = ms_str_rfind(path, '.'); dot > 0; dot = ms_str_rfind(path, '.')) {
        path = ms_str_sub(path, 0, (uint32_t)dot);
        if (ms_map_get(places, path) == MS_MAP_NONE)
            MS_TRY(texts_put(classes, probe_name_last(path), err));
    }
    return MS_OK;
}

static enum ms_rc check_classes(struct cmp_rows *c, const struct cmp__layers *layers,
                                const struct cmp__known_layers *known, struct ms_err *err)
{
    struct cmp__unknown u = {&c->problems, c->set->conf.layer.file, "target", "class", 0};
    struct texts classes;
    MS_TRY(texts_begin(&classes, err));
    enum ms_rc rc = texts_put(&classes, MS_STR("TopLayer"), err);
    for (size_t i = 0; i < known->n_classes && rc == MS_OK; i++)
        rc = texts_put(&classes, known->classes[i], err);
    for (uint32_t i = 0; i < known->target->keys.n && rc == MS_OK; i++)
        rc = put_containers(&classes, known->target, ms_map_key(known->target, i), err);
    for (uint32_t i = 0; i < layers->classes.keys.n && rc == MS_OK; i++)
        rc = check_word(&u, &classes.map, ms_map_key(&layers->classes, i), true, err);
    texts_free(&classes);
    return rc == MS_OK ? cmp__unknown_end(&u, err) : rc;
}

static enum ms_rc check_places(struct cmp__unknown *u, const struct cmp__layers *layers,
                               const struct ms_map *known, bool target, struct ms_err *err)
{
    for (size_t k = 0; k < layers->maps.n; k++) {
        const struct cmp__pairs *map = &layers->maps.p[k];
        for (uint32_t i = 0; i < map->keys.keys.n; i++) {
            struct ms_str word = target ? ms_map_key(&map->keys, i) : map->values.p[i];
            if (target || !ms_str_is(word, "N/A")) /* N/A: no partner */
                MS_TRY(check_word(u, known, word, true, err));
        }
    }
    return cmp__unknown_end(u, err);
}

enum ms_rc cmp__check_layers(struct cmp_rows *c, const struct cmp__layers *layers,
                             const struct cmp__known_layers *known, struct ms_err *err)
{
    struct cmp__unknown t = {&c->problems, c->set->conf.layer.file, "target", "layer", 0};
    struct cmp__unknown b = {&c->problems, c->set->conf.layer.file, "golden side", "layer", 0};
    MS_TRY(check_classes(c, layers, known, err));
    MS_TRY(check_places(&t, layers, known->target, true, err));
    return check_places(&b, layers, known->golden, false, err);
}

/* ---- -dm --------------------------------------------------------------------- */

static enum ms_rc check_row_name(struct cmp__unknown *u, const struct cmp__names *names,
                                 struct ms_str name, struct ms_err *err)
{
    if (ms_str_is(name, "N/A") || cmp__names_find(names, name) != NULL)
        return MS_OK;
    char *z = cmp__unknown_is_reported(u) ? ms_str_dup(name) : NULL;
    if (z == NULL && cmp__unknown_is_reported(u))
        return ms_no_memory(err);
    enum ms_rc rc = cmp__unknown_report(u, name, z != NULL ? cmp__names_near(names, z) : NULL, err);
    ms_free(z);
    return rc;
}

static enum ms_rc check_rows_of(struct cmp_rows *c, bool golden, struct ms_err *err)
{
    const struct cmp__pairs *map = &c->row_map;
    struct cmp__unknown u = {&c->problems, c->set->conf.data_mapping,
                             golden ? "golden side" : "target", "row", 0};
    struct cmp__names names;
    enum ms_rc rc = cmp__names_list(&names, golden ? c->b.dump : c->t.dump, false, err);
    for (uint32_t i = 0; i < map->keys.keys.n && rc == MS_OK; i++)
        rc = check_row_name(&u, &names, golden ? map->values.p[i] : ms_map_key(&map->keys, i), err);
    if (rc == MS_OK)
        rc = cmp__unknown_end(&u, err);
    cmp__names_free(&names);
    return rc;
}

enum ms_rc cmp__check_names(struct cmp_rows *c, struct ms_err *err)
{
    MS_TRY(check_rows_of(c, false, err));
    return check_rows_of(c, true, err);
}

/* SPDX-License-Identifier: MIT
 *
 * rename: computes the name of a target row's partner.
 */
#include "compare/pair/rename.h"
#include "probe/dump/name.h"

#include "compare/pair/api_twins.h"

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

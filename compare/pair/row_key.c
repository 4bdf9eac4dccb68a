/* SPDX-License-Identifier: MIT
 *
 * row_key: makes the key of a row from its name and the mappings.
 */
#include "compare/pair/row_key.h"

#include "compare/pair/layer.h"
#include "compare/pair/map_names.h"
#include "compare/pair/rename.h"

enum { NAME_MAX_BYTES = 1 << 20 };

/* Tells whether a mapping of row names is used. Of several mappings the official tool uses only
 * one, and that of rows last; an empty mapping of rows counts as none. */
static bool has_row_map(const struct cmp__keys *keys)
{
    const struct cmp_rows *c = keys->c;
    if (c->set->conf.rules->one_mapping &&
        (c->set->conf.api.on || c->set->conf.cell.on || c->row_map.keys.keys.n == 0))
        return false;
    return c->row_map.arena != NULL;
}

static bool has_cell_map(const struct cmp__keys *keys)
{
    const struct cmp_rows *c = keys->c;
    return c->set->conf.cell.on && !(c->set->conf.rules->one_mapping && c->set->conf.api.on);
}

/* ---- mapping files -------------------------------------------------------- */

static enum ms_rc read_mappings(struct cmp__keys *keys, struct cmp_rows *c, struct ms_err *err)
{
    const struct cmp_conf *conf = &c->set->conf;
    if (conf->data_mapping != NULL)
        return cmp__pairs_read(&c->row_map, conf->data_mapping, err);
    /* The official tool ignores -lm unless the target comes from MindSpore. */
    bool layers = conf->layer.on && (!c->set->conf.rules->layers_of_mindspore ||
                                     c->t.dump->framework == PROBE_FW_MINDSPORE ||
                                     c->t.dump->framework == PROBE_FW_MINDTORCH);
    if (layers)
        MS_TRY(cmp__layer_pairs(c, &c->row_map, err));
    if (has_row_map(keys))
        return MS_OK;
    if (conf->api.on && conf->api.file != NULL) {
        MS_TRY(cmp__api_rules_read(&keys->rules, conf->api.file, err));
        MS_TRY(cmp__check_rules(c, &keys->rules, err));
    }
    if (has_cell_map(keys) && conf->cell.file != NULL) {
        MS_TRY(cmp__pairs_read(&keys->cells, conf->cell.file, err));
        MS_TRY(cmp__check_cells(c, &keys->cells, err));
    }
    return MS_OK;
}

static void choose_numbers(struct cmp__keys *keys)
{
    const struct cmp_conf *conf = &keys->c->set->conf;
    if (conf->fuzzy || keys->c->t.is_debug || !conf->rules->counts_calls)
        return;
    bool mapped = has_row_map(keys) || conf->api.on || conf->cell.on;
    /* a defect of the official tool: with a mapping it renumbers the golden side only */
    if (conf->rules->renumbers_golden_alone) {
        keys->renumber_t = !mapped;
        keys->renumber_b = true;
    } else {
        keys->renumber_t = keys->renumber_b = !has_row_map(keys);
    }
}

enum ms_rc cmp__keys_read(struct cmp__keys *keys, struct cmp_rows *c, struct ms_err *err)
{
    *keys = (struct cmp__keys){.c = c};
    MS_TRY(read_mappings(keys, c, err));
    choose_numbers(keys);
    return MS_OK;
}

void cmp__keys_free(struct cmp__keys *keys)
{
    cmp__pairs_free(&keys->cells);
    cmp__api_rules_free(&keys->rules);
}

/* ---- keys ------------------------------------------------------------------ */

void cmp__keyer_init(struct cmp__keyer *k, const struct cmp__keys *keys)
{
    *k = (struct cmp__keyer){.keys = keys,
                             .name.max = NAME_MAX_BYTES,
                             .scratch.max = NAME_MAX_BYTES,
                             .original.max = NAME_MAX_BYTES};
}

enum ms_rc cmp__keyer_end(struct cmp__keyer *k, struct ms_err *err)
{
    enum ms_rc rc = ms_buf_check(&k->name, err);
    ms_buf_free(&k->name);
    ms_buf_free(&k->scratch);
    ms_buf_free(&k->original);
    return rc;
}

static void put_shape(const struct cmp__side *s, uint32_t row, struct ms_buf *out)
{
    struct probe_leaf leaf;
    probe_row_leaf(s->dump, cmp__side_row(s, row), &leaf);
    ms_buf_putc(out, '\n');
    for (uint32_t i = 0; i < leaf.shape_json.n; i++) {
        if (leaf.shape_json.p[i] > ' ')
            ms_buf_putc(out, leaf.shape_json.p[i]);
    }
}

/* Applies the last changes to a key. msprobe 1.x also puts the shape into the key, unless a mapping
 * names the rows. */
static void finish_key(struct cmp__keyer *k, const struct cmp__side *s, uint32_t row)
{
    if (k->keys->c->set->conf.fuzzy)
        cmp__rename_fuzzy(&k->name, &k->scratch);
    if (k->keys->c->set->conf.rules->shape_in_key && !has_row_map(k->keys))
        put_shape(s, row, &k->name);
}

static bool rename_by_api(struct cmp__keyer *k)
{
    const struct cmp__api_rules *rules = &k->keys->rules;
    ms_buf_clear(&k->original);
    ms_buf_str(&k->original, ms_buf_slice(&k->name));
    cmp__rename_builtin(&k->name, &k->scratch);
    return rules->arena == NULL ||
           cmp__rename_by_rules(rules, k->keys->c->set->conf.rules->drops_unmapped,
                                ms_buf_slice(&k->original), &k->name, &k->scratch);
}

static bool rename_by_mapping(struct cmp__keyer *k)
{
    const struct cmp__keys *keys = k->keys;
    const struct cmp_conf *conf = &keys->c->set->conf;
    if (conf->api.on && !rename_by_api(k))
        return false;
    return !has_cell_map(keys) ||
           cmp__rename_cell(keys->cells.arena != NULL ? &keys->cells : NULL,
                            conf->rules->maps_cells_once, &k->name, &k->scratch, &k->original);
}

static void rename_by_row(struct cmp__keyer *k)
{
    const struct cmp__pairs *map = &k->keys->c->row_map;
    uint32_t id = ms_map_get(&map->keys, ms_buf_slice(&k->name));
    if (id == MS_MAP_NONE)
        return;
    ms_buf_clear(&k->name);
    ms_buf_str(&k->name, map->values.p[id]);
}

bool cmp__key_target(struct cmp__keyer *k, uint32_t row)
{
    const struct cmp__side *s = &k->keys->c->t;
    ms_buf_clear(&k->name);
    cmp__side_name(s, row, k->keys->renumber_t, &k->name);
    if (has_row_map(k->keys))
        rename_by_row(k);
    else if (!rename_by_mapping(k))
        return false;
    finish_key(k, s, row);
    return true;
}

bool cmp__key_golden(struct cmp__keyer *k, uint32_t row)
{
    const struct cmp__side *s = &k->keys->c->b;
    ms_buf_clear(&k->name);
    cmp__side_name(s, row, k->keys->renumber_b, &k->name);
    finish_key(k, s, row);
    return true;
}

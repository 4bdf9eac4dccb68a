/* SPDX-License-Identifier: MIT
 *
 * config_table: rows of a table, and the members that they are made of.
 */
#include "compare/config/config_checks_int.h"

/* ---- rows ------------------------------------------------------------------------------------ */

struct ms_plain *cfg__word(struct ms_arena *a, const char *z)
{
    return cfg_text(a, ms_str_of(z));
}

enum ms_rc cfg__row(struct cfg_check *k, const struct ms_plain *const *cells)
{
    for (unsigned i = 0; i < k->t->columns; i++) {
        const struct ms_plain **slot = ms_vec_push(&k->t->cells);
        if (slot == NULL)
            return ms_no_memory(k->err);
        *slot = cells[i];
    }
    return MS_OK;
}

size_t cfg_table_rows(const struct cfg_table *t)
{
    return t->columns != 0 ? t->cells.n / t->columns : 0;
}

/* ---- members --------------------------------------------------------------------------------- */

const struct probe_zip_member *cfg__member(const struct cfg_check *k, int side, struct ms_str name)
{
    return probe_zip_large_find(&k->sides->zip[side].zip, name);
}

enum ms_rc cfg__text(struct cfg_check *k, int side, const struct probe_zip_member *m,
                     struct ms_str *text)
{
    return cfg_zip_text(&k->sides->zip[side], m, k->sides->a, text, k->err);
}

enum ms_rc cfg__json(struct cfg_check *k, int side, struct ms_str name, const struct ms_plain **v)
{
    struct ms_str text;
    const struct probe_zip_member *m = cfg__member(k, side, name);
    char shown[MS_STR_SHOWN];
    MS_TRY(cfg__text(k, side, m, &text));
    MS_TRY(cfg_value_parse(v, ms_str_shown(shown, name), text, k->sides->a, k->err));
    if ((*v)->kind == MS_PLAIN_DICT)
        return MS_OK;
    return ms_fail(k->err, MS_E_FORMAT, "%s: member %s is no JSON object", k->sides->zip[side].path,
                   shown);
}

/* SPDX-License-Identifier: MIT
 *
 * fuzz mapping: any bytes as each kind of mapping file.  What is read as pairs can
 * be written by the writer's rules and read again; rules never have lists of unequal
 * length and are valid too.
 */
#include "compare/measure/multiply.h"
#include "compare/pair/mapping.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool fine)
{
    if (!fine)
        __builtin_trap();
}

static void try_pairs(struct ms_str text)
{
    struct cmp__pairs p;
    struct ms_buf name = {.max = 1 << 16}, scratch = {.max = 1 << 16}, cell = {.max = 1 << 16};
    if (cmp__pairs_parse(&p, "fuzz", text, NULL) != MS_OK)
        return;
    check(p.keys.keys.n == p.values.n);
    for (uint32_t i = 0; i < p.values.n; i++)
        check(ms_map_get(&p.keys, ms_map_key(&p.keys, i)) == i);
    ms_buf_puts(&name, "Cell.a.b.Class.forward.0.input.0");
    check(cmp__rename_cell(&p, false, &name, &scratch, &cell) || p.keys.keys.n != 0);
    cmp__pairs_free(&p);
    ms_buf_free(&name);
    ms_buf_free(&scratch);
    ms_buf_free(&cell);
}

static void try_rules(struct ms_str text)
{
    struct cmp__api_rules r;
    struct ms_buf name = {.max = 1 << 16}, scratch = {.max = 1 << 16};
    if (cmp__api_rules_parse(&r, "fuzz", text, NULL) != MS_OK)
        return;
    for (size_t i = 0; i < r.list.n; i++) {
        const struct cmp__api_rule *rule = &r.list.p[i];
        check(rule->ms.n != 0 && rule->pt.n != 0);
        for (unsigned k = 0; k < 4; k++)
            check(!rule->valid || rule->part[k].ms.n == rule->part[k].pt.n);
    }
    const struct ms_str row = MS_STR("Functional.fa.0.forward.input.0.1");
    ms_buf_str(&name, row);
    if (cmp__rename_by_rules(&r, true, row, &name, &scratch)) /* what is covered part by part */
        check(cmp__rename_by_rules(&r, false, row, &name, &scratch));
    cmp__api_rules_free(&r);
    ms_buf_free(&name);
    ms_buf_free(&scratch);
}

static void try_layers(struct ms_str text)
{
    struct cmp__layers l;
    if (cmp__layers_parse(&l, "fuzz", text, NULL) != MS_OK)
        return;
    check(l.classes.keys.n == l.maps.n);
    for (size_t i = 0; i < l.maps.n; i++) {
        for (size_t k = 0; k < l.maps.p[i].values.n; k++)
            check(ms_str_find(l.maps.p[i].values.p[k], '(') < 0);
    }
    cmp__layers_free(&l);
}

static void try_factors(struct ms_str text)
{
    struct cmp_rows c = {.problems = {.arena = NULL}};
    struct cmp__factors *f;
    if (cmp__factors_parse(&f, &c, "fuzz", text, NULL) == MS_OK)
        cmp__factors_free(f);
    cmp__problems_free(&c.problems);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 << 16)
        return 0;
    struct ms_str text = {(const char *)data, (uint32_t)size};
    try_pairs(text);
    try_rules(text);
    try_layers(text);
    try_factors(text);
    return 0;
}

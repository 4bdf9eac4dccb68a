/* SPDX-License-Identifier: MIT
 *
 * alike_rows: see the header.
 */
#include "mstx/conclude/alike_rows.h"

#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdlib.h>

enum { FAMILY_MIN = 4, ODD_MAX = 3, KEY_MAX = 1 << 16, TEXT_MAX = 1 << 30 };
static const double ODD = 1.2; /* times the median: clearly slower than the others */

/* ---- families --------------------------------------------------------------- */

enum ms_rc mstx__families_begin(struct mstx_families *f, struct ms_err *err)
{
    *f = (struct mstx_families){.arena = ms_arena_new(TEXT_MAX)};
    return f->arena != NULL ? MS_OK : ms_no_memory(err);
}

/* Writes a name with each number as "#". */
static void put_without_numbers(struct ms_buf *key, struct ms_str name)
{
    for (uint32_t i = 0; i < name.n; i++) {
        const bool is_digit = name.p[i] >= '0' && name.p[i] <= '9';
        const bool was_digit = i != 0 && name.p[i - 1] >= '0' && name.p[i - 1] <= '9';
        if (!is_digit)
            ms_buf_putc(key, name.p[i]);
        else if (!was_digit)
            ms_buf_putc(key, '#');
    }
}

enum ms_rc mstx__family_find(struct mstx_families *f, struct ms_str kind, struct ms_str name,
                             uint32_t *family, struct ms_err *err)
{
    struct ms_buf key = {.max = KEY_MAX};
    ms_buf_str(&key, ms_str_sub(kind, 0, KEY_MAX / 4));
    ms_buf_putc(&key, '\0');
    put_without_numbers(&key, ms_str_sub(name, 0, KEY_MAX / 4));
    enum ms_rc rc = ms_buf_check(&key, err);
    if (rc == MS_OK) {
        *family = ms_map_put_copy(&f->keys, ms_buf_slice(&key), f->arena, NULL);
        rc = *family != MS_MAP_NONE ? MS_OK : ms_no_memory(err);
    }
    ms_buf_free(&key);
    return rc;
}

void mstx__families_free(struct mstx_families *f)
{
    ms_map_free(&f->keys);
    ms_arena_free(f->arena);
}

/* ---- folding ---------------------------------------------------------------- */

/* A row with its index and the weight of its family. */
struct place {
    struct mstx_foldable row;
    uint32_t index;
    double family_weight;
};

static int by_family(const void *pa, const void *pb)
{
    const struct place *a = pa, *b = pb;
    if (a->family_weight != b->family_weight)
        return a->family_weight > b->family_weight ? -1 : 1;
    if (a->row.family != b->row.family)
        return MS_ORDER(a->row.family, b->row.family, 0);
    if (a->row.value != b->row.value)
        return a->row.value > b->row.value ? -1 : 1;
    return MS_ORDER(a->index, b->index, 0);
}

/* Sorts rows by family, the greatest value of each first. */
static enum ms_rc sort_places(const struct mstx_foldable *row, size_t n, struct place *p,
                              struct ms_err *err)
{
    uint32_t families = 0;
    for (size_t i = 0; i < n; i++)
        families = row[i].family >= families ? row[i].family + 1 : families;
    double *weight = ms_calloc(families + (size_t)1, sizeof *weight);
    if (weight == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++)
        weight[row[i].family] += row[i].weight;
    for (size_t i = 0; i < n; i++)
        p[i] = (struct place){row[i], (uint32_t)i, weight[row[i].family]};
    qsort(p, n, sizeof *p, by_family);
    ms_free(weight);
    return MS_OK;
}

static enum ms_rc add_row(struct mstx_folds *folds, size_t first, size_t n, struct ms_err *err)
{
    struct mstx_folded *slot = ms_vec_push(&folds->rows);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct mstx_folded){(uint32_t)first, (uint32_t)n};
    return MS_OK;
}

/* Adds the rows of the family in [from, to), which are sorted by falling value. */
static enum ms_rc fold_family(struct mstx_folds *folds, const struct place *p, size_t from,
                              size_t to, struct ms_err *err)
{
    const double limit = ODD * p[from + (to - from) / 2].row.value;
    const bool is_small = to - from < FAMILY_MIN;
    size_t odd = 0;
    while (from + odd < to && (is_small || p[from + odd].row.value > limit))
        odd++;
    odd = is_small || odd <= ODD_MAX ? odd : 0;
    for (size_t i = 0; i < odd; i++)
        MS_TRY(add_row(folds, from + i, 1, err));
    return from + odd < to ? add_row(folds, from + odd, to - from - odd, err) : MS_OK;
}

static enum ms_rc fold_places(struct mstx_folds *folds, const struct place *p, size_t n,
                              struct ms_err *err)
{
    folds->member = ms_calloc(n + 1, sizeof *folds->member);
    if (folds->member == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++)
        folds->member[i] = p[i].index;
    for (size_t from = 0, to; from < n; from = to) {
        to = from + 1;
        while (to < n && p[to].row.family == p[from].row.family)
            to++;
        MS_TRY(fold_family(folds, p, from, to, err));
    }
    return MS_OK;
}

enum ms_rc mstx__rows_fold(const struct mstx_foldable *row, size_t n, struct mstx_folds *folds,
                           struct ms_err *err)
{
    struct place *p = ms_calloc(n + 1, sizeof *p);
    *folds = (struct mstx_folds){.member = NULL};
    enum ms_rc rc = p != NULL ? sort_places(row, n, p, err) : ms_no_memory(err);
    if (rc == MS_OK)
        rc = fold_places(folds, p, n, err);
    ms_free(p);
    if (rc != MS_OK)
        mstx__folds_free(folds);
    return rc;
}

void mstx__folds_free(struct mstx_folds *folds)
{
    ms_vec_free(&folds->rows);
    ms_free(folds->member);
    *folds = (struct mstx_folds){.member = NULL};
}

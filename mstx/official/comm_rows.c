/* SPDX-License-Identifier: MIT
 *
 * comm_rows: see the header.
 */
#include "mstx/official/comm_rows.h"

#include "mstx/official/rank_rows.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/store_vtab.h"

#include <inttypes.h>
#include <string.h>

enum { NAME_MAX_BYTES = 1 << 16 };
#define ARENA_MAX ((size_t)1 << 34)

/* ---- texts ------------------------------------------------------------------------------- */

static bool put_text(struct mstx__comm_rows *c, const struct mstx__rank_rows *rows,
                     const struct mstx__cell *cell, uint32_t *text)
{
    const struct ms_str s = mstx__cell_text(rows, cell);
    *text = MSTX_NO_TEXT;
    if (s.p == NULL)
        return true;
    struct mstx__comm_met *met = &c->met[(uint64_t)cell->i % MSTX_COMM_MET];
    if (met->at != cell->i || s.n == 0) { /* an empty text begins where the next one does */
        met->text = ms_map_put_copy(&c->text, s, c->arena, NULL);
        met->at = met->text != MS_MAP_NONE && s.n != 0 ? cell->i : -1;
    }
    *text = met->text;
    return *text != MS_MAP_NONE;
}

/* Forgets where texts of the last rank began. */
static void forget_texts(struct mstx__comm_rows *c)
{
    for (size_t i = 0; i < MSTX_COMM_MET; i++)
        c->met[i].at = -1;
}

/* The key of an operation is its group, a byte that tells that there is a name, and the name. */
static bool put_op(struct mstx__comm_rows *c, uint32_t group, struct ms_str name, uint32_t *op)
{
    char key[NAME_MAX_BYTES + 8];
    const uint32_t n = name.n < NAME_MAX_BYTES ? name.n : NAME_MAX_BYTES;
    memcpy(key, &group, sizeof group);
    key[sizeof group] = 'n';
    if (n != 0)
        memcpy(key + sizeof group + 1, name.p, n);
    const uint32_t bytes = (uint32_t)sizeof group + (name.p != NULL ? n + 1 : 0);
    *op = ms_map_put_copy(&c->op, (struct ms_str){key, bytes}, c->arena, NULL);
    return *op != MS_MAP_NONE;
}

static bool put_kind(struct mstx__comm_rows *c, const struct mstx__comm_kind *k, uint32_t *kind)
{
    bool added;
    *kind = c->last_kind;
    if (*kind < c->kind.n && memcmp(&c->kind.p[*kind], k, sizeof *k) == 0)
        return true;
    *kind = ms_map_put_copy(&c->kind_key, (struct ms_str){(const char *)k, sizeof *k}, c->arena,
                            &added);
    if (*kind == MS_MAP_NONE)
        return false;
    c->last_kind = *kind;
    struct mstx__comm_kind *slot = added ? ms_vec_push(&c->kind) : NULL;
    if (slot != NULL)
        *slot = *k;
    return !added || slot != NULL;
}

struct ms_str mstx__comm_text(const struct mstx__comm_rows *c, uint32_t text)
{
    return text != MSTX_NO_TEXT ? ms_map_key(&c->text, text) : MS_STR_NONE;
}

uint32_t mstx__comm_group(const struct mstx__comm_rows *c, uint32_t op)
{
    uint32_t group;
    memcpy(&group, ms_map_key(&c->op, op).p, sizeof group);
    return group;
}

struct ms_str mstx__comm_name(const struct mstx__comm_rows *c, uint32_t op)
{
    const struct ms_str key = ms_map_key(&c->op, op);
    return key.n > sizeof(uint32_t) ? ms_str_sub(key, sizeof(uint32_t) + 1, key.n) : MS_STR_NONE;
}

int64_t mstx__comm_rank(const struct mstx__comm_rows *c, size_t row)
{
    size_t low = 0, high = c->end.n;
    ms_assert(row < c->row.n);
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (c->end.p[middle] <= row)
            low = middle + 1;
        else
            high = middle;
    }
    return c->rank.p[low];
}

/* Set in the kind of an operation when some of its rows have another kind. */
#define IS_MIXED 0x80000000u

static uint32_t other_kind(const struct mstx__comm_rows *c, size_t row, uint32_t kind)
{
    size_t low = 0, high = c->other.n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (c->other.p[middle].row < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->other.n && c->other.p[low].row == row ? c->other.p[low].kind : kind;
}

const struct mstx__comm_kind *mstx__comm_kind(const struct mstx__comm_rows *c, size_t row)
{
    ms_assert(row < c->row.n && c->row.p[row].op < c->kind_of.n);
    const uint32_t kind = c->kind_of.p[c->row.p[row].op];
    return &c->kind.p[kind & IS_MIXED ? other_kind(c, row, kind & ~IS_MIXED) : kind];
}

void mstx__comm_forget_kinds(struct mstx__comm_rows *c)
{
    ms_vec_free(&c->kind_of);
    ms_vec_free(&c->other);
}

#define IS_LONG UINT32_MAX

int64_t mstx__comm_dur(const struct mstx__comm_rows *c, size_t row)
{
    size_t low = 0, high = c->longer.n;
    ms_assert(row < c->row.n);
    if (c->row.p[row].dur != IS_LONG)
        return c->row.p[row].dur;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (c->longer.p[middle].row <= row)
            low = middle;
        else
            high = middle;
    }
    ms_assert(low < c->longer.n && c->longer.p[low].row == row);
    return c->longer.p[low].dur;
}

/* Tells whether a name holds a word of lower case, in whatever case. */
static bool has_word(struct ms_str name, const char *word)
{
    for (uint32_t i = 0; i < name.n; i++) {
        uint32_t k = 0;
        while (word[k] != '\0' && i + k < name.n && (name.p[i + k] | 0x20) == word[k])
            k++;
        if (word[k] == '\0')
            return true;
    }
    return false;
}

bool mstx__is_transfer(struct ms_str name)
{
    return has_word(name, "send") || has_word(name, "receive") || has_word(name, "recv");
}

/* ---- rows -------------------------------------------------------------------------------- */

static int64_t number_of(const struct mstx__cell *cell)
{
    return cell->type == MS_VALUE_NULL ? MSTX_NO_VALUE : mstx__cell_number(cell);
}

/* Keeps the times of the last row. */
static bool keep_times(struct mstx__comm_rows *c, int64_t start, int64_t dur)
{
    const size_t row = c->row.n - 1;
    const bool is_short = dur >= 0 && dur < (int64_t)IS_LONG;
    const bool has_starts = (c->wanted & MSTX_COMM_STARTS) != 0;
    int64_t *slot = has_starts ? ms_vec_push(&c->start) : NULL;
    struct mstx__comm_long *longer = is_short ? NULL : ms_vec_push(&c->longer);
    c->row.p[row].dur = is_short ? (uint32_t)dur : IS_LONG;
    if (slot != NULL)
        *slot = start;
    if (longer != NULL)
        *longer = (struct mstx__comm_long){row, dur};
    return (slot != NULL || !has_starts) && (longer != NULL || is_short);
}

/* Keeps the kind of the last row, once for all rows of an operation that have it. */
static bool keep_kind_number(struct mstx__comm_rows *c, uint32_t kind)
{
    const size_t row = c->row.n - 1;
    const uint32_t op = c->row.p[row].op;
    ms_assert(op <= c->kind_of.n && kind < IS_MIXED);
    if (op == c->kind_of.n) {
        uint32_t *slot = ms_vec_push(&c->kind_of);
        if (slot != NULL)
            *slot = kind;
        return slot != NULL;
    }
    if ((c->kind_of.p[op] & ~IS_MIXED) == kind)
        return true;
    struct mstx__comm_other *slot = ms_vec_push(&c->other);
    c->kind_of.p[op] |= IS_MIXED;
    if (slot != NULL)
        *slot = (struct mstx__comm_other){row, kind};
    return slot != NULL;
}

static bool keep_kind(struct mstx__comm_rows *c, const struct mstx__rank_rows *rows,
                      const struct mstx__cell *cell)
{
    struct mstx__comm_kind kind = {MSTX_NO_TEXT, MSTX_NO_TEXT, MSTX_NO_VALUE, MSTX_NO_VALUE};
    uint32_t number;
    if (rows->columns > MSTX_COMM_BYTES)
        kind.bytes = number_of(&cell[MSTX_COMM_BYTES]);
    if (rows->columns > MSTX_COMM_STEP)
        kind.step = number_of(&cell[MSTX_COMM_STEP]);
    return put_text(c, rows, &cell[MSTX_COMM_TYPE], &kind.type) &&
           (rows->columns <= MSTX_COMM_DTYPE ||
            put_text(c, rows, &cell[MSTX_COMM_DTYPE], &kind.dtype)) &&
           put_kind(c, &kind, &number) && keep_kind_number(c, number);
}

static bool keep_row(struct mstx__comm_rows *c, const struct mstx__rank_rows *rows,
                     const struct mstx__cell *cell)
{
    struct mstx__comm_row *row = ms_vec_push(&c->row);
    uint32_t group;
    if (row == NULL ||
        !keep_times(c, number_of(&cell[MSTX_COMM_START]), number_of(&cell[MSTX_COMM_DUR])))
        return false;
    return put_text(c, rows, &cell[MSTX_COMM_GROUP], &group) &&
           put_op(c, group, mstx__cell_text(rows, &cell[MSTX_COMM_NAME]), &row->op) &&
           ((c->wanted & MSTX_COMM_KINDS) == 0 || keep_kind(c, rows, cell));
}

static enum ms_rc keep_rank(void *ctx, size_t query, int64_t rank,
                            const struct mstx__rank_rows *rows, struct ms_err *err)
{
    struct mstx__comm_rows *c = ctx;
    int64_t *number = ms_vec_push(&c->rank);
    size_t *end = ms_vec_push(&c->end);
    bool ok = number != NULL && end != NULL;
    (void)query;
    ms_assert(rows->cells.n == 0 || rows->columns > MSTX_COMM_DUR);
    forget_texts(c);
    for (size_t i = 0; i < rows->cells.n && ok; i += (size_t)rows->columns)
        ok = keep_row(c, rows, &rows->cells.p[i]);
    if (!ok)
        return ms_no_memory(err);
    *number = rank;
    *end = c->row.n;
    if (c->row.n >= UINT32_MAX)
        return ms_fail(err, MS_E_UNSUPPORTED, "more than %" PRIu32 " communication operations",
                       UINT32_MAX);
    return MS_OK;
}

enum ms_rc mstx__comm_rows_read(struct mstx_recipe *r, const struct mstx_rank_query *q,
                                unsigned wanted, struct mstx__comm_rows *out, struct ms_err *err)
{
    *out = (struct mstx__comm_rows){.arena = ms_arena_new(ARENA_MAX), .wanted = wanted};
    if (out->arena == NULL)
        return ms_no_memory(err);
    const enum ms_rc rc = mstx__recipe_visit_rows(r, q, 1, keep_rank, out, err);
    ms_map_seal(&out->op);
    return rc;
}

void mstx__comm_rows_free(struct mstx__comm_rows *c)
{
    ms_vec_free(&c->row);
    ms_vec_free(&c->longer);
    mstx__comm_forget_kinds(c);
    ms_vec_free(&c->start);
    ms_vec_free(&c->kind);
    ms_vec_free(&c->rank);
    ms_vec_free(&c->end);
    ms_map_free(&c->text);
    ms_map_free(&c->op);
    ms_map_free(&c->kind_key);
    ms_arena_free(c->arena);
}

/* ---- order ------------------------------------------------------------------------------- */

enum ms_rc mstx__comm_order_new(struct mstx__comm_order *out, const struct mstx__comm_rows *c,
                                uint32_t classes, mstx__comm_class_fn class_of, void *ctx,
                                struct ms_err *err)
{
    *out = (struct mstx__comm_order){ms_calloc((size_t)classes + 2, sizeof *out->first), NULL};
    if (out->first == NULL)
        return ms_no_memory(err);
    /* Counts lie two places behind their class, so that filling turns them into first places. */
    for (size_t i = 0; i < c->row.n; i++) {
        const uint32_t class = class_of(ctx, i);
        if (class < classes)
            out->first[(size_t) class + 2]++;
    }
    for (size_t k = 2; k < (size_t)classes + 2; k++)
        out->first[k] += out->first[k - 1];
    out->row = ms_alloc((out->first[(size_t)classes + 1] + 1) * sizeof *out->row);
    if (out->row == NULL) {
        mstx__comm_order_free(out);
        return ms_no_memory(err);
    }
    for (size_t i = 0; i < c->row.n; i++) {
        const uint32_t class = class_of(ctx, i);
        if (class < classes)
            out->row[out->first[(size_t) class + 1]++] = (uint32_t)i;
    }
    return MS_OK;
}

void mstx__comm_order_free(struct mstx__comm_order *o)
{
    ms_free(o->first);
    ms_free(o->row);
    *o = (struct mstx__comm_order){0};
}

/* SPDX-License-Identifier: MIT
 *
 * fold_put: see the header.
 */
#include "mstx/rundb/fold_put.h"

#include "mstx/rundb/packed_rows.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

static const size_t BUFFER_MAX = (size_t)1 << 24, DIGESTS_MAX = (size_t)1 << 32;

enum ms_rc mstx__put_new(struct mstx_put **out, struct ms_store *to, struct ms_err *err)
{
    struct mstx_put *p = *out = ms_calloc(1, sizeof *p);
    if (p == NULL)
        return ms_no_memory(err);
    p->part.max = p->packed.max = BUFFER_MAX;
    p->arena = ms_arena_new(DIGESTS_MAX);
    return p->arena != NULL
               ? ms_store_prepare(to, &p->add_part, "INSERT INTO fold_parts VALUES(?,?)", err)
               : ms_no_memory(err);
}

static void forget_pattern(struct mstx_known_pattern *k)
{
    ms_free(k->base);
    ms_free(k->slope);
    *k = (struct mstx_known_pattern){0};
}

void mstx__put_free(struct mstx_put *p)
{
    if (p == NULL)
        return;
    for (unsigned i = 0; i < MSTX_PUT_SLOTS * MSTX_PUT_KNOWN; i++)
        forget_pattern(&p->known[i / MSTX_PUT_KNOWN][i % MSTX_PUT_KNOWN]);
    ms_stmt_free(p->add_part);
    ms_map_free(&p->digests);
    ms_arena_free(p->arena);
    ms_buf_free(&p->part);
    ms_buf_free(&p->packed);
    mstx__fits_free(&p->fits);
    ms_free(p);
}

/* ---- parts --------------------------------------------------------------------------- */

/* A digest of 128 bits stands for the bytes of a part. */
static struct ms_str digest_of(struct ms_str text, uint64_t digest[2])
{
    digest[0] = ms_str_hash(text);
    digest[1] = text.n;
    for (uint32_t i = 0; i < text.n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, text.p + i, text.n - i < 8 ? text.n - i : 8);
        digest[1] = ms_hash_mix(digest[1], word);
    }
    return (struct ms_str){(const char *)digest, 2 * sizeof *digest};
}

enum ms_rc mstx__put_part(struct mstx_put *p, uint64_t *id, struct ms_err *err)
{
    uint64_t digest[2];
    bool is_new;
    MS_TRY(ms_buf_check(&p->part, err));
    const struct ms_str text = ms_buf_slice(&p->part);
    const uint32_t at = ms_map_put_copy(&p->digests, digest_of(text, digest), p->arena, &is_new);
    if (at == MS_MAP_NONE)
        return ms_no_memory(err);
    *id = (uint64_t)at + 1;
    if (!is_new)
        return MS_OK;
    MS_TRY(mstx__part_pack(&p->packed, text, err));
    ms_stmt_i64(p->add_part, 1, (int64_t)*id);
    ms_stmt_blob(p->add_part, 2, p->packed.p, p->packed.n);
    return ms_stmt_run(p->add_part, err);
}

enum ms_rc mstx__put_fitted(struct mstx_put *p, uint64_t key, const struct mstx_numbers *v,
                            uint64_t *model, struct ms_buf *code, struct ms_err *err)
{
    struct mstx_fitted *x;
    MS_TRY(mstx__fit(&p->fits, key, v, &x, p->difference, p->context, err));
    if (x->part == 0) {
        ms_buf_clear(&p->part);
        ms_buf_putc(&p->part, MSTX_PART_MODEL);
        mstx__model_write(&x->model, &p->part);
        MS_TRY(mstx__put_part(p, &x->part, err));
    }
    *model = x->part;
    mstx__encode(code, &x->model, p->difference, p->context, v->n);
    return ms_buf_check(code, err);
}

/* ---- patterns ------------------------------------------------------------------------ */

uint32_t mstx__find_period(const uint64_t *key, uint32_t n, uint32_t guess)
{
    enum { TRIES = 64 };
    uint32_t tries = 0, same = 0;
    if (guess >= 1 && guess <= n / 2) {
        while (same < n - guess && key[same] == key[same + guess])
            same++;
        if (same == n - guess)
            return guess;
    }
    for (uint32_t period = 1; period <= n / 2 && tries < TRIES; period++) {
        if (key[n - 1] != key[n - 1 - period])
            continue;
        uint32_t i = 1;
        while (i < n - period && key[n - 1 - i] == key[n - 1 - i - period])
            i++;
        tries += i > 8;
        if (i == n - period)
            return period;
    }
    return n;
}

static void put_zigzag(struct ms_buf *out, uint64_t v)
{
    mstx_buf_varint(out, mstx_zigzag(v));
}

/* Finds first and turn of a pattern so that it gives the numbers, as far as the first and one with
 * another slope tell. */
static void solve(const struct mstx_known_pattern *k, const int64_t *v, uint32_t n, uint64_t *first,
                  uint64_t *turn)
{
    *turn = 0;
    if (k->slope != NULL) {
        const uint32_t most = n < k->n ? n : k->n;
        uint32_t i = 1;
        while (i < most && k->slope[i] == k->slope[0])
            i++;
        if (i < most) {
            const int64_t rise = (int64_t)((uint64_t)v[i] - (uint64_t)v[0] - (uint64_t)k->base[i]);
            const int64_t steep = (int64_t)((uint64_t)k->slope[i] - (uint64_t)k->slope[0]);
            if (steep != -1 && rise % steep == 0 && rise / steep > 0)
                *turn = (uint64_t)(rise / steep);
            else if (steep == -1 && rise < 0 && rise != INT64_MIN)
                *turn = (uint64_t)-rise;
        }
    }
    *first = (uint64_t)v[0] - (k->slope != NULL ? *turn * (uint64_t)k->slope[0] : 0);
}

static bool gives(const struct mstx_known_pattern *k, const int64_t *v, uint32_t n, uint64_t first,
                  uint64_t turn)
{
    for (uint32_t i = 0; i < n; turn++) {
        const uint32_t some = n - i < k->n ? n - i : k->n;
        for (uint32_t j = 0; j < some; j++) {
            const uint64_t rise = k->slope != NULL ? turn * (uint64_t)k->slope[j] : 0;
            if ((uint64_t)v[i + j] != first + (uint64_t)k->base[j] + rise)
                return false;
        }
        i += some;
    }
    return true;
}

/* Sets base and slope of a pattern that gives the numbers, with the period when they have it. */
static enum ms_rc make_pattern(struct mstx_known_pattern *k, const int64_t *v, uint32_t n,
                               uint32_t period, struct ms_err *err)
{
    bool is_periodic = period <= n / 2, has_slopes = false;
    for (uint32_t i = 2 * period; i < n && is_periodic; i++)
        is_periodic = (uint64_t)v[i] - (uint64_t)v[i - period] ==
                      (uint64_t)v[i - period] - (uint64_t)v[i - 2 * period];
    forget_pattern(k);
    k->n = is_periodic ? period : n;
    k->base = ms_calloc(k->n, sizeof *k->base);
    k->slope = is_periodic ? ms_calloc(k->n, sizeof *k->slope) : NULL;
    if (k->base == NULL || (is_periodic && k->slope == NULL))
        return ms_no_memory(err);
    for (uint32_t i = 0; i < k->n; i++) {
        k->base[i] = (int64_t)((uint64_t)v[i] - (uint64_t)v[0]);
        if (is_periodic) {
            k->slope[i] = (int64_t)((uint64_t)v[i + period] - (uint64_t)v[i]);
            has_slopes |= k->slope[i] != 0;
        }
    }
    if (!has_slopes) {
        ms_free(k->slope);
        k->slope = NULL;
    }
    return MS_OK;
}

static enum ms_rc store_pattern(struct mstx_put *p, struct mstx_known_pattern *k,
                                struct ms_err *err)
{
    uint64_t before = 0;
    ms_buf_clear(&p->part);
    ms_buf_putc(&p->part, MSTX_PART_PATTERN);
    mstx_buf_varint(&p->part, k->n);
    ms_buf_putc(&p->part, k->slope != NULL);
    for (uint32_t i = 0; i < k->n; i++) {
        put_zigzag(&p->part, (uint64_t)k->base[i] - before);
        before = (uint64_t)k->base[i];
    }
    for (uint32_t i = 0; k->slope != NULL && i < k->n; i++)
        put_zigzag(&p->part, (uint64_t)k->slope[i]);
    return mstx__put_part(p, &k->part, err);
}

static enum ms_rc put_pattern(struct mstx_put *p, struct ms_buf *out, unsigned slot,
                              const int64_t *v, uint32_t n, uint32_t period, struct ms_err *err)
{
    uint64_t first = 0, turn = 0;
    struct mstx_known_pattern *k = NULL;
    for (unsigned i = 0; i < MSTX_PUT_KNOWN && k == NULL; i++) {
        struct mstx_known_pattern *old = &p->known[slot][i];
        if (old->part == 0)
            continue;
        solve(old, v, n, &first, &turn);
        if (gives(old, v, n, first, turn))
            k = old;
    }
    if (k == NULL) {
        k = &p->known[slot][p->next[slot]++ % MSTX_PUT_KNOWN];
        MS_TRY(make_pattern(k, v, n, period, err));
        MS_TRY(store_pattern(p, k, err));
        first = (uint64_t)v[0];
        turn = 0;
    }
    ms_buf_putc(out, MSTX_FOLD_PATTERN);
    mstx_buf_varint(out, k->part);
    put_zigzag(out, first);
    mstx_buf_varint(out, turn);
    return MS_OK;
}

/* ---- kinds of columns ------------------------------------------------------------------- */

static bool is_even(const int64_t *v, uint32_t n)
{
    const uint64_t step = n > 1 ? (uint64_t)v[1] - (uint64_t)v[0] : 0;
    for (uint32_t i = 1; i < n; i++) {
        if ((uint64_t)v[i] - (uint64_t)v[i - 1] != step)
            return false;
    }
    return true;
}

static void put_even(struct ms_buf *out, const int64_t *v, uint32_t n)
{
    ms_buf_putc(out, MSTX_FOLD_EVEN);
    put_zigzag(out, (uint64_t)v[0]);
    put_zigzag(out, n > 1 ? (uint64_t)v[1] - (uint64_t)v[0] : 0);
}

static enum ms_rc put_plain(struct ms_buf *out, const int64_t *v, uint32_t n, struct ms_err *err)
{
    uint64_t before = 0;
    ms_buf_putc(out, MSTX_FOLD_PLAIN);
    for (uint32_t i = 0; i < n; i++) {
        put_zigzag(out, (uint64_t)v[i] - before);
        before = (uint64_t)v[i];
    }
    return ms_buf_check(out, err);
}

/* Replaces the numbers by their places in a list of a few; returns the length of the list, 0: they are
 * not few. */
static uint32_t list_few(const int64_t *v, uint32_t n, int64_t *value, int64_t *place)
{
    enum { FEW = 64 };
    uint32_t values = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = i != 0 && v[i] == v[i - 1] ? (uint32_t)place[i - 1] : 0;
        while (k < values && value[k] != v[i])
            k++;
        if (k == FEW)
            return 0;
        if (k == values)
            value[values++] = v[i];
        place[i] = k;
    }
    return values;
}

static enum ms_rc put_numbers(struct mstx_put *p, struct ms_buf *out,
                              const struct mstx_put_column *how, const int64_t *v, uint32_t n,
                              struct ms_err *err)
{
    const bool from_before = how->hint == MSTX_COLUMN_GROWS;
    const uint32_t period = how->period <= n ? how->period : 1;
    const uint32_t classes = how->rule == MSTX_RULE_PERIOD ? period
                             : how->rule == MSTX_RULE_PAIR ? 256
                                                           : 2;
    const uint64_t key = ms_hash_mix(how->slot + 1, classes);
    int64_t *off = ms_calloc(n, sizeof *off);
    uint16_t *class = ms_calloc(n, sizeof *class);
    struct ms_buf code = {.max = BUFFER_MAX};
    uint64_t model = 0;
    enum ms_rc rc = off != NULL && class != NULL ? MS_OK : ms_no_memory(err);
    for (uint32_t i = 0; i < n && rc == MS_OK; i++) {
        ms_assert(v[i] % how->quantum == 0);
        const int64_t before = i != 0 && from_before ? v[i - 1] / how->quantum : 0;
        off[i] = v[i] / how->quantum - before;
        class[i] = (uint16_t)mstx__fold_class(how->rule, period, how->other, i);
    }
    const struct mstx_numbers numbers = {n, classes, class, off, NULL};
    if (rc == MS_OK)
        rc = mstx__put_fitted(p, key, &numbers, &model, &code, err);
    ms_buf_putc(out, MSTX_FOLD_NUMBERS);
    mstx_buf_varint(out, model);
    mstx_buf_varint(out, (uint64_t)how->quantum);
    ms_buf_putc(out, from_before);
    ms_buf_putc(out, (char)how->rule);
    mstx_buf_varint(out, how->rule == MSTX_RULE_PERIOD ? period : how->of);
    mstx_buf_varint(out, code.n);
    ms_buf_str(out, ms_buf_slice(&code));
    ms_buf_free(&code);
    ms_free(off);
    ms_free(class);
    return rc;
}

static enum ms_rc put_known(struct mstx_put *p, struct ms_buf *out,
                            const struct mstx_put_column *how, const int64_t *v, uint32_t n,
                            struct ms_err *err)
{
    enum { SMALL = 8, KINDS = 4 };
    int64_t value[MSTX_FOLD_FEW_MAX], place[MSTX_CHUNK_MAX];
    const uint32_t values = how->hint == MSTX_COLUMN_LOCAL ? list_few(v, n, value, place) : 0;
    ms_assert(KINDS * how->slot + 3 < MSTX_PUT_SLOTS && n <= MSTX_CHUNK_MAX);
    if (is_even(v, n)) {
        put_even(out, v, n);
        return MS_OK;
    }
    if (how->hint == MSTX_COLUMN_VARIES || how->hint == MSTX_COLUMN_GROWS)
        return n > SMALL ? put_numbers(p, out, how, v, n, err) : put_plain(out, v, n, err);
    if (values != 0 && n > SMALL) {
        uint64_t before = 0;
        ms_buf_putc(out, MSTX_FOLD_FEW);
        mstx_buf_varint(out, values);
        for (uint32_t i = 0; i < values; i++) {
            put_zigzag(out, (uint64_t)value[i] - before);
            before = (uint64_t)value[i];
        }
        if (!is_even(place, n))
            return put_pattern(p, out, KINDS * how->slot + 1, place, n, how->period, err);
        put_even(out, place, n);
        return MS_OK;
    }
    return n > SMALL ? put_pattern(p, out, KINDS * how->slot, v, n, how->period, err)
                     : put_plain(out, v, n, err);
}

enum ms_rc mstx__put_column(struct mstx_put *p, struct ms_buf *out,
                            const struct mstx_put_column *how, const int64_t *v, uint32_t n,
                            struct ms_err *err)
{
    uint32_t known = 0;
    int64_t flag[MSTX_CHUNK_MAX], value[MSTX_CHUNK_MAX];
    ms_assert(n >= 1 && n <= MSTX_CHUNK_MAX && how->period >= 1);
    for (uint32_t i = 0; i < n; i++) {
        flag[i] = v[i] != MSTX_ROWS_NULL;
        value[known] = v[i];
        known += flag[i] != 0;
    }
    if (known == n)
        return put_known(p, out, how, v, n, err);
    struct mstx_put_column flags = *how;
    flags.hint = MSTX_COLUMN_REPEATS;
    ms_buf_putc(out, MSTX_FOLD_NULLS);
    if (is_even(flag, n))
        put_even(out, flag, n);
    else
        MS_TRY(put_pattern(p, out, 4 * how->slot + 2, flag, n, how->period, err));
    flags.hint = how->hint;
    flags.period = 1; /* NULLs are passed over */
    flags.rule = MSTX_RULE_PERIOD;
    return known != 0 ? put_known(p, out, &flags, value, known, err) : MS_OK;
}

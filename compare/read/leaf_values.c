/* SPDX-License-Identifier: MIT
 *
 * source_value: the leaves of a dump as numbers, read once by all threads.
 */
#include "compare/source_int.h"

#include "probe/base/num.h"

#include <math.h>

enum { CHUNK_ROWS = 1 << 13, DIMS_MAX = 64 };

static enum source__kind kind_of(enum ms_dtype t)
{
    switch (ms_dtype_kind(t)) {
    case MS_DTK_FLOAT:
    case MS_DTK_COMPLEX:
        return SOURCE__FLOAT;
    case MS_DTK_BOOL:
        return SOURCE__BOOL;
    default:
        return SOURCE__WHOLE;
    }
}

static uint32_t hash_words(const uint64_t *w, size_t n)
{
    uint64_t h = ms_str_hash((struct ms_str){(const char *)w, (uint32_t)(n * sizeof *w)});
    return (uint32_t)(h ^ h >> 32);
}

static void take_shape(const struct probe_leaf *leaf, struct source__value *v)
{
    uint64_t dim[DIMS_MAX];
    unsigned ndim;
    v->n = 1;
    if (!probe_leaf_shape(leaf, dim, DIMS_MAX, &ndim))
        return;
    for (unsigned i = 0; i < ndim; i++) {
        if (__builtin_mul_overflow(v->n, dim[i], &v->n))
            v->n = 1;
    }
    v->shape = hash_words(dim, ndim);
}

static void take_tensor(const struct probe_leaf *leaf, struct source__value *v)
{
    v->kind = (uint8_t)kind_of(leaf->dtype);
    v->dtype = (uint8_t)leaf->dtype;
    v->grad = (int8_t)leaf->requires_grad;
    take_shape(leaf, v);
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        const struct probe_num *num = &leaf->stat[i];
        if (num->kind < PROBE_NUM_BOOL || num->kind > PROBE_NUM_FLOAT)
            continue;
        v->stat[i] = num->v == 0 ? 0 : num->v; /* no negative zero */
        v->known |= (uint8_t)(1U << i);
    }
    if (leaf->md5.n != 0)
        v->digest = ms_str_hash(leaf->md5) | 1;
}

static bool names_device(struct ms_str text)
{
    static const char *const devices[] = {"npu", "cuda", "cpu", "Ascend", "GPU", "meta"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        if (ms_str_find_str(text, ms_str_of(devices[i])) >= 0)
            return true;
    }
    return false;
}

/* Numbers count by what they are, so 1 and 1.0 are one; where a tensor lies does not count. */
static void take_plain(const struct probe_leaf *leaf, struct source__value *v)
{
    struct ms_str text = leaf->value_json;
    double x;
    v->kind = SOURCE__PLAIN;
    if (text.n != 0 && ms_num_parse_f64(text.p, text.n, &x)) {
        x = isnan(x) ? NAN : x == 0 ? 0 : x;
        memcpy(&v->n, &x, sizeof x);
        v->n = ms_str_hash((struct ms_str){(const char *)&v->n, sizeof v->n});
    } else {
        v->n = names_device(text) ? 1 : ms_str_hash(text);
    }
}

void source__take(const struct probe_leaf *leaf, struct source__value *v)
{
    *v = (struct source__value){.kind = SOURCE__NOTHING, .grad = -1};
    if (leaf->kind == PROBE_LEAF_TENSOR)
        take_tensor(leaf, v);
    else if (leaf->kind == PROBE_LEAF_VALUE)
        take_plain(leaf, v);
}

static enum ms_rc read_chunk(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    struct source__side *s = ctx;
    size_t from = item * CHUNK_ROWS, to = from + CHUNK_ROWS;
    (void)worker;
    (void)err;
    for (size_t i = from; i < to && i < s->dump->rows.n; i++) {
        struct probe_leaf leaf;
        if (s->value[i].kind != SOURCE__UNREAD)
            continue;
        probe_row_leaf(s->dump, &s->dump->rows.p[i], &leaf);
        source__take(&leaf, &s->value[i]);
    }
    return MS_OK;
}

enum ms_rc source__read(struct source__side *s, struct ms_pool *pool, struct ms_err *err)
{
    size_t rows = s->dump->rows.n;
    if (!s->borrowed)
        s->value = ms_calloc(rows + 1, sizeof *s->value);
    s->maker = ms_alloc((rows + 1) * sizeof *s->maker);
    if (s->value == NULL || s->maker == NULL)
        return ms_no_memory(err);
    return ms_pool_run(pool, (rows + CHUNK_ROWS - 1) / CHUNK_ROWS, read_chunk, s, err);
}

void source__side_free(struct source__side *s)
{
    if (!s->borrowed)
        ms_free(s->value);
    ms_free(s->maker);
    *s = (struct source__side){0};
}

bool source__is_finite(const struct source__value *v)
{
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        if ((v->known >> i & 1) && !isfinite(v->stat[i]))
            return false;
    }
    return true;
}

bool source__is_masked(const struct source__value *v)
{
    const unsigned both = 1U << PROBE_STAT_MAX | 1U << PROBE_STAT_MIN;
    return (v->known & both) == both && isfinite(v->stat[PROBE_STAT_MAX]) &&
           v->stat[PROBE_STAT_MIN] == -INFINITY;
}

/* Whole numbers, zeroes and what has no figures look alike without being the same. */
bool source__is_traceable(const struct source__value *v)
{
    enum { ALL = (1 << PROBE_STATS) - 1 };
    bool told = v->known == ALL;
    if (v->kind != SOURCE__FLOAT || (told && v->stat[PROBE_STAT_NORM] == 0))
        return false;
    return v->digest != 0 || (told && source__is_finite(v));
}

/* SPDX-License-Identifier: MIT
 *
 * leaf_values: the leaves of a dump as numbers, parsed once, by all threads.
 */
#include "compare/read/leaf_values.h"
#include "probe/base/assert.h"
#include "probe/base/num.h"

#include <math.h>

enum { CHUNK_ROWS = 1 << 13, DIMS_MAX = 64 };

static enum read__kind kind_of(enum ms_dtype t)
{
    switch (ms_dtype_kind(t)) {
    case MS_DTK_FLOAT:
    case MS_DTK_COMPLEX:
        return READ__FLOAT;
    case MS_DTK_BOOL:
        return READ__BOOL;
    default:
        return READ__WHOLE;
    }
}

static uint32_t hash_words(const uint64_t *w, size_t n)
{
    uint64_t h = ms_str_hash((struct ms_str){(const char *)w, (uint32_t)(n * sizeof *w)});
    return (uint32_t)(h ^ h >> 32);
}

static void set_shape(const struct probe_leaf *leaf, struct read__value *v)
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

static void set_tensor(const struct probe_leaf *leaf, struct read__value *v)
{
    v->kind = (uint8_t)kind_of(leaf->dtype);
    v->dtype = (uint8_t)leaf->dtype;
    v->grad = (int8_t)leaf->requires_grad;
    set_shape(leaf, v);
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        const struct probe_num *num = &leaf->stat[i];
        if (num->kind < PROBE_NUM_BOOL || num->kind > PROBE_NUM_FLOAT)
            continue;
        v->stat[i] = num->v == 0 ? 0 : num->v; /* turns -0.0 into 0.0 */
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

/* Hashes a plain value by its meaning: 1 and 1.0 are equal, and the device of a tensor does not
 * count. */
static void set_plain(const struct probe_leaf *leaf, struct read__value *v)
{
    struct ms_str text = leaf->value_json;
    double x;
    v->kind = READ__PLAIN;
    if (text.n != 0 && ms_num_parse_f64(text.p, text.n, &x)) {
        x = isnan(x) ? NAN : x == 0 ? 0 : x;
        memcpy(&v->n, &x, sizeof x);
        v->n = ms_str_hash((struct ms_str){(const char *)&v->n, sizeof v->n});
    } else {
        v->n = names_device(text) ? 1 : ms_str_hash(text);
    }
}

/* ---- ownership ----------------------------------------------------------- */

enum ms_rc read__values_init(struct read__values *v, const struct probe_dump *dump,
                             struct ms_err *err)
{
    *v = (struct read__values){dump, ms_calloc(dump->rows.n + 1, sizeof *v->list)};
    return v->list != NULL ? MS_OK : ms_no_memory(err);
}

void read__values_free(struct read__values *v)
{
    ms_free(v->list);
    *v = (struct read__values){0};
}

void read__values_keep(struct read__values *v, uint32_t row, const struct probe_leaf *leaf)
{
    ms_assert(row < v->dump->rows.n);
    struct read__value *value = &v->list[row];
    *value = (struct read__value){.kind = READ__NOTHING, .grad = -1};
    if (leaf->kind == PROBE_LEAF_TENSOR)
        set_tensor(leaf, value);
    else if (leaf->kind == PROBE_LEAF_VALUE)
        set_plain(leaf, value);
}

static enum ms_rc read_chunk(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    struct read__values *v = ctx;
    const struct probe_dump *d = v->dump;
    size_t from = item * CHUNK_ROWS, to = from + CHUNK_ROWS;
    (void)worker;
    (void)err;
    for (size_t i = from; i < to && i < d->rows.n; i++) {
        struct probe_leaf leaf;
        if (v->list[i].kind != READ__UNREAD)
            continue;
        probe_row_leaf(d, &d->rows.p[i], &leaf);
        read__values_keep(v, (uint32_t)i, &leaf);
    }
    return MS_OK;
}

enum ms_rc read__values_complete(struct read__values *v, struct ms_pool *pool, struct ms_err *err)
{
    size_t chunks = (v->dump->rows.n + CHUNK_ROWS - 1) / CHUNK_ROWS;
    return ms_pool_run(pool, chunks, read_chunk, v, err);
}

/* ---- predicates ---------------------------------------------------------- */

bool read__is_finite(const struct read__value *v)
{
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        if ((v->known >> i & 1) && !isfinite(v->stat[i]))
            return false;
    }
    return true;
}

bool read__is_masked(const struct read__value *v)
{
    const unsigned both = 1U << PROBE_STAT_MAX | 1U << PROBE_STAT_MIN;
    return (v->known & both) == both && isfinite(v->stat[PROBE_STAT_MAX]) &&
           v->stat[PROBE_STAT_MIN] == -INFINITY;
}

/* Integers, zeros and values without statistics look alike without being the same. */
bool read__is_traceable(const struct read__value *v)
{
    enum { ALL = (1 << PROBE_STATS) - 1 };
    bool told = v->known == ALL;
    if (v->kind != READ__FLOAT || (told && v->stat[PROBE_STAT_NORM] == 0))
        return false;
    return v->digest != 0 || (told && read__is_finite(v));
}

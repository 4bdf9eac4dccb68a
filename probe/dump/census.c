/* SPDX-License-Identifier: MIT
 *
 * census: one pass over the rows, in chunks of a fixed size that are counted in parallel and added
 * up in order.
 */
#include "probe/dump/census.h"

#include "probe/base/clock.h"
#include "probe/base/trace.h"

#include <math.h>

enum { CHUNK_ROWS = 16384 };

struct chunks {
    const struct probe_dump *dump;
    struct probe_census *part;
};

static void count_numbers(struct probe_census *c, const struct probe_leaf *leaf, uint32_t row,
                          bool forward)
{
    bool nan = false;
    bool inf = false;
    for (int i = 0; i < PROBE_STATS; i++) {
        if (leaf->stat[i].kind != PROBE_NUM_FLOAT)
            continue;
        nan |= isnan(leaf->stat[i].v);
        /* The norm and the mean of finite values can overflow, as of a mask's least finite value. */
        inf |= i <= PROBE_STAT_MIN && isinf(leaf->stat[i].v);
    }
    if (forward && inf && probe_leaf_is_masked(leaf)) {
        c->masked_tensors++;
        inf = false;
    }
    if (nan && c->nan_tensors++ == 0)
        c->first_nan = row;
    if (inf && c->inf_tensors++ == 0)
        c->first_inf = row;
}

static uint64_t bytes_of(const struct probe_leaf *leaf)
{
    uint64_t dim[64];
    unsigned ndim;
    uint64_t bytes = ms_dtype_size(leaf->dtype);
    if (!probe_leaf_shape(leaf, dim, 64, &ndim))
        return 0;
    for (unsigned i = 0; i < ndim; i++) {
        if (__builtin_mul_overflow(bytes, dim[i], &bytes))
            return 0;
    }
    return bytes;
}

static void count_tensor(struct probe_census *c, const struct probe_dump *d, uint32_t row)
{
    struct probe_leaf leaf;
    probe_row_leaf(d, &d->rows.p[row], &leaf);
    c->tensors++;
    c->of_dtype[leaf.dtype]++;
    c->files += leaf.data_name.n != 0;
    c->unfinished += leaf.unfinished;
    if (__builtin_add_overflow(c->tensor_bytes, bytes_of(&leaf), &c->tensor_bytes))
        c->tensor_bytes = UINT64_MAX;
    count_numbers(c, &leaf, row, d->nodes.p[d->rows.p[row].node].dir == PROBE_FORWARD);
}

static enum ms_rc count_chunk(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    (void)worker;
    (void)err;
    struct chunks *cs = ctx;
    const struct probe_dump *d = cs->dump;
    struct probe_census *c = &cs->part[item];
    size_t to = (item + 1) * CHUNK_ROWS < d->rows.n ? (item + 1) * CHUNK_ROWS : d->rows.n;
    c->first_nan = c->first_inf = MS_MAP_NONE;
    for (size_t i = item * CHUNK_ROWS; i < to; i++) {
        if (d->rows.p[i].kind == PROBE_LEAF_TENSOR)
            count_tensor(c, d, (uint32_t)i);
        else if (d->rows.p[i].kind == PROBE_LEAF_NULL)
            c->nulls++;
        else
            c->values++;
    }
    return MS_OK;
}

static void add_up(struct probe_census *c, const struct probe_census *part)
{
    c->tensors += part->tensors;
    c->values += part->values;
    c->nulls += part->nulls;
    c->nan_tensors += part->nan_tensors;
    c->inf_tensors += part->inf_tensors;
    c->masked_tensors += part->masked_tensors;
    c->unfinished += part->unfinished;
    c->files += part->files;
    if (__builtin_add_overflow(c->tensor_bytes, part->tensor_bytes, &c->tensor_bytes))
        c->tensor_bytes = UINT64_MAX;
    for (int t = 0; t < MS_DT_MAX; t++)
        c->of_dtype[t] += part->of_dtype[t];
    if (c->first_nan == MS_MAP_NONE)
        c->first_nan = part->first_nan;
    if (c->first_inf == MS_MAP_NONE)
        c->first_inf = part->first_inf;
}

static enum ms_rc count_rows(struct probe_census *c, const struct probe_dump *d,
                             struct ms_pool *pool, struct ms_err *err)
{
    size_t n = d->rows.n / CHUNK_ROWS + 1;
    struct chunks cs = {d, ms_calloc(n, sizeof *cs.part)};
    if (cs.part == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_pool_run(pool, n, count_chunk, &cs, err);
    for (size_t i = 0; i < n && rc == MS_OK; i++)
        add_up(c, &cs.part[i]);
    ms_free(cs.part);
    return rc;
}

static enum ms_rc count_nodes(struct probe_census *c, const struct probe_dump *d,
                              struct ms_err *err)
{
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        struct probe_name name = probe_name_parse(probe_node_name(d, i));
        bool added;
        uint32_t id = ms_map_put(&c->prefixes, name.prefix, &added);
        uint64_t *count = id == MS_MAP_NONE ? NULL
                          : added           ? ms_vec_push(&c->prefix_nodes)
                                            : &c->prefix_nodes.p[id];
        if (count == NULL)
            return ms_no_memory(err);
        *count = added ? 1 : *count + 1;
        c->nodes[name.kind]++;
        c->forward += name.dir == PROBE_FORWARD;
        c->backward += name.dir == PROBE_BACKWARD;
    }
    return MS_OK;
}

enum ms_rc probe_census_take(struct probe_census *c, const struct probe_dump *d,
                             struct ms_pool *pool, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("count");
    *c = (struct probe_census){.first_nan = MS_MAP_NONE, .first_inf = MS_MAP_NONE};
    enum ms_rc rc = count_nodes(c, d, err);
    if (rc == MS_OK)
        rc = count_rows(c, d, pool, err);
    if (rc != MS_OK)
        probe_census_free(c);
    ms_span_end(&span);
    return rc;
}

void probe_census_free(struct probe_census *c)
{
    ms_map_free(&c->prefixes);
    ms_vec_free(&c->prefix_nodes);
}

/* ---- all dumps below a path ---------------------------------------------- */

static enum ms_rc read_rank(struct probe_stat_rank *r, unsigned flags, struct ms_pool *pool,
                            struct ms_err *err)
{
    MS_TRY(probe_dump_open(&r->dump, r->place->json, flags, pool, err));
    enum ms_rc rc = probe_census_take(&r->census, r->dump, pool, err);
    if (rc != MS_OK) {
        probe_dump_close(r->dump);
        r->dump = NULL;
    }
    return rc;
}

struct reading {
    struct probe_stat *stat;
    unsigned flags;
};

static enum ms_rc read_item(void *ctx, size_t i, unsigned worker, struct ms_err *err)
{
    (void)worker;
    (void)err;
    const struct reading *r = ctx;
    struct probe_stat_rank *rank = &r->stat->ranks[i];
    read_rank(rank, r->flags, NULL, &rank->err);
    return MS_OK;
}

static enum ms_rc read_ranks(struct probe_stat *s, unsigned flags, struct ms_pool *pool,
                             struct ms_err *err)
{
    struct reading reading = {s, flags};
    size_t n = s->places.list.n;
    s->ranks = ms_calloc(n, sizeof *s->ranks);
    if (s->ranks == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++)
        s->ranks[i].place = &s->places.list.p[i];
    if (n == 1)
        read_rank(&s->ranks[0], flags, pool, &s->ranks[0].err);
    else
        MS_TRY(ms_pool_run(pool, n, read_item, &reading, err));
    for (size_t i = 0; i < n; i++) {
        s->failed += s->ranks[i].dump == NULL;
        s->bytes += s->ranks[i].dump != NULL ? s->ranks[i].dump->file.n : 0;
    }
    return MS_OK;
}

enum ms_rc probe_stat_read(struct probe_stat *s, const char *path, unsigned flags,
                           struct ms_pool *pool, struct ms_err *err)
{
    MS_TRY(probe_find(&s->places, path, err));
    int64_t start = ms_clock_ns();
    enum ms_rc rc = read_ranks(s, flags, pool, err);
    s->took_ns = ms_clock_ns() - start;
    return rc;
}

void probe_stat_free(struct probe_stat *s)
{
    for (size_t i = 0; s->ranks != NULL && i < s->places.list.n; i++) {
        if (s->ranks[i].dump != NULL)
            probe_census_free(&s->ranks[i].census);
        probe_dump_close(s->ranks[i].dump);
    }
    ms_free(s->ranks);
    if (s->places.arena != NULL)
        probe_places_free(&s->places);
}

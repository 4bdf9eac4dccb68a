/* SPDX-License-Identifier: MIT
 *
 * value_sketch: sums with random signs over the elements of tensor files.
 */
#include "compare/observe/value_sketch.h"
#include "compare/observe/leaf_distance.h"
#include "compare/observe/node_facts.h"
#include "compare/observe/value_shelf.h"
#include "compare/table/comparison.h"

enum { BLOCK = 4096, CHUNK_ROWS = 64 };

struct sketcher {
    const struct cmp *c;
    const struct observe__side *side;
    const char *dir;
};

/* Returns 64 random signs: those of the elements from 64 * at on. */
static uint64_t signs_at(uint64_t at)
{
    uint64_t x = (at + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static void add_elements(double sums[READ__SKETCH], const double *x, uint64_t from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t element = from + i;
        for (unsigned k = 0; k < READ__SKETCH; k++) {
            const uint64_t signs = signs_at(element / 64 * READ__SKETCH + k);
            sums[k] += signs >> element % 64 & 1 ? x[i] : -x[i];
        }
    }
}

static enum ms_rc add_blocks(const struct probe_tensor *t, double sums[READ__SKETCH],
                             struct ms_err *err)
{
    void *room = ms_alloc(BLOCK * ms_dtype_size(t->dtype));
    double *x = ms_alloc(BLOCK * sizeof *x);
    for (uint64_t at = 0; room != NULL && x != NULL && at < t->count; at += BLOCK) {
        const size_t n = t->count - at < BLOCK ? (size_t)(t->count - at) : BLOCK;
        ms_dtype_to_f64(t->dtype, probe_tensor_elements(t, at, n, room), n, x);
        add_elements(sums, x, at, n);
    }
    enum ms_rc rc = room != NULL && x != NULL ? MS_OK : ms_no_memory(err);
    ms_free(room);
    ms_free(x);
    return rc;
}

/* A file that cannot be read leaves the statistics, and the stage measure/ has reported it. */
static enum ms_rc sketch_row(const struct sketcher *s, uint32_t row, struct ms_err *err)
{
    struct probe_tensor t;
    struct ms_err why = {0};
    double sums[READ__SKETCH] = {0};
    enum ms_rc rc = observe__open_tensor(s->side->dump, s->dir, row, &t, &why);
    if (rc != MS_OK)
        return rc == MS_E_NOMEM ? ms_no_memory(err) : MS_OK;
    rc = add_blocks(&t, sums, err);
    for (unsigned k = 0; k < READ__SKETCH; k++)
        s->side->value[row].sketch[k] = (float)sums[k];
    probe_tensor_close(&t);
    return rc;
}

static enum ms_rc sketch_chunk(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    const struct sketcher *s = ctx;
    const struct probe_dump *d = s->side->dump;
    (void)worker;
    for (size_t i = item * CHUNK_ROWS; i < (item + 1) * CHUNK_ROWS && i < d->rows.n; i++) {
        const struct read__value *v = &s->side->value[i];
        if (v->n > 1 && observe__is_searched(v) &&
            observe__is_api(&d->nodes.p[d->rows.p[i].node], PROBE_FORWARD))
            MS_TRY(sketch_row(s, (uint32_t)i, err));
    }
    return MS_OK;
}

enum ms_rc observe__sketch_values(const struct cmp *c, const struct observe__side side[2],
                                  struct ms_pool *pool, struct ms_err *err)
{
    for (unsigned s = 0; s < 2; s++) {
        struct sketcher k = {c, &side[s], s == 0 ? c->rows.b_dir : c->rows.t_dir};
        const size_t chunks = (side[s].dump->rows.n + CHUNK_ROWS - 1) / CHUNK_ROWS;
        MS_TRY(ms_pool_run(pool, chunks, sketch_chunk, &k, err));
    }
    return MS_OK;
}

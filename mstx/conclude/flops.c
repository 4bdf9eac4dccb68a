/* SPDX-License-Identifier: MIT
 *
 * flops: floating point operations of one step, computed from the shapes of calls in a dump.
 *
 *     "Functional.linear.0.forward": {"input_args": [{"shape": [..]}, ..], "output": [{..}]}
 *
 * The operations of a matrix product follow from the size of the output and the length of the
 * summed dimension, so the order of the operands matters only for this length.
 */
#include "mstx/conclude/time_use.h"

#include "probe/base/map.h"
#include "probe/base/mem.h"
#include "probe/dump/dump.h"

#include <string.h>

enum { DIMS_MAX = 8, INPUTS_MAX = 4 };
static const double DIM_MOST = 1e12; /* no tensor is longer */

struct shape {
    double dim[DIMS_MAX];
    size_t n;
};
struct record {
    struct shape in[INPUTS_MAX], out;
    size_t ins, outs;
    bool recomputed;
};

/* ---- reading --------------------------------------------------------------------- */

/* Returns the shape of a leaf.  A shape that cannot be read is one dimension of length 0, and an
 * implausible length becomes 0, so that damaged calls count no operations. */
static struct shape shape_of(const struct probe_leaf *leaf)
{
    struct shape s = {.n = 0};
    uint64_t dim[DIMS_MAX];
    unsigned n;
    if (!probe_leaf_shape(leaf, dim, DIMS_MAX, &n))
        return (struct shape){.n = 1};
    for (s.n = 0; s.n < n; s.n++)
        s.dim[s.n] = (double)dim[s.n] < DIM_MOST ? (double)dim[s.n] : 0;
    return s;
}

/* Adds the shape of a leaf to those of its section. */
static void add_leaf(struct record *r, unsigned section, const struct probe_leaf *leaf)
{
    const bool is_in = section == PROBE_SEC_INPUT_ARGS || section == PROBE_SEC_INPUT_KWARGS;
    if (leaf->shape_json.n == 0)
        return;
    if (is_in && r->ins < INPUTS_MAX)
        r->in[r->ins++] = shape_of(leaf);
    if (section == PROBE_SEC_OUTPUT && r->outs++ == 0)
        r->out = shape_of(leaf);
}

static struct record read_record(const struct probe_dump *d, const struct probe_node *node)
{
    struct record r = {.recomputed = (node->flags & PROBE_NODE_RECOMPUTE) != 0};
    for (uint32_t i = 0; i < node->nrows; i++) {
        const struct probe_row *row = &d->rows.p[node->first_row + i];
        struct probe_leaf leaf;
        probe_row_leaf(d, row, &leaf);
        add_leaf(&r, row->section, &leaf);
    }
    return r;
}

/* ---- counting -------------------------------------------------------------------- */

static double product_of(const struct shape *s, size_t from, size_t to)
{
    double p = 1;
    for (size_t i = from; i < to && i < s->n; i++)
        p *= s->dim[i];
    return p;
}

static double dimension_from_end(const struct shape *s, size_t back)
{
    return s->n >= back ? s->dim[s->n - back] : 1;
}

/* Returns the operation of a call: "linear" for "Functional.linear.3". */
static struct ms_str operation_of(struct ms_str call)
{
    struct ms_str rest = call, part, before = {"", 0}, op = {"", 0};
    while (ms_str_split(&rest, '.', &part)) {
        op = before;
        before = part;
    }
    return op;
}

static bool is_one_of(struct ms_str op, const char *const *names)
{
    while (*names != NULL && !ms_str_is(op, *names))
        names++;
    return *names != NULL;
}

static double flops_of(struct ms_str op, const struct record *r)
{
    static const char *const products[] = {
        "linear", "matmul", "mm",          "bmm",        "mv",           "dot", "Linear",
        "Dense",  "MatMul", "BatchMatMul", "__matmul__", "batch_matmul", NULL};
    static const char *const added[] = {"addmm", "baddbmm", "addbmm", NULL};
    static const char *const convolutions[] = {"conv1d", "conv2d", "conv3d", NULL};
    static const char *const attention[] = {"scaled_dot_product_attention", "npu_fusion_attention",
                                            "flash_attention_score", NULL};
    const double out = product_of(&r->out, 0, DIMS_MAX);
    if (r->outs == 0 || r->ins < 2)
        return 0;
    if (is_one_of(op, products))
        return 2 * out * dimension_from_end(&r->in[0], 1);
    if (is_one_of(op, added) && r->ins > 2)
        return 2 * out * dimension_from_end(&r->in[1], 1);
    if (is_one_of(op, convolutions))
        return 2 * out * product_of(&r->in[1], 1, DIMS_MAX);
    if (is_one_of(op, attention)) /* two products: query by key, scores by value */
        return 4 * product_of(&r->in[0], 0, r->in[0].n) * dimension_from_end(&r->in[1], 2);
    return 0;
}

struct counting {
    struct mstx_flops *f;
    struct ms_map call;     /* names such as "Functional.linear.3" */
    MS_VEC(double) forward; /* by call: operations of its forward record */
    struct ms_arena *names;
};

static enum ms_rc keep_forward(struct counting *c, struct ms_str call, double flops,
                               struct ms_err *err)
{
    const uint32_t at = ms_map_put_copy(&c->call, call, c->names, NULL);
    if (at == MS_MAP_NONE)
        return ms_no_memory(err);
    while (c->forward.n <= at) {
        double *slot = ms_vec_push(&c->forward);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = 0;
    }
    c->forward.p[at] = flops;
    return MS_OK;
}

static enum ms_rc count_flops(struct counting *c, struct ms_str name, const struct record *r,
                              struct ms_err *err)
{
    const struct ms_str forward = MS_STR(".forward"), backward = MS_STR(".backward");
    double flops = 0;
    if (ms_str_ends(name, forward)) {
        const struct ms_str call = ms_str_sub(name, 0, name.n - forward.n);
        flops = flops_of(operation_of(call), r);
        if (flops > 0)
            MS_TRY(keep_forward(c, call, flops, err));
    } else if (ms_str_ends(name, backward)) {
        const uint32_t at = ms_map_get(&c->call, ms_str_sub(name, 0, name.n - backward.n));
        flops = at != MS_MAP_NONE ? 2 * c->forward.p[at] : 0;
    }
    c->f->machine += flops;
    c->f->model += r->recomputed ? 0 : flops;
    return MS_OK;
}

enum ms_rc mstx_flops_of_dump(struct mstx_flops *f, const char *path, struct ms_err *err)
{
    struct probe_dump *dump;
    struct counting c = {.f = f, .names = ms_arena_new((size_t)1 << 30)};
    *f = (struct mstx_flops){0};
    if (c.names == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = probe_dump_open(&dump, path, PROBE_OPEN_TOLERANT, NULL, err);
    if (rc == MS_OK) {
        /* an incomplete step would give a wrong figure */
        if (dump->problems.n != 0)
            rc = ms_fail(err, MS_E_FORMAT, "%s: %.*s", path, MS_STR_ARG(dump->problems.p[0]));
        for (uint32_t i = 0; rc == MS_OK && i < dump->nodes.n; i++) {
            const struct record r = read_record(dump, &dump->nodes.p[i]);
            rc = count_flops(&c, probe_node_name(dump, i), &r, err);
        }
        if (rc == MS_OK && f->machine <= 0)
            rc = ms_fail(err, MS_E_NOTFOUND, "%s: has no matrix product with shapes", path);
        probe_dump_close(dump);
    }
    ms_map_free(&c.call);
    ms_vec_free(&c.forward);
    ms_arena_free(c.names);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * tl_flops: floating point operations of one step, from the shapes that a dump has of its calls.
 *
 *     "Functional.linear.0.forward": {"input_args": [{"shape": [..]}, ..], "output": [{..}]}
 *
 * Of a product the output and the length that is summed over tell the operations; so the order in
 * which a framework passes its operands does not matter, but for that length.
 */
#include "mstx/tl_use.h"

#include "probe/base/io.h"
#include "probe/base/jread.h"
#include "probe/base/map.h"
#include "probe/base/mem.h"

#include <string.h>

enum { DIMS_MAX = 8, INPUTS_MAX = 4 };
static const double DIM_MOST =
    1e12; /* no tensor is longer: what is, is damage and counts nothing */

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

static bool read_shape(struct ms_jread *j, struct shape *s)
{
    enum ms_jtok t = ms_jread_next(j);
    s->n = 0;
    if (t != MS_J_ARR)
        return ms_jread_skip(j, t) != MS_J_ERR;
    while ((t = ms_jread_next(j)) != MS_J_ARR_END) {
        double v;
        if (t == MS_J_NUM && s->n < DIMS_MAX && ms_jread_f64(j, &v))
            s->dim[s->n++] = v >= 0 && v < DIM_MOST ? v : 0;
        else if (ms_jread_skip(j, t) == MS_J_ERR)
            return false;
    }
    return true;
}

/* Shapes of the tensors in a value, in their order. */
static bool read_tensors(struct ms_jread *j, enum ms_jtok t, struct shape *to, size_t most,
                         size_t *n)
{
    if (t == MS_J_ARR) {
        while ((t = ms_jread_next(j)) != MS_J_ARR_END) {
            if (t == MS_J_ERR || !read_tensors(j, t, to, most, n))
                return false;
        }
        return true;
    }
    if (t != MS_J_OBJ)
        return t != MS_J_ERR;
    while ((t = ms_jread_next(j)) == MS_J_KEY) {
        struct shape s;
        if (ms_str_is(j->text, "shape")) {
            if (!read_shape(j, &s))
                return false;
            if (*n < most)
                to[(*n)++] = s;
        } else if (!read_tensors(j, ms_jread_next(j), to, most, n)) {
            return false;
        }
    }
    return t == MS_J_OBJ_END;
}

static bool read_record(struct ms_jread *j, struct record *r)
{
    enum ms_jtok t = ms_jread_next(j);
    *r = (struct record){0};
    if (t != MS_J_OBJ)
        return ms_jread_skip(j, t) != MS_J_ERR;
    while ((t = ms_jread_next(j)) == MS_J_KEY) {
        const struct ms_str key = j->text;
        const bool is_in = ms_str_is(key, "input_args") || ms_str_is(key, "input_kwargs");
        bool ok = true;
        t = ms_jread_next(j);
        if (is_in)
            ok = read_tensors(j, t, r->in, INPUTS_MAX, &r->ins);
        else if (ms_str_is(key, "output"))
            ok = read_tensors(j, t, &r->out, 1, &r->outs);
        else
            ok = ms_jread_skip(j, t) != MS_J_ERR;
        if (ms_str_is(key, "is_recompute"))
            r->recomputed = t == MS_J_TRUE;
        if (!ok)
            return false;
    }
    return t == MS_J_OBJ_END;
}

/* ---- counting -------------------------------------------------------------------- */

static double product(const struct shape *s, size_t from, size_t to)
{
    double p = 1;
    for (size_t i = from; i < to && i < s->n; i++)
        p *= s->dim[i];
    return p;
}

static double last(const struct shape *s, size_t back)
{
    return s->n >= back ? s->dim[s->n - back] : 1;
}

/* "Functional.linear.3" has the operation "linear". */
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
    const double out = product(&r->out, 0, DIMS_MAX);
    if (r->outs == 0 || r->ins < 2)
        return 0;
    if (is_one_of(op, products))
        return 2 * out * last(&r->in[0], 1);
    if (is_one_of(op, added) && r->ins > 2)
        return 2 * out * last(&r->in[1], 1);
    if (is_one_of(op, convolutions))
        return 2 * out * product(&r->in[1], 1, DIMS_MAX);
    if (is_one_of(op, attention)) /* the scores, and the values that they weigh */
        return 4 * product(&r->in[0], 0, r->in[0].n) * last(&r->in[1], 2);
    return 0;
}

struct counting {
    struct mstx_flops *f;
    struct ms_map call;     /* "Functional.linear.3" */
    MS_VEC(double) forward; /* of it */
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

static enum ms_rc count(struct counting *c, struct ms_str name, const struct record *r,
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

static enum ms_rc read_data(struct counting *c, struct ms_jread *j, struct ms_err *err)
{
    enum ms_jtok t = ms_jread_next(j);
    struct record r;
    if (t != MS_J_OBJ)
        return ms_jread_reject(j, err, "expected an object of records");
    while ((t = ms_jread_next(j)) == MS_J_KEY) {
        const struct ms_str name = j->text;
        if (!read_record(j, &r))
            return ms_jread_fail(j, err);
        MS_TRY(count(c, name, &r, err));
    }
    return t == MS_J_OBJ_END ? MS_OK : ms_jread_fail(j, err);
}

static enum ms_rc read_dump(struct counting *c, struct ms_jread *j, struct ms_err *err)
{
    enum ms_jtok t = ms_jread_next(j);
    bool found = false;
    if (t != MS_J_OBJ)
        return t == MS_J_ERR ? ms_jread_fail(j, err)
                             : ms_jread_reject(j, err, "expected an object");
    while ((t = ms_jread_next(j)) == MS_J_KEY) {
        if (ms_str_is(j->text, "data")) {
            found = true;
            MS_TRY(read_data(c, j, err));
        } else if (ms_jread_skip(j, ms_jread_next(j)) == MS_J_ERR) {
            return ms_jread_fail(j, err);
        }
    }
    if (t != MS_J_OBJ_END)
        return ms_jread_fail(j, err);
    return found ? MS_OK : ms_fail(err, MS_E_FORMAT, "has no 'data': it is no dump.json");
}

enum ms_rc mstx_flops_of_dump(struct mstx_flops *f, const char *path, struct ms_err *err)
{
    struct ms_file file;
    struct ms_jread j;
    struct counting c = {.f = f, .names = ms_arena_new((size_t)1 << 30)};
    *f = (struct mstx_flops){0};
    if (c.names == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_file_map(&file, path, MS_JSON_MAX, err);
    if (rc == MS_OK) {
        ms_jread_init(&j, file.p, file.n, 0);
        rc = read_dump(&c, &j, err);
        if (rc == MS_OK && f->machine <= 0)
            rc = ms_fail(err, MS_E_NOTFOUND, "has no matrix product with shapes");
        if (rc != MS_OK)
            ms_err_wrap(err, "%s", path);
        ms_file_unmap(&file);
    }
    ms_map_free(&c.call);
    ms_vec_free(&c.forward);
    ms_arena_free(c.names);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * node_facts: properties of a single node, independent of other nodes.
 *
 * The name of the operator decides how differences pass through it, the types how coarse
 * its values are, the sizes whether it sums.
 */
#include "compare/observe/node_facts.h"
#include "compare/align/likeness.h"
#include "probe/base/assert.h"

#include <math.h>

/* ---- constants ----------------------------------------------------------- */

/* "Clean" figures are the largest of 288 pairs of real PyTorch runs without a fault; sensitivity
 * was measured on 83 faults and 90 clean pairs (README.md). Constants without a figure were chosen
 * with tests/gen/torch_faults.py and torch_shapes.py, which `make bench-source` runs. */
const struct observe__rules observe__rule = {
    .exact = 2.4e-7, /* a quarter of this flags 2 clean pairs */
    .exact_kernels = 6e-7,
    /* MindSpore's kernels for CPUs beside float64: tanh 2.4e-5, exp 5.4e-6, all others below 1e-6 */
    .exact_series = 3e-5,
    /* Clean: 3.1 in statistics, 1.8 in tensor mode. 1.5 flags 32 clean pairs; 10 misses no
     * fault. */
    .forward = {4, 3},
    /* EfficientNet with another number of threads: 6.6, while most calls have 2 */
    .usual_times = 4,
    .usual_most = 16,
    .forward_low = 1.3,
    .gradients = 3,           /* clean: 1.7 */
    .backward = {12, 8},      /* clean: 10 and 7.0 */
    .backward_low = {30, 14}, /* clean: 20 and 9.1 */
    .backward_calm = {10, 6},
    .turned_least = 0.1,
    .norm_forward = 6,    /* clean: 4.2; without the rule for norms 4 of 83 faults are missed */
    .norm_backward = 100, /* clean: 57 */
    .norm_calm = 12,
    .norm_units = 5,
    .norm_even = 4,
    .norm_least = 1e-4,
    .norm_learned = 1.5,
    .norm_effect = 2,
    .start = 2.5,
    .forward_few = 2,       /* RegNet with another number of threads: a batch norm 5.1 times */
    .backward_noisy = 1e-3, /* DenseNet in float64, RegNet in another layout: 5.1e-4 */
    .backward_least = 1e-4, /* batch norms over few values: 3.4e-5 in another memory layout */
    .hidden = 1e-5,
    .shown = 1e-8,
    .resummed = 1e-6,
    .turned_most = 16,
    .turned_chance = 64,
    .inherited = 0.5,
    .parameter_norm = 6,
    .unexplained_input = 1e-2,
    .systemic_share = 0.2,
    .start_few = 12, /* with fewer, noise of 1e-3 flagged 2 of 32 runs without parameters */
};

/* ---- operators ----------------------------------------------------------- */

struct entry {
    const char *name; /* name of a family of operators */
    unsigned flags;
};

static const struct entry families[] = {
    {"relu", OBSERVE__SWITCH | OBSERVE__EXACT},
    {"relu6", OBSERVE__SWITCH},
    {"leakyrelu", OBSERVE__SWITCH},
    {"elu", OBSERVE__SWITCH},
    {"hardswish", OBSERVE__SWITCH},
    {"hardsigmoid", OBSERVE__SWITCH},
    {"maxpool", OBSERVE__SWITCH},
    {"adaptivemaxpool", OBSERVE__SWITCH},
    {"clamp", OBSERVE__SWITCH | OBSERVE__EXACT},
    {"where", OBSERVE__SWITCH | OBSERVE__EXACT},
    {"abs", OBSERVE__SWITCH | OBSERVE__EXACT},
    {"topk", OBSERVE__SWITCH},
    {"max", OBSERVE__SWITCH},
    {"min", OBSERVE__SWITCH},
    {"argsort", OBSERVE__SWITCH},
    {"allreduce", OBSERVE__COMM},
    {"allgather", OBSERVE__COMM},
    {"reducescatter", OBSERVE__COMM},
    {"alltoall", OBSERVE__COMM},
    {"broadcast", OBSERVE__COMM},
    {"send", OBSERVE__SEND},
    {"recv", OBSERVE__COMM | OBSERVE__RECEIVE},
    {"p2p", OBSERVE__COMM | OBSERVE__SEND | OBSERVE__RECEIVE},
    {"cast", OBSERVE__CAST | OBSERVE__EVEN},
    {"linear", OBSERVE__WEIGHED},
    {"conv", OBSERVE__WEIGHED | OBSERVE__WILD},
    {"layernorm", OBSERVE__WEIGHED | OBSERVE__NORMS | OBSERVE__WILD},
    {"batchnorm", OBSERVE__WEIGHED | OBSERVE__NORMS | OBSERVE__WILD},
    {"groupnorm", OBSERVE__WEIGHED | OBSERVE__NORMS | OBSERVE__WILD},
    {"instancenorm", OBSERVE__WEIGHED | OBSERVE__NORMS | OBSERVE__WILD},
    {"rmsnorm", OBSERVE__WEIGHED | OBSERVE__NORMS | OBSERVE__WILD},
    {"embedding", OBSERVE__LOOKUP},
    {"dropout", OBSERVE__DROPS},
    {"mask", OBSERVE__MASKS | OBSERVE__EXACT},
    {"add", OBSERVE__ADDS | OBSERVE__EXACT | OBSERVE__EVEN | OBSERVE__CANCELS},
    {"sub", OBSERVE__EXACT | OBSERVE__EVEN | OBSERVE__CANCELS},
    {"mul", OBSERVE__EXACT},
    {"neg", OBSERVE__EXACT | OBSERVE__EVEN},
    {"cat", OBSERVE__EXACT},
    {"stack", OBSERVE__EXACT},
    {"split", OBSERVE__EXACT | OBSERVE__EVEN | OBSERVE__VIEW},
    {"getitem", OBSERVE__VIEW},
    {"reshape", OBSERVE__EXACT | OBSERVE__EVEN | OBSERVE__VIEW},
    {"transpose", OBSERVE__EXACT | OBSERVE__EVEN | OBSERVE__VIEW},
    {"contiguous", OBSERVE__EXACT | OBSERVE__EVEN | OBSERVE__VIEW},
    {"biasadd", OBSERVE__ADDS},
    {"sum", OBSERVE__EVEN | OBSERVE__SUMS},
    {"square", OBSERVE__POWER},
    {"mean", OBSERVE__EVEN | OBSERVE__MEANS},
    {"tanh", OBSERVE__SERIES},
    {"exp", OBSERVE__SERIES},
};

/* Tells whether an operator is a collective of torch.distributed that has no family in align/. */
static bool is_distributed(struct ms_str api)
{
    return ms_str_starts(api, MS_STR("Distributed.")) ||
           ms_str_starts(api, MS_STR("MintDistributed.")) ||
           ms_str_starts(api, MS_STR("Functional_distributed."));
}

unsigned observe__op_flags(struct ms_str api)
{
    const char *family = align__family_text(align__family_find(api));
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (strcmp(families[i].name, family) == 0)
            return families[i].flags;
    }
    return is_distributed(api) ? OBSERVE__COMM : 0;
}

struct observe__op observe__op_of(struct ms_str api)
{
    return (struct observe__op){api, observe__op_flags(api), align__family_find(api)};
}

struct ms_str observe__op_name(const struct probe_dump *d, uint32_t node)
{
    struct ms_str name = probe_node_name(d, node);
    struct probe_name n = probe_name_parse(name);
    return ms_str_sub(name, 0, n.prefix.n + 1 + n.path.n);
}

uint32_t observe__same_call(const struct probe_dump *d, uint32_t node, const char *direction)
{
    struct ms_buf name = {.max = 1 << 16};
    ms_buf_str(&name, probe_name_cut(probe_node_name(d, node), 1));
    ms_buf_puts(&name, direction);
    uint32_t found = name.bad == MS_OK ? probe_node_find(d, ms_buf_slice(&name)) : MS_MAP_NONE;
    ms_buf_free(&name);
    return found;
}

bool observe__is_in_place(struct ms_str op)
{
    static const char *const names[] = {"add_",     "sub_",     "mul_",        "div_",
                                        "lerp_",    "addcmul_", "addcdiv_",    "__iadd__",
                                        "__isub__", "__imul__", "__itruediv__"};
    const struct ms_str name = probe_name_last(op);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (ms_str_is(name, names[i]))
            return true;
    }
    return false;
}

bool observe__is_named(const struct observe__part *p, const struct observe__node *n,
                       const char *const *names)
{
    const struct ms_str name = probe_name_last(p->ops.p[n->op].name);
    for (; *names != NULL; names++) {
        if (ms_str_is(name, *names))
            return true;
    }
    return false;
}

bool observe__is_other_operator(const struct observe__part *p, const struct observe__node *n)
{
    struct probe_name g = probe_name_parse(observe__name(p, 0, n->id[0]));
    struct probe_name t = probe_name_parse(observe__name(p, 1, n->id[1]));
    return !ms_str_eq(g.path, t.path);
}

/* ---- types --------------------------------------------------------------- */

double observe__unit(uint8_t dtype)
{
    const double unit = ms_dtype_unit((enum ms_dtype)dtype);
    return unit > 0x1p-24 ? unit : 0;
}

double observe__roundoff(const struct observe__leaf *l, bool *differ)
{
    double a = l->flags & OBSERVE__FINE_GOLDEN ? 0 : observe__unit(l->dtype[0]);
    double b = l->flags & OBSERVE__FINE_TARGET ? 0 : observe__unit(l->dtype[1]);
    *differ = a != b;
    ms_assert(a >= 0 && a < 1 && b >= 0 && b < 1);
    return fmax(a, b);
}

/* ---- sizes and directions ------------------------------------------------ */

bool observe__is_backward(const struct observe__node *n)
{
    return n->dir == PROBE_BACKWARD && n->kind != PROBE_NODE_PGRAD;
}

void observe__count_elements(const struct observe__part *p, const struct observe__node *n,
                             float *read, float *made)
{
    *read = *made = 0;
    ms_assert(n->leaf + n->nleaf <= p->leaves.n);
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        if (l->flags & OBSERVE__IS_OUT)
            *made = *made == 0 ? l->count : fminf(*made, l->count);
        else
            *read = fmaxf(*read, l->count);
    }
}

bool observe__is_even(const struct observe__part *p, const struct observe__node *n)
{
    float read, made;
    if (!observe__is_backward(n) || p->cross || n->kind != PROBE_NODE_API ||
        (p->ops.p[n->op].flags & OBSERVE__EVEN) == 0)
        return false;
    observe__count_elements(p, n, &read, &made);
    return made >= read;
}

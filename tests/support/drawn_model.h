/* SPDX-License-Identifier: MIT
 *
 * drawn_model: dumps of both sides of a drawn model that no framework would make: operators of any family
 * in modules of any shape, fused or not, sharded, recomputed, omitted, doubled or swapped on one side, with
 * values that are numbers, integers, constants, NaN, digests or nothing.
 *
 *     struct dm_side side[2];
 *     dm_draw(side, seed, parts);          0 is golden, 1 the target; about 20 operators a part
 *     ms_buf_z(&side[0].dump), ms_buf_z(&side[0].construct)
 *     dm_free(side);
 */
#ifndef TESTS_SUPPORT_DRAWN_MODEL_H
#define TESTS_SUPPORT_DRAWN_MODEL_H

#include "probe/base/str.h"
#include "tests/support/check.h"
#include "tests/support/draw.h"

#include <math.h>

enum {
    DM_TENSORS = 4000,
    DM_EVENTS = 1600,
    DM_MODULES = 320,
    DM_APIS = 40,
    DM_DEPTH = 4,
    DM_NAMES = 12
};
enum dm_kind { DM_FLOAT, DM_INT, DM_BOOL, DM_NAN, DM_CONSTANT, DM_NOTHING };
enum dm_what { DM_OP, DM_OPEN, DM_CLOSE };

struct dm_tensor {
    enum dm_kind kind;
    unsigned nd, shape[5];
};

struct dm_event {
    enum dm_what what;
    unsigned api, module;         /* the module around it, or that opens or closes */
    unsigned in[6], ins, params;  /* the last `params` of the inputs are parameters */
    unsigned out[3], outs, again; /* again: the call that is made again, plus 1 */
    unsigned group, form;         /* form 0: on both sides, 1 or 2: where the group has this form */
    bool scalar, keyword;
};

struct dm_module {
    unsigned parent, name, cls, params, param[3], out;
};

/* What differs on one side. */
struct dm_side {
    bool mindspore, md5, parameters, backward, gradients, marked, tree, shapes_only;
    unsigned omits, doubles, swaps, cut, salt, layout, fault;
    double noise;
    unsigned calls[DM_APIS];

    struct ms_buf data, nodes, back, dump, construct;
};

struct dm_model {
    uint64_t state;
    struct dm_tensor tensor[DM_TENSORS];
    struct dm_event event[DM_EVENTS];
    struct dm_module module[DM_MODULES];
    unsigned tensors, events, modules, groups;
};

#define dm_below(m, n) draw_below((m)->state, (n))

static const char *const dm_api_names[DM_APIS][2] = {
    {"Functional.linear", "Mint.nn.functional.linear"},
    {"Torch.matmul", "Mint.matmul"},
    {"Torch.add", "Mint.add"},
    {"Tensor.__mul__", "Primitive.Mul"},
    {"Functional.softmax", "Mint.nn.functional.softmax"},
    {"Functional.rms_norm", "Primitive.RmsNorm"},
    {"Functional.layer_norm", "Mint.nn.functional.layer_norm"},
    {"Functional.silu", "Mint.nn.functional.silu"},
    {"Functional.gelu", "Primitive.GeLU"},
    {"Tensor.view", "Tensor.reshape"},
    {"Torch.transpose", "Mint.transpose"},
    {"Tensor.permute", "Tensor.permute"},
    {"Torch.split", "Mint.split"},
    {"Torch.chunk", "Mint.chunk"},
    {"Tensor.to", "Functional.cast"},
    {"Torch.mean", "Mint.mean"},
    {"Torch.sqrt", "Mint.sqrt"},
    {"Torch.div", "Mint.div"},
    {"NPU.npu_swiglu", "Functional.swiglu"},
    {"NPU.npu_fusion_attention", "Functional.flash_attention_score"},
    {"NPU.npu_rms_norm", "Functional.rms_norm"},
    {"Functional.embedding", "Primitive.Gather"},
    {"Functional.cross_entropy", "Functional.cross_entropy"},
    {"Distributed.all_reduce", "Primitive.AllReduce"},
    {"Distributed.all_gather_into_tensor", "Primitive.AllGather"},
    {"Torch.my_kernel", "Mint.their_kernel"},
    {"Torch.my_other", "Mint.my_other"},
    {"Torch.odd_thing", "Primitive.EvenThing"},
    {"Torch.cat", "Mint.cat"},
    {"Torch.baddbmm", "Mint.baddbmm"},
    {"Functional.dropout", "Mint.nn.functional.dropout"},
    {"Torch.where", "Mint.where"},
    {"Torch.sum", "Mint.sum"},
    {"Torch.relu", "Mint.nn.functional.relu"},
    {"Torch.sigmoid", "Mint.sigmoid"},
    {"Torch.exp", "Mint.exp"},
    {"Torch.pow", "Mint.pow"},
    {"Tensor.contiguous", "Tensor.contiguous"},
    {"Functional.conv2d", "Mint.nn.functional.conv2d"},
    {"Torch.addmm", "Mint.addmm"}};
enum {
    DM_LINEAR = 0,
    DM_MATMUL = 1,
    DM_MUL = 3,
    DM_SOFTMAX = 4,
    DM_SILU = 7,
    DM_SPLIT = 12,
    DM_DIV = 17,
    DM_SWIGLU = 18,
    DM_ATTENTION = 19,
    DM_FUSED_NORM = 20,
    DM_MEAN = 15,
    DM_SQRT = 16
};

static const char *const dm_module_names[][2] = {
    {"self_attn", "attention"},       {"mlp", "feed_forward"},
    {"input_norm", "attention_norm"}, {"q_proj", "wq"},
    {"fc1", "dense_h_to_4h"},         {"experts.0", "experts.cell_0"},
    {"embed", "tok_embeddings"},      {"layers.0", "layers.0"},
    {"layers.1", "layers.1"},         {"o_proj", "wo"},
    {"layers.block", "layers.block"}, {"layers.x", "layers."}};
static const char *const dm_class_names[][2] = {{"Attention", "SelfAttention"},
                                                {"MLP", "FeedForward"},
                                                {"RMSNorm", "FusedRMSNorm"},
                                                {"Linear", "Dense"},
                                                {"ColumnParallelLinear", "ColumnParallelLinear"},
                                                {"Block", "TransformerLayer"},
                                                {"Embedding", "Embedding"},
                                                {"ParallelTransformer", "ParallelTransformer"}};

/* ---- the model --------------------------------------------------------------------------------- */

static inline unsigned dm_tensor(struct dm_model *m, bool is_parameter)
{
    ck_assert_uint_lt(m->tensors, DM_TENSORS);
    struct dm_tensor *t = &m->tensor[m->tensors];
    static const unsigned sizes[] = {1, 2, 4, 8, 8, 16, 16, 32, 24, 48};
    t->nd = is_parameter          ? 1 + dm_below(m, 2)
            : dm_below(m, 9) == 0 ? dm_below(m, 6)
                                  : 2 + dm_below(m, 2);
    for (unsigned i = 0; i < t->nd; i++)
        t->shape[i] = sizes[dm_below(m, 10)];
    t->kind = is_parameter || dm_below(m, 5) != 0 ? DM_FLOAT : (enum dm_kind)dm_below(m, 6);
    return m->tensors++;
}

/* A tensor that was made not long ago, or one from outside. */
static inline unsigned dm_reads(struct dm_model *m)
{
    if (m->tensors < 4 || dm_below(m, 8) == 0)
        return dm_tensor(m, false);
    return m->tensors - 1 -
           dm_below(m, m->tensors < 12       ? m->tensors
                       : dm_below(m, 6) == 0 ? m->tensors
                                             : 6);
}

static inline struct dm_event *dm_event(struct dm_model *m, enum dm_what what, unsigned module)
{
    ck_assert_uint_lt(m->events, DM_EVENTS);
    struct dm_event *e = &m->event[m->events++];
    *e = (struct dm_event){.what = what, .module = module};
    return e;
}

static inline struct dm_event *dm_op(struct dm_model *m, unsigned module, unsigned api,
                                     unsigned form)
{
    struct dm_event *e = dm_event(m, DM_OP, module);
    const struct dm_module *in = &m->module[module];
    e->api = api;
    e->group = m->groups;
    e->form = form;
    for (unsigned n = 1 + dm_below(m, 3); n > 0; n--)
        e->in[e->ins++] = dm_reads(m);
    for (unsigned i = 0; i < in->params && dm_below(m, 3) == 0; i++, e->params++)
        e->in[e->ins++] = in->param[i];
    e->scalar = dm_below(m, 6) == 0;
    e->keyword = dm_below(m, 9) == 0;
    return e;
}

static inline void dm_writes(struct dm_model *m, struct dm_event *e, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        e->out[e->outs++] = dm_below(m, 14) == 0 && e->ins != 0 ? e->in[0] : dm_tensor(m, false);
}

/* One operator, or several in its place, which end in the same value. */
static inline void dm_fused(struct dm_model *m, unsigned module)
{
    static const unsigned forms[3][5] = {{DM_SWIGLU, DM_SILU, DM_MUL},
                                         {DM_ATTENTION, DM_MATMUL, DM_DIV, DM_SOFTMAX, DM_MATMUL},
                                         {DM_FUSED_NORM, DM_MEAN, DM_SQRT, DM_DIV, DM_MUL}};
    const unsigned *form = forms[dm_below(m, 3)];
    m->groups++;
    struct dm_event *whole = dm_op(m, module, form[0], 1), *last = NULL;
    dm_writes(m, whole, 1);
    const unsigned end = whole->out[0];
    unsigned before = whole->in[0];
    for (unsigned i = 1; i < 5 && form[i] != 0; i++) {
        last = dm_op(m, module, form[i], 2);
        last->ins = last->params = 0;
        last->in[last->ins++] = before;
        if (whole->ins > i)
            last->in[last->ins++] = whole->in[i];
        before = last->out[last->outs++] = dm_tensor(m, false);
    }
    last->out[0] = end;
}

static inline unsigned dm_new_module(struct dm_model *m, unsigned parent)
{
    struct dm_module *new = &m->module[m->modules];
    *new = (struct dm_module){.parent = parent,
                              .name = dm_below(m, DM_NAMES),
                              .cls = m->modules == 0 ? dm_below(m, 8) : dm_below(m, 7)};
    if (dm_below(m, 2) == 0)
        for (unsigned n = 1 + dm_below(m, 3); n > 0; n--)
            new->param[new->params++] = dm_tensor(m, true);
    return m->modules++;
}

/* Three modules of one parameter each, or one that holds all three and a split of its result. */
static inline void dm_trio(struct dm_model *m, unsigned parent)
{
    const unsigned group = ++m->groups, from = dm_reads(m), rows = 8 << dm_below(m, 3);
    unsigned parts[3];
    for (unsigned i = 0; i < 4; i++) {
        const unsigned at = dm_new_module(m, parent), whole = i == 3, form = whole ? 2 : 1;
        struct dm_module *own = &m->module[at];
        own->params = 1;
        own->param[0] = dm_tensor(m, true);
        own->name = 3;
        own->cls = 3;
        m->tensor[own->param[0]] = (struct dm_tensor){DM_FLOAT, 2, {whole ? 3 * rows : rows, 16}};
        struct dm_event *e = dm_event(m, DM_OPEN, at);
        e->group = group, e->form = form;
        e = dm_event(m, DM_OP, at);
        *e =
            (struct dm_event){DM_OP, DM_LINEAR, at,   {from, own->param[0]}, 2, 1, {0}, 1, 0, group,
                              form,  false,     false};
        e->out[0] = own->out = dm_tensor(m, false);
        m->tensor[own->out] = (struct dm_tensor){DM_FLOAT, 2, {4, whole ? 3 * rows : rows}};
        if (!whole)
            parts[i] = own->out;
        e = dm_event(m, DM_CLOSE, at);
        e->group = group, e->form = form;
        if (whole) {
            e = dm_event(m, DM_OP, parent);
            *e = (struct dm_event){
                DM_OP, DM_SPLIT, parent, {own->out}, 1,     0,    {parts[0], parts[1], parts[2]},
                3,     0,        group,  2,          false, false};
        }
    }
}

static inline void dm_fill(struct dm_model *m, unsigned module, unsigned depth)
{
    for (unsigned n = 2 + dm_below(m, 4); n > 0 && m->events + 30 < DM_EVENTS; n--) {
        const unsigned choice = dm_below(m, 10);
        if (choice < 3 && depth < DM_DEPTH && m->modules + 6 < DM_MODULES) {
            const unsigned inner = dm_new_module(m, module);
            dm_event(m, DM_OPEN, inner);
            dm_fill(m, inner, depth + 1);
            m->module[inner].out = m->tensors - 1;
            dm_event(m, DM_CLOSE, inner);
        } else if (choice == 3 && m->modules + 6 < DM_MODULES) {
            dm_trio(m, module);
        } else if (choice == 4) {
            dm_fused(m, module);
        } else {
            dm_writes(m, dm_op(m, module, dm_below(m, DM_APIS), 0),
                      dm_below(m, 7) == 0 ? dm_below(m, 4) : 1);
        }
    }
}

/* Calls of one module are made again behind all others, as checkpoints do. */
static inline void dm_repeat(struct dm_model *m)
{
    const unsigned module = dm_below(m, m->modules), events = m->events;
    for (unsigned i = 0; i < events && m->events < DM_EVENTS; i++) {
        if (m->event[i].what == DM_OP && m->event[i].module == module) {
            m->event[m->events] = m->event[i];
            m->event[m->events++].again = i + 1;
        }
    }
}

/* ---- one side ---------------------------------------------------------------------------------------- */

static inline void dm_put_name(const struct dm_model *m, const struct dm_side *s, unsigned module,
                               char to[400])
{
    char up[400] = "net";
    const struct dm_module *o = &m->module[module];
    if (o->parent != module) {
        dm_put_name(m, s, o->parent, up);
        snprintf(to, 400, "%.300s.%s%u", up, dm_module_names[o->name][s->mindspore], module);
    } else {
        snprintf(to, 400, "%s", up);
    }
}

static inline void dm_record_name(const struct dm_model *m, const struct dm_side *s,
                                  unsigned module, const char *direction, unsigned call,
                                  char to[480])
{
    char path[400];
    dm_put_name(m, s, module, path);
    snprintf(to, 480, "%s.%s.%s.%s.%u", s->mindspore ? "Cell" : "Module", path,
             dm_class_names[m->module[module].cls][s->mindspore], direction, call);
}

static inline void dm_put_stats(struct ms_buf *b, const struct dm_side *s,
                                const struct dm_tensor *t, uint64_t h, double elements)
{
    const double sigma = exp((double)(h % 997) / 250) / 8,
                 off = 1 + s->noise * ((double)(h / 131 % 200) / 100 - 1);
    if (s->md5)
        ms_buf_printf(b, ", \"md5\": \"%08llx\"", (unsigned long long)(h & 0xffffffff));
    else if (t->kind == DM_NAN)
        ms_buf_puts(b,
                    ", \"Max\": \"nan\", \"Min\": \"nan\", \"Mean\": \"nan\", \"Norm\": \"nan\"");
    else if (t->kind == DM_INT)
        ms_buf_printf(b, ", \"Max\": %u, \"Min\": %u, \"Mean\": null, \"Norm\": null",
                      (unsigned)(h % 90 + 7), (unsigned)(h % 7));
    else if (t->kind == DM_BOOL)
        ms_buf_printf(b, ", \"Max\": true, \"Min\": %s, \"Mean\": null, \"Norm\": null",
                      h % 2 != 0 ? "true" : "false");
    else if (t->kind == DM_CONSTANT)
        ms_buf_printf(b, ", \"Max\": %u, \"Min\": %u, \"Mean\": %u, \"Norm\": %.6g",
                      (unsigned)(h % 2), (unsigned)(h % 2), (unsigned)(h % 2),
                      (double)(h % 2) * sqrt(elements));
    else
        ms_buf_printf(b, ", \"Max\": %.6g, \"Min\": %.6g, \"Mean\": %.6g, \"Norm\": %.6g",
                      3 * sigma * off, -2.5 * sigma / off, sigma / 50 * off,
                      sigma * sqrt(elements) * off);
}

static inline void dm_put_tensor(const struct dm_model *m, struct dm_side *s, struct ms_buf *b,
                                 unsigned id, unsigned as, bool is_parameter)
{
    static const char *const types[2][3] = {{"torch.float32", "torch.int64", "torch.bool"},
                                            {"Float32", "Int64", "Bool"}};
    const struct dm_tensor *t = &m->tensor[id];
    const unsigned type = t->kind == DM_INT ? 1 : t->kind == DM_BOOL ? 2 : 0;
    double elements = 1;
    ms_buf_printf(b, "{\"type\": \"%s\", \"dtype\": \"%s\", \"shape\": [",
                  s->mindspore ? "mindspore.Tensor" : "torch.Tensor", types[s->mindspore][type]);
    for (unsigned i = 0; i < t->nd; i++) {
        unsigned n = t->shape[s->layout == 1 && !is_parameter ? t->nd - 1 - i : i];
        if (is_parameter && i == 0 && n % s->cut == 0)
            n /= s->cut;
        elements *= n;
        ms_buf_printf(b, "%s%u", i != 0 ? ", " : s->layout == 2 ? "1, " : "", n);
    }
    ms_buf_puts(b, "]");
    if (!s->shapes_only && t->kind != DM_NOTHING)
        dm_put_stats(b, s, t, ms_hash_mix(ms_hash_mix(id + 1, as + 1), s->salt), elements);
    ms_buf_puts(b, "}");
}

static inline void dm_put_list(const struct dm_model *m, struct dm_side *s, struct ms_buf *b,
                               const char *key, const unsigned *list, unsigned n, unsigned as,
                               const struct dm_event *with)
{
    ms_buf_printf(b, "\"%s\": [", key);
    for (unsigned i = 0; i < n; i++) {
        ms_buf_puts(b, i != 0 ? ", " : "");
        dm_put_tensor(m, s, b, list[i], as, false);
    }
    if (with != NULL && with->scalar)
        ms_buf_printf(b, "%s{\"type\": \"int\", \"value\": %u}, null", n != 0 ? ", " : "",
                      with->api % 3);
    ms_buf_puts(b, "]");
}

static inline void dm_put_node(struct dm_side *s, const char *name, const char *parent)
{
    ms_buf_printf(&s->nodes, "%s\"%s\": ", s->nodes.n != 0 ? ",\n" : "", name);
    ms_buf_printf(&s->nodes, parent != NULL ? "\"%s\"" : "null", parent);
}

static inline void dm_put_before(struct dm_side *s, struct ms_buf *one)
{
    ms_buf_puts(one, s->back.n != 0 ? ",\n" : "");
    ms_buf_str(one, ms_buf_slice(&s->back));
    ms_buf_free(&s->back);
    s->back = *one;
}

static inline void dm_put_op(const struct dm_model *m, struct dm_side *s, const struct dm_event *e,
                             bool has_backward)
{
    char name[100], parent[480];
    const char *api = dm_api_names[e->api][s->mindspore];
    const unsigned call = s->calls[e->api]++;
    const unsigned data = s->parameters ? e->ins : e->ins - e->params;
    snprintf(name, sizeof name, "%s.%u.forward", api, call);
    dm_record_name(m, s, e->module, "forward", e->again != 0, parent);
    ms_buf_printf(&s->data, "%s\"%s\": {", s->data.n != 0 ? ",\n" : "", name);
    dm_put_list(m, s, &s->data, "input_args", e->in, data, 0, e);
    if (e->keyword) {
        ms_buf_puts(&s->data, ", \"input_kwargs\": {\"other\": ");
        dm_put_tensor(m, s, &s->data, e->in[0], 0, false);
        ms_buf_puts(&s->data, "}");
    }
    ms_buf_puts(&s->data, ", ");
    dm_put_list(m, s, &s->data, "output", e->out, e->outs, 0, NULL);
    ms_buf_puts(&s->data, e->again != 0 && s->marked ? ", \"is_recompute\": true}" : "}");
    dm_put_node(s, name, parent);
    if (!s->backward || !has_backward)
        return;
    struct ms_buf one = {.max = 1 << 20};
    snprintf(name, sizeof name, "%s.%u.backward", api, call);
    ms_buf_printf(&one, "\"%s\": {", name);
    dm_put_list(m, s, &one, "input", e->out, e->outs, 1, NULL);
    ms_buf_puts(&one, ", ");
    dm_put_list(m, s, &one, "output", e->in, e->ins, 1, NULL);
    ms_buf_puts(&one, "}");
    dm_put_before(s, &one);
    dm_put_node(s, name, parent);
}

static inline void dm_put_parameters(const struct dm_model *m, struct dm_side *s, struct ms_buf *b,
                                     const char *key, const struct dm_module *o, unsigned as)
{
    static const char *const names[] = {"weight", "bias", "scale"};
    ms_buf_printf(b, "\"%s\": {", key);
    for (unsigned i = 0; i < o->params; i++) {
        ms_buf_printf(b, as != 0 ? "%s\"%s\": [" : "%s\"%s\": ", i != 0 ? ", " : "", names[i]);
        dm_put_tensor(m, s, b, o->param[i], as, true);
        ms_buf_puts(b, as != 0 ? "]" : "");
    }
    ms_buf_puts(b, "}");
}

static inline void dm_put_gradients(const struct dm_model *m, struct dm_side *s, unsigned module)
{
    struct ms_buf one = {.max = 1 << 20};
    const struct dm_module *o = &m->module[module];
    char name[480], up[480];
    dm_record_name(m, s, module, "backward", 0, name);
    dm_record_name(m, s, o->parent, "backward", 0, up);
    ms_buf_printf(&one, "\"%s\": {", name);
    dm_put_list(m, s, &one, "input", &o->out, 1, 1, NULL);
    ms_buf_puts(&one, "}");
    dm_put_before(s, &one);
    dm_put_node(s, name, o->parent != module ? up : NULL);
    if (o->params == 0 || !s->gradients)
        return;
    struct ms_buf two = {.max = 1 << 20};
    name[strlen(name) - strlen(".backward.0")] = 0;
    ms_buf_printf(&two, "\"%s.parameters_grad\": {", name);
    dm_put_parameters(m, s, &two, "parameters_grad", o, 2);
    ms_buf_clear(&two);
    ms_buf_printf(&two, "\"%s.parameters_grad\": {\"weight\": [", name);
    dm_put_tensor(m, s, &two, o->param[0], 2, true);
    ms_buf_puts(&two, "]}");
    dm_put_before(s, &two);
}

static inline void dm_put_module(const struct dm_model *m, struct dm_side *s, unsigned module)
{
    const struct dm_module *o = &m->module[module];
    char name[480], up[480];
    dm_record_name(m, s, module, "forward", 0, name);
    dm_record_name(m, s, o->parent, "forward", 0, up);
    ms_buf_printf(&s->data, "%s\"%s\": {", s->data.n != 0 ? ",\n" : "", name);
    dm_put_list(m, s, &s->data, "input_args", &o->out, 1, 3, NULL);
    if (o->params != 0 && s->parameters) {
        ms_buf_puts(&s->data, ", ");
        dm_put_parameters(m, s, &s->data, "parameters", o, 0);
    }
    ms_buf_puts(&s->data, ", ");
    dm_put_list(m, s, &s->data, "output", &o->out, 1, 0, NULL);
    ms_buf_puts(&s->data, "}");
    dm_put_node(s, name, o->parent != module ? up : NULL);
    if (s->backward && module % 4 != 3)
        dm_put_gradients(m, s, module);
}

/* The form that a group of events has on a side. */
static inline unsigned dm_form(const struct dm_side *s, unsigned group)
{
    return 1 + (ms_hash_mix(group, s->mindspore + 2 * (uint64_t)s->omits) >> 7) % 2;
}

static inline bool dm_is_made_again(const struct dm_model *m, unsigned event)
{
    for (unsigned i = event + 1; i < m->events; i++) {
        if (m->event[i].again == event + 1)
            return true;
    }
    return false;
}

static inline void dm_put_event(struct dm_model *m, struct dm_side *s, unsigned i)
{
    const struct dm_event *e = &m->event[i];
    if (e->form != 0 && e->form != dm_form(s, e->group))
        return;
    if (s->fault != 0 && i == s->fault)
        s->salt = 77;
    if (e->what == DM_CLOSE)
        dm_put_module(m, s, e->module);
    if (e->what != DM_OP || (s->omits != 0 && dm_below(m, s->omits) == 0))
        return;
    dm_put_op(m, s, e, !dm_is_made_again(m, i) || s->marked);
    if (s->doubles != 0 && dm_below(m, s->doubles) == 0)
        dm_put_op(m, s, e, true);
}

static inline void dm_put_side(struct dm_model *m, struct dm_side *s)
{
    s->data.max = s->nodes.max = s->back.max = s->dump.max = s->construct.max = 1 << 22;
    for (unsigned i = 0; i < m->events; i++) {
        const bool swaps = s->swaps != 0 && i + 1 < m->events && m->event[i].what == DM_OP &&
                           m->event[i + 1].what == DM_OP && dm_below(m, s->swaps) == 0;
        if (swaps)
            dm_put_event(m, s, i + 1);
        dm_put_event(m, s, i);
        i += swaps;
    }
    ms_buf_printf(&s->dump,
                  "{\"task\": \"%s\", \"level\": \"mix\", \"framework\": \"%s\", "
                  "\"dump_data_dir\": null, \"data\": {",
                  s->shapes_only ? "structure" : "statistics",
                  s->mindspore ? "mindspore" : "pytorch");
    ms_buf_str(&s->dump, ms_buf_slice(&s->data));
    ms_buf_puts(&s->dump, s->back.n != 0 ? ",\n" : "");
    ms_buf_str(&s->dump, ms_buf_slice(&s->back));
    ms_buf_puts(&s->dump, "}}");
    ms_buf_printf(&s->construct, "{%s}", ms_buf_z(&s->nodes));
    ck_assert_int_eq(s->dump.bad | s->construct.bad, MS_OK);
}

static inline void dm_style(struct dm_model *m, struct dm_side *s)
{
    s->parameters = dm_below(m, 4) != 0;
    s->tree = dm_below(m, 10) != 0;
    s->gradients = dm_below(m, 3) != 0;
    s->marked = dm_below(m, 2) == 0;
    s->omits = dm_below(m, 2) == 0 ? 11 : 0;
    s->doubles = dm_below(m, 4) == 0 ? 13 : 0;
    s->swaps = dm_below(m, 3) == 0 ? 7 : 0;
    s->layout = dm_below(m, 3);
    s->noise = dm_below(m, 3) == 0 ? 0.02 : dm_below(m, 2) == 0 ? 1e-4 : 0;
    s->cut = 1;
}

static inline void dm_draw(struct dm_side side[2], unsigned seed, unsigned parts)
{
    static struct dm_model m;
    m = (struct dm_model){.state = seed * 2654435761u + 1};
    const unsigned top = dm_new_module(&m, 0);
    dm_event(&m, DM_OPEN, top);
    for (unsigned i = 0; i < parts; i++)
        dm_fill(&m, top, i % 2);
    m.module[top].out = m.tensors - 1;
    dm_event(&m, DM_CLOSE, top);
    if (dm_below(&m, 3) == 0)
        dm_repeat(&m);
    memset(side, 0, 2 * sizeof *side);
    for (int k = 0; k < 2; k++)
        dm_style(&m, &side[k]);
    side[0].backward = side[1].backward = dm_below(&m, 3) != 0;
    side[0].md5 = side[1].md5 = dm_below(&m, 8) == 0;
    side[0].shapes_only = side[1].shapes_only = dm_below(&m, 7) == 0;
    side[1].mindspore = dm_below(&m, 3) != 0;
    side[dm_below(&m, 2)].cut = dm_below(&m, 5) == 0 ? 2 : 1;
    side[1].salt = dm_below(&m, 9) == 0;
    side[1].fault = dm_below(&m, 4) == 0 ? dm_below(&m, m.events) : 0;
    dm_put_side(&m, &side[0]);
    dm_put_side(&m, &side[1]);
}

static inline void dm_free(struct dm_side side[2])
{
    for (int k = 0; k < 2; k++) {
        ms_buf_free(&side[k].data);
        ms_buf_free(&side[k].nodes);
        ms_buf_free(&side[k].back);
        ms_buf_free(&side[k].dump);
        ms_buf_free(&side[k].construct);
    }
}

#endif

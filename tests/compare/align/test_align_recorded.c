/* SPDX-License-Identifier: MIT
 *
 * align_recorded: what the alignment decides about drawn pairs of transformers, and what it says of each node,
 * as it is on record.  Scores have no second answer, so any change of one is shown; one that is meant is
 *
 *     build/tests/test_align_recorded --update
 *
 * A case is drawn by its number: frameworks, nesting, fused and missing operators, values in common or none.
 */
#include "compare/align/align.h"

#include "tests/support/recorded.h"

#include <math.h>

enum { CASES = 64, AGAIN_MAX = 64 };
#define RECORD "tests/data/align/drawn/recorded.txt"

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* ---- dumps of both frameworks ------------------------------------------------------------------------ */

/* How a side differs from the model. */
struct style {
    bool mindspore, nested, fused, casts, backward, parameters, statistics, recomputes,
        unmarked; /* the call that is made again has the backward, and no mark */
    double noise;
    uint32_t omits;    /* one operator in so many; 0: none */
    uint32_t salt;     /* other values: nothing in common */
    bool swaps, wider; /* order of independent operators; batch axis first */
};

struct tensor {
    char what[64];
    unsigned rows, columns;
};

/* A call that is made again before the backward pass. */
struct again {
    unsigned op, ins, outs;
    char parent[128];
    struct tensor in[4], out[4];
};

struct side {
    struct style style;
    struct ms_buf data, tree, back;
    unsigned calls[24];
    struct again again[AGAIN_MAX];
    unsigned repeats;
    bool is_again;
    struct probe_dump *dump;
    struct probe_tree nodes;
};

enum op {
    EMBED,
    LINEAR,
    NORM,
    MATMUL,
    SOFTMAX,
    ADD,
    MUL,
    SILU,
    SWIGLU,
    RESHAPE,
    SPLIT,
    CAST,
    LOSS
};

static const char *const names[][2] = {{"Functional.embedding", "Primitive.Gather"},
                                       {"Functional.linear", "Mint.nn.functional.linear"},
                                       {"Functional.rms_norm", "Functional.rms_norm"},
                                       {"Torch.matmul", "Mint.matmul"},
                                       {"Functional.softmax", "Mint.nn.functional.softmax"},
                                       {"Tensor.__add__", "Mint.add"},
                                       {"Tensor.__mul__", "Mint.mul"},
                                       {"Functional.silu", "Mint.nn.functional.silu"},
                                       {"NPU.npu_swiglu", "Functional.swiglu"},
                                       {"Tensor.view", "Tensor.reshape"},
                                       {"Torch.split", "Mint.split"},
                                       {"Tensor.to", "Functional.cast"},
                                       {"Functional.cross_entropy", "Functional.cross_entropy"}};

/* Statistics follow from what the tensor is; noise is relative and of its own on each side. */
static void put_tensor(struct side *s, struct ms_buf *b, const char *what, unsigned rows,
                       unsigned columns)
{
    char salted[96];
    snprintf(salted, sizeof salted, "%s/%u", what, s->style.salt);
    const uint64_t h = ms_hash_mix(ms_str_hash(ms_str_of(salted)), 7);
    const double sigma = exp((double)(h % 997) / 250) / 8,
                 off = 1 + s->style.noise * ((double)(h / 131 % 200) / 100 - 1);
    ms_buf_printf(b, "{\"type\": \"%s\", \"dtype\": \"%s\", \"shape\": [%s%u, %u]",
                  s->style.mindspore ? "mindspore.Tensor" : "torch.Tensor",
                  s->style.mindspore ? "Float32" : "torch.float32", s->style.wider ? "1, " : "",
                  rows, columns);
    if (s->style.statistics)
        ms_buf_printf(b, ", \"Max\": %.6g, \"Min\": %.6g, \"Mean\": %.6g, \"Norm\": %.6g",
                      3 * sigma * off, -2.5 * sigma / off, sigma / 50 * off,
                      sigma * sqrt((double)rows * columns) * off);
    ms_buf_puts(b, ", \"requires_grad\": false}");
}

static struct tensor tensor_of(unsigned rows, unsigned columns, const char *form, unsigned layer)
{
    struct tensor t = {.rows = rows, .columns = columns};
    snprintf(t.what, sizeof t.what, "%s%u", form, layer);
    return t;
}

static void put_list(struct side *s, struct ms_buf *b, const char *key, const struct tensor *t,
                     unsigned n)
{
    ms_buf_printf(b, "\"%s\": [", key);
    for (unsigned i = 0; i < n; i++) {
        ms_buf_puts(b, i != 0 ? ", " : "");
        put_tensor(s, b, t[i].what, t[i].rows, t[i].columns);
    }
    ms_buf_puts(b, "]");
}

static void put_parent(struct side *s, const char *name, const char *parent)
{
    ms_buf_printf(&s->tree, "%s\"%s\": ", s->tree.n != 0 ? ",\n" : "", name);
    ms_buf_printf(&s->tree, parent != NULL ? "\"%s\"" : "null", parent);
}

static void put_op(struct side *s, enum op op, const char *parent, const struct tensor *in,
                   unsigned ins, const struct tensor *out, unsigned outs)
{
    char name[96];
    const unsigned call = s->calls[op]++;
    if (s->style.omits != 0 && below(s->style.omits) == 0)
        return;
    snprintf(name, sizeof name, "%s.%u.forward", names[op][s->style.mindspore], call);
    ms_buf_printf(&s->data, "%s\"%s\": {", s->data.n != 0 ? ",\n" : "", name);
    put_list(s, &s->data, "input_args", in, ins);
    ms_buf_puts(&s->data, ", ");
    put_list(s, &s->data, "output", out, outs);
    ms_buf_puts(&s->data, s->is_again && !s->style.unmarked ? ", \"is_recompute\": true}" : "}");
    put_parent(s, name, parent);
    if (s->style.recomputes && !s->is_again && parent != NULL && s->repeats < AGAIN_MAX) {
        struct again *a = &s->again[s->repeats++];
        *a = (struct again){.op = op, .ins = ins, .outs = outs};
        snprintf(a->parent, sizeof a->parent, "%s", parent);
        memcpy(a->in, in, ins * sizeof *in);
        memcpy(a->out, out, outs * sizeof *out);
    }
    const bool moves = s->style.recomputes && s->style.unmarked && parent != NULL;
    if (!s->style.backward || s->is_again != moves)
        return;
    snprintf(name, sizeof name, "%s.%u.backward", names[op][s->style.mindspore], call);
    struct ms_buf one = {.max = 1 << 16};
    struct tensor gradient[4];
    for (unsigned i = 0; i < ins; i++) {
        gradient[i] = in[i];
        snprintf(gradient[i].what, sizeof gradient[i].what, "d%.60s", in[i].what);
    }
    ms_buf_printf(&one, "\"%s\": {", name);
    put_list(s, &one, "input", out, outs);
    ms_buf_puts(&one, ", ");
    put_list(s, &one, "output", gradient, ins);
    ms_buf_puts(&one, "},\n");
    ms_buf_str(&one, ms_buf_slice(&s->back)); /* the last one runs first */
    ms_buf_free(&s->back);
    s->back = one;
    put_parent(s, name, parent);
}

static void put_module(struct side *s, const char *name, const char *parent,
                       const struct tensor *in, const struct tensor *out,
                       const struct tensor *parameter)
{
    ms_buf_printf(&s->data, "%s\"%s\": {", s->data.n != 0 ? ",\n" : "", name);
    put_list(s, &s->data, "input_args", in, 1);
    if (parameter != NULL && s->style.parameters) {
        ms_buf_puts(&s->data, ", \"parameters\": {\"weight\": ");
        put_tensor(s, &s->data, parameter->what, parameter->rows, parameter->columns);
        ms_buf_puts(&s->data, "}");
    }
    ms_buf_puts(&s->data, ", ");
    put_list(s, &s->data, "output", out, 1);
    ms_buf_puts(&s->data, "}");
    put_parent(s, name, parent);
}

enum { ROWS = 12, WIDTH = 16 };

static void name_module(const struct side *s, char name[128], const char *torch, const char *other,
                        const char *class, const char *cell, unsigned layer)
{
    if (s->style.mindspore)
        snprintf(name, 128, "Cell.network.blocks.%u.%s.%s.forward.0", layer, other, cell);
    else
        snprintf(name, 128, "Module.model.layers.%u.%s.%s.forward.0", layer, torch, class);
}

static void put_linear(struct side *s, const char *torch, const char *other, unsigned layer,
                       const char *parent, const struct tensor *in, const struct tensor *out)
{
    char name[128];
    const struct tensor w = tensor_of(out->columns, in->columns, torch, layer);
    name_module(s, name, torch, other, "Linear", "Dense", layer);
    put_op(s, LINEAR, s->style.nested ? name : parent, (struct tensor[]){*in, w}, 2, out, 1);
    if (s->style.nested)
        put_module(s, name, parent, in, out, &w);
}

static void put_attention(struct side *s, unsigned layer, const char *parent,
                          const struct tensor *in, const struct tensor *out)
{
    char name[128];
    struct tensor qkv[] = {tensor_of(ROWS, WIDTH, "q", layer), tensor_of(ROWS, WIDTH, "k", layer),
                           tensor_of(ROWS, WIDTH, "v", layer)};
    const struct tensor all = tensor_of(ROWS, 3 * WIDTH, "qkv", layer),
                        scores = tensor_of(ROWS, ROWS, "scores", layer),
                        shares = tensor_of(ROWS, ROWS, "shares", layer),
                        mixed = tensor_of(ROWS, WIDTH, "mixed", layer);
    static const char *const torch[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
                             *const other[] = {"attention.wq", "attention.wk", "attention.wv"};
    name_module(s, name, "self_attn", "attention", "Attention", "SelfAttention", layer);
    if (s->style.fused) {
        put_linear(s, "self_attn.qkv_proj", "attention.w_qkv", layer, name, in, &all);
        put_op(s, SPLIT, name, &all, 1, qkv, 3);
    }
    for (unsigned i = 0; i < 3 && !s->style.fused; i++) {
        const unsigned k = s->style.swaps ? 2 - i : i;
        put_linear(s, torch[k], other[k], layer, name, in, &qkv[k]);
    }
    put_op(s, MATMUL, name, qkv, 2, &scores, 1);
    put_op(s, SOFTMAX, name, &scores, 1, &shares, 1);
    put_op(s, MATMUL, name, (struct tensor[]){shares, qkv[2]}, 2, &mixed, 1);
    if (s->style.casts)
        put_op(s, CAST, name, &mixed, 1, &mixed, 1);
    put_linear(s, "self_attn.o_proj", "attention.wo", layer, name, &mixed, out);
    put_module(s, name, parent, in, out, NULL);
}

static void put_mlp(struct side *s, unsigned layer, const char *parent, const struct tensor *in,
                    const struct tensor *out)
{
    char name[128];
    const struct tensor gate = tensor_of(ROWS, 24, "gate", layer),
                        up = tensor_of(ROWS, 24, "up", layer),
                        open = tensor_of(ROWS, 24, "open", layer),
                        both = tensor_of(ROWS, 48, "both", layer),
                        inner = tensor_of(ROWS, 24, "inner", layer);
    name_module(s, name, "mlp", "feed_forward", "MLP", "FeedForward", layer);
    if (s->style.fused) {
        put_linear(s, "mlp.gate_up_proj", "feed_forward.w_gate_hidden", layer, name, in, &both);
        put_op(s, SWIGLU, name, &both, 1, &inner, 1);
    } else {
        put_linear(s, "mlp.gate_proj", "feed_forward.w1", layer, name, in, &gate);
        put_linear(s, "mlp.up_proj", "feed_forward.w3", layer, name, in, &up);
        put_op(s, SILU, name, &gate, 1, &open, 1);
        put_op(s, MUL, name, (struct tensor[]){open, up}, 2, &inner, 1);
    }
    put_linear(s, "mlp.down_proj", "feed_forward.w2", layer, name, &inner, out);
    put_module(s, name, parent, in, out, NULL);
}

static void put_layer(struct side *s, unsigned layer, const struct tensor *in,
                      const struct tensor *out)
{
    char name[128], norm[128];
    const struct tensor calm = tensor_of(ROWS, WIDTH, "calm", layer),
                        seen = tensor_of(ROWS, WIDTH, "seen", layer),
                        sum = tensor_of(ROWS, WIDTH, "sum", layer),
                        still = tensor_of(ROWS, WIDTH, "still", layer),
                        made = tensor_of(ROWS, WIDTH, "made", layer);
    snprintf(name, sizeof name,
             s->style.mindspore ? "Cell.network.blocks.%u.Block.forward.0"
                                : "Module.model.layers.%u.DecoderLayer.forward.0",
             layer);
    name_module(s, norm, "input_layernorm", "attention_norm", "RMSNorm", "Norm", layer);
    put_op(s, NORM, norm, in, 1, &calm, 1);
    put_module(s, norm, name, in, &calm, &calm);
    put_attention(s, layer, name, &calm, &seen);
    put_op(s, ADD, name, (struct tensor[]){*in, seen}, 2, &sum, 1);
    name_module(s, norm, "post_attention_layernorm", "ffn_norm", "RMSNorm", "Norm", layer);
    put_op(s, NORM, norm, &sum, 1, &still, 1);
    put_module(s, norm, name, &sum, &still, &still);
    put_mlp(s, layer, name, &still, &made);
    put_op(s, ADD, name, (struct tensor[]){sum, made}, 2, out, 1);
    put_module(s, name, NULL, in, out, NULL);
}

/* The module that is called again has the next call number. */
static void call_again(struct side *s, char *module)
{
    char entry[140];
    module[strlen(module) - 1] = '1';
    snprintf(entry, sizeof entry, "\"%s\": ", module);
    if (strstr(ms_buf_z(&s->tree), entry) == NULL)
        put_parent(s, module, NULL);
}

static void put_model(struct side *s, unsigned layers)
{
    struct tensor h = tensor_of(ROWS, WIDTH, "h", 0);
    const struct tensor ids = tensor_of(ROWS, 1, "ids", 0), loss = tensor_of(1, 1, "loss", 0),
                        logits = tensor_of(ROWS, 40, "logits", 0);
    put_op(s, EMBED, NULL, &ids, 1, &h, 1);
    for (unsigned i = 0; i < layers; i++) {
        const struct tensor next = tensor_of(ROWS, WIDTH, "h", i + 1);
        put_layer(s, i, &h, &next);
        h = next;
    }
    put_linear(s, "lm_head", "head", layers, NULL, &h, &logits);
    if (s->style.casts)
        put_op(s, RESHAPE, NULL, &logits, 1, &logits, 1);
    put_op(s, LOSS, NULL, &logits, 1, &loss, 1);
    s->is_again = true;
    for (unsigned i = 0; i < s->repeats; i++) {
        struct again *a = &s->again[i];
        call_again(s, a->parent);
        put_op(s, (enum op)a->op, a->parent, a->in, a->ins, a->out, a->outs);
    }
}

/* ---- a case ---------------------------------------------------------------------------------------------- */

static struct style drawn_style(bool golden)
{
    struct style s = {.statistics = true, .parameters = below(3) != 0};
    s.mindspore = !golden && below(4) != 0;
    s.nested = below(3) != 0;
    s.fused = below(3) == 0;
    s.casts = below(3) == 0;
    s.recomputes = below(4) == 0;
    s.unmarked = below(2) == 0;
    s.noise = below(3) == 0 ? 0.02 : below(2) == 0 ? 1e-4 : 0;
    s.omits = below(3) == 0 ? 9 : 0;
    s.swaps = below(3) == 0;
    s.wider = below(4) == 0;
    return s;
}

static void open_side(struct side *s, unsigned layers)
{
    struct ms_err err = {0};
    struct ms_buf all = {.max = 1 << 20}, tree = {.max = 1 << 20};
    s->data.max = s->tree.max = 1 << 20;
    put_model(s, layers);
    if (s->back.n > 2)
        ms_buf_printf(&s->data, ",\n%.*s", (int)s->back.n - 2, s->back.p);
    ms_buf_printf(&all,
                  "{\"task\": \"%s\", \"level\": \"mix\", \"framework\": \"%s\", "
                  "\"dump_data_dir\": null, \"data\": {%s}}",
                  s->style.statistics ? "statistics" : "structure",
                  s->style.mindspore ? "mindspore" : "pytorch", ms_buf_z(&s->data));
    ms_buf_printf(&tree, "{%s}", ms_buf_z(&s->tree));
    ck_ok(probe_dump_parse(&s->dump, "drawn", ms_buf_slice(&all), 0, NULL, &err), err);
    ck_ok(probe_tree_parse(&s->nodes, "drawn", ms_buf_slice(&tree), 0, &err), err);
    ms_buf_free(&s->data);
    ms_buf_free(&s->tree);
    s->data = all; /* they outlive what was parsed */
    s->tree = tree;
}

static void close_side(struct side *s)
{
    probe_dump_close(s->dump);
    probe_tree_close(&s->nodes);
    ms_buf_free(&s->data);
    ms_buf_free(&s->tree);
    ms_buf_free(&s->back);
}

static void tell_pairs(const struct cmp_align *al, const struct side side[2], struct ms_buf *out)
{
    size_t n;
    const struct cmp_align_pair *p = cmp_align_pairs(al, &n);
    for (size_t i = 0; i < n; i++) {
        const struct ms_str t = probe_node_name(side[1].dump, p[i].target),
                            g = probe_node_name(side[0].dump, p[i].golden);
        ms_buf_printf(out, "%.*s %.*s %.2f %s\n", MS_STR_ARG(t), MS_STR_ARG(g),
                      (double)p[i].confidence, cmp_align_how_names[p[i].how]);
        for (int golden = 0; golden < 2; golden++) {
            const uint32_t *members;
            const size_t many = cmp_align_members(al, &p[i], golden != 0, &members);
            for (size_t k = 0; k < many; k++)
                ms_buf_printf(out, " %d %u\n", golden, members[k]);
        }
    }
}

/* What is decided, then the rows and what is said of each node. */
static void tell(const struct cmp_align *al, const struct side side[2], struct ms_buf *pairs,
                 struct ms_buf *words)
{
    struct ms_err err = {0};
    const struct cmp_align_stats s = cmp_align_stats(al);
    tell_pairs(al, side, pairs);
    ms_buf_printf(words, "%d %zu %zu %zu %zu %llu\n", s.by_value, s.ops[0], s.ops[1], s.pairs,
                  s.anchors, (unsigned long long)s.cells);
    ck_ok(cmp_align_write_rows(al, words, &err), err);
    for (int k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < side[k].dump->nodes.n; i++)
            cmp_align_explain(al, k == 0, i, words);
    }
}

/* One line: the case, number of pairs, and hashes of the pairs and of what is said of them. */
static void decide(unsigned number, struct ms_buf *record)
{
    struct side side[2] = {{.style = {0}}};
    struct ms_buf pairs = {.max = 1 << 22}, words = {.max = 1 << 22};
    struct ms_err err = {0};
    struct cmp_align *al;
    state = number;
    side[0].style = drawn_style(true);
    side[1].style = drawn_style(false);
    side[0].style.backward = side[1].style.backward = below(3) == 0;
    for (int k = 0; k < 2; k++)
        side[k].style.unmarked &= side[k].style.backward;
    side[1].style.salt = below(4) == 0;
    if (below(8) == 0)
        side[0].style.statistics = side[1].style.statistics = false;
    const unsigned layers = 1 + below(3), more = below(6) == 0;
    open_side(&side[0], layers);
    open_side(&side[1], layers + more);
    const struct cmp_align_input golden = {side[0].dump, &side[0].nodes},
                                 target = {side[1].dump, &side[1].nodes};
    ck_ok(cmp_align_new(&al, &target, &golden, NULL, 0, NULL, &err), err);
    tell(al, side, &pairs, &words);
    ms_buf_printf(record, "%u %zu %08llx %08llx\n", number, cmp_align_stats(al).pairs,
                  (unsigned long long)ms_str_hash(ms_buf_slice(&pairs)) & 0xffffffff,
                  (unsigned long long)ms_str_hash(ms_buf_slice(&words)) & 0xffffffff);
    if (getenv("ALIGN_SHOW") != NULL && strtoul(getenv("ALIGN_SHOW"), NULL, 10) == number)
        printf("%s%s", ms_buf_z(&pairs), ms_buf_z(&words));
    cmp_align_free(al);
    close_side(&side[0]);
    close_side(&side[1]);
    ms_buf_free(&pairs);
    ms_buf_free(&words);
}

static void decide_all(struct ms_buf *record)
{
    for (unsigned i = 1; i <= CASES; i++)
        decide(i, record);
}

START_TEST(decisions_are_those_on_record)
{
    struct ms_buf now = {.max = 1 << 20};
    decide_all(&now);
    recorded_check_file(RECORD, &now,
                        "case, pairs, hash of pairs, of words; ALIGN_SHOW=CASE shows it");
    ms_buf_free(&now);
}
END_TEST

RECORDED_MAIN("align_recorded", decisions_are_those_on_record)

/* SPDX-License-Identifier: MIT
 *
 * test_align_auto: whole dumps, aligned.  They are written here in a few words: add
 * takes an op's name, inputs and outputs by the names of their values, whose statistics
 * follow from the name.
 */
#include "compare/align/emit.h"
#include "compare/align/score.h"
#include "tests/support/check.h"

#include <math.h>

/* ---- dumps in a few words ------------------------------------------------ */

struct maker {
    struct ms_buf data, tree;
    const char *framework;
    bool statistics;
    double noise; /* relative, on every value */
};

struct pair_of_dumps {
    struct maker make[2];
    struct probe_dump *dump[2];
    struct probe_tree tree[2];
    struct cmp_align *al;
};

/* A value "h:4x8" has the shape 4x8, and numbers that follow from the text. */
static void put_tensor(struct maker *m, const char *value)
{
    const char *shape = strchr(value, ':') + 1;
    size_t n = 1;
    ms_buf_puts(&m->data,
                "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [");
    for (const char *p = shape; *p != 0;) {
        char *end;
        size_t d = strtoul(p, &end, 10);
        n *= d;
        ms_buf_printf(&m->data, "%s%zu", p == shape ? "" : ", ", d);
        p = *end == 'x' ? end + 1 : end;
    }
    ms_buf_putc(&m->data, ']');
    if (m->statistics) {
        uint64_t h = ms_str_hash(ms_str_of(value));
        double sigma = exp((double)(h % 997) / 200);
        double max = sigma * (2 + (double)(h / 997 % 991) / 991) * (1 + m->noise);
        double min = -sigma * (2 + (double)(h / 997 / 991 % 983) / 983);
        double norm = sigma * sqrt((double)n) * (1 - m->noise);
        ms_buf_printf(&m->data, ", \"Max\": %.9g, \"Min\": %.9g, \"Mean\": %.9g, \"Norm\": %.9g",
                      max, min, sigma * (double)(h % 89) / 1000, norm);
    }
    ms_buf_putc(&m->data, '}');
}

static void put_list(struct maker *m, const char *key, const char *values)
{
    char text[256];
    char *rest = text;
    snprintf(text, sizeof text, "%s", values);
    ms_buf_printf(&m->data, "\"%s\": [", key);
    for (char *v = strsep(&rest, " "); v != NULL && *v != 0; v = strsep(&rest, " ")) {
        if (v != text)
            ms_buf_puts(&m->data, ", ");
        put_tensor(m, v);
    }
    ms_buf_putc(&m->data, ']');
}

static void begin_record(struct maker *m, const char *name, const char *parent)
{
    ms_buf_printf(&m->data, "%s\"%s\": {", m->data.n == 0 ? "" : ",\n", name);
    ms_buf_printf(&m->tree, "%s\"%s\": %s%s%s", m->tree.n == 0 ? "" : ",\n", name,
                  parent == NULL ? "" : "\"", parent == NULL ? "null" : parent,
                  parent == NULL ? "" : "\"");
}

static void add_op(struct maker *m, const char *parent, const char *name, const char *ins,
                   const char *outs)
{
    begin_record(m, name, parent);
    put_list(m, "input_args", ins);
    ms_buf_puts(&m->data, ", \"input_kwargs\": {}, ");
    put_list(m, "output", outs);
    ms_buf_putc(&m->data, '}');
}

static void add_again(struct maker *m, const char *parent, const char *name, const char *ins,
                      const char *outs)
{
    add_op(m, parent, name, ins, outs);
    m->data.n--;
    ms_buf_puts(&m->data, ", \"is_recompute\": true}");
}

static void add_backward(struct maker *m, const char *name, const char *ins, const char *outs)
{
    begin_record(m, name, NULL);
    put_list(m, "input", ins);
    ms_buf_puts(&m->data, ", ");
    put_list(m, "output", outs);
    ms_buf_putc(&m->data, '}');
}

static void add_module(struct maker *m, const char *parent, const char *name, const char *weight,
                       const char *outs)
{
    begin_record(m, name, parent);
    ms_buf_puts(&m->data, "\"input_args\": [], \"input_kwargs\": {}, ");
    put_list(m, "output", outs);
    if (*weight != 0) {
        ms_buf_puts(&m->data, ", \"parameters\": {\"weight\": ");
        put_tensor(m, weight);
        ms_buf_putc(&m->data, '}');
    }
    ms_buf_putc(&m->data, '}');
}

static void start(struct pair_of_dumps *p)
{
    memset(p, 0, sizeof *p);
    for (int s = 0; s < 2; s++) {
        p->make[s].data.max = p->make[s].tree.max = 1 << 24;
        p->make[s].statistics = true;
        p->make[s].framework = s == 0 ? "pytorch" : "mindspore";
    }
}

static void finish_side(struct pair_of_dumps *p, int s, struct ms_err *err)
{
    struct maker *m = &p->make[s];
    struct ms_buf text = {.max = 1 << 24};
    ms_buf_printf(&text,
                  "{\"task\": \"statistics\", \"level\": \"mix\", \"framework\": \"%s\","
                  " \"dump_data_dir\": null, \"data\": {",
                  m->framework);
    ms_buf_str(&text, ms_buf_slice(&m->data));
    ms_buf_puts(&text, "}}");
    ms_buf_free(&m->data);
    m->data = text;
    text = (struct ms_buf){.max = 1 << 24};
    ms_buf_putc(&text, '{');
    ms_buf_str(&text, ms_buf_slice(&m->tree));
    ms_buf_putc(&text, '}');
    ms_buf_free(&m->tree);
    m->tree = text;
    ck_ok(probe_dump_parse(&p->dump[s], "dump", ms_buf_slice(&m->data), 0, NULL, err), *err);
    ck_ok(probe_tree_parse(&p->tree[s], "tree", ms_buf_slice(&m->tree), 0, err), *err);
}

static void finish(struct pair_of_dumps *p, const struct cmp_align_pin *pins, size_t npins)
{
    struct ms_err err = {0};
    finish_side(p, 0, &err);
    finish_side(p, 1, &err);
    const struct cmp_align_input g = {p->dump[0], &p->tree[0]};
    const struct cmp_align_input t = {p->dump[1], &p->tree[1]};
    ck_ok(cmp_align_new(&p->al, &t, &g, pins, npins, NULL, &err), err);
}

static void stop(struct pair_of_dumps *p)
{
    cmp_align_free(p->al);
    for (int s = 0; s < 2; s++) {
        probe_dump_close(p->dump[s]);
        probe_tree_close(&p->tree[s]);
        ms_buf_free(&p->make[s].data);
        ms_buf_free(&p->make[s].tree);
    }
}

static const struct cmp_align_pair *find_pair(const struct pair_of_dumps *p, const char *golden,
                                              const char *target)
{
    uint32_t g = probe_node_find(p->dump[0], ms_str_of(golden));
    uint32_t t = probe_node_find(p->dump[1], ms_str_of(target));
    ck_assert_msg(g != MS_MAP_NONE, "no %s", golden);
    ck_assert_msg(t != MS_MAP_NONE, "no %s", target);
    const struct cmp_align_pair *pairs;
    size_t n = cmp_align_of(p->al, t, &pairs);
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].golden == g)
            return &pairs[i];
    }
    return NULL;
}

#define ck_paired(p, golden, target)                                                               \
    ck_assert_msg(find_pair((p), (golden), (target)) != NULL, "%s and %s are no pair", (golden),   \
                  (target))
#define ck_unpaired(p, golden, target)                                                             \
    ck_assert_msg(find_pair((p), (golden), (target)) == NULL, "%s and %s are a pair", (golden),    \
                  (target))

/* ---- whole dumps --------------------------------------------------------- */

/* One attention block: q, k, v and flash on one side, fused qkv and a decomposed core on the other. */
static void two_blocks(struct pair_of_dumps *p)
{
    struct maker *g = &p->make[0];
    struct maker *t = &p->make[1];
    const char *gm = "Module.model.attn.Attention.forward.0";
    const char *q = "Module.model.attn.q.Linear.forward.0";
    const char *k = "Module.model.attn.k.Linear.forward.0";
    const char *v = "Module.model.attn.v.Linear.forward.0";
    const char *o = "Module.model.attn.o.Linear.forward.0";
    add_op(g, q, "Functional.linear.0.forward", "x:8x16 wq:16x16", "q:8x16");
    add_module(g, gm, q, "wq:16x16", "q:8x16");
    add_op(g, k, "Functional.linear.1.forward", "x:8x16 wk:16x16", "k:8x16");
    add_module(g, gm, k, "wk:16x16", "k:8x16");
    add_op(g, v, "Functional.linear.2.forward", "x:8x16 wv:16x16", "v:8x16");
    add_module(g, gm, v, "wv:16x16", "v:8x16");
    add_op(g, gm, "NPU.npu_fusion_attention.0.forward", "q:8x16 k:8x16 v:8x16", "c:8x16");
    add_op(g, o, "Functional.linear.3.forward", "c:8x16 wo:16x16", "y:8x16");
    add_module(g, gm, o, "wo:16x16", "y:8x16");
    add_module(g, NULL, gm, "", "y:8x16");
    add_backward(g, "Functional.linear.3.backward", "dy:8x16", "dc:8x16");
    add_backward(g, "NPU.npu_fusion_attention.0.backward", "dc:8x16", "dq:8x16 dk:8x16 dv:8x16");
    const char *tm = "Cell.net.attention.SelfAttention.forward.0";
    const char *qkv = "Cell.net.attention.w_qkv.Dense.forward.0";
    const char *wo = "Cell.net.attention.wo.Dense.forward.0";
    add_op(t, qkv, "Mint.matmul.0.forward", "x:8x16 w:48x16", "qkv:8x48");
    add_module(t, tm, qkv, "w:48x16", "qkv:8x48");
    add_op(t, tm, "Mint.split.0.forward", "qkv:8x48", "q:8x16 k:8x16 v:8x16");
    add_op(t, tm, "Mint.matmul.1.forward", "q:8x16 k:8x16", "s1:8x8");
    add_op(t, tm, "MintFunctional.softmax.0.forward", "s1:8x8", "s2:8x8");
    add_op(t, tm, "Mint.matmul.2.forward", "s2:8x8 v:8x16", "c:8x16");
    add_op(t, tm, "Mint.reshape.0.forward", "c:8x16", "c:8x16");
    add_op(t, wo, "Functional.dense.0.forward", "c:8x16 wo:16x16", "y:8x16");
    add_module(t, tm, wo, "wo:16x16", "y:8x16");
    add_module(t, NULL, tm, "", "y:8x16");
    add_backward(t, "Functional.dense.0.backward", "dy:8x16", "dc:8x16");
    add_backward(t, "Mint.reshape.0.backward", "dc:8x16", "dc:8x16");
    add_backward(t, "Mint.matmul.2.backward", "dc:8x16", "ds2:8x8 dv:8x16");
    add_backward(t, "Mint.matmul.1.backward", "ds1:8x8", "dq:8x16 dk:8x16");
}

static void check_two_blocks(const struct pair_of_dumps *p)
{
    ck_paired(p, "Functional.linear.3.forward", "Functional.dense.0.forward");
    ck_paired(p, "Functional.linear.3.backward", "Functional.dense.0.backward");
    ck_paired(p, "Functional.linear.0.forward", "Mint.split.0.forward");
    ck_paired(p, "Functional.linear.1.forward", "Mint.split.0.forward");
    ck_paired(p, "Functional.linear.2.forward", "Mint.split.0.forward");
    ck_paired(p, "Module.model.attn.o.Linear.forward.0", "Cell.net.attention.wo.Dense.forward.0");
    ck_paired(p, "Module.model.attn.Attention.forward.0",
              "Cell.net.attention.SelfAttention.forward.0");
    ck_unpaired(p, "Module.model.attn.q.Linear.forward.0",
                "Cell.net.attention.w_qkv.Dense.forward.0");
    ck_unpaired(p, "NPU.npu_fusion_attention.0.forward", "MintFunctional.softmax.0.forward");
}

START_TEST(a_fused_and_a_decomposed_block_are_aligned)
{
    struct pair_of_dumps p;
    start(&p);
    two_blocks(&p);
    finish(&p, NULL, 0);
    check_two_blocks(&p);
    ck_assert(cmp_align_stats(p.al).by_value);
    ck_paired(&p, "NPU.npu_fusion_attention.0.backward", "Mint.matmul.1.backward");
    ck_assert(cmp_align_wanted(p.dump[1], p.dump[0]));
    stop(&p);
}
END_TEST

START_TEST(threads_change_nothing)
{
    enum { BLOCKS = 40 };
    struct pair_of_dumps p;
    struct ms_err err = {0};
    struct ms_pool *pool;
    struct cmp_align *al;
    size_t n[2];
    start(&p);
    for (int i = 0; i < BLOCKS; i++) {
        for (int s = 0; s < 2; s++) {
            char node[64], row[64];
            snprintf(node, sizeof node, s == 0 ? "Torch.add.%d.forward" : "Mint.add.%d.forward", i);
            snprintf(row, sizeof row, "v%d:%dx16", i + 1, 8 + i % 3);
            char before[64];
            snprintf(before, sizeof before, "v%d:%dx16", i, 8 + (i + 2) % 3);
            add_op(&p.make[s], NULL, node, before, row);
        }
    }
    two_blocks(&p);
    finish(&p, NULL, 0);
    ck_ok(ms_pool_new(&pool, 3, &err), err);
    const struct cmp_align_input g = {p.dump[0], &p.tree[0]};
    const struct cmp_align_input t = {p.dump[1], &p.tree[1]};
    ck_ok(cmp_align_new(&al, &t, &g, NULL, 0, pool, &err), err);
    const struct cmp_align_pair *one = cmp_align_pairs(p.al, &n[0]);
    const struct cmp_align_pair *many = cmp_align_pairs(al, &n[1]);
    ck_assert_uint_gt(n[0], BLOCKS);
    ck_assert_uint_eq(n[0], n[1]);
    for (size_t i = 0; i < n[0]; i++) {
        ck_assert_uint_eq(one[i].target, many[i].target);
        ck_assert_uint_eq(one[i].golden, many[i].golden);
        ck_assert_float_eq(one[i].confidence, many[i].confidence);
    }
    ck_assert_uint_eq(cmp_align_stats(p.al).cells, cmp_align_stats(al).cells);
    cmp_align_free(al);
    ms_pool_free(pool);
    stop(&p);
}
END_TEST

START_TEST(structure_is_enough_without_statistics)
{
    struct pair_of_dumps p;
    start(&p);
    p.make[1].statistics = false;
    two_blocks(&p);
    finish(&p, NULL, 0);
    ck_assert(!cmp_align_stats(p.al).by_value);
    check_two_blocks(&p);
    ck_paired(&p, "NPU.npu_fusion_attention.0.forward", "Mint.matmul.2.forward");
    stop(&p);
}
END_TEST

START_TEST(the_large_one_is_a_partner_of_all_its_parts)
{
    struct pair_of_dumps p;
    const struct cmp_align_pair *pairs;
    struct cmp_align_row rows[16];
    start(&p);
    two_blocks(&p);
    finish(&p, NULL, 0);
    uint32_t large = probe_node_find(p.dump[1], MS_STR("Mint.matmul.0.forward"));
    size_t n = cmp_align_of(p.al, large, &pairs);
    ck_assert_uint_eq(n, 3);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_gt(cmp_align_rows(p.al, &pairs[i], rows), 0);
        ck_assert_msg(rows[0].golden != CMP_ALIGN_NONE, "all of them read one value");
    }
    stop(&p);
}
END_TEST

START_TEST(gradients_without_a_forward_record_go_by_their_names)
{
    struct pair_of_dumps p;
    start(&p);
    two_blocks(&p);
    for (int side = 0; side < 2; side++) {
        add_backward(&p.make[side], "Functional.fancy.0.backward", "dy:8x16", "dz:8x16");
        add_backward(&p.make[side], "Functional.fancy.1.backward", "dy:8x16",
                     side == 0 ? "dw:8x16" : "dw:4x16");
    }
    finish(&p, NULL, 0);
    ck_paired(&p, "Functional.fancy.0.backward", "Functional.fancy.0.backward");
    ck_unpaired(&p, "Functional.fancy.1.backward", "Functional.fancy.1.backward");
    stop(&p);
}
END_TEST

START_TEST(members_are_what_runs_in_place_of_a_fused_op)
{
    struct pair_of_dumps p;
    start(&p);
    p.make[1].statistics = false;
    two_blocks(&p);
    finish(&p, NULL, 0);
    const struct cmp_align_pair *pair =
        find_pair(&p, "NPU.npu_fusion_attention.0.forward", "Mint.matmul.2.forward");
    const uint32_t *nodes;
    ck_assert_ptr_nonnull(pair);
    ck_assert_uint_eq(cmp_align_members(p.al, pair, true, &nodes), 0);
    size_t n = cmp_align_members(p.al, pair, false, &nodes);
    ck_assert_uint_ge(n, 2);
    for (size_t i = 0; i < n; i++)
        ck_assert(!ms_str_is(probe_node_name(p.dump[1], nodes[i]), "Mint.split.0.forward"));
    stop(&p);
}
END_TEST

START_TEST(rows_pair_by_value_whatever_their_order)
{
    struct pair_of_dumps p;
    start(&p);
    for (int i = 0; i < 8; i++) {
        char name[64], in[64], swapped[64], out[64];
        snprintf(in, sizeof in, "a%d:4x4 b%d:4x4", i, i);
        snprintf(swapped, sizeof swapped, "b%d:4x4 a%d:4x4", i, i);
        snprintf(out, sizeof out, "c%d:4x4", i);
        snprintf(name, sizeof name, "Torch.add.%d.forward", i);
        add_op(&p.make[0], NULL, name, in, out);
        snprintf(name, sizeof name, "Mint.add.%d.forward", i);
        add_op(&p.make[1], NULL, name, swapped, out);
    }
    finish(&p, NULL, 0);
    const struct cmp_align_pair *pair = find_pair(&p, "Torch.add.3.forward", "Mint.add.3.forward");
    ck_assert_ptr_nonnull(pair);
    struct cmp_align_row rows[6];
    ck_assert_uint_eq(cmp_align_rows(p.al, pair, rows), 3);
    const struct probe_node *g = &p.dump[0]->nodes.p[pair->golden];
    ck_assert_uint_eq(rows[0].golden, g->first_row + 1);
    ck_assert_uint_eq(rows[1].golden, g->first_row);
    ck_assert_uint_eq(rows[2].golden, g->first_row + 2);
    stop(&p);
}
END_TEST

START_TEST(a_row_without_partner_stays_alone)
{
    struct pair_of_dumps p;
    start(&p);
    for (int i = 0; i < 8; i++) {
        char name[64], in[64], more[64], out[64];
        snprintf(in, sizeof in, "a%d:4x4", i);
        snprintf(more, sizeof more, "a%d:4x4 mask%d:4x4 bias%d:4", i, i, i);
        snprintf(out, sizeof out, "c%d:4x4", i);
        snprintf(name, sizeof name, "Functional.softmax.%d.forward", i);
        add_op(&p.make[0], NULL, name, i % 2 ? in : more, out);
        add_op(&p.make[1], NULL, name, i % 2 ? more : in, out);
    }
    finish(&p, NULL, 0);
    for (int i = 0; i < 2; i++) {
        char name[64];
        struct cmp_align_row rows[8];
        snprintf(name, sizeof name, "Functional.softmax.%d.forward", i + 2);
        const struct cmp_align_pair *pair = find_pair(&p, name, name);
        ck_assert_ptr_nonnull(pair);
        size_t n = cmp_align_rows(p.al, pair, rows);
        ck_assert_uint_eq(n, 4);
        size_t alone = 0;
        for (size_t k = 0; k < n; k++)
            alone += (i == 0 ? rows[k].target : rows[k].golden) == CMP_ALIGN_NONE;
        ck_assert_uint_eq(alone, 2);
    }
    stop(&p);
}
END_TEST

START_TEST(backward_of_a_recomputed_call_is_that_of_its_repetition)
{
    struct pair_of_dumps p;
    start(&p);
    struct maker *g = &p.make[0];
    struct maker *t = &p.make[1];
    for (int i = 0; i < 4; i++) {
        char name[64], in[64], out[64];
        snprintf(in, sizeof in, "h%d:4x4", i);
        snprintf(out, sizeof out, "h%d:4x4", i + 1);
        snprintf(name, sizeof name, "Functional.silu.%d.forward", i);
        add_op(g, NULL, name, in, out);
        add_op(t, NULL, name, in, out);
    }
    add_again(t, NULL, "Functional.silu.4.forward", "h0:4x4", "h1:4x4");
    add_backward(g, "Functional.silu.0.backward", "dh1:4x4", "dh0:4x4");
    add_backward(t, "Functional.silu.4.backward", "dh1:4x4", "dh0:4x4");
    finish(&p, NULL, 0);
    ck_paired(&p, "Functional.silu.0.forward", "Functional.silu.0.forward");
    ck_paired(&p, "Functional.silu.0.backward", "Functional.silu.4.backward");
    const struct cmp_align_pair *again =
        find_pair(&p, "Functional.silu.0.forward", "Functional.silu.4.forward");
    ck_assert_ptr_nonnull(again);
    ck_assert_int_eq(again->how, CMP_ALIGN_REPEAT);
    stop(&p);
}
END_TEST

START_TEST(a_pin_overrides_what_was_found)
{
    const struct cmp_align_pin pins[] = {
        {MS_STR("Functional.dense.0.forward"), MS_STR("NPU.npu_fusion_attention.0.forward")},
        {MS_STR("Mint.split.0.forward"), MS_STR_NONE}};
    struct pair_of_dumps p;
    start(&p);
    two_blocks(&p);
    finish(&p, pins, 2);
    const struct cmp_align_pair *pair =
        find_pair(&p, "NPU.npu_fusion_attention.0.forward", "Functional.dense.0.forward");
    ck_assert_ptr_nonnull(pair);
    ck_assert_int_eq(pair->how, CMP_ALIGN_PINNED);
    ck_unpaired(&p, "Functional.linear.3.forward", "Functional.dense.0.forward");
    const struct cmp_align_pair *none;
    uint32_t split = probe_node_find(p.dump[1], MS_STR("Mint.split.0.forward"));
    ck_assert_uint_eq(cmp_align_of(p.al, split, &none), 0);
    stop(&p);
}
END_TEST

START_TEST(a_pin_that_names_no_node_is_refused)
{
    const struct cmp_align_pin pin = {MS_STR("Mint.split.9.forward"), MS_STR_NONE};
    struct pair_of_dumps p;
    struct ms_err err = {0};
    start(&p);
    two_blocks(&p);
    finish(&p, NULL, 0);
    const struct cmp_align_input g = {p.dump[0], NULL};
    const struct cmp_align_input t = {p.dump[1], NULL};
    struct cmp_align *al;
    ck_assert_int_eq(cmp_align_new(&al, &t, &g, &pin, 1, NULL, &err), MS_E_NOTFOUND);
    ck_assert_ptr_null(al);
    ck_says(err, "the target dump has no node 'Mint.split.9.forward'");
    stop(&p);
}
END_TEST

static void explain(const struct pair_of_dumps *p, bool golden, const char *name,
                    struct ms_buf *text)
{
    uint32_t node = probe_node_find(p->dump[golden ? 0 : 1], ms_str_of(name));
    ck_assert_uint_ne(node, MS_MAP_NONE);
    ms_buf_clear(text);
    cmp_align_explain(p->al, golden, node, text);
}

static void says(struct ms_buf *text, const char *words)
{
    ck_assert_msg(strstr(ms_buf_z(text), words) != NULL, "no '%s' in\n%s", words, ms_buf_z(text));
}

START_TEST(an_explanation_names_the_pair_and_the_next_best)
{
    struct pair_of_dumps p;
    struct ms_buf text = {.max = 1 << 16};
    start(&p);
    two_blocks(&p);
    finish(&p, NULL, 0);
    explain(&p, false, "Functional.dense.0.forward", &text);
    says(&text, "Functional.dense.0.forward of the target is paired with "
                "Functional.linear.3.forward of the golden side, confidence 0.9");
    says(&text, "Both are of the family linear.");
    says(&text, "Next for Functional.dense.0.forward on the golden side came Functional.linear.");
    says(&text, "Next for Functional.linear.3.forward on the target came ");
    says(&text, "this pair   next golden   next target");
    explain(&p, true, "Functional.linear.3.forward", &text);
    says(&text, "Functional.linear.3.forward of the golden side is paired with "
                "Functional.dense.0.forward of the target");
    explain(&p, false, "Functional.dense.0.backward", &text);
    says(&text, "It goes with its forward, Functional.dense.0.forward, of which");
    ms_buf_free(&text);
    stop(&p);
}
END_TEST

START_TEST(an_explanation_of_a_module_counts_the_pairs_inside)
{
    struct pair_of_dumps p;
    struct ms_buf text = {.max = 1 << 16};
    start(&p);
    two_blocks(&p);
    finish(&p, NULL, 0);
    explain(&p, true, "Module.model.attn.Attention.forward.0", &text);
    says(&text, "holds 3 of the 3 pairs inside it, and 0 others");
    ms_buf_free(&text);
    stop(&p);
}
END_TEST

START_TEST(mapping_files_say_what_differs)
{
    struct pair_of_dumps p;
    struct ms_buf text = {.max = 1 << 16};
    struct ms_err err = {0};
    start(&p);
    two_blocks(&p);
    finish(&p, NULL, 0);
    ck_ok(cmp_align_write_rows(p.al, &text, &err), err);
    ck_assert_ptr_nonnull(
        strstr(ms_buf_z(&text),
               "Functional.dense.0.forward.output.0: Functional.linear.3.forward.output.0\n"));
    ck_assert_ptr_nonnull(strstr(ms_buf_z(&text),
                                 "Cell.net.attention.wo.Dense.forward.0.parameters.weight: "
                                 "Module.model.attn.o.Linear.forward.0.parameters.weight\n"));
    ms_buf_free(&text);
    stop(&p);
}
END_TEST

START_TEST(empty_dumps_have_no_pairs)
{
    struct pair_of_dumps p;
    size_t n;
    start(&p);
    finish(&p, NULL, 0);
    cmp_align_pairs(p.al, &n);
    ck_assert_uint_eq(n, 0);
    stop(&p);
}
END_TEST

START_TEST(modules_alone_are_aligned_by_their_records)
{
    struct pair_of_dumps p;
    start(&p);
    for (int i = 0; i < 6; i++) {
        char g[64], t[64], w[32], out[32];
        snprintf(g, sizeof g, "Module.net.fc%d.Linear.forward.0", i);
        snprintf(t, sizeof t, "Cell.model.fc_%d.Dense.forward.0", i);
        snprintf(w, sizeof w, "w%d:%dx8", i, 8 + 8 * (i % 3));
        snprintf(out, sizeof out, "h%d:4x%d", i, 8 + 8 * (i % 3));
        add_module(&p.make[0], NULL, g, w, out);
        if (i != 2)
            add_module(&p.make[1], NULL, t, w, out);
    }
    finish(&p, NULL, 0);
    ck_paired(&p, "Module.net.fc1.Linear.forward.0", "Cell.model.fc_1.Dense.forward.0");
    ck_paired(&p, "Module.net.fc3.Linear.forward.0", "Cell.model.fc_3.Dense.forward.0");
    ck_paired(&p, "Module.net.fc5.Linear.forward.0", "Cell.model.fc_5.Dense.forward.0");
    stop(&p);
}
END_TEST

START_TEST(running_out_of_memory_anywhere_is_an_error)
{
    struct pair_of_dumps p;
    start(&p);
    two_blocks(&p);
    finish(&p, NULL, 0);
    const struct cmp_align_input g = {p.dump[0], &p.tree[0]};
    const struct cmp_align_input t = {p.dump[1], &p.tree[1]};
    for (uint64_t n = 1;; n++) {
        struct ms_err err = {0};
        struct cmp_align *al;
        size_t live = ms_mem_live();
        ms_mem_fail_at(n);
        enum ms_rc rc = cmp_align_new(&al, &t, &g, NULL, 0, NULL, &err);
        bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        if (!failed) {
            ck_assert_int_eq(rc, MS_OK);
            cmp_align_free(al);
            break;
        }
        ck_assert_int_eq(rc, MS_E_NOMEM);
        ck_assert_ptr_null(al);
        ck_assert_uint_eq(ms_mem_live(), live);
    }
    stop(&p);
}
END_TEST

TEST_MAIN("align", a_fused_and_a_decomposed_block_are_aligned, threads_change_nothing,
          structure_is_enough_without_statistics, the_large_one_is_a_partner_of_all_its_parts,
          gradients_without_a_forward_record_go_by_their_names,
          members_are_what_runs_in_place_of_a_fused_op, rows_pair_by_value_whatever_their_order,
          a_row_without_partner_stays_alone,
          backward_of_a_recomputed_call_is_that_of_its_repetition, a_pin_overrides_what_was_found,
          a_pin_that_names_no_node_is_refused, an_explanation_names_the_pair_and_the_next_best,
          an_explanation_of_a_module_counts_the_pairs_inside, mapping_files_say_what_differs,
          empty_dumps_have_no_pairs, modules_alone_are_aligned_by_their_records,
          running_out_of_memory_anywhere_is_an_error)

/* SPDX-License-Identifier: MIT
 *
 * dump_recorded: what the readers of dump.json, construct.json, stack.json and of a compiled graph's
 * text make of the files of their corpora and of everything that is one byte away from them, and
 * what the grammars of names make of every sequence of their words.
 */
#include "probe/dump/census.h"
#include "probe/dump/graph_ir.h"
#include "probe/dump/kernel_name.h"
#include "probe/dump/stack.h"
#include "probe/dump/tree.h"
#include "tests/support/recorded.h"

#include <inttypes.h>
#include <sys/mman.h>

/* ---- dump.json ------------------------------------------------------------------ */

static void put_leaf(struct ms_buf *b, const struct probe_leaf *leaf)
{
    uint64_t dim[3];
    unsigned ndim = 0;
    recorded_text(b, "json", leaf->json);
    recorded_text(b, "type", leaf->type);
    recorded_text(b, "dtype", leaf->dtype_text);
    recorded_text(b, "shape", leaf->shape_json);
    recorded_text(b, "md5", leaf->md5);
    recorded_text(b, "data", leaf->data_name);
    recorded_text(b, "value", leaf->value_json);
    for (int i = 0; i < PROBE_STATS; i++) {
        ms_buf_printf(b, " %d:%.17g", leaf->stat[i].kind, leaf->stat[i].v);
        recorded_text(b, "of", leaf->stat[i].text);
    }
    ms_buf_printf(b, " %d %d %d%d%d", leaf->dtype, leaf->requires_grad, leaf->escaped,
                  leaf->unfinished, probe_leaf_is_masked(leaf));
    const bool has_shape = probe_leaf_shape(leaf, dim, 3, &ndim);
    for (unsigned i = 0; has_shape && i < ndim; i++)
        ms_buf_printf(b, " %" PRIu64, dim[i]);
}

static void put_rows(struct ms_buf *b, const struct probe_dump *d, const struct probe_node *node)
{
    for (uint32_t i = node->first_row; i < node->first_row + node->nrows; i++) {
        const struct probe_row *r = &d->rows.p[i];
        struct probe_leaf leaf;
        probe_row_leaf(d, r, &leaf);
        ms_buf_printf(b, "\n  %" PRIu64 "+%u %u %u %u ", r->off, r->len, r->section, r->kind,
                      r->flags);
        probe_row_name(d, r, b);
        recorded_text(b, "path", probe_row_path(d, r));
        put_leaf(b, &leaf);
    }
}

static void put_census(struct ms_buf *b, const struct probe_dump *d)
{
    struct probe_census c;
    struct ms_err e = {0};
    ck_ok(probe_census_take(&c, d, NULL, &e), e);
    for (int i = 0; i < PROBE_NODE_KINDS; i++)
        ms_buf_printf(b, " %" PRIu64, c.nodes[i]);
    for (size_t i = 0; i < c.prefix_nodes.n; i++) {
        recorded_text(b, "prefix", ms_map_key(&c.prefixes, (uint32_t)i));
        ms_buf_printf(b, ":%" PRIu64, c.prefix_nodes.p[i]);
    }
    const uint64_t counts[] = {c.forward,    c.backward,    c.tensors,      c.values,
                               c.nulls,      c.nan_tensors, c.inf_tensors,  c.masked_tensors,
                               c.unfinished, c.files,       c.tensor_bytes, c.first_nan,
                               c.first_inf};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        ms_buf_printf(b, " %" PRIu64, counts[i]);
    for (int i = 0; i < MS_DT_MAX; i++)
        ms_buf_printf(b, " %" PRIu64, c.of_dtype[i]);
    probe_census_free(&c);
}

static void put_dump(struct ms_buf *b, const struct probe_dump *d)
{
    recorded_text(b, "task", d->task);
    recorded_text(b, "level", d->level);
    recorded_text(b, "dir", d->data_dir);
    recorded_text(b, "framework", d->framework_text);
    ms_buf_printf(b, " %d %d %d", d->is_graph, d->framework, d->mode);
    for (size_t i = 0; i < d->problems.n; i++)
        recorded_text(b, "problem", d->problems.p[i]);
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        const struct probe_node *n = &d->nodes.p[i];
        ms_buf_printf(b, "\n%" PRIu64 " %u %u %u", n->off, n->kind, n->dir, n->flags);
        recorded_text(b, "node", probe_node_name(d, i));
        put_rows(b, d, n);
    }
    put_census(b, d);
}

static void answer_dump(struct ms_buf *b, const char *p, size_t n)
{
    for (unsigned flags = 0; flags <= PROBE_OPEN_TOLERANT; flags += PROBE_OPEN_TOLERANT) {
        struct probe_dump *d;
        struct ms_err e = {0};
        const struct ms_str text = {p, (uint32_t)n};
        if (probe_dump_parse(&d, "x", text, flags, NULL, &e) == MS_OK)
            put_dump(b, d);
        else
            ms_buf_printf(b, "%d %s", e.rc, e.msg);
        ms_buf_puts(b, "; ");
        probe_dump_close(d);
    }
}

START_TEST(dumps)
{
    struct ms_buf b = {.max = 1 << 20};
    recorded_corpus(&b, "dump", answer_dump);
    recorded_check(&b, "dump");
}
END_TEST

/* ---- construct.json, stack.json ------------------------------------------------- */

static void put_tree(struct ms_buf *b, const struct probe_tree *t)
{
    ms_buf_printf(b, "%" PRId64 " %d", t->micro_steps, t->truncated);
    for (uint32_t i = 0; i < t->nodes.n; i++) {
        const struct probe_tree_node *n = &t->nodes.p[i];
        recorded_text(b, "node", probe_tree_name(t, i));
        ms_buf_printf(b, ":%u %u %d", n->parent, n->micro_step, n->listed);
    }
    for (size_t i = 0; i < t->entries.n; i++)
        ms_buf_printf(b, " %u", t->entries.p[i]);
}

static void put_stacks(struct ms_buf *b, const struct probe_stacks *s)
{
    ms_buf_printf(b, "%d %d", s->truncated, s->grouped);
    for (uint32_t i = 0; i < s->stack_of.n; i++) {
        struct ms_buf scratch = {.max = 1 << 20};
        struct ms_str frame;
        struct ms_jread r;
        const struct ms_str list = probe_stack_frames(s, ms_map_key(&s->names, i));
        recorded_text(b, "node", ms_map_key(&s->names, i));
        ms_jread_init(&r, list.p, list.n, 0);
        while (probe_stack_next(&r, &scratch, &frame))
            recorded_text(b, "frame", frame);
        ms_buf_free(&scratch);
    }
}

static void answer_extra(struct ms_buf *b, const char *p, size_t n)
{
    const struct ms_str text = {p, (uint32_t)n};
    for (unsigned flags = 0; flags < 4; flags++) {
        struct probe_tree t;
        struct probe_stacks s;
        struct ms_err e = {0};
        if (flags < 2 && probe_tree_parse(&t, "x", text, flags, &e) == MS_OK)
            put_tree(b, &t);
        ms_buf_printf(b, "%d %s; ", e.rc, e.msg);
        if (flags < 2)
            probe_tree_close(&t);
        ms_err_clear(&e);
        if (probe_stacks_parse(&s, "x", text, flags, &e) == MS_OK)
            put_stacks(b, &s);
        ms_buf_printf(b, "%d %s; ", e.rc, e.msg);
        probe_stacks_close(&s);
    }
}

START_TEST(trees_and_stacks)
{
    struct ms_buf b = {.max = 1 << 20};
    recorded_corpus(&b, "extra", answer_extra);
    recorded_check(&b, "extra");
}
END_TEST

/* ---- a compiled graph ------------------------------------------------------------ */

static void put_shapes(struct ms_buf *b, struct ms_str types)
{
    uint64_t shape[2];
    uint32_t ndim;
    recorded_text(b, "types", types);
    for (uint64_t slot = 0; slot < 4; slot++) {
        if (!probe__ir_shape(types, slot, shape, &ndim, 2))
            continue;
        ms_buf_printf(b, " slot %" PRIu64 ":", slot);
        for (uint32_t d = 0; d < ndim; d++)
            ms_buf_printf(b, " %" PRIu64, shape[d]);
    }
}

static void put_kernel(struct ms_buf *b, const struct probe__ir *ir,
                       const struct probe__ir_kernel *k)
{
    recorded_text(b, "\ninstance", k->instance);
    recorded_text(b, "id", k->id);
    recorded_text(b, "forward", k->forward_id);
    recorded_text(b, "op", k->forward_op);
    recorded_text(b, "source", k->source);
    put_shapes(b, k->in);
    put_shapes(b, k->out);
    for (uint32_t i = k->first; i < k->first + k->n; i++) {
        const struct probe__ir_argument *a = &ir->arguments.p[i];
        ms_buf_printf(b, " %d:%u", a->kind, a->kernel);
        recorded_text(b, "parameter", a->parameter);
    }
}

static void answer_graph(struct ms_buf *b, const char *p, size_t n)
{
    char path[64];
    struct probe__ir ir;
    struct ms_err e = {0};
    const int fd = memfd_create("ir", 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, p, n), (ssize_t)n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ck_ok(probe__ir_open(&ir, path, &e), e);
    for (uint32_t i = 0; i < ir.kernels.n; i++) {
        recorded_text(b, "kernel", ms_map_key(&ir.names, i));
        put_kernel(b, &ir, &ir.kernels.p[i]);
    }
    probe__ir_close(&ir);
    close(fd);
}

START_TEST(texts_of_graphs)
{
    struct ms_buf b = {.max = 1 << 20};
    recorded_corpus(&b, "graph_ir", answer_graph);
    recorded_check(&b, "graph_ir");
}
END_TEST

/* ---- names ------------------------------------------------------------------------ */

static void answer_name(struct ms_buf *b, const char *p, size_t n)
{
    const struct ms_str name = {p, (uint32_t)n};
    const struct probe_name of = probe_name_parse(name);
    struct ms_str call = MS_STR_NONE;
    ms_buf_printf(b, "%s %d %" PRId64, probe_node_kind_text(of.kind), of.dir, of.call);
    recorded_text(b, "prefix", of.prefix);
    recorded_text(b, "path", of.path);
    ms_buf_printf(b, " %u parts", probe_name_parts(name));
    for (unsigned i = 0; i < 5; i++) {
        recorded_text(b, "part", probe_name_part(name, i));
        recorded_text(b, "back", probe_name_part_back(name, i));
        recorded_text(b, "cut", probe_name_cut(name, i));
        recorded_text(b, "head", i != 0 ? probe_name_head(name, i) : MS_STR_NONE);
    }
    ms_buf_printf(b, " %d", probe_name_find_call(name, &call));
    recorded_text(b, "call", call);
    ms_buf_printf(b, " %d ", probe_name_is_call_of(name, MS_STR("forward")));
    probe_name_put_call(b, name, MS_STR("word"));
    ms_buf_putc(b, ' ');
    ms_buf_printf(b, " %d", probe_name_put_forward(b, name));
}

START_TEST(names_of_records)
{
    static const char *const word[] = {
        "",  "a",  "forward", "backward", "parameters_grad",     "debug",
        "0", "12", "1x",      "-1",       "99999999999999999999"};
    struct ms_buf b = {.max = 1 << 20};
    recorded_words(&b, word, sizeof word / sizeof *word, 4, ".", answer_name);
    recorded_check(&b, "names");
}
END_TEST

static void answer_file(struct ms_buf *b, const char *p, size_t n)
{
    struct probe__kernel_file f = {0};
    const bool is = probe__kernel_file_parse((struct ms_str){p, (uint32_t)n}, &f);
    ms_buf_printf(b, "%d %d %" PRIu64 " %" PRIu64, is, f.is_input, f.slot, f.time);
    recorded_text(b, "op", is ? f.op : MS_STR_NONE);
    recorded_text(b, "scope", is ? f.scope : MS_STR_NONE);
}

START_TEST(names_of_kernel_files)
{
    static const char name[] = "MatMul.Default_up-Dense_MatMul-op0.3.1.17956.input.2.DefaultFormat."
                               "Float32.npy",
                      short_name[] = "A.b.0.0.1.output.0.D.F.npy";
    struct ms_buf b = {.max = 1 << 20};
    recorded_file(&b, "input", name, sizeof name - 1, answer_file);
    recorded_file(&b, "output", short_name, sizeof short_name - 1, answer_file);
    recorded_check(&b, "kernel_files");
}
END_TEST

static void answer_scope(struct ms_buf *b, const char *p, size_t n)
{
    for (int optimizer = 0; optimizer < 2; optimizer++) {
        struct probe__kernel_scope s;
        struct ms_str attribute, class_name;
        probe__kernel_scope_parse((struct ms_str){p, (uint32_t)n}, optimizer != 0, &s);
        ms_buf_printf(b, " %d", s.phase);
        recorded_text(b, "cells", s.cells);
        recorded_text(b, "forward", s.forward);
        recorded_text(b, "op", s.op);
        probe__cell_split(s.cells, &attribute, &class_name);
        recorded_text(b, "attribute", attribute);
        recorded_text(b, "class", class_name);
    }
}

START_TEST(full_names_of_kernels)
{
    static const char *const word[] = {
        "Default", "Gradients", "network-A",  "_backbone-B", "_loss_fn-C", "optimizer-D", "up-E",
        "Grad_F",  "ExpandG",   "ApplyH-op1", "I-op0",       "-op2",       "xGrad_J"};
    struct ms_buf b = {.max = 1 << 20};
    recorded_words(&b, word, sizeof word / sizeof *word, 4, "/", answer_scope);
    recorded_check(&b, "kernel_names");
}
END_TEST

RECORDED_MAIN("dump_recorded", dumps, trees_and_stacks, texts_of_graphs, names_of_records,
              names_of_kernel_files, full_names_of_kernels)

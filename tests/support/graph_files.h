/* SPDX-License-Identifier: MIT
 *
 * graph_files: small dumps for the tests of graphs, written by hand.
 */
#ifndef TESTS_SUPPORT_GRAPH_FILES_H
#define TESTS_SUPPORT_GRAPH_FILES_H

#include "compare/graph/build/graph_tree.h"
#include "compare/graph/graph_rules.h"
#include "compare/graph/view/graph_edit.h"
#include "compare/official/rules_official.h"
#include "probe/base/jread.h"
#include "probe/base/store.h"
#include "probe/base/trace.h"

#include "tests/support/check.h"

/* A float tensor leaf. */
#define LEAF(max, min, mean, norm)                                                                 \
    "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[2,3],\"Max\":" max          \
    ",\"Min\":" min ",\"Mean\":" mean ",\"Norm\":" norm ",\"requires_grad\":true}"
#define FLAT(x) LEAF(x, x, x, x)
/* A forward record with one input and one output. */
#define RECORD(name, in, out) "\"" name "\":{\"input_args\":[" in "],\"output\":[" out "]}"
#define DUMP(records)                                                                              \
    "{\"task\":\"statistics\",\"level\":\"mix\",\"framework\":\"pytorch\","                        \
    "\"dump_data_dir\":null,\"data\":{" records "}}"

static inline void put_text(const char *dir, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    write_file(path, text, strlen(text));
}

/* The three files of a rank below top; stack may be NULL. */
static inline void put_rank(const char *top, const char *rank, const char *construct,
                            const char *dump, const char *stack)
{
    struct ms_err err = {0};
    char dir[256];
    snprintf(dir, sizeof dir, "%s/%s", top, rank);
    ck_ok(ms_mkdirs(dir, &err), err);
    put_text(dir, "construct.json", construct);
    put_text(dir, "dump.json", dump);
    if (stack != NULL)
        put_text(dir, "stack.json", stack);
}

/* Four floats as a tensor file below the dump. */
static inline void put_npy(const char *top, const char *name, const float x[4])
{
    static const char head[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }";
    char path[256], bytes[128 + 4 * sizeof *x];
    struct ms_err err = {0};
    memset(bytes, ' ', sizeof bytes);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(bytes + 10, head, sizeof head - 1);
    bytes[127] = '\n';
    memcpy(bytes + 128, x, 4 * sizeof *x);
    snprintf(path, sizeof path, "%s/dump_tensor_data", top);
    ck_ok(ms_mkdirs(path, &err), err);
    snprintf(path, sizeof path, "%s/dump_tensor_data/%s", top, name);
    write_file(path, bytes, sizeof bytes);
}

/* "a(b c(d))": the tree below the root, children in order. */
static inline void draw(const struct graph__tree *g, uint32_t node, struct ms_buf *out)
{
    for (uint32_t n = g->nodes.p[node].first_child; n != GRAPH_NO; n = g->nodes.p[n].next) {
        if (n != g->nodes.p[node].first_child)
            ms_buf_putc(out, ' ');
        ms_buf_str(out, graph__name(g, n));
        if (g->nodes.p[n].first_child == GRAPH_NO)
            continue;
        ms_buf_putc(out, '(');
        draw(g, n, out);
        ms_buf_putc(out, ')');
    }
}

#endif

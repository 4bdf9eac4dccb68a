/* SPDX-License-Identifier: MIT
 *
 * fuzz_align: aligns two dumps made from the input.
 *
 * When the input begins with '{' it is the text of the golden dump, its tree, the
 * target dump and its tree, each ended by a zero byte; else every four bytes are
 * one record: what it is, where, what it reads and what it writes.  Whatever comes
 * out must be a proper relation, the same each time, and its rows must hold every
 * row of both nodes once.
 */
#include "compare/align/align.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct side {
    struct ms_buf data, tree;
    struct probe_dump *dump;
    struct probe_tree nodes;
    bool has_tree;
    unsigned calls[16];
};

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* ---- dumps from bytes ---------------------------------------------------- */

static void put_tensor(struct ms_buf *out, unsigned v)
{
    static const char *const shapes[] = {"4, 8", "8, 4", "12, 4", "4", "", "2, 2, 8", "1, 32", "0"};
    unsigned n = v / 8;
    ms_buf_printf(out, "{\"type\": \"torch.Tensor\", \"dtype\": \"%s\", \"shape\": [%s]",
                  v % 5 == 4 ? "torch.int64" : "torch.float32", shapes[v % 8]);
    if (n % 7 == 6)
        ms_buf_puts(out, ", \"Max\": NaN, \"Min\": -Infinity, \"Mean\": NaN, \"Norm\": NaN");
    else if (n % 7 != 5)
        ms_buf_printf(out, ", \"Max\": %u.5, \"Min\": -%u, \"Mean\": 0.%u, \"Norm\": %u", n, n % 3,
                      n % 9, n * n);
    ms_buf_putc(out, '}');
}

static void put_list(struct ms_buf *out, const char *key, unsigned n, unsigned first)
{
    ms_buf_printf(out, "\"%s\": [", key);
    for (unsigned i = 0; i < n; i++) {
        ms_buf_puts(out, i == 0 ? "" : ", ");
        put_tensor(out, first + 8 * i);
    }
    ms_buf_putc(out, ']');
}

static void put_record(struct side *s, const uint8_t b[4], bool target)
{
    static const char *const apis[] = {
        "Functional.linear", "Torch.matmul",       "Tensor.__add__", "Mint.mul",
        "Torch.split",       "Functional.softmax", "Tensor.reshape", "Functional.swiglu",
        "NPU.npu_rms_norm",  "Functional.cast",    "Custom.kernel",  "Mint.transpose"};
    const char *kind = target ? "Cell" : "Module";
    unsigned what = b[0] % 16;
    unsigned parent = b[1] % 6;
    char name[96];
    if (what >= 14)
        snprintf(name, sizeof name, "%s.m%u.Block%u.forward.0", kind, parent, parent % 3);
    else
        snprintf(name, sizeof name, "%s.%u.%s", apis[what % 12], s->calls[what % 12],
                 b[0] & 64 ? "backward" : "forward");
    if (what < 14 && (b[0] & 64) == 0)
        s->calls[what % 12]++;
    ms_buf_printf(&s->data, "%s\"%s\": {", s->data.n == 0 ? "" : ",\n", name);
    if (what < 14 && b[0] & 64)
        put_list(&s->data, "input", b[2] % 4, b[2]);
    else
        put_list(&s->data, "input_args", b[2] % 4, b[2]);
    ms_buf_puts(&s->data, ", ");
    put_list(&s->data, "output", b[3] % 3, b[3]);
    if (what >= 14) {
        ms_buf_puts(&s->data, ", \"parameters\": {\"w\": ");
        put_tensor(&s->data, b[2]);
        ms_buf_putc(&s->data, '}');
    }
    if (b[0] & 128)
        ms_buf_puts(&s->data, ", \"is_recompute\": true");
    ms_buf_putc(&s->data, '}');
    /* Modules lie inside those with a smaller number. */
    if (parent == 0)
        return;
    unsigned up = what >= 14 ? parent - 1 : parent;
    ms_buf_printf(&s->tree, "%s\"%s\": \"%s.m%u.Block%u.forward.0\"", s->tree.n == 0 ? "" : ",\n",
                  name, kind, up, up % 3);
}

static void wrap(struct ms_buf *b, const char *before, const char *after)
{
    struct ms_buf all = {.max = 1 << 22};
    ms_buf_puts(&all, before);
    ms_buf_str(&all, ms_buf_slice(b));
    ms_buf_puts(&all, after);
    ms_buf_free(b);
    *b = all;
}

static void make_sides(struct side side[2], const uint8_t *p, size_t n)
{
    for (size_t i = 0; i + 4 <= n && i < 2048; i += 4)
        put_record(&side[p[i] >> 5 & 1], p + i, p[i] >> 5 & 1);
    for (int s = 0; s < 2; s++) {
        wrap(&side[s].data,
             "{\"task\": \"statistics\", \"level\": \"mix\", \"framework\": \"pytorch\", "
             "\"dump_data_dir\": null, \"data\": {",
             "}}");
        wrap(&side[s].tree, "{", "}");
    }
}

static void split_sides(struct side side[2], const uint8_t *p, size_t n)
{
    struct ms_buf *part[4] = {&side[0].data, &side[0].tree, &side[1].data, &side[1].tree};
    for (int i = 0; i < 4 && n != 0; i++) {
        const uint8_t *end = memchr(p, 0, n);
        size_t len = end != NULL ? (size_t)(end - p) : n;
        ms_buf_put(part[i], p, len);
        p += len + (end != NULL);
        n -= len + (end != NULL);
    }
}

/* ---- properties ---------------------------------------------------------- */

static bool is_search(const struct cmp_align_pair *p)
{
    return p->how == CMP_ALIGN_VALUE || p->how == CMP_ALIGN_STRUCTURE || p->how == CMP_ALIGN_WEAK;
}

static void check_pairs(const struct cmp_align *al, const struct side side[2])
{
    size_t n;
    const struct cmp_align_pair *p = cmp_align_pairs(al, &n);
    uint8_t *seen = calloc(side[0].dump->nodes.n + 1, 1);
    for (size_t i = 0; i < n; i++) {
        require(p[i].target < side[1].dump->nodes.n && p[i].golden < side[0].dump->nodes.n);
        require(p[i].confidence > 0 && p[i].confidence <= 1);
        bool more = i != 0 && p[i - 1].target == p[i].target;
        require(p[i].more == more && (i == 0 || p[i - 1].target <= p[i].target));
        require(!more ||
                (p[i - 1].confidence >= p[i].confidence && p[i - 1].golden != p[i].golden));
        require(cmp_align_of_golden(al, p[i].golden) != CMP_ALIGN_NONE);
        /* What the search finds is one to one. */
        const struct probe_node *g = &side[0].dump->nodes.p[p[i].golden];
        if (is_search(&p[i]) && g->dir == PROBE_FORWARD) {
            require(!seen[p[i].golden]);
            seen[p[i].golden] = 1;
        }
    }
    free(seen);
}

static void check_rows(const struct cmp_align *al, const struct side side[2])
{
    size_t n;
    const struct cmp_align_pair *p = cmp_align_pairs(al, &n);
    for (size_t i = 0; i < n; i++) {
        const struct probe_node *g = &side[0].dump->nodes.p[p[i].golden];
        const struct probe_node *t = &side[1].dump->nodes.p[p[i].target];
        size_t most = (size_t)g->nrows + t->nrows;
        struct cmp_align_row *rows = calloc(most + 1, sizeof *rows);
        uint8_t *seen = calloc(most + 1, 1);
        size_t nr = cmp_align_rows(al, &p[i], rows);
        require(nr <= most);
        size_t found = 0;
        for (size_t k = 0; k < nr; k++) {
            for (int s = 0; s < 2; s++) {
                uint32_t row = s == 0 ? rows[k].golden : rows[k].target;
                if (row == CMP_ALIGN_NONE)
                    continue;
                size_t at = row - (s == 0 ? g : t)->first_row + (s == 0 ? 0 : g->nrows);
                require(at < most && !seen[at]);
                seen[at] = 1;
                found++;
            }
        }
        require(found == most);
        free(rows);
        free(seen);
    }
}

static void check_texts(const struct cmp_align *al, const struct side side[2])
{
    struct ms_buf text = {.max = 1 << 24};
    struct ms_err err = {0};
    require(cmp_align_write_rows(al, &text, &err) == MS_OK);
    for (int s = 0; s < 2; s++) {
        for (uint32_t i = 0; i < side[s].dump->nodes.n && i < 16; i++)
            cmp_align_explain(al, s == 0, i, &text);
    }
    ms_buf_free(&text);
}

static void check_equal(const struct cmp_align *a, const struct cmp_align *b)
{
    size_t n;
    size_t m;
    const struct cmp_align_pair *p = cmp_align_pairs(a, &n);
    const struct cmp_align_pair *q = cmp_align_pairs(b, &m);
    require(n == m);
    for (size_t i = 0; i < n; i++)
        require(p[i].target == q[i].target && p[i].golden == q[i].golden && p[i].how == q[i].how);
}

static void align(struct side side[2])
{
    struct cmp_align *al[2] = {NULL, NULL};
    struct ms_err err = {0};
    const struct cmp_align_input g = {side[0].dump, side[0].has_tree ? &side[0].nodes : NULL};
    const struct cmp_align_input t = {side[1].dump, side[1].has_tree ? &side[1].nodes : NULL};
    for (int i = 0; i < 2; i++)
        require(cmp_align_new(&al[i], &t, &g, NULL, 0, NULL, &err) == MS_OK);
    check_equal(al[0], al[1]);
    check_pairs(al[0], side);
    check_rows(al[0], side);
    check_texts(al[0], side);
    cmp_align_free(al[0]);
    cmp_align_free(al[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct side side[2];
    struct ms_err err = {0};
    memset(side, 0, sizeof side);
    for (int s = 0; s < 2; s++)
        side[s].data.max = side[s].tree.max = 1 << 22;
    if (size != 0 && data[0] == '{')
        split_sides(side, data, size);
    else
        make_sides(side, data, size);
    bool good = true;
    for (int s = 0; s < 2; s++) {
        good &= probe_dump_parse(&side[s].dump, "dump", ms_buf_slice(&side[s].data),
                                 PROBE_OPEN_TOLERANT, NULL, &err) == MS_OK;
        side[s].has_tree = probe_tree_parse(&side[s].nodes, "tree", ms_buf_slice(&side[s].tree),
                                            PROBE_TREE_TOLERANT, &err) == MS_OK;
    }
    if (good)
        align(side);
    for (int s = 0; s < 2; s++) {
        probe_dump_close(side[s].dump);
        if (side[s].has_tree)
            probe_tree_close(&side[s].nodes);
        ms_buf_free(&side[s].data);
        ms_buf_free(&side[s].tree);
    }
    return 0;
}

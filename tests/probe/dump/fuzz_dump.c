/* SPDX-License-Identifier: MIT
 *
 * Any text as a dump.json.  What is accepted has rows whose leaves read as the
 * kind they were given; every start of it but the empty one is accepted when
 * tolerant, with a start of the same records; and parts of it, cut as for
 * threads, hold the same rows.
 */
#include "probe/base/mem.h"
#include "probe/base/trace.h"
#include "probe/dump/dump_int.h"

#include <stdlib.h>

#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            abort();                                                                               \
    } while (0)

/* What the reader noted of the statistics is what their parsed values say. */
static bool has_real_stats(const struct probe_leaf *leaf)
{
    bool real = leaf->kind == PROBE_LEAF_TENSOR;
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        const struct probe_num *n = &leaf->stat[i];
        real &= n->kind == PROBE_NUM_FLOAT && !ms_str_is(n->text, "NaN") &&
                ms_str_find_str(n->text, MS_STR("Infinity")) < 0;
    }
    return real;
}

static void check_leaf(const struct probe_dump *d, const struct probe_row *row)
{
    struct probe_leaf leaf;
    struct ms_buf name = {.max = 1 << 22};
    uint64_t dim[4];
    unsigned ndim;
    MUST(row->off + row->len <= d->file.n && row->len != 0);
    probe_row_leaf(d, row, &leaf);
    MUST(leaf.kind == (enum probe_leaf_kind)row->kind && leaf.json.n == row->len);
    if (leaf.kind == PROBE_LEAF_TENSOR)
        MUST(leaf.type.n != 0 && leaf.shape_json.n >= 2 && leaf.shape_json.p[0] == '[');
    if (leaf.kind == PROBE_LEAF_NULL)
        MUST(ms_str_is(leaf.json, "null"));
    if (leaf.kind == PROBE_LEAF_VALUE || leaf.kind == PROBE_LEAF_GROUP)
        MUST(leaf.value_json.n != 0);
    MUST(!probe_leaf_shape(&leaf, dim, 4, &ndim) || ndim <= 4);
    MUST((row->flags & PROBE_LEAF_HAS_DATA_NAME) != 0 || leaf.data_name.n == 0 ||
         leaf.kind == PROBE_LEAF_OTHER);
    MUST(((row->flags & PROBE_LEAF_REAL_STATS) != 0) == has_real_stats(&leaf));
    probe_row_name(d, row, &name);
    MUST(name.bad == MS_OK);
    ms_buf_free(&name);
}

static void check_rows(const struct probe_dump *d)
{
    uint32_t at = 0;
    MUST(d->names.keys.n == d->nodes.n);
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        const struct probe_node *n = &d->nodes.p[i];
        MUST(n->first_row == at && probe_node_find(d, probe_node_name(d, i)) == i);
        for (; at < n->first_row + n->nrows; at++) {
            MUST(d->rows.p[at].node == i);
            MUST(at == n->first_row || d->rows.p[at].section >= d->rows.p[at - 1].section);
            check_leaf(d, &d->rows.p[at]);
        }
    }
    MUST(at == d->rows.n);
}

/* ---- the start of an accepted text ---------------------------------------------- */

static void check_start(const struct probe_dump *whole, struct ms_str text)
{
    struct probe_dump *d;
    struct ms_err err = {0};
    MUST(probe_dump_parse(&d, "start", text, PROBE_OPEN_TOLERANT, NULL, &err) == MS_OK);
    MUST(d->nodes.n <= whole->nodes.n && d->rows.n <= whole->rows.n);
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        MUST(ms_str_eq(probe_node_name(d, i), probe_node_name(whole, i)));
        MUST(d->nodes.p[i].nrows == whole->nodes.p[i].nrows);
    }
    for (size_t i = 0; i < d->rows.n; i++)
        MUST(d->rows.p[i].off == whole->rows.p[i].off && d->rows.p[i].len == whole->rows.p[i].len);
    probe_dump_close(d);
}

static void check_starts(const struct probe_dump *whole, struct ms_str text)
{
    uint32_t step = text.n / 64 + 1;
    for (uint32_t n = 1; n < text.n; n += step)
        check_start(whole, (struct ms_str){text.p, n});
}

/* ---- parts --------------------------------------------------------------------------- */

/* The members of `data` lie from r->at to the result. */
static const char *find_data(struct ms_jread *r, struct ms_str text)
{
    struct ms_jread inside;
    ms_jread_init(r, text.p, text.n, 0);
    MUST(ms_jread_next(r) == MS_J_OBJ);
    for (;;) {
        MUST(ms_jread_next(r) == MS_J_KEY);
        bool is_data = ms_str_is(r->text, "data");
        enum ms_jtok tok = ms_jread_next(r);
        if (is_data)
            break;
        ms_jread_skip(r, tok);
    }
    inside = *r;
    MUST(ms_jread_skip(&inside, MS_J_OBJ) == MS_J_OBJ_END);
    return inside.at - 1;
}

/* Rows of one part follow those of the parts before. */
static bool part_agrees(const struct probe_dump *d, const struct probe__flat *f, size_t *node,
                        size_t *row)
{
    MUST(*node + f->nodes.n <= d->nodes.n && *row + f->rows.n <= d->rows.n);
    for (size_t i = 0; i < f->nodes.n; i++, ++*node)
        MUST(ms_str_eq(f->nodes.p[i].name, probe_node_name(d, (uint32_t)*node)));
    for (size_t i = 0; i < f->rows.n; i++, ++*row) {
        const struct probe_row *a = &f->rows.p[i];
        const struct probe_row *b = &d->rows.p[*row];
        MUST(a->off == b->off && a->len == b->len && a->kind == b->kind && a->flags == b->flags);
        MUST(a->section == b->section);
        MUST(ms_str_eq(ms_map_key(&f->paths, a->path), probe_row_path(d, b)));
    }
    return true;
}

static void check_parts(const struct probe_dump *d, struct ms_str text)
{
    struct ms_jread data;
    struct ms_jread r;
    size_t cut[9];
    size_t node = 0;
    size_t row = 0;
    bool good = true;
    const char *end = find_data(&data, text);
    const char *key = data.at;
    while (key < end && (*key == '\n' || *key == ' '))
        key++;
    unsigned n = ms_jread_split(data.at, (size_t)(end - data.at),
                                key > data.at ? (unsigned)(key - data.at - 1) : 0, 8, cut);
    for (unsigned i = 0; i < n && good; i++) {
        struct probe__flat f;
        enum ms_jtok stop;
        ms_jread_init_part(&r, text.p, data.at + cut[i], cut[i + 1] - cut[i], i + 1 == n, 0);
        MUST(probe__flat_init(&f, text.p, ms_str_is(d->level, "debug"), NULL) == MS_OK);
        /* A cut that does not lie between records makes the reader start anew in one go. */
        good = probe__flat_read(&f, &r, &stop, NULL) == MS_OK && part_agrees(d, &f, &node, &row);
        probe__flat_free(&f);
    }
    MUST(!good || (node == d->nodes.n && row == d->rows.n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned modes[] = {0, PROBE_OPEN_TOLERANT};
    struct ms_str text = {(const char *)data, (uint32_t)size};
    size_t live = ms_mem_live();
    for (int i = 0; i < 2; i++) {
        struct probe_dump *d;
        struct ms_err err = {0};
        enum ms_rc rc = probe_dump_parse(&d, "fuzz", text, modes[i], NULL, &err);
        MUST((rc == MS_OK) == (d != NULL) && rc == err.rc);
        MUST(rc == MS_OK || rc == MS_E_FORMAT || rc == MS_E_LIMIT);
        MUST(rc == MS_OK || strncmp(err.msg, "fuzz: line ", 11) == 0);
        if (rc == MS_OK && d->problems.n == 0) {
            check_rows(d);
            check_starts(d, text);
            check_parts(d, text);
        }
        probe_dump_close(d);
    }
    ms_trace_reset();
    MUST(ms_mem_live() == live);
    return 0;
}

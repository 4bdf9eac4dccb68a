/* SPDX-License-Identifier: MIT
 *
 * graph_viewed: a database of two small graphs, opened as viewers do.
 */
#ifndef TESTS_SUPPORT_GRAPH_VIEWED_H
#define TESTS_SUPPORT_GRAPH_VIEWED_H

#include "tests/support/graph_files.h"

static struct ms_err err;
static char dir[64], target[96], golden[96], out[96];
static struct graph_conf conf;
static struct graph_made made;
static struct graph_view *view;
static struct graph_page page;
static const struct graph_spot npu = {0, 0, false}, bench = {0, 0, true};
static size_t live_before;

/* A model of two blocks on both sides; the second block's operators go wrong, and the target has a
 * module of its own. */
#define TREE(extra)                                                                                \
    "{\"Module.a.A.forward.0\":null,\"Torch.f.0.forward\":\"Module.a.A.forward.0\","               \
    "\"Torch.g.0.forward\":\"Module.a.A.forward.0\",\"Module.b.B.forward.0\":null,"                \
    "\"Torch.f.1.forward\":\"Module.b.B.forward.0\",\"Torch.g.1.forward\":\"Module.b.B.forward."   \
    "0\"" extra "}"
#define OPS(bad)                                                                                   \
    RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("1.0"))                                          \
    "," RECORD("Torch.g.0.forward", FLAT("1.0"), FLAT("1.0")) "," RECORD(                          \
        "Torch.f.1.forward", FLAT("1.0"), FLAT(bad)) "," RECORD("Torch.g.1.forward", FLAT("1.0"),  \
                                                                FLAT("1.2"))

static inline void set_up(void)
{
    ms_err_clear(&err);
    scratch_dir(dir);
    snprintf(target, sizeof target, "%s/t", dir);
    snprintf(golden, sizeof golden, "%s/g", dir);
    snprintf(out, sizeof out, "%s/o", dir);
    live_before = ms_mem_live();
    conf = (struct graph_conf){
        .target = target, .golden = golden, .out_dir = out, .matching = CMP_MATCH_EXACT};
    put_rank(
        target, ".",
        TREE(",\"Module.new.N.forward.0\":null,\"Torch.n.0.forward\":\"Module.new.N.forward.0\""),
        DUMP(OPS("9.0") "," RECORD("Torch.n.0.forward", FLAT("1.0"), FLAT("7.0"))), NULL);
    put_rank(
        golden, ".",
        TREE(",\"Module.old.N.forward.0\":null,\"Torch.n.5.forward\":\"Module.old.N.forward.0\""),
        DUMP(RECORD("Torch.f.0.forward", FLAT("1.0"), FLAT("1.0")) "," RECORD(
            "Torch.g.0.forward", FLAT("1.0"),
            FLAT("1.0")) "," RECORD("Torch.f.1.forward", FLAT("1.0"),
                                    FLAT("1.0")) "," RECORD("Torch.g.1.forward", FLAT("1.0"),
                                                            FLAT("1.0")) "," RECORD("Torch.n.5."
                                                                                    "forward",
                                                                                    FLAT("1.0"),
                                                                                    FLAT("1.0"))),
        NULL);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
    ck_ok(graph_view_open(&view, made.path, &err), err);
}

static inline void tear_down(void)
{
    graph_page_free(&page);
    graph_view_close(view);
    ms_trace_reset();
    ck_assert_uint_eq(ms_mem_live(), live_before);
    scratch_remove(dir);
}

/* After a change, or with sql that makes the tables of ours useless. */
static inline void reopen(const char *change)
{
    graph_view_close(view);
    view = NULL;
    if (change != NULL) {
        struct ms_store *s;
        ck_ok(ms_store_edit(&s, made.path, &err), err);
        ck_ok(ms_store_exec(s, change, &err), err);
        ms_store_close(s);
    }
    ck_ok(graph_view_open(&view, made.path, &err), err);
}
static const char forget_ours[] =
    "DROP TABLE x_meta; DROP TABLE x_state; DROP TABLE x_names; DROP TABLE x_rollup";

static inline void expect(const char *wanted)
{
    struct ms_buf names = {.max = 1 << 20};
    for (size_t i = 0; i < page.rows.n; i++)
        ms_buf_printf(&names, "%s%.*s", i > 0 ? " " : "", MS_STR_ARG(page.rows.p[i].name));
    ck_assert_str_eq(ms_buf_z(&names), wanted);
    ms_buf_free(&names);
}

#endif

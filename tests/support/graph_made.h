/* SPDX-License-Identifier: MIT
 *
 * graph_made: a folder with two dumps, the graph made of them, and what its database says.
 */
#ifndef TESTS_SUPPORT_GRAPH_MADE_H
#define TESTS_SUPPORT_GRAPH_MADE_H

#include "tests/support/graph_files.h"

static struct ms_err err;
static char dir[64], target[96], golden[96], out[96];
static size_t live_before;
static struct graph_conf conf;
static struct graph_made made;

static inline void begin_pair(void)
{
    ms_err_clear(&err);
    scratch_dir(dir);
    snprintf(target, sizeof target, "%s/t", dir);
    snprintf(golden, sizeof golden, "%s/g", dir);
    snprintf(out, sizeof out, "%s/o", dir);
    conf = (struct graph_conf){.target = target, .golden = golden, .out_dir = out};
    live_before = ms_mem_live();
}

static inline void tear_down(void)
{
    ms_trace_reset();
    ck_assert_uint_eq(ms_mem_live(), live_before);
    scratch_remove(dir);
}

/* The first column of the first row; "NULL", or "no row". */
static inline const char *ask(const char *question)
{
    static char answer[65536];
    struct ms_store *s;
    struct ms_stmt *st;
    bool more;
    ck_ok(ms_store_open(&s, made.path, &err), err);
    ck_ok(ms_store_prepare(s, &st, question, &err), err);
    ck_ok(ms_stmt_step(st, &more, &err), err);
    strcpy(answer, !more ? "no row" : "NULL");
    if (more && !ms_stmt_is_null(st, 0))
        snprintf(answer, sizeof answer, "%.*s", MS_STR_ARG(ms_stmt_get_str(st, 0)));
    ms_stmt_free(st);
    ms_store_close(s);
    return answer;
}

static inline void expect(const char *question, const char *wanted)
{
    const char *got = ask(question);
    ck_assert_msg(strcmp(got, wanted) == 0, "%s: %s, expected %s", question, got, wanted);
}

static inline const char *ask_of(const char *column, const char *node)
{
    char question[512];
    snprintf(question, sizeof question, "SELECT coalesce(%s, 'NULL') FROM tb_nodes WHERE id = '%s'",
             column, node);
    return ask(question);
}

#define ONE "{\"Module.m.M.forward.0\":null,\"Torch.f.0.forward\":\"Module.m.M.forward.0\"}"

static inline void make_two(const char *t_construct, const char *t_dump, const char *b_construct,
                            const char *b_dump)
{
    put_rank(target, ".", t_construct, t_dump, NULL);
    put_rank(golden, ".", b_construct, b_dump, NULL);
    ck_ok(graph_run(&conf, NULL, &made, &err), err);
}

/* A call that sends and receives at once, and one of its members. */
#define MEMBER(op, peer)                                                                           \
    "{\"class_type\":\"torch.distributed.P2POp\",\"tensor\":" FLAT(                                \
        "1.0") ",\"op\":\"" op "\",\"peer\":" peer ",\"tag\":0,\"group_id\":\"g\"}"
#define BATCH(members)                                                                             \
    DUMP("\"Distributed.batch_isend_irecv.0.forward\":{\"input_args\":[[" members                  \
         "]],\"output\":[[" members "]]}")

#endif

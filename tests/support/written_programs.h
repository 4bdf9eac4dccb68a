/* SPDX-License-Identifier: MIT
 *
 * written_programs: two programs written as calls, dumped and compared.
 *
 * A program is a list of calls that read and write numbered values; equal numbers are equal values. Values from
 * SINGLE on are single numbers, those from REPEATED on have the elements of another value twice. Others are another
 * value but for a factor: from NUDGED on rounding, from HALVED on rounding to half precision, from ROUNDED on the same in
 * single precision, and from HIDING on what such a value changes in a sum. Neighbors are as near as noise behind a
 * logarithm from 1000 on. A
 * module's second value is its parameter. The golden program is PyTorch's, the target MindSpore's, if nothing else
 * is said.
 */
#ifndef TESTS_SUPPORT_WRITTEN_PROGRAMS_H
#define TESTS_SUPPORT_WRITTEN_PROGRAMS_H

#include "compare/source/source.h"
#include "tests/support/cmp_fixture.h"

#include <math.h>

enum {
    CALLS = 16,
    INPUTS = 2,
    SINGLE = 3000,
    REPEATED = 4000,
    NUDGED = 5000,
    HALVED = 6000,
    ROUNDED = 7000,
    HIDING = 8000,
    KIND = 1000 /* values of a kind */
};

/* Numbers of tokens, which a dump of C gives no figures for. */
enum { TOKENS = -1 };

struct call {
    const char *name;
    int in[INPUTS], out; /* 0: no value; in[1] below TOKENS: the negative of a second result */
};

struct answer {
    size_t n;
    char target[64], golden[64];
    enum cmp_why why;
};

static const char *dtype = "float32"; /* of all values */
/* frameworks; the target's may bring the key that tells a graph */
static const char *of_target = "mindspore";
static const char *of_golden = "pytorch";
static bool has_figures; /* of tokens, in the program that is written */

static inline void put_tokens(struct ms_buf *b, bool figures)
{
    ms_buf_puts(b, "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.int64\", \"shape\": [64], ");
    ms_buf_puts(b, figures ? "\"Max\": 63, \"Min\": 0, \"Mean\": 31.5, \"Norm\": 295.7, "
                           : "\"Max\": null, \"Min\": null, \"Mean\": null, \"Norm\": null, ");
    ms_buf_puts(b, "\"requires_grad\": false}");
}

/* Returns by how much a value differs from the one that it is but for a factor. */
static inline double factor_of(int v)
{
    switch (v - v % KIND) {
    case NUDGED:
        return 1 + 6e-8;
    case HALVED:
    case ROUNDED:
        return 1 + 4e-4;
    case HIDING:
        return 1 + 2e-5;
    default:
        return 1;
    }
}

static inline void put_tensor(struct ms_buf *b, int v)
{
    if (v == TOKENS) {
        put_tokens(b, has_figures);
        return;
    }
    const double factor = factor_of(v);
    const bool is_halved = v - v % KIND == HALVED;
    v = v >= NUDGED ? v % KIND : v;
    const bool is_repeated = v >= REPEATED, is_single = v >= SINGLE && !is_repeated;
    v = is_repeated ? v - REPEATED : v;
    double max = 1 + 0.37 * v, min = -(0.8 + 0.21 * v), mean = 0.01 * (v + 1),
           norm = (10.0 + v) * factor;
    ms_buf_printf(b,
                  "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.%s\", \"shape\": %s, "
                  "\"Max\": %.9g, \"Min\": %.9g, \"Mean\": %.9g, \"Norm\": %.9g, "
                  "\"requires_grad\": true}",
                  is_halved ? "float16" : dtype,
                  is_single     ? "[]"
                  : is_repeated ? "[2, 8, 16]"
                                : "[8, 16]",
                  is_single ? norm : max, is_single ? norm : min, is_single ? norm : mean,
                  is_repeated ? norm * sqrt(2) : norm);
}

static inline void put_module(struct ms_buf *b, const struct call *c)
{
    ms_buf_printf(b, "\"%s\": {\"input_args\": [", c->name);
    put_tensor(b, c->in[0]);
    ms_buf_puts(b, "], \"input_kwargs\": {}, \"parameters\": {\"weight\": ");
    put_tensor(b, c->in[1]);
    ms_buf_puts(b, "}, \"output\": [");
    put_tensor(b, c->out);
    ms_buf_puts(b, "]}");
}

/* The gradient of a module's parameter, which the call has as its result. */
static inline void put_gradient(struct ms_buf *b, const struct call *c)
{
    ms_buf_printf(b, "\"%s\": {\"weight\": [", c->name);
    put_tensor(b, c->out);
    ms_buf_puts(b, "]}");
}

static inline void put_call(struct ms_buf *b, const struct call *c)
{
    if (ms_str_ends(ms_str_of(c->name), MS_STR("parameters_grad"))) {
        put_gradient(b, c);
        return;
    }
    if (ms_str_starts(ms_str_of(c->name), MS_STR("Module.")) ||
        ms_str_starts(ms_str_of(c->name), MS_STR("Cell."))) {
        put_module(b, c);
        return;
    }
    bool backward = ms_str_ends(ms_str_of(c->name), MS_STR("backward"));
    ms_buf_printf(b, "\"%s\": {\"%s\": [", c->name, backward ? "input" : "input_args");
    for (unsigned i = 0; i < INPUTS && c->in[i] != 0 && c->in[i] >= TOKENS; i++) {
        ms_buf_puts(b, i != 0 ? ", " : "");
        put_tensor(b, c->in[i]);
    }
    ms_buf_puts(b, backward ? "], \"output\": [" : "], \"input_kwargs\": {}, \"output\": [");
    put_tensor(b, c->out);
    if (c->in[1] < TOKENS) {
        ms_buf_puts(b, ", ");
        put_tensor(b, -c->in[1]);
    }
    ms_buf_puts(b, "]}");
}

static inline void write_program(struct fixture *f, char side, const struct call *calls)
{
    struct ms_buf b = {.max = 1 << 20};
    has_figures = side == 't';
    for (unsigned i = 0; i < CALLS && calls[i].name != NULL; i++) {
        ms_buf_puts(&b, i != 0 ? ",\n" : "");
        put_call(&b, &calls[i]);
    }
    fixture_dump(f, side, "statistics", side == 'b' ? of_golden : of_target, ms_buf_z(&b));
    ms_buf_free(&b);
}

static inline void copy_name(char *to, size_t size, struct ms_str name)
{
    snprintf(to, size, "%.*s", MS_STR_ARG(name));
}

static inline struct answer ask(const struct call *golden, const struct call *target)
{
    struct fixture f;
    struct cmp_source *s;
    const struct cmp_suspect *list;
    struct answer a = {0};
    fixture_init(&f);
    write_program(&f, 'b', golden);
    write_program(&f, 't', target);
    ck_ok(cmp_source_new(&s, &f.err), f.err);
    ck_ok(cmp_open(&f.c, &f.conf, f.t, f.b, NULL, &f.err), f.err);
    ck_ok(cmp_source_add(s, f.c, 0, 0, NULL, &f.err), f.err);
    ck_ok(cmp_source_find(s, &f.err), f.err);
    a.n = cmp_source_suspects(s, &list);
    if (a.n != 0) {
        copy_name(a.target, sizeof a.target, list[0].target);
        copy_name(a.golden, sizeof a.golden, list[0].golden);
        a.why = list[0].why;
    }
    cmp_source_free(s);
    fixture_free(&f);
    return a;
}

/* down(relu(up(x))) */

/* The dump of a graph has what a kernel leaves in its first input; its output is memory that nothing has written. */
static inline struct answer ask_graph(const struct call *golden, const struct call *target)
{
    of_target = "mindspore\", \"source\": \"graph";
    struct answer a = ask(golden, target);
    of_target = "mindspore";
    return a;
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * model_runs: runs of a small model that are made, dumped and compared.
 *
 * A run is a list of calls that read and write numbered values. Statistics follow from the number alone,
 * times 1 + err[number] in the target.
 */
#ifndef TESTS_SUPPORT_MODEL_RUNS_H
#define TESTS_SUPPORT_MODEL_RUNS_H

#include "compare/source/source.h"
#include "tests/support/cmp_fixture.h"
#include "tests/support/said.h"

#include <math.h>

enum { VALUES = 64, CALLS = 64, NOTHING = -1 };

/* A call; values are numbers, NOTHING for none. */
struct call {
    const char *name;
    int in[3], out;
    const char *scalar; /* JSON of a plain argument; NULL: there is none */
    const char *dtype;  /* of the output; NULL: float32 */
};

struct run {
    struct call call[CALLS];
    double err[VALUES];  /* relative difference of each value; NaN: the value is NaN */
    double sums[VALUES]; /* the same of its sums alone: other elements, or another order of them */
    double scale;        /* of all values */
    bool md5, low;       /* low: every value is one of bfloat16 */
    const char *shape, *grad;
    int odd;  /* the value that has that shape or requires_grad */
    int mask; /* the value that is a tensor of truth values */
};

static inline struct run plain(void)
{
    return (struct run){.scale = 1, .odd = NOTHING, .mask = NOTHING};
}

static inline void put_stats(struct ms_buf *b, const struct run *r, int v, enum ms_dtype type)
{
    double f = r->scale * (1 + r->err[v]), sums = 1 + r->sums[v];
    if (isnan(f)) {
        ms_buf_puts(b, "\"Max\": NaN, \"Min\": NaN, \"Mean\": NaN, \"Norm\": NaN");
        return;
    }
    double high = 1 + 0.37 * v, low = -(0.8 + 0.21 * v);
    ms_buf_printf(b, "\"Max\": %.17g, \"Min\": %.17g, \"Mean\": %.17g, \"Norm\": %.17g",
                  ms_dtype_round(type, f * (f < 0 ? low : high)),
                  ms_dtype_round(type, f * (f < 0 ? high : low)), f * sums * 0.01 * (v + 1),
                  fabs(f) * sums * (10.0 + v));
}

static inline void put_tensor(struct ms_buf *b, const struct run *r, int v, const char *dtype)
{
    bool odd = v == r->odd;
    dtype = v == r->mask ? "bool" : r->low ? "bfloat16" : dtype;
    ms_buf_printf(b, "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.%s\", \"shape\": %s, ", dtype,
                  odd && r->shape != NULL ? r->shape : "[8, 16]");
    put_stats(b, r, v, r->low ? MS_DT_BF16 : MS_DT_F64);
    ms_buf_printf(b, ", \"requires_grad\": %s", odd && r->grad != NULL ? r->grad : "true");
    if (r->md5)
        ms_buf_printf(b, ", \"md5\": \"%08x\"", (unsigned)(v * 77 + 1 + (r->err[v] != 0) * 1000));
    ms_buf_puts(b, "}");
}

static inline void put_inputs(struct ms_buf *b, const struct run *r, const struct call *c)
{
    bool any = false;
    for (unsigned i = 0; i < 3; i++) {
        if (c->in[i] == NOTHING)
            continue;
        ms_buf_puts(b, any ? ", " : "");
        put_tensor(b, r, c->in[i], "float32");
        any = true;
    }
    if (c->scalar != NULL)
        ms_buf_printf(b, "%s{\"type\": \"float\", \"value\": %s}", any ? ", " : "", c->scalar);
}

static inline void put_call(struct ms_buf *b, const struct run *r, const struct call *c)
{
    bool backward = strstr(c->name, ".backward") != NULL;
    ms_buf_printf(b, "\"%s\": {\"%s\": [", c->name, backward ? "input" : "input_args");
    put_inputs(b, r, c);
    ms_buf_puts(b, backward ? "], \"output\": [" : "], \"input_kwargs\": {}, \"output\": [");
    if (c->out != NOTHING)
        put_tensor(b, r, c->out, c->dtype != NULL ? c->dtype : "float32");
    ms_buf_puts(b, "]}");
}

static inline void write_run(struct fixture *f, char side, const struct run *r)
{
    struct ms_buf b = {.max = 1 << 20};
    for (unsigned i = 0; i < CALLS && r->call[i].name != NULL; i++) {
        ms_buf_puts(&b, i != 0 ? ",\n" : "");
        put_call(&b, r, &r->call[i]);
    }
    fixture_dump(f, side, "statistics", "pytorch", ms_buf_z(&b));
    ms_buf_free(&b);
}

static inline void add_pair(struct fixture *f, struct cmp_source *s, const struct run *golden,
                            const struct run *target, int rank, int step)
{
    write_run(f, 'b', golden);
    write_run(f, 't', target);
    ck_ok(cmp_open(&f->c, &f->conf, f->t, f->b, NULL, &f->err), f->err);
    ck_ok(cmp_source_add(s, f->c, rank, step, NULL, &f->err), f->err);
    cmp_close(f->c);
    f->c = NULL;
}

/* The first suspect of a pair. */
struct answer {
    size_t n;
    char name[3][64];
    char undecided[64]; /* the first operator whose tensors would decide; empty: there is none */
    enum cmp_why why;
    char pattern[64], text[512], note[256];
    int rank, step;
    size_t nranks;
};

static inline struct answer answer_of(const struct cmp_source *s)
{
    const struct cmp_suspect *list;
    struct answer a = {.n = cmp_source_suspects(s, &list)};
    for (size_t i = 0; i < a.n && i < 3; i++) {
        struct ms_str name = list[i].target.p != NULL ? list[i].target : list[i].golden;
        snprintf(a.name[i], sizeof a.name[i], "%.*s", MS_STR_ARG(name));
    }
    const struct ms_str *undecided;
    if (cmp_source_undecided(s, &undecided) != 0)
        snprintf(a.undecided, sizeof a.undecided, "%.*s", MS_STR_ARG(undecided[0]));
    const struct ms_stored_message *notes;
    if (cmp_source_notes(s, &notes) != 0)
        say_in_english(notes[0], a.note, sizeof a.note);
    if (a.n == 0)
        return a;
    a.why = list[0].why;
    a.rank = list[0].rank;
    a.step = list[0].step;
    a.nranks = list[0].nranks;
    snprintf(a.pattern, sizeof a.pattern, "%s", list[0].pattern != NULL ? list[0].pattern : "");
    say_in_english(list[0].message, a.text, sizeof a.text);
    return a;
}

static inline struct answer ask(const struct run *golden, const struct run *target)
{
    struct fixture f;
    struct cmp_source *s;
    fixture_init(&f);
    ck_ok(cmp_source_new(&s, &f.err), f.err);
    add_pair(&f, s, golden, target, 0, 0);
    ck_ok(cmp_source_find(s, &f.err), f.err);
    struct answer a = answer_of(s);
    cmp_source_free(s);
    fixture_free(&f);
    return a;
}

/* x0 -> linear(w1) -> 2 -> gelu -> 3 -> linear(w4) -> 5 -> relu -> 6 -> softmax -> 7, then back. */
static inline struct run model(void)
{
    struct run r = plain();
    const struct call calls[] = {
        {"Functional.linear.0.forward", {0, 1, NOTHING}, 2, NULL, NULL},
        {"Functional.gelu.0.forward", {2, NOTHING, NOTHING}, 3, NULL, NULL},
        {"Functional.linear.1.forward", {3, 4, NOTHING}, 5, NULL, NULL},
        {"Functional.relu.0.forward", {5, NOTHING, NOTHING}, 6, NULL, NULL},
        {"Functional.softmax.0.forward", {6, NOTHING, NOTHING}, 7, "-1.0", NULL},
        {"Functional.linear.2.forward", {7, 8, NOTHING}, 9, NULL, NULL},
        {"Functional.layer_norm.0.forward", {9, 10, NOTHING}, 11, "1e-05", NULL},
        {"Tensor.mul.0.forward", {11, NOTHING, NOTHING}, 12, "2.0", NULL},
        {"Tensor.mul.0.backward", {20, NOTHING, NOTHING}, 21, NULL, NULL},
        {"Functional.layer_norm.0.backward", {21, NOTHING, NOTHING}, 22, NULL, NULL},
        {"Functional.linear.2.backward", {22, NOTHING, NOTHING}, 23, NULL, NULL},
        {"Functional.softmax.0.backward", {23, NOTHING, NOTHING}, 24, NULL, NULL},
        {"Functional.relu.0.backward", {24, NOTHING, NOTHING}, 25, NULL, NULL},
    };
    memcpy(r.call, calls, sizeof calls);
    return r;
}

static inline void spoil(struct run *r, int from, int to, double e)
{
    for (int i = from; i <= to; i++)
        r->err[i] = e;
}

/* The model and steps of its optimizer: each takes a gradient and makes a parameter. */
static inline struct run trained(unsigned steps)
{
    static const struct call step[] = {
        {"Tensor.add_.0.forward", {25, 30, NOTHING}, 31, NULL, NULL},
        {"Tensor.add_.1.forward", {24, 32, NOTHING}, 33, NULL, NULL},
        {"Tensor.add_.2.forward", {23, 34, NOTHING}, 35, NULL, NULL},
    };
    struct run r = model();
    memcpy(&r.call[13], step, steps * sizeof *step);
    return r;
}

static inline void insert_call(struct run *r, unsigned at, struct call call)
{
    memmove(&r->call[at + 1], &r->call[at], (CALLS - at - 1) * sizeof r->call[0]);
    r->call[at] = call;
}

static inline void remove_call(struct run *r, unsigned at)
{
    memmove(&r->call[at], &r->call[at + 1], (CALLS - at - 1) * sizeof r->call[0]);
}

#endif

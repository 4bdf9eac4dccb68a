/* SPDX-License-Identifier: MIT
 *
 * test_selfcheck: dumps of a small model on several ranks and steps, clean and with
 * one fault each.
 */
#include "compare/check/selfcheck_int.h"
#include "tests/support/check.h"

#include <sys/stat.h>

enum { LAYERS = 3 };

/* What is done to the dump of a rank and step; the rest of the model is as it should be. */
struct fault {
    const char *what;
    int rank, step;
};

struct model {
    char dir[64];
    int ranks, steps;
    bool sharded; /* each rank has its own weights, all the same norms */
    struct fault fault;
};

struct writer {
    const struct model *m;
    int rank, step;
    struct ms_buf text;
};

static bool has(const struct writer *w, const char *what)
{
    const struct fault *f = &w->m->fault;
    return f->what != NULL && strcmp(f->what, what) == 0 && f->rank == w->rank &&
           f->step == w->step;
}

/* A tensor whose numbers follow from a seed. */
static void put_tensor(struct writer *w, int seed, const char *shape)
{
    ms_buf_printf(&w->text,
                  "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [%s], "
                  "\"Max\": %d.5, \"Min\": -%d.25, \"Mean\": 0.%d, \"Norm\": %d.75}",
                  shape, seed + 1, seed + 2, seed + 10, 3 * seed + 1);
}

static void put_bad(struct writer *w, const char *max, const char *min, const char *mean,
                    const char *norm)
{
    ms_buf_printf(&w->text,
                  "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [4, 8], "
                  "\"Max\": %s, \"Min\": %s, \"Mean\": %s, \"Norm\": %s}",
                  max, min, mean, norm);
}

static void begin(struct writer *w, const char *name, const char *ins)
{
    ms_buf_printf(&w->text, "%s\"%s\": {\"%s\": [", w->text.p[w->text.n - 1] == '{' ? "" : ",\n",
                  name, ins);
}

static void forward(struct writer *w, int i)
{
    char name[64];
    int x = 10 * i + 100 * w->step + 1000 * w->rank;
    snprintf(name, sizeof name, "Functional.linear.%d.forward", i);
    begin(w, name, "input_args");
    put_tensor(w, x, "4, 8");
    ms_buf_puts(&w->text, "], \"input_kwargs\": {}, \"output\": [");
    if (i == 1 && has(w, "nan"))
        put_bad(w, "NaN", "NaN", "NaN", "NaN");
    else if (i == 1 && has(w, "mask"))
        put_bad(w, "1.5", "-Infinity", "-Infinity", "Infinity");
    else
        put_tensor(w, x + 10, "4, 8");
    ms_buf_puts(&w->text, "]}");
}

static void backward(struct writer *w, int i)
{
    char name[64];
    int x = 10 * i + 100 * w->step + 1000 * w->rank + 500;
    snprintf(name, sizeof name, "Functional.linear.%d.backward", i);
    begin(w, name, "input");
    put_tensor(w, x + 10, i == 1 && has(w, "shape") ? "8, 4" : "4, 8");
    ms_buf_puts(&w->text, "], \"output\": [");
    if (i == 1 && has(w, "inf gradient"))
        put_bad(w, "Infinity", "-1.0", "Infinity", "Infinity");
    else
        put_tensor(w, x, i == 1 && has(w, "given") ? "4, 4" : "4, 8");
    ms_buf_puts(&w->text, "]}");
}

/* The call of layer i; a second one is what recomputation or another micro batch makes. */
static void module(struct writer *w, int i, int call)
{
    char name[96];
    int weight = 5 + i + 20 * w->step + (w->m->sharded ? 200 * w->rank : 0);
    int norm = 40 + i + 20 * w->step;
    if (i == 1 && has(w, "replica"))
        norm++;
    if (has(w, "other start"))
        weight += 7, norm += 7;
    if (i == 2 && call == 1 && has(w, "changed"))
        weight++;
    if (i == 0 && w->m->fault.what != NULL && strcmp(w->m->fault.what, "frozen") == 0)
        norm = 40;
    snprintf(name, sizeof name, "Module.layers.%d.Block.forward.%d", i, call);
    begin(w, name, "input_args");
    ms_buf_puts(&w->text, "], \"output\": [], \"parameters\": {\"weight\": ");
    put_tensor(w, weight, "8, 8");
    ms_buf_puts(&w->text, ", \"norm\": ");
    put_tensor(w, norm, "8");
    ms_buf_puts(&w->text, "}}");
}

static void gradients(struct writer *w, int i)
{
    char name[96];
    snprintf(name, sizeof name, "Module.layers.%d.Block.parameters_grad", i);
    ms_buf_printf(&w->text, ",\n\"%s\": {\"weight\": [", name);
    put_tensor(w, 60 + i, "8, 8");
    ms_buf_puts(&w->text, "], \"norm\": [");
    put_tensor(w, 70 + i, "8");
    ms_buf_puts(&w->text, "]}");
}

static void collective(struct writer *w, int i)
{
    char name[64];
    snprintf(name, sizeof name, "Distributed.all_reduce.%d.forward", i);
    begin(w, name, "input_args");
    put_tensor(w, 300 + 10 * i + w->rank, "4, 8");
    ms_buf_puts(&w->text, "], \"input_kwargs\": {\"group\": {\"type\": \"torch.ProcessGroup\", "
                          "\"group_ranks\": [0, 1, 2, 3], \"group_id\": \"1\"}}, \"output\": [");
    put_tensor(w, 350 + 10 * i + (i == 1 && has(w, "collective") ? 1 : 0), "4, 8");
    ms_buf_puts(&w->text, "]}");
}

static void put_model(struct writer *w)
{
    for (int i = 0; i < LAYERS; i++) {
        forward(w, i);
        collective(w, i);
        module(w, i, 0);
    }
    if (has(w, "order"))
        backward(w, 0);
    for (int i = LAYERS - 1; i >= 0; i--) {
        module(w, i, 1);
        if (i != 0 || !has(w, "order"))
            backward(w, i);
    }
    for (int i = 0; i < LAYERS; i++)
        gradients(w, i);
}

static void write_rank(const struct model *m, int step, int rank)
{
    struct writer w = {.m = m, .rank = rank, .step = step, .text = {.max = 1 << 20}};
    char path[128];
    snprintf(path, sizeof path, "%s/step%d", m->dir, step);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/step%d/rank%d", m->dir, step, rank);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/step%d/rank%d/dump.json", m->dir, step, rank);
    ms_buf_puts(&w.text, "{\"task\": \"statistics\", \"level\": \"mix\", \"framework\": "
                         "\"pytorch\", \"dump_data_dir\": null, \"data\": {");
    put_model(&w);
    ms_buf_puts(&w.text, "}}");
    write_file(path, w.text.p, w.text.n);
    ms_buf_free(&w.text);
}

static void check_model(struct model *m, struct self_check *s)
{
    struct ms_err err = {0};
    scratch_dir(m->dir);
    for (int step = 0; step < m->steps; step++) {
        for (int rank = 0; rank < m->ranks; rank++)
            write_rank(m, step, rank);
    }
    ck_ok(self_check_run(s, m->dir, 0, NULL, NULL, NULL, &err), err);
}

static void done(const struct model *m, struct self_check *s)
{
    self_check_free(s);
    scratch_remove(m->dir);
}

static void is_clean(struct model m)
{
    struct self_check s;
    check_model(&m, &s);
    for (size_t i = 0; i < s.findings.n; i++)
        printf("%.*s: %.*s\n", MS_STR_ARG(s.findings.p[i].node), MS_STR_ARG(s.findings.p[i].text));
    ck_assert_uint_eq(s.findings.n, 0);
    done(&m, &s);
}

/* The first finding is this one; `findings` is how many there are. */
static void finds(struct model m, const char *what, int rank, int step, enum self_kind kind,
                  const char *node, const char *words, size_t findings)
{
    struct self_check s;
    m.fault = (struct fault){what, rank, step};
    check_model(&m, &s);
    ck_assert_uint_eq(s.findings.n, findings);
    const struct self_finding *f = &s.findings.p[0];
    ck_assert_int_eq(f->kind, kind);
    ck_assert_msg(ms_str_is(f->node, node), "%.*s", MS_STR_ARG(f->node));
    ck_assert_int_eq(f->step, step);
    ck_assert_int_eq(f->rank, rank);
    ck_assert_msg(ms_str_find_str(f->text, ms_str_of(words)) >= 0, "no '%s' in '%.*s'", words,
                  MS_STR_ARG(f->text));
    done(&m, &s);
}

static const struct model one = {.ranks = 1, .steps = 1};
static const struct model four = {.ranks = 4, .steps = 1};
static const struct model sharded = {.ranks = 4, .steps = 1, .sharded = true};
static const struct model steps = {.ranks = 1, .steps = 3};

START_TEST(a_clean_run_has_no_findings)
{
    is_clean(one);
    is_clean(four);
    is_clean(sharded);
    is_clean(steps);
    is_clean((struct model){.ranks = 2, .steps = 2, .sharded = true});
}
END_TEST

START_TEST(nan_is_told_where_it_comes_out_first)
{
    finds(four, "nan", 2, 0, SELF_FINITE, "Functional.linear.1.forward", "NaN comes out", 1);
}
END_TEST

START_TEST(a_mask_of_minus_infinity_is_no_fault)
{
    struct model m = one;
    m.fault = (struct fault){"mask", 0, 0};
    is_clean(m);
}
END_TEST

START_TEST(an_infinite_gradient_is_told)
{
    finds(one, "inf gradient", 0, 0, SELF_FINITE, "Functional.linear.1.backward",
          "a gradient is lost here", 1);
}
END_TEST

START_TEST(a_replica_that_differs_is_told_with_its_rank)
{
    finds(four, "replica", 2, 0, SELF_REPLICA, "Module.layers.1.Block.forward.0", "rank 2 hold", 1);
    finds(sharded, "replica", 1, 0, SELF_REPLICA, "Module.layers.1.Block.forward.0",
          "another value than ranks 0, 2 and 3", 1);
}
END_TEST

START_TEST(a_rank_that_started_elsewhere_differs_in_everything)
{
    finds(four, "other start", 3, 0, SELF_REPLICA, "Module.layers.0.Block.forward.0",
          "ranks 0, 1 and 2", 2 * LAYERS);
}
END_TEST

START_TEST(of_two_ranks_that_disagree_once_both_are_named)
{
    finds((struct model){.ranks = 2, .steps = 1}, "replica", 1, 0, SELF_REPLICA,
          "Module.layers.1.Block.forward.0", "ranks 0 and 1 hold different values", 1);
}
END_TEST

START_TEST(a_collective_hands_every_rank_the_same)
{
    finds(four, "collective", 1, 0, SELF_COLLECTIVE, "Distributed.all_reduce.1.forward",
          "rank 1 got another value", 1);
}
END_TEST

START_TEST(parameters_keep_their_values_within_a_step)
{
    finds(one, "changed", 0, 0, SELF_UNCHANGED, "Module.layers.2.Block.forward.1",
          "another value in Module.layers.2.Block.forward.0", 1);
}
END_TEST

START_TEST(a_parameter_with_a_gradient_changes_from_step_to_step)
{
    finds(steps, "frozen", 0, 0, SELF_UNCHANGED, "Module.layers.0.Block.forward.0",
          "step 1 finds it as it was", 2);
}
END_TEST

START_TEST(a_gradient_has_the_shape_of_its_output)
{
    finds(one, "shape", 0, 0, SELF_MIRROR, "Functional.linear.1.backward", "shape [4, 8]", 1);
}
END_TEST

START_TEST(a_gradient_that_is_handed_back_has_the_size_of_an_input)
{
    finds(one, "given", 0, 0, SELF_MIRROR, "Functional.linear.1.backward", "shape [4, 4]", 1);
}
END_TEST

START_TEST(backward_runs_against_forward)
{
    finds(one, "order", 0, 0, SELF_MIRROR, "Functional.linear.0.backward",
          "ran before that of Functional.linear.1.forward", 1);
}
END_TEST

START_TEST(a_dump_that_cannot_be_read_is_left_out_and_named)
{
    struct self_check s;
    struct model m = four;
    struct ms_err err = {0};
    char path[128];
    check_model(&m, &s);
    self_check_free(&s);
    snprintf(path, sizeof path, "%s/step0/rank1/dump.json", m.dir);
    write_file(path, "{\"task\": ", 9);
    ck_ok(self_check_run(&s, m.dir, 0, NULL, NULL, NULL, &err), err);
    ck_assert_uint_eq(s.failures.n, 1);
    ck_assert_uint_eq(s.scope.dumps, 3);
    ck_assert_uint_eq(s.findings.n, 0);
    done(&m, &s);
}
END_TEST

/* The check of some dumps, as a process of several has it. */
struct part {
    struct self_check s;
    struct self__ctx c;
};

static void scan_part(struct part *p, const char *dir, unsigned process, unsigned processes)
{
    struct ms_err err = {0};
    struct probe_dump *d;
    *p = (struct part){.c = {.text = {.max = 1 << 20}}};
    p->s.arena = ms_arena_new(SIZE_MAX);
    p->c.s = &p->s;
    ck_ok(probe_find(&p->s.places, dir, &err), err);
    const uint32_t n = (uint32_t)p->s.places.list.n;
    for (uint32_t i = self__share_begin(n, process, processes);
         i < self__share_begin(n, process + 1, processes); i++) {
        ck_ok(probe_dump_open(&d, self__place(&p->c, i)->json, 0, NULL, &err), err);
        p->s.scope.dumps++;
        ck_ok(self__scan(&p->c, d, i, &err), err);
        ck_ok(self__mirror(&p->c, d, i, &err), err);
        probe_dump_close(d);
    }
}

static void free_part(struct part *p)
{
    ms_vec_free(&p->c.facts);
    ms_map_free(&p->c.names);
    ms_buf_free(&p->c.text);
    self_check_free(&p->s);
}

static void put_part(struct ms_buf *b, const char *dir, unsigned process, unsigned processes)
{
    struct part p;
    *b = (struct ms_buf){.max = 1 << 24};
    scan_part(&p, dir, process, processes);
    self__share_put(b, &p.c);
    ck_assert(b->bad == MS_OK);
    free_part(&p);
}

static void is_same_part(const struct part *a, const struct part *b)
{
    ck_assert(memcmp(&a->s.scope, &b->s.scope, sizeof a->s.scope) == 0);
    ck_assert_uint_eq(a->c.names.keys.n, b->c.names.keys.n);
    ck_assert_uint_eq(a->c.facts.n, b->c.facts.n);
    ck_assert_uint_eq(a->s.findings.n, b->s.findings.n);
    for (size_t i = 0; i < a->c.facts.n; i++) {
        const struct self__fact *x = &a->c.facts.p[i], *y = &b->c.facts.p[i];
        ck_assert(x->key == y->key && x->class == y->class && x->place == y->place &&
                  x->value == y->value && ms_str_eq(x->node, y->node));
    }
    for (size_t i = 0; i < a->s.findings.n; i++) {
        const struct self_finding *x = &a->s.findings.p[i], *y = &b->s.findings.p[i];
        ck_assert(x->kind == y->kind && x->rank == y->rank && ms_str_eq(x->text, y->text) &&
                  strcmp(x->pattern, y->pattern) == 0);
    }
}

START_TEST(parts_of_processes_join_to_the_whole)
{
    struct self_check s;
    struct model m = {.ranks = 3, .steps = 2, .fault = {"nan", 2, 1}};
    struct ms_err err = {0};
    struct ms_buf message;
    struct part whole, joined;
    check_model(&m, &s);
    self_check_free(&s);
    scan_part(&whole, m.dir, 0, 1);
    for (unsigned processes = 2; processes < 9; processes++) { /* also more than dumps */
        scan_part(&joined, m.dir, 0, processes);
        for (unsigned p = 1; p < processes; p++) {
            put_part(&message, m.dir, p, processes);
            ck_ok(self__share_take(&joined.c, (struct ms_taker){message.p, message.n, false}, &err),
                  err);
            ms_buf_free(&message);
        }
        is_same_part(&whole, &joined);
        free_part(&joined);
    }
    free_part(&whole);
    scratch_remove(m.dir);
}
END_TEST

START_TEST(a_message_that_is_cut_is_refused)
{
    struct self_check s;
    struct model m = {.ranks = 2, .steps = 1, .fault = {"nan", 1, 0}};
    struct ms_buf message;
    check_model(&m, &s);
    self_check_free(&s);
    put_part(&message, m.dir, 1, 2);
    for (size_t n = 0; n < message.n; n += 7) {
        struct part p;
        struct ms_err err = {0};
        scan_part(&p, m.dir, 0, 2);
        char *cut = malloc(n + 1); /* of its own, so that a sanitizer sees a read behind it */
        memcpy(cut, message.p, n);
        ck_assert_int_eq(self__share_take(&p.c, (struct ms_taker){cut, n, false}, &err),
                         MS_E_INTERNAL);
        free(cut);
        free_part(&p);
    }
    ms_buf_free(&message);
    scratch_remove(m.dir);
}
END_TEST

START_TEST(running_out_of_memory_anywhere_is_an_error)
{
    struct self_check s;
    struct model m = {.ranks = 2, .steps = 2, .fault = {"replica", 1, 0}};
    check_model(&m, &s);
    self_check_free(&s);
    for (uint64_t n = 1;; n++) {
        struct ms_err err = {0};
        ms_mem_fail_at(n);
        enum ms_rc rc = self_check_run(&s, m.dir, 0, NULL, NULL, NULL, &err);
        bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        /* The record of where time goes is the one thing that may be lost in silence. */
        ck_assert(rc == MS_E_NOMEM || rc == MS_OK);
        if (rc == MS_OK) {
            ck_assert_uint_eq(s.findings.n, 1);
            self_check_free(&s);
        }
        if (!failed)
            break;
    }
    scratch_remove(m.dir);
}
END_TEST

TEST_MAIN("selfcheck", a_clean_run_has_no_findings, nan_is_told_where_it_comes_out_first,
          a_mask_of_minus_infinity_is_no_fault, an_infinite_gradient_is_told,
          a_replica_that_differs_is_told_with_its_rank,
          a_rank_that_started_elsewhere_differs_in_everything,
          of_two_ranks_that_disagree_once_both_are_named, a_collective_hands_every_rank_the_same,
          parameters_keep_their_values_within_a_step,
          a_parameter_with_a_gradient_changes_from_step_to_step,
          a_gradient_has_the_shape_of_its_output,
          a_gradient_that_is_handed_back_has_the_size_of_an_input, backward_runs_against_forward,
          a_dump_that_cannot_be_read_is_left_out_and_named, parts_of_processes_join_to_the_whole,
          a_message_that_is_cut_is_refused, running_out_of_memory_anywhere_is_an_error)

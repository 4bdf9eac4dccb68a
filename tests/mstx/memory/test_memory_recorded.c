/* SPDX-License-Identifier: MIT
 *
 * memory_recorded: what `msprobe memory` says of every file of its corpus, whole and damaged, and of drawn
 * traces, and what `msprobe dryrun` plans of drawn dumps under drawn layouts, as it is on record.
 *
 *     build/tests/test_memory_recorded --update        records a change that is meant
 *     build/tests/test_memory_recorded --show          prints all answers
 */
#include "mstx/memory/dry_text.h"
#include "mstx/memory/mem_read.h"
#include "mstx/memory/mem_report.h"
#include "tests/support/recorded.h"

enum { TRACES = 24, DUMPS = 16, LAYOUTS = 10, MOST = 3 };

static uint64_t state;
static char dir[64];

static void make_dir(void)
{
    (void)scratch_dir(dir);
}

static void remove_dir(void)
{
    scratch_remove(dir);
}

#define below(n) recorded_below(&state, (n))

static void put_error(struct ms_buf *b, const struct ms_err *e)
{
    ms_buf_printf(b, "error %d %s", (int)e->rc, e->msg);
}

/* Takes the folder in which the test works out of an answer. */
static void forget_dir(struct ms_buf *b)
{
    const size_t n = strlen(dir);
    ms_buf_z(b);
    for (char *at = b->p; (at = strstr(at, dir)) != NULL;) {
        memmove(at, at + n, strlen(at + n) + 1);
        b->n -= n;
    }
}

static void put_json(struct ms_buf *b, struct ms_jwrite *w)
{
    struct ms_err e = {0};
    ck_ok(ms_jwrite_finish(w, &e), e);
    ms_buf_str(b, ms_buf_slice(&w->buf));
    ms_jwrite_free(w);
}

/* ---- records of memory ------------------------------------------------------------- */

struct side {
    struct mstx_mem_log *log;
    struct mstx_mem_report report;
};

static bool read_side(struct side *s, const char *path, struct ms_err *e)
{
    *s = (struct side){0};
    if (mstx__mem_read(&s->log, path, NULL, e) == MS_OK) {
        ck_ok(mstx__mem_report_make(&s->report, "record", s->log, e), *e);
        return true;
    }
    return false;
}

static void side_free(struct side *s)
{
    mstx__mem_report_free(&s->report);
    mstx__mem_log_free(s->log);
}

static void put_report(struct ms_buf *b, const struct side *s)
{
    struct ms_jwrite w;
    for (size_t most = 1; most <= MOST; most += 2) {
        mstx__mem_report_text(&s->report, most, b);
        ms_jwrite_init(&w, 0, 1 << 20);
        mstx__mem_report_json(&s->report, most, &w);
        put_json(b, &w);
    }
    ms_buf_printf(b, "%d", mstx__mem_has_findings(&s->report));
}

static void put_against(struct ms_buf *b, const struct side *now, const struct side *old)
{
    struct ms_jwrite w;
    mstx__mem_against_text(&now->report, &old->report, MOST, b);
    ms_jwrite_init(&w, 0, 1 << 20);
    mstx__mem_against_json(&now->report, &old->report, MOST, &w);
    put_json(b, &w);
}

static void answer_memory(struct ms_buf *b, const char *p, size_t n)
{
    char path[160];
    struct side s;
    struct ms_err e = {0};
    const bool is_table = n != 0 && (p[0] == 's' || p[0] == 'N' || p[0] == 'C');
    snprintf(path, sizeof path, "%s/record.%s", dir, is_table ? "csv" : "json");
    write_file(path, p, n);
    if (read_side(&s, path, &e))
        put_report(b, &s);
    else
        put_error(b, &e);
    forget_dir(b);
    side_free(&s);
}

START_TEST(records_of_the_corpus_are_read_as_on_record)
{
    struct ms_buf b = {.max = 1 << 20};
    recorded_corpus(&b, "memory", answer_memory);
    recorded_check(&b, "memory");
}
END_TEST

/* ---- drawn traces ------------------------------------------------------------------- */

struct trace {
    struct ms_buf text;
    unsigned t, steps, live, next; /* time, number of steps, bytes held, next address */
    unsigned device;
    bool leaks, fails;
};

static void put_span(struct trace *r, const char *cat, const char *name, unsigned start, unsigned n)
{
    ms_buf_printf(&r->text,
                  "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":1,\"tid\":1,"
                  "\"ts\":%u,\"dur\":%u},\n",
                  cat, name, start, n);
}

static void put_memory(struct trace *r, unsigned address, int bytes)
{
    r->live += (unsigned)bytes;
    ms_buf_printf(&r->text,
                  "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\","
                  "\"pid\":1,\"tid\":1,\"ts\":%u,\"args\":{\"Addr\":%u,\"Bytes\":%d,"
                  "\"Device Type\":%u,\"Device Id\":%d,\"Total Allocated\":%u,"
                  "\"Total Reserved\":%u}},\n",
                  r->t++, address, bytes, r->device, r->device == 0 ? -1 : 0, r->live + 100000,
                  200000 + r->live / 2 * 3);
}

static unsigned allocate(struct trace *r, unsigned *bytes)
{
    *bytes = 64 * (1 + below(40));
    r->next += 1024 + *bytes;
    put_memory(r, r->next, (int)*bytes);
    return r->next;
}

/* An operator that makes a block; one in four lives on. */
static void put_operator(struct trace *r, const char *cat, const char *name)
{
    unsigned bytes, more;
    const unsigned start = r->t++;
    const unsigned address = allocate(r, &bytes), other = below(2) ? allocate(r, &more) : 0;
    if (other != 0)
        put_memory(r, other, -(int)more);
    if (below(4) != 0)
        put_memory(r, address, -(int)bytes);
    r->t += below(3);
    put_span(r, cat, name, start, r->t++ - start);
}

static void put_module(struct trace *r, unsigned layer)
{
    static const char *const ops[] = {"aten::linear", "aten::gelu", "aten::empty", "aten::add_",
                                      "c10d::allreduce_"};
    char name[64];
    const unsigned start = r->t++;
    for (unsigned i = 0; i < 2 + below(3); i++)
        put_operator(r, "cpu_op", ops[below(5)]);
    snprintf(name, sizeof name, "nn.Module: Linear_%u", layer);
    put_span(r, "python_function", name, start, r->t++ - start);
}

static void put_step(struct trace *r, unsigned step)
{
    char name[64];
    unsigned bytes;
    const unsigned start = r->t++;
    const unsigned python = r->t++;
    for (unsigned layer = 0; layer < 2; layer++)
        put_module(r, layer);
    put_operator(r, "cpu_op", "autograd::engine::evaluate_function: MmBackward0");
    const unsigned optimizer = r->t++;
    put_operator(r, "cpu_op", "aten::_foreach_add_");
    put_span(r, "user_annotation", "Optimizer.step#Adam.step", optimizer, r->t++ - optimizer);
    if (r->leaks)
        (void)allocate(r, &bytes);
    put_span(r, "python_function", "train.py(7): step", python, r->t++ - python);
    snprintf(name, sizeof name, "ProfilerStep#%u", step);
    put_span(r, "user_annotation", name, start, r->t++ - start);
}

static void write_trace(const char *path, unsigned seed)
{
    struct trace r = {.text = {.max = 1 << 20}};
    state = seed + 1;
    r.steps = 1 + below(16);
    r.device = seed % 3 == 2 ? 20 : seed % 3;
    r.leaks = seed % 2 != 0;
    ms_buf_printf(&r.text, "{\"distributedInfo\":{\"rank\":%u},\"traceEvents\":[\n", seed % 4);
    for (unsigned step = 0; step < r.steps; step++)
        put_step(&r, step);
    put_span(&r, "cpu_op", "aten::last", r.t, 1);
    r.text.n -= 2;
    ms_buf_puts(&r.text, "]}\n");
    write_file(path, r.text.p, r.text.n);
    ms_buf_free(&r.text);
}

static void record_answer(struct ms_buf *b, const char *what, unsigned i, struct ms_buf *answer)
{
    if (recorded_shows)
        printf("== %s %u\n%s\n", what, i, ms_buf_z(answer));
    ms_buf_printf(b, "%s %u: %08x\n", what, i, ms_crc32(0, ms_buf_z(answer), answer->n));
    ms_buf_free(answer);
}

START_TEST(drawn_traces_give_what_is_on_record)
{
    char path[160];
    struct ms_buf b = {.max = 1 << 20};
    struct side old = {0};
    for (unsigned i = 0; i < TRACES; i++) {
        struct side now;
        struct ms_err e = {0};
        struct ms_buf answer = {.max = 1 << 20};
        snprintf(path, sizeof path, "%s/trace.json", dir);
        write_trace(path, i);
        ck_assert_msg(read_side(&now, path, &e), "%s", e.msg);
        put_report(&answer, &now);
        if (i != 0)
            put_against(&answer, &now, &old);
        record_answer(&b, "trace", i, &answer);
        if (i != 0)
            side_free(&old);
        old = now;
    }
    side_free(&old);
    recorded_check(&b, "memory_traces");
}
END_TEST

/* ---- drawn dumps --------------------------------------------------------------------- */

struct dump {
    struct ms_buf text, tree; /* dump.json, construct.json */
    unsigned layer;
    unsigned contents, batch, width; /* number of the next new contents; sizes */
};

/* A tensor; equal numbers are equal contents. */
static void put_tensor(struct dump *d, const char *shape, unsigned contents, bool grad)
{
    ms_buf_printf(&d->text,
                  "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.%s\",\"shape\":[%s],\"Max\":%u.5,"
                  "\"Min\":-%u.25,\"Mean\":0.1,\"Norm\":%u.75,\"requires_grad\":%s}",
                  contents % 7 == 6 ? "bfloat16" : "float32", shape, contents, contents,
                  3 * contents, grad ? "true" : "false");
}

/* One operator: inputs by their contents, 0 for none; returns the contents of its output. */
static unsigned put_op(struct dump *d, const char *name, unsigned number, unsigned x, unsigned y,
                       const char *shape)
{
    const unsigned made = d->contents++;
    ms_buf_printf(&d->tree, "\"%s.%u.forward\": \"Module.layers.%u.Linear.forward.0\",\n", name,
                  number, d->layer);
    ms_buf_printf(&d->text, "\"%s.%u.forward\": {\"input_args\": [", name, number);
    put_tensor(d, shape, x, true);
    if (y != 0) {
        ms_buf_puts(&d->text, ", ");
        put_tensor(d, shape, y, true);
    }
    ms_buf_puts(&d->text, "], \"input_kwargs\": {}, \"output\": [");
    put_tensor(d, shape, made, true);
    ms_buf_puts(&d->text, "]},\n");
    return made;
}

static void put_layer_module(struct dump *d, unsigned layer, unsigned x, unsigned y,
                             const char *shape)
{
    char weight[32];
    snprintf(weight, sizeof weight, "%u, %u", d->width, d->width);
    ms_buf_printf(&d->tree, "\"Module.layers.%u.Linear.forward.0\": null,\n", layer);
    ms_buf_printf(&d->text, "\"Module.layers.%u.Linear.forward.0\": {\"input_args\": [", layer);
    put_tensor(d, shape, x, layer != 0);
    ms_buf_puts(&d->text, "], \"input_kwargs\": {}, \"output\": [");
    put_tensor(d, shape, y, true);
    ms_buf_puts(&d->text, "], \"parameters\": {\"weight\": ");
    put_tensor(d, weight, 500 + layer, true);
    ms_buf_puts(&d->text, "}},\n");
}

static unsigned put_layer(struct dump *d, unsigned layer, unsigned x)
{
    static const char *const ops[] = {
        "Functional.gelu",     "Functional.relu",       "Functional.dropout",
        "Torch.softmax",       "Tensor.__add__",        "Functional.layer_norm",
        "Tensor.view",         "Tensor.add_",           "Torch.bmm",
        "Functional.conv2d",   "Functional.max_pool2d", "Tensor.__iadd__",
        "Torch.nothing_known", "Tensor.__getitem__",    "Torch.masked_fill",
        "Torch.cat",           "Torch.where",           "Functional.scaled_dot_product_attention",
        "Tensor.__mul__",      "Functional.silu"};
    char shape[48];
    snprintf(shape, sizeof shape, "%u, %u", d->batch, d->width);
    const unsigned first = x;
    d->layer = layer;
    x = put_op(d, "Functional.linear", layer, x, 500 + layer, shape);
    put_layer_module(d, layer, first, x, shape);
    for (unsigned i = 0; i < 3 + below(5); i++) {
        const unsigned op = below(20);
        const bool two = op == 4 || op == 8 || op == 11 || op == 15 || op == 17 || op == 18;
        x = put_op(d, ops[op], d->contents, x, two ? first : 0, shape);
    }
    return x;
}

static void write_dump(const char *path, unsigned seed)
{
    char tree[160];
    struct dump d = {.text = {.max = 1 << 20}, .tree = {.max = 1 << 20}, .contents = 2};
    state = seed + 1;
    d.batch = 1 + below(8);
    d.width = 8 * (1 + below(6));
    ms_buf_puts(&d.tree, "{\n");
    ms_buf_puts(&d.text,
                "{\"task\": \"statistics\", \"level\": \"mix\", \"framework\": \"pytorch\","
                " \"dump_data_dir\": null, \"data\": {\n");
    unsigned x = 1;
    for (unsigned layer = 0; layer < 1 + below(4); layer++)
        x = put_layer(&d, layer, x);
    (void)put_op(&d, "Functional.cross_entropy", 0, x, 0, "1");
    d.text.n -= 2;
    ms_buf_puts(&d.text, "}}\n");
    write_file(path, d.text.p, d.text.n);
    ms_buf_free(&d.text);
    d.tree.n -= 2;
    ms_buf_puts(&d.tree, "}\n");
    snprintf(tree, sizeof tree, "%s/construct.json", dir);
    if (seed % 4 != 0)
        write_file(tree, d.tree.p, d.tree.n);
    else
        (void)remove(tree);
    ms_buf_free(&d.tree);
}

static struct dry_layout drawn_layout(void)
{
    return (struct dry_layout){.tp = 1 << below(3),
                               .pp = 1 << below(3),
                               .dp = 1 << below(4),
                               .zero = below(4),
                               .micro_batch = below(5),
                               .recompute = (int)below(3),
                               .optimizer = (int)below(3),
                               .on_cpu = below(2) != 0,
                               .float_bytes = 2 * below(3)};
}

static void put_plan(struct ms_buf *b, const struct dry_graph *g, const struct dry_layout *l,
                     uint64_t memory)
{
    struct dry_plan p = {0};
    struct dry_choices c = {0};
    struct ms_err e = {0};
    struct ms_jwrite w;
    if (mstx__dry_plan_make(g, l, &p, &e) == MS_OK &&
        mstx__dry_choices_find(&c, g, l, memory, &e) == MS_OK) {
        mstx__dry_plan_text(g, &p, &c, MOST, b);
        mstx__dry_plan_text(g, &p, &c, 0, b);
        ms_jwrite_init(&w, 0, 1 << 20);
        mstx__dry_plan_json(g, &p, l, &c, MOST, &w);
        put_json(b, &w);
    } else {
        put_error(b, &e);
    }
    mstx__dry_choices_free(&c);
    mstx__dry_plan_free(&p);
}

START_TEST(drawn_dumps_are_planned_as_on_record)
{
    char path[160];
    struct ms_buf b = {.max = 1 << 20};
    for (unsigned i = 0; i < DUMPS; i++) {
        struct ms_buf answer = {.max = 1 << 22};
        struct dry_graph g;
        struct ms_err e = {0};
        snprintf(path, sizeof path, "%s/dump.json", dir);
        write_dump(path, i);
        ck_ok(mstx__dry_graph_read(&g, path, &e), e);
        for (unsigned k = 0; k < LAYOUTS; k++) {
            const struct dry_layout l = drawn_layout();
            put_plan(&answer, &g, &l, k % 2 != 0 ? 1000U << below(12) : 0);
        }
        mstx__dry_graph_free(&g);
        record_answer(&b, "dump", i, &answer);
    }
    recorded_check(&b, "dryrun");
}
END_TEST

RECORDED_MAIN_AROUND(make_dir, remove_dir, "memory_recorded",
                     records_of_the_corpus_are_read_as_on_record,
                     drawn_traces_give_what_is_on_record, drawn_dumps_are_planned_as_on_record)

/* SPDX-License-Identifier: MIT
 *
 * against_recorded: what is said of drawn pairs of traces, with and without a change of the new one, in
 * each form, as it is on record; and that the change that was made is what is named first.
 *
 *     build/tests/test_against_recorded --update        records a change that is meant
 *     build/tests/test_against_recorded --show          prints all answers
 */
#include "mstx/differ/against.h"
#include "tests/support/recorded.h"
#include "tests/support/scratch_run.h"

#include <math.h>

enum { STEPS = 12, LAYERS = 4, PAIRS = 20, ODD_PAIRS = 17 };

/* What pairs behind the first PAIRS have besides, by the bits of their number. */
enum { UNEVEN = 1, COPIES = 2, LOADED = 4, NOISES = 8, SAME = 16 };

/* What makes the new run slower, and what of it is expected in the first cause. */
enum plant { NOTHING, OPERATOR, NEW_OPERATOR, KERNEL, LOADING, HIDDEN, PLANTS };
static const char *const named[PLANTS] = {NULL,          "aten::gelu", "aten::copy_",
                                          "gemm_kernel", "load batch", NULL};

static uint64_t state;

#define below(n) recorded_below(&state, (n))

struct trace {
    struct ms_buf text;
    double t, busy, beside; /* of the thread, of the device, of its second stream */
    unsigned link;
    enum plant plant;
    unsigned odd;
    bool has_device, is_new;
};

static void put_event(struct trace *r, const char *name, const char *category, int tid,
                      double start, double end, const char *more)
{
    ms_buf_printf(&r->text,
                  "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":100,\"tid\":%d,"
                  "\"ts\":%.3f,\"dur\":%.3f,\"args\":{%s}},\n",
                  category, name, tid, start, end - start, more);
}

/* Works about that long. */
static void spend(struct trace *r, unsigned us)
{
    r->t += us * (0.97 + below(61) / 1000.0);
}

static void operate(struct trace *r, const char *name, const char *inner, unsigned us)
{
    const double start = r->t;
    spend(r, 4);
    const double within = r->t;
    spend(r, us);
    if (inner != NULL)
        put_event(r, inner, "cpu_op", 1, within, r->t, "\"Input Dims\":[[4,8]]");
    spend(r, 3);
    put_event(r, name, "cpu_op", 1, start, r->t, "\"Input Dims\":[[4,8]]");
}

static void launch(struct trace *r, const char *name, unsigned us, bool is_beside)
{
    char link[64];
    double *free_at = is_beside ? &r->beside : &r->busy;
    const double start = r->t;
    spend(r, 6);
    snprintf(link, sizeof link, "\"correlation\":%u,\"stream\":%d,\"device\":0", ++r->link,
             is_beside ? 9 : 7);
    put_event(r, "cudaLaunchKernel", "cuda_runtime", 1, start, r->t, link);
    const double begin = *free_at > r->t + 3 ? *free_at : r->t + 3;
    *free_at = begin + us * (0.99 + below(21) / 1000.0);
    put_event(r, name, "kernel", is_beside ? 9 : 7, begin, *free_at, link);
}

/* Waits for others, and copies a result to the host. */
static void move_bytes(struct trace *r)
{
    const double from = r->t;
    spend(r, 60 + below(90));
    put_event(r, "nccl:all_reduce", "user_annotation", 1, from, r->t, "\"x\":1");
    launch(r, "Memcpy DtoH (Device -> Pageable)", 15 + below(9), true);
    put_event(r, "forward", "gpu_user_annotation", 9, from, r->beside, "\"stream\":9,\"device\":0");
    ms_buf_printf(&r->text,
                  "{\"ph\":\"C\",\"name\":\"batch elements\",\"pid\":100,\"tid\":1,"
                  "\"ts\":%.3f,\"args\":{\"v\":%u}},\n",
                  r->t, 32 + below(3));
    r->t += r->is_new && r->plant == HIDDEN ? 90 : 20; /* what no operator covers */
}

static void put_layer(struct trace *r)
{
    const bool now = r->is_new;
    operate(r, "aten::linear", "aten::addmm", 300);
    operate(r, "aten::gelu", NULL, now && r->plant == OPERATOR ? 190 : 120);
    if (now && r->plant == NEW_OPERATOR)
        operate(r, "aten::copy_", NULL, 80);
    for (unsigned i = r->odd & UNEVEN ? below(3) : 0; i > 0; i--)
        operate(r, "aten::mul", "aten::empty", 30 + below(40));
    if (r->odd & COPIES)
        move_bytes(r);
    if (r->has_device) {
        launch(r, "gemm_kernel", now && r->plant == KERNEL ? 900 : 500, false);
        launch(r, "side_kernel", now && r->plant == HIDDEN ? 90 : 40, true);
    }
}

static void put_step(struct trace *r, unsigned step)
{
    char name[32];
    const double start = r->t;
    operate(r, "load batch", NULL, r->is_new && r->plant == LOADING ? 700 : 250);
    for (int i = 0; i < LAYERS; i++)
        put_layer(r);
    if (r->has_device) {
        const double from = r->t;
        r->t = (r->busy > r->t ? r->busy : r->t) + 2;
        put_event(r, "cudaDeviceSynchronize", "cuda_runtime", 1, from, r->t, "\"x\":1");
    }
    /* another program has the processor for a while */
    if (below(r->is_new && r->odd & LOADED ? 2 : 8) == 0)
        spend(r, r->odd & LOADED ? 9000 : 1500);
    snprintf(name, sizeof name, "ProfilerStep#%u", step);
    put_event(r, name, "user_annotation", 1, start, r->t, "\"x\":1");
    r->t += 5;
}

static void write_trace(const char *path, struct trace r, int rank)
{
    r.text.max = 1 << 22;
    r.t = 1000;
    ms_buf_printf(&r.text,
                  "{\"schemaVersion\":1,\"distributedInfo\":{\"rank\":%d,\"world_size\":2},"
                  "\"traceEvents\":[\n",
                  rank);
    for (unsigned i = 0; i < STEPS; i++)
        put_step(&r, i);
    put_event(&r, "PyTorch Profiler (0)", "Trace", 1, 0, r.t, "\"x\":1");
    r.text.n -= 2;
    ms_buf_puts(&r.text, "]}");
    ck_assert_int_eq(r.text.bad, MS_OK);
    write_file(path, r.text.p, r.text.n);
    ms_buf_free(&r.text);
}

/* A file, or a directory with one for each of some ranks, of which only one is changed. */
static void write_run(const char *name, unsigned seed, bool is_new)
{
    char path[128];
    const enum plant plant = seed % PLANTS;
    struct trace r = {.plant = plant, .is_new = is_new};
    r.odd = seed < PAIRS ? 0 : seed - PAIRS;
    r.has_device = plant == KERNEL || plant == HIDDEN || seed % 2 == 0 || r.odd & COPIES;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (seed % 5 != 4) {
        write_trace(path, r, 0);
        return;
    }
    ck_assert_int_eq(mkdir(path, 0700), 0);
    for (int rank = 0; rank < (r.odd == 0 ? 2 : 4); rank++) {
        snprintf(path, sizeof path, "%s/%s/rank%d.json", dir, name, rank);
        r.plant = rank == (int)seed % 2 ? plant : NOTHING;
        write_trace(path, r, rank);
    }
}

/* Numbers to so many digits that the order in which a compiler adds is not seen, and what is nothing as
 * nothing. */
static void put_number(struct ms_buf *to, double x)
{
    ms_buf_printf(to, " %.5g", fabs(x) < 1e-3 ? 0 : x);
}

static void put_profile(struct ms_buf *to, const struct mstx_profile *p)
{
    for (size_t i = 0; i < p->rank.n; i++) {
        ms_buf_printf(to, "\nrank %d %u", p->rank.p[i].rank, p->rank.p[i].steps);
        put_number(to, p->rank.p[i].step_ns);
    }
    for (size_t i = 0; i < p->figure.n; i++) {
        const struct mstx_figure *f = &p->figure.p[i];
        ms_buf_printf(to, "\nfigure %u %u %g", f->place, f->rank, f->count);
        put_number(to, f->quiet);
        put_number(to, f->mean);
        for (int b = 0; b < MSTX_BLOCKS; b++)
            put_number(to, f->block[b]);
    }
}

static void put_excess(struct ms_buf *to, const struct mstx_excess *x)
{
    put_number(to, x->ns);
    put_number(to, x->low);
    put_number(to, x->high);
    put_number(to, x->noise);
}

static void put_change(struct ms_buf *to, size_t place, const struct mstx_change *c)
{
    ms_buf_printf(to, "\nplace %zu", place);
    put_number(to, c->old_ns);
    put_number(to, c->new_ns);
    put_excess(to, &c->all);
    put_excess(to, &c->own);
}

static void put_difference(struct ms_buf *to, const struct mstx_difference *d)
{
    const double all[] = {d->factor,      d->scatter,      (double)d->compared,
                          d->disturbed,   d->loaded,       d->old_step_ns,
                          d->new_step_ns, d->old_quiet_ns, d->new_quiet_ns};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        put_number(to, all[i]);
    for (size_t i = 0; i < d->places->list.n; i++)
        put_change(to, i, &d->change[i]);
    for (size_t k = 0; k < d->pair.n; k++) {
        put_number(to, d->pair.p[k].own_ns);
        put_number(to, d->pair.p[k].slack_ns);
        struct mstx_change *alone = mstx__difference_of_rank(d, k);
        ck_assert_ptr_nonnull(alone);
        for (size_t i = 0; i < d->places->list.n; i++)
            put_change(to, i, &alone[i]);
        ms_free(alone);
    }
}

static void put_causes(struct ms_buf *to, const struct mstx_causes *c)
{
    for (size_t i = 0; i < c->list.n; i++) {
        const struct mstx_cause *x = &c->list.p[i];
        const double all[] = {x->cost_ns, x->low_ns, x->high_ns, x->old_ns, x->new_ns};
        ms_buf_printf(to, "\ncause %d %u %u %lld", (int)x->kind, x->place, x->others,
                      (long long)x->pair);
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            put_number(to, all[k]);
    }
}

/* Without digits, the last of which is another one where a compiler adds in another order. */
static void put_without_numbers(struct ms_buf *to, struct ms_str s)
{
    for (uint32_t i = 0; i < s.n; i++) {
        if (memchr("0123456789.-+", s.p[i], 13) == NULL)
            ms_buf_putc(to, s.p[i]);
    }
}

static void tell(const char *form, struct ms_buf *text, struct ms_buf *record)
{
    ms_buf_printf(record, " %s %06x", form, (unsigned)(ms_str_hash(ms_buf_slice(text)) & 0xffffff));
    if (recorded_shows)
        printf("%s\n", ms_buf_z(text));
    ms_buf_clear(text);
}

static void tell_numbers(const struct mstx_against *a, struct ms_buf *record)
{
    struct ms_buf text = {.max = 1 << 22};
    put_profile(&text, &a->old);
    put_profile(&text, &a->new);
    tell("profiles", &text, record);
    put_difference(&text, &a->difference);
    tell("difference", &text, record);
    put_causes(&text, &a->causes);
    tell("causes", &text, record);
    ms_buf_free(&text);
}

static void tell_forms(const struct mstx_against *a, struct ms_buf *record)
{
    struct ms_buf text = {.max = 1 << 22}, json = {.max = 1 << 22};
    struct ms_jwrite w;
    mstx_against_text(a, 3, &text);
    tell("text", &text, record);
    mstx_against_text(a, 0, &text);
    tell("all", &text, record);
    mstx_against_markdown(a, 3, &text);
    tell("markdown", &text, record);
    mstx_against_junit(a, 0.02, &text);
    tell("junit", &text, record);
    ms_jwrite_init(&w, 1, 1 << 22);
    mstx_against_json(a, 0.02, &w);
    ck_assert_int_eq(ms_jwrite_finish(&w, NULL), MS_OK);
    put_without_numbers(&json, ms_buf_slice(&w.buf));
    tell("json", &json, record);
    ms_jwrite_free(&w);
    ms_buf_free(&json);
    ms_buf_free(&text);
}

static void write_runs(unsigned seed)
{
    static const char *const names[] = {"old", "new", "noise", "noises"};
    for (unsigned i = 0; i < 4; i++) {
        state = 2 * seed + i;
        write_run(names[i], seed, i == 1);
    }
}

/* What was planted is what is named first. */
static void check_first(const struct mstx_against *a, unsigned seed)
{
    struct ms_buf first = {.max = 1 << 16};
    const char *const due = named[seed % PLANTS];
    if (due == NULL) {
        ck_assert_uint_eq(a->causes.list.n, 0);
        return;
    }
    ck_assert_msg(a->causes.list.n > 0, "pair %u: no cause, %s is due", seed, due);
    ck_assert_double_gt(mstx_against_slower(a), 0.02);
    mstx_against_text(a, 1, &first);
    ck_assert_msg(strstr(ms_buf_z(&first), due) != NULL, "pair %u: not %s but\n%s", seed, due,
                  ms_buf_z(&first));
    ms_buf_free(&first);
}

static void record_pair(unsigned seed, struct ms_buf *record)
{
    static char first[] = "noise", second[] = "noises";
    static char *const noise[] = {first, second};
    struct mstx_against a;
    struct ms_err e = {0};
    const unsigned odd = seed < PAIRS ? 0 : seed - PAIRS;
    const uint32_t from = seed % 3 == 0 ? 2 : 0;
    const struct mstx_against_how how = {.old_path = "old",
                                         .new_path = odd == SAME ? "./old" : "new",
                                         .noise = noise,
                                         .noises = odd & NOISES ? 2 : 0,
                                         .old_steps = {odd == SAME ? from : 0, UINT32_MAX},
                                         .new_steps = {from, UINT32_MAX}};
    char cwd[512];
    scratch_dir(dir);
    write_runs(seed);
    ck_assert_ptr_nonnull(getcwd(cwd, sizeof cwd));
    ck_assert_int_eq(chdir(dir), 0);
    ck_ok(mstx_against_read(&a, &how, &e), e);
    ck_assert_int_eq(chdir(cwd), 0);
    ck_assert_int_eq(a.is_same, odd == SAME);
    ms_buf_printf(record, "pair %u", seed);
    tell_forms(&a, record);
    tell_numbers(&a, record);
    ms_buf_printf(record, " causes %zu\n", a.causes.list.n);
    if (seed < PAIRS)
        check_first(&a, seed);
    mstx_against_free(&a);
    scratch_remove(dir);
}

START_TEST(pairs_are_told_as_on_record)
{
    struct ms_buf now = {.max = 1 << 20};
    for (unsigned seed = 0; seed < PAIRS + ODD_PAIRS; seed++)
        record_pair(seed, &now);
    recorded_check_file("tests/data/recorded/against.txt", &now,
                        "a pair and hashes of each form of its answer, and the number of causes");
    ms_buf_free(&now);
}
END_TEST

RECORDED_MAIN("against_recorded", pairs_are_told_as_on_record)

/* SPDX-License-Identifier: MIT
 *
 * metamorphic: what has to hold of any dump, whatever is in it: against itself it is
 * all pass, changing sides mirrors every figure, and what is c times the other is said
 * to be.  For each mode, each set of rules and each way of finding partners.
 */
#include "compare/official/rules_official.h"
#include "probe/base/num.h"
#include "probe/tensor/tensor.h"
#include "tests/support/cmp_fixture.h"

#include <math.h>

enum { OPS = 40, DATA = 1 << 16 };

static const char *const tasks[] = {"statistics", "md5", "tensor"};
enum { STATISTICS, DIGESTS, TENSORS, TASKS };

/* A generator of its own, so that every machine sees the same dumps. */
static double draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005U + 1442695040888963407U;
    return (double)(*seed >> 11) / 9007199254740992.0;
}

static void put_file(const struct fixture *f, char side, const char *name, const float *x)
{
    char path[192];
    const uint64_t shape[] = {4};
    struct ms_err err = {0};
    snprintf(path, sizeof path, "%s/%c/dump_tensor_data/%s.pt", f->dir, side, name);
    ck_ok(probe_pt_write(path, MS_DT_F32, shape, 1, x, &err), err);
}

static size_t put_leaf(const struct fixture *f, char side, unsigned task, char *to, size_t room,
                       const char *name, uint64_t *seed, double scale)
{
    float x[4], max = -1e9F, min = 1e9F;
    double sum = 0, squares = 0;
    char more[128] = "";
    for (int i = 0; i < 4; i++) {
        x[i] = (float)(scale * (draw(seed) + 0.25));
        max = x[i] > max ? x[i] : max;
        min = x[i] < min ? x[i] : min;
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    if (task == DIGESTS)
        snprintf(more, sizeof more, ",\"md5\":\"%08x\"",
                 (unsigned)ms_str_hash((struct ms_str){(char *)x, sizeof x}));
    if (task == TENSORS) {
        snprintf(more, sizeof more, ",\"data_name\":\"%s.pt\"", name);
        put_file(f, side, name, x);
    }
    int n = snprintf(to, room,
                     "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[4],"
                     "\"Max\":%.9g,\"Min\":%.9g,\"Mean\":%.9g,\"Norm\":%.9g,"
                     "\"requires_grad\":false%s}",
                     (double)max, (double)min, sum / 4, sqrt(squares), more);
    ck_assert_int_lt(n, (int)room);
    return (size_t)n;
}

/* Ops with an input and an output, forward and backward; values times `scale`. */
static void put_dump(const struct fixture *f, char side, unsigned task, uint64_t seed, double scale)
{
    static char data[DATA];
    size_t n = 0;
    for (int i = 0; i < OPS; i++) {
        char op[64], leaf[96];
        bool back = i >= OPS / 2; /* backward runs the other way round */
        int k = back ? OPS - 1 - i : i;
        snprintf(op, sizeof op, "Torch.op%d.%d.%s", k % 7, k / 7, back ? "backward" : "forward");
        n += (size_t)snprintf(data + n, DATA - n, "%s\"%s\": {\"input_args\": [", i != 0 ? "," : "",
                              op);
        snprintf(leaf, sizeof leaf, "%s.input.0", op);
        n += put_leaf(f, side, task, data + n, DATA - n, leaf, &seed, scale);
        n += (size_t)snprintf(data + n, DATA - n, "], \"output\": [");
        snprintf(leaf, sizeof leaf, "%s.output.0", op);
        n += put_leaf(f, side, task, data + n, DATA - n, leaf, &seed, scale);
        n += (size_t)snprintf(data + n, DATA - n, "]}");
    }
    fixture_dump(f, side, task == TENSORS ? "tensor" : "statistics", "pytorch", data);
}

/* Every way of comparing that takes any two dumps. */
struct way {
    enum cmp_compat compat;
    enum cmp_matching matching;
    bool fuzzy;
};
static const struct way ways[] = {
    {CMP_CUR, CMP_MATCH_EXACT, false},  {CMP_CUR, CMP_MATCH_ALWAYS, false},
    {CMP_CUR, CMP_MATCH_AUTO, true},    {CMP_STRICT, CMP_MATCH_EXACT, false},
    {CMP_STRICT, CMP_MATCH_AUTO, true}, {CMP_OLD, CMP_MATCH_EXACT, false},
    {CMP_OLD, CMP_MATCH_AUTO, true},
};
enum { WAYS = sizeof ways / sizeof *ways };

static void begin(struct fixture *f, const struct way *w)
{
    fixture_init(f);
    f->conf.rules = cmp_rules_of(w->compat);
    f->conf.matching = w->matching;
    f->conf.fuzzy = w->fuzzy;
    f->conf.ext = true;
}

typedef void (*row_fn)(const struct cmp_row *row, unsigned task, const char *what);

static size_t each_row(struct fixture *f, unsigned task, const char *what, row_fn fn)
{
    size_t rows = 0;
    for (size_t g = 0; g < cmp_groups(f->c); g++) {
        ck_ok(cmp_view_group(f->c, g, &f->v, &f->err), f->err);
        for (size_t i = 0; i < f->v.rows.n; i++, rows++)
            fn(&f->v.rows.p[i], task, what);
    }
    return rows;
}

static void equals_itself(const struct cmp_row *row, unsigned task, const char *what)
{
    ck_assert_msg(row->t.present && row->b.present && ms_str_eq(row->t.name, row->b.name),
                  "%s: %.*s met %.*s", what, MS_STR_ARG(row->t.name), MS_STR_ARG(row->b.name));
    ck_assert_msg(row->level == CMP_PASS && row->notes == 0, "%s: %.*s is not pass", what,
                  MS_STR_ARG(row->t.name));
    if (task == DIGESTS)
        ck_assert(ms_str_eq(row->t.md5, row->b.md5));
    if (task == TENSORS) {
        ck_assert_int_eq(row->fig.state, CMP_STATE_OK);
        ck_assert(row->fig.metric[CMP_MAX_ABS] == 0 && row->fig.metric[CMP_COSINE] == 1);
        ck_assert(row->fig.ext.bit_equal == 1 && row->fig.ext.scale == 1);
        ck_assert(row->fig.ext.rel_l2 == 0 && row->fig.ext.max_ulp == 0);
    }
    for (unsigned i = 0; i < PROBE_STATS && task == STATISTICS; i++)
        ck_assert_msg(ms_str_is(row->delta[i].diff, "0") || ms_str_is(row->delta[i].diff, "0.0"),
                      "%s: %.*s", what, MS_STR_ARG(row->delta[i].diff));
}

static void check_itself(const struct way *w, unsigned task)
{
    struct fixture f;
    begin(&f, w);
    put_dump(&f, 't', task, 7, 1);
    put_dump(&f, 'b', task, 7, 1);
    fixture_open(&f);
    ck_assert_uint_eq(each_row(&f, task, tasks[task], equals_itself), (size_t)2 * OPS);
    fixture_free(&f);
}

/* What is kept of a row to hold the mirrored one against it. */
struct figures {
    struct ms_str text;
    double diff[PROBE_STATS], euclid, max_abs, cosine, scale;
    bool same_md5;
};
static struct figures kept[2 * OPS];
static size_t nkept;

static struct figures figures_of(const struct cmp_row *row)
{
    struct figures x = {.same_md5 = ms_str_eq(row->t.md5, row->b.md5)};
    for (unsigned i = 0; i < PROBE_STATS; i++)
        x.diff[i] = row->t.stat[i].v - row->b.stat[i].v;
    x.euclid = row->fig.metric[CMP_EUCLID];
    x.max_abs = row->fig.metric[CMP_MAX_ABS];
    x.cosine = row->fig.metric[CMP_COSINE];
    return x;
}

static void keep_row(const struct cmp_row *row, unsigned task, const char *what)
{
    (void)task;
    (void)what;
    kept[nkept++] = figures_of(row);
}

static void mirrors(const struct cmp_row *row, unsigned task, const char *what)
{
    struct figures x = figures_of(row), *y = &kept[nkept++];
    ck_assert_msg(x.same_md5 == y->same_md5, "%s", what);
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        double shown;
        ck_assert(x.diff[i] == -y->diff[i]);
        if (task == STATISTICS &&
            ms_num_parse_f64(row->delta[i].diff.p, row->delta[i].diff.n, &shown))
            ck_assert_double_eq_tol(shown, -y->diff[i], 1e-12 * fabs(row->t.stat[i].v));
    }
    if (task == TENSORS) {
        ck_assert(x.euclid == y->euclid && x.max_abs == y->max_abs);
        ck_assert_double_eq_tol(x.cosine, y->cosine, 1e-12);
    }
}

static void check_mirror(const struct way *w, unsigned task)
{
    struct fixture f;
    if (w->matching == CMP_MATCH_ALWAYS)
        return; /* of values that have nothing to do with each other each side has its own guess */
    for (int swapped = 0; swapped < 2; swapped++) {
        begin(&f, w);
        put_dump(&f, 't', task, swapped != 0 ? 9 : 7, 1);
        put_dump(&f, 'b', task, swapped != 0 ? 7 : 9, 1);
        fixture_open(&f);
        nkept = 0;
        size_t rows = each_row(&f, task, tasks[task], swapped != 0 ? mirrors : keep_row);
        ck_assert_uint_eq(rows, (size_t)2 * OPS);
        fixture_free(&f);
    }
}

#define SCALE 3.0 /* exact in every type */

static void is_scaled(const struct cmp_row *row, unsigned task, const char *what)
{
    if (task == TENSORS) {
        ck_assert_double_eq_tol(row->fig.ext.scale, SCALE, 1e-6);
        ck_assert_double_eq_tol(row->fig.ext.rel_l2, SCALE - 1, 1e-6);
        ck_assert_double_eq_tol(row->fig.metric[CMP_COSINE], 1, 1e-9);
        return;
    }
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        const struct cmp_delta *d = &row->delta[i];
        double percent;
        ck_assert_msg(d->rel.n > 1 && ms_num_parse_f64(d->rel.p, d->rel.n - 1, &percent),
                      "%s: %.*s", what, MS_STR_ARG(d->rel));
        ck_assert_double_eq_tol(percent, 100 * (SCALE - 1), 1e-4);
    }
}

static void check_scaled(const struct way *w, unsigned task)
{
    struct fixture f;
    if (task == DIGESTS || w->matching == CMP_MATCH_ALWAYS ||
        (w->compat == CMP_OLD && task == STATISTICS))
        return; /* names, not values, say who belongs together; 1.x has numbers, no percentages */
    begin(&f, w);
    put_dump(&f, 't', task, 7, SCALE);
    put_dump(&f, 'b', task, 7, 1);
    fixture_open(&f);
    ck_assert_uint_eq(each_row(&f, task, tasks[task], is_scaled), (size_t)2 * OPS);
    fixture_free(&f);
}

static void in_every_way(void (*check)(const struct way *w, unsigned task))
{
    for (size_t i = 0; i < WAYS; i++) {
        for (unsigned task = 0; task < TASKS; task++)
            check(&ways[i], task);
    }
}

START_TEST(a_dump_against_itself_is_all_pass)
{
    in_every_way(check_itself);
}
END_TEST

START_TEST(changing_sides_mirrors_every_figure)
{
    in_every_way(check_mirror);
}
END_TEST

START_TEST(what_is_scaled_is_said_to_be)
{
    in_every_way(check_scaled);
}
END_TEST

/* ---- training against inference -------------------------------------------------- */

#define PART(width, max, min, mean, norm)                                                          \
    "\"input_args\": [{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[1,3,8],"   \
    "\"Max\":1.0,\"Min\":0.0,\"Mean\":0.5,\"Norm\":2.0}], \"output\": "                            \
    "[{\"type\":\"torch.Tensor\","                                                                 \
    "\"dtype\":\"torch.float32\",\"shape\":[1,3," width "],\"Max\":" max ",\"Min\":" min           \
    ",\"Mean\":" mean ",\"Norm\":" norm "}]"
#define TRAINED "Module._fsdp_wrapped_module.model.layers.4._fsdp_wrapped_module.self_attn."

START_TEST(parts_of_training_are_one_row_of_inference)
{
    struct fixture f;
    fixture_init(&f);
    f.conf.consistent = CMP_CONSISTENT_FSDP;
    fixture_pair(
        &f,
        "\"" TRAINED "q_proj.Linear.forward.0\": {" PART(
            "4", "3.0", "-1.0", "1.0",
            "3.0") "}, \"" TRAINED
                   "k_proj.Linear.forward.0\": {" PART(
                       "2", "2.0", "-5.0", "4.0",
                       "4.0") "}, \"Module._fsdp_wrapped_module.model.Qwen2Model.backward.0\": "
                              "{" PART("1", "0.0", "0.0", "0.0",
                                       "0.0") "}, \"" TRAINED
                                              "v_proj.Linear.forward.0\": {" PART(
                                                  "2", "9.0", "-9.0", "9.0", "9.0") "}",
        "\"Module.model.layers.4.self_attn.qkv_proj.QKV.forward.0\": {" PART("6", "3.0", "-5.0",
                                                                             "2.0", "5.0") "}");
    fixture_open(&f);
    ck_assert_uint_eq(cmp_rows(f.c), 2); /* what follows the backward has no twin */
    const struct cmp_row *row =
        fixture_row(&f, TRAINED "q_proj.Linear.forward.0.output.0;  " TRAINED
                                "k_proj.Linear.forward.0.output.0");
    ck_assert(ms_str_is(row->t.shape, "[1, 3, 6]") && ms_str_is(row->t.dtype, "torch.float32"));
    ck_assert(ms_str_is(row->t.stat[PROBE_STAT_MAX].text, "3.0"));
    ck_assert(ms_str_is(row->t.stat[PROBE_STAT_MIN].text, "-5.0"));
    ck_assert_double_eq_tol(row->t.stat[PROBE_STAT_MEAN].v, 2.0, 1e-12); /* 12 ones and 6 fours */
    ck_assert_double_eq_tol(row->t.stat[PROBE_STAT_NORM].v, 5.0, 1e-12);
    ck_assert_int_eq(row->level, CMP_PASS);
    fixture_free(&f);
}
END_TEST

TEST_MAIN("metamorphic", a_dump_against_itself_is_all_pass, changing_sides_mirrors_every_figure,
          what_is_scaled_is_said_to_be, parts_of_training_are_one_row_of_inference)

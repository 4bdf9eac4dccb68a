/* SPDX-License-Identifier: MIT
 *
 * Three projections of a training beside the one of inference: a matrix is cut in parts, and what is
 * shown of the parts together must be what is true of the matrix.
 */
#include "compare/measure/fold.h"
#include "compare/official/rules_official.h"
#include "tests/support/cmp_fixture.h"

#include "probe/base/num.h"
#include "probe/tensor/tensor.h"

#include <math.h>

enum { PARTS = 3, ROWS_MAX = 8, WIDTH_MAX = 12 };

#define TRAINED "Module._fsdp_wrapped_module.model.layers.0._fsdp_wrapped_module.self_attn."
#define SERVED  "Module.model.layers.0.self_attn.qkv_proj.QKVParallelLinear.forward.0"

static const char *const projections[PARTS] = {"q_proj", "k_proj", "v_proj"};

/* ---- matrices ------------------------------------------------------------------------------ */

static struct matrix {
    uint64_t shape[2];
    float x[ROWS_MAX * WIDTH_MAX * PARTS];
    const char *dtype; /* NULL: float32 */
} whole, part[PARTS];

static uint32_t state;

static uint32_t below(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * n >> 32);
}

static void put_value(struct matrix *m, uint64_t row, uint64_t column, float v)
{
    m->x[row * m->shape[1] + column] = v;
}

/* Parts side by side, as outputs are, or on top of each other, as parameters are. */
static void cut_matrix(bool stacked)
{
    uint64_t size[PARTS], sum = 0;
    const uint64_t other = 1 + below(ROWS_MAX);
    for (int i = 0; i < PARTS; i++)
        sum += size[i] = 2 + below(WIDTH_MAX - 1);
    whole = (struct matrix){.shape = {stacked ? sum : other, stacked ? other : sum}};
    for (uint64_t i = 0, at = 0; i < PARTS; at += size[i++]) {
        struct matrix *p = &part[i];
        *p = (struct matrix){.shape = {stacked ? size[i] : other, stacked ? other : size[i]}};
        for (uint64_t r = 0; r < p->shape[0]; r++) {
            for (uint64_t c = 0; c < p->shape[1]; c++) {
                const float v = (float)((int)below(2001) - 1000) / 64;
                put_value(p, r, c, v);
                put_value(&whole, stacked ? at + r : r, stacked ? c : at + c, v);
            }
        }
    }
}

struct figures {
    double max, min, mean, norm;
};

static struct figures figures_of(const struct matrix *m)
{
    struct figures f = {-HUGE_VAL, HUGE_VAL, 0, 0};
    const uint64_t n = m->shape[0] * m->shape[1];
    for (uint64_t i = 0; i < n; i++) {
        const double v = (double)m->x[i];
        f.max = isnan(v) ? v : v > f.max ? v : f.max; /* once NaN, always NaN */
        f.min = isnan(v) ? v : v < f.min ? v : f.min;
        f.mean += v / (double)n;
        f.norm += v * v;
    }
    f.norm = sqrt(f.norm);
    return f;
}

/* ---- dumps --------------------------------------------------------------------------------- */

static void put_number(struct ms_buf *b, const char *key, double v)
{
    char text[MS_NUM_MAX];
    ms_buf_printf(b, ",\"%s\":", key);
    if (isfinite(v))
        ms_buf_put(b, text, ms_num_f64(text, v));
    else
        ms_buf_puts(b, isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
}

static void put_leaf(struct ms_buf *b, const struct matrix *m, const char *file)
{
    const struct figures f = figures_of(m);
    ms_buf_printf(b, "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.%s\",\"shape\":[%d,%d]",
                  m->dtype != NULL ? m->dtype : "float32", (int)m->shape[0], (int)m->shape[1]);
    put_number(b, "Max", f.max);
    put_number(b, "Min", f.min);
    put_number(b, "Mean", f.mean);
    put_number(b, "Norm", f.norm);
    if (file != NULL)
        ms_buf_printf(b, ",\"data_name\":\"%s\"", file);
    ms_buf_puts(b, ",\"requires_grad\":false}");
}

static void put_record(struct ms_buf *b, const char *name, const struct matrix *m, bool stacked,
                       const char *file)
{
    ms_buf_printf(b, "%s\"%s\": {\"input_args\": [", b->n != 0 ? "," : "", name);
    put_leaf(b, &whole, NULL); /* all take the same input */
    ms_buf_puts(b, "], \"input_kwargs\": {}, ");
    ms_buf_puts(b, stacked ? "\"parameters\": {\"weight\": " : "\"output\": [");
    put_leaf(b, m, file);
    ms_buf_puts(b, stacked ? "}, \"output\": []}" : "]}");
}

/* A file is named after its row, which is how rows of tensors find each other. */
static void name_file(char file[200], const char *record, bool stacked)
{
    snprintf(file, 200, "%s.%s.pt", record, stacked ? "parameters.weight" : "output.0");
}

static void put_file(const struct fixture *f, char side, const char *name, const struct matrix *m)
{
    char path[300];
    struct ms_err err = {0};
    snprintf(path, sizeof path, "%s/%c/dump_tensor_data/%s", f->dir, side, name);
    ck_ok(probe_pt_write(path, MS_DT_F32, m->shape, 2, m->x, &err), err);
}

static void open_parts_and_whole(struct fixture *f, bool stacked, bool tensors)
{
    const char *task = tensors ? "tensor" : "statistics";
    struct ms_buf t = {.max = 1 << 16}, b = {.max = 1 << 16};
    char name[160], file[200];
    for (int i = 0; i < PARTS; i++) {
        snprintf(name, sizeof name, TRAINED "%s.Linear.forward.0", projections[i]);
        name_file(file, name, stacked);
        put_record(&t, name, &part[i], stacked, tensors ? file : NULL);
        if (tensors)
            put_file(f, 't', file, &part[i]);
    }
    name_file(file, SERVED, stacked);
    put_record(&b, SERVED, &whole, stacked, tensors ? file : NULL);
    if (tensors)
        put_file(f, 'b', file, &whole);
    fixture_dump(f, 't', task, "pytorch", ms_buf_z(&t));
    fixture_dump(f, 'b', task, "pytorch", ms_buf_z(&b));
    ms_buf_free(&t);
    ms_buf_free(&b);
    f->conf.consistent = CMP_CONSISTENT_FSDP;
    fixture_open(f);
}

/* The row of the matrix that was cut. */
static const struct cmp_row *folded_row(struct fixture *f)
{
    for (size_t g = 0; g < cmp_groups(f->c); g++) {
        ck_ok(cmp_view_group(f->c, g, &f->v, &f->err), f->err);
        for (size_t i = 0; i < f->v.rows.n; i++) {
            const struct cmp_row *row = &f->v.rows.p[i];
            if (row->t.present && row->b.present && row->t.section != PROBE_SEC_INPUT_ARGS)
                return row;
        }
    }
    ck_abort_msg("the parts have no partner");
    return NULL;
}

/* ---- statistics ---------------------------------------------------------------------------- */

static void check_close(const struct cmp_value *x, double due)
{
    ck_assert_int_eq(x->kind, CMP_VALUE_NUMBER);
    ck_assert_double_eq_tol(x->v, due, 1e-9 * fmax(1, fabs(due)));
    char shown[40];
    snprintf(shown, sizeof shown, "%.*s", MS_STR_ARG(x->text));
    ck_assert_double_eq(strtod(shown, NULL), x->v);
}

START_TEST(figures_of_the_parts_are_those_of_the_matrix)
{
    struct fixture f;
    fixture_init(&f);
    for (state = 1; state < 40; state++) {
        const uint32_t seed = state;
        const bool stacked = seed % 2 == 0;
        cut_matrix(stacked);
        open_parts_and_whole(&f, stacked, false);
        const struct cmp_row *row = folded_row(&f);
        const struct figures due = figures_of(&whole);
        check_close(&row->t.stat[PROBE_STAT_MAX], due.max);
        check_close(&row->t.stat[PROBE_STAT_MIN], due.min);
        check_close(&row->t.stat[PROBE_STAT_MEAN], due.mean);
        check_close(&row->t.stat[PROBE_STAT_NORM], due.norm);
        ck_assert_msg(ms_str_eq(row->t.shape, row->b.shape), "seed %u: %.*s", seed,
                      MS_STR_ARG(row->t.shape));
        ck_str_is(row->t.dtype, "torch.float32");
        ck_assert_uint_eq(row->notes, 0);
        state = seed;
    }
    fixture_free(&f);
}
END_TEST

/* NaN and infinities of any part are those of the whole, and so is what they make of a sum. */
static void check_any(const struct cmp_value *x, double due)
{
    if (isfinite(due)) {
        check_close(x, due);
        return;
    }
    ck_assert_int_eq(x->kind, isnan(due) ? CMP_VALUE_NAN
                              : due > 0  ? CMP_VALUE_INF
                                         : CMP_VALUE_NINF);
    ck_assert_msg(ms_str_is(x->text, isnan(due) ? "Nan"
                                     : due > 0  ? "inf"
                                                : "-inf") ||
                      ms_str_is(x->text, isnan(due) ? "NaN"
                                         : due > 0  ? "Infinity"
                                                    : "-Infinity"),
                  "%.*s", MS_STR_ARG(x->text));
}

START_TEST(what_is_no_number_in_a_part_is_none_in_the_whole)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN};
    struct fixture f;
    fixture_init(&f);
    for (state = 1; state < 60; state++) {
        const uint32_t seed = state;
        cut_matrix(false);
        for (uint32_t n = 1 + below(2); n > 0; n--) {
            const uint32_t i = below(PARTS);
            const uint64_t row = below((uint32_t)part[i].shape[0]);
            const uint64_t column = below((uint32_t)part[i].shape[1]);
            uint64_t at = column;
            for (uint32_t k = 0; k < i; k++)
                at += part[k].shape[1];
            const float v = odd[below(3)];
            put_value(&part[i], row, column, v);
            put_value(&whole, row, at, v);
        }
        open_parts_and_whole(&f, false, false);
        const struct cmp_row *row = folded_row(&f);
        const struct figures due = figures_of(&whole);
        check_any(&row->t.stat[PROBE_STAT_MAX], due.max);
        check_any(&row->t.stat[PROBE_STAT_MIN], due.min);
        check_any(&row->t.stat[PROBE_STAT_MEAN], due.mean);
        check_any(&row->t.stat[PROBE_STAT_NORM], due.norm);
        state = seed;
    }
    fixture_free(&f);
}
END_TEST

START_TEST(types_of_parts_that_differ_are_all_named)
{
    struct fixture f;
    fixture_init(&f);
    state = 3;
    cut_matrix(false);
    part[1].dtype = "float16";
    open_parts_and_whole(&f, false, false);
    ck_str_is(folded_row(&f)->t.dtype, "torch.float32;torch.float16;torch.float32");
    ck_assert_int_eq(folded_row(&f)->t.type, MS_DT_NONE);
    fixture_free(&f);
}
END_TEST

/* The texts of the parts with semicolons between them, as the official tool has them; none is a number. */
static void check_listed(struct ms_str got, const char *const texts[PARTS])
{
    char want[256];
    snprintf(want, sizeof want, "%s;%s;%s", texts[0], texts[1], texts[2]);
    ck_str_is(got, want);
}

static const char *spell_number(char *to, double v)
{
    if (isnan(v))
        strcpy(to, "nan");
    else
        to[ms_num_f64(to, v)] = '\0';
    return to;
}

START_TEST(the_official_rules_list_the_parts_as_text)
{
    struct fixture f;
    fixture_init(&f);
    f.conf.rules = cmp_rules_of(CMP_OLD);
    for (uint32_t seed = 1; seed < 8; seed++) {
        char shape[PARTS][16], mean[PARTS][40], norm[PARTS][40];
        const char *shapes[PARTS], *means[PARTS], *norms[PARTS];
        state = seed;
        cut_matrix(false);
        if (seed % 2 == 0)
            put_value(&part[seed % PARTS], 0, 0, NAN);
        for (int i = 0; i < PARTS; i++) {
            const struct figures one = figures_of(&part[i]);
            snprintf(shape[i], sizeof *shape, "[%d, %d]", (int)part[i].shape[0],
                     (int)part[i].shape[1]);
            shapes[i] = shape[i];
            means[i] = spell_number(mean[i], one.mean);
            norms[i] = spell_number(norm[i], one.norm);
        }
        open_parts_and_whole(&f, false, false);
        const struct cmp_item *item = &folded_row(&f)->t;
        ck_str_is(item->dtype, "torch.float32;torch.float32;torch.float32");
        ck_assert_int_eq(item->type, MS_DT_NONE);
        check_listed(item->shape, shapes);
        check_listed(item->stat[PROBE_STAT_MEAN].text, means);
        check_listed(item->stat[PROBE_STAT_NORM].text, norms);
        ck_assert_int_eq(item->stat[PROBE_STAT_MEAN].kind, CMP_VALUE_TEXT);
        ck_assert_int_eq(item->stat[PROBE_STAT_NORM].kind, CMP_VALUE_TEXT);
    }
    fixture_free(&f);
}
END_TEST

/* ---- tensors ------------------------------------------------------------------------------- */

START_TEST(tensors_of_the_parts_are_the_matrix)
{
    struct fixture f;
    fixture_init(&f);
    for (state = 1; state < 30; state++) {
        const uint32_t seed = state;
        const bool stacked = seed % 2 == 0;
        cut_matrix(stacked);
        const uint64_t n = whole.shape[0] * whole.shape[1], at = below((uint32_t)n);
        const bool differs = seed % 3 == 0;
        if (differs)
            whole.x[at] += 16;
        open_parts_and_whole(&f, stacked, true);
        const struct cmp_row *row = folded_row(&f);
        ck_assert_msg(row->fig.state == CMP_STATE_OK, "seed %u: state %d", seed, row->fig.state);
        ck_assert_double_eq(row->fig.metric[CMP_MAX_ABS], differs ? 16 : 0);
        ck_assert_double_eq(row->fig.metric[CMP_EUCLID], differs ? 16 : 0);
        ck_assert_uint_eq(cmp_bytes_read(f.c), 2 * n * sizeof(float));
        ck_assert_double_eq_tol(row->fig.metric[CMP_THOUSANDTH], differs ? 1 - 1 / (double)n : 1,
                                1e-9);
        state = seed;
    }
    fixture_free(&f);
}
END_TEST

/* The official tool joins files by the names of the projections. */
START_TEST(official_rules_join_files_of_projections)
{
    struct fixture f;
    fixture_init(&f);
    f.conf.rules = cmp_rules_of(CMP_OLD);
    for (state = 1; state < 12; state++) {
        const uint32_t seed = state;
        cut_matrix(false);
        const uint64_t n = whole.shape[0] * whole.shape[1];
        whole.x[below((uint32_t)n)] += seed % 2 == 0 ? 16 : 0;
        open_parts_and_whole(&f, false, true);
        ck_assert_int_eq(folded_row(&f)->fig.state, CMP_STATE_OK);
        ck_assert_double_eq(folded_row(&f)->fig.metric[CMP_MAX_ABS], seed % 2 == 0 ? 16 : 0);
        state = seed;
    }
    fixture_free(&f);
}
END_TEST

static void put_digest(struct ms_buf *b, const char *name, int columns, unsigned digest)
{
    ms_buf_printf(b,
                  "%s\"%s\":{\"input_args\":[],\"input_kwargs\":{},\"output\":[{\"type\":"
                  "\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[2,%d],\"Max\":1,"
                  "\"Min\":0,\"Mean\":0.5,\"Norm\":1,\"requires_grad\":false,\"md5\":\"%08x\"}]}",
                  b->n != 0 ? "," : "", name, columns, digest);
}

START_TEST(digests_of_parts_are_joined_too)
{
    struct fixture f;
    struct ms_buf t = {.max = 1 << 16}, b = {.max = 1 << 16};
    char name[160], want[64];
    fixture_init(&f);
    for (int i = 0; i < PARTS; i++) {
        snprintf(name, sizeof name, TRAINED "%s.Linear.forward.0", projections[i]);
        put_digest(&t, name, 2, (unsigned)i + 10);
    }
    put_digest(&b, SERVED, 2 * PARTS, 13);
    fixture_dump(&f, 't', "md5", "pytorch", ms_buf_z(&t));
    fixture_dump(&f, 'b', "md5", "pytorch", ms_buf_z(&b));
    f.conf.consistent = CMP_CONSISTENT_FSDP;
    fixture_open(&f);
    snprintf(want, sizeof want, "0000000a%s0000000b%s0000000c", CMP__PARTS, CMP__PARTS);
    ck_str_is(folded_row(&f)->t.md5, want);
    ck_str_is(folded_row(&f)->b.md5, "0000000d");
    ms_buf_free(&t);
    ms_buf_free(&b);
    fixture_free(&f);
}
END_TEST

/* Parts that do not make up the matrix are not compared element by element. */
START_TEST(parts_that_do_not_fit_are_of_another_shape)
{
    struct fixture f;
    fixture_init(&f);
    for (int stacked = 0; stacked < 2; stacked++) {
        for (int axis = 0; axis < 2; axis++) {
            for (int more = -1; more <= 1; more += 2) {
                state = 5;
                cut_matrix(stacked != 0);
                part[1].shape[axis] += (uint64_t)more;
                open_parts_and_whole(&f, stacked != 0, true);
                ck_assert_int_eq(folded_row(&f)->fig.state, CMP_STATE_SHAPE);
            }
        }
    }
    fixture_free(&f);
}
END_TEST

START_TEST(a_part_that_is_missing_is_an_error)
{
    char path[300];
    struct fixture f;
    fixture_init(&f);
    for (int i = 0; i < PARTS; i++) {
        state = 9;
        cut_matrix(false);
        open_parts_and_whole(&f, false, true);
        snprintf(path, sizeof path,
                 "%s/t/dump_tensor_data/" TRAINED "%s.Linear.forward.0.output.0.pt", f.dir,
                 projections[i]);
        ck_assert_int_eq(unlink(path), 0);
        fixture_open(&f);
        ck_assert_int_eq(folded_row(&f)->fig.state, CMP_STATE_UNREADABLE);
        ck_assert_uint_eq(folded_row(&f)->notes & 1U << CMP_NOTE_NO_FILE, 1U << CMP_NOTE_NO_FILE);
    }
    fixture_free(&f);
}
END_TEST

/* ---- which rows are folded -------------------------------------------------------------------- */

START_TEST(folds_of_a_pair_are_found_among_those_of_others)
{
    struct cmp__fold all[24] = {0};
    struct cmp_rows c = {0};
    c.folds.p = all;
    for (state = 1; state < 200; state++) {
        const uint32_t seed = state;
        c.folds.n = below(24);
        for (uint32_t i = 0, pair = 0; i < c.folds.n; i++)
            all[i].pair = pair += below(3);
        for (uint32_t pair = 0; pair < 50; pair++) {
            size_t n = 77, due = 0, first = 0;
            for (size_t i = c.folds.n; i-- > 0;) {
                due += all[i].pair == pair;
                first = all[i].pair == pair ? i : first;
            }
            const struct cmp__fold *f = cmp__folds_of(&c, pair, &n);
            ck_assert_uint_eq(n, due);
            ck_assert_ptr_eq(f, due != 0 ? &all[first] : NULL);
        }
        state = seed;
    }
}
END_TEST

/* ---- shapes -------------------------------------------------------------------------------- */

START_TEST(elements_of_a_shape_are_counted)
{
    static const struct {
        const char *text;
        uint64_t count;
    } shapes[] = {{"[]", 1},     {"[7]", 7}, {"[2, 3]", 6}, {"(2, 3)", 6}, {"[10, 20, 3]", 600},
                  {"[0, 4]", 0}, {"", 1},    {"12", 12},    {"[2,3", 6},   {"[1, 1, 1]", 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        ck_assert_uint_eq(cmp__shape_count(ms_str_of(shapes[i].text)), shapes[i].count);
    ck_assert_uint_eq(cmp__shape_count((struct ms_str){"2, 37", 4}),
                      6); /* a digit behind its end */
}
END_TEST

START_TEST(a_digest_of_parts_is_one_that_is_joined)
{
    ck_assert(cmp__is_joined(MS_STR("0a;0b")) && cmp__is_joined(MS_STR(";0b")));
    ck_assert(!cmp__is_joined(MS_STR("0a")) && !cmp__is_joined(MS_STR("")));
}
END_TEST

START_TEST(shapes_agree_apart_from_axes_that_the_engines_arrange)
{
    static const struct {
        enum cmp_consistent consistent;
        bool fused_agree;
        const char *t, *b, *name;
        bool agree;
    } cases[] = {
        {CMP_CONSISTENT_FSDP, false, "[2, 3]", "[2, 3]", "a", true},
        {CMP_CONSISTENT_FSDP, false, "[1, 2, 3]", "[2, 1, 3]", "a", true},
        {CMP_CONSISTENT_FSDP, false, "[2, 3]", "[3, 2]", "a", false},
        {CMP_CONSISTENT_FSDP, false, "[2, 3]", "[2, 3, 4]", "a", false},
        {CMP_CONSISTENT_FSDP, false, "[2, 3, 4]", "[2, 12]", "a", false},
        {CMP_CONSISTENT_FSDP, false, "[1, 1]", "[]", "a", true},
        {CMP_CONSISTENT_FSDP, false, "[10, 11]", "[10, 11]", "a", true},
        {CMP_CONSISTENT_FSDP, false, "[2]", "[3]", "qkv_proj", false},
        {CMP_CONSISTENT_FSDP, true, "[2]", "[3]", "qkv_proj", true},
        {CMP_CONSISTENT_FSDP, true, "[2]", "[3]", "gate_up_proj", true},
        {CMP_CONSISTENT_FSDP, true, "[2]", "[3]", "down_proj", false},
        {CMP_CONSISTENT_MEGATRON, true, "[2]", "[3]", "qkv_proj", false},
        {CMP_CONSISTENT_MEGATRON, false, "[2, 3, 4]", "[2, 12]", "a", true},
        {CMP_CONSISTENT_MEGATRON, false, "[2, 3, 4]", "[6, 4]", "a", false},
        {CMP_CONSISTENT_MEGATRON, false, "[2, 3, 4]", "[2, 3, 4]", "a", true},
        {CMP_CONSISTENT_MEGATRON, false, "[2, 3, 4]", "[2, 4, 3]", "a", false},
        {CMP_CONSISTENT_MEGATRON, false, "[2, 3, 4]", "[24]", "a", false},
        {CMP_CONSISTENT_MEGATRON, false, "[2, 3, 4, 5]", "[2, 12, 5]", "a", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct cmp_rules rules = {.fused_shapes_agree = cases[i].fused_agree};
        const struct cmp_setup set = {.conf = {.rules = &rules, .consistent = cases[i].consistent}};
        const struct cmp_row row = {
            .t = {.shape = ms_str_of(cases[i].t)},
            .b = {.shape = ms_str_of(cases[i].b), .name = ms_str_of(cases[i].name)}};
        ck_assert_msg(cmp__consistent_shapes(&set, &row) == cases[i].agree, "case %zu", i);
    }
}
END_TEST

TEST_MAIN("fold", figures_of_the_parts_are_those_of_the_matrix,
          what_is_no_number_in_a_part_is_none_in_the_whole,
          types_of_parts_that_differ_are_all_named, the_official_rules_list_the_parts_as_text,
          tensors_of_the_parts_are_the_matrix, official_rules_join_files_of_projections,
          digests_of_parts_are_joined_too, parts_that_do_not_fit_are_of_another_shape,
          a_part_that_is_missing_is_an_error, folds_of_a_pair_are_found_among_those_of_others,
          elements_of_a_shape_are_counted, a_digest_of_parts_is_one_that_is_joined,
          shapes_agree_apart_from_axes_that_the_engines_arrange)

/* SPDX-License-Identifier: MIT
 *
 * multiply: tensors that --config multiplies before they are compared, against
 * products made here, and what is said of a file that does not fit.
 */
#include "compare/official/rules_official.h"
#include "tests/support/cmp_fixture.h"

#include <math.h>

#define ROWS 3
#define COLS 4

static float target[2][ROWS][COLS], golden[2][ROWS][COLS];
static double right[COLS][2], left[5][ROWS];

static void fill(float *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525U + 1013904223U;
        p[i] = (float)(int)(seed >> 20) / 512.0F - 4.0F;
    }
}

static void put(const struct fixture *f, const char *name, enum ms_dtype t, const uint64_t *shape,
                uint32_t ndim, const void *data)
{
    char path[200];
    struct ms_err err = {0};
    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    ck_ok(probe_npy_write(path, t, shape, ndim, data, &err), err);
}

static const char *leaf(void)
{
    return "\"Torch.x.0.forward\": {\"output\": [{\"type\":\"torch.Tensor\",\"dtype\":"
           "\"torch.float32\",\"shape\":[2,1,3,4],\"Max\":1.0,\"Min\":0.0,\"Mean\":0.0,"
           "\"Norm\":1.0,\"requires_grad\":false,\"data_name\":\"x.npy\"}]}";
}

/* A pair of tensors of 2 x 3 x 4, with an axis of length 1 among them, and matrices on both ends. */
static void begin(struct fixture *f)
{
    static const uint64_t shape[] = {2, 1, ROWS, COLS}, r[] = {COLS, 2}, l[] = {5, ROWS};
    float some[15];
    fixture_init(f);
    fill(&target[0][0][0], sizeof target / sizeof(float), 1);
    fill(&golden[0][0][0], sizeof golden / sizeof(float), 2);
    fill(some, 8, 3);
    for (size_t i = 0; i < 8; i++)
        right[i / 2][i % 2] = (double)some[i];
    fill(some, 15, 4);
    for (size_t i = 0; i < 15; i++)
        left[i / ROWS][i % ROWS] = (double)some[i];
    put(f, "t/dump_tensor_data/x.npy", MS_DT_F32, shape, 4, target);
    put(f, "b/dump_tensor_data/x.npy", MS_DT_F32, shape, 4, golden);
    put(f, "right.npy", MS_DT_F64, r, 2, right);
    put(f, "left.npy", MS_DT_F64, l, 2, left);
    fixture_dump(f, 't', "tensor", "pytorch", leaf());
    fixture_dump(f, 'b', "tensor", "pytorch", leaf());
}

/* Writes a --config in which @ stands for the fixture's directory. */
static void configure(struct fixture *f, const char *config)
{
    static char path[160];
    char text[1200];
    size_t n = 0;
    for (; *config != 0; config++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s", *config == '@' ? 64 : 1,
                              *config == '@' ? f->dir : config);
    fixture_write(f, "config.yaml", text);
    snprintf(path, sizeof path, "%s/config.yaml", f->dir);
    f->conf.config = path;
}

static void open_with(struct fixture *f, const char *config)
{
    configure(f, config);
    fixture_open(f);
}

static double cell(struct fixture *f, int metric)
{
    const struct cmp_row *row = fixture_row(f, "x");
    ck_assert_int_eq(row->fig.state, CMP_STATE_OK);
    return row->fig.metric[metric];
}

/* Elements of left * batch * right; either may be left out. */
static double element(float m[ROWS][COLS], bool by_left, bool by_right, size_t i, size_t j)
{
    double sum = 0;
    for (size_t a = 0; a < ROWS; a++) {
        for (size_t b = 0; b < COLS; b++) {
            double l = by_left ? left[i][a] : i == a, r = by_right ? right[b][j] : b == j;
            sum += l * (double)m[a][b] * r;
        }
    }
    return sum;
}

static double largest(bool by_left, bool by_right)
{
    double most = 0;
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < (by_left ? 5 : ROWS); i++) {
            for (size_t j = 0; j < (by_right ? 2 : COLS); j++) {
                double d = element(target[k], by_left, by_right, i, j) -
                           element(golden[k], by_left, by_right, i, j);
                most = fabs(d) > most ? fabs(d) : most;
            }
        }
    }
    return most;
}

START_TEST(both_sides_are_multiplied_from_the_side_that_is_said)
{
    struct fixture f;
    begin(&f);
    open_with(&f, "right_matmul:\n  target_tensor_map: {@/right.npy: [x.npy]}\n"
                  "  golden_tensor_map: {@/right.npy: [x.npy]}\n");
    ck_assert(fabs(cell(&f, CMP_MAX_ABS) - largest(false, true)) < 1e-10);
    open_with(&f, "left_matmul:\n  target_tensor_map: {@/left.npy: [x.npy]}\n"
                  "  golden_tensor_map: {@/left.npy: [x.npy]}\n");
    ck_assert(fabs(cell(&f, CMP_MAX_ABS) - largest(true, false)) < 1e-10);
    open_with(&f, "left_right_matmul:\n  left_target_tensor_map: {@/left.npy: [x.npy]}\n"
                  "  left_golden_tensor_map: {@/left.npy: [x.npy]}\n"
                  "  right_target_tensor_map: {@/right.npy: [x.npy]}\n"
                  "  right_golden_tensor_map: {@/right.npy: [x.npy]}\n");
    ck_assert(fabs(cell(&f, CMP_MAX_ABS) - largest(true, true)) < 1e-10);
    fixture_free(&f);
}
END_TEST

START_TEST(a_side_can_be_brought_back_to_the_others_basis)
{
    static const uint64_t square[] = {COLS, COLS}, shape[] = {2, 1, ROWS, COLS};
    static const double turned[COLS][COLS] = {
        {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}, {1, 0, 0, 0}};
    float moved[2][ROWS][COLS];
    struct fixture f;
    begin(&f);
    for (size_t i = 0; i < sizeof moved / sizeof(float); i++)
        (&moved[0][0][0])[i / COLS * COLS + (i + 1) % COLS] = (&target[0][0][0])[i];
    put(&f, "b/dump_tensor_data/x.npy", MS_DT_F32, shape, 4, moved);
    put(&f, "turn.npy", MS_DT_F64, square, 2, turned);
    open_with(&f, "right_matmul:\n  target_tensor_map: {@/turn.npy: [x.npy]}\n");
    ck_assert(cell(&f, CMP_MAX_ABS) == 0 && cell(&f, CMP_COSINE) == 1);
    fixture_free(&f);
}
END_TEST

static bool said(const struct fixture *f, const char *what)
{
    const struct ms_str *list;
    size_t n = cmp_problems(f->c, &list);
    for (size_t i = 0; i < n; i++) {
        if (ms_str_find_str(list[i], ms_str_of(what)) >= 0)
            return true;
    }
    return false;
}

START_TEST(a_matrix_that_will_not_do_is_an_error_but_for_strict)
{
    struct fixture f;
    begin(&f);
    for (int strict = 0; strict < 2; strict++) {
        f.conf.rules = cmp_rules_of(strict ? CMP_STRICT : CMP_CUR);
        /* .npy files are MindSpore's: the strict tool reads no others of it, and none of PyTorch */
        fixture_dump(&f, 't', "tensor", strict ? "mindspore" : "pytorch", leaf());
        fixture_dump(&f, 'b', "tensor", strict ? "mindspore" : "pytorch", leaf());
        open_with(&f, "right_matmul:\n  target_tensor_map: {@/left.npy: [x.npy]}\n");
        ck_assert_int_eq(fixture_row(&f, "x")->fig.state,
                         strict ? CMP_STATE_OK : CMP_STATE_UNREADABLE);
        open_with(&f, "right_matmul:\n  target_tensor_map: {@/none.npy: [x.npy]}\n");
        ck_assert(said(&f, "none.npy: No such file"));
        ck_assert_int_eq(fixture_row(&f, "x")->fig.state,
                         strict ? CMP_STATE_OK : CMP_STATE_UNREADABLE);
    }
    fixture_free(&f);
}
END_TEST

START_TEST(what_the_file_names_in_vain_is_told)
{
    struct fixture f;
    begin(&f);
    open_with(&f, "right_matmul:\n  target_tensor_map: {@/right.npy: [xx.npy], a.npy: 5}\n"
                  "  both_tensor_map: {}\nwrong_matmul: {}\n");
    ck_assert(said(&f, "the target has no data file 'xx.npy'; did you mean 'x.npy'?"));
    ck_assert(said(&f, "a.npy: expected a list of data files"));
    ck_assert(said(&f, "right_matmul has no 'both_tensor_map'"));
    ck_assert(said(&f, "there is no 'wrong_matmul'"));
    ck_assert(cell(&f, CMP_MAX_ABS) > 0); /* as it is */
    fixture_free(&f);
}
END_TEST

static void refused(struct fixture *f, const char *config, const char *why)
{
    configure(f, config);
    fixture_close(f);
    ck_assert_int_ne(cmp_open(&f->c, &f->conf, f->t, f->b, NULL, &f->err), MS_OK);
    ck_says(f->err, why);
    ck_says(f->err, "config.yaml");
    cmp_close(f->c);
    f->c = NULL;
    ms_err_clear(&f->err);
}

START_TEST(a_file_of_another_form_is_refused_with_the_form_that_is_expected)
{
    struct fixture f;
    begin(&f);
    refused(&f, "[1, 2]\n", "right_matmul, left_matmul or left_right_matmul");
    refused(&f, "right_matmul: 5\n", "maps such as target_tensor_map");
    refused(&f, "right_matmul: [5]\n", "maps such as target_tensor_map");
    refused(&f, "right_matmul:\n  target_tensor_map: [x.npy]\n", "'matrix: [data file, ...]'");
    open_with(&f,
              "right_matmul:\n  target_tensor_map:\n  golden_tensor_map: {}\n"); /* both empty */
    ck_assert(fabs(cell(&f, CMP_MAX_ABS) - largest(false, false)) < 1e-6);
    fixture_free(&f);
}
END_TEST

/* A vector is a row before a matrix, and a column behind one. */
START_TEST(vectors_are_multiplied_as_rows_and_as_columns)
{
    static const uint64_t n = 3, wide[] = {3, 2};
    static const double x[] = {1, 2, 4}, zero[3], m[] = {1, 10, 100, 1000, 3, 7};
    struct fixture f;
    begin(&f);
    put(&f, "t/dump_tensor_data/x.npy", MS_DT_F64, &n, 1, x);
    put(&f, "b/dump_tensor_data/x.npy", MS_DT_F64, &n, 1, zero);
    put(&f, "m.npy", MS_DT_F64, wide, 2, m);
    open_with(&f, "right_matmul:\n  target_tensor_map: {@/m.npy: [x.npy]}\n"
                  "  golden_tensor_map: {@/m.npy: [x.npy]}\n");
    ck_assert(cell(&f, CMP_MAX_ABS) == 1 * 10 + 2 * 1000 + 4 * 7);
    ck_assert(cell(&f, CMP_EUCLID) == hypot(1 * 1 + 2 * 100 + 4 * 3, 1 * 10 + 2 * 1000 + 4 * 7));
    put(&f, "m.npy", MS_DT_F64, (const uint64_t[]){2, 3}, 2, m);
    open_with(&f, "left_matmul:\n  target_tensor_map: {@/m.npy: [x.npy]}\n"
                  "  golden_tensor_map: {@/m.npy: [x.npy]}\n");
    ck_assert(cell(&f, CMP_EUCLID) == hypot(1 * 1 + 2 * 10 + 4 * 100, 1 * 1000 + 2 * 3 + 4 * 7));
    fixture_free(&f);
}
END_TEST

/* The product of singles is a single. */
START_TEST(a_product_has_the_precision_of_its_factors)
{
    static const uint64_t two = 2, square[] = {2, 2};
    static const float x[] = {1, 0x1p-30F}, zero[2], m[] = {1, 0, 1, 1};
    static const double dm[] = {1, 0, 1, 1};
    struct fixture f;
    begin(&f);
    put(&f, "t/dump_tensor_data/x.npy", MS_DT_F32, &two, 1, x);
    put(&f, "b/dump_tensor_data/x.npy", MS_DT_F32, &two, 1, zero);
    for (int single = 0; single < 2; single++) {
        put(&f, "m.npy", single ? MS_DT_F32 : MS_DT_F64, square, 2,
            single ? (const void *)m : (const void *)dm);
        open_with(&f, "right_matmul:\n  target_tensor_map: {@/m.npy: [x.npy]}\n"
                      "  golden_tensor_map: {@/m.npy: [x.npy]}\n");
        ck_assert(cell(&f, CMP_EUCLID) ==
                  (single ? 1 : sqrt((1 + 0x1p-30) * (1 + 0x1p-30) + 0x1p-60)));
    }
    fixture_free(&f);
}
END_TEST

TEST_MAIN("multiply", both_sides_are_multiplied_from_the_side_that_is_said,
          a_side_can_be_brought_back_to_the_others_basis,
          a_matrix_that_will_not_do_is_an_error_but_for_strict, what_the_file_names_in_vain_is_told,
          a_file_of_another_form_is_refused_with_the_form_that_is_expected,
          vectors_are_multiplied_as_rows_and_as_columns, a_product_has_the_precision_of_its_factors)

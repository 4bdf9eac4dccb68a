/* SPDX-License-Identifier: MIT
 *
 * measure_two: every figure of two tensors, computed again element by element, with the rules that
 * change how a figure is computed.
 */
#include "compare/measure/measured.h"
#include "compare/measure/metric.h"

#include "compare/read/rules.h"
#include "tests/support/check.h"

#include <math.h>

enum { MOST = 9000 };

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* Also zeros, and numbers around the steps that stand for a golden zero. */
static double draw_number(void)
{
    const double sign = below(2) == 0 ? 1 : -1;
    if (below(4) == 0)
        return 0;
    if (below(3) == 0)
        return sign * ldexp(1 + below(1000) / 1000.0, -(int)below(90));
    return sign * (1 + below(4)) * (1 + below(30) / 4000.0);
}

static struct probe_tensor tensor_of(enum ms_dtype t, const void *data, uint32_t ndim,
                                     const uint64_t *shape)
{
    struct probe_tensor x = {
        .dtype = t, .ndim = ndim, .count = 1, .data = data, .contiguous = true};
    for (uint32_t i = ndim; i-- > 0;) {
        x.shape[i] = shape[i];
        x.stride[i] = x.count;
        x.count *= shape[i];
    }
    return x;
}

static struct cmp_figures measure(const struct cmp_rules *rules, bool ext,
                                  const struct probe_tensor *n, const struct probe_tensor *b)
{
    struct cmp_figures fig = {0};
    struct ms_err err = {0};
    ck_ok(cmp__measure_two(rules, ext, n, b, &fig, &err), err);
    return fig;
}

static void is_near(double got, double want, double slack, const char *what)
{
    ck_assert_msg(got == want || (isnan(got) && isnan(want)) ||
                      fabs(got - want) <= slack * fmax(fabs(want), 1e-300),
                  "%s: %.17g, not %.17g", what, got, want);
}

/* ---- singles, with either step for a golden zero ------------------------------------------------ */

static float relative(float x, float y, float step)
{
    if (y == 0) {
        x += step;
        y += step;
    }
    return fabsf((x - y) / y);
}

struct again {
    double nn, bb, nb, dd, max_abs, max_rel, sum_d, sum_abs_d;
    size_t thousandth, five, equal;
};

static struct again count_again(const float *x, const float *y, size_t n, float step)
{
    struct again a = {0};
    for (size_t i = 0; i < n; i++) {
        const double d = (double)x[i] - (double)y[i];
        const float rel = relative(x[i], y[i], step);
        a.nn += (double)x[i] * (double)x[i];
        a.bb += (double)y[i] * (double)y[i];
        a.nb += (double)x[i] * (double)y[i];
        a.dd += d * d;
        a.sum_d += d;
        a.sum_abs_d += fabs(d);
        a.max_abs = fmax(a.max_abs, fabs(d));
        a.max_rel = fmax(a.max_rel, (double)rel);
        a.thousandth += rel < 0.001F;
        a.five += rel < 0.005F;
        a.equal += memcmp(&x[i], &y[i], sizeof x[i]) == 0;
    }
    return a;
}

static void check_ext(const struct cmp_ext *e, const struct again *a, size_t n, bool all)
{
    const double rel = a->dd == 0 ? 0 : a->bb > 0 ? sqrt(a->dd / a->bb) : HUGE_VAL;
    is_near(e->rel_l2, rel, 1e-12, "rel_l2");
    is_near(e->sqnr_db, -20 * log10(rel), 1e-9, "sqnr");
    is_near(e->scale, a->bb > 0 ? a->nb / a->bb : NAN, 1e-9, "scale");
    is_near(e->bit_equal, all ? (double)a->equal / (double)n : NAN, 1e-12, "bit_equal");
    is_near(e->bias,
            !all               ? NAN
            : a->sum_abs_d > 0 ? fabs(a->sum_d) / a->sum_abs_d
                               : 0,
            1e-6, "bias");
}

static void check_singles(size_t n, bool by_double, bool ext)
{
    static float x[MOST], y[MOST];
    const struct cmp_rules rules = {.golden_zero_by_double = by_double};
    const uint64_t shape = n;
    for (size_t i = 0; i < n; i++) {
        y[i] = (float)draw_number();
        x[i] = below(2) == 0 ? y[i] : (float)draw_number();
    }
    const struct probe_tensor a = tensor_of(MS_DT_F32, x, 1, &shape),
                              b = tensor_of(MS_DT_F32, y, 1, &shape);
    const struct cmp_figures fig = measure(&rules, ext, &a, &b);
    const struct again w = count_again(x, y, n, by_double ? 0x1p-52F : 0x1p-23F);
    const double cosine = w.nb / sqrt(w.nn) / sqrt(w.bb);
    ck_assert_int_eq(fig.state, CMP_STATE_OK);
    if (w.nn > 1e-30 && w.bb > 1e-30) /* smaller norms are none */
        is_near(fig.metric[CMP_COSINE], cosine > 0.9999 ? round(cosine * 1e6) / 1e6 : cosine, 1e-9,
                "cosine");
    is_near(fig.metric[CMP_EUCLID], sqrt(w.dd), 1e-12, "euclid");
    ck_assert_double_eq_tol(fig.metric[CMP_MAX_ABS], w.max_abs, 6e-13);
    is_near(fig.metric[CMP_MAX_REL], w.max_rel, 1e-11, "max_rel");
    is_near(fig.metric[CMP_THOUSANDTH], (double)w.thousandth / (double)n, 2e-10, "thousandth");
    is_near(fig.metric[CMP_FIVE], (double)w.five / (double)n, 2e-10, "five");
    check_ext(&fig.ext, &w, n, ext);
}

START_TEST(figures_of_singles_are_counted_again)
{
    static const size_t sizes[] = {2, 3, 511, 512, 513, 1025, 4096, 4097, MOST};
    for (uint64_t seed = 0; seed < 36; seed++) {
        state = seed;
        check_singles(sizes[seed % 9], seed % 2 == 0, seed % 4 < 2);
    }
}
END_TEST

/* The step of a double finds elements that are far from a golden zero and near it by that of a single. */
START_TEST(a_golden_zero_by_double_takes_from_the_close_ones)
{
    static const struct {
        float n;
        double thousandth[2], five[2];
    } steps[] = {{0, {1, 1}, {1, 1}},
                 {1e-10F, {1, 0.5}, {1, 0.5}},
                 {5e-10F, {0.5, 0.5}, {1, 0.5}},
                 {1e-9F, {0.5, 0.5}, {0.5, 0.5}},
                 {1e-19F, {1, 1}, {1, 1}},
                 {5e-19F, {1, 0.5}, {1, 1}},
                 {2e-18F, {1, 0.5}, {1, 0.5}}};
    const uint64_t shape = 2;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const float x[] = {steps[i].n, 1}, y[] = {0, 1};
        for (int old = 0; old < 2; old++) {
            const struct cmp_rules rules = {.golden_zero_by_double = old != 0};
            const struct probe_tensor a = tensor_of(MS_DT_F32, x, 1, &shape),
                                      b = tensor_of(MS_DT_F32, y, 1, &shape);
            const struct cmp_figures fig = measure(&rules, false, &a, &b);
            ck_assert_msg(fig.metric[CMP_THOUSANDTH] == steps[i].thousandth[old] &&
                              fig.metric[CMP_FIVE] == steps[i].five[old],
                          "%g, %d: %g, %g", (double)steps[i].n, old, fig.metric[CMP_THOUSANDTH],
                          fig.metric[CMP_FIVE]);
        }
    }
}
END_TEST

/* ---- complex numbers, scalars and shapes ------------------------------------------------------- */

START_TEST(complex_numbers_count_by_parts_where_the_rules_say_so)
{
    const float x[] = {1, 2, 3, 4}, y[] = {1, 2.5F, 3, 6};
    const double dx[] = {1, 2, 3, 4}, dy[] = {1, 2.5, 3, 6};
    const uint64_t two[] = {2}, one = 1;
    for (int parts = 0; parts < 2; parts++) {
        const struct cmp_rules rules = {.complex_by_parts = parts != 0};
        const struct probe_tensor a = tensor_of(MS_DT_C64, x, 1, two),
                                  b = tensor_of(MS_DT_C64, y, 1, two),
                                  da = tensor_of(MS_DT_C128, dx, 1, two),
                                  db = tensor_of(MS_DT_C128, dy, 1, two),
                                  sa = tensor_of(MS_DT_C64, x + 2, 1, &one),
                                  sb = tensor_of(MS_DT_C64, y + 1, 1, &one);
        const struct cmp_figures single = measure(&rules, false, &a, &b),
                                 twice = measure(&rules, false, &da, &db),
                                 only = measure(&rules, false, &sa, &sb);
        ck_assert(single.metric[CMP_MAX_ABS] == (parts ? 2 : 0));
        ck_assert(twice.metric[CMP_MAX_ABS] == (parts ? 2 : 0));
        ck_assert(single.metric[CMP_THOUSANDTH] == (parts ? 0.5 : 1));
        ck_assert(only.state == (parts ? CMP_STATE_OK : CMP_STATE_SCALAR));
        ck_assert_double_eq_tol(only.metric[CMP_MAX_ABS], parts ? 1 : 0.5, 1e-12);
    }
    const struct cmp_rules rules = {.complex_by_parts = false};
    const struct probe_tensor sa = tensor_of(MS_DT_C128, dx + 2, 0, NULL),
                              sb = tensor_of(MS_DT_C128, dy + 3, 0, NULL);
    ck_assert(measure(&rules, false, &sa, &sb).metric[CMP_MAX_ABS] == 3);
}
END_TEST

START_TEST(a_scalar_has_two_errors_by_the_rules)
{
    static const struct {
        double x, y, apart, rel, rel_single;
    } pairs[] = {{3, 2, 1, 0.5, 0.5},
                 {2, 3, 1, 1 / 3.0, (double)(1 / 3.0F)},
                 {-1, 1, 2, 2, 2},
                 {1, 0, 1, 0x1p52, 0x1p23},
                 {0, 0, 0, 0, 0}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        for (int single = 0; single < 2; single++) {
            const struct cmp_rules rules = {.single_scalars = single != 0};
            const struct probe_tensor a = tensor_of(MS_DT_F64, &pairs[i].x, 0, NULL),
                                      b = tensor_of(MS_DT_F64, &pairs[i].y, 0, NULL);
            const struct cmp_figures fig = measure(&rules, false, &a, &b);
            ck_assert_int_eq(fig.state, CMP_STATE_SCALAR);
            ck_assert(fig.metric[CMP_MAX_ABS] == pairs[i].apart);
            is_near(fig.metric[CMP_MAX_REL], single ? pairs[i].rel_single : pairs[i].rel, 1e-11,
                    "a scalar");
        }
    }
    /* numpy 1 adds the step of a double to a golden zero of any type, and subtracts bytes as bytes */
    const struct cmp_rules old = {.golden_zero_by_double = true, .numpy_scalars = true};
    const uint8_t n = 1, b = 2;
    const struct probe_tensor x = tensor_of(MS_DT_U8, &n, 0, NULL),
                              y = tensor_of(MS_DT_U8, &b, 0, NULL);
    ck_assert(measure(&old, false, &x, &y).metric[CMP_MAX_ABS] == 255);
    ck_assert(measure(&(struct cmp_rules){0}, false, &x, &y).metric[CMP_MAX_ABS] == 1);
    const float zero = 0, some = 5;
    const struct probe_tensor fx = tensor_of(MS_DT_F32, &some, 0, NULL),
                              fy = tensor_of(MS_DT_F32, &zero, 0, NULL);
    ck_assert(measure(&old, false, &fx, &fy).metric[CMP_MAX_REL] > 1e15);
    ck_assert(measure(&(struct cmp_rules){0}, false, &fx, &fy).metric[CMP_MAX_REL] < 1e8);
}
END_TEST

START_TEST(tensors_of_other_shapes_or_without_elements_have_no_figures)
{
    static const float data[6];
    static const struct {
        uint32_t n[2];
        uint64_t shape[2][3];
        enum cmp_state state;
    } pairs[] = {
        {{1, 1}, {{0}, {0}}, CMP_STATE_EMPTY},    {{1, 1}, {{0}, {2}}, CMP_STATE_EMPTY},
        {{1, 1}, {{2}, {0}}, CMP_STATE_SHAPE},    {{2, 2}, {{2, 3}, {3, 2}}, CMP_STATE_SHAPE},
        {{2, 2}, {{2, 3}, {2, 3}}, CMP_STATE_OK}, {{3, 1}, {{1, 6, 1}, {6}}, CMP_STATE_OK},
        {{2, 0}, {{1, 1}, {0}}, CMP_STATE_SCALAR}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const struct probe_tensor a = tensor_of(MS_DT_F32, data, pairs[i].n[0], pairs[i].shape[0]),
                                  b = tensor_of(MS_DT_F32, data, pairs[i].n[1], pairs[i].shape[1]);
        ck_assert_msg(measure(&cmp_rules_ours, false, &a, &b).state == pairs[i].state, "pair %zu",
                      i);
    }
}
END_TEST

START_TEST(infinities_and_what_is_no_number_stand_at_the_same_places_or_there_are_no_figures)
{
    static const struct {
        float x, y;
        enum cmp_state strict, loose; /* loose: signs of infinities do not count */
    } pairs[] = {{NAN, NAN, CMP_STATE_OK, CMP_STATE_OK},
                 {NAN, 1, CMP_STATE_MASKS, CMP_STATE_MASKS},
                 {INFINITY, NAN, CMP_STATE_MASKS, CMP_STATE_MASKS},
                 {INFINITY, INFINITY, CMP_STATE_OK, CMP_STATE_OK},
                 {INFINITY, -INFINITY, CMP_STATE_MASKS, CMP_STATE_OK},
                 {1, INFINITY, CMP_STATE_MASKS, CMP_STATE_MASKS}};
    const uint64_t two = 2;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const float x[] = {1, pairs[i].x}, y[] = {1, pairs[i].y};
        const struct probe_tensor a = tensor_of(MS_DT_F32, x, 1, &two),
                                  b = tensor_of(MS_DT_F32, y, 1, &two);
        ck_assert(measure(&(struct cmp_rules){0}, false, &a, &b).state == pairs[i].strict);
        ck_assert(measure(&(struct cmp_rules){.ignores_signs = true}, false, &a, &b).state ==
                  pairs[i].loose);
    }
}
END_TEST

/* ---- distances in units of the last place -------------------------------------------------------- */

START_TEST(units_of_the_last_place_are_those_of_the_coarser_type)
{
    const float f[] = {1, 1}, g[] = {1 + 0x1p-23F, 1 + 0x1p-20F};
    const uint16_t h[] = {0x3c00, 0x3c00},
                   k[] = {0x3c01, 0x3c05}; /* float16: 1, and so many above */
    const int32_t i[] = {5, 6}, j[] = {5, 9};
    const uint64_t two = 2;
    const struct {
        enum ms_dtype tn, tb;
        const void *n, *b;
        double mean, max;
    } pairs[] = {{MS_DT_F32, MS_DT_F32, f, g, 4.5, 8},
                 {MS_DT_F16, MS_DT_F16, h, k, 3, 5},
                 {MS_DT_F32, MS_DT_F16, f, k, 3, 5},
                 {MS_DT_F16, MS_DT_F32, k, f, 3, 5},
                 {MS_DT_I32, MS_DT_I32, i, j, 1.5, 3}};
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        const struct probe_tensor a = tensor_of(pairs[p].tn, pairs[p].n, 1, &two),
                                  b = tensor_of(pairs[p].tb, pairs[p].b, 1, &two);
        const struct cmp_figures fig = measure(&cmp_rules_ours, true, &a, &b);
        ck_assert_msg(fig.ext.mean_ulp == pairs[p].mean && fig.ext.max_ulp == pairs[p].max,
                      "pair %zu: %g, %g", p, fig.ext.mean_ulp, fig.ext.max_ulp);
        const struct cmp_figures less = measure(&cmp_rules_ours, false, &a, &b);
        ck_assert(isnan(less.ext.mean_ulp) && isnan(less.ext.max_ulp) && isnan(less.ext.bias));
        ck_assert(isnan(less.ext.bit_equal) == (pairs[p].tn != MS_DT_I32));
    }
}
END_TEST

TEST_MAIN("measure_two", figures_of_singles_are_counted_again,
          a_golden_zero_by_double_takes_from_the_close_ones,
          complex_numbers_count_by_parts_where_the_rules_say_so,
          a_scalar_has_two_errors_by_the_rules,
          tensors_of_other_shapes_or_without_elements_have_no_figures,
          infinities_and_what_is_no_number_stand_at_the_same_places_or_there_are_no_figures,
          units_of_the_last_place_are_those_of_the_coarser_type)

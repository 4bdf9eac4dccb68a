/* SPDX-License-Identifier: MIT
 *
 * test_align_stages: the stages of an alignment one by one.
 */
#include "compare/align/emit.h"
#include "compare/align/score.h"
#include "tests/support/check.h"

#include <math.h>

/* ---- families ------------------------------------------------------------ */

/* What holds of every two families, known and unknown. */
START_TEST(two_families_are_as_alike_one_way_as_the_other)
{
    enum { ALL = 400 };
    static const float grades[] = {0, 0.1F, 0.4F, 0.5F, 0.7F, 1};
    for (uint16_t a = 0; a < ALL; a++) {
        const bool known = strcmp(align__family_text(a), "unknown") != 0;
        ck_assert(known || !align__family_is_view(a));
        for (uint16_t b = 0; b < ALL; b++) {
            const float l = align__family_likeness(a, b);
            bool is_grade = false;
            for (size_t i = 0; i < sizeof grades / sizeof *grades; i++)
                is_grade |= l == grades[i];
            ck_assert_msg(is_grade && l == align__family_likeness(b, a), "%u and %u: %g", a, b,
                          (double)l);
            ck_assert_msg(!align__family_fuses(a, b) || l >= 0.5F, "%u ends with %u, yet %g", a, b,
                          (double)l);
            ck_assert_msg(known || (l == 0 && !align__family_fuses(a, b)), "%u is unknown, yet %g",
                          a, (double)l);
            ck_assert(a != b || !known || l == 1);
        }
    }
}
END_TEST

START_TEST(names_of_one_operator_are_one_family)
{
    static const struct {
        const char *a, *b;
        float likeness;
    } cases[] = {
        {"linear", "dense", 1},
        {"__add__", "__iadd__", 1},
        {"norm.RmsNorm", "npu_rms_norm", 1},
        {"flash_attention_score", "npu_fusion_attention", 1},
        {"logical_or", "__or__", 1},
        {"relu_", "ReLU", 1},
        {"npu_rms_norm", "mul", 0.7F},
        {"swiglu", "__mul__", 0.7F},
        {"flash_attention_score", "reshape", 0.7F},
        {"flash_attention_score", "matmul", 0.5F},
        {"chunk", "linear", 0.4F},
        {"npu_rms_norm", "mean", 0.1F},
        {"softmax", "relu", 0},
        {"softmax", "my_own_kernel", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint16_t a = align__family_find(ms_str_of(cases[i].a));
        uint16_t b = align__family_find(ms_str_of(cases[i].b));
        ck_assert_msg(align__family_likeness(a, b) == cases[i].likeness, "%s %s", cases[i].a,
                      cases[i].b);
        ck_assert_msg(align__family_likeness(b, a) == cases[i].likeness, "%s %s turned", cases[i].a,
                      cases[i].b);
    }
}
END_TEST

START_TEST(names_in_no_table_are_unknown)
{
    static const char *const names[] = {
        "",
        "_",
        "my_own_kernel",
        "linea",
        "linearx",
        "a_name_that_is_longer_than_any_name_in_any_table_of_ours_and_some_more"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_uint_eq(align__family_find(ms_str_of(names[i])), ALIGN__FAM_UNKNOWN);
    ck_assert_str_eq(align__family_text(ALIGN__FAM_UNKNOWN), "unknown");
}
END_TEST

/* ---- dims ---------------------------------------------------------------- */

START_TEST(shapes_are_equal_whatever_their_layout)
{
    struct align__dims dims = {.slots = NULL};
    struct ms_err err = {0};
    uint32_t id[6];
    const uint64_t shape[6][4] = {{2, 8, 4}, {8, 2, 4}, {1, 2, 8, 4}, {64}, {2, 8, 2}, {0, 3}};
    const unsigned nd[6] = {3, 3, 4, 1, 3, 2};
    for (int i = 0; i < 6; i++) {
        const struct align__dim dim = align__dim_of(shape[i], nd[i]);
        ck_ok(align__dims_put(&dims, &dim, &id[i], &err), err);
    }
    ck_assert_uint_eq(id[0], id[1]);
    ck_assert_uint_eq(id[0], id[2]);
    ck_assert_uint_ne(id[0], id[3]);
    ck_assert_uint_eq(dims.list.p[id[0]].n, 64);
    ck_assert(align__dims_piece(&dims, id[0], id[4]));
    ck_assert(!align__dims_piece(&dims, id[0], id[3]));
    ck_assert(!align__dims_piece(&dims, id[5], id[3]));
    align__dims_free(&dims);
}
END_TEST

START_TEST(a_shape_of_many_or_huge_sizes_is_a_shape)
{
    uint64_t d[12] = {9, 8, 7, 6, 5, 4, 3, 2, 10, 11, 12, 13};
    struct align__dim a = align__dim_of(d, 12);
    ck_assert_uint_eq(a.nd, ALIGN__NDIM);
    ck_assert_uint_eq(a.d[ALIGN__NDIM - 1], 13);
    ck_assert_uint_eq(a.d[0], 6);
    const uint64_t huge[2] = {UINT64_MAX, UINT64_MAX};
    ck_assert_uint_eq(align__dim_of(huge, 2).n, UINT64_MAX);
}
END_TEST

START_TEST(a_piece_is_a_whole_number_of_times_smaller_along_one_axis)
{
    static const struct {
        uint64_t a[2], b[2];
        uint64_t ratio;
    } cases[] = {{{128, 64}, {384, 64}, 3}, {{16, 4}, {64, 4}, 4},   {{4, 4}, {16, 16}, 0},
                 {{5, 7}, {7, 11}, 0},      {{64, 64}, {64, 64}, 0}, {{1, 64}, {64, 64}, 64},
                 {{64, 1}, {64, 2}, 2}};
    struct ms_err err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct align__dims dims = {.slots = NULL};
        uint32_t a;
        uint32_t b;
        const struct align__dim x = align__dim_of(cases[i].a, 2), y = align__dim_of(cases[i].b, 2);
        ck_ok(align__dims_put(&dims, &x, &a, &err), err);
        ck_ok(align__dims_put(&dims, &y, &b, &err), err);
        ck_assert_uint_eq(align__dims_ratio(&dims, a, b), cases[i].ratio);
        ck_assert_uint_eq(align__dims_ratio(&dims, b, a), cases[i].ratio);
        align__dims_free(&dims);
    }
}
END_TEST

/* ---- values -------------------------------------------------------------- */

static struct align__value value(double max, double min, double mean, double norm)
{
    struct align__value v = {.n = 100, .cls = ALIGN__FLOAT, .known = true};
    v.stat[ALIGN__MAX] = max;
    v.stat[ALIGN__MIN] = min;
    v.stat[ALIGN__MEAN] = mean;
    v.stat[ALIGN__NORM] = norm;
    v.ln_norm = norm > 0 ? (float)log(norm) : 0;
    return v;
}

START_TEST(distance_is_the_largest_difference_of_a_statistic)
{
    struct align__value a = value(2, -1, 0.1, 10);
    struct align__value b = a;
    ck_assert_float_eq(align__distance(&a, &b), 0);
    b.stat[ALIGN__MAX] = 2.2;
    ck_assert_float_eq_tol(align__distance(&a, &b), 0.2F / 2.2F, 1e-6F);
    b = value(2, -1, 0.3, 10);
    ck_assert_float_eq_tol(align__distance(&a, &b), 0.2F, 1e-6F);
    b = value(2, -1, 0.1, 0);
    ck_assert_float_eq(align__distance(&a, &b), 9);
    b = a;
    b.n = 99;
    ck_assert_float_lt(align__distance(&a, &b), 0);
    b = a;
    b.known = false;
    ck_assert_float_lt(align__distance(&a, &b), 0);
    b = a;
    b.digest = 7;
    ck_assert_float_lt(align__distance(&a, &b), 0);
    a.digest = 7;
    ck_assert_float_eq(align__distance(&a, &b), 0);
}
END_TEST

START_TEST(likeness_falls_with_a_long_tail)
{
    ck_assert_float_eq(align__likeness(0), 1);
    ck_assert_float_eq_tol(align__likeness(0.02F), 0.824F, 0.01F);
    ck_assert_float_eq_tol(align__likeness(0.3F), 0.29F, 0.01F);
    ck_assert_float_eq_tol(align__likeness(0.9999F), 0, 0.001F);
    ck_assert_float_eq(align__likeness(5), 0);
    ck_assert_float_eq(align__likeness(-1), 0);
    ck_assert_float_eq(align__likeness(NAN), 0);
}
END_TEST

/* ---- chain --------------------------------------------------------------- */

START_TEST(the_chain_is_the_heaviest_that_increases)
{
    /* Against trying every subset. */
    struct ms_err err = {0};
    uint32_t seed = 12345;
    for (int round = 0; round < 200; round++) {
        struct align__link links[10];
        size_t n = 10;
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            links[i] =
                (struct align__link){seed >> 28, seed >> 24 & 15, (float)(1 + (seed >> 16 & 7)), 0};
        }
        float best = 0;
        for (unsigned set = 0; set < 1U << 10; set++) {
            float sum = 0;
            bool fits = true;
            for (size_t i = 0; i < n && fits; i++) {
                sum += set >> i & 1 ? links[i].weight : 0;
                for (size_t j = 0; j < i && fits; j++)
                    fits = !(set >> i & 1) || !(set >> j & 1) ||
                           (links[i].a < links[j].a && links[i].b < links[j].b) ||
                           (links[i].a > links[j].a && links[i].b > links[j].b);
            }
            best = fits && sum > best ? sum : best;
        }
        ck_ok(align__keep_chain(links, &n, &err), err);
        float got = 0;
        for (size_t i = 0; i < n; i++) {
            got += links[i].weight;
            ck_assert(i == 0 || (links[i - 1].a < links[i].a && links[i - 1].b < links[i].b));
        }
        ck_assert_float_eq(got, best);
    }
}
END_TEST

START_TEST(a_chain_of_nothing_is_nothing)
{
    size_t n = 0;
    struct ms_err err = {0};
    ck_ok(align__keep_chain(NULL, &n, &err), err);
    ck_assert_uint_eq(n, 0);
}
END_TEST

/* ---- path ---------------------------------------------------------------- */

struct grid {
    const char *rows, *cols;
};

/* Letters match themselves; "ab" in a row meets "X" in one step. */
static float grid_score(void *ctx, uint32_t r, uint32_t c, unsigned k, unsigned l)
{
    const struct grid *g = ctx;
    if (k == 2)
        return g->cols[c] == 'X' && g->rows[r] == 'b' && g->rows[r - 1] == 'a' ? 1.5F : 0;
    if (l == 2)
        return g->rows[r] == 'X' && g->cols[c] == 'b' && g->cols[c - 1] == 'a' ? 1.5F : 0;
    return k == 1 && l == 1 && g->rows[r] == g->cols[c] ? 1 : 0;
}

static void find_path(const char *rows, const char *cols, unsigned merge, const char *expected)
{
    struct grid g = {rows, cols};
    struct ms_err err = {0};
    uint64_t cells = 0;
    struct align__path_room room = {.best = {.p = NULL}};
    uint8_t reach[64];
    memset(reach, (int)merge, sizeof reach);
    const struct align__path p = {.rows = (uint32_t)strlen(rows),
                                  .cols = (uint32_t)strlen(cols),
                                  .merge = merge,
                                  .reach = {reach, reach},
                                  .score = grid_score,
                                  .ctx = &g};
    ck_ok(align__path_find(&p, &room, &cells, &err), err);
    char got[256] = "";
    size_t n = 0;
    for (size_t i = 0; i < room.out.n; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%u-%u%s ", room.out.p[i].r, room.out.p[i].c,
                              room.out.p[i].k > 1   ? "k"
                              : room.out.p[i].l > 1 ? "l"
                                                    : "");
    ck_assert_str_eq(got, expected);
    align__path_room_free(&room);
}

START_TEST(a_path_matches_in_order_and_leaves_gaps)
{
    find_path("abc", "abc", 1, "0-0 1-1 2-2 ");
    find_path("abc", "xaybzc", 1, "0-1 1-3 2-5 ");
    find_path("abc", "cba", 1, "0-2 ");
    find_path("", "abc", 1, "");
    find_path("abc", "", 1, "");
    find_path("cabc", "Xc", 2, "2-0k 3-1 ");
    find_path("Xc", "abc", 2, "0-1l 1-2 ");
    find_path("Xc", "abc", 1, "1-2 ");
}
END_TEST

START_TEST(a_window_keeps_matches_within_it)
{
    struct grid g = {"abcd", "abcd"};
    const uint32_t lo[4] = {0, 0, 2, 2};
    const uint32_t hi[4] = {0, 0, 3, 3};
    struct ms_err err = {0};
    uint64_t cells = 0;
    struct align__path_room room = {.best = {.p = NULL}};
    const struct align__path p = {
        .rows = 4, .cols = 4, .lo = lo, .hi = hi, .merge = 1, .score = grid_score, .ctx = &g};
    ck_ok(align__path_find(&p, &room, &cells, &err), err);
    ck_assert_uint_eq(room.out.n, 3);
    ck_assert_uint_eq(room.out.p[1].r, 2);
    ck_assert_uint_eq(cells, 2 + 2 + 3 + 3);
    align__path_room_free(&room);
}
END_TEST

TEST_MAIN("align stages", two_families_are_as_alike_one_way_as_the_other,
          names_of_one_operator_are_one_family, names_in_no_table_are_unknown,
          shapes_are_equal_whatever_their_layout, a_shape_of_many_or_huge_sizes_is_a_shape,
          a_piece_is_a_whole_number_of_times_smaller_along_one_axis,
          distance_is_the_largest_difference_of_a_statistic, likeness_falls_with_a_long_tail,
          the_chain_is_the_heaviest_that_increases, a_chain_of_nothing_is_nothing,
          a_path_matches_in_order_and_leaves_gaps, a_window_keeps_matches_within_it)

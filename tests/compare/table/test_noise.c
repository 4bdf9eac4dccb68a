/* SPDX-License-Identifier: MIT
 *
 * noise: what is known of the noise of each golden row: drawn calibrations read by their meaning, broken
 * ones refused with the reason, and a second run whose distances are known.
 */
#include "tests/support/cmp_fixture.h"

#include <math.h>

enum { CASES = 300, OPS = 4, ROWS = 3 * OPS };

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* Operators whose outputs stand before their inputs in the file, so that the table has another order.
 * Norms of row i are 1 + shift[i]. */
static void write_side(const struct fixture *f, char side, const double *shift)
{
    struct ms_buf b = {.max = 1 << 16};
    for (int i = 0; i < OPS; i++) {
        ms_buf_printf(&b, "%s\"Torch.op%d.0.forward\":{", i != 0 ? "," : "", i);
        for (int k = 0; k < 3; k++)
            ms_buf_printf(&b,
                          "%s{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[4],"
                          "\"Max\":1.0,\"Min\":0.0,\"Mean\":0.5,\"Norm\":%.17g}",
                          k == 0   ? "\"output\":["
                          : k == 1 ? "],\"input_args\":["
                                   : ",",
                          1 + (shift != NULL ? shift[3 * i + k] : 0));
        ms_buf_puts(&b, "]}");
    }
    fixture_dump(f, side, "statistics", "pytorch", ms_buf_z(&b));
    ms_buf_free(&b);
}

static const char *name_of(int row)
{
    static char name[64];
    snprintf(name, sizeof name, "Torch.op%d.0.forward.%s", row / 3,
             row % 3 == 0   ? "output.0"
             : row % 3 == 1 ? "input.0"
                            : "input.1");
    return name;
}

/* The noise of a row as the comparison has it. */
static double noise_of(struct fixture *f, int row)
{
    const struct cmp_row *r = fixture_row(f, name_of(row));
    ck_assert_uint_eq(f->c->measured.noise.n, ROWS);
    return f->c->measured.noise.p[f->c->rows.pairs.p[r->pair].b];
}

static void check_noise(struct fixture *f, const double *want)
{
    for (int i = 0; i < ROWS; i++) {
        const double have = noise_of(f, i);
        ck_assert_msg(isnan(want[i]) ? isnan(have) : fabs(have - want[i]) < 1e-12, "%s: %g, not %g",
                      name_of(i), have, want[i]);
    }
}

static void begin(struct fixture *f)
{
    fixture_init(f);
    write_side(f, 't', NULL);
    write_side(f, 'b', NULL);
}

/* ---- calibrations ------------------------------------------------------------------------------- */

static void put_place_number(struct ms_buf *b, const char *key, int64_t v)
{
    if (v >= 0)
        ms_buf_printf(b, "\"%s\": %lld, ", key, (long long)v);
    else if (below(2) == 0)
        ms_buf_printf(b, "\"%s\": null, ", key);
}

/* A number that is not known agrees with any. */
static bool agree(int64_t a, int64_t b)
{
    return a == b || a < 0 || b < 0;
}

static void draw_place(struct ms_buf *b, const struct cmp_conf *conf, double *want, bool *any)
{
    const int64_t step = (int64_t)below(4) - 1, rank = (int64_t)below(4) - 1;
    const bool ours = agree(step, conf->noise_step) && agree(rank, conf->noise_rank);
    ms_buf_puts(b, "{");
    put_place_number(b, "step", step);
    if (below(3) == 0)
        ms_buf_puts(b, "\"other\": {\"rows\": [1, {\"step\": 7}]}, ");
    put_place_number(b, "rank", rank);
    ms_buf_puts(b, "\"rows\": {\"nobody\": 9");
    for (int i = 0; i < ROWS; i++) {
        if (below(3) != 0)
            continue;
        const double v = below(3) == 0 ? 0 : (double)(1 + below(900)) / 1000;
        ms_buf_printf(b, ", \"%s\": %.17g", name_of(i), v);
        want[i] = ours ? v : want[i];
        *any |= ours;
    }
    ms_buf_puts(b, "}}");
}

static bool draw_calibration(struct ms_buf *b, const struct cmp_conf *conf, double *want)
{
    bool any = false;
    for (int i = 0; i < ROWS; i++)
        want[i] = NAN;
    ms_buf_puts(b, "{\"noise_floor\": 1, \"runs\": [\"a\", {\"b\": []}], \"mode\": \"statistics\", "
                   "\"places\": [");
    for (uint32_t n = below(4), i = 0; i < n; i++) {
        ms_buf_puts(b, i != 0 ? ", " : "");
        draw_place(b, conf, want, &any);
    }
    ms_buf_puts(b, below(2) == 0 ? "]}" : "], \"more\": null}");
    return any;
}

START_TEST(a_calibration_gives_rows_of_its_step_and_rank_their_noise)
{
    struct fixture f;
    char path[128];
    begin(&f);
    snprintf(path, sizeof path, "%s/noise.json", f.dir);
    f.conf.noise_floor = path;
    for (uint64_t seed = 1; seed < CASES; seed++) {
        struct ms_buf text = {.max = 1 << 16};
        const struct ms_str *problems;
        double want[ROWS];
        state = seed;
        f.conf.noise_step = (int64_t)below(3) - 1;
        f.conf.noise_rank = (int64_t)below(3) - 1;
        const bool any = draw_calibration(&text, &f.conf, want);
        fixture_write(&f, "noise.json", ms_buf_z(&text));
        ck_assert(cmp_is_calibration(path));
        fixture_open(&f);
        check_noise(&f, want);
        ck_assert_uint_eq(cmp_problems(f.c, &problems), !any);
        ms_buf_free(&text);
    }
    fixture_free(&f);
}
END_TEST

static const struct {
    const char *text, *why;
} broken[] = {
    {"{\"noise_floor\": 1, \"mode\": 3}", "expected a kind of dump"},
    {"{\"noise_floor\": 1, \"mode\": \"tensor\"}", "which says nothing about statistics"},
    {"{\"noise_floor\": 1, \"places\": {}}", "expected a list of places"},
    {"{\"noise_floor\": 1, \"places\": [3]}", "expected a place"},
    {"{\"noise_floor\": 1, \"places\": [{\"step\": \"a\"}]}", "expected a number or null"},
    {"{\"noise_floor\": 1, \"places\": [{\"rank\": 1.5}]}", "expected a whole number"},
    {"{\"noise_floor\": 1, \"places\": [{\"rows\": []}]}", "expected an object of rows"},
    {"{\"noise_floor\": 1, \"places\": [{\"rows\": {\"a\": null}}]}", "expected a number"},
    {"{\"noise_floor\": 1, \"places\": [{\"rows\": {\"a\": -0.5}}]}", "not below 0"},
    {"{\"noise_floor\": 1, \"places\": [{\"rows\": {\"a\": Infinity}}]}", "not below 0"},
    {"{\"noise_floor\": 1, \"places\": [{\"rows\": {\"a\": 1}", ""},
    {"{\"noise_floor\": 1, \"places\": [{\"x\": [1}]}", ""},
    {"{\"noise_floor\": 1, \"x\": [1}", ""},
    {"{\"noise_floor\": 1", ""},
};

START_TEST(a_broken_calibration_is_refused_with_the_reason)
{
    struct fixture f;
    char path[128];
    begin(&f);
    snprintf(path, sizeof path, "%s/noise.json", f.dir);
    f.conf.noise_floor = path;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        fixture_write(&f, "noise.json", broken[i].text);
        ck_assert(cmp_is_calibration(path));
        f.err = (struct ms_err){0};
        ck_assert_msg(cmp_open(&f.c, &f.conf, f.t, f.b, NULL, &f.err) != MS_OK, "%s",
                      broken[i].text);
        ck_assert_msg(strstr(f.err.msg, broken[i].why) != NULL && strstr(f.err.msg, path) != NULL,
                      "%s: %s", broken[i].text, f.err.msg);
        f.c = NULL;
    }
    fixture_free(&f);
}
END_TEST

START_TEST(a_calibration_is_told_by_its_first_key)
{
    static const char *const no[] = {
        "{}", "[\"noise_floor\"]",    "{\"mode\": 1, \"noise_floor\": 1}", "\"noise_floor\"",
        "",   "{\"noise_floors\": 1}"};
    struct fixture f;
    char path[128];
    begin(&f);
    snprintf(path, sizeof path, "%s/noise.json", f.dir);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        fixture_write(&f, "noise.json", no[i]);
        ck_assert_msg(!cmp_is_calibration(path), "%s", no[i]);
    }
    ck_assert(!cmp_is_calibration(f.dir) && !cmp_is_calibration("/nowhere/noise.json"));
    fixture_free(&f);
}
END_TEST

/* ---- a second run ----------------------------------------------------------------------------------- */

START_TEST(a_second_run_gives_each_row_its_distance)
{
    for (uint64_t seed = 1; seed < 30; seed++) {
        struct fixture f;
        char path[128];
        double shift[ROWS];
        begin(&f);
        state = seed;
        for (int i = 0; i < ROWS; i++)
            shift[i] = below(3) == 0 ? 0 : (double)below(1000) / 1000;
        write_side(&f, 'n', shift);
        snprintf(path, sizeof path, "%s/n/dump.json", f.dir);
        f.conf.noise_floor = path;
        ck_assert(!cmp_is_calibration(path));
        fixture_open(&f);
        check_noise(&f, shift); /* golden norms are 1: the distance of norms is the relative one */
        fixture_free(&f);
    }
}
END_TEST

TEST_MAIN("noise", a_calibration_gives_rows_of_its_step_and_rank_their_noise,
          a_broken_calibration_is_refused_with_the_reason, a_calibration_is_told_by_its_first_key,
          a_second_run_gives_each_row_its_distance)

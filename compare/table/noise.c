/* SPDX-License-Identifier: MIT
 *
 * noise: the noise floor, that is the distance between two runs of the golden side, row by
 * row. A difference of the target is significant only above the noise floor. The noise comes
 * from comparing a second run, or from a calibration (compare/check/calibrate.h), which
 * lists the noise of each row.
 */
#include "compare/measure/pattern.h"
#include "compare/pair/names.h"
#include "compare/table/comparison.h"

#include <math.h>

#define CALIBRATION_MAX ((size_t)1 << 30)
enum { RENEW_GROUPS = 256 };

/* ---- a calibration ------------------------------------------------------------ */

/* Tells a calibration by its first key, so that a large dump is not read. */
bool cmp_is_calibration(const char *path)
{
    struct ms_file f;
    struct ms_err why = {0};
    if (ms_path_kind(path) != MS_KIND_FILE || ms_file_map(&f, path, MS_JSON_MAX, &why) != MS_OK)
        return false;
    struct ms_jread r;
    ms_jread_init(&r, f.p, f.n, 0);
    bool is = ms_jread_next(&r) == MS_J_OBJ && ms_jread_next(&r) == MS_J_KEY &&
              ms_str_is(r.text, "noise_floor");
    ms_file_unmap(&f);
    return is;
}

struct reader {
    struct cmp_rows *c;
    struct cmp_measured *m;
    struct ms_jread r;
    struct cmp__names names; /* of the golden side */
    struct ms_buf text;
    size_t places, taken; /* places in the file, rows found */
};

static enum ms_rc expect_token(struct reader *rd, enum ms_jtok tok, enum ms_jtok wanted,
                               const char *what, struct ms_err *err)
{
    if (tok == MS_J_ERR)
        return ms_jread_fail(&rd->r, err);
    return tok == wanted ? MS_OK : ms_jread_reject(&rd->r, err, "expected %s", what);
}

/* Reads a whole number; null gives -1. */
static enum ms_rc read_number(struct reader *rd, int64_t *n, struct ms_err *err)
{
    enum ms_jtok tok = ms_jread_next(&rd->r);
    *n = -1;
    if (tok == MS_J_NULL)
        return MS_OK;
    MS_TRY(expect_token(rd, tok, MS_J_NUM, "a number or null", err));
    return ms_jread_i64(&rd->r, n) ? MS_OK
                                   : ms_jread_reject(&rd->r, err, "expected a whole number");
}

/* Reads one entry "row name": noise; keeps it when the entry belongs to our step and rank. */
static enum ms_rc read_row(struct reader *rd, bool ours, struct ms_err *err)
{
    struct ms_str name;
    double v;
    MS_TRY(ms_jread_text(&rd->r, &rd->text, &name, err));
    const struct cmp__named *found = ours ? cmp__names_find(&rd->names, name) : NULL;
    MS_TRY(expect_token(rd, ms_jread_next(&rd->r), MS_J_NUM, "a number", err));
    if (!ms_jread_f64(&rd->r, &v) || !isfinite(v) || v < 0)
        return ms_jread_reject(&rd->r, err, "a noise is a number that is not below 0");
    if (found == NULL)
        return MS_OK;
    rd->m->noise.p[found->row] = v;
    rd->taken++;
    return MS_OK;
}

static enum ms_rc read_rows(struct reader *rd, bool ours, struct ms_err *err)
{
    enum ms_jtok tok;
    MS_TRY(expect_token(rd, ms_jread_next(&rd->r), MS_J_OBJ, "an object of rows", err));
    while ((tok = ms_jread_next(&rd->r)) == MS_J_KEY)
        MS_TRY(read_row(rd, ours, err));
    return expect_token(rd, tok, MS_J_OBJ_END, "a row", err);
}

static bool is_ours(const struct reader *rd, int64_t step, int64_t rank)
{
    const struct cmp_conf *conf = &rd->c->set->conf;
    return (step == conf->noise_step || step < 0 || conf->noise_step < 0) &&
           (rank == conf->noise_rank || rank < 0 || conf->noise_rank < 0);
}

static enum ms_rc read_place(struct reader *rd, struct ms_err *err)
{
    int64_t step = -1, rank = -1;
    enum ms_jtok tok;
    rd->places++;
    while ((tok = ms_jread_next(&rd->r)) == MS_J_KEY) {
        if (ms_str_is(rd->r.text, "step"))
            MS_TRY(read_number(rd, &step, err));
        else if (ms_str_is(rd->r.text, "rank"))
            MS_TRY(read_number(rd, &rank, err));
        else if (ms_str_is(rd->r.text, "rows"))
            MS_TRY(read_rows(rd, is_ours(rd, step, rank), err));
        else if (ms_jread_skip(&rd->r, tok) == MS_J_ERR)
            return ms_jread_fail(&rd->r, err);
    }
    return expect_token(rd, tok, MS_J_OBJ_END, "the end of a place", err);
}

static enum ms_rc read_places(struct reader *rd, struct ms_err *err)
{
    enum ms_jtok tok;
    MS_TRY(expect_token(rd, ms_jread_next(&rd->r), MS_J_ARR, "a list of places", err));
    while ((tok = ms_jread_next(&rd->r)) == MS_J_OBJ)
        MS_TRY(read_place(rd, err));
    return expect_token(rd, tok, MS_J_ARR_END, "a place", err);
}

static enum ms_rc check_mode(struct reader *rd, struct ms_err *err)
{
    MS_TRY(expect_token(rd, ms_jread_next(&rd->r), MS_J_STR, "a kind of dump", err));
    const char *mode = probe_mode_text(rd->c->set->mode);
    if (ms_str_is(rd->r.text, mode))
        return MS_OK;
    return ms_fail(err, MS_E_ARG, "measured on dumps of %.*s, which says nothing about %s",
                   MS_STR_ARG(rd->r.text), mode);
}

static enum ms_rc read_file(struct reader *rd, struct ms_err *err)
{
    enum ms_jtok tok;
    MS_TRY(expect_token(rd, ms_jread_next(&rd->r), MS_J_OBJ, "an object", err));
    while ((tok = ms_jread_next(&rd->r)) == MS_J_KEY) {
        if (ms_str_is(rd->r.text, "mode"))
            MS_TRY(check_mode(rd, err));
        else if (ms_str_is(rd->r.text, "places"))
            MS_TRY(read_places(rd, err));
        else if (ms_jread_skip(&rd->r, tok) == MS_J_ERR)
            return ms_jread_fail(&rd->r, err);
    }
    return expect_token(rd, tok, MS_J_OBJ_END, "the end of the calibration", err);
}

/* Sorts the noise by row of the table; names were found by row of the dump. */
static enum ms_rc reorder_rows(const struct cmp_rows *c, struct cmp_measured *m, struct ms_err *err)
{
    size_t n = c->b.order.n;
    double *by_row = ms_calloc(n + 1, sizeof *by_row);
    if (by_row == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++)
        by_row[i] = m->noise.p[c->b.order.p[i]];
    memcpy(m->noise.p, by_row, n * sizeof *by_row);
    m->noise.n = n;
    ms_free(by_row);
    return MS_OK;
}

/* Allocates the noise of all rows, each not known yet. */
static enum ms_rc forget_noise(struct cmp_measured *m, size_t rows, struct ms_err *err)
{
    if (!ms_vec_reserve(&m->noise, rows + 1))
        return ms_no_memory(err);
    for (m->noise.n = 0; m->noise.n < rows; m->noise.n++)
        m->noise.p[m->noise.n] = NAN;
    return MS_OK;
}

static enum ms_rc read_all(struct reader *rd, const char *name, struct ms_str text,
                           struct ms_err *err)
{
    size_t rows = rd->c->b.dump->rows.n;
    MS_TRY(forget_noise(rd->m, rows, err));
    MS_TRY(cmp__names_list(&rd->names, rd->c->b.dump, false, err));
    ms_jread_init(&rd->r, text.p, text.n, 0);
    enum ms_rc rc = read_file(rd, err);
    if (rc != MS_OK)
        return ms_err_wrap(err, "%s", name), rc;
    if (rd->taken == 0)
        MS_TRY(cmp__problem(&rd->c->problems, err, "%s: none of its rows is one of the golden side",
                            name));
    return reorder_rows(rd->c, rd->m, err);
}

enum ms_rc cmp__parse_noise(struct cmp_rows *c, struct cmp_measured *m, const char *name,
                            struct ms_str text, struct ms_err *err)
{
    struct reader rd = {.c = c, .m = m, .text = {.max = 1 << 20}};
    enum ms_rc rc = read_all(&rd, name, text, err);
    cmp__names_free(&rd.names);
    ms_buf_free(&rd.text);
    return rc;
}

enum ms_rc cmp__read_noise(struct cmp_rows *c, struct cmp_measured *m, struct ms_err *err)
{
    struct ms_file f;
    const char *path = c->set->conf.noise_floor;
    MS_TRY(ms_file_map(&f, path, CALIBRATION_MAX, err));
    enum ms_rc rc = cmp__parse_noise(c, m, path, (struct ms_str){f.p, (uint32_t)f.n}, err);
    ms_file_unmap(&f);
    return rc;
}

/* ---- a second run -------------------------------------------------------------- */

double cmp__row_noise(const struct cmp *c, const struct cmp_row *row)
{
    struct cmp_pattern p = cmp__pattern(&c->rows, &c->measured, row);
    return c->set.mode == PROBE_MODE_TENSOR ? p.ext.rel_l2 : p.ext.rel_l2_bound;
}

static void note_row(struct cmp *c, const struct cmp *second, const struct cmp_row *row)
{
    uint32_t golden = second->rows.pairs.p[row->pair].b;
    if (!row->t.present || golden == MS_MAP_NONE)
        return;
    c->measured.noise.p[golden] = cmp__row_noise(second, row);
}

enum ms_rc cmp__noise_of_run(struct cmp *c, const struct cmp *second, struct ms_err *err)
{
    struct cmp_view v;
    MS_TRY(forget_noise(&c->measured, c->rows.b.order.n, err));
    MS_TRY(cmp_view_init(&v, err));
    enum ms_rc rc = MS_OK;
    for (size_t g = 0; g < cmp_groups(second) && rc == MS_OK; g++) {
        if (g % RENEW_GROUPS == 0)
            rc = cmp_view_renew(&v, err);
        if (rc == MS_OK)
            rc = cmp_view_group(second, g, &v, err);
        for (size_t i = 0; rc == MS_OK && i < v.rows.n; i++)
            note_row(c, second, &v.rows.p[i]);
    }
    cmp_view_free(&v);
    return rc;
}

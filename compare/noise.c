/* SPDX-License-Identifier: MIT
 *
 * noise: how far two runs of the golden side are apart, row by row, which is what a
 * difference of the target has to exceed to mean anything.
 */
#include "compare/cmp_int.h"
#include "compare/pattern.h"

#include <math.h>

enum { RENEW_GROUPS = 256 };

double cmp__row_noise(const struct cmp *c, const struct cmp_row *row)
{
    struct cmp_pattern p = cmp__pattern(c, row);
    return c->mode == PROBE_MODE_TENSOR ? p.ext.rel_l2 : p.ext.rel_l2_bound;
}

static void take_row(struct cmp *c, const struct cmp *second, const struct cmp_row *row)
{
    uint32_t golden = second->pairs.p[row->pair].b;
    if (!row->t.present || golden == MS_MAP_NONE)
        return;
    c->noise.p[golden] = cmp__row_noise(second, row);
}

static enum ms_rc take_rows(struct cmp *c, const struct cmp *second, struct ms_err *err)
{
    struct cmp_view v;
    MS_TRY(cmp_view_init(&v, err));
    enum ms_rc rc = MS_OK;
    for (size_t g = 0; g < cmp_groups(second) && rc == MS_OK; g++) {
        if (g % RENEW_GROUPS == 0)
            rc = cmp_view_renew(&v, err);
        if (rc == MS_OK)
            rc = cmp_view_group(second, g, &v, err);
        for (size_t i = 0; rc == MS_OK && i < v.rows.n; i++)
            take_row(c, second, &v.rows.p[i]);
    }
    cmp_view_free(&v);
    return rc;
}

static enum ms_rc check_second(const struct cmp *c, const struct cmp *second, struct ms_err *err)
{
    if (second->mode == c->mode)
        return MS_OK;
    return ms_fail(err, MS_E_ARG, "%s: the second run was not dumped like the golden side",
                   c->conf.noise_floor);
}

enum ms_rc cmp__take_noise(struct cmp *c, struct ms_pool *pool, struct ms_err *err)
{
    struct cmp_conf conf = {.summarise = c->conf.summarise};
    struct cmp *second;
    size_t rows = c->b.order.n;
    if (!ms_vec_reserve(&c->noise, rows + 1))
        return ms_no_memory(err);
    for (c->noise.n = 0; c->noise.n < rows; c->noise.n++)
        c->noise.p[c->noise.n] = NAN;
    if (cmp_is_calibration(c->conf.noise_floor))
        return cmp__read_noise(c, err);
    enum ms_rc rc = cmp_open(&second, &conf, c->conf.noise_floor, c->b.dump->path, pool, err);
    if (rc != MS_OK)
        return ms_err_wrap(err, "--noise_floor"), rc;
    rc = check_second(c, second, err);
    if (rc == MS_OK)
        rc = cmp_measure(second, pool, err);
    if (rc == MS_OK)
        rc = take_rows(c, second, err);
    cmp_close(second);
    return rc;
}

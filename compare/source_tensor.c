/* SPDX-License-Identifier: MIT
 *
 * source_tensor: what only the tensor files of a pair can tell.
 */
#include "compare/source_int.h"

#include <math.h>

enum { BLOCK = 4096 };
#define FILE_MAX ((size_t)10 << 30)

struct pair {
    struct probe_tensor t[2];
    void *room[2];
    double *x[2];
};

static enum ms_rc open_side(const struct probe_dump *d, const char *dir, uint32_t row,
                            struct probe_tensor *t, struct ms_err *err)
{
    struct probe_leaf leaf;
    probe_row_leaf(d, &d->rows.p[row], &leaf);
    return cmp__open_tensor(d, dir, leaf.data_name, t, err);
}

static void close_pair(struct pair *p)
{
    for (unsigned s = 0; s < 2; s++) {
        probe_tensor_close(&p->t[s]);
        ms_free(p->room[s]);
        ms_free(p->x[s]);
    }
}

static enum ms_rc make_room(struct pair *p, struct ms_err *err)
{
    for (unsigned s = 0; s < 2; s++) {
        p->room[s] = ms_alloc(BLOCK * ms_dtype_size(p->t[s].dtype));
        p->x[s] = ms_alloc(BLOCK * sizeof *p->x[s]);
        if (p->room[s] == NULL || p->x[s] == NULL)
            return ms_no_memory(err);
    }
    return MS_OK;
}

/* Elements from `at` on as doubles; how many. */
static size_t load(struct pair *p, uint64_t at)
{
    uint64_t left = p->t[0].count - at;
    size_t n = left < BLOCK ? (size_t)left : BLOCK;
    for (unsigned s = 0; s < 2; s++) {
        const void *raw = probe_tensor_elements(&p->t[s], at, n, p->room[s]);
        ms_dtype_to_f64(p->t[s].dtype, raw, n, p->x[s]);
    }
    return n;
}

struct sums {
    double dd, dd_nz, gg;
    uint64_t unequal, masks;
};

static void add(struct sums *a, const double *g, const double *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool fg = isfinite(g[i]), ft = isfinite(t[i]);
        a->unequal += g[i] != t[i] && !(isnan(g[i]) && isnan(t[i]));
        a->masks += fg != ft;
        if (!fg || !ft)
            continue;
        double d = t[i] - g[i];
        a->dd += d * d;
        a->gg += g[i] * g[i];
        if ((g[i] != 0) == (t[i] != 0))
            a->dd_nz += d * d;
    }
}

static double relative(double dd, double gg)
{
    return dd == 0 ? 0 : gg > 0 ? sqrt(dd / gg) : 1;
}

static enum ms_rc measure(struct pair *p, struct source__facts *f, struct ms_err *err)
{
    struct sums a = {0};
    if (!cmp__same_shape(&p->t[0], &p->t[1]) || p->t[0].count != p->t[1].count ||
        p->t[0].count == 0)
        return MS_OK;
    MS_TRY(make_room(p, err));
    for (uint64_t at = 0; at < p->t[0].count; at += BLOCK) {
        size_t n = load(p, at);
        add(&a, p->x[0], p->x[1], n);
    }
    bool real = ms_dtype_kind(p->t[0].dtype) >= MS_DTK_FLOAT;
    f->e = real ? relative(a.dd, a.gg) : sqrt((double)a.unequal / (double)p->t[0].count);
    f->e_nz = real ? relative(a.dd_nz, a.gg) : f->e;
    f->flagged = a.masks != 0;
    f->measured = true;
    return MS_OK;
}

enum ms_rc source__look(const struct cmp *c, uint32_t golden_row, uint32_t target_row,
                        struct source__facts *facts, struct ms_err *err)
{
    struct pair p = {0};
    struct ms_err why = {0};
    *facts = (struct source__facts){0};
    enum ms_rc rc = open_side(c->b.dump, c->b_dir, golden_row, &p.t[0], &why);
    if (rc == MS_OK)
        rc = open_side(c->t.dump, c->t_dir, target_row, &p.t[1], &why);
    if (rc == MS_OK)
        rc = measure(&p, facts, err);
    else if (rc != MS_E_NOMEM)
        rc = MS_OK; /* the statistics have to do; measuring has told of the file */
    else
        ms_no_memory(err);
    close_pair(&p);
    return rc;
}

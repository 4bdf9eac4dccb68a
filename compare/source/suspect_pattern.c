/* SPDX-License-Identifier: MIT
 *
 * suspect_pattern: recognizes the pattern of a suspect's difference.
 *
 * Statistics show scaling, sign, shift, clipping and equal sets of values. The tensor
 * files of the first suspects are read once more; they also show which elements
 * differ and how many bits of the values are left.
 */
#include "compare/measure/tensor_file.h"
#include "compare/observe/node_facts.h"
#include "compare/source/suspect.h"
#include "compare/table/comparison.h"

#include <math.h>

enum { BLOCK = 4096, LOOKED_AT = 3 };
#define ELEMENTS_MAX ((uint64_t)1 << 26)

/* ---- patterns of statistics ---------------------------------------------- */

static void describe_scale(struct ms_buf *b, double c)
{
    double near = c < 1 ? 1 / c : c, whole = round(near);
    bool nice = fabs(near - whole) < 2e-3 * near && whole >= 2 && whole <= 4096;
    if (nice && c < 1)
        ms_buf_printf(b, "scaled by 1/%.0f", whole);
    else if (nice)
        ms_buf_printf(b, "scaled by %.0f", whole);
    else
        ms_buf_printf(b, "scaled by %.4g", c);
}

static bool describe_figures(const struct observe__leaf *l, struct ms_buf *b)
{
    if ((l->flags & OBSERVE__COARSE) && l->e < 0.02F)
        ms_buf_puts(b, "hidden down-cast");
    else if (l->flags & OBSERVE__OPPOSITE && fabs(l->scale + 1) < 0.02)
        ms_buf_puts(b, "sign flipped");
    else if (l->flags & OBSERVE__OPPOSITE)
        ms_buf_printf(b, "scaled by %.4g", (double)l->scale);
    else if (!isnan(l->scale) && fabs(l->scale - 1) > 1e-6)
        describe_scale(b, l->scale);
    else if (l->flags & OBSERVE__SAME_SET)
        ms_buf_puts(b, "transposed or permuted: the same values at other places");
    else if (l->flags & OBSERVE__CLIPPED)
        ms_buf_puts(b, "saturated: clipped at its maximum");
    else if (l->flags & OBSERVE__SHIFTED)
        ms_buf_puts(b, "constant offset");
    else
        return false;
    return true;
}

/* ---- patterns of operators ----------------------------------------------- */

static bool ends_with_eps(const struct observe__part *p, const struct source__raw *r)
{
    struct ms_str path = p->paths.p[p->leaves.p[r->leaf].path];
    const struct observe__value_texts *texts = p->leaves.p[r->leaf].texts != OBSERVE__NONE
                                                   ? &p->texts.p[p->leaves.p[r->leaf].texts]
                                                   : NULL;
    bool small = texts != NULL && texts->text[0].p != NULL &&
                 (ms_str_find_str(texts->text[0], MS_STR("e-")) >= 0 ||
                  ms_str_starts(texts->text[0], MS_STR("0.0")));
    return ms_str_ends(path, MS_STR("eps")) || small;
}

static const char *name_of_op(const struct observe__part *p, const struct source__raw *r)
{
    unsigned op = p->ops.p[p->nodes.p[r->node].op].flags;
    bool scalar = r->why == CMP_WHY_SCALAR, missing = r->why == CMP_WHY_MISSING;
    if (missing && (op & OBSERVE__MASKS))
        return "mask missing";
    if (missing && (op & OBSERVE__ADDS))
        return "residual or bias missing";
    if (scalar && (op & OBSERVE__NORMS) && ends_with_eps(p, r))
        return "eps differs";
    if ((scalar || r->why == CMP_WHY_EXTRA) && (op & OBSERVE__DROPS))
        return "dropout active";
    return NULL;
}

/* ---- patterns of elements ------------------------------------------------ */

struct elements {
    struct probe_tensor t[2];
    void *room[2];
    double *x[2];
};

struct marks {
    uint64_t n, differ, first, last;  /* positions that differ */
    uint64_t zeroed;                  /* zero on the target alone */
    bool exact_low, exact_half;       /* bf16 or fp16 can represent all target values so far */
    uint64_t golden_low, golden_half; /* number of golden values that they can represent */
    double sum_d, sum_dd;
    double max, golden_max;
    uint64_t at_max; /* number of target values equal to its maximum */
};

static enum ms_rc open_elements(struct elements *e, const struct probe_dump *const d[2],
                                const struct observe__leaf *l, struct ms_err *err)
{
    for (unsigned s = 0; s < 2; s++) {
        struct probe_leaf leaf;
        char *dir = ms_str_dup(ms_path_dir(d[s]->path));
        char *data = dir != NULL ? ms_path_join(dir, "dump_tensor_data") : NULL;
        ms_free(dir);
        if (data == NULL)
            return ms_no_memory(err);
        probe_row_leaf(d[s], &d[s]->rows.p[l->row[s]], &leaf);
        enum ms_rc rc = cmp__open_tensor(d[s], data, leaf.data_name, &e->t[s], err);
        ms_free(data);
        MS_TRY(rc);
        e->room[s] = ms_alloc(BLOCK * ms_dtype_size(e->t[s].dtype) + 1);
        e->x[s] = ms_alloc(BLOCK * sizeof *e->x[s]);
        if (e->room[s] == NULL || e->x[s] == NULL)
            return ms_no_memory(err);
    }
    return MS_OK;
}

static void close_elements(struct elements *e)
{
    for (unsigned s = 0; s < 2; s++) {
        probe_tensor_close(&e->t[s]);
        ms_free(e->room[s]);
        ms_free(e->x[s]);
    }
}

static bool fits_type(enum ms_dtype t, double x)
{
    return ms_dtype_round(t, x) == x;
}

/* Counts values that bf16 and fp16 can represent, until a target value has more digits. */
static void mark_digits(struct marks *m, double g, double t)
{
    m->exact_low = m->exact_low && fits_type(MS_DT_BF16, t);
    m->exact_half = m->exact_half && fits_type(MS_DT_F16, t);
    m->golden_low += m->exact_low && fits_type(MS_DT_BF16, g);
    m->golden_half += m->exact_half && fits_type(MS_DT_F16, g);
}

static void mark_element(struct marks *m, uint64_t at, double g, double t)
{
    double d = t - g;
    bool differs = t != g && !(isnan(t) && isnan(g));
    if (differs) {
        m->first = m->differ == 0 ? at : m->first;
        m->last = at;
        m->differ++;
    }
    m->zeroed += t == 0 && g != 0;
    if (m->exact_low || m->exact_half)
        mark_digits(m, g, t);
    m->sum_d += d;
    m->sum_dd += d * d;
    m->golden_max = g > m->golden_max ? g : m->golden_max;
    if (t > m->max) {
        m->max = t;
        m->at_max = 0;
    }
    m->at_max += t == m->max;
    m->n++;
}

static void mark_elements(struct elements *e, struct marks *m)
{
    bool single = e->t[1].dtype == MS_DT_F32 && e->t[1].count > 16;
    *m = (struct marks){
        .max = -HUGE_VAL, .golden_max = -HUGE_VAL, .exact_low = single, .exact_half = single};
    for (uint64_t at = 0; at < e->t[0].count; at += BLOCK) {
        uint64_t left = e->t[0].count - at;
        size_t n = left < BLOCK ? (size_t)left : BLOCK;
        for (unsigned s = 0; s < 2; s++)
            ms_dtype_to_f64(e->t[s].dtype, probe_tensor_elements(&e->t[s], at, n, e->room[s]), n,
                            e->x[s]);
        for (size_t i = 0; i < n; i++)
            mark_element(m, at + i, e->x[0][i], e->x[1][i]);
    }
}

/* The dimension along which all differences lie in one range, and that range. */
struct slice {
    unsigned axis;
    uint64_t from, to;
};

static bool find_slice(struct elements *e, const struct marks *m, struct slice *out)
{
    const struct probe_tensor *t = &e->t[0];
    for (unsigned axis = t->ndim; axis-- > 0;) {
        uint64_t inner = 1, len = t->shape[axis], from = UINT64_MAX, to = 0;
        for (unsigned k = axis + 1; k < t->ndim; k++)
            inner *= t->shape[k];
        for (uint64_t at = m->first - m->first % BLOCK; at <= m->last; at += BLOCK) {
            uint64_t left = t->count - at;
            size_t n = left < BLOCK ? (size_t)left : BLOCK;
            for (unsigned s = 0; s < 2; s++)
                ms_dtype_to_f64(e->t[s].dtype, probe_tensor_elements(&e->t[s], at, n, e->room[s]),
                                n, e->x[s]);
            for (size_t i = 0; i < n; i++) {
                uint64_t place = (at + i) / inner % len;
                if (e->x[0][i] == e->x[1][i])
                    continue;
                from = place < from ? place : from;
                to = place > to ? place : to;
            }
        }
        bool part = from <= to && 4 * (to - from + 1) <= 3 * len;
        bool full = part && 5 * m->differ >= 4 * (t->count / len) * (to - from + 1);
        *out = (struct slice){axis, from, to};
        if (full && len > 1)
            return true;
    }
    return false;
}

static bool describe_elements(struct elements *e, struct ms_buf *b)
{
    struct marks m;
    struct slice s;
    mark_elements(e, &m);
    double n = (double)m.n;
    if (m.differ == 0 || m.n < 2)
        return false;
    if (m.exact_low && 2 * m.golden_low < m.n)
        ms_buf_puts(b, "hidden down-cast to bfloat16");
    else if (m.exact_half && 2 * m.golden_half < m.n)
        ms_buf_puts(b, "hidden down-cast to float16");
    else if (m.differ == 1)
        ms_buf_printf(b, "one element: number %llu of %llu", (unsigned long long)m.first,
                      (unsigned long long)m.n);
    else if (m.at_max > 1 && m.max < 0.98 * m.golden_max)
        ms_buf_printf(b, "saturated: %llu elements at %.4g", (unsigned long long)m.at_max, m.max);
    else if (find_slice(e, &m, &s))
        ms_buf_printf(b, "one shard: %llu to %llu of axis %u", (unsigned long long)s.from,
                      (unsigned long long)s.to, s.axis);
    else if (m.sum_d * m.sum_d > 0.98 * n * m.sum_dd)
        ms_buf_printf(b, "constant offset of %.3g", m.sum_d / n);
    else if (m.zeroed > m.n / 50 && m.zeroed < m.n / 2)
        ms_buf_printf(b, "dropout active: %.0f %% of the elements are zero here alone",
                      100 * (double)m.zeroed / n);
    else
        return false;
    return true;
}

static bool describe_files(const struct observe__part *p, const struct observe__leaf *l,
                           struct ms_buf *b)
{
    struct probe_dump *d[2] = {NULL, NULL};
    struct elements e = {0};
    struct ms_err why = {0};
    bool found = false;
    enum ms_rc rc = MS_OK;
    for (unsigned s = 0; s < 2 && rc == MS_OK; s++)
        rc = probe_dump_open(&d[s], p->path[s], 0, NULL, &why);
    const struct probe_dump *const dumps[2] = {d[0], d[1]};
    bool there = rc == MS_OK && l->row[0] < d[0]->rows.n && l->row[1] < d[1]->rows.n;
    if (there && open_elements(&e, dumps, l, &why) == MS_OK && cmp__same_shape(&e.t[0], &e.t[1]) &&
        e.t[0].count <= ELEMENTS_MAX)
        found = describe_elements(&e, b);
    close_elements(&e);
    for (unsigned s = 0; s < 2; s++)
        probe_dump_close(d[s]);
    return found;
}

/* ---- search -------------------------------------------------------------- */

/* Returns the output with the largest difference; for a root, the leaf itself. */
static uint32_t leaf_of(const struct observe__part *p, const struct source__raw *r)
{
    const struct observe__node *n = &p->nodes.p[r->node];
    uint32_t best = OBSERVE__NONE;
    if (r->why == CMP_WHY_PARAMETER || r->why == CMP_WHY_INPUT)
        return r->leaf;
    for (uint32_t i = n->leaf; i < n->leaf + n->nleaf; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        bool out = (l->flags & OBSERVE__IS_OUT) && (l->flags & OBSERVE__MEASURED);
        if (out && (best == OBSERVE__NONE || l->e > p->leaves.p[best].e))
            best = i;
    }
    return best;
}

bool source__find_pattern(const struct observe__part *p, const struct source__raw *r,
                          uint32_t place, struct ms_buf *b)
{
    const char *name = name_of_op(p, r);
    uint32_t leaf = leaf_of(p, r);
    if (name != NULL) {
        ms_buf_puts(b, name);
        return true;
    }
    bool figures = r->cls == SOURCE__NUM && leaf != OBSERVE__NONE && p->mode != PROBE_MODE_MD5;
    if (!figures || r->why == CMP_WHY_FLAG || r->why >= CMP_WHY_WIRING)
        return false;
    const struct observe__leaf *l = &p->leaves.p[leaf];
    bool whole = l->row[0] != OBSERVE__NONE && l->row[1] != OBSERVE__NONE;
    if (p->mode == PROBE_MODE_TENSOR && place <= LOOKED_AT && whole &&
        !(l->flags & OBSERVE__SAME_SET) && isnan(l->scale) && describe_files(p, l, b))
        return true;
    return describe_figures(l, b);
}

/* SPDX-License-Identifier: MIT
 *
 * fold: several rows of one engine that correspond to one row of the other.
 *
 * Folded rows are parts of one matrix: parameters are stacked on top of each other, outputs
 * are placed side by side, and inputs are the same tensor. The official tool lists the means
 * and norms of the parts as text; here they are those of the whole.
 */
#include "compare/measure/fold.h"
#include "compare/measure/tensor_file.h"

#include "probe/base/num.h"

#include <math.h>

enum { PARTS_MAX = 64 };

const struct cmp__fold *cmp__folds_of(const struct cmp_rows *c, uint32_t pair, size_t *n)
{
    size_t from = 0, to = c->folds.n;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (c->folds.p[mid].pair < pair)
            from = mid + 1;
        else
            to = mid;
    }
    for (*n = 0; from + *n < c->folds.n && c->folds.p[from + *n].pair == pair; ++*n)
        ;
    return *n != 0 ? &c->folds.p[from] : NULL;
}

/* ---- cells ------------------------------------------------------------- */

static enum ms_rc join_text(struct cmp_view *v, struct ms_str *into, struct ms_str more,
                            const char *between, struct ms_err *err)
{
    ms_buf_str(&v->scratch, *into);
    ms_buf_puts(&v->scratch, between);
    ms_buf_str(&v->scratch, more);
    return cmp__keep(v, into, err);
}

static bool is_float(const struct cmp_value *x)
{
    return x->kind >= CMP_VALUE_NUMBER && x->kind <= CMP_VALUE_NINF;
}

static double float_of(const struct cmp_value *x)
{
    return x->kind == CMP_VALUE_NAN ? (double)NAN : x->v;
}

/* Takes the larger value, or the smaller with sign -1. NaN wins; by the official rules only a NaN
 * of the first part wins, because the other parts are compared with the first. */
static void take_extreme(const struct cmp_rows *c, struct cmp_value *into,
                         const struct cmp_value *more, int sign)
{
    bool nan = more->kind == CMP_VALUE_NAN && !c->set->conf.rules->folds_text;
    if (!is_float(more) || into->kind == CMP_VALUE_NAN)
        return;
    if (!is_float(into) || nan || sign * float_of(more) > sign * float_of(into))
        *into = *more;
}

static enum ms_rc set_number(struct cmp_view *v, struct cmp_value *x, double value,
                             struct ms_err *err)
{
    char text[MS_NUM_MAX];
    *x = (struct cmp_value){.kind = CMP_VALUE_NUMBER, .v = value};
    if (isnan(value)) {
        x->kind = CMP_VALUE_NAN;
        x->text = MS_STR("Nan");
        return MS_OK;
    }
    if (isinf(value)) {
        x->kind = value > 0 ? CMP_VALUE_INF : CMP_VALUE_NINF;
        x->text = value > 0 ? MS_STR("inf") : MS_STR("-inf");
        return MS_OK;
    }
    ms_buf_put(&v->scratch, text, ms_num_f64(text, value));
    return cmp__keep(v, &x->text, err);
}

/* An overflow only yields a wrong count, which does no harm. */
uint64_t cmp__shape_count(struct ms_str shape)
{
    uint64_t all = 1, one = 0;
    bool digits = false;
    for (uint32_t i = 0; i <= shape.n; i++) {
        bool digit = i < shape.n && shape.p[i] >= '0' && shape.p[i] <= '9';
        if (digit)
            one = 10 * one + (uint64_t)(shape.p[i] - '0');
        else if (digits)
            all *= one, one = 0;
        digits = digit;
    }
    return all;
}

/* Mean and norm of all parts together; means are weighted by numbers of elements. */
struct whole {
    double count, sum, squares;
    bool known;
};

static void add_part(struct whole *w, const struct cmp_item *part)
{
    const struct cmp_value *mean = &part->stat[PROBE_STAT_MEAN],
                           *norm = &part->stat[PROBE_STAT_NORM];
    double n = (double)cmp__shape_count(part->shape), x = float_of(norm);
    w->known = w->known && is_float(mean) && is_float(norm);
    w->count += n;
    w->sum += n * float_of(mean);
    w->squares += x * x;
}

/* Writes into v->scratch the shape of the whole: grows the axis along which the parts are
 * concatenated, which is the first axis of parameters and the last of outputs; axes of length 1 do
 * not count. Returns false when there is no such axis. */
static bool grow_shape(struct cmp_view *v, struct ms_str *shape, struct ms_str more,
                       bool first_axis)
{
    uint32_t at = 0, end = 0;
    for (uint32_t i = 0; i < shape->n;) {
        uint32_t to = i;
        while (to < shape->n && shape->p[to] >= '0' && shape->p[to] <= '9')
            to++;
        bool axis = to > i && !(to == i + 1 && shape->p[i] == '1');
        if (axis && (end == 0 || !first_axis))
            at = i, end = to;
        i = to > i ? to : i + 1;
    }
    uint64_t mine = 0, all = 0;
    double rest = (double)cmp__shape_count(*shape);
    if (end == 0 || !ms_str_u64(ms_str_sub(*shape, at, end), &mine) || mine == 0)
        return false;
    all = mine + (uint64_t)((double)cmp__shape_count(more) / (rest / (double)mine));
    ms_buf_str(&v->scratch, ms_str_sub(*shape, 0, at));
    ms_buf_printf(&v->scratch, "%llu", (unsigned long long)all);
    ms_buf_str(&v->scratch, ms_str_sub(*shape, end, shape->n));
    return true;
}

static enum ms_rc fold_shape(struct cmp_view *v, struct cmp_item *item, const struct cmp_item *more,
                             struct ms_err *err)
{
    bool parameters = item->section == PROBE_SEC_PARAMETERS || item->section == PROBE_SEC_PGRAD;
    if (grow_shape(v, &item->shape, more->shape, parameters))
        return cmp__keep(v, &item->shape, err);
    ms_buf_clear(&v->scratch);
    return MS_OK;
}

static bool is_input(const struct cmp_item *item)
{
    return item->section == PROBE_SEC_INPUT_ARGS || item->section == PROBE_SEC_INPUT_KWARGS ||
           item->section == PROBE_SEC_INPUT;
}

/* Appends a part as the official tool lists it, as text separated by semicolons. */
static enum ms_rc fold_as_text(struct cmp_view *v, struct cmp_item *item,
                               const struct cmp_item *more, struct ms_err *err)
{
    MS_TRY(join_text(v, &item->dtype, more->dtype, ";", err));
    MS_TRY(join_text(v, &item->shape, more->shape, ";", err));
    for (unsigned i = PROBE_STAT_MEAN; i <= PROBE_STAT_NORM; i++) {
        struct cmp_value *x = &item->stat[i];
        struct ms_str nan = MS_STR("nan");
        if (x->kind == CMP_VALUE_NAN)
            x->text = nan;
        MS_TRY(join_text(v, &x->text,
                         more->stat[i].kind == CMP_VALUE_NAN ? nan : more->stat[i].text, ";", err));
        x->kind = CMP_VALUE_TEXT;
    }
    item->type = MS_DT_NONE;
    return MS_OK;
}

static enum ms_rc fold_one(const struct cmp_rows *c, struct cmp_view *v, struct cmp_item *item,
                           const struct cmp_item *more, struct ms_err *err)
{
    MS_TRY(join_text(v, &item->name, more->name, c->set->conf.fold_lines ? ";\n" : ";  ", err));
    MS_TRY(join_text(v, &item->data_name, more->data_name, ";", err));
    if (!c->set->conf.rules->folds_text && is_input(item))
        return MS_OK;
    if (c->set->mode == PROBE_MODE_MD5)
        MS_TRY(join_text(v, &item->md5, more->md5, CMP__PARTS, err));
    take_extreme(c, &item->stat[PROBE_STAT_MAX], &more->stat[PROBE_STAT_MAX], 1);
    take_extreme(c, &item->stat[PROBE_STAT_MIN], &more->stat[PROBE_STAT_MIN], -1);
    if (c->set->conf.rules->folds_text)
        return fold_as_text(v, item, more, err);
    if (!ms_str_eq(item->dtype, more->dtype)) {
        MS_TRY(join_text(v, &item->dtype, more->dtype, ";", err));
        item->type = MS_DT_NONE;
    }
    return fold_shape(v, item, more, err);
}

void cmp__lose_digests(struct cmp_row *row)
{
    struct ms_str lost = row->b.present ? MS_STR("") : MS_STR("N/A");
    row->t.md5 = row->b.md5 = lost;
}

bool cmp__is_joined(struct ms_str digest)
{
    return ms_str_find_str(digest, MS_STR(CMP__PARTS)) >= 0;
}

enum ms_rc cmp__fold_item(const struct cmp_rows *c, struct cmp_view *v, uint32_t pair,
                          struct cmp_item *item, struct ms_err *err)
{
    size_t n;
    const struct cmp__fold *f = cmp__folds_of(c, pair, &n);
    const struct cmp__side *s = cmp__folds_target(c->set) ? &c->t : &c->b;
    struct whole w = {.known = true};
    if (n == 0)
        return MS_OK;
    add_part(&w, item);
    for (size_t i = 0; i < n; i++) {
        struct cmp_item more;
        MS_TRY(cmp__item_make(s, f[i].row, c->set->mode, v, &more, err));
        add_part(&w, &more);
        MS_TRY(fold_one(c, v, item, &more, err));
    }
    if (c->set->conf.rules->folds_text || is_input(item) || !w.known)
        return MS_OK;
    MS_TRY(set_number(v, &item->stat[PROBE_STAT_MEAN], w.sum / w.count, err));
    return set_number(v, &item->stat[PROBE_STAT_NORM], sqrt(w.squares), err);
}

/* ---- shapes -------------------------------------------------------------- */

/* Lists the lengths of a shape's axes, at most `room`, without those of length 1. */
static size_t axes_of(struct ms_str shape, uint64_t *axis, size_t room)
{
    size_t n = 0;
    for (uint32_t i = 0; i < shape.n;) {
        uint32_t to = i;
        uint64_t x = 1;
        while (to < shape.n && shape.p[to] >= '0' && shape.p[to] <= '9')
            to++;
        if (to > i && ms_str_u64(ms_str_sub(shape, i, to), &x) && x != 1 && n < room)
            axis[n++] = x;
        i = to > i ? to : i + 1;
    }
    return n;
}

bool cmp__consistent_shapes(const struct cmp_setup *set, const struct cmp_row *row)
{
    uint64_t t[PROBE_MAX_DIMS], b[PROBE_MAX_DIMS];
    bool fused = ms_str_find_str(row->b.name, MS_STR("qkv")) >= 0 ||
                 ms_str_find_str(row->b.name, MS_STR("gate_up")) >= 0;
    if (set->conf.rules->fused_shapes_agree && cmp__folds_target(set) && fused)
        return true;
    size_t nt = axes_of(row->t.shape, t, PROBE_MAX_DIMS),
           nb = axes_of(row->b.shape, b, PROBE_MAX_DIMS);
    /* the golden side has the number of heads and their width in one axis */
    if (!cmp__folds_target(set) && nt == 3 && nb != 3) {
        t[1] *= t[2];
        nt = 2;
    }
    return nt == nb && memcmp(t, b, nt * sizeof *t) == 0;
}

/* ---- tensors ---------------------------------------------------------------- */

struct parts {
    const struct cmp_rows *c;
    struct probe_tensor t[PARTS_MAX], one;
    size_t n;
    unsigned section;
    void *scratch[2];
    struct cmp_facts *facts;
    uint64_t *bytes;
};

static enum ms_rc open_part(struct parts *p, bool target, uint32_t row, struct probe_tensor *t,
                            struct ms_err *err)
{
    const struct cmp__side *s = target ? &p->c->t : &p->c->b;
    return cmp__open_tensor(s->dump, target ? p->c->t_dir : p->c->b_dir, cmp__data_name(s, row), t,
                            err);
}

static bool is_stacked(const struct parts *p)
{
    return p->section == PROBE_SEC_PARAMETERS || p->section == PROBE_SEC_PGRAD;
}

static enum ms_rc open_parts(struct parts *p, uint32_t pair, struct ms_err *err)
{
    size_t more;
    bool target = cmp__folds_target(p->c->set);
    const struct cmp__pair *x = &p->c->pairs.p[pair];
    const struct cmp__fold *f = cmp__folds_of(p->c, pair, &more);
    p->section = cmp__side_row(target ? &p->c->t : &p->c->b, target ? x->t : x->b)->section;
    if (p->section != PROBE_SEC_OUTPUT && !is_stacked(p))
        more = 0; /* the inputs of all parts are the same tensor */
    if (more >= PARTS_MAX)
        return ms_fail(err, MS_E_LIMIT, "more than %d tensors are one of the other side",
                       PARTS_MAX);
    MS_TRY(open_part(p, !target, target ? x->b : x->t, &p->one, err));
    MS_TRY(open_part(p, target, target ? x->t : x->b, &p->t[0], err));
    p->n = 1;
    for (size_t i = 0; i < more; i++) {
        MS_TRY(open_part(p, target, f[i].row, &p->t[p->n], err));
        p->n++;
    }
    return MS_OK;
}

static void close_parts(struct parts *p)
{
    for (size_t i = 0; i < p->n; i++)
        probe_tensor_close(&p->t[i]);
    probe_tensor_close(&p->one);
    ms_free(p->scratch[0]);
    ms_free(p->scratch[1]);
}

/* Compares n elements of a part with those of the whole. */
static void add_stretch(struct parts *p, const struct probe_tensor *part, uint64_t from,
                        uint64_t at, uint64_t n)
{
    for (uint64_t step; n > 0; n -= step, from += step, at += step) {
        step = n < CMP_METRIC_BLOCK ? n : CMP_METRIC_BLOCK;
        const void *x = probe_tensor_elements(part, from, step, p->scratch[0]);
        const void *y = probe_tensor_elements(&p->one, at, step, p->scratch[1]);
        bool target = cmp__folds_target(p->c->set);
        cmp_facts_add(p->facts, target ? part->dtype : p->one.dtype, target ? x : y,
                      target ? p->one.dtype : part->dtype, target ? y : x, (size_t)step,
                      p->c->set->conf.ext);
        *p->bytes += step * (ms_dtype_size(part->dtype) + ms_dtype_size(p->one.dtype));
    }
}

static uint64_t last_axis(const struct probe_tensor *t)
{
    for (uint32_t i = t->ndim; i-- > 0;) {
        if (t->shape[i] != 1)
            return t->shape[i];
    }
    return 1;
}

/* Tells whether the parts make up the whole: side by side, row for row, or with `stacked` on top of
 * each other. */
static bool fits(const struct parts *p, bool stacked, uint64_t *rows)
{
    uint64_t width = last_axis(&p->one), sum = 0, count = 0;
    *rows = width != 0 ? p->one.count / width : 0;
    for (size_t i = 0; i < p->n; i++) {
        uint64_t w = last_axis(&p->t[i]);
        sum += w;
        count += p->t[i].count;
        if (p->t[i].dtype != p->t[0].dtype || w == 0 ||
            (stacked ? w != width : p->t[i].count / w != *rows))
            return false;
    }
    return count == p->one.count && (stacked || sum == width);
}

static void add_rows(struct parts *p, uint64_t rows)
{
    uint64_t at = 0;
    for (uint64_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < p->n; i++) {
            uint64_t w = last_axis(&p->t[i]);
            add_stretch(p, &p->t[i], r * w, at, w);
            at += w;
        }
    }
}

static void add_stack(struct parts *p)
{
    uint64_t at = 0;
    for (size_t i = 0; i < p->n; i++) {
        add_stretch(p, &p->t[i], 0, at, p->t[i].count);
        at += p->t[i].count;
    }
}

static enum cmp_state measure_parts(struct parts *p)
{
    bool stacked = is_stacked(p);
    uint64_t rows = 0;
    if (p->one.count == 0 || p->t[0].count == 0)
        return CMP_STATE_EMPTY;
    if (p->n == 1 && !cmp__same_shape(&p->t[0], &p->one))
        return CMP_STATE_SHAPE;
    if (p->n > 1 && !fits(p, stacked, &rows))
        return CMP_STATE_SHAPE;
    for (int i = 0; i < 2; i++) {
        p->scratch[i] = ms_alloc(CMP_METRIC_BLOCK * sizeof(double) * 2);
        if (p->scratch[i] == NULL)
            return CMP_STATE_UNREADABLE;
    }
    if (stacked || p->n == 1)
        add_stack(p);
    else
        add_rows(p, rows);
    return CMP_STATE_OK;
}

/* Tells whether the official tool joins the files of the parts. If no data name contains one of
 * these words, the official tool looks for a single file named after all parts. */
static bool is_joined_there(const struct cmp_rows *c, uint32_t pair)
{
    size_t n;
    bool target = cmp__folds_target(c->set);
    const struct cmp__side *s = target ? &c->t : &c->b;
    const struct cmp__pair *x = &c->pairs.p[pair];
    const struct cmp__fold *f = cmp__folds_of(c, pair, &n);
    const char *words[] = {target ? ".q_proj." : ".gate_up_proj.",
                           target ? ".gate_proj." : ".gate_up_proj."};
    for (size_t i = 0; i <= n; i++) {
        uint32_t row = i < n ? f[i].row : target ? x->t : x->b;
        struct ms_str name = cmp__data_name(s, row);
        if (ms_str_find_str(name, ms_str_of(words[0])) >= 0 ||
            ms_str_find_str(name, ms_str_of(words[1])) >= 0)
            return true;
    }
    return false;
}

enum cmp_state cmp__fold_facts(const struct cmp_rows *c, uint32_t pair, struct cmp_facts *facts,
                               uint64_t *bytes, struct ms_err *why)
{
    struct parts *p = NULL;
    if (c->set->conf.rules->folds_named_files && !is_joined_there(c, pair)) {
        (void)ms_fail(why, MS_E_NOTFOUND, "the official tool does not join these files");
        return CMP_STATE_UNREADABLE;
    }
    p = ms_calloc(1, sizeof *p);
    if (p == NULL) {
        (void)ms_no_memory(why);
        return CMP_STATE_UNREADABLE;
    }
    p->c = c;
    p->facts = facts;
    p->bytes = bytes;
    enum cmp_state state = CMP_STATE_UNREADABLE;
    if (open_parts(p, pair, why) == MS_OK)
        state = measure_parts(p);
    close_parts(p);
    ms_free(p);
    return state;
}

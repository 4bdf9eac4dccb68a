/* SPDX-License-Identifier: MIT
 *
 * module_match: matches the modules that own parameters.
 *
 * These modules come in the same order on both sides, whatever modules are around
 * them. Their shapes, outputs and names differ enough for a monotone matching to
 * place whole layers. Some modules are split differently: k consecutive siblings
 * whose sizes add up to one module of the other side (q, k, v and qkv) match it
 * together. Otherwise one of them would take the next module of the same shape, and
 * the rest of the layer would slide by one.
 */
#include "compare/align/module_match.h"
#include "probe/base/assert.h"
#include "probe/base/order.h"

#include <math.h>
#include <stdlib.h>

enum { MERGE = 4, PARAMS_LOOK = 16, BAND = 256 };
/* Without merging, pairs found by structure alone fall from 0.999 precision and 0.996 recall to
 * 0.947 and 0.840: o_proj is matched with q, and all later modules of the layer slide by one. */
#define MERGE_SCORE 0.55F

struct row { /* a module that owns parameters */
    uint32_t module;
    uint32_t at;          /* position in execution order */
    uint64_t families[3]; /* set of the families of the operators directly inside */
    uint32_t look; /* number of the module's look, which is everything that look_score depends on */
    /* numbers of the groups of 2, 3, 4 rows that end here, if those can be parts of one module */
    uint32_t group[MERGE - 1];
};

/* Cache of scores for pairs of numbers; NAN: not computed yet. A model has few modules that look
 * different. */
struct table {
    float *score; /* NULL: the table would be too large */
    size_t width;
};

struct rows {
    MS_VEC(struct row) side[2];
    MS_VEC(struct align__link) sure; /* anchors that limit the columns of a row */
    MS_VEC(uint32_t) lo, hi;         /* by row: first and last column allowed */
    /* by row: the number of rows ending here that may be parts of one module */
    MS_VEC(uint8_t) reach[2];
    struct ms_map looks[2], groups[2]; /* by side: description -> number */
    /* pairs: look by look; parts: group of a side by look of the other */
    struct table pairs, parts[2];
    struct ms_arena *arena;
    const struct align__ctx *c;
};

/* ---- score --------------------------------------------------------------- */

static unsigned limit_params(unsigned n)
{
    return n < PARAMS_LOOK ? n : PARAMS_LOOK;
}

/* Tells whether one shape could be a part of the other. Where a side is sharded only whole and
 * shard count. */
static bool is_part(const struct align__ctx *c, uint32_t golden, uint32_t target)
{
    uint64_t cut = c->cut[0] * c->cut[1];
    if (cut == 1)
        return align__dims_piece(&c->dims, golden, target);
    return align__dims_ratio(&c->dims, golden, target) == cut &&
           align__same_size(c, c->dims.list.p[golden].n, c->dims.list.p[target].n);
}

/* Compares the shapes of all parameters; each parameter takes the first free partner of its shape.
 * 1: equal shapes; 0.6: equally many, each equal to its partner or a part of it; -0.3: neither. */
static float shape_score(const struct align__ctx *c, const struct align__module *a,
                         const struct align__module *b)
{
    const struct align__tensor *x = align__module_params(&c->side[0], a);
    const struct align__tensor *y = align__module_params(&c->side[1], b);
    uint32_t taken = 0;
    bool equal = true;
    if (a->nparam != b->nparam)
        return -0.3F;
    for (unsigned i = 0; i < limit_params(a->nparam); i++) {
        unsigned best = PARAMS_LOOK;
        bool piece = true;
        for (unsigned j = 0; j < limit_params(b->nparam) && piece; j++) {
            if (taken >> j & 1)
                continue;
            if (x[i].dims == y[j].dims)
                best = j, piece = false;
            else if (best == PARAMS_LOOK && is_part(c, x[i].dims, y[j].dims))
                best = j;
        }
        if (best == PARAMS_LOOK)
            return -0.3F;
        taken |= 1U << best;
        equal &= !piece;
    }
    return equal ? 1 : 0.6F;
}

float align__param_likeness(const struct align__ctx *c, const struct align__module *a,
                            const struct align__module *b, bool *met)
{
    const struct align__tensor *x = align__module_params(&c->side[0], a);
    const struct align__tensor *y = align__module_params(&c->side[1], b);
    float sum = 0;
    *met = false;
    for (unsigned i = 0; i < limit_params(a->nparam); i++) {
        float best = 0;
        for (unsigned j = 0; j < limit_params(b->nparam); j++) {
            float like = align__likeness(align__distance(&c->side[0].values.p[x[i].value],
                                                         &c->side[1].values.p[y[j].value]));
            *met |= c->dims.list.p[x[i].dims].n == c->dims.list.p[y[j].dims].n;
            best = like > best ? like : best;
        }
        sum += best;
    }
    unsigned more = limit_params(a->nparam > b->nparam ? a->nparam : b->nparam);
    return more == 0 || !c->by_value ? 0 : sum / (float)more;
}

static float output_score(const struct align__ctx *c, const struct align__module *a,
                          const struct align__module *b)
{
    if (a->nout == 0 || b->nout == 0)
        return 0;
    uint32_t x = align__module_outs(&c->side[0], a)->dims;
    uint32_t y = align__module_outs(&c->side[1], b)->dims;
    if (x == y)
        return 1;
    return is_part(c, x, y) ? 0.6F : 0;
}

static float look_score(const struct rows *rows, const struct row *ra, const struct row *rb)
{
    ms_assert(ra->module < rows->c->side[0].modules.n && rb->module < rows->c->side[1].modules.n);
    const struct align__ctx *c = rows->c;
    const struct align__module *a = &c->side[0].modules.p[ra->module];
    const struct align__module *b = &c->side[1].modules.p[rb->module];
    bool family = false;
    for (int i = 0; i < 3; i++)
        family |= (ra->families[i] & rb->families[i]) != 0;
    return 0.6F * shape_score(c, a, b) + 0.3F * output_score(c, a, b) +
           0.4F * align__word_likeness(c, ra->module, rb->module) + (family ? 0.2F : 0);
}

static float *known_score(const struct table *t, uint32_t i, uint32_t j)
{
    return t->score != NULL ? &t->score[i * t->width + j] : NULL;
}

static float pair_score(const struct rows *rows, const struct row *ra, const struct row *rb)
{
    const struct align__ctx *c = rows->c;
    float *known = known_score(&rows->pairs, ra->look, rb->look);
    float score = known == NULL || isnan(*known) ? look_score(rows, ra, rb) : *known;
    if (known != NULL)
        *known = score;
    if (!c->by_value)
        return score - 0.7F;
    bool met;
    float params = align__param_likeness(c, &c->side[0].modules.p[ra->module],
                                         &c->side[1].modules.p[rb->module], &met);
    return score + 0.8F * params - 0.9F;
}

/* Tells whether two shapes have a size in common, as the parts of a matrix have with the whole. */
static bool share_size(const struct align__dims *dims, uint32_t a, uint32_t b)
{
    ms_assert(a < dims->list.n && b < dims->list.n);
    const struct align__dim *x = &dims->list.p[a];
    const struct align__dim *y = &dims->list.p[b];
    for (unsigned i = 0; i < x->nd; i++) {
        for (unsigned j = 0; j < y->nd; j++) {
            if (x->d[i] == y->d[j])
                return true;
        }
    }
    return x->nd <= 1 && y->nd <= 1;
}

/* Scores n consecutive siblings, ending at row `last`, as the parts of one module. */
static float merge_score(const struct rows *rows, int side, uint32_t last, unsigned n,
                         const struct row *whole)
{
    ms_assert(n >= 2 && last + 1 >= n && last < rows->side[side].n);
    const struct align__ctx *c = rows->c;
    const struct align__side *s = &c->side[side];
    const struct align__module *w = &c->side[1 - side].modules.p[whole->module];
    const struct align__module *m = &s->modules.p[rows->side[side].p[last].module];
    uint32_t big = align__module_params(&c->side[1 - side], w)->dims;
    uint64_t sum = 0;
    if (m->nparam != w->nparam)
        return 0;
    for (unsigned i = 0; i < n; i++) {
        m = &s->modules.p[rows->side[side].p[last - i].module];
        uint32_t dims = align__module_params(s, m)->dims;
        if (!share_size(&c->dims, dims, big))
            return 0;
        if (__builtin_add_overflow(sum, c->dims.list.p[dims].n, &sum))
            return 0;
    }
    uint64_t whole_n = c->dims.list.p[big].n;
    bool same = side == 0 ? align__same_size(c, sum, whole_n) : align__same_size(c, whole_n, sum);
    return same ? MERGE_SCORE : 0;
}

static float parts_score(const struct rows *rows, int side, uint32_t last, unsigned n,
                         const struct row *whole)
{
    uint32_t group = rows->side[side].p[last].group[n - 2];
    float *known = known_score(&rows->parts[side], group, whole->look);
    if (known == NULL)
        return merge_score(rows, side, last, n, whole);
    if (isnan(*known))
        *known = merge_score(rows, side, last, n, whole);
    return *known;
}

static float score_cell(void *ctx, uint32_t r, uint32_t col, unsigned k, unsigned l)
{
    const struct rows *rows = ctx;
    ms_assert(r < rows->side[0].n && col < rows->side[1].n && (k == 1 || l == 1));
    const struct row *a = &rows->side[0].p[r];
    const struct row *b = &rows->side[1].p[col];
    if (k > 1)
        return parts_score(rows, 0, r, k, b);
    if (l > 1)
        return parts_score(rows, 1, col, l, a);
    return pair_score(rows, a, b);
}

/* ---- looks --------------------------------------------------------------- */

static void append_word(struct ms_buf *key, uint64_t word)
{
    ms_buf_str(key, (struct ms_str){(const char *)&word, sizeof word});
}

/* Builds the key of a module's look from everything that look_score and merge_score read. */
static void describe_row(const struct rows *rows, int side, const struct row *row,
                         struct ms_buf *key)
{
    ms_assert(row->module < rows->c->side[side].modules.n);
    const struct align__side *s = &rows->c->side[side];
    const struct align__module *m = &s->modules.p[row->module];
    const struct align__words *w = &rows->c->words[side][row->module];
    ms_buf_clear(key);
    append_word(key, m->nparam);
    for (unsigned i = 0; i < limit_params(m->nparam); i++)
        append_word(key, align__module_params(s, m)[i].dims);
    append_word(key, m->nout != 0 ? align__module_outs(s, m)->dims : UINT64_MAX);
    for (int i = 0; i < 3; i++)
        append_word(key, row->families[i]);
    for (uint32_t i = 0; i < w->n; i++)
        append_word(key, w->id[i]);
}

/* Builds the key of the n rows that end at `last`; returns false when they cannot be parts of one
 * module. */
static bool describe_group(const struct rows *rows, int side, uint32_t last, unsigned n,
                           struct ms_buf *key)
{
    ms_assert(last < rows->side[side].n);
    const struct align__side *s = &rows->c->side[side];
    const struct align__module *first = &s->modules.p[rows->side[side].p[last].module];
    if (n > last + 1)
        return false;
    ms_buf_clear(key);
    append_word(key, first->nparam);
    for (unsigned i = 0; i < n; i++) {
        const struct align__module *m = &s->modules.p[rows->side[side].p[last - i].module];
        if (m->parent != first->parent || m->nparam != first->nparam)
            return false;
        append_word(key, align__module_params(s, m)->dims);
    }
    return true;
}

static enum ms_rc number_key(struct ms_map *map, struct ms_buf *key, struct ms_arena *arena,
                             uint32_t *out, struct ms_err *err)
{
    MS_TRY(ms_buf_check(key, err));
    *out = ms_map_put_copy(map, ms_buf_slice(key), arena, NULL);
    return *out != MS_MAP_NONE ? MS_OK : ms_no_memory(err);
}

static enum ms_rc number_rows(struct rows *rows, int side, struct ms_buf *key, struct ms_err *err)
{
    uint32_t n = (uint32_t)rows->side[side].n;
    if (!ms_vec_reserve(&rows->reach[side], n))
        return ms_no_memory(err);
    for (uint32_t r = 0; r < n; r++) {
        struct row *row = &rows->side[side].p[r];
        unsigned reach = 1;
        describe_row(rows, side, row, key);
        MS_TRY(number_key(&rows->looks[side], key, rows->arena, &row->look, err));
        for (; reach < MERGE && describe_group(rows, side, r, reach + 1, key); reach++)
            MS_TRY(number_key(&rows->groups[side], key, rows->arena, &row->group[reach - 1], err));
        rows->reach[side].p[r] = (uint8_t)reach;
    }
    return MS_OK;
}

static enum ms_rc make_table(struct table *t, size_t rows, size_t width, struct ms_err *err)
{
    enum { SCORES_MAX = 1 << 22 };
    if (rows == 0 || width == 0 || rows > SCORES_MAX / width)
        return MS_OK;
    t->width = width;
    t->score = ms_alloc(rows * width * sizeof *t->score);
    if (t->score == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < rows * width; i++)
        t->score[i] = NAN;
    return MS_OK;
}

static enum ms_rc number_looks(struct rows *rows, struct ms_err *err)
{
    struct ms_buf key = {.max = 1 << 12};
    rows->arena = ms_arena_new(SIZE_MAX);
    enum ms_rc rc = rows->arena != NULL ? MS_OK : ms_no_memory(err);
    for (int side = 0; side < 2 && rc == MS_OK; side++)
        rc = number_rows(rows, side, &key, err);
    ms_buf_free(&key);
    size_t looks[2] = {rows->looks[0].keys.n, rows->looks[1].keys.n};
    if (rc == MS_OK)
        rc = make_table(&rows->pairs, looks[0], looks[1], err);
    for (int side = 0; side < 2 && rc == MS_OK; side++)
        rc = make_table(&rows->parts[side], rows->groups[side].keys.n, looks[1 - side], err);
    return rc;
}

static void free_rows(struct rows *rows)
{
    for (int side = 0; side < 2; side++) {
        ms_vec_free(&rows->side[side]);
        ms_vec_free(&rows->reach[side]);
        ms_map_free(&rows->looks[side]);
        ms_map_free(&rows->groups[side]);
        ms_free(rows->parts[side].score);
    }
    ms_free(rows->pairs.score);
    ms_vec_free(&rows->sure);
    ms_vec_free(&rows->lo);
    ms_vec_free(&rows->hi);
    ms_arena_free(rows->arena);
}

/* ---- shards -------------------------------------------------------------- */

struct shapes { /* number of occurrences of each shape among the matrices of the parameters */
    MS_VEC(uint32_t) count; /* by number of the shape */
    uint32_t all;
};

static enum ms_rc count_shapes(const struct align__ctx *c, int side, struct shapes *out,
                               struct ms_err *err)
{
    const struct align__side *s = &c->side[side];
    if (!ms_vec_reserve(&out->count, c->dims.list.n + 1))
        return ms_no_memory(err);
    memset(out->count.p, 0, (c->dims.list.n + 1) * sizeof *out->count.p);
    for (uint32_t i = 0; i < s->modules.n; i++) {
        const struct align__module *m = &s->modules.p[i];
        for (unsigned k = 0; k < m->nparam; k++) {
            uint32_t dims = align__module_params(s, m)[k].dims;
            if (c->dims.list.p[dims].nd < 2)
                continue;
            out->count.p[dims]++;
            out->all++;
        }
    }
    return MS_OK;
}

/* Returns the share of x's matrices with a partner in y: of equal shape (k = 1), or k times as
 * large or as small. */
static double share_met(const struct align__ctx *c, const struct shapes *x, const struct shapes *y,
                        uint64_t k, bool pieces)
{
    uint32_t met = 0;
    for (uint32_t i = 0; i < c->dims.list.n; i++) {
        bool has = x->count.p[i] != 0 && k == 1 && y->count.p[i] != 0;
        for (uint32_t j = 0; x->count.p[i] != 0 && k > 1 && !has && j < c->dims.list.n; j++)
            has = y->count.p[j] != 0 && (c->dims.list.p[i].n < c->dims.list.p[j].n) == pieces &&
                  align__dims_ratio(&c->dims, i, j) == k;
        met += has ? x->count.p[i] : 0;
    }
    return x->all != 0 ? (double)met / x->all : 0;
}

/* Tells whether a side calls collectives in its forward pass. */
static bool is_parallel(const struct align__side *s)
{
    for (uint32_t i = 0; i < s->ops.n; i++) {
        if (align__family_is_collective(s->ops.p[i].family))
            return true;
    }
    return false;
}

/* Finds in how many shards each side's tensors are cut. Tensor-parallel ranks hold shards of most
 * matrices: a side is cut into k when more matrices match at the ratio k than at equal size. Fused
 * projections look the same, so only a side that calls collectives can be cut. */
static void find_cut(struct align__ctx *c, const struct shapes shapes[2])
{
    enum { CUT_MAX = 64, SHAPES_MAX = 512 };
    if (c->dims.list.n > SHAPES_MAX)
        return;
    const bool parallel[2] = {is_parallel(&c->side[0]), is_parallel(&c->side[1])};
    double most = share_met(c, &shapes[0], &shapes[1], 1, false) +
                  share_met(c, &shapes[1], &shapes[0], 1, false);
    for (uint64_t k = 2; k <= CUT_MAX; k *= 2) {
        for (int cut = 0; cut < 2; cut++) {
            if (!parallel[cut])
                continue;
            double met = share_met(c, &shapes[cut], &shapes[1 - cut], k, true) +
                         share_met(c, &shapes[1 - cut], &shapes[cut], k, false);
            if (met <= most)
                continue;
            most = met;
            c->cut[cut] = k;
            c->cut[1 - cut] = 1;
        }
    }
}

static enum ms_rc set_cut(struct align__ctx *c, struct ms_err *err)
{
    struct shapes shapes[2] = {{.all = 0}, {.all = 0}};
    c->cut[0] = c->cut[1] = 1;
    enum ms_rc rc = count_shapes(c, 0, &shapes[0], err);
    if (rc == MS_OK)
        rc = count_shapes(c, 1, &shapes[1], err);
    if (rc == MS_OK)
        find_cut(c, shapes);
    ms_vec_free(&shapes[0].count);
    ms_vec_free(&shapes[1].count);
    return rc;
}

/* ---- order --------------------------------------------------------------- */

static int by_place(const void *p, const void *q)
{
    const struct row *x = p;
    const struct row *y = q;
    return MS_ORDER(x->at, y->at, MS_ORDER(x->module, y->module, 0));
}

/* Collects the families of the operators directly inside each row's module. */
static enum ms_rc note_families(struct rows *rows, int side, struct ms_err *err)
{
    const struct align__side *s = &rows->c->side[side];
    uint32_t *row_of = ms_alloc((s->modules.n + 1) * sizeof *row_of);
    if (row_of == NULL)
        return ms_no_memory(err);
    memset(row_of, 0xff, (s->modules.n + 1) * sizeof *row_of);
    for (uint32_t r = 0; r < rows->side[side].n; r++)
        row_of[rows->side[side].p[r].module] = r;
    for (uint32_t i = 0; i < s->ops.n; i++) {
        uint16_t family = s->ops.p[i].family;
        uint32_t r = s->ops.p[i].parent != ALIGN__NONE ? row_of[s->ops.p[i].parent] : ALIGN__NONE;
        if (r != ALIGN__NONE && family != ALIGN__FAM_UNKNOWN)
            rows->side[side].p[r].families[family / 64] |= 1ULL << family % 64;
    }
    ms_free(row_of);
    return MS_OK;
}

static enum ms_rc list_rows(struct rows *rows, int side, struct ms_err *err)
{
    const struct align__side *s = &rows->c->side[side];
    for (uint32_t i = 0; i < s->modules.n; i++) {
        const struct align__module *m = &s->modules.p[i];
        if (m->nparam == 0 || m->again)
            continue;
        struct row *r = ms_vec_push(&rows->side[side]);
        if (r == NULL)
            return ms_no_memory(err);
        *r = (struct row){.module = i, .at = m->lo != ALIGN__NONE ? m->hi : m->place};
    }
    if (rows->side[side].n != 0)
        qsort(rows->side[side].p, rows->side[side].n, sizeof *rows->side[side].p, by_place);
    return note_families(rows, side, err);
}

/* Returns the first row of a side at or behind a position of the execution order. */
static uint32_t row_at(const struct rows *rows, int side, uint32_t place)
{
    uint32_t lo = 0;
    uint32_t hi = (uint32_t)rows->side[side].n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (rows->side[side].p[mid].at < place)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Lists the anchors that limit the matching of modules. Behind a fault two values may be similar by
 * chance, and one such anchor would move all modules up to the next anchor; the heaviest chain
 * leaves it out. */
static enum ms_rc list_sure(struct rows *rows, struct ms_err *err)
{
    static const float sure = 0.5F;
    const struct align__ctx *c = rows->c;
    if (!ms_vec_reserve(&rows->sure, c->anchors.n + 1))
        return ms_no_memory(err);
    for (size_t i = 0; i < c->anchors.n; i++) {
        if (c->anchors.p[i].weight >= sure)
            rows->sure.p[rows->sure.n++] = c->anchors.p[i];
    }
    return MS_OK;
}

/* Returns the first sure anchor at or behind a golden operator. */
static size_t anchor_at(const struct rows *rows, uint32_t op)
{
    size_t lo = 0;
    size_t hi = rows->sure.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (rows->sure.p[mid].a < op)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct window {
    uint32_t lo, hi;
};

/* Returns the columns between the anchors around a row, close to the line through them. The window
 * is wider by a few columns, because the parts of one module may have anchors between them. */
static struct window window_of(const struct rows *rows, uint32_t r)
{
    const struct align__ctx *c = rows->c;
    uint32_t nr = (uint32_t)rows->side[0].n;
    uint32_t nc = (uint32_t)rows->side[1].n;
    const struct align__module *m = &c->side[0].modules.p[rows->side[0].p[r].module];
    size_t before = anchor_at(rows, m->lo != ALIGN__NONE ? m->lo : m->place);
    size_t after = anchor_at(rows, rows->side[0].p[r].at + 1);
    const struct align__link *x = before > 0 ? &rows->sure.p[before - 1] : NULL;
    const struct align__link *y = after < rows->sure.n ? &rows->sure.p[after] : NULL;
    uint32_t r0 = x != NULL ? row_at(rows, 0, x->a) : 0;
    uint32_t c0 = x != NULL ? row_at(rows, 1, x->b) : 0;
    uint32_t r1 = y != NULL ? row_at(rows, 0, y->a + 1) : nr;
    uint32_t c1 = y != NULL ? row_at(rows, 1, y->b + 1) : nc;
    double at =
        r1 > r0 && r >= r0 ? c0 + (double)(r - r0) * ((double)c1 - c0) / (double)(r1 - r0) : c0;
    c0 = c0 > MERGE ? c0 - MERGE : 0;
    c1 = c1 + MERGE < nc ? c1 + MERGE : nc - 1;
    struct window w = {at > (double)c0 + BAND ? (uint32_t)at - BAND : c0,
                       at + BAND < c1 ? (uint32_t)at + BAND : c1};
    w.lo = w.lo > w.hi ? w.hi : w.lo;
    return w;
}

static enum ms_rc set_windows(struct rows *rows, struct ms_err *err)
{
    uint32_t nr = (uint32_t)rows->side[0].n;
    if (!ms_vec_reserve(&rows->lo, nr) || !ms_vec_reserve(&rows->hi, nr))
        return ms_no_memory(err);
    MS_TRY(list_sure(rows, err));
    struct window last = {0, 0};
    for (uint32_t r = 0; r < nr; r++) {
        struct window w = window_of(rows, r);
        last.lo = w.lo > last.lo ? w.lo : last.lo;
        last.hi = w.hi > last.hi ? w.hi : last.hi;
        last.hi = last.hi < last.lo ? last.lo : last.hi;
        rows->lo.p[r] = last.lo;
        rows->hi.p[r] = last.hi;
    }
    return MS_OK;
}

/* ---- results ------------------------------------------------------------- */

static enum ms_rc add_anchor(struct align__ctx *c, uint32_t a, uint32_t b, float weight,
                             struct ms_err *err)
{
    const struct align__module *x = &c->side[0].modules.p[a];
    const struct align__module *y = &c->side[1].modules.p[b];
    if (x->lo == ALIGN__NONE || y->lo == ALIGN__NONE)
        return MS_OK;
    ms_assert(x->lo <= x->hi && x->hi < c->side[0].ops.n);
    ms_assert(y->lo <= y->hi && y->hi < c->side[1].ops.n);
    uint16_t fa = c->side[0].ops.p[x->hi].family;
    uint16_t fb = c->side[1].ops.p[y->hi].family;
    if (fa != ALIGN__FAM_UNKNOWN && fb != ALIGN__FAM_UNKNOWN &&
        align__family_likeness(fa, fb) < 0.2F)
        return MS_OK;
    struct align__link *l = ms_vec_push(&c->anchors);
    if (l == NULL)
        return ms_no_memory(err);
    *l = (struct align__link){x->hi, y->hi, weight, 0};
    return MS_OK;
}

static enum ms_rc take_pair(struct align__ctx *c, uint32_t a, uint32_t b, struct ms_err *err)
{
    ms_assert(c->mod_dp[0][a] == ALIGN__NONE && c->mod_dp[1][b] == ALIGN__NONE);
    c->mod_dp[0][a] = b;
    c->mod_dp[1][b] = a;
    c->mod[0][a] = b;
    c->mod[1][b] = a;
    if (shape_score(c, &c->side[0].modules.p[a], &c->side[1].modules.p[b]) < 1)
        return MS_OK;
    return add_anchor(c, a, b, 1, err);
}

static enum ms_rc take_parts(const struct rows *rows, struct align__ctx *c,
                             const struct align__match *m, struct ms_err *err)
{
    uint32_t a = ALIGN__NONE;
    uint32_t b = ALIGN__NONE;
    ms_assert((m->k == 1) != (m->l == 1) && m->k <= MERGE && m->l <= MERGE);
    for (unsigned i = (unsigned)m->k * m->l; i-- > 0;) {
        a = rows->side[0].p[m->r - (m->k > 1 ? i : 0)].module;
        b = rows->side[1].p[m->c - (m->l > 1 ? i : 0)].module;
        struct align__link *l = ms_vec_push(&c->parts);
        if (l == NULL)
            return ms_no_memory(err);
        *l = (struct align__link){a, b, 0, 0};
        c->mod[0][a] = b;
        c->mod[1][b] = a;
    }
    return c->by_value ? MS_OK : add_anchor(c, a, b, 0.8F, err);
}

static enum ms_rc match_rows(struct rows *rows, struct align__path_room *room, uint64_t *cells,
                             struct ms_err *err)
{
    if (rows->side[0].n == 0 || rows->side[1].n == 0)
        return MS_OK;
    MS_TRY(set_windows(rows, err));
    MS_TRY(number_looks(rows, err));
    const struct align__path path = {.rows = (uint32_t)rows->side[0].n,
                                     .cols = (uint32_t)rows->side[1].n,
                                     .lo = rows->lo.p,
                                     .hi = rows->hi.p,
                                     .reach = {rows->reach[0].p, rows->reach[1].p},
                                     .merge = MERGE,
                                     .score = score_cell,
                                     .ctx = rows};
    return align__path_find(&path, room, cells, err);
}

enum ms_rc align__match_modules(struct align__ctx *c, struct ms_err *err)
{
    struct rows rows = {.c = c};
    struct align__path_room room = {.best = {.p = NULL}};
    enum ms_rc rc = set_cut(c, err);
    if (rc == MS_OK)
        rc = list_rows(&rows, 0, err);
    if (rc == MS_OK)
        rc = list_rows(&rows, 1, err);
    if (rc == MS_OK)
        rc = match_rows(&rows, &room, &c->cells, err);
    for (size_t i = 0; rc == MS_OK && i < room.out.n; i++) {
        const struct align__match *m = &room.out.p[i];
        rc = m->k == 1 && m->l == 1
                 ? take_pair(c, rows.side[0].p[m->r].module, rows.side[1].p[m->c].module, err)
                 : take_parts(&rows, c, m, err);
    }
    if (rc == MS_OK)
        rc = align__keep_chain(c->anchors.p, &c->anchors.n, err);
    ms_assert(align__is_mutual(c->mod_dp[0], c->side[0].modules.n, c->mod_dp[1]));
    free_rows(&rows);
    align__path_room_free(&room);
    return rc;
}

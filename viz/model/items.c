/* SPDX-License-Identifier: MIT
 *
 * items: figures in columns, texts on demand; two passes over a tensor, the first for its range.
 */
#include "viz/model/items.h"

#include "probe/base/jread.h"
#include "probe/base/mapsafe.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/dump/find.h"
#include "probe/tensor/tensor.h"

#include <math.h>
#include <stdlib.h>

enum { TEXT_MAX = 1 << 30, FIRST_ROOM = 1024, FIELD_MAX = 1 << 20 };

#define VIZ_NAME(name) name,
const char *const viz_figures[VIZ_FIGURE_COUNT] = {VIZ_FIGURES(VIZ_NAME)};
#undef VIZ_NAME

/* ---- items of a node --------------------------------------------------------------- */

/* Iterates over "{name: {...}, ...}" of inputs, then of outputs. */
struct items {
    struct ms_jread r;
    struct ms_str output;
    bool inside, in_output;
};

static bool enter(struct items *it, struct ms_str json)
{
    ms_jread_init(&it->r, json.n != 0 ? json.p : "", json.n, 0);
    it->inside = ms_jread_next(&it->r) == MS_J_OBJ;
    return it->inside;
}

static void items_open(struct items *it, struct ms_str input, struct ms_str output)
{
    it->output = output;
    it->in_output = !enter(it, input);
    if (it->in_output) {
        it->output = MS_STR("");
        (void)enter(it, output);
    }
}

/* Returns the next item's name as written; the reader is in front of its object. */
static bool items_next(struct items *it, struct ms_str *name)
{
    while (it->inside) {
        if (ms_jread_next(&it->r) == MS_J_KEY) {
            *name = it->r.text;
            return true;
        }
        struct ms_str next = it->output;
        it->in_output = true;
        it->output = MS_STR("");
        (void)enter(it, next);
    }
    return false;
}

/* ---- figures --------------------------------------------------------------------------- */

/* Parses "3.5", "66.7%" or "nan". */
static float figure_of(struct ms_str s)
{
    double v;
    if (s.n != 0 && s.p[s.n - 1] == '%')
        s.n--;
    return ms_num_parse_f64(s.p, s.n, &v) ? (float)v : NAN;
}

/* Returns the index of a figure, or a negative number. Called for every field of a million
 * items, so the length is compared first. */
static int figure_named(struct ms_str name)
{
#define VIZ_LENGTH(name) sizeof(name) - 1,
    static const uint8_t length[VIZ_FIGURE_COUNT] = {VIZ_FIGURES(VIZ_LENGTH)};
#undef VIZ_LENGTH
    for (int i = 0; i < VIZ_FIGURE_COUNT; i++) {
        if (name.n == length[i] && memcmp(name.p, viz_figures[i], name.n) == 0)
            return i;
    }
    return -1;
}

static enum graph_state state_named(struct ms_str s, enum graph_state otherwise)
{
    return ms_str_is(s, "error")     ? GRAPH_ERROR
           : ms_str_is(s, "warning") ? GRAPH_WARNING
           : ms_str_is(s, "pass")    ? GRAPH_PASS
                                     : otherwise;
}

/* ---- reading ---------------------------------------------------------------------------- */

static enum ms_rc more_rows(struct viz_table *t, struct ms_err *err)
{
    size_t room = t->rows_room != 0 ? t->rows_room * 2 : FIRST_ROOM;
    struct viz_table_row *row = ms_realloc(t->row, room * sizeof *row);
    if (row == NULL || room > UINT32_MAX)
        return ms_no_memory(err);
    t->row = row;
    for (size_t i = 0; i < VIZ_FIGURE_COUNT; i++) {
        float *value = ms_realloc(t->value[i], room * sizeof *value);
        if (value == NULL)
            return ms_no_memory(err);
        t->value[i] = value;
    }
    t->rows_room = room;
    return MS_OK;
}

static enum ms_rc add_node(struct viz_table *t, const struct graph_row *row, struct ms_err *err)
{
    if (t->nodes == t->nodes_room) {
        size_t room = t->nodes_room != 0 ? t->nodes_room * 2 : FIRST_ROOM;
        void *node = ms_realloc(t->node, room * sizeof *t->node);
        if (node == NULL)
            return ms_no_memory(err);
        t->node = node;
        t->nodes_room = room;
    }
    struct ms_str name = ms_arena_str(t->arena, row->name);
    if (name.p == NULL)
        return ms_arena_fail(t->arena, err);
    t->node[t->nodes].order = row->order;
    t->node[t->nodes++].name = name;
    return MS_OK;
}

/* Stores the fields of one item in the last row. */
static void take_fields(struct viz_table *t, struct ms_jread *r)
{
    size_t at = t->rows - 1;
    enum ms_jtok tok = ms_jread_next(r);
    if (tok != MS_J_OBJ) {
        ms_jread_skip(r, tok);
        return;
    }
    while (ms_jread_next(r) == MS_J_KEY) {
        struct ms_str key = r->text;
        tok = ms_jread_next(r);
        int figure = figure_named(key);
        if (tok == MS_J_STR && figure >= 0)
            t->value[figure][at] = figure_of(r->text);
        else if (tok == MS_J_STR && ms_str_is(key, "Result"))
            t->row[at].state = (uint8_t)state_named(r->text, t->row[at].state);
        ms_jread_skip(r, tok);
    }
}

static enum ms_rc add_row(struct viz_table *t, uint16_t item, enum graph_state state,
                          struct ms_err *err)
{
    if (t->rows == t->rows_room)
        MS_TRY(more_rows(t, err));
    t->row[t->rows] = (struct viz_table_row){(uint32_t)t->nodes - 1, item, (uint8_t)state};
    for (size_t i = 0; i < VIZ_FIGURE_COUNT; i++)
        t->value[i][t->rows] = NAN;
    t->rows++;
    return MS_OK;
}

static enum ms_rc on_node(void *ctx, const struct graph_row *row, struct ms_str input,
                          struct ms_str output, struct ms_err *err)
{
    struct viz_table *t = ctx;
    struct items it;
    struct ms_str name;
    if (t->most != 0 && t->rows >= t->most) {
        t->partial = true;
        return MS_E_LIMIT;
    }
    MS_TRY(add_node(t, row, err));
    items_open(&it, input, output);
    for (uint16_t i = 0; i < UINT16_MAX && items_next(&it, &name); i++) {
        MS_TRY(add_row(t, i, row->rated, err));
        take_fields(t, &it.r);
        if (row->suspect && it.in_output)
            t->row[t->rows - 1].state = GRAPH_ERROR;
    }
    return MS_OK;
}

enum ms_rc viz_table_read(struct viz_table *t, struct graph_view *v, struct graph_spot at,
                          size_t most, struct ms_err *err)
{
    *t = (struct viz_table){.at = at, .most = most, .arena = ms_arena_new(TEXT_MAX)};
    enum ms_rc rc = t->arena != NULL ? graph_view_walk(v, at, on_node, t, err) : ms_no_memory(err);
    if (t->partial)
        rc = MS_OK; /* stopped at the row limit, which is no failure */
    if (rc != MS_OK)
        viz_table_free(t);
    return rc;
}

void viz_table_free(struct viz_table *t)
{
    ms_free(t->node);
    ms_free(t->row);
    for (size_t i = 0; i < VIZ_FIGURE_COUNT; i++)
        ms_free(t->value[i]);
    ms_arena_free(t->arena);
    *t = (struct viz_table){.arena = NULL};
}

/* ---- filtering and sorting ------------------------------------------------------------- */

enum ms_rc viz_table_column(struct ms_str name, int *sort, struct ms_err *err)
{
    *sort = ms_str_is(name, "order")   ? VIZ_BY_ORDER
            : ms_str_is(name, "name")  ? VIZ_BY_NAME
            : ms_str_is(name, "state") ? VIZ_BY_STATE
                                       : figure_named(name);
    if (*sort == -1 && !ms_str_is(name, "order"))
        return ms_fail(err, MS_E_ARG, "sort must be order, name, state or a column of figures");
    return MS_OK;
}

static size_t node_of_order(const struct viz_table *t, int64_t order)
{
    size_t low = 0, high = t->nodes;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (t->node[mid].order < order)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Sets a byte for each node that matches the terms; NULL when all do. */
static enum ms_rc mark_nodes(const struct viz_table *t, struct graph_view *v,
                             const struct viz_terms *terms, char **out, struct ms_err *err)
{
    enum { PAGE = 4096 };
    struct graph_page page = {.more = true};
    int64_t reached = -1;
    *out = NULL;
    if (terms == NULL || viz_terms_empty(terms))
        return MS_OK;
    char *marks = ms_calloc(t->nodes + 1, 1);
    enum ms_rc rc = marks != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK && viz_terms_by_name(terms)) { /* names are in memory */
        for (size_t i = 0; i < t->nodes; i++)
            marks[i] = viz_terms_meet_name(terms, t->node[i].name);
        page.more = false;
    }
    while (rc == MS_OK && page.more) {
        rc = viz_terms_search(terms, v, t->at, reached, PAGE, &page, &reached, err);
        for (size_t i = 0; rc == MS_OK && i < page.rows.n; i++)
            marks[node_of_order(t, page.rows.p[i].order)] = 1;
    }
    graph_page_free(&page);
    if (rc != MS_OK) {
        ms_free(marks);
        return rc;
    }
    *out = marks;
    return MS_OK;
}

static enum ms_rc choose(const struct viz_table *t, const struct viz_table_view *view,
                         const char *marks, viz_table_index *index, struct ms_err *err)
{
    index->n = 0;
    for (size_t i = 0; i < t->rows; i++) {
        const struct viz_table_row *row = &t->row[i];
        if ((marks != NULL && !marks[row->node]) || (view->failing && row->state < GRAPH_WARNING))
            continue;
        uint32_t *slot = ms_vec_push(index);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = (uint32_t)i;
    }
    return MS_OK;
}

struct sorting {
    const struct viz_table *t;
    int sort;
    int sign;
};

/* Compares two figures; NaN sorts last in both directions. */
static int by_value(float a, float b, int sign)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return a < b ? -sign : a > b ? sign : 0;
}

static int compare_rows(const void *pa, const void *pb, void *ctx)
{
    const struct sorting *s = ctx;
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
    const struct viz_table_row *ra = &s->t->row[a], *rb = &s->t->row[b];
    int c = 0;
    if (s->sort >= 0)
        c = by_value(s->t->value[s->sort][a], s->t->value[s->sort][b], s->sign);
    else if (s->sort == VIZ_BY_NAME)
        c = s->sign * ms_str_cmp(s->t->node[ra->node].name, s->t->node[rb->node].name);
    else if (s->sort == VIZ_BY_STATE)
        c = s->sign * ((int)ra->state - (int)rb->state);
    else
        c = s->sign * (a < b ? -1 : a > b);
    return c != 0 ? c : a < b ? -1 : a > b;
}

enum ms_rc viz_table_select(const struct viz_table *t, struct graph_view *v,
                            const struct viz_table_view *view, viz_table_index *index,
                            struct ms_err *err)
{
    char *marks;
    MS_TRY(mark_nodes(t, v, view->terms, &marks, err));
    enum ms_rc rc = choose(t, view, marks, index, err);
    ms_free(marks);
    struct sorting s = {t, view->sort, view->descending ? -1 : 1};
    if (rc == MS_OK && index->n > 1 && (view->sort != VIZ_BY_ORDER || view->descending))
        qsort_r(index->p, index->n, sizeof *index->p, compare_rows, &s);
    return rc;
}

/* ---- texts ------------------------------------------------------------------------------- */

/* Returns the item with this number, and its name. */
static struct ms_str item_at(const struct graph_detail *d, unsigned number, struct ms_str *name)
{
    struct items it;
    items_open(&it, d->input, d->output);
    while (items_next(&it, name)) {
        enum ms_jtok tok = ms_jread_next(&it.r);
        const char *begin = it.r.tok;
        if (ms_jread_skip(&it.r, tok) == MS_J_ERR)
            break;
        if (number-- == 0)
            return (struct ms_str){begin, (uint32_t)(it.r.at - begin)};
    }
    *name = MS_STR("");
    return MS_STR("");
}

/* A node and its partner, cached while consecutive rows belong to the same node. */
struct fetched {
    size_t node;
    struct graph_page mine, theirs;
    struct graph_detail d, other;
};

static enum ms_rc fetch_node(const struct viz_table *t, struct graph_view *v, size_t node,
                             struct fetched *f, struct ms_err *err)
{
    struct graph_spot at = t->at;
    if (f->node == node)
        return MS_OK;
    f->other = (struct graph_detail){.input = MS_STR(""), .output = MS_STR("")};
    MS_TRY(graph_view_node(v, at, t->node[node].name, &f->mine, &f->d, err));
    f->node = node;
    at.golden = true;
    if (f->d.row.partner.n == 0)
        return MS_OK;
    /* A file from another tool may name a partner that it does not contain. */
    enum ms_rc rc = graph_view_node(v, at, f->d.row.partner, &f->theirs, &f->other, NULL);
    return rc == MS_E_NOTFOUND ? MS_OK : rc;
}

size_t viz_table_error(const struct viz_table *t, const viz_table_index *index, size_t from,
                       bool before)
{
    const size_t step = before ? SIZE_MAX : 1; /* SIZE_MAX is -1; below 0 wraps beyond the end */
    for (size_t i = from + step; i < index->n; i += step) {
        if (t->row[index->p[i]].state == GRAPH_ERROR)
            return i;
    }
    return SIZE_MAX;
}

enum ms_rc viz_table_fetch(const struct viz_table *t, struct graph_view *v,
                           const viz_table_index *index, size_t first, size_t n, viz_table_fn fn,
                           void *ctx, struct ms_err *err)
{
    struct fetched f = {.node = SIZE_MAX};
    enum ms_rc rc = MS_OK;
    for (size_t i = first; rc == MS_OK && i < index->n && i - first < n; i++) {
        const struct viz_table_row *row = &t->row[index->p[i]];
        struct viz_table_texts x = {.state = (enum graph_state)row->state};
        rc = fetch_node(t, v, row->node, &f, err);
        if (rc != MS_OK)
            break;
        x.node = f.d.row.name;
        x.partner = f.d.row.partner;
        x.item = item_at(&f.d, row->item, &x.name);
        x.other = item_at(&f.other, row->item, &x.other_name);
        rc = fn(ctx, &x, err);
    }
    graph_page_free(&f.mine);
    graph_page_free(&f.theirs);
    return rc;
}

/* ---- distribution of the elements of one item --------------------------------------- */

enum { BLOCK = 4096, NAME_BYTES_MAX = 4096 };
static const size_t FILE_MAX = (size_t)16 << 30;

/* ---- the file ---------------------------------------------------------------------- */

/* Finds the value of "data_name" in the member `item` of a JSON object of items. */
static enum ms_rc find_name(struct ms_str json, struct ms_str item, struct ms_buf *name,
                            struct ms_err *err)
{
    struct ms_jread r;
    struct ms_str text;
    struct ms_buf scratch = {.max = NAME_BYTES_MAX};
    bool in_item = false, is_name = false;
    unsigned depth = 0;
    enum ms_jtok tok;
    ms_jread_init(&r, json.n != 0 ? json.p : "", json.n, 0);
    while (name->n == 0 && (tok = ms_jread_next(&r)) != MS_J_END && tok != MS_J_ERR) {
        depth += tok == MS_J_OBJ;
        depth -= tok == MS_J_OBJ_END;
        if (tok == MS_J_KEY && ms_jread_text(&r, &scratch, &text, NULL) == MS_OK) {
            in_item = depth == 1 ? ms_str_eq(text, item) : in_item;
            is_name = depth == 2 && in_item && ms_str_is(text, "data_name");
        } else if (tok == MS_J_STR && is_name &&
                   ms_jread_text(&r, &scratch, &text, NULL) == MS_OK) {
            ms_buf_str(name, text);
        }
    }
    ms_buf_free(&scratch);
    return ms_buf_check(name, err);
}

/* Tells whether a name is a plain file name, as dumps write it; "-1" means no file. */
static bool is_plain(struct ms_str name)
{
    return name.n != 0 && name.p[0] != '.' && !ms_str_is(name, "-1") &&
           ms_str_find(name, '/') < 0 && ms_str_find(name, '\\') < 0;
}

static const char *dir_of(const struct probe_places *places, struct graph_spot at)
{
    for (size_t i = 0; i < places->list.n; i++) {
        const struct probe_place *p = &places->list.p[i];
        if ((p->step < 0 || p->step == at.step) && (p->rank < 0 || p->rank == at.rank))
            return p->dir;
    }
    return NULL;
}

static enum ms_rc open_tensor(struct probe_tensor *t, const struct viz_session *s,
                              struct graph_spot at, struct ms_buf *name, struct ms_err *err)
{
    struct probe_places places;
    struct ms_err no_dump = {0};
    const char *root = at.golden ? s->golden : s->path;
    if (root == NULL || !is_plain(ms_buf_slice(name)) ||
        probe_find(&places, root, &no_dump) != MS_OK)
        return ms_fail(err, MS_E_NOTFOUND, "no file of this tensor was kept");
    const char *dir = dir_of(&places, at);
    char *folder = dir != NULL ? ms_path_join(dir, "dump_tensor_data") : NULL;
    char *path = folder != NULL ? ms_path_join(folder, ms_buf_z(name)) : NULL;
    enum ms_rc rc = path == NULL || ms_path_kind(path) != MS_KIND_FILE
                        ? ms_fail(err, MS_E_NOTFOUND, "no file of this tensor was kept")
                        : probe_tensor_open(t, path, FILE_MAX, err);
    ms_free(path);
    ms_free(folder);
    probe_places_free(&places);
    return rc;
}

/* ---- counting ---------------------------------------------------------------------- */

/* Callback for a block of elements. */
typedef void (*block_fn)(struct viz_histogram *h, const double *v, size_t n);

static void range_of(struct viz_histogram *h, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        h->nan += isnan(v[i]) != 0;
        h->inf += isinf(v[i]) != 0;
        h->zeros += v[i] == 0;
        if (!isfinite(v[i]))
            continue;
        h->low = v[i] < h->low ? v[i] : h->low;
        h->high = v[i] > h->high ? v[i] : h->high;
    }
}

static void bins_of(struct viz_histogram *h, const double *v, size_t n)
{
    /* Halve before subtracting: the difference of the two ends may overflow a double. */
    double half = h->high / 2 - h->low / 2;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(v[i]))
            continue;
        double share = half > 0 ? (v[i] / 2 - h->low / 2) / half : 0;
        size_t bin = (size_t)(share * VIZ_BINS);
        h->bin[bin < VIZ_BINS ? bin : VIZ_BINS - 1]++;
    }
}

static enum ms_rc for_blocks(const struct probe_tensor *t, struct viz_histogram *h, block_fn fn,
                             struct ms_err *err)
{
    double v[BLOCK];
    void *scratch = ms_alloc(BLOCK * ms_dtype_size(t->dtype) + 1);
    if (scratch == NULL)
        return ms_no_memory(err);
    for (uint64_t at = 0; at < t->count; at += BLOCK) {
        size_t n = t->count - at < BLOCK ? (size_t)(t->count - at) : BLOCK;
        ms_dtype_to_f64(t->dtype, probe_tensor_elements(t, at, n, scratch), n, v);
        fn(h, v, n);
    }
    ms_free(scratch);
    return MS_OK;
}

static enum ms_rc count(struct viz_histogram *h, const struct probe_tensor *t, struct ms_err *err)
{
    *h = (struct viz_histogram){
        .dtype = ms_dtype_torch(t->dtype), .count = t->count, .low = INFINITY, .high = -INFINITY};
    MS_TRY(for_blocks(t, h, range_of, err));
    if (h->low > h->high)
        h->low = h->high = 0;
    return for_blocks(t, h, bins_of, err);
}

static enum ms_rc count_file(struct viz_histogram *h, const struct viz_session *s,
                             struct graph_spot at, struct ms_buf *name, struct ms_err *err)
{
    struct probe_tensor t;
    MS_TRY(open_tensor(&t, s, at, name, err));
    enum ms_rc rc = count(h, &t, err);
    probe_tensor_close(&t);
    return rc;
}

/* Counts with protection: a training program may rewrite the mapped file at the same time. */
static enum ms_rc count_safely(struct viz_histogram *h, const struct viz_session *s,
                               struct graph_spot at, struct ms_buf *name, struct ms_err *err)
{
    struct ms_err why = {0};
    ms_mapsafe_begin();
    enum ms_rc rc = count_file(h, s, at, name, &why);
    if (ms_mapsafe_end())
        return ms_fail(err, MS_E_IO, "the file of the tensor became shorter while it was read");
    if (rc != MS_OK && err != NULL && err->rc == MS_OK)
        *err = why;
    return rc;
}

enum ms_rc viz_histogram_read(struct viz_histogram *h, const struct viz_session *s,
                              struct graph_view *v, struct graph_spot at, struct ms_str node,
                              struct ms_str item, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    struct graph_detail d;
    struct ms_buf name = {.max = NAME_BYTES_MAX};
    enum ms_rc rc = graph_view_node(v, at, node, &page, &d, err);
    if (rc == MS_OK)
        rc = find_name(d.input, item, &name, err);
    if (rc == MS_OK && name.n == 0)
        rc = find_name(d.output, item, &name, err);
    if (rc == MS_OK)
        rc = count_safely(h, s, at, &name, err);
    ms_buf_free(&name);
    graph_page_free(&page);
    return rc;
}

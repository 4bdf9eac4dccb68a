/* SPDX-License-Identifier: MIT
 *
 * histogram: two passes over a tensor, the first for its range.
 */
#include "viz/model/histogram.h"

#include "probe/base/jread.h"
#include "probe/base/mapsafe.h"
#include "probe/base/mem.h"
#include "probe/dump/find.h"
#include "probe/tensor/tensor.h"

#include <math.h>

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

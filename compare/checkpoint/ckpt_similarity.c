/* SPDX-License-Identifier: MIT
 *
 * ckpt_similarity: pairs the weights of two checkpoints by name, measures them, writes the file.
 */
#include "compare/checkpoint/ckpt_similarity.h"

#include "probe/base/io.h"
#include "probe/base/jwrite.h"
#include "probe/base/mapsafe.h"

static bool is_wanted(const struct probe_ckpt_entry *e, bool all)
{
    return e->dtype != MS_DT_NONE && (all || e->role == PROBE_CKPT_WEIGHT);
}

static enum ms_rc push_only(struct ckpt_similarity *s, int side, const struct probe_ckpt_entry *e,
                            struct ms_err *err)
{
    const struct probe_ckpt_entry **slot = ms_vec_push(&s->only[side]);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = e;
    return MS_OK;
}

static enum ms_rc pair_weights(struct ckpt_similarity *s, bool all, struct ms_err *err)
{
    for (size_t i = 0; i < probe_ckpt_count(s->c[0]); i++) {
        const struct probe_ckpt_entry *a = probe_ckpt_entry(s->c[0], i);
        if (!is_wanted(a, all))
            continue;
        const struct probe_ckpt_entry *b = probe_ckpt_find(s->c[1], a->name);
        if (b == NULL || !is_wanted(b, all)) {
            MS_TRY(push_only(s, 0, a, err));
            continue;
        }
        struct ckpt_row *row = ms_vec_push(&s->rows);
        if (row == NULL)
            return ms_no_memory(err);
        *row = (struct ckpt_row){.a = a, .b = b, .same_shape = ckpt_same_shape(a, b)};
    }
    for (size_t i = 0; i < probe_ckpt_count(s->c[1]); i++) {
        const struct probe_ckpt_entry *b = probe_ckpt_entry(s->c[1], i);
        const struct probe_ckpt_entry *a =
            is_wanted(b, all) ? probe_ckpt_find(s->c[0], b->name) : NULL;
        if (is_wanted(b, all) && (a == NULL || !is_wanted(a, all)))
            MS_TRY(push_only(s, 1, b, err));
    }
    return MS_OK;
}

static enum ms_rc measure_rows(struct ckpt_similarity *s, ckpt_progress_fn *progress, void *ctx,
                               struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    ms_mapsafe_begin();
    for (size_t i = 0; rc == MS_OK && i < s->rows.n; i++) {
        struct ckpt_row *row = &s->rows.p[i];
        if (row->same_shape)
            rc = ckpt_measure(s->c[0], row->a, s->c[1], row->b, &row->f, err);
        if (rc == MS_OK && progress != NULL && !progress(ctx, i + 1, s->rows.n))
            rc = ms_fail(err, MS_E_INTERRUPTED, "interrupted");
    }
    if (ms_mapsafe_end() && rc == MS_OK)
        rc = ms_fail(err, MS_E_IO, "a file of the checkpoint became shorter while it was read");
    return rc;
}

enum ms_rc ckpt_similarity_new(struct ckpt_similarity *s, const char *a, const char *b, bool all,
                               ckpt_progress_fn *progress, void *ctx, struct ms_err *err)
{
    *s = (struct ckpt_similarity){0};
    enum ms_rc rc = probe_ckpt_open(&s->c[0], a, err);
    if (rc == MS_OK)
        rc = probe_ckpt_open(&s->c[1], b, err);
    if (rc == MS_OK)
        rc = pair_weights(s, all, err);
    if (rc == MS_OK)
        rc = measure_rows(s, progress, ctx, err);
    if (rc != MS_OK)
        ckpt_similarity_free(s);
    return rc;
}

void ckpt_similarity_free(struct ckpt_similarity *s)
{
    for (int side = 0; side < 2; side++) {
        ms_vec_free(&s->only[side]);
        probe_ckpt_close(s->c[side]);
    }
    ms_vec_free(&s->rows);
    *s = (struct ckpt_similarity){0};
}

/* ---- the file ---------------------------------------------------------------------------------- */

static void put_shape(struct ms_jwrite *w, const struct probe_ckpt_entry *e)
{
    ms_jwrite_arr(w);
    for (uint32_t d = 0; d < e->ndim; d++)
        ms_jwrite_u64(w, e->shape[d]);
    ms_jwrite_arr_end(w);
}

static void put_figure(struct ms_jwrite *w, const char *key, bool has, double v)
{
    ms_jwrite_key(w, ms_str_of(key));
    if (has)
        ms_jwrite_f64(w, v);
    else
        ms_jwrite_null(w);
}

static void put_row(struct ms_jwrite *w, const struct ckpt_row *row)
{
    ms_jwrite_key(w, row->a->name);
    ms_jwrite_obj(w);
    put_figure(w, "l2", row->same_shape, row->f.l2);
    put_figure(w, "cos", row->same_shape && row->f.has_cos, row->f.cos);
    ms_jwrite_key(w, MS_STR("numel"));
    if (row->a->count == row->b->count) {
        ms_jwrite_u64(w, row->a->count);
    } else {
        ms_jwrite_arr(w);
        ms_jwrite_u64(w, row->a->count);
        ms_jwrite_u64(w, row->b->count);
        ms_jwrite_arr_end(w);
    }
    ms_jwrite_key(w, MS_STR("shape"));
    if (row->same_shape) {
        put_shape(w, row->a);
    } else {
        ms_jwrite_arr(w);
        put_shape(w, row->a);
        put_shape(w, row->b);
        ms_jwrite_arr_end(w);
    }
    ms_jwrite_obj_end(w);
}

enum ms_rc ckpt_similarity_write(const struct ckpt_similarity *s, const char *path,
                                 struct ms_err *err)
{
    struct ms_out *out;
    struct ms_jwrite w;
    MS_TRY(ms_out_create(&out, path, err));
    ms_jwrite_init(&w, 4, 1 << 20);
    w.drain = ms_out_sink;
    w.ctx = out;
    ms_jwrite_obj(&w);
    for (size_t i = 0; i < s->rows.n; i++)
        put_row(&w, &s->rows.p[i]);
    ms_jwrite_obj_end(&w);
    const enum ms_rc rc = ms_jwrite_finish(&w, err);
    ms_jwrite_free(&w);
    if (rc != MS_OK) {
        ms_out_abort(out);
        return rc;
    }
    return ms_out_commit(out, err);
}

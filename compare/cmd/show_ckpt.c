/* SPDX-License-Identifier: MIT
 *
 * show_ckpt: the weights of two checkpoints as text.
 */
#include "compare/cmd/show_ckpt.h"

#include "probe/base/human.h"
#include "probe/base/jprint.h"
#include "probe/base/opt.h"

#include <math.h>
#include <stdlib.h>

/* Norm of the difference by the larger of both norms; a NaN counts as the largest. */
static double relative_of(const struct ckpt_row *row)
{
    const double norm = fmax(row->f.norm[0], row->f.norm[1]);
    if (!row->same_shape || isnan(row->f.l2))
        return HUGE_VAL;
    return norm > 0 ? row->f.l2 / norm : 0;
}

static int compare_rows(const void *a, const void *b)
{
    const struct ckpt_row *x = *(const struct ckpt_row *const *)a;
    const struct ckpt_row *y = *(const struct ckpt_row *const *)b;
    const double dx = relative_of(x), dy = relative_of(y);
    return dx != dy ? (dx < dy) - (dx > dy) : (x > y) - (x < y);
}

static void print_shape(const struct probe_ckpt_entry *e)
{
    printf("%s[", ms_dtype_torch(e->dtype));
    for (uint32_t d = 0; d < e->ndim; d++)
        printf("%s%llu", d != 0 ? ", " : "", (unsigned long long)e->shape[d]);
    printf("]");
}

static void print_row(const struct ckpt_row *row)
{
    printf("  %.*s  ", MS_STR_ARG(row->a->name));
    if (!row->same_shape) {
        print_shape(row->a);
        printf(" and ");
        print_shape(row->b);
        printf("\n");
        return;
    }
    printf("relative %.3g, l2 %.3g", relative_of(row), row->f.l2);
    if (row->f.has_cos)
        printf(", cos %.9g", row->f.cos);
    else
        printf(", one of them is zero");
    if (row->a->dtype != row->b->dtype)
        printf(", %s and %s", ms_dtype_torch(row->a->dtype), ms_dtype_torch(row->b->dtype));
    printf("\n");
}

static void print_rows(const struct ckpt_similarity *s, size_t most)
{
    const struct ckpt_row **sorted = ms_alloc((s->rows.n + 1) * sizeof *sorted);
    size_t n = 0;
    if (sorted == NULL)
        return;
    for (size_t i = 0; i < s->rows.n; i++) {
        if (!s->rows.p[i].same_shape || !s->rows.p[i].f.equal)
            sorted[n++] = &s->rows.p[i];
    }
    qsort(sorted, n, sizeof *sorted, compare_rows);
    char equal[MS_HUMAN_MAX], all[MS_HUMAN_MAX];
    printf("%s of %s weights identical%s\n", ms_human_count(equal, s->rows.n - n),
           ms_human_count(all, s->rows.n), n != 0 ? "; those that differ most:" : "");
    const size_t shown = ms_cmd_listed(n, most);
    for (size_t i = 0; i < shown; i++)
        print_row(sorted[i]);
    ms_cmd_more(stdout, n - shown, "weights that differ");
    ms_free(sorted);
}

void ckpt_show_text(const struct ckpt_similarity *s, const char *const paths[2], size_t most)
{
    print_rows(s, most);
    for (int side = 0; side < 2; side++) {
        const size_t n = s->only[side].n, shown = ms_cmd_listed(n, most);
        if (n != 0)
            printf("%zu only in %s (%s):\n", n, paths[side], probe_ckpt_kind(s->c[side]));
        for (size_t i = 0; i < shown; i++)
            printf("  %.*s\n", MS_STR_ARG(s->only[side].p[i]->name));
        ms_cmd_more(stdout, n - shown, "weights");
        for (size_t i = 0; i < probe_ckpt_notes(s->c[side]); i++)
            ms_cmd_note("config_check", "%.*s", MS_STR_ARG(probe_ckpt_note(s->c[side], i)));
    }
}

static void put_figure(struct ms_jwrite *w, const char *key, bool has, double v)
{
    ms_jwrite_key(w, ms_str_of(key));
    if (has && isfinite(v))
        ms_jwrite_f64(w, v);
    else
        ms_jwrite_null(w);
}

static void put_row(struct ms_jwrite *w, const struct ckpt_row *row)
{
    ms_jwrite_obj(w);
    ms_jwrite_ktext(w, "name", row->a->name);
    ms_jwrite_kbool(w, "same_shape", row->same_shape);
    put_figure(w, "relative", row->same_shape, relative_of(row));
    put_figure(w, "l2", row->same_shape, row->f.l2);
    put_figure(w, "cos", row->same_shape && row->f.has_cos, row->f.cos);
    ms_jwrite_obj_end(w);
}

static void put_only(struct ms_jwrite *w, const struct ckpt_similarity *s, int side,
                     const char *key)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < s->only[side].n; i++)
        ms_jwrite_str(w, s->only[side].p[i]->name);
    ms_jwrite_arr_end(w);
}

enum ms_rc ckpt_show_json(const struct ckpt_similarity *s, const char *output, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_ki64(&w, "weights", (int64_t)s->rows.n);
    ms_jwrite_key(&w, MS_STR("different"));
    ms_jwrite_arr(&w);
    for (size_t i = 0; i < s->rows.n; i++) {
        if (!s->rows.p[i].same_shape || !s->rows.p[i].f.equal)
            put_row(&w, &s->rows.p[i]);
    }
    ms_jwrite_arr_end(&w);
    put_only(&w, s, 0, "only_first");
    put_only(&w, s, 1, "only_second");
    ms_jwrite_key(&w, MS_STR("files"));
    ms_jwrite_arr(&w);
    ms_jwrite_str(&w, ms_str_of(output));
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

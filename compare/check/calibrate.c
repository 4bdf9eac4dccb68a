/* SPDX-License-Identifier: MIT
 *
 * calibrate: compares every pair of runs and summarises the differences.
 */
#include "compare/check/calibrate.h"
#include "compare/read/rules.h"

#include "compare/pair/ranks.h"
#include "compare/source/source.h"
#include "compare/table/comparison.h"
#include "probe/base/jwrite.h"

#include <math.h>
#include <stdlib.h>

enum { RENEW_GROUPS = 256, NAME_MAX_BYTES = 1 << 20 };

struct place { /* one step and rank of the runs */
    int64_t step, rank;
    struct ms_map rows;
    MS_VEC(double) noise; /* by row: the largest noise of all comparisons */
};

struct work {
    struct calibration *cal;
    MS_VEC(struct place) places;
    struct cmp_source *source;
    struct ms_pool *pool;
    const char *target, *golden;
};

/* ---- measuring --------------------------------------------------------------- */

static struct place *place_of(struct work *w, const struct probe_place *p, struct ms_err *err)
{
    for (size_t i = 0; i < w->places.n; i++) {
        if (w->places.p[i].step == p->step && w->places.p[i].rank == p->rank)
            return &w->places.p[i];
    }
    struct place *slot = ms_vec_push(&w->places);
    if (slot == NULL) {
        ms_no_memory(err);
        return NULL;
    }
    *slot = (struct place){.step = p->step, .rank = p->rank};
    return slot;
}

static enum ms_rc take_row(struct work *w, struct place *place, const struct cmp *c,
                           const struct cmp_row *row, struct ms_err *err)
{
    bool added;
    struct calibration *cal = w->cal;
    cal->warnings += row->level == CMP_WARNING;
    cal->errors += row->level == CMP_ERROR;
    if (!row->t.present || !row->b.present)
        return MS_OK;
    double noise = cmp__row_noise(c, row);
    if (isnan(noise))
        return MS_OK;
    cal->rows++;
    cal->equal += noise == 0;
    if (!(noise > 0) || isinf(noise))
        return MS_OK;
    uint32_t id = ms_map_put_copy(&place->rows, row->b.name, cal->arena, &added);
    double *slot = id == MS_MAP_NONE ? NULL
                   : added           ? ms_vec_push(&place->noise)
                                     : &place->noise.p[id];
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = added || noise > *slot ? noise : *slot;
    return MS_OK;
}

static enum ms_rc take_rows(struct work *w, struct place *place, const struct cmp *c,
                            struct ms_err *err)
{
    struct cmp_view v;
    MS_TRY(cmp_view_init(&v, err));
    enum ms_rc rc = MS_OK;
    for (size_t g = 0; g < cmp_groups(c) && rc == MS_OK; g++) {
        if (g % RENEW_GROUPS == 0)
            rc = cmp_view_renew(&v, err);
        if (rc == MS_OK)
            rc = cmp_view_group(c, g, &v, err);
        for (size_t i = 0; i < v.rows.n && rc == MS_OK; i++)
            rc = take_row(w, place, c, &v.rows.p[i], err);
    }
    cmp_view_free(&v);
    return rc;
}

static enum ms_rc take_notes(struct calibration *cal, const struct cmp *c, struct ms_err *err)
{
    const struct ms_str *list;
    for (size_t i = 0, n = cmp_problems(c, &list); i < n; i++) {
        if (ms_map_put_copy(&cal->notes, list[i], cal->arena, NULL) == MS_MAP_NONE)
            return ms_no_memory(err);
    }
    return MS_OK;
}

static enum ms_rc take_couple(struct work *w, const struct cmp_couple *couple, struct ms_err *err)
{
    struct cmp_conf conf = {.rules = &cmp_rules_ours};
    struct cmp *c;
    struct place *place = place_of(w, couple->b, err);
    if (place == NULL)
        return MS_E_NOMEM;
    MS_TRY(cmp_open(&c, &conf, couple->t->json, couple->b->json, w->pool, err));
    w->cal->mode = cmp_mode(c);
    enum ms_rc rc = take_notes(w->cal, c, err);
    if (rc == MS_OK)
        rc = cmp_measure(c, w->pool, err);
    if (rc == MS_OK)
        rc = take_rows(w, place, c, err);
    if (rc == MS_OK)
        rc = cmp_source_add(w->source, c, (int)couple->t->rank, (int)couple->t->step, w->pool, err);
    cmp_close(c);
    return rc;
}

/* ---- alarms --------------------------------------------------------------------- */

static enum ms_rc take_alarms(struct work *w, struct ms_err *err)
{
    const struct cmp_suspect *list;
    struct calibration *cal = w->cal;
    MS_TRY(cmp_source_find(w->source, err));
    size_t n = cmp_source_suspects(w->source, &list);
    cal->alarmed += n != 0;
    for (size_t i = 0; i < n; i++) {
        struct cal_alarm *a = ms_vec_push(&cal->alarms);
        if (a == NULL)
            return ms_no_memory(err);
        *a = (struct cal_alarm){
            .target = ms_arena_str(cal->arena, ms_str_of(w->target)),
            .golden = ms_arena_str(cal->arena, ms_str_of(w->golden)),
            .node = ms_arena_str(cal->arena,
                                 list[i].target.p != NULL ? list[i].target : list[i].golden),
            .message = {list[i].message.kind, ms_arena_str(cal->arena, list[i].message.args)},
            .rank = list[i].rank,
            .step = list[i].step};
        if (a->target.p == NULL || a->golden.p == NULL || a->node.p == NULL ||
            a->message.args.p == NULL)
            return ms_arena_fail(cal->arena, err);
    }
    return MS_OK;
}

static enum ms_rc compare_couples(struct work *w, const struct cmp_ranks *ranks, struct ms_err *err)
{
    MS_TRY(cmp_source_new(&w->source, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < ranks->list.n && rc == MS_OK; i++)
        rc = take_couple(w, &ranks->list.p[i], err);
    if (rc == MS_OK)
        rc = take_alarms(w, err);
    cmp_source_free(w->source);
    w->source = NULL;
    return rc;
}

static enum ms_rc compare_pair(struct work *w, const char *target, const char *golden,
                               struct ms_err *err)
{
    struct cmp_ranks ranks = {.arena = NULL};
    w->target = target;
    w->golden = golden;
    w->cal->comparisons++;
    enum ms_rc rc = cmp_ranks_pair(&ranks, target, golden, false, err);
    if (rc == MS_OK)
        rc = compare_couples(w, &ranks, err);
    cmp_ranks_free(&ranks);
    return rc != MS_OK ? ms_err_wrap(err, "%s and %s", target, golden) : MS_OK;
}

/* ---- figures --------------------------------------------------------------------- */

static int by_size(const void *p, const void *q)
{
    double x = *(const double *)p, y = *(const double *)q;
    return (x > y) - (x < y);
}

static enum ms_rc sum_up(struct work *w, struct ms_err *err)
{
    struct calibration *cal = w->cal;
    MS_VEC(double) all = {0};
    cal->median = cal->most = cal->p99 = NAN;
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < w->places.n && rc == MS_OK; i++) {
        const struct place *p = &w->places.p[i];
        for (uint32_t k = 0; k < p->noise.n && rc == MS_OK; k++) {
            double *slot = ms_vec_push(&all);
            if (slot == NULL)
                rc = ms_no_memory(err);
            else
                *slot = p->noise.p[k];
            if (!(p->noise.p[k] <= cal->most)) {
                cal->most = p->noise.p[k];
                cal->most_row = ms_map_key(&p->rows, k);
            }
        }
    }
    if (rc == MS_OK && all.n != 0) {
        qsort(all.p, all.n, sizeof *all.p, by_size);
        cal->median = all.p[all.n / 2];
        cal->p99 = all.p[(all.n - 1) * 99 / 100];
    }
    ms_vec_free(&all);
    return rc;
}

/* ---- the file ---------------------------------------------------------------------- */

static void put_place(struct ms_jwrite *j, const struct place *p)
{
    ms_jwrite_obj(j);
    ms_jwrite_kmaybe(j, "step", p->step);
    ms_jwrite_kmaybe(j, "rank", p->rank);
    ms_jwrite_key(j, MS_STR("rows"));
    ms_jwrite_obj(j);
    for (uint32_t i = 0; i < p->noise.n; i++) {
        ms_jwrite_key(j, ms_map_key(&p->rows, i));
        ms_jwrite_f64(j, p->noise.p[i]);
    }
    ms_jwrite_obj_end(j);
    ms_jwrite_obj_end(j);
}

static enum ms_rc write_file(const struct work *w, const char *path, struct ms_err *err)
{
    struct ms_out *out;
    struct ms_jwrite j;
    MS_TRY(ms_out_create(&out, path, err));
    ms_jwrite_init(&j, 1, 1 << 20);
    j.drain = ms_out_sink;
    j.ctx = out;
    ms_jwrite_obj(&j);
    ms_jwrite_ki64(&j, "noise_floor", 1);
    ms_jwrite_kstr(&j, "mode", probe_mode_text(w->cal->mode));
    ms_jwrite_key(&j, MS_STR("runs"));
    ms_jwrite_arr(&j);
    for (size_t i = 0; i < w->cal->nruns; i++)
        ms_jwrite_str(&j, ms_str_of(w->cal->runs[i]));
    ms_jwrite_arr_end(&j);
    ms_jwrite_key(&j, MS_STR("places"));
    ms_jwrite_arr(&j);
    for (size_t i = 0; i < w->places.n; i++)
        put_place(&j, &w->places.p[i]);
    ms_jwrite_arr_end(&j);
    ms_jwrite_obj_end(&j);
    enum ms_rc rc = ms_jwrite_finish(&j, err);
    ms_jwrite_free(&j);
    if (rc != MS_OK) {
        ms_out_abort(out);
        return rc;
    }
    ms_out_puts(out, "\n");
    return ms_out_commit(out, err);
}

/* ---- all ------------------------------------------------------------------------------ */

static enum ms_rc calibrate_all(struct work *w, const char *path, struct ms_err *err)
{
    struct calibration *cal = w->cal;
    cal->arena = ms_arena_new(SIZE_MAX);
    if (cal->arena == NULL)
        return ms_no_memory(err);
    for (size_t i = 1; i < cal->nruns; i++) {
        for (size_t k = 0; k < i; k++)
            MS_TRY(compare_pair(w, cal->runs[i], cal->runs[k], err));
    }
    MS_TRY(sum_up(w, err));
    return path != NULL ? write_file(w, path, err) : MS_OK;
}

enum ms_rc calibrate(struct calibration *cal, const char *const *runs, size_t n, const char *path,
                     struct ms_pool *pool, struct ms_err *err)
{
    *cal = (struct calibration){.runs = runs, .nruns = n};
    struct work w = {.cal = cal, .pool = pool};
    enum ms_rc rc = calibrate_all(&w, path, err);
    for (size_t i = 0; i < w.places.n; i++) {
        ms_map_free(&w.places.p[i].rows);
        ms_vec_free(&w.places.p[i].noise);
    }
    ms_vec_free(&w.places);
    if (rc != MS_OK)
        calibration_free(cal);
    return rc;
}

void calibration_free(struct calibration *cal)
{
    ms_vec_free(&cal->alarms);
    ms_map_free(&cal->notes);
    ms_arena_free(cal->arena);
    cal->arena = NULL;
}

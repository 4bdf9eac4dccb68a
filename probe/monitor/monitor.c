/* SPDX-License-Identifier: MIT
 *
 * monitor: series, their rows of the step, and the csv files.
 */
#include "probe/monitor/monitor_int.h"

#include "probe/base/assert.h"
#include "probe/base/calm.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name, *suffix; /* of its files, and of its tags */
} metrics[PROBE_MON_METRICS] = {
    [PROBE_MON_ACTV] = {"actv", "actv"},
    [PROBE_MON_ACTV_GRAD] = {"actv_grad", "actv_grad"},
    [PROBE_MON_GRAD_UNREDUCED] = {"grad_unreduced", "acc_grad"},
    [PROBE_MON_GRAD_REDUCED] = {"grad_reduced", "post_grad"},
    [PROBE_MON_EXP_AVG] = {"exp_avg", "exp_avg"},
    [PROBE_MON_EXP_AVG_SQ] = {"exp_avg_sq", "exp_avg_sq"},
    [PROBE_MON_PARAM_ORIGIN] = {"param_origin", "param_origin"},
    [PROBE_MON_PARAM_UPDATED] = {"param_updated", "param_updated"},
    [PROBE_MON_OTHER] = {"other", "mg_direction"},
};

struct series {
    struct probe_mon_row row;
    struct probe__mon_history history;
    uint32_t group;
    bool is_fresh; /* it has a row of this step */
    int64_t call;
};

struct table {
    struct ms_map names;
    MS_VEC(struct series) series; /* by the index of their name */
    MS_VEC(uint32_t) fresh;       /* those with a row of this step */
};

struct probe_monitor {
    struct probe_monitor_settings s;
    struct probe__mon_alert alert;
    struct table tables[PROBE_MON_METRICS];
    struct ms_arena *arena; /* names */
    struct ms_buf dir, out;
    uint32_t ops; /* a bit for each */
    int64_t calls;
};

enum { NAMES_MAX = 256 << 20, TEXT_MAX = 512 << 20 };

/* ---- opening ----------------------------------------------------------- */

enum ms_rc probe_monitor_open(struct probe_monitor **out, const struct probe_monitor_conf *conf,
                              struct ms_err *err)
{
    struct probe_monitor *m = ms_calloc(1, sizeof *m);
    *out = NULL;
    if (m == NULL || (m->arena = ms_arena_new(NAMES_MAX)) == NULL) {
        ms_free(m);
        return ms_no_memory(err);
    }
    m->s = *conf->settings;
    m->dir.max = 1 << 16;
    m->out.max = TEXT_MAX;
    ms_buf_puts(&m->dir, conf->dir);
    for (uint32_t i = 0; i < m->s.nops; i++)
        m->ops |= 1U << m->s.ops[i];
    enum ms_rc rc = ms_mkdirs(conf->dir, err);
    if (rc == MS_OK)
        rc = ms_buf_check(&m->dir, err);
    if (rc == MS_OK)
        rc = probe__mon_alert_open(&m->alert, conf, &m->s, err);
    if (rc != MS_OK) {
        probe_monitor_close(m);
        return rc;
    }
    *out = m;
    return MS_OK;
}

void probe_monitor_close(struct probe_monitor *m)
{
    if (m == NULL)
        return;
    for (unsigned i = 0; i < PROBE_MON_METRICS; i++) {
        ms_map_free(&m->tables[i].names);
        ms_vec_free(&m->tables[i].series);
        ms_vec_free(&m->tables[i].fresh);
    }
    probe__mon_alert_free(&m->alert);
    ms_arena_free(m->arena);
    ms_buf_free(&m->dir);
    ms_buf_free(&m->out);
    ms_free(m);
}

/* ---- rows -------------------------------------------------------------- */

/* Adds a name and its series, or neither. */
static enum ms_rc add_series(struct probe_monitor *m, struct table *t, uint32_t group,
                             struct ms_str name, uint32_t *at, struct ms_err *err)
{
    if (!ms_vec_reserve(&t->series, t->series.n + 1))
        return ms_no_memory(err);
    *at = ms_map_put_copy(&t->names, name, m->arena, NULL);
    if (*at == MS_MAP_NONE)
        return ms_no_memory(err);
    struct series *s = ms_vec_push(&t->series);
    *s = (struct series){.group = group};
    for (unsigned i = 0; i < PROBE_MON_OPS; i++)
        s->history.mean[i] = -1;
    return MS_OK;
}

/* Finds the series of a name, marked as given in this step. */
static enum ms_rc touch(struct probe_monitor *m, enum probe_mon_metric metric, uint32_t group,
                        struct ms_str name, struct series **out, struct ms_err *err)
{
    struct table *t = &m->tables[metric];
    uint32_t at = ms_map_get(&t->names, name);
    if (at == MS_MAP_NONE)
        MS_TRY(add_series(m, t, group, name, &at, err));
    if (!t->series.p[at].is_fresh) {
        uint32_t *slot = ms_vec_push(&t->fresh);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = at;
        t->series.p[at].is_fresh = true;
    }
    *out = &t->series.p[at];
    (*out)->call =
        metric == PROBE_MON_PARAM_ORIGIN || metric == PROBE_MON_PARAM_UPDATED ? -1 : m->calls++;
    return MS_OK;
}

void probe_monitor_row(const struct probe_monitor *m, struct probe_mon_row *row,
                       const struct probe_tensor *t, const char *dtype)
{
    probe_monitor_figures(row, t, dtype, m->ops, m->s.eps);
}

enum ms_rc probe_monitor_put(struct probe_monitor *m, enum probe_mon_metric metric, uint32_t group,
                             struct ms_str name, const struct probe_tensor *t, const char *dtype,
                             struct ms_err *err)
{
    struct series *s = NULL;
    MS_TRY(touch(m, metric, group, name, &s, err));
    if (t != NULL)
        probe_monitor_row(m, &s->row, t, dtype);
    else
        s->row = (struct probe_mon_row){.kind = PROBE_MON_NOTHING};
    for (unsigned i = 0; t == NULL && i < PROBE_MON_OPS; i++)
        s->row.figures[i] = NAN;
    return MS_OK;
}

enum ms_rc probe_monitor_put_row(struct probe_monitor *m, enum probe_mon_metric metric,
                                 uint32_t group, struct ms_str name,
                                 const struct probe_mon_row *row, struct ms_err *err)
{
    struct series *s = NULL;
    MS_TRY(touch(m, metric, group, name, &s, err));
    s->row = *row;
    return MS_OK;
}

void probe_monitor_called(struct probe_monitor *m)
{
    m->calls++;
}

void probe_monitor_each(const struct probe_monitor *m, enum probe_mon_metric metric,
                        probe_mon_visit visit, void *ctx)
{
    const struct table *t = &m->tables[metric];
    for (size_t i = 0; i < t->fresh.n; i++)
        visit(ctx, ms_map_key(&t->names, t->fresh.p[i]), &t->series.p[t->fresh.p[i]].row);
}

static void forget(struct probe_monitor *m, enum probe_mon_metric metric)
{
    struct table *t = &m->tables[metric];
    for (size_t i = 0; i < t->fresh.n; i++)
        t->series.p[t->fresh.p[i]].is_fresh = false;
    t->fresh.n = 0;
}

void probe_monitor_drop(struct probe_monitor *m)
{
    for (unsigned i = 0; i < PROBE_MON_METRICS; i++)
        forget(m, i);
    m->calls = 0;
}

/* ---- files ------------------------------------------------------------- */

static enum ms_rc append(const char *path, const struct ms_buf *header, const struct ms_buf *text,
                         struct ms_err *err)
{
    struct stat st;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0)
        return ms_fail_sys(err, "%s: cannot be opened", path);
    const size_t skip = fstat(fd, &st) == 0 && st.st_size != 0 ? header->n : 0;
    const size_t n = text->n - skip;
    struct ms_calm calm;
    ms_calm_file(&calm);
    const ssize_t done = write(fd, text->p + skip, n);
    ms_calm_end(&calm);
    enum ms_rc rc = MS_OK;
    if (done < 0 || (size_t)done != n)
        rc = done < 0 ? ms_fail_sys(err, "%s: cannot be written", path)
                      : ms_fail(err, MS_E_IO, "%s: written in part; is the disk full?", path);
    close(fd);
    return rc;
}

static const struct table *sorted; /* the interpreter, or the one thread of a program, guards it */

static int by_group(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const uint32_t gx = sorted->series.p[x].group, gy = sorted->series.p[y].group;
    return gx != gy ? (gx > gy) - (gx < gy) : (x > y) - (x < y);
}

static enum ms_rc ask_rules(struct probe_monitor *m, enum probe_mon_metric metric, int64_t step,
                            struct ms_err *err)
{
    struct table *t = &m->tables[metric];
    for (size_t i = 0; m->s.nrules != 0 && i < t->fresh.n; i++) {
        struct series *s = &t->series.p[t->fresh.p[i]];
        MS_TRY(probe__mon_alert_ask(&m->alert, &s->history, ms_map_key(&t->names, t->fresh.p[i]),
                                    metrics[metric].suffix, &s->row, step, s->call, err));
    }
    return MS_OK;
}

/* Appends the lines of one group, from line `at` on; returns the first line behind it, 0 without memory. */
static size_t put_group(struct probe_monitor *m, const struct table *t, size_t at, int64_t step)
{
    size_t end = at;
    const uint32_t group = t->series.p[t->fresh.p[at]].group;
    while (end < t->fresh.n && t->series.p[t->fresh.p[end]].group == group)
        end++;
    struct probe__mon_line *lines = ms_calloc(end - at, sizeof *lines);
    if (lines == NULL)
        return 0;
    for (size_t i = at; i < end; i++)
        lines[i - at] = (struct probe__mon_line){ms_map_key(&t->names, t->fresh.p[i]),
                                                 &t->series.p[t->fresh.p[i]].row};
    probe__mon_lines(&m->out, lines, end - at, &m->s, step);
    ms_free(lines);
    return end;
}

static enum ms_rc write_rows(struct probe_monitor *m, enum probe_mon_metric metric, int64_t step,
                             bool with_micro, struct ms_err *err)
{
    const struct table *t = &m->tables[metric];
    const int64_t first = step / m->s.step_count_per_record * m->s.step_count_per_record;
    struct ms_buf path = {.max = 1 << 16}, header = {.max = 1 << 16};
    ms_buf_clear(&m->out);
    probe__mon_header(&header, &m->s, with_micro);
    ms_buf_str(&m->out, ms_buf_slice(&header));
    enum ms_rc rc = MS_OK;
    for (size_t at = 0; rc == MS_OK && at < t->fresh.n;) {
        at = put_group(m, t, at, step);
        if (at == 0)
            rc = ms_no_memory(err);
    }
    ms_buf_printf(&path, "%s/%s_%lld-%lld.csv", ms_buf_z(&m->dir), metrics[metric].name,
                  (long long)first, (long long)(first + m->s.step_count_per_record - 1));
    if (rc == MS_OK)
        rc = ms_buf_check(&m->out, err);
    if (rc == MS_OK)
        rc = ms_buf_check(&header, err);
    if (rc == MS_OK)
        rc = ms_buf_check(&path, err);
    if (rc == MS_OK)
        rc = append(ms_buf_z(&path), &header, &m->out, err);
    ms_buf_free(&path);
    ms_buf_free(&header);
    return rc;
}

enum ms_rc probe_monitor_flush(struct probe_monitor *m, enum probe_mon_metric metric, int64_t step,
                               bool with_micro, bool is_kept, struct ms_err *err)
{
    struct table *t = &m->tables[metric];
    ms_assert(step >= 0);
    if (t->fresh.n == 0)
        return MS_OK;
    sorted = t;
    qsort(t->fresh.p, t->fresh.n, sizeof *t->fresh.p, by_group);
    enum ms_rc rc = ask_rules(m, metric, step, err);
    if (rc == MS_OK && !is_kept)
        rc = write_rows(m, metric, step, with_micro, err);
    forget(m, metric);
    return rc;
}

enum ms_rc probe_monitor_step_end(struct probe_monitor *m, uint32_t *alarms, struct ms_err *err)
{
    *alarms = m->alert.count;
    m->calls = 0;
    return probe__mon_alert_write(&m->alert, err);
}

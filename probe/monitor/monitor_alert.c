/* SPDX-License-Identifier: MIT
 *
 * monitor_alert: rules about figures, and the alarms in anomaly.json.
 *
 * A rule sees a figure and the weighted mean of the magnitudes of those before it. The file is one JSON object
 * at any time: a step's alarms are written over its closing bracket, in one call.
 */
#include "probe/monitor/monitor_int.h"

#include "probe/base/calm.h"
#include "probe/base/io.h"
#include "probe/base/jwrite.h"
#include "probe/base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

enum { TEXT_MAX = 64 << 20, KEYS_MAX = 256 << 20 };
static const double BETA = 0.99;

/* ---- the rules --------------------------------------------------------- */

static bool breaks(const struct probe_mon_rule *r, double v, double mean)
{
    if (r->is_nan)
        return isnan(v) || (r->has_threshold && fabs(v) > r->threshold);
    return fabs(v) > mean * (1 + r->threshold);
}

/* Returns the first rule that the figure breaks, NULL: none. */
static const struct probe_mon_rule *broken_rule(const struct probe_monitor_settings *s, double v,
                                                double mean)
{
    for (uint32_t i = 0; i < s->nrules; i++) {
        if (breaks(&s->rules[i], v, mean))
            return &s->rules[i];
    }
    return NULL;
}

/* Returns the mean before v and adds v. What is not finite is no history: a mean that is NaN once would never
 * raise an alarm again. */
static double mean_before(double *mean, double v)
{
    const double before = *mean >= 0 ? *mean : fabs(v);
    if (isfinite(v))
        *mean = BETA * before + (1 - BETA) * fabs(v);
    return before;
}

/* ---- the words --------------------------------------------------------- */

static void put_python(struct ms_buf *out, double v, bool is_whole)
{
    char text[MS_NUM_MAX];
    if (isnan(v))
        ms_buf_puts(out, "nan");
    else if (isinf(v))
        ms_buf_puts(out, v < 0 ? "-inf" : "inf");
    else
        ms_buf_put(out, text, is_whole ? ms_num_i64(text, (int64_t)v) : ms_num_f64(text, v));
}

static bool is_whole_figure(enum probe_mon_op op, const struct probe_mon_row *row)
{
    return op == PROBE_MON_NANS ||
           ((op == PROBE_MON_MIN || op == PROBE_MON_MAX || op == PROBE_MON_ID) &&
            row->kind == PROBE_MON_INTS);
}

/* ---- one alarm --------------------------------------------------------- */

struct alarm {
    struct ms_str name;
    const char *suffix;
    const struct probe_mon_row *row;
    int64_t step, call;
};

static void put_message(struct ms_buf *out, const struct probe_mon_rule *r, enum probe_mon_op op,
                        struct ms_str tag, const struct alarm *of, double mean, bool is_first)
{
    const double v = of->row->figures[op];
    const bool is_whole = is_whole_figure(op, of->row);
    ms_buf_printf(out,
                  "Rule %s reports anomaly signal in ('%.*s', '%s') at step %lld, current value ",
                  r->is_nan ? "AnomalyNan" : "AnomalyTurbulence", MS_STR_ARG(tag),
                  probe_monitor_op_name(op), (long long)of->step);
    put_python(out, v, is_whole);
    ms_buf_puts(out, ", history mean ");
    put_python(out, mean, is_whole && is_first);
    ms_buf_putc(out, '.');
}

static int64_t stage_of(struct ms_str name)
{
    uint64_t stage = 0;
    int64_t colon = ms_str_find(name, ':');
    return colon > 0 && ms_str_u64(ms_str_sub(name, 0, (uint32_t)colon), &stage) ? (int64_t)stage
                                                                                 : 0;
}

/* Writes the value of an alarm, in the form that anomaly.json has. */
static void put_alarm(struct ms_jwrite *w, const struct probe__mon_alert *a, const struct alarm *of,
                      struct ms_str tag, struct ms_str message)
{
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "rank", a->rank);
    ms_jwrite_ki64(w, "step", of->step);
    ms_jwrite_ki64(w, "micro_step", 0);
    ms_jwrite_ki64(w, "pp_stage", a->pp_stage);
    ms_jwrite_ki64(w, "vpp_stage", stage_of(of->name));
    ms_jwrite_ki64(w, "call_id", of->call);
    ms_jwrite_ktext(w, "tag_name", tag);
    ms_jwrite_ktext(w, "message", message);
    ms_jwrite_key(w, MS_STR("group_mates"));
    ms_jwrite_raw(w, ms_buf_slice(&a->mates));
    ms_jwrite_obj_end(w);
}

/* Keeps the text of an alarm under its key; the last of several of one key counts, at the place of the first. */
static enum ms_rc keep(struct probe__mon_alert *a, struct ms_str key, struct ms_str text,
                       struct ms_err *err)
{
    bool is_new;
    const struct ms_str copy = ms_arena_str(a->keys_arena, text);
    if (copy.p == NULL || !ms_vec_reserve(&a->texts, a->texts.n + 1))
        return ms_no_memory(err);
    const uint32_t at = ms_map_put_copy(&a->keys, key, a->keys_arena, &is_new);
    if (at == MS_MAP_NONE)
        return ms_no_memory(err);
    a->texts.n += is_new;
    a->texts.p[at] = copy;
    return MS_OK;
}

/* Writes `"KEY": {...}` as a member one level deep, without the braces around it. */
static enum ms_rc record(struct probe__mon_alert *a, const struct alarm *of, struct ms_str tag,
                         struct ms_str message, struct ms_err *err)
{
    struct ms_jwrite w;
    struct ms_buf key = {.max = TEXT_MAX};
    ms_buf_printf(&key, "%.*s_step_%lld_call_%lld", MS_STR_ARG(tag), (long long)of->step,
                  (long long)of->call);
    ms_jwrite_init(&w, 1, TEXT_MAX);
    ms_jwrite_obj(&w);
    ms_jwrite_key(&w, ms_buf_slice(&key));
    put_alarm(&w, a, of, tag, message);
    ms_jwrite_obj_end(&w);
    enum ms_rc rc = ms_jwrite_finish(&w, err);
    if (rc == MS_OK) /* without "{" and "\n}" */
        rc = keep(a, ms_buf_slice(&key), (struct ms_str){w.buf.p + 1, (uint32_t)w.buf.n - 3}, err);
    ms_jwrite_free(&w);
    ms_buf_free(&key);
    return rc;
}

static enum ms_rc raise_alarm(struct probe__mon_alert *a, const struct probe_mon_rule *r,
                              enum probe_mon_op op, const struct alarm *of, double mean,
                              bool is_first, struct ms_err *err)
{
    struct ms_buf tag = {.max = TEXT_MAX}, message = {.max = TEXT_MAX};
    ms_buf_printf(&tag, "%.*s/rank%lld/%s", MS_STR_ARG(of->name), (long long)a->rank, of->suffix);
    put_message(&message, r, op, ms_buf_slice(&tag), of, mean, is_first);
    a->count++;
    enum ms_rc rc = ms_buf_check(&message, err);
    if (rc == MS_OK && a->path.n != 0)
        rc = record(a, of, ms_buf_slice(&tag), ms_buf_slice(&message), err);
    ms_buf_free(&tag);
    ms_buf_free(&message);
    return rc;
}

static enum ms_rc ask_one(struct probe__mon_alert *a, double *mean, enum probe_mon_op op,
                          const struct alarm *of, struct ms_err *err)
{
    const bool is_first = *mean < 0;
    const double before = mean_before(mean, of->row->figures[op]);
    const struct probe_mon_rule *r = broken_rule(a->s, of->row->figures[op], before);
    if (r == NULL || (!r->is_nan && op != PROBE_MON_NORM && op != PROBE_MON_MEAN))
        return MS_OK;
    return raise_alarm(a, r, op, of, before, is_first, err);
}

enum ms_rc probe__mon_alert_ask(struct probe__mon_alert *a, struct probe__mon_history *history,
                                struct ms_str name, const char *suffix,
                                const struct probe_mon_row *row, int64_t step, int64_t call,
                                struct ms_err *err)
{
    const struct alarm of = {name, suffix, row, step, call};
    for (uint32_t k = 0; k < a->s->nops; k++) {
        const enum probe_mon_op op = a->s->ops[k];
        if (op == PROBE_MON_SHAPE || op == PROBE_MON_DTYPE || (op == PROBE_MON_ID && !row->has_id))
            continue;
        MS_TRY(ask_one(a, &history->mean[op], op, &of, err));
    }
    return MS_OK;
}

/* ---- the file ---------------------------------------------------------- */

static enum ms_rc write_at(const char *path, int flags, const char *p, size_t n, off_t at,
                           struct ms_err *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, 0640);
    if (fd < 0)
        return ms_fail_sys(err, "%s: cannot be opened", path);
    struct ms_calm calm;
    ms_calm_file(&calm);
    const ssize_t done = pwrite(fd, p, n, at);
    ms_calm_end(&calm);
    enum ms_rc rc = MS_OK;
    if (done < 0 || (size_t)done != n)
        rc = done < 0 ? ms_fail_sys(err, "%s: cannot be written", path)
                      : ms_fail(err, MS_E_IO, "%s: written in part; is the disk full?", path);
    close(fd);
    return rc;
}

static void put_mates(struct probe__mon_alert *a, const struct probe_monitor_conf *conf)
{
    ms_buf_puts(&a->mates, conf->nmates != 0 ? "[" : "[]");
    for (size_t i = 0; i < conf->nmates; i++)
        ms_buf_printf(&a->mates, "%s\n   %lld", i != 0 ? "," : "", (long long)conf->mates[i]);
    ms_buf_puts(&a->mates, conf->nmates != 0 ? "\n  ]" : "");
}

static enum ms_rc begin_file(struct probe__mon_alert *a, const char *base, struct ms_err *err)
{
    struct ms_buf dir = {.max = 1 << 16};
    ms_buf_printf(&dir, "%s/anomaly_detected/rank%lld", base, (long long)a->rank);
    enum ms_rc rc = ms_mkdirs(ms_buf_z(&dir), err);
    ms_buf_printf(&a->path, "%s/anomaly.json", ms_buf_z(&dir));
    ms_buf_free(&dir);
    a->size = 1;
    if (rc == MS_OK)
        rc = ms_buf_check(&a->path, err);
    return rc == MS_OK ? write_at(ms_buf_z(&a->path), O_CREAT | O_TRUNC, "{}", 2, 0, err) : rc;
}

enum ms_rc probe__mon_alert_open(struct probe__mon_alert *a, const struct probe_monitor_conf *conf,
                                 const struct probe_monitor_settings *s, struct ms_err *err)
{
    *a = (struct probe__mon_alert){.s = s,
                                   .rank = conf->rank,
                                   .pp_stage = conf->pp_stage,
                                   .mates.max = 1 << 20,
                                   .path.max = 1 << 16};
    a->keys_arena = ms_arena_new(KEYS_MAX);
    if (a->keys_arena == NULL)
        return ms_no_memory(err);
    put_mates(a, conf);
    return s->alert_dump ? begin_file(a, conf->base, err) : MS_OK;
}

void probe__mon_alert_free(struct probe__mon_alert *a)
{
    ms_buf_free(&a->mates);
    ms_buf_free(&a->path);
    ms_map_free(&a->keys);
    ms_vec_free(&a->texts);
    ms_arena_free(a->keys_arena);
}

/* Forgets the alarms of the step. */
static enum ms_rc forget(struct probe__mon_alert *a, struct ms_err *err)
{
    ms_map_free(&a->keys);
    a->keys = (struct ms_map){0};
    ms_vec_free(&a->texts);
    ms_arena_free(a->keys_arena);
    a->keys_arena = ms_arena_new(KEYS_MAX);
    a->count = 0;
    return a->keys_arena != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc append(struct probe__mon_alert *a, struct ms_err *err)
{
    struct ms_buf out = {.max = KEYS_MAX};
    for (size_t i = 0; i < a->texts.n; i++) {
        if (i != 0 || a->is_begun)
            ms_buf_putc(&out, ',');
        ms_buf_str(&out, a->texts.p[i]);
    }
    const size_t members = out.n;
    ms_buf_puts(&out, "\n}");
    enum ms_rc rc = ms_buf_check(&out, err);
    if (rc == MS_OK)
        rc = write_at(ms_buf_z(&a->path), 0, out.p, out.n, (off_t)a->size, err);
    if (rc == MS_OK) {
        a->size += members;
        a->is_begun = true;
    }
    ms_buf_free(&out);
    return rc;
}

enum ms_rc probe__mon_alert_write(struct probe__mon_alert *a, struct ms_err *err)
{
    if (a->texts.n == 0) {
        a->count = 0;
        return MS_OK;
    }
    enum ms_rc rc = append(a, err);
    enum ms_rc forgotten = forget(a, err);
    return rc != MS_OK ? rc : forgotten;
}

/* SPDX-License-Identifier: MIT
 *
 * trend_monitor: converts CSV files of the training monitor into a trend database.
 *
 *     ROOT/Aug14_10-21-07-rank3-1a2b3c4d/grad_reduced_0-9.csv
 *       vpp_stage,name,step,micro_step,norm,max,min
 *
 * The files are read twice, because the steps, metrics and statistics of all files decide the
 * columns of the tables and the numbering of micro steps.
 */
#include "probe/trend/trend_int.h"

#include "probe/base/csv.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/trace.h"

#include <math.h>
#include <stdlib.h>

enum { NAME_MAX_BYTES = 1 << 20 };
#define CSV_MAX ((size_t)1 << 32)

static const char *const metric_names[PROBE__METRICS] = {
    "actv",         "actv_grad",    "exp_avg",       "exp_avg_sq", "grad_unreduced",
    "grad_reduced", "param_origin", "param_updated", "other"};
static const char *const stat_names[PROBE__STATS] = {
    "norm",        "min", "max",         "zeros", "nans",     "mean",  "entropy",
    "softmax_max", "sr",  "kernel_norm", "std_x", "jacobian", "proxy", "token_similarity"};

struct csv_path {
    struct ms_str path;
    int64_t rank;
    unsigned metric;
    bool bad; /* reported; not read again */
};

/* A step, the largest number of its micro steps in any file, and the number of its first one. */
struct step {
    int64_t step, count, first;
};

struct monitor {
    struct probe__trend_job *job;
    struct ms_arena *arena;
    MS_VEC(struct csv_path) files;
    MS_VEC(struct step) steps; /* sorted once they are counted */
    struct ms_map step_index;  /* text of a step -> index in steps, while counting */
    uint32_t metric_stats[PROBE__METRICS];
    struct probe__trend_range range;
    bool any_row;
    /* Metrics and statistics that the database has: */
    const char *metrics[PROBE__METRICS], *stats[PROBE__STATS];
    unsigned metric_at[PROBE__METRICS], nmetrics, nstats, stat_at[PROBE__STATS];
    struct probe__trend_db db;
    struct ms_buf renamed[2];
    uint64_t skipped; /* rows skipped */
};

/* ---- which files ------------------------------------------------------ */

/* Tells whether a name is "Aug14_10-21-07-rank3-1a2b": up to 20 letters, digits, '_' and '-', then
 * "-rankN-". */
bool probe__is_rank_dir(struct ms_str name, int64_t *rank)
{
    for (uint32_t at = 0; at <= 20 && at < name.n; at++) {
        struct ms_str rest = ms_str_sub(name, at, name.n);
        struct ms_str digits;
        if (ms_str_starts(rest, MS_STR("-rank"))) {
            rest = ms_str_sub(rest, 5, rest.n);
            uint32_t all = rest.n;
            if (ms_str_split(&rest, '-', &digits) && digits.n < all && digits.n <= 5 &&
                ms_str_all_digits(digits) && ms_str_i64(digits, rank))
                return true;
        }
        char c = name.p[at];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '-';
        if (!word)
            return false;
    }
    return false;
}

const char *probe__metric_name(unsigned metric)
{
    return metric_names[metric];
}

/* Tells whether a name is "METRIC_0-9.csv". */
bool probe__is_metric_file(struct ms_str name, unsigned *metric)
{
    int64_t bar = ms_str_rfind(name, '_');
    struct ms_str from, to;
    if (bar < 0 || !ms_str_ends(name, MS_STR(".csv")))
        return false;
    to = ms_str_sub(name, (uint32_t)bar + 1, name.n - 4);
    if (!ms_str_split(&to, '-', &from) || !ms_str_all_digits(from) || to.p == NULL ||
        !ms_str_all_digits(to))
        return false;
    for (*metric = 0; *metric < PROBE__METRICS; ++*metric) {
        if (ms_str_is(ms_str_sub(name, 0, (uint32_t)bar), metric_names[*metric]))
            return true;
    }
    return false;
}

static enum ms_rc add_file(struct monitor *m, const char *dir, struct ms_str name, int64_t rank,
                           unsigned metric, struct ms_err *err)
{
    char *path = ms_path_join(dir, name.p);
    struct csv_path *slot = path != NULL ? ms_vec_push(&m->files) : NULL;
    if (slot != NULL)
        *slot = (struct csv_path){ms_arena_str(m->arena, ms_str_of(path)), rank, metric, false};
    ms_free(path);
    return slot != NULL && slot->path.p != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc list_rank_dir(struct monitor *m, const char *dir, int64_t rank,
                                struct ms_err *err)
{
    struct ms_dir d;
    unsigned metric;
    enum ms_rc rc = MS_OK;
    MS_TRY(ms_dir_list(&d, dir, err));
    for (size_t i = 0; i < d.names.n && rc == MS_OK; i++) {
        if (probe__is_metric_file(d.names.p[i], &metric))
            rc = add_file(m, dir, d.names.p[i], rank, metric, err);
    }
    ms_dir_free(&d);
    return rc;
}

static enum ms_rc list_names(struct monitor *m, const struct ms_dir *d, struct ms_err *err)
{
    for (size_t i = 0; i < d->names.n; i++) {
        int64_t rank;
        if (!probe__is_rank_dir(d->names.p[i], &rank))
            continue;
        char *sub = ms_path_join(m->job->conf->data, d->names.p[i].p);
        if (sub == NULL)
            return ms_no_memory(err);
        enum ms_rc rc = MS_OK;
        if (ms_path_kind(sub) == MS_KIND_DIR)
            rc = list_rank_dir(m, sub, rank, err);
        ms_free(sub);
        MS_TRY(rc);
    }
    return MS_OK;
}

static enum ms_rc list_files(struct monitor *m, struct ms_err *err)
{
    struct ms_dir d;
    MS_TRY(ms_dir_list(&d, m->job->conf->data, err));
    enum ms_rc rc = list_names(m, &d, err);
    ms_dir_free(&d);
    if (rc == MS_OK && m->files.n == 0)
        return ms_fail(err, MS_E_NOTFOUND,
                       "%s: no monitor output in it; expected TIME-rankN-ID/METRIC_A-B.csv",
                       m->job->conf->data);
    return rc;
}

/* ---- one file --------------------------------------------------------- */

/* Index of each column in a row; -1: not in the file. */
struct columns {
    int name, stage, step, micro;
    int stat[PROBE__STATS];
    size_t n;
};

struct line {
    struct ms_str name; /* after mapping */
    int64_t stage, step, micro;
    const struct columns *columns;
    const struct ms_csv *csv;
};
typedef enum ms_rc (*line_fn)(struct monitor *m, const struct csv_path *file,
                              const struct line *line, struct ms_err *err);

static int column_of(const struct ms_csv *csv, const char *name)
{
    for (size_t i = 0; i < csv->fields.n; i++) {
        if (ms_str_is(csv->fields.p[i], name))
            return (int)i;
    }
    return -1;
}

static enum ms_rc read_header(struct columns *c, struct ms_csv *csv, struct ms_err *err)
{
    bool more;
    MS_TRY(ms_csv_next(csv, &more, err));
    if (!more)
        return ms_fail(err, MS_E_FORMAT, "the file is empty");
    *c = (struct columns){.name = column_of(csv, "name"),
                          .stage = column_of(csv, "vpp_stage"),
                          .step = column_of(csv, "step"),
                          .micro = column_of(csv, "micro_step"),
                          .n = csv->fields.n};
    for (int i = 0; i < PROBE__STATS; i++)
        c->stat[i] = column_of(csv, stat_names[i]);
    if (c->name < 0 || c->stage < 0)
        return ms_fail_at(err, MS_E_FORMAT, 1, 0, "no column '%s'",
                          c->name < 0 ? "name" : "vpp_stage");
    return MS_OK;
}

/* Reads a whole number; a missing column counts as 0. */
static bool parse_whole(const struct ms_csv *csv, int column, int64_t *out)
{
    const double most = 9007199254740992.0; /* 2^53 */
    double v;
    *out = 0;
    if (column < 0)
        return true;
    if ((size_t)column >= csv->fields.n || !ms_csv_number(csv->fields.p[column], &v) ||
        !(v >= -most && v <= most))
        return false;
    *out = (int64_t)v;
    return true;
}

/* Reads a row; *good is false for a row that cannot be used. */
static enum ms_rc read_line(struct monitor *m, struct line *line, bool *good, struct ms_err *err)
{
    const struct columns *c = line->columns;
    const struct ms_csv *csv = line->csv;
    if (csv->fields.n > c->n)
        return ms_fail_at(err, MS_E_FORMAT, csv->line, csv->at - csv->start,
                          "%zu fields where the header has %zu", csv->fields.n, c->n);
    *good = (size_t)c->name < csv->fields.n && csv->fields.p[c->name].n != 0 &&
            parse_whole(csv, c->stage, &line->stage) && parse_whole(csv, c->step, &line->step) &&
            parse_whole(csv, c->micro, &line->micro) && line->micro >= 0;
    if (!*good)
        return MS_OK;
    return probe__rename(&m->job->renames, csv->fields.p[c->name], m->renamed, &line->name, err);
}

static enum ms_rc read_lines(struct monitor *m, const struct csv_path *file, struct ms_csv *csv,
                             line_fn fn, struct ms_err *err)
{
    struct columns columns;
    bool more, good = false;
    MS_TRY(read_header(&columns, csv, err));
    for (unsigned i = 0; i < PROBE__STATS; i++)
        m->metric_stats[file->metric] |= columns.stat[i] >= 0 ? 1u << i : 0;
    for (;;) {
        struct line line = {.columns = &columns, .csv = csv};
        MS_TRY(ms_csv_next(csv, &more, err));
        if (!more)
            return MS_OK;
        MS_TRY(read_line(m, &line, &good, err));
        m->skipped += !good;
        if (good)
            MS_TRY(fn(m, file, &line, err));
    }
}

static enum ms_rc read_file(struct monitor *m, const struct csv_path *file, line_fn fn,
                            struct ms_err *err)
{
    struct ms_file map;
    struct ms_csv csv;
    MS_TRY(ms_file_map(&map, file->path.p, CSV_MAX, err));
    ms_csv_init(&csv, map.p, map.n);
    enum ms_rc rc = read_lines(m, file, &csv, fn, err);
    ms_csv_free(&csv);
    ms_file_unmap(&map);
    return rc == MS_OK ? MS_OK : (ms_err_wrap(err, "%s", file->path.p), rc);
}

/* ---- first reading: steps and statistics ------------------------------ */

static enum ms_rc find_step(struct monitor *m, int64_t number, struct step **step,
                            struct ms_err *err)
{
    char text[24];
    bool added;
    int n = snprintf(text, sizeof text, "%lld", (long long)number);
    uint32_t id =
        ms_map_put_copy(&m->step_index, (struct ms_str){text, (uint32_t)n}, m->arena, &added);
    *step = id == MS_MAP_NONE ? NULL : added ? ms_vec_push(&m->steps) : &m->steps.p[id];
    if (*step == NULL)
        return ms_no_memory(err);
    if (added)
        **step = (struct step){.step = number};
    return MS_OK;
}

static enum ms_rc count_line(struct monitor *m, const struct csv_path *file,
                             const struct line *line, struct ms_err *err)
{
    struct step *step;
    (void)file;
    MS_TRY(find_step(m, line->step, &step, err));
    if (line->micro >= step->count)
        step->count = line->micro + 1;
    m->any_row = true;
    return MS_OK;
}

static int by_step(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    return (x->step > y->step) - (x->step < y->step);
}

/* Numbers the steps: each begins where the micro steps of the one before end. */
static void number_steps(struct monitor *m)
{
    int64_t next = 0;
    if (m->steps.n == 0)
        return;
    qsort(m->steps.p, m->steps.n, sizeof *m->steps.p, by_step);
    for (size_t i = 0; i < m->steps.n; i++) {
        m->steps.p[i].first = next;
        if (__builtin_add_overflow(next, m->steps.p[i].count, &next))
            next = INT64_MAX;
    }
    m->range.min_step = m->job->conf->micro_step ? 0 : m->steps.p[0].step;
    m->range.max_step = m->job->conf->micro_step ? next - 1 : m->steps.p[m->steps.n - 1].step;
}

/* Counts the steps of all files. A file that cannot be read is reported once. */
static enum ms_rc count_files(struct monitor *m, struct probe_trend_file *out, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("count");
    for (size_t i = 0; i < m->files.n; i++) {
        struct ms_err bad = {0};
        struct csv_path *f = &m->files.p[i];
        enum ms_rc rc = read_file(m, f, count_line, &bad);
        if (rc == MS_E_NOMEM)
            return ms_fail(err, rc, "%s", bad.msg);
        f->bad = rc != MS_OK;
        out->inputs += rc == MS_OK;
        out->failed += rc != MS_OK;
        if (rc != MS_OK)
            probe__trend_note(m->job, &bad);
        if (rc == MS_OK && f->rank > m->range.max_rank)
            m->range.max_rank = f->rank;
    }
    number_steps(m);
    ms_span_end(&span);
    return MS_OK;
}

/* ---- second reading: rows --------------------------------------------- */

static int64_t shown_step(const struct monitor *m, const struct line *line)
{
    const struct step key = {.step = line->step};
    const struct step *s = bsearch(&key, m->steps.p, m->steps.n, sizeof key, by_step);
    return m->job->conf->micro_step && s != NULL ? s->first + line->micro : line->step;
}

static enum ms_rc put_line(struct monitor *m, const struct csv_path *file, const struct line *line,
                           struct ms_err *err)
{
    double values[PROBE__STATS];
    uint32_t target;
    unsigned metric = m->metric_at[file->metric];
    for (unsigned i = 0; i < m->nstats; i++) {
        int column = line->columns->stat[m->stat_at[i]];
        bool there = column >= 0 && (size_t)column < line->csv->fields.n;
        if (!there || !ms_csv_number(line->csv->fields.p[column], &values[i]))
            values[i] = NAN;
    }
    MS_TRY(probe__trend_target(&m->db, metric, line->name, line->stage,
                               m->job->conf->micro_step ? 0 : line->micro, &target, err));
    return probe__trend_row(&m->db, file->rank, shown_step(m, line), target, metric, values, err);
}

/* Chooses the metrics and statistics that some file has, in the order of the viewer. */
static void choose_columns(struct monitor *m)
{
    uint32_t any = 0;
    bool present[PROBE__METRICS] = {false};
    for (size_t i = 0; i < m->files.n; i++)
        present[m->files.p[i].metric] |= !m->files.p[i].bad;
    for (unsigned i = 0; i < PROBE__METRICS; i++) {
        if (!present[i])
            continue;
        m->metric_at[i] = m->nmetrics;
        m->metrics[m->nmetrics++] = metric_names[i];
        any |= m->metric_stats[i];
    }
    for (unsigned i = 0; i < PROBE__STATS; i++) {
        if ((any & 1u << i) == 0)
            continue;
        m->stat_at[m->nstats] = i;
        m->stats[m->nstats++] = stat_names[i];
    }
}

static enum ms_rc put_files(struct monitor *m, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("convert");
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < m->files.n && rc == MS_OK; i++) {
        if (!m->files.p[i].bad)
            rc = read_file(m, &m->files.p[i], put_line, err);
    }
    ms_span_end(&span);
    return rc;
}

static enum ms_rc finish(struct monitor *m, struct probe_trend_file *out, struct ms_err *err)
{
    uint32_t stats_of[PROBE__METRICS] = {0};
    for (unsigned i = 0; i < PROBE__METRICS; i++) {
        for (unsigned s = 0; s < m->nstats; s++) {
            if ((m->metric_stats[i] & 1u << m->stat_at[s]) != 0)
                stats_of[m->metric_at[i]] |= 1u << s;
        }
    }
    out->rows = m->db.rows;
    out->targets = m->db.targets.n;
    return probe__trend_db_finish(&m->db, &m->range, false, stats_of, probe__monitor_tags, err);
}

static void note_skipped(const struct monitor *m)
{
    struct ms_err note = {0};
    if (m->skipped == 0)
        return;
    ms_fail(&note, MS_E_FORMAT, "%s: %llu rows without a name or a whole number for their step",
            m->job->conf->data, (unsigned long long)m->skipped);
    note.rc = MS_OK;
    probe__trend_note(m->job, &note);
}

static enum ms_rc convert(struct monitor *m, struct probe_trend_file *out, struct ms_err *err)
{
    MS_TRY(list_files(m, err));
    MS_TRY(count_files(m, out, err));
    choose_columns(m);
    if (!m->any_row || m->nstats == 0)
        return ms_fail(err, MS_E_NOTFOUND, "%s: no row with a statistic in %zu monitor files",
                       m->job->conf->data, m->files.n);
    note_skipped(m);
    out->path.max = NAME_MAX_BYTES;
    ms_buf_printf(&out->path, "%s/monitor_data.trend.db", m->job->conf->db);
    MS_TRY(ms_buf_check(&out->path, err));
    MS_TRY(probe__trend_db_open(&m->db, ms_buf_z(&out->path), m->metrics, m->nmetrics, m->stats,
                                m->nstats, err));
    MS_TRY(put_files(m, err));
    return finish(m, out, err);
}

enum ms_rc probe__trend_monitor(struct probe__trend_job *j, struct probe_trend_file *out,
                                struct ms_err *err)
{
    struct monitor m = {.job = j,
                        .renamed = {{.max = NAME_MAX_BYTES}, {.max = NAME_MAX_BYTES}},
                        .arena = ms_arena_new(SIZE_MAX)};
    enum ms_rc rc = m.arena != NULL ? convert(&m, out, err) : ms_no_memory(err);
    probe__trend_db_free(&m.db);
    ms_vec_free(&m.files);
    ms_vec_free(&m.steps);
    ms_map_free(&m.step_index);
    ms_buf_free(&m.renamed[0]);
    ms_buf_free(&m.renamed[1]);
    ms_arena_free(m.arena);
    return rc;
}

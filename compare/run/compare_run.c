/* SPDX-License-Identifier: MIT
 *
 * compare_run: takes the dumps of all ranks through all stages.
 *
 * Tensor dumps are measured by all processes, other dumps by the process that owns the
 * couple. Process 0 finds the suspects of all ranks and reports.
 */
#include "compare/run/compare_run.h"

#include "compare/check/diff.h"
#include "compare/read/rules.h"
#include "compare/write/out.h"
#include "compare/write/partners.h"

#include "probe/base/clock.h"
#include "probe/base/jprint.h"
#include "probe/base/opt.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* ---- progress ------------------------------------------------------------- */

/* A cmp_progress_fn. */
static void show_pace(void *ctx, const struct cmp_progress *p)
{
    struct ms_progress *bar = ctx;
    const enum ms_pace_unit unit = p->is_bytes ? MS_PACE_BYTES : MS_PACE_ROWS;
    bar->what = p->what;
    ms_progress_show(bar, &(struct ms_pace){p->share, p->amount, unit});
}

/* ---- files of a couple ------------------------------------------------------ */

/* Makes the path of the table without its suffix: DIR/FOLDER/compare_result_rank0_20260814102107 */
static char *stem_of(const struct cmp_run *run, const struct cmp *c,
                     const struct cmp_couple *couple)
{
    struct ms_buf b = {.max = 1 << 16};
    ms_buf_puts(&b, run->conf.output);
    ms_buf_printf(&b, "/%s%s", couple->folder, couple->folder[0] != 0 ? "/" : "");
    ms_buf_printf(&b, "%scompare_result%s_%s", cmp_is_debug(c) ? "debug_" : "", couple->suffix,
                  run->stamp);
    char *stem = b.bad == MS_OK ? ms_str_dup(ms_buf_slice(&b)) : NULL;
    ms_buf_free(&b);
    return stem;
}

enum beside { ADVICE, ROWS_OF_LAYERS, ALIGNED_ROWS, ALIGNED_LAYERS };

static enum ms_rc write_as(const struct cmp_run *run, enum beside what, const struct cmp *c,
                           const char *path, struct cmp_files *files, struct ms_err *err)
{
    switch (what) {
    case ADVICE:
        return run->conf.write_advice(c, path, files, err);
    case ROWS_OF_LAYERS:
        return cmp_write_mapping(c, path, files, err);
    default:
        return cmp_write_alignment(c, what == ALIGNED_LAYERS, path, files, err);
    }
}

/* Writes a file beside the table: DIR/FOLDER/data_mapping_rank0_20260814102107.yaml */
static enum ms_rc write_beside(const struct cmp_run *run, const struct cmp *c,
                               const struct cmp_couple *couple, struct cmp_files *files,
                               enum beside what, struct ms_err *err)
{
    static const char *const names[] = {"advisor", "data_mapping", "data_mapping", "layer_mapping"};
    struct ms_buf b = {.max = 1 << 16};
    ms_buf_printf(&b, "%s/%s%s%s%s_%s.%s", run->conf.output, couple->folder,
                  couple->folder[0] != 0 ? "/" : "", names[what], couple->suffix, run->stamp,
                  what == ADVICE ? "txt" : "yaml");
    enum ms_rc rc = write_as(run, what, c, ms_buf_z(&b), files, err);
    ms_buf_free(&b);
    return rc;
}

static enum ms_rc write_files(struct cmp_run *run, const struct cmp *c,
                              const struct cmp_couple *couple, struct cmp_result *r,
                              struct ms_err *err)
{
    char *stem = stem_of(run, c, couple);
    if (stem == NULL)
        return ms_fail(err, MS_E_NOMEM, "out of memory");
    enum ms_rc rc = run->conf.xlsx ? cmp_write_xlsx(c, stem, &r->sum, &r->files, err)
                                   : cmp_write_csv(c, stem, run->pool, &r->sum, &r->files, err);
    ms_free(stem);
    if (rc == MS_OK && cmp_maps_layers(c))
        rc = write_beside(run, c, couple, &r->files, ROWS_OF_LAYERS, err);
    for (enum beside what = ALIGNED_ROWS; what <= ALIGNED_LAYERS; what++) {
        if (rc == MS_OK && run->conf.write_mapping && cmp_alignment(c) != NULL)
            rc = write_beside(run, c, couple, &r->files, what, err);
    }
    if (rc == MS_OK && run->conf.write_advice != NULL)
        rc = write_beside(run, c, couple, &r->files, ADVICE, err);
    return rc;
}

/* Selects the noise floor of the couple: the calibration, or the second run's dump of the same
 * rank. */
static enum ms_rc choose_noise(struct cmp_run *run, const struct cmp_couple *couple,
                               struct ms_err *err)
{
    run->cmp.noise_step = couple->b->step;
    run->cmp.noise_rank = couple->b->rank;
    run->cmp.noise_floor = run->calibrated ? run->conf.noise : NULL;
    for (size_t i = 0; i < run->noise.list.n; i++) {
        const struct probe_place *p = &run->noise.list.p[i];
        bool same = p->rank == couple->b->rank && strcmp(p->part, couple->b->part) == 0 &&
                    (p->step == couple->b->step || p->step < 0 || couple->b->step < 0);
        if (same || run->noise.list.n == 1)
            run->cmp.noise_floor = p->json;
    }
    if (run->conf.noise == NULL || run->cmp.noise_floor != NULL)
        return MS_OK;
    return ms_fail(err, MS_E_NOTFOUND, "%s has no dump to go with %s", run->conf.noise,
                   couple->b->json);
}

/* Opens the dumps of a couple with their noise floor. */
static enum ms_rc open_couple(struct cmp_run *run, const struct cmp_couple *couple, struct cmp **c,
                              struct ms_err *err)
{
    *c = NULL;
    MS_TRY(choose_noise(run, couple, err));
    return cmp_open(c, &run->cmp, couple->t->json, couple->b->json, run->pool, err);
}

/* Tells whether this process looks for suspects: process 0 does, unless rows are folded. */
static bool has_suspects(const struct cmp_run *run)
{
    return ms_par_rank(run->par) == 0 && run->cmp.consistent == CMP_CONSISTENT_NO;
}

/* Tells whether the couple gets a table; the official tool writes none for a dump without rows. */
static bool has_table(const struct cmp_run *run, const struct cmp *c)
{
    return !run->cmp.rules->skips_empty || !cmp_is_empty(c);
}

static enum ms_rc compare_couple(struct cmp_run *run, size_t i, struct ms_err *err)
{
    const struct cmp_couple *couple = &run->ranks.list.p[i];
    struct cmp_result *r = run->report.list.p[i];
    struct ms_err opened = {0};
    struct cmp *c;
    if (!cmp_spread_joins(&run->spread, i))
        return MS_OK;
    (void)open_couple(run, couple, &c, &opened);
    enum ms_rc rc = cmp_spread_measure(&run->spread, i, c, &opened, run->pool, err);
    if (rc == MS_OK && cmp_spread_owns(&run->spread, i)) {
        if (has_table(run, c))
            rc = write_files(run, c, couple, r, err);
        if (rc == MS_OK)
            rc = cmp_report_take(r, c, err);
        if (rc == MS_OK && has_suspects(run))
            rc = cmp_source_add(run->source, c, couple->t->rank, couple->t->step, run->pool, err);
    }
    cmp_close(c);
    return rc;
}

typedef enum ms_rc (*couple_fn)(struct cmp_run *run, size_t i, struct ms_err *err);

/* Reports the ranks that failed; an error only when all failed. */
static enum ms_rc report_failures(const struct cmp_run *run, struct ms_err *err)
{
    size_t failed = 0;
    for (size_t i = 0; i < run->report.list.n; i++) {
        const struct ms_err *e = &run->report.list.p[i]->err;
        if (e->rc == MS_OK)
            continue;
        failed++;
        if (run->report.list.n == 1)
            *err = *e;
        else
            run->conf.fail(e);
    }
    if (failed == 1 && run->report.list.n == 1)
        return err->rc;
    return failed < run->report.list.n
               ? MS_OK
               : ms_fail(err, MS_E_FORMAT, "none of the %zu ranks could be compared", failed);
}

/* Runs fn for all couples and brings the results to process 0. fn may skip couples of other
 * processes. A rank that cannot be compared does not stop the others. */
static enum ms_rc run_couples(struct cmp_run *run, couple_fn fn, struct ms_err *err)
{
    bool alone = ms_par_size(run->par) == 1;
    for (size_t i = 0; i < run->ranks.list.n; i++) {
        if (cmp_report_add(&run->report, &run->ranks.list.p[i]) == NULL)
            return ms_fail(err, MS_E_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < run->ranks.list.n; i++) {
        struct ms_err e = {0};
        enum ms_rc rc = fn(run, i, &e);
        if (alone && (rc == MS_E_INTERRUPTED || rc == MS_E_NOMEM)) {
            *err = e;
            return rc;
        }
        if (rc != MS_OK)
            run->report.list.p[i]->err = e;
    }
    MS_TRY(cmp_spread_gather(&run->spread, &run->report, err));
    return ms_par_rank(run->par) == 0 ? report_failures(run, err) : MS_OK;
}

/* Explains the pairing of one node for --explain; explain_all skips ranks without the node. */
static enum ms_rc explain_one(struct cmp_run *run, const struct cmp_couple *couple,
                              struct ms_buf *out, struct ms_err *err)
{
    struct cmp *c;
    MS_TRY(cmp_open(&c, &run->cmp, couple->t->json, couple->b->json, run->pool, err));
    const struct ms_str *problems;
    for (size_t i = 0, n = cmp_problems(c, &problems); i < n; i++)
        run->conf.note(problems[i].p);
    enum ms_rc rc = cmp_explain(c, ms_str_of(run->conf.explain), out, err);
    cmp_close(c);
    return rc;
}

/* Adds what was explained of one couple: the lines of the text, and which dump they are of. */
static void json_explained(struct ms_jwrite *w, const struct cmp_couple *couple, struct ms_str text)
{
    struct ms_str line;
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "dump", couple->t->json);
    ms_jwrite_key(w, MS_STR("lines"));
    ms_jwrite_arr(w);
    while (ms_str_split(&text, '\n', &line)) {
        if (line.n != 0)
            ms_jwrite_str(w, line);
    }
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

/* Shows what was explained of one couple; w NULL: as text. */
static void show_explained(const struct cmp_run *run, const struct cmp_couple *couple,
                           struct ms_buf *text, bool is_first, struct ms_jwrite *w)
{
    if (w != NULL) {
        json_explained(w, couple, ms_buf_slice(text));
        return;
    }
    if (run->ranks.list.n > 1)
        printf("%s%s%s:\n", is_first ? "" : "\n", couple->folder,
               couple->suffix + (couple->suffix[0] == '_'));
    fputs(ms_buf_z(text), stdout);
}

static enum ms_rc explain_all(struct cmp_run *run, struct ms_jwrite *w, struct ms_err *err)
{
    size_t found = 0;
    for (size_t i = 0; i < run->ranks.list.n; i++) {
        const struct cmp_couple *couple = &run->ranks.list.p[i];
        struct ms_buf text = {.max = 1 << 24};
        struct ms_err why = {0};
        enum ms_rc rc = explain_one(run, couple, &text, &why);
        if (rc == MS_OK)
            show_explained(run, couple, &text, found++ == 0, w);
        ms_buf_free(&text);
        if (rc != MS_OK && (rc != MS_E_NOTFOUND || (i + 1 == run->ranks.list.n && found == 0))) {
            *err = why;
            return rc;
        }
    }
    return MS_OK;
}

/* A failure leaves standard output empty. */
static enum ms_rc explain_as_json(struct cmp_run *run, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_kstr(&w, "node", run->conf.explain);
    ms_jwrite_key(&w, MS_STR("explained"));
    ms_jwrite_arr(&w);
    const enum ms_rc rc = explain_all(run, &w, err);
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, rc, err);
}

static enum ms_rc explain(struct cmp_run *run, struct ms_err *err)
{
    return run->conf.explain_json ? explain_as_json(run, err) : explain_all(run, NULL, err);
}

/* Observes in process 0, which finds the suspects of all ranks, a couple that another process has
 * compared. */
static enum ms_rc observe_couple(struct cmp_run *run, size_t i, struct ms_err *err)
{
    const struct cmp_couple *couple = &run->ranks.list.p[i];
    struct cmp *c;
    MS_TRY(open_couple(run, couple, &c, err));
    enum ms_rc rc = cmp_measure(c, run->pool, err);
    if (rc == MS_OK)
        rc = cmp_source_add(run->source, c, couple->t->rank, couple->t->step, run->pool, err);
    cmp_close(c);
    return rc;
}

/* Writes DIR/suspects_20260814102107.csv and the file of roles. */
static enum ms_rc write_suspects(struct cmp_run *run, struct ms_err *err)
{
    return cmp_write_suspects(run->source, run->conf.output, run->stamp, run->conf.xlsx,
                              &run->report.list.p[0]->files, err);
}

static enum ms_rc compare_all(struct cmp_run *run, struct ms_err *err)
{
    MS_TRY(cmp_source_new(&run->source, err));
    MS_TRY(run_couples(run, compare_couple, err));
    if (!has_suspects(run))
        return MS_OK;
    for (size_t i = 0; i < run->report.list.n; i++) {
        if (!cmp_spread_owns(&run->spread, i) && run->report.list.p[i]->err.rc == MS_OK)
            MS_TRY(observe_couple(run, i, err));
    }
    run->report.source = run->source;
    MS_TRY(cmp_source_find(run->source, err));
    return run->cmp.ext ? write_suspects(run, err) : MS_OK;
}

/* ---- -da -------------------------------------------------------------- */

static enum ms_rc trace_couple(struct cmp_run *run, size_t i, struct ms_err *err)
{
    const struct cmp_couple *couple = &run->ranks.list.p[i];
    struct cmp_result *r = run->report.list.p[i];
    struct cmp *c;
    if (!cmp_spread_owns(&run->spread, i))
        return MS_OK;
    MS_TRY(cmp_open(&c, &run->cmp, couple->t->json, couple->b->json, run->pool, err));
    char *stem = stem_of(run, c, couple);
    r->trail.rank = couple->t->rank < 0 ? 0 : couple->t->rank;
    enum ms_rc rc = stem != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "out of memory");
    if (rc == MS_OK && has_table(run, c))
        rc = cmp_write_diff(c, stem, &r->trail, &r->files, err);
    ms_free(stem);
    if (rc == MS_OK)
        rc = cmp_report_count(r, c, err);
    cmp_close(c);
    return rc;
}

static enum ms_rc write_blamed(struct cmp_run *run, struct cmp_diff_out *d, size_t i,
                               uint32_t group, struct ms_err *err)
{
    const struct cmp_couple *couple = &run->ranks.list.p[i];
    struct cmp *c;
    char rank[32];
    MS_TRY(cmp_open(&c, &run->cmp, couple->t->json, couple->b->json, run->pool, err));
    snprintf(rank, sizeof rank, "rank_%lld",
             (long long)(couple->t->rank < 0 ? 0 : couple->t->rank));
    cmp_diff_rank(d, rank);
    enum ms_rc rc = cmp_diff_node(d, c, group, err);
    if (rc == MS_OK)
        rc = cmp_report_blame(run->report.list.p[i], c, group, err);
    cmp_close(c);
    return rc;
}

static enum ms_rc write_blamed_ranks(struct cmp_run *run, const uint32_t *blamed,
                                     struct ms_err *err)
{
    struct cmp_diff_out *d = NULL;
    struct ms_buf path = {.max = 1 << 16};
    ms_buf_printf(&path, "%s/diff_analyze_%lld.json", run->conf.output,
                  (long long)ms_clock_read(CLOCK_REALTIME));
    enum ms_rc rc = cmp_files_add(&run->report.list.p[0]->files, ms_buf_slice(&path), err);
    if (rc == MS_OK)
        rc = cmp_diff_open(&d, ms_buf_z(&path), err);
    ms_buf_free(&path);
    MS_TRY(rc);
    for (size_t i = 0; i < run->ranks.list.n && rc == MS_OK; i++) {
        if (blamed[i] != MS_MAP_NONE)
            rc = write_blamed(run, d, i, blamed[i], err);
    }
    enum ms_rc end = cmp_diff_close(d, rc == MS_OK, err);
    return rc != MS_OK ? rc : end;
}

/* Finds the first differing operators from the trails of all ranks, which process 0 has now. */
static enum ms_rc blame_first(struct cmp_run *run, struct ms_err *err)
{
    size_t n = run->report.list.n;
    struct cmp_trail *trails = ms_calloc(n, sizeof *trails);
    uint32_t *blamed = ms_calloc(n, sizeof *blamed);
    enum ms_rc rc = MS_OK;
    if (trails == NULL || blamed == NULL)
        rc = ms_fail(err, MS_E_NOMEM, "out of memory");
    for (size_t i = 0; rc == MS_OK && i < n; i++)
        trails[i] = run->report.list.p[i]->trail;
    size_t found = 0;
    if (rc == MS_OK)
        rc = cmp_diff_blame(trails, n, run->cmp.rules->official_diff, blamed, &found, err);
    if (rc == MS_OK && found != 0)
        rc = write_blamed_ranks(run, blamed, err);
    ms_free(trails);
    ms_free(blamed);
    return rc;
}

/* Clears the mappings, because the official tool pairs rows by name for -da regardless of other
 * options. */
static void forget_mappings(struct cmp_conf *conf)
{
    conf->fuzzy = false;
    conf->data_mapping = NULL;
    conf->api = conf->cell = conf->layer = (struct cmp_mapping){0};
    conf->consistent = CMP_CONSISTENT_NO;
}

static enum ms_rc analyze_rows(struct cmp_run *run, struct ms_err *err)
{
    run->cmp.summarise = true;
    if (run->cmp.rules->official_diff)
        forget_mappings(&run->cmp);
    MS_TRY(run_couples(run, trace_couple, err));
    return ms_par_rank(run->par) == 0 ? blame_first(run, err) : MS_OK;
}

/* ---- entry -------------------------------------------------------------------- */

void cmp_run_stamp(char stamp[16])
{
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(stamp, 16, "%Y%m%d%H%M%S", &tm);
}

static void configure_run(struct cmp_run *run)
{
    run->cmp = run->conf.cmp;
    if (run->cmp.rules == NULL)
        run->cmp.rules = &cmp_rules_ours;
    if (ms_progress_ok(STDERR_FILENO) && ms_par_rank(run->par) == 0) {
        run->cmp.progress = show_pace;
        run->cmp.progress_ctx = &run->bar;
    }
    cmp_run_stamp(run->stamp);
}

/* Prepares the parts of the run that need no other process. */
static enum ms_rc prepare(struct cmp_run *run, struct ms_err *err)
{
    configure_run(run);
    MS_TRY(ms_pool_new(&run->pool, (unsigned)ms_globals.threads, err));
    MS_TRY(cmp_ranks_pair(&run->ranks, run->conf.target, run->conf.golden,
                          run->cmp.rules->official_ranks, err));
    run->calibrated = run->conf.noise != NULL && cmp_is_calibration(run->conf.noise);
    return run->conf.noise != NULL && !run->calibrated
               ? probe_find(&run->noise, run->conf.noise, err)
               : MS_OK;
}

/* Prepares the run in all processes; fails in each of them when one could not prepare. */
static enum ms_rc meet_processes(struct cmp_run *run, struct ms_err *err)
{
    struct ms_err together = {0};
    enum ms_rc rc = prepare(run, err);
    enum ms_rc met = cmp_spread_init(&run->spread, run->par, rc == MS_OK, &run->ranks, &together);
    if (rc != MS_OK)
        return rc;
    if (met != MS_OK)
        *err = together;
    return met == MS_OK ? ms_par_share(run->par, run->stamp, sizeof run->stamp, err) : met;
}

/* Prints the notes on the pairing of ranks, at most `most` of them, 0: all. */
static void print_notes(const struct cmp_run *run)
{
    const size_t n = run->ranks.notes.n, listed = ms_cmd_listed(n, run->conf.most);
    for (size_t i = 0; i < listed; i++)
        run->conf.note(run->ranks.notes.p[i]);
    ms_cmd_more(stderr, n - listed, "notes");
}

enum ms_rc compare_run(struct cmp_run *run, const struct cmp_run_conf *conf, struct ms_par *par,
                       struct ms_err *err)
{
    *run = (struct cmp_run){.conf = *conf, .par = par};
    MS_TRY(meet_processes(run, err));
    if (ms_par_rank(par) == 0)
        print_notes(run);
    bool files = ms_path_kind(conf->target) == MS_KIND_FILE;
    if (conf->explain != NULL)
        return ms_par_rank(par) == 0 ? explain(run, err) : MS_OK;
    bool diff = conf->diff && !(files && run->cmp.rules->official_diff);
    return diff ? analyze_rows(run, err) : compare_all(run, err);
}

void compare_run_free(struct cmp_run *run)
{
    cmp_report_free(&run->report);
    cmp_source_free(run->source);
    cmp_spread_free(&run->spread);
    cmp_ranks_free(&run->ranks);
    if (run->noise.arena != NULL)
        probe_places_free(&run->noise);
    ms_pool_free(run->pool);
}

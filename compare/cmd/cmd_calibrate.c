/* SPDX-License-Identifier: MIT
 *
 * cmd_calibrate: `msprobe calibrate`.
 */
#include "compare/check/calibrate.h"
#include "compare/run/report.h"
#include "probe/base/clock.h"
#include "probe/base/human.h"
#include "probe/base/jprint.h"
#include "probe/base/opt.h"

#include <math.h>

extern const struct ms_cmd compare_cmd_calibrate;

enum { RUNS_MAX = 64 };

struct args {
    struct ms_opt_list runs;
    const char *output;
    int format;
    bool exit_code;
};

static const struct ms_opt opts[] = {
    {"RUN", NULL, MS_OPT_REST, offsetof(struct args, runs), .min = 2, .max = RUNS_MAX,
     .help = "two or more dumps of equal runs: files or directories"},
    {"output_path", "o", MS_OPT_PATH, offsetof(struct args, output), "FILE", .dash = MS_DASH_OUTPUT,
     .help = "write the noise of every row to FILE, for compare --noise_floor"},
    MS_OPT_FORMAT(struct args, format),
    {"exit_code", NULL, MS_OPT_FLAG, offsetof(struct args, exit_code),
     .help = "exit with 1 when there was a false alarm"},
    {0}};

/* ---- text ------------------------------------------------------------------- */

static const char *plural_of(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_noise(const struct calibration *cal)
{
    char rows[MS_HUMAN_MAX], equal[MS_HUMAN_MAX];
    printf("noise         %s row%s, %s without any\n", ms_human_count(rows, cal->rows),
           plural_of(cal->rows), ms_human_count(equal, cal->equal));
    if (isnan(cal->most))
        return;
    printf("              of the others median %.2g, 99 of 100 below %.2g, worst %.2g%s\n",
           cal->median, cal->p99, cal->most,
           cal->mode == PROBE_MODE_TENSOR ? "" : ", which are lower bounds");
    printf("              worst in %.*s\n", MS_STR_ARG(cal->most_row));
}

static void print_alarms(const struct calibration *cal)
{
    if (cal->alarms.n == 0)
        printf("false alarms  none in %zu comparison%s\n", cal->comparisons,
               plural_of(cal->comparisons));
    else
        printf("false alarms  %zu in %zu of %zu comparison%s\n", cal->alarms.n, cal->alarmed,
               cal->comparisons, plural_of(cal->comparisons));
    for (size_t i = 0; i < cal->alarms.n; i++) {
        const struct cal_alarm *a = &cal->alarms.p[i];
        printf("  %.*s against %.*s: %.*s\n    ", MS_STR_ARG(a->target), MS_STR_ARG(a->golden),
               MS_STR_ARG(a->node));
        cmp_report_message_text(a->message);
        putchar('\n');
    }
    printf("verdicts      %llu warning%s, %llu error%s\n", (unsigned long long)cal->warnings,
           plural_of(cal->warnings), (unsigned long long)cal->errors, plural_of(cal->errors));
}

static void print_text(const struct calibration *cal, const char *path)
{
    for (uint32_t i = 0; i < cal->notes.keys.n; i++)
        printf("note: %.*s\n", MS_STR_ARG(ms_map_key(&cal->notes, i)));
    print_noise(cal);
    print_alarms(cal);
    if (path != NULL)
        puts(ms_opt_shown(path));
}

/* ---- JSON -------------------------------------------------------------------- */

static void put_real(struct ms_jwrite *w, const char *key, double v)
{
    ms_jwrite_key(w, ms_str_of(key));
    if (isnan(v))
        ms_jwrite_null(w);
    else
        ms_jwrite_f64(w, v);
}

static void put_alarm(struct ms_jwrite *w, const struct cal_alarm *a)
{
    ms_jwrite_obj(w);
    ms_jwrite_ktext(w, "target_run", a->target);
    ms_jwrite_ktext(w, "golden_run", a->golden);
    ms_jwrite_ktext(w, "target", a->node);
    ms_jwrite_ki64(w, "rank", a->rank);
    ms_jwrite_ki64(w, "step", a->step);
    ms_jwrite_key(w, MS_STR("text"));
    cmp_report_message_json(w, a->message);
    ms_jwrite_obj_end(w);
}

static void put_summary(struct ms_jwrite *w, const struct calibration *cal, int64_t took_ns)
{
    ms_jwrite_key(w, MS_STR("summary"));
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "runs", (int64_t)cal->nruns);
    ms_jwrite_ki64(w, "comparisons", (int64_t)cal->comparisons);
    ms_jwrite_ki64(w, "rows", (int64_t)cal->rows);
    ms_jwrite_ki64(w, "equal", (int64_t)cal->equal);
    ms_jwrite_ki64(w, "warning", (int64_t)cal->warnings);
    ms_jwrite_ki64(w, "error", (int64_t)cal->errors);
    ms_jwrite_ki64(w, "alarmed", (int64_t)cal->alarmed);
    ms_jwrite_kf64(w, "seconds", (double)took_ns / 1e9);
    ms_jwrite_obj_end(w);
}

/* Prints the result; path is NULL when no file was written. */
static enum ms_rc print_json(const struct calibration *cal, const char *path, int64_t took_ns,
                             struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    put_summary(&w, cal, took_ns);
    ms_jwrite_key(&w, MS_STR("noise"));
    ms_jwrite_obj(&w);
    put_real(&w, "median", cal->median);
    put_real(&w, "p99", cal->p99);
    put_real(&w, "worst", cal->most);
    ms_jwrite_ktext(&w, "worst_row", cal->most_row.p != NULL ? cal->most_row : MS_STR(""));
    ms_jwrite_obj_end(&w);
    ms_jwrite_key(&w, MS_STR("false_alarms"));
    ms_jwrite_arr(&w);
    for (size_t i = 0; i < cal->alarms.n; i++)
        put_alarm(&w, &cal->alarms.p[i]);
    ms_jwrite_arr_end(&w);
    ms_jwrite_key(&w, MS_STR("notes"));
    ms_jwrite_arr(&w);
    for (uint32_t i = 0; i < cal->notes.keys.n; i++)
        ms_jwrite_str(&w, ms_map_key(&cal->notes, i));
    ms_jwrite_arr_end(&w);
    ms_jwrite_key(&w, MS_STR("files"));
    ms_jwrite_arr(&w);
    if (path != NULL)
        ms_jwrite_str(&w, ms_str_of(ms_opt_shown(path)));
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

/* ---- the command ---------------------------------------------------------------- */

static enum ms_rc check_runs(const struct args *a, struct ms_err *err)
{
    for (size_t i = 0; i < a->runs.n; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(a->runs.items[i], a->runs.items[k]) == 0)
                return ms_fail(err, MS_E_ARG, "%s is given twice; a run has no noise of its own",
                               a->runs.items[i]);
        }
    }
    return MS_OK;
}

static enum ms_rc run_job(const struct args *a, struct calibration *cal, struct ms_err *err)
{
    struct ms_pool *pool;
    MS_TRY(check_runs(a, err));
    MS_TRY(ms_pool_new(&pool, (unsigned)ms_globals.threads, err));
    enum ms_rc rc =
        calibrate(cal, (const char *const *)a->runs.items, a->runs.n, a->output, pool, err);
    ms_pool_free(pool);
    return rc;
}

static int run_command(int argc, char **argv)
{
    struct args a = {.output = NULL};
    struct ms_err err = {0};
    struct calibration cal;
    bool done;
    int64_t start = ms_clock_ns();
    if (ms_opt_parse(&compare_cmd_calibrate, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_calibrate, &err);
    if (done)
        return MS_EXIT_OK;
    if (run_job(&a, &cal, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_calibrate, &err);
    enum ms_rc rc = MS_OK;
    if (a.format == MS_FORMAT_JSON)
        rc = print_json(&cal, a.output, ms_clock_ns() - start, &err);
    else
        print_text(&cal, a.output);
    int code = a.exit_code && cal.alarms.n != 0 ? MS_EXIT_FOUND : MS_EXIT_OK;
    calibration_free(&cal);
    if (rc != MS_OK)
        return ms_cmd_fail(&compare_cmd_calibrate, &err);
    return code;
}

const struct ms_cmd compare_cmd_calibrate = {
    .name = "calibrate",
    .run = run_command,
    .job = MS_JOB_FIRST,
    .brief = "measure the noise between runs that should be equal",
    .opts = opts,
    .usage = "[options] RUN RUN...",
    .about =
        "Compares runs of one program that differ by noise only: by threads, blocking and the "
        "order of sums. Reports how large the noise is and whether compare would name any of it "
        "as a suspect (a false alarm). With -o it writes the noise of every row to a file for "
        "compare --noise_floor.\n"
        "\n"
        "  msprobe calibrate ref ref2 ref3 -o noise.json\n"
        "  msprobe compare -tp run -gp ref --ext --noise_floor noise.json\n",
};

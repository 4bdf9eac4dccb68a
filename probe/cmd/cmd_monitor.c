/* SPDX-License-Identifier: MIT
 *
 * monitor: what the training monitor wrote, for people and for other tools.
 */
#include "probe/base/human.h"
#include "probe/base/io.h"
#include "probe/base/jprint.h"
#include "probe/base/jread.h"
#include "probe/base/mem.h"
#include "probe/base/opt.h"
#include "probe/trend/anomaly.h"
#include "probe/trend/events.h"
#include "probe/trend/trend.h"

#include <unistd.h>

struct args {
    const char *data_path, *out_path, *steps, *csv2tb, *csv2db;
    struct ms_opt_list dir;
    int64_t topk;
    bool whole_steps;
    int format;
};

enum { FORMAT_TEXT, FORMAT_JSON };
static const char *const formats[] = {"text", "json", NULL};

static const struct ms_opt opts[] = {
    {"DIR", NULL, MS_OPT_REST, offsetof(struct args, dir), "DIR", .dash = MS_DASH_FOLDER, .max = 1,
     .help = "folder that the monitor wrote, MONITOR_OUTPUT_DIR"},
    {"csv2tb", NULL, MS_OPT_PATH, offsetof(struct args, csv2tb), "OUT", .dash = MS_DASH_FOLDER,
     .help = "write the csv files as event files of TensorBoard below OUT"},
    {"csv2db", NULL, MS_OPT_PATH, offsetof(struct args, csv2db), "OUT", .dash = MS_DASH_FOLDER,
     .help = "write the csv files as the trend viewer's database into OUT"},
    {"whole_steps", NULL, MS_OPT_FLAG, offsetof(struct args, whole_steps),
     .help = "csv2db: micro steps are no steps of their own"},
    {"data_path", "d", MS_OPT_PATH, offsetof(struct args, data_path), "DIR", .dash = MS_DASH_FOLDER,
     .help = "sort the alarms of this folder, which has rankN/anomaly.json; of DIR it is "
             "anomaly_detected"},
    {"out_path", "o", MS_OPT_PATH, offsetof(struct args, out_path), "DIR", .dash = MS_DASH_FOLDER,
     .help = "folder for anomaly_analyse.json, else the one with the alarms"},
    {"topk", "k", MS_OPT_INT, offsetof(struct args, topk), "N", .dflt = "8", .min = 1,
     .max = INT32_MAX, .help = "how many of the earliest alarms"},
    {"step", "s", MS_OPT_TEXT, offsetof(struct args, steps), "LIST", .dflt = "[]",
     .help = "alarms of these steps alone, as in [0,1,2]; of all: []"},
    {"format", NULL, MS_OPT_CHOICE, offsetof(struct args, format), "FORMAT", .choices = formats,
     .dflt = "text", .help = "of what is said of alarms: text for people, json for programs"},
    {0}};

extern const struct ms_cmd probe_cmd_monitor;

static void show_note(void *ctx, const struct ms_err *why)
{
    (void)ctx;
    ms_cmd_note("monitor", "%s", why->msg);
}

/* ---- alarms ------------------------------------------------------------ */

struct steps {
    MS_VEC(int64_t) v;
};

static enum ms_rc read_steps(struct steps *s, const char *text, struct ms_err *err)
{
    struct ms_jread r;
    enum ms_jtok tok;
    ms_jread_init(&r, text, strlen(text), 0);
    if (ms_jread_next(&r) != MS_J_ARR)
        return ms_fail(err, MS_E_ARG, "option --step: expected a list such as [0,1,2], found %s",
                       text);
    while ((tok = ms_jread_next(&r)) == MS_J_NUM) {
        int64_t *slot = ms_vec_push(&s->v);
        if (slot == NULL)
            return ms_no_memory(err);
        if (!ms_jread_i64(&r, slot))
            return ms_fail(err, MS_E_ARG, "option --step: expected whole numbers, found %s", text);
    }
    if (tok != MS_J_ARR_END || ms_jread_next(&r) != MS_J_END)
        return ms_fail(err, MS_E_ARG, "option --step: expected a list such as [0,1,2], found %s",
                       text);
    return MS_OK;
}

static void show_alarms(const struct probe_anomalies *a, const char *path)
{
    printf("%zu earliest alarms, in %s\n", probe_anomalies_count(a), path);
    for (size_t i = 0; i < probe_anomalies_count(a); i++)
        printf("%zu: %.*s\n", i, MS_STR_ARG(probe_anomalies_at(a, i)->message));
}

static enum ms_rc json_alarms(const struct probe_anomalies *a, const char *path, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_kstr(&w, "file", path);
    ms_jwrite_key(&w, MS_STR("alarms"));
    ms_jwrite_arr(&w);
    for (size_t i = 0; i < probe_anomalies_count(a); i++) {
        const struct probe_anomaly *alarm = probe_anomalies_at(a, i);
        ms_jwrite_obj(&w);
        ms_jwrite_ki64(&w, "rank", alarm->rank);
        ms_jwrite_ki64(&w, "step", alarm->step);
        ms_jwrite_ki64(&w, "micro_step", alarm->micro_step);
        ms_jwrite_ktext(&w, "tag", alarm->tag);
        ms_jwrite_ktext(&w, "text", alarm->message);
        ms_jwrite_obj_end(&w);
    }
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

static enum ms_rc sort_alarms(const struct args *args, const char *dir, const struct steps *steps,
                              struct ms_err *err)
{
    struct probe_anomalies *a;
    char *path =
        ms_path_join(args->out_path != NULL ? args->out_path : dir, "anomaly_analyse.json");
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = probe_anomalies_read(&a, dir, show_note, NULL, err);
    if (rc == MS_OK) {
        rc = probe_anomalies_choose(a, (size_t)args->topk, steps->v.p, steps->v.n, err);
        if (rc == MS_OK)
            rc = probe_anomalies_write(a, path, err);
        if (rc == MS_OK && args->format == FORMAT_JSON)
            rc = json_alarms(a, path, err);
        else if (rc == MS_OK)
            show_alarms(a, path);
        probe_anomalies_free(a);
    }
    ms_free(path);
    return rc;
}

static enum ms_rc process_alarms(const struct args *args, const char *dir, struct ms_err *err)
{
    struct steps steps = {0};
    enum ms_rc rc = read_steps(&steps, args->steps, err);
    if (rc == MS_OK)
        rc = sort_alarms(args, dir, &steps, err);
    ms_vec_free(&steps.v);
    return rc;
}

/* ---- conversions ------------------------------------------------------- */

static enum ms_rc to_events(const char *dir, const char *out, struct ms_err *err)
{
    struct probe_events_made made;
    char files[MS_HUMAN_MAX], values[MS_HUMAN_MAX], read[MS_HUMAN_MAX];
    MS_TRY(probe_events_convert(&made, dir, out, show_note, NULL, err));
    printf("%s: %s values in %s event files from %s csv files\n", out,
           ms_human_count(values, made.values), ms_human_count(files, made.files),
           ms_human_count(read, made.read));
    return made.failed == 0 ? MS_OK
                            : ms_fail(err, MS_E_FORMAT, "%s: some files could not be read", dir);
}

static enum ms_rc to_database(const struct args *args, const char *dir, struct ms_err *err)
{
    const struct probe_trend_conf conf = {.data = dir,
                                          .db = args->csv2db,
                                          .from = PROBE_TREND_MONITOR,
                                          .micro_step = !args->whole_steps,
                                          .on_note = show_note};
    struct probe_trended done;
    char rows[MS_HUMAN_MAX], targets[MS_HUMAN_MAX];
    MS_TRY(probe_trend_convert(&done, &conf, NULL, err));
    printf("%s: %s rows of %s targets\n", ms_buf_z(&done.monitor.path),
           ms_human_count(rows, done.monitor.rows), ms_human_count(targets, done.monitor.targets));
    const bool failed = done.monitor.failed != 0;
    probe_trended_free(&done);
    return failed ? ms_fail(err, MS_E_FORMAT, "%s: some files could not be read", dir) : MS_OK;
}

static enum ms_rc fail_no_alarms(const char *dir, struct ms_err *err)
{
    if (access(dir, R_OK) != 0)
        return ms_fail_sys(err, "%s", dir);
    return ms_fail(
        err, MS_E_NOTFOUND,
        "%s: no alarms in it, which are anomaly_detected/rankN/anomaly.json; --csv2db and "
        "--csv2tb convert its csv files",
        dir);
}

/* Without an option: the alarms, where there are some. */
static enum ms_rc process(const struct args *args, struct ms_err *err)
{
    const char *dir = args->dir.n != 0 ? args->dir.items[0] : NULL;
    if (dir == NULL && (args->data_path == NULL || args->csv2tb != NULL || args->csv2db != NULL))
        return ms_fail(err, MS_E_ARG, "missing argument DIR: the folder that the monitor wrote");
    if (args->format == FORMAT_JSON && (args->csv2tb != NULL || args->csv2db != NULL))
        return ms_fail(err, MS_E_ARG, "--format json is of alarms; --%s says its files as text",
                       args->csv2tb != NULL ? "csv2tb" : "csv2db");
    if (args->csv2tb != NULL)
        MS_TRY(to_events(dir, args->csv2tb, err));
    if (args->csv2db != NULL)
        MS_TRY(to_database(args, dir, err));
    if (args->data_path != NULL)
        return process_alarms(args, args->data_path, err);
    if (args->csv2tb != NULL || args->csv2db != NULL)
        return MS_OK;
    char *path = ms_path_join(dir, "anomaly_detected");
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_path_kind(path) == MS_KIND_NONE ? fail_no_alarms(dir, err)
                                                       : process_alarms(args, path, err);
    ms_free(path);
    return rc;
}

static int run_command(int argc, char **argv)
{
    struct args args = {.topk = 8, .steps = "[]"};
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&probe_cmd_monitor, argc, argv, &args, &done, &err) != MS_OK)
        return ms_cmd_fail(&probe_cmd_monitor, &err);
    if (done)
        return MS_EXIT_OK;
    enum ms_rc rc = process(&args, &err);
    if (rc == MS_OK && args.format == FORMAT_TEXT)
        rc = ms_stdout_finish(&err);
    return rc == MS_OK ? MS_EXIT_OK : ms_cmd_fail(&probe_cmd_monitor, &err);
}

const struct ms_cmd probe_cmd_monitor = {
    .name = "monitor",
    .run = run_command,
    .job = MS_JOB_FIRST,
    .brief = "sort a training monitor's alarms, convert its csv files",
    .opts = opts,
    .usage = "[options] DIR",
    .about =
        "Reads what the training monitor wrote, ours or the official one. Without an option it "
        "sorts the alarms of all ranks, the earliest first, and writes them to "
        "anomaly_analyse.json.\n"
        "\n"
        "  msprobe monitor monitor_output\n"
        "  msprobe monitor -d monitor_output/anomaly_detected -k 20 -s [100,101]\n"
        "  msprobe monitor monitor_output --csv2tb events\n"
        "  msprobe monitor monitor_output --csv2db trend\n",
};

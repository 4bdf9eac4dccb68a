/* SPDX-License-Identifier: MIT
 *
 * data2db: converts dumps and monitor files into the database of the trend viewer.
 */
#include "probe/base/clock.h"
#include "probe/base/human.h"
#include "probe/base/io.h"
#include "probe/base/jprint.h"
#include "probe/base/opt.h"
#include "probe/trend/trend.h"

struct args {
    const char *db, *data, *mapping;
    int format, micro_step;
    int64_t processes;
    bool tolerant, json;
};

static const char *const formats[] = {"auto", "dump", "monitor", NULL};
/* The official tool accepts both spellings; an odd index is true. */
static const char *const truths[] = {"false", "true", "False", "True", NULL};

static const struct ms_opt opts[] = {
    {"db", NULL, MS_OPT_PATH, offsetof(struct args, db), "DIR", .dash = MS_DASH_FOLDER,
     .required = true, .help = "directory for the database, made when missing"},
    {"data", NULL, MS_OPT_PATH, offsetof(struct args, data), "DIR", .dash = MS_DASH_FOLDER,
     .required = true, .help = "directory of a dump, or of the monitor's output"},
    {"format", NULL, MS_OPT_CHOICE, offsetof(struct args, format), "FORMAT", .dflt = "auto",
     .choices = formats, .help = "what is in it; auto converts whatever is there"},
    {"mapping", NULL, MS_OPT_PATH, offsetof(struct args, mapping), "FILE",
     .help = "JSON object: parts of names, and what to show in their place"},
    {"micro_step", NULL, MS_OPT_CHOICE, offsetof(struct args, micro_step), "BOOL", .dflt = "true",
     .choices = truths, .help = "show each micro step as a step of its own"},
    {"process_num", NULL, MS_OPT_INT, offsetof(struct args, processes), "N", .dflt = "1", .min = 1,
     .max = 128, .help = "accepted for the official tool's sake; see --threads"},
    {"tolerant", NULL, MS_OPT_FLAG, offsetof(struct args, tolerant),
     .help = "read what is complete of a file that was cut off"},
    {"json", NULL, MS_OPT_FLAG, offsetof(struct args, json),
     .help = "say what was written as JSON, for programs"},
    {0}};

extern const struct ms_cmd probe_cmd_data2db;

static void show_note(void *ctx, const struct ms_err *why)
{
    (void)ctx;
    ms_cmd_note("data2db", "%s", why->msg);
}

static void show_file(struct probe_trend_file *f, const char *what)
{
    char inputs[MS_HUMAN_MAX], rows[MS_HUMAN_MAX], targets[MS_HUMAN_MAX];
    if (f->path.n == 0)
        return;
    printf("%s: %s rows of %s targets from %s %s%s\n", ms_buf_z(&f->path),
           ms_human_count(rows, f->rows), ms_human_count(targets, f->targets),
           ms_human_count(inputs, f->inputs), what, f->inputs == 1 ? "" : "s");
}

static void json_file(struct ms_jwrite *w, struct probe_trend_file *f)
{
    if (f->path.n == 0)
        return;
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "path", ms_buf_z(&f->path));
    ms_jwrite_ki64(w, "rows", (int64_t)f->rows);
    ms_jwrite_ki64(w, "targets", (int64_t)f->targets);
    ms_jwrite_ki64(w, "inputs", (int64_t)f->inputs);
    ms_jwrite_ki64(w, "failed", (int64_t)f->failed);
    ms_jwrite_obj_end(w);
}

static enum ms_rc show_json(struct probe_trended *done, int64_t took_ns, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_key(&w, MS_STR("files"));
    ms_jwrite_arr(&w);
    json_file(&w, &done->dump);
    json_file(&w, &done->monitor);
    ms_jwrite_arr_end(&w);
    ms_jwrite_kf64(&w, "seconds", (double)took_ns / 1e9);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

static enum ms_rc show_text(struct probe_trended *done, int64_t took_ns, struct ms_err *err)
{
    char took[MS_HUMAN_MAX];
    show_file(&done->dump, "dump");
    show_file(&done->monitor, "file");
    printf("in %s\n", ms_human_time(took, took_ns));
    return ms_stdout_finish(err);
}

static enum ms_rc convert(const struct args *args, uint64_t *failed, struct ms_err *err)
{
    const struct probe_trend_conf conf = {.data = args->data,
                                          .db = args->db,
                                          .from = (enum probe_trend_from)args->format,
                                          .mapping = args->mapping,
                                          .micro_step = args->micro_step % 2 == 1,
                                          .tolerant = args->tolerant,
                                          .on_note = show_note};
    struct ms_pool *pool;
    struct probe_trended done;
    int64_t start = ms_clock_ns();
    MS_TRY(ms_pool_new(&pool, (unsigned)ms_globals.threads, err));
    enum ms_rc rc = probe_trend_convert(&done, &conf, pool, err);
    ms_pool_free(pool);
    if (rc != MS_OK)
        return rc;
    *failed = done.dump.failed + done.monitor.failed;
    rc = (args->json ? show_json : show_text)(&done, ms_clock_ns() - start, err);
    probe_trended_free(&done);
    return rc;
}

static int run_command(int argc, char **argv)
{
    struct args args = {.micro_step = 1, .processes = 1};
    struct ms_err err = {0};
    uint64_t failed = 0;
    bool done;
    if (ms_opt_parse(&probe_cmd_data2db, argc, argv, &args, &done, &err) != MS_OK)
        return ms_cmd_fail(&probe_cmd_data2db, &err);
    if (done)
        return MS_EXIT_OK;
    if (convert(&args, &failed, &err) != MS_OK)
        return ms_cmd_fail(&probe_cmd_data2db, &err);
    return failed != 0 ? MS_EXIT_FAIL : MS_EXIT_OK;
}

const struct ms_cmd probe_cmd_data2db = {
    .name = "data2db",
    .run = run_command,
    .job = MS_JOB_FIRST,
    .brief = "put statistics of many steps into the trend viewer's database",
    .opts = opts,
    .usage = "[options] --db DIR --data DIR",
    .about =
        "Reads all steps and ranks of a dump, or the CSV files of the training monitor, and writes "
        "dump_data.trend.db or monitor_data.trend.db as the official trend viewer opens them.\n"
        "\n"
        "  msprobe data2db --data out --db trend\n"
        "  msprobe data2db --data monitor_output --db trend --micro_step false\n",
};

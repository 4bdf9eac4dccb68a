/* SPDX-License-Identifier: MIT
 *
 * import: reads a capture into run.db.
 */
#include "mstx/conclude/conclude.h"
#include "mstx/conclude/run_ready.h"
#include "mstx/rundb/fold_write.h"

#include "probe/base/clock.h"
#include "probe/base/cpu.h"
#include "probe/base/human.h"
#include "probe/base/jprint.h"
#include "probe/base/mem.h"
#include "probe/base/opt.h"
#include "probe/base/par.h"
#include "probe/base/progress.h"

#include <inttypes.h>
#include <unistd.h>

struct args {
    struct ms_opt_list path;
    const char *output, *rank_from, *times;
    bool summary, fold;
    int format;
    double missing_after;
};

static const struct ms_opt opts[] = {
    {"DIR", NULL, MS_OPT_REST, offsetof(struct args, path), .min = 1, .max = INT32_MAX,
     .help =
         "directory of a run, as given to 'msprobe run -o', of Flight Recorder dumps, of "
         "databases of an Ascend profiler, or of traces of PyTorch's profiler; several traces or "
         "directories of them become one run, which needs -o"},
    {"output_path", "o", MS_OPT_PATH, offsetof(struct args, output), "FILE", .dash = MS_DASH_OUTPUT,
     .dflt = "DIR/run.db", .help = "where to write the database"},
    {"rank-from", NULL, MS_OPT_TEXT, offsetof(struct args, rank_from), "REGEX",
     .help = "of traces that do not say their rank: an extended regular expression whose first "
             "group is the rank in the path, such as 'node[0-9]+_([0-9]+)'"},
    {"summary", NULL, MS_OPT_FLAG, offsetof(struct args, summary),
     .help = "only what ranks say together: who makes the others wait, which links are slow; no "
             "timeline and no single calls"},
    {"fold", NULL, MS_OPT_FLAG, offsetof(struct args, fold),
     .help =
         "store once what repeats over steps and ranks: the same rows in a fraction of the bytes"},
    {"times", NULL, MS_OPT_TEXT, offsetof(struct args, times), "BOUND", .dflt = "exact",
     .help = "of a folded database: 'exact', or by how much times may differ from those recorded, "
             "such as 100ns or 1us; implies --fold"},
    {"missing_after", NULL, MS_OPT_REAL, offsetof(struct args, missing_after), "SECONDS",
     .dflt = "300",
     .help = "a rank whose process may still be running is missing from a collective once the "
             "others have waited in it for so long"},
    MS_OPT_FORMAT(struct args, format),
    {0}};

extern const struct ms_cmd mstx_cmd_import;

/* Returns the plural ending of a noun after a count. */
static const char *s_of(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_result(const char *db, const struct mstx_import_result *r, int64_t took_ns)
{
    char time[MS_HUMAN_MAX];
    printf("%s: %" PRIu64 " event%s on %" PRIu32 " track%s of %" PRIu32 " process%s, from %" PRIu64
           " record%s in %" PRIu64 " file%s, %s\n",
           ms_opt_shown(db), r->events, s_of(r->events), r->tracks, s_of(r->tracks), r->processes,
           r->processes == 1 ? "" : "es", r->records, s_of(r->records), r->files, s_of(r->files),
           ms_human_time(time, took_ns));
    if (r->unfinished != 0)
        printf("  %" PRIu64 " range%s never ended\n", r->unfinished, s_of(r->unfinished));
    if (r->dropped != 0)
        printf("  %" PRIu64 " record%s dropped while recording\n", r->dropped,
               r->dropped == 1 ? " was" : "s were");
    if (r->repeated != 0)
        printf("  %" PRIu64 " trace%s of a rank that another trace has, too; if they are of two "
               "runs, import each alone\n",
               r->repeated, r->repeated == 1 ? " is" : "s are");
    if (r->problems != 0)
        printf("  %" PRIu64 " problem%s; see 'msprobe report'\n", r->problems, s_of(r->problems));
}

static enum ms_rc print_json(const char *db, const struct mstx_import_result *r, int64_t took_ns,
                             struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_kstr(&w, "database", ms_opt_shown(db));
    ms_jwrite_ki64(&w, "events", (int64_t)r->events);
    ms_jwrite_ki64(&w, "tracks", r->tracks);
    ms_jwrite_ki64(&w, "processes", r->processes);
    ms_jwrite_ki64(&w, "records", (int64_t)r->records);
    ms_jwrite_ki64(&w, "files", (int64_t)r->files);
    ms_jwrite_ki64(&w, "unfinished", (int64_t)r->unfinished);
    ms_jwrite_ki64(&w, "dropped", (int64_t)r->dropped);
    ms_jwrite_ki64(&w, "problems", (int64_t)r->problems);
    ms_jwrite_kf64(&w, "seconds", (double)took_ns / 1e9);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

/* ---- the command ------------------------------------------------------------------ */

static enum ms_rc check_limit(double seconds, struct ms_err *err)
{
    if (seconds >= 1e-9 && seconds <= MSTX_MISSING_AFTER_MOST_S)
        return MS_OK;
    return ms_fail(err, MS_E_ARG, "--missing_after takes a number of seconds, at most a year");
}

/* Reads a bound such as 100ns, 1us or 2ms. */
static enum ms_rc read_bound(const char *text, int64_t *bound_ns, struct ms_err *err)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}};
    const struct ms_str s = ms_str_of(text);
    const uint32_t digits = ms_str_digits(s, 0);
    uint64_t n;
    *bound_ns = 0;
    if (ms_str_is(s, "exact"))
        return MS_OK;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (!ms_str_is(ms_str_sub(s, digits, s.n), units[i].name) ||
            !ms_str_u64(ms_str_sub(s, 0, digits), &n) || n == 0 ||
            n > (uint64_t)MSTX_FOLD_BOUND_MAX)
            continue;
        *bound_ns = (int64_t)n * units[i].ns;
        if (*bound_ns <= MSTX_FOLD_BOUND_MAX)
            return MS_OK;
    }
    return ms_fail(err, MS_E_ARG,
                   "--times takes 'exact' or a bound from 1ns to 100ms, such as 100ns");
}

static enum ms_rc check_paths(const struct args *a, struct ms_err *err)
{
    if (a->path.n <= 1 || a->output != NULL)
        return MS_OK;
    return ms_fail(err, MS_E_ARG, "several traces become one run: say with -o where to write it");
}

static unsigned threads(void)
{
    return ms_globals.threads != 0 ? (unsigned)ms_globals.threads : ms_cpu_count();
}

static enum ms_rc import_run(const struct args *a, struct ms_par *par, struct ms_err *err)
{
    const char *path = a->path.items[0];
    struct mstx_import_result r;
    struct ms_progress bar = {.what = "reading"};
    const bool is_first = ms_par_rank(par) == 0;
    int64_t bound_ns;
    MS_TRY(read_bound(a->times != NULL ? a->times : "exact", &bound_ns, err));
    char *db = a->output == NULL ? mstx_db_path(path) : ms_str_dup(ms_str_of(a->output));
    const struct mstx_import_how how = {
        .summary = a->summary,
        .fold = a->fold || a->times != NULL,
        .bound_ns = bound_ns,
        .missing_after_s = a->missing_after,
        .par = par,
        .more = a->path.n > 1 ? (const char *const *)a->path.items + 1 : NULL,
        .more_n = a->path.n - 1,
        .rank_from = a->rank_from,
        .threads = threads(),
        .bar = is_first ? &bar : NULL,
    };
    int64_t start = ms_clock_ns();
    enum ms_rc rc = db != NULL ? mstx_import_as(path, db, &how, &r, err) : ms_no_memory(err);
    ms_progress_end(&bar);
    if (rc == MS_OK && is_first && a->format == MS_FORMAT_JSON)
        rc = print_json(db, &r, ms_clock_ns() - start, err);
    else if (rc == MS_OK && is_first)
        print_result(db, &r, ms_clock_ns() - start);
    ms_free(db);
    return rc;
}

static int run_import(int argc, char **argv)
{
    struct args a = {.missing_after = MSTX_MISSING_AFTER_S};
    struct ms_err err = {0};
    bool done;
    enum ms_rc rc = ms_opt_parse(&mstx_cmd_import, argc, argv, &a, &done, &err);
    if (rc == MS_OK && done)
        return MS_EXIT_OK;
    if (rc == MS_OK)
        rc = check_limit(a.missing_after, &err);
    if (rc == MS_OK)
        rc = check_paths(&a, &err);
    ms_mem_give_back();
    if (rc == MS_OK)
        rc = import_run(&a, ms_globals.par, &err);
    return ms_cmd_end(&mstx_cmd_import, rc, &err);
}

const struct ms_cmd mstx_cmd_import = {
    .name = "import",
    .run = run_import,
    .job = MS_JOB_SHARED,
    .brief = "turn what a run recorded into run.db",
    .opts = opts,
    .usage = "[options] DIR...",
    .about = "Reads the segment files of a run, also of one that is still going on or was killed, "
             "and writes the database that views, reports and exports read. Files that cannot be "
             "read are noted in it and the others are taken. Other commands import by themselves "
             "when the database is missing or older than the capture.\n"
             "\n"
             "Started by mpirun, the processes share the files and the joining of collectives; the "
             "database is the same for any number of them.\n"
             "\n"
             "  msprobe import run1\n"
             "  msprobe import -o job.db rank0.pt.trace.json.gz rank1.pt.trace.json.gz\n"
             "  mpirun -n 8 msprobe import --summary run1\n",
};

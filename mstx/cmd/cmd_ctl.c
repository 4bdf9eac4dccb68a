/* SPDX-License-Identifier: MIT
 *
 * cmd_ctl: msprobe ctl DIR start|stop|snapshot|status: control of a capture while its program
 * runs.
 */
#include "mstx/read/control.h"
#include "probe/base/human.h"
#include "probe/base/io.h"
#include "probe/base/jwrite.h"
#include "probe/base/opt.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

extern const struct ms_cmd mstx_cmd_ctl;

struct args {
    struct ms_opt_list words;
    const char *include, *exclude, *output;
    int64_t rank;
    int format;
};

static const struct ms_opt opts[] = {
    {"DIR ACTION", NULL, MS_OPT_REST, offsetof(struct args, words), .dash = MS_DASH_WORD, .min = 2,
     .max = 2, .help = "the run, and what to do with it: start, stop, snapshot or status"},
    {"output_path", "o", MS_OPT_PATH, offsetof(struct args, output), "DIR", .dash = MS_DASH_FOLDER,
     .help = "where a snapshot goes", .dflt = "DIR/snapshots/NNN"},
    {"domain_include", NULL, MS_OPT_TEXT, offsetof(struct args, include), "NAMES",
     .help = "with start: record only these domains from now on, comma separated; '' for all"},
    {"domain_exclude", NULL, MS_OPT_TEXT, offsetof(struct args, exclude), "NAMES",
     .help = "with start: do not record these domains from now on"},
    {"rank", NULL, MS_OPT_INT, offsetof(struct args, rank), "N", .max = INT32_MAX,
     .help = "ask this rank alone", .dflt = "all"},
    MS_OPT_FORMAT(struct args, format),
    {0}};

static const char *const actions[] = {"start", "stop", "snapshot", "status", NULL};
static const enum mstx_command commands[] = {MSTX_CMD_START, MSTX_CMD_STOP, MSTX_CMD_SNAPSHOT,
                                             MSTX_CMD_STATUS};

struct job {
    const struct args *args;
    enum mstx_command command;
    char snapshot[1024];
    size_t asked, ended;
    uint64_t dropped;
    struct ms_jwrite json;
};

static void text_process(const char *path, const struct mstx_control *c)
{
    char size[MS_HUMAN_MAX];
    printf("%-40s %-9s %12llu records %8s %6u threads %6llu open %8llu dropped\n",
           ms_path_base(path).p, c->recording ? "recording" : "stopped",
           (unsigned long long)c->records, ms_human_bytes(size, c->bytes), c->rings,
           (unsigned long long)c->open_ranges, (unsigned long long)c->dropped);
}

/* Finds the rank in RUN/rank_R/HOST.PID.TAG; -1 for a process without a rank. */
static int64_t rank_of(const char *path)
{
    struct ms_str dir = ms_path_dir(path), prefix = MS_STR(MSTX_RANK_PREFIX);
    const char *slash = memrchr(dir.p, '/', dir.n);
    struct ms_str name =
        slash != NULL ? ms_str_sub(dir, (uint32_t)(slash + 1 - dir.p), dir.n) : dir;
    uint64_t rank;
    bool has = ms_str_starts(name, prefix) &&
               ms_str_u64(ms_str_sub(name, prefix.n, name.n), &rank) && rank <= INT32_MAX;
    return has ? (int64_t)rank : -1;
}

static void json_process(struct ms_jwrite *w, const char *path, const struct mstx_control *c)
{
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "directory", path);
    ms_jwrite_ki64(w, "rank", rank_of(path));
    ms_jwrite_ki64(w, "pid", c->pid);
    ms_jwrite_kbool(w, "recording", c->recording != 0);
    ms_jwrite_ki64(w, "records", (int64_t)c->records);
    ms_jwrite_ki64(w, "bytes", (int64_t)c->bytes);
    ms_jwrite_ki64(w, "dropped", (int64_t)c->dropped);
    ms_jwrite_ki64(w, "open_ranges", (int64_t)c->open_ranges);
    ms_jwrite_ki64(w, "threads", c->rings);
    ms_jwrite_ki64(w, "domains", c->domains);
    ms_jwrite_ki64(w, "texts", (int64_t)c->strings);
    ms_jwrite_ki64(w, "segments", c->segments);
    ms_jwrite_ki64(w, "page_faults", (int64_t)c->faults);
    ms_jwrite_obj_end(w);
}

static enum ms_rc ask_process(struct job *j, struct mstx_link *l, const char *path,
                              struct ms_err *err)
{
    struct mstx_control c;
    const struct args *a = j->args;
    if (a->include != NULL)
        MS_TRY(mstx_link_ask(l, MSTX_CMD_INCLUDE, a->include, &c, err));
    if (a->exclude != NULL)
        MS_TRY(mstx_link_ask(l, MSTX_CMD_EXCLUDE, a->exclude, &c, err));
    MS_TRY(mstx_link_ask(l, j->command, j->snapshot, &c, err));
    j->asked++;
    j->dropped += c.dropped;
    if (a->format == 0)
        text_process(path, &c);
    else
        json_process(&j->json, path, &c);
    return MS_OK;
}

static enum ms_rc visit_link(void *arg, const char *path, struct ms_err *err)
{
    struct job *j = arg;
    struct mstx_link *l;
    MS_TRY(mstx_link_open(&l, path, err));
    if (l == NULL)
        return MS_OK;
    enum ms_rc rc = mstx_link_alive(l) ? ask_process(j, l, path, err) : MS_E_NOTFOUND;
    mstx_link_close(l);
    if (rc != MS_E_NOTFOUND)
        return rc;
    ms_err_clear(err);
    j->ended++;
    return MS_OK;
}

/* Chooses the first free number; mkdir decides between two commands that choose at the same
 * time. */
static enum ms_rc name_snapshot(struct job *j, const char *run, struct ms_err *err)
{
    const char *given = j->args->output;
    char real[PATH_MAX];
    if (given == NULL) {
        snprintf(j->snapshot, sizeof j->snapshot, "%s/" MSTX_SNAPSHOTS, run);
        MS_TRY(ms_mkdirs(j->snapshot, err));
        for (int i = 1; i < 1000; i++) {
            snprintf(j->snapshot, sizeof j->snapshot, "%s/" MSTX_SNAPSHOTS "/%03d", run, i);
            if (mkdir(j->snapshot, 0755) == 0)
                break;
        }
        given = j->snapshot;
    } else
        MS_TRY(ms_mkdirs(given, err));
    if (realpath(given, real) == NULL) /* the process may have another working directory */
        return ms_fail_sys(err, "%s", given);
    int n = snprintf(j->snapshot, sizeof j->snapshot, "%s", real);
    if (n < 0 || (size_t)n >= sizeof j->snapshot)
        return ms_fail(err, MS_E_LIMIT, "%s: name too long", real);
    return MS_OK;
}

/* Prints one object: the request, and the list of processes that answered. */
static enum ms_rc ask_for_json(struct job *j, const char *run, struct ms_err *err)
{
    struct ms_jwrite *w = &j->json;
    ms_jwrite_init(w, 1, 1 << 20);
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "action", j->args->words.items[1]);
    ms_jwrite_key(w, MS_STR("processes"));
    ms_jwrite_arr(w);
    enum ms_rc rc = mstx_each_process(run, (int)j->args->rank, visit_link, j, err);
    ms_jwrite_arr_end(w);
    ms_jwrite_ki64(w, "ended", (int64_t)j->ended);
    if (j->command == MSTX_CMD_SNAPSHOT)
        ms_jwrite_kstr(w, "snapshot", j->snapshot);
    ms_jwrite_obj_end(w);
    if (rc == MS_OK && j->asked != 0) {
        rc = ms_jwrite_finish(w, err);
        if (rc == MS_OK)
            printf("%.*s\n", (int)w->buf.n, w->buf.p);
    }
    ms_jwrite_free(w);
    return rc;
}

static enum ms_rc control_run(struct job *j, const char *run, struct ms_err *err)
{
    bool json = j->args->format != 0;
    if (j->command == MSTX_CMD_SNAPSHOT)
        MS_TRY(name_snapshot(j, run, err));
    MS_TRY(json ? ask_for_json(j, run, err)
                : mstx_each_process(run, (int)j->args->rank, visit_link, j, err));
    if (j->asked == 0 && j->ended > 0)
        return ms_fail(err, MS_E_NOTFOUND,
                       "%s: the program has ended; 'msprobe report %s' reads it", run, run);
    if (j->asked == 0)
        return ms_fail(err, MS_E_NOTFOUND,
                       "%s: no process records here (yet); a process begins at its first mark",
                       run);
    if (j->command == MSTX_CMD_SNAPSHOT && !json)
        printf("snapshot in %s; next: msprobe report %s\n", j->snapshot, j->snapshot);
    return MS_OK;
}

static int action_of(const char *word)
{
    for (int i = 0; actions[i] != NULL; i++) {
        if (strcmp(actions[i], word) == 0)
            return i;
    }
    return -1;
}

static int run_ctl(int argc, char **argv)
{
    struct args args = {.rank = -1};
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&mstx_cmd_ctl, argc, argv, &args, &done, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_ctl, &err);
    if (done)
        return MS_EXIT_OK;
    const char *dir = args.words.items[0];
    if (ms_opt_take_dash(&dir, MS_DASH_FOLDER, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_ctl, &err);
    int action = action_of(args.words.items[1]);
    if (action < 0) {
        ms_fail(&err, MS_E_ARG, "ACTION: '%s' is not one of start, stop, snapshot, status",
                args.words.items[1]);
        return ms_cmd_fail(&mstx_cmd_ctl, &err);
    }
    if (args.include != NULL && args.exclude != NULL) {
        ms_fail(&err, MS_E_ARG, "give --domain_include or --domain_exclude, not both");
        return ms_cmd_fail(&mstx_cmd_ctl, &err);
    }
    struct job job = {.args = &args, .command = commands[action]};
    if (control_run(&job, dir, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_ctl, &err);
    return MS_EXIT_OK;
}

const struct ms_cmd mstx_cmd_ctl = {
    .name = "ctl",
    .run = run_ctl,
    .brief = "start, stop, snapshot or show a capture while its program runs",
    .opts = opts,
    .usage = "[options] DIR start|stop|snapshot|status",
    .about = "Talks to every process of this host that records into DIR. While stopped, a mark "
             "costs a few nanoseconds. A snapshot is a run directory of its own: with 'msprobe run "
             "--flight' it holds the last seconds before the moment you ask.\n"
             "\n"
             "  msprobe ctl run stop\n"
             "  msprobe ctl run start --domain_include communication\n"
             "  msprobe ctl run snapshot\n",
};

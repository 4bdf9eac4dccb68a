/* SPDX-License-Identifier: MIT
 *
 * stat: shows what a dump contains.
 *
 * Several ranks are read in parallel, a single rank in parts. A rank that cannot be read is
 * reported and the others are shown.
 */
#include "probe/cmd/show_stat.h"

#include "probe/base/io.h"
#include "probe/base/opt.h"

struct args {
    struct ms_opt_list path;
    bool tolerant;
    int format;
};

static const struct ms_opt opts[] = {
    {"PATH", NULL, MS_OPT_REST, offsetof(struct args, path), .min = 1, .max = 1,
     .help = "a dump.json, a rank or step directory, or the directory of a whole dump"},
    {"tolerant", NULL, MS_OPT_FLAG, offsetof(struct args, tolerant),
     .help = "read what is complete of a file that was cut off, and the later of two records "
             "of one name"},
    MS_OPT_FORMAT(struct args, format),
    {0}};

extern const struct ms_cmd probe_cmd_stat;

/* ---- the command ------------------------------------------------------ */

static void show_problems(const struct probe_stat_rank *r)
{
    for (size_t i = 0; r->dump != NULL && i < r->dump->problems.n; i++)
        ms_cmd_note("stat", "%s: %.*s", r->dump->path, MS_STR_ARG(r->dump->problems.p[i]));
}

static void show_notes(const struct probe_stat *s)
{
    for (size_t i = 0; i < s->places.notes.n; i++)
        ms_cmd_note("stat", "%s", s->places.notes.p[i]);
    for (size_t i = 0; i < s->places.list.n; i++) {
        show_problems(&s->ranks[i]);
        if (s->ranks[i].dump == NULL)
            ms_cmd_fail(&probe_cmd_stat, &s->ranks[i].err);
    }
}

static enum ms_rc stat_path(const struct args *args, struct probe_stat *s, struct ms_pool *pool,
                            struct ms_err *err)
{
    const char *path = args->path.items[0];
    MS_TRY(probe_stat_read(s, path, args->tolerant ? PROBE_OPEN_TOLERANT : 0, pool, err));
    if (args->format == MS_FORMAT_JSON)
        MS_TRY(stat_show_json(s, err));
    else if (s->failed < s->places.list.n)
        stat_show_text(s, path);
    /* Notes go to standard error: standard output is flushed first, so that they appear after
     * it. */
    MS_TRY(ms_stdout_finish(err));
    show_notes(s);
    return MS_OK;
}

static int run_stat(int argc, char **argv)
{
    struct args args = {0};
    struct probe_stat s = {0};
    struct ms_pool *pool = NULL;
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&probe_cmd_stat, argc, argv, &args, &done, &err) != MS_OK)
        return ms_cmd_fail(&probe_cmd_stat, &err);
    if (done)
        return MS_EXIT_OK;
    enum ms_rc rc = ms_pool_new(&pool, (unsigned)ms_globals.threads, &err);
    if (rc == MS_OK)
        rc = stat_path(&args, &s, pool, &err);
    int code = rc != MS_OK     ? ms_cmd_fail(&probe_cmd_stat, &err)
               : s.failed != 0 ? MS_EXIT_FAIL
                               : MS_EXIT_OK;
    probe_stat_free(&s);
    ms_pool_free(pool);
    return code;
}

const struct ms_cmd probe_cmd_stat = {
    .name = "stat",
    .run = run_stat,
    .job = MS_JOB_FIRST,
    .brief = "say what is in a dump",
    .opts = opts,
    .usage = "[options] PATH",
    .about =
        "Reads a dump and counts what it holds: framework, task and level, records by kind and "
        "prefix, tensors by type, and those whose figures are NaN or infinite, with the first one "
        "of each. A directory with several ranks or steps gives a line for each.\n"
        "\n"
        "  msprobe stat out/step0/rank0\n"
        "  msprobe stat --format json out | jq '.dumps[].nan_tensors'\n",
};

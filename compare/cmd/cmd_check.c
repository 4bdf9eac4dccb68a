/* SPDX-License-Identifier: MIT
 *
 * cmd_check: `msprobe check`.
 */
#include "compare/cmd/show_check.h"
#include "compare/cmd/show_resume.h"
#include "probe/base/clock.h"
#include "probe/base/opt.h"

extern const struct ms_cmd compare_cmd_check;

struct args {
    struct ms_opt_list paths, resume;
    int format;
    int64_t most;
    bool tolerant, exit_code;
};

static const struct ms_opt opts[] = {
    {"DUMP", NULL, MS_OPT_REST, offsetof(struct args, paths), .max = 1,
     .help = "dump.json, or a rank, step or dump directory"},
    {"resume", NULL, MS_OPT_LIST, offsetof(struct args, resume), "CKPT", .min = 2, .max = 2,
     .help =
         "instead of a dump, two checkpoints: of the run that stopped, or that went on, and of the "
         "resumed one; is it the continued run?"},
    MS_OPT_FORMAT(struct args, format),
    {"most", "n", MS_OPT_INT, offsetof(struct args, most), "N", .dflt = "10", .min = 0,
     .max = 1000000,
     .help = "print at most this many findings as text, those alike on several ranks as one; 0: "
             "each"},
    {"tolerant", NULL, MS_OPT_FLAG, offsetof(struct args, tolerant),
     .help = "read the complete records of a file that was cut off by a kill or a full disk"},
    {"exit_code", NULL, MS_OPT_FLAG, offsetof(struct args, exit_code),
     .help = "exit with 1 when there is a finding, for scripts"},
    {0}};

/* ---- the command ---------------------------------------------------------------- */

static enum ms_rc check(const struct args *a, struct self_check *s, struct ms_err *err)
{
    struct ms_pool *pool;
    MS_TRY(ms_pool_new(&pool, (unsigned)ms_globals.threads, err));
    unsigned flags = a->tolerant ? PROBE_OPEN_TOLERANT : 0;
    struct ms_progress bar = {.what = "checking"};
    enum ms_rc rc = self_check_run(s, a->paths.items[0], flags, pool, ms_globals.par,
                                   ms_par_rank(ms_globals.par) == 0 ? &bar : NULL, err);
    ms_progress_end(&bar);
    ms_pool_free(pool);
    return rc;
}

/* Returns the exit status; an unreadable dump is a failure, because it may contain faults. */
static int exit_of(const struct args *a, const struct self_check *s)
{
    if (s->failures.n != 0)
        return MS_EXIT_FAIL;
    return a->exit_code && s->findings.n != 0 ? MS_EXIT_FOUND : MS_EXIT_OK;
}

static int check_resumed(const struct args *a)
{
    struct resume_result r;
    struct ms_err err = {0};
    if (resume_check(&r, a->resume.items[0], a->resume.items[1], &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_check, &err);
    enum ms_rc rc = MS_OK;
    if (a->format == MS_FORMAT_JSON)
        rc = resume_show_json(&r, &err);
    else
        resume_show_text(&r, (size_t)a->most);
    const bool found = r.findings.n != 0;
    resume_free(&r);
    if (rc == MS_OK)
        rc = ms_stdout_finish(&err);
    if (rc != MS_OK)
        return ms_cmd_fail(&compare_cmd_check, &err);
    return a->exit_code && found ? MS_EXIT_FOUND : MS_EXIT_OK;
}

static int show(const struct args *a, struct self_check *s, int64_t start)
{
    struct ms_err err = {0};
    enum ms_rc rc = MS_OK;
    const size_t failures = ms_cmd_listed(s->failures.n, (size_t)a->most);
    for (size_t i = 0; i < failures; i++)
        ms_cmd_note("check", "%.*s; left out", MS_STR_ARG(s->failures.p[i]));
    ms_cmd_more(stderr, s->failures.n - failures, "dumps that cannot be read");
    if (a->format == MS_FORMAT_JSON)
        rc = check_show_json(s, ms_clock_ns() - start, &err);
    else
        check_show_text(s, (size_t)a->most, ms_clock_ns() - start);
    return rc == MS_OK ? exit_of(a, s) : ms_cmd_fail(&compare_cmd_check, &err);
}

/* Checks the dumps with all processes of mpirun; the first one shows what they found. */
static int check_dumps(const struct args *a, int64_t start)
{
    struct self_check s = {.arena = NULL};
    struct ms_err err = {0};
    const enum ms_rc rc = check(a, &s, &err);
    const int code = rc == MS_OK && ms_par_rank(ms_globals.par) == 0
                         ? show(a, &s, start)
                         : ms_cmd_end(&compare_cmd_check, rc, &err);
    self_check_free(&s);
    return code;
}

static int run_command(int argc, char **argv)
{
    struct args a = {.most = 10};
    struct ms_err err = {0};
    bool done;
    int64_t start = ms_clock_ns();
    if (ms_opt_parse(&compare_cmd_check, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_check, &err);
    if (done)
        return MS_EXIT_OK;
    if (a.resume.n != 0 && a.paths.n == 0) /* two checkpoints are not divided */
        return ms_par_rank(ms_globals.par) == 0 ? check_resumed(&a) : MS_EXIT_OK;
    if (a.paths.n != 0 && a.resume.n == 0)
        return check_dumps(&a, start);
    ms_fail(&err, MS_E_ARG,
            a.paths.n == 0 ? "missing argument DUMP: dump.json, or a rank, step or dump directory"
                           : "--resume takes no DUMP");
    return ms_cmd_fail(&compare_cmd_check, &err);
}

const struct ms_cmd compare_cmd_check = {
    .name = "check",
    .run = run_command,
    .job = MS_JOB_SHARED,
    .brief = "find faults in one dump, without a second run",
    .opts = opts,
    .usage = "[options] DUMP | --resume CKPT CKPT",
    .about =
        "Checks a dump for contradictions, for when there is no other run to compare with: "
        "gradients are finite, parameters that ranks share are equal and do not change within a "
        "step, a collective gives every rank the same result, and backward mirrors forward. "
        "Findings are listed in execution order.\n"
        "\n"
        "  msprobe check run\n"
        "  msprobe check --resume stopped/global_step100 resumed/global_step100\n"
        "  msprobe check run/step0 --format json | jq .suspects[0]\n",
};

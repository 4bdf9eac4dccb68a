/* SPDX-License-Identifier: MIT
 *
 * How often the analysis of all ranks is right, on simulated runs whose truth is known, and how fast
 * it is.
 *
 *     bench_cluster [CASES [FIRST_SEED [wide]]]
 *
 * Seeds from 1 on were looked at while thresholds were chosen; from 1000001 on they were not.
 */
#include "mstx/conclude/run_ready.h"
#include "mstx/conclude/run_report.h"
#include "probe/base/clock.h"
#include "tests/gen/sim.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64], run_dir[80], db[90];

static void must(enum ms_rc rc, const struct ms_err *err)
{
    if (rc != MS_OK) {
        fprintf(stderr, "%s\n", err->msg);
        exit(1);
    }
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static void begin(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%.30s/cluster-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        exit(1);
    }
    snprintf(run_dir, sizeof run_dir, "%s/run", dir);
    snprintf(db, sizeof db, "%s/run.db", dir);
}

static void end(void)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

struct score {
    int cases, found, blamed; /* blamed: cases with a finding that is not true */
};

static bool is_about(const struct sim *s, const struct mstx_finding *f)
{
    switch (s->fault) {
    case SIM_STRAGGLER:
        return (strcmp(f->kind, "straggler") == 0 || strcmp(f->kind, "fail_slow") == 0) &&
               f->rank == s->rank;
    case SIM_FAIL_SLOW:
        return strcmp(f->kind, "fail_slow") == 0 && f->rank == s->rank &&
               f->first_step >= s->from_step - 3 && f->first_step <= s->from_step + 3;
    case SIM_SLOW_GROUP:
    case SIM_SLOW_PAIR:
        return strcmp(f->kind, "slow_link") == 0 && f->rank == s->rank;
    case SIM_MISMATCH:
        return strcmp(f->kind, "mismatch") == 0 && (s->dp == 2 || f->rank == s->rank);
    case SIM_HANG:
        return strcmp(f->kind, "hang") == 0 && f->rank == s->rank;
    default:
        return false;
    }
}

static bool concludes(const struct mstx_finding *f)
{
    static const char *const kinds[] = {"straggler", "fail_slow", "slow_link", "mismatch", "hang"};
    for (int i = 0; i < 5; i++) {
        if (strcmp(f->kind, kinds[i]) == 0)
            return true;
    }
    return false;
}

static void look(const struct sim *s, struct score *score)
{
    const struct mstx_import_how how = {.summary = true};
    struct mstx_import_result r;
    struct ms_err err = {0};
    struct mstx_tl *tl;
    struct mstx_report report;
    bool found = false, blamed = false;
    must(mstx_import_as(run_dir, db, &how, &r, &err), &err);
    must(mstx_tl_open(&tl, db, &err), &err);
    must(mstx_report_read(tl, false, &report, &err), &err);
    for (size_t i = 0; i < report.findings.n; i++) {
        const struct mstx_finding *f = &report.findings.p[i];
        found |= is_about(s, f);
        blamed |= concludes(f) && !is_about(s, f);
        if (getenv("VERBOSE") != NULL && concludes(f))
            printf("  seed %llu: %s\n", (unsigned long long)s->seed, f->message.args);
    }
    const bool misses = !found && s->fault != SIM_CLEAN && s->fault != SIM_MISSING;
    if ((misses || blamed) && getenv("VERBOSE") != NULL)
        printf("  seed %llu tp %d pp %d dp %d ep %d steps %d: rank %d, wrong\n",
               (unsigned long long)s->seed, s->tp, s->pp, s->dp, s->ep, s->steps, s->rank);
    mstx_report_free(&report);
    mstx_tl_close(tl);
    score->cases++;
    score->found += found;
    score->blamed += blamed;
}

typedef void (*draw_fn)(struct sim *s, uint64_t seed, enum sim_fault fault, double amount);

static void measure(draw_fn draw, const char *name, enum sim_fault fault, double amount, int cases,
                    uint64_t first)
{
    struct score score = {0};
    for (int i = 0; i < cases; i++) {
        struct sim s;
        begin();
        draw(&s, first + (uint64_t)i, fault, amount);
        sim_write(&s, run_dir);
        look(&s, &score);
        end();
    }
    printf("%-34s %5d cases  found %6.2f %%  someone else blamed %6.2f %%\n", name, cases,
           100.0 * score.found / cases, 100.0 * score.blamed / cases);
    fflush(stdout);
}

/* In a process of its own: what the simulation took is not to count. */
static void write_apart(struct sim *s)
{
    const pid_t child = fork();
    int status;
    if (child == 0) {
        sim_write(s, run_dir);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        perror("simulation");
        exit(1);
    }
}

/* Of 64 x `times` ranks with nearly 20,000 records each. */
static void speed(const char *name, int times, bool summary)
{
    struct sim s;
    struct mstx_import_result r;
    struct ms_err err = {0};
    const struct mstx_import_how how = {.summary = summary};
    begin();
    sim_draw(&s, 5, SIM_CLEAN, 0);
    s.tp = 8;
    s.pp = 1;
    s.dp = 8 * times;
    s.micro = 4;
    s.layers = 16;
    s.steps = 96;
    write_apart(&s);
    const int64_t wall = ms_clock_ns(), cpu = ms_clock_cpu_ns();
    must(mstx_import_as(run_dir, db, &how, &r, &err), &err);
    const double wall_s = (double)(ms_clock_ns() - wall) / 1e9;
    const double cpu_s = (double)(ms_clock_cpu_ns() - cpu) / 1e9;
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("%-34s %.2f M records, cpu %.2f s, wall %.2f s: %.2f M records/s of cpu; peak %ld MiB\n",
           name, (double)r.records / 1e6, cpu_s, wall_s, (double)r.records / 1e6 / cpu_s,
           u.ru_maxrss / 1024);
    end();
}

int main(int argc, char **argv)
{
    const int cases = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 100;
    const uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const draw_fn wide = sim_draw_wide;
    if (argc > 3 && strcmp(argv[3], "middle") == 0) {
        measure(sim_draw, "slow from the middle on, 3 %", SIM_FAIL_SLOW, 0.03, cases, first);
        return 0;
    }
    if (argc > 3 && cases > 0) {
        measure(wide, "wide: clean", SIM_CLEAN, 0, cases, first);
        measure(wide, "wide: straggler, 3 % of the step", SIM_STRAGGLER, 0.03, cases, first);
        measure(wide, "wide: slow from the middle on", SIM_FAIL_SLOW, 0.03, cases, first);
        measure(wide, "wide: slow link in a group, 20 %", SIM_SLOW_GROUP, 0.2, cases, first);
        measure(wide, "wide: slow link of stages, 20 %", SIM_SLOW_PAIR, 0.2, cases, first);
        measure(wide, "wide: one rank left nothing", SIM_MISSING, 0, cases / 4 + 1, first);
        return 0;
    }
    if (cases > 0) {
        measure(sim_draw, "clean", SIM_CLEAN, 0, cases, first);
        measure(sim_draw, "straggler, 3 % of the step", SIM_STRAGGLER, 0.03, cases, first);
        measure(sim_draw, "slow from the middle on, 3 %", SIM_FAIL_SLOW, 0.03, cases, first);
        measure(sim_draw, "slow link in a group, 20 %", SIM_SLOW_GROUP, 0.2, cases, first);
        measure(sim_draw, "slow link between stages, 20 %", SIM_SLOW_PAIR, 0.2, cases, first);
        measure(sim_draw, "one rank's program differs", SIM_MISMATCH, 0, cases / 4 + 1, first);
        measure(sim_draw, "one rank left nothing", SIM_MISSING, 0, cases / 4 + 1, first);
        measure(sim_draw, "one rank does not come", SIM_HANG, 0, cases / 4 + 1, first);
    }
    speed("summary of 64 ranks", 1, true);
    speed("summary of 1,024 ranks", 16, true);
    speed("whole of 1,024 ranks", 16, false);
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * cmd_reproduce: `msprobe reproduce`.
 */
#include "compare/blame/blame_pick.h"
#include "compare/cmd/show_judge.h"
#include "compare/reproduce/reproduce.h"
#include "probe/base/jprint.h"
#include "probe/base/opt.h"
#include "probe/base/progress.h"

#include <stdio.h>

extern const struct ms_cmd compare_cmd_reproduce;

struct args {
    struct ms_opt_list paths;
    const char *output, *golden;
    int format;
    int64_t memory;
    bool whole;
};

static const struct ms_opt opts[] = {
    {"TARGET [SUSPECT]", NULL, MS_OPT_REST, offsetof(struct args, paths), .min = 1, .max = 2,
     .help =
         "a tensor dump, and the name of an operator, or with --golden the number of a suspect; "
         "without it the first operator whose result is beyond its bound, or suspect 1"},
    {"output", "o", MS_OPT_PATH, offsetof(struct args, output), "DIR", .dash = MS_DASH_FOLDER,
     .required = true, .help = "directory for the program and its inputs"},
    {"golden", "g", MS_OPT_PATH, offsetof(struct args, golden), "GOLDEN",
     .help = "another dump: reproduce a suspect of the comparison with it"},
    {"whole", NULL, MS_OPT_FLAG, offsetof(struct args, whole),
     .help = "write the whole inputs, not only the row of the worst element"},
    MS_OPT_FORMAT(struct args, format),
    {"memory", NULL, MS_OPT_INT, offsetof(struct args, memory), "GIB", .dflt = "8", .min = 1,
     .max = 4096, .help = "most memory for computing the operator again"},
    {0}};

/* Finds the first operator of a dump that errs when it is held against itself. */
static enum ms_rc first_that_errs(const struct args *a, struct blame_picks *picks, size_t *found,
                                  struct ms_err *err)
{
    struct blame *b = ms_alloc(sizeof *b);
    enum ms_rc rc = b != NULL ? MS_OK : ms_no_memory(err);
    struct ms_progress bar = {.what = "computing again"};
    bool errs = false;
    for (size_t i = 0; rc == MS_OK && !errs && i < picks->list.n; i++) {
        ms_progress_part(&bar, i, picks->list.n, MS_PACE_OPERATORS);
        rc = blame_judge_pick(&picks->list.p[i], b, (size_t)a->memory << 30, err);
        errs = rc == MS_OK && b->target.state == BLAME_ERRS;
        *found = i;
    }
    ms_progress_end(&bar);
    ms_free(b);
    if (rc == MS_OK && !errs)
        return ms_fail(err, MS_E_NOTFOUND, "%s: no result is beyond its bound; name an operator",
                       a->paths.items[0]);
    return rc;
}

static enum ms_rc pick(const struct args *a, struct blame_picks *picks, size_t *found,
                       struct ms_err *err)
{
    const char *target = a->paths.items[0], *golden = a->golden != NULL ? a->golden : target;
    const struct ms_str which = a->paths.n > 1 ? ms_str_of(a->paths.items[1]) : MS_STR("1");
    uint64_t place;
    *found = 0;
    if (a->golden == NULL && a->paths.n < 2) {
        MS_TRY(blame_pick_all(picks, target, target, err));
        return first_that_errs(a, picks, found, err);
    }
    if (!ms_str_u64(which, &place))
        return blame_pick_name(picks, target, golden, which, err);
    if (a->golden == NULL)
        return ms_fail(err, MS_E_ARG, "suspect %.*s: give --golden, with which TARGET is compared",
                       MS_STR_ARG(which));
    return blame_pick_suspect(picks, target, golden, place <= UINT32_MAX ? (uint32_t)place : 0,
                              err);
}

static enum ms_rc print_json(const struct args *a, const struct blame_pick *p,
                             const struct reproduced *r, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_ktext(&w, "operator", p->target);
    ms_jwrite_kstr(&w, "state", judge_state_name(r->side.state));
    ms_jwrite_kbool(&w, "minimised", r->is_minimised);
    ms_jwrite_kmaybe(&w, "row", r->is_minimised ? (int64_t)r->row : -1);
    ms_jwrite_key(&w, MS_STR("files"));
    ms_jwrite_arr(&w);
    struct ms_buf path = {.max = 4096};
    ms_buf_printf(&path, "%s/reproduce.py", a->output);
    ms_jwrite_str(&w, ms_buf_slice(&path));
    ms_buf_free(&path);
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

static enum ms_rc print_text(const struct args *a, const struct blame_pick *p,
                             const struct reproduced *r, struct ms_err *err)
{
    printf("%.*s: recorded results: %s\n", MS_STR_ARG(p->target), judge_state_text(r->side.state));
    if (r->side.state == BLAME_UNKNOWN)
        printf("  %s\n", r->side.why.msg);
    if (r->is_minimised)
        printf("  inputs cut to row %llu of %llu, which shows the same\n",
               (unsigned long long)r->row, (unsigned long long)r->rows);
    printf("written to %s/reproduce.py\n", a->output);
    return ms_stdout_finish(err);
}

static enum ms_rc write_pick(const struct args *a, const struct blame_pick *p, struct ms_err *err)
{
    struct blame_opened o = {0};
    struct blame_record record;
    struct reproduced *r = ms_alloc(sizeof *r);
    enum ms_rc rc = r != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        rc = blame_open(&o, p->target_json, p->target, &record, err);
    if (rc == MS_OK)
        rc = reproduce_write(r, &record, a->output, !a->whole, (size_t)a->memory << 30, err);
    if (rc == MS_OK)
        rc = a->format == MS_FORMAT_JSON ? print_json(a, p, r, err) : print_text(a, p, r, err);
    blame_close(&o);
    ms_free(r);
    return rc;
}

static int run_command(int argc, char **argv)
{
    struct args a = {.memory = 8};
    struct blame_picks picks = {0};
    struct ms_err err = {0};
    bool done;
    size_t found;
    if (ms_opt_parse(&compare_cmd_reproduce, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_reproduce, &err);
    if (done)
        return MS_EXIT_OK;
    enum ms_rc rc = pick(&a, &picks, &found, &err);
    if (rc == MS_OK)
        rc = write_pick(&a, &picks.list.p[found], &err);
    blame_picks_free(&picks);
    return rc == MS_OK ? MS_EXIT_OK : ms_cmd_fail(&compare_cmd_reproduce, &err);
}

const struct ms_cmd compare_cmd_reproduce = {
    .name = "reproduce",
    .run = run_command,
    .job = MS_JOB_FIRST,
    .brief = "write one operator as a program of its own, with its inputs",
    .opts = opts,
    .usage = "[options] TARGET [SUSPECT] -o DIR",
    .about = "Writes a small program for whoever owns an operator: it runs the operator forward, "
             "or forward "
             "and backward, with the recorded inputs, and prints in one line how far the recorded "
             "results "
             "and those of that machine are from float64. It needs PyTorch, or MindSpore where the "
             "dump is "
             "of MindSpore, and numpy. The inputs are cut to one row where that shows the same.\n"
             "\n"
             "  msprobe reproduce run Functional.layer_norm.0.forward -o bug\n"
             "  msprobe reproduce run --golden ref -o bug && python3 bug/reproduce.py\n",
};

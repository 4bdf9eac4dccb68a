/* SPDX-License-Identifier: MIT
 *
 * whatif: computes how long the steps of a run would be without the excess of a rank, operation or
 * link.
 */
#include "mstx/conclude/run_ready.h"
#include "mstx/conclude/whatif_report.h"

#include "probe/base/jprint.h"
#include "probe/base/opt.h"
#include "probe/base/screen.h"
#include "probe/base/vec.h"

struct args {
    struct ms_opt_list path;
    const char *without, *scale, *ideal;
    int format, model;
    int64_t most;
};

enum { AS_TEXT, AS_JSON };
enum { BY_TYPES, GENERIC };
static const char *const models[] = {"types", "generic", NULL};

static const struct ms_opt opts[] = {
    {"RUN", NULL, MS_OPT_REST, offsetof(struct args, path), .min = 1, .max = 1,
     .help = "directory of a run, its run.db, or a trace, also compressed (.json.gz)"},
    {"without", "w", MS_OPT_TEXT, offsetof(struct args, without), "WHAT,...",
     .help = "the job without what is special about rank:3, op:NAME or link:2-1"},
    {"scale", NULL, MS_OPT_TEXT, offsetof(struct args, scale), "NAME=FACTOR,...",
     .help = "the job with other durations: compute=0.9, comm=0.5 or NAME=2"},
    {"ideal", NULL, MS_OPT_PATH, offsetof(struct args, ideal), "FILE", .dash = MS_DASH_OUTPUT,
     .help = "write the timeline with ideal durations, a Chrome trace"},
    {"model", NULL, MS_OPT_CHOICE, offsetof(struct args, model), "MODEL", .dflt = "types",
     .choices = models,
     .help =
         "types: use what is known about types of operations; generic: only times and meetings"},
    MS_OPT_FORMAT(struct args, format),
    {"most", "n", MS_OPT_INT, offsetof(struct args, most), "N", .dflt = "10", .min = 0,
     .max = INT32_MAX, .help = "show this many rows of each table in text; 0 shows all"},
    {0}};

extern const struct ms_cmd mstx_cmd_whatif;

/* The items of both options, which are comma-separated lists. */
struct wishes {
    MS_VEC(struct mstx_without) list;
};

typedef enum ms_rc parse_fn(struct mstx_without *w, struct ms_str text, struct ms_err *err);

static enum ms_rc read_list(struct wishes *to, const char *text, parse_fn *parse,
                            struct ms_err *err)
{
    struct ms_str rest = ms_str_of(text != NULL ? text : ""), part;
    while (text != NULL && ms_str_split(&rest, ',', &part)) {
        struct mstx_without *slot = ms_vec_push(&to->list);
        if (slot == NULL)
            return ms_no_memory(err);
        MS_TRY(parse(slot, part, err));
    }
    return MS_OK;
}

static enum ms_rc print_text(struct mstx_whatif_run *r, const char *path, struct ms_err *err)
{
    struct ms_buf text = {.max = (size_t)1 << 30};
    const enum ms_rc rc = mstx_whatif_text(r, path, &text, err);
    if (rc == MS_OK)
        return ms_screen_print(&text, err);
    ms_buf_free(&text);
    return rc;
}

static enum ms_rc print_json(struct mstx_whatif_run *r, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    return ms_jprint_end(&w, mstx_whatif_json(r, &w, err), err);
}

static enum ms_rc show(struct mstx_tl *tl, const struct args *a, const struct wishes *wishes,
                       struct ms_err *err)
{
    struct mstx_whatif_run *r;
    struct ms_progress bar = {.what = "replaying"};
    const struct mstx_whatif_how how = {.without = wishes->list.p,
                                        .count = wishes->list.n,
                                        .is_generic = a->model == GENERIC,
                                        .most = (size_t)a->most,
                                        .bar = &bar};
    enum ms_rc rc = mstx_whatif_open(&r, tl, &how, err);
    ms_progress_end(&bar);
    MS_TRY(rc);
    rc = a->ideal != NULL ? mstx_whatif_ideal(r, a->ideal, err) : MS_OK;
    if (rc == MS_OK)
        rc = a->format == AS_JSON ? print_json(r, err)
                                  : print_text(r, ms_opt_shown(a->path.items[0]), err);
    mstx_whatif_close(r);
    return rc;
}

static enum ms_rc analyse(const struct args *a, struct wishes *wishes, struct ms_err *err)
{
    struct mstx_tl *tl;
    MS_TRY(read_list(wishes, a->without, mstx_without_parse, err));
    MS_TRY(read_list(wishes, a->scale, mstx_scale_parse, err));
    MS_TRY(mstx_run_open(&tl, a->path.items[0], ms_globals.par, err));
    const enum ms_rc rc = tl != NULL ? show(tl, a, wishes, err) : MS_OK;
    mstx_tl_close(tl);
    return rc;
}

static int run_whatif(int argc, char **argv)
{
    struct args a = {.most = 10};
    struct wishes wishes = {0};
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&mstx_cmd_whatif, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_whatif, &err);
    if (done)
        return MS_EXIT_OK;
    const enum ms_rc rc = analyse(&a, &wishes, &err);
    ms_vec_free(&wishes.list);
    return ms_cmd_end(&mstx_cmd_whatif, rc, &err);
}

const struct ms_cmd mstx_cmd_whatif = {
    .name = "whatif",
    .run = run_whatif,
    .job = MS_JOB_SHARED,
    .brief = "say how long a run would take without a rank, an operation or a link",
    .opts = opts,
    .usage = "[options] RUN",
    .about = "Replays the steps of a run with other durations: as if every operation took what is "
             "ideal for its type, and with the recorded durations of one rank, stage, operation or "
             "link put back. The slowdown of each says what it costs the job.\n"
             "\n"
             "  msprobe whatif run1\n"
             "  msprobe whatif --without rank:3 run1\n"
             "  msprobe whatif --scale compute=0.9 --format json timeline.json.gz\n",
};

/* SPDX-License-Identifier: MIT
 *
 * cmd_dryrun: `msprobe dryrun`.
 */
#include "mstx/memory/dry_text.h"

#include "probe/base/io.h"
#include "probe/base/jprint.h"
#include "probe/base/num.h"
#include "probe/base/opt.h"
#include "probe/base/screen.h"

#include <string.h>

extern const struct ms_cmd mstx_cmd_dryrun;

struct args {
    struct ms_opt_list path;
    int64_t tp, pp, dp, zero, micro_batch, most;
    int recompute, optimizer, dtype, where, format;
    const char *device_memory;
    bool exit_code;
};

static const char *const recomputes[] = {"none", "selective", "full", NULL};
static const char *const optimizers[] = {"adam", "momentum", "sgd", NULL};
static const char *const dtypes[] = {"same", "float32", "bfloat16", "float16", NULL};
static const char *const places[] = {"device", "cpu", NULL};
enum { DEGREE_MAX = 65536 };

static const struct ms_opt opts[] = {
    {"DUMP", NULL, MS_OPT_REST, offsetof(struct args, path), .min = 1, .max = 1,
     .help = "dump.json of one step, task statistics and level mix, of one device"},
    {"tp", NULL, MS_OPT_INT, offsetof(struct args, tp), "N", .dflt = "1", .min = 1,
     .max = DEGREE_MAX, .help = "tensor parallel ranks"},
    {"pp", NULL, MS_OPT_INT, offsetof(struct args, pp), "N", .dflt = "1", .min = 1,
     .max = DEGREE_MAX, .help = "pipeline stages; the first one is planned"},
    {"dp", NULL, MS_OPT_INT, offsetof(struct args, dp), "N", .dflt = "1", .min = 1,
     .max = DEGREE_MAX, .help = "data parallel ranks"},
    {"zero", NULL, MS_OPT_INT, offsetof(struct args, zero), "0-3", .dflt = "0", .min = 0, .max = 3,
     .help = "what the data parallel ranks divide: optimizer states (1), gradients (2), parameters "
             "(3)"},
    {"recompute", NULL, MS_OPT_CHOICE, offsetof(struct args, recompute), "WHAT", .dflt = "none",
     .choices = recomputes,
     .help = "what the backward computes again instead of keeping it: attention scores, or each "
             "layer"},
    {"micro_batch", NULL, MS_OPT_INT, offsetof(struct args, micro_batch), "N", .min = 1,
     .max = INT32_MAX, .help = "samples of a micro batch; without it as many as in the dump"},
    {"dtype", NULL, MS_OPT_CHOICE, offsetof(struct args, dtype), "TYPE", .dflt = "same",
     .choices = dtypes,
     .help = "of parameters and activations; one of 16 bits adds a float32 copy to the optimizer"},
    {"optimizer", NULL, MS_OPT_CHOICE, offsetof(struct args, optimizer), "NAME", .dflt = "adam",
     .choices = optimizers, .help = "whose states are counted"},
    {"on", NULL, MS_OPT_CHOICE, offsetof(struct args, where), "WHAT", .dflt = "device",
     .choices = places,
     .help = "whose kernels run: those of the CPU have wider dropout masks and an optimizer that "
             "updates one parameter after the other"},
    {"device_memory", NULL, MS_OPT_TEXT, offsetof(struct args, device_memory), "BYTES",
     .help =
         "list the layouts that fit into this, as 80g; of tp * pp * dp devices, or of up to 64"},
    MS_OPT_FORMAT(struct args, format),
    {"most", "n", MS_OPT_INT, offsetof(struct args, most), "N", .dflt = "10", .min = 0,
     .max = 1000000, .help = "print at most this many rows of each table; 0: each"},
    {"exit_code", NULL, MS_OPT_FLAG, offsetof(struct args, exit_code),
     .help = "exit with 1 when the layout does not fit into --device_memory"},
    {0}};

/* Reads "80g", "512m", "1.5t" or a number of bytes; powers of ten, as in all output. */
static enum ms_rc read_bytes(const char *text, uint64_t *bytes, struct ms_err *err)
{
    static const char units[] = "kmgt";
    const size_t n = strlen(text);
    const char *unit = n != 0 ? strchr(units, text[n - 1] | 0x20) : NULL;
    double v, factor = 1;
    for (const char *u = units; unit != NULL && u <= unit; u++)
        factor *= 1000;
    if (!ms_num_parse_f64(text, unit != NULL ? n - 1 : n, &v) || !(v > 0) || !(v * factor < 1e15))
        return ms_fail(err, MS_E_ARG, "--device_memory %s: a number of bytes such as 80g is wanted",
                       text);
    *bytes = (uint64_t)(v * factor);
    return MS_OK;
}

static enum ms_rc print_plan(const struct args *a, const struct dry_graph *g,
                             const struct dry_plan *p, const struct dry_layout *l,
                             const struct dry_choices *c, struct ms_err *err)
{
    const size_t most = (size_t)a->most;
    if (a->format == MS_FORMAT_JSON) {
        struct ms_jwrite w;
        ms_jprint_begin(&w);
        mstx__dry_plan_json(g, p, l, c, most, &w);
        return ms_jprint_end(&w, MS_OK, err);
    }
    struct ms_buf text = {.max = 1 << 26};
    mstx__dry_plan_text(g, p, c, most, &text);
    return ms_screen_print(&text, err);
}

static enum ms_rc plan(const struct args *a, bool *fits, struct ms_err *err)
{
    const struct dry_layout l = {.tp = a->tp,
                                 .pp = a->pp,
                                 .dp = a->dp,
                                 .zero = a->zero,
                                 .micro_batch = a->micro_batch,
                                 .recompute = a->recompute,
                                 .optimizer = a->optimizer,
                                 .on_cpu = a->where == 1,
                                 .float_bytes = a->dtype == 0   ? 0
                                                : a->dtype == 1 ? 4
                                                                : 2};
    struct dry_graph g = {0};
    struct dry_plan p = {0};
    struct dry_choices c = {0};
    uint64_t memory = 0;
    if (a->device_memory != NULL)
        MS_TRY(read_bytes(a->device_memory, &memory, err));
    enum ms_rc rc = mstx__dry_graph_read(&g, a->path.items[0], err);
    if (rc != MS_OK && ms_path_kind(a->path.items[0]) == MS_KIND_DIR)
        ms_err_hint(err, "give the dump.json of one rank");
    if (rc == MS_OK)
        rc = mstx__dry_plan_make(&g, &l, &p, err);
    if (rc == MS_OK)
        rc = mstx__dry_choices_find(&c, &g, &l, memory, err);
    if (rc == MS_OK)
        rc = print_plan(a, &g, &p, &l, &c, err);
    *fits = memory == 0 || p.peak <= memory;
    mstx__dry_choices_free(&c);
    mstx__dry_plan_free(&p);
    mstx__dry_graph_free(&g);
    return rc;
}

static int run_dryrun(int argc, char **argv)
{
    struct args a = {.tp = 1, .pp = 1, .dp = 1, .most = 10};
    struct ms_err err = {0};
    bool done, fits = true;
    if (ms_opt_parse(&mstx_cmd_dryrun, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_dryrun, &err);
    if (done)
        return MS_EXIT_OK;
    if (plan(&a, &fits, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_dryrun, &err);
    return a.exit_code && !fits ? MS_EXIT_FOUND : MS_EXIT_OK;
}

const struct ms_cmd mstx_cmd_dryrun = {
    .name = "dryrun",
    .run = run_dryrun,
    .job = MS_JOB_FIRST,
    .brief = "plan the memory of a training step for a parallel layout",
    .opts = opts,
    .usage = "[options] DUMP",
    .about =
        "Answers what a step would need before it is run: the peak of memory by kind and module, "
        "the floating point operations, and with --device_memory which layouts fit. The step is "
        "replayed from the shapes and types in a dump of one step, which may come from a small "
        "machine or a small batch.\n"
        "\n"
        "  msprobe dryrun dump/step0/rank0/dump.json\n"
        "  msprobe dryrun dump.json --dp 8 --zero 2 --recompute full --micro_batch 16\n"
        "  msprobe dryrun dump.json --dtype bfloat16 --device_memory 80g\n",
};

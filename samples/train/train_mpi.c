/* SPDX-License-Identifier: MIT
 *
 * train_mpi: trains a small language model on all ranks of MPI, data-parallel.
 *
 *     mpirun -n 4 msprobe run -o run -- train_mpi --steps 20 --slow-rank 2
 *     msprobe report run
 *
 *     train_mpi --steps 2 --dump clean
 *     train_mpi --steps 2 --dump faulty --fault layer1.scale
 *     msprobe compare -tp faulty -gp clean -o compared
 *
 * The same seed and number of ranks give the same losses.  Each rank has its own part of an endless
 * text; gradients are summed tensor by tensor after each backward.  A slow rank computes as the
 * others do and then some more.
 */
#include "model.h"

#include "mstx/ms_tools_ext.h"

#include <mpi.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct options {
    struct shape shape;
    int steps, slow_rank;
    unsigned seed;
    double slow_factor, rate;
    const char *fault, *dump, *task, *weights, *save;
    bool quiet;
};

static int rank, ranks;

/* ---- options ----------------------------------------------------------------------------------- */

static const char usage[] =
    "train_mpi [options]: trains a small language model, data-parallel over MPI\n"
    "  --steps N          steps to train (10)\n"
    "  --layers N         layers of the model (4)\n"
    "  --dim N            width of the model, a multiple of 4 (32)\n"
    "  --batch N          sequences of one rank (4)\n"
    "  --seed N           of weights and data (1)\n"
    "  --rate X           learning rate (0.05)\n"
    "  --slow-rank R      this rank computes slower\n"
    "  --slow-factor F    by this factor (2)\n"
    "  --fault LAYER.NAME make the model wrong, for example layer3.scale\n"
    "  --list-faults      what can be wrong\n"
    "  --weights DIR      start from NAME.npy files of this folder\n"
    "  --save DIR         leave the weights there at the end\n"
    "  --dump DIR         dump every step in the official layout\n"
    "  --task TASK        of the dump: statistics or tensor (statistics)\n"
    "  --quiet            print the last loss alone\n";

enum {
    OPT_STEPS = 1,
    OPT_LAYERS,
    OPT_DIM,
    OPT_BATCH,
    OPT_SEED,
    OPT_RATE,
    OPT_SLOW_RANK,
    OPT_SLOW_FACTOR,
    OPT_FAULT,
    OPT_LIST,
    OPT_WEIGHTS,
    OPT_SAVE,
    OPT_DUMP,
    OPT_TASK,
    OPT_QUIET,
    OPT_HELP
};

static const struct option longs[] = {{"steps", 1, NULL, OPT_STEPS},
                                      {"layers", 1, NULL, OPT_LAYERS},
                                      {"dim", 1, NULL, OPT_DIM},
                                      {"batch", 1, NULL, OPT_BATCH},
                                      {"seed", 1, NULL, OPT_SEED},
                                      {"rate", 1, NULL, OPT_RATE},
                                      {"slow-rank", 1, NULL, OPT_SLOW_RANK},
                                      {"slow-factor", 1, NULL, OPT_SLOW_FACTOR},
                                      {"fault", 1, NULL, OPT_FAULT},
                                      {"list-faults", 0, NULL, OPT_LIST},
                                      {"weights", 1, NULL, OPT_WEIGHTS},
                                      {"save", 1, NULL, OPT_SAVE},
                                      {"dump", 1, NULL, OPT_DUMP},
                                      {"task", 1, NULL, OPT_TASK},
                                      {"quiet", 0, NULL, OPT_QUIET},
                                      {"help", 0, NULL, OPT_HELP},
                                      {0}};

static void list_faults(void)
{
    for (int f = FAULT_NONE + 1; f < FAULTS; f++)
        printf("layerN.%-12s %s\n", fault_name((enum fault)f), fault_text((enum fault)f));
}

/* 0: go on, else the exit status + 1. */
static int take_option(struct options *o, int opt)
{
    switch (opt) {
    case OPT_STEPS:
        o->steps = (int)strtol(optarg, NULL, 10);
        return 0;
    case OPT_LAYERS:
        o->shape.layers = (int)strtol(optarg, NULL, 10);
        return 0;
    case OPT_DIM:
        o->shape.dim = (int)strtol(optarg, NULL, 10);
        return 0;
    case OPT_BATCH:
        o->shape.batch = (int)strtol(optarg, NULL, 10);
        return 0;
    case OPT_SEED:
        o->seed = (unsigned)strtoul(optarg, NULL, 10);
        return 0;
    case OPT_RATE:
        o->rate = strtod(optarg, NULL);
        return 0;
    case OPT_SLOW_RANK:
        o->slow_rank = (int)strtol(optarg, NULL, 10);
        return 0;
    case OPT_SLOW_FACTOR:
        o->slow_factor = strtod(optarg, NULL);
        return 0;
    case OPT_FAULT:
        o->fault = optarg;
        return 0;
    case OPT_LIST:
        list_faults();
        return 1;
    case OPT_WEIGHTS:
        o->weights = optarg;
        return 0;
    case OPT_SAVE:
        o->save = optarg;
        return 0;
    case OPT_DUMP:
        o->dump = optarg;
        return 0;
    case OPT_TASK:
        o->task = optarg;
        return 0;
    case OPT_QUIET:
        o->quiet = true;
        return 0;
    case OPT_HELP:
        fputs(usage, stdout);
        return 1;
    default:
        return 3;
    }
}

static int parse(struct options *o, int argc, char **argv)
{
    int opt, rc = 0;
    *o = (struct options){
        .shape = {.vocab = 64, .dim = 32, .heads = 4, .layers = 4, .seq = 16, .batch = 4},
        .steps = 10,
        .slow_rank = -1,
        .seed = 1,
        .slow_factor = 2,
        .rate = 0.05,
        .task = "statistics"};
    while (rc == 0 && (opt = getopt_long(argc, argv, "", longs, NULL)) != -1)
        rc = take_option(o, opt);
    const struct shape *s = &o->shape;
    if (rc == 0 && (optind < argc || o->steps < 1 || s->layers < 1 || s->layers > LAYERS_MAX ||
                    s->dim < 4 || s->dim > 1024 || s->dim % 4 != 0 || s->batch < 1)) {
        fprintf(stderr, "train_mpi: an option is out of its range; see --help\n");
        rc = 3;
    }
    return rc;
}

/* ---- data ---------------------------------------------------------------------------------------- */

/* A text with a rule to learn: mostly the successor follows from the token. */
static void make_batch(const struct options *o, int step, int64_t *tokens, int64_t *targets)
{
    const int vocab = o->shape.vocab;
    for (int b = 0; b < o->shape.batch; b++) {
        unsigned long long seed =
            ((unsigned long long)step * (unsigned)ranks + (unsigned)rank) * 1000003ULL +
            (unsigned)b * 7919ULL + o->seed;
        int now = (int)(seed / 7 % (unsigned)vocab);
        for (int i = 0; i < o->shape.seq; i++) {
            seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
            const bool is_noise = seed >> 60 == 0;
            const int next = is_noise ? (int)(seed >> 33) % vocab : (5 * now + 3) % vocab;
            tokens[b * o->shape.seq + i] = now;
            targets[b * o->shape.seq + i] = next;
            now = next;
        }
    }
}

/* ---- a step ---------------------------------------------------------------------------------------- */

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Work, not sleep: a slow processor is what is imitated. */
static void compute_more(double seconds)
{
    volatile float x = 1;
    for (double end = now_s() + seconds; now_s() < end;) {
        for (int i = 0; i < 1000; i++)
            x = x * 1.0001F + 0.5F;
    }
}

static void share_gradients(struct model *m)
{
    for (int i = m->nparams; i-- > 0;) {
        struct tensor *p = &m->param[i].t;
        const int n = p->rows * p->cols;
        MPI_Allreduce(MPI_IN_PLACE, p->g, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        for (int k = 0; k < n; k++)
            p->g[k] /= (float)ranks;
    }
}

static void dump_gradients(const struct model *m, struct probe_dumper *d)
{
    for (int i = 0; d != NULL && i < m->nparams; i++) {
        const struct param *p = &m->param[i];
        char path[64];
        snprintf(path, sizeof path, "%s", p->name);
        char *dot = strrchr(path, '.');
        const uint64_t shape[2] = {(uint64_t)p->t.rows, (uint64_t)p->t.cols};
        const struct probe_tensor_desc t = {.data = p->t.g,
                                            .dtype = "float32",
                                            .shape = p->t.rows == 1 ? shape + 1 : shape,
                                            .ndim = p->t.rows == 1 ? 1 : 2};
        if (dot != NULL)
            *dot = '\0';
        const struct probe_value v = {
            .kind = PROBE_TENSOR, .tensor = &t, .key = dot != NULL ? dot + 1 : p->name};
        const char *class_name = strstr(p->name, "norm") != NULL    ? "LayerNorm"
                                 : strstr(p->name, "embed") != NULL ? "Embedding"
                                                                    : "Linear";
        probe_parameters_grad(d, dot != NULL ? path : "model", class_name, &v, 1);
    }
}

static mstxRangeId begin(const char *name)
{
    return mstxRangeStartA(name, NULL);
}

static float train_step(const struct options *o, struct model *m, struct tape *t, int step,
                        int64_t *tokens, int64_t *targets)
{
    char name[32];
    float loss, sum;
    snprintf(name, sizeof name, "step %d", step);
    mstxRangeId whole = begin(name);
    make_batch(o, step, tokens, targets);
    model_zero_grad(m);
    probe_dumper_start(t->dump);
    const double start = now_s();
    mstxRangeId part = begin("forward");
    loss = model_forward(m, t, tokens, targets);
    mstxRangeEnd(part);
    part = begin("backward");
    tape_backward(t);
    if (rank == o->slow_rank)
        compute_more((o->slow_factor - 1) * (now_s() - start));
    mstxRangeEnd(part);
    part = begin("gradients");
    share_gradients(m);
    mstxRangeEnd(part);
    dump_gradients(m, t->dump);
    probe_dumper_stop(t->dump);
    probe_dumper_step(t->dump);
    part = begin("update");
    model_update(m, (float)o->rate);
    mstxRangeEnd(part);
    MPI_Allreduce(&loss, &sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    mstxRangeEnd(whole);
    return sum / (float)ranks;
}

/* ---- the run --------------------------------------------------------------------------------------- */

static struct probe_dumper *open_dump(const struct options *o)
{
    struct probe_dumper *d = NULL;
    struct ms_err err = {0};
    const struct probe_settings s = {.dump_path = o->dump,
                                     .task = strcmp(o->task, "tensor") == 0 ? PROBE_TASK_TENSOR
                                                                            : PROBE_TASK_STATISTICS,
                                     .level = PROBE_LEVEL_MIX,
                                     .framework = PROBE_FW_PYTORCH,
                                     .rank_known = true,
                                     .my_rank = (uint32_t)rank};
    if (o->dump != NULL && probe_dumper_open(&d, &s, &err) != MS_OK)
        fprintf(stderr, "train_mpi: %s\n", err.msg);
    return d;
}

static bool train(const struct options *o, struct model *m)
{
    static struct tape t;
    struct ms_err err = {0};
    const size_t n = (size_t)(o->shape.batch * o->shape.seq);
    int64_t *tokens = must_alloc(n * sizeof *tokens), *targets = must_alloc(n * sizeof *targets);
    t.dump = open_dump(o);
    for (int step = 0; step < o->steps; step++) {
        const float loss = train_step(o, m, &t, step, tokens, targets);
        if (rank == 0 && (!o->quiet || step + 1 == o->steps))
            printf("step %d loss %.8f\n", step, (double)loss);
    }
    bool ok = t.dump == NULL || probe_dumper_close(t.dump, &err) == MS_OK;
    if (!ok)
        fprintf(stderr, "train_mpi: %s\n", err.msg);
    if (o->save != NULL && rank == 0)
        ok = model_save(m, o->save) && ok;
    tape_free(&t);
    free(tokens);
    free(targets);
    return ok;
}

int main(int argc, char **argv)
{
    static struct model m;
    struct options o;
    int status = parse(&o, argc, argv);
    if (status != 0)
        return status - 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    model_init(&m, &o.shape, o.seed);
    bool ok = true;
    if (o.fault != NULL && !model_set_fault(&m, o.fault)) {
        fprintf(stderr, "train_mpi: there is no fault '%s'; see --list-faults\n", o.fault);
        ok = false;
    }
    ok = ok && (o.weights == NULL || model_load(&m, o.weights));
    ok = ok && train(&o, &m);
    model_free(&m);
    MPI_Finalize();
    return ok ? 0 : 1;
}

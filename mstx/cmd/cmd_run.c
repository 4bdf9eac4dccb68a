/* SPDX-License-Identifier: MIT
 *
 * run: runs a program with the recorder preloaded.
 */
#include "mstx/launch/launch_program.h"

#include "probe/base/opt.h"

#include <string.h>

extern const struct ms_cmd mstx_cmd_run;

struct args {
    const char *output, *include, *exclude, *max_size, *stage, *dump, *monitor;
    double flight, hang_timeout;
    int policy, comm, device;
    bool nvtx, wait, no_torch, hook_dlsym, invariants, memory;
    struct ms_opt_list program;
};

static const char *const policies[] = {"block", "drop", NULL};
static const char *const comms[] = {"auto", "none", "openmpi", "mpich", NULL};

static const char *const devices[] = {"auto", "opencl", "cuda", "acl", NULL};

static const struct ms_opt opts[] = {
    {"PROG ARGS", NULL, MS_OPT_REST, offsetof(struct args, program), .dash = MS_DASH_WORD,
     .help = "the program and its arguments, as without msprobe"},
    {"output_path", "o", MS_OPT_PATH, offsetof(struct args, output), "DIR", .dash = MS_DASH_FOLDER,
     .help = "directory of the run; all ranks give the same", .dflt = "msprobe-run"},
    {"domain_include", NULL, MS_OPT_TEXT, offsetof(struct args, include), "NAMES",
     .help = "record these domains alone, comma separated; 'default' is one"},
    {"domain_exclude", NULL, MS_OPT_TEXT, offsetof(struct args, exclude), "NAMES",
     .help = "do not record these domains"},
    {"comm", NULL, MS_OPT_CHOICE, offsetof(struct args, comm), "WHAT", .choices = comms,
     .help = "record communication calls: of the MPI that the launcher or the program speaks for, "
             "of none, or of this one",
     .dflt = "auto"},
    {"hook_dlsym", NULL, MS_OPT_FLAG, offsetof(struct args, hook_dlsym),
     .help = "also stand before dlsym, for programs that look MPI, NCCL or HCCL up by name"},
    {"device", NULL, MS_OPT_CHOICE, offsetof(struct args, device), "KIND", .choices = devices,
     .help = "what the streams of marks are: those seen being made, or all of this kind",
     .dflt = "auto"},
    {"hang_timeout", NULL, MS_OPT_REAL, offsetof(struct args, hang_timeout), "SECONDS",
     .help = "a communication call that takes longer hangs: the capture tells which, and every "
             "thread's stack; the program goes on. 0: do not look",
     .dflt = "300"},
    {"nvtx", NULL, MS_OPT_FLAG, offsetof(struct args, nvtx), .help = "record NVTX calls too"},
    {"no_torch", NULL, MS_OPT_FLAG, offsetof(struct args, no_torch),
     .help = "Python: do not mark batches, optimizer steps and checkpoints of PyTorch"},
    {"dump", NULL, MS_OPT_PATH, offsetof(struct args, dump), "FILE",
     .help = "dump a PyTorch or MindSpore program as this config.json says; into DIR if it names "
             "no dump_path"},
    {"monitor", NULL, MS_OPT_PATH, offsetof(struct args, monitor), "FILE",
     .help = "write the figures of each step of a PyTorch program that this monitor's config.json "
             "asks for, into DIR/monitor if MONITOR_OUTPUT_DIR names no other folder"},
    {"invariants", NULL, MS_OPT_FLAG, offsetof(struct args, invariants),
     .help = "watch what holds in every PyTorch training that is right, and say at once what does "
             "not: stale gradients, layers without an optimizer, broken ties, ..."},
    {"memory", NULL, MS_OPT_FLAG, offsetof(struct args, memory),
     .help = "record blocks of 16 KiB and more that the program takes from the C library's "
             "allocator, as PyTorch does on the CPU, with the Python stack; 'msprobe memory DIR' "
             "says who owns them"},
    {"flight", NULL, MS_OPT_REAL, offsetof(struct args, flight), "SECONDS",
     .help = "flight recorder: keep the last seconds only, for 'msprobe ctl DIR snapshot'"},
    {"max_size", NULL, MS_OPT_TEXT, offsetof(struct args, max_size), "BYTES",
     .help = "of a process; 500m, 2g. What does not fit is dropped and counted"},
    {"stage", NULL, MS_OPT_PATH, offsetof(struct args, stage), "DIR", .dash = MS_DASH_FOLDER,
     .help =
         "write to this directory of the node first and copy to the run, for slow shared storage"},
    {"policy", NULL, MS_OPT_CHOICE, offsetof(struct args, policy), "WHAT", .choices = policies,
     .help = "when marks come faster than the disk takes them: wait, or drop and count",
     .dflt = "block"},
    {"wait", NULL, MS_OPT_FLAG, offsetof(struct args, wait),
     .help = "record nothing until 'msprobe ctl DIR start'"},
    {0}};

/* ---- end of the options ------------------------------------------------------------------ */

static bool starts_name(const char *name, const char *word)
{
    for (; *word != '\0'; word++, name++) {
        char w = *word == '-' ? '_' : *word;
        if (*name == '\0' || *name != w)
            return false;
    }
    return true;
}

static bool takes_value(const char *word)
{
    const char *bare = word + 1 + (word[1] == '-');
    if (strchr(word, '=') != NULL)
        return false;
    for (const struct ms_opt *o = ms_opt_next(&mstx_cmd_run, NULL); o != NULL;
         o = ms_opt_next(&mstx_cmd_run, o)) {
        bool is = word[1] == '-' ? starts_name(o->name, bare)
                                 : o->letters != NULL && strcmp(o->letters, bare) == 0;
        if (is)
            return o->kind != MS_OPT_FLAG && o->kind != MS_OPT_OPTIONAL;
    }
    return false;
}

/* Returns the index of PROG, after which all options belong to the program; argc without PROG. */
static int find_program(int argc, char **argv)
{
    int i = 1;
    while (i < argc && argv[i][0] == '-' && argv[i][1] != '\0') {
        if (strcmp(argv[i], "--") == 0)
            return i + 1;
        i += takes_value(argv[i]) ? 2 : 1;
    }
    return i < argc ? i : argc;
}

static enum ms_rc check_args(const struct args *a, struct ms_err *err)
{
    if (a->include != NULL && a->exclude != NULL)
        return ms_fail(err, MS_E_ARG, "give --domain_include or --domain_exclude, not both");
    if (a->hang_timeout < 0)
        return ms_fail(err, MS_E_ARG, "--hang_timeout takes a number of seconds");
    if (a->flight < 0)
        return ms_fail(err, MS_E_ARG, "--flight takes a number of seconds");
    return MS_OK;
}

static int run_run(int argc, char **argv)
{
    struct args args = {.hang_timeout = 300};
    struct ms_err err = {0};
    bool done;
    int status = 0, at = find_program(argc, argv);
    int ours = at > 1 && strcmp(argv[at - 1], "--") == 0 ? at - 1 : at;
    if (ms_opt_parse(&mstx_cmd_run, ours, argv, &args, &done, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_run, &err);
    if (done)
        return MS_EXIT_OK;
    if (at >= argc || *argv[at] == '\0') {
        ms_fail(&err, MS_E_ARG, "missing argument PROG: the program to run");
        return ms_cmd_fail(&mstx_cmd_run, &err);
    }
    const struct mstx_launch how = {
        .output = args.output != NULL ? args.output : "msprobe-run",
        .include = args.include,
        .exclude = args.exclude,
        .max_size = args.max_size,
        .stage = args.stage,
        .policy = policies[args.policy],
        .device = args.device != 0 ? devices[args.device] : NULL,
        .dump = args.dump,
        .monitor = args.monitor,
        .invariants = args.invariants,
        .memory = args.memory,
        .flight = args.flight,
        .hang_timeout = args.hang_timeout,
        .comm = args.comm,
        .nvtx = args.nvtx,
        .wait = args.wait,
        .no_torch = args.no_torch,
        .hook_dlsym = args.hook_dlsym,
    };
    if (check_args(&args, &err) == MS_OK &&
        mstx_launch_run(&how, argv + at, &status, &err) == MS_OK)
        return status;
    int rc = ms_cmd_fail(&mstx_cmd_run, &err);
    return status != 0 ? status : rc;
}

const struct ms_cmd mstx_cmd_run = {
    .name = "run",
    .run = run_run,
    .brief = "run a program and record marks, communication and steps",
    .opts = opts,
    .usage = "[options] [--] PROG [ARGS]",
    .about = "Runs PROG as it is and records the mstx marks and ranges it makes (with --nvtx also "
             "NVTX ones), its calls of MPI, NCCL, RCCL and HCCL, and the steps of PyTorch; with "
             "--dump also its tensors. Put it in front of the program, behind mpirun or srun. The "
             "exit status is the program's. A program that is killed leaves everything it had "
             "recorded.\n"
             "\n"
             "  msprobe run -o run python train.py\n"
             "  mpirun -n 8 msprobe run -o run --domain_exclude ptaCaching ./train\n"
             "  msprobe run -o run --flight 30 ./train\n",
};

/* SPDX-License-Identifier: MIT
 *
 * cmd_run: msprobe run [options] PROG ARGS: runs a program with the recorder in reach.  The
 * recorder is found by whatever way the program marks: the variable of marking headers, a
 * preload for those that look the functions up, the variable of NVTX.  Everything the program
 * gets from us is in its environment; its streams, signals and exit status are its own.
 */
#include "mstx/capture.h"
#include "mstx/control.h"
#include "mstx/elf_needs.h"
#include "mstx/stage.h"
#include "probe/base/beside.h"
#include "probe/base/human.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/opt.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct ms_cmd mstx_cmd_run;

struct args {
    const char *output, *include, *exclude, *max_size, *stage, *dump;
    double flight, hang_timeout;
    int policy, comm, device;
    bool nvtx, wait, no_torch, hook_dlsym;
    struct ms_opt_list program;
};

static const char *const policies[] = {"block", "drop", NULL};
enum comm { COMM_AUTO, COMM_NONE, COMM_OPENMPI, COMM_MPICH };
static const char *const comms[] = {"auto", "none", "openmpi", "mpich", NULL};

static const char *const devices[] = {"auto", "opencl", "cuda", "acl", NULL};

static const struct ms_opt opts[] = {
    {"PROG ARGS", NULL, MS_OPT_REST, offsetof(struct args, program),
     .help = "the program and its arguments, as without msprobe"},
    {"output_path", "o", MS_OPT_PATH, offsetof(struct args, output), "DIR",
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
    {"flight", NULL, MS_OPT_REAL, offsetof(struct args, flight), "SECONDS",
     .help = "flight recorder: keep the last seconds only, for 'msprobe ctl DIR snapshot'"},
    {"max_size", NULL, MS_OPT_TEXT, offsetof(struct args, max_size), "BYTES",
     .help = "of a process; 500m, 2g. What does not fit is dropped and counted"},
    {"stage", NULL, MS_OPT_PATH, offsetof(struct args, stage), "DIR",
     .help =
         "write to this directory of the node first and copy to the run, for slow shared storage"},
    {"policy", NULL, MS_OPT_CHOICE, offsetof(struct args, policy), "WHAT", .choices = policies,
     .help = "when marks come faster than the disk takes them: wait, or drop and count",
     .dflt = "block"},
    {"wait", NULL, MS_OPT_FLAG, offsetof(struct args, wait),
     .help = "record nothing until 'msprobe ctl DIR start'"},
    {0}};

/* ---- where the options end --------------------------------------------------------------- */

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

/* Options behind PROG are the program's: parse up to it. Index of PROG, argc when there is none. */
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

/* ---- the program's environment ------------------------------------------------------------- */

static enum ms_rc find_library(const struct ms_place *place, char *path, size_t cap,
                               struct ms_err *err)
{
    if (ms_place_find(place, path, cap))
        return MS_OK;
    return ms_fail(err, MS_E_NOTFOUND, "%s is not there; is msprobe installed whole?", path);
}

/* Python programs find `import mstx` if it was built, and in front of it, in the folder "auto",
 * what marks PyTorch; it steps aside where a sitecustomize of the program's own stands behind. */
static void offer_python(bool torch)
{
    static const struct ms_place place = {"python/mstx.so", "../lib/msprobe/python/mstx.so"};
    char path[PATH_MAX], list[4 * PATH_MAX];
    struct ms_err ignored = {0};
    const char *others = getenv("PYTHONPATH");
    if (find_library(&place, path, sizeof path, &ignored) != MS_OK)
        return;
    *strrchr(path, '/') = '\0';
    bool more = others != NULL && *others != '\0';
    snprintf(list, sizeof list, "%s%s%s%s%s", torch ? path : "", torch ? "/auto:" : "", path,
             more ? ":" : "", more ? others : "");
    setenv("PYTHONPATH", list, 1);
}

static void put(const char *name, const char *value)
{
    if (value != NULL)
        setenv(name, value, 1);
}

/* Without the decimal point of a locale. */
static void put_seconds(const char *name, double seconds)
{
    char text[32];
    snprintf(text, sizeof text, "%lld.%03lld", (long long)seconds,
             (long long)(seconds * 1000) % 1000);
    put(name, text);
}

/* In front of what is preloaded already. */
static void preload(const char *library)
{
    char list[2 * PATH_MAX];
    const char *others = getenv("LD_PRELOAD");
    snprintf(list, sizeof list, "%s%s%s", library, others != NULL ? ":" : "",
             others != NULL ? others : "");
    setenv("LD_PRELOAD", list, 1);
}

/* ---- communication hooks ---------------------------------------------------------------------- */

static bool has_any(const char *const *names)
{
    for (; *names != NULL; names++) {
        if (getenv(*names) != NULL)
            return true;
    }
    return false;
}

/* The launcher knows best; a program that was started alone says by what it is linked to. */
static enum comm which_mpi(struct ms_file program)
{
    static const char *const openmpi[] = {"OMPI_COMM_WORLD_RANK", "OMPI_UNIVERSE_SIZE", NULL};
    static const char *const mpich[] = {"PMI_RANK", "PMI_FD", NULL};
    if (has_any(openmpi))
        return COMM_OPENMPI;
    if (mstx_elf_needs(program, "libmpi.so.40"))
        return COMM_OPENMPI;
    if (mstx_elf_needs(program, "libmpich.so.12") || mstx_elf_needs(program, "libmpi.so.12"))
        return COMM_MPICH;
    return has_any(mpich) ? COMM_MPICH : COMM_NONE;
}

/* Hooks of NCCL, HCCL and of device streams cost nothing in a program without these. */
static enum ms_rc preload_ccl(struct ms_err *err)
{
    static const struct ms_place place = {"libmstx_hook.so", "../lib/msprobe/libmstx_hook.so"};
    char path[PATH_MAX];
    MS_TRY(find_library(&place, path, sizeof path, err));
    preload(path);
    setenv("NCCL_PROFILER_PLUGIN", path, 0); /* another's stays */
    return MS_OK;
}

static enum ms_rc preload_dlsym(struct ms_err *err)
{
    static const struct ms_place place = {"libmstx_dlsym.so", "../lib/msprobe/libmstx_dlsym.so"};
    char path[PATH_MAX];
    MS_TRY(find_library(&place, path, sizeof path, err));
    preload(path);
    return MS_OK;
}

/* Asked for by name it must be there; found out by ourselves it need not. */
static enum ms_rc preload_hooks(int comm, struct ms_file program, struct ms_err *err)
{
    static const struct ms_place places[] = {
        [COMM_OPENMPI] = {"libmstx_mpi_openmpi.so", "../lib/msprobe/libmstx_mpi_openmpi.so"},
        [COMM_MPICH] = {"libmstx_mpi_mpich.so", "../lib/msprobe/libmstx_mpi_mpich.so"}};
    char path[PATH_MAX];
    struct ms_err ignored = {0};
    if (comm != COMM_NONE)
        MS_TRY(preload_ccl(err));
    const int mpi = comm == COMM_AUTO ? (int)which_mpi(program) : comm;
    if (mpi == COMM_NONE)
        return MS_OK;
    enum ms_rc rc =
        find_library(&places[mpi], path, sizeof path, comm == COMM_AUTO ? &ignored : err);
    if (rc == MS_OK)
        preload(path);
    return comm == COMM_AUTO ? MS_OK : rc;
}

/* A sanitizer refuses to run when anything was loaded before it: one that the program is linked to,
 * or that this very copy of the recorder was built with. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif
static void preload_sanitizers_of(struct ms_file elf)
{
    static const char *const names[] = {"libasan.so.8",
                                        "libasan.so.7",
                                        "libasan.so.6",
                                        "libasan.so.5",
                                        "libasan.so.4",
                                        "libtsan.so.2",
                                        "libtsan.so.1",
                                        "libtsan.so.0",
                                        "liblsan.so.0",
                                        "libhwasan.so.0",
                                        "libclang_rt.asan-x86_64.so",
                                        "libclang_rt.asan-aarch64.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (mstx_elf_needs(elf, names[i]))
            preload(names[i]);
    }
}

static void preload_sanitizers(struct ms_file program, const char *recorder)
{
    preload_sanitizers_of(program);
    if (IS_SANITIZED) {
        struct ms_file own = mstx_elf_open(recorder);
        preload_sanitizers_of(own);
        ms_file_unmap(&own);
    }
}

/* The program may change its directory before it imports its framework. */
static enum ms_rc ask_for_dump(const char *config, const char *out, struct ms_err *err)
{
    char path[PATH_MAX];
    if (config == NULL)
        return MS_OK;
    if (realpath(config, path) == NULL || access(path, R_OK) != 0)
        return ms_fail_sys(err, "--dump %s", config);
    put("MSPROBE_DUMP", path);
    put("MSPROBE_DUMP_PATH", realpath(out, path) != NULL ? path : out);
    return MS_OK;
}

/* The next tool: whoever was named before us is told of every mark after us. */
static void keep_next(const char *variable, const char *next, const char *ours)
{
    const char *was = getenv(variable);
    if (was != NULL && *was != '\0' && strcmp(was, ours) != 0)
        setenv(next, was, 0);
    setenv(variable, ours, 1);
}

static enum ms_rc set_environment(const struct args *a, const char *out, struct ms_file program,
                                  struct ms_err *err)
{
    static const struct ms_place recorder = {"libmstx.so", "../lib/libmstx.so"};
    static const struct ms_place door = {"dropin/libmspti.so", "../lib/msprobe/dropin/libmspti.so"};
    char lib[PATH_MAX], drop[PATH_MAX];
    MS_TRY(find_library(&recorder, lib, sizeof lib, err));
    MS_TRY(find_library(&door, drop, sizeof drop, err));
    keep_next("MSTX_INJECTION_PATH", "MSTX_NEXT_PATH", lib);
    if (a->nvtx)
        keep_next("NVTX_INJECTION64_PATH", "MSTX_NEXT_NVTX_PATH", lib);
    preload(drop);
    MS_TRY(preload_hooks(a->comm, program, err));
    if (a->hook_dlsym)
        MS_TRY(preload_dlsym(err));
    preload_sanitizers(program, lib);
    offer_python(!a->no_torch || a->dump != NULL);
    MS_TRY(ask_for_dump(a->dump, out, err));
    put("MSTX_TORCH", a->no_torch ? "0" : NULL);
    put("MSTX_OUT", out);
    put("MSTX_DOMAIN_INCLUDE", a->include);
    put("MSTX_DOMAIN_EXCLUDE", a->exclude);
    put("MSTX_MAX_SIZE", a->max_size);
    put("MSTX_STAGE", a->stage);
    put("MSTX_POLICY", policies[a->policy]);
    put("MSTX_START", a->wait ? "off" : NULL);
    put("MSTX_QUIET", "1"); /* we say where the capture is */
    put("MSTX_DEVICE", a->device != 0 ? devices[a->device] : NULL);
    put_seconds("MSTX_HANG_TIMEOUT", a->hang_timeout);
    if (a->flight > 0)
        put_seconds("MSTX_FLIGHT", a->flight);
    return MS_OK;
}

/* Ranks above 0 leave the talking to rank 0, and their place to the program. */
static bool talks(void)
{
    static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK_ID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *v = getenv(names[i]);
        if (v != NULL)
            return strcmp(v, "0") == 0;
    }
    return true;
}

/* ---- running ---------------------------------------------------------------------------------- */

/* In the child; the errno goes to the parent when there is no such program. */
static void become(char **program, int tell)
{
    execvp(program[0], program);
    int why = errno;
    (void)!write(tell, &why, sizeof why);
}

static void watched(sigset_t *set)
{
    static const int list[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        sigaddset(set, list[i]);
}

/* Pass on what is sent to us; what the terminal sends, the program gets by itself. */
static int wait_and_forward(pid_t pid, const sigset_t *set)
{
    for (;;) {
        siginfo_t info;
        int status;
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        int sig = sigwaitinfo(set, &info);
        if (sig > 0 && sig != SIGCHLD && info.si_code != SI_KERNEL)
            kill(pid, sig);
    }
}

static enum ms_rc run_program(char **program, int *status, struct ms_err *err)
{
    sigset_t set, old;
    int tell[2], why = 0;
    if (!talks()) {
        execvp(program[0], program);
        return ms_fail_sys(err, "%s", program[0]);
    }
    if (pipe2(tell, O_CLOEXEC) != 0)
        return ms_fail_sys(err, "pipe");
    watched(&set);
    sigprocmask(SIG_BLOCK, &set, &old);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &old, NULL);
        become(program, tell[1]);
        kill(getpid(), SIGKILL); /* nothing of ours may run in the program's place */
    }
    close(tell[1]);
    if (pid < 0)
        ms_fail_sys(err, "%s", program[0]);
    else if (read(tell[0], &why, sizeof why) != sizeof why)
        why = 0;
    close(tell[0]);
    if (pid > 0)
        *status = wait_and_forward(pid, &set);
    sigprocmask(SIG_SETMASK, &old, NULL);
    errno = why;
    return pid < 0 ? MS_E_IO : why != 0 ? ms_fail_sys(err, "%s", program[0]) : MS_OK;
}

/* ---- what it held before ------------------------------------------------------------------------ */

static enum ms_rc count_ended(void *arg, const char *path, struct ms_err *err)
{
    struct mstx_link *l = NULL;
    size_t *ended = arg;
    enum ms_rc rc = mstx_link_open(&l, path, err);
    *ended += rc == MS_OK && l != NULL && !mstx_link_alive(l); /* this run's other ranks live */
    mstx_link_close(l);
    return MS_OK;
}

/* A finished run in the same folder becomes one with this one, which is seldom meant. */
static void tell_of_earlier(const char *out)
{
    size_t ended = 0;
    if (mstx_each_process(out, -1, count_ended, &ended, NULL) != MS_OK || ended == 0)
        return;
    fprintf(stderr,
            "msprobe: %s holds %zu process%s of an earlier run; every command will show them "
            "together with this one (-o FOLDER keeps runs apart)\n",
            out, ended, ended == 1 ? "" : "es");
}

/* ---- what it holds ------------------------------------------------------------------------------ */

struct sum {
    size_t processes, segments;
    uint64_t records, dropped, bytes;
    int unstaged;
};

static void add_segment(struct sum *s, const char *path)
{
    struct mstx_seg h;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return;
    if (fread(&h, sizeof h, 1, f) == 1 &&
        mstx_seg_check(&h, sizeof h, MSTX_KIND_RING) == MSTX_SEG_GOOD && h.part != 0) {
        s->segments++;
        s->records += h.ring != 0 ? h.head : 0;
        s->dropped += h.dropped;
        s->bytes += sizeof h + h.head * MSTX_REC_SIZE;
    }
    fclose(f);
}

static enum ms_rc add_process(void *arg, const char *path, struct ms_err *err)
{
    struct sum *s = arg;
    struct ms_dir d;
    if (mstx_stage_recover(path) != 0)
        s->unstaged++;
    MS_TRY(ms_dir_list(&d, path, err));
    s->processes++;
    for (size_t i = 0; i < d.names.n; i++) {
        char *file = ms_path_join(path, d.names.p[i].p);
        if (file != NULL && d.names.p[i].p[0] == 'r' && ms_str_ends(d.names.p[i], MS_STR(".seg")))
            add_segment(s, file);
        ms_free(file);
    }
    ms_dir_free(&d);
    return MS_OK;
}

/* To stderr: standard output belongs to the program. */
static enum ms_rc tell_result(const char *out, bool has_dump, struct ms_err *err)
{
    struct sum s = {0};
    char size[MS_HUMAN_MAX];
    MS_TRY(mstx_each_process(out, -1, add_process, &s, err));
    if (s.processes == 0) {
        bool is_empty = rmdir(out) == 0;
        if (!has_dump)
            fprintf(stderr, "msprobe: the program made no mark; nothing was recorded\n");
        else if (!is_empty)
            fprintf(stderr, "msprobe: the dump is in %s\n", out);
        return MS_OK;
    }
    fprintf(stderr, "msprobe: %s: %llu records of %zu process%s, %s", out,
            (unsigned long long)s.records, s.processes, s.processes == 1 ? "" : "es",
            ms_human_bytes(size, s.bytes));
    if (s.dropped > 0)
        fprintf(stderr, ", %llu dropped", (unsigned long long)s.dropped);
    if (s.unstaged > 0)
        fprintf(stderr, ", %d still on the stage", s.unstaged);
    fprintf(stderr, "; next: msprobe report %s\n", out);
    return MS_OK;
}

/* As the shell has it; 0: the error does not say. */
static int status_of_start(const struct ms_err *err)
{
    return err->sys == ENOENT ? 127 : err->sys == EACCES ? 126 : 0;
}

/* ---- the command ------------------------------------------------------------------------------ */

static enum ms_rc record(const struct args *a, char **program, int *status, struct ms_err *err)
{
    char out[PATH_MAX];
    const char *wanted = a->output != NULL ? a->output : "msprobe-run";
    if (a->include != NULL && a->exclude != NULL)
        return ms_fail(err, MS_E_ARG, "give --domain_include or --domain_exclude, not both");
    if (a->hang_timeout < 0)
        return ms_fail(err, MS_E_ARG, "--hang_timeout takes a number of seconds");
    if (a->flight < 0)
        return ms_fail(err, MS_E_ARG, "--flight takes a number of seconds");
    MS_TRY(ms_mkdirs(wanted, err)); /* now: a program that changes its directory still finds it */
    if (realpath(wanted, out) == NULL)
        return ms_fail_sys(err, "%s", wanted);
    struct ms_file elf = mstx_elf_open(program[0]);
    enum ms_rc rc = set_environment(a, out, elf, err);
    ms_file_unmap(&elf);
    MS_TRY(rc);
    if (talks())
        tell_of_earlier(wanted);
    rc = run_program(program, status, err);
    if (rc != MS_OK) {
        rmdir(out); /* unless somebody else records there */
        *status = status_of_start(err);
        return rc;
    }
    return talks() ? tell_result(wanted, a->dump != NULL, err) : MS_OK;
}

static int run(int argc, char **argv)
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
    if (record(&args, argv + at, &status, &err) == MS_OK)
        return status;
    int rc = ms_cmd_fail(&mstx_cmd_run, &err);
    return status != 0 ? status : rc;
}

const struct ms_cmd mstx_cmd_run = {
    .name = "run",
    .run = run,
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

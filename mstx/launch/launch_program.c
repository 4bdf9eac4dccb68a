/* SPDX-License-Identifier: MIT
 *
 * launch_program: starts a program that is recorded.
 */
#include "mstx/launch/launch_program.h"
#include "mstx/format/capture.h"
#include "mstx/format/stage.h"
#include "mstx/read/control.h"
#include "mstx/read/elf_needs.h"
#include "probe/base/assert.h"
#include "probe/base/beside.h"
#include "probe/base/err.h"
#include "probe/base/human.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/settings/run_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- environment ------------------------------------------------------------ */

/* How a program finds the recorder depends on how it marks: by the variable of the marking headers,
 * by a preload if it looks the functions up, by the variable of NVTX. */

static enum ms_rc find_library(const struct ms_place *place, char *path, size_t cap,
                               struct ms_err *err)
{
    if (ms_place_find(place, path, cap))
        return MS_OK;
    return ms_fail(err, MS_E_NOTFOUND, "%s is not there; is msprobe installed whole?", path);
}

/* Makes `import mstx` work in Python programs if the module was built. In front of it the folder
 * "auto" has a sitecustomize that marks PyTorch and then runs the sitecustomize of the program. */
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

static void set_variable(const char *name, const char *value)
{
    if (value != NULL)
        setenv(name, value, 1);
}

/* Formats without the decimal comma of a locale. */
static void set_seconds(const char *name, double seconds)
{
    char text[32];
    snprintf(text, sizeof text, "%lld.%03lld", (long long)seconds,
             (long long)(seconds * 1000) % 1000);
    set_variable(name, text);
}

/* Adds a library in front of those that are preloaded already. */
static void preload_library(const char *library)
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

/* Finds the flavour of MPI by the variables of the launcher and by the libraries that the
 * program links. */
static enum mstx_launch_comm find_mpi(struct ms_file program)
{
    static const char *const openmpi[] = {"OMPI_COMM_WORLD_RANK", "OMPI_UNIVERSE_SIZE", NULL};
    static const char *const mpich[] = {"PMI_RANK", "PMI_FD", NULL};
    if (has_any(openmpi))
        return MSTX_COMM_OPENMPI;
    if (mstx_elf_needs(program, "libmpi.so.40"))
        return MSTX_COMM_OPENMPI;
    if (mstx_elf_needs(program, "libmpich.so.12") || mstx_elf_needs(program, "libmpi.so.12"))
        return MSTX_COMM_MPICH;
    return has_any(mpich) ? MSTX_COMM_MPICH : MSTX_COMM_NONE;
}

/* Preloads the hooks of NCCL, HCCL and device streams, which cost nothing in a program without
 * these. */
static enum ms_rc preload_ccl(struct ms_err *err)
{
    static const struct ms_place place = {"libmstx_hook.so", "../lib/msprobe/libmstx_hook.so"};
    char path[PATH_MAX];
    MS_TRY(find_library(&place, path, sizeof path, err));
    preload_library(path);
    setenv("NCCL_PROFILER_PLUGIN", path, 0); /* keeps a value that another tool has set */
    return MS_OK;
}

static enum ms_rc preload_memory(struct ms_err *err)
{
    static const struct ms_place place = {"libmstx_memory.so", "../lib/msprobe/libmstx_memory.so"};
    char path[PATH_MAX];
    MS_TRY(find_library(&place, path, sizeof path, err));
    preload_library(path);
    return MS_OK;
}

static enum ms_rc preload_dlsym(struct ms_err *err)
{
    static const struct ms_place place = {"libmstx_dlsym.so", "../lib/msprobe/libmstx_dlsym.so"};
    char path[PATH_MAX];
    MS_TRY(find_library(&place, path, sizeof path, err));
    preload_library(path);
    return MS_OK;
}

/* Preloads the hooks of MPI. A flavour that the user named must be there; one that was detected
 * need not. */
static enum ms_rc preload_hooks(int comm, struct ms_file program, struct ms_err *err)
{
    static const struct ms_place places[] = {
        [MSTX_COMM_OPENMPI] = {"libmstx_mpi_openmpi.so", "../lib/msprobe/libmstx_mpi_openmpi.so"},
        [MSTX_COMM_MPICH] = {"libmstx_mpi_mpich.so", "../lib/msprobe/libmstx_mpi_mpich.so"}};
    char path[PATH_MAX];
    struct ms_err ignored = {0};
    if (comm != MSTX_COMM_NONE)
        MS_TRY(preload_ccl(err));
    const int mpi = comm == MSTX_COMM_AUTO ? (int)find_mpi(program) : comm;
    if (mpi == MSTX_COMM_NONE)
        return MS_OK;
    enum ms_rc rc =
        find_library(&places[mpi], path, sizeof path, comm == MSTX_COMM_AUTO ? &ignored : err);
    if (rc == MS_OK)
        preload_library(path);
    return comm == MSTX_COMM_AUTO ? MS_OK : rc;
}

/* A sanitizer must be the first library that is loaded: the one that the program links, and the
 * one that this build of the recorder contains, are preloaded in front of all others. */
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
            preload_library(names[i]);
    }
}

/* Puts an option of a sanitizer in front of those that are already set, which take precedence. */
static void add_option(const char *variable, const char *option)
{
    char list[4096];
    const char *others = getenv(variable);
    int n = snprintf(list, sizeof list, "%s%s%s", option, others != NULL ? ":" : "",
                     others != NULL ? others : "");
    if (n > 0 && (size_t)n < sizeof list)
        setenv(variable, list, 1);
}

/* Relaxes sanitizers of programs that PROG starts, which cannot be examined here: AddressSanitizer
 * would end them because libraries without it are loaded first, ThreadSanitizer would end a forked
 * child in which the recorder starts its thread, and report races in the recorder, of whose code it
 * sees the calls of memcpy but not the atomic operations that order them. */
static void calm_sanitizers(void)
{
    add_option("ASAN_OPTIONS", "verify_asan_link_order=0");
    add_option("TSAN_OPTIONS", "die_after_fork=0:ignore_noninstrumented_modules=1");
}

static void preload_sanitizers(struct ms_file program, const char *recorder)
{
    preload_sanitizers_of(program);
    calm_sanitizers();
    if (IS_SANITIZED) {
        struct ms_file own = mstx_elf_open(recorder);
        preload_sanitizers_of(own);
        ms_file_unmap(&own);
    }
}

/* Fails for what cannot be a config.json, before the program starts; what is in it the adapters check. */
static enum ms_rc check_config(const char *config, struct ms_err *err)
{
    enum { CONFIG_MAX = 8 << 20 };
    static const char blank[] = " \t\r\n";
    struct ms_file f;
    if (ms_file_map(&f, config, CONFIG_MAX, err) != MS_OK)
        return ms_err_wrap(err, "--dump");
    const char *p = f.p, *end = f.p + f.n;
    while (p < end && memchr(blank, *p, sizeof blank - 1) != NULL)
        p++;
    while (end > p && memchr(blank, end[-1], sizeof blank - 1) != NULL)
        end--;
    const bool is_object = end - p >= 2 && *p == '{' && end[-1] == '}';
    ms_file_unmap(&f);
    return is_object ? MS_OK
                     : ms_fail(err, MS_E_FORMAT,
                               "--dump %s: is no config.json, which is an object such as "
                               "{\"task\": \"statistics\", \"level\": \"L1\"}",
                               config);
}

/* Stores absolute paths: the program may change its directory before it imports its framework. */
static enum ms_rc request_dump(const char *config, const char *out, struct ms_err *err)
{
    char path[PATH_MAX];
    if (config == NULL)
        return MS_OK;
    if (realpath(config, path) == NULL || access(path, R_OK) != 0)
        return ms_fail_sys(err, "--dump %s", config);
    set_variable("MSPROBE_DUMP", path);
    set_variable("MSPROBE_DUMP_PATH", realpath(out, path) != NULL ? path : out);
    return MS_OK;
}

/* Tells whether the figures of steps are monitored, or what holds in every training. */
static bool is_monitored(const struct mstx_launch *how)
{
    return how->monitor != NULL || how->invariants;
}

/* The same for a monitor, whose files go into the run where the user has named no other folder. */
static enum ms_rc request_monitor(const struct mstx_launch *how, const char *out,
                                  struct ms_err *err)
{
    char path[PATH_MAX], folder[PATH_MAX + 16];
    if (!is_monitored(how))
        return MS_OK;
    if (how->monitor != NULL && (realpath(how->monitor, path) == NULL || access(path, R_OK) != 0))
        return ms_fail_sys(err, "--monitor %s", how->monitor);
    set_variable("MSPROBE_MONITOR", how->monitor != NULL ? path : NULL);
    set_variable("MSPROBE_INVARIANTS", how->invariants ? "1" : NULL);
    snprintf(folder, sizeof folder, "%s/monitor", realpath(out, path) != NULL ? path : out);
    setenv("MONITOR_OUTPUT_DIR", folder, 0);
    return MS_OK;
}

/* Passes on a tool that was configured before, so that the recorder forwards every mark to it. */
static void chain_tool(const char *variable, const char *next, const char *ours)
{
    const char *was = getenv(variable);
    if (was != NULL && *was != '\0' && strcmp(was, ours) != 0)
        setenv(next, was, 0);
    setenv(variable, ours, 1);
}

/* Sets the variables in this process; its child inherits them. out: the directory of the run;
 * program: the bytes of the executable, empty when it cannot be read. */
static enum ms_rc set_environment(const struct mstx_launch *how, const char *out,
                                  struct ms_file program, struct ms_err *err)
{
    static const struct ms_place recorder = {"libmstx.so", "../lib/libmstx.so.0"};
    static const struct ms_place door = {"dropin/libmspti.so", "../lib/msprobe/dropin/libmspti.so"};
    char lib[PATH_MAX], drop[PATH_MAX];
    MS_TRY(find_library(&recorder, lib, sizeof lib, err));
    MS_TRY(find_library(&door, drop, sizeof drop, err));
    chain_tool("MSTX_INJECTION_PATH", "MSTX_NEXT_PATH", lib);
    if (how->nvtx)
        chain_tool("NVTX_INJECTION64_PATH", "MSTX_NEXT_NVTX_PATH", lib);
    preload_library(drop);
    MS_TRY(preload_hooks(how->comm, program, err));
    if (how->hook_dlsym)
        MS_TRY(preload_dlsym(err));
    if (how->memory)
        MS_TRY(preload_memory(err));
    preload_sanitizers(program, lib);
    offer_python(!how->no_torch || how->dump != NULL || is_monitored(how));
    MS_TRY(request_dump(how->dump, out, err));
    MS_TRY(request_monitor(how, out, err));
    set_variable("MSTX_TORCH", how->no_torch ? "0" : NULL);
    set_variable("MSTX_OUT", out);
    set_variable("MSTX_DOMAIN_INCLUDE", how->include);
    set_variable("MSTX_DOMAIN_EXCLUDE", how->exclude);
    set_variable("MSTX_MAX_SIZE", how->max_size);
    set_variable("MSTX_STAGE", how->stage);
    set_variable("MSTX_POLICY", how->policy);
    set_variable("MSTX_START", how->wait ? "off" : NULL);
    set_variable("MSTX_QUIET", "1"); /* msprobe names the directory of the capture */
    set_variable("MSTX_DEVICE", how->device);
    set_seconds("MSTX_HANG_TIMEOUT", how->hang_timeout);
    if (how->flight > 0)
        set_seconds("MSTX_FLIGHT", how->flight);
    return MS_OK;
}

/* ---- before the program ---------------------------------------------------------------------- */

static enum ms_rc count_ended(void *arg, const char *path, struct ms_err *err)
{
    struct mstx_link *l = NULL;
    size_t *ended = arg;
    enum ms_rc rc = mstx_link_open(&l, path, err);
    *ended += rc == MS_OK && l != NULL &&
              !mstx_link_alive(l); /* processes of other ranks of this run are alive */
    mstx_link_close(l);
    return MS_OK;
}

/* Tells whether torchrun starts this rank again after a failure, so that it continues its run. */
static bool is_restarted(void)
{
    const char *count = getenv("TORCHELASTIC_RESTART_COUNT");
    return count != NULL && strtoul(count, NULL, 10) > 0;
}

/* Warns of a finished run in the directory: the new run would be merged with it, which is seldom
 * intended. */
static void show_earlier(const char *out)
{
    size_t ended = 0;
    if (is_restarted() || mstx_each_process(out, -1, count_ended, &ended, NULL) != MS_OK ||
        ended == 0)
        return;
    fprintf(stderr,
            "msprobe: %s holds %zu process%s of an earlier run; every command will show them "
            "together with this one (-o FOLDER keeps runs apart)\n",
            out, ended, ended == 1 ? "" : "es");
}

/* ---- after the program ---------------------------------------------------------------------- */

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

static void forget_settings(const char *out)
{
    char *path = ms_path_join(out, MS_SETTINGS_FILE);
    if (path != NULL)
        unlink(path);
    ms_free(path);
}

/* Tells whether the program left nothing in the folder of the run. */
static bool holds_settings_alone(const char *out)
{
    struct ms_dir list;
    bool is = true;
    if (ms_dir_list(&list, out, NULL) != MS_OK)
        return false;
    for (size_t i = 0; i < list.names.n; i++)
        is = is && ms_str_is(list.names.p[i], MS_SETTINGS_FILE);
    ms_dir_free(&list);
    return is;
}

/* Prints on stderr: standard output belongs to the program. */
static enum ms_rc show_recorded(const char *out, const struct mstx_launch *how, struct ms_err *err)
{
    struct sum s = {0};
    char size[MS_HUMAN_MAX];
    MS_TRY(mstx_each_process(out, -1, add_process, &s, err));
    if (s.processes == 0) {
        const bool is_empty = holds_settings_alone(out);
        if (is_empty) {
            forget_settings(out);
            rmdir(out);
        }
        if (how->dump == NULL && !is_monitored(how))
            fprintf(stderr, "msprobe: the program made no mark; nothing was recorded\n");
        else if (is_empty)
            fprintf(stderr, "msprobe: nothing was %s into %s, and no mark was made\n",
                    how->dump != NULL ? "dumped" : "written", out);
        else
            fprintf(stderr, "msprobe: the %s in %s\n",
                    how->dump != NULL ? "dump is" : "monitor's files are", out);
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

/* ---- program ---------------------------------------------------------------- */

/* Tells whether this process reports about the run: that of rank 0, or of a program without ranks.
 * The processes of other ranks print nothing and are replaced by the program. */
static bool speaks_for_run(void)
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

/* Runs in the child. Sends errno to the parent when the program cannot be started. */
static void exec_program(char **program, int tell)
{
    execvp(program[0], program);
    int why = errno;
    (void)!write(tell, &why, sizeof why);
}

static void fill_signals(sigset_t *set)
{
    static const int list[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        sigaddset(set, list[i]);
}

/* Waits for the program and forwards signals to it, except those of the terminal, which the kernel
 * sends to the program as well. */
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

static enum ms_rc start_and_wait(char **program, int *status, struct ms_err *err)
{
    sigset_t set, old;
    int tell[2], why = 0;
    if (!speaks_for_run()) {
        execvp(program[0], program);
        return ms_fail_sys(err, "%s", program[0]);
    }
    if (pipe2(tell, O_CLOEXEC) != 0)
        return ms_fail_sys(err, "pipe");
    fill_signals(&set);
    sigprocmask(SIG_BLOCK, &set, &old);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &old, NULL);
        exec_program(program, tell[1]);
        kill(getpid(), SIGKILL); /* the child must not return into msprobe */
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

/* Says what to do about a program that cannot be started; people often leave its interpreter out. */
static void hint_at_start(const char *program, struct ms_err *err)
{
    if (ms_path_kind(program) == MS_KIND_DIR)
        ms_err_hint(err, "it is a directory");
    else if (err->sys == EACCES && ms_str_ends(ms_str_of(program), MS_STR(".py")))
        ms_err_hint(err, "name its interpreter: msprobe run -- python3 %s", program);
    else if (err->sys == EACCES || err->sys == ENOEXEC)
        ms_err_hint(err, "name its interpreter before it, or make it executable: chmod +x %s",
                    program);
}

/* Returns the exit status that a shell has for this error, or 0 for other errors. */
static int status_of_start(const struct ms_err *err)
{
    return err->sys == ENOENT ? 127 : err->sys == EACCES ? 126 : 0;
}

/* Records what the program is started with; the program is started without the file as well. Tells whether
 * there is a new file. */
static bool record_settings(const char *out, char *const *program)
{
    struct ms_err err = {0};
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s/" MS_SETTINGS_FILE, PATH_MAX - 32, out);
    const bool is_new = ms_path_kind(path) == MS_KIND_NONE;
    if (ms_settings_write(out, program, &err) != MS_OK)
        fprintf(stderr, "msprobe run: settings of the program not recorded: %s\n", err.msg);
    return is_new;
}

enum ms_rc mstx_launch_run(const struct mstx_launch *how, char **program, int *status,
                           struct ms_err *err)
{
    char out[PATH_MAX];
    const char *wanted = how->output;
    ms_assert(program[0] != NULL && how->output != NULL && how->hang_timeout >= 0);
    if (how->dump != NULL)
        MS_TRY(check_config(how->dump, err));
    const bool is_new = ms_path_kind(wanted) == MS_KIND_NONE;
    MS_TRY(ms_mkdirs(wanted, err)); /* before the start: the program may change its directory */
    if (realpath(wanted, out) == NULL)
        return ms_fail_sys(err, "%s", wanted);
    struct ms_file elf = mstx_elf_open(program[0]);
    enum ms_rc rc = set_environment(how, out, elf, err);
    ms_file_unmap(&elf);
    MS_TRY(rc);
    bool has_settings = false;
    if (speaks_for_run()) {
        show_earlier(wanted);
        has_settings = record_settings(out, program);
    }
    rc = start_and_wait(program, status, err);
    if (rc != MS_OK) {
        if (has_settings)
            forget_settings(out);
        if (is_new)
            rmdir(out); /* fails, as intended, when another program records there */
        hint_at_start(program[0], err);
        *status = status_of_start(err);
        return rc;
    }
    return speaks_for_run() ? show_recorded(wanted, how, err) : MS_OK;
}

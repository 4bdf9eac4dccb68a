/* SPDX-License-Identifier: MIT
 *
 * doctor: what this machine can record and show, with the remedy for each thing that it cannot.
 */
#include "probe/cli/ask.h"
#include "probe/cli/cmds.h"

#include "probe/base/beside.h"
#include "probe/base/human.h"
#include "probe/base/jprint.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum state { YES, PARTLY, NO };
enum { TEXT_MAX = 400, ASKED_S = 60, ANSWER_MAX = 4096, KERNEL_MAX = 4096 };

/* One row: a thing that can be recorded or shown. */
struct row {
    const char *what;
    enum state state;
    char fact[TEXT_MAX], remedy[TEXT_MAX];
};

struct args {
    const char *python;
    int format;
};

static void say(struct row *r, enum state state, const char *fact, ...) MS_PRINTF(3, 4);
static void say(struct row *r, enum state state, const char *fact, ...)
{
    va_list ap;
    va_start(ap, fact);
    vsnprintf(r->fact, sizeof r->fact, fact, ap);
    va_end(ap);
    r->state = state;
}

static void advise(struct row *r, const char *remedy, ...) MS_PRINTF(2, 3);
static void advise(struct row *r, const char *remedy, ...)
{
    va_list ap;
    va_start(ap, remedy);
    vsnprintf(r->remedy, sizeof r->remedy, remedy, ap);
    va_end(ap);
}

/* Reads the beginning of a file of the kernel, which has no size before it is read; "" without one. */
static const char *text_of(const char *path, char text[KERNEL_MAX])
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, KERNEL_MAX - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* ---- what is beside the program ------------------------------------------------------------ */

static bool is_beside(const char *name, const char *installed)
{
    char path[PATH_MAX];
    const struct ms_place place = {name, installed};
    return ms_place_find(&place, path, sizeof path);
}

static void check_recorder(struct row *r, const struct args *a)
{
    (void)a;
    const bool has = is_beside("libmstx.so", "../lib/libmstx.so.0") &&
                     is_beside("dropin/libmspti.so", "../lib/msprobe/dropin/libmspti.so");
    say(r, has ? YES : NO,
        has ? "msprobe run records marks, ranges and steps" : "libmstx.so is not beside msprobe");
    if (!has)
        advise(r, "install msprobe whole: make install");
}

/* A processor whose counter runs evenly gives the cheapest marks. */
static void check_clock(struct row *r, const struct args *a)
{
    (void)a;
    char text[KERNEL_MAX];
    const char *cpu = text_of("/proc/cpuinfo", text);
    const bool even = strstr(cpu, "constant_tsc") != NULL && strstr(cpu, "nonstop_tsc") != NULL;
    say(r, YES, "%s", even ? "read from the processor's counter" : "read from the system's clock");
}

/* ---- communication ------------------------------------------------------------------------- */

/* Finds what an mpirun says of itself: "Open MPI" or "HYDRA", which is MPICH's. */
static bool has_launcher(const char *name, const char *word)
{
    struct ms_buf said = {.max = ANSWER_MAX};
    const char *const argv[] = {name, "--version", NULL};
    const bool has = cli_ask(argv, ASKED_S, &said) == 0 && said.n != 0 &&
                     memmem(said.p, said.n, word, strlen(word)) != NULL;
    ms_buf_free(&said);
    return has;
}

static void check_mpi(struct row *r, const char *flavour, const char *word, const char *package)
{
    char own[64], hooks[96], place[128];
    snprintf(own, sizeof own, "mpirun.%s", flavour);
    snprintf(hooks, sizeof hooks, "libmstx_mpi_%s.so", flavour);
    snprintf(place, sizeof place, "../lib/msprobe/%s", hooks);
    const bool launches = has_launcher(own, word) || has_launcher("mpirun", word);
    const bool has_hooks = is_beside(hooks, place);
    if (launches && has_hooks) {
        say(r, YES, "calls are hooked");
    } else if (has_hooks) {
        say(r, PARTLY, "our hooks are here, its mpirun is not in PATH");
        advise(r, "put it into PATH, or install it, such as Debian's package %s", package);
    } else if (launches) {
        say(r, NO, "its mpirun is here, our hooks are not");
        advise(r, "install its compiler mpicc and build msprobe again");
    } else {
        say(r, NO, "it is not installed");
        advise(r, "Debian's package %s, then build msprobe again", package);
    }
}
static void check_openmpi(struct row *r, const struct args *a)
{
    (void)a;
    check_mpi(r, "openmpi", "Open MPI", "libopenmpi-dev openmpi-bin");
}
static void check_mpich(struct row *r, const struct args *a)
{
    (void)a;
    check_mpi(r, "mpich", "HYDRA", "libmpich-dev mpich");
}

static bool loads(const char *library)
{
    void *h = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    if (h != NULL)
        dlclose(h);
    return h != NULL;
}

static void check_cuda(struct row *r, const struct args *a)
{
    (void)a;
    const bool driver = loads("libcuda.so.1"), nccl = loads("libnccl.so.2");
    say(r, driver ? YES : NO,
        driver ? "driver found%s" : "no driver here; what runs on the CPU is recorded%s",
        nccl ? ", NCCL in the library path" : "");
    if (!driver)
        advise(r, "run msprobe where the training runs");
}
static void check_cann(struct row *r, const struct args *a)
{
    (void)a;
    const bool acl = loads("libascendcl.so"), hccl = loads("libhccl.so");
    say(r, acl ? YES : NO,
        acl ? "CANN found%s" : "no CANN here; what runs on the CPU is recorded%s",
        hccl ? ", HCCL with it" : "");
    if (!acl)
        advise(r, "where there is one: source its set_env.sh first");
}

/* ---- frameworks ----------------------------------------------------------------------------- */

/* Words of the answer "VERSION|ok", "VERSION|WHY the adapter does not load", "|none" or "|WHY the package does not". */
static void judge_framework(struct row *r, const struct args *a, const char *package,
                            struct ms_str version, struct ms_str why)
{
    const bool is_good = version.n != 0 && ms_str_is(why, "ok");
    if (is_good)
        say(r, YES, "%.*s", MS_STR_ARG(version));
    else if (ms_str_is(why, "none"))
        say(r, NO, "%s has no package %s", a->python, package);
    else
        say(r, NO, "%.*s%s%.*s", MS_STR_ARG(version),
            version.n != 0 ? ": " : "it does not load: ", MS_STR_ARG(why));
    if (ms_str_is(why, "none"))
        advise(r,
               "name the Python of the training, msprobe doctor --python FILE, or install it: "
               "%s -m pip install %s",
               a->python, package);
    else if (version.n == 0)
        advise(r, "see what %s -c 'import %s' says, and install what it lacks", a->python, package);
    else if (!is_good)
        advise(r, "build msprobe for this Python: make PYTHON=%s", a->python);
}

/* Asks Python for a package's version and whether our extension loads beside it. */
static void ask_framework(struct row *r, const struct args *a, const char *folder,
                          const char *package, const char *adapter)
{
    char script[2 * PATH_MAX + 512];
    struct ms_buf said = {.max = ANSWER_MAX};
    snprintf(script, sizeof script,
             "import sys\nsys.path.insert(0, sys.argv[1])\nv = ''\n"
             "try:\n import %s as f\n"
             " v = f.__version__ + ', Python %%d.%%d' %% sys.version_info[:2]\n"
             " import msprobe.%s\n why = 'ok'\n"
             "except Exception as e:\n none = v == '' and getattr(e, 'name', '') == '%s'\n"
             " why = 'none' if none else ' '.join(str(e).split())[:200] or type(e).__name__\n"
             "print('\\n' + v + '|' + why)\n",
             package, adapter, package);
    const char *const argv[] = {a->python, "-c", script, folder, NULL};
    const int status = cli_ask(argv, ASKED_S, &said);
    struct ms_str all = ms_buf_slice(&said), line = MS_STR(""), version = MS_STR("");
    while (ms_str_split(&all, '\n', &line) && all.n != 0) {
    }
    if (status != 0 || !ms_str_split(&line, '|', &version)) {
        say(r, NO, "%s cannot be run here, or does not answer", a->python);
        advise(r, "name the Python of the training: msprobe doctor --python FILE");
    } else {
        judge_framework(r, a, package, version, line);
    }
    ms_buf_free(&said);
}

static void check_framework(struct row *r, const struct args *a, const char *package,
                            const char *adapter)
{
    char folder[PATH_MAX];
    const struct ms_place place = {"python/mstx.so", "../lib/msprobe/python/mstx.so"};
    if (!ms_place_find(&place, folder, sizeof folder)) {
        say(r, NO, "our Python modules are not beside msprobe");
        advise(r, "install Python's headers (python3-dev) and build msprobe again");
        return;
    }
    *strrchr(folder, '/') = '\0';
    ask_framework(r, a, folder, package, adapter);
}
static void check_torch(struct row *r, const struct args *a)
{
    check_framework(r, a, "torch", "pytorch");
}
static void check_mindspore(struct row *r, const struct args *a)
{
    check_framework(r, a, "mindspore", "mindspore");
}

/* ---- what the kernel lets us see --------------------------------------------------------------- */

static void check_causes(struct row *r, const struct args *a)
{
    (void)a;
    const bool delay = access("/proc/self/schedstat", R_OK) == 0;
    const bool pressure = access("/proc/pressure/cpu", R_OK) == 0;
    const bool groups = access("/sys/fs/cgroup/cgroup.controllers", R_OK) == 0 ||
                        access("/sys/fs/cgroup/cpu/cpu.stat", R_OK) == 0;
    say(r, delay ? (groups ? YES : PARTLY) : NO, "%s%s%s",
        delay ? "waiting for a CPU" : "no waiting for a CPU", pressure ? ", pressure" : "",
        groups ? ", throttling" : "");
    if (!delay)
        advise(
            r,
            "the kernel was built without CONFIG_SCHEDSTATS; why a rank is slow is told in part");
    else if (!groups)
        advise(r, "control groups cannot be seen here; throttling is not told");
}

/* Tells whether the kernel samples the stack of a thread of this user, which is how a hang is looked at. */
static bool can_sample(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .exclude_kernel = 1};
    const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void check_stacks(struct row *r, const struct args *a)
{
    (void)a;
    const bool may = can_sample();
    const int why = errno;
    say(r, may ? YES : PARTLY, "%s%s",
        may ? "a hang shows the stack of each thread" : "a hang shows the calls, without stacks: ",
        may ? "" : strerror(why));
    if (!may)
        advise(r, "allow perf_event_open: sysctl kernel.perf_event_paranoid=2, and in a container "
                  "--cap-add PERFMON or another seccomp profile");
}

/* ---- room and screens ---------------------------------------------------------------------------- */

static void check_room(struct row *r, const struct args *a)
{
    (void)a;
    struct statvfs here;
    char room[MS_HUMAN_MAX];
    const bool asks = statvfs(".", &here) == 0;
    const uint64_t bytes = asks ? (uint64_t)here.f_bavail * here.f_frsize : 0;
    const bool writes = access(".", W_OK) == 0;
    say(r,
        !writes              ? NO
        : bytes < 1000000000 ? PARTLY
                             : YES,
        "%s left in this folder%s", ms_human_bytes(room, bytes),
        writes ? "" : ", which cannot be written");
    if (!writes || bytes < 1000000000)
        advise(r, "record elsewhere: msprobe run -o DIR, with --max_size 2GB");
}

static void check_terminal(struct row *r, const struct args *a)
{
    (void)a;
    const char *term = getenv("TERM");
    const bool can = term != NULL && *term != '\0' && strcmp(term, "dumb") != 0;
    const bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    say(r, can ? (utf8 ? YES : PARTLY) : NO, can ? "TERM=%s%s" : "TERM says nothing of a terminal",
        can ? term : "", can && !utf8 ? ", drawn in ASCII" : "");
    if (!can)
        advise(r, "set TERM, such as TERM=xterm-256color");
    else if (!utf8)
        advise(r, "choose a locale of UTF-8: LC_ALL=C.UTF-8");
}

static void check_browser(struct row *r, const struct args *a)
{
    (void)a;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool can = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    if (fd >= 0)
        close(fd);
    say(r, can ? YES : NO,
        can ? "msprobe serve can answer one on this machine"
            : "no port of this machine can be opened");
    if (!can)
        advise(r, "ask for a network in this container");
}

/* ---- the list --------------------------------------------------------------------------------------- */

static const struct check {
    const char *name, *what;
    void (*fn)(struct row *r, const struct args *a);
} checks[] = {
    {"recorder", "recording a program", check_recorder},
    {"clock", "time of marks", check_clock},
    {"openmpi", "Open MPI", check_openmpi},
    {"mpich", "MPICH", check_mpich},
    {"torch", "PyTorch", check_torch},
    {"mindspore", "MindSpore", check_mindspore},
    {"cuda", "CUDA and NCCL", check_cuda},
    {"cann", "CANN and HCCL", check_cann},
    {"causes", "why a rank is slow", check_causes},
    {"stacks", "where a program hangs", check_stacks},
    {"room", "room for a recording", check_room},
    {"terminal", "msprobe view", check_terminal},
    {"browser", "a browser", check_browser},
};

static const char *const states[] = {"yes", "partly", "no"};

static void print_row(const struct check *c, const struct row *r)
{
    printf("%-7s %-22s %s\n", states[r->state], c->what, r->fact);
    if (r->state != YES && r->remedy[0] != '\0')
        printf("%-7s %-22s %s\n", "", "", r->remedy);
}

static void put_row(const struct check *c, const struct row *r, struct ms_jwrite *w)
{
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "name", c->name);
    ms_jwrite_kstr(w, "can", states[r->state]);
    ms_jwrite_kstr(w, "fact", r->fact);
    ms_jwrite_kstr(w, "remedy", r->state != YES ? r->remedy : "");
    ms_jwrite_obj_end(w);
}

static enum ms_rc print_rows(const struct args *a, struct ms_err *err)
{
    struct ms_jwrite w;
    const bool is_json = a->format != 0;
    if (is_json) {
        ms_jprint_begin(&w);
        ms_jwrite_obj(&w);
        ms_jwrite_key(&w, MS_STR("checks"));
        ms_jwrite_arr(&w);
    }
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        struct row r = {.state = NO};
        checks[i].fn(&r, a);
        is_json ? put_row(&checks[i], &r, &w) : print_row(&checks[i], &r);
    }
    if (!is_json)
        return MS_OK;
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

/* ---- command ------------------------------------------------------------------------- */

static const struct ms_opt opts[] = {{"python", NULL, MS_OPT_PATH, offsetof(struct args, python),
                                      "FILE", .dash = MS_DASH_WORD, .dflt = "python3",
                                      .help = "the Python that runs the training"},
                                     MS_OPT_FORMAT(struct args, format),
                                     {0}};

static int run_doctor(int argc, char **argv)
{
    struct args a = {.python = "python3"};
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&cli_cmd_doctor, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&cli_cmd_doctor, &err);
    if (!done && print_rows(&a, &err) != MS_OK)
        return ms_cmd_fail(&cli_cmd_doctor, &err);
    return MS_EXIT_OK;
}

const struct ms_cmd cli_cmd_doctor = {
    .name = "doctor",
    .run = run_doctor,
    .brief = "say what can be recorded on this machine",
    .opts = opts,
    .usage = "[options]",
    .about = "Looks which programs this machine can record and what of them: MPI, PyTorch, "
             "MindSpore, devices, "
             "causes of slow ranks, stacks of programs that hang; and where results can be shown. "
             "Each line begins "
             "with yes, partly or no; below the latter two stands a remedy.\n"
             "\n"
             "  msprobe doctor --python ~/venv/bin/python\n",
};

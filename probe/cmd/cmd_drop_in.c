/* SPDX-License-Identifier: MIT
 *
 * drop-in: decides whether `import msprobe` finds this package or the official one. What is to be done to
 * a Python is a script that this Python runs: probe/python/msprobe/_drop_in.py.
 */
#include "probe/base/beside.h"
#include "probe/base/opt.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct ms_cmd probe_cmd_drop_in;

struct args {
    struct ms_opt_list action;
    const char *python;
};

static const char *const actions[] = {"on", "off", NULL};

static const struct ms_opt opts[] = {
    {"on|off", NULL, MS_OPT_REST, offsetof(struct args, action), .dash = MS_DASH_WORD, .max = 1,
     .choices = actions,
     .help = "on: import msprobe finds this package; off: the official one, where that is "
             "installed; without either: how it is"},
    {"python", NULL, MS_OPT_TEXT, offsetof(struct args, python), "PROGRAM",
     .help = "the Python to change; without it the one beside msprobe, or python3 of the PATH"},
    {0}};

/* In a virtual environment, where pip installs msprobe, its Python is in the same folder. */
static const char *choose_python(const char *wanted, char *path, size_t cap)
{
    static const struct ms_place beside = {"python3", "python3"};
    if (wanted != NULL)
        return wanted;
    return ms_place_find(&beside, path, cap) ? path : "python3";
}

/* Runs a program to its end. */
static enum ms_rc run_to_end(char *const *words, int *status, struct ms_err *err)
{
    extern char **environ;
    pid_t pid;
    errno = posix_spawnp(&pid, words[0], NULL, NULL, words, environ);
    if (errno != 0)
        return ms_fail_sys(err, "%s cannot be run (--python names another)", words[0]);
    while (waitpid(pid, status, 0) < 0) {
    }
    return MS_OK;
}

static enum ms_rc drop_in(const struct args *args, int *status, struct ms_err *err)
{
    static const struct ms_place place = {"python/msprobe/_drop_in.py",
                                          "../lib/msprobe/python/msprobe/_drop_in.py"};
    char script[PATH_MAX], beside[PATH_MAX];
    if (!ms_place_find(&place, script, sizeof script))
        return ms_fail(err, MS_E_NOTFOUND, "%s is not there; is msprobe installed whole?", script);
    const char *python = choose_python(args->python, beside, sizeof beside);
    const char *words[] = {python, "-B", script, args->action.n > 0 ? args->action.items[0] : NULL,
                           NULL};
    return run_to_end((char *const *)(const void *)words, status, err);
}

static int run_drop_in(int argc, char **argv)
{
    struct args args = {0};
    struct ms_err err = {0};
    bool done;
    int status = 0;
    if (ms_opt_parse(&probe_cmd_drop_in, argc, argv, &args, &done, &err) != MS_OK)
        return ms_cmd_fail(&probe_cmd_drop_in, &err);
    if (done)
        return MS_EXIT_OK;
    if (drop_in(&args, &status, &err) != MS_OK)
        return ms_cmd_fail(&probe_cmd_drop_in, &err);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? MS_EXIT_OK : MS_EXIT_FAIL;
}

const struct ms_cmd probe_cmd_drop_in = {
    .name = "drop-in",
    .opts = opts,
    .run = run_drop_in,
    .brief = "choose which package import msprobe finds, this or the official one",
    .usage = "[options] [on|off]",
    .about =
        "Where the official package is installed, `import msprobe` finds that one. With 'on' this "
        "package takes its place in one Python, with the same functions and classes; nothing of "
        "the official package is changed, and 'off' takes the change back. `msprobe run --dump` "
        "needs neither.\n"
        "\n"
        "  msprobe drop-in                          which package is imported now\n"
        "  msprobe drop-in on --python ~/venv/bin/python3\n",
};

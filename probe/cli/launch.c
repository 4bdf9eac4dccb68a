/* SPDX-License-Identifier: MIT
 *
 * launch: the msprobe executable.
 *
 *     msprobe run ...     in here: linked to libc alone
 *     msprobe WORD ...    libmsprobe_cli.so, beside it or in ../lib/msprobe: every command
 *
 * `msprobe run` starts every rank of a job. Loading two dozen libraries that it does not need would
 * take longer than recording costs a rank in a second.
 */
#include "probe/cli/cmds.h"

#include "probe/base/beside.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

extern const struct ms_cmd mstx_cmd_run;
static const struct ms_cmd *const run_alone[] = {&mstx_cmd_run, NULL};
static const struct cli_program launcher = {.commands = run_alone};

/* "-" as a path: the streams are those of the program that is run. */
static enum ms_rc refuse_dash(const char **path, struct ms_err *err)
{
    (void)path;
    return ms_fail(err, MS_E_ARG,
                   "standard input and output belong to the program that is run, so '-' cannot "
                   "stand for a file; a file named - is ./-");
}

static int not_whole(const char *what, const char *why)
{
    fprintf(stderr, "msprobe: %s%s; is msprobe installed whole?\n", what, why);
    return MS_EXIT_FAIL;
}

static int run_library(int argc, char **argv)
{
    static const struct ms_place place = {"libmsprobe_cli.so", "../lib/msprobe/libmsprobe_cli.so"};
    char path[PATH_MAX];
    if (!ms_place_find(&place, path, sizeof path))
        return not_whole(path, " is not there");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *program = library != NULL ? dlsym(library, "cli_main") : NULL;
    if (program == NULL)
        return not_whole("", dlerror());
    return ((int (*)(int, char **))program)(argc, argv);
}

int main(int argc, char **argv)
{
    ms_opt_input = ms_opt_output = refuse_dash;
    if (argc > 1 && strcmp(argv[1], mstx_cmd_run.name) == 0)
        return cli_run(&launcher, argc, argv);
    return run_library(argc, argv);
}

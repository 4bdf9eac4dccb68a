/* SPDX-License-Identifier: MIT
 *
 * main: finds the command, runs it, and does what every command needs: checks that standard output
 * was written, shows --stats, writes --trace_self. launch.c and, in the library of all commands,
 * builtin.c call cli_run.
 */
#include "probe/cli/cmds.h"
#include "probe/cli/signals.h"

#include "probe/base/io.h"
#include "probe/base/log.h"
#include "probe/base/mem.h"
#include "probe/base/par.h"
#include "probe/base/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const struct ms_cmd *const *all;          /* ended by NULL; set once, by cli_run */
static enum ms_rc (*end_files)(struct ms_err *); /* likewise; may be NULL */

const struct ms_cmd *const *cli_commands(void)
{
    return all;
}

enum ms_rc cli_find(const char *name, const struct ms_cmd **cmd, struct ms_err *err)
{
    struct ms_near near = {.word = name};
    for (const struct ms_cmd *const *c = all; *c != NULL; c++) {
        if (strcmp((*c)->name, name) == 0) {
            *cmd = *c;
            return MS_OK;
        }
        ms_near_offer(&near, (*c)->name);
    }
    if (near.best != NULL)
        return ms_fail(err, MS_E_ARG, "unknown command '%s'; did you mean '%s'?", name, near.best);
    return ms_fail(err, MS_E_ARG, "unknown command '%s'; 'msprobe help' lists them", name);
}

void cli_overview(FILE *to)
{
    fputs("usage: msprobe COMMAND [options] [arguments]\n\n"
          "Finds out why a training run is wrong or slow: records marks and communication,\n"
          "dumps tensors, compares two runs, and shows what it found.\n\n"
          "commands:\n",
          to);
    for (const struct ms_cmd *const *c = all; *c != NULL; c++)
        fprintf(to, "  %-15s %s\n", (*c)->name, (*c)->brief);
    fputs("\n'msprobe help COMMAND' explains a command and its options; "
          "'man msprobe' is the manual.\n",
          to);
}

/* Opens /dev/null for closed standard descriptors, so that a file opened later does not get the
 * number of a descriptor that is printed to. Read-only, so that printing to a closed standard
 * output still fails. */
static void fill_closed_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", O_RDONLY);
    }
}

static enum ms_rc take_environment(struct ms_err *err)
{
    const char *fail_at = getenv("MSPROBE_FAIL_ALLOC");
    uint64_t n = 0;
    if (fail_at != NULL && !ms_str_u64(ms_str_of(fail_at), &n))
        return ms_fail(err, MS_E_ARG, "MSPROBE_FAIL_ALLOC: '%s' is not a number", fail_at);
    ms_mem_fail_at(n);
    return ms_log_from_env(err);
}

/* Returns the command for an option such as "-h" or "--version", which people try first on an
 * unknown program. */
static const char *command_name(const char *arg)
{
    if (strcmp(arg, "-h") == 0 || strcmp(arg, "--help") == 0)
        return "help";
    if (strcmp(arg, "-V") == 0 || strcmp(arg, "--version") == 0)
        return "version";
    return arg;
}

static enum ms_rc find_command(const char *arg, const struct ms_cmd **cmd, struct ms_err *err)
{
    const char *name = command_name(arg);
    if (name[0] == '-')
        return ms_fail(err, MS_E_ARG, "option '%s' stands before the command; options follow it",
                       name);
    return cli_find(name, cmd, err);
}

/* Removes "-f FRAMEWORK" in front of the command, the syntax of msprobe 1, and notes that it was
 * there. The framework itself is ignored, because a dump names its own. */
static enum ms_rc take_framework(int *argc, char ***argv, struct ms_err *err)
{
    char **words = *argv;
    if (*argc < 3 || (strcmp(words[1], "-f") != 0 && strcmp(words[1], "--framework") != 0))
        return MS_OK;
    if (strcmp(words[2], "pytorch") != 0 && strcmp(words[2], "mindspore") != 0)
        return ms_fail(err, MS_E_ARG, "-f %s: the framework is pytorch or mindspore", words[2]);
    if (*argc < 4)
        return ms_fail(err, MS_E_ARG, "no command behind -f %s", words[2]);
    ms_globals.framework = words[2];
    words[2] = words[0];
    *argc -= 2;
    *argv += 2;
    return MS_OK;
}

/* Finishes a command. A failure here replaces the exit code for a finding, but not that of a failed
 * command. */
static int finish(const struct ms_cmd *cmd, int code)
{
    struct ms_err err = {0};
    if (ms_globals.stats)
        ms_trace_summary(stderr);
    if (ms_globals.trace_self != NULL && ms_trace_write(ms_globals.trace_self, &err) != MS_OK)
        code = ms_cmd_fail(cmd, &err);
    ms_err_clear(&err);
    if (end_files != NULL && end_files(&err) != MS_OK && code != MS_EXIT_FAIL)
        code = ms_cmd_fail(cmd, &err);
    if (ms_stdout_finish(&err) != MS_OK && code != MS_EXIT_FAIL)
        code = ms_cmd_fail(cmd, &err);
    ms_err_clear(&err);
    return code;
}

/* Of processes that share a command the first one prints, so the standard output of the others is
 * dropped. */
static void drop_output(void)
{
    const int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && fd != STDOUT_FILENO) {
        dup2(fd, STDOUT_FILENO);
        close(fd);
    }
}

static enum ms_rc join_job(const struct ms_cmd *cmd, struct ms_err *err)
{
    if (cmd->job == MS_JOB_EACH)
        return MS_OK;
    MS_TRY(ms_par_open(&ms_globals.par, err));
    if (ms_par_rank(ms_globals.par) != 0)
        drop_output();
    return MS_OK;
}

/* Runs a command in the processes that it is for. No process ends before all of them have come to
 * the end, because a launcher stops the others when one has ended with a failure. */
static int run_in_job(const struct ms_cmd *cmd, int argc, char **argv)
{
    struct ms_err err = {0};
    int code = MS_EXIT_OK;
    if (join_job(cmd, &err) != MS_OK)
        return ms_cmd_fail(cmd, &err);
    if (cmd->job != MS_JOB_FIRST || ms_par_rank(ms_globals.par) == 0)
        code = cmd->run(argc, argv);
    if (ms_par_size(ms_globals.par) > 1)
        fflush(stdout);
    ms_par_close(ms_globals.par);
    ms_globals.par = NULL;
    return code;
}

static int run_command(const struct ms_cmd *cmd, int argc, char **argv)
{
    if (!cmd->draws)
        cli_guard_terminal();
    struct ms_span span = ms_span_begin(cmd->name);
    int code = run_in_job(cmd, argc, argv);
    ms_span_end(&span);
    return finish(cmd, code);
}

/* Finds the command for a path in the place of a command; err holds why the word is no command. */
static enum ms_rc find_opener(const struct cli_program *program, const char *word,
                              const struct ms_cmd **cmd, struct ms_err *err)
{
    struct ms_err why = {0};
    const char *name = NULL;
    if (program->command_of_path == NULL)
        return err->rc;
    enum ms_rc rc = program->command_of_path(word, &name, &why);
    if (rc != MS_OK)
        *err = why;
    if (rc != MS_OK || name == NULL)
        return err->rc;
    return cli_find(name, cmd, NULL);
}

static bool shows_folder(const struct cli_program *program, const char *dir)
{
    return program->show_folder != NULL && program->show_folder(dir) != 0;
}

static int close_list(void)
{
    struct ms_err err = {0};
    puts("\n'msprobe PATH' opens one; 'msprobe help' lists all commands.");
    return ms_stdout_finish(&err) == MS_OK ? MS_EXIT_OK : ms_cmd_fail(NULL, &err);
}

/* Without a command: what lies here and what can be asked of it, or what the program can do. */
static int run_alone(const struct cli_program *program)
{
    return shows_folder(program, ".") ? close_list() : (cli_overview(stderr), MS_EXIT_USAGE);
}

int cli_run(const struct cli_program *program, int argc, char **argv)
{
    struct ms_err err = {0};
    const struct ms_cmd *cmd = NULL;
    all = program->commands;
    end_files = program->end;
    fill_closed_descriptors();
    signals_install(argc, argv, program->shows_stacks);
    if (take_environment(&err) != MS_OK)
        return ms_cmd_fail(NULL, &err);
    if (argc < 2)
        return run_alone(program);
    if (take_framework(&argc, &argv, &err) != MS_OK)
        return ms_cmd_fail(NULL, &err);
    if (find_command(argv[1], &cmd, &err) == MS_OK)
        return run_command(cmd, argc - 1, argv + 1);
    const char *path = argv[1];
    enum ms_rc rc = ms_opt_take_dash(&path, MS_DASH_INPUT, &err);
    if (rc == MS_OK)
        rc = find_opener(program, path, &cmd, &err);
    if (rc != MS_OK && ms_path_kind(path) == MS_KIND_DIR && shows_folder(program, path))
        return close_list();
    if (rc != MS_OK)
        return finish(NULL, ms_cmd_fail(NULL, &err));
    /* the path becomes the first argument of that command */
    argv[0] = (char *)(uintptr_t)cmd->name;
    argv[1] = (char *)(uintptr_t)path;
    return run_command(cmd, argc, argv);
}

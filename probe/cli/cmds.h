/* SPDX-License-Identifier: MIT
 *
 * cmds: the interface between the files of the program.
 */
#ifndef PROBE_CLI_CMDS_H
#define PROBE_CLI_CMDS_H

#include "probe/base/opt.h"

extern const struct ms_cmd cli_cmd_version, cli_cmd_selftest, cli_cmd_doctor, cli_cmd_help,
    cli_cmd_completion;

/* What a program can do: that of all commands, or the launcher with one. */
struct cli_program {
    const struct ms_cmd *const *commands; /* ended by NULL */
    bool shows_stacks; /* at a crash, which needs a library that is loaded at the start */
    size_t (*show_folder)(const char *dir); /* cli_show_folder; NULL: not asked for */
    enum ms_rc (*command_of_path)(const char *, const char **, struct ms_err *); /* likewise */
    enum ms_rc (*end)(struct ms_err *); /* cli_end_standard_files; likewise */
};
/* Runs the program; returns an exit status. */
int cli_run(const struct cli_program *program, int argc, char **argv);
/* Runs the program with all commands; the entry point of libmsprobe_cli.so, see launch.c. */
__attribute__((visibility("default"))) int cli_main(int argc, char **argv);

/* Returns all commands in the order of `msprobe help`, ended by NULL. */
const struct ms_cmd *const *cli_commands(void);
/* Finds a command by name; fails with the nearest name as a suggestion. */
enum ms_rc cli_find(const char *name, const struct ms_cmd **cmd, struct ms_err *err) MS_MUST_USE;
/* Prints the overview of `msprobe help`. */
void cli_overview(FILE *to);

/* Lets failures say which command reads a path of another kind. */
void cli_explain_paths(int argc, char *const *argv);
/* Prints what lies in a folder and what can be asked of it; returns how many things lie there. */
size_t cli_show_folder(const char *dir);
/* Finds the command that opens a path which stands in the place of a command. *name is NULL for a word that is no
 * path; fails for a path that no command opens. */
enum ms_rc cli_command_of_path(const char *path, const char **name, struct ms_err *err) MS_MUST_USE;

/* Lets "-" be standard input and output in the place of a file. */
void cli_take_standard_files(void);
/* Prints what was written for standard output and removes the temporary files. */
enum ms_rc cli_end_standard_files(struct ms_err *err) MS_MUST_USE;

/* Keeps control characters of what is printed from the terminal, if standard output is one. */
void cli_guard_terminal(void);

#endif

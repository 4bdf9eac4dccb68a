/* SPDX-License-Identifier: MIT
 *
 * cmds: the interface between the files of the program.
 */
#ifndef PROBE_CLI_CMDS_H
#define PROBE_CLI_CMDS_H

#include "probe/base/opt.h"

extern const struct ms_cmd cli_cmd_version, cli_cmd_selftest, cli_cmd_help, cli_cmd_completion;

/* Runs the program with these commands, ended by NULL; returns an exit status. shows_stacks: a
 * crash prints its stack frames, which needs a library that is loaded at the start. */
int cli_run(const struct ms_cmd *const *commands, bool shows_stacks, int argc, char **argv);
/* Runs the program with all commands; the entry point of libmsprobe_cli.so, see launch.c. */
__attribute__((visibility("default"))) int cli_main(int argc, char **argv);

/* Returns all commands in the order of `msprobe help`, ended by NULL. */
const struct ms_cmd *const *cli_commands(void);
/* Finds a command by name; fails with the nearest name as a suggestion. */
enum ms_rc cli_find(const char *name, const struct ms_cmd **cmd, struct ms_err *err) MS_MUST_USE;
/* Prints the overview of `msprobe help`. */
void cli_overview(FILE *to);

/* Keeps control characters of what is printed from the terminal, if standard output is one. */
void cli_guard_terminal(void);

#endif

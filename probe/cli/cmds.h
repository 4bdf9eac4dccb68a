/* SPDX-License-Identifier: MIT
 *
 * cmds: every folder's list of commands, and what the files of the program
 * share.  Only a folder's cmd_table.c and the program include this.
 */
#ifndef PROBE_CLI_CMDS_H
#define PROBE_CLI_CMDS_H

#include "probe/base/opt.h"

/* Each ends with NULL. */
extern const struct ms_cmd *const probe_cmds[],
    *const mstx_cmds[], *const compare_cmds[], *const viz_cmds[], *const web_cmds[];
extern const struct ms_cmd cli_cmd_version, cli_cmd_selftest, cli_cmd_help, cli_cmd_completion;

/* The program with these lists of commands, ended by NULL; returns an exit status.  shows_stacks: a
 * crash prints its frames, which needs a library that has to be loaded at the start. */
int cli_run(const struct ms_cmd *const *const *lists, bool shows_stacks, int argc, char **argv);
/* The program with all commands: what libmsprobe_cli.so is opened for, see launch.c. */
__attribute__((visibility("default"))) int cli_main(int argc, char **argv);

/* All commands in the order of `msprobe help`, ended by NULL. */
const struct ms_cmd *const *cli_commands(void);
/* The command of that name; else fails and suggests the nearest one. */
enum ms_rc cli_find(const char *name, const struct ms_cmd **cmd, struct ms_err *err) MS_MUST_USE;
/* What `msprobe help` shows. */
void cli_overview(FILE *to);

#endif

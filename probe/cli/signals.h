/* SPDX-License-Identifier: MIT
 *
 * signals: what the program does when it is stopped or crashes.
 */
#ifndef PROBE_CLI_SIGNALS_H
#define PROBE_CLI_SIGNALS_H

#include <stdbool.h>

/* Installs the handlers. On a stop (Ctrl-C, SIGTERM, a closed pipe) temporary files are removed and
 * the process dies by the same signal. When an input file is truncated while it is mapped, one line
 * is printed and the exit code is 3. A crash is reported, with_stacks also with its stack frames,
 * and the process dies by the signal. */
void signals_install(int argc, char **argv, bool with_stacks);

#endif

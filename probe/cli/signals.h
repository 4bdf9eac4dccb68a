/* SPDX-License-Identifier: MIT
 *
 * signals: what the program does when it is stopped or crashes.
 */
#ifndef PROBE_CLI_SIGNALS_H
#define PROBE_CLI_SIGNALS_H

#include <stdbool.h>

/* Stopped (Ctrl-C, SIGTERM, a closed pipe): remove temporary files and die by the same signal.
 * Input cut short while it is mapped: one line, exit 3.  A crash: say so, with_stacks also
 * where, then die by it. */
void signals_install(int argc, char **argv, bool with_stacks);

#endif

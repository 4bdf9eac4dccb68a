/* SPDX-License-Identifier: MIT
 *
 * ask: runs another program for its answer, such as a Python for the versions of its packages.
 */
#ifndef PROBE_CLI_ASK_H
#define PROBE_CLI_ASK_H

#include "probe/base/str.h"

/* Runs a program, found by PATH, with nothing to read and appends what it prints on standard output, as far as
 * out->max allows. It is killed after `seconds`. Returns its exit status, or -1 when it could not be started, took
 * too long or ended by a signal. */
int cli_ask(const char *const *argv, unsigned seconds, struct ms_buf *out);

#endif

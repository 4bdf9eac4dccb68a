/* SPDX-License-Identifier: MIT
 *
 * show_stat: prints the contents of a dump on standard output.
 */
#ifndef PROBE_CMD_SHOW_STAT_H
#define PROBE_CMD_SHOW_STAT_H

#include "probe/dump/census.h"

/* Prints one dump in detail, several as a table; path is the path that the user gave. */
void stat_show_text(const struct probe_stat *s, const char *path);
enum ms_rc stat_show_json(const struct probe_stat *s, struct ms_err *err) MS_MUST_USE;

#endif

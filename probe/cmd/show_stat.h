/* SPDX-License-Identifier: MIT
 *
 * show_stat: what a dump holds, on standard output.
 */
#ifndef PROBE_CMD_SHOW_STAT_H
#define PROBE_CMD_SHOW_STAT_H

#include "probe/dump/census.h"

/* One dump in detail, several as a table; path is what was asked for. */
void stat_show_text(const struct probe_stat *s, const char *path);
enum ms_rc stat_show_json(const struct probe_stat *s, struct ms_err *err) MS_MUST_USE;

#endif

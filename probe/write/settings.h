/* SPDX-License-Identifier: MIT
 *
 * settings: checks and copies of a dumper's settings, whatever their source.
 */
#ifndef PROBE_WRITE_SETTINGS_H
#define PROBE_WRITE_SETTINGS_H

#include "probe/base/arena.h"
#include "probe/dumper.h"

/* Makes a checked copy in the arena. */
enum ms_rc probe__settings_copy(struct probe_settings *to, const struct probe_settings *from,
                                struct ms_arena *arena, struct ms_err *err) MS_MUST_USE;

/* Parses like probe_settings_parse; the settings in `over`, JSON with the same keys, take
 * precedence. */
enum ms_rc probe__settings_parse_over(struct probe_settings **s, const char *name, const char *text,
                                      size_t n, struct ms_str over, struct ms_err *err) MS_MUST_USE;

#endif

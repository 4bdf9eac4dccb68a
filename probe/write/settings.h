/* SPDX-License-Identifier: MIT
 *
 * settings: what the settings of a dumper mean, wherever they came from.
 */
#ifndef PROBE_WRITE_SETTINGS_H
#define PROBE_WRITE_SETTINGS_H

#include "probe/base/arena.h"
#include "probe/dumper.h"

/* Rules between settings, and what follows from one: task structure works at level mix, and
 * level debug has no filters. */
enum ms_rc probe__settings_check(struct probe_settings *s, struct ms_err *err) MS_MUST_USE;
/* A checked copy; all that it points to goes to the arena. */
enum ms_rc probe__settings_copy(struct probe_settings *to, const struct probe_settings *from,
                                struct ms_arena *arena, struct ms_err *err) MS_MUST_USE;

/* probe_settings_parse, with settings that go before those of the text: JSON of the same keys. */
enum ms_rc probe__settings_parse_over(struct probe_settings **s, const char *name, const char *text,
                                      size_t n, struct ms_str over, struct ms_err *err) MS_MUST_USE;

#endif

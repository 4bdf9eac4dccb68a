/* SPDX-License-Identifier: MIT
 *
 * config_value: values of a configuration (struct ms_plain) as Python has them: read from JSON, compared,
 * printed.
 */
#ifndef COMPARE_CONFIG_CONFIG_VALUE_H
#define COMPARE_CONFIG_CONFIG_VALUE_H

#include "probe/base/jwrite.h"
#include "probe/base/pickle.h"

/* Parses a JSON text into the arena; `name` stands in messages. Integers beyond 64 bits become reals. */
enum ms_rc cfg_value_parse(const struct ms_plain **v, const char *name, struct ms_str json,
                           struct ms_arena *a, struct ms_err *err) MS_MUST_USE;
/* Tells whether Python calls two values equal: 1, 1.0 and True are. NULL equals NULL alone. */
bool cfg_value_equal(const struct ms_plain *x, const struct ms_plain *y);
/* Appends str() or repr() of a value. */
void cfg_value_str(struct ms_buf *out, const struct ms_plain *v);
void cfg_value_repr(struct ms_buf *out, const struct ms_plain *v);
void cfg_value_json(struct ms_jwrite *w, const struct ms_plain *v);

/* Constructors; NULL when the arena is full. The text is copied. */
struct ms_plain *cfg_text(struct ms_arena *a, struct ms_str s);
struct ms_plain *cfg_real(struct ms_arena *a, double v);
struct ms_plain *cfg_int(struct ms_arena *a, int64_t v);
struct ms_plain *cfg_bool(struct ms_arena *a, bool v);
/* Sets a key of a dictionary; a new one comes last. */
enum ms_rc cfg_set(struct ms_arena *a, struct ms_plain *dict, struct ms_str key,
                   struct ms_plain *value, struct ms_err *err) MS_MUST_USE;
/* Returns the value under a key, or NULL. */
struct ms_plain *cfg_get(const struct ms_plain *dict, struct ms_str key);

#endif

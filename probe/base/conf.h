/* SPDX-License-Identifier: MIT
 *
 * conf: small JSON files that people write (config.json), with messages that
 * name the key, what was found and what is allowed.  The only home of cJSON.
 *
 * The text must be strict JSON in UTF-8 with an object at the top. A key that occurs twice in one
 * object is an error, since one of the two would be ignored.
 */
#ifndef PROBE_BASE_CONF_H
#define PROBE_BASE_CONF_H

#include "probe/base/str.h"

struct ms_conf;       /* the file */
struct ms_conf_value; /* a value in it, borrowed until the file is closed */

enum { MS_CONF_MAX = 8 << 20 };

enum ms_rc ms_conf_open(struct ms_conf **conf, const char *path, struct ms_err *err) MS_MUST_USE;
/* Parses text in memory; `name` replaces the path in messages. */
enum ms_rc ms_conf_parse(struct ms_conf **conf, const char *name, struct ms_str text,
                         struct ms_err *err) MS_MUST_USE;
void ms_conf_close(struct ms_conf *conf);
const struct ms_conf_value *ms_conf_root(const struct ms_conf *conf);

/* Each getter leaves *out unchanged when the key is absent or null. It fails with "config.json:
 * statistics.summary_mode: expected a string, found a number" when the value has another type, and
 * also when `at` is no object. */
enum ms_rc ms_conf_str(const struct ms_conf_value *at, const char *key, const char **out,
                       struct ms_err *err) MS_MUST_USE;
enum ms_rc ms_conf_bool(const struct ms_conf_value *at, const char *key, bool *out,
                        struct ms_err *err) MS_MUST_USE;
/* Gets a nested object or list; *out is NULL when the key is absent or null. An item of a list may
 * be an object, which these getters read in turn; a list inside a list cannot be read. The members
 * of an object are its items, in the order of the file. */
enum ms_rc ms_conf_object(const struct ms_conf_value *at, const char *key,
                          const struct ms_conf_value **out, struct ms_err *err) MS_MUST_USE;
enum ms_rc ms_conf_list(const struct ms_conf_value *at, const char *key,
                        const struct ms_conf_value **out, struct ms_err *err) MS_MUST_USE;
size_t ms_conf_len(const struct ms_conf_value *list);
/* i < ms_conf_len */
const struct ms_conf_value *ms_conf_item(const struct ms_conf_value *list, size_t i);
const char *ms_conf_key(const struct ms_conf_value *object, size_t i);
/* Reads an item as text, or as a whole number between -2^53 and 2^53; false when it has another
 * type. */
bool ms_conf_item_str(const struct ms_conf_value *list, size_t i, const char **out);
bool ms_conf_item_int(const struct ms_conf_value *list, size_t i, int64_t *out);
/* Fails at a value with a message of the caller: "config.json: task.ranks[2]: expected ..." */
enum ms_rc ms_conf_reject(const struct ms_conf_value *at, struct ms_err *err, const char *fmt, ...)
    MS_PRINTF(3, 4);
/* Logs a warning for each key of `at` that is not in `known`, with the nearest known spelling. */
void ms_conf_warn_unknown(const struct ms_conf_value *at, const char *const *known);

const char *ms_conf_version(void);

#endif

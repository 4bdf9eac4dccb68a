/* SPDX-License-Identifier: MIT
 *
 * log: messages about what the tool is doing, on stderr or in MSPROBE_LOG's file.
 *
 * A source file defines its log domain before it includes this header:
 *
 *     #define MS_LOG_DOMAIN "jread"
 *     #include "probe/base/log.h"
 *
 * Debug level 1 logs once per file or handle, 2 once per record or request, 3 once per item. A call
 * whose level is off costs one predictable branch and evaluates no argument.
 */
#ifndef PROBE_BASE_LOG_H
#define PROBE_BASE_LOG_H

#include "probe/base/err.h"

#include <stdbool.h>

enum ms_log_level {
    MS_LOG_ERROR,
    MS_LOG_WARN,
    MS_LOG_INFO,
    MS_LOG_DEBUG1,
    MS_LOG_DEBUG2,
    MS_LOG_DEBUG3,
};

#ifndef MS_LOG_DOMAIN
#define MS_LOG_DOMAIN "msprobe"
#endif

/* Highest level that is enabled for any domain. */
extern enum ms_log_level ms_log_max;

#define ms_log(level, ...)                                                                         \
    do {                                                                                           \
        if (__builtin_expect((level) <= ms_log_max, 0))                                            \
            ms_log_write((level), MS_LOG_DOMAIN, __VA_ARGS__);                                     \
    } while (0)
#define ms_error(...)    ms_log(MS_LOG_ERROR, __VA_ARGS__)
#define ms_warn(...)     ms_log(MS_LOG_WARN, __VA_ARGS__)
#define ms_info(...)     ms_log(MS_LOG_INFO, __VA_ARGS__)
#define ms_debug(n, ...) ms_log((enum ms_log_level)(MS_LOG_INFO + (n)), __VA_ARGS__)

/* Writes one line if the level of the domain allows it. Control characters become '?', and a text
 * longer than 1023 bytes is cut and ends in "...". Keeps errno. Thread-safe; the settings below are
 * made before threads start. */
void ms_log_write(enum ms_log_level level, const char *domain, const char *fmt, ...)
    MS_PRINTF(3, 4);
/* Level of every domain without a setting of its own; MS_LOG_WARN at start. */
void ms_log_set_level(enum ms_log_level level);
/* Sets levels from a text as --debug takes it, "jread:2,store": domains with a debug level, 1 when
 * none is given; "all" or a bare number means every domain. */
enum ms_rc ms_log_configure(const char *spec, struct ms_err *err);
/* Configures from MSPROBE_DEBUG and MSPROBE_LOG in the environment. */
enum ms_rc ms_log_from_env(struct ms_err *err);
/* Sets the rank that every line shows, when several processes share a job (par.h). -1, the default,
 * shows none. */
void ms_log_set_rank(int rank);

#endif

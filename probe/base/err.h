/* SPDX-License-Identifier: MIT
 *
 * err: the one error type of the suite.
 *
 * A function that can fail returns `enum ms_rc` and takes a `struct ms_err *` last, which may be
 * NULL. The first failure is kept, so a failure during cleanup never hides the cause. Callers add
 * context with ms_err_wrap, so the final text reads from the outside in:
 *
 *     rank3/dump.json: line 18234, byte 402113: expected ',' or '}' after a value
 *
 * Libraries never print and never exit; only commands show an error.
 */
#ifndef PROBE_BASE_ERR_H
#define PROBE_BASE_ERR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MS_MUST_USE     __attribute__((warn_unused_result))
#define MS_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define MS_API          __attribute__((visibility("default")))

/* clang-format off */
#define MS_RC_MAP(X)                          \
    X(NOMEM,       "out of memory")           \
    X(IO,          "input/output error")      \
    X(FORMAT,      "malformed input")         \
    X(ARG,         "bad argument")            \
    X(LIMIT,       "limit exceeded")          \
    X(UNSUPPORTED, "not supported")           \
    X(NOTFOUND,    "not found")               \
    X(INTERRUPTED, "interrupted")             \
    X(INTERNAL,    "internal error")
/* clang-format on */

enum ms_rc {
    MS_OK = 0,
#define MS_RC_ENUM(name, text) MS_E_##name,
    MS_RC_MAP(MS_RC_ENUM)
#undef MS_RC_ENUM
        MS_RC_MAX
};

/* An error. off and line are the place in the input; off is -1 when there is no place. sys is the
 * errno of a failed system call, else 0. */
struct ms_err {
    enum ms_rc rc;
    int sys;
    int64_t off;
    uint32_t line;
    char msg[488];
};

/* Returns the short lower-case text of a code, never NULL. */
const char *ms_rc_text(enum ms_rc rc);

/* Fills e unless e already holds a failure; returns rc. */
enum ms_rc ms_fail(struct ms_err *e, enum ms_rc rc, const char *fmt, ...) MS_PRINTF(3, 4);
/* Like ms_fail, with a place in the input: line counts from 1, off from 0. */
enum ms_rc ms_fail_at(struct ms_err *e, enum ms_rc rc, uint32_t line, int64_t off, const char *fmt,
                      ...) MS_PRINTF(5, 6);
/* Reports a failed allocation. */
enum ms_rc ms_no_memory(struct ms_err *e);
/* Reports a failed system call; appends the text of errno. */
enum ms_rc ms_fail_sys(struct ms_err *e, const char *fmt, ...) MS_PRINTF(2, 3);

/* Puts "context: " in front of the message (with the place, the first time) and returns the code of
 * e, or MS_E_INTERNAL when e is NULL or holds no failure. */
enum ms_rc ms_err_wrap(struct ms_err *e, const char *fmt, ...) MS_PRINTF(2, 3);
/* Appends "; remedy", a hint at what the user can try next. */
void ms_err_hint(struct ms_err *e, const char *fmt, ...) MS_PRINTF(2, 3);
void ms_err_clear(struct ms_err *e);

#define MS_TRY(call)                                                                               \
    do {                                                                                           \
        enum ms_rc ms_try_rc = (call);                                                             \
        if (ms_try_rc != MS_OK)                                                                    \
            return ms_try_rc;                                                                      \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT
 *
 * analyzer: put in front of each file by tests/analyze.sh.  The analyzers see one
 * file at a time, so they believe that a call which reports a failure might return
 * MS_OK, and then that its caller goes on with values never set; and that a vector
 * with room for items might have none.
 */
#ifndef TESTS_SUPPORT_ANALYZER_H
#define TESTS_SUPPORT_ANALYZER_H

#include "probe/base/arena.h"
#include "probe/base/err.h"
#include "probe/base/jread.h"
#include "probe/base/vec.h"

#define ms_fail(e, rc, ...)               (ms_fail((e), (rc), __VA_ARGS__), (rc))
#define ms_fail_at(e, rc, line, off, ...) (ms_fail_at((e), (rc), (line), (off), __VA_ARGS__), (rc))
#define ms_fail_sys(...)                  (ms_fail_sys(__VA_ARGS__), MS_E_IO)
#define ms_err_wrap(...)                  (ms_err_wrap(__VA_ARGS__), MS_E_INTERNAL)
#define ms_no_memory(e)                   (ms_no_memory(e), MS_E_NOMEM)
#define ms_arena_fail(a, e)               (ms_arena_fail((a), (e)), MS_E_NOMEM)
#define ms_jread_fail(r, e)               (ms_jread_fail((r), (e)), MS_E_FORMAT)
#define ms_jread_reject(r, e, ...)        (ms_jread_reject((r), (e), __VA_ARGS__), MS_E_FORMAT)

static inline bool analyzer_never(void)
{
    __builtin_unreachable();
}

#undef ms_vec_reserve
#define ms_vec_reserve(v, want)                                                                    \
    (((want) <= (v)->cap || ms_vec_grow(&(v)->p, &(v)->cap, (want), sizeof *(v)->p)) &&            \
     ((v)->p != NULL || analyzer_never()))

#endif

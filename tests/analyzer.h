/* SPDX-License-Identifier: MIT
 *
 * analyzer: put in front of each file by tests/analyze.sh.  The analyzers see one
 * file at a time, so they believe that a call which reports a failure might return
 * MS_OK, and then that its caller goes on with values never set.
 */
#ifndef TESTS_ANALYZER_H
#define TESTS_ANALYZER_H

#include "probe/base/err.h"

#define ms_fail(e, rc, ...)               (ms_fail((e), (rc), __VA_ARGS__), (rc))
#define ms_fail_at(e, rc, line, off, ...) (ms_fail_at((e), (rc), (line), (off), __VA_ARGS__), (rc))
#define ms_fail_sys(...)                  (ms_fail_sys(__VA_ARGS__), MS_E_IO)
#define ms_err_wrap(...)                  (ms_err_wrap(__VA_ARGS__), MS_E_INTERNAL)

#endif

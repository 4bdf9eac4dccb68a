/* SPDX-License-Identifier: MIT
 *
 * assert: contracts between functions, checked where MS_ASSERT is defined.
 *
 * `make SAN=...` and `make ASSERT=1` define it, so tests, fuzzing and sanitizer builds stop at the
 * first broken contract. A release build does not evaluate the condition, because a library that is
 * loaded into a training process must never end it. An assertion states what the programmer
 * promises; bad input is an ms_err, never an assertion.
 */
#ifndef PROBE_BASE_ASSERT_H
#define PROBE_BASE_ASSERT_H

#ifdef MS_ASSERT
#include <stdio.h>

/* Prints the broken contract on standard error and stops the process. */
static inline void ms_assert_fail(const char *what, const char *file, int line)
{
    dprintf(2, "%s:%d: contract broken: %s\n", file, line, what);
    __builtin_trap();
}
#define ms_assert(x) ((x) ? (void)0 : ms_assert_fail(#x, __FILE__, __LINE__))
#else
/* The condition is compiled, so that it keeps compiling after changes, but never evaluated. */
#define ms_assert(x) ((void)sizeof((x) ? 1 : 0))
#endif

#endif

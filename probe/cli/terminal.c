/* SPDX-License-Identifier: MIT
 *
 * terminal: what is printed on a terminal cannot command it.
 *
 * Reports quote names of files, of operators and of programs, and those may be a stranger's. All
 * commands print by stdout, so on a terminal stdout is a stream that shows control characters as '?'.
 * In a file or a pipe the bytes stay what they are.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for fopencookie */
#endif
#include "probe/cli/cmds.h"

#include "probe/base/str.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { BLOCK = 4096 };

/* Writes all bytes; false: the terminal is gone. */
static bool write_whole(const char *p, size_t n)
{
    while (n != 0) {
        ssize_t sent = write(STDOUT_FILENO, p, n);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        p += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* Returns the number of bytes taken, 0 after a failure, as fopencookie(3) wants it. */
static ssize_t write_shown(void *ctx, const char *p, size_t n)
{
    char *before = ctx; /* the byte before p */
    char shown[BLOCK];
    for (size_t at = 0; at < n;) {
        size_t k = 0;
        for (; k < sizeof shown && at < n; k++, at++) {
            shown[k] = ms_is_obeyed(*before, p[at]) ? '?' : p[at];
            *before = p[at];
        }
        if (!write_whole(shown, k))
            return 0;
    }
    return (ssize_t)n;
}

void cli_guard_terminal(void)
{
    static char before;
    const cookie_io_functions_t io = {.write = write_shown};
    FILE *to = isatty(STDOUT_FILENO) ? fopencookie(&before, "w", io) : NULL;
    if (to == NULL)
        return;
    setvbuf(to, NULL, _IOLBF, BUFSIZ);
    stdout = to;
}

/* SPDX-License-Identifier: MIT
 *
 * tell: progress and notes on standard error.
 */
#include "viz/model/tell.h"

#include "probe/base/progress.h"

#include <stdio.h>
#include <unistd.h>

void viz_tell_progress(void *ctx, int percent)
{
    (void)ctx;
    if (ms_progress_ok(STDERR_FILENO))
        fprintf(stderr, "\rreading the dump: %d %%%s", percent, percent >= 100 ? "\n" : "");
}

void viz_tell_note(void *ctx, const char *line)
{
    const struct viz_teller *t = ctx;
    fprintf(stderr, "msprobe %s: %s\n", t->command, line);
}

/* SPDX-License-Identifier: MIT
 *
 * progress: who reads standard error.
 */
#include "probe/base/progress.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool ms_progress_ok(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) != 0 && term != NULL && strcmp(term, "dumb") != 0;
}

/* SPDX-License-Identifier: MIT
 *
 * beside: finds the other files of msprobe from the path of the running program.
 */
#include "probe/base/beside.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* Directory of the running program, with a trailing slash; "" when it is not known. */
static void own_dir(char dir[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", dir, PATH_MAX - 1);
    while (n > 0 && dir[n - 1] != '/')
        n--;
    dir[n > 0 ? n : 0] = '\0';
}

static bool can_read(const char *dir, const char *below, char *path, size_t cap)
{
    int n = snprintf(path, cap, "%s%s", dir, below);
    if (n < 0 || (size_t)n >= cap)
        path[0] = '\0';
    return access(path, R_OK) == 0;
}

bool ms_place_find(const struct ms_place *place, char *path, size_t cap)
{
    char dir[PATH_MAX];
    own_dir(dir);
    return can_read(dir, place->built, path, cap) || can_read(dir, place->installed, path, cap);
}

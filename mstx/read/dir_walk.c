/* SPDX-License-Identifier: MIT
 *
 * dir_walk: see the header.
 */
#include "mstx/read/dir_walk.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Tells whether inner is outer or lies in it; both are resolved. */
static bool is_within(const char *inner, const char *outer)
{
    const size_t n = strlen(outer);
    return strncmp(inner, outer, n) == 0 &&
           (inner[n] == '\0' || inner[n] == '/' || outer[n - 1] == '/');
}

/* Tells whether a path is a link to a directory that holds it. */
static bool leads_up(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISLNK(st.st_mode))
        return false;
    char holder[PATH_MAX], target[PATH_MAX];
    char *dir = ms_str_dup(ms_path_dir(path));
    const bool is_up = dir == NULL || realpath(dir, holder) == NULL ||
                       realpath(path, target) == NULL || is_within(holder, target);
    ms_free(dir);
    return is_up;
}

enum ms_rc mstx__dir_walk_enter(struct mstx_dir_walk *w, const char *path, bool *enters,
                                struct ms_err *err)
{
    struct stat st;
    *enters = false;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode) || leads_up(path))
        return MS_OK;
    const uint64_t key[] = {st.st_dev, st.st_ino};
    if (w->keys == NULL)
        w->keys = ms_arena_new(SIZE_MAX);
    const struct ms_str bytes = {(const char *)key, sizeof key};
    const bool is_noted =
        w->keys != NULL && ms_map_put_copy(&w->seen, bytes, w->keys, enters) != MS_MAP_NONE;
    return is_noted ? MS_OK : ms_no_memory(err);
}

void mstx__dir_walk_free(struct mstx_dir_walk *w)
{
    ms_map_free(&w->seen);
    ms_arena_free(w->keys);
    *w = (struct mstx_dir_walk){.keys = NULL};
}

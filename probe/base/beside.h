/* SPDX-License-Identifier: MIT
 *
 * beside: files that belong to msprobe itself.
 */
#ifndef PROBE_BASE_BESIDE_H
#define PROBE_BASE_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

/* Where a file is, relative to the folder of the program: in the build tree, and as `make install`
 * puts it. */
struct ms_place {
    const char *built, *installed;
};
/* Finds the first of the two paths that can be read. On false neither can; path then names the
 * installed one, or is "". */
bool ms_place_find(const struct ms_place *place, char *path, size_t cap);

#endif

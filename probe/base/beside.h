/* SPDX-License-Identifier: MIT
 *
 * beside: files that belong to msprobe itself.
 */
#ifndef PROBE_BASE_BESIDE_H
#define PROBE_BASE_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

/* Where a file is, seen from the program: beside it as built, or where `make install` puts it. */
struct ms_place {
    const char *built, *installed;
};
/* The first of the two that can be read; false: none, path names the second, or is "". */
bool ms_place_find(const struct ms_place *place, char *path, size_t cap);

#endif

/* SPDX-License-Identifier: MIT
 *
 * walk: directories below a directory of somebody else, each entered once.
 *
 * Links to directories are followed, as people link the folders of ranks. A link to a directory that
 * holds it, such as one to /, is not: behind it lies everything, the link included.
 */
#ifndef MS_BASE_WALK_H
#define MS_BASE_WALK_H

#include "probe/base/map.h"

/* Zero it to start. */
struct ms_walk {
    struct ms_map seen; /* device and number of each directory that was entered */
    struct ms_arena *keys;
};

/* Finds whether path is a directory to enter, which it is once. */
enum ms_rc ms_walk_enter(struct ms_walk *w, const char *path, bool *enters,
                         struct ms_err *err) MS_MUST_USE;
/* Leaves it as it was at the start. */
void ms_walk_free(struct ms_walk *w);

#endif

/* SPDX-License-Identifier: MIT
 *
 * dir_walk: directories below a directory of somebody else, each entered once.
 *
 * Links to directories are followed, as people link the folders of ranks. A link to a directory that
 * holds it, such as one to /, is not: behind it lies everything, the link included.
 */
#ifndef MSTX_READ_DIR_WALK_H
#define MSTX_READ_DIR_WALK_H

#include "probe/base/map.h"

/* Zero it to start. */
struct mstx_dir_walk {
    struct ms_map seen; /* device and number of each directory that was entered */
    struct ms_arena *keys;
};

/* Finds whether path is a directory to enter, which it is once. */
enum ms_rc mstx__dir_walk_enter(struct mstx_dir_walk *w, const char *path, bool *enters,
                                struct ms_err *err) MS_MUST_USE;
/* Leaves it as it was at the start. */
void mstx__dir_walk_free(struct mstx_dir_walk *w);

#endif

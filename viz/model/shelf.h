/* SPDX-License-Identifier: MIT
 *
 * shelf: what lies in a folder of runs, dumps and comparisons, with the facts by which people choose.
 */
#ifndef VIZ_MODEL_SHELF_H
#define VIZ_MODEL_SHELF_H

#include "probe/base/arena.h"
#include "probe/base/vec.h"
#include "viz/model/path_kind.h"

struct viz_shelf_entry {
    struct ms_str name; /* below the folder: "monday/run1" */
    enum viz_path_kind kind;
    int64_t changed_ms;      /* Unix time of its last change */
    int64_t bytes;           /* of its files, as far as they were counted */
    int64_t ranks, findings; /* -1: not known without opening it */
};

struct viz_shelf {
    struct ms_arena *arena;
    MS_VEC(struct viz_shelf_entry) list; /* the latest first */
    size_t most;                         /* entries that are listed */
    bool is_cut;                         /* there are more */
};

/* Tells whether a folder holds at least two entries. */
bool viz_shelf_is_one(const char *path);
/* Lists what the viewers open in a folder and in the folders in it. */
enum ms_rc viz_shelf_read(struct viz_shelf *s, const char *path, struct ms_err *err) MS_MUST_USE;
void viz_shelf_free(struct viz_shelf *s);
/* Returns, on the heap, the path of an entry by its name; NULL (MS_E_NOTFOUND) when the name leaves the folder or is
 * nothing that can be opened. */
enum ms_rc viz_shelf_path(const char *folder, struct ms_str name, char **path,
                          struct ms_err *err) MS_MUST_USE;
/* Tells whether the viewers open this kind alone, and whether two of it are compared. */
bool viz_shelf_opens(enum viz_path_kind kind);
bool viz_shelf_pairs(enum viz_path_kind kind);

#endif

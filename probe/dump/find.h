/* SPDX-License-Identifier: MIT
 *
 * find: finds the dumps under a path. The path may be a dump.json, a rank directory, a step
 * directory, a dump root, or a root that is split into graph/ and pynative/:
 *
 *     root/ [graph|pynative/] step0/ rank0/ dump.json construct.json stack.json
 */
#ifndef PROBE_DUMP_FIND_H
#define PROBE_DUMP_FIND_H

#include "probe/base/io.h"

/* The dump of one rank. Text is owned by the list. */
struct probe_place {
    const char *dir;  /* where its files are */
    const char *json; /* its dump.json or debug.json */
    const char *part; /* "graph", "pynative" or "" */
    int64_t step;     /* !!-1: not in the path */
    int64_t rank;     /* !!-1: not in the path */
};

struct probe_places {
    struct ms_arena *arena;
    MS_VEC(struct probe_place) list; /* sorted by part, step, rank */
    size_t empty;                    /* rank directories without a dump */
    MS_VEC(const char *)
    notes; /* remarks for the user: empty directories, numbers given to proc directories */
};

/* Hook for folders with a framework's own dump layout; set once when the program starts. is_one
 * recognises such a folder. convert returns, on the heap, a folder with steps and ranks. */
extern struct probe_find_foreign {
    bool (*is_one)(const char *path);
    enum ms_rc (*convert)(const char *path, char **root, struct ms_err *err);
} probe_find_foreign;

/* Finds at least one dump, or fails with a message that says what was expected. */
enum ms_rc probe_find(struct probe_places *places, const char *path,
                      struct ms_err *err) MS_MUST_USE;
void probe_places_free(struct probe_places *places);

#endif

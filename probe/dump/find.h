/* SPDX-License-Identifier: MIT
 *
 * find: which dumps lie under a path.  The path may be a dump.json, a rank
 * directory, a step directory, a dump root, or a root that is split into
 * graph/ and pynative/:
 *
 *     root/ [graph|pynative/] step0/ rank0/ dump.json construct.json stack.json
 */
#ifndef PROBE_DUMP_FIND_H
#define PROBE_DUMP_FIND_H

#include "probe/base/io.h"

/* One rank's dump.  Text is owned by the list. */
struct probe_place {
    const char *dir;  /* where its files are */
    const char *json; /* its dump.json or debug.json */
    const char *part; /* "graph", "pynative" or "" */
    int64_t step;     /* -1: the path does not say */
    int64_t rank;     /* -1: the path does not say */
};

struct probe_places {
    struct ms_arena *arena;
    MS_VEC(struct probe_place) list; /* by part, step, rank */
    size_t empty;                    /* directories of ranks without a dump */
    MS_VEC(const char *)
    notes; /* what a reader should know: directories without a dump, proc
                                        directories that were given a rank number */
};

/* How folders are opened in which a framework has a dump of its own layout; set once when the program
 * starts.  convert gives, on the heap, a folder with steps and ranks. */
extern struct probe_find_foreign {
    bool (*is_one)(const char *path);
    enum ms_rc (*convert)(const char *path, char **root, struct ms_err *err);
} probe_find_foreign;

/* At least one place, or an error that says what was looked for. */
enum ms_rc probe_find(struct probe_places *places, const char *path,
                      struct ms_err *err) MS_MUST_USE;
void probe_places_free(struct probe_places *places);

#endif

/* SPDX-License-Identifier: MIT
 *
 * fold_int: what the files that read folded blobs share.
 */
#ifndef MSTX_RUNDB_FOLD_INT_H
#define MSTX_RUNDB_FOLD_INT_H

#include "mstx/rundb/fold_read.h"
#include "mstx/rundb/packed_rows.h"

/* How deep columns lie in columns; those of a chunk of events begin there, and may not refer to other
 * chunks. */
enum { MSTX_FOLD_POINTS = 2 * MSTX_CHUNK_MAX, MSTX_FOLD_IN_CHUNK = 8 };

/* Times of the points of a leader, in quanta. */
struct mstx_leader {
    int64_t chunk; /* 0: none */
    uint64_t used; /* when last */
    uint32_t n;
    int64_t time[MSTX_FOLD_POINTS];
};

struct mstx_fold {
    struct mstx_folded_columns columns; /* first, so that its reader finds the rest */
    struct ms_store *store;
    struct ms_stmt *get_blob;
    struct mstx_parts parts;
    struct mstx_rows *rows; /* whose column is read, unless it is one that classes need */
    bool is_inner;          /* a column is being read */
    struct mstx_leader leader[MSTX_FOLD_LEADERS];
    uint64_t clock;
    int64_t chunk; /* whose events are in ev; 0: none */
    uint32_t n;
    struct mstx_event ev[MSTX_CHUNK_MAX];
    int64_t time[MSTX_FOLD_POINTS];
    int64_t cell[MSTX_FOLD_EVENT_COLUMNS][MSTX_CHUNK_MAX];
    uint16_t class[MSTX_FOLD_POINTS];
    uint16_t owner[MSTX_FOLD_POINTS]; /* of a point: its event */
    bool ends[MSTX_FOLD_POINTS];      /* it is the end of its event */
};

/* Classes of the points of a chunk that has no period, see fold_read.h. */
struct mstx_fold_point {
    uint64_t key; /* of the event: name and shape */
    bool ends;
};
void mstx__point_classes(const struct mstx_fold_point *point, uint32_t n, uint32_t most,
                         uint16_t *class);

#endif

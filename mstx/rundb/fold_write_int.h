/* SPDX-License-Identifier: MIT
 *
 * fold_write_int: what the files that fold a run.db share.
 *
 *     fold_write.c    the whole: copies the small tables, goes through the processes
 *     fold_tracks.c   events of a track, chunk by chunk
 *     fold_rows.c     packed rows
 */
#ifndef MSTX_RUNDB_FOLD_WRITE_INT_H
#define MSTX_RUNDB_FOLD_WRITE_INT_H

#include "mstx/rundb/fold_int.h"
#include "mstx/rundb/fold_put.h"
#include "mstx/rundb/packed_tables.h"
#include "mstx/rundb/run_query.h"

/* A call of the current process: what a communication call does, and where its event is. */
struct mstx_folded_call {
    int64_t start, dur; /* as imported */
    uint64_t key;       /* of what repeats */
    int64_t chunk;      /* of its event; 0: not found */
    uint32_t place;     /* in the chunk */
};

enum { MSTX_FOLD_SAMPLE = 512 };
/* A track whose times predict those of others. */
struct mstx_fold_leader {
    uint64_t structure; /* of its first chunk */
    int64_t quantum;
    int64_t first_chunk;
    uint32_t chunks, n;
    int64_t time[MSTX_FOLD_SAMPLE]; /* of its first points, in quanta */
};

struct mstx_folder {
    struct mstx_tl *from;
    struct ms_store *to;
    struct mstx_fold *read; /* of `to` */
    struct mstx_put *put;
    int64_t quantum; /* of the times of the current track or table */
    int64_t bound;   /* of times other than those of steps: twice this is their quantum */
    struct ms_stmt *add_chunk, *add_blob, *add_level;
    struct ms_buf blob, code;
    int64_t chunks;                       /* written */
    MS_VEC(struct mstx_folded_call) call; /* of the current process */
    size_t calls_met;                     /* whose events were written */
    MS_VEC(struct mstx_fold_leader) leader;
    uint32_t period;              /* of the last track that has one */
    struct mstx_folding *room;    /* of fold_tracks.c, for the next track */
    struct mstx_rows_room *calls; /* of fold_rows.c, for the calls of the next process */
};

static inline int64_t mstx__fold_quantum(const struct mstx_folder *f)
{
    return f->bound != 0 ? 2 * f->bound : 1;
}

/* Rounds to the nearest multiple of the quantum. */
static inline int64_t mstx__fold_round(const struct mstx_folder *f, int64_t t)
{
    const int64_t q = f->quantum, rest = ((t % q) + q) % q;
    return q == 1 ? t : t - rest + (2 * rest >= q ? q : 0);
}

enum ms_rc mstx__fold_track(struct mstx_folder *f, size_t track, struct ms_err *err) MS_MUST_USE;
/* Reads the calls of a process, numbered from 0. */
enum ms_rc mstx__fold_take_calls(struct mstx_folder *f, size_t process,
                                 struct ms_err *err) MS_MUST_USE;
/* Writes them, after the events of the process. */
enum ms_rc mstx__fold_calls(struct mstx_folder *f, size_t process, struct ms_err *err) MS_MUST_USE;
void mstx__fold_calls_end(struct mstx_folder *f);
enum ms_rc mstx__fold_joins(struct mstx_folder *f, struct ms_err *err) MS_MUST_USE;
/* Writes names, steps and rank_steps, which are plain tables unless they are folded. */
enum ms_rc mstx__fold_figures(struct mstx_folder *f, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__fold_spans(struct mstx_folder *f, struct ms_err *err) MS_MUST_USE;

#endif

/* SPDX-License-Identifier: MIT
 *
 * export: helpers that the writers of other tools' formats share: labels, merging of tracks, lanes
 * within which slices nest, quoted texts.
 */
#ifndef MSTX_FOREIGN_EXPORT_H
#define MSTX_FOREIGN_EXPORT_H

#include "mstx/rundb/run_query.h"

#include "probe/base/io.h"

/* "marker", "push/pop" or "start/end". */
const char *mstx__event_type_text(const struct mstx_event *ev);
/* Label of a process: "rank 3 python3 (host:4242)" as far as these are known; a process of a
 * foreign file keeps the name that the file gives. Cut to MSTX_LABEL_MAX bytes. */
enum { MSTX_LABEL_MAX = 208 };
struct ms_str mstx__process_label(const struct mstx_process *p, char buf[MSTX_LABEL_MAX]);
/* Writes nanoseconds as microseconds with three decimals. */
void mstx__put_us(struct ms_out *o, int64_t ns);

/* Calls fn for the events of the thread tracks of a rank, or of all ranks, in order of start. */
#define MSTX_ALL_RANKS INT32_MIN
typedef enum ms_rc (*mstx_merged_fn)(void *ctx, size_t track, const struct mstx_event *ev,
                                     struct ms_err *err);
enum ms_rc mstx__merge(struct mstx_tl *tl, int32_t rank, mstx_merged_fn fn, void *ctx,
                       struct ms_err *err) MS_MUST_USE;

/* Distributes the slices of one track, in order of start, longer slices first, over lanes within
 * which they nest.  Must be zeroed before the first slice. */
enum { MSTX_NEST_LANES = 64 };
struct mstx_nest {
    MS_VEC(int64_t) end[MSTX_NEST_LANES]; /* ends of the open slices, innermost last */
};
/* Closes the slices that have ended by start, calling fn (may be NULL) for each; then opens the new
 * slice in the first lane where it nests. A slice that nests in no lane goes into the last one and
 * is shortened (*end). Returns false when out of memory. */
typedef void (*mstx_nest_fn)(void *ctx, unsigned lane, int64_t end_ns);
bool mstx__nest(struct mstx_nest *n, int64_t start, int64_t *end, mstx_nest_fn fn, void *ctx,
                unsigned *lane);
/* Closes all open slices and frees. */
void mstx__nest_finish(struct mstx_nest *n, mstx_nest_fn fn, void *ctx);

/* Texts of a run as JSON strings with their quotes, made once for each id. */
struct mstx_quoted {
    struct mstx_tl *tl;
    struct ms_arena *arena;
    MS_VEC(struct ms_str) text;
    enum ms_rc bad;
};
enum ms_rc mstx__quoted_new(struct mstx_quoted *q, struct mstx_tl *tl,
                            struct ms_err *err) MS_MUST_USE;
struct ms_str mstx__quoted(struct mstx_quoted *q, uint32_t id);
/* Quotes a text that has no id. */
struct ms_str mstx__quote(struct mstx_quoted *q, struct ms_str text);
void mstx__quoted_free(struct mstx_quoted *q);

#endif

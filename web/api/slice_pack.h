/* SPDX-License-Identifier: MIT
 *
 * slice_pack: slices of tracks as binary columns, which the page need not parse.
 *
 * Fields that many slices share form a shape. Little-endian:
 *
 *     u32 version = 2, u32 tracks; for each track, at a multiple of 8 bytes:
 *     u32 track, u32 slices n, u32 shapes, u32 has (1: counts, 2: links, 4: wide shapes, 8: wide
 *     durations)
 *     shapes  { u32 name, u16 depth, u8 kind, u8 flags } each
 *     f64 start[n]      nanoseconds from the first event of the run
 *     f64 link[n]       if it has links; 0 is none
 *     f32 duration[n]   of a counter: the value; f64 if there is one that f32 would round
 *     u32 count[n]      if it has counts; otherwise every slice is a single event
 *     u16 shape[n]      u32 if they are wide
 */
#ifndef WEB_API_SLICE_PACK_H
#define WEB_API_SLICE_PACK_H

#include "mstx/rundb/run_query.h"

/* Scratch memory: zero it, use it for any number of tracks, free it. */
struct web_slices {
    MS_VEC(uint32_t) first; /* first slice of each shape */
    MS_VEC(uint32_t) shape; /* shape of each slice */
    MS_VEC(uint32_t) slot;  /* hash of a shape -> its index + 1 */
};

void web_slices_begin(struct ms_buf *b, uint32_t tracks);
/* Appends a track; start times are relative to `first`. */
enum ms_rc web_slices_put(struct web_slices *s, struct ms_buf *b, uint32_t track, bool counter,
                          int64_t first, const mstx_events *e, struct ms_err *err) MS_MUST_USE;
void web_slices_free(struct web_slices *s);

#endif

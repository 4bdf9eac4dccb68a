/* SPDX-License-Identifier: MIT
 *
 * pack: events of one track as a packed chunk, the blob of run.db.
 *
 * A chunk holds up to MSTX_CHUNK_MAX events in order of their start, column by
 * column, because neighbours in a column resemble each other:
 *
 *     u8  version (1)        u8 columns present        i64 start of the first event
 *     varint events          varint shapes
 *     shapes   { varint name, varint depth, u8 kind, u8 flags } each
 *     index    u8 per event (u16 when there are more than 256 shapes)
 *     start    varint: distance from the event before
 *     duration varint
 *     id, arg, size          zigzag varint: difference from the event before; only if present
 *     count, end_tid, args   varint; only if present
 *
 * A shape is what many events have in common.  The shapes come first so that a
 * search by name can pass over a chunk without reading its columns.  All
 * numbers are little-endian; varints are LEB128.
 */
#ifndef MSTX_RUNDB_PACK_H
#define MSTX_RUNDB_PACK_H

#include "mstx/format/event.h"

#include "probe/base/str.h"

enum { MSTX_CHUNK_MAX = 4096 };

/* Working space of an encoder, large: keep one and use it again. */
struct mstx_packer {
    struct ms_buf out; /* the packed chunk after mstx_pack */
    uint32_t shapes;
    struct mstx_shape {
        uint32_t name;
        uint16_t depth;
        uint8_t kind, flags;
    } shape[MSTX_CHUNK_MAX];
    uint16_t index[MSTX_CHUNK_MAX];
    uint16_t slot[2 * MSTX_CHUNK_MAX]; /* hash of a shape to its place + 1 */
};

struct mstx_packer *mstx_packer_new(void);
void mstx_packer_free(struct mstx_packer *p);

/* Pack 1 .. MSTX_CHUNK_MAX events whose starts do not decrease and whose durations are not
 * negative.  The bytes lie in p->out until the next call. */
enum ms_rc mstx_pack(struct mstx_packer *p, const struct mstx_event *ev, uint32_t n,
                     struct ms_err *err) MS_MUST_USE;

/* Unpack a chunk into ev[MSTX_CHUNK_MAX]; *n is how many there are.  Any bytes are safe to give;
 * what mstx_pack did not write is MS_E_FORMAT. */
enum ms_rc mstx_unpack(struct ms_str blob, struct mstx_event *ev, uint32_t *n,
                       struct ms_err *err) MS_MUST_USE;

/* The same without what begins behind `until`, and without ids, arguments and threads of the end,
 * which are 0: what pictures are made of. */
enum ms_rc mstx_unpack_drawn(struct ms_str blob, int64_t until, struct mstx_event *ev, uint32_t *n,
                             struct ms_err *err) MS_MUST_USE;

/* The same chunk with other ids of texts: of names and attributes.  The bytes lie in p->out until the
 * next call; columns that hold no such ids are copied as they are. */
typedef uint32_t (*mstx_text_map)(const void *ctx, uint32_t id);
enum ms_rc mstx_pack_renumber(struct mstx_packer *p, struct ms_str blob, mstx_text_map map,
                              const void *ctx, struct ms_err *err) MS_MUST_USE;

/* Tells of a name whether it is wanted. */
typedef bool (*mstx_name_test)(void *ctx, uint32_t name);
/* May the chunk hold an event with a wanted name?  A damaged chunk answers yes: unpacking it
 * will say what is wrong. */
bool mstx_pack_has_name(struct ms_str blob, mstx_name_test test, void *ctx);

#endif

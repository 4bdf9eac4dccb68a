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
 * A shape is a combination of fields that many events share.  The shapes come
 * first so that a search by name can skip a chunk without reading its columns.
 * All numbers are little-endian; varints are LEB128.
 */
#ifndef MSTX_RUNDB_PACK_H
#define MSTX_RUNDB_PACK_H

#include "mstx/format/event.h"

#include "probe/base/str.h"

enum { MSTX_CHUNK_MAX = 4096 };

/* Working space of an encoder.  It is large, so reuse one. */
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

/* Packs 1 to MSTX_CHUNK_MAX events whose starts do not decrease and whose durations are not
 * negative.  The chunk is in p->out until the next call. */
enum ms_rc mstx_pack(struct mstx_packer *p, const struct mstx_event *ev, uint32_t n,
                     struct ms_err *err) MS_MUST_USE;

/* Unpacks a chunk into ev[MSTX_CHUNK_MAX] and sets *n.  The blob may be untrusted: damage is
 * MS_E_FORMAT. */
enum ms_rc mstx_unpack(struct ms_str blob, struct mstx_event *ev, uint32_t *n,
                       struct ms_err *err) MS_MUST_USE;

/* Unpacks only what pictures need: events that start no later than `until`, with ids, arguments and
 * end threads set to 0. */
enum ms_rc mstx_unpack_drawn(struct ms_str blob, int64_t until, struct mstx_event *ev, uint32_t *n,
                             struct ms_err *err) MS_MUST_USE;

/* Packs a chunk again with other text ids for names and attributes; other columns are copied
 * unchanged.  The chunk is in p->out until the next call. */
typedef uint32_t (*mstx_text_map)(const void *ctx, uint32_t id);
enum ms_rc mstx_pack_renumber(struct mstx_packer *p, struct ms_str blob, mstx_text_map map,
                              const void *ctx, struct ms_err *err) MS_MUST_USE;

/* Tells whether a name matches. */
typedef bool (*mstx_name_test)(void *ctx, uint32_t name);
/* Tells whether the chunk may hold an event with a matching name.  Returns true for a damaged
 * chunk, so that unpacking reports the damage. */
bool mstx_pack_has_name(struct ms_str blob, mstx_name_test test, void *ctx);

#endif

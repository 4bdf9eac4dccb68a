/* SPDX-License-Identifier: MIT
 *
 * fold_parts: what folded blobs of run.db have in common, stored once for all of them.
 *
 *     fold_parts(id, data)    data: varint bytes, then these bytes compressed by zlib
 *
 *     u8 1 pattern     varint period, u8 has slopes, zigzag differences of the bases, zigzag slopes
 *     u8 2 structure   u8 is periodic, varint points, varint step of each point
 *     u8 3 model       see fold_code.h
 *
 * The values of a pattern are first + base[i % period] + (turn + i / period) * slope[i % period], where
 * first and turn are told by the blob that uses it.
 *
 * The steps of a structure are the begins and ends of events, in order of time: 0 an event begins, 1
 * it begins and ends, 2 + k: the event ends that is the k-th from the top of those that are open, the
 * last one to begin on top.
 */
#ifndef MSTX_RUNDB_FOLD_PARTS_H
#define MSTX_RUNDB_FOLD_PARTS_H

#include "mstx/rundb/fold_code.h"

#include "probe/base/store.h"
#include "probe/base/vec.h"

enum mstx_part_kind { MSTX_PART_PATTERN = 1, MSTX_PART_STRUCTURE, MSTX_PART_MODEL };

enum { MSTX_POINT_BEGIN, MSTX_POINT_AT_ONCE, MSTX_POINT_END };

struct mstx_part {
    enum mstx_part_kind kind;
    bool is_periodic;      /* structure */
    uint32_t n;            /* period of a pattern, points of a structure */
    int64_t *base, *slope; /* slope NULL: all 0 */
    uint16_t *step;
    struct mstx_model model;
};

/* Compresses a part into out, which is cleared. */
enum ms_rc mstx__part_pack(struct ms_buf *out, struct ms_str part, struct ms_err *err) MS_MUST_USE;

/* The parts of a database, read on demand and kept up to a limit. */
struct mstx_parts {
    struct ms_store *store;
    struct ms_stmt *get;
    MS_VEC(struct mstx_part *) part; /* by id */
    size_t bytes;
};
void mstx__parts_free(struct mstx_parts *p);
/* Returns a part of the kind, valid until mstx__parts_rest; NULL when it is missing or damaged. */
const struct mstx_part *mstx__parts_get(struct mstx_parts *p, uint64_t id, enum mstx_part_kind kind,
                                        struct ms_err *err);
/* Forgets all parts when they take much memory; called between blobs. */
void mstx__parts_rest(struct mstx_parts *p);
/* Reads one part out of its bytes, which are not compressed; NULL when it is damaged. */
struct mstx_part *mstx__part_read(struct ms_str text, size_t *bytes, struct ms_err *err);
void mstx__part_free(struct mstx_part *p);

#endif

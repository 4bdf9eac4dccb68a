/* SPDX-License-Identifier: MIT
 *
 * packed_texts: the attributes of events of a run.db, many in one blob, because nearly every one is
 * different: as rows of the table strings they took most of the time of an import.
 *
 *     packed_texts(id, rows, data)    id of the first, without MSTX_TEXT_PACKED
 *     u8 version (1)     varint length of each     the texts, one behind the other
 */
#ifndef MSTX_RUNDB_PACKED_TEXTS_H
#define MSTX_RUNDB_PACKED_TEXTS_H

#include "probe/base/arena.h"
#include "probe/base/store.h"
#include "probe/base/vec.h"

/* Set in the id of a packed text. */
#define MSTX_TEXT_PACKED (UINT32_C(1) << 31)

enum { MSTX_TEXTS_KNOWN = 1024 };

/* Texts to be written; zero it to start. */
struct mstx_texts_out {
    struct ms_stmt *add;
    struct ms_buf text; /* of the next blob */
    struct ms_buf blob;
    MS_VEC(uint32_t) end;             /* of each text in it */
    uint32_t first;                   /* number of texts in earlier blobs */
    uint32_t known[MSTX_TEXTS_KNOWN]; /* 1 + index in this blob, by hash: equal texts are common in
                                       * traces that repeat themselves */
};
enum ms_rc mstx__texts_out_new(struct mstx_texts_out *o, struct ms_store *s,
                               struct ms_err *err) MS_MUST_USE;
/* Gives a text that is not empty its id. */
enum ms_rc mstx__texts_put(struct mstx_texts_out *o, struct ms_str text, uint32_t *id,
                           struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__texts_flush(struct mstx_texts_out *o, struct ms_err *err) MS_MUST_USE;
void mstx__texts_out_free(struct mstx_texts_out *o);

/* Texts to be read: blobs that were asked for stay in memory. */
struct mstx_texts_blob {
    uint32_t first, rows;
    const struct ms_str *text;
};
struct mstx_texts_in {
    struct ms_store *store;
    struct ms_arena *arena; /* of the caller; texts live as long */
    struct ms_stmt *get;
    MS_VEC(struct mstx_texts_blob) blob; /* by first */
    struct ms_err failed;                /* the first failure to read a blob */
};
/* Returns the text of an id with MSTX_TEXT_PACKED; "" when it is unknown or damaged. */
struct ms_str mstx__texts_get(struct mstx_texts_in *in, uint32_t id);
void mstx__texts_in_free(struct mstx_texts_in *in);

#endif

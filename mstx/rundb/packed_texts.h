/* SPDX-License-Identifier: MIT
 *
 * packed_texts: the attributes of events of a run.db, many in one blob, because nearly every one is
 * different: as rows of the table strings they took most of the time of an import.
 *
 * Attributes of one kind of event differ only in their numbers. What stands between the numbers is
 * their form, which a blob holds once; a text is the number of its form and the differences of its
 * numbers from those of the text of that form before it.
 *
 *     packed_texts(id, rows, data)    id of the first, without MSTX_TEXT_PACKED
 *
 *     u8 version (2)     varint forms      varint bytes of all texts that have a form
 *     forms    { varint length, bytes, in which 0 stands for each run of digits } each
 *     texts    varint form, from 1 on, and for each run of digits
 *                  varint 2 * zigzag(difference), or 2 * n + 1 and n digits
 *              or 0, varint length and the bytes
 *
 * Blobs of version 1 are read too: varint length of each text, then the texts.
 */
#ifndef MSTX_RUNDB_PACKED_TEXTS_H
#define MSTX_RUNDB_PACKED_TEXTS_H

#include "mstx/rundb/run_write.h"

#include "probe/base/arena.h"
#include "probe/base/map.h"
#include "probe/base/store.h"
#include "probe/base/vec.h"

/* Set in the id of a packed text. */
#define MSTX_TEXT_PACKED (UINT32_C(1) << 31)

struct mstx_text_form {
    uint32_t runs;    /* of digits */
    uint32_t first;   /* place of their last values */
    uint32_t in_blob; /* 1 + its number in the blob; 0: not used there */
};

/* Texts to be written; zero it to start. */
struct mstx_texts_out {
    struct ms_stmt *add;
    struct ms_arena *arena;
    struct ms_map forms;
    MS_VEC(struct mstx_text_form) form;
    MS_VEC(uint64_t) last;             /* values of the runs of each form */
    MS_VEC(uint32_t) used;             /* forms of the next blob */
    MS_VEC(struct mstx_text_run) runs; /* of the text that is looked at */
    struct ms_buf shape;               /* its form */
    struct ms_buf rows;                /* of the next blob */
    struct ms_buf blob;
    uint64_t bytes;    /* of the texts in it that have a form */
    uint32_t first, n; /* number of texts in earlier blobs, and in it */
};
enum ms_rc mstx__texts_out_new(struct mstx_texts_out *o, struct ms_store *s,
                               struct ms_err *err) MS_MUST_USE;
/* Gives a text that is not empty its id. */
enum ms_rc mstx__texts_put(struct mstx_texts_out *o, struct ms_str text, uint32_t *id,
                           struct ms_err *err) MS_MUST_USE;
/* Finds or adds the form of a text; MSTX_TEXT_FORMLESS where it has too many parts, where there are
 * too many forms, or out of memory. */
uint32_t mstx__texts_form(struct mstx_texts_out *o, struct ms_str text);
/* Gives the text that has a form and these runs of digits, as many as the form has, its id. */
enum ms_rc mstx__texts_put_runs(struct mstx_texts_out *o, uint32_t form,
                                const struct mstx_text_run *runs, uint32_t *id,
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

/* Finds the texts in a blob of so many rows; false when it is damaged or memory is short. They lie in
 * the blob or in the arena. */
bool mstx__texts_split(struct ms_str blob, struct ms_str *text, uint32_t rows, struct ms_arena *a);

#endif

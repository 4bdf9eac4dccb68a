/* SPDX-License-Identifier: MIT
 *
 * exchange: messages between the processes of `mpirun msprobe import`, as bytes.
 *
 *     writing    mstx__put_bytes, mstx__put_text           into an ms_buf
 *     passing    mstx__share_all, mstx__share_gather       every process calls it
 *     reading    mstx__take_bytes, mstx__take_text         a short message sets bad for good
 *
 * All processes run the same program on machines of the same architecture, so numbers are sent in
 * their memory representation.
 */
#ifndef MSTX_IMPORT_EXCHANGE_H
#define MSTX_IMPORT_EXCHANGE_H

#include "probe/base/par.h"
#include "probe/base/vec.h"

#define MSTX_SHARE_MAX ((size_t)1 << 40)

struct mstx_taker {
    const char *p;
    size_t n;
    bool bad;
};

void mstx__put_bytes(struct ms_buf *b, const void *p, size_t n);
void mstx__put_text(struct ms_buf *b, struct ms_str s);
/* Writes the number of items of a vector, which mstx__take_count reads, and then the items. */
#define mstx__put_items(b, v) mstx__put_counted((b), (v)->p, (v)->n, sizeof *(v)->p)
void mstx__put_counted(struct ms_buf *b, const void *p, size_t n, size_t item);

void mstx__take_bytes(struct mstx_taker *t, void *p, size_t n);
/* Returns a text, borrowed from the message. */
struct ms_str mstx__take_text(struct mstx_taker *t);
size_t mstx__take_count(struct mstx_taker *t, size_t item);
/* Appends the items in a message to a vector of the same type; false: no memory. */
#define mstx__take_items(t, v) mstx__take_counted((t), &(v)->p, &(v)->n, &(v)->cap, sizeof *(v)->p)
bool mstx__take_counted(struct mstx_taker *t, void *p, size_t *n, size_t *cap, size_t item);

/* The messages of all processes, one behind the other. */
struct mstx_messages {
    struct ms_buf bytes;
    MS_VEC(size_t) end; /* of each message within bytes; empty in processes that receive none */
};
struct mstx_taker mstx__message(const struct mstx_messages *m, unsigned process);
void mstx__messages_free(struct mstx_messages *m);

/* Send the message of every process to process 0 (gather) or to all (all).  When any process passes
 * a failure as `mine`, all processes fail with the error text of the first one. */
enum ms_rc mstx__share_gather(struct ms_par *par, const struct ms_buf *message, enum ms_rc mine,
                              struct mstx_messages *all, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__share_all(struct ms_par *par, const struct ms_buf *message, enum ms_rc mine,
                           struct mstx_messages *all, struct ms_err *err) MS_MUST_USE;
/* Replaces the bytes of every process by those of process 0. */
enum ms_rc mstx__share_from_first(struct ms_par *par, struct ms_buf *bytes,
                                  struct ms_err *err) MS_MUST_USE;
/* Returns the first failure of any process in every process. */
enum ms_rc mstx__share_result(struct ms_par *par, enum ms_rc mine, struct ms_err *err) MS_MUST_USE;

#endif

/* SPDX-License-Identifier: MIT
 *
 * exchange: messages between the processes of one job of mpirun, as bytes.
 *
 *     writing    ms_put_bytes, ms_put_text           into an ms_buf
 *     passing    ms_share_all, ms_share_gather       every process calls it
 *     reading    ms_take_bytes, ms_take_text         a short message sets bad for good
 *
 * All processes run the same program on machines of the same architecture, so numbers are sent in
 * their memory representation.
 */
#ifndef PROBE_BASE_EXCHANGE_H
#define PROBE_BASE_EXCHANGE_H

#include "probe/base/par.h"
#include "probe/base/vec.h"

#define MS_SHARE_MAX ((size_t)1 << 40)

struct ms_taker {
    const char *p;
    size_t n;
    bool bad;
};

void ms_put_bytes(struct ms_buf *b, const void *p, size_t n);
void ms_put_text(struct ms_buf *b, struct ms_str s);
/* Writes the number of items of a vector, which ms_take_count reads, and then the items. */
#define ms_put_items(b, v) ms_put_counted((b), (v)->p, (v)->n, sizeof *(v)->p)
void ms_put_counted(struct ms_buf *b, const void *p, size_t n, size_t item);

void ms_take_bytes(struct ms_taker *t, void *p, size_t n);
/* Returns a text, borrowed from the message. */
struct ms_str ms_take_text(struct ms_taker *t);
size_t ms_take_count(struct ms_taker *t, size_t item);
/* Appends the items in a message to a vector of the same type; false: no memory. */
#define ms_take_items(t, v) ms_take_counted((t), &(v)->p, &(v)->n, &(v)->cap, sizeof *(v)->p)
bool ms_take_counted(struct ms_taker *t, void *p, size_t *n, size_t *cap, size_t item);

/* The messages of all processes, one behind the other. */
struct ms_gathered {
    struct ms_buf bytes;
    MS_VEC(size_t) end; /* of each message within bytes; empty in processes that receive none */
};
struct ms_taker ms_gathered_message(const struct ms_gathered *m, unsigned process);
void ms_gathered_free(struct ms_gathered *m);

/* Send the message of every process to process 0 (gather) or to all (all).  When any process passes
 * a failure as `mine`, all processes fail with the error text of the first one. */
enum ms_rc ms_share_gather(struct ms_par *par, const struct ms_buf *message, enum ms_rc mine,
                           struct ms_gathered *all, struct ms_err *err) MS_MUST_USE;
enum ms_rc ms_share_all(struct ms_par *par, const struct ms_buf *message, enum ms_rc mine,
                        struct ms_gathered *all, struct ms_err *err) MS_MUST_USE;
/* Replaces the bytes of every process by those of process 0. */
enum ms_rc ms_share_from_first(struct ms_par *par, struct ms_buf *bytes,
                               struct ms_err *err) MS_MUST_USE;
/* Returns the first failure of any process in every process. */
enum ms_rc ms_share_result(struct ms_par *par, enum ms_rc mine, struct ms_err *err) MS_MUST_USE;

#endif

/* SPDX-License-Identifier: MIT
 *
 * tl_texts: what strings.seg of a process says, made ready for use: its ids as
 * ids of run.db, and names of domains, categories, threads and schemas.
 */
#ifndef MSTX_TL_TEXTS_H
#define MSTX_TL_TEXTS_H

#include "mstx/tl_read.h"
#include "mstx/tl_write.h"

/* A text that is found by its domain and key. */
struct mstx_keyed {
    uint64_t key;
    uint16_t domain;
    uint16_t kind;      /* enum mstx_text_kind */
    uint32_t name;      /* id in run.db */
    struct ms_str text; /* lies in the file */
};

typedef MS_VEC(uint32_t) mstx_text_ids;
typedef MS_VEC(struct mstx_keyed) mstx_keyed_texts;

struct mstx_texts {
    struct mstx_writer *w;
    mstx_text_ids id;       /* local id to id in run.db */
    mstx_text_ids domain;   /* domain number to id in run.db */
    mstx_keyed_texts keyed; /* sorted by kind, domain, key */
    mstx_keyed_texts notes, hangs;
    uint32_t process_name; /* id in run.db, 0: not said */
    bool names_mpi;        /* there is the name of a call of MPI */
    uint64_t clock_cost;   /* ticks that one reading of the clock took there, 0: not said */
};

/* Reads all entries; texts that later entries replace are gone. */
enum ms_rc mstx__texts_read(struct mstx_texts *t, const struct mstx_proc *p, struct mstx_writer *w,
                            const struct mstx_problems *to, struct ms_err *err) MS_MUST_USE;
void mstx__texts_free(struct mstx_texts *t);
/* Id in run.db; an id without text becomes "(text N)", as it may be younger than strings.seg. */
uint32_t mstx__text_id(struct mstx_texts *t, uint32_t local);
uint32_t mstx__domain_id(struct mstx_texts *t, uint16_t domain);
/* Of keyed texts with one kind, domain and key the last is the newest. */
bool mstx__texts_is_newest(const struct mstx_texts *t, size_t i);
/* The newest entry of that kind, or NULL. */
const struct mstx_keyed *mstx__texts_find(const struct mstx_texts *t, uint16_t kind,
                                          uint16_t domain, uint64_t key);

#endif

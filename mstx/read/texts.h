/* SPDX-License-Identifier: MIT
 *
 * texts: what strings.seg of a process says, made ready for use: names of domains, categories,
 * threads and schemas, and for each id of the process the one that its text has in the sink.
 */
#ifndef MSTX_READ_TEXTS_H
#define MSTX_READ_TEXTS_H

#include "mstx/read/processes.h"

/* Where texts go that events name: whoever reads a capture gives them ids, the table strings of run.db
 * for instance. */
struct mstx_text_sink {
    void *ctx;
    uint32_t (*put)(void *ctx, struct ms_str text);     /* its id; 0: empty, or a failure */
    struct ms_str (*get)(const void *ctx, uint32_t id); /* "" for what is not there */
    void (*fail)(void *ctx, const struct ms_err *err);  /* keeps the first failure */
};

/* A text that is found by its domain and key. */
struct mstx_keyed {
    uint64_t key;
    uint16_t domain;
    uint16_t kind;      /* enum mstx_text_kind */
    uint32_t name;      /* id in the sink */
    struct ms_str text; /* lies in the file */
};

typedef MS_VEC(uint32_t) mstx_text_ids;
typedef MS_VEC(struct mstx_keyed) mstx_keyed_texts;

struct mstx_texts {
    const struct mstx_text_sink *to;
    mstx_text_ids id;       /* local id to id in the sink */
    mstx_text_ids domain;   /* domain number to id in the sink */
    mstx_keyed_texts keyed; /* sorted by kind, domain, key */
    mstx_keyed_texts notes, hangs;
    uint32_t process_name; /* id in the sink, 0: not said */
    bool names_mpi;        /* there is the name of a call of MPI */
    uint64_t clock_cost;   /* ticks that one reading of the clock took there, 0: not said */
};

/* Reads all entries; texts that later entries replace are gone. */
enum ms_rc mstx__texts_read(struct mstx_texts *t, const struct mstx_proc *p,
                            const struct mstx_text_sink *sink, const struct mstx_problems *to,
                            struct ms_err *err) MS_MUST_USE;
void mstx__texts_free(struct mstx_texts *t);
/* Id in the sink; an id without text becomes "(text N)", as it may be younger than strings.seg. */
uint32_t mstx__text_id(struct mstx_texts *t, uint32_t local);
uint32_t mstx__domain_id(struct mstx_texts *t, uint16_t domain);
/* Of keyed texts with one kind, domain and key the last is the newest. */
bool mstx__texts_is_newest(const struct mstx_texts *t, size_t i);
/* The newest entry of that kind, or NULL. */
const struct mstx_keyed *mstx__texts_find(const struct mstx_texts *t, uint16_t kind,
                                          uint16_t domain, uint64_t key);

/* A communicator as a GROUP text describes it. */
struct mstx_comm_known {
    uint64_t uid;
    int32_t size, rank;
    uint32_t listed;
    const char *world; /* listed int32_t, not aligned */
    struct ms_str name;
};
/* Returns false when the text is damaged. */
bool mstx__comm_group_parse(struct ms_str text, struct mstx_comm_known *g);

#endif

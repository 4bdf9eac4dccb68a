/* SPDX-License-Identifier: MIT
 *
 * texts: strings.seg of a process as tables: names of domains, categories, threads and schemas, and
 * the id in the sink for each text id of the process.
 */
#ifndef MSTX_READ_TEXTS_H
#define MSTX_READ_TEXTS_H

#include "mstx/read/processes.h"

/* Receives the texts that events refer to and gives them ids, for instance in the table strings of
 * run.db. */
struct mstx_text_sink {
    void *ctx;
    uint32_t (*intern)(void *ctx, struct ms_str text);  /* its id; 0: empty, or a failure */
    struct ms_str (*get)(const void *ctx, uint32_t id); /* "" for an unknown id */
    void (*fail)(void *ctx, const struct ms_err *err);  /* keeps the first failure */
};

/* A text that is found by its domain and key. */
struct mstx_keyed {
    uint64_t key;
    uint16_t domain;
    uint16_t kind;      /* enum mstx_text_kind */
    uint32_t name;      /* id in the sink */
    struct ms_str text; /* borrowed from the mapped file */
};

typedef MS_VEC(uint32_t) mstx_text_ids;
typedef MS_VEC(struct mstx_keyed) mstx_keyed_texts;

struct mstx_texts {
    const struct mstx_text_sink *to;
    mstx_text_ids id;       /* local id to id in the sink */
    mstx_text_ids domain;   /* domain number to id in the sink */
    mstx_keyed_texts keyed; /* sorted by kind, domain, key */
    mstx_keyed_texts notes, hangs;
    uint32_t process_name; /* id in the sink, 0: not recorded */
    bool names_mpi;        /* some text is the name of an MPI function */
    uint64_t clock_cost;   /* ticks that one reading of the clock took, 0: not recorded */
};

/* Reads all entries of strings.seg into the tables. */
enum ms_rc mstx__texts_read(struct mstx_texts *t, const struct mstx_proc *p,
                            const struct mstx_text_sink *sink, const struct mstx_problems *to,
                            struct ms_err *err) MS_MUST_USE;
void mstx__texts_free(struct mstx_texts *t);
/* Returns the id in the sink of a text id of the process; "(text N)" stands for an id without text,
 * which may be newer than the strings.seg that was read. */
uint32_t mstx__text_id(struct mstx_texts *t, uint32_t local);
uint32_t mstx__domain_id(struct mstx_texts *t, uint16_t domain);
/* Tells whether a keyed text is the newest, thus the last, with its kind, domain and key. */
bool mstx__texts_is_newest(const struct mstx_texts *t, size_t i);
/* Returns the newest entry with this kind, domain and key, NULL when there is none. */
const struct mstx_keyed *mstx__texts_find(const struct mstx_texts *t, uint16_t kind,
                                          uint16_t domain, uint64_t key);

/* A communicator, parsed from a GROUP text. */
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

/* SPDX-License-Identifier: MIT
 *
 * args: what an event carries besides its name (category, colour, payloads
 * laid out by a registered schema) as one JSON object.
 *
 *     {"category": "io", "color": "#ff8000", "payload": 7,
 *      "Communicator ID": 1234, "Message size [bytes]": 4096}
 */
#ifndef MSTX_READ_ARGS_H
#define MSTX_READ_ARGS_H

#include "mstx/format/comm.h"
#include "mstx/read/texts.h"

/* Ids of recently made objects, because the same attributes come again and again. */
struct mstx_args_cache {
    struct mstx_rec_attr attr[64];
    uint16_t domain[64];
    uint32_t id[64];
    struct {
        struct mstx_rec_comm rec; /* without its sequence number */
        uint32_t id;
    } comm[256];
};

/* Returns the id in the sink of the JSON object for the n continuation records of an event in a
 * domain, 0 when the records hold nothing to show. */
uint32_t mstx__args(struct mstx_texts *t, struct mstx_args_cache *cache,
                    const struct mstx_rec *cont, size_t n, uint16_t domain);

/* Returns the id of the object for a test or probe that polled more than once. */
uint32_t mstx__args_asked(struct mstx_texts *t, const struct mstx_rec_comm *c, uint32_t polls);

#endif

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

/* Attributes repeat: the last ones are remembered. */
struct mstx_args_cache {
    struct mstx_rec_attr attr[64];
    uint16_t domain[64];
    uint32_t id[64];
    struct {
        struct mstx_rec_comm rec; /* without its sequence number */
        uint32_t id;
    } comm[256];
};

/* Id in the sink of the object for n continuation records of an event in that domain; 0 when they
 * hold nothing to show. */
uint32_t mstx__args(struct mstx_texts *t, struct mstx_args_cache *cache,
                    const struct mstx_rec *cont, size_t n, uint16_t domain);

/* The same for a call that asked more than once. */
uint32_t mstx__args_asked(struct mstx_texts *t, const struct mstx_rec_comm *c, uint32_t polls);

#endif

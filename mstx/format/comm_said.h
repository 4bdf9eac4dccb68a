/* SPDX-License-Identifier: MIT
 *
 * comm_said: the text that frameworks of Ascend give to a range of the domain communication,
 * read back into what a hook would have recorded of the call.
 *
 *     {\"opName\": \"HcclAllreduce\",\"groupName\": \"g\",\"dataType\": \"fp32\",...}
 *     comm:HcclAllreduce,g,fp32,1048576                                  the older form
 *
 * Our own texts for torch.distributed also say rootRank, reduceOp, groupSize and groupRanks ("0 1 2").
 */
#ifndef MSTX_FORMAT_COMM_SAID_H
#define MSTX_FORMAT_COMM_SAID_H

#include "mstx/format/comm.h"

#include "probe/base/str.h"

enum { MSTX_SAID_NAME = 128, MSTX_SAID_RANKS = 128 };
struct mstx_comm_said {
    struct mstx_rec_comm rec; /* group and seq are not told: 0 */
    uint64_t stream;
    char group[MSTX_SAID_NAME], op[MSTX_SAID_NAME];
    int32_t size;                   /* of the group; -1: not said */
    int32_t world[MSTX_SAID_RANKS]; /* the ranks of its members, so many as listed */
    uint32_t listed;
};
/* Could it be such a text? Cheap, for all texts of the domain. */
static inline bool mstx__comm_is_said(struct ms_str text)
{
    return text.n > 5 && (text.p[0] == '{' || memcmp(text.p, "comm:", 5) == 0);
}
/* false: it is another text. Members may come in any order; what is no call that we know of is
 * taken as one of which nothing but its name is known. */
bool mstx__comm_said(struct ms_str text, struct mstx_comm_said *out);

/* Numbers of comm.h from their words, ours or the official ones: MSTX_COMM_NONE, MSTX_TYPE_NA. */
uint8_t mstx__comm_op_find(struct ms_str name);
uint8_t mstx__comm_type_find(struct ms_str text);
/* "[0, 1]" as ranks, at most so many; how many there are. */
uint32_t mstx__comm_ranks(struct ms_str text, int32_t *rank, uint32_t most);

#endif

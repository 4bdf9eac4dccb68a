/* SPDX-License-Identifier: MIT
 *
 * comm_marked: reads the text that frameworks of Ascend give to a range of the domain communication
 * into the record that a hook would have written for the call.
 *
 *     {\"opName\": \"HcclAllreduce\",\"groupName\": \"g\",\"dataType\": \"fp32\",...}
 *     comm:HcclAllreduce,g,fp32,1048576                                  the older form
 *
 * Our own texts for torch.distributed also have rootRank, reduceOp, groupSize and groupRanks
 * ("0 1 2").
 */
#ifndef MSTX_FORMAT_COMM_MARKED_H
#define MSTX_FORMAT_COMM_MARKED_H

#include "mstx/format/comm.h"

#include "probe/base/str.h"

enum { MSTX_MARKED_NAME = 128, MSTX_MARKED_RANKS = 128 };
struct mstx_comm_marked {
    struct mstx_rec_comm rec; /* group and seq are 0: not in the text */
    uint64_t stream;
    char group[MSTX_MARKED_NAME], op[MSTX_MARKED_NAME];
    int32_t size;                     /* size of the group; -1: not in the text */
    int32_t world[MSTX_MARKED_RANKS]; /* world ranks of the first `listed` members */
    uint32_t listed;
};
/* Tells quickly whether a text of the domain may have this form. */
static inline bool mstx__comm_is_marked(struct ms_str text)
{
    return text.n > 5 && (text.p[0] == '{' || memcmp(text.p, "comm:", 5) == 0);
}
/* Reads a text; false: the text has another form. Members may come in any order; an unknown
 * operation becomes a call of which only the name is known. */
bool mstx__comm_parse_marked(struct ms_str text, struct mstx_comm_marked *out);

/* Find numbers of comm.h by name, ours or the official one; unknown: MSTX_COMM_NONE,
 * MSTX_TYPE_NA. */
uint8_t mstx__comm_op_find(struct ms_str name);
uint8_t mstx__comm_type_find(struct ms_str text);
/* Parses ranks such as "[0, 1]", at most `most`; returns their count. */
uint32_t mstx__comm_ranks(struct ms_str text, int32_t *rank, uint32_t most);

#endif

/* SPDX-License-Identifier: MIT
 *
 * rt_comm_text: names of operations, types and reductions, and the message that frameworks of
 * Ascend give to a communication range.  Used by the recorder and by readers of captures.
 */
#include "mstx/comm.h"

#include <inttypes.h>
#include <stdio.h>

static const struct {
    const char *text, *official;
    uint8_t class;
} ops[] = {
#define ROW(name, text, official, class) {text, official, MSTX_CLASS_##class},
    MSTX_COMM_OPS(ROW)
#undef ROW
};

const char *mstx_comm_op_text(unsigned op)
{
    return op < MSTX_COMM_OP_COUNT ? ops[op].text : "na";
}

const char *mstx_comm_op_official(unsigned op)
{
    return op < MSTX_COMM_OP_COUNT ? ops[op].official : "na";
}

enum mstx_comm_class mstx_comm_op_class(unsigned op)
{
    return op < MSTX_COMM_OP_COUNT ? ops[op].class : MSTX_CLASS_ADMIN;
}

const char *mstx_comm_type_text(unsigned type)
{
    switch (type) {
#define CASE(name, number, text, bytes)                                                            \
    case number:                                                                                   \
        return text;
        MSTX_COMM_TYPES(CASE)
#undef CASE
    default:
        return "na";
    }
}

uint32_t mstx_comm_type_bytes(unsigned type)
{
    switch (type) {
#define CASE(name, number, text, bytes)                                                            \
    case number:                                                                                   \
        return bytes;
        MSTX_COMM_TYPES(CASE)
#undef CASE
    default:
        return 0;
    }
}

const char *mstx_comm_reduce_text(unsigned reduce)
{
    switch (reduce) {
#define CASE(name, number, text)                                                                   \
    case number:                                                                                   \
        return text;
        MSTX_COMM_REDUCES(CASE)
#undef CASE
    default:
        return "na";
    }
}

const char *mstx_comm_lib_text(unsigned lib)
{
    static const char *const text[] = {"other", "mpi", "nccl", "rccl", "hccl", "torch"};
    return lib < MSTX_LIB_COUNT ? text[lib] : "other";
}

/* Official readers know the types of HCCL alone. */
static const char *official_type(unsigned type)
{
    return type <= MSTX_TYPE_FP8E8M0 ? mstx_comm_type_text(type) : "na";
}

/* Quotes and backslashes of a name would end the text early. */
static void copy_name(char out[128], const char *name)
{
    size_t n = 0;
    for (; *name != '\0' && n < 127; name++)
        out[n++] = *name == '"' || *name == '\\' || (unsigned char)*name < 0x20 ? '_' : *name;
    out[n] = '\0';
}

size_t mstx_comm_message(char *out, size_t cap, const struct mstx_rec_comm *c, const char *group,
                         uint64_t stream)
{
    char name[128], peer[48] = "";
    copy_name(name, group);
    if (c->op == MSTX_COMM_SEND && c->peer >= 0)
        snprintf(peer, sizeof peer, "\\\"destRank\\\": \\\"%" PRId32 "\\\",", c->peer);
    else if (c->op == MSTX_COMM_RECV && c->peer >= 0)
        snprintf(peer, sizeof peer, "\\\"srcRank\\\": \\\"%" PRId32 "\\\",", c->peer);
    int n = snprintf(out, cap,
                     "{\\\"count\\\": \\\"%" PRIu64 "\\\",\\\"dataType\\\": \\\"%s\\\",%s"
                     "\\\"groupName\\\": \\\"%s\\\",\\\"opName\\\": \\\"%s\\\","
                     "\\\"streamId\\\": \\\"%" PRIu64 "\\\"}",
                     c->count, official_type(c->dtype), peer, name, mstx_comm_op_official(c->op),
                     stream);
    return n < 0 ? 0 : (size_t)n < cap ? (size_t)n : cap - 1;
}

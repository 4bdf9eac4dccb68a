/* SPDX-License-Identifier: MIT
 *
 * comm: communication calls: their records in a capture, and their names.
 *
 * A call is a range of the domain "communication".  Its CALL or BEGIN is followed by one COMM
 * record, and by a COMM_PART where COMM is not enough; its END has a COMM_PART too, when the
 * received data turned out to differ from the description at the start.
 *
 *        0        8       12      16     20    21     22   23  24  25   26       28      32
 *   COMM  │ count  │ group │ seq   │ peer │type │reduce│type│flg│op│lib│tag_code│ elem   │
 *   PART  │ sent   │ received      │ peer │ ..        │type│flg│ tag       │ polls  │
 *
 *   group  number of a GROUP entry of strings.seg; 0: an unknown communicator
 *   seq    number of earlier calls of the same class by the process on the communicator: with
 *          the communicator's identity, seq identifies one collective on all its ranks
 *   peer   root, destination or source as the call names it; -1: none
 *   elem   bytes of one element; 0: an unknown type
 *   tag_code  not 0: COMM implies the PART, see mstx_comm_implied
 */
#ifndef MSTX_FORMAT_COMM_H
#define MSTX_FORMAT_COMM_H

#include "mstx/format/capture.h"

#include <stdbool.h>

#define MSTX_COMM_DOMAIN "communication"

/* Classes of operations. The first MSTX_SEQUENCES classes have a sequence each on a communicator;
 * calls of the others have none. */
enum mstx_comm_class {
    MSTX_CLASS_COLL,   /* all ranks of the communicator take part */
    MSTX_CLASS_P2P,    /* two ranks */
    MSTX_CLASS_WAIT,   /* waits for, polls or handles requests */
    MSTX_CLASS_ADMIN,  /* begins, ends, makes and frees communicators */
    MSTX_CLASS_ONESIDE /* puts, gets and their synchronisation */
};
#define MSTX_SEQUENCES 2

/* X(name in C, name in text, official name, class). The numbers are stored in captures: add at the
 * end. */
#define MSTX_COMM_OPS(X)                                                                           \
    X(NONE, "none", "na", ADMIN)                                                                   \
    X(BARRIER, "Barrier", "HcclBarrier", COLL)                                                     \
    X(BROADCAST, "Broadcast", "HcclBroadcast", COLL)                                               \
    X(REDUCE, "Reduce", "HcclReduce", COLL)                                                        \
    X(ALLREDUCE, "AllReduce", "HcclAllreduce", COLL)                                               \
    X(REDUCE_SCATTER, "ReduceScatter", "HcclReduceScatter", COLL)                                  \
    X(REDUCE_SCATTER_V, "ReduceScatterV", "HcclReduceScatterV", COLL)                              \
    X(ALLGATHER, "AllGather", "HcclAllGather", COLL)                                               \
    X(ALLGATHER_V, "AllGatherV", "HcclAllGatherV", COLL)                                           \
    X(GATHER, "Gather", "HcclGather", COLL)                                                        \
    X(GATHER_V, "GatherV", "HcclGatherV", COLL)                                                    \
    X(SCATTER, "Scatter", "HcclScatter", COLL)                                                     \
    X(SCATTER_V, "ScatterV", "HcclScatterV", COLL)                                                 \
    X(ALLTOALL, "AlltoAll", "HcclAlltoAll", COLL)                                                  \
    X(ALLTOALL_V, "AlltoAllV", "HcclAlltoAllV", COLL)                                              \
    X(ALLTOALL_W, "AlltoAllW", "HcclAlltoAllW", COLL)                                              \
    X(SCAN, "Scan", "HcclScan", COLL)                                                              \
    X(EXSCAN, "Exscan", "HcclExscan", COLL)                                                        \
    X(NEIGHBOR_ALLGATHER, "NeighborAllGather", "HcclNeighborAllGather", COLL)                      \
    X(NEIGHBOR_ALLGATHER_V, "NeighborAllGatherV", "HcclNeighborAllGatherV", COLL)                  \
    X(NEIGHBOR_ALLTOALL, "NeighborAlltoAll", "HcclNeighborAlltoAll", COLL)                         \
    X(NEIGHBOR_ALLTOALL_V, "NeighborAlltoAllV", "HcclNeighborAlltoAllV", COLL)                     \
    X(NEIGHBOR_ALLTOALL_W, "NeighborAlltoAllW", "HcclNeighborAlltoAllW", COLL)                     \
    X(SEND, "Send", "HcclSend", P2P)                                                               \
    X(RECV, "Recv", "HcclRecv", P2P)                                                               \
    X(SENDRECV, "SendRecv", "HcclSendRecv", P2P)                                                   \
    X(BATCH_SENDRECV, "BatchSendRecv", "HcclBatchSendRecv", P2P)                                   \
    X(PROBE, "Probe", "HcclProbe", WAIT)                                                           \
    X(WAIT, "Wait", "HcclWait", WAIT)                                                              \
    X(TEST, "Test", "HcclTest", WAIT)                                                              \
    X(REQUEST, "Request", "HcclRequest", WAIT)                                                     \
    X(LIFE, "Life", "HcclLife", ADMIN)                                                             \
    X(COMMUNICATOR, "Communicator", "HcclCommunicator", ADMIN)                                     \
    X(GROUP_CALL, "GroupCall", "HcclGroupCall", ADMIN)                                             \
    X(PUT, "Put", "HcclPut", ONESIDE)                                                              \
    X(GET, "Get", "HcclGet", ONESIDE)                                                              \
    X(ACCUMULATE, "Accumulate", "HcclAccumulate", ONESIDE)                                         \
    X(WINDOW, "Window", "HcclWindow", ONESIDE)
#define MSTX_COMM_ENUM(name, text, official, class) MSTX_COMM_##name,
enum mstx_comm_op { MSTX_COMM_OPS(MSTX_COMM_ENUM) MSTX_COMM_OP_COUNT };
/* The class of an operation as a compile-time constant. */
#define MSTX_COMM_CLASS_ENUM(name, text, official, class) MSTX_CLASS_OF_##name = MSTX_CLASS_##class,
enum { MSTX_COMM_OPS(MSTX_COMM_CLASS_ENUM) };

/* The sequence of an operation, MSTX_SEQUENCES if it has none. Computed by ranges, since a table
 * would need one more cache line in every call. */
#define MSTX_COMM_SEQUENCE(op)                                                                     \
    ((op) < MSTX_COMM_BARRIER || (op) > MSTX_COMM_BATCH_SENDRECV ? MSTX_SEQUENCES                  \
     : (op) < MSTX_COMM_SEND                                     ? MSTX_CLASS_COLL                 \
                                                                 : MSTX_CLASS_P2P)
#define MSTX_COMM_SEQUENCE_CHECK(name, text, official, class)                                      \
    static_assert(MSTX_CLASS_##class < MSTX_SEQUENCES                                              \
                      ? MSTX_COMM_SEQUENCE(MSTX_COMM_##name) == MSTX_CLASS_##class                 \
                      : MSTX_COMM_SEQUENCE(MSTX_COMM_##name) == MSTX_SEQUENCES,                    \
                  "the operations with a sequence stand together");
MSTX_COMM_OPS(MSTX_COMM_SEQUENCE_CHECK)

/* Numbers and names are those of HCCL where HCCL has the type, so that an export needs no
 * translation. */
#define MSTX_COMM_TYPES(X)                                                                         \
    X(INT8, 0, "int8", 1)                                                                          \
    X(INT16, 1, "int16", 2)                                                                        \
    X(INT32, 2, "int32", 4)                                                                        \
    X(FP16, 3, "fp16", 2)                                                                          \
    X(FP32, 4, "fp32", 4)                                                                          \
    X(INT64, 5, "int64", 8)                                                                        \
    X(UINT64, 6, "uint64", 8)                                                                      \
    X(UINT8, 7, "uint8", 1)                                                                        \
    X(UINT16, 8, "uint16", 2)                                                                      \
    X(UINT32, 9, "uint32", 4)                                                                      \
    X(FP64, 10, "fp64", 8)                                                                         \
    X(BFP16, 11, "bfp16", 2)                                                                       \
    X(INT128, 12, "int128", 16)                                                                    \
    X(HIF8, 14, "hif8", 1)                                                                         \
    X(FP8E4M3, 15, "fp8e4m3", 1)                                                                   \
    X(FP8E5M2, 16, "fp8e5m2", 1)                                                                   \
    X(FP8E8M0, 17, "fp8e8m0", 1)                                                                   \
    X(FP128, 64, "fp128", 16)                                                                      \
    X(COMPLEX64, 65, "complex64", 8)                                                               \
    X(COMPLEX128, 66, "complex128", 16)                                                            \
    X(BOOL, 67, "bool", 1)                                                                         \
    X(PACKED, 68, "packed", 1)                                                                     \
    X(PAIR, 69, "pair", 0)                                                                         \
    X(DERIVED, 70, "derived", 0)                                                                   \
    X(NA, 255, "na", 0)
#define MSTX_TYPE_ENUM(name, number, text, bytes) MSTX_TYPE_##name = number,
enum mstx_comm_type { MSTX_COMM_TYPES(MSTX_TYPE_ENUM) };

#define MSTX_COMM_REDUCES(X)                                                                       \
    X(SUM, 0, "sum")                                                                               \
    X(PROD, 1, "prod")                                                                             \
    X(MAX, 2, "max")                                                                               \
    X(MIN, 3, "min")                                                                               \
    X(AVG, 4, "avg")                                                                               \
    X(LAND, 5, "land")                                                                             \
    X(BAND, 6, "band")                                                                             \
    X(LOR, 7, "lor")                                                                               \
    X(BOR, 8, "bor")                                                                               \
    X(LXOR, 9, "lxor")                                                                             \
    X(BXOR, 10, "bxor")                                                                            \
    X(MAXLOC, 11, "maxloc")                                                                        \
    X(MINLOC, 12, "minloc")                                                                        \
    X(REPLACE, 13, "replace")                                                                      \
    X(USER, 254, "user")                                                                           \
    X(NONE, 255, "na")
#define MSTX_REDUCE_ENUM(name, number, text) MSTX_REDUCE_##name = number,
enum mstx_comm_reduce { MSTX_COMM_REDUCES(MSTX_REDUCE_ENUM) };

enum mstx_comm_lib {
    MSTX_LIB_OTHER,
    MSTX_LIB_MPI,
    MSTX_LIB_NCCL,
    MSTX_LIB_RCCL,
    MSTX_LIB_HCCL,
    MSTX_LIB_TORCH, /* torch.distributed, whatever it uses below */
    MSTX_LIB_COUNT
};

/* Bits of flags of a COMM record, beside MSTX_F_MORE and MSTX_F_CAPTURED. */
enum {
    MSTX_CF_ASYNC = 2,      /* the call only begins the operation */
    MSTX_CF_PERSISTENT = 4, /* of a prepared operation that is started many times */
    MSTX_CF_IN_PLACE = 8,
    MSTX_CF_GROUPED = 16, /* issued between group start and group end */
    MSTX_CF_ANY = 32,     /* any source */
};

struct mstx_rec_comm {
    uint64_t count;
    uint32_t group, seq;
    int32_t peer;
    uint8_t dtype, reduce; /* enum mstx_comm_type, enum mstx_comm_reduce */
    uint8_t type, flags;
    uint8_t op, lib; /* enum mstx_comm_op, enum mstx_comm_lib */
    /* 0: a PART follows or none is needed; else the tag, -1 for none, + MSTX_TAG_CODE. */
    uint16_t tag_code;
    uint32_t elem;
};
enum { MSTX_TAG_CODE = 2 };
struct mstx_rec_comm_part {
    uint64_t sent, received; /* bytes */
    int32_t peer;            /* the other peer of an exchange; at an END: the actual sender */
    uint16_t zero;
    uint8_t type, flags;
    int32_t tag;
    uint32_t polls; /* at an END: number of polls in a row, the last one with or without success */
};
MSTX_CHECK_REC(mstx_rec_comm);
MSTX_CHECK_REC(mstx_rec_comm_part);
static_assert(offsetof(struct mstx_rec_comm, peer) == 16, "comm");
static_assert(offsetof(struct mstx_rec_comm, op) == 24, "comm");
static_assert(offsetof(struct mstx_rec_comm, tag_code) == 26, "comm");
static_assert(offsetof(struct mstx_rec_comm, elem) == 28, "comm");
static_assert(offsetof(struct mstx_rec_comm_part, tag) == 24, "part");
static_assert(offsetof(struct mstx_rec_comm_part, polls) == 28, "part");

/* Returns the PART implied by a call that names one peer: its bytes go one way. */
static inline struct mstx_rec_comm_part mstx_comm_implied(const struct mstx_rec_comm *c)
{
    const uint64_t bytes = c->count * c->elem;
    const bool gives = c->op == MSTX_COMM_SEND || c->op == MSTX_COMM_PUT;
    return (struct mstx_rec_comm_part){.sent = gives ? bytes : 0,
                                       .received = gives ? 0 : bytes,
                                       .peer = -1,
                                       .type = MSTX_REC_COMM_PART,
                                       .tag = c->tag_code - MSTX_TAG_CODE};
}

/* A GROUP text: this struct, `listed` world ranks as int32_t, then the name up to the end. The key
 * of the entry is the number in COMM records; the newest entry of a number counts. */
struct mstx_comm_group {
    /* The same on all ranks of the communicator, different for every other communicator. */
    uint64_t uid;
    int32_t size; /* ranks in it; -1: not known */
    int32_t rank; /* rank of this process in it; -1: not known */
    uint32_t listed;
    uint32_t zero;
};
static_assert(sizeof(struct mstx_comm_group) == 24, "group");

/* A HANG text: this struct, then the names of the function and of the communicator (on_device: of
 * the stream), then, in the first of several calls that hang together, the stacks of all threads as
 * text. */
struct mstx_hang {
    uint64_t uid;      /* of the communicator; 0: not known */
    int64_t waited_ns; /* waiting time when the hang was noticed */
    uint32_t seq, tid;
    int32_t size;          /* ranks of the communicator, -1: not known */
    uint8_t op, on_device; /* enum mstx_comm_op; 1: the device does not reach it */
    uint16_t name_len, group_len;
    uint16_t zero;
    int32_t peer_plus_1; /* peer that it waits for, world rank + 1; 0: not known, or several */
};
static_assert(sizeof(struct mstx_hang) == 40, "hang");

/* ---- names ------------------------------------------------------------------------------ */

/* Return names of an operation. A number from a capture may be invalid; its name is "na". */
const char *mstx_comm_op_text(unsigned op);
const char *mstx_comm_op_official(unsigned op);
/* Tells whether calls of an operation may be polls, which move no data and are repeated. */
bool mstx_comm_op_asks(unsigned op);
#define MSTX_COMM_CLASS_ENTRY(name, text, official, class) [MSTX_COMM_##name] = MSTX_CLASS_##class,
static inline enum mstx_comm_class mstx_comm_op_class(unsigned op)
{
    static const uint8_t classes[] = {MSTX_COMM_OPS(MSTX_COMM_CLASS_ENTRY)};
    return op < MSTX_COMM_OP_COUNT ? (enum mstx_comm_class)classes[op] : MSTX_CLASS_ADMIN;
}
/* Tells whether an operation has a single peer. */
bool mstx_comm_op_has_peer(unsigned op);
const char *mstx_comm_type_text(unsigned type);
uint32_t mstx_comm_type_bytes(unsigned type); /* 0: not fixed */
const char *mstx_comm_reduce_text(unsigned reduce);
const char *mstx_comm_lib_text(unsigned lib);

/* Finds an operation by its name, ours or the official one, ignoring case; MSTX_COMM_NONE:
 * unknown. */
uint8_t mstx_comm_op_find(const char *name, size_t n);

/* Writes the official message text of a call, backslashes included, cut at cap. Returns its
 * length. */
size_t mstx_comm_message(char *out, size_t cap, const struct mstx_rec_comm *c, const char *group,
                         uint64_t stream);
/* Description of a call for messages. */
struct mstx_comm_description {
    uint8_t op;
    int32_t size, peer; /* size of the group; peer as a world rank; -1: not known */
    uint32_t seq;
    char name[128], group[96];
};
/* Reads a message text in either form; any other text becomes the name. seq is not part of a
 * text. */
void mstx_comm_message_read(const char *text, struct mstx_comm_description *out);
/* Writes a phrase such as "MPI_Recv (call 3) from rank 2 of MPI_COMM_WORLD"; MSTX_COMM_SPOKEN is
 * enough for all of it. */
enum { MSTX_COMM_SPOKEN = 320 };
void mstx_comm_speak(char out[MSTX_COMM_SPOKEN], const struct mstx_comm_description *c);

#endif

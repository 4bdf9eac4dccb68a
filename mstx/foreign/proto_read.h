/* SPDX-License-Identifier: MIT
 *
 * proto_read: a pull reader for the fields of one message of Protocol Buffers.
 *
 *     struct mstx_proto m = mstx__proto(bytes);
 *     while (mstx__proto_next(&m))
 *         switch (m.field) ...
 *     if (m.is_bad) ...
 */
#ifndef MSTX_FOREIGN_PROTO_READ_H
#define MSTX_FOREIGN_PROTO_READ_H

#include "probe/base/str.h"

enum mstx_proto_wire {
    MSTX_PROTO_VARINT,
    MSTX_PROTO_FIXED64,
    MSTX_PROTO_BYTES,
    MSTX_PROTO_FIXED32 = 5
};

struct mstx_proto {
    const char *at, *end;
    uint32_t field;
    enum mstx_proto_wire wire;
    uint64_t number;     /* of a field that is no bytes */
    struct ms_str bytes; /* of a field that is; empty for others */
    bool is_bad;         /* the message is cut off or no message */
};

struct mstx_proto mstx__proto(struct ms_str message);
/* Reads the next field; false at the end and at damage. */
bool mstx__proto_next(struct mstx_proto *m);

#endif

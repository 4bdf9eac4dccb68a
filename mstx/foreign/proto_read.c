/* SPDX-License-Identifier: MIT
 *
 * proto_read: see the header.
 */
#include "mstx/foreign/proto_read.h"

#include <string.h>

struct mstx_proto mstx__proto(struct ms_str message)
{
    return (struct mstx_proto){.at = message.p, .end = message.p + message.n};
}

static bool fail(struct mstx_proto *m)
{
    m->is_bad = true;
    m->at = m->end;
    return false;
}

static bool read_varint(struct mstx_proto *m, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && m->at < m->end; shift += 7) {
        const uint8_t byte = (uint8_t)*m->at++;
        *out |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    return fail(m);
}

static bool read_fixed(struct mstx_proto *m, size_t size)
{
    if ((size_t)(m->end - m->at) < size)
        return fail(m);
    m->number = 0;
    for (size_t i = 0; i < size; i++)
        m->number |= (uint64_t)(uint8_t)m->at[i] << 8 * i;
    m->at += size;
    return true;
}

bool mstx__proto_next(struct mstx_proto *m)
{
    uint64_t tag, n;
    if (m->at >= m->end || !read_varint(m, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX >> 3)
        return m->at < m->end && !m->is_bad ? fail(m) : false;
    m->field = (uint32_t)(tag >> 3);
    m->wire = (enum mstx_proto_wire)(tag & 7);
    m->bytes = MS_STR("");
    switch (m->wire) {
    case MSTX_PROTO_VARINT:
        return read_varint(m, &m->number);
    case MSTX_PROTO_FIXED64:
        return read_fixed(m, 8);
    case MSTX_PROTO_FIXED32:
        return read_fixed(m, 4);
    case MSTX_PROTO_BYTES:
        if (!read_varint(m, &n) || n > (size_t)(m->end - m->at) || n > UINT32_MAX)
            return fail(m);
        m->number = 0;
        m->bytes = (struct ms_str){m->at, (uint32_t)n};
        m->at += n;
        return true;
    default:
        return fail(m);
    }
}

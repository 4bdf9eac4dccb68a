/* SPDX-License-Identifier: MIT
 *
 * le: reads little-endian numbers at any address.
 */
#ifndef PROBE_BASE_LE_H
#define PROBE_BASE_LE_H

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files are used where they lie, in little-endian order"
#endif

static inline uint16_t probe__le16(const char *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint32_t probe__le32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint64_t probe__le64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * varint: numbers of variable length (LEB128) in the packed blobs of run.db.
 */
#ifndef MSTX_RUNDB_VARINT_H
#define MSTX_RUNDB_VARINT_H

#include "probe/base/assert.h"
#include "probe/base/str.h"

#include <endian.h>
#include <string.h>

enum { MSTX_VARINT_MAX = 10 }; /* bytes */

static inline uint8_t *mstx_put_varint(uint8_t *at, uint64_t v)
{
    while (v >= 0x80) {
        *at++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *at++ = (uint8_t)v;
    return at;
}

static inline void mstx_buf_varint(struct ms_buf *b, uint64_t v)
{
    uint8_t varint[MSTX_VARINT_MAX];
    ms_buf_put(b, varint, (size_t)(mstx_put_varint(varint, v) - varint));
}

/* Spreads 56 bits over the low seven bits of eight bytes; the inverse of mstx_close_gaps. */
static inline uint64_t mstx_open_gaps(uint64_t w)
{
    w = (w & 0x000000000FFFFFFFu) | (w & 0x00FFFFFFF0000000u) << 4;
    w = (w & 0x00003FFF00003FFFu) | (w & 0x0FFFC0000FFFC000u) << 2;
    return (w & 0x007F007F007F007Fu) | (w & 0x3F803F803F803F80u) << 1;
}

/* Writes a varint where eight bytes may be overwritten whatever its length.  Branch-free for two to
 * eight bytes: times take two to four, which the branch predictor cannot guess. */
static inline uint8_t *mstx_put_varint_fast(uint8_t *at, uint64_t v)
{
    if (v < 0x80) {
        *at = (uint8_t)v;
        return at + 1;
    }
    if (v >> 56 != 0)
        return mstx_put_varint(at, v);
    const unsigned bytes = (70 - (unsigned)__builtin_clzll(v)) / 7;
    ms_assert(bytes >= 2 && bytes <= 8);
    const uint64_t more = 0x8080808080808080u & (((uint64_t)1 << (8 * (bytes - 1))) - 1);
    const uint64_t w = htole64(mstx_open_gaps(v) | more);
    memcpy(at, &w, sizeof w);
    return at + bytes;
}

/* Maps small positive and negative differences to small unsigned numbers. */
static inline uint64_t mstx_zigzag(uint64_t difference)
{
    return (difference << 1) ^ (0 - (difference >> 63));
}

static inline uint64_t mstx_unzigzag(uint64_t v)
{
    return (v >> 1) ^ (0 - (v & 1));
}

/* A reader of bytes.  A failure sets bad; later reads return zeros and stay within the bytes. */
struct mstx_bytes {
    const uint8_t *at, *end;
    bool bad;
};

static inline struct mstx_bytes mstx_bytes_of(struct ms_str blob)
{
    const uint8_t *p = (const uint8_t *)blob.p;
    return (struct mstx_bytes){.at = p, .end = p + blob.n};
}

static inline uint64_t mstx_get_varint_slowly(struct mstx_bytes *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 7 * MSTX_VARINT_MAX && r->at < r->end; shift += 7) {
        uint8_t byte = *r->at++;
        if (shift == 63 && byte > 1)
            break;
        v |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return v;
    }
    r->bad = true;
    r->at = r->end;
    return 0;
}

/* Packs the low seven bits of eight bytes into 56 bits. */
static inline uint64_t mstx_close_gaps(uint64_t w)
{
    w = (w & 0x007F007F007F007Fu) | (w & 0x7F007F007F007F00u) >> 1;
    w = (w & 0x00003FFF00003FFFu) | (w & 0x3FFF00003FFF0000u) >> 2;
    return (w & 0x000000000FFFFFFFu) | (w & 0x0FFFFFFF00000000u) >> 4;
}

/* Reads a varint.  Distances take two to four bytes, which the branch predictor cannot guess, so up
 * to eight bytes are decoded at once without a branch. */
static inline uint64_t mstx_get_varint(struct mstx_bytes *r)
{
    if (r->end - r->at >= 8) {
        uint64_t w;
        memcpy(&w, r->at, sizeof w);
        w = le64toh(w);
        uint64_t last = ~w & 0x8080808080808080u;
        if (last != 0) {
            r->at += (__builtin_ctzll(last) >> 3) + 1;
            return mstx_close_gaps(w & (last ^ (last - 1)));
        }
    }
    return mstx_get_varint_slowly(r);
}

static inline uint64_t mstx_get_below(struct mstx_bytes *r, uint64_t limit)
{
    uint64_t v = mstx_get_varint(r);
    r->bad |= v >= limit;
    return v < limit ? v : 0;
}

static inline uint8_t mstx_get_byte(struct mstx_bytes *r)
{
    if (r->at == r->end) {
        r->bad = true;
        return 0;
    }
    return *r->at++;
}

/* Skips n varints by counting their last bytes, the only ones below 0x80. */
static inline void mstx_skip_varints(struct mstx_bytes *r, uint32_t n)
{
    while (n >= 8 && r->end - r->at >= 8) {
        uint64_t w;
        memcpy(&w, r->at, sizeof w);
        n -= (uint32_t)__builtin_popcountll(~w & 0x8080808080808080u);
        r->at += 8;
    }
    for (; n > 0 && r->at < r->end; r->at++)
        n -= *r->at < 0x80;
    r->bad |= n > 0;
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * scan: finds the end of runs of bytes in JSON text and csv cells, 16 bytes at a time where the
 * processor can. Nothing at or past `end` is read; the last bytes of a text are scanned one by one.
 */
#ifndef PROBE_BASE_SCAN_H
#define PROBE_BASE_SCAN_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

static inline bool ms_is_space(char c)
{
    return (unsigned char)c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t');
}
/* Tells whether a byte of a JSON string needs no decoding and no check: printable ASCII except the
 * quote and the backslash. */
static inline bool ms_is_plain(char c)
{
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/* Tells whether a byte needs no quotes in a csv cell and is not the semicolon that separates values
 * of folded rows. */
static inline bool ms_is_bare(char c)
{
    return (unsigned char)c >= ' ' && c != ',' && c != '"' && c != ';';
}
/* Tells whether a byte neither opens nor closes anything in JSON: no bracket, brace or quote. */
static inline bool ms_is_flat(char c)
{
    return (c | 0x20) != '{' && (c | 0x20) != '}' && c != '"';
}

/* Each version defines a block of 16 bytes and, for a block, a mask with MS_SCAN_BITS bits for each
 * byte, set where the byte ends the run. */
#if defined(__SSE2__)
enum { MS_SCAN_BITS = 1 };
typedef __m128i ms_scan_block;

static inline ms_scan_block ms_scan_load(const char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}
static inline uint64_t ms_scan_not_plain(ms_scan_block x)
{
    /* After adding one, DEL and all bytes above it are negative as signed bytes, so one comparison
     * with ' ' + 1 finds them and the control characters. */
    __m128i next = _mm_add_epi8(x, _mm_set1_epi8(1));
    __m128i stop = _mm_cmplt_epi8(next, _mm_set1_epi8(' ' + 1));
    stop = _mm_or_si128(stop, _mm_cmpeq_epi8(x, _mm_set1_epi8('"')));
    stop = _mm_or_si128(stop, _mm_cmpeq_epi8(x, _mm_set1_epi8('\\')));
    return (uint64_t)(uint32_t)_mm_movemask_epi8(stop);
}
static inline uint64_t ms_scan_not_bare(ms_scan_block x)
{
    __m128i stop = _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(' ' - 1)), x);
    stop = _mm_or_si128(stop, _mm_cmpeq_epi8(x, _mm_set1_epi8(',')));
    stop = _mm_or_si128(stop, _mm_cmpeq_epi8(x, _mm_set1_epi8('"')));
    stop = _mm_or_si128(stop, _mm_cmpeq_epi8(x, _mm_set1_epi8(';')));
    return (uint64_t)(uint32_t)_mm_movemask_epi8(stop);
}
static inline uint64_t ms_scan_not_flat(ms_scan_block x)
{
    __m128i curly = _mm_or_si128(x, _mm_set1_epi8(0x20)); /* maps [ ] to { } */
    __m128i stop = _mm_cmpeq_epi8(x, _mm_set1_epi8('"'));
    stop = _mm_or_si128(stop, _mm_cmpeq_epi8(curly, _mm_set1_epi8('{')));
    stop = _mm_or_si128(stop, _mm_cmpeq_epi8(curly, _mm_set1_epi8('}')));
    return (uint64_t)(uint32_t)_mm_movemask_epi8(stop);
}
static inline uint64_t ms_scan_not_blank(ms_scan_block x)
{
    return (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_set1_epi8(' '))) ^ 0xFFFF;
}
#elif defined(__aarch64__)
enum { MS_SCAN_BITS = 4 };
typedef uint8x16_t ms_scan_block;

static inline ms_scan_block ms_scan_load(const char *p)
{
    return vld1q_u8((const uint8_t *)p);
}
/* NEON has no mask of sign bits; narrowing leaves four bits of each byte. */
static inline uint64_t ms_scan_mask(uint8x16_t stop)
{
    uint8x8_t narrow = vshrn_n_u16(vreinterpretq_u16_u8(stop), 4);
    return vget_lane_u64(vreinterpret_u64_u8(narrow), 0);
}
static inline uint64_t ms_scan_not_plain(ms_scan_block x)
{
    int8x16_t next = vreinterpretq_s8_u8(vaddq_u8(x, vdupq_n_u8(1))); /* as above */
    uint8x16_t stop = vcltq_s8(next, vdupq_n_s8(' ' + 1));
    stop = vorrq_u8(stop, vceqq_u8(x, vdupq_n_u8('"')));
    stop = vorrq_u8(stop, vceqq_u8(x, vdupq_n_u8('\\')));
    return ms_scan_mask(stop);
}
static inline uint64_t ms_scan_not_bare(ms_scan_block x)
{
    uint8x16_t stop = vcltq_u8(x, vdupq_n_u8(' '));
    stop = vorrq_u8(stop, vceqq_u8(x, vdupq_n_u8(',')));
    stop = vorrq_u8(stop, vceqq_u8(x, vdupq_n_u8('"')));
    stop = vorrq_u8(stop, vceqq_u8(x, vdupq_n_u8(';')));
    return ms_scan_mask(stop);
}
static inline uint64_t ms_scan_not_flat(ms_scan_block x)
{
    uint8x16_t curly = vorrq_u8(x, vdupq_n_u8(0x20)); /* as above */
    uint8x16_t stop = vceqq_u8(x, vdupq_n_u8('"'));
    stop = vorrq_u8(stop, vceqq_u8(curly, vdupq_n_u8('{')));
    stop = vorrq_u8(stop, vceqq_u8(curly, vdupq_n_u8('}')));
    return ms_scan_mask(stop);
}
static inline uint64_t ms_scan_not_blank(ms_scan_block x)
{
    return ms_scan_mask(vmvnq_u8(vceqq_u8(x, vdupq_n_u8(' '))));
}
#endif

/* Scans the part of a run that fills whole blocks; returns from the enclosing function at the end
 * of the run. */
#if defined(__SSE2__) || defined(__aarch64__)
#define MS_SCAN_BLOCKS(p, end, not_in_run)                                                         \
    do {                                                                                           \
        const bool is_long = (end) - (p) >= 16;                                                    \
        for (; (end) - (p) >= 16; (p) += 16) {                                                     \
            uint64_t stop = not_in_run(ms_scan_load(p));                                           \
            if (stop != 0)                                                                         \
                return (p) + __builtin_ctzll(stop) / MS_SCAN_BITS;                                 \
        }                                                                                          \
        if (is_long && (p) < (end)) { /* the last 16 bytes, some of which were already checked */  \
            uint64_t stop = not_in_run(ms_scan_load((end)-16));                                    \
            return stop != 0 ? (end)-16 + __builtin_ctzll(stop) / MS_SCAN_BITS : (end);            \
        }                                                                                          \
    } while (0)
#else
#define MS_SCAN_BLOCKS(p, end, not_in_run) ((void)0)
#endif

/* Returns the first byte that is not plain, or end. */
static inline const char *ms_scan_plain(const char *p, const char *end)
{
    MS_SCAN_BLOCKS(p, end, ms_scan_not_plain);
    while (p < end && ms_is_plain(*p))
        p++;
    return p;
}

/* Returns the first byte that is not bare, or end. */
static inline const char *ms_scan_bare(const char *p, const char *end)
{
    MS_SCAN_BLOCKS(p, end, ms_scan_not_bare);
    while (p < end && ms_is_bare(*p))
        p++;
    return p;
}

/* Returns the first byte that is not flat, or end. */
static inline const char *ms_scan_flat(const char *p, const char *end)
{
    MS_SCAN_BLOCKS(p, end, ms_scan_not_flat);
    while (p < end && ms_is_flat(*p))
        p++;
    return p;
}

/* Returns the first byte that is not whitespace, or end. The usual cases, no blank and one blank,
 * are handled by branches: the processor predicts these, so the code that follows does not wait for
 * the result. */
static inline const char *ms_scan_space(const char *p, const char *end)
{
    while (p < end && ms_is_space(*p)) {
        p++;
        if (p < end && !ms_is_space(*p))
            return p;
#if defined(__SSE2__) || defined(__aarch64__)
        for (; end - p >= 16; p += 16) {
            uint64_t stop = ms_scan_not_blank(ms_scan_load(p));
            if (stop != 0) {
                p += __builtin_ctzll(stop) / MS_SCAN_BITS;
                break;
            }
        }
#endif
    }
    return p;
}

static inline bool ms_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
/* Loads eight bytes, the first in the lowest byte. */
static inline uint64_t ms_load8(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}
/* Counts the leading bytes that are digits. A digit minus 0x30 is at most 9, so adding 0x76 leaves
 * its top bit clear. */
static inline unsigned ms_count_digits8(uint64_t v)
{
    const uint64_t top = 0x8080808080808080U;
    v ^= 0x3030303030303030U;
    uint64_t other = (((v & ~top) + 0x7676767676767676U) | v) & top;
    return other != 0 ? (unsigned)__builtin_ctzll(other) / 8 : 8;
}
/* Returns the first byte that is not a digit, or end. */
static inline const char *ms_scan_digits(const char *p, const char *end)
{
    while (end - p >= 8) {
        unsigned n = ms_count_digits8(ms_load8(p));
        p += n;
        if (n < 8)
            return p;
    }
    while (p < end && ms_is_digit(*p))
        p++;
    return p;
}

#endif

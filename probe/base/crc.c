/* SPDX-License-Identifier: MIT
 *
 * crc: CRC-32 (polynomial 0x04C11DB7, bits reflected) in three versions, and by the instruction that
 * aarch64 has for it.
 *
 * The plain version reads eight bytes a step through eight tables. The vector versions treat a
 * message as a polynomial: a part that is d bits before the end may be replaced by its product with
 * x^d mod P added to what follows. So wide accumulators are folded over the data with carry-less
 * multiplications, and only the last 16 bytes go through the tables.
 *
 * A register holds polynomials reflected: bit 31 is x^0.  Every constant is
 * computed from the polynomial at first use; none is written down.
 */
#include "probe/base/crc.h"

#include "probe/base/cpu.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define POLY   0xedb88320U
#define X_TO_0 (1U << 31)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t table[8][256]; /* table[k][b]: byte b followed by k zero bytes */
static uint32_t x_to_2[64];    /* x^(2^k) mod P */

/* a(x) * x mod P */
static uint32_t times_x(uint32_t a)
{
    return a >> 1 ^ (POLY & (0U - (a & 1)));
}

/* a(x) * b(x) mod P */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (; a != 0; a <<= 1, b = times_x(b)) {
        if ((a & X_TO_0) != 0)
            product ^= b;
    }
    return product;
}

#if defined(__x86_64__)
/* x^n mod P */
static uint32_t x_to(uint64_t n)
{
    uint32_t power = X_TO_0;
    for (unsigned k = 0; n != 0; n >>= 1, k++) {
        if ((n & 1) != 0)
            power = multiply(power, x_to_2[k]);
    }
    return power;
}

/* Factors that fold the two halves of 16 bytes forward over a distance; see fold_factor. */
struct fold {
    uint64_t low, high;
};
static struct fold fold_16, fold_64, fold_256; /* distance in bytes */

/* Returns the factors for a distance. The low half of 16 bytes is 64 bits further from the end than
 * the high half. The product of two reflected operands comes out one bit too low, which the shift
 * corrects, and 32 bits too high, hence the two exponents. */
static struct fold fold_factor(unsigned bytes)
{
    return (struct fold){(uint64_t)x_to(bytes * 8 + 32) << 1, (uint64_t)x_to(bytes * 8 - 32) << 1};
}
#endif

static void make_tables(void)
{
    for (unsigned b = 0; b < 256; b++) {
        uint32_t r = b;
        for (int bit = 0; bit < 8; bit++)
            r = times_x(r);
        table[0][b] = r;
    }
    for (unsigned k = 1; k < 8; k++) {
        for (unsigned b = 0; b < 256; b++)
            table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 0xff];
    }
    x_to_2[0] = X_TO_0 >> 1;
    for (unsigned k = 1; k < 64; k++)
        x_to_2[k] = multiply(x_to_2[k - 1], x_to_2[k - 1]);
#if defined(__x86_64__)
    fold_16 = fold_factor(16);
    fold_64 = fold_factor(64);
    fold_256 = fold_factor(256);
#endif
}

static uint64_t load_le64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* Plain version. All versions take and return the CRC register, which is the inverted CRC. */
static uint32_t crc_plain(uint32_t r, const uint8_t *p, size_t n)
{
    for (; n >= 8; n -= 8, p += 8) {
        const uint64_t w = load_le64(p) ^ r;
        r = table[7][w & 0xff] ^ table[6][w >> 8 & 0xff] ^ table[5][w >> 16 & 0xff] ^
            table[4][w >> 24 & 0xff] ^ table[3][w >> 32 & 0xff] ^ table[2][w >> 40 & 0xff] ^
            table[1][w >> 48 & 0xff] ^ table[0][w >> 56];
    }
    for (; n != 0; n--, p++)
        r = r >> 8 ^ table[0][(r ^ *p) & 0xff];
    return r;
}

#if defined(__x86_64__)

#define CLMUL  __attribute__((target("pclmul,sse4.1")))
#define VCLMUL __attribute__((target("pclmul,vpclmulqdq,avx512f,avx512dq,avx512bw,avx512vl")))
#define INLINE static inline __attribute__((always_inline))

INLINE CLMUL __m128i load16(const uint8_t *p)
{
    __m128i v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Returns next + a * x^distance. */
INLINE CLMUL __m128i fold(__m128i a, __m128i factor, __m128i next)
{
    const __m128i low = _mm_clmulepi64_si128(a, factor, 0x00);
    const __m128i high = _mm_clmulepi64_si128(a, factor, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

INLINE CLMUL __m128i factor_of(const struct fold *f)
{
    return _mm_set_epi64x((long long)f->high, (long long)f->low);
}

/* Folds the remaining whole 16-byte pieces into a, then processes the rest with the tables. */
CLMUL static uint32_t finish(__m128i a, const uint8_t *p, size_t n)
{
    const __m128i by_16 = factor_of(&fold_16);
    for (; n >= 16; n -= 16, p += 16)
        a = fold(a, by_16, load16(p));
    uint8_t last[16];
    memcpy(last, &a, sizeof last);
    return crc_plain(crc_plain(0, last, sizeof last), p, n);
}

/* n is at least 64. */
CLMUL static uint32_t by_clmul(uint32_t r, const uint8_t *p, size_t n)
{
    __m128i a0 = _mm_xor_si128(load16(p), _mm_cvtsi32_si128((int)r));
    __m128i a1 = load16(p + 16), a2 = load16(p + 32), a3 = load16(p + 48);
    const __m128i by_64 = factor_of(&fold_64);
    for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
        a0 = fold(a0, by_64, load16(p));
        a1 = fold(a1, by_64, load16(p + 16));
        a2 = fold(a2, by_64, load16(p + 32));
        a3 = fold(a3, by_64, load16(p + 48));
    }
    const __m128i by_16 = factor_of(&fold_16);
    a1 = fold(a0, by_16, a1);
    a2 = fold(a1, by_16, a2);
    return finish(fold(a2, by_16, a3), p, n);
}

INLINE VCLMUL __m512i load64(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}

INLINE VCLMUL __m512i fold4(__m512i a, __m512i factor, __m512i next)
{
    const __m512i low = _mm512_clmulepi64_epi128(a, factor, 0x00);
    const __m512i high = _mm512_clmulepi64_epi128(a, factor, 0x11);
    return _mm512_ternarylogic_epi64(low, high, next, 0x96); /* XOR of all three */
}

INLINE VCLMUL __m512i factor4_of(const struct fold *f)
{
    return _mm512_broadcast_i64x2(factor_of(f));
}

/* n is at least 256. */
VCLMUL static uint32_t by_vclmul(uint32_t r, const uint8_t *p, size_t n)
{
    __m512i a0 = _mm512_xor_si512(load64(p), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)r)));
    __m512i a1 = load64(p + 64), a2 = load64(p + 128), a3 = load64(p + 192);
    const __m512i by_256 = factor4_of(&fold_256);
    for (p += 256, n -= 256; n >= 256; p += 256, n -= 256) {
        a0 = fold4(a0, by_256, load64(p));
        a1 = fold4(a1, by_256, load64(p + 64));
        a2 = fold4(a2, by_256, load64(p + 128));
        a3 = fold4(a3, by_256, load64(p + 192));
    }
    const __m512i by_64 = factor4_of(&fold_64);
    a1 = fold4(a0, by_64, a1);
    a2 = fold4(a1, by_64, a2);
    a3 = fold4(a2, by_64, a3);
    const __m128i by_16 = factor_of(&fold_16);
    __m128i a = _mm512_castsi512_si128(a3);
    a = fold(a, by_16, _mm512_extracti64x2_epi64(a3, 1));
    a = fold(a, by_16, _mm512_extracti64x2_epi64(a3, 2));
    a = fold(a, by_16, _mm512_extracti64x2_epi64(a3, 3));
    return finish(a, p, n);
}

static uint32_t crc_fastest(uint32_t r, const uint8_t *p, size_t n)
{
    const unsigned cpu = ms_cpu_features();
    if (n >= 256 && (cpu & MS_CPU_VCLMUL) != 0 && (cpu & MS_CPU_CLMUL) != 0)
        return by_vclmul(r, p, n);
    if (n >= 64 && (cpu & MS_CPU_CLMUL) != 0)
        return by_clmul(r, p, n);
    return crc_plain(r, p, n);
}

#elif defined(__aarch64__)

#define CRC __attribute__((target("+crc")))

/* Written as assembly, because compilers declare their functions for these instructions only when
 * the whole file may use them. */
static inline CRC uint32_t add_eight(uint32_t r, uint64_t bytes)
{
    __asm__("crc32x %w0, %w0, %1" : "+r"(r) : "r"(bytes));
    return r;
}
static inline CRC uint32_t add_one(uint32_t r, uint32_t byte)
{
    __asm__("crc32b %w0, %w0, %w1" : "+r"(r) : "r"(byte));
    return r;
}

CRC static uint32_t by_instruction(uint32_t r, const uint8_t *p, size_t n)
{
    for (; n >= 8; n -= 8, p += 8)
        r = add_eight(r, load_le64(p));
    for (; n != 0; n--, p++)
        r = add_one(r, *p);
    return r;
}

static uint32_t crc_fastest(uint32_t r, const uint8_t *p, size_t n)
{
    return ms_cpu_has(MS_CPU_CRC) ? by_instruction(r, p, n) : crc_plain(r, p, n);
}

#else
static uint32_t crc_fastest(uint32_t r, const uint8_t *p, size_t n)
{
    return crc_plain(r, p, n);
}
#endif

uint32_t ms_crc32(uint32_t crc, const void *p, size_t n)
{
    pthread_once(&once, make_tables);
    return ~crc_fastest(~crc, p, n);
}

uint64_t ms_xor64(const void *p, size_t n)
{
    const uint8_t *at = p;
    uint64_t x[4] = {0};
    for (; n >= 32; n -= 32, at += 32) {
        for (unsigned k = 0; k < 4; k++)
            x[k] ^= load_le64(at + 8 * (size_t)k);
    }
    for (; n >= 8; n -= 8, at += 8)
        x[0] ^= load_le64(at);
    for (unsigned k = 0; k < n; k++)
        x[1] ^= (uint64_t)at[k] << (8 * k);
    return x[0] ^ x[1] ^ x[2] ^ x[3];
}

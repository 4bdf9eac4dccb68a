/* SPDX-License-Identifier: MIT */
#include "compare/measure_half.h"

#include <string.h>

enum { SIGN = 0x8000, REST = 0x7fff, INFINITE = 0x7c00, BLOCK = 4096 };

/* Neighbours differ by one, and both zeros are one. */
static int32_t place_of(uint16_t bits)
{
    int32_t rest = bits & REST;
    return (bits & SIGN) != 0 ? -rest : rest;
}

static uint32_t apart(uint16_t n, uint16_t b)
{
    int32_t d = place_of(n) - place_of(b);
    uint32_t far = (uint32_t)(d < 0 ? -d : d);
    return (n & REST) < INFINITE && (b & REST) < INFINITE ? far : 0;
}

void cmp__half_ulps_add(struct cmp__half_ulps *u, const void *n, const void *b, size_t m)
{
    uint16_t x[BLOCK], y[BLOCK];
    for (size_t at = 0; at < m; at += BLOCK) {
        size_t k = m - at < BLOCK ? m - at : BLOCK;
        uint32_t sum = 0, max = 0; /* of 4096 that are less than 2^16 */
        memcpy(x, (const char *)n + at * sizeof *x, k * sizeof *x);
        memcpy(y, (const char *)b + at * sizeof *y, k * sizeof *y);
        for (size_t i = 0; i < k; i++) {
            uint32_t far = apart(x[i], y[i]);
            sum += far;
            max = far > max ? far : max;
        }
        u->sum += sum;
        u->max = max > u->max ? max : u->max;
    }
}

void cmp__half_ulps_join(struct cmp__half_ulps *u, const struct cmp__half_ulps *next)
{
    u->sum += next->sum;
    u->max = next->max > u->max ? next->max : u->max;
}

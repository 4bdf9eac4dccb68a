/* SPDX-License-Identifier: MIT
 *
 * draw: draws numbers that no compiler changes.
 *
 * C leaves open in which order the operands of an expression and the members of an initializer are computed,
 * and compilers differ. A number therefore depends on the seed, on the place in the source that draws and on how
 * often that place has drawn, and not on what other places have drawn before it.
 */
#ifndef TESTS_SUPPORT_DRAW_H
#define TESTS_SUPPORT_DRAW_H

#include <stdint.h>
#include <stdlib.h>

enum { DRAW_PLACES = 4096 };

static inline uint32_t draw_at(uint64_t seed, unsigned place, uint32_t n)
{
    static uint32_t times[DRAW_PLACES];
    if (place >= DRAW_PLACES || n == 0)
        abort();
    uint64_t mixed = seed * 0x9E3779B97F4A7C15u + (uint64_t)place * 0xD1B54A32D192ED03u +
                     (uint64_t)++times[place] * 0x8CB92BA72F3D8DD7u;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)((mixed ^ (mixed >> 31)) >> 20) % n;
}

/* A number below n. A macro, since a function around it would be one place for all its callers. */
#define draw_below(seed, n) draw_at((seed), __COUNTER__, (n))

#endif

/* SPDX-License-Identifier: MIT
 *
 * fpu: computes inside a program that has settings of floating point of its own. A program may trap invalid
 * operations, which end it with SIGFPE, read the flags of exceptions, or round in another direction. What is computed
 * between the two calls is in functions of other files: compilers move a plain operation past them.
 */
#ifndef MS_FPU_H
#define MS_FPU_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

/* Bits of MXCSR: all traps masked is the default; a program may flush small numbers to zero. */
enum { MS_FPU_MASKED = 0x1f80, MS_FPU_ROUNDING = 0x6000, MS_FPU_FLUSH = 0x8040 };

/* Returns the settings and flags of this thread, and sets the default: no trap, rounding to nearest. Small numbers
 * stay as the program has them, whose own kernels would flush them too. */
static inline uint64_t ms_fpu_hold(void)
{
    const unsigned was = _mm_getcsr();
    if ((was & (MS_FPU_MASKED | MS_FPU_ROUNDING)) != MS_FPU_MASKED)
        _mm_setcsr(MS_FPU_MASKED | (was & MS_FPU_FLUSH));
    return was;
}

static inline void ms_fpu_restore(uint64_t was)
{
    if (_mm_getcsr() != was)
        _mm_setcsr((unsigned)was);
}

#elif defined(__aarch64__)
enum { MS_FPU_FLUSH = 1 << 24 };

/* The settings are in the lower half, the flags in the upper. */
static inline uint64_t ms_fpu_hold(void)
{
    uint64_t control, status;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(status));
    if ((control & ~(uint64_t)MS_FPU_FLUSH) != 0)
        __asm__ volatile("msr fpcr, %0" : : "r"(control & MS_FPU_FLUSH));
    return (control & UINT32_MAX) | status << 32;
}

static inline void ms_fpu_restore(uint64_t was)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(was & UINT32_MAX));
    __asm__ volatile("msr fpsr, %0" : : "r"(was >> 32));
}

#else
static inline uint64_t ms_fpu_hold(void)
{
    return 0;
}

static inline void ms_fpu_restore(uint64_t was)
{
    (void)was;
}
#endif

#endif

/* SPDX-License-Identifier: MIT
 *
 * cpu: asks the processor itself. The compiler's feature test is not used, because the run-time of one
 * compiler that msprobe is built with (zig, for make portable) always answers no.
 */
#include "probe/base/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_uint limit = ~0U;
atomic_uint ms__cpu_allowed;

#if defined(__x86_64__)
/* Bits of XCR0: registers that the operating system saves when it changes from thread to thread. */
enum { SAVES_YMM = 0x6, SAVES_ZMM = 0xe6 };

static unsigned saved_registers(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static bool has_all(unsigned word, unsigned bits)
{
    return (word & bits) == bits;
}

static unsigned detect_features(void)
{
    const unsigned avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    unsigned a, b, c, d, wide_b, wide_c, f = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return 0;
    if (has_all(c, bit_PCLMUL | bit_SSE4_1))
        f |= MS_CPU_CLMUL;
    if (!has_all(c, bit_OSXSAVE | bit_AVX) || !__get_cpuid_count(7, 0, &a, &wide_b, &wide_c, &d))
        return f;
    const unsigned saved = saved_registers();
    if (has_all(saved, SAVES_YMM) && has_all(wide_b, bit_AVX2) && has_all(c, bit_FMA | bit_F16C))
        f |= MS_CPU_AVX2;
    if (has_all(saved, SAVES_ZMM) && has_all(wide_b, avx512))
        f |= MS_CPU_AVX512;
    if ((f & MS_CPU_AVX512) && has_all(wide_c, bit_VPCLMULQDQ))
        f |= MS_CPU_VCLMUL;
    return f;
}
#elif defined(__aarch64__)
static unsigned detect_features(void)
{
    const unsigned long said = getauxval(AT_HWCAP);
    return ((said & HWCAP_ASIMD) != 0 ? MS_CPU_NEON : 0U) |
           ((said & HWCAP_CRC32) != 0 ? MS_CPU_CRC : 0U);
}
#else
static unsigned detect_features(void)
{
    return 0;
}
#endif

static unsigned allowed_by_env(void)
{
    const char *e = getenv("MSPROBE_CPU");
    if (e == NULL)
        return ~0U;
    if (strcmp(e, "baseline") == 0)
        return 0;
    if (strcmp(e, "avx2") == 0)
        return MS_CPU_CLMUL | MS_CPU_AVX2;
    return ~0U;
}

unsigned ms__cpu_look(void)
{
    unsigned f = (detect_features() & allowed_by_env() & atomic_load(&limit)) | MS__CPU_LOOKED;
    atomic_store_explicit(&ms__cpu_allowed, f, memory_order_relaxed);
    return f;
}

void ms_cpu_limit(unsigned bits)
{
    atomic_store(&limit, bits);
    (void)ms__cpu_look();
}

const char *ms_cpu_text(char *buf, unsigned size)
{
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {{MS_CPU_CLMUL, "clmul"},   {MS_CPU_AVX2, "avx2"}, {MS_CPU_AVX512, "avx512"},
                 {MS_CPU_VCLMUL, "vclmul"}, {MS_CPU_NEON, "neon"}, {MS_CPU_CRC, "crc"}};
    unsigned n = 0;
    buf[0] = '\0';
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (ms_cpu_has(names[i].bit) && n < size)
            n += (unsigned)snprintf(buf + n, size - n, "%s%s", n != 0 ? " " : "", names[i].name);
    }
    if (n == 0)
        snprintf(buf, size, "baseline");
    return buf;
}

unsigned ms_cpu_count(void)
{
    cpu_set_t set;
    /* sched_getaffinity fails on a machine with more processors than cpu_set_t has bits. */
    long n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                         : sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

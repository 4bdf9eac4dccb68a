/* SPDX-License-Identifier: MIT
 *
 * cpu: uses the compiler's feature test, which also checks that the operating system saves the wide
 * registers.
 */
#include "probe/base/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_uint limit = ~0U;
atomic_uint ms__cpu_allowed;

#if defined(__x86_64__)
/* Tells whether F16C (half to single precision) is there; __builtin_cpu_supports of clang 14 does
 * not know the name. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

static unsigned detect_features(void)
{
    unsigned f = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"))
        f |= MS_CPU_CLMUL;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c())
        f |= MS_CPU_AVX2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        f |= MS_CPU_AVX512;
    if ((f & MS_CPU_AVX512) && __builtin_cpu_supports("vpclmulqdq"))
        f |= MS_CPU_VCLMUL;
#elif defined(__aarch64__)
    f |= MS_CPU_NEON;
#endif
    return f;
}

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
    } names[] = {{MS_CPU_CLMUL, "clmul"},
                 {MS_CPU_AVX2, "avx2"},
                 {MS_CPU_AVX512, "avx512"},
                 {MS_CPU_VCLMUL, "vclmul"},
                 {MS_CPU_NEON, "neon"}};
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

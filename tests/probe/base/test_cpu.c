/* SPDX-License-Identifier: MIT */
#include "probe/base/cpu.h"

#include "tests/support/check.h"

#include <sched.h>
#include <sys/wait.h>

enum {
    EVERY = MS_CPU_CLMUL | MS_CPU_AVX2 | MS_CPU_AVX512 | MS_CPU_VCLMUL | MS_CPU_NEON | MS_CPU_CRC
};

/* Features are looked up once in a process, so what the environment does to them is seen in a new
 * one: the bits come back as its exit status. */
static unsigned features_with(const char *value)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        if (value != NULL)
            setenv("MSPROBE_CPU", value, 1);
        else
            unsetenv("MSPROBE_CPU");
        _exit((int)ms_cpu_features());
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return (unsigned)WEXITSTATUS(status);
}

/* Must stay first: with CK_FORK=no the other tests look in this process. */
START_TEST(the_environment_lowers_what_is_used)
{
    unsigned all = features_with(NULL);
    ck_assert_uint_eq(features_with("baseline"), 0);
    ck_assert_uint_eq(features_with("avx2"), all & (MS_CPU_CLMUL | MS_CPU_AVX2));
    ck_assert_uint_eq(features_with("avx512"), all);
    ck_assert_uint_eq(features_with(""), all);
}
END_TEST

START_TEST(only_known_bits_are_set_and_wide_ones_imply_the_narrow)
{
    unsigned f = ms_cpu_features();
    ck_assert_uint_eq(f & ~(unsigned)EVERY, 0);
    ck_assert(!(f & MS_CPU_VCLMUL) || (f & MS_CPU_AVX512));
    ck_assert(!(f & MS_CPU_NEON) || (f & ~(unsigned)(MS_CPU_NEON | MS_CPU_CRC)) == 0);
    ck_assert_uint_eq(ms_cpu_features(), f);
}
END_TEST

/* The kernel's own list is the second opinion. */
START_TEST(features_are_those_the_kernel_lists)
{
    static char info[1 << 16];
    FILE *f = fopen("/proc/cpuinfo", "r");
    if (f == NULL)
        return; /* another system: nothing to compare with */
    info[fread(info, 1, sizeof info - 1, f)] = '\0';
    fclose(f);
    static const struct {
        unsigned bit;
        const char *flags[5];
    } table[] = {
        {MS_CPU_CLMUL, {" pclmulqdq", " sse4_1"}},
        {MS_CPU_AVX2, {" avx2", " fma", " f16c"}},
        {MS_CPU_AVX512, {" avx512f", " avx512bw", " avx512dq", " avx512vl"}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        bool listed = true;
        for (size_t k = 0; table[i].flags[k] != NULL; k++)
            listed = listed && strstr(info, table[i].flags[k]) != NULL;
        /* Fewer may be found than listed (valgrind), never more. */
        ck_assert(listed || !ms_cpu_has(table[i].bit));
    }
}
END_TEST

START_TEST(a_limit_takes_features_away_and_gives_them_back)
{
    unsigned all = ms_cpu_features();
    ms_cpu_limit(0);
    ck_assert_uint_eq(ms_cpu_features(), 0);
    ck_assert(ms_cpu_has(0));
    ck_assert(!ms_cpu_has(MS_CPU_AVX2));
    ms_cpu_limit(MS_CPU_AVX2);
    ck_assert_uint_eq(ms_cpu_features(), all & MS_CPU_AVX2);
    ms_cpu_limit(~0U);
    ck_assert_uint_eq(ms_cpu_features(), all);
}
END_TEST

START_TEST(the_text_names_what_is_there_and_is_cut_never_overrun)
{
    char whole[64];
    ms_cpu_limit(0);
    ck_assert_str_eq(ms_cpu_text(whole, sizeof whole), "baseline");
    ms_cpu_limit(~0U);
    ms_cpu_text(whole, sizeof whole);
    ck_assert_int_eq(strstr(whole, "avx2") != NULL, ms_cpu_has(MS_CPU_AVX2));
    ck_assert_int_eq(strstr(whole, "neon") != NULL, ms_cpu_has(MS_CPU_NEON));
    for (unsigned size = 1; size < sizeof whole; size++) {
        char cut[65];
        memset(cut, '#', sizeof cut);
        ck_assert_ptr_eq(ms_cpu_text(cut, size), cut);
        ck_assert_uint_lt(strlen(cut), size);
        ck_assert_int_eq(strncmp(cut, whole, strlen(cut)), 0);
        ck_assert_int_eq(cut[size], '#');
    }
}
END_TEST

START_TEST(the_count_is_what_this_process_may_use)
{
    cpu_set_t before;
    cpu_set_t one;
    unsigned n = ms_cpu_count();
    ck_assert_uint_ge(n, 1);
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    ck_assert_uint_eq(n, (unsigned)CPU_COUNT(&before));
    CPU_ZERO(&one);
    int first = 0;
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_SET(first, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_uint_eq(ms_cpu_count(), 1);
    ck_assert_int_eq(sched_setaffinity(0, sizeof before, &before), 0);
}
END_TEST

TEST_MAIN("cpu", the_environment_lowers_what_is_used,
          only_known_bits_are_set_and_wide_ones_imply_the_narrow,
          features_are_those_the_kernel_lists, a_limit_takes_features_away_and_gives_them_back,
          the_text_names_what_is_there_and_is_cut_never_overrun,
          the_count_is_what_this_process_may_use)

/* SPDX-License-Identifier: MIT
 *
 * run: how the tests of the recorder run a program under it: a scratch directory, a clean
 * environment that names the library of this build, and a wait.
 */
#ifndef TESTS_PROGRAMS_RUN_H
#define TESTS_PROGRAMS_RUN_H

#include "tests/support/capture_read.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

static char rt_dir[64], rt_out[96];

/* Where the build lies: the test is build/tests/test_rt. */
static inline const char *rt_built(const char *name)
{
    static char buf[4][1200];
    static int at;
    char exe[1024];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    ck_assert_int_gt(n, 0);
    exe[n] = '\0';
    *strrchr(exe, '/') = '\0';
    *strrchr(exe, '/') = '\0';
    char *to = buf[at++ % 4];
    snprintf(to, sizeof buf[0], "%s/%s", exe, name);
    return to;
}

/* A sanitizer must be first in a process and cannot look for leaks in a set-uid one. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RT_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RT_SANITIZED 1
#endif
#if !defined(RT_SANITIZED)
#define RT_SANITIZED 0
#endif

/* What is to stand before libraries in LD_PRELOAD: the sanitizer, where that is a library; NULL: none
 * can be preloaded, as it is part of the program. */
static inline const char *rt_before_preload(void)
{
    static char path[1200];
    Dl_info info;
    void *init = RT_SANITIZED ? dlsym(RTLD_DEFAULT, "__asan_init") : NULL;
    if (!RT_SANITIZED)
        return "";
    if (init == NULL || dladdr(init, &info) == 0 || strstr(info.dli_fname, "/libasan.so") == NULL)
        return NULL;
    snprintf(path, sizeof path, "%s:", info.dli_fname);
    return path;
}

static inline void rt_clean_env(void)
{
    static const char *const names[] = {"MSTX_OUT",   "MSTX_FLIGHT", "MSTX_POLICY", "RANK",
                                        "WORLD_SIZE", "LOCAL_RANK",  "LD_PRELOAD"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv("MSTX_INJECTION_PATH", rt_built("libmstx.so"), 1);
    setenv("MSTX_OUT", rt_out, 1);
    setenv("MSTX_QUIET", "2", 1);
}

static inline void rt_setup(void)
{
    scratch_dir(rt_dir);
    snprintf(rt_out, sizeof rt_out, "%s/run", rt_dir);
    rt_clean_env();
}
static inline void rt_done(void)
{
    scratch_remove(rt_dir);
}

static inline pid_t rt_spawn(const char *app, const char *a, const char *b, const char *c)
{
    char path[1200];
    snprintf(path, sizeof path, "%s", rt_built(app));
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        execl(path, app, a, b, c, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static inline int rt_wait(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif

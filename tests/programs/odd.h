/* SPDX-License-Identifier: MIT
 *
 * odd: what the programs share that do what few programs do: marks, what is said of a child, a list of ways.
 */
#ifndef TESTS_PROGRAMS_ODD_H
#define TESTS_PROGRAMS_ODD_H

#include "mstx/ms_tools_ext.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static __attribute__((noinline, unused)) void mark_often(int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t r = mstxRangeStartA("range", NULL);
        mstxMarkA("mark", NULL);
        mstxRangeEnd(r);
    }
}

static __attribute__((noinline, unused)) void tell_status(const char *what, int status)
{
    printf("%s: exit %d signal %d\n", what, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
           WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static __attribute__((noinline, unused)) void wait_for(const char *what, pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    tell_status(what, status);
}

#define WAY(name)                                                                                  \
    {                                                                                              \
#name, name                                                                                \
    }
struct odd_way {
    const char *name;
    int (*run)(void);
};

/* Runs the way that the first argument names, or prints all names. */
static inline int odd_main(const struct odd_way *ways, size_t n, int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < n; i++) {
        if (strcmp(wanted, "list") == 0)
            puts(ways[i].name);
        else if (strcmp(wanted, ways[i].name) == 0)
            return ways[i].run();
    }
    return strcmp(wanted, "list") == 0 ? 0 : 2;
}

#endif

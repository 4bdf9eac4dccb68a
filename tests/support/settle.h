/* SPDX-License-Identifier: MIT
 *
 * settle: wait until every other thread of the process sleeps.
 *
 * A thread that begins, or allocates, holds locks of the C library and of a sanitizer.  The C
 * library lets go of its own in a forked child; AddressSanitizer of gcc 12 does not, and a child
 * forked at that moment waits in its first allocation for ever.  So a test that forks beside
 * threads settles first.
 */
#ifndef TESTS_SUPPORT_SETTLE_H
#define TESTS_SUPPORT_SETTLE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The state's letter stands behind the name, which is in brackets and may hold some itself. */
static inline bool settle_sleeps(const char *tid)
{
    char path[300], text[400];
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", tid);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return true; /* it has ended */
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *state = strrchr(text, ')');
    return state != NULL && state[1] == ' ' && state[2] == 'S';
}

static inline bool settle_others_sleep(void)
{
    DIR *d = opendir("/proc/self/task");
    bool all = d != NULL;
    for (struct dirent *e; all && (e = readdir(d)) != NULL;)
        all = e->d_name[0] == '.' || atoi(e->d_name) == getpid() || settle_sleeps(e->d_name);
    if (d != NULL)
        closedir(d);
    return all;
}

/* Asleep at twenty looks in a row; given up after some seconds. */
static inline void settle(void)
{
    for (int looks = 0, asleep = 0; asleep < 20 && looks < 2000; looks++) {
        asleep = settle_others_sleep() ? asleep + 1 : 0;
        usleep(2000);
    }
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * calm: writing in a process that is not our own.
 *
 * A write to a pipe without a reader raises SIGPIPE, and one past the size limit of files raises SIGXFSZ. A
 * program that has left them at their defaults would be ended by a message or a record of ours. While calm,
 * they are blocked, the write fails with an error, and what it raised is taken away.
 */
#ifndef PROBE_BASE_CALM_H
#define PROBE_BASE_CALM_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <time.h>

struct ms_calm {
    sigset_t before, pending;
    bool is_off; /* nothing was blocked */
};

/* Blocks SIGXFSZ and SIGPIPE in this thread. `all`: every other signal too. */
static inline void ms_calm(struct ms_calm *c, bool all)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    sigaddset(&set, SIGPIPE);
    if (all)
        sigfillset(&set);
    c->is_off = false;
    pthread_sigmask(SIG_BLOCK, &set, &c->before);
    sigpending(&c->pending);
}

/* The same for a write to a file, which raises nothing unless the size of files is limited. */
static inline void ms_calm_file(struct ms_calm *c)
{
    struct rlimit size;
    if (getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur == RLIM_INFINITY)
        c->is_off = true;
    else
        ms_calm(c, false);
}

/* Discards the signals that our writes raised: those pending now and not before. errno stays. */
static inline void ms_calm_end(const struct ms_calm *c)
{
    static const int ours[] = {SIGXFSZ, SIGPIPE};
    const struct timespec now = {0};
    sigset_t pending, one;
    if (c->is_off)
        return;
    const int saved = errno;
    sigpending(&pending);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        sigemptyset(&one);
        sigaddset(&one, ours[i]);
        if (sigismember(&pending, ours[i]) == 1 && sigismember(&c->pending, ours[i]) == 0)
            sigtimedwait(&one, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &c->before, NULL);
    errno = saved;
}

#endif

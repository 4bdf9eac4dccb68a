/* SPDX-License-Identifier: MIT
 *
 * rt_clock_agree: do all ranks of a job run under the recorder?  Comparing clocks is collective, and
 * a rank without the hook would leave the others waiting for ever.  So they meet in a folder of the
 * run first, where nobody waits longer than he wants to:
 *
 *     every rank    creates here.RANK
 *     rank 0        sees all of them          ──► answer -> yes  ┐ a link is made once, by whoever
 *     any rank      has waited long enough    ──► answer -> no   ┘ comes first; all obey it
 *
 * Ranks that record into folders of their own do not find each other: then the answer is no.
 */
#include "mstx/rt_clock_sync.h"

#include "mstx/rt.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

static const int64_t NAP_NS = 5000000;
enum { FOLDER_ROOM = RT_PATH + 80, PATH_ROOM = FOLDER_ROOM + 32 };

static bool folder_of(char *out, size_t cap)
{
    char job[64];
    mstx_clock_job(job, sizeof job);
    int len = snprintf(out, cap, "%s/.clock-%s", rt.conf.out, job);
    return rt.conf.out[0] != '\0' && len > 0 && (size_t)len < cap;
}

static bool make(const char *folder)
{
    return (mkdir(rt.conf.out, 0777) == 0 || errno == EEXIST) &&
           (mkdir(folder, 0777) == 0 || errno == EEXIST);
}

static bool touch(const char *folder, int rank)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/here.%d", folder, rank);
    return symlink("here", path) == 0 || errno == EEXIST;
}

static bool all_here(const char *folder, int size, int *seen)
{
    char path[PATH_ROOM], c;
    for (; *seen < size; ++*seen) {
        snprintf(path, sizeof path, "%s/here.%d", folder, *seen);
        if (readlink(path, &c, 1) < 0)
            return false;
    }
    return true;
}

/* -1: there is none yet. */
static int read_answer(const char *folder)
{
    char path[PATH_ROOM], c;
    snprintf(path, sizeof path, "%s/answer", folder);
    return readlink(path, &c, 1) == 1 ? c == 'y' : -1;
}

static void give_answer(const char *folder, const char *answer)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/answer", folder);
    if (symlink(answer, path) != 0) {
        /* another rank was faster, or nobody can write: that is no answer, and so a no */
    }
}

static void leave(const char *folder, int rank)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/here.%d", folder, rank);
    unlink(path);
}

API bool mstx_clock_agree(int rank, int size, int64_t patience_ns)
{
    char folder[FOLDER_ROOM];
    int seen = 0, answer = -1;
    if (!folder_of(folder, sizeof folder) || !make(folder) || !touch(folder, rank))
        return false;
    const int64_t start = rt_clock_steady();
    while ((answer = read_answer(folder)) < 0) {
        const struct timespec nap = {.tv_nsec = NAP_NS};
        if (rank == 0 && all_here(folder, size, &seen))
            give_answer(folder, "yes");
        else if (rt_clock_steady() - start > patience_ns)
            give_answer(folder, "no");
        else
            nanosleep(&nap, NULL);
        if (rt_clock_steady() - start > 2 * patience_ns)
            break; /* nothing can be written there */
    }
    leave(folder, rank);
    return answer == 1;
}

API void mstx_clock_forget(void)
{
    char folder[FOLDER_ROOM], path[PATH_ROOM];
    if (!folder_of(folder, sizeof folder))
        return;
    snprintf(path, sizeof path, "%s/answer", folder);
    unlink(path);
    rmdir(folder);
}

/* SPDX-License-Identifier: MIT
 *
 * clock_agree: see the header.
 *
 * Comparing clocks is collective, and a rank without the hook would leave the others waiting for
 * ever. So the ranks first agree through a folder of the run, with a time limit for each rank:
 *
 *     every rank    creates here.RANK
 *     rank 0        finds all these files  ──► answer -> yes  ┐ a symbolic link, created once by the
 *     any rank      reaches its time limit ──► answer -> no   ┘ fastest rank; all ranks follow it
 *
 * Thousands of ranks that create files in one folder and look for the answer there would hold up a
 * file system. So the ranks of a larger job meet in groups of GROUP, each in a folder of its own:
 *
 *     g0/ g1/ ...   here.RANK of each rank of the group; its lowest rank, the leader, finds them
 *     here.G        created beside the answer by the leader of group G; rank 0 finds these files
 *     g0/answer     a copy of the answer, made by the leader; the others of the group look here
 *
 * The one answer decides: who reaches the time limit creates it, or reads what is already there.
 * Ranks that record into folders of their own do not find each other; the answer is then no.
 */
#include "mstx/rt/clock_agree.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mstx/rt/clock_sync.h"
#include "mstx/rt/segment_file.h"
#include "mstx/rt/ticks.h"

#include "probe/base/assert.h"

#define API __attribute__((visibility("default")))

enum { GROUP = 128, FOLDER_ROOM = RT_PATH + 80, PATH_ROOM = FOLDER_ROOM + 32 };
static const int64_t NAP_NS = 5000000, NAP_MAX_NS = 160000000;

/* Where a rank meets the others. */
struct meeting {
    char folder[FOLDER_ROOM];     /* with the answer */
    char group[FOLDER_ROOM + 16]; /* of the own group; the same folder in a small job */
    int rank, size;
    int first, end;        /* ranks of the own group */
    int seen, groups_seen; /* ranks of the group and groups that have been found */
    bool is_told;          /* here.G has been created */
    bool asks_all;         /* reads the one answer, not the copy of the group */
};

/* Number of ranks of the last meeting, whose folders are to be removed. */
static int met_rank, met_size;

static bool folder_of(char *out, size_t cap)
{
    char job[64];
    mstx_clock_job(job, sizeof job);
    int len = snprintf(out, cap, "%s/.clock-%s", rt.conf.out, job);
    return rt.conf.out[0] != '\0' && len > 0 && (size_t)len < cap;
}

static bool is_grouped(int size)
{
    return size > GROUP;
}

static bool make_folder(const char *folder)
{
    return mkdir(folder, 0777) == 0 || errno == EEXIST;
}

static bool touch_file(const char *folder, int number)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/here.%d", folder, number);
    return symlink("here", path) == 0 || errno == EEXIST;
}

static void remove_file(const char *folder, int number)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/here.%d", folder, number);
    unlink(path);
}

/* Finds the files of the numbers up to `end`, from *seen on, which moves. */
static bool all_here(const char *folder, int end, int *seen)
{
    char path[PATH_ROOM], c;
    for (; *seen < end; ++*seen) {
        snprintf(path, sizeof path, "%s/here.%d", folder, *seen);
        if (readlink(path, &c, 1) < 0)
            return false;
    }
    return true;
}

/* Returns 1 for yes, 0 for no, -1 while there is no answer. */
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
        /* another rank was faster, or the folder is not writable; without an answer the result is
         * false */
    }
}

/* ---- meeting ---------------------------------------------------------------- */

static bool begin_meeting(struct meeting *m, int rank, int size)
{
    *m = (struct meeting){.rank = rank, .size = size, .end = size};
    if (!folder_of(m->folder, sizeof m->folder) || !make_folder(rt.conf.out) ||
        !make_folder(m->folder))
        return false;
    snprintf(m->group, sizeof m->group, "%s", m->folder);
    if (is_grouped(size)) {
        m->first = rank - rank % GROUP;
        m->end = m->first + GROUP < size ? m->first + GROUP : size;
        snprintf(m->group, sizeof m->group, "%s/g%d", m->folder, rank / GROUP);
    }
    m->seen = m->first;
    m->asks_all = rank == m->first;
    return make_folder(m->group) && touch_file(m->group, rank);
}

/* Finds the ranks of the own group, and as rank 0 the groups; creates the answer when all are
 * here. */
static void look_around(struct meeting *m)
{
    if (m->rank != m->first || !all_here(m->group, m->end, &m->seen))
        return;
    if (is_grouped(m->size) && !m->is_told)
        m->is_told = touch_file(m->folder, m->rank / GROUP);
    const int groups = is_grouped(m->size) ? (m->size + GROUP - 1) / GROUP : 0;
    if (m->rank == 0 && all_here(m->folder, groups, &m->groups_seen))
        give_answer(m->folder, "yes");
}

/* Waits for the answer; -1: the folder is not writable. */
static int wait_for_answer(struct meeting *m, int64_t patience_ns)
{
    const int64_t start = rt_clock_steady();
    struct timespec nap = {.tv_nsec = NAP_NS};
    int answer;
    for (;;) {
        look_around(m);
        answer = read_answer(m->asks_all ? m->folder : m->group);
        const int64_t waited = rt_clock_steady() - start;
        if (answer >= 0 || waited > 2 * patience_ns)
            return answer;
        if (waited > patience_ns) {
            give_answer(m->folder, "no");
            m->asks_all = true;
        }
        nanosleep(&nap, NULL);
        if (is_grouped(m->size) && nap.tv_nsec < NAP_MAX_NS)
            nap.tv_nsec *= 2;
    }
}

API bool mstx_clock_agree(int rank, int size, int64_t patience_ns)
{
    ms_assert(rank >= 0 && rank < size);
    struct meeting m;
    if (!begin_meeting(&m, rank, size))
        return false;
    met_rank = rank;
    met_size = size;
    const int answer = wait_for_answer(&m, patience_ns);
    if (is_grouped(size) && rank == m.first && answer >= 0)
        give_answer(m.group, answer == 1 ? "yes" : "no");
    remove_file(m.group, rank);
    return answer == 1;
}

/* ---- afterwards ------------------------------------------------------------- */

static void remove_answer(const char *folder)
{
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/answer", folder);
    unlink(path);
    rmdir(folder);
}

/* Removes the folder of a group, which is empty by then but for the answer. */
static void remove_group(const char *folder, int group)
{
    char path[PATH_ROOM - 16];
    snprintf(path, sizeof path, "%s/g%d", folder, group);
    remove_answer(path);
    remove_file(folder, group);
}

API void mstx_clock_forget(void)
{
    char folder[FOLDER_ROOM];
    if (!folder_of(folder, sizeof folder))
        return;
    if (is_grouped(met_size) && met_rank == 0) {
        for (int g = 0; g <= (met_size - 1) / GROUP; g++)
            remove_group(folder, g);
    } else if (is_grouped(met_size)) {
        remove_group(folder, met_rank / GROUP);
    }
    remove_answer(folder);
}

/* SPDX-License-Identifier: MIT
 *
 * tool_simulate: runs schedules of the recorder and of the writers, each drawn from its seed alone.
 *
 *     tool_simulate [-f] [-s SECONDS] [-d DIR] COUNT [FIRST]     schedules FIRST to FIRST + COUNT - 1
 *
 * A schedule that ends in a loss that nobody was told prints its seed, and "tool_simulate 1 SEED"
 * plays it again.  -f: the first such schedule is enough.  Schedules run in a child process, some hundred in each, so that one that crashes
 * is found as well and what killed processes leave open goes with the child.
 */
#include "tests/mstx/simulate/recording.h"

#include "mstx/rt/state.h"
#include "probe/base/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 200, SECONDS_MAX = 60, WRONG_MAX = 20 };

/* What a child is at: shared, so that it is known when the child crashes. */
struct progress {
    uint64_t seed, done, wrong;
};

static char folder[200];

static void play(struct progress *p, uint64_t seed)
{
    char dir[256];
    p->seed = seed;
    snprintf(dir, sizeof dir, "%s/%llu", folder, (unsigned long long)seed);
    const char *wrong = seed % 4 == 0   ? sim_recording(seed, dir)
                        : seed % 4 == 1 ? sim_table(seed, dir)
                                        : sim_writing(seed, dir);
    p->done++;
    if (wrong == NULL)
        return;
    p->wrong++;
    printf("wrong: seed %llu: %s\n", (unsigned long long)seed, wrong);
}

static void play_batch(struct progress *p, uint64_t first, uint64_t end, uint64_t enough)
{
    fflush(stdout);
    const pid_t child = fork();
    int status = 1;
    if (child == 0) {
        alarm(SECONDS_MAX);
        for (uint64_t seed = first; seed < end && p->wrong < enough; seed++)
            play(p, seed);
        fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status == 0)
        return;
    p->wrong++;
    printf("wrong: seed %llu: ended by signal %d\n", (unsigned long long)p->seed,
           WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    sim_remove(folder);
    if (p->seed + 1 < end && p->wrong < enough)
        play_batch(p, p->seed + 1, end, enough);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int play_all(uint64_t count, uint64_t first, double seconds, uint64_t enough)
{
    struct progress *p =
        mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const double began = now();
    uint64_t seed = first;
    if (p == MAP_FAILED)
        return 1;
    while (seed < first + count && now() - began < seconds && p->wrong < enough) {
        const uint64_t end = seed + BATCH < first + count ? seed + BATCH : first + count;
        play_batch(p, seed, end, enough);
        seed = end;
    }
    printf("%llu schedules in %.1f s, %llu wrong\n", (unsigned long long)p->done, now() - began,
           (unsigned long long)p->wrong);
    return p->wrong != 0 || p->done == 0;
}

int main(int argc, char **argv)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    double seconds = 1e9;
    uint64_t enough = WRONG_MAX;
    int option;
    while ((option = getopt(argc, argv, "fs:d:")) != -1) {
        if (option == 'f')
            enough = 1;
        else if (option == 's')
            seconds = atof(optarg);
        else if (option == 'd')
            base = optarg;
        else
            return 2;
    }
    const uint64_t count = optind < argc ? strtoull(argv[optind], NULL, 10) : 1000;
    const uint64_t first = optind + 1 < argc ? strtoull(argv[optind + 1], NULL, 10) : 1;
    snprintf(folder, sizeof folder, "%s/msprobe-simulate-%d", base, (int)getpid());
    const int rc = play_all(count, first, seconds, enough);
    sim_remove(folder);
    return rc;
}

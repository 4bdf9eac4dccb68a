/* SPDX-License-Identifier: MIT
 *
 * wait_mpi: a parallel program of which one rank, or two, or none, makes the others wait, for a known
 * reason.
 *
 *     wait_mpi PATTERN CAUSE RANK[,CAUSE,RANK] MS STEPS WORK_MS
 *
 * Each step takes WORK_MS of CPU time on every rank; the culprit adds MS to it by its cause.  PATTERN is
 * the way in which ranks meet.  Rank 0 prints its wall time in seconds, and each rank that works the
 * seconds of its work: from outside the recorder they tell whether a cause had an effect on this host.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THROTTLED_TO "1500" /* us */
enum { COUNT = 1024, HOGS = 2, WRITTEN = 1 << 20 };

static int rank, ranks, step, steps;
static double work_ms, extra_ms, worked;
static double a[COUNT], b[COUNT];
static pid_t hog[HOGS];
static volatile double sink;

struct cause {
    char name[16];
    int rank;
};
static struct cause causes[2];
static int cause_count;

/* ---- work ----------------------------------------------------------------------------- */

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pause_for(double ms)
{
    const struct timespec t = {(time_t)(ms / 1000), (long)((ms - 1000 * (long)(ms / 1000)) * 1e6)};
    nanosleep(&t, NULL);
}

/* With WAIT_ASLEEP in the environment work and waits are sleeping, which takes about as long on a host that others
 * load. */
static bool is_asleep(void)
{
    static int known = -1;
    if (known < 0)
        known = getenv("WAIT_ASLEEP") != NULL;
    return known != 0;
}

/* Makes the process one that runs when its time comes, on a host that others load too; where that is not allowed its
 * times are less exact. */
static void run_at_once(void)
{
    const struct sched_param first = {.sched_priority = 1};
    if (is_asleep() && sched_setscheduler(0, SCHED_RR, &first) != 0)
        perror("wait_mpi: no real-time priority");
}

/* Stands for the one of libc, which MPI calls while it polls (mpi_yield_when_idle). */
int sched_yield(void)
{
    if (is_asleep())
        pause_for(0.02);
    return (int)syscall(SYS_sched_yield);
}

static void compute(double ms)
{
    if (is_asleep()) {
        pause_for(ms);
        return;
    }
    const double until = seconds(CLOCK_THREAD_CPUTIME_ID) + 1e-3 * ms;
    while (seconds(CLOCK_THREAD_CPUTIME_ID) < until) {
        for (int i = 0; i < 300; i++)
            sink += i;
    }
}

/* Writes to the disk and waits until the bytes are there, for about as long as asked. */
static void write_out(double ms)
{
    static char bytes[WRITTEN];
    char name[] = "wait_mpi.XXXXXX";
    const double until = seconds(CLOCK_MONOTONIC) + 1e-3 * ms;
    const int fd = mkstemp(name);
    if (fd < 0)
        return;
    unlink(name);
    do {
        if (pwrite(fd, bytes, sizeof bytes, 0) < 0 || fdatasync(fd) != 0)
            break;
    } while (seconds(CLOCK_MONOTONIC) < until);
    close(fd);
}

/* Reads a pipe whose other end writes slowly, as a file system far away does. */
static void read_in(double ms)
{
    static int to[2] = {-1, -1}, from[2] = {-1, -1};
    double asked = ms, got = 0;
    if (to[0] < 0 && (pipe(to) != 0 || pipe(from) != 0))
        return;
    if (hog[0] == 0) {
        hog[0] = fork();
        if (hog[0] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            while (read(to[0], &got, sizeof got) == sizeof got) {
                pause_for(got);
                if (write(from[1], &got, sizeof got) < 0)
                    break;
            }
            _exit(0);
        }
    }
    if (write(to[1], &asked, sizeof asked) == sizeof asked && read(from[0], &got, sizeof got) < 0)
        perror("read");
}

/* Shares the CPU with programs that do nothing but compute. */
static void share_cpu(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(rank % (int)sysconf(_SC_NPROCESSORS_ONLN), &one);
    sched_setaffinity(0, sizeof one, &one);
    for (int i = 0; i < HOGS && hog[i] == 0; i++) {
        hog[i] = fork();
        if (hog[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                sink += 1;
        }
    }
}

/* ---- a limit on CPU time ---- */

static char box[128]; /* the control group of the rank; empty: none */

static bool write_line(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY);
    const bool ok = fd >= 0 && write(fd, text, strlen(text)) > 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Moves the process into a control group that may use THROTTLED_TO of each 10 ms: before MPI begins, as a
 * container does, so the rank is the one that the launcher names. */
static void limit_cpu(void)
{
    const char *name = getenv("OMPI_COMM_WORLD_RANK"), *other = getenv("PMI_RANK");
    const int self = atoi(name != NULL ? name : other != NULL ? other : "-1");
    bool is_limited = false;
    for (int i = 0; i < cause_count; i++)
        is_limited |= causes[i].rank == self && strcmp(causes[i].name, "throttle") == 0;
    if (!is_limited)
        return;
    const bool is_old = access("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", F_OK) == 0;
    snprintf(box, sizeof box, "/sys/fs/cgroup/%swait_mpi.%d", is_old ? "cpu/" : "", (int)getpid());
    const bool ok = mkdir(box, 0755) == 0 &&
                    (is_old ? write_line(box, "cpu.cfs_period_us", "10000") &&
                                  write_line(box, "cpu.cfs_quota_us", THROTTLED_TO)
                            : write_line(box, "cpu.max", THROTTLED_TO " 10000")) &&
                    write_line(box, "cgroup.procs", "0");
    if (!ok) {
        fputs("wait_mpi: no control group can be made here\n", stderr);
        exit(3);
    }
}

static void leave_box(void)
{
    char parent[sizeof box + 3];
    if (box[0] == 0)
        return;
    snprintf(parent, sizeof parent, "%s/..", box);
    write_line(parent, "cgroup.procs", "0");
    rmdir(box);
}

static void end_hogs(void)
{
    leave_box();
    for (int i = 0; i < HOGS; i++) {
        if (hog[i] > 0) {
            kill(hog[i], SIGKILL);
            waitpid(hog[i], NULL, 0);
        }
    }
}

static void do_cause(const char *name)
{
    if (strcmp(name, "compute") == 0)
        compute(extra_ms);
    else if (strcmp(name, "sleep") == 0)
        pause_for(extra_ms);
    else if (strcmp(name, "write") == 0)
        write_out(extra_ms);
    else if (strcmp(name, "read") == 0)
        read_in(extra_ms);
    else if (strcmp(name, "bursts") == 0 && step % 8 == 5)
        compute(8 * extra_ms);
    else if (strcmp(name, "late") == 0 && step >= steps / 2)
        compute(extra_ms);
    else if (strcmp(name, "cpu") == 0 && step == 0)
        share_cpu();
}

/* The work of a rank in a step, or the given part of it. */
static void work(double part)
{
    const double from = seconds(CLOCK_MONOTONIC);
    compute(part * work_ms);
    for (int i = 0; i < cause_count && part > 0.4; i++) {
        if (causes[i].rank == rank)
            do_cause(causes[i].name);
    }
    worked += seconds(CLOCK_MONOTONIC) - from;
}

/* ---- ways to meet ----------------------------------------------------------------------- */

static void blocking(void)
{
    work(1);
    MPI_Allreduce(a, b, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void halo(void)
{
    const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    MPI_Request r[4];
    MPI_Irecv(a, COUNT / 2, MPI_DOUBLE, last, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(a + COUNT / 2, COUNT / 2, MPI_DOUBLE, next, 2, MPI_COMM_WORLD, &r[1]);
    work(1);
    MPI_Isend(b, COUNT / 2, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &r[2]);
    MPI_Isend(b + COUNT / 2, COUNT / 2, MPI_DOUBLE, last, 2, MPI_COMM_WORLD, &r[3]);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
}

static void overlapped(void)
{
    MPI_Request r;
    work(0.5);
    MPI_Iallreduce(a, b, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &r);
    compute(0.3 * work_ms);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void persistent(void)
{
    static MPI_Request r[2];
    if (step == 0) {
        MPI_Recv_init(a, COUNT, MPI_DOUBLE, (rank + ranks - 1) % ranks, 5, MPI_COMM_WORLD, &r[0]);
        MPI_Send_init(b, COUNT, MPI_DOUBLE, (rank + 1) % ranks, 5, MPI_COMM_WORLD, &r[1]);
    }
    work(1);
    MPI_Startall(2, r);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

static void pipeline(void)
{
    for (int m = 0; m < 2; m++) {
        if (rank > 0)
            MPI_Recv(a, COUNT, MPI_DOUBLE, rank - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        work(0.5);
        if (rank + 1 < ranks)
            MPI_Send(b, COUNT, MPI_DOUBLE, rank + 1, 3, MPI_COMM_WORLD);
    }
    for (int m = 0; m < 2; m++) {
        if (rank + 1 < ranks)
            MPI_Recv(a, COUNT, MPI_DOUBLE, rank + 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compute(0.3 * work_ms);
        if (rank > 0)
            MPI_Send(b, COUNT, MPI_DOUBLE, rank - 1, 4, MPI_COMM_WORLD);
    }
}

/* Rank 0 hands out a piece of work to each worker and waits for all results. */
static void master(void)
{
    if (rank == 0) {
        for (int w = 1; w < ranks; w++)
            MPI_Send(a, 8, MPI_DOUBLE, w, 6, MPI_COMM_WORLD);
        for (int w = 1; w < ranks; w++)
            MPI_Recv(b, 8, MPI_DOUBLE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(a, 8, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        work(1);
        MPI_Send(b, 8, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD);
    }
}

static void windows(void)
{
    static MPI_Win win = MPI_WIN_NULL;
    if (win == MPI_WIN_NULL)
        MPI_Win_create(b, sizeof b, sizeof *b, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(a, 64, MPI_DOUBLE, (rank + 1) % ranks, 0, 64, MPI_DOUBLE, win);
    work(1);
    MPI_Win_fence(0, win);
    if (step == steps - 1)
        MPI_Win_free(&win);
}

static void *work_beside(void *arg)
{
    compute(0.2 * work_ms);
    return arg;
}

static void threads(void)
{
    pthread_t t;
    const int rc = pthread_create(&t, NULL, work_beside, NULL);
    work(1);
    if (rc == 0)
        pthread_join(t, NULL);
    MPI_Allreduce(a, b, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Meets the other ranks' second threads, while the first threads work. */
static void *meet_beside(void *arg)
{
    static double c[COUNT], d[COUNT];
    compute(0.2 * work_ms);
    MPI_Allreduce(c, d, COUNT, MPI_DOUBLE, MPI_MAX, *(MPI_Comm *)arg);
    return NULL;
}

static void callers(void)
{
    static MPI_Comm beside = MPI_COMM_NULL;
    pthread_t t;
    if (beside == MPI_COMM_NULL)
        MPI_Comm_dup(MPI_COMM_WORLD, &beside);
    if (pthread_create(&t, NULL, meet_beside, &beside) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    work(1);
    MPI_Allreduce(a, b, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    pthread_join(t, NULL);
}

static const struct {
    const char *name;
    void (*meet)(void);
} patterns[] = {{"blocking", blocking},     {"halo", halo},         {"overlapped", overlapped},
                {"persistent", persistent}, {"pipeline", pipeline}, {"master", master},
                {"windows", windows},       {"threads", threads},   {"callers", callers}};

/* ---- the program --------------------------------------------------------------------------- */

static void read_causes(char *cause, char *at)
{
    snprintf(causes[0].name, sizeof causes[0].name, "%s", cause);
    causes[0].rank = (int)strtol(at, &at, 10);
    cause_count = 1;
    if (sscanf(at, ",%15[a-z],%d", causes[1].name, &causes[1].rank) == 2)
        cause_count = 2;
}

int main(int argc, char **argv)
{
    int level;
    if (argc != 7) {
        fputs("usage: wait_mpi PATTERN CAUSE RANK MS STEPS WORK_MS\n", stderr);
        return 2;
    }
    read_causes(argv[2], argv[3]);
    extra_ms = atof(argv[4]);
    steps = atoi(argv[5]);
    work_ms = atof(argv[6]);
    limit_cpu();
    run_at_once();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const double from = seconds(CLOCK_MONOTONIC);
    for (step = 0; step < steps; step++) {
        for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
            if (strcmp(patterns[i].name, argv[1]) == 0)
                patterns[i].meet();
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("seconds %.4f\n", seconds(CLOCK_MONOTONIC) - from);
    if (worked > 0)
        printf("work %d %.4f\n", rank, worked);
    end_hogs();
    MPI_Finalize();
    return 0;
}

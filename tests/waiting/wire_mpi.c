/* SPDX-License-Identifier: MIT
 *
 * wire_mpi: ranks that work, then exchange bytes over MPI.
 *
 *     wire_mpi PATTERN STEPS BYTES WORK_US
 *
 * PATTERN is the way in which they meet: allreduce, halo (both neighbours of a ring), alltoall, or pipeline (from rank to
 * rank and back).  The bytes are those of a rank in a step.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, ranks, bytes;
static char *in, *out;

/* Works for that much CPU time. */
static void work(double us)
{
    struct timespec t;
    double until = 0;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        const double now = 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
        until = until > 0 ? until : now + us;
        us = until - now;
    } while (us > 0);
}

static void allreduce(void)
{
    MPI_Allreduce(out, in, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void halo(void)
{
    const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, n = bytes / 2;
    MPI_Request r[4];
    MPI_Irecv(in, n, MPI_BYTE, last, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(in + n, n, MPI_BYTE, next, 2, MPI_COMM_WORLD, &r[1]);
    MPI_Isend(out, n, MPI_BYTE, next, 1, MPI_COMM_WORLD, &r[2]);
    MPI_Isend(out + n, n, MPI_BYTE, last, 2, MPI_COMM_WORLD, &r[3]);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
}

static void alltoall(void)
{
    MPI_Alltoall(out, bytes / ranks, MPI_BYTE, in, bytes / ranks, MPI_BYTE, MPI_COMM_WORLD);
}

static void pipeline(void)
{
    if (rank > 0)
        MPI_Recv(in, bytes, MPI_BYTE, rank - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank + 1 < ranks) {
        MPI_Send(out, bytes, MPI_BYTE, rank + 1, 3, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_BYTE, rank + 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank > 0)
        MPI_Send(out, bytes, MPI_BYTE, rank - 1, 4, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*meet)(void);
} patterns[] = {
    {"allreduce", allreduce}, {"halo", halo}, {"alltoall", alltoall}, {"pipeline", pipeline}};

int main(int argc, char **argv)
{
    if (argc != 5) {
        fputs("usage: wire_mpi PATTERN STEPS BYTES WORK_US\n", stderr);
        return 2;
    }
    const int steps = atoi(argv[2]);
    bytes = atoi(argv[3]);
    in = calloc(1, (size_t)bytes + 1);
    out = calloc(1, (size_t)bytes + 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int step = 0; step < steps && in != NULL && out != NULL; step++) {
        work(atof(argv[4]));
        for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
            if (strcmp(patterns[i].name, argv[1]) == 0)
                patterns[i].meet();
        }
    }
    MPI_Finalize();
    free(in);
    free(out);
    return 0;
}

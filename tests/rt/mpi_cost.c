/* SPDX-License-Identifier: MIT
 *
 * mpi_cost: CPU time of an MPI call that does next to nothing, so that what a hook adds shows: the
 * best of many rounds in nanoseconds, for a send to nobody, an allreduce with oneself, a
 * non-blocking send with its wait, a broadcast to oneself, and four requests with one wait.
 */
#include <mpi.h>

#include <stdio.h>
#include <time.h>

enum { CALLS = 2000, ROUNDS = 60 };

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void send(void)
{
    int x = 0;
    MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
}
static void allreduce(void)
{
    int x = 0, y;
    MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
}
static void isend_wait(void)
{
    int x = 0;
    MPI_Request r;
    MPI_Isend(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void bcast(void)
{
    int x = 0;
    MPI_Bcast(&x, 1, MPI_INT, 0, MPI_COMM_SELF);
}
static void four(void)
{
    int x = 0;
    MPI_Request r[4];
    for (int i = 0; i < 4; i += 2) {
        MPI_Irecv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r[i]);
        MPI_Isend(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r[i + 1]);
    }
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
}

static double best(void (*fn)(void))
{
    double least = 1e18;
    for (int r = 0; r < ROUNDS; r++) {
        const double start = cpu_ns();
        for (int i = 0; i < CALLS; i++)
            fn();
        const double took = (cpu_ns() - start) / CALLS;
        least = took < least ? took : least;
    }
    return least;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    printf("%.1f ", best(send));
    printf("%.1f ", best(allreduce));
    printf("%.1f ", best(isend_wait));
    printf("%.1f ", best(bcast));
    printf("%.1f\n", best(four));
    MPI_Finalize();
    return 0;
}

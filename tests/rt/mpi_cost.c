/* SPDX-License-Identifier: MIT
 *
 * mpi_cost: CPU time of an MPI call that does next to nothing, so that what a hook adds shows: the
 * best of many rounds in nanoseconds, for a send to nobody, an allreduce with oneself, and a
 * non-blocking send with its wait.
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
    const double a = best(send), b = best(allreduce), c = best(isend_wait);
    printf("%.1f %.1f %.1f\n", a, b, c);
    MPI_Finalize();
    return 0;
}

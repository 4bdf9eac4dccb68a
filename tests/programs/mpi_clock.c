/* SPDX-License-Identifier: MIT
 *
 * mpi_clock: ranks that write what the clock of the machine really is as a counter, often, so that
 * a reader can tell how far the times that the recorder gave them are from it.
 *
 *     mpi_clock [ROUNDS [together]]      together: with some barriers in each round
 */
#include <mpi.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    void (*counter)(void *, const char *, int64_t) =
        (void (*)(void *, const char *, int64_t))dlsym(RTLD_DEFAULT, "mstx_counter_int");
    MPI_Init(&argc, &argv);
    const int n = argc > 1 ? atoi(argv[1]) : 100;
    for (int i = 0; i < n && counter != NULL; i++) {
        const struct timespec nap = {.tv_nsec = 10000000};
        struct timespec t;
        for (int k = 0; k < 20; k++) { /* one of many is not interrupted in between */
            clock_gettime(CLOCK_MONOTONIC, &t);
            counter(NULL, "true", (int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
        }
        for (int k = 0; k < 5 && argc > 2; k++)
            MPI_Barrier(MPI_COMM_WORLD);
        nanosleep(&nap, NULL);
    }
    MPI_Finalize();
    return counter == NULL;
}

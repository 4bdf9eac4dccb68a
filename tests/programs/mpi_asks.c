/* SPDX-License-Identifier: MIT
 *
 * mpi_asks COMMAND: the first rank of an MPI job runs a command, while the others wait for it.
 */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, failed = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        failed = argc != 2 || system(argv[1]) != 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return failed;
}

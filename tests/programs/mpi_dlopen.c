/* SPDX-License-Identifier: MIT
 *
 * mpi_dlopen: a program that opens its MPI itself, twice and RTLD_LOCAL, and looks every function up, as
 * ctypes of Python and Julia do.
 *
 *     mpi_dlopen LIBRARY      "good RANK SUM" or what went wrong; the status is that of the last call
 */
#include <mpi.h>

#include <dlfcn.h>
#include <stdio.h>

static void *lib;
static void *look(const char *name)
{
    void *p = dlsym(lib, name);
    if (p == NULL)
        printf("no %s\n", name);
    return p;
}

#if defined(OPEN_MPI)
#define OWN(handle, variable) look(#variable)
#else
#define OWN(handle, variable) handle
#endif

int main(int argc, char **argv)
{
    int rank = -1, sum = 0, one = 1;
    void *first = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    lib = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (lib == NULL || lib != first || dlsym(lib, "MPI_Not_there") != NULL)
        return 3;
    int (*init)(int *, char ***) = look("MPI_Init");
    int (*barrier)(MPI_Comm) = look("MPI_Barrier");
    int (*comm_rank)(MPI_Comm, int *) = look("MPI_Comm_rank");
    int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm) =
        look("MPI_Allreduce");
    int (*errors)(MPI_Comm, MPI_Errhandler) = look("MPI_Comm_set_errhandler");
    int (*finalize)(void) = look("MPI_Finalize");
    init(&argc, &argv);
    MPI_Comm world = OWN(MPI_COMM_WORLD, ompi_mpi_comm_world);
    MPI_Datatype type = OWN(MPI_INT, ompi_mpi_int);
    MPI_Op op = OWN(MPI_SUM, ompi_mpi_op_sum);
    comm_rank(world, &rank);
    barrier(world);
    allreduce(&one, &sum, 1, type, op, world);
    errors(world, OWN(MPI_ERRORS_RETURN, ompi_mpi_errors_return));
    int bad = barrier(OWN(MPI_COMM_NULL, ompi_mpi_comm_null));
    printf("good %d %d %d\n", rank, sum, bad != MPI_SUCCESS);
    return finalize();
}

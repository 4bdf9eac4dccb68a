/* SPDX-License-Identifier: MIT
 *
 * mpi_count: an independent counter of MPI calls, to be preloaded behind the hook or without it.
 * At MPI_Finalize each rank appends "NAME COUNT" lines to $MPI_COUNT.RANK.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

#define CALLS(X)                                                                                   \
    X(Barrier, (MPI_Comm c), (c))                                                                  \
    X(Bcast, (void *b, int n, MPI_Datatype t, int r, MPI_Comm c), (b, n, t, r, c))                 \
    X(Allreduce, (const void *s, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),            \
      (s, b, n, t, o, c))                                                                          \
    X(Reduce, (const void *s, void *b, int n, MPI_Datatype t, MPI_Op o, int r, MPI_Comm c),        \
      (s, b, n, t, o, r, c))                                                                       \
    X(Scan, (const void *s, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),                 \
      (s, b, n, t, o, c))                                                                          \
    X(Reduce_scatter,                                                                              \
      (const void *s, void *b, const int n[], MPI_Datatype t, MPI_Op o, MPI_Comm c),               \
      (s, b, n, t, o, c))                                                                          \
    X(Allgather,                                                                                   \
      (const void *s, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, MPI_Comm c),          \
      (s, n, t, b, m, u, c))                                                                       \
    X(Allgatherv,                                                                                  \
      (const void *s, int n, MPI_Datatype t, void *b, const int m[], const int d[],                \
       MPI_Datatype u, MPI_Comm c),                                                                \
      (s, n, t, b, m, d, u, c))                                                                    \
    X(Alltoall,                                                                                    \
      (const void *s, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, MPI_Comm c),          \
      (s, n, t, b, m, u, c))                                                                       \
    X(Alltoallv,                                                                                   \
      (const void *s, const int n[], const int e[], MPI_Datatype t, void *b, const int m[],        \
       const int d[], MPI_Datatype u, MPI_Comm c),                                                 \
      (s, n, e, t, b, m, d, u, c))                                                                 \
    X(Gather,                                                                                      \
      (const void *s, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, int r, MPI_Comm c),   \
      (s, n, t, b, m, u, r, c))                                                                    \
    X(Gatherv,                                                                                     \
      (const void *s, int n, MPI_Datatype t, void *b, const int m[], const int d[],                \
       MPI_Datatype u, int r, MPI_Comm c),                                                         \
      (s, n, t, b, m, d, u, r, c))                                                                 \
    X(Scatter,                                                                                     \
      (const void *s, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, int r, MPI_Comm c),   \
      (s, n, t, b, m, u, r, c))                                                                    \
    X(Send, (const void *b, int n, MPI_Datatype t, int p, int g, MPI_Comm c), (b, n, t, p, g, c))  \
    X(Rsend, (const void *b, int n, MPI_Datatype t, int p, int g, MPI_Comm c), (b, n, t, p, g, c)) \
    X(Recv, (void *b, int n, MPI_Datatype t, int p, int g, MPI_Comm c, MPI_Status *s),             \
      (b, n, t, p, g, c, s))                                                                       \
    X(Isend, (const void *b, int n, MPI_Datatype t, int p, int g, MPI_Comm c, MPI_Request *r),     \
      (b, n, t, p, g, c, r))                                                                       \
    X(Irecv, (void *b, int n, MPI_Datatype t, int p, int g, MPI_Comm c, MPI_Request *r),           \
      (b, n, t, p, g, c, r))                                                                       \
    X(Sendrecv,                                                                                    \
      (const void *b, int n, MPI_Datatype t, int p, int g, void *d, int m, MPI_Datatype u, int f,  \
       int h, MPI_Comm c, MPI_Status *s),                                                          \
      (b, n, t, p, g, d, m, u, f, h, c, s))                                                        \
    X(Wait, (MPI_Request * r, MPI_Status * s), (r, s))                                             \
    X(Waitall, (int n, MPI_Request r[], MPI_Status s[]), (n, r, s))                                \
    X(Waitany, (int n, MPI_Request r[], int *i, MPI_Status *s), (n, r, i, s))                      \
    X(Test, (MPI_Request * r, int *f, MPI_Status *s), (r, f, s))                                   \
    X(Testall, (int n, MPI_Request r[], int *f, MPI_Status s[]), (n, r, f, s))                     \
    X(Testany, (int n, MPI_Request r[], int *i, int *f, MPI_Status *s), (n, r, i, f, s))           \
    X(Testsome, (int n, MPI_Request r[], int *d, int i[], MPI_Status s[]), (n, r, d, i, s))        \
    X(Request_get_status, (MPI_Request r, int *f, MPI_Status *s), (r, f, s))                       \
    X(Iprobe, (int p, int t, MPI_Comm c, int *f, MPI_Status *s), (p, t, c, f, s))                  \
    X(Request_free, (MPI_Request * r), (r))                                                        \
    X(Comm_split, (MPI_Comm c, int k, int o, MPI_Comm *n), (c, k, o, n))                           \
    X(Comm_dup, (MPI_Comm c, MPI_Comm * n), (c, n))                                                \
    X(Comm_create, (MPI_Comm c, MPI_Group g, MPI_Comm * n), (c, g, n))                             \
    X(Comm_free, (MPI_Comm * c), (c))                                                              \
    X(Cart_create, (MPI_Comm c, int n, const int d[], const int p[], int r, MPI_Comm *m),          \
      (c, n, d, p, r, m))

#define NUMBER(name, params, args) CALL_##name,
enum { CALLS(NUMBER) COUNT };
static unsigned long counts[COUNT];

#define WRAP(name, params, args)                                                                   \
    int MPI_##name params                                                                          \
    {                                                                                              \
        counts[CALL_##name]++;                                                                     \
        return PMPI_##name args;                                                                   \
    }
#pragma GCC visibility push(default)
CALLS(WRAP)

int MPI_Finalize(void)
{
#define NAME(name, params, args) "MPI_" #name,
    static const char *const names[] = {CALLS(NAME)};
    char path[4096];
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s.%d", getenv("MPI_COUNT"), rank);
    FILE *f = fopen(path, "w");
    for (int i = 0; f != NULL && i < COUNT; i++) {
        if (counts[i] != 0)
            fprintf(f, "%s %lu\n", names[i], counts[i]);
    }
    if (f != NULL)
        fclose(f);
    return PMPI_Finalize();
}
#pragma GCC visibility pop

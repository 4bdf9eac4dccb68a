/* SPDX-License-Identifier: MIT
 *
 * par_mpi: the plugin for a flavour of MPI, built once with the compiler of each.
 */
#include "probe/base/par_plugin.h"

#include <mpi.h>
#include <stdio.h>

#ifndef MS_FLAVOUR
#error "say which flavour: -DMS_FLAVOUR='\"openmpi\"'"
#endif

enum { TAG = 7 };

static int begin(unsigned *rank, unsigned *size)
{
    int provided, r = 0, n = 0;
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_rank(MPI_COMM_WORLD, &r);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(MPI_COMM_WORLD, &n);
    *rank = (unsigned)r;
    *size = (unsigned)n;
    return code;
}

static int send_bytes(unsigned to, const void *p, size_t n)
{
    return MPI_Send(p, (int)n, MPI_BYTE, (int)to, TAG, MPI_COMM_WORLD);
}

static int recv_bytes(int from, void *p, size_t n, unsigned *who)
{
    MPI_Status status;
    int got = 0;
    int code = MPI_Recv(p, (int)n, MPI_BYTE, from < 0 ? MPI_ANY_SOURCE : from, TAG, MPI_COMM_WORLD,
                        &status);
    if (code != MPI_SUCCESS)
        return code;
    *who = (unsigned)status.MPI_SOURCE;
    code = MPI_Get_count(&status, MPI_BYTE, &got);
    return code == MPI_SUCCESS && (size_t)got != n ? MPI_ERR_TRUNCATE : code;
}

static int barrier(void)
{
    return MPI_Barrier(MPI_COMM_WORLD);
}

static void end(void)
{
    MPI_Finalize();
}

static void explain(int code, char *text, size_t n)
{
    char whole[MPI_MAX_ERROR_STRING + 1];
    int length = 0;
    if (MPI_Error_string(code, whole, &length) != MPI_SUCCESS)
        length = 0;
    snprintf(text, n, "%.*s", length, whole);
}

__attribute__((visibility("default"))) extern const struct ms_par_plugin ms_par_plugin;
const struct ms_par_plugin ms_par_plugin = {
    .version = MS_PAR_PLUGIN_VERSION,
    .name = MS_FLAVOUR,
    .begin = begin,
    .send = send_bytes,
    .recv = recv_bytes,
    .barrier = barrier,
    .end = end,
    .explain = explain,
};

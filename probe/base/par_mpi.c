/* SPDX-License-Identifier: MIT
 *
 * par_mpi: the plugin for a flavour of MPI, built once with the compiler of each.
 */
#include "probe/base/par_plugin.h"

#include <mpi.h>
#include <stdio.h>
#include <time.h>

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

/* MPI waits by busy polling, which takes a core from the process that is waited for. This plugin
 * polls a while without a pause, then sleeps between polls, each time twice as long. */
enum { ASK_AT_ONCE = 200, SLEEP_LEAST = 20000, SLEEP_MOST = 1000000 };

static int wait_for(MPI_Request *request, MPI_Status *status)
{
    struct timespec t = {0, SLEEP_LEAST};
    for (int asked = 0;; asked++) {
        int done;
        int code = MPI_Test(request, &done, status);
        if (code != MPI_SUCCESS || done)
            return code;
        if (asked < ASK_AT_ONCE)
            continue;
        nanosleep(&t, NULL);
        t.tv_nsec = t.tv_nsec * 2 < SLEEP_MOST ? t.tv_nsec * 2 : SLEEP_MOST;
    }
}

static int send_bytes(unsigned to, const void *p, size_t n)
{
    MPI_Request request;
    int code = MPI_Isend(p, (int)n, MPI_BYTE, (int)to, TAG, MPI_COMM_WORLD, &request);
    return code == MPI_SUCCESS ? wait_for(&request, MPI_STATUS_IGNORE) : code;
}

static int recv_bytes(int from, void *p, size_t n, unsigned *who)
{
    MPI_Status status;
    MPI_Request request;
    int got = 0;
    int code = MPI_Irecv(p, (int)n, MPI_BYTE, from < 0 ? MPI_ANY_SOURCE : from, TAG, MPI_COMM_WORLD,
                         &request);
    if (code == MPI_SUCCESS)
        code = wait_for(&request, &status);
    if (code != MPI_SUCCESS)
        return code;
    *who = (unsigned)status.MPI_SOURCE;
    code = MPI_Get_count(&status, MPI_BYTE, &got);
    return code == MPI_SUCCESS && (size_t)got != n ? MPI_ERR_TRUNCATE : code;
}

static void end(void)
{
    MPI_Request request;
    if (MPI_Ibarrier(MPI_COMM_WORLD, &request) == MPI_SUCCESS)
        wait_for(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
}

static void explain_code(int code, char *text, size_t n)
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
    .end = end,
    .explain = explain_code,
};

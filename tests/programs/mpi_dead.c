/* SPDX-License-Identifier: MIT
 *
 * mpi_dead: one of several ranks comes late to a call of MPI, so late that the others seem to hang;
 * then all of them end well.  mpi_dead KIND RANK SECONDS
 */
#include <mpi.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, late, seconds;
static int out[4], in[64];

static void wait_for(MPI_Request r)
{
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}
static void be_late(void)
{
    if (rank == late)
        sleep((unsigned)seconds);
}

/* ---- between two: all others wait for the late one ---------------------------------------------- */

static void send_to_all(void)
{
    be_late();
    for (int i = 0; i < size; i++) {
        if (i != rank)
            MPI_Send(out, 4, MPI_INT, i, 3, MPI_COMM_WORLD);
    }
}
static void receive_from_all(void)
{
    be_late();
    for (int i = 0; i < size; i++) {
        if (i != rank)
            MPI_Recv(in, 4, MPI_INT, i, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void do_recv(void)
{
    MPI_Recv(in, 4, MPI_INT, late, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void do_ssend(void)
{
    MPI_Ssend(out, 4, MPI_INT, late, 3, MPI_COMM_WORLD);
}
static void do_irecv(void)
{
    MPI_Request r;
    MPI_Irecv(in, 4, MPI_INT, late, 3, MPI_COMM_WORLD, &r);
    wait_for(r);
}
static void do_isend(void)
{
    MPI_Request r;
    MPI_Issend(out, 4, MPI_INT, late, 3, MPI_COMM_WORLD, &r);
    wait_for(r);
}
static void do_persistent(void)
{
    MPI_Request r;
    MPI_Recv_init(in, 4, MPI_INT, late, 3, MPI_COMM_WORLD, &r);
    MPI_Start(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Request_free(&r);
}
static void do_probe(void)
{
    MPI_Probe(late, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    do_recv();
}
/* One that nobody waits for, a listener, is no part of it. */
static void do_listener(void)
{
    MPI_Request listener;
    MPI_Irecv(out, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &listener);
    do_irecv();
    MPI_Cancel(&listener);
    wait_for(listener);
}

/* ---- all of them ------------------------------------------------------------------------------------ */

/* Everybody sends to everybody, and one of the messages does not come. */
static void do_waitall(void)
{
    MPI_Request r[64];
    int n = 0;
    be_late();
    for (int i = 0; i < size; i++) {
        if (i != rank)
            MPI_Irecv(&in[i], 1, MPI_INT, i, 4, MPI_COMM_WORLD, &r[n++]);
    }
    for (int i = 0; i < size; i++) {
        if (i != rank)
            MPI_Isend(out, 1, MPI_INT, i, 4, MPI_COMM_WORLD, &r[n++]);
    }
    MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
}
static void do_barrier(void)
{
    be_late();
    MPI_Barrier(MPI_COMM_WORLD);
}
static void do_allreduce(void)
{
    be_late();
    MPI_Allreduce(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}
static void do_bcast(void)
{
    be_late();
    MPI_Bcast(in, 4, MPI_INT, late, MPI_COMM_WORLD);
}
static void do_iallreduce(void)
{
    MPI_Request r;
    be_late();
    MPI_Iallreduce(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
    wait_for(r);
}
static void do_neighbour(void)
{
    const int periodic = 1;
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    be_late();
    MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, ring);
    MPI_Comm_free(&ring);
}

/* One waits for the late one elsewhere: he is a victim as those in the barrier are. */
static void do_between(void)
{
    be_late();
    if (rank == late)
        MPI_Send(out, 4, MPI_INT, (late + 1) % size, 3, MPI_COMM_WORLD);
    else if (rank == (late + 1) % size)
        do_recv();
    MPI_Barrier(MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*others)(void), (*late)(void); /* NULL: as the others */
} kinds[] = {{"recv", do_recv, send_to_all},
             {"ssend", do_ssend, receive_from_all},
             {"irecv", do_irecv, send_to_all},
             {"isend", do_isend, receive_from_all},
             {"persistent", do_persistent, send_to_all},
             {"probe", do_probe, send_to_all},
             {"listener", do_listener, send_to_all},
             {"waitall", do_waitall, NULL},
             {"barrier", do_barrier, NULL},
             {"allreduce", do_allreduce, NULL},
             {"bcast", do_bcast, NULL},
             {"iallreduce", do_iallreduce, NULL},
             {"neighbour", do_neighbour, NULL},
             {"between", do_between, NULL}};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    late = argc > 3 ? atoi(argv[2]) : 0;
    seconds = argc > 3 ? atoi(argv[3]) : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (argc < 4 || strcmp(argv[1], kinds[i].name) != 0)
            continue;
        if (rank == late && kinds[i].late != NULL)
            kinds[i].late();
        else
            kinds[i].others();
    }
    return MPI_Finalize();
}

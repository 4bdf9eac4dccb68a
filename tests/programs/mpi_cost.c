/* SPDX-License-Identifier: MIT
 *
 * mpi_cost: CPU time of MPI calls that do next to nothing, so that what a hook adds shows: the best of
 * many rounds in nanoseconds, one number for each kind.  "mpi_cost names" tells what they are and how
 * many calls are in each: "a send to nobody:1,...".
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

static void many(void)
{
    int x = 0;
    MPI_Request r[200];
    for (int i = 0; i < 200; i++)
        MPI_Isend(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r[i]);
    MPI_Waitall(200, r, MPI_STATUSES_IGNORE);
}

static void recv(void)
{
    int x;
    MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void exchange(void)
{
    int x = 0, y;
    MPI_Sendrecv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, &y, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}
static void replace(void)
{
    int x = 0;
    MPI_Sendrecv_replace(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
}
static void barrier(void)
{
    MPI_Barrier(MPI_COMM_SELF);
}
static void alltoallv(void)
{
    int x = 0, y, n = 1, at = 0;
    MPI_Alltoallv(&x, &n, &at, MPI_INT, &y, &n, &at, MPI_INT, MPI_COMM_SELF);
}
static void allgatherv(void)
{
    int x = 0, y, n = 1, at = 0;
    MPI_Allgatherv(&x, 1, MPI_INT, &y, &n, &at, MPI_INT, MPI_COMM_SELF);
}
static void reduce_scatter(void)
{
    int x = 0, y, n = 1;
    MPI_Reduce_scatter(&x, &y, &n, MPI_INT, MPI_SUM, MPI_COMM_SELF);
}
static void iallreduce(void)
{
    int x = 0, y;
    MPI_Request r;
    MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}
static MPI_Comm cart;
static void neighbours(void)
{
    int x[2] = {0}, y[2];
    MPI_Neighbor_alltoall(x, 1, MPI_INT, y, 1, MPI_INT, cart);
}
static MPI_Request prepared;
static void start(void)
{
    MPI_Start(&prepared);
    MPI_Wait(&prepared, MPI_STATUS_IGNORE);
}
static void start_all(void)
{
    MPI_Startall(1, &prepared);
    MPI_Waitall(1, &prepared, MPI_STATUSES_IGNORE);
}
static void prepare(void)
{
    int x = 0;
    MPI_Request r;
    MPI_Send_init(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r);
    MPI_Request_free(&r);
}
static MPI_Request never;
static void test(void)
{
    int flag;
    MPI_Test(&never, &flag, MPI_STATUS_IGNORE);
}
static void testsome(void)
{
    int done, at;
    MPI_Testsome(1, &never, &done, &at, MPI_STATUSES_IGNORE);
}
static void status(void)
{
    int flag;
    MPI_Request_get_status(never, &flag, MPI_STATUS_IGNORE);
}
static void iprobe(void)
{
    int flag;
    MPI_Iprobe(0, 77, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}
static void probe(void)
{
    MPI_Status s;
    MPI_Probe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &s);
}
static void mrecv(void)
{
    int x;
    MPI_Message m = MPI_MESSAGE_NO_PROC;
    MPI_Mrecv(&x, 1, MPI_INT, &m, MPI_STATUS_IGNORE);
}
static MPI_Win window;
static void put(void)
{
    int x = 0;
    MPI_Put(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window);
}
static void accumulate(void)
{
    int x = 0;
    MPI_Accumulate(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, window);
}
static void flush(void)
{
    MPI_Win_flush(MPI_PROC_NULL, window);
}
static void sync(void)
{
    MPI_Win_sync(window);
}

static const struct kind {
    const char *name;
    int calls;
    void (*fn)(void);
    int rounds;
} kinds[] = {
    {"send to nobody", 1, send, ROUNDS},
    {"receive of nobody", 1, recv, ROUNDS},
    {"sendrecv with nobody", 1, exchange, ROUNDS},
    {"sendrecv_replace", 1, replace, ROUNDS},
    {"allreduce of self", 1, allreduce, ROUNDS},
    {"bcast to self", 1, bcast, ROUNDS},
    {"barrier of self", 1, barrier, ROUNDS},
    {"alltoallv of self", 1, alltoallv, ROUNDS},
    {"allgatherv of self", 1, allgatherv, ROUNDS},
    {"reduce_scatter of self", 1, reduce_scatter, ROUNDS},
    {"neighbor_alltoall of self", 1, neighbours, ROUNDS},
    {"iallreduce and wait", 2, iallreduce, ROUNDS},
    {"isend and wait", 2, isend_wait, ROUNDS},
    {"four requests and waitall", 5, four, ROUNDS},
    {"200 requests and waitall", 201, many, 3},
    {"start and wait", 2, start, ROUNDS},
    {"startall and waitall", 2, start_all, ROUNDS},
    {"send_init and free", 2, prepare, ROUNDS},
    {"test in vain", 1, test, ROUNDS},
    {"testsome in vain", 1, testsome, ROUNDS},
    {"get_status in vain", 1, status, ROUNDS},
    {"iprobe in vain", 1, iprobe, ROUNDS},
    {"probe of nobody", 1, probe, ROUNDS},
    {"mrecv of nobody", 1, mrecv, ROUNDS},
    {"put to nobody", 1, put, ROUNDS},
    {"accumulate to nobody", 1, accumulate, ROUNDS},
    {"win_flush of nobody", 1, flush, ROUNDS},
    {"win_sync", 1, sync, ROUNDS},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static double best(const struct kind *k)
{
    double least = 1e18;
    for (int r = 0; r < k->rounds; r++) {
        const double start = cpu_ns();
        for (int i = 0; i < CALLS; i++)
            k->fn();
        const double took = (cpu_ns() - start) / CALLS;
        least = took < least ? took : least;
    }
    return least;
}

static void begin(int argc, char **argv)
{
    static int x;
    void *cells;
    const int one = 1;
    MPI_Init(&argc, &argv);
    MPI_Cart_create(MPI_COMM_SELF, 1, &one, &one, 0, &cart);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &window);
    MPI_Win_lock_all(0, window);
    MPI_Send_init(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &prepared);
    MPI_Irecv(&x, 1, MPI_INT, 0, 78, MPI_COMM_SELF, &never);
}

static void end(void)
{
    MPI_Cancel(&never);
    MPI_Wait(&never, MPI_STATUS_IGNORE);
    MPI_Request_free(&prepared);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Comm_free(&cart);
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        for (int i = 0; i < KINDS; i++)
            printf("%s%s:%d", i != 0 ? "," : "", kinds[i].name, kinds[i].calls);
        return 0;
    }
    begin(argc, argv);
    for (int i = 0; i < KINDS; i++)
        printf("%s%.1f", i != 0 ? " " : "", best(&kinds[i]));
    printf("\n");
    end();
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * mpi_app: an MPI program that suite_mpi_hooks.sh runs with and without the hook.  Every result is
 * checked here, so that a hook that changes one shows; what it prints must be the same both times.
 */
#include <mpi.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, failures;

static void expect(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        failures++;
    }
}

/* ---- collectives ---------------------------------------------------------------------------- */

static void blocking(MPI_Comm c)
{
    int me, n, one, sum, all[64], from[64], counts[64], places[64];
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    one = me + 1;
    MPI_Barrier(c);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c);
    expect(sum == n * (n + 1) / 2, "allreduce");
    MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_MAX, 0, c);
    expect(me != 0 || sum == n, "reduce");
    sum = me == 0 ? 77 : 0;
    MPI_Bcast(&sum, 1, MPI_INT, 0, c);
    expect(sum == 77, "bcast");
    MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, c);
    expect(all[n - 1] == n, "allgather");
    all[me] = me * 2;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, c);
    expect(all[n - 1] == 2 * (n - 1), "allgather in place");
    MPI_Gather(&one, 1, MPI_INT, all, 1, MPI_INT, 0, c);
    MPI_Scatter(all, 1, MPI_INT, &sum, 1, MPI_INT, 0, c);
    expect(sum == one, "gather and scatter");
    for (int i = 0; i < n; i++) {
        counts[i] = 1;
        places[i] = i;
        from[i] = me * 100 + i;
    }
    MPI_Alltoall(from, 1, MPI_INT, all, 1, MPI_INT, c);
    expect(all[n - 1] == (n - 1) * 100 + me, "alltoall");
    MPI_Alltoallv(from, counts, places, MPI_INT, all, counts, places, MPI_INT, c);
    expect(all[n - 1] == (n - 1) * 100 + me, "alltoallv");
    MPI_Allgatherv(&one, 1, MPI_INT, all, counts, places, MPI_INT, c);
    MPI_Gatherv(&one, 1, MPI_INT, all, counts, places, MPI_INT, 0, c);
    MPI_Scatterv(all, counts, places, MPI_INT, &sum, 1, MPI_INT, 0, c);
    expect(sum == one, "gatherv and scatterv");
    MPI_Reduce_scatter_block(from, &sum, 1, MPI_INT, MPI_SUM, c);
    MPI_Reduce_scatter(from, &sum, counts, MPI_INT, MPI_SUM, c);
    expect(sum == n * (n - 1) / 2 * 100 + n * me, "reduce_scatter");
    MPI_Scan(&one, &sum, 1, MPI_INT, MPI_SUM, c);
    expect(sum == (me + 1) * (me + 2) / 2, "scan");
    MPI_Exscan(&one, &sum, 1, MPI_INT, MPI_SUM, c);
    MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_MIN, c);
    expect(one == 1, "allreduce in place");
}

static void nonblocking(MPI_Comm c)
{
    MPI_Request r[4];
    int me, flag = 0, at, done, list[4], a = 1, b[4] = {0};
    MPI_Comm_rank(c, &me);
    MPI_Iallreduce(&a, &b[0], 1, MPI_INT, MPI_SUM, c, &r[0]);
    MPI_Ibcast(&b[1], 1, MPI_INT, 0, c, &r[1]);
    MPI_Ibarrier(c, &r[2]);
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
    MPI_Iallreduce(&a, &b[0], 1, MPI_INT, MPI_SUM, c, &r[0]);
    while (!flag)
        MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++)
        MPI_Ibarrier(c, &r[i]);
    MPI_Waitany(4, r, &at, MPI_STATUS_IGNORE);
    expect(at >= 0 && at < 4, "waitany");
    MPI_Waitsome(4, r, &done, list, MPI_STATUSES_IGNORE);
    for (flag = 0; !flag;)
        MPI_Testall(4, r, &flag, MPI_STATUSES_IGNORE);
    int n;
    MPI_Comm_size(c, &n);
    expect(b[0] == n, "iallreduce");
}

/* ---- between two ---------------------------------------------------------------------------- */

static void transfers(MPI_Comm c)
{
    MPI_Request r[2];
    MPI_Status s;
    double out[8] = {1, 2, 3}, in[8];
    int me, n, flag = 0, count;
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    int next = (me + 1) % n, before = (me + n - 1) % n;
    MPI_Irecv(in, 8, MPI_DOUBLE, MPI_ANY_SOURCE, 5, c, &r[0]);
    MPI_Isend(out, 3, MPI_DOUBLE, next, 5, c, &r[1]);
    MPI_Wait(&r[0], &s);
    MPI_Get_count(&s, MPI_DOUBLE, &count);
    expect(s.MPI_SOURCE == before && count == 3, "irecv tells who and how much");
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, 3, MPI_DOUBLE, next, 6, in, 8, MPI_DOUBLE, before, 6, c, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(out, 3, MPI_DOUBLE, next, 7, before, 7, c, &s);
    MPI_Isend(out, 1, MPI_DOUBLE, next, 8, c, &r[0]);
    while (!flag)
        MPI_Iprobe(before, 8, c, &flag, &s);
    MPI_Probe(before, 8, c, &s);
    MPI_Recv(in, 8, MPI_DOUBLE, before, 8, c, MPI_STATUS_IGNORE);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Send_init(out, 2, MPI_DOUBLE, next, 9, c, &r[0]);
    MPI_Recv_init(in, 2, MPI_DOUBLE, before, 9, c, &r[1]);
    for (int i = 0; i < 3; i++) {
        out[0] = i;
        in[0] = -1;
        MPI_Startall(2, r);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        expect(in[0] == i, "persistent");
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
    MPI_Send(out, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, c);
    MPI_Isend(out, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, c, &r[0]);
    MPI_Isend(out, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, c, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

/* Requests that end in another way: taken back, and freed while under way. */
static void given_up(void)
{
    MPI_Request r;
    MPI_Status s;
    double in[8], out = 1;
    int flag = 0;
    MPI_Irecv(in, 8, MPI_DOUBLE, MPI_ANY_SOURCE, 77, MPI_COMM_SELF, &r);
    MPI_Cancel(&r);
    MPI_Wait(&r, &s);
    MPI_Test_cancelled(&s, &flag);
    expect(flag != 0, "cancelled");
    MPI_Isend(&out, 1, MPI_DOUBLE, 0, 78, MPI_COMM_SELF, &r);
    MPI_Request_free(&r);
    MPI_Recv(in, 8, MPI_DOUBLE, 0, 78, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    in[0] = 0;
    MPI_Irecv(in, 8, MPI_DOUBLE, 0, 76, MPI_COMM_SELF, &r);
    MPI_Request_free(&r);
    MPI_Send(&out, 1, MPI_DOUBLE, 0, 76, MPI_COMM_SELF);
    expect(((volatile double *)in)[0] == 1, "a receive that was freed");
}

/* Each way to ask for a request in vain, many times, and then with success. */
static int ask(int how, MPI_Request r[2], MPI_Status *s)
{
    int flag = 0, at[2], done = 0;
    switch (how) {
    case 0:
        MPI_Test(&r[0], &flag, s);
        return flag;
    case 1:
        MPI_Testall(1, r, &flag, s);
        return flag;
    case 2:
        MPI_Testany(2, r, &at[0], &flag, s);
        return flag;
    default:
        MPI_Testsome(2, r, &done, at, s);
        return done != 0;
    }
}

static void asking(void)
{
    MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status s[2];
    int in, flag, count;
    for (int how = 0; how < 4; how++) {
        MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 80 + how, MPI_COMM_SELF, &r[0]);
        for (int i = 0; i < 5000; i++) {
            expect(!ask(how, r, s), "nothing came");
            MPI_Iprobe(0, 90, MPI_COMM_SELF, &flag, s);
        }
        for (int i = 0; i < 5000; i++)
            ask(how, r, s);
        MPI_Request_get_status(r[0], &flag, s);
        MPI_Send(&how, 1, MPI_INT, 0, 80 + how, MPI_COMM_SELF);
        while (!ask(how, r, s))
            continue;
        MPI_Get_count(&s[0], MPI_INT, &count);
        expect(in == how && count == 1 && s[0].MPI_SOURCE == 0, "it came");
    }
}

/* ---- communicators ---------------------------------------------------------------------------- */

/* Rank 0 is one side, the others are the other; its peer's rank counts from 0 again over there. */
static void across(MPI_Comm inter)
{
    MPI_Request r;
    MPI_Status s;
    int x = 0;
    if (rank == 0) {
        MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 79, inter, &r);
        MPI_Wait(&r, &s);
        expect(s.MPI_SOURCE == 0, "from the first of the others");
    } else if (rank == 1) {
        MPI_Send(&x, 1, MPI_INT, 0, 79, inter);
    }
}

static void communicators(void)
{
    MPI_Comm dup, half, cart, row, part, inter, merged, idup;
    MPI_Group world, some;
    MPI_Request r;
    const int dims[2] = {size, 1}, periods[2] = {1, 1}, keep[2] = {1, 0}, first[1] = {0};
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_set_name(dup, "a name");
    MPI_Comm_split(dup, rank % 2, -rank, &half);
    blocking(half);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
    MPI_Cart_sub(cart, keep, &row);
    int to[4], from[4];
    memset(from, 0, sizeof from);
    MPI_Neighbor_alltoall(from, 1, MPI_INT, to, 1, MPI_INT, cart);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, to, 1, MPI_INT, cart);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, first, &some);
    MPI_Comm_create(MPI_COMM_WORLD, some, &part);
    expect((part == MPI_COMM_NULL) == (rank != 0), "create");
    if (rank == 0) {
        MPI_Comm alone;
        MPI_Comm_create_group(MPI_COMM_WORLD, some, 3, &alone);
        MPI_Barrier(alone);
        MPI_Comm_free(&alone);
        MPI_Comm_free(&part);
    }
    if (size > 1) {
        MPI_Comm mine;
        MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &mine);
        MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 4, &inter);
        MPI_Barrier(inter);
        across(inter);
        MPI_Intercomm_merge(inter, rank == 0, &merged);
        MPI_Barrier(merged);
        MPI_Comm_free(&merged);
        MPI_Comm_free(&inter);
        MPI_Comm_free(&mine);
    }
    MPI_Comm_idup(MPI_COMM_WORLD, &idup, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Barrier(idup);
    MPI_Comm_free(&idup);
    for (int i = 0; i < 20; i++) { /* handles are used again */
        MPI_Comm c;
        MPI_Comm_dup(half, &c);
        MPI_Barrier(c);
        MPI_Comm_free(&c);
    }
    MPI_Comm_free(&row);
    MPI_Comm_free(&cart);
    MPI_Comm_free(&half);
    MPI_Comm_free(&dup);
    MPI_Group_free(&some);
    MPI_Group_free(&world);
}

static void one_sided(void)
{
    MPI_Win w;
    int cell = 0, one = 1, got = -1;
    MPI_Win_create(&cell, sizeof cell, sizeof cell, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Win_fence(0, w);
    MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, w);
    MPI_Win_fence(0, w);
    MPI_Get(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, w);
    MPI_Win_fence(0, w);
    expect(got == size, "accumulate and get");
    MPI_Win_free(&w);
}

/* ---- many threads ------------------------------------------------------------------------------ */

static void *storm(void *arg)
{
    MPI_Comm c = *(MPI_Comm *)arg;
    for (int i = 0; i < 500; i++) {
        MPI_Request r[2];
        int in, other = rank ^ 1;
        if (other >= size)
            break;
        MPI_Irecv(&in, 1, MPI_INT, other, 1, c, &r[0]);
        MPI_Isend(&i, 1, MPI_INT, other, 1, c, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        if (in != i)
            failures++;
        MPI_Barrier(c);
    }
    return NULL;
}

static void threads(void)
{
    enum { THREADS = 8 };
    pthread_t t[THREADS];
    MPI_Comm c[THREADS];
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &c[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, storm, &c[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&c[i]);
}

/* ---- what must not be done ------------------------------------------------------------------------ */

static void tell(const char *what, int rc)
{
    int class = 0;
    MPI_Error_class(rc, &class);
    if (rank == 0)
        printf("%s: class %d\n", what, class);
}

static void bad(void)
{
    int x = 0, y = 0;
    MPI_Datatype t;
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    tell("null type", MPI_Bcast(&x, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
    tell("bad root", MPI_Bcast(&x, 1, MPI_INT, size + 9, MPI_COMM_WORLD));
    tell("null op", MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD));
    tell("bad rank", MPI_Send(&x, 1, MPI_INT, size + 9, 0, MPI_COMM_WORLD));
    tell("bad count", MPI_Send(&x, -1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    tell("bad tag", MPI_Isend(&x, 1, MPI_INT, 0, -9, MPI_COMM_WORLD, &r));
    tell("null comm", MPI_Barrier(MPI_COMM_NULL));
    tell("null request", MPI_Wait(&r, MPI_STATUS_IGNORE));
    tell("free of null", MPI_Request_free(&r));
    MPI_Type_contiguous(3, MPI_INT, &t);
    tell("type not committed", MPI_Bcast(&x, 0, t, 0, MPI_COMM_WORLD));
    MPI_Type_free(&t);
}

/* ---- what MPI 4 added ------------------------------------------------------------------------------ */

#if MPI_VERSION >= 4
static void large_counts(void)
{
    const MPI_Count n = 3, counts[64] = {1, 1, 1, 1};
    const MPI_Aint places[64] = {0, 1, 2, 3};
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int out[3] = {rank, rank, rank}, in[64], all[64];
    MPI_Request r[2];
    MPI_Allreduce_c(out, in, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(in[2] == size * (size - 1) / 2, "allreduce_c");
    MPI_Allgatherv_c(out, 1, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
    expect(all[size - 1] == size - 1, "allgatherv_c");
    MPI_Irecv_c(in, n, MPI_INT, before, 11, MPI_COMM_WORLD, &r[0]);
    MPI_Isend_c(out, n, MPI_INT, next, 11, MPI_COMM_WORLD, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    expect(in[2] == before, "irecv_c");
    MPI_Isendrecv(out, 3, MPI_INT, next, 12, in, 3, MPI_INT, before, 12, MPI_COMM_WORLD, &r[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Allreduce_init(out, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
    for (int i = 0; i < 2; i++) {
        MPI_Start(&r[0]);
        MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&r[0]);
    expect(in[0] == size * (size - 1) / 2, "prepared allreduce");
}

static void partitions(void)
{
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int out[4] = {rank, rank, rank, rank}, in[4], flag;
    MPI_Request r[2];
    MPI_Psend_init(out, 2, 2, MPI_INT, next, 13, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
    MPI_Precv_init(in, 2, 2, MPI_INT, before, 13, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
    MPI_Startall(2, r);
    MPI_Pready(1, r[0]);
    MPI_Pready_range(0, 0, r[0]);
    MPI_Parrived(r[1], 0, &flag);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    expect(in[3] == before, "partitions");
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

static void sessions(void)
{
    MPI_Session s;
    MPI_Group g;
    MPI_Comm c;
    int sum = 0, one = 1;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
    MPI_Group_from_session_pset(s, "mpi://WORLD", &g);
    if (MPI_Comm_create_from_group(g, "app", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c) == MPI_SUCCESS) {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c);
        expect(sum == size, "a communicator of a session");
        MPI_Comm_free(&c);
    }
    MPI_Group_free(&g);
    MPI_Session_finalize(&s);
}
#endif

static void of_mpi_4(void)
{
#if MPI_VERSION >= 4
    large_counts();
    partitions();
    sessions();
#endif
}

/* ---- processes that come and go ---------------------------------------------------------------------- */

static void with_family(MPI_Comm family, int is_child)
{
    MPI_Comm all;
    int one = 1, sum = 0, n;
    MPI_Intercomm_merge(family, is_child, &all);
    MPI_Comm_size(all, &n);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    expect(sum == n && (is_child || n == size + 1), "all of a family");
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&family);
}

static void spawn(char *program)
{
    MPI_Comm family;
    char *arguments[] = {"child", NULL};
    MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &family,
                   MPI_ERRCODES_IGNORE);
    with_family(family, 0);
}

static void be_a_child(void)
{
    MPI_Comm family;
    MPI_Comm_get_parent(&family);
    if (family != MPI_COMM_NULL)
        with_family(family, 1);
}

static volatile sig_atomic_t handled;
static void handler(int sig)
{
    int flag;
    (void)sig;
    MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    handled++;
}

/* A handler that asks MPI while MPI waits: not allowed, but seen; it must not hang in the hook. */
static void in_handler(void)
{
    signal(SIGALRM, handler);
    for (int i = 0; i < 50; i++) {
        raise(SIGALRM);
        MPI_Barrier(MPI_COMM_SELF);
    }
    expect(handled == 50, "handler");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "all";
    int provided, flag;
    MPI_Initialized(&flag);
    if (strcmp(what, "early") == 0) /* ends the program, as MPI likes */
        return MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(what, "all") == 0) {
        blocking(MPI_COMM_WORLD);
        nonblocking(MPI_COMM_WORLD);
        transfers(MPI_COMM_WORLD);
        given_up();
        asking();
        communicators();
        one_sided();
    } else if (strcmp(what, "threads") == 0 && provided == MPI_THREAD_MULTIPLE) {
        threads();
    } else if (strcmp(what, "bad") == 0) {
        bad();
    } else if (strcmp(what, "new") == 0) {
        of_mpi_4();
    } else if (strcmp(what, "spawn") == 0) {
        spawn(argv[0]);
    } else if (strcmp(what, "child") == 0) {
        be_a_child();
    } else if (strcmp(what, "abort") == 0) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    } else if (strcmp(what, "handler") == 0) {
        in_handler();
    }
    if (rank == 0)
        printf("%s %s\n", what, failures == 0 ? "good" : "FAILED");
    if (strcmp(what, "unfinished") != 0)
        MPI_Finalize();
    if (strcmp(what, "late") == 0)
        return MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS;
    return failures != 0;
}

/* SPDX-License-Identifier: MIT
 *
 * mpi_clock: measures the offsets between the clocks of hosts while MPI is up, and passes them to
 * the recorder.
 *
 *     rank 0 ── round 0 ──► leader of host 1        one leader for each host: its lowest rank
 *       │  └─── round 1 ──► host 2    host 1 ──► 3  a host that knows its offset teaches others
 *
 * A pair exchanges pings; the offset is the median of the ten with the shortest round trips, its
 * uncertainty half the shortest round trip; a disturbed row is repeated, for two seconds at most.
 * Offsets add up along the tree, and so do uncertainties.  This is done in MPI_Init and
 * MPI_Finalize, which all ranks call; in between messages of ours must not mix with the program's,
 * and clock_net compares by TCP.  As the comparison is collective, the ranks first make sure that
 * all of them have this hook.
 */
#include "mstx/hook/mpi/mpi_hook.h"

#include "mstx/rt/clock_agree.h"
#include "mstx/rt/clock_sync.h"

#include <sched.h>
#include <string.h>
#include <time.h>

enum { PINGS = 200, TAG = 77, ROWS = 100, GOOD_NS = 1000, ENOUGH = -1 };

struct host {
    uint64_t key;
    int leader; /* rank */
};

static struct {
    MPI_Comm comm; /* our own communicator, so that our messages match no others */
    bool has_comm;
    int rank, size;
    struct host *hosts; /* all hosts, that of rank 0 first */
    int nhosts, mine;
    bool has_asked, has_agreed; /* through the folder of the run */
} sync;

static const int64_t PATIENCE_NS = INT64_C(5) * 1000000000;
static const int64_t SPIN_NS = 2000; /* longer than an undisturbed message takes */
static const int64_t ROWS_NS = INT64_C(2) * 1000000000; /* after this time no further row begins */

static int (*send_)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
static int (*recv_)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
static int (*probe_)(int, int, MPI_Comm, int *, MPI_Status *);
static MPI_Datatype byte_type;

static bool send_bytes(int to, const void *p, size_t n)
{
    return send_(p, (int)n, byte_type, to, TAG, sync.comm) == MPI_SUCCESS;
}
/* Waits for a message with pauses: an MPI that waits without a pause would keep the other rank off
 * a processor that both share, for whole time slices. */
static bool is_there(int from)
{
    const int64_t spin = mstx_clock_now() + SPIN_NS;
    int found = 0;
    while (probe_(from, TAG, sync.comm, &found, MPI_STATUS_IGNORE) == MPI_SUCCESS && !found) {
        if (mstx_clock_now() > spin)
            sched_yield();
    }
    return found != 0;
}
static bool receive_bytes(int from, void *p, size_t n)
{
    return is_there(from) &&
           recv_(p, (int)n, byte_type, from, TAG, sync.comm, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

/* ---- one pair ----------------------------------------------------------------------------------- */

/* Server side, which knows its offset: answers pings until the client has enough, then sends its
 * own offset and uncertainty. */
static bool serve(int client, const struct mstx_clock_point *own)
{
    int64_t stamp[2], ping = 0;
    bool ok = true;
    while (ok && ping != ENOUGH) {
        ok = receive_bytes(client, &ping, sizeof ping);
        stamp[0] = mstx_clock_now();
        stamp[1] = mstx_clock_now();
        if (ok && ping != ENOUGH)
            ok = send_bytes(client, stamp, sizeof stamp);
    }
    return ok && send_bytes(client, own, sizeof *own);
}

static bool ask_once(int server, struct mstx_ping *p)
{
    int64_t stamp[2] = {0};
    p->sent = mstx_clock_now();
    bool ok =
        send_bytes(server, &p->sent, sizeof p->sent) && receive_bytes(server, stamp, sizeof stamp);
    p->back = mstx_clock_now();
    p->came = stamp[0];
    p->left = stamp[1];
    return ok;
}

/* Client side: measures the offset to the server. Where processors are shared a whole row of pings
 * may be disturbed: then another row is sent a moment later. */
static bool ask_server(int server, struct mstx_clock_point *own)
{
    const struct timespec moment = {.tv_nsec = 2000000};
    struct mstx_ping ping[PINGS];
    struct mstx_clock_point base, found;
    const int64_t enough = ENOUGH;
    bool ok = true;
    const int64_t start = mstx_clock_now();
    for (int row = 0; ok && row < ROWS && (row == 0 || own->uncertainty_ns > GOOD_NS); row++) {
        if (row > 0)
            nanosleep(&moment, NULL);
        if (row > 0 && mstx_clock_now() - start > ROWS_NS)
            break;
        for (int i = 0; ok && i < PINGS; i++)
            ok = ask_once(server, &ping[i]);
        mstx_clock_estimate(ping, PINGS, &found);
        if (row == 0 || found.uncertainty_ns < own->uncertainty_ns)
            *own = found;
    }
    if (!ok || !send_bytes(server, &enough, sizeof enough) ||
        !receive_bytes(server, &base, sizeof base))
        return false;
    own->offset_ns += base.offset_ns;
    own->uncertainty_ns += base.uncertainty_ns;
    return true;
}

/* Propagates offsets along the tree: in each round hosts 0 .. 2^round - 1 know their offset and
 * serve the next 2^round hosts. */
static void walk_tree(void)
{
    struct mstx_clock_point own = {.at_ns = mstx_clock_now()};
    bool ok = true;
    for (int step = 1; ok && step < sync.nhosts; step *= 2) {
        const int me = sync.mine;
        if (me < step && me + step < sync.nhosts)
            ok = serve(sync.hosts[me + step].leader, &own);
        else if (me >= step && me < 2 * step)
            ok = ask_server(sync.hosts[me - step].leader, &own);
    }
    if (ok)
        mstx_clock_tell(&own);
}

/* ---- hosts of all ranks --------------------------------------------------------------------- */

static void list_hosts(const uint64_t *keys)
{
    int last = 0;
    sync.nhosts = 0;
    for (int r = 0; r < sync.size; r++) {
        int i = r > 0 && keys[r] == keys[r - 1] ? last : 0; /* neighbours mostly share a host */
        while (i < sync.nhosts && sync.hosts[i].key != keys[r])
            i++;
        last = i;
        if (i == sync.nhosts)
            sync.hosts[sync.nhosts++] = (struct host){keys[r], r};
        if (r == sync.rank)
            sync.mine = i;
    }
}

/* Tells whether all ranks have this hook. No message is sent before, because ranks without the hook
 * would be waited for without end. */
static bool agree(void)
{
    sync.has_asked = true;
    sync.has_agreed = mstx_clock_agree(sync.rank, sync.size, PATIENCE_NS);
    if (!sync.has_agreed)
        mstx_comm_note(
            "clocks of hosts were not compared by MPI: not all ranks record into this run;"
            " MSTX_CLOCK_SYNC=0 does not ask");
    return sync.has_agreed;
}

static bool prepare(MPI_Comm world)
{
    int (*dup)(MPI_Comm, MPI_Comm *) = HOOK_MPI(PMPI_Comm_dup);
    int (*rank)(MPI_Comm, int *) = HOOK_MPI(PMPI_Comm_rank);
    int (*size)(MPI_Comm, int *) = HOOK_MPI(PMPI_Comm_size);
    int (*gather)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm) =
        HOOK_MPI(PMPI_Allgather);
    send_ = HOOK_MPI(PMPI_Send);
    recv_ = HOOK_MPI(PMPI_Recv);
    probe_ = HOOK_MPI(PMPI_Iprobe);
    byte_type = hook_byte_type();
    if (dup == NULL || gather == NULL || send_ == NULL || recv_ == NULL || probe_ == NULL ||
        size(world, &sync.size) != MPI_SUCCESS || sync.size < 2 ||
        rank(world, &sync.rank) != MPI_SUCCESS || !agree() || dup(world, &sync.comm) != MPI_SUCCESS)
        return false;
    sync.has_comm = true;
    const uint64_t key = mstx_clock_host();
    uint64_t *keys = hook_keep((size_t)sync.size * sizeof *keys);
    sync.hosts = hook_keep((size_t)sync.size * sizeof *sync.hosts);
    if (gather(&key, sizeof key, byte_type, keys, sizeof key, byte_type, sync.comm) != MPI_SUCCESS)
        return false;
    list_hosts(keys);
    return true;
}

void hook_clock_start(MPI_Comm world)
{
    const enum mstx_clock_wish wish = mstx_clock_wish();
    if (wish == MSTX_CLOCK_NEVER || (wish == MSTX_CLOCK_IF_NEEDED && mstx_clock_one_host()))
        return;
    if (prepare(world) && sync.hosts[sync.mine].leader == sync.rank)
        walk_tree();
}

void hook_clock_stop(void)
{
    int (*comm_free)(MPI_Comm *) = HOOK_MPI(PMPI_Comm_free);
    if (sync.has_comm && sync.hosts[sync.mine].leader == sync.rank)
        walk_tree();
    if (sync.has_asked && (sync.rank == 0 || !sync.has_agreed))
        mstx_clock_forget();
    sync.has_asked = false;
    if (sync.has_comm)
        comm_free(&sync.comm);
    sync.has_comm = false;
}

/* SPDX-License-Identifier: MIT
 *
 * clock_net: clocks of hosts compared by TCP while the job runs, with MPI or without it.
 *
 *     rank 0                      publishes addresses in the run, answers pings
 *     one process of each host    sends 200 pings at the start, 20 each minute and at the end
 *
 * No process blocks another: a process that finds no address, or gets no answer, retries later, and
 * a process on the host of rank 0 has nothing to measure.  Every host pings rank 0 directly:
 * offsets summed along a tree would add up the uncertainty of each round trip, and even a thousand
 * hosts send only some 20,000 pings a minute.
 *
 *     hello   magic, token ──► magic, host      each side verifies the other
 *     ping    sent         ──► came, left       repeated; then the client closes
 *
 * Ranks that record into folders of their own meet at MASTER_ADDR, port MSTX_CLOCK_PORT.
 */
#include "mstx/rt/clock_net.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

#include "mstx/rt/clock_sync.h"
#include "mstx/rt/comm_range.h"
#include "mstx/rt/ticks.h"
#include "probe/base/held.h"

enum {
    AT_START = 200,
    LATER = 20,
    GUESTS = 64,
    PLACES = 16,
    ADDRESS = 256,
    PATH_ROOM = RT_PATH + 96
};
static const int64_t MS = 1000000;
static const int64_t SPIN_NS = 200000; /* receive_bytes polls so long before it sleeps */
static const int64_t LOOK_NS = 100000; /* in between, only recently active connections are polled */
/* A measurement with more uncertainty is repeated, for ROWS_NS at most. */
static const int64_t GOOD_NS = 20000;
static const int64_t ROWS_NS = 1000000000;
static const uint64_t MAGIC = 0x314B4C4358545F4D;

/* Address of rank 0, as stored in the file that rank 0 publishes. */
struct place {
    uint64_t token, host;
    int pid;
    char address[PLACES][ADDRESS];
    char port[8];
    int n;
};

static struct {
    pthread_t thread;
    bool running;
    _Atomic bool stop;
    /* lead: an abstract socket name that only one process of this host can hold. */
    struct ms_held bell, listener, lead;
    uint64_t token;
} net = {.bell.fd = -1, .listener.fd = -1, .lead.fd = -1};

/* Tells whether the thread has to continue: not stopped, and its descriptors are still its own. */
static bool goes_on(void)
{
    return !atomic_load(&net.stop) && ms_is_held(&net.bell) &&
           (net.listener.fd < 0 || ms_is_held(&net.listener));
}

static int64_t now(void)
{
    return rt_clock_steady();
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Waits until the descriptor is ready. Returns false at the deadline, or when the thread is to
 * stop. */
static bool wait_for(int fd, short what, int64_t until)
{
    struct pollfd p[2] = {{.fd = fd, .events = what}, {.fd = net.bell.fd, .events = POLLIN}};
    const int64_t left = until - now();
    const bool mind_bell = !atomic_load(&net.stop);
    return left > 0 && poll(p, mind_bell ? 2 : 1, (int)(left / MS) + 1) > 0 && p[0].revents != 0;
}

static bool receive_bytes(int fd, void *to, size_t n, int64_t until)
{
    const int64_t spin = now() + SPIN_NS;
    for (size_t have = 0; have < n;) {
        const ssize_t r = recv(fd, (char *)to + have, n - have, MSG_DONTWAIT);
        if (r > 0)
            have += (size_t)r;
        else if (r == 0 || (errno != EAGAIN && errno != EINTR))
            return false;
        else if (now() < spin)
            sched_yield();
        else if (!wait_for(fd, POLLIN, until))
            return false;
    }
    return true;
}

/* Sends all bytes or none. The few bytes always fit into the socket buffer. */
static bool send_bytes(int fd, const void *from, size_t n)
{
    return send(fd, from, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

static void set_quick(int fd)
{
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* ---- where to meet ---------------------------------------------------------------------------- */

static bool path_of(char out[PATH_ROOM], const char *end)
{
    char job[64];
    mstx_clock_job(job, sizeof job);
    const int n = snprintf(out, PATH_ROOM, "%s/.clock-at-%s%s", rt.conf.out, job, end);
    return rt.conf.out[0] != '\0' && n > 0 && n < PATH_ROOM;
}

/* Returns the port of MSTX_CLOCK_PORT; 0: ranks find each other by the folder of the run. */
static uint16_t agreed_port(void)
{
    const char *v = secure_getenv("MSTX_CLOCK_PORT");
    const long n = v != NULL ? strtol(v, NULL, 10) : 0;
    return n > 0 && n < 65536 ? (uint16_t)n : 0;
}

static bool read_place(struct place *p)
{
    char path[PATH_ROOM], line[ADDRESS];
    FILE *f = path_of(path, "") ? fopen(path, "re") : NULL;
    unsigned long long token = 0, host = 0;
    memset(p, 0, sizeof *p);
    if (f == NULL)
        return false;
    bool ok = fgets(line, sizeof line, f) != NULL &&
              sscanf(line, "%llx %llx %d %7s", &token, &host, &p->pid, p->port) == 4;
    while (ok && p->n < PLACES && fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        memcpy(p->address[p->n++], line, sizeof line);
    }
    fclose(f);
    p->token = token;
    p->host = host;
    return ok;
}

/* Finds the address of rank 0: in the published file, else MASTER_ADDR and MSTX_CLOCK_PORT. Then
 * host is 0, since the host is known only after a connection. */
static bool find_place(struct place *p)
{
    const char *master = getenv("MASTER_ADDR");
    if (read_place(p))
        return p->n != 0;
    if (agreed_port() == 0 || master == NULL)
        return false;
    memset(p, 0, sizeof *p);
    snprintf(p->address[p->n++], ADDRESS, "%s", master);
    snprintf(p->port, sizeof p->port, "%u", agreed_port());
    return true;
}

/* Writes the addresses of one kind. Loopback addresses are written last: on another host they do
 * not lead to rank 0. */
static void write_addresses(FILE *f, const struct ifaddrs *list, bool loopback)
{
    for (const struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
        char text[NI_MAXHOST];
        const int family = i->ifa_addr != NULL ? i->ifa_addr->sa_family : AF_UNSPEC;
        const socklen_t n =
            family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        if ((family != AF_INET && family != AF_INET6) || (i->ifa_flags & IFF_UP) == 0 ||
            ((i->ifa_flags & IFF_LOOPBACK) != 0) != loopback ||
            getnameinfo(i->ifa_addr, n, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0 ||
            strchr(text, '%') != NULL) /* link-local: valid on one link only */
            continue;
        fprintf(f, "%s\n", text);
    }
}

static bool write_place(const char *path, unsigned port)
{
    ms_assert(port > 0 && port < 65536);
    struct ifaddrs *list = NULL;
    FILE *f = fopen(path, "we");
    if (f == NULL)
        return false;
    fprintf(f, "%llx %llx %d %u\n", (unsigned long long)net.token,
            (unsigned long long)mstx_clock_host(), (int)getpid(), port);
    if (getifaddrs(&list) == 0) {
        write_addresses(f, list, false);
        write_addresses(f, list, true);
        freeifaddrs(list);
    }
    return fclose(f) == 0;
}

static bool is_mine(const struct place *p)
{
    return p->host == mstx_clock_host() && p->pid == (int)getpid();
}

/* Publishes the address, unless a living process of rank 0 on this host has published its own. */
static void publish(void)
{
    struct place p;
    char path[PATH_ROOM], draft[PATH_ROOM], end[24];
    struct sockaddr_in6 a = {0};
    socklen_t n = sizeof a;
    if (read_place(&p) && (is_mine(&p) || (p.host == mstx_clock_host() && kill(p.pid, 0) == 0)))
        return;
    snprintf(end, sizeof end, ".%d", (int)getpid());
    if (!path_of(path, "") || !path_of(draft, end) ||
        getsockname(net.listener.fd, (struct sockaddr *)(void *)&a, &n) != 0)
        return;
    if (!write_place(draft, ntohs(a.sin6_port)) || rename(draft, path) != 0)
        unlink(draft);
}

static void withdraw(void)
{
    struct place p;
    char path[PATH_ROOM];
    if (read_place(&p) && is_mine(&p) && path_of(path, ""))
        unlink(path);
}

/* ---- rank 0 ------------------------------------------------------------------------------------ */

struct guest {
    int fd;
    bool known; /* the handshake is done */
    int64_t heard;
    size_t have;
    uint64_t word[2];
};

static int listen_on(uint16_t port)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    const int off = 0, on = 1;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t n = sizeof a;
    if (fd < 0) { /* no IPv6 on this machine */
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        a.sin6_family = AF_INET; /* sin_port is at the same offset */
        n = sizeof(struct sockaddr_in);
    } else
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)(void *)&a, n) == 0 && listen(fd, GUESTS) == 0)
        return fd;
    close(fd);
    return -1;
}

static void dismiss_guest(struct guest *g)
{
    close(g->fd);
    *g = (struct guest){.fd = -1};
}

/* Reads and answers one message. Returns false when the peer has closed or failed the handshake.
 * Only a whole message counts as heard: a stranger who sends byte by byte keeps its place no longer
 * than one who sends nothing. */
static bool attend_guest(struct guest *g)
{
    ms_assert(g->fd >= 0 && g->have < sizeof g->word);
    const size_t want = g->known ? sizeof g->word[0] : sizeof g->word;
    const ssize_t r = recv(g->fd, (char *)g->word + g->have, want - g->have, MSG_DONTWAIT);
    const int64_t came = now();
    if (r < 0)
        return errno == EAGAIN || errno == EINTR;
    g->have += (size_t)r;
    if (r == 0 || g->have < want)
        return r != 0;
    g->have = 0;
    g->heard = came;
    if (g->known) {
        const int64_t stamp[2] = {came, now()};
        return send_bytes(g->fd, stamp, sizeof stamp);
    }
    const uint64_t hello[2] = {MAGIC, mstx_clock_host()};
    g->known = g->word[0] == MAGIC && g->word[1] == net.token;
    return g->known && send_bytes(g->fd, hello, sizeof hello);
}

static void let_in(struct guest *guests)
{
    const int fd =
        ms_fd_move_high(accept4(net.listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
    for (int i = 0; fd >= 0 && i < GUESTS; i++) {
        if (guests[i].fd < 0) {
            set_quick(fd);
            guests[i] = (struct guest){.fd = fd, .heard = now()};
            return;
        }
    }
    if (fd >= 0)
        close(fd);
}

/* Polls all connections once. Tells whether any of them sent something. */
static bool attend_all(struct guest *guests, int timeout_ms)
{
    struct pollfd p[GUESTS + 2] = {{.fd = net.listener.fd, .events = POLLIN},
                                   {.fd = net.bell.fd, .events = POLLIN}};
    const int64_t patience = 5000 * MS;
    bool any = false;
    for (int i = 0; i < GUESTS; i++)
        p[i + 2] = (struct pollfd){.fd = guests[i].fd, .events = POLLIN};
    if (poll(p, GUESTS + 2, timeout_ms) <= 0)
        return false;
    for (int i = 0; i < GUESTS; i++) {
        if (guests[i].fd < 0)
            continue;
        any |= guests[i].known && p[i + 2].revents != 0; /* strangers do not make it spin */
        if ((p[i + 2].revents != 0 && !attend_guest(&guests[i])) ||
            now() - guests[i].heard > patience)
            dismiss_guest(&guests[i]);
    }
    if (p[0].revents != 0)
        let_in(guests);
    return any;
}

/* Serves the clients that sent a ping less than SPIN_NS ago, since they ping again at once. If an
 * answer waited until all connections were polled, the two directions would take different times,
 * which shifts the estimated offset. */
static bool attend_recent(struct guest *guests)
{
    bool any = false;
    for (int i = 0; i < GUESTS; i++) {
        struct guest *g = &guests[i];
        const int64_t heard = g->heard;
        if (g->fd < 0 || now() - heard > SPIN_NS)
            continue;
        if (!attend_guest(g))
            dismiss_guest(g);
        any |= g->heard != heard;
    }
    return any;
}

static void answer_all(void)
{
    struct guest guests[GUESTS];
    int64_t spin = 0, looked = 0, published = INT64_MIN;
    const struct mstx_clock_point here = {.at_ns = now()};
    for (int i = 0; i < GUESTS; i++)
        guests[i] = (struct guest){.fd = -1};
    mstx_clock_tell(&here);
    while (goes_on()) {
        if (published == INT64_MIN || now() - published > mstx_clock_every_ns()) {
            publish();
            published = now();
        }
        const bool is_soon = now() < spin, is_early = is_soon && now() - looked < LOOK_NS;
        looked = is_early ? looked : now();
        if (is_early ? attend_recent(guests) : attend_all(guests, is_soon ? 0 : 1000))
            spin = now() + SPIN_NS;
        else if (is_soon)
            sched_yield();
    }
    withdraw();
    for (int i = 0; i < GUESTS; i++) {
        if (guests[i].fd >= 0)
            dismiss_guest(&guests[i]);
    }
}

/* ---- other hosts ---------------------------------------------------------------------------- */

/* Tells whether this process measures for its host. When that process ends, another takes over. */
static bool is_leader(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char path[PATH_ROOM] = "";
    if (net.lead.fd >= 0)
        return true;
    path_of(path, "");
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int n = snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "mstx-clock-%llx-%llx",
                           (unsigned long long)mstx_group_hash(0, path, strlen(path)),
                           (unsigned long long)mstx_clock_host());
    if (bind(fd, (struct sockaddr *)(void *)&a,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0)
        net.lead = ms_hold(fd);
    else if (fd >= 0)
        close(fd);
    return net.lead.fd >= 0;
}

static int connect_to(const char *address, const char *port, int64_t until)
{
    const struct addrinfo how = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    int fd = -1, failed = 1;
    socklen_t n = sizeof failed;
    if (getaddrinfo(address, port, &how, &list) != 0)
        return -1;
    fd = ms_fd_move_high(socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd >= 0 && connect(fd, list->ai_addr, list->ai_addrlen) == 0)
        failed = 0;
    else if (fd >= 0 && errno == EINPROGRESS && wait_for(fd, POLLOUT, until))
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &n);
    freeaddrinfo(list);
    if (failed != 0 && fd >= 0)
        close(fd);
    return failed == 0 ? fd : -1;
}

/* Connects to rank 0 and verifies its handshake. Sets *host and returns the descriptor, or -1. */
static int connect_server(const struct place *p, uint64_t *host, int64_t until)
{
    const uint64_t hello[2] = {MAGIC, p->token};
    const int64_t each = 1000 * MS;
    for (int i = 0; i < p->n && now() < until; i++) {
        uint64_t back[2];
        const int64_t end = now() + each < until ? now() + each : until;
        const int fd = connect_to(p->address[i], p->port, end);
        if (fd < 0)
            continue;
        set_quick(fd);
        if (send_bytes(fd, hello, sizeof hello) && receive_bytes(fd, back, sizeof back, end) &&
            back[0] == MAGIC && (p->host == 0 || back[1] == p->host)) {
            *host = back[1];
            return fd;
        }
        close(fd);
    }
    return -1;
}

static size_t exchange_pings(int fd, struct mstx_ping *out, size_t n, int64_t until)
{
    for (size_t i = 0; i < n; i++) {
        int64_t stamp[2];
        out[i].sent = now();
        if (!send_bytes(fd, &out[i].sent, sizeof out[i].sent) ||
            !receive_bytes(fd, stamp, sizeof stamp, until))
            return i;
        out[i].back = now();
        out[i].came = stamp[0];
        out[i].left = stamp[1];
    }
    return n;
}

/* Sends rows of pings until one has an uncertainty of GOOD_NS at most, or time is up. Keeps the
 * best row. */
static bool measure(int fd, size_t pings, int64_t until, struct mstx_clock_point *best)
{
    ms_assert(pings > 0 && pings <= AT_START);
    const struct timespec moment = {.tv_nsec = 2000000};
    const int64_t enough = now() + ROWS_NS < until ? now() + ROWS_NS : until;
    struct mstx_ping row[AT_START];
    struct mstx_clock_point found;
    size_t n = pings;
    bool any = false;
    do {
        if (any)
            nanosleep(&moment, NULL);
        n = exchange_pings(fd, row, pings, until);
        if (n == 0)
            break;
        mstx_clock_estimate(row, n, &found);
        if (!any || found.uncertainty_ns < best->uncertainty_ns)
            *best = found;
        any = true;
    } while (n == pings && best->uncertainty_ns > GOOD_NS && now() < enough);
    return any;
}

enum asked { ASKED, NOT_ASKED, NEEDLESS };

static enum asked ask_server(size_t pings, int64_t patience_ns)
{
    struct place p;
    struct mstx_clock_point found;
    uint64_t host = 0;
    const int64_t until = now() + patience_ns;
    if (!find_place(&p))
        return NOT_ASKED;
    if (p.host == mstx_clock_host())
        return NEEDLESS;
    const int fd = connect_server(&p, &host, until);
    if (fd < 0)
        return NOT_ASKED;
    const bool is_other = host != mstx_clock_host();
    const bool is_found = is_other && measure(fd, pings, until, &found);
    close(fd);
    if (is_found)
        mstx_clock_tell(&found);
    return !is_other ? NEEDLESS : is_found ? ASKED : NOT_ASKED;
}

static void ask_again_and_again(void)
{
    const int64_t every = mstx_clock_every_ns(), patience = 5000 * MS, at_end = 300 * MS;
    int64_t retry = 100 * MS;
    bool known = false;
    while (goes_on()) {
        const enum asked a =
            is_leader() ? ask_server(known ? LATER : AT_START, patience) : NOT_ASKED;
        struct pollfd bell = {.fd = net.bell.fd, .events = POLLIN};
        if (a == NEEDLESS)
            return;
        known |= a == ASKED;
        const int64_t wait = a == ASKED || retry > every ? every : retry;
        retry = a == ASKED ? 100 * MS : retry * 2;
        if (goes_on())
            poll(&bell, 1, (int)(wait / MS));
    }
    if (known)
        ask_server(LATER, at_end);
}

/* ---- the thread ------------------------------------------------------------------------------- */

static void *run_clock_thread(void *arg)
{
    (void)arg;
    pthread_setname_np(pthread_self(), "mstx-clock");
    if (rt.conf.rank != 0)
        ask_again_and_again();
    else if (net.listener.fd >= 0)
        answer_all();
    return NULL;
}

/* Returns a random token, which only processes that can read the run's folder know; 0 with
 * MSTX_CLOCK_PORT, where no file carries it. */
static uint64_t new_token(void)
{
    uint64_t t = 0;
    if (agreed_port() != 0 || getrandom(&t, sizeof t, GRND_NONBLOCK) != sizeof t)
        return 0;
    return t;
}

void rt_clock_net_start(void)
{
    ms_assert(!net.running);
    const enum mstx_clock_wish wish = mstx_clock_wish();
    sigset_t all, old;
    if (rt.conf.rank < 0 || rt.conf.world_size < 2 || rt.epoch > 1 || wish == MSTX_CLOCK_NEVER ||
        (wish == MSTX_CLOCK_IF_NEEDED && mstx_clock_one_host()))
        return;
    net.bell = ms_hold(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    net.token = new_token();
    net.listener = ms_hold(rt.conf.rank == 0 ? listen_on(agreed_port()) : -1);
    atomic_store(&net.stop, false);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    net.running = pthread_create(&net.thread, NULL, run_clock_thread, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void close_all(void)
{
    struct ms_held *const all[] = {&net.bell, &net.listener, &net.lead};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ms_hold_end(all[i]);
}

void rt_clock_net_stop(void)
{
    const uint64_t one = 1;
    if (!net.running)
        return;
    atomic_store(&net.stop, true);
    if (ms_is_held(&net.bell) && write(net.bell.fd, &one, sizeof one) != sizeof one) {
        /* the thread checks stop once a second anyway */
    }
    pthread_join(net.thread, NULL);
    net.running = false;
    close_all();
}

void rt_clock_net_forget(void)
{
    net.running = false;
    close_all(); /* the parent keeps its own descriptors */
}

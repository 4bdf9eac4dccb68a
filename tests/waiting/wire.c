/* SPDX-License-Identifier: MIT
 *
 * wire: ranks on a network whose connections can be slow.
 *
 *     wire net N DELAY_US A B DELAY2_US RATE COMMAND...
 *
 * makes N network namespaces with the addresses 10.77.0.1 to 10.77.0.N, runs COMMAND in each of them with RANK,
 * WORLD_SIZE and WIRE_PEERS (the addresses), and carries the packets between them: each takes DELAY_US.  Packets
 * between ranks A and B (B -1: all of rank A) take DELAY2_US instead, and at most RATE bytes a second of them pass in
 * each direction (0: any); RATE,LOSS: that percentage of them is lost as well.  Its status is that of the worst rank.  It needs the right to make namespaces.
 *
 *     wire hosts N DELAY_US A B DELAY2_US RATE COMMAND...
 *
 * makes the same network between hosts that are called wire0, wire1, ..., and runs COMMAND on the first one alone: a
 * launcher of ranks, whose remote shell is
 *
 *     wire on HOST COMMAND...
 *
 *     wire ring STEPS BYTES WORK_US
 *
 * is such a command: in each step a rank works, then sends BYTES to both neighbours and receives as many.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mstx/ms_tools_ext.h"

enum { RANKS = 16, MTU = 1500, QUEUED = 4096, NET = 0x0a4d0000, PORT = 7700 };

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "wire: %s: %s\n", what, strerror(errno));
        exit(77);
    }
}

/* ---- the network ------------------------------------------------------------------------ */

struct packet {
    int64_t due;
    int n;
    char bytes[MTU + 64];
};
/* Packets from one rank to another, in order. */
static struct path {
    struct packet *p[QUEUED];
    unsigned head, tail;
    int64_t delay_ns, free_at;
    double ns_per_byte, loss; /* part of the packets */
} path[RANKS][RANKS];
static int ranks, tun[RANKS];

static void set_address(int fd, const char *dev, int r)
{
    struct ifreq q = {0};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(NET + 1 + (unsigned)r)};
    snprintf(q.ifr_name, sizeof q.ifr_name, "%s", dev);
    memcpy(&q.ifr_addr, &a, sizeof a);
    must(ioctl(fd, SIOCSIFADDR, &q) == 0, "address");
    a.sin_addr.s_addr = htonl(0xffff0000);
    memcpy(&q.ifr_netmask, &a, sizeof a);
    must(ioctl(fd, SIOCSIFNETMASK, &q) == 0, "netmask");
}

static void set_up(int fd, const char *dev)
{
    struct ifreq q = {0};
    snprintf(q.ifr_name, sizeof q.ifr_name, "%s", dev);
    must(ioctl(fd, SIOCGIFFLAGS, &q) == 0, "flags");
    q.ifr_flags |= IFF_UP | IFF_RUNNING;
    must(ioctl(fd, SIOCSIFFLAGS, &q) == 0, "up");
}

/* Makes a namespace with a device, which stays with its descriptor, and enters it. */
static int enter_net(int r)
{
    struct ifreq q = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    must(unshare(CLONE_NEWNET) == 0, "namespace");
    const int s = socket(AF_INET, SOCK_DGRAM, 0), t = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    snprintf(q.ifr_name, sizeof q.ifr_name, "wire0");
    must(s >= 0 && t >= 0 && ioctl(t, TUNSETIFF, &q) == 0, "tun");
    set_up(s, "lo");
    set_address(s, "wire0", r);
    set_up(s, "wire0");
    close(s);
    return t;
}

static void enqueue(int from, const char *bytes, int n)
{
    uint32_t dst;
    if (n < 20 || bytes[0] >> 4 != 4)
        return;
    memcpy(&dst, bytes + 16, sizeof dst);
    const uint32_t to = ntohl(dst) - NET - 1;
    if (to >= (uint32_t)ranks)
        return;
    struct path *p = &path[from][to];
    if (p->loss > 0 && drand48() < p->loss)
        return;
    struct packet *k = p->tail - p->head < QUEUED ? malloc(sizeof *k) : NULL;
    if (k == NULL)
        return;
    const int64_t now = now_ns(), start = p->free_at > now ? p->free_at : now;
    p->free_at = start + (int64_t)(p->ns_per_byte * n);
    k->due = p->free_at + p->delay_ns;
    k->n = n;
    memcpy(k->bytes, bytes, (size_t)n);
    p->p[p->tail++ % QUEUED] = k;
}

/* Delivers what is due; returns the time until the next packet is. */
static int64_t deliver(void)
{
    int64_t next = 1000000000;
    for (int i = 0; i < ranks * ranks; i++) {
        struct path *p = &path[i / ranks][i % ranks];
        for (; p->head != p->tail; p->head++) {
            struct packet *k = p->p[p->head % QUEUED];
            const int64_t wait = k->due - now_ns();
            if (wait > 0) {
                next = wait < next ? wait : next;
                break;
            }
            if (write(tun[i % ranks], k->bytes, (size_t)k->n) < 0 && errno == EAGAIN)
                break;
            free(k);
        }
    }
    return next;
}

static void carry(void)
{
    char bytes[MTU + 64];
    struct pollfd f[RANKS];
    for (int i = 0; i < ranks; i++)
        f[i] = (struct pollfd){.fd = tun[i], .events = POLLIN};
    for (;;) {
        const int64_t wait = deliver();
        const struct timespec t = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
        if (ppoll(f, (nfds_t)ranks, &t, NULL) <= 0)
            continue;
        for (int i = 0; i < ranks; i++) {
            for (int n = 0, k = 0; k < 64 && (n = (int)read(tun[i], bytes, sizeof bytes)) > 0; k++)
                enqueue(i, bytes, n);
        }
    }
}

/* On a host that others load packets would be late, and lost when the queues are full; where real-time priority is
 * not allowed they are. */
static void carry_at_once(void)
{
    const struct sched_param first = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_RR, &first) != 0)
        perror("wire: no real-time priority");
}

static void set_paths(int64_t delay_us, int a, int b, int64_t other_us, const char *limits)
{
    const double rate = atof(limits);
    const char *loss = strchr(limits, ',');
    for (int i = 0; i < ranks * ranks; i++) {
        const int from = i / ranks, to = i % ranks;
        const int is_other = (from == a && (b < 0 || to == b)) || (to == a && (b < 0 || from == b));
        path[from][to].delay_ns = (is_other ? other_us : delay_us) * 1000;
        path[from][to].ns_per_byte = is_other && rate > 0 ? 1e9 / rate : 0;
        path[from][to].loss = is_other && loss != NULL ? atof(loss + 1) / 100 : 0;
    }
}

static void run_command(char **command)
{
    execvp(command[0], command);
    must(0, command[0]);
}

static void close_devices(void)
{
    for (int i = 0; i < ranks; i++) {
        if (tun[i] >= 0)
            close(tun[i]);
    }
}

static void start_rank(int r, char **command, int ready)
{
    char text[32], go;
    snprintf(text, sizeof text, "%d", r);
    setenv("RANK", text, 1);
    snprintf(text, sizeof text, "%d", ranks);
    setenv("WORLD_SIZE", text, 1);
    setenv("MASTER_ADDR", "10.77.0.1", 1);
    must(read(ready, &go, 1) == 1, "start");
    close_devices();
    run_command(command);
}

/* Is host r until it is killed; the first one, which is started last, runs the command. */
static void start_host(int r, char **command, int ready)
{
    char go;
    must(read(ready, &go, 1) == 1, "start");
    close_devices();
    if (r == 0)
        run_command(command);
    for (;;)
        pause();
}

static void name_host(int r)
{
    char name[32];
    snprintf(name, sizeof name, "wire%d", r);
    must(unshare(CLONE_NEWUTS) == 0 && sethostname(name, strlen(name)) == 0, "name of a host");
}

/* Lets `wire on` find a host: WIRE_HOST_r is a process of it. */
static void publish_host(int r, pid_t process)
{
    char name[32], text[32];
    snprintf(name, sizeof name, "WIRE_HOST_%d", r);
    snprintf(text, sizeof text, "%d", (int)process);
    must(setenv(name, text, 1) == 0, "environment");
}

static void join_namespace(const char *process, const char *kind)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/ns/%s", process, kind);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    must(fd >= 0 && setns(fd, 0) == 0, path);
}

/* Is a remote shell: runs the words as a line of a shell on a host.  Options of ssh are skipped. */
static int run_on(int argc, char **argv)
{
    char name[32], line[1 << 16] = "";
    int r = -1, i = 0;
    while (i < argc && argv[i][0] == '-')
        i++;
    must(i < argc && sscanf(argv[i], "wire%d", &r) == 1, "host");
    snprintf(name, sizeof name, "WIRE_HOST_%d", r);
    const char *process = getenv(name);
    must(process != NULL, name);
    join_namespace(process, "net");
    join_namespace(process, "uts");
    for (size_t n = 0; ++i < argc && n < sizeof line; n = strlen(line))
        snprintf(line + n, sizeof line - n, "%s ", argv[i]);
    run_command((char *[]){"/bin/sh", "-c", line, NULL});
    return 1;
}

static void start_all(char **command, int ready, int are_hosts, pid_t *child)
{
    memset(tun, -1, sizeof tun);
    for (int r = ranks - 1; r >= 0; r--) {
        tun[r] = enter_net(r);
        if (are_hosts)
            name_host(r);
        child[r] = fork();
        if (child[r] == 0 && are_hosts)
            start_host(r, command, ready);
        if (child[r] == 0)
            start_rank(r, command, ready);
        if (are_hosts)
            publish_host(r, child[r]);
    }
}

/* Waits for the ranks, or for the launcher on the first host; returns the worst status. */
static int wait_for_ranks(const pid_t *child, int are_hosts)
{
    int status, worst = 0;
    for (int r = 0; r < ranks; r++) {
        if (are_hosts && r > 0)
            kill(child[r], SIGKILL);
        waitpid(child[r], &status, 0);
        status = WIFEXITED(status) ? WEXITSTATUS(status) : are_hosts && r > 0 ? 0 : 1;
        worst = status > worst ? status : worst;
    }
    return worst;
}

static int run_net(int argc, char **argv, int are_hosts)
{
    int ready[2];
    must(argc >= 7, "arguments");
    ranks = atoi(argv[0]);
    must(ranks > 1 && ranks <= RANKS && pipe(ready) == 0, "ranks");
    pid_t child[RANKS];
    start_all(argv + 6, ready[0], are_hosts, child);
    set_paths(atoll(argv[1]), atoi(argv[2]), atoi(argv[3]), atoll(argv[4]), argv[5]);
    const pid_t carrier = fork();
    if (carrier == 0) {
        carry_at_once();
        carry();
    }
    must(write(ready[1], "0123456789abcdef", (size_t)ranks) == ranks, "start");
    const int worst = wait_for_ranks(child, are_hosts);
    kill(carrier, SIGKILL);
    waitpid(carrier, NULL, 0);
    return worst;
}

/* ---- a ring of ranks ---------------------------------------------------------------------- */

static struct sockaddr_in address_of(int r)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)(PORT + r)),
                                .sin_addr.s_addr = htonl(NET + 1 + (unsigned)r)};
}

/* Connects to the next rank, and is connected by the one before. */
static void connect_ring(int r, int n, int *next, int *before)
{
    const int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in a = address_of(r), b = address_of((r + 1) % n);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    must(bind(listener, (struct sockaddr *)&a, sizeof a) == 0 && listen(listener, 4) == 0, "bind");
    for (int tries = 0;; tries++) {
        *next = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(*next, (struct sockaddr *)&b, sizeof b) == 0)
            break;
        must(tries < 1000, "connect");
        close(*next);
        usleep(20000);
    }
    *before = accept(listener, NULL, NULL);
    must(*before >= 0, "accept");
    setsockopt(*next, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(*before, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    close(listener);
}

/* Sends and receives n bytes on both connections. */
static void exchange(const int fd[2], char *room, long n)
{
    long sent[2] = {0}, got[2] = {0};
    while (sent[0] < n || sent[1] < n || got[0] < n || got[1] < n) {
        struct pollfd f[2];
        for (int i = 0; i < 2; i++)
            f[i] = (struct pollfd){
                fd[i], (short)((sent[i] < n ? POLLOUT : 0) | (got[i] < n ? POLLIN : 0)), 0};
        poll(f, 2, -1);
        for (int i = 0; i < 2; i++) {
            if (f[i].revents & POLLOUT) {
                const long k =
                    send(fd[i], room, (size_t)(n - sent[i]), MSG_DONTWAIT | MSG_NOSIGNAL);
                sent[i] += k > 0 ? k : 0;
            }
            if (f[i].revents & (POLLIN | POLLHUP)) {
                const long k = recv(fd[i], room, (size_t)(n - got[i]), MSG_DONTWAIT);
                must(k != 0, "receive");
                got[i] += k > 0 ? k : 0;
            }
        }
    }
}

/* Works for that much CPU time. */
static void work(int64_t us)
{
    for (const clock_t end = clock() + us * CLOCKS_PER_SEC / 1000000; clock() < end;)
        continue;
}

static int run_ring(int argc, char **argv)
{
    must(argc == 3 && getenv("RANK") != NULL && getenv("WORLD_SIZE") != NULL, "arguments");
    const int r = atoi(getenv("RANK")), n = atoi(getenv("WORLD_SIZE")), steps = atoi(argv[0]);
    const long bytes = atol(argv[1]);
    int fd[2];
    char *room = calloc(1, (size_t)bytes + 1), name[32];
    must(room != NULL, "memory");
    connect_ring(r, n, &fd[0], &fd[1]);
    for (int s = 0; s < steps; s++) {
        snprintf(name, sizeof name, "step %d", s);
        const mstxRangeId step = mstxRangeStartA(name, NULL);
        work(atoll(argv[2]));
        exchange(fd, room, bytes);
        mstxRangeEnd(step);
    }
    free(room);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "net") == 0)
        return run_net(argc - 2, argv + 2, 0);
    if (argc > 2 && strcmp(argv[1], "hosts") == 0)
        return run_net(argc - 2, argv + 2, 1);
    if (argc > 2 && strcmp(argv[1], "on") == 0)
        return run_on(argc - 2, argv + 2);
    must(argc > 2 && strcmp(argv[1], "ring") == 0, "net, hosts, on or ring");
    return run_ring(argc - 2, argv + 2);
}

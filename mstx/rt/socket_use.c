/* SPDX-License-Identifier: MIT
 *
 * socket_use: see the header.
 *
 * Libraries open connections in many ways and close them before the process ends, so the open
 * descriptors are looked at from time to time.  Counters of a connection rise, and its newest record
 * counts: the pause between two looks is a quarter of the time since the capture began.
 */
#include "mstx/rt/socket_use.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>

#include "mstx/rt/process_ring.h"
#include "mstx/rt/string_file.h"
#include "mstx/rt/ticks.h"

/* Connections with less are those of launchers and of rendezvous.  MOST bounds the texts of a look,
 * DESCRIPTORS its calls on the system. */
enum { BYTES_LEAST = 1 << 18, MOST = 1024, DESCRIPTORS = 4096, ADDRESS = INET6_ADDRSTRLEN + 8 };
enum { PAUSES = 4 };

static struct {
    int64_t began, due; /* CLOCK_MONOTONIC, ns */
} look;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void rt_sockets_start(void)
{
    look.began = look.due = now_ns();
}

/* ---- one connection ---------------------------------------------------------------------- */

struct host {
    uint8_t ip[16]; /* that of version 4 mapped into version 6 */
    uint16_t port;
};

static bool read_host(const struct sockaddr_storage *from, struct host *h)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    *h = (struct host){.port = 0};
    if (from->ss_family == AF_INET) {
        memcpy(&v4, from, sizeof v4);
        memcpy(h->ip, mapped, sizeof mapped);
        memcpy(h->ip + sizeof mapped, &v4.sin_addr, sizeof v4.sin_addr);
        h->port = ntohs(v4.sin_port);
    } else if (from->ss_family == AF_INET6) {
        memcpy(&v6, from, sizeof v6);
        memcpy(h->ip, &v6.sin6_addr, sizeof h->ip);
        h->port = ntohs(v6.sin6_port);
    }
    return h->port != 0;
}

/* Tells whether an address is one of this host for itself: 127.0.0.0/8. */
static bool is_loopback(const struct host *h)
{
    static const uint8_t first[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
    return memcmp(h->ip, first, sizeof first) == 0;
}

/* Reads both ends of a TCP connection between two addresses. */
static bool read_ends(int fd, struct host *self, struct host *peer)
{
    struct sockaddr_storage a = {0}, b = {0};
    socklen_t room = sizeof a, peer_room = sizeof b, protocol_room = sizeof(int);
    int protocol = 0;
    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &protocol_room) == 0 &&
           protocol == IPPROTO_TCP && getsockname(fd, (struct sockaddr *)&a, &room) == 0 &&
           getpeername(fd, (struct sockaddr *)&b, &peer_room) == 0 && read_host(&a, self) &&
           read_host(&b, peer) && memcmp(self->ip, peer->ip, sizeof self->ip) != 0 &&
           !is_loopback(self);
}

static void write_host(char out[ADDRESS], const struct host *h)
{
    char ip[INET6_ADDRSTRLEN];
    if (inet_ntop(AF_INET6, h->ip, ip, sizeof ip) == NULL)
        ip[0] = '\0';
    snprintf(out, ADDRESS, "%s/%u", ip, h->port);
}

/* Writes a record of a connection whose text says what it did. */
static void record(const struct host *self, const struct host *peer, const struct tcp_info *t)
{
    char text[2 * ADDRESS + 160], from[ADDRESS], to[ADDRESS];
    write_host(from, self);
    write_host(to, peer);
    const int n =
        snprintf(text, sizeof text,
                 "%s %s min_rtt_us=%u rtt_us=%u sent=%llu received=%llu busy_us=%llu rwnd_us=%llu "
                 "retrans=%u",
                 from, to, t->tcpi_min_rtt, t->tcpi_rtt, (unsigned long long)t->tcpi_bytes_acked,
                 (unsigned long long)t->tcpi_bytes_received, (unsigned long long)t->tcpi_busy_time,
                 (unsigned long long)t->tcpi_rwnd_limited, t->tcpi_total_retrans);
    const struct mstx_text *e = rt_text_intern(text, (size_t)n);
    if (e == NULL)
        return;
    const struct mstx_rec rec = {
        .ticks = rt_ticks(), .name = e->id, .type = MSTX_REC_SOCKET, .arg = 0};
    rt_process_write(&rec);
}

/* Returns whether a record was written.  Another thread may close the descriptor meanwhile: then the calls
 * fail, or tell of what took its place. */
static bool look_at(int fd)
{
    struct host self, peer;
    struct tcp_info t = {0};
    socklen_t room = sizeof t;
    if (!read_ends(fd, &self, &peer) || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &t, &room) != 0 ||
        room < offsetof(struct tcp_info, tcpi_rwnd_limited) + sizeof t.tcpi_rwnd_limited ||
        t.tcpi_bytes_acked + t.tcpi_bytes_received < BYTES_LEAST)
        return false;
    record(&self, &peer, &t);
    return true;
}

/* ---- all descriptors --------------------------------------------------------------------- */

/* Reading /proc/self/fd would take the lowest free descriptor, and the program's next one would have another
 * number than without a recorder.  A descriptor that is no socket costs one failing call. */
void rt_sockets_look(bool is_last)
{
    const int64_t now = now_ns();
    const int error = errno;
    if (!is_last && (now < look.due || !atomic_load(&rt.recording)))
        return;
    look.due = now + (now - look.began) / PAUSES;
    for (int fd = 0, found = 0; fd < DESCRIPTORS && found < MOST; fd++)
        found += look_at(fd);
    errno = error;
}

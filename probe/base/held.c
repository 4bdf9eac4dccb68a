/* SPDX-License-Identifier: MIT
 *
 * held: see the header.
 */
#include "probe/base/held.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Above what programs count on, and below the 1024 that select() and the usual limit allow. A process
 * with a lower limit gets half of it, and so on. */
enum { HIGHEST = 500, LOWEST = 16 };

int ms_fd_move_high(int fd)
{
    const int error = errno;
    int high = -1;
    for (int least = HIGHEST; fd >= 0 && high < 0 && least >= LOWEST; least /= 2)
        high = fcntl(fd, F_DUPFD_CLOEXEC, least);
    if (high >= 0)
        close(fd);
    errno = error;
    return high >= 0 ? high : fd;
}

struct ms_held ms_hold(int fd)
{
    struct stat st;
    struct ms_held h = {.fd = ms_fd_move_high(fd)};
    if (h.fd < 0 || fstat(h.fd, &st) != 0)
        return MS_HELD_NONE;
    h.device = st.st_dev;
    h.inode = st.st_ino;
    return h;
}

bool ms_is_held(const struct ms_held *h)
{
    struct stat st;
    return h->fd >= 0 && fstat(h->fd, &st) == 0 && st.st_dev == h->device && st.st_ino == h->inode;
}

bool ms_hold_again(struct ms_held *h, int fd)
{
    struct ms_held other = {.fd = ms_fd_move_high(fd), .device = h->device, .inode = h->inode};
    if (ms_is_held(&other)) {
        *h = other;
        return true;
    }
    if (other.fd >= 0)
        close(other.fd);
    return false;
}

void ms_hold_end(struct ms_held *h)
{
    if (ms_is_held(h))
        close(h->fd);
    *h = MS_HELD_NONE;
}

/* SPDX-License-Identifier: MIT
 *
 * held_file: see the header.
 */
#include "mstx/rt/held_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Above what programs count on, and below the 1024 that select() and the usual limit allow. A process
 * with a lower limit gets half of it, and so on. */
enum { HIGHEST = 500, LOWEST = 16 };

int rt_fd_move_high(int fd)
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

struct rt_held rt_hold(int fd)
{
    struct stat st;
    struct rt_held h = {.fd = rt_fd_move_high(fd)};
    if (h.fd < 0 || fstat(h.fd, &st) != 0)
        return RT_HELD_NONE;
    h.device = st.st_dev;
    h.inode = st.st_ino;
    return h;
}

bool rt_is_held(const struct rt_held *h)
{
    struct stat st;
    return h->fd >= 0 && fstat(h->fd, &st) == 0 && st.st_dev == h->device && st.st_ino == h->inode;
}

void rt_hold_end(struct rt_held *h)
{
    if (rt_is_held(h))
        close(h->fd);
    *h = RT_HELD_NONE;
}

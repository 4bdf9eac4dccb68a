/* SPDX-License-Identifier: MIT
 *
 * tl_state: how a captured process ended, if it has.
 *
 * exec() keeps pid and start of a process and runs nothing of the old image: what that left looks as
 * if it had been killed, but for a younger capture of the very same process beside it.
 */
#include "mstx/control.h"
#include "mstx/tl_import_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* The ring of the process is its first file. */
static bool read_first(const char *dir, struct mstx_seg *head)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/" MSTX_SEG_NAME, dir, 0u, 1u);
    int fd = n > 0 && (size_t)n < sizeof path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool ok = fd >= 0 && read(fd, head, sizeof *head) == (ssize_t)sizeof *head;
    if (fd >= 0)
        close(fd);
    return ok && mstx_seg_check(head, sizeof *head, MSTX_KIND_RING) == MSTX_SEG_GOOD;
}

static bool is_younger_image(const struct mstx_seg *old, const char *dir)
{
    struct mstx_seg new;
    return read_first(dir, &new) &&
           new.pid == old->pid &&new.start_jiffies ==
               old->start_jiffies &&new.start_ns >
                   old->start_ns &&memcmp(new.boot_id, old->boot_id, sizeof new.boot_id) ==
               0;
}

/* Directories are called HOST.PID.TAG. */
static bool was_replaced(const struct mstx_procs *all, size_t place, const struct mstx_seg *head)
{
    const char *own = all->list.p[place].dir;
    const char *tag = strrchr(own, '.');
    const size_t n = tag != NULL ? (size_t)(tag - own) + 1 : 0;
    for (size_t i = 0; i < all->list.n && n != 0; i++) {
        const char *dir = all->list.p[i].dir;
        if (i != place && strncmp(dir, own, n) == 0 && is_younger_image(head, dir))
            return true;
    }
    return false;
}

/* Which can be told on its own host alone, and among processes that we see. */
static bool is_in_sight(const struct mstx_seg *head)
{
    char host[sizeof head->host] = "";
    struct stat ns;
    if (gethostname(host, sizeof host - 1) != 0 || strcmp(host, head->host) != 0)
        return false;
    return head->pid_ns == 0 || stat("/proc/self/ns/pid", &ns) != 0 ||
           head->pid_ns == (uint64_t)ns.st_ino;
}

const char *mstx__import_state(const struct mstx_procs *all, size_t place,
                               const struct mstx_seg *head, bool is_closed)
{
    if (is_closed)
        return "finished";
    if (was_replaced(all, place, head))
        return "replaced";
    if (!is_in_sight(head))
        return "not finished";
    return mstx_process_runs(head->pid, head->start_jiffies) ? "running" : "killed";
}

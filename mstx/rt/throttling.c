/* SPDX-License-Identifier: MIT
 *
 * throttling: see the header.
 *
 * The limit may be one of the group of the process or of any group above it, and each counts for itself alone.
 * In a container the paths of /proc/self/cgroup may be those of the host, of which only the last group, the
 * root of the container, can be seen.
 *
 * A capture may begin on the smallest stack, under the lock of its begin: texts that are needed then alone are
 * static.
 */
#include "mstx/rt/throttling.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mstx/rt/process_ring.h"
#include "mstx/rt/ticks.h"
#include "probe/base/held.h"

enum { GROUPS = 8, PATH = 512, STAT = 1024 };

static struct {
    struct ms_held stat[GROUPS]; /* cpu.stat of the group and of those above it */
    int count;
    uint64_t began_ns, recorded_ns;
} groups;

/* ---- reading ----------------------------------------------------------------------- */

/* Reads the beginning of a file as a string; returns false when there is nothing. */
static bool read_text(int fd, char *text, size_t room)
{
    const ssize_t n = fd >= 0 ? pread(fd, text, room - 1, 0) : -1;
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Returns the number behind a key at the beginning of a line, 0 when there is none. */
static uint64_t number_of(const char *text, const char *key)
{
    const size_t n = strlen(key);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return strtoull(line + n + 1, NULL, 10);
    }
    return 0;
}

/* Returns the time in which the groups were throttled since they were made. */
static uint64_t throttled_ns(void)
{
    char text[STAT];
    uint64_t sum = 0;
    for (int i = 0; i < groups.count; i++) {
        if (ms_is_held(&groups.stat[i]) && read_text(groups.stat[i].fd, text, sizeof text))
            sum += number_of(text, "throttled_time") + 1000 * number_of(text, "throttled_usec");
    }
    return sum;
}

/* ---- the groups of the process --------------------------------------------------------- */

static void add_group(const char *path)
{
    static char name[PATH + 16];
    char text[STAT];
    if (groups.count == GROUPS)
        return;
    snprintf(name, sizeof name, "%s/cpu.stat", path);
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    const bool counts = read_text(fd, text, sizeof text) && strstr(text, "throttled_") != NULL;
    if (counts)
        groups.stat[groups.count++] = ms_hold(fd);
    else if (fd >= 0)
        close(fd);
}

/* Adds the group at `path` below `root`, and all above it up to the root. */
static void add_groups(const char *root, const char *path)
{
    static char name[PATH];
    const size_t least = strlen(root);
    if (snprintf(name, sizeof name, "%s%s", root, path) >= PATH)
        return;
    for (char *slash = name + strlen(name); slash != NULL; slash = strrchr(name, '/')) {
        *slash = '\0';
        if (strlen(name) < least)
            break;
        if (slash == name + least || slash[-1] != '/')
            add_group(name);
    }
}

/* Tells whether a list of controllers, between commas, has that of the CPU. */
static bool has_cpu(const char *list)
{
    for (const char *p = list; p != NULL; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, "cpu", 3) == 0 && (p[3] == ',' || p[3] == '\0'))
            return true;
    }
    return false;
}

/* Adds the groups of a line NUMBER:CONTROLLERS:PATH; the list of controllers is empty in version 2. */
static void add_line(char *line)
{
    static char root[PATH];
    char *list = strchr(line, ':'), *path = list != NULL ? strchr(list + 1, ':') : NULL;
    if (path == NULL)
        return;
    *path = '\0';
    if (list[1] != '\0' && !has_cpu(list + 1))
        return;
    snprintf(root, sizeof root, "/sys/fs/cgroup%s%.200s", list[1] != '\0' ? "/" : "", list + 1);
    add_groups(root, path[2] != '\0' ? path + 1 : "");
}

/* Adds the groups of the lines of /proc/self/cgroup. */
static void add_lines(char *text)
{
    char *next;
    for (char *line = text; line != NULL && *line != '\0'; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        add_line(line);
    }
}

/* ---- a capture --------------------------------------------------------------------------- */

void rt_throttling_start(void)
{
    static char text[4096];
    const int error = errno, fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    groups.count = 0;
    if (read_text(fd, text, sizeof text))
        add_lines(text);
    if (fd >= 0)
        close(fd);
    groups.began_ns = throttled_ns();
    groups.recorded_ns = 0;
    errno = error;
}

void rt_throttling_look(void)
{
    const int error = errno;
    const uint64_t now = throttled_ns(), since = now > groups.began_ns ? now - groups.began_ns : 0;
    if (since > groups.recorded_ns) {
        const struct mstx_rec rec = {
            .ticks = rt_ticks(), .id = MSTX_USE_UNKNOWN, .type = MSTX_REC_USE, .arg = since};
        rt_process_write(&rec);
        groups.recorded_ns = since;
    }
    errno = error;
}

void rt_throttling_end(void)
{
    for (int i = 0; i < groups.count; i++)
        ms_hold_end(&groups.stat[i]);
    groups.count = 0;
}

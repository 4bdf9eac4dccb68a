/* SPDX-License-Identifier: MIT
 *
 * ask: see the header.
 */
#include "probe/cli/ask.h"

#include "probe/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Starts the program in a process group of its own, so that what it starts ends with it. */
static pid_t start(const char *const *argv, int out)
{
    pid_t pid = -1;
    posix_spawn_file_actions_t fds;
    posix_spawnattr_t how;
    posix_spawn_file_actions_init(&fds);
    posix_spawn_file_actions_addopen(&fds, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&fds, out, 1);
    posix_spawn_file_actions_addopen(&fds, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&how);
    posix_spawnattr_setpgroup(&how, 0);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
    if (posix_spawnp(&pid, argv[0], &fds, &how, (char *const *)(uintptr_t)argv, environ) != 0)
        pid = -1;
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&fds);
    return pid;
}

/* Reads until the program closes its output; false: the time is over. */
static bool read_until(int fd, int64_t end_ns, struct ms_buf *out)
{
    char part[4096];
    for (;;) {
        const int64_t left = end_ns - ms_clock_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (left <= 0 || poll(&p, 1, (int)(left / 1000000) + 1) == 0)
            return false;
        const ssize_t n = read(fd, part, sizeof part);
        if (n > 0)
            ms_buf_put(out, part, (size_t)n);
        else if (n == 0 || errno != EINTR)
            return true;
    }
}

int cli_ask(const char *const *argv, unsigned seconds, struct ms_buf *out)
{
    int pipe[2], status = 0;
    if (pipe2(pipe, O_CLOEXEC) != 0)
        return -1;
    const pid_t pid = start(argv, pipe[1]);
    close(pipe[1]);
    const bool in_time =
        pid > 0 && read_until(pipe[0], ms_clock_ns() + (int64_t)seconds * 1000000000, out);
    close(pipe[0]);
    if (pid <= 0)
        return -1;
    if (!in_time)
        kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return in_time && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* SPDX-License-Identifier: MIT
 *
 * statement: runs msprobe itself as "msprobe sql --box ROWS -- DB -".
 */
#include "viz/model/statement.h"

#include "probe/base/assert.h"
#include "probe/base/clock.h"
#include "probe/base/mem.h"
#include "probe/base/par.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { SAID_MAX = 4096, PART = 64 << 10 };

struct child {
    const struct viz_statement *q;
    pid_t pid;
    int out, errors; /* read ends of pipes: rows, error message */
    int64_t deadline_ns;
    bool gone; /* the requester has gone */
};

/* ---- starting ----------------------------------------------------------------------- */

/* Passes the statement in a memory file; arguments are visible to other users of the machine. */
static int statement_file(struct ms_str sql)
{
    int fd = memfd_create("statement", MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    if (write(fd, sql.p, sql.n) == (ssize_t)sql.n && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Copies the environment without the variables of mpirun: the child is no process of a job. */
static char **own_environment(void)
{
    size_t n = 0, kept = 0;
    while (environ[n] != NULL)
        n++;
    char **to = ms_alloc((n + 1) * sizeof *to);
    for (size_t i = 0; i < n && to != NULL; i++) {
        if (!ms_par_is_variable(environ[i]))
            to[kept++] = environ[i];
    }
    if (to != NULL)
        to[kept] = NULL;
    return to;
}

static int spawn_with(struct child *c, int in, int out, int errors)
{
    char rows[16];
    posix_spawn_file_actions_t fds;
    posix_spawnattr_t how;
    sigset_t none;
    snprintf(rows, sizeof rows, "%u", c->q->rows);
    char *const argv[] = {(char[]){"msprobe"},
                          (char[]){"sql"},
                          (char[]){"--box"},
                          rows,
                          (char[]){"--"}, /* the name of a file may begin with a dash */
                          (char *)(uintptr_t)c->q->db,
                          (char[]){"-"},
                          NULL};
    sigemptyset(&none);
    posix_spawn_file_actions_init(&fds);
    posix_spawn_file_actions_adddup2(&fds, in, 0);
    posix_spawn_file_actions_adddup2(&fds, out, 1);
    posix_spawn_file_actions_adddup2(&fds, errors, 2);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
    char **environment = own_environment();
    const int rc = environment != NULL
                       ? posix_spawn(&c->pid, "/proc/self/exe", &fds, &how, argv, environment)
                       : ENOMEM;
    ms_free(environment);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&fds);
    return rc;
}

static void close_pair(const int fd[2])
{
    for (int i = 0; i < 2; i++) {
        if (fd[i] >= 0)
            close(fd[i]);
    }
}

/* Starts the child; returns 0 or an errno. */
static int start_child(struct child *c)
{
    int out[2] = {-1, -1}, errors[2] = {-1, -1};
    const int in = statement_file(c->q->sql);
    int rc = in < 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0
                 ? errno
                 : spawn_with(c, in, out[1], errors[1]);
    if (in >= 0)
        close(in);
    if (rc != 0) {
        close_pair(out);
        close_pair(errors);
        return rc;
    }
    close(out[1]);
    close(errors[1]);
    c->out = out[0];
    c->errors = errors[0];
    return 0;
}

/* ---- reading ------------------------------------------------------------------------ */

/* Reads a part of the pipe; false at its end, and when the buffer is full. */
static bool read_part(int fd, struct ms_buf *to)
{
    char part[PART];
    const ssize_t n = read(fd, part, sizeof part);
    if (n < 0 && errno == EINTR)
        return true;
    if (n > 0)
        ms_buf_put(to, part, (size_t)n);
    return n > 0 && to->bad == MS_OK;
}

static int ms_left(const struct child *c)
{
    const int64_t left = (c->deadline_ns - ms_clock_ns()) / 1000000;
    return left > 0 ? (int)left + 1 : 0;
}

/* Reads both pipes to their end; false: the child has to be killed. */
static bool read_all(struct child *c, struct ms_buf *out, struct ms_buf *errors)
{
    struct pollfd fd[] = {{.fd = c->out, .events = POLLIN},
                          {.fd = c->errors, .events = POLLIN},
                          {.fd = c->q->until_gone, .events = POLLRDHUP},
                          {.fd = c->q->until_readable, .events = POLLIN}};
    while (fd[0].fd >= 0 || fd[1].fd >= 0) {
        const int n = poll(fd, 4, ms_left(c));
        if (n < 0 && errno == EINTR)
            continue;
        c->gone = n > 0 && (fd[2].revents | fd[3].revents) != 0;
        if (n <= 0 || c->gone || ms_left(c) == 0)
            return false;
        if (fd[0].revents != 0 && !read_part(c->out, out))
            fd[0].fd = -1;
        if (fd[1].revents != 0 && !read_part(c->errors, errors))
            fd[1].fd = -1;
        if (out->bad != MS_OK)
            return false;
    }
    return true;
}

/* ---- result ------------------------------------------------------------------------- */

/* Returns the first line of the error message without the program's name. */
static struct ms_str reason_text(const struct ms_buf *errors)
{
    struct ms_str rest = ms_buf_slice(errors), line;
    const struct ms_str prefix = MS_STR("msprobe sql: ");
    if (!ms_str_split(&rest, '\n', &line))
        return MS_STR("it ended without a word");
    return ms_str_starts(line, prefix) ? ms_str_sub(line, prefix.n, line.n) : line;
}

static enum ms_rc judge(const struct child *c, int status, bool ended, const struct ms_buf *out,
                        const struct ms_buf *errors, struct ms_err *err)
{
    if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return MS_OK;
    if (out->bad != MS_OK)
        return ms_fail(err, MS_E_LIMIT, "the answer is larger than %zu bytes", out->max);
    if (c->gone)
        return ms_fail(err, MS_E_INTERRUPTED, "nobody waits for the statement any more");
    if (!ended || WIFSIGNALED(status))
        return ms_fail(err, MS_E_INTERRUPTED, "the statement took longer than %u s and was ended",
                       c->q->seconds);
    const struct ms_str why = reason_text(errors);
    return ms_fail(err, MS_E_ARG, "%.*s", MS_STR_ARG(why));
}

enum ms_rc viz_statement_run(const struct viz_statement *q, struct ms_buf *out, struct ms_err *err)
{
    struct child c = {.q = q, .deadline_ns = ms_clock_ns() + (int64_t)q->seconds * 1000000000};
    struct ms_buf errors = {.max = SAID_MAX};
    int status = 0;
    ms_assert(q->db != NULL && out->max != 0);
    const int sys = start_child(&c);
    if (sys != 0) {
        errno = sys;
        return ms_fail_sys(err, "cannot start a process for the statement");
    }
    const bool ended = read_all(&c, out, &errors);
    if (!ended)
        kill(c.pid, SIGKILL);
    close(c.out);
    close(c.errors);
    while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR)
        ;
    enum ms_rc rc = judge(&c, status, ended, out, &errors, err);
    ms_buf_free(&errors);
    return rc;
}

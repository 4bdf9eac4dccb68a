/* SPDX-License-Identifier: MIT
 *
 * launch_program: see the header.
 */
#include "mstx/launch/launch_program.h"

#include "mstx/launch/environment.h"
#include "mstx/launch/recorded.h"
#include "mstx/read/elf_needs.h"

#include "probe/base/assert.h"
#include "probe/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Tells whether this process reports about the run: that of rank 0, or of a program without ranks.
 * The processes of other ranks print nothing and are replaced by the program. */
static bool speaks_for_run(void)
{
    static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK_ID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *v = getenv(names[i]);
        if (v != NULL)
            return strcmp(v, "0") == 0;
    }
    return true;
}

/* ---- running ---------------------------------------------------------------------------------- */

/* Runs in the child. Sends errno to the parent when the program cannot be started. */
static void exec_program(char **program, int tell)
{
    execvp(program[0], program);
    int why = errno;
    (void)!write(tell, &why, sizeof why);
}

static void fill_signals(sigset_t *set)
{
    static const int list[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        sigaddset(set, list[i]);
}

/* Waits for the program and forwards signals to it, except those of the terminal, which the kernel
 * sends to the program as well. */
static int wait_and_forward(pid_t pid, const sigset_t *set)
{
    for (;;) {
        siginfo_t info;
        int status;
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        int sig = sigwaitinfo(set, &info);
        if (sig > 0 && sig != SIGCHLD && info.si_code != SI_KERNEL)
            kill(pid, sig);
    }
}

static enum ms_rc start_and_wait(char **program, int *status, struct ms_err *err)
{
    sigset_t set, old;
    int tell[2], why = 0;
    if (!speaks_for_run()) {
        execvp(program[0], program);
        return ms_fail_sys(err, "%s", program[0]);
    }
    if (pipe2(tell, O_CLOEXEC) != 0)
        return ms_fail_sys(err, "pipe");
    fill_signals(&set);
    sigprocmask(SIG_BLOCK, &set, &old);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &old, NULL);
        exec_program(program, tell[1]);
        kill(getpid(), SIGKILL); /* the child must not return into msprobe */
    }
    close(tell[1]);
    if (pid < 0)
        ms_fail_sys(err, "%s", program[0]);
    else if (read(tell[0], &why, sizeof why) != sizeof why)
        why = 0;
    close(tell[0]);
    if (pid > 0)
        *status = wait_and_forward(pid, &set);
    sigprocmask(SIG_SETMASK, &old, NULL);
    errno = why;
    return pid < 0 ? MS_E_IO : why != 0 ? ms_fail_sys(err, "%s", program[0]) : MS_OK;
}

/* Returns the exit status that a shell has for this error, or 0 for other errors. */
static int status_of_start(const struct ms_err *err)
{
    return err->sys == ENOENT ? 127 : err->sys == EACCES ? 126 : 0;
}

enum ms_rc mstx_launch_run(const struct mstx_launch *how, char **program, int *status,
                           struct ms_err *err)
{
    char out[PATH_MAX];
    const char *wanted = how->output;
    ms_assert(program[0] != NULL && how->output != NULL && how->hang_timeout >= 0);
    MS_TRY(ms_mkdirs(wanted, err)); /* before the start: the program may change its directory */
    if (realpath(wanted, out) == NULL)
        return ms_fail_sys(err, "%s", wanted);
    struct ms_file elf = mstx_elf_open(program[0]);
    enum ms_rc rc = mstx__launch_environment(how, out, elf, err);
    ms_file_unmap(&elf);
    MS_TRY(rc);
    if (speaks_for_run())
        mstx__show_earlier(wanted);
    rc = start_and_wait(program, status, err);
    if (rc != MS_OK) {
        rmdir(out); /* fails, as intended, when another program records there */
        *status = status_of_start(err);
        return rc;
    }
    return speaks_for_run() ? mstx__show_recorded(wanted, how->dump != NULL, err) : MS_OK;
}

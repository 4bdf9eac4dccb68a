/* SPDX-License-Identifier: MIT
 *
 * signals: handlers of the program; libraries install none.
 *
 * Handlers only write, unlink and raise. The text that they print is prepared when they are
 * installed, and the unwinder is loaded then, too, because its first use allocates.
 */
#include "probe/cli/signals.h"

#include "probe/base/io.h"
#include "probe/base/opt.h"

#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STACK_BYTES = 64 * 1024, FRAMES = 64 };

static bool shows_stacks;
static char crash_text[1024];
static char crash_stack[STACK_BYTES]; /* alternate stack, needed after a stack overflow */

static void write_stderr(const char *text)
{
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
}

/* Removes temporary files. The action was reset to the default, so the signal raised again kills
 * the process on return. */
static void on_stop(int sig)
{
    const bool asked = sig == SIGINT || sig == SIGTERM;
    if (ms_tmp_unlink_all() && asked)
        write_stderr("msprobe: stopped; what was not finished has been removed\n");
    raise(sig);
}

static void on_crash(int sig)
{
    void *frames[FRAMES];
    write_stderr("msprobe: crashed, ");
    write_stderr(sig == SIGSEGV || sig == SIGBUS ? "bad memory access" : "internal error");
    write_stderr(crash_text);
    if (shows_stacks)
        backtrace_symbols_fd(frames, backtrace(frames, FRAMES), STDERR_FILENO);
    on_stop(sig);
}

static void on_bus(int sig, siginfo_t *info, void *context)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    (void)context;
    if (info->si_code != BUS_ADRERR) {
        signal(sig, SIG_DFL);
        on_crash(sig);
        return;
    }
    while (atomic_flag_test_and_set(&told)) /* another thread is already ending the process */
        pause();
    write_stderr("msprobe: an input file became shorter while it was read; "
                 "run again when nothing writes to it\n");
    ms_tmp_unlink_all();
    _exit(MS_EXIT_FAIL);
}

static bool has_default_action(int sig)
{
    struct sigaction old;
    return sigaction(sig, NULL, &old) == 0 && (old.sa_flags & SA_SIGINFO) == 0 &&
           old.sa_handler == SIG_DFL;
}

/* Installs a handler unless the action is not the default: a signal that the parent ignores (nohup)
 * stays ignored, and a sanitizer keeps its reports. */
static void install(int sig, struct sigaction action)
{
    if (!has_default_action(sig))
        return;
    sigemptyset(&action.sa_mask);
    sigaction(sig, &action, NULL);
}

static void note_command_line(int argc, char **argv)
{
    size_t n = (size_t)snprintf(crash_text, sizeof crash_text, "\nmsprobe " MS_VERSION ":");
    for (int i = 1; i < argc && n < sizeof crash_text; i++)
        n += (size_t)snprintf(crash_text + n, sizeof crash_text - n, " %s", argv[i]);
    /* The text ends with a newline, even when it was cut. */
    if (n > sizeof crash_text - 2)
        n = sizeof crash_text - 2;
    memcpy(crash_text + n, "\n", 2);
}

void signals_install(int argc, char **argv, bool with_stacks)
{
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    static const int crashes[] = {SIGSEGV, SIGILL, SIGFPE, SIGABRT};
    void *frame;
    shows_stacks = with_stacks;
    if (with_stacks)
        backtrace(&frame, 1);
    note_command_line(argc, argv);
    sigaltstack(&(stack_t){.ss_sp = crash_stack, .ss_size = sizeof crash_stack}, NULL);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        install(stops[i], (struct sigaction){.sa_handler = on_stop, .sa_flags = (int)SA_RESETHAND});
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        install(crashes[i], (struct sigaction){.sa_handler = on_crash,
                                               .sa_flags = (int)SA_RESETHAND | SA_ONSTACK});
    /* Without SA_RESETHAND: several threads may hit the end of one truncated file. */
    install(SIGBUS,
            (struct sigaction){.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_ONSTACK});
}

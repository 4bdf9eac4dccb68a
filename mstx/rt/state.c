/* SPDX-License-Identifier: MIT
 *
 * state: see the header.
 */
#include "mstx/rt/state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "probe/base/calm.h"

struct rt rt = {.dir = -1, .recording = 1};

bool rt_start(void)
{
    const int state = atomic_load_explicit(&rt.state, memory_order_acquire);
    if (state != RT_IDLE)
        return state == RT_RUNNING;
    return rt.begin != NULL && rt.begin(false);
}

/* ---- locks ------------------------------------------------------------------------ */

static __thread struct {
    unsigned depth;
    sigset_t before; /* signals that were blocked when depth was 0 */
} holds __attribute__((tls_model("initial-exec")));

void rt_lock(struct rt_lock *l)
{
    if (holds.depth == 0) {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        holds.before = before;
    }
    holds.depth++;
    while (atomic_exchange_explicit(&l->held, 1, memory_order_acquire) != 0)
        sched_yield();
}

void rt_unlock(struct rt_lock *l)
{
    ms_assert(atomic_load(&l->held) == 1 && holds.depth > 0);
    atomic_store_explicit(&l->held, 0, memory_order_release);
    if (--holds.depth == 0) {
        sigset_t before = holds.before;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
}

void rt_unlock_all(void)
{
    if (holds.depth == 0)
        return;
    sigset_t before = holds.before;
    holds.depth = 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- messages --------------------------------------------------------------------- */

static void write_line(const char *line, size_t n)
{
    ms_assert(n > 0 && line[n - 1] == '\n');
    struct ms_calm calm;
    ms_calm(&calm, false);
    (void)!write(STDERR_FILENO, line, n);
    ms_calm_end(&calm);
}

void rt_say(enum rt_say what, enum mstx_why why, const char *fmt, ...)
{
    ms_assert(what < 32 && fmt != NULL);
    uint32_t bit = 1u << what;
    if ((atomic_fetch_or(&rt.printed, bit) & bit) != 0)
        return;
    char line[1024];
    int saved = errno;
    int n = snprintf(line, sizeof line, "mstx: ");
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    size_t len = (size_t)n + (size_t)(m > 0 ? m : 0);
    if (len > sizeof line - 2)
        len = sizeof line - 2;
    if (what != RT_SAY_START && rt_is_running())
        rt.define_note(why, line + n, len - (size_t)n);
    line[len] = '\n';
    if (rt.conf.quiet < (what == RT_SAY_START ? 1 : 2))
        write_line(line, len + 1);
    errno = saved;
}

void rt_note(const char *text)
{
    ms_assert(text != NULL);
    char line[1024];
    int saved = errno;
    if (rt_is_running())
        rt.define_note(0, text, strlen(text));
    int n = snprintf(line, sizeof line, "mstx: %.1000s\n", text);
    if (rt.conf.quiet < 2)
        write_line(line, (size_t)n);
    errno = saved;
}

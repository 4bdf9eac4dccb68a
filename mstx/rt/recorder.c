/* SPDX-License-Identifier: MIT
 *
 * rt_core: the life of a capture: begun by the first mark (or by the entry point a marking
 * header calls), forgotten and begun anew in a forked child, closed at exit.
 *
 *    IDLE ──first mark──► RUNNING ──exit──► ENDED
 *      │                     │
 *      └──cannot──► REFUSED  └──fork, in the child──► IDLE
 *
 * A process that never marks leaves no trace: no thread, no file.
 */
#include "mstx/rt_device.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

struct rt rt = {.dir = -1, .recording = 1};

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
    atomic_store_explicit(&l->held, 0, memory_order_release);
    if (--holds.depth == 0) {
        sigset_t before = holds.before;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
}

/* ---- talking ---------------------------------------------------------------------- */

static void write_line(const char *line, size_t n)
{
    struct rt_calm calm;
    rt_calm(&calm, false);
    (void)!write(STDERR_FILENO, line, n);
    rt_calm_end(&calm);
}

void rt_say(enum rt_say what, enum mstx_why why, const char *fmt, ...)
{
    uint32_t bit = 1u << what;
    if ((atomic_fetch_or(&rt.said, bit) & bit) != 0)
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
        rt_text_define(MSTX_NOTE, 0, why, line + n, len - (size_t)n);
    line[len] = '\n';
    if (rt.conf.quiet < (what == RT_SAY_START ? 1 : 2))
        write_line(line, len + 1);
    errno = saved;
}

void rt_note(const char *text)
{
    char line[1024];
    int saved = errno;
    if (rt_is_running())
        rt_text_define(MSTX_NOTE, 0, 0, text, strlen(text));
    int n = snprintf(line, sizeof line, "mstx: %.1000s\n", text);
    if (rt.conf.quiet < 2)
        write_line(line, (size_t)n);
    errno = saved;
}

/* ---- facts about the process --------------------------------------------------------- */

static void define_info(const char *name, const char *value, size_t n)
{
    char text[4096];
    int head = snprintf(text, sizeof text, "%s=", name);
    size_t room = sizeof text - (size_t)head;
    n = n < room ? n : room;
    memcpy(text + head, value, n);
    rt_text_define(MSTX_INFO, 0, 0, text, (size_t)head + n);
}

static void define_cmdline(void)
{
    char text[3072];
    FILE *f = fopen("/proc/self/cmdline", "re");
    size_t n = f == NULL ? 0 : fread(text, 1, sizeof text, f);
    if (f != NULL)
        fclose(f);
    while (n > 0 && text[n - 1] == '\0')
        n--;
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] == '\0' ? ' ' : text[i];
    define_info("cmdline", text, n);
}

static void define_facts(void)
{
    char text[RT_PATH];
    define_cmdline();
    ssize_t n = readlink("/proc/self/exe", text, sizeof text);
    if (n > 0)
        define_info("exe", text, (size_t)n);
    if (getcwd(text, sizeof text) != NULL)
        define_info("cwd", text, strlen(text));
    if (rt.conf.rank_from[0] != '\0')
        define_info("rank_from", rt.conf.rank_from, strlen(rt.conf.rank_from));
    uint64_t before = rt_ticks();
    for (int i = 0; i < 256; i++)
        (void)rt_ticks();
    n = snprintf(text, sizeof text, "%llu", (unsigned long long)(rt_ticks() - before) / 257);
    define_info("clock_cost_ticks", text, (size_t)n);
}

static void say_state(enum mstx_why why, bool on)
{
    struct mstx_rec rec = {
        .ticks = rt_ticks(), .id = why, .type = MSTX_REC_STATE, .arg = on ? 1 : 0};
    rt_lock(&rt.process_lock);
    rt_ring_process(&rec);
    rt_unlock(&rt.process_lock);
}

void rt_set_recording(bool on, enum mstx_why why)
{
    if (atomic_exchange(&rt.recording, on) == on)
        return;
    if (rt.control != NULL) /* a child may look at any time */
        __atomic_store_n(&rt.control->recording, on, __ATOMIC_RELEASE);
    rt_domain_refresh();
    say_state(why, on);
}

/* ---- begin ---------------------------------------------------------------------------- */

static bool begin(void)
{
    rt.pid = (uint32_t)getpid();
    rt.epoch++;
    atomic_store(&rt.bytes, 0);
    atomic_store(&rt.recording, rt_file_ask_parent(!rt.conf.wait));
    if (!rt_file_start())
        return false;
    rt.control->recording = atomic_load(&rt.recording) != 0;
    if (!rt_text_start() || !rt_ring_start()) {
        rt_say(RT_SAY_DIR, MSTX_WHY_IO, "cannot record into %s: %s; nothing is recorded", rt.path,
               strerror(errno));
        return false;
    }
    atomic_store_explicit(&rt.state, RT_RUNNING, memory_order_release);
    define_facts();
    rt_domain_define_all();
    say_state(MSTX_WHY_START, atomic_load(&rt.recording) != 0);
    rt_clock_tick();
    rt_helper_start();
    rt_clock_net_start();
    rt_say(RT_SAY_START, 0, "recording into %s", rt.target);
    return true;
}

bool rt_start(bool by_default)
{
    int state = atomic_load_explicit(&rt.state, memory_order_acquire);
    if (state != RT_IDLE)
        return state == RT_RUNNING;
    if (rt.conf.out[0] == '\0') {
        if (!by_default || getauxval(AT_SECURE) != 0)
            return false;
        snprintf(rt.conf.out, sizeof rt.conf.out, "mstx-capture");
        rt_make_absolute(rt.conf.out);
        atomic_store(&rt.recording, 1);
    }
    rt_lock(&rt.start_lock);
    bool mine = atomic_load(&rt.state) == RT_IDLE;
    if (mine && !begin()) {
        rt_file_withdraw();
        atomic_store(&rt.state, RT_REFUSED);
    }
    rt_unlock(&rt.start_lock);
    if (mine)
        rt_domain_refresh();
    return rt_is_running();
}

/* ---- fork -------------------------------------------------------------------------------- */

static struct rt_lock *const locks[] = {
    &rt.start_lock,   &rt.comm_lock, &rt.stream_lock, &rt.domain_lock, &rt.ring_lock,
    &rt.process_lock, &rt.text_lock, &rt.keep_lock,   &rt.proto_lock,  &rt.schema_lock};
enum { LOCKS = sizeof locks / sizeof *locks };

/* All quiet while the process is copied; not when a signal handler forks in the middle of a
 * record call, which may hold one of them. */
static __thread bool quiet;
static void before_fork(void)
{
    quiet = rt_tls == NULL || rt_tls->busy == 0;
    for (int i = 0; quiet && i < LOCKS; i++)
        rt_lock(locks[i]);
}
static void after_fork(void)
{
    for (int i = LOCKS; quiet && i > 0; i--)
        rt_unlock(locks[i - 1]);
}

/* The parent's files are shared pages: unmap, touch nothing, begin anew at the next mark; that
 * also when the parent is stopped, so that the child is there to be started, and then it records
 * if the parent does. */
static void begin_anew(void)
{
    int state = atomic_load(&rt.state);
    rt_helper_forget();
    rt_clock_net_forget();
    rt_dev_forget();
    rt_ring_forget();
    rt_slots_forget();
    rt_text_forget();
    rt_file_forget();
    atomic_store(&rt.said, atomic_load(&rt.said) & 1u << RT_SAY_START); /* one line per job */
    atomic_store(&rt.lost_no_ring, 0);
    if (state != RT_RUNNING)
        return;
    atomic_store(&rt.state, RT_IDLE);
    atomic_store(&rt.recording, 1);
    rt_domain_refresh();
}

static void in_child(void)
{
    for (int i = 0; i < LOCKS; i++)
        atomic_store(&locks[i]->held, 0);
    begin_anew(); /* still without signals: a handler must not mark into what is the parent's */
    if (holds.depth == 0)
        return;
    sigset_t before = holds.before;
    holds.depth = 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- load and exit ------------------------------------------------------------------------- */

__attribute__((constructor)) static void load(void)
{
    rt_read_env(&rt.conf);
    rt_clock_choose(getauxval(AT_SECURE) != 0 ? NULL : getenv("MSTX_CLOCK"));
    pthread_atfork(before_fork, after_fork, in_child);
    atomic_store(&rt.recording, rt.conf.out[0] != '\0'); /* the first mark opens the capture */
    rt_domain_filter(rt.conf.include, rt.conf.exclude);
    rt_dev_trust(rt.conf.device);
}

__attribute__((destructor)) static void unload(void)
{
    if (!rt_is_running() || rt.pid != (uint32_t)getpid())
        return;
    rt_set_recording(false, MSTX_WHY_EXIT);
    rt_clock_net_stop();
    rt_helper_stop();
    rt_clock_tick();
    atomic_store(&rt.state, RT_ENDED);
    rt_ring_close_all();
    rt_text_close();
    rt_file_unstage(true);
}

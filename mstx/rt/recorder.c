/* SPDX-License-Identifier: MIT
 *
 * recorder: begins and ends the recording of a process, by the configuration of its
 * environment.
 */
#include "mstx/rt/recorder.h"
#include "mstx/rt/clock_net.h"
#include "mstx/rt/domain.h"
#include "mstx/rt/helper.h"
#include "mstx/rt/mark.h"
#include "mstx/rt/process_ring.h"
#include "mstx/rt/segment_file.h"
#include "mstx/rt/slot.h"
#include "mstx/rt/socket_use.h"
#include "mstx/rt/throttling.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

/* ---- environment ------------------------------------------------------------ */

enum {
    HANG_S = 300,                       /* a call is reported as hung after so many seconds */
    SEGMENT_LEAST = 4 * MSTX_SEG_HEADER /* 384 records: the largest event, of 193, fits */
};

static const char *get_variable(const char *name)
{
    const char *v = secure_getenv(name);
    return v != NULL && *v != '\0' ? v : NULL;
}

static void copy(char *to, size_t cap, const char *name)
{
    const char *v = get_variable(name);
    to[0] = '\0';
    if (v != NULL && strlen(v) < cap)
        memcpy(to, v, strlen(v) + 1);
}

/* Parses digits, then k, m or g; 0 when text has another form. */
static uint64_t bytes_of(const char *text)
{
    uint64_t n = 0;
    if (text == NULL)
        return 0;
    for (; *text >= '0' && *text <= '9' && n < UINT64_MAX / 20; text++)
        n = n * 10 + (uint64_t)(*text - '0');
    unsigned shift = 0;
    switch (*text) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    case '\0':
        break;
    default:
        return 0;
    }
    return n > UINT64_MAX >> shift ? 0 : n << shift;
}

/* Parses seconds such as "12" or "0.5", independent of the locale's decimal point. */
static double seconds_of(const char *text)
{
    double v = 0, unit = 1;
    bool point = false;
    if (text == NULL)
        return 0;
    for (; *text != '\0'; text++) {
        if (*text == '.' && !point)
            point = true;
        else if (*text >= '0' && *text <= '9' && v < 1e9) {
            v = v * 10 + (*text - '0');
            unit *= point ? 10 : 1;
        } else
            return 0;
    }
    return v / unit;
}

static bool int_of(const char *text, int32_t *out)
{
    int32_t n = 0;
    if (text == NULL)
        return false;
    for (; *text >= '0' && *text <= '9' && n < 100000000; text++)
        n = n * 10 + (*text - '0');
    if (*text != '\0')
        return false;
    *out = n;
    return true;
}

/* Reads the rank. The innermost launcher comes first: torchrun under Slurm sets its own
 * variables. */
static void read_rank(struct rt_config *c)
{
    static const struct {
        const char *rank, *size, *local, *who;
    } from[] = {
        {"MSPROBE_RANK", "MSPROBE_WORLD_SIZE", "MSPROBE_LOCAL_RANK", "msprobe"},
        {"RANK", "WORLD_SIZE", "LOCAL_RANK", "torchrun"},
        {"RANK_ID", "RANK_SIZE", "DEVICE_ID", "MindSpore"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "Open MPI"},
        {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPICH"},
        {"PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", "PMIx"},
        {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "Slurm"},
    };
    c->rank = c->world_size = c->local_rank = -1;
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        if (!int_of(get_variable(from[i].rank), &c->rank))
            continue;
        int_of(get_variable(from[i].size), &c->world_size);
        int_of(get_variable(from[i].local), &c->local_rank);
        snprintf(c->rank_from, sizeof c->rank_from, "%s", from[i].who);
        return;
    }
}

static bool is_value(const char *name, const char *value)
{
    const char *v = get_variable(name);
    return v != NULL && strcmp(v, value) == 0;
}

void rt_make_absolute(char path[RT_PATH])
{
    char here[RT_PATH];
    size_t n = strlen(path);
    if (n == 0 || path[0] == '/' || getcwd(here, sizeof here) == NULL)
        return;
    size_t m = strlen(here);
    if (m + 1 + n >= RT_PATH)
        return;
    memmove(path + m + 1, path, n + 1);
    memcpy(path, here, m);
    path[m] = '/';
}

void rt_read_env(struct rt_config *c)
{
    memset(c, 0, sizeof *c);
    copy(c->out, sizeof c->out, "MSTX_OUT");
    copy(c->stage, sizeof c->stage, "MSTX_STAGE");
    rt_make_absolute(c->out);
    rt_make_absolute(c->stage);
    copy(c->include, sizeof c->include, "MSTX_DOMAIN_INCLUDE");
    copy(c->exclude, sizeof c->exclude, "MSTX_DOMAIN_EXCLUDE");
    copy(c->next_mstx, sizeof c->next_mstx, "MSTX_NEXT_PATH");
    c->policy = is_value("MSTX_POLICY", "drop") ? RT_DROP : RT_BLOCK;
    c->flight_s = seconds_of(get_variable("MSTX_FLIGHT"));
    c->hang_s = get_variable("MSTX_HANG_TIMEOUT") != NULL
                    ? seconds_of(get_variable("MSTX_HANG_TIMEOUT"))
                    : HANG_S;
    c->max_bytes = bytes_of(get_variable("MSTX_MAX_SIZE"));
    uint64_t seg = bytes_of(get_variable("MSTX_SEGMENT"));
    c->segment_bytes = seg == 0 ? 4u << 20 : seg > 64u << 20 ? 64u << 20 : (uint32_t)seg;
    if (c->segment_bytes < SEGMENT_LEAST)
        c->segment_bytes = SEGMENT_LEAST;
    c->segment_bytes &= ~(uint32_t)(MSTX_SEG_HEADER - 1);
    c->wait = is_value("MSTX_START", "off");
    c->no_nvtx = is_value("MSTX_NVTX", "0");
    c->quiet = is_value("MSTX_QUIET", "2") ? 2 : is_value("MSTX_QUIET", "1");
    c->tool_id = is_value("MSTX_TOOL_ID", "msprof") ? 0x1000 : 0x4D53;
    read_rank(c);
}

/* The life of a capture: begun by the first mark (or by the entry point a marking
 * header calls), dropped and begun again in a forked child, closed at exit.
 *
 *    IDLE ──first mark──► RUNNING ──exit──► ENDED
 *      │                     │
 *      └──cannot──► REFUSED  └──fork, in the child──► IDLE
 *
 * A process that never marks leaves no trace: no thread, no file. */

/* ---- facts about the process ---------------------------------------------------------
 * Their texts are static: the first mark may come from a thread with the smallest stack, and begin() holds a
 * lock. */

static void define_info(const char *name, const char *value, size_t n)
{
    ms_assert(name != NULL && value != NULL);
    static char text[4096];
    int head = snprintf(text, sizeof text, "%s=", name);
    size_t room = sizeof text - (size_t)head;
    n = n < room ? n : room;
    memcpy(text + head, value, n);
    rt_text_define(MSTX_INFO, 0, 0, text, (size_t)head + n);
}

static void define_cmdline(void)
{
    static char text[3072];
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
    static char text[RT_PATH];
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

/* ---- begin ---------------------------------------------------------------------------- */

static bool begin(void)
{
    ms_assert(atomic_load(&rt.state) == RT_IDLE && atomic_load(&rt.start_lock.held) == 1);
    rt.pid = (uint32_t)getpid();
    rt.epoch++;
    atomic_store(&rt.bytes, 0);
    atomic_store(&rt.records, 0);
    atomic_store(&rt.dropped, 0);
    atomic_store(&rt.segments, 0);
    atomic_store(&rt.recording, rt_file_ask_parent(!rt.conf.wait));
    if (!rt_file_start())
        return false;
    rt.control->recording = atomic_load(&rt.recording) != 0;
    if (!rt_text_start() || !rt_ring_start() || !rt_process_start()) {
        rt_say(RT_SAY_DIR, MSTX_WHY_IO, "cannot record into %s: %s; nothing is recorded", rt.path,
               strerror(errno));
        return false;
    }
    atomic_store_explicit(&rt.state, RT_RUNNING, memory_order_release);
    define_facts();
    rt_domain_define_all();
    rt_state_write(MSTX_WHY_START, atomic_load(&rt.recording) != 0);
    rt_clock_tick();
    rt_helper_start();
    rt_clock_net_start();
    rt_say(RT_SAY_START, 0, "recording into %s", rt.target);
    return true;
}

bool rt_recorder_start(bool by_default)
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
    int saved = errno; /* a mark, also the first, must not change errno */
    rt_lock(&rt.start_lock);
    bool mine = atomic_load(&rt.state) == RT_IDLE;
    if (mine && !begin()) {
        rt_file_withdraw();
        atomic_store(&rt.state, RT_REFUSED);
    }
    rt_unlock(&rt.start_lock);
    if (mine)
        rt_domain_refresh();
    errno = saved;
    return rt_is_running();
}

/* ---- fork -------------------------------------------------------------------------------- */

static struct rt_lock *const locks[] = {
    &rt.start_lock,   &rt.comm_lock, &rt.stream_lock, &rt.domain_lock, &rt.ring_lock,
    &rt.process_lock, &rt.text_lock, &rt.keep_lock,   &rt.proto_lock,  &rt.schema_lock};
enum { LOCKS = sizeof locks / sizeof *locks };

/* Takes all locks while the process is copied, unless a signal handler forks in the middle of a
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

/* Drops the parent's files, which are shared pages, without writing to them; the next mark begins a
 * capture of the child. A capture is begun also when the parent is stopped, so that `msprobe ctl`
 * can start the child; the child records if the parent does. */
static void begin_anew(void)
{
    int state = atomic_load(&rt.state);
    rt_helper_forget();
    rt_clock_net_forget();
    const struct rt_device_calls *device = atomic_load(&rt_device);
    if (device != NULL)
        device->forget();
    rt_ring_forget();
    rt_process_forget();
    rt_slots_forget();
    rt_text_forget();
    rt_file_forget();
    atomic_store(&rt.printed, atomic_load(&rt.printed) & 1u << RT_SAY_START); /* one line per job */
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
    begin_anew(); /* signals are still blocked: a handler must not mark into the parent's files */
    rt_unlock_all();
}

/* ---- load and exit ------------------------------------------------------------------------- */

__attribute__((constructor)) static void load(void)
{
    rt_read_env(&rt.conf);
    rt_clock_choose(getauxval(AT_SECURE) != 0 ? NULL : getenv("MSTX_CLOCK"));
    pthread_atfork(before_fork, after_fork, in_child);
    atomic_store(&rt.recording, rt.conf.out[0] != '\0'); /* the first mark opens the capture */
    rt_domain_filter(rt.conf.include, rt.conf.exclude);
    rt.begin = rt_recorder_start;
}

__attribute__((destructor)) static void unload(void)
{
    if (!rt_is_running() || rt.pid != (uint32_t)getpid())
        return;
    const bool is_recording = atomic_load(&rt.recording) != 0;
    rt_set_recording(false, MSTX_WHY_EXIT);
    rt_clock_net_stop();
    rt_helper_stop();
    if (is_recording) {
        rt_sockets_look(true);
        rt_throttling_look();
    }
    rt_throttling_end();
    rt_clock_tick();
    atomic_store(&rt.state, RT_ENDED);
    rt_ring_close_all();
    rt_process_close();
    rt_text_close();
    rt_file_unstage(true);
}

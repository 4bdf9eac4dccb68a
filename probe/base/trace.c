/* SPDX-License-Identifier: MIT
 *
 * trace: a list of finished spans behind one lock.  Phases are few and long, so
 * the lock is never contended; the list has a maximum because a loop may still
 * time each of its items.  Sums per name are kept apart and stay exact when the
 * list is full.
 */
#include "probe/base/trace.h"

#include "probe/base/clock.h"
#include "probe/base/compat.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/vec.h"

#include <pthread.h>
#include <unistd.h>

enum { MAX_EVENTS = 1 << 16, MAX_PHASES = 64 };

struct event {
    const char *name;
    int64_t start_ns, wall_ns, cpu_ns;
    int tid;
};

struct phase {
    const char *name;
    uint64_t runs;
    int64_t wall_ns, cpu_ns;
};

static struct {
    pthread_mutex_t lock;
    MS_VEC(struct event) events;
    uint64_t dropped; /* events beyond the maximum */
    struct phase phases[MAX_PHASES];
    size_t nphases;
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct ms_span ms_span_begin(const char *name)
{
    return (struct ms_span){name, ms_clock_ns(), ms_clock_cpu_ns()};
}

/* Finds the sums of a phase. When the table is full, its last entry, "(others)", takes all further
 * names. */
static struct phase *phase_of(const char *name)
{
    for (size_t i = 0; i < trace.nphases; i++) {
        if (strcmp(trace.phases[i].name, name) == 0)
            return &trace.phases[i];
    }
    if (trace.nphases == MAX_PHASES)
        return &trace.phases[MAX_PHASES - 1];
    struct phase *p = &trace.phases[trace.nphases++];
    *p = (struct phase){.name = trace.nphases == MAX_PHASES ? "(others)" : name};
    return p;
}

static void keep_event(const struct event *e)
{
    struct phase *p = phase_of(e->name);
    p->runs++;
    p->wall_ns += e->wall_ns;
    p->cpu_ns += e->cpu_ns;
    struct event *slot = trace.events.n < MAX_EVENTS ? ms_vec_push(&trace.events) : NULL;
    if (slot != NULL)
        *slot = *e;
    else
        trace.dropped++;
}

void ms_span_end(const struct ms_span *s)
{
    struct event e = {.name = s->name,
                      .start_ns = s->start_ns,
                      .wall_ns = ms_clock_ns() - s->start_ns,
                      .cpu_ns = ms_clock_cpu_ns() - s->start_cpu_ns,
                      .tid = ms_gettid()};
    pthread_mutex_lock(&trace.lock);
    keep_event(&e);
    pthread_mutex_unlock(&trace.lock);
}

void ms_trace_reset(void)
{
    pthread_mutex_lock(&trace.lock);
    ms_vec_free(&trace.events);
    trace.dropped = 0;
    trace.nphases = 0;
    pthread_mutex_unlock(&trace.lock);
}

/* Writes a JSON string. Names are literals of this program, so only quotes and backslashes are
 * escaped. */
static void put_text(struct ms_out *o, const char *z)
{
    ms_out_putc(o, '"');
    for (; *z != '\0'; z++) {
        if (*z == '"' || *z == '\\')
            ms_out_putc(o, '\\');
        ms_out_putc(o, *z);
    }
    ms_out_putc(o, '"');
}

static void put_us(struct ms_out *o, const char *key, int64_t ns)
{
    ms_out_printf(o, "\"%s\":%lld.%03d", key, (long long)(ns / 1000), (int)(ns % 1000));
}

static void put_event(struct ms_out *o, const struct event *e, int pid)
{
    ms_out_puts(o, "{\"name\":");
    put_text(o, e->name);
    ms_out_printf(o, ",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,", pid, e->tid);
    put_us(o, "ts", e->start_ns);
    ms_out_putc(o, ',');
    put_us(o, "dur", e->wall_ns);
    ms_out_puts(o, ",\"args\":{");
    put_us(o, "cpu_us", e->cpu_ns);
    ms_out_puts(o, "}}");
}

enum ms_rc ms_trace_write(const char *path, struct ms_err *err)
{
    struct ms_out *o;
    int pid = (int)getpid();
    MS_TRY(ms_out_create(&o, path, err));
    pthread_mutex_lock(&trace.lock);
    ms_out_printf(o, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped\":%llu},",
                  (unsigned long long)trace.dropped);
    ms_out_puts(o, "\"traceEvents\":[");
    for (size_t i = 0; i < trace.events.n; i++) {
        ms_out_puts(o, i == 0 ? "\n" : ",\n");
        put_event(o, &trace.events.p[i], pid);
    }
    pthread_mutex_unlock(&trace.lock);
    ms_out_puts(o, "\n]}\n");
    return ms_out_commit(o, err);
}

void ms_trace_summary(FILE *to)
{
    pthread_mutex_lock(&trace.lock);
    fprintf(to, "%-20s %8s %12s %12s\n", "phase", "runs", "wall ms", "cpu ms");
    for (size_t i = 0; i < trace.nphases; i++) {
        const struct phase *p = &trace.phases[i];
        fprintf(to, "%-20s %8llu %12.3f %12.3f\n", p->name, (unsigned long long)p->runs,
                (double)p->wall_ns / 1e6, (double)p->cpu_ns / 1e6);
    }
    pthread_mutex_unlock(&trace.lock);
    fprintf(to, "memory: %.1f KiB live, %.1f KiB at the peak\n", (double)ms_mem_live() / 1024,
            (double)ms_mem_peak() / 1024);
}

/* SPDX-License-Identifier: MIT
 *
 * recording: see the header.  The recorder's own life is in static functions: the ring's file and the
 * recorder's are part of this one, so that a schedule can end a process and begin another.
 */
#include "tests/mstx/simulate/recording.h"

#include "mstx/format/stage.h"
#include "mstx/rt/recorder.c"
#include "mstx/rt/ring.c"

#include "mstx/read/processes.h"
#include "tests/mstx/simulate/seam.h"

#include <glob.h>
#include <stdlib.h>

enum { THREADS = 6, EVENTS = 6000, CAPTURES = 3, SNAPSHOTS = 4 };

struct thread {
    struct rt_ring *ring;
    uint8_t rebirths;
    uint32_t tid, made;
    bool there;
};

enum event_state { EVENT_DONE = 1, EVENT_NO_RING = 2, EVENT_SEEN = 4 };
struct event {
    uint16_t serial;
    uint8_t thread, capture, state;
    int64_t at_ns;
};

struct capture {
    uint32_t pid;
    uint64_t dropped, unnamed;
    bool has_exit; /* a record says that the process ended by itself */
};

static struct run {
    char dir[256], out[300], stage[300];
    struct thread thread[THREADS];
    struct event event[EVENTS];
    uint32_t events, captures, snapshots, forks;
    uint32_t place[THREADS][1 << 16]; /* of the event of a thread by its serial, from 1 */
    struct capture capture[CAPTURES];
    bool killed; /* or still at work: nothing says that its files are finished */
    uint32_t thread_now;
    char wrong[1000];
} run;

static void wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void wrong(const char *fmt, ...)
{
    va_list ap;
    if (run.wrong[0] != '\0')
        return;
    va_start(ap, fmt);
    vsnprintf(run.wrong, sizeof run.wrong, fmt, ap);
    va_end(ap);
}

/* ---- threads ---------------------------------------------------------------------- */

static void switch_to(uint32_t t)
{
    struct thread *from = &run.thread[run.thread_now], *to = &run.thread[t];
    from->ring = rt_tls;
    from->rebirths = self.rebirths;
    run.thread_now = t;
    rt_tls = to->ring;
    self.rebirths = to->rebirths;
    self.opening = false;
    sim.tid = to->tid;
}

static void begin_thread(uint32_t t)
{
    struct thread *th = &run.thread[t];
    *th = (struct thread){.tid = sim.pid + t, .there = true, .made = th->made};
}

static void end_thread(uint32_t t)
{
    switch_to(t);
    sim_thread_ends(rt_tls);
    run.thread[t].there = false;
    run.thread[t].ring = rt_tls = NULL;
}

/* ---- marks ------------------------------------------------------------------------- */

static void mark_once(uint32_t t)
{
    char text[32];
    struct thread *th = &run.thread[t];
    if (run.events == EVENTS)
        return;
    struct event *e = &run.event[run.events++];
    *e = (struct event){.thread = (uint8_t)t,
                        .serial = (uint16_t)th->made,
                        .capture = (uint8_t)run.captures,
                        .at_ns = sim.steady_ns};
    run.place[t][th->made++] = run.events;
    snprintf(text, sizeof text, "t%u.%u", t, (unsigned)e->serial);
    rt_mark(&rt_domains[0], text, NULL);
    if (rt_tls != NULL && rt_tls->busy != 0)
        wrong(
            "a mark has left its ring busy: the next ones are taken for those of a signal handler");
    e->state = rt_tls != NULL ? EVENT_DONE : EVENT_DONE | EVENT_NO_RING;
    if (rt_tls == NULL && !sim_has_said("a thread has no ring") &&
        !sim_has_said("nothing is recorded"))
        wrong("a mark found no ring and nothing was said");
}

static void mark_some(void)
{
    const uint32_t t = sim_below(THREADS);
    uint32_t n = 1 + sim_below(sim_chance(200) ? 700 : 60);
    if (!run.thread[t].there)
        begin_thread(t);
    switch_to(t);
    if (atomic_load(&rt.recording) == 0)
        return;
    while (n-- > 0 && atomic_load(&rt.recording) != 0)
        mark_once(t);
}

/* ---- requests ------------------------------------------------------------------------ */

static void verify(const char *dir, uint32_t first, uint32_t events);

static bool send_request(uint32_t command, const char *text)
{
    struct mstx_control *c = rt.control;
    if (c == NULL || !sim_helper_is_there() || c->request != c->done)
        return false;
    snprintf(c->text, sizeof c->text, "%s", text);
    c->command = command;
    __atomic_store_n(&c->request, c->request + 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&c->bell, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 10000 && c->request != c->done; i++)
        sim_helper_run();
    if (c->request != c->done)
        wrong("the helper did not answer request %u", command);
    return c->request == c->done;
}

static void ask_snapshot(void)
{
    char to[400];
    if (run.snapshots == SNAPSHOTS || !rt_is_running())
        return;
    snprintf(to, sizeof to, "%s/snapshots/%u", run.out, ++run.snapshots);
    if (!send_request(MSTX_CMD_SNAPSHOT, to))
        return;
    if (rt.control->result != 0 && rt.control->answer[0] == '\0')
        wrong("a snapshot failed and its answer is empty");
    const uint32_t events = run.events;
    const bool on = sim.on;
    sim.on = false;
    if (rt.control->result == 0)
        verify(to, run.captures, events);
    sim.on = on;
}

static void ask_something(void)
{
    static const uint32_t simple[] = {MSTX_CMD_STATUS, MSTX_CMD_FLUSH, MSTX_CMD_START,
                                      MSTX_CMD_STOP};
    const uint32_t command = simple[sim_below(sizeof simple / sizeof *simple)];
    if (!send_request(command, ""))
        return;
    const bool on = rt.control->recording != 0;
    if (command == MSTX_CMD_START && !on)
        wrong("recording is off after a request to start");
    if (command == MSTX_CMD_STOP && on)
        wrong("recording is on after a request to stop");
    if (command == MSTX_CMD_STOP)
        send_request(MSTX_CMD_START, "");
}

/* ---- the world ------------------------------------------------------------------------- */

static void move_clock(void)
{
    switch (sim_below(4)) {
    case 0:
        sim.steady_ns += 1000 + sim_below(1000000);
        break;
    case 1:
        sim.steady_ns += sim_below(2000000000); /* suspended, or busy elsewhere */
        break;
    case 2:
        sim.wall_offset_ns +=
            ((int64_t)sim_below(2000) - 1000) * 1000000000; /* set by hand or NTP */
        break;
    default:
        sim.reading_ns = 20 + sim_below(2000);
    }
}

static void move_disk(void)
{
    sim.free_bytes = sim_chance(600) ? INT64_MAX : (int64_t)sim_below(200 << 10);
}

/* The parent ends here: what it wrote must be whole, and the child begins a capture of its own. */
static void fork_process(void)
{
    if (run.captures + 1 == CAPTURES)
        return;
    for (uint32_t t = 0; t < THREADS; t++) {
        if (run.thread[t].there && t != run.thread_now && sim_chance(512))
            end_thread(t);
    }
    before_fork();
    run.captures++;
    sim.pid += 100;
    sim_helper_forget();
    in_child();
    for (uint32_t t = 0; t < THREADS; t++) {
        run.thread[t].there = false;
        run.thread[t].ring = NULL;
    }
    begin_thread(run.thread_now);
    sim.tid = run.thread[run.thread_now].tid;
    run.capture[run.captures].pid = sim.pid;
}

static void step(void)
{
    const uint32_t which = sim_below(100);
    if (which < 55)
        mark_some();
    else if (which < 70)
        sim_helper_run();
    else if (which < 80)
        move_clock();
    else if (which < 85)
        end_thread(sim_below(THREADS));
    else if (which < 90)
        move_disk();
    else if (which < 96)
        ask_something();
    else if (which < 98)
        ask_snapshot();
    else if (sim_chance(300))
        fork_process();
}

/* ---- begin and end ------------------------------------------------------------------------ */

static void configure(void)
{
    struct rt_config *c = &rt.conf;
    memset(c, 0, sizeof *c);
    c->rank = c->world_size = c->local_rank = -1;
    snprintf(c->out, sizeof c->out, "%s", run.out);
    if (sim_chance(200))
        snprintf(c->stage, sizeof c->stage, "%s", run.stage);
    c->policy = sim_chance(700) ? RT_BLOCK : RT_DROP;
    c->flight_s = sim_chance(200) ? 0.001 + sim_below(1000) * 1e-3 : 0;
    c->max_bytes = sim_chance(100) ? (100 << 10) + sim_below(400 << 10) : 0;
    c->segment_bytes = (16u << 10) << sim_below(sim_chance(100) ? 6 : 3);
    rt_clock_kind = MSTX_CLOCK_MONOTONIC;
}

static void choose_faults(void)
{
    struct sim_faults *f = &sim.faults;
    const uint32_t much = sim_chance(512) ? 0 : 1 + sim_below(60);
    *f = (struct sim_faults){.preempt = sim_below(300),
                             .kill = sim_chance(300) ? 1 + sim_below(8) : 0};
    if (much != 0 && sim_chance(512))
        f->open = sim_below(much);
    if (much != 0 && sim_chance(512))
        f->space = sim_below(much);
    if (much != 0 && sim_chance(512))
        f->write = f->name = sim_below(much);
    f->interrupt = sim_chance(300) ? sim_below(100) : 0;
    f->shorter = sim_chance(300) ? sim_below(300) : 0;
}

static void forget_process(void)
{
    sim.on = false;
    sim_helper_forget();
    in_child();
    rt_file_ask_parent(true);
}

/* As the loader leaves a process that is to be recorded. */
static void load_process(void)
{
    atomic_store(&rt.state, RT_IDLE);
    atomic_store(&rt.printed, 0);
    atomic_store(&rt.recording, 1);
    rt.epoch = 0;
    rt_domain_refresh();
}

static void live(void)
{
    const uint32_t steps = 3 + sim_below(sim_chance(10) ? 250 : 30);
    for (uint32_t i = 0; i < steps && run.wrong[0] == '\0'; i++)
        step();
    if (sim_chance(700)) {
        unload();
        run.killed = false;
    }
}

static void begin_run(uint64_t seed, const char *dir)
{
    memset(&run, 0, offsetof(struct run, event));
    run.events = run.captures = run.snapshots = 0;
    memset(run.capture, 0, sizeof run.capture);
    run.killed = true;
    run.thread_now = 0;
    run.wrong[0] = '\0';
    sim_reset(seed);
    snprintf(run.dir, sizeof run.dir, "%s", dir);
    snprintf(run.out, sizeof run.out, "%s/run", dir);
    snprintf(run.stage, sizeof run.stage, "%s/stage", dir);
    run.capture[0].pid = sim.pid;
    begin_thread(0);
    configure();
    load_process();
    choose_faults();
}

/* ---- reading what is left --------------------------------------------------------------------- */

static void note_problem(void *ctx, const char *file, struct ms_err *err)
{
    (void)file;
    if (!run.killed)
        wrong("%s", err->msg);
    ++*(uint32_t *)ctx;
}

struct texts {
    const char *text[EVENTS + 64];
    uint32_t n;
};

static void index_texts(struct texts *t, const struct mstx_proc *p, const struct mstx_problems *to)
{
    struct mstx_entry e;
    uint64_t at = 0;
    t->n = 0;
    while (p->has_strings && mstx__entry_next(&p->strings, &at, &e, to)) {
        if (e.head.id != t->n + 1)
            wrong("text %u follows text %u", e.head.id, t->n);
        if (t->n + 1 < EVENTS + 64)
            t->text[++t->n] = e.text.p;
    }
}

static struct event *event_of(const char *text)
{
    unsigned t, serial;
    if (sscanf(text, "t%u.%u", &t, &serial) != 2 || t >= THREADS || serial >= run.thread[t].made)
        return NULL;
    return &run.event[run.place[t][serial] - 1];
}

/* Where the reader is: the thread whose records these are, and the last mark of each thread. */
struct place {
    uint32_t ring, tid, last[THREADS];
};

static void see_mark(struct capture *c, const struct texts *t, const struct mstx_rec *r,
                     struct place *at)
{
    if (r->name == 0) {
        c->unnamed++;
        return;
    }
    struct event *e = r->name <= t->n ? event_of(t->text[r->name]) : NULL;
    if (e == NULL || &run.capture[e->capture] != c) {
        wrong("a record names text %u of %u, which nobody marked", r->name, t->n);
        return;
    }
    if ((e->state & EVENT_SEEN) != 0)
        wrong("mark t%u.%u is there twice", e->thread, e->serial);
    if (at->last[e->thread] > e->serial)
        wrong("mark t%u.%u stands behind a later one", e->thread, e->serial);
    if (at->tid != c->pid + e->thread && (rt.conf.flight_s <= 0 && c->dropped == 0))
        wrong("mark t%u.%u is shown as of thread %u", e->thread, e->serial, at->tid);
    at->last[e->thread] = e->serial;
    e->state |= EVENT_SEEN;
}

static void see_record(struct capture *c, const struct texts *t, const struct mstx_rec *r,
                       struct place *at)
{
    if (r->type == MSTX_REC_MARK)
        see_mark(c, t, r, at);
    else if (r->type == MSTX_REC_THREAD)
        at->tid = (uint32_t)r->id;
    else if (r->type == MSTX_REC_STATE && r->id == MSTX_WHY_EXIT)
        c->has_exit = true;
    else if (r->type == MSTX_REC_NONE)
        wrong("a record of ring %u is empty", at->ring);
}

static struct capture *capture_of(uint32_t pid)
{
    for (uint32_t k = 0; k < CAPTURES; k++) {
        if (run.capture[k].pid == pid)
            return &run.capture[k];
    }
    return NULL;
}

static void see_segment(const struct mstx_segment *s, const struct texts *t, struct place *at)
{
    struct capture *c = capture_of(s->head.pid);
    if (c == NULL) {
        wrong("a segment of process %u, which was not there", s->head.pid);
        return;
    }
    if (s->head.ring != at->ring)
        *at = (struct place){.ring = s->head.ring};
    at->tid = s->head.tid;
    c->dropped += s->head.dropped;
    if (!run.killed && c == &run.capture[run.captures] && (s->head.state & MSTX_SEG_CLOSED) == 0)
        wrong("%s is not closed", s->path);
    for (uint64_t k = 0; k < s->n; k++)
        see_record(c, t, &s->rec[k], at);
}

static void see_process(const struct mstx_proc *p, const struct mstx_problems *to)
{
    static struct texts texts;
    struct place at = {.ring = UINT32_MAX};
    index_texts(&texts, p, to);
    for (size_t i = 0; i < p->seg.n; i++)
        see_segment(&p->seg.p[i], &texts, &at);
}

/* Was it said that the window is shorter?  A process that is killed while one of its threads says so
 * has not got to the end of the sentence. */
static bool is_window_short(void)
{
    const uint32_t bits = 1u << RT_SAY_SPACE | 1u << RT_SAY_IO;
    return sim_has_said("flight recorder holds less") || sim_has_said("oldest records give way") ||
           (run.killed && (atomic_load(&rt.printed) & bits) != 0);
}

/* Has a flight recorder promised to hold this one? */
static bool is_held(const struct event *e)
{
    if (rt.conf.flight_s <= 0)
        return true;
    if (is_window_short())
        return false;
    return (double)(sim.steady_ns - e->at_ns) < rt.conf.flight_s * 1e9;
}

static void count_lost(uint32_t number, uint32_t events, const char *where)
{
    const struct capture *c = &run.capture[number];
    uint64_t lost = 0, told = c->dropped + c->unnamed;
    const struct event *first = NULL;
    for (uint32_t i = 0; i < events; i++) {
        const struct event *e = &run.event[i];
        if (e->capture != number || e->state != EVENT_DONE || !is_held(e))
            continue;
        first = first == NULL ? e : first;
        lost++;
    }
    if (c->unnamed != 0 && !sim_has_said("no room for new texts"))
        wrong("%llu marks have no name and nothing was said", (unsigned long long)c->unnamed);
    if (lost > told)
        wrong("%llu marks are lost in the %s, from t%u.%u on, and %llu are told",
              (unsigned long long)lost, where, first->thread, first->serial,
              (unsigned long long)told);
}

static void forget_seen(void)
{
    for (uint32_t i = 0; i < run.events; i++)
        run.event[i].state &= (uint8_t)~EVENT_SEEN;
    for (uint32_t k = 0; k < CAPTURES; k++)
        run.capture[k] = (struct capture){.pid = run.capture[k].pid};
}

/* Captures from the first one on, whose first `events` marks are to be there. */
static void verify(const char *dir, uint32_t first, uint32_t events)
{
    struct mstx_procs procs;
    struct ms_err err = {0};
    uint32_t problems = 0;
    const struct mstx_problems to = {note_problem, &problems};
    forget_seen();
    if (mstx__procs_find(&procs, dir, NULL, &err) != MS_OK) {
        if (events != 0 && (run.event[0].state & EVENT_DONE) != 0 && sim.said_bytes == 0)
            wrong("no capture and nothing was said");
        ms_err_clear(&err);
        return;
    }
    for (size_t i = 0; i < procs.list.n; i++) {
        if (mstx__proc_open(&procs.list.p[i], &to, &err) == MS_OK)
            see_process(&procs.list.p[i], &to);
        ms_err_clear(&err);
        mstx__proc_close(&procs.list.p[i]);
    }
    mstx__procs_free(&procs);
    for (uint32_t k = first; k <= run.captures && problems == 0; k++)
        count_lost(k, events, dir == run.out ? "capture" : "snapshot");
}

/* A process that ended by itself says so, and leaves nothing half made. */
static void verify_end(void)
{
    char pattern[400];
    glob_t found = {0};
    if (run.killed || run.wrong[0] != '\0')
        return;
    if (rt_tls != NULL && !run.capture[run.captures].has_exit && sim.faults_met == 0 &&
        sim.free_bytes > 0)
        wrong("no record says that the process ended");
    snprintf(pattern, sizeof pattern, "%s/*/*/*.tmp", run.out);
    if (run.captures == 0 && glob(pattern, 0, NULL, &found) == 0)
        wrong("%s was left", found.gl_pathv[0]);
    globfree(&found);
}

/* An import takes as long as a hundred schedules, so few schedules have one.  Of a flight recorder it
 * keeps the window alone, so how many marks it takes is not known here. */
static void import_run(void)
{
    uint64_t marks = 0;
    if (run.wrong[0] != '\0' || !sim_chance(40))
        return;
    const bool whole = rt.conf.flight_s <= 0;
    for (uint32_t i = 0; whole && i < run.events; i++)
        marks += (run.event[i].state & EVENT_SEEN) != 0;
    for (uint32_t k = 0; whole && k < CAPTURES; k++)
        marks += run.capture[k].unnamed;
    const char *said = sim_importing(run.out, marks);
    if (said != NULL)
        wrong("%s", said);
}

const char *sim_recording(uint64_t seed, const char *dir)
{
    begin_run(seed, dir);
    sim.on = true;
    if (setjmp(sim.death) == 0)
        live();
    sim.on = false;
    sim.faults = (struct sim_faults){0};
    if (run.wrong[0] == '\0')
        verify(run.out, 0, run.events);
    verify_end();
    import_run();
    forget_process();
    sim_remove(dir);
    return run.wrong[0] != '\0' ? run.wrong : NULL;
}

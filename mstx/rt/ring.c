/* SPDX-License-Identifier: MIT
 *
 * ring: the ring of a thread, a chain of segment files.
 *
 *     written by the thread              prepared by the helper
 *   ┌───────────────┬──────────┐        ┌──────────────────────┐
 *   │ records       │ free     │        │ next, pages present  │
 *   └───────────────┴──────────┘        └──────────────────────┘
 *        half ─┘ limit   cap ─┘
 *
 * limit stands at the half of a segment first: the slow path then asks the helper for the
 * next file, moves limit to the end, and the hot path needs one compare for both.  A full
 * segment goes back to the helper, which unmaps it.  A flight recorder keeps all its files
 * and takes the oldest again once that is older than the window.
 *
 * When the disk is full, a ring goes on in what it has: the segment before the current one is
 * still mapped, and both are written over in turn, so that the newest records are there as well
 * as the oldest.  What is written over counts as dropped.
 *
 * The ring of an ended thread serves the next new thread, so a thousand short threads are
 * not a thousand files.
 */
#include "mstx/rt/ring.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "mstx/rt/segment_file.h"
#include "mstx/rt/slot.h"
#include "mstx/rt/string_file.h"

enum {
    FIRST_BYTES = 64 << 10, /* a thread that marks little costs little */
    SLOW_FILES = 8,
    FLIGHT_BYTES = 1 << 20, /* reuse is by file: small ones keep the window sharp */
    REBIRTHS = 3,           /* rings a thread may open again while it ends */
    NAME_BYTES = 16,
};

__thread struct rt_ring *rt_tls;
/* Set while this thread opens a ring: what is called on the way may mark, and has none yet.  And how
 * often the ring was opened again after the thread's destructors ran. */
static __thread struct {
    bool opening;
    uint8_t rebirths;
} self __attribute__((tls_model("initial-exec")));

static struct {
    struct rt_ring *all[RT_RINGS]; /* all[0] is not used: ring 0 is the process */
    _Atomic uint32_t made;
    struct rt_ring *free;
    pthread_key_t key;
    bool have_key;
} rings;

/* ---- files of a ring ------------------------------------------------------------ */

/* The disk, or a quota that is not our own limit. */
static bool is_full(int why)
{
    return why == ENOSPC || (why == EDQUOT && rt.conf.max_bytes == 0);
}

static void say_no_file(int why)
{
    const char *kept = rt.conf.flight_s > 0 ? "the oldest records give way"
                       : is_full(why)       ? "the newest records take turns in the last segments"
                                            : "records are dropped";
    if (why == EDQUOT && rt.conf.max_bytes != 0)
        rt_say(RT_SAY_SPACE, MSTX_WHY_NO_SPACE, "the limit of %llu bytes is reached; %s",
               (unsigned long long)rt.conf.max_bytes, kept);
    else
        rt_say(is_full(why) ? RT_SAY_SPACE : RT_SAY_IO,
               is_full(why) ? MSTX_WHY_NO_SPACE : MSTX_WHY_IO,
               "cannot make a segment in %s: %s; %s", rt.path, strerror(why), kept);
}

/* The owner of next_state == RT_NEXT_WORK makes the next file; whose it will be is written when
 * it is taken into use. */
static void prepare(struct rt_ring *r)
{
    ms_assert(atomic_load(&r->next_state) == RT_NEXT_WORK);
    struct mstx_seg *seg = rt_segment_make(r->number, r->made + 1, 0, r->next_bytes);
    while (seg == NULL && is_full(errno) && r->next_bytes / 4 >= FIRST_BYTES) {
        r->next_bytes /= 4; /* what is left of the disk */
        seg = rt_segment_make(r->number, r->made + 1, 0, r->next_bytes);
    }
    int why = errno;
    if (seg != NULL) {
        r->made++;
        r->next = (struct rt_file){seg, r->made};
    }
    r->disk_full = seg == NULL && is_full(why);
    /* Said before the writer can lose anything by it: the process may be killed at any moment. */
    if (seg == NULL)
        say_no_file(why);
    atomic_store_explicit(&r->next_state, seg != NULL ? RT_NEXT_READY : RT_NEXT_FAILED,
                          memory_order_release);
}

static bool claim(struct rt_ring *r, int from)
{
    return atomic_compare_exchange_strong(&r->next_state, &from, RT_NEXT_WORK);
}

/* Write into seg from now on.  No signal comes meanwhile. */
static void install(struct rt_ring *r, struct mstx_seg *seg)
{
    ms_assert(r->busy <= 1 && seg->capacity > 0);
    atomic_fetch_add(&rt.records, r->pos); /* of the segment we leave; 0 at the first */
    seg->tid = r->tid;
    seg->first_ticks = r->began = rt_ticks();
    seg->tick_hz = atomic_load(&rt.tick_hz);
    r->seg = seg;
    r->rec = (struct mstx_rec *)(void *)((char *)seg + MSTX_SEG_HEADER);
    r->cap = (uint32_t)seg->capacity;
    __atomic_store_n(&r->pos, 0, __ATOMIC_RELAXED); /* the helper looks at it */
    if (r->lost != 0) {
        r->rec[r->pos++] = (struct mstx_rec){
            .ticks = seg->first_ticks, .id = r->lost_why, .type = MSTX_REC_DROP, .arg = r->lost};
        r->lost = 0;
    }
    __atomic_store_n(&seg->head, r->pos, __ATOMIC_RELEASE);
    __atomic_store_n(&seg->part, ++r->part, __ATOMIC_RELEASE);
    r->limit = r->cap / 2;
}

/* ---- full segments ------------------------------------------------------------- */

static void retire(struct rt_ring *r, struct rt_file f)
{
    ms_assert(f.map != NULL);
    __atomic_or_fetch(&f.map->state, MSTX_SEG_CLOSED, __ATOMIC_RELEASE);
    uint32_t full = atomic_load(&r->retired_full);
    for (uint32_t i = 0; i < RT_RETIRED; i++) {
        if ((full & 1u << i) != 0)
            continue;
        r->retired[i] = f;
        atomic_fetch_or_explicit(&r->retired_full, 1u << i, memory_order_release);
        return;
    }
    if (rt_is_running()) /* at the end of the process others may still look at it */
        munmap(f.map, rt_file_bytes(f.map));
}

static void unmap_retired(struct rt_ring *r)
{
    uint32_t full = atomic_load_explicit(&r->retired_full, memory_order_acquire);
    for (uint32_t i = 0; i < RT_RETIRED; i++) {
        if ((full & 1u << i) == 0)
            continue;
        munmap(r->retired[i].map, rt_file_bytes(r->retired[i].map));
        atomic_fetch_and_explicit(&r->retired_full, ~(1u << i), memory_order_release);
    }
}

/* ---- flight recorder ------------------------------------------------------------- */

static uint32_t after(const struct rt_ring *r, uint32_t i)
{
    ms_assert(i < r->nfiles);
    return i + 1 == r->nfiles ? 0 : i + 1;
}

/* Is the oldest file out of the window?  Its last record is older than the first of the file
 * that follows it. */
static bool oldest_is_out(const struct rt_ring *r, uint64_t now)
{
    uint64_t hz = atomic_load(&rt.tick_hz);
    if (r->nfiles < 2 || hz == 0)
        return false;
    const struct mstx_seg *second = r->files[after(r, after(r, r->file_at))].map;
    double window = rt.conf.flight_s * (double)hz;
    return (double)(now - second->first_ticks) > window;
}

static void reuse_oldest(struct rt_ring *r)
{
    ms_assert(r->nfiles > 0);
    r->file_at = after(r, r->file_at);
    struct mstx_seg *seg = r->files[r->file_at].map;
    __atomic_store_n(&seg->part, 0, __ATOMIC_SEQ_CST);
    atomic_thread_fence(memory_order_seq_cst);
    install(r, seg);
}

/* The new file comes behind the current one, where the oldest was next in turn. */
static void insert_file(struct rt_ring *r, struct rt_file f)
{
    ms_assert(r->nfiles < RT_FILES && f.map != NULL);
    uint32_t at = r->nfiles == 0 ? 0 : r->file_at + 1;
    memmove(r->files + at + 1, r->files + at, (r->nfiles - at) * sizeof r->files[0]);
    r->files[at] = f;
    r->nfiles++;
    r->file_at = at;
}

static void no_signals(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

/* ---- the slow path ---------------------------------------------------------------- */

static void drop_from(struct rt_ring *r, struct mstx_seg *seg, uint64_t n, enum mstx_why why)
{
    r->lost += n;
    r->lost_why = why;
    seg->dropped += n;
    atomic_fetch_add_explicit(&rt.dropped, n, memory_order_relaxed);
}

static bool drop(struct rt_ring *r, uint32_t n, enum mstx_why why)
{
    drop_from(r, r->seg, n, why);
    return false;
}

/* What the file that is half full would take in half a second; all there is while nobody knows how
 * long a tick is. */
static double half_a_second_of(const struct rt_ring *r, uint64_t now)
{
    const uint64_t hz = atomic_load(&rt.tick_hz);
    const double since = (double)(now - r->seg->first_ticks) / (double)(hz != 0 ? hz : 1);
    return hz != 0 && since > 0 ? (double)rt_file_bytes(r->seg) / 4 / since : (double)UINT32_MAX;
}

/* Files grow until one holds half a second: a file costs more than its pages, and pages that nobody
 * fills cost as much as others.  A ring that fills slowly gets a larger one once in a while only;
 * the window of a flight recorder must fit. */
static void choose_size(struct rt_ring *r, uint64_t now)
{
    ms_assert(r->seg != NULL);
    const bool flight = rt.conf.flight_s > 0;
    uint32_t most = rt.conf.segment_bytes;
    if (flight && most > FLIGHT_BYTES)
        most = FLIGHT_BYTES;
    const bool in_any_case = flight || r->made % SLOW_FILES == 0;
    const double wanted = in_any_case ? (double)UINT32_MAX : half_a_second_of(r, now);
    const int doublings = in_any_case ? 2 : 4;
    for (int i = 0; i < doublings && r->next_bytes < wanted && r->next_bytes < most; i++)
        r->next_bytes = r->next_bytes > most / 2 ? most : r->next_bytes * 2;
}

static void ask_helper(struct rt_ring *r)
{
    int none = RT_NEXT_NONE;
    bool flight = rt.conf.flight_s > 0;
    uint64_t now = rt_ticks();
    if (flight && (r->nfiles == RT_FILES || oldest_is_out(r, now)))
        return;
    if (atomic_load(&r->next_state) == RT_NEXT_NONE)
        choose_size(r, now);
    if (atomic_compare_exchange_strong(&r->next_state, &none, RT_NEXT_WANTED))
        rt_bell_ring();
}

/* Make the file here unless the helper is at it; then wait for it, a second at the most. */
static void wait_for_next(struct rt_ring *r)
{
    const struct timespec pause = {.tv_nsec = 20000};
    if (claim(r, RT_NEXT_WANTED) || claim(r, RT_NEXT_NONE)) {
        prepare(r);
        return;
    }
    for (int i = 0; i < 50000; i++) {
        if (atomic_load_explicit(&r->next_state, memory_order_acquire) != RT_NEXT_WORK)
            return;
        nanosleep(&pause, NULL);
    }
}

/* Without a flight recorder two files are kept: the current one and the one before. */
static bool take_next(struct rt_ring *r)
{
    if (atomic_load_explicit(&r->next_state, memory_order_acquire) != RT_NEXT_READY)
        return false;
    struct rt_file oldest = {0}, f = r->next;
    if (rt.conf.flight_s > 0 || r->nfiles < 2)
        insert_file(r, f);
    else {
        r->file_at = after(r, r->file_at);
        oldest = r->files[r->file_at];
        r->files[r->file_at] = f;
    }
    install(r, f.map);
    atomic_store_explicit(&r->next_state, RT_NEXT_NONE, memory_order_release);
    if (oldest.map != NULL)
        retire(r, oldest);
    return true;
}

/* The disk is full: write over the segment before this one, or over this one if it is the only
 * one, and count what was in it. */
static void write_over(struct rt_ring *r)
{
    struct mstx_seg *seg = r->files[after(r, r->file_at)].map;
    const struct mstx_rec *first =
        (const struct mstx_rec *)(const void *)((const char *)seg + MSTX_SEG_HEADER);
    uint64_t lost = seg->head;
    if (lost > 0 && first->type == MSTX_REC_DROP)
        lost--; /* ours, and what it tells of is counted */
    /* To readers: files are reused from here on, parts have gaps. */
    __atomic_or_fetch(&seg->state, MSTX_SEG_FLIGHT, __ATOMIC_RELEASE);
    __atomic_or_fetch(&r->seg->state, MSTX_SEG_FLIGHT, __ATOMIC_RELEASE);
    drop_from(r, seg, lost, MSTX_WHY_NO_SPACE);
    atomic_fetch_sub(&rt.records, lost);
    reuse_oldest(r);
}

/* The oldest file is taken although the window needs it.  A file that could not be made was told of. */
static void say_short_window(const struct rt_ring *r)
{
    if (r->nfiles == RT_FILES)
        rt_say(RT_SAY_SPACE, MSTX_WHY_NO_SPACE,
               "more marks than %d files hold: the flight recorder holds less than %.3g s",
               RT_FILES, rt.conf.flight_s);
    else if (atomic_load(&r->next_state) != RT_NEXT_FAILED)
        rt_say(RT_SAY_SPACE, MSTX_WHY_NOT_READY,
               "a segment was not ready in time: the flight recorder holds less than %.3g s",
               rt.conf.flight_s);
}

static bool next_segment(struct rt_ring *r, uint32_t n)
{
    bool flight = rt.conf.flight_s > 0;
    if (flight && oldest_is_out(r, rt_ticks())) {
        reuse_oldest(r);
        return true;
    }
    if (take_next(r))
        return true;
    if (rt.conf.policy == RT_BLOCK && r->nfiles < RT_FILES) {
        wait_for_next(r);
        if (take_next(r))
            return true;
    }
    if (flight) {
        say_short_window(r);
        reuse_oldest(r);
        return true;
    }
    if (r->disk_full) {
        write_over(r);
        return true;
    }
    bool failed = atomic_load(&r->next_state) == RT_NEXT_FAILED;
    return drop(r, n, failed ? MSTX_WHY_NO_SPACE : MSTX_WHY_NOT_READY);
}

static void half_way(struct rt_ring *r)
{
    if (r->busy > 1)
        return; /* the call that a handler interrupted, or the next one, asks */
    r->limit = r->cap;
    ask_helper(r);
}

/* Signals wait until the segment has changed: a handler that marks would find the ring between two. */
static bool change_segment(struct rt_ring *r, uint32_t n)
{
    ms_assert(r->busy > 0 && r->seg != NULL);
    sigset_t before;
    if (r->busy > 1)
        return drop(r, n, MSTX_WHY_SIGNAL);
    no_signals(&before);
    bool ok = next_segment(r, n);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

RT_COLD struct mstx_rec *rt_ring_more(struct rt_ring *r, uint32_t at, uint32_t n)
{
    ms_assert(n > 0 && r->busy > 0);
    if (at + n <= r->cap) {
        half_way(r);
        return r->rec + at;
    }
    rt_bump(&r->pos, 0u - n);
    if (change_segment(r, n))
        return r->rec + rt_bump(&r->pos, n);
    rt_bump(&r->busy, ~0u);
    return NULL;
}

/* ---- threads ----------------------------------------------------------------------- */

/* The name a thread was given; the program's own name is no news. */
static void define_name(const struct rt_ring *r)
{
    static char own[NAME_BYTES + 1]; /* of the main thread, read by whoever comes first */
    char name[NAME_BYTES + 1] = "";
    if (prctl(PR_GET_NAME, name) != 0 || name[0] == '\0')
        return;
    if (r->tid == rt.pid)
        memcpy(own, name, sizeof own);
    else if (strcmp(name, own) != 0)
        rt_text_define(MSTX_THREAD, 0, r->tid, name, strlen(name));
}

static struct rt_ring *map_ring(void)
{
    void *p = mmap(NULL, sizeof(struct rt_ring), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* A ring that a thread gave back, or a new one; NULL: too many, or no memory. */
static struct rt_ring *take_ring(void)
{
    rt_lock(&rt.ring_lock);
    struct rt_ring *r = rings.free;
    uint32_t made = atomic_load(&rings.made);
    if (r != NULL)
        rings.free = r->free_next;
    else if (made + 1 < RT_RINGS) {
        r = map_ring();
        if (r != NULL) {
            r->number = made + 1;
            rings.all[made + 1] = r;
            atomic_store_explicit(&rings.made, made + 1, memory_order_release);
        }
    }
    if (r != NULL)
        r->in_use = true;
    rt_unlock(&rt.ring_lock);
    return r;
}

static void give_back(struct rt_ring *r)
{
    ms_assert(r->in_use);
    rt_lock(&rt.ring_lock);
    r->in_use = false;
    r->free_next = rings.free;
    rings.free = r;
    rt_unlock(&rt.ring_lock);
}

/* At the end of a thread. */
static void thread_ends(void *ring)
{
    struct rt_ring *r = ring;
    rt_tls = NULL;
    self.rebirths++;
    define_name(r);
    give_back(r);
}

static void say_thread(struct rt_ring *r)
{
    struct mstx_rec *rec = rt_reserve(r, 1);
    if (rec == NULL)
        return;
    *rec = (struct mstx_rec){.ticks = rt_ticks(), .id = r->tid, .type = MSTX_REC_THREAD};
    rt_publish(r);
}

/* First segment of a new ring, made here: the helper knows nothing of it yet. */
static bool first_segment(struct rt_ring *r)
{
    ms_assert(r->nfiles == 0 && r->seg == NULL);
    r->next_bytes = rt.conf.segment_bytes < FIRST_BYTES ? rt.conf.segment_bytes : FIRST_BYTES;
    atomic_store(&r->next_state, RT_NEXT_WORK);
    prepare(r);
    bool ok = take_next(r);
    if (!ok)
        atomic_store(&r->next_state, RT_NEXT_NONE);
    return ok;
}

static struct rt_ring *open_ring(void)
{
    struct rt_ring *r = take_ring();
    if (r == NULL)
        return NULL;
    r->tid = (uint32_t)gettid();
    r->epoch = rt.epoch;
    r->clock = rt_clock_kind;
    r->top = -1;
    r->busy = 0;
    bool is_new = r->seg == NULL;
    if (is_new && (!rt_slots_take(r) || !first_segment(r))) {
        give_back(r);
        return NULL;
    }
    if (!is_new)
        say_thread(r);
    define_name(r);
    return r;
}

/* Opens a ring with signals blocked: a handler that marks runs when there is a ring for it. */
static struct rt_ring *open_undisturbed(void)
{
    sigset_t before;
    no_signals(&before);
    self.opening = true;
    struct rt_ring *r = rt_start() && atomic_load(&rt.recording) != 0 ? open_ring() : NULL;
    if (r != NULL && pthread_setspecific(rings.key, r) == 0)
        rt_tls = r;
    self.opening = false;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

RT_COLD struct rt_ring *rt_ring_open(void)
{
    struct rt_ring *r = NULL;
    if (!self.opening && self.rebirths < REBIRTHS)
        r = open_undisturbed();
    if (r == NULL && rt_is_running() && atomic_load(&rt.recording) != 0) {
        atomic_fetch_add(&rt.lost_no_ring, 1);
        rt_say(RT_SAY_THREADS, MSTX_WHY_NO_THREAD, "a thread has no ring; its records are dropped");
    }
    return r;
}

/* ---- all rings ------------------------------------------------------------------------ */

void rt_ring_serve(void)
{
    uint32_t n = atomic_load_explicit(&rings.made, memory_order_acquire);
    for (uint32_t i = 1; i <= n; i++) {
        struct rt_ring *r = rings.all[i];
        if (claim(r, RT_NEXT_WANTED))
            prepare(r);
        if (atomic_load(&r->retired_full) != 0)
            unmap_retired(r);
    }
}

void rt_ring_retry(void)
{
    uint32_t n = atomic_load_explicit(&rings.made, memory_order_acquire);
    for (uint32_t i = 1; i <= n; i++) {
        int failed = RT_NEXT_FAILED;
        atomic_compare_exchange_strong(&rings.all[i]->next_state, &failed, RT_NEXT_WANTED);
    }
}

bool rt_ring_start(void)
{
    ms_assert(atomic_load(&rings.made) == 0);
    if (!rings.have_key)
        rings.have_key = pthread_key_create(&rings.key, thread_ends) == 0;
    return rings.have_key;
}

/* Removes the file that was prepared and never used: readers would see an empty segment. */
static void remove_next(struct rt_ring *r)
{
    char name[32];
    if (atomic_load(&r->next_state) != RT_NEXT_READY)
        return;
    snprintf(name, sizeof name, MSTX_SEG_NAME, r->number, r->next.number);
    unlinkat(rt_file_dir(), name, 0);
}

void rt_ring_close_all(void)
{
    uint32_t n = atomic_load_explicit(&rings.made, memory_order_acquire);
    for (uint32_t i = 1; i <= n; i++) {
        struct rt_ring *r = rings.all[i];
        if (r->seg == NULL)
            continue;
        remove_next(r);
        for (uint32_t k = 0; k < r->nfiles; k++)
            rt_segment_close(r->files[k].map, r->number, r->files[k].number);
    }
}

static void unmap_ring(struct rt_ring *r)
{
    for (uint32_t k = 0; k < r->nfiles; k++)
        munmap(r->files[k].map, rt_file_bytes(r->files[k].map));
    if (atomic_load(&r->next_state) == RT_NEXT_READY)
        munmap(r->next.map, rt_file_bytes(r->next.map));
    unmap_retired(r);
    munmap(r, sizeof *r);
}

void rt_ring_forget(void)
{
    uint32_t n = atomic_load(&rings.made);
    for (uint32_t i = 1; i <= n; i++) {
        unmap_ring(rings.all[i]);
        rings.all[i] = NULL;
    }
    rings.free = NULL;
    atomic_store(&rings.made, 0);
    rt_tls = NULL;
    if (rings.have_key)
        pthread_setspecific(rings.key, NULL);
    memset(&self, 0, sizeof self);
}

/* Counts lag a little for rings that are being written. */
void rt_ring_totals(struct rt_totals *t)
{
    uint32_t n = atomic_load_explicit(&rings.made, memory_order_acquire);
    *t = (struct rt_totals){.records = atomic_load(&rt.records),
                            .dropped = atomic_load(&rt.dropped) + atomic_load(&rt.lost_no_ring),
                            .bytes = atomic_load(&rt.bytes),
                            .rings = n,
                            .segments = atomic_load(&rt.segments),
                            .open_ranges = rt_slots_open()};
    for (uint32_t i = 1; i <= n; i++) {
        t->records += __atomic_load_n(&rings.all[i]->pos, __ATOMIC_RELAXED);
    }
}

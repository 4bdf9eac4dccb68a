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
 * limit is at first the middle of a segment: there the slow path requests the next file from the
 * helper and moves limit to the end, so that the hot path needs one compare for both.  The helper
 * unmaps a full segment.  A flight recorder keeps all its files and reuses the oldest once that is
 * older than the window.
 *
 * When the disk is full, a ring continues in the files that it has: the segment before the current
 * one is still mapped, and both are overwritten in turn, so that the newest records are kept as
 * well as the oldest.  Overwritten records count as dropped.
 *
 * The ring of an ended thread is reused by the next new thread, so a thousand short threads do not
 * make a thousand files.
 */
#include "mstx/rt/ring.h"

#include "mstx/rt/thread_use.h"

#include "probe/base/compat.h"

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
    FIRST_BYTES = 64 << 10, /* first file: small, for threads with few marks */
    SLOW_FILES = 8,
    FLIGHT_BYTES = 1 << 20, /* files are reused whole: small files keep the window precise */
    REBIRTHS = 3,           /* rings a thread may open again while it ends */
    NAME_BYTES = 16,
};

__thread struct rt_ring *rt_tls;
/* opening is set while this thread opens a ring: a function called meanwhile may mark, and there is
 * no ring yet. rebirths counts how often the ring was opened again after the thread's destructors
 * ran. */
static __thread struct {
    bool opening;
    uint8_t rebirths;
} self __attribute__((tls_model("initial-exec")));

static struct {
    struct rt_ring *all[RT_RINGS]; /* all[0] is unused: ring 0 belongs to the process */
    _Atomic uint32_t made;
    struct rt_ring *free;
    pthread_key_t key;
    bool have_key;
} rings;

/* ---- files of a ring ------------------------------------------------------------ */

/* Tells whether the disk is full, or a quota other than our own limit is used up. */
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

/* Makes the next file. The caller has claimed next_state (RT_NEXT_WORK); the thread id is written
 * into the header when the file is taken into use. */
static void prepare(struct rt_ring *r)
{
    ms_assert(atomic_load(&r->next_state) == RT_NEXT_WORK);
    struct mstx_seg *seg = rt_segment_make(r->number, r->made + 1, 0, r->next_bytes);
    while (seg == NULL && is_full(errno) && r->next_bytes / 4 >= FIRST_BYTES) {
        r->next_bytes /= 4; /* fit into the space that is left */
        seg = rt_segment_make(r->number, r->made + 1, 0, r->next_bytes);
    }
    int why = errno;
    if (seg != NULL) {
        r->made++;
        r->next = (struct rt_file){seg, r->made};
    }
    r->disk_full = seg == NULL && is_full(why);
    /* Reported before the writer can lose a record: the process may be killed at any moment. */
    if (seg == NULL)
        say_no_file(why);
    atomic_store_explicit(&r->next_state, seg != NULL ? RT_NEXT_READY : RT_NEXT_FAILED,
                          memory_order_release);
}

static bool claim_slot(struct rt_ring *r, int from)
{
    return atomic_compare_exchange_strong(&r->next_state, &from, RT_NEXT_WORK);
}

/* Makes seg the current segment. The caller has blocked signals. */
static void install(struct rt_ring *r, struct mstx_seg *seg)
{
    ms_assert(r->busy <= 1 && seg->capacity > 0);
    atomic_fetch_add(&rt.records, r->pos); /* of the previous segment; 0 at the first */
    seg->tid = r->tid;
    seg->first_ticks = r->began = rt_ticks();
    seg->tick_hz = atomic_load(&rt.tick_hz);
    r->seg = seg;
    r->rec = (struct mstx_rec *)(void *)((char *)seg + MSTX_SEG_HEADER);
    r->cap = (uint32_t)seg->capacity;
    __atomic_store_n(&r->pos, 0, __ATOMIC_RELAXED); /* read by the helper */
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
    if (rt_is_running()) /* at exit other threads may still use the mapping */
        munmap(f.map, rt_file_bytes(f.map));
}

static void unmap_retired(struct rt_ring *r)
{
    uint32_t full = atomic_load_explicit(&r->retired_full, memory_order_acquire);
    for (uint32_t i = 0; i < RT_RETIRED; i++) {
        if ((full & 1u << i) == 0)
            continue;
        /* Out of the list first: a child forked in between must not touch what is unmapped. */
        const struct rt_file f = r->retired[i];
        atomic_fetch_and_explicit(&r->retired_full, ~(1u << i), memory_order_release);
        munmap(f.map, rt_file_bytes(f.map));
    }
}

/* ---- flight recorder ------------------------------------------------------------- */

static uint32_t slot_after(const struct rt_ring *r, uint32_t i)
{
    ms_assert(i < r->nfiles);
    return i + 1 == r->nfiles ? 0 : i + 1;
}

/* Tells whether the oldest file is out of the window: its last record is older than the first
 * record of the file that follows. */
static bool oldest_is_out(const struct rt_ring *r, uint64_t now)
{
    uint64_t hz = atomic_load(&rt.tick_hz);
    if (r->nfiles < 2 || hz == 0)
        return false;
    const struct mstx_seg *second = r->files[slot_after(r, slot_after(r, r->file_at))].map;
    double window = rt.conf.flight_s * (double)hz;
    return (double)(now - second->first_ticks) > window;
}

static void reuse_oldest(struct rt_ring *r)
{
    ms_assert(r->nfiles > 0);
    r->file_at = slot_after(r, r->file_at);
    struct mstx_seg *seg = r->files[r->file_at].map;
    __atomic_store_n(&seg->part, 0, __ATOMIC_SEQ_CST);
    atomic_thread_fence(memory_order_seq_cst);
    install(r, seg);
}

/* Inserts the new file after the current one, before the oldest. */
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

static bool drop_records(struct rt_ring *r, uint32_t n, enum mstx_why why)
{
    drop_from(r, r->seg, n, why);
    return false;
}

/* Bytes that the ring writes in half a second, at the rate of the current half-full segment;
 * UINT32_MAX while the tick rate is unknown. */
static double half_a_second_of(const struct rt_ring *r, uint64_t now)
{
    const uint64_t hz = atomic_load(&rt.tick_hz);
    const double since = (double)(now - r->seg->first_ticks) / (double)(hz != 0 ? hz : 1);
    return hz != 0 && since > 0 ? (double)rt_file_bytes(r->seg) / 4 / since : (double)UINT32_MAX;
}

/* Doubles the size of the next file until one holds half a second of records: a file has a cost of
 * its own, and pages that are never filled cost as much as others. A ring that fills slowly gets a
 * larger file only once in SLOW_FILES files; the files of a flight recorder always grow, because
 * the window must fit. */
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

/* Waits for the helper, which is making the next file, at most a second. */
static void wait_for_helper(struct rt_ring *r)
{
    const struct timespec pause = {.tv_nsec = 20000};
    for (int i = 0; i < 50000; i++) {
        if (atomic_load_explicit(&r->next_state, memory_order_acquire) != RT_NEXT_WORK)
            return;
        nanosleep(&pause, NULL);
    }
}

/* Makes the next file in this thread, unless the helper is making it. */
static void wait_for_next(struct rt_ring *r)
{
    const int saved = errno; /* a mark must not change it, also where no file can be made */
    if (claim_slot(r, RT_NEXT_WANTED) || claim_slot(r, RT_NEXT_NONE))
        prepare(r);
    else
        wait_for_helper(r);
    errno = saved;
}

/* Takes the prepared file into use. Without a flight recorder two files are kept mapped: the
 * current one and the previous one. */
static bool take_next(struct rt_ring *r)
{
    if (atomic_load_explicit(&r->next_state, memory_order_acquire) != RT_NEXT_READY)
        return false;
    struct rt_file oldest = {0}, f = r->next;
    if (rt.conf.flight_s > 0 || r->nfiles < 2)
        insert_file(r, f);
    else {
        r->file_at = slot_after(r, r->file_at);
        oldest = r->files[r->file_at];
        r->files[r->file_at] = f;
    }
    install(r, f.map);
    atomic_store_explicit(&r->next_state, RT_NEXT_NONE, memory_order_release);
    if (oldest.map != NULL)
        retire(r, oldest);
    return true;
}

/* Overwrites the previous segment, or this one if it is the only one, because the disk is full.
 * Counts the records that are lost. */
static void write_over(struct rt_ring *r)
{
    struct mstx_seg *seg = r->files[slot_after(r, r->file_at)].map;
    const struct mstx_rec *first =
        (const struct mstx_rec *)(const void *)((const char *)seg + MSTX_SEG_HEADER);
    uint64_t lost = seg->head;
    if (lost > 0 && first->type == MSTX_REC_DROP)
        lost--; /* our DROP record; the records that it stands for are counted already */
    /* Tells readers that files are reused from here on and part numbers have gaps. */
    __atomic_or_fetch(&seg->state, MSTX_SEG_FLIGHT, __ATOMIC_RELEASE);
    __atomic_or_fetch(&r->seg->state, MSTX_SEG_FLIGHT, __ATOMIC_RELEASE);
    drop_from(r, seg, lost, MSTX_WHY_NO_SPACE);
    atomic_fetch_sub(&rt.records, lost);
    reuse_oldest(r);
}

/* Reports that the oldest file is reused although the window needs it. A file that could not be
 * made was reported before. */
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
    return drop_records(r, n, failed ? MSTX_WHY_NO_SPACE : MSTX_WHY_NOT_READY);
}

static void half_way(struct rt_ring *r)
{
    if (r->busy > 1)
        return; /* the interrupted call, or the next one, requests the file */
    r->limit = r->cap;
    ask_helper(r);
}

/* Changes to another segment with signals blocked: a handler that marks would find the ring in an
 * inconsistent state. */
static bool change_segment(struct rt_ring *r, uint32_t n)
{
    ms_assert(r->busy > 0 && r->seg != NULL);
    sigset_t before;
    if (r->busy > 1)
        return drop_records(r, n, MSTX_WHY_SIGNAL);
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

/* Records the name of a thread, unless it is the program's own name. */
static void define_name(const struct rt_ring *r)
{
    static char own[NAME_BYTES + 1]; /* name of the main thread, set when its ring is opened */
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

/* Takes a ring that an ended thread gave back, or maps a new one. NULL: too many, or no memory. */
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

/* Destructor of the thread-specific key: runs when the thread ends. */
static void thread_ends(void *ring)
{
    struct rt_ring *r = ring;
    rt_tls = NULL;
    rt_use_end();
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

/* Makes the first segment of a new ring in this thread, since the helper does not serve the ring
 * yet. */
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
    r->tid = (uint32_t)ms_gettid();
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

/* Opens a ring with signals blocked, so that a handler that marks runs only once the ring
 * exists. */
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
        if (claim_slot(r, RT_NEXT_WANTED))
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

/* Removes the file that was prepared but never used, which readers would see as an empty
 * segment. */
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

/* Tells whether one of the first n files of the ring has this mapping. */
static bool is_listed(const struct rt_ring *r, uint32_t n, const struct mstx_seg *map)
{
    for (uint32_t i = 0; i < n; i++) {
        if (r->files[i].map == map)
            return true;
    }
    return false;
}

/* In a forked child. A thread of the parent may have been changing the list at that moment, so a file
 * may be in it twice. */
static void unmap_ring(struct rt_ring *r)
{
    if (atomic_load(&r->next_state) == RT_NEXT_READY && !is_listed(r, r->nfiles, r->next.map))
        munmap(r->next.map, rt_file_bytes(r->next.map));
    for (uint32_t k = 0; k < r->nfiles; k++) {
        if (is_listed(r, k, r->files[k].map))
            continue;
        munmap(r->files[k].map, rt_file_bytes(r->files[k].map));
    }
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
    rt_use_end();
    if (rings.have_key)
        pthread_setspecific(rings.key, NULL);
    memset(&self, 0, sizeof self);
}

/* Totals of all rings. Counts of rings that are being written may lag. */
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

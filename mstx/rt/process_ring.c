/* SPDX-License-Identifier: MIT
 *
 * process_ring: see the header.
 */
#include "mstx/rt/process_ring.h"

#include <sys/mman.h>

#include "mstx/rt/segment_file.h"
#include "mstx/rt/ticks.h"

enum { BYTES = 16 << 10 };

static struct { /* under rt.process_lock */
    struct mstx_seg *seg;
    uint64_t part;
} ring;

/* Caller holds the lock. */
static bool next_segment(void)
{
    ms_assert(ring.seg == NULL || ring.seg->head == ring.seg->capacity);
    struct mstx_seg *seg = rt_segment_make(0, (uint32_t)ring.part + 1, rt.pid, BYTES);
    if (seg == NULL)
        return false;
    struct mstx_seg *old = ring.seg;
    ring.seg = seg;
    seg->part = ++ring.part;
    if (old != NULL) {
        atomic_fetch_add(&rt.records, old->head);
        __atomic_or_fetch(&old->state, MSTX_SEG_CLOSED, __ATOMIC_RELEASE);
        munmap(old, rt_file_bytes(old));
    }
    return true;
}

bool rt_process_start(void)
{
    ms_assert(ring.seg == NULL);
    return next_segment();
}

/* Caller holds the lock. */
static void write_record(const struct mstx_rec *rec)
{
    ms_assert(ring.seg->head < ring.seg->capacity);
    struct mstx_rec *to = (struct mstx_rec *)(void *)((char *)ring.seg + MSTX_SEG_HEADER);
    to[ring.seg->head] = *rec;
    __atomic_store_n(&ring.seg->head, ring.seg->head + 1, __ATOMIC_RELEASE);
}

void rt_process_write(const struct mstx_rec *rec)
{
    rt_lock(&rt.process_lock);
    if (ring.seg != NULL && (ring.seg->head < ring.seg->capacity || next_segment()))
        write_record(rec);
    rt_unlock(&rt.process_lock);
}

void rt_process_close(void)
{
    rt_lock(&rt.process_lock);
    if (ring.seg != NULL)
        rt_segment_close(ring.seg, 0, (uint32_t)ring.part);
    rt_unlock(&rt.process_lock);
}

void rt_process_forget(void)
{
    if (ring.seg != NULL)
        munmap(ring.seg, rt_file_bytes(ring.seg));
    ring.seg = NULL;
    ring.part = 0;
}

/* ---- facts ---------------------------------------------------------------------------- */

void rt_state_write(enum mstx_why why, bool on)
{
    const struct mstx_rec rec = {
        .ticks = rt_ticks(), .id = why, .type = MSTX_REC_STATE, .arg = on ? 1 : 0};
    rt_process_write(&rec);
}

/* Writes the newest clock reading into the headers of future segments and of this ring. */
static void date_headers(const struct mstx_calib *c)
{
    rt_lock(&rt.proto_lock);
    rt.proto.last_calib = *c;
    rt.proto.tick_hz = atomic_load(&rt.tick_hz);
    rt_unlock(&rt.proto_lock);
    rt_lock(&rt.process_lock);
    if (ring.seg != NULL) {
        ring.seg->last_calib = *c;
        ring.seg->tick_hz = atomic_load(&rt.tick_hz);
        ring.seg->heartbeat++;
    }
    rt_unlock(&rt.process_lock);
}

void rt_clock_tick(void)
{
    struct mstx_calib c;
    rt_clock_calibrate(&c);
    const struct mstx_rec rec = {.ticks = c.ticks,
                                 .id = (uint64_t)c.monotonic_ns,
                                 .name = c.width > UINT32_MAX ? UINT32_MAX : (uint32_t)c.width,
                                 .type = MSTX_REC_CALIB,
                                 .arg = (uint64_t)c.realtime_ns};
    rt_process_write(&rec);
    const struct mstx_calib *f = &rt.proto.first_calib;
    const int64_t ns = c.monotonic_ns - f->monotonic_ns;
    if (ns > 100000000) /* a tenth of a second gives the rate to a few ppm */
        atomic_store(&rt.tick_hz, (uint64_t)((double)(c.ticks - f->ticks) / (double)ns * 1e9));
    date_headers(&c);
}

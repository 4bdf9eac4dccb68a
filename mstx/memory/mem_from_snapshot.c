/* SPDX-License-Identifier: MIT
 *
 * mem_from_snapshot: a memory snapshot of PyTorch's caching allocator
 * (torch.cuda.memory._dump_snapshot), a pickle of plain values.
 *
 *     {"segments": [{"device", "address", "total_size", "blocks": [{"address", "size", "state",
 *                    "frames"}, ..]}, ..],
 *      "device_traces": [[{"action", "addr", "size", "frames", "time_us"}, ..], ..]}
 *
 * The trace of a device is the end of its history, as long as the recorder kept it. What lived
 * before follows from the segments, which show the state at the end, and from frees of blocks that
 * the trace did not allocate.
 */
#include "mstx/memory/mem_kinds.h"
#include "mstx/memory/mem_read.h"

#include "probe/base/assert.h"
#include "probe/base/io.h"
#include "probe/base/pickle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const size_t FILE_MAX = (size_t)64 << 30, VALUES_MAX = (size_t)16 << 30;
enum { FRAMES_MAX = 1024 };

static uint32_t refuse_name(struct ms_str module, struct ms_str name)
{
    (void)module, (void)name;
    return MS_PICKLE_REFUSED;
}

static const struct ms_pickle_rules rules = {.of = "a memory snapshot",
                                             .ops = {MS_PICKLE_OPS, sizeof MS_PICKLE_OPS - 1},
                                             .protocol = 5,
                                             .name_number = refuse_name,
                                             .open = UINT32_MAX,
                                             .remembered = 1 << 30,
                                             .objects = UINT32_MAX,
                                             .items = UINT32_MAX,
                                             .digits = UINT32_MAX};

struct reader {
    struct mstx_mem_log *log;
    struct ms_arena *values;
    struct ms_map stacks;  /* addresses of lists of frames */
    MS_VEC(uint32_t) site; /* by list */
    bool has_frames;       /* some event of the snapshot has frames */
    int32_t rank;
};

/* The fields of one event, found in one pass over its dictionary. */
struct entry {
    struct ms_str action;
    uint64_t address, size;
    int64_t at_ns, device_free;
    const struct ms_plain *frames;
    uint8_t kind; /* enum mstx_mem_kind */
};

/* The categories that torch.cuda._memory_viz writes when it makes a snapshot of a profile. */
static uint8_t kind_of(struct ms_str category)
{
    static const struct {
        const char *text;
        uint8_t kind;
    } known[] = {{"parameter", MSTX_MEM_PARAMETER}, {"optimizer_state", MSTX_MEM_OPTIMIZER},
                 {"gradient", MSTX_MEM_GRADIENT},   {"activation", MSTX_MEM_ACTIVATION},
                 {"temporary", MSTX_MEM_TEMPORARY}, {"autograd_detail", MSTX_MEM_TEMPORARY},
                 {"input", MSTX_MEM_INPUT}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (ms_str_is(category, known[i].text))
            return known[i].kind;
    }
    return MSTX_MEM_UNKNOWN;
}

static uint64_t u64_of(const struct ms_plain *v)
{
    const int64_t i = ms_plain_int(v, 0);
    return i > 0 ? (uint64_t)i : 0;
}

static struct entry entry_of(const struct ms_plain *v)
{
    struct entry e = {.action = MS_STR(""), .at_ns = MSTX_MEM_NO_TIME, .device_free = -1};
    for (uint32_t i = 0; v->kind == MS_PLAIN_DICT && i + 1 < v->n; i += 2) {
        const struct ms_str key = ms_plain_text(v->item[i]);
        const struct ms_plain *value = v->item[i + 1];
        if (ms_str_is(key, "action"))
            e.action = ms_plain_text(value);
        else if (ms_str_is(key, "addr"))
            e.address = u64_of(value);
        else if (ms_str_is(key, "size"))
            e.size = u64_of(value);
        else if (ms_str_is(key, "frames"))
            e.frames = value;
        else if (ms_str_is(key, "device_free"))
            e.device_free = ms_plain_int(value, -1);
        else if (ms_str_is(key, "category"))
            e.kind = kind_of(ms_plain_text(value));
        else if (ms_str_is(key, "time_us")) {
            const int64_t us = ms_plain_int(value, INT64_MIN);
            e.at_ns = us > 0 && us < INT64_MAX / 1000 ? us * 1000 : MSTX_MEM_NO_TIME;
        }
    }
    return e;
}

/* ---- stacks -------------------------------------------------------------------------------- */

static enum ms_rc make_site(struct reader *r, const struct ms_plain *frames, uint32_t *number,
                            struct ms_err *err)
{
    struct mstx_mem_frame frame[FRAMES_MAX];
    struct mstx_mem_site site;
    size_t n = 0;
    for (uint32_t i = 0; i < ms_plain_len(frames) && n < FRAMES_MAX; i++) {
        const struct ms_plain *f = ms_plain_item(frames, i);
        const struct ms_str file = ms_plain_text(ms_plain_get(f, "filename"));
        const struct ms_str name = ms_plain_text(ms_plain_get(f, "name"));
        frame[n] = (struct mstx_mem_frame){file, name, ms_plain_int(ms_plain_get(f, "line"), 0)};
        if (ms_str_is(file, "none")) /* made of a profile */
            frame[n] = mstx__mem_frame_of_name(name);
        n++;
    }
    MS_TRY(mstx__mem_site_of_stack(r->log, frame, n, r->has_frames, &site, err));
    return mstx__mem_site(r->log, &site, number, err);
}

/* Finds the site of a list of frames. The pickle holds a list once however many events share it,
 * so its address is its identity. */
static enum ms_rc find_site(struct reader *r, const struct ms_plain *frames, uint32_t *number,
                            struct ms_err *err)
{
    const struct ms_str key = {(const char *)&frames, sizeof frames};
    bool added;
    const uint32_t at = ms_map_put_copy(&r->stacks, key, r->values, &added);
    uint32_t *slot = at != MS_MAP_NONE && added ? ms_vec_push(&r->site) : NULL;
    if (at == MS_MAP_NONE || (added && slot == NULL))
        return ms_no_memory(err);
    if (added)
        MS_TRY(make_site(r, frames, slot, err));
    *number = r->site.p[at];
    return MS_OK;
}

/* ---- what lived before ---------------------------------------------------------------------- */

/* Tells whether an address occurs for the first time. */
static enum ms_rc is_first(struct reader *r, struct ms_map *seen, uint64_t address, bool *first,
                           struct ms_err *err)
{
    const struct ms_str key = {(const char *)&address, sizeof address};
    return ms_map_put_copy(seen, key, r->values, first) != MS_MAP_NONE ? MS_OK : ms_no_memory(err);
}

/* Blocks that the trace frees before it allocates them lived before it. */
static enum ms_rc earlier_of_trace(struct reader *r, struct mstx_mem_space *s, struct ms_map *seen,
                                   const struct ms_plain *trace, struct ms_err *err)
{
    for (uint32_t i = 0; i < ms_plain_len(trace); i++) {
        const struct entry e = entry_of(ms_plain_item(trace, i));
        const bool is_free = ms_str_is(e.action, "free_completed");
        bool first;
        if (!is_free && !ms_str_is(e.action, "alloc"))
            continue;
        MS_TRY(is_first(r, seen, e.address, &first, err));
        if (first && is_free)
            MS_TRY(mstx__mem_earlier(s, e.address, e.size, 0, MSTX_MEM_EARLIER, err));
    }
    return MS_OK;
}

/* Calls for the blocks of a segment: those in use that the trace does not allocate lived before. */
static enum ms_rc take_segment(struct reader *r, struct mstx_mem_space *s, struct ms_map *seen,
                               const struct ms_plain *segment, struct ms_err *err)
{
    const struct ms_plain *blocks = ms_plain_get(segment, "blocks");
    uint64_t at = u64_of(ms_plain_get(segment, "address"));
    for (uint32_t i = 0; i < ms_plain_len(blocks); i++) {
        const struct ms_plain *b = ms_plain_item(blocks, i);
        const uint64_t size = u64_of(ms_plain_get(b, "size"));
        const struct ms_plain *address = ms_plain_get(b, "address"); /* of PyTorch 2.1 and later */
        uint32_t site;
        bool first;
        if (address != NULL)
            at = u64_of(address);
        if (ms_str_is(ms_plain_text(ms_plain_get(b, "state")), "inactive")) {
            s->free_bytes += size;
            s->holes++;
            s->largest_hole = size > s->largest_hole ? size : s->largest_hole;
        } else {
            MS_TRY(is_first(r, seen, at, &first, err));
            MS_TRY(find_site(r, ms_plain_get(b, "frames"), &site, err));
            if (first && size != 0)
                MS_TRY(mstx__mem_earlier(s, at, size, site, MSTX_MEM_UNKNOWN, err));
        }
        at += size;
    }
    return MS_OK;
}

/* ---- the trace ------------------------------------------------------------------------------ */

static enum ms_rc add_failure(struct reader *r, struct mstx_mem_space *s, const struct entry *e,
                              struct ms_err *err)
{
    uint32_t site;
    MS_TRY(find_site(r, e->frames, &site, err));
    struct mstx_mem_failure *slot = ms_vec_push(&s->failures);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct mstx_mem_failure){mstx__mem_events(s), site, e->at_ns, e->size, e->device_free};
    return MS_OK;
}

static enum ms_rc tell_entry(struct reader *r, struct mstx_mem_space *s, const struct entry *e,
                             struct ms_err *err)
{
    const bool takes_pool =
        ms_str_is(e->action, "segment_alloc") || ms_str_is(e->action, "segment_map");
    uint32_t site = 0;
    bool found;
    if (e->size > MSTX_MEM_BYTES_MAX)
        return ms_fail(err, MS_E_FORMAT, "an event of %" PRIu64 " bytes, more than any device has",
                       e->size);
    if (ms_str_is(e->action, "alloc")) {
        MS_TRY(find_site(r, e->frames, &site, err));
        return mstx__mem_alloc(s, e->at_ns, e->address, e->size, site, e->kind, err);
    }
    if (ms_str_is(e->action, "free_completed")) {
        MS_TRY(find_site(r, e->frames, &site, err));
        return mstx__mem_free(s, e->at_ns, e->address, r->log->sites.p[site].phase, &found, err);
    }
    if (takes_pool)
        return mstx__mem_pool_change(s, (int64_t)e->size, err);
    if (ms_str_is(e->action, "segment_free") || ms_str_is(e->action, "segment_unmap"))
        return mstx__mem_pool_change(s, -(int64_t)e->size, err);
    return ms_str_is(e->action, "oom") ? add_failure(r, s, e, err) : MS_OK;
}

/* ---- devices -------------------------------------------------------------------------------- */

static bool is_of_device(const struct ms_plain *segment, int64_t device)
{
    return ms_plain_int(ms_plain_get(segment, "device"), 0) == device;
}

/* Bytes that the allocator held before the trace: what it holds at the end, less what it took. */
static void find_pools_earlier(struct mstx_mem_space *s, uint64_t at_end)
{
    int64_t before = at_end < MSTX_MEM_BYTES_MAX ? (int64_t)at_end : 0;
    for (size_t i = 0; i < s->pools.n; i++)
        before -= s->pools.p[i].bytes;
    s->pools_earlier = before > 0 ? (uint64_t)before : 0;
}

static enum ms_rc read_device(struct reader *r, const struct ms_plain *segments,
                              const struct ms_plain *trace, int64_t device, struct ms_err *err)
{
    char name[32];
    struct mstx_mem_space *s;
    struct ms_map seen = {0};
    uint64_t reserved = 0;
    snprintf(name, sizeof name, "device %d", (int)device);
    MS_TRY(mstx__mem_space(r->log, r->rank, ms_str_of(name), &s, err));
    if (mstx__mem_events(s) != 0 || s->blocks.n != 0)
        return ms_fail(err, MS_E_ARG, "rank %d has another snapshot of %s", (int)r->rank, name);
    enum ms_rc rc = earlier_of_trace(r, s, &seen, trace, err);
    for (uint32_t i = 0; i < ms_plain_len(segments) && rc == MS_OK; i++) {
        const struct ms_plain *segment = ms_plain_item(segments, i);
        if (!is_of_device(segment, device))
            continue;
        reserved += u64_of(ms_plain_get(segment, "total_size"));
        s->has_holes = true;
        rc = take_segment(r, s, &seen, segment, err);
    }
    ms_map_free(&seen);
    for (uint32_t i = 0; i < ms_plain_len(trace) && rc == MS_OK; i++) {
        struct entry e = entry_of(ms_plain_item(trace, i));
        if (e.at_ns == MSTX_MEM_NO_TIME) /* of PyTorch before 2.2: the order is all there is */
            e.at_ns = i;
        rc = tell_entry(r, s, &e, err);
    }
    find_pools_earlier(s, reserved);
    return rc;
}

static bool has_frames(const struct ms_plain *traces)
{
    for (uint32_t d = 0; d < ms_plain_len(traces); d++) {
        const struct ms_plain *trace = ms_plain_item(traces, d);
        for (uint32_t i = 0; i < ms_plain_len(trace); i++) {
            if (ms_plain_len(ms_plain_get(ms_plain_item(trace, i), "frames")) != 0)
                return true;
        }
    }
    return false;
}

static bool device_has(const struct ms_plain *segments, const struct ms_plain *trace,
                       int64_t device)
{
    bool has = ms_plain_len(trace) != 0;
    for (uint32_t i = 0; i < ms_plain_len(segments) && !has; i++)
        has = is_of_device(ms_plain_item(segments, i), device) &&
              ms_plain_len(ms_plain_get(ms_plain_item(segments, i), "blocks")) != 0;
    return has;
}

static enum ms_rc read_devices(struct reader *r, const struct ms_plain *root, struct ms_err *err)
{
    enum { DEVICES_MAX = 1024 };
    const struct ms_plain *segments = ms_plain_get(root, "segments");
    const struct ms_plain *traces = ms_plain_get(root, "device_traces");
    if (segments == NULL)
        return ms_fail(err, MS_E_FORMAT, "a pickle without \"segments\" is no memory snapshot");
    int64_t devices = ms_plain_len(traces);
    for (uint32_t i = 0; i < ms_plain_len(segments); i++) {
        const int64_t device = ms_plain_int(ms_plain_get(ms_plain_item(segments, i), "device"), 0);
        if (device >= devices && device < DEVICES_MAX)
            devices = device + 1;
    }
    r->has_frames = has_frames(traces);
    for (int64_t d = 0; d < devices && d < DEVICES_MAX; d++) {
        const struct ms_plain *trace = ms_plain_item(traces, (uint32_t)d);
        if (device_has(segments, trace, d))
            MS_TRY(read_device(r, segments, trace, d, err));
    }
    const struct ms_plain *conf =
        ms_plain_get(ms_plain_get(root, "allocator_settings"), "PYTORCH_CUDA_ALLOC_CONF");
    r->log->settings = ms_arena_str(r->log->arena, ms_plain_text(conf));
    return MS_OK;
}

enum ms_rc mstx__mem_from_snapshot(struct mstx_mem_log *log, const char *path, int32_t rank,
                                   struct ms_err *err)
{
    struct ms_file file;
    struct ms_plain *root = NULL;
    size_t at = 0;
    struct reader r = {.log = log, .rank = rank};
    MS_TRY(ms_file_map(&file, path, FILE_MAX, err));
    r.values = ms_arena_new(VALUES_MAX);
    enum ms_rc rc = r.values != NULL
                        ? ms_pickle_read(&root, file.p, file.n, &at, &rules, r.values, err)
                        : ms_no_memory(err);
    if (rc == MS_OK)
        rc = read_devices(&r, root, err);
    if (rc != MS_OK)
        ms_err_wrap(err, "%s", path);
    ms_map_free(&r.stacks);
    ms_vec_free(&r.site);
    ms_arena_free(r.values);
    ms_file_unmap(&file);
    return rc;
}

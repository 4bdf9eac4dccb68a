/* SPDX-License-Identifier: MIT
 *
 * mem_from_timeline: the raw memory timeline of PyTorch's profiler
 * (export_memory_timeline("x.raw.json.gz")).
 *
 *     [[TIME, ACTION, BYTES, CATEGORY], ...]    times in ns, -1 before the record
 *
 * A change of category is a row that takes the bytes away and one that gives them to another. There
 * are no addresses: a free ends the oldest open block of the same size and category.
 */
#include "mstx/memory/mem_read.h"

#include "mstx/foreign/trace_text.h"

#include "probe/base/jread.h"

#include <string.h>

enum { ACTION_EARLIER = 1, ACTION_LAST = 4, NUMBERS = 4 };

/* The categories of torch.profiler._memory_profiler by their numbers in the file. */
static const uint8_t kinds[] = {MSTX_MEM_PARAMETER, MSTX_MEM_OPTIMIZER,  MSTX_MEM_INPUT,
                                MSTX_MEM_TEMPORARY, MSTX_MEM_ACTIVATION, MSTX_MEM_GRADIENT,
                                MSTX_MEM_TEMPORARY, MSTX_MEM_UNKNOWN};

/* Open blocks of one size and category; their addresses are numbers from first to next. */
struct queue {
    uint64_t first, next;
};

struct reader {
    struct mstx_mem_log *log;
    struct mstx_mem_space *space;
    struct ms_map queues; /* by size and category */
    MS_VEC(struct queue) queue;
};

static struct queue *queue_of(struct reader *r, uint64_t bytes, int64_t category, uint32_t *index)
{
    const uint64_t key[2] = {bytes, (uint64_t)category};
    bool added;
    *index = ms_map_put_copy(&r->queues, (struct ms_str){(const char *)key, sizeof key},
                             r->log->arena, &added);
    struct queue *slot = *index != MS_MAP_NONE && added ? ms_vec_push(&r->queue) : NULL;
    if (slot != NULL)
        *slot = (struct queue){0};
    return *index == MS_MAP_NONE || (added && slot == NULL) ? NULL : &r->queue.p[*index];
}

static enum ms_rc add_row(struct reader *r, const int64_t row[NUMBERS], struct ms_err *err)
{
    const bool takes = row[2] > 0;
    const uint64_t bytes = takes ? (uint64_t)row[2] : (uint64_t)0 - (uint64_t)row[2];
    uint32_t index;
    struct queue *q = queue_of(r, bytes, row[3], &index);
    if (q == NULL)
        return ms_no_memory(err);
    const uint64_t place = (uint64_t)index << 32;
    if (!takes) {
        bool found;
        if (q->first == q->next) { /* it lived before; the file leaves its first row out */
            r->space->unmatched++;
            return MS_OK;
        }
        return mstx__mem_free(r->space, row[0], place | (q->first++ & UINT32_MAX), 0, &found, err);
    }
    const uint64_t address = place | (q->next++ & UINT32_MAX);
    if (row[1] == ACTION_EARLIER && mstx__mem_events(r->space) == 0)
        return mstx__mem_earlier(r->space, address, bytes, 0, kinds[row[3]], err);
    return mstx__mem_alloc(r->space, row[0], address, bytes, 0, kinds[row[3]], err);
}

static enum ms_rc read_row(struct reader *r, struct ms_jread *j, struct ms_err *err)
{
    int64_t row[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) {
        if (ms_jread_next(j) != MS_J_NUM || !ms_jread_i64(j, &row[i]))
            return ms_jread_reject(j, err, "expected the %s of a memory event",
                                   i == 0   ? "time"
                                   : i == 1 ? "action"
                                   : i == 2 ? "bytes"
                                            : "category");
    }
    if (ms_jread_next(j) != MS_J_ARR_END)
        return ms_jread_reject(j, err, "expected four numbers of a memory event");
    if (row[1] < 1 || row[1] > ACTION_LAST || row[3] < 0 || row[3] >= (int64_t)sizeof kinds ||
        row[2] > (int64_t)MSTX_MEM_BYTES_MAX || row[2] < -(int64_t)MSTX_MEM_BYTES_MAX)
        return ms_jread_reject(j, err, "no memory event of PyTorch's profiler has these numbers");
    return row[2] != 0 ? add_row(r, row, err) : MS_OK;
}

static enum ms_rc read_rows(struct reader *r, const struct mstx_trace_text *text,
                            struct ms_err *err)
{
    struct ms_jread j;
    ms_jread_init(&j, text->p, text->n, 0);
    enum ms_jtok t = ms_jread_next(&j);
    if (t != MS_J_ARR)
        return ms_jread_reject(&j, err, "expected a list of memory events");
    while ((t = ms_jread_next(&j)) == MS_J_ARR)
        MS_TRY(read_row(r, &j, err));
    if (t != MS_J_ARR_END)
        return t == MS_J_ERR ? ms_jread_fail(&j, err)
                             : ms_jread_reject(&j, err, "expected a memory event");
    return MS_OK;
}

enum ms_rc mstx__mem_from_timeline(struct mstx_mem_log *log, const char *path, int32_t rank,
                                   struct ms_err *err)
{
    struct mstx_trace_text text;
    struct reader r = {.log = log};
    MS_TRY(mstx__trace_text_open(&text, path, err));
    enum ms_rc rc = mstx__mem_space(log, rank, MS_STR("device"), &r.space, err);
    if (rc == MS_OK)
        rc = read_rows(&r, &text, err);
    if (rc != MS_OK)
        ms_err_wrap(err, "%s", path);
    mstx__trace_text_close(&text);
    ms_map_free(&r.queues);
    ms_vec_free(&r.queue);
    return rc;
}

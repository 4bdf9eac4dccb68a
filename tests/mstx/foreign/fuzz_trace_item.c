/* SPDX-License-Identifier: MIT
 *
 * Any bytes as one event of a trace: the fast reader leaves it, or reads just what the reader of everything
 * reads, within the bytes and their padding.
 */
#include "mstx/foreign/trace_item_fast.h"
#include "mstx/foreign/trace_text.h"

#include "probe/base/mem.h"

#include <stdlib.h>

#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            abort();                                                                               \
    } while (0)

static void check_same(const struct mstx_trace_item *a, const struct mstx_trace_item *b)
{
    MUST(ms_str_eq(a->name, b->name) && ms_str_eq(a->phase, b->phase));
    MUST(ms_str_eq(a->category, b->category) && ms_str_eq(a->id, b->id));
    MUST(ms_str_eq(a->pid, b->pid) && ms_str_eq(a->tid, b->tid));
    MUST(ms_str_eq(a->number, b->number) && a->ts == b->ts && a->dur == b->dur);
    MUST(a->has_ts == b->has_ts && a->correlation == b->correlation && a->device == b->device);
    MUST(a->stream == b->stream && a->comm.sent == b->comm.sent && a->comm.size == b->comm.size);
    MUST(ms_str_eq(a->comm.op, b->comm.op) && ms_str_eq(a->comm.ranks, b->comm.ranks));
}

static void read_both(struct mstx_trace_json *fast, struct mstx_trace_json *slow, const char *text,
                      size_t n)
{
    struct mstx_trace_item a, b;
    const char *end = mstx__trace_item_fast(fast, &a, text, text + n);
    if (end == NULL)
        return;
    ms_jread_init(&slow->j, text, n, MS_JREAD_TOLERANT);
    MUST(ms_jread_next(&slow->j) == MS_J_OBJ && mstx__trace_item_read(slow, &b));
    MUST(!slow->j.truncated && slow->j.at == end);
    check_same(&a, &b);
    MUST(ms_str_eq(a.args, b.args));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mstx_trace_json fast = {.args = {.max = 1 << 20}}, slow = {.args = {.max = 1 << 20}};
    char *text = size != 0 && data[0] == '{' ? ms_calloc(1, size + MSTX_TRACE_TEXT_PAD) : NULL;
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    fast.arena = slow.arena = ms_arena_new(1 << 24);
    if (fast.arena != NULL)
        read_both(&fast, &slow, text, size);
    ms_buf_free(&fast.args);
    ms_buf_free(&slow.args);
    ms_arena_free(fast.arena);
    ms_free(text);
    return 0;
}

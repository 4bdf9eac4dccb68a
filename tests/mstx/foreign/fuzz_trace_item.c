/* SPDX-License-Identifier: MIT
 *
 * Any bytes as one event of a trace: the fast reader leaves it, or reads just what the reader of everything
 * reads, within the bytes and their padding. What the shape of the event reads, of it and of an event behind
 * it, is what the fast reader reads.
 */
#include "mstx/foreign/trace_item_fast.h"
#include "mstx/foreign/trace_shapes.h"
#include "mstx/foreign/trace_text.h"

#include "probe/base/mem.h"
#include "probe/base/scan.h"

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
    MUST(a->ts == b->ts && a->dur == b->dur);
    MUST(a->has_ts == b->has_ts && a->correlation == b->correlation && a->device == b->device);
    MUST(a->stream == b->stream && a->comm.sent == b->comm.sent && a->comm.size == b->comm.size);
    MUST(ms_str_eq(a->comm.op, b->comm.op) && ms_str_eq(a->comm.ranks, b->comm.ranks));
}

static uint32_t count_runs(struct ms_str text)
{
    uint32_t runs = 0;
    for (uint32_t i = 0; i < text.n; i++)
        runs += ms_is_digit(text.p[i]) && (i == 0 || !ms_is_digit(text.p[i - 1]));
    return runs;
}

/* Compares the runs of digits in a text with those that the shape found. */
static void check_runs(struct ms_str text, const struct mstx_text_run *run)
{
    for (uint32_t i = 0; i < text.n; i++) {
        const uint32_t n = ms_str_digits(text, i);
        if (n == 0)
            continue;
        uint64_t v;
        MUST(ms_str_eq(run->digits, ms_str_sub(text, i, i + n)));
        MUST(run->value == UINT64_MAX || (ms_str_u64(run->digits, &v) && v == run->value));
        i += n;
        run++;
    }
}

/* Reads the event at p by the shapes that are known, and quickly: both must say the same. */
static void read_shape(struct mstx_trace_shapes *s, struct mstx_trace_json *fast, const char *p,
                       const char *end)
{
    struct mstx_trace_item a, b;
    const char *after = mstx__trace_shapes_read(s, &a, p, end);
    if (after == NULL)
        return;
    MUST(mstx__trace_item_fast(fast, &b, p, end) == after);
    check_same(&a, &b);
    MUST(a.args.n == 0 && (b.args.n == 0) == (a.args_form == MSTX_TEXT_FORMLESS));
    if (b.args.n != 0)
        check_runs(b.args, a.args_runs);
}

static void read_shapes(struct mstx_trace_json *fast, const struct mstx_trace_item *it,
                        const char *p, const char *after, const char *end)
{
    static struct mstx_trace_shapes s;
    s = (struct mstx_trace_shapes){.arena = fast->arena};
    const struct mstx_args_form form = {1, count_runs(it->args)};
    if (!mstx__trace_shapes_wants(&s, it))
        return;
    mstx__trace_shapes_learn(&s, it, &form, p, after);
    read_shape(&s, fast, p, end);
    for (; after < end; after++) {
        if (*after == '{')
            read_shape(&s, fast, after, end);
    }
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
    MUST(ms_str_eq(a.args, b.args) && ms_str_eq(a.number, b.number));
    read_shapes(fast, &a, text, end, text + n);
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

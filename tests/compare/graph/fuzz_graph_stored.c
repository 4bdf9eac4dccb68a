/* SPDX-License-Identifier: MIT
 *
 * fuzz_graph_stored: items of a database that somebody else has written.  What is
 * read is written as JSON again, and figures that are taken away, or put there a
 * second time, give the same text.
 */
#include "compare/graph/view/stored_items.h"
#include "probe/base/jread.h"

#include <stdlib.h>

static void must(bool truth)
{
    if (!truth)
        __builtin_trap();
}

static void must_be_json(const struct ms_buf *b)
{
    struct ms_jread r;
    enum ms_jtok tok;
    ms_jread_init(&r, b->p, b->n, 0);
    while ((tok = ms_jread_next(&r)) > MS_J_END)
        ;
    must(tok == MS_J_END);
}

static void must_be_same(const struct ms_buf *a, const struct ms_buf *b)
{
    must(a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n) == 0));
}

/* Put figures of the view into the text of `from`; row -1 takes them away. */
static enum ms_rc put(struct ms_buf *to, struct graph__stored_judge *v, struct ms_str from,
                      int64_t row)
{
    enum ms_rc rc = graph__put_stored(to, v, from, &row, NULL);
    if (rc == MS_OK)
        must_be_json(to);
    return rc;
}

static void check(struct graph__stored_judge *v, struct ms_str text, struct ms_buf b[3])
{
    const struct graph__stored side = {text, MS_STR("{}"), "/nowhere"};
    if (put(&b[0], v, text, -1) != MS_OK)
        return;
    must(put(&b[1], v, ms_buf_slice(&b[0]), -1) == MS_OK);
    must_be_same(&b[0], &b[1]);
    enum graph_state state;
    must(graph__judge_stored(v, MS_STR("Torch.f.0.forward"), &side, &side, &state, NULL) == MS_OK);
    must(put(&b[1], v, text, 0) == MS_OK);
    must(put(&b[2], v, ms_buf_slice(&b[1]), 0) == MS_OK);
    must_be_same(&b[1], &b[2]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct graph__stored_judge v;
    struct ms_buf b[3] = {{.max = 1 << 24}, {.max = 1 << 24}, {.max = 1 << 24}};
    if (size > 1 << 20 || graph__stored_init(&v, PROBE_MODE_SUMMARY, NULL) != MS_OK)
        return 0;
    check(&v, (struct ms_str){(const char *)data, (uint32_t)size}, b);
    graph__stored_free(&v);
    for (int i = 0; i < 3; i++)
        ms_buf_free(&b[i]);
    return 0;
}

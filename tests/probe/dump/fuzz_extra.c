/* SPDX-License-Identifier: MIT
 *
 * Any text as a construct.json and as a stack.json.  An accepted tree leads from
 * every node to a root; every stack is a list of text; and every start of an
 * accepted text is accepted when tolerant and says nothing else.
 */
#include "probe/base/mem.h"
#include "probe/dump/stack.h"
#include "probe/dump/tree.h"

#include <stdlib.h>

#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            abort();                                                                               \
    } while (0)

static void check_error(enum ms_rc rc, const struct ms_err *err)
{
    MUST(rc == err->rc);
    MUST(rc == MS_OK || rc == MS_E_FORMAT || rc == MS_E_LIMIT);
    MUST(rc == MS_OK || strncmp(err->msg, "fuzz: ", 6) == 0);
}

/* ---- construct ------------------------------------------------------------------- */

static void check_tree(const struct probe_tree *t)
{
    MUST(t->names.keys.n == t->nodes.n);
    for (uint32_t i = 0; i < t->nodes.n; i++) {
        size_t steps = 0;
        MUST(probe_tree_find(t, probe_tree_name(t, i)) == i);
        MUST(t->nodes.p[i].listed || t->nodes.p[i].parent == MS_MAP_NONE);
        for (uint32_t n = i; n != MS_MAP_NONE; n = t->nodes.p[n].parent)
            MUST(n < t->nodes.n && steps++ < t->nodes.n);
    }
}

/* What the start says of a node is what the whole says. */
static void check_tree_start(const struct probe_tree *whole, struct ms_str text)
{
    struct probe_tree t;
    struct ms_err err = {0};
    MUST(probe_tree_parse(&t, "fuzz", text, PROBE_TREE_TOLERANT, &err) == MS_OK);
    check_tree(&t);
    for (uint32_t i = 0; i < t.nodes.n; i++) {
        const struct probe_tree_node *n = &t.nodes.p[i];
        uint32_t in_whole = probe_tree_find(whole, probe_tree_name(&t, i));
        MUST(in_whole != MS_MAP_NONE);
        const struct probe_tree_node *w = &whole->nodes.p[in_whole];
        if (!n->listed)
            continue;
        MUST(w->listed && w->micro_step == n->micro_step);
        MUST((w->parent == MS_MAP_NONE) == (n->parent == MS_MAP_NONE));
        MUST(n->parent == MS_MAP_NONE ||
             ms_str_eq(probe_tree_name(whole, w->parent), probe_tree_name(&t, n->parent)));
    }
    probe_tree_close(&t);
}

static void try_tree(struct ms_str text)
{
    struct probe_tree t;
    struct ms_err err = {0};
    enum ms_rc rc = probe_tree_parse(&t, "fuzz", text, 0, &err);
    check_error(rc, &err);
    if (rc == MS_OK) {
        check_tree(&t);
        for (uint32_t n = 0; n < text.n; n += text.n / 64 + 1)
            check_tree_start(&t, (struct ms_str){text.p, n});
        probe_tree_close(&t);
    }
    ms_err_clear(&err);
    rc = probe_tree_parse(&t, "fuzz", text, PROBE_TREE_TOLERANT, &err);
    check_error(rc, &err);
    if (rc == MS_OK)
        check_tree(&t);
    probe_tree_close(&t);
}

/* ---- stack --------------------------------------------------------------------------- */

static void check_stacks(const struct probe_stacks *s)
{
    MUST(s->names.keys.n == s->stack_of.n);
    for (uint32_t i = 0; i < s->stack_of.n; i++) {
        struct ms_buf scratch = {.max = 1 << 22};
        struct ms_str frame;
        struct ms_jread r;
        MUST(s->stack_of.p[i] < s->frames.n);
        struct ms_str list = probe_stack_frames(s, ms_map_key(&s->names, i));
        MUST(list.n >= 2 && list.p[0] == '[' && list.p[list.n - 1] == ']');
        ms_jread_init(&r, list.p, list.n, 0);
        while (probe_stack_next(&r, &scratch, &frame)) {
        }
        MUST(ms_jread_next(&r) == MS_J_END);
        ms_buf_free(&scratch);
    }
}

static void check_stacks_start(const struct probe_stacks *whole, struct ms_str text)
{
    struct probe_stacks s;
    struct ms_err err = {0};
    MUST(probe_stacks_parse(&s, "fuzz", text, PROBE_STACK_TOLERANT, &err) == MS_OK);
    check_stacks(&s);
    MUST(s.frames.n <= whole->frames.n);
    for (uint32_t i = 0; i < s.stack_of.n; i++)
        MUST(ms_map_get(&whole->names, ms_map_key(&s.names, i)) != MS_MAP_NONE);
    probe_stacks_close(&s);
}

static void try_stacks(struct ms_str text)
{
    struct probe_stacks s;
    struct ms_err err = {0};
    enum ms_rc rc = probe_stacks_parse(&s, "fuzz", text, 0, &err);
    check_error(rc, &err);
    if (rc == MS_OK) {
        check_stacks(&s);
        for (uint32_t n = 0; n < text.n; n += text.n / 64 + 1)
            check_stacks_start(&s, (struct ms_str){text.p, n});
        probe_stacks_close(&s);
    }
    ms_err_clear(&err);
    rc = probe_stacks_parse(&s, "fuzz", text, PROBE_STACK_TOLERANT, &err);
    check_error(rc, &err);
    if (rc == MS_OK)
        check_stacks(&s);
    probe_stacks_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ms_str text = {(const char *)data, (uint32_t)size};
    size_t live = ms_mem_live();
    try_tree(text);
    try_stacks(text);
    MUST(ms_mem_live() == live);
    return 0;
}

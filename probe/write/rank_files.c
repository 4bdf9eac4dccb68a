/* SPDX-License-Identifier: MIT
 *
 * stack_write: collecting stacks.  Frames are compared as the JSON text they
 * will be, so equal stacks are found by one look-up.
 */
#include "probe/stack_write.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/stack.h"

enum { FRAMES_MAX = 1 << 20 };

static const struct probe__stack_group unused = {MS_MAP_NONE, MS_MAP_NONE, MS_MAP_NONE};

static enum ms_rc no_memory(struct ms_err *err)
{
    return ms_fail(err, MS_E_NOMEM, "stack.json: %s", ms_rc_text(MS_E_NOMEM));
}

/* ---- collecting ------------------------------------------------------- */

/* Nodes belong to one file, stacks to all. */
static void forget_nodes(struct probe__stack_writer *s)
{
    for (size_t i = 0; i < s->order.n; i++)
        s->groups.p[s->order.p[i]] = unused;
    s->order.n = 0;
    s->nodes.n = 0;
    ms_buf_clear(&s->names);
    s->names.max = SIZE_MAX / 2;
    s->written = 0;
    s->split = false;
}

enum ms_rc probe__stack_open(struct probe__stack_writer *s, const char *path, struct ms_err *err)
{
    forget_nodes(s);
    if (s->arena == NULL) {
        s->arena = ms_arena_new(SIZE_MAX);
        ms_jwrite_init(&s->frames, 1, FRAMES_MAX);
    }
    if (s->arena == NULL)
        return no_memory(err);
    MS_TRY(probe__append_open(&s->out, path, "}", "\n}", err));
    ms_jwrite_obj(&s->out.json);
    return probe__append_flush(&s->out, err);
}

uint32_t probe__stack_group(struct probe__stack_writer *s, const char *const *frames, unsigned n,
                            struct ms_err *err)
{
    bool added;
    ms_jwrite_free(&s->frames);
    ms_jwrite_init(&s->frames, 1, FRAMES_MAX);
    ms_jwrite_arr(&s->frames);
    for (unsigned i = 0; i < n; i++)
        ms_jwrite_str(&s->frames, ms_str_of(frames[i]));
    ms_jwrite_arr_end(&s->frames);
    if (s->frames.err.rc != MS_OK) {
        ms_fail(err, s->frames.err.rc, "a stack left out: %s", s->frames.err.msg);
        return MS_MAP_NONE;
    }
    /* Room for a group first: the map must not know stacks that have none. */
    uint32_t g = ms_vec_reserve(&s->groups, s->groups.n + 1)
                     ? ms_map_put_copy(&s->stacks, ms_buf_slice(&s->frames.buf), s->arena, &added)
                     : MS_MAP_NONE;
    if (g == MS_MAP_NONE)
        no_memory(err);
    else if (added)
        s->groups.p[s->groups.n++] = unused;
    return g;
}

static struct ms_str name_of(const struct probe__stack_writer *s, const struct probe__stack_node *n)
{
    return (struct ms_str){s->names.p + n->name, n->name_n};
}

enum ms_rc probe__stack_add(struct probe__stack_writer *s, struct ms_str node, uint32_t group,
                            struct ms_err *err)
{
    struct probe__stack_group *g = &s->groups.p[group];
    if (!ms_vec_reserve(&s->order, s->order.n + 1) || !ms_vec_reserve(&s->nodes, s->nodes.n + 1))
        return no_memory(err);
    const size_t name = s->names.n;
    ms_buf_str(&s->names, node);
    MS_TRY(ms_buf_check(&s->names, err));
    uint32_t id = (uint32_t)s->nodes.n;
    s->nodes.p[s->nodes.n++] = (struct probe__stack_node){name, node.n, MS_MAP_NONE};
    if (g->first != MS_MAP_NONE) {
        s->nodes.p[g->last].next = id;
    } else {
        g->first = id;
        s->order.p[s->order.n++] = group;
    }
    g->last = id;
    if (g->pending == MS_MAP_NONE)
        g->pending = id;
    return MS_OK;
}

/* ---- writing ---------------------------------------------------------- */

/* One frame's text again, out of the JSON list that is the key of its group. */
static void put_frames(struct probe__stack_writer *s, struct ms_jwrite *json, uint32_t group)
{
    struct ms_jread r;
    struct ms_str list = ms_map_key(&s->stacks, group);
    struct ms_str frame;
    ms_jwrite_arr(json);
    ms_jread_init(&r, list.p, list.n, 0);
    s->text.max = FRAMES_MAX;
    while (probe_stack_next(&r, &s->text, &frame))
        ms_jwrite_str(json, frame);
    ms_jwrite_arr_end(json);
}

/* "id": [[names from `node` on], [frames]] */
static void put_group(struct probe__stack_writer *s, struct ms_jwrite *json, uint32_t id,
                      uint32_t group, uint32_t node)
{
    char digits[MS_NUM_MAX];
    ms_jwrite_key(json, (struct ms_str){digits, ms_num_u64(digits, id)});
    ms_jwrite_arr(json);
    ms_jwrite_arr(json);
    for (; node != MS_MAP_NONE; node = s->nodes.p[node].next)
        ms_jwrite_str(json, name_of(s, &s->nodes.p[node]));
    ms_jwrite_arr_end(json);
    put_frames(s, json, group);
    ms_jwrite_arr_end(json);
}

enum ms_rc probe__stack_flush(struct probe__stack_writer *s, struct ms_err *err)
{
    for (size_t i = 0; i < s->order.n; i++) {
        uint32_t g = s->order.p[i];
        struct probe__stack_group *group = &s->groups.p[g];
        if (group->pending == MS_MAP_NONE)
            continue;
        s->split |= group->pending != group->first;
        put_group(s, &s->out.json, s->written++, g, group->pending);
        group->pending = MS_MAP_NONE;
        s->out.members = true;
    }
    return probe__append_flush(&s->out, err);
}

static void put_all(struct probe__stack_writer *s, struct ms_jwrite *json, struct ms_out *out)
{
    ms_jwrite_obj(json);
    for (size_t i = 0; i < s->order.n; i++) {
        uint32_t g = s->order.p[i];
        put_group(s, json, (uint32_t)i, g, s->groups.p[g].first);
        ms_out_str(out, ms_buf_slice(&json->buf));
        ms_buf_clear(&json->buf);
    }
    ms_jwrite_obj_end(json);
}

/* The whole file once more, each stack one group, in place of the one that grew. */
static enum ms_rc rewrite(struct probe__stack_writer *s, struct ms_err *err)
{
    struct ms_out *out;
    struct ms_jwrite json;
    MS_TRY(ms_out_create(&out, s->out.path, err));
    ms_jwrite_init(&json, 1, SIZE_MAX / 2);
    put_all(s, &json, out);
    enum ms_rc rc = ms_jwrite_finish(&json, err);
    if (rc == MS_OK) {
        ms_out_str(out, ms_buf_slice(&json.buf));
        rc = ms_out_commit(out, err);
    } else {
        ms_out_abort(out);
    }
    ms_jwrite_free(&json);
    return rc;
}

enum ms_rc probe__stack_finish(struct probe__stack_writer *s, struct ms_err *err)
{
    enum ms_rc rc = probe__stack_flush(s, err);
    if (rc == MS_OK && s->split)
        rc = rewrite(s, err);
    probe__append_close(&s->out);
    return rc;
}

void probe__stack_free(struct probe__stack_writer *s)
{
    probe__append_free(&s->out);
    ms_jwrite_free(&s->frames);
    ms_map_free(&s->stacks);
    ms_vec_free(&s->groups);
    ms_vec_free(&s->order);
    ms_vec_free(&s->nodes);
    ms_buf_free(&s->names);
    ms_buf_free(&s->text);
    ms_arena_free(s->arena);
}

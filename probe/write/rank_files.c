/* SPDX-License-Identifier: MIT
 *
 * rank_files: the documents of one rank's directory. Frames of stack.json are compared as the JSON
 * text that will be written, so one look-up finds equal stacks.
 */
#include "probe/write/rank_files.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/dump/stack.h"

#include <limits.h>
#include <stdlib.h>

enum { FRAMES_MAX = 1 << 20 };

static const struct probe__stack_group unused = {MS_MAP_NONE, MS_MAP_NONE, MS_MAP_NONE};

static enum ms_rc no_memory(struct ms_err *err)
{
    return ms_fail(err, MS_E_NOMEM, "stack.json: %s", ms_rc_text(MS_E_NOMEM));
}

/* ---- stack.json: collecting ------------------------------------------------------- */

/* Drops the nodes, which belong to one file; stacks are kept for all files. */
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
    /* Reserve room for the group first: the map must not hold stacks without a group. */
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

/* Writes the frames of a group, parsed from the JSON list that is its key. */
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

/* Writes "id": [[names from `node` on], [frames]]. */
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

/* Replaces the file by one in which each stack is a single group. */
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

/* ---- the directory ------------------------------------------------------- */

enum { FLUSH_BYTES = 256 * 1024 };

static const char *const task_text[] = {"statistics", "tensor", "structure", "nan_check",
                                        "overflow_check"};
static const char *const level_text[] = {"mix", "L0", "L1", "debug"};
static const char *const framework_text[] = {"pytorch", "pytorch", "mindspore", "mindtorch"};

/* ---- opening ---------------------------------------------------------- */

static void put_head(struct probe__files *f)
{
    struct ms_jwrite *json = &f->dump.json;
    ms_jwrite_obj(json);
    ms_jwrite_kstr(json, "task", task_text[f->layout.task]);
    ms_jwrite_kstr(json, "level", level_text[f->layout.level]);
    ms_jwrite_kstr(json, "framework", framework_text[f->layout.framework]);
    ms_jwrite_key(json, MS_STR("dump_data_dir"));
    if (f->data_dir != NULL)
        ms_jwrite_str(json, ms_str_of(f->data_dir));
    else
        ms_jwrite_null(json);
    ms_jwrite_key(json, MS_STR("data"));
    ms_jwrite_obj(json);
}

static enum ms_rc open_document(const struct probe__files *f, struct probe__append *a,
                                const char *name, const char *tail_0, const char *tail,
                                struct ms_err *err)
{
    char *path = ms_path_join(f->dir, name);
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = probe__append_open(a, path, tail_0, tail, err);
    ms_free(path);
    return rc;
}

static enum ms_rc open_dump(struct probe__files *f, struct ms_err *err)
{
    const char *name = f->layout.level == PROBE_LEVEL_DEBUG ? "debug.json" : "dump.json";
    MS_TRY(open_document(f, &f->dump, name, "}\n}", "\n }\n}", err));
    put_head(f);
    return probe__append_flush(&f->dump, err);
}

static enum ms_rc open_extra(struct probe__files *f, struct ms_err *err)
{
    MS_TRY(open_document(f, &f->construct, "construct.json", "}", "\n}", err));
    ms_jwrite_obj(&f->construct.json);
    MS_TRY(probe__append_flush(&f->construct, err));
    char *path = ms_path_join(f->dir, "stack.json");
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = probe__stack_open(&f->stack, path, err);
    ms_free(path);
    return rc;
}

/* Creates the directory of tensor files and stores its absolute path, which the head names. */
static enum ms_rc set_data_dir(struct probe__files *f, struct ms_err *err)
{
    char *rel = ms_path_join(f->dir, "dump_tensor_data");
    char absolute[PATH_MAX];
    enum ms_rc rc = rel == NULL ? ms_no_memory(err) : ms_mkdirs(rel, err);
    if (rc == MS_OK && realpath(rel, absolute) == NULL)
        rc = ms_fail_sys(err, "%s", rel);
    ms_free(rel);
    MS_TRY(rc);
    ms_free(f->data_dir);
    f->data_dir = ms_str_dup(ms_str_of(absolute));
    return f->data_dir != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc set_dir(struct probe__files *f, const char *dir, struct ms_err *err)
{
    char *copy = ms_str_dup(ms_str_of(dir));
    if (copy == NULL)
        return ms_no_memory(err);
    ms_free(f->dir);
    f->dir = copy;
    return f->layout.tensors ? set_data_dir(f, err) : MS_OK;
}

static enum ms_rc open_all(struct probe__files *f, const char *dir, struct ms_err *err)
{
    MS_TRY(ms_mkdirs(dir, err));
    MS_TRY(set_dir(f, dir, err));
    MS_TRY(open_dump(f, err));
    return f->layout.extra ? open_extra(f, err) : MS_OK;
}

enum ms_rc probe__files_open(struct probe__files *f, const char *dir,
                             const struct probe__layout *layout, struct ms_err *err)
{
    f->layout = *layout;
    enum ms_rc rc = open_all(f, dir, err);
    f->is_open = rc == MS_OK;
    if (rc != MS_OK)
        probe__files_abandon(f);
    return rc;
}

/* ---- writing ---------------------------------------------------------- */

bool probe__files_add(struct probe__files *f, struct ms_str member)
{
    probe__append_member(&f->dump, member);
    return f->dump.json.buf.n >= FLUSH_BYTES;
}

void probe__files_parent(struct probe__files *f, struct ms_str child, const char *parent)
{
    struct ms_jwrite *json = &f->construct.json;
    ms_jwrite_key(json, child);
    if (parent != NULL)
        ms_jwrite_str(json, ms_str_of(parent));
    else
        ms_jwrite_null(json);
    f->construct.members = true;
}

enum ms_rc probe__files_flush(struct probe__files *f, struct ms_err *err)
{
    if (!f->is_open)
        return MS_OK;
    MS_TRY(probe__append_flush(&f->dump, err));
    if (!f->layout.extra)
        return MS_OK;
    MS_TRY(probe__append_flush(&f->construct, err));
    return probe__stack_flush(&f->stack, err);
}

/* Updates a document's path after the directory was renamed. The path serves messages and, for
 * stack.json, the rewrite. */
static enum ms_rc follow(const struct probe__files *f, struct probe__append *a, struct ms_err *err)
{
    if (a->path == NULL)
        return MS_OK;
    char *path = ms_path_join(f->dir, ms_path_base(a->path).p);
    if (path == NULL)
        return ms_no_memory(err);
    ms_free(a->path);
    a->path = path;
    return MS_OK;
}

enum ms_rc probe__files_moved(struct probe__files *f, const char *dir, struct ms_err *err)
{
    MS_TRY(set_dir(f, dir, err));
    MS_TRY(follow(f, &f->dump, err));
    MS_TRY(follow(f, &f->construct, err));
    return follow(f, &f->stack.out, err);
}

/* ---- closing ---------------------------------------------------------- */

enum ms_rc probe__files_close(struct probe__files *f, struct ms_err *err)
{
    struct ms_err first = {0};
    if (!f->is_open)
        return MS_OK;
    probe__append_flush(&f->dump, &first); /* `first` keeps the first failure */
    if (f->layout.extra) {
        probe__append_flush(&f->construct, &first);
        probe__stack_finish(&f->stack, &first);
    }
    probe__files_abandon(f);
    if (first.rc != MS_OK && err != NULL && err->rc == MS_OK)
        *err = first;
    return first.rc;
}

void probe__files_abandon(struct probe__files *f)
{
    probe__append_close(&f->dump);
    probe__append_close(&f->construct);
    probe__append_close(&f->stack.out);
    f->is_open = false;
}

void probe__files_free(struct probe__files *f)
{
    probe__append_free(&f->dump);
    probe__append_free(&f->construct);
    probe__stack_free(&f->stack);
    ms_free(f->dir);
    ms_free(f->data_dir);
}

/* SPDX-License-Identifier: MIT
 *
 * stack: reading stack.json in both of its shapes.
 *
 *     "0": [["node", "node"], ["frame", "frame"]]     nodes that share a stack
 *     "node": ["frame", "frame"]                      older: one entry a node
 *
 * The value distinguishes them: the list of a group begins with a list. The official tool instead
 * checks for an entry named 0; PROBE_STACK_OFFICIAL selects that rule.
 */
#include "probe/dump/stack.h"

#include "probe/base/mem.h"

enum layout { LAYOUT_BY_VALUE, LAYOUT_GROUPS, LAYOUT_NODES };

/* Frames of a group without frames. */
static const char no_frames[] = "[]";

/* Adds the node in the current token, for the stack that is added next. */
static enum ms_rc add_name(struct probe_stacks *s, const struct ms_jread *r, struct ms_buf *scratch,
                           struct ms_err *err)
{
    struct ms_str name;
    bool added;
    MS_TRY(ms_jread_text(r, scratch, &name, err));
    uint32_t id = r->escaped ? ms_map_put_copy(&s->names, name, s->arena, &added)
                             : ms_map_put(&s->names, name, &added);
    uint32_t *slot = id == MS_MAP_NONE ? NULL
                     : added           ? ms_vec_push(&s->stack_of)
                                       : &s->stack_of.p[id];
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (uint32_t)s->frames.n;
    return MS_OK;
}

static enum ms_rc add_frames(struct probe_stacks *s, const char *from, const char *to,
                             struct ms_err *err)
{
    struct ms_str *slot = ms_vec_push(&s->frames);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct ms_str){from, (uint32_t)(to - from)};
    return MS_OK;
}

/* Skips the frames from the current token, the first inside their list, to the end of the list. */
static enum ms_rc pass_frames(const struct probe_stacks *s, struct ms_jread *r, enum ms_jtok tok,
                              struct ms_err *err)
{
    for (; tok != MS_J_ARR_END; tok = ms_jread_next(r)) {
        if (tok == MS_J_ERR ||
            (s->flags & PROBE_STACK_OFFICIAL && ms_jread_skip(r, tok) == MS_J_ERR))
            return ms_jread_fail(r, err);
        if (tok != MS_J_STR && !r->truncated && (s->flags & PROBE_STACK_OFFICIAL) == 0)
            return ms_jread_reject(r, err, "expected a stack frame as text");
    }
    return MS_OK;
}

/* Reads the names of a group, whose opening bracket was the last token; adds them to s unless s is
 * NULL. */
static enum ms_rc pass_names(struct probe_stacks *s, struct ms_jread *r, struct ms_buf *scratch,
                             struct ms_err *err)
{
    enum ms_jtok tok;
    while ((tok = ms_jread_next(r)) == MS_J_STR) {
        if (s != NULL)
            MS_TRY(add_name(s, r, scratch, err));
    }
    if (tok == MS_J_ERR)
        return ms_jread_fail(r, err);
    if (tok != MS_J_ARR_END && !r->truncated)
        return ms_jread_reject(r, err, "expected the name of a node");
    return MS_OK;
}

/* Reads a group: names, then frames. Nothing is added before the whole group has been read, so a
 * group that is cut off by the end of the text is dropped. */
static enum ms_rc take_group(struct probe_stacks *s, struct ms_jread *r, struct ms_buf *scratch,
                             struct ms_err *err)
{
    struct ms_jread names = *r;
    const char *to = no_frames + 2;
    MS_TRY(pass_names(NULL, r, scratch, err));
    enum ms_jtok tok = ms_jread_next(r);
    const char *from = no_frames;
    if (tok == MS_J_ARR) {
        from = r->tok;
        MS_TRY(pass_frames(s, r, ms_jread_next(r), err));
        to = r->at;
        tok = ms_jread_next(r);
    } else if (s->flags & PROBE_STACK_OFFICIAL) {
        tok = MS_J_NULL; /* the official tool rejects names without frames */
    }
    if (tok == MS_J_ERR)
        return ms_jread_fail(r, err);
    if (r->truncated)
        return MS_OK;
    if (tok != MS_J_ARR_END)
        return ms_jread_reject(r, err, "expected [names, frames]");
    s->grouped = true;
    MS_TRY(pass_names(s, &names, scratch, err));
    return add_frames(s, from, to, err);
}

static enum ms_rc take_stack(struct probe_stacks *s, struct ms_jread *r, struct ms_buf *scratch,
                             struct ms_err *err)
{
    struct ms_jread key = *r;
    enum ms_jtok tok = ms_jread_next(r);
    const char *from = r->tok;
    if (tok == MS_J_ERR)
        return ms_jread_fail(r, err);
    if (tok != MS_J_ARR)
        return r->truncated ? MS_OK : ms_jread_reject(r, err, "expected a list of stack frames");
    tok = ms_jread_next(r);
    if (tok == MS_J_ARR && s->layout != LAYOUT_NODES)
        return take_group(s, r, scratch, err);
    if (s->layout == LAYOUT_GROUPS)
        return ms_jread_reject(r, err, "expected [names, frames]");
    MS_TRY(pass_frames(s, r, tok, err));
    if (r->truncated)
        return MS_OK;
    MS_TRY(add_name(s, &key, scratch, err));
    return add_frames(s, from, r->at, err);
}

static enum ms_rc take_entry(void *stacks, struct ms_jread *r, struct ms_buf *scratch,
                             struct ms_err *err)
{
    struct probe_stacks *s = stacks;
    struct ms_jread at = *r;
    enum ms_rc rc = take_stack(s, r, scratch, err);
    if (rc != MS_E_FORMAT || (s->flags & PROBE_STACK_TOLERANT) == 0)
        return rc;
    ms_err_clear(err);
    *r = at;
    return ms_jread_skip(r, ms_jread_next(r)) == MS_J_ERR ? ms_jread_fail(r, err) : MS_OK;
}

/* Tells whether Python treats the value of the last token as false. Advances r. */
static bool is_false(struct ms_jread *r, enum ms_jtok tok)
{
    double x;
    switch (tok) {
    case MS_J_STR:
        return r->text.n == 0;
    case MS_J_NUM:
        return ms_jread_f64(r, &x) && x == 0;
    case MS_J_ARR:
        return ms_jread_next(r) == MS_J_ARR_END;
    case MS_J_OBJ:
        return ms_jread_next(r) == MS_J_OBJ_END;
    default:
        return tok != MS_J_TRUE;
    }
}

/* Applies the official rule: the layout is "groups" if there is an entry named 0 whose value Python
 * treats as true. */
static enum ms_rc note_layout(void *stacks, struct ms_jread *r, struct ms_buf *scratch,
                              struct ms_err *err)
{
    struct probe_stacks *s = stacks;
    const bool first = ms_str_is(r->text, "0");
    enum ms_jtok tok = ms_jread_next(r);
    struct ms_jread value = *r;
    (void)scratch;
    if (first)
        s->layout = is_false(&value, tok) ? LAYOUT_NODES : LAYOUT_GROUPS;
    return ms_jread_skip(r, tok) == MS_J_ERR ? ms_jread_fail(r, err) : MS_OK;
}

static enum ms_rc find_layout(struct probe_stacks *s, struct ms_jread r, struct ms_err *err)
{
    if ((s->flags & PROBE_STACK_OFFICIAL) == 0)
        return MS_OK;
    s->layout = LAYOUT_NODES;
    return ms_jread_members(&r, "stacks", note_layout, s, err);
}

static enum ms_rc read_stacks(struct probe_stacks *s, const char *path, const struct ms_file *text,
                              unsigned flags, struct ms_err *err)
{
    struct ms_jread r;
    s->arena = ms_arena_new(SIZE_MAX);
    s->flags = flags;
    ms_jread_init(&r, text->p, text->n, flags & PROBE_STACK_TOLERANT ? MS_JREAD_TOLERANT : 0);
    enum ms_rc rc = s->arena != NULL ? find_layout(s, r, err) : ms_no_memory(err);
    if (rc == MS_OK)
        rc = ms_jread_members(&r, "stacks", take_entry, s, err);
    s->truncated = r.truncated;
    if (rc == MS_OK)
        return MS_OK;
    probe_stacks_close(s);
    return ms_err_wrap(err, "%s", path), rc;
}

enum ms_rc probe_stacks_parse(struct probe_stacks *s, const char *name, struct ms_str text,
                              unsigned flags, struct ms_err *err)
{
    *s = (struct probe_stacks){.file = {"", 0}};
    const struct ms_file all = {text.p, text.n};
    return read_stacks(s, name, &all, flags, err);
}

enum ms_rc probe_stacks_open(struct probe_stacks *s, const char *path, unsigned flags,
                             struct ms_err *err)
{
    *s = (struct probe_stacks){0};
    MS_TRY(ms_file_map(&s->file, path, MS_JSON_MAX, err));
    return read_stacks(s, path, &s->file, flags, err);
}

void probe_stacks_close(struct probe_stacks *s)
{
    ms_map_free(&s->names);
    ms_vec_free(&s->stack_of);
    ms_vec_free(&s->frames);
    ms_arena_free(s->arena);
    ms_file_unmap(&s->file);
    *s = (struct probe_stacks){.file = {"", 0}};
}

struct ms_str probe_stack_frames(const struct probe_stacks *s, struct ms_str node)
{
    uint32_t id = ms_map_get(&s->names, node);
    return id != MS_MAP_NONE ? s->frames.p[s->stack_of.p[id]] : MS_STR_NONE;
}

bool probe_stack_next(struct ms_jread *r, struct ms_buf *scratch, struct ms_str *frame)
{
    if (r->depth == 0 && ms_jread_next(r) != MS_J_ARR)
        return false;
    return ms_jread_next(r) == MS_J_STR && ms_jread_text(r, scratch, frame, NULL) == MS_OK;
}

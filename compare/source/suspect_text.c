/* SPDX-License-Identifier: MIT
 *
 * suspect_text: names of roles and rules, the message with a suspect's evidence, and the
 * module around it.
 */
#include "compare/observe/node_facts.h"
#include "compare/source/suspect.h"
#include "compare/source/suspect_kinds.h"

#include "probe/base/assert.h"

#include <math.h>

enum { SHOWN_MODULES = 10 };

const char *const cmp_role_names[CMP_ROLES] = {"clean", "introduces", "amplifies", "propagates",
                                               "absorbs"};
const char *const cmp_why_names[CMP_WHYS] = {
    "flag",      "differs", "value",         "norm",    "precedent", "rounded",
    "parameter", "input",   "wiring",        "missing", "extra",     "moved",
    "shape",     "dtype",   "requires_grad", "scalar",  "update",    "branch"};

static const struct ms_message_kind kinds[CMP_WHYS] = {
#define ROW(name, args) {#name, args},
    CMP_SUSPECT_KINDS(ROW)
#undef ROW
};

/* Returns the main explanation for the explained part of the difference: "inputs", "noise", or the
 * low type to which values are rounded. */
static const char *excuse_of(const struct observe__node *n)
{
    if (n->in > n->floor)
        return "inputs";
    if (n->floor > n->tiny)
        return "noise";
    switch ((enum ms_dtype)n->coarse) {
    case MS_DT_BF16:
        return "bf16";
    case MS_DT_F16:
        return "fp16";
    case MS_DT_NONE:
        return "fp32";
    default:
        return "fp8";
    }
}

static struct ms_str path_of(const struct observe__part *p, uint32_t leaf)
{
    if (leaf == OBSERVE__NONE || p->leaves.p[leaf].path >= p->paths.n)
        return MS_STR("an input");
    return p->paths.p[p->leaves.p[leaf].path];
}

static void say_value(struct ms_message *m, const struct observe__part *p,
                      const struct observe__node *n, const struct cmp_suspect *s)
{
    ms_message_i64(m, "measured", p->mode == PROBE_MODE_TENSOR);
    ms_message_f64(m, "out", s->out);
    ms_message_f64(m, "factor", s->factor);
    ms_message_str(m, "excuse", ms_str_of(excuse_of(n)));
    ms_message_f64(m, "in", s->in);
    ms_message_f64(m, "floor", s->floor);
    if (s->may_read_other_order)
        ms_message_i64(m, "order", 1);
}

/* Adds the node whose output shows that values have another order. */
static void say_reader(struct ms_message *m, const struct observe__part *p,
                       const struct source__raw *r)
{
    if (r->reader == OBSERVE__NONE)
        return;
    ms_assert(r->reader < p->nodes.n);
    ms_message_str(m, "reader", observe__name(p, 1, p->nodes.p[r->reader].id[1]));
}

/* Adds the arguments for a parameter, or for an input that no recorded operator made. */
static void say_root(struct ms_message *m, const struct observe__part *p,
                     const struct source__raw *r, const struct cmp_suspect *s)
{
    ms_message_str(m, "path", path_of(p, r->leaf));
    say_reader(m, p, r);
    if (r->reader != OBSERVE__NONE)
        ms_message_str(m, "state", r->is_other ? MS_STR("maybe") : MS_STR("order"));
    else if (p->leaves.p[r->leaf].flags & OBSERVE__FLAGGED)
        ms_message_str(m, "state", MS_STR("flag"));
    else if (p->mode == PROBE_MODE_MD5)
        ms_message_str(m, "state", MS_STR("md5"));
    ms_message_f64(m, "in", s->in);
    ms_message_f64(m, "factor", s->factor);
}

/* Adds the node that wrote a tensor on a side; absent when no recorded node did. */
static void say_maker(struct ms_message *m, const char *name, const struct observe__part *p,
                      unsigned side, uint32_t node)
{
    if (node != OBSERVE__NONE && p->nodes.p[node].id[side] != OBSERVE__NONE)
        ms_message_str(m, name, observe__name(p, side, p->nodes.p[node].id[side]));
}

/* Adds the difference behind the region of a node that one side alone has, if it is known. */
static void say_border(struct ms_message *m, const struct observe__part *p,
                       const struct source__raw *r)
{
    uint32_t region = p->nodes.p[r->node].region;
    if (r->reader == OBSERVE__NONE && region != OBSERVE__NONE && p->nodes.p[region].border > 0)
        ms_message_f64(m, "e", p->nodes.p[region].border);
}

static void say_structure(struct ms_message *m, const struct observe__part *p,
                          const struct source__raw *r)
{
    if (source__is_reverted_cast(r)) {
        ms_message_str(m, "effect", MS_STR("digits"));
        return;
    }
    if (r->is_parting) {
        ms_message_str(m, "effect", MS_STR("parts"));
        return;
    }
    say_reader(m, p, r);
    if (r->why == CMP_WHY_EXTRA)
        say_maker(m, "instead", p, 0, r->node);
    if (r->leaf == OBSERVE__NONE) {
        say_border(m, p, r);
        return;
    }
    const struct observe__leaf *l = &p->leaves.p[r->leaf];
    ms_message_str(m, "path", path_of(p, r->leaf));
    say_maker(m, "maker", p, 1, l->maker[1]);
    ms_message_f64(m, "e", l->e);
}

static void say_wiring(struct ms_message *m, const struct observe__part *p,
                       const struct source__raw *r)
{
    const struct observe__leaf *l = &p->leaves.p[r->leaf];
    ms_message_str(m, "path", path_of(p, r->leaf));
    say_maker(m, "maker", p, 1, l->maker[1]);
    say_maker(m, "golden_maker", p, 0, l->maker[0]);
    if (l->flags & OBSERVE__MEASURED)
        ms_message_f64(m, "e", l->e);
}

static void say_attribute(struct ms_message *m, const struct observe__part *p,
                          const struct source__raw *r, const struct cmp_suspect *s)
{
    static const char *const side[] = {"there", "here"};
    const struct observe__leaf *l = &p->leaves.p[r->leaf];
    ms_message_str(m, "path", path_of(p, r->leaf));
    for (unsigned i = 0; i < 2 && l->texts != OBSERVE__NONE; i++) {
        if (p->texts.p[l->texts].text[i].p != NULL)
            ms_message_str(m, side[i], p->texts.p[l->texts].text[i]);
    }
    if (r->cls != SOURCE__NUM || isnan(s->out)) /* outputs of other shapes have no difference */
        return;
    ms_message_f64(m, "out", s->out);
    ms_message_f64(m, "in", s->in);
}

static void fill_message(struct ms_message *m, const struct observe__part *p,
                         const struct source__raw *r, const struct cmp_suspect *s)
{
    const struct observe__node *n = &p->nodes.p[r->node];
    ms_message_begin(m, &kinds[r->why]);
    ms_message_i64(m, "later", (int64_t)s->later);
    if (s->more != 0)
        ms_message_i64(m, "more", (int64_t)s->more);
    switch ((enum cmp_why)r->why) {
    case CMP_WHY_FLAG:
        return ms_message_i64(m, "exact", n->in == 0);
    case CMP_WHY_DIFFERS:
    case CMP_WHY_BRANCH:
        return;
    case CMP_WHY_VALUE:
        return say_value(m, p, n, s);
    case CMP_WHY_NORM:
        ms_message_f64(m, "norm", n->out_norm);
        ms_message_f64(m, "factor", s->factor);
        ms_message_f64(m, "out", s->out);
        return ms_message_f64(m, "in", s->in);
    case CMP_WHY_PRECEDENT:
        return ms_message_f64(m, "out", s->out);
    case CMP_WHY_ROUNDED:
        ms_message_f64(m, "out", s->out);
        return ms_message_f64(m, "in", s->in);
    case CMP_WHY_PARAMETER:
    case CMP_WHY_INPUT:
        return say_root(m, p, r, s);
    case CMP_WHY_WIRING:
        return say_wiring(m, p, r);
    case CMP_WHY_MISSING:
    case CMP_WHY_EXTRA:
    case CMP_WHY_MOVED:
        return say_structure(m, p, r);
    case CMP_WHY_UPDATE:
        return ms_message_f64(m, "e", s->in);
    default:
        return say_attribute(m, p, r, s);
    }
}

/* ---- the module around a node -------------------------------------------- */

/* Finds the parent of a node in construct.json by text search: "NODE": "PARENT". */
static struct ms_str parent_in(struct ms_str json, struct ms_str node, struct ms_buf *key)
{
    ms_buf_clear(key);
    ms_buf_printf(key, "\"%.*s\": \"", MS_STR_ARG(node));
    int64_t at = key->bad == MS_OK ? ms_str_find_str(json, ms_buf_slice(key)) : -1;
    if (at < 0)
        return MS_STR("");
    struct ms_str rest = ms_str_sub(json, (uint32_t)at + (uint32_t)key->n, json.n);
    int64_t end = ms_str_find(rest, '"');
    return end > 0 ? ms_str_sub(rest, 0, (uint32_t)end) : MS_STR("");
}

/* Returns the path of a module: layers.0.attn for Module.layers.0.attn.SelfAttention.forward.0. */
static struct ms_str path_of_module(struct ms_str name)
{
    struct ms_str path = probe_name_parse(name).path;
    return probe_name_parts(path) > 1 ? probe_name_cut(path, 1) : path;
}

enum ms_rc source__find_module(const struct observe__part *p, unsigned side, struct ms_str node,
                               struct ms_arena *arena, struct ms_str *out, struct ms_err *err)
{
    struct ms_buf b = {.max = 1 << 20};
    struct ms_file file;
    ms_buf_str(&b, ms_path_dir(p->path[side]));
    ms_buf_puts(&b, "/construct.json");
    *out = MS_STR("");
    enum ms_rc rc = ms_buf_check(&b, err);
    if (rc == MS_OK && ms_file_map(&file, ms_buf_z(&b), UINT32_MAX, NULL) == MS_OK) {
        struct ms_str json = {file.p, (uint32_t)file.n};
        *out = ms_arena_str(arena, path_of_module(parent_in(json, node, &b)));
        rc = out->p != NULL ? MS_OK : ms_arena_fail(arena, err);
        ms_file_unmap(&file);
    }
    ms_buf_free(&b);
    return rc;
}

static enum ms_rc keep_text(struct cmp_source *s, struct ms_str text, struct ms_str *out,
                            struct ms_err *err)
{
    *out = ms_arena_str(s->arena, text);
    return out->p != NULL ? MS_OK : ms_arena_fail(s->arena, err);
}

enum ms_rc source__keep_message(struct cmp_source *s, const struct ms_message *m,
                                struct ms_stored_message *out, struct ms_err *err)
{
    ms_assert(ms_message_is_whole(m));
    *out = ms_message_stored(m);
    return keep_text(s, out->args, &out->args, err);
}

enum ms_rc source__describe(struct cmp_source *s, const struct source__raw *raw,
                            struct cmp_suspect *out, struct ms_err *err)
{
    const struct observe__part *p = s->parts.p[raw->part];
    struct ms_buf b = {.max = 1 << 16};
    struct ms_message m;
    ms_assert(raw->why < CMP_WHYS);
    fill_message(&m, p, raw, out);
    enum ms_rc rc = source__keep_message(s, &m, &out->message, err);
    struct ms_str pattern;
    if (rc == MS_OK && source__find_pattern(p, raw, out->place, &b)) {
        rc = ms_buf_check(&b, err);
        if (rc == MS_OK)
            rc = keep_text(s, ms_buf_slice(&b), &pattern, err);
        out->pattern = rc == MS_OK ? pattern.p : NULL;
    }
    ms_buf_free(&b);
    bool shown = out->place <= SHOWN_MODULES;
    unsigned side = out->target.p != NULL && !(raw->is_parting && out->golden.p != NULL);
    struct ms_str name = side ? out->target : out->golden;
    if (rc == MS_OK && shown && p->nodes.p[raw->node].kind == PROBE_NODE_API)
        rc = source__find_module(p, side, name, s->arena, &out->module, err);
    return rc;
}

/* SPDX-License-Identifier: MIT
 *
 * source_text: one sentence of evidence.  In, out, floor and factor are always told:
 * the four numbers settle every doubt.
 */
#include "compare/source_int.h"

#include "probe/base/human.h"

#include <math.h>

enum { SHOWN_MODULES = 5 };

static void put_e(struct ms_buf *b, double e)
{
    if (e == 0)
        ms_buf_puts(b, "0");
    else if (e >= 0.01 && e < 100)
        ms_buf_printf(b, "%.2g", e);
    else
        ms_buf_printf(b, "%.1e", e);
}

static void put_factor(struct ms_buf *b, double f)
{
    if (f < 10)
        ms_buf_printf(b, "%.1f", f);
    else if (f < 1e6)
        ms_buf_printf(
            b, "%.0f",
            f < 100 ? f : round(f / pow(10, floor(log10(f)) - 1)) * pow(10, floor(log10(f)) - 1));
    else
        ms_buf_printf(b, "%.0e", f);
}

static void put_inputs(struct ms_buf *b, double in)
{
    ms_buf_puts(b, "inputs ");
    if (in == 0) {
        ms_buf_puts(b, "agree exactly");
        return;
    }
    ms_buf_puts(b, "agree to ");
    put_e(b, in);
}

/* What explains as much of the difference as is explained. */
static const char *excuse_of(const struct source__node *n)
{
    if (n->in > n->floor)
        return "its inputs explain";
    if (n->floor > n->tiny)
        return "the noise of this pair explains";
    switch ((enum ms_dtype)n->coarse) {
    case MS_DT_BF16:
        return "bf16 rounding explains";
    case MS_DT_F16:
        return "fp16 rounding explains";
    case MS_DT_NONE:
        return "fp32 rounding explains";
    default:
        return "fp8 rounding explains";
    }
}

static void tell_value(struct ms_buf *b, const struct source__part *p, const struct source__node *n,
                       const struct cmp_suspect *s)
{
    bool measured = p->mode == PROBE_MODE_TENSOR;
    ms_buf_puts(b, measured ? "introduces relL2 " : "introduces a relative difference of ");
    put_e(b, s->out);
    ms_buf_puts(b, ", ");
    put_factor(b, s->factor);
    ms_buf_printf(b, " × what %s; ", excuse_of(n));
    put_inputs(b, s->in);
    ms_buf_puts(b, ", the floor is ");
    put_e(b, s->floor);
}

static void tell_norm(struct ms_buf *b, const struct cmp_suspect *s, const struct source__node *n)
{
    ms_buf_puts(b, "introduces a change of the output's norm by ");
    put_e(b, n->out_norm);
    ms_buf_puts(b, ", ");
    put_factor(b, s->factor);
    ms_buf_puts(b, " × what this pair shows elsewhere; single elements differ by ");
    put_e(b, s->out);
    ms_buf_puts(b, ", which hides it; ");
    put_inputs(b, s->in);
}

static struct ms_str path_of(const struct source__part *p, uint32_t leaf)
{
    if (leaf == SOURCE__NONE || p->leaves.p[leaf].path >= p->paths.n)
        return MS_STR("an input");
    return p->paths.p[p->leaves.p[leaf].path];
}

static void tell_root(struct ms_buf *b, const struct source__part *p, const struct source__raw *r,
                      const struct cmp_suspect *s)
{
    const struct source__leaf *l = &p->leaves.p[r->leaf];
    bool parameter = r->why == CMP_WHY_PARAMETER;
    ms_buf_printf(b, "%.*s", MS_STR_ARG(path_of(p, r->leaf)));
    ms_buf_puts(b, parameter ? " is a parameter and " : " is made by no recorded operator and ");
    if (l->flags & SOURCE__FLAGGED) {
        ms_buf_puts(b, "has NaN or inf on one side alone");
    } else if (p->mode == PROBE_MODE_MD5) {
        ms_buf_puts(b, "has another checksum");
    } else {
        ms_buf_puts(b, "differs by ");
        put_e(b, s->in);
        ms_buf_puts(b, ", ");
        put_factor(b, s->factor);
        ms_buf_puts(b, parameter ? " × what other parameters do" : " × the noise");
    }
    if (!parameter)
        ms_buf_puts(b, "; nothing before it differs");
}

static void put_maker(struct ms_buf *b, const struct source__part *p, unsigned side, uint32_t node)
{
    if (node == SOURCE__NONE)
        ms_buf_puts(b, "no recorded operator");
    else
        ms_buf_str(b, source__name(p, side, p->nodes.p[node].id[side]));
}

static void tell_wiring(struct ms_buf *b, const struct source__part *p, const struct source__raw *r)
{
    const struct source__leaf *l = &p->leaves.p[r->leaf];
    ms_buf_str(b, path_of(p, r->leaf));
    ms_buf_puts(b, " comes from ");
    put_maker(b, p, 1, l->maker[1]);
    ms_buf_puts(b, " here and from ");
    put_maker(b, p, 0, l->maker[0]);
    ms_buf_puts(b, " on the golden side, and differs by ");
    put_e(b, l->e);
}

static void tell_structure(struct ms_buf *b, const struct source__part *p,
                           const struct source__raw *r)
{
    static const char *const words[] = {"is not there in the target",
                                        "is there in the target alone",
                                        "runs at another place than on the golden side"};
    ms_buf_puts(b, words[r->why - CMP_WHY_MISSING]);
    if (r->why == CMP_WHY_EXTRA && r->cls == SOURCE__HARD) {
        ms_buf_puts(b, "; the cast behind it takes it back, so all it does is to drop digits");
        return;
    }
    if (r->leaf == SOURCE__NONE) {
        ms_buf_puts(b, ", without effect on values");
        return;
    }
    const struct source__leaf *l = &p->leaves.p[r->leaf];
    ms_buf_puts(b, "; behind it ");
    ms_buf_str(b, path_of(p, r->leaf));
    ms_buf_puts(b, " comes from ");
    put_maker(b, p, 1, l->maker[1]);
    ms_buf_puts(b, " and differs by ");
    put_e(b, l->e);
}

static void put_effect(struct ms_buf *b, const struct source__raw *r, const struct cmp_suspect *s)
{
    if (r->cls != SOURCE__NUM) {
        ms_buf_puts(b, "; no effect on values is seen");
        return;
    }
    ms_buf_puts(b, "; its output differs by ");
    put_e(b, s->out);
    ms_buf_puts(b, ", ");
    put_inputs(b, s->in);
}

static void put_said(struct ms_buf *b, const struct source__part *p, const struct source__leaf *l)
{
    for (unsigned i = 2; i-- > 0;) {
        struct ms_str text = l->said != SOURCE__NONE ? p->said.p[l->said].text[i] : MS_STR_NONE;
        if (text.p != NULL)
            ms_buf_str(b, text);
        else
            ms_buf_puts(b, "absent");
        if (i == 1)
            ms_buf_puts(b, " here and ");
    }
    ms_buf_puts(b, " on the golden side");
}

static void tell_attr(struct ms_buf *b, const struct source__part *p, const struct source__raw *r,
                      const struct cmp_suspect *s)
{
    static const char *const words[] = {
        " has another shape: ", " has another type: ", " has another requires_grad: ", " is "};
    const struct source__leaf *l = &p->leaves.p[r->leaf];
    ms_buf_str(b, path_of(p, r->leaf));
    ms_buf_puts(b, words[r->why - CMP_WHY_SHAPE]);
    put_said(b, p, l);
    put_effect(b, r, s);
}

static void tell_flag(struct ms_buf *b, const struct source__part *p, const struct source__node *n)
{
    (void)p;
    ms_buf_puts(b, "introduces NaN or inf: one side's output has it and no input of either");
    if (n->in == 0)
        ms_buf_puts(b, "; its inputs agree exactly");
}

static void tell_rounded(struct ms_buf *b, const struct cmp_suspect *s)
{
    ms_buf_puts(b, "drops digits: what it reads and the golden output have more of them than its "
                   "output; that differs by ");
    put_e(b, s->out);
    ms_buf_puts(b, ", ");
    put_inputs(b, s->in);
}

static void tell_precedent(struct ms_buf *b, const struct cmp_suspect *s)
{
    ms_buf_puts(b, "introduces the first difference at all, ");
    put_e(b, s->out);
    ms_buf_puts(b, "; everything before it agrees exactly, and of equal values this operator makes "
                   "equal ones");
}

static void put_later(struct ms_buf *b, size_t later)
{
    char text[MS_HUMAN_MAX];
    if (later == 1)
        ms_buf_puts(b, "; 1 later node only propagates it");
    else if (later != 0)
        ms_buf_printf(b, "; %s later nodes only propagate it", ms_human_count(text, later));
}

static void tell(struct ms_buf *b, const struct source__part *p, const struct source__raw *r,
                 const struct cmp_suspect *s)
{
    const struct source__node *n = &p->nodes.p[r->node];
    switch ((enum cmp_why)r->why) {
    case CMP_WHY_FLAG:
        return tell_flag(b, p, n);
    case CMP_WHY_DIFFERS:
        return ms_buf_puts(b, "differs first: its inputs have equal checksums, its output has not");
    case CMP_WHY_VALUE:
        return tell_value(b, p, n, s);
    case CMP_WHY_NORM:
        return tell_norm(b, s, n);
    case CMP_WHY_PRECEDENT:
        return tell_precedent(b, s);
    case CMP_WHY_ROUNDED:
        return tell_rounded(b, s);
    case CMP_WHY_PARAMETER:
    case CMP_WHY_INPUT:
        return tell_root(b, p, r, s);
    case CMP_WHY_WIRING:
        return tell_wiring(b, p, r);
    case CMP_WHY_MISSING:
    case CMP_WHY_EXTRA:
    case CMP_WHY_MOVED:
        return tell_structure(b, p, r);
    default:
        return tell_attr(b, p, r, s);
    }
}

/* ---- the module around it --------------------------------------------------------- */

/* The parent of a node in construct.json, found as text: "NODE": "PARENT". */
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

/* Module.layers.0.attn.SelfAttention.forward.0: layers.0.attn */
static struct ms_str path_of_module(struct ms_str name)
{
    struct ms_str path = probe_name_parse(name).path;
    int64_t dot = ms_str_rfind(path, '.');
    return dot > 0 ? ms_str_sub(path, 0, (uint32_t)dot) : path;
}

enum ms_rc source__find_module(const struct source__part *p, unsigned side, struct ms_str node,
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

static enum ms_rc keep_text(struct cmp_source *s, const struct ms_buf *b, struct ms_str *out,
                            struct ms_err *err)
{
    MS_TRY(ms_buf_check(b, err));
    *out = ms_arena_str(s->arena, ms_buf_slice(b));
    return out->p != NULL ? MS_OK : ms_arena_fail(s->arena, err);
}

enum ms_rc source__tell(struct cmp_source *s, const struct source__raw *raw,
                        struct cmp_suspect *out, struct ms_err *err)
{
    const struct source__part *p = s->parts.p[raw->part];
    struct ms_buf b = {.max = 1 << 16};
    tell(&b, p, raw, out);
    put_later(&b, out->later);
    enum ms_rc rc = keep_text(s, &b, &out->text, err);
    ms_buf_clear(&b);
    struct ms_str pattern;
    if (rc == MS_OK && source__find_pattern(p, raw, out->place, &b)) {
        rc = keep_text(s, &b, &pattern, err);
        out->pattern = rc == MS_OK ? pattern.p : NULL;
    }
    ms_buf_free(&b);
    bool shown = out->place <= SHOWN_MODULES;
    struct ms_str name = out->target.p != NULL ? out->target : out->golden;
    if (rc == MS_OK && shown && p->nodes.p[raw->node].kind == PROBE_NODE_API)
        rc = source__find_module(p, out->target.p != NULL, name, s->arena, &out->module, err);
    return rc;
}

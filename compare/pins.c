/* SPDX-License-Identifier: MIT
 *
 * pins: pairs that the user settles and the alignment has to respect.
 *
 *     Functional.silu.3.forward: Torch.mul.7.forward        nodes
 *     Mint.split.0.forward.output.1: Torch.chunk.0.forward.output.2
 *     Functional.cast.4.forward: N/A                        has no partner
 *
 * That is the grammar of a data mapping, so a mapping that was written can be
 * edited and given back.  A row with a partner pins its node as well, to the first
 * node that is named with one of its rows.  Names that are nowhere are told with
 * the nearest there is, and left out.
 */
#include "compare/match.h"
#include "compare/names.h"

enum { SHOWN = 10 };

struct reader {
    struct cmp *c;
    const char *path;
    struct cmp__pins *out;
    struct cmp__pairs file;
    struct cmp__names names[2]; /* golden, target */
    bool *pinned;               /* by target node */
    size_t unknown;
};

static enum ms_rc report(struct reader *r, bool target, struct ms_str name, struct ms_err *err)
{
    const char *file = r->path, *whose = target ? "target" : "golden side";
    char *z = ms_str_dup(name);
    if (z == NULL)
        return ms_no_memory(err);
    const char *near = cmp__names_near(&r->names[target], z);
    enum ms_rc rc;
    if (cmp__names_find(&r->names[!target], name) != NULL)
        rc = cmp__problem(r->c, err, "%s: '%s' is a name of the %s; write target: golden", file, z,
                          target ? "golden side" : "target");
    else if (near != NULL)
        rc = cmp__problem(r->c, err, "%s: the %s has no '%s'; did you mean '%s'?", file, whose, z,
                          near);
    else
        rc = cmp__problem(r->c, err, "%s: the %s has no '%s'", file, whose, z);
    ms_free(z);
    return rc;
}

static enum ms_rc find(struct reader *r, bool target, struct ms_str name,
                       const struct cmp__named **found, struct ms_err *err)
{
    *found = cmp__names_find(&r->names[target], name);
    if (*found != NULL)
        return MS_OK;
    return r->unknown++ < SHOWN ? report(r, target, name, err) : MS_OK;
}

static enum ms_rc pin_node(struct reader *r, uint32_t target, uint32_t golden, struct ms_err *err)
{
    if (r->pinned[target])
        return MS_OK;
    r->pinned[target] = true;
    struct cmp_align_pin *pin = ms_vec_push(&r->out->nodes);
    if (pin == NULL)
        return ms_no_memory(err);
    pin->target = probe_node_name(r->c->t.dump, target);
    pin->golden = golden != MS_MAP_NONE ? probe_node_name(r->c->b.dump, golden) : MS_STR("");
    return MS_OK;
}

static enum ms_rc pin_row(struct reader *r, uint32_t target, uint32_t golden, struct ms_err *err)
{
    struct cmp_align_row *row = ms_vec_push(&r->out->rows);
    if (row == NULL)
        return ms_no_memory(err);
    *row = (struct cmp_align_row){target, golden};
    return MS_OK;
}

static enum ms_rc take_pin(struct reader *r, struct ms_str target, struct ms_str golden,
                           struct ms_err *err)
{
    const struct cmp__named *t, *g = NULL;
    bool alone = golden.n == 0 || ms_str_is(golden, "N/A");
    MS_TRY(find(r, true, target, &t, err));
    if (!alone)
        MS_TRY(find(r, false, golden, &g, err));
    if (t == NULL || (g == NULL && !alone))
        return MS_OK;
    if (g != NULL && (t->row == MS_MAP_NONE) != (g->row == MS_MAP_NONE))
        return cmp__problem(r->c, err, "%s: '%.*s': one is a node and the other a row of one",
                            r->path, MS_STR_ARG(target));
    if (t->row == MS_MAP_NONE)
        return pin_node(r, t->node, g != NULL ? g->node : MS_MAP_NONE, err);
    if (g != NULL)
        MS_TRY(pin_node(r, t->node, g->node, err));
    return pin_row(r, t->row, g != NULL ? g->row : CMP_ALIGN_NONE, err);
}

static enum ms_rc take_pins(struct reader *r, struct ms_err *err)
{
    const struct cmp *c = r->c;
    MS_TRY(cmp__names_list(&r->names[0], c->b.dump, true, err));
    MS_TRY(cmp__names_list(&r->names[1], c->t.dump, true, err));
    r->pinned = ms_calloc(c->t.dump->nodes.n + 1, sizeof *r->pinned);
    if (r->pinned == NULL)
        return ms_no_memory(err);
    for (uint32_t i = 0; i < r->file.keys.keys.n; i++)
        MS_TRY(take_pin(r, ms_map_key(&r->file.keys, i), r->file.values.p[i], err));
    if (r->unknown > SHOWN)
        return cmp__problem(r->c, err, "%s: %zu more names that no dump has", r->path,
                            r->unknown - SHOWN);
    return MS_OK;
}

static void free_reader(struct reader *r)
{
    cmp__pairs_free(&r->file);
    cmp__names_free(&r->names[0]);
    cmp__names_free(&r->names[1]);
    ms_free(r->pinned);
}

enum ms_rc cmp__pins_parse(struct cmp *c, const char *name, struct ms_str text,
                           struct cmp__pins *pins, struct ms_err *err)
{
    struct reader r = {.c = c, .path = name, .out = pins};
    enum ms_rc rc = cmp__pairs_parse(&r.file, name, text, err);
    if (rc == MS_OK)
        rc = take_pins(&r, err);
    free_reader(&r);
    return rc;
}

enum ms_rc cmp__pins_read(struct cmp *c, struct cmp__pins *pins, struct ms_err *err)
{
    struct reader r = {.c = c, .path = c->conf.pins, .out = pins};
    enum ms_rc rc = cmp__pairs_read(&r.file, r.path, err);
    if (rc == MS_OK)
        rc = take_pins(&r, err);
    free_reader(&r);
    return rc;
}

void cmp__pins_free(struct cmp__pins *pins)
{
    ms_vec_free(&pins->nodes);
    ms_vec_free(&pins->rows);
}

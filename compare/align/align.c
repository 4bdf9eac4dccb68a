/* SPDX-License-Identifier: MIT
 *
 * align: runs all steps of the alignment and answers queries about its result.
 */
#include "compare/align/emit.h"
#include "compare/align/module_match.h"
#include "compare/align/segment_match.h"
#include "compare/align/vote.h"
#include "probe/base/assert.h"

const char *const cmp_align_how_names[CMP_ALIGN_HOWS] = {"pinned", "value", "structure", "weak",
                                                         "part",   "entry", "repeat",    "module"};

/* Allocates an array of n indices in the arena and sets each to ALIGN__NONE. */
static enum ms_rc new_index(struct align__ctx *c, size_t n, uint32_t **out, struct ms_err *err)
{
    *out = ms_arena_alloc(c->arena, (n + 1) * sizeof **out);
    if (*out == NULL)
        return ms_arena_fail(c->arena, err);
    memset(*out, 0xff, (n + 1) * sizeof **out);
    return MS_OK;
}

static enum ms_rc allocate_tables(struct cmp_align *al, struct ms_err *err)
{
    struct align__ctx *c = &al->c;
    for (int s = 0; s < 2; s++) {
        MS_TRY(new_index(c, c->side[s].ops.n, &c->op[s], err));
        MS_TRY(new_index(c, c->side[s].modules.n, &c->mod[s], err));
        MS_TRY(new_index(c, c->side[s].modules.n, &c->mod_pair[s], err));
        MS_TRY(new_index(c, c->side[s].modules.n, &c->mod_dp[s], err));
        MS_TRY(new_index(c, c->side[s].dump->nodes.n, &al->op_of[s], err));
        MS_TRY(new_index(c, c->side[s].dump->nodes.n, &al->back_of[s], err));
        MS_TRY(new_index(c, c->side[s].dump->nodes.n, &al->module_of[s], err));
        for (uint32_t i = 0; i < c->side[s].ops.n; i++) {
            const struct align__op *op = &c->side[s].ops.p[i];
            uint32_t back = op->back;
            if (back == ALIGN__NONE && op->twin != ALIGN__NONE)
                back = c->side[s].again.p[op->twin].back;
            al->op_of[s][op->node] = i;
            if (back != ALIGN__NONE)
                al->back_of[s][back] = i;
        }
        for (uint32_t i = 0; i < c->side[s].modules.n; i++) {
            if (c->side[s].modules.p[i].node != ALIGN__NONE)
                al->module_of[s][c->side[s].modules.p[i].node] = i;
        }
    }
    MS_TRY(new_index(c, c->side[0].values.n, &c->vmap, err));
    return new_index(c, c->side[1].values.n, &c->vmap_back, err);
}

/* Adds an anchor for each pinned pair of forward operators. HEAVY outweighs all other anchors of a
 * chain together. */
static enum ms_rc pin_anchors(struct cmp_align *al, const struct cmp_align_pin *pins, size_t npins,
                              struct ms_err *err)
{
    ms_assert(pins != NULL || npins == 0);
    enum { HEAVY = 1000000 };
    for (size_t i = 0; i < npins; i++) {
        uint32_t t = probe_node_find(al->c.side[1].dump, pins[i].target);
        uint32_t g = probe_node_find(al->c.side[0].dump, pins[i].golden);
        if (t == MS_MAP_NONE || g == MS_MAP_NONE || al->op_of[1][t] == ALIGN__NONE ||
            al->op_of[0][g] == ALIGN__NONE)
            continue;
        struct align__link *l = ms_vec_push(&al->c.anchors);
        if (l == NULL)
            return ms_no_memory(err);
        *l = (struct align__link){al->op_of[0][g], al->op_of[1][t], HEAVY, 0};
    }
    return MS_OK;
}

/* Framework of a dump. A dump that does not name its framework counts as PyTorch, as in the
 * official tool. */
static enum probe_framework framework_of(const struct probe_dump *d)
{
    return d->framework == PROBE_FW_UNKNOWN ? PROBE_FW_PYTORCH : d->framework;
}

static enum ms_rc find_pairs(struct cmp_align *al, const struct cmp_align_pin *pins, size_t npins,
                             struct ms_err *err)
{
    ms_assert(al->c.op[0] != NULL && al->c.op[1] != NULL);
    struct align__ctx *c = &al->c;
    MS_TRY(align__words_read(c, err));
    MS_TRY(align__find_anchors(c, err));
    MS_TRY(pin_anchors(al, pins, npins, err));
    MS_TRY(align__match_modules(c, err));
    al->anchors = c->anchors.n;
    for (c->round = 0; c->round < ALIGN__ROUNDS; c->round++) {
        MS_TRY(align__match_segments(c, err));
        align__settle_tails(c);
        MS_TRY(align__vote_modules(c, err));
    }
    align__prune_pairs(c);
    if (framework_of(c->side[0].dump) == framework_of(c->side[1].dump))
        MS_TRY(align__pair_same_names(al, err));
    MS_TRY(align__vote_modules(c, err));
    MS_TRY(align__match_loose_modules(c, err));
    MS_TRY(align__find_members(al, err));
    return align__emit_pairs(al, pins, npins, err);
}

/* Arguments of read_one. Two threads read the sides at the same time, so each side numbers names
 * and shapes for itself; align__side_renumber then translates the target's numbers into the golden
 * side's. */
struct reading {
    struct align__side *side;
    const struct cmp_align_input *in[2];
    struct align__names names[2];
    struct align__dims dims[2];
};

static enum ms_rc read_side(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    struct reading *r = ctx;
    (void)worker;
    return align__side_read(&r->side[item], r->in[item], &r->names[item], &r->dims[item], err);
}

static enum ms_rc read_sides(struct align__ctx *c, const struct cmp_align_input *golden,
                             const struct cmp_align_input *target, struct ms_err *err)
{
    struct reading r = {.side = c->side, .in = {golden, target}};
    enum ms_rc rc = ms_pool_run(c->pool, 2, read_side, &r, err);
    c->names = r.names[0];
    c->dims = r.dims[0];
    if (rc == MS_OK)
        rc = align__side_renumber(&c->side[1], &r.names[1], &r.dims[1], &c->names, &c->dims, err);
    align__names_free(&r.names[1]);
    align__dims_free(&r.dims[1]);
    return rc;
}

enum ms_rc cmp_align_new(struct cmp_align **out, const struct cmp_align_input *target,
                         const struct cmp_align_input *golden, const struct cmp_align_pin *pins,
                         size_t npins, struct ms_pool *pool, struct ms_err *err)
{
    ms_assert(target != NULL && golden != NULL && (pins != NULL || npins == 0));
    struct cmp_align *al = ms_calloc(1, sizeof *al);
    *out = NULL;
    if (al == NULL)
        return ms_no_memory(err);
    al->c.arena = ms_arena_new(SIZE_MAX);
    al->c.pool = pool;
    enum ms_rc rc = al->c.arena != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        rc = read_sides(&al->c, golden, target, err);
    if (rc == MS_OK)
        rc = allocate_tables(al, err);
    if (rc == MS_OK)
        rc = find_pairs(al, pins, npins, err);
    if (rc == MS_OK)
        *out = al;
    else
        cmp_align_free(al);
    return rc;
}

void cmp_align_free(struct cmp_align *al)
{
    if (al == NULL)
        return;
    align__side_free(&al->c.side[0]);
    align__side_free(&al->c.side[1]);
    align__names_free(&al->c.names);
    align__dims_free(&al->c.dims);
    ms_vec_free(&al->c.anchors);
    ms_vec_free(&al->c.parts);
    ms_vec_free(&al->pairs);
    ms_vec_free(&al->list);
    ms_arena_free(al->c.arena);
    ms_free(al);
}

const struct cmp_align_pair *cmp_align_pairs(const struct cmp_align *al, size_t *n)
{
    *n = al->pairs.n;
    return al->pairs.p;
}

size_t cmp_align_of(const struct cmp_align *al, uint32_t target,
                    const struct cmp_align_pair **pairs)
{
    ms_assert(target < al->c.side[1].dump->nodes.n);
    ms_assert(al->first_pair[target] <= al->first_pair[target + 1]);
    size_t first = al->first_pair[target];
    *pairs = al->pairs.p + first;
    return al->first_pair[target + 1] - first;
}

uint32_t cmp_align_of_golden(const struct cmp_align *al, uint32_t golden)
{
    ms_assert(golden < al->c.side[0].dump->nodes.n);
    return al->of_golden[golden];
}

size_t cmp_align_members(const struct cmp_align *al, const struct cmp_align_pair *pair, bool golden,
                         const uint32_t **nodes)
{
    int side = golden ? 0 : 1;
    uint32_t op = al->op_of[side][golden ? pair->golden : pair->target];
    *nodes = NULL;
    if (op == ALIGN__NONE)
        return 0;
    ms_assert(al->members[side][op].first + al->members[side][op].n <= al->list.n);
    *nodes = al->list.p + al->members[side][op].first;
    return al->members[side][op].n;
}

struct cmp_align_stats cmp_align_stats(const struct cmp_align *al)
{
    struct cmp_align_stats s = {.by_value = al->c.by_value,
                                .noise = al->c.sigma,
                                .ops = {al->c.side[0].ops.n, al->c.side[1].ops.n},
                                .pairs = al->pairs.n,
                                .anchors = al->anchors,
                                .cells = al->c.cells};
    for (size_t i = 0; i < al->c.names.family.n; i++)
        s.unknown_names += al->c.names.family.p[i] == ALIGN__FAM_UNKNOWN;
    return s;
}

static bool has_all_records(const struct probe_dump *names, const struct probe_dump *of)
{
    for (uint32_t i = 0; i < of->nodes.n; i++) {
        if (of->nodes.p[i].dir == PROBE_FORWARD &&
            probe_node_find(names, probe_node_name(of, i)) == MS_MAP_NONE)
            return false;
    }
    return true;
}

bool cmp_align_wanted(const struct probe_dump *target, const struct probe_dump *golden)
{
    return framework_of(target) != framework_of(golden) || !has_all_records(golden, target) ||
           !has_all_records(target, golden);
}

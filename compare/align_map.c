/* SPDX-License-Identifier: MIT
 *
 * align_map: the alignment as mapping files that the official tool reads too.
 *
 *     TopLayer:                          a layer mapping: class of the target's module,
 *       network.model: module            then child of it: child of its partner
 *     AttentionCell:
 *       flash_attention_score: core_attention.npu_fusion_attention
 *
 *     Cell.a.B.forward.0.output.0: Module.c.D.forward.0.output.0       a data mapping
 *
 * A layer mapping speaks of classes, so a rename is written only where all modules
 * of the class agree.
 */
#include "compare/align_int.h"

struct rename { /* one line of a layer mapping */
    uint32_t cls;
    struct ms_str mine, theirs;
    bool agreed;
};

struct layers {
    const struct cmp_align *al;
    struct ms_arena *arena;
    struct ms_map classes, keys; /* "class mine" -> list */
    MS_VEC(struct rename) list;
    struct ms_buf text;
};

/* ---- yaml ---------------------------------------------------------------- */

static bool is_plain(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '_' || ch == '.' || ch == '/' || ch == '-';
}

/* Text as a YAML scalar: in quotes when it could be read as anything else. */
static void put_scalar(struct ms_buf *out, struct ms_str s)
{
    bool plain = s.n != 0 && s.p[0] != '-' && s.p[0] != '.' && !(s.p[0] >= '0' && s.p[0] <= '9');
    for (uint32_t i = 0; i < s.n; i++)
        plain &= is_plain(s.p[i]);
    if (plain) {
        ms_buf_str(out, s);
        return;
    }
    ms_buf_putc(out, '"');
    for (uint32_t i = 0; i < s.n; i++) {
        unsigned char ch = (unsigned char)s.p[i];
        if (ch < 0x20)
            ms_buf_printf(out, "\\x%02x", ch);
        else {
            if (ch == '"' || ch == '\\')
                ms_buf_putc(out, '\\');
            ms_buf_putc(out, (char)ch);
        }
    }
    ms_buf_putc(out, '"');
}

/* ---- layers -------------------------------------------------------------- */

/* Path of a module without its class: "model.layers.0". */
static struct ms_str path_of(const struct align__module *m)
{
    struct ms_str path = probe_name_parse(m->name).path;
    int64_t dot = ms_str_rfind(path, '.');
    return ms_str_sub(path, 0, dot < 0 ? 0 : (uint32_t)dot);
}

/* What of path lies under `up`; all of it at the top.  false when it lies elsewhere. */
static bool relative(struct ms_str path, struct ms_str up, struct ms_str *out)
{
    *out = path;
    if (up.n == 0)
        return path.n != 0;
    if (!ms_str_starts(path, up) || path.n <= up.n + 1 || path.p[up.n] != '.')
        return false;
    *out = ms_str_sub(path, up.n + 1, path.n);
    return true;
}

/* The closest module around m that has a partner, or ALIGN__NONE. */
static uint32_t paired_around(const struct align__ctx *c, uint32_t m)
{
    while (m != ALIGN__NONE && c->mod_pair[1][m] == ALIGN__NONE)
        m = c->side[1].modules.p[m].parent;
    return m;
}

static enum ms_rc add_rename(struct layers *l, struct ms_str cls, struct ms_str mine,
                             struct ms_str theirs, struct ms_err *err)
{
    bool added;
    uint32_t class_id = ms_map_put_copy(&l->classes, cls, l->arena, NULL);
    ms_buf_clear(&l->text);
    ms_buf_str(&l->text, cls);
    ms_buf_putc(&l->text, ' ');
    ms_buf_str(&l->text, mine);
    uint32_t id = ms_map_put_copy(&l->keys, ms_buf_slice(&l->text), l->arena, &added);
    if (class_id == MS_MAP_NONE || id == MS_MAP_NONE)
        return ms_no_memory(err);
    if (!added) {
        l->list.p[id].agreed &= ms_str_eq(l->list.p[id].theirs, theirs);
        return MS_OK;
    }
    struct rename *r = ms_vec_push(&l->list);
    if (r == NULL)
        return ms_no_memory(err);
    *r = (struct rename){class_id, ms_arena_str(l->arena, mine), ms_arena_str(l->arena, theirs),
                         true};
    return r->mine.p != NULL && r->theirs.p != NULL ? MS_OK : ms_arena_fail(l->arena, err);
}

/* A child of module `up` of the target (or of the top) is called so on either side. */
static enum ms_rc rename_child(struct layers *l, uint32_t up, struct ms_str mine,
                               struct ms_str theirs, struct ms_err *err)
{
    const struct align__ctx *c = &l->al->c;
    struct ms_str above[2] = {MS_STR_NONE, MS_STR_NONE};
    struct ms_str cls = MS_STR("TopLayer");
    if (up != ALIGN__NONE) {
        above[1] = path_of(&c->side[1].modules.p[up]);
        above[0] = path_of(&c->side[0].modules.p[c->mod_pair[1][up]]);
        cls = c->side[1].modules.p[up].cls;
    }
    if (!relative(mine, above[1], &mine) || !relative(theirs, above[0], &theirs))
        return MS_OK;
    return add_rename(l, cls, mine, theirs, err);
}

static enum ms_rc rename_modules(struct layers *l, struct ms_err *err)
{
    const struct align__ctx *c = &l->al->c;
    for (uint32_t i = 0; i < c->side[1].modules.n; i++) {
        const struct align__module *m = &c->side[1].modules.p[i];
        if (c->mod_pair[1][i] == ALIGN__NONE)
            continue;
        MS_TRY(rename_child(l, paired_around(c, m->parent), path_of(m),
                            path_of(&c->side[0].modules.p[c->mod_pair[1][i]]), err));
    }
    return MS_OK;
}

/* Path of an op as a layer mapping spells it: the module's, then the operator's name. */
static struct ms_str op_path(struct layers *l, int side, const struct align__op *op)
{
    const struct align__ctx *c = &l->al->c;
    struct ms_str api = ms_map_key(&c->names.apis, op->api);
    int64_t dot = ms_str_rfind(api, '.');
    ms_buf_clear(&l->text);
    if (op->parent != ALIGN__NONE) {
        ms_buf_str(&l->text, path_of(&c->side[side].modules.p[op->parent]));
        ms_buf_putc(&l->text, '.');
    }
    ms_buf_str(&l->text, ms_str_sub(api, (uint32_t)(dot + 1), api.n));
    return ms_arena_str(l->arena, ms_buf_slice(&l->text));
}

static enum ms_rc rename_ops(struct layers *l, struct ms_err *err)
{
    const struct align__ctx *c = &l->al->c;
    for (uint32_t b = 0; b < c->side[1].ops.n; b++) {
        if (c->op[1][b] == ALIGN__NONE)
            continue;
        struct ms_str mine = op_path(l, 1, &c->side[1].ops.p[b]);
        struct ms_str theirs = op_path(l, 0, &c->side[0].ops.p[c->op[1][b]]);
        if (mine.p == NULL || theirs.p == NULL)
            return ms_arena_fail(l->arena, err);
        MS_TRY(rename_child(l, paired_around(c, c->side[1].ops.p[b].parent), mine, theirs, err));
    }
    return MS_OK;
}

static void print_layers(const struct layers *l, struct ms_buf *out)
{
    for (uint32_t cls = 0; cls < l->classes.keys.n; cls++) {
        bool headed = false;
        for (size_t i = 0; i < l->list.n; i++) {
            const struct rename *r = &l->list.p[i];
            if (r->cls != cls || !r->agreed || ms_str_eq(r->mine, r->theirs))
                continue;
            if (!headed) {
                put_scalar(out, ms_map_key(&l->classes, cls));
                ms_buf_puts(out, ":\n");
                headed = true;
            }
            ms_buf_puts(out, "  ");
            put_scalar(out, r->mine);
            ms_buf_puts(out, ": ");
            put_scalar(out, r->theirs);
            ms_buf_putc(out, '\n');
        }
    }
}

enum ms_rc cmp_align_write_layers(const struct cmp_align *al, struct ms_buf *out,
                                  struct ms_err *err)
{
    struct layers l = {.al = al, .text = {.max = 1 << 20}};
    l.arena = ms_arena_new(SIZE_MAX);
    enum ms_rc rc = l.arena != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        rc = rename_modules(&l, err);
    if (rc == MS_OK)
        rc = rename_ops(&l, err);
    if (rc == MS_OK)
        print_layers(&l, out);
    ms_map_free(&l.classes);
    ms_map_free(&l.keys);
    ms_vec_free(&l.list);
    ms_buf_free(&l.text);
    ms_arena_free(l.arena);
    return rc == MS_OK ? ms_buf_check(out, err) : rc;
}

/* ---- rows ---------------------------------------------------------------- */

static void print_row(const struct cmp_align *al, const struct cmp_align_row *r,
                      struct ms_buf *scratch, struct ms_buf *out)
{
    if (r->target == CMP_ALIGN_NONE || r->golden == CMP_ALIGN_NONE)
        return;
    for (int side = 1; side >= 0; side--) {
        const struct probe_dump *d = al->c.side[side].dump;
        ms_buf_clear(scratch);
        probe_row_name(d, &d->rows.p[side == 1 ? r->target : r->golden], scratch);
        put_scalar(out, ms_buf_slice(scratch));
        ms_buf_puts(out, side == 1 ? ": " : "\n");
    }
}

enum ms_rc cmp_align_write_rows(const struct cmp_align *al, struct ms_buf *out, struct ms_err *err)
{
    struct ms_buf scratch = {.max = 1 << 20};
    MS_VEC(struct cmp_align_row) rows = {0};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < al->pairs.n && rc == MS_OK; i++) {
        const struct cmp_align_pair *p = &al->pairs.p[i];
        if (p->more)
            continue;
        size_t most = (size_t)al->c.side[0].dump->nodes.p[p->golden].nrows +
                      al->c.side[1].dump->nodes.p[p->target].nrows;
        if (!ms_vec_reserve(&rows, most + 1)) {
            rc = ms_no_memory(err);
            break;
        }
        size_t n = cmp_align_rows(al, p, rows.p);
        for (size_t k = 0; k < n; k++)
            print_row(al, &rows.p[k], &scratch, out);
    }
    ms_vec_free(&rows);
    ms_buf_free(&scratch);
    return rc == MS_OK ? ms_buf_check(out, err) : rc;
}

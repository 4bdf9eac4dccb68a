/* SPDX-License-Identifier: MIT
 *
 * align: which target row belongs to which row of the golden side.
 *
 * Both sides give each row a key; a row's partners are the golden rows with the
 * same key, in file order.  Mappings change the target's keys.  Fuzzy matching
 * walks both sides at once instead and pairs equal keys without ever going back:
 * an index from key to waiting row keeps that linear.
 *
 * The result lists the target's rows in their order.  The repaired mode also
 * lists the golden rows that nobody asked for, behind the op of the golden row
 * before them.
 */
#include "compare/match.h"
#include "compare/rename.h"

enum { NAME_MAX_BYTES = 1 << 20 };

struct aligner {
    struct cmp *c;
    struct cmp__pairs cells; /* -cm FILE */
    struct cmp__api_rules rules;
    struct ms_map keys; /* of the golden side */
    struct ms_arena *arena;
    MS_VEC(uint32_t) first, next; /* rows with a key: the first of each, then the chain */
    MS_VEC(uint32_t) partner_op;  /* golden row -> target op that got it */
    bool renumber_t, renumber_b;
    struct ms_buf name, scratch, original;
};

/* ---- keys ------------------------------------------------------------- */

static bool has_row_map(const struct aligner *a)
{
    return a->c->row_map.arena != NULL;
}

static void put_shape(const struct cmp__side *s, uint32_t row, struct ms_buf *out)
{
    struct probe_leaf leaf;
    probe_row_leaf(s->dump, cmp__side_row(s, row), &leaf);
    ms_buf_putc(out, '\n');
    for (uint32_t i = 0; i < leaf.shape_json.n; i++) {
        if (leaf.shape_json.p[i] > ' ')
            ms_buf_putc(out, leaf.shape_json.p[i]);
    }
}

/* In 1.x a different shape is a different row. */
static void finish_key(struct aligner *a, const struct cmp__side *s, uint32_t row)
{
    if (a->c->conf.fuzzy)
        cmp__rename_fuzzy(&a->name, &a->scratch);
    if (a->c->conf.compat == CMP_OLD)
        put_shape(s, row, &a->name);
}

static bool rename_by_mapping(struct aligner *a)
{
    const struct cmp_conf *conf = &a->c->conf;
    ms_buf_clear(&a->original);
    ms_buf_str(&a->original, ms_buf_slice(&a->name));
    if (conf->api.on) {
        cmp__rename_builtin(&a->name, &a->scratch);
        if (a->rules.arena != NULL &&
            !cmp__rename_by_rules(&a->rules, ms_buf_slice(&a->original), &a->name, &a->scratch))
            return false;
    }
    if (conf->cell.on && !cmp__rename_cell(a->cells.arena != NULL ? &a->cells : NULL,
                                           conf->compat == CMP_OLD, &a->name, &a->scratch))
        return false;
    return true;
}

/* The key of a target row in a->name; false when no golden row can have it. */
static bool target_key(struct aligner *a, uint32_t row)
{
    ms_buf_clear(&a->name);
    cmp__side_name(&a->c->t, row, a->renumber_t, &a->name);
    if (has_row_map(a)) {
        uint32_t id = ms_map_get(&a->c->row_map.keys, ms_buf_slice(&a->name));
        if (id != MS_MAP_NONE) {
            ms_buf_clear(&a->name);
            ms_buf_str(&a->name, a->c->row_map.values.p[id]);
        }
    } else if (!rename_by_mapping(a)) {
        return false;
    }
    finish_key(a, &a->c->t, row);
    return true;
}

static void golden_key(struct aligner *a, uint32_t row)
{
    ms_buf_clear(&a->name);
    cmp__side_name(&a->c->b, row, a->renumber_b, &a->name);
    finish_key(a, &a->c->b, row);
}

/* ---- pairs ------------------------------------------------------------ */

static enum ms_rc add_pair(struct aligner *a, uint32_t t, uint32_t b, struct ms_err *err)
{
    struct cmp__pair *p = ms_vec_push(&a->c->pairs);
    if (p == NULL)
        return ms_no_memory(err);
    *p = (struct cmp__pair){t, b};
    if (b != MS_MAP_NONE)
        a->partner_op.p[b] = a->c->t.op_of.p[t];
    return MS_OK;
}

static enum ms_rc index_golden(struct aligner *a, struct ms_err *err)
{
    uint32_t n = (uint32_t)a->c->b.order.n;
    if (!ms_map_reserve(&a->keys, n) || !ms_vec_reserve(&a->first, n + 1U) ||
        !ms_vec_reserve(&a->next, n + 1U))
        return ms_no_memory(err);
    for (uint32_t row = n; row-- > 0;) { /* backwards, so that chains run forwards */
        bool added;
        golden_key(a, row);
        uint32_t id = ms_map_put_copy(&a->keys, ms_buf_slice(&a->name), a->arena, &added);
        if (id == MS_MAP_NONE)
            return ms_no_memory(err);
        a->next.p[row] = added ? MS_MAP_NONE : a->first.p[id];
        a->first.p[id] = row;
    }
    return ms_buf_check(&a->name, err);
}

static enum ms_rc pair_exact(struct aligner *a, struct ms_err *err)
{
    MS_TRY(index_golden(a, err));
    for (uint32_t t = 0; t < a->c->t.order.n; t++) {
        uint32_t id = target_key(a, t) ? ms_map_get(&a->keys, ms_buf_slice(&a->name)) : MS_MAP_NONE;
        uint32_t b = id != MS_MAP_NONE ? a->first.p[id] : MS_MAP_NONE;
        do {
            MS_TRY(add_pair(a, t, b, err));
            b = b != MS_MAP_NONE ? a->next.p[b] : MS_MAP_NONE;
        } while (b != MS_MAP_NONE);
    }
    return ms_buf_check(&a->name, err);
}

/* ---- fuzzy ------------------------------------------------------------- */

/* Rows that wait for a partner, oldest first, by key. */
struct queue {
    MS_VEC(uint32_t) key_of; /* row -> key */
    MS_VEC(uint32_t) oldest; /* key -> row that waits longest, or NONE */
    MS_VEC(uint32_t) newest;
    MS_VEC(uint32_t) next; /* row -> next row with its key */
    uint32_t head, tail;   /* rows [head, tail) wait */
};

static enum ms_rc queue_init(struct queue *q, uint32_t rows, uint32_t keys, struct ms_err *err)
{
    if (!ms_vec_reserve(&q->key_of, rows + 1U) || !ms_vec_reserve(&q->next, rows + 1U) ||
        !ms_vec_reserve(&q->oldest, keys + 1U) || !ms_vec_reserve(&q->newest, keys + 1U))
        return ms_no_memory(err);
    for (uint32_t i = 0; i < keys; i++)
        q->oldest.p[i] = q->newest.p[i] = MS_MAP_NONE;
    return MS_OK;
}

static void queue_free(struct queue *q)
{
    ms_vec_free(&q->key_of);
    ms_vec_free(&q->next);
    ms_vec_free(&q->oldest);
    ms_vec_free(&q->newest);
}

static void queue_append(struct queue *q)
{
    uint32_t row = q->tail++, key = q->key_of.p[row];
    q->next.p[row] = MS_MAP_NONE;
    if (q->oldest.p[key] == MS_MAP_NONE)
        q->oldest.p[key] = row;
    else
        q->next.p[q->newest.p[key]] = row;
    q->newest.p[key] = row;
}

/* Take rows up to and with `row` out. */
static void queue_drop(struct queue *q, uint32_t row)
{
    for (; q->head <= row; q->head++) {
        uint32_t key = q->key_of.p[q->head];
        q->oldest.p[key] = q->next.p[q->head];
    }
}

/* The next hit of the official order: the newest target row against golden rows from the oldest on,
 * then older target rows against the newest golden row. */
static bool next_hit(const struct queue *t, const struct queue *b, uint32_t *at_t, uint32_t *at_b)
{
    if (t->head == t->tail || b->head == b->tail)
        return false;
    *at_t = t->tail - 1;
    *at_b = b->oldest.p[t->key_of.p[*at_t]];
    if (*at_b != MS_MAP_NONE)
        return true;
    *at_b = b->tail - 1;
    *at_t = t->oldest.p[b->key_of.p[*at_b]];
    return *at_t != MS_MAP_NONE;
}

static enum ms_rc skip_target(struct aligner *a, uint32_t from, uint32_t to, struct ms_err *err)
{
    for (; from < to; from++)
        MS_TRY(add_pair(a, from, MS_MAP_NONE, err));
    return MS_OK;
}

static enum ms_rc walk(struct aligner *a, struct queue *t, struct queue *b, struct ms_err *err)
{
    uint32_t nt = (uint32_t)a->c->t.order.n, nb = (uint32_t)a->c->b.order.n, at_t, at_b;
    while (t->tail < nt || b->tail < nb) {
        if (t->tail < nt)
            queue_append(t);
        if (b->tail < nb)
            queue_append(b);
        /* Here the official tool stops and loses what has not been appended. */
        if (cmp__strict(a->c) && (t->head == t->tail) != (b->head == b->tail))
            break;
        if (!next_hit(t, b, &at_t, &at_b))
            continue;
        MS_TRY(skip_target(a, t->head, at_t, err));
        MS_TRY(add_pair(a, at_t, at_b, err));
        queue_drop(t, at_t);
        queue_drop(b, at_b);
    }
    return skip_target(a, t->head, t->tail, err);
}

static enum ms_rc fill_keys(struct aligner *a, struct queue *t, struct queue *b, struct ms_err *err)
{
    for (uint32_t i = 0; i < a->c->b.order.n; i++) {
        golden_key(a, i);
        b->key_of.p[i] = ms_map_put_copy(&a->keys, ms_buf_slice(&a->name), a->arena, NULL);
        if (b->key_of.p[i] == MS_MAP_NONE)
            return ms_no_memory(err);
    }
    for (uint32_t i = 0; i < a->c->t.order.n; i++) {
        if (!target_key(a, i)) {
            ms_buf_clear(&a->name);
            ms_buf_putc(&a->name, '\n'); /* no golden row has such a name */
        }
        t->key_of.p[i] = ms_map_put_copy(&a->keys, ms_buf_slice(&a->name), a->arena, NULL);
        if (t->key_of.p[i] == MS_MAP_NONE)
            return ms_no_memory(err);
    }
    return ms_buf_check(&a->name, err);
}

static enum ms_rc pair_fuzzy(struct aligner *a, struct ms_err *err)
{
    struct queue t = {0}, b = {0};
    uint32_t nt = (uint32_t)a->c->t.order.n, nb = (uint32_t)a->c->b.order.n;
    enum ms_rc rc = queue_init(&t, nt, nt + nb, err);
    if (rc == MS_OK)
        rc = queue_init(&b, nb, nt + nb, err);
    if (rc == MS_OK)
        rc = fill_keys(a, &t, &b, err);
    if (rc == MS_OK)
        rc = walk(a, &t, &b, err);
    queue_free(&t);
    queue_free(&b);
    return rc;
}

/* ---- golden rows without a partner --------------------------------------- */

/* Counting sort of the lonely golden rows by the target op they follow; op 0 of the count is "before
 * all". */
struct lonely {
    MS_VEC(uint32_t) rows;
    MS_VEC(uint32_t) end; /* by target op + 1: where its rows end in `rows` */
};

static enum ms_rc find_lonely(struct aligner *a, struct lonely *l, struct ms_err *err)
{
    size_t ops = a->c->t.ops.n + 1, nb = a->c->b.order.n;
    uint32_t anchor = 0;
    if (!ms_vec_reserve(&l->rows, nb + 1) || !ms_vec_reserve(&l->end, ops + 1))
        return ms_no_memory(err);
    memset(l->end.p, 0, (ops + 1) * sizeof *l->end.p);
    for (uint32_t pass = 0; pass < 2; pass++) {
        anchor = 0;
        for (uint32_t b = 0; b < nb; b++) {
            if (a->partner_op.p[b] != MS_MAP_NONE)
                anchor = a->partner_op.p[b] + 1;
            else if (pass == 0)
                l->end.p[anchor + 1]++, l->rows.n++;
            else
                l->rows.p[l->end.p[anchor]++] = b;
        }
        for (size_t i = 1; i <= ops && pass == 0; i++)
            l->end.p[i] += l->end.p[i - 1];
    }
    return MS_OK;
}

static void put_lonely(struct cmp *c, const struct lonely *l, uint32_t anchor)
{
    for (uint32_t i = anchor == 0 ? 0 : l->end.p[anchor - 1]; i < l->end.p[anchor]; i++)
        c->pairs.p[c->pairs.n++] = (struct cmp__pair){MS_MAP_NONE, l->rows.p[i]};
}

/* Weave them in behind the ops they follow. */
static enum ms_rc add_lonely(struct aligner *a, struct ms_err *err)
{
    struct cmp *c = a->c;
    struct lonely l = {0};
    enum ms_rc rc = find_lonely(a, &l, err);
    if (rc == MS_OK && l.rows.n != 0) {
        struct cmp__pair *old = c->pairs.p;
        size_t n = c->pairs.n;
        c->pairs.p = NULL;
        c->pairs.n = c->pairs.cap = 0;
        uint32_t op = 0;
        if (!ms_vec_reserve(&c->pairs, n + l.rows.n)) {
            rc = ms_no_memory(err);
        } else {
            for (size_t i = 0; i < n; i++) {
                for (uint32_t at = c->t.op_of.p[old[i].t]; op <= at; op++)
                    put_lonely(c, &l, op);
                c->pairs.p[c->pairs.n++] = old[i];
            }
            for (; op <= c->t.ops.n; op++)
                put_lonely(c, &l, op);
        }
        ms_free(old);
    }
    ms_vec_free(&l.rows);
    ms_vec_free(&l.end);
    return rc;
}

/* ---- alignment ----------------------------------------------------------- */

static enum ms_rc pair_aligned(struct aligner *a, struct ms_err *err)
{
    struct cmp *c = a->c;
    MS_TRY(cmp__match(c, err));
    for (size_t i = 0; i < c->pairs.n; i++) {
        if (c->pairs.p[i].b != MS_MAP_NONE)
            a->partner_op.p[c->pairs.p[i].b] = c->t.op_of.p[c->pairs.p[i].t];
    }
    return MS_OK;
}

/* ---- groups ------------------------------------------------------------ */

static uint32_t op_of_pair(const struct cmp *c, const struct cmp__pair *p)
{
    return p->t != MS_MAP_NONE ? c->t.op_of.p[p->t] : c->b.op_of.p[p->b];
}

static bool same_op(const struct cmp *c, const struct cmp__pair *x, const struct cmp__pair *y)
{
    return (x->t == MS_MAP_NONE) == (y->t == MS_MAP_NONE) && op_of_pair(c, x) == op_of_pair(c, y);
}

/* Does pair i begin a group: another op, or the op with another partner?  *partner is the golden op
 * of the group so far.  Names may send the rows of one op to several; that stays one group. */
static bool begins_group(const struct cmp *c, size_t i, uint32_t *partner)
{
    const struct cmp__pair *p = &c->pairs.p[i];
    uint32_t op = p->b != MS_MAP_NONE ? c->b.op_of.p[p->b] : MS_MAP_NONE;
    bool begins = i == 0 || !same_op(c, p - 1, p) ||
                  (c->al != NULL && op != MS_MAP_NONE && *partner != MS_MAP_NONE && op != *partner);
    if (begins || op != MS_MAP_NONE)
        *partner = op;
    return begins;
}

static enum ms_rc group(struct cmp *c, struct ms_err *err)
{
    uint32_t partner = MS_MAP_NONE;
    for (size_t i = 0; i <= c->pairs.n; i++) {
        if (i != c->pairs.n && !begins_group(c, i, &partner))
            continue;
        struct cmp__group *g = ms_vec_push(&c->groups);
        if (g == NULL)
            return ms_no_memory(err);
        g->first = (uint32_t)i;
    }
    ms_vec_trim(&c->pairs);
    return MS_OK;
}

/* ---- mapping files -------------------------------------------------------- */

static enum ms_rc read_mappings(struct aligner *a, struct ms_err *err)
{
    const struct cmp_conf *conf = &a->c->conf;
    if (conf->data_mapping != NULL)
        return cmp__pairs_read(&a->c->row_map, conf->data_mapping, err);
    /* The official tool looks at -lm only where the target comes from MindSpore. */
    bool layers =
        conf->layer.on && (!cmp__strict(a->c) || a->c->t.dump->framework == PROBE_FW_MINDSPORE ||
                           a->c->t.dump->framework == PROBE_FW_MINDTORCH);
    if (layers)
        return cmp__layer_pairs(a->c, &a->c->row_map, err);
    if (conf->api.on && conf->api.file != NULL)
        MS_TRY(cmp__api_rules_read(&a->rules, conf->api.file, err));
    if (conf->cell.on && conf->cell.file != NULL)
        MS_TRY(cmp__pairs_read(&a->cells, conf->cell.file, err));
    return MS_OK;
}

static void choose_numbers(struct aligner *a)
{
    const struct cmp_conf *conf = &a->c->conf;
    if (conf->fuzzy || a->c->t.is_debug || conf->compat == CMP_OLD)
        return;
    bool mapped = has_row_map(a) || conf->api.on || conf->cell.on;
    if (cmp__strict(a->c)) { /* its defect: a mapping makes it forget one side */
        a->renumber_t = !mapped;
        a->renumber_b = true;
    } else {
        a->renumber_t = a->renumber_b = !has_row_map(a);
    }
}

static enum ms_rc align(struct aligner *a, struct ms_err *err)
{
    size_t nb = a->c->b.order.n;
    MS_TRY(read_mappings(a, err));
    choose_numbers(a);
    a->arena = ms_arena_new((size_t)16 << 30);
    if (a->arena == NULL || !ms_vec_reserve(&a->partner_op, nb + 1))
        return ms_no_memory(err);
    for (size_t i = 0; i < nb; i++)
        a->partner_op.p[i] = MS_MAP_NONE;
    if (cmp__match_wanted(a->c))
        MS_TRY(pair_aligned(a, err));
    else
        MS_TRY(a->c->conf.fuzzy ? pair_fuzzy(a, err) : pair_exact(a, err));
    if (!cmp__strict(a->c))
        MS_TRY(add_lonely(a, err));
    return group(a->c, err);
}

enum ms_rc cmp__align(struct cmp *c, struct ms_err *err)
{
    struct aligner a = {.c = c,
                        .name.max = NAME_MAX_BYTES,
                        .scratch.max = NAME_MAX_BYTES,
                        .original.max = NAME_MAX_BYTES};
    enum ms_rc rc = align(&a, err);
    cmp__pairs_free(&a.cells);
    cmp__api_rules_free(&a.rules);
    ms_map_free(&a.keys);
    ms_arena_free(a.arena);
    ms_vec_free(&a.first);
    ms_vec_free(&a.next);
    ms_vec_free(&a.partner_op);
    ms_buf_free(&a.name);
    ms_buf_free(&a.scratch);
    ms_buf_free(&a.original);
    return rc;
}

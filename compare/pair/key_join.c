/* SPDX-License-Identifier: MIT
 *
 * key_join: joins the rows of both sides by their keys.
 */
#include "compare/pair/cmp_rows.h"
#include "compare/pair/consistent.h"
#include "compare/pair/layer.h"
#include "compare/pair/mapping.h"
#include "compare/pair/match.h"
#include "compare/pair/names.h"
#include "probe/base/assert.h"

#include <stdatomic.h>

/* ---- the key of a row ------------------------------------------------------- */

struct cmp__keys {
    const struct cmp_rows *c;
    struct cmp__pairs cells; /* -cm FILE */
    struct cmp__api_rules rules;
    bool renumber_t, renumber_b;
};

/* Per-thread state for making keys. */
struct keyer {
    const struct cmp__keys *keys;
    struct ms_buf name; /* the key that was made last */
    /* original: the name before renaming, or the name of its cell */
    struct ms_buf scratch, original;
};

enum { NAME_MAX_BYTES = 1 << 20 };

/* Tells whether a mapping of row names is used. Of several mappings the official tool uses only
 * one, and that of rows last; an empty mapping of rows counts as none. */
static bool has_row_map(const struct cmp__keys *keys)
{
    const struct cmp_rows *c = keys->c;
    if (c->set->conf.rules->one_mapping &&
        (c->set->conf.api.on || c->set->conf.cell.on || c->row_map.keys.keys.n == 0))
        return false;
    return c->row_map.arena != NULL;
}

static bool has_cell_map(const struct cmp__keys *keys)
{
    const struct cmp_rows *c = keys->c;
    return c->set->conf.cell.on && !(c->set->conf.rules->one_mapping && c->set->conf.api.on);
}

/* ---- mapping files -------------------------------------------------------- */

static enum ms_rc read_mappings(struct cmp__keys *keys, struct cmp_rows *c, struct ms_err *err)
{
    const struct cmp_conf *conf = &c->set->conf;
    if (conf->data_mapping != NULL)
        return cmp__pairs_read(&c->row_map, conf->data_mapping, err);
    /* The official tool ignores -lm unless the target comes from MindSpore. */
    bool layers = conf->layer.on && (!c->set->conf.rules->layers_of_mindspore ||
                                     c->t.dump->framework == PROBE_FW_MINDSPORE ||
                                     c->t.dump->framework == PROBE_FW_MINDTORCH);
    if (layers)
        MS_TRY(cmp__layer_pairs(c, &c->row_map, err));
    if (has_row_map(keys))
        return MS_OK;
    if (conf->api.on && conf->api.file != NULL) {
        MS_TRY(cmp__api_rules_read(&keys->rules, conf->api.file, err));
        MS_TRY(cmp__check_rules(c, &keys->rules, err));
    }
    if (has_cell_map(keys) && conf->cell.file != NULL) {
        MS_TRY(cmp__pairs_read(&keys->cells, conf->cell.file, err));
        MS_TRY(cmp__check_cells(c, &keys->cells, err));
    }
    return MS_OK;
}

static void choose_numbers(struct cmp__keys *keys)
{
    const struct cmp_conf *conf = &keys->c->set->conf;
    if (conf->fuzzy || keys->c->t.is_debug || !conf->rules->counts_calls)
        return;
    bool mapped = has_row_map(keys) || conf->api.on || conf->cell.on;
    /* a defect of the official tool: with a mapping it renumbers the golden side only */
    if (conf->rules->renumbers_golden_alone) {
        keys->renumber_t = !mapped;
        keys->renumber_b = true;
    } else {
        keys->renumber_t = keys->renumber_b = !has_row_map(keys);
    }
}

/* Reads the mapping files that the configuration names; -dm and -lm become c->row_map. */
static enum ms_rc keys_read(struct cmp__keys *keys, struct cmp_rows *c, struct ms_err *err)
{
    *keys = (struct cmp__keys){.c = c};
    MS_TRY(read_mappings(keys, c, err));
    choose_numbers(keys);
    return MS_OK;
}

static void keys_free(struct cmp__keys *keys)
{
    cmp__pairs_free(&keys->cells);
    cmp__api_rules_free(&keys->rules);
}

/* ---- keys ------------------------------------------------------------------ */

static void keyer_init(struct keyer *k, const struct cmp__keys *keys)
{
    *k = (struct keyer){.keys = keys,
                        .name.max = NAME_MAX_BYTES,
                        .scratch.max = NAME_MAX_BYTES,
                        .original.max = NAME_MAX_BYTES};
}

/* Frees the state; fails when a key was too long or memory ran out. */
static enum ms_rc keyer_end(struct keyer *k, struct ms_err *err)
{
    enum ms_rc rc = ms_buf_check(&k->name, err);
    ms_buf_free(&k->name);
    ms_buf_free(&k->scratch);
    ms_buf_free(&k->original);
    return rc;
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

/* Applies the last changes to a key. msprobe 1.x also puts the shape into the key, unless a mapping
 * names the rows. */
static void finish_key(struct keyer *k, const struct cmp__side *s, uint32_t row)
{
    if (k->keys->c->set->conf.fuzzy)
        cmp__rename_fuzzy(&k->name, &k->scratch);
    if (k->keys->c->set->conf.rules->shape_in_key && !has_row_map(k->keys))
        put_shape(s, row, &k->name);
}

static bool rename_by_api(struct keyer *k)
{
    const struct cmp__api_rules *rules = &k->keys->rules;
    ms_buf_clear(&k->original);
    ms_buf_str(&k->original, ms_buf_slice(&k->name));
    cmp__rename_builtin(&k->name, &k->scratch);
    return rules->arena == NULL ||
           cmp__rename_by_rules(rules, k->keys->c->set->conf.rules->drops_unmapped,
                                ms_buf_slice(&k->original), &k->name, &k->scratch);
}

static bool rename_by_mapping(struct keyer *k)
{
    const struct cmp__keys *keys = k->keys;
    const struct cmp_conf *conf = &keys->c->set->conf;
    if (conf->api.on && !rename_by_api(k))
        return false;
    return !has_cell_map(keys) ||
           cmp__rename_cell(keys->cells.arena != NULL ? &keys->cells : NULL,
                            conf->rules->maps_cells_once, &k->name, &k->scratch, &k->original);
}

static void rename_by_row(struct keyer *k)
{
    const struct cmp__pairs *map = &k->keys->c->row_map;
    uint32_t id = ms_map_get(&map->keys, ms_buf_slice(&k->name));
    if (id == MS_MAP_NONE)
        return;
    ms_buf_clear(&k->name);
    ms_buf_str(&k->name, map->values.p[id]);
}

/* Make the key of a row of the table; false when no row of the other side can match. */
static bool make_target_key(struct keyer *k, uint32_t row)
{
    const struct cmp__side *s = &k->keys->c->t;
    ms_buf_clear(&k->name);
    cmp__side_name(s, row, k->keys->renumber_t, &k->name);
    if (has_row_map(k->keys))
        rename_by_row(k);
    else if (!rename_by_mapping(k))
        return false;
    finish_key(k, s, row);
    return true;
}

static bool make_golden_key(struct keyer *k, uint32_t row)
{
    const struct cmp__side *s = &k->keys->c->b;
    ms_buf_clear(&k->name);
    cmp__side_name(s, row, k->keys->renumber_b, &k->name);
    finish_key(k, s, row);
    return true;
}

/* ---- pairs ------------------------------------------------------------------ */

/* Joins the rows of both sides by their keys.
 *
 * Each row of either side has a key. The partners of a target row are the golden rows with
 * the same key, in file order. All threads make keys and keep only hashes; the text of two
 * keys is compared once their rows are paired. Fuzzy matching instead walks both sides at
 * once and pairs equal keys without going back; an index from key to waiting row keeps the
 * walk linear.
 *
 * The result lists the target's rows in their order. With rules.lists_lonely_golden, golden
 * rows without a partner follow the operator of the golden row before them. */

enum { CHUNK_ROWS = 1 << 13 };

struct aligner {
    struct cmp_rows *c;
    struct ms_pool *pool;
    struct cmp__keys keys;
    MS_VEC(uint32_t) partner_op; /* by golden row: target operator of its partner, or MS_MAP_NONE */
};

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

/* ---- equal keys -------------------------------------------------------- */

/* Hash index of golden rows by key. Rows with the same hash are linked in file order. */
struct join {
    struct aligner *a;
    uint64_t *hash[2]; /* by row of the table, golden and target; 0: a target row without a key */
    /* open addressing: number of the first row with that hash, plus 1; 0: free */
    uint32_t *slots;
    uint32_t *next;
    uint32_t mask;
    unsigned salt;       /* prefix of each hashed key; changed when hashes collide */
    atomic_bool collide; /* two different keys have the same hash */
};

static size_t chunks_of(size_t rows)
{
    return (rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
}

static uint64_t hash_of(struct keyer *k, unsigned salt)
{
    if (salt != 0) {
        ms_buf_clear(&k->scratch);
        ms_buf_printf(&k->scratch, "%u", salt);
        ms_buf_str(&k->scratch, ms_buf_slice(&k->name));
    }
    return ms_str_hash(ms_buf_slice(salt != 0 ? &k->scratch : &k->name)) | 1;
}

static enum ms_rc hash_chunk(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    struct join *j = ctx;
    const struct cmp_rows *c = j->a->c;
    size_t of_golden = chunks_of(c->b.order.n);
    bool golden = item < of_golden;
    size_t rows = golden ? c->b.order.n : c->t.order.n;
    size_t from = (golden ? item : item - of_golden) * CHUNK_ROWS;
    struct keyer k;
    (void)worker;
    keyer_init(&k, &j->a->keys);
    for (size_t i = from; i < rows && i < from + CHUNK_ROWS; i++) {
        bool has_key = golden ? make_golden_key(&k, (uint32_t)i) : make_target_key(&k, (uint32_t)i);
        j->hash[!golden][i] = has_key ? hash_of(&k, j->salt) : 0;
    }
    return keyer_end(&k, err);
}

static void index_golden(struct join *j)
{
    memset(j->slots, 0, ((size_t)j->mask + 1) * sizeof *j->slots);
    for (uint32_t row = (uint32_t)j->a->c->b.order.n; row-- > 0;) {
        uint64_t h = j->hash[0][row];
        uint32_t s = (uint32_t)(h >> 32) & j->mask;
        while (j->slots[s] != 0 && j->hash[0][j->slots[s] - 1] != h)
            s = (s + 1) & j->mask;
        /* prepending from the last row to the first leaves the list in file order */
        j->next[row] = j->slots[s];
        j->slots[s] = row + 1;
    }
}

static uint32_t first_golden(const struct join *j, uint64_t h)
{
    uint32_t s = (uint32_t)(h >> 32) & j->mask;
    while (h != 0 && j->slots[s] != 0 && j->hash[0][j->slots[s] - 1] != h)
        s = (s + 1) & j->mask;
    return h != 0 ? j->slots[s] : 0;
}

static enum ms_rc pair_hashes(struct join *j, struct ms_err *err)
{
    struct aligner *a = j->a;
    a->c->pairs.n = 0;
    for (uint32_t t = 0; t < a->c->t.order.n; t++) {
        uint32_t b = first_golden(j, j->hash[1][t]);
        if (b == 0)
            MS_TRY(add_pair(a, t, MS_MAP_NONE, err));
        for (; b != 0; b = j->next[b - 1])
            MS_TRY(add_pair(a, t, b - 1, err));
    }
    return MS_OK;
}

static enum ms_rc check_chunk(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    struct join *j = ctx;
    const struct cmp_rows *c = j->a->c;
    struct keyer t, b;
    (void)worker;
    keyer_init(&t, &j->a->keys);
    keyer_init(&b, &j->a->keys);
    for (size_t i = item * CHUNK_ROWS; i < c->pairs.n && i < (item + 1) * CHUNK_ROWS; i++) {
        const struct cmp__pair *p = &c->pairs.p[i];
        if (p->b == MS_MAP_NONE)
            continue;
        make_target_key(&t, p->t);
        make_golden_key(&b, p->b);
        if (!ms_str_eq(ms_buf_slice(&t.name), ms_buf_slice(&b.name)))
            atomic_store_explicit(&j->collide, true, memory_order_relaxed);
    }
    enum ms_rc rc = keyer_end(&t, err), other = keyer_end(&b, err);
    return rc != MS_OK ? rc : other;
}

static enum ms_rc join_once(struct join *j, struct ms_err *err)
{
    struct aligner *a = j->a;
    size_t chunks = chunks_of(a->c->b.order.n) + chunks_of(a->c->t.order.n);
    for (size_t i = 0; i < a->c->b.order.n; i++)
        a->partner_op.p[i] = MS_MAP_NONE;
    atomic_store_explicit(&j->collide, false, memory_order_relaxed);
    MS_TRY(ms_pool_run(a->pool, chunks, hash_chunk, j, err));
    index_golden(j);
    MS_TRY(pair_hashes(j, err));
    return ms_pool_run(a->pool, chunks_of(a->c->pairs.n), check_chunk, j, err);
}

static enum ms_rc pair_exact(struct aligner *a, struct ms_err *err)
{
    enum { SALTS = 16 };
    size_t nb = a->c->b.order.n, nt = a->c->t.order.n;
    struct join j = {.a = a, .mask = 15};
    while (j.mask < nb + nb / 2)
        j.mask = 2 * j.mask + 1;
    j.hash[0] = ms_alloc((nb + 1) * sizeof *j.hash[0]);
    j.hash[1] = ms_alloc((nt + 1) * sizeof *j.hash[1]);
    j.slots = ms_alloc(((size_t)j.mask + 1) * sizeof *j.slots);
    j.next = ms_alloc((nb + 1) * sizeof *j.next);
    bool room = j.hash[0] != NULL && j.hash[1] != NULL && j.slots != NULL && j.next != NULL;
    enum ms_rc rc = room ? MS_OK : ms_no_memory(err);
    do {
        rc = rc == MS_OK ? join_once(&j, err) : rc;
    } while (rc == MS_OK && j.collide && ++j.salt < SALTS);
    if (rc == MS_OK && j.collide)
        rc = ms_fail(err, MS_E_FORMAT, "names of rows that no hash tells apart");
    for (unsigned s = 0; s < 2; s++)
        ms_free(j.hash[s]);
    ms_free(j.slots);
    ms_free(j.next);
    return rc;
}

/* ---- fuzzy ------------------------------------------------------------- */

/* Rows that wait for a partner, oldest first, indexed by key. */
struct queue {
    MS_VEC(uint32_t) key_of; /* row -> key */
    MS_VEC(uint32_t) oldest; /* key -> row that has waited longest, or MS_MAP_NONE */
    MS_VEC(uint32_t) newest;
    MS_VEC(uint32_t) next; /* row -> next row with its key */
    uint32_t head, tail;   /* rows [head, tail) are waiting */
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

/* Removes the waiting rows up to and including `row`. */
static void queue_drop(struct queue *q, uint32_t row)
{
    for (; q->head <= row; q->head++) {
        uint32_t key = q->key_of.p[q->head];
        q->oldest.p[key] = q->next.p[q->head];
    }
}

/* Finds the next match in the order of the official tool: the newest target row is compared with
 * golden rows from the oldest on, then older target rows with the newest golden row. */
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
        /* The official tool stops here and loses the rows that have not been appended yet. */
        if (a->c->set->conf.rules->fuzzy_stops && (t->head == t->tail) != (b->head == b->tail))
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

static enum ms_rc fill_keys(struct aligner *a, struct ms_map *keys, bool golden, struct queue *q,
                            struct ms_arena *arena, struct ms_err *err)
{
    struct keyer k;
    size_t n = golden ? a->c->b.order.n : a->c->t.order.n;
    enum ms_rc rc = MS_OK;
    keyer_init(&k, &a->keys);
    for (uint32_t i = 0; i < n && rc == MS_OK; i++) {
        bool has_key = golden ? make_golden_key(&k, i) : make_target_key(&k, i);
        /* a key that no row has */
        struct ms_str key = has_key ? ms_buf_slice(&k.name) : MS_STR("\n");
        q->key_of.p[i] = ms_map_put_copy(keys, key, arena, NULL);
        if (q->key_of.p[i] == MS_MAP_NONE)
            rc = ms_no_memory(err);
    }
    enum ms_rc end = keyer_end(&k, err);
    return rc != MS_OK ? rc : end;
}

static enum ms_rc fill_queues(struct aligner *a, struct queue *t, struct queue *b,
                              struct ms_err *err)
{
    struct ms_map keys = {0};
    struct ms_arena *arena = ms_arena_new((size_t)16 << 30);
    enum ms_rc rc = arena != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        rc = fill_keys(a, &keys, true, b, arena, err);
    if (rc == MS_OK)
        rc = fill_keys(a, &keys, false, t, arena, err);
    ms_map_free(&keys);
    ms_arena_free(arena);
    return rc;
}

static enum ms_rc pair_fuzzy(struct aligner *a, struct ms_err *err)
{
    struct queue t = {0}, b = {0};
    uint32_t nt = (uint32_t)a->c->t.order.n, nb = (uint32_t)a->c->b.order.n;
    enum ms_rc rc = queue_init(&t, nt, nt + nb, err);
    if (rc == MS_OK)
        rc = queue_init(&b, nb, nt + nb, err);
    if (rc == MS_OK)
        rc = fill_queues(a, &t, &b, err);
    if (rc == MS_OK)
        rc = walk(a, &t, &b, err);
    queue_free(&t);
    queue_free(&b);
    return rc;
}

/* ---- golden rows without a partner --------------------------------------- */

/* Counting sort of golden rows without a partner by the target operator that they follow; entry 0
 * counts rows before the first operator. */
struct lonely {
    MS_VEC(uint32_t) rows;
    MS_VEC(uint32_t) end; /* by target operator + 1: end of its rows in `rows` */
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

static void put_lonely(struct cmp_rows *c, const struct lonely *l, uint32_t anchor)
{
    for (uint32_t i = anchor == 0 ? 0 : l->end.p[anchor - 1]; i < l->end.p[anchor]; i++)
        c->pairs.p[c->pairs.n++] = (struct cmp__pair){MS_MAP_NONE, l->rows.p[i]};
}

/* Inserts golden rows without a partner behind the target operators that they follow. */
static enum ms_rc add_lonely(struct aligner *a, struct ms_err *err)
{
    struct cmp_rows *c = a->c;
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
    struct cmp_rows *c = a->c;
    MS_TRY(cmp__match(c, a->pool, err));
    for (size_t i = 0; i < c->pairs.n; i++) {
        if (c->pairs.p[i].b != MS_MAP_NONE)
            a->partner_op.p[c->pairs.p[i].b] = c->t.op_of.p[c->pairs.p[i].t];
    }
    return MS_OK;
}

/* ---- groups ------------------------------------------------------------ */

static uint32_t op_of_pair(const struct cmp_rows *c, const struct cmp__pair *p)
{
    return p->t != MS_MAP_NONE ? c->t.op_of.p[p->t] : c->b.op_of.p[p->b];
}

static bool same_op(const struct cmp_rows *c, const struct cmp__pair *x, const struct cmp__pair *y)
{
    return (x->t == MS_MAP_NONE) == (y->t == MS_MAP_NONE) && op_of_pair(c, x) == op_of_pair(c, y);
}

/* Tells whether pair i begins a group. A row of inference alone stays in the group of the operator
 * whose rows surround it. */
static bool begins_consistent(const struct cmp_rows *c, size_t i)
{
    const struct cmp__pair *p = c->pairs.p;
    uint32_t first = c->groups.n != 0 ? c->groups.p[c->groups.n - 1].first : 0;
    for (size_t k = i; k-- > first;) {
        if (p[i].t != MS_MAP_NONE && p[k].t != MS_MAP_NONE)
            return c->t.op_of.p[p[i].t] != c->t.op_of.p[p[k].t];
        if (p[i].b != MS_MAP_NONE && p[k].b != MS_MAP_NONE)
            return c->b.op_of.p[p[i].b] != c->b.op_of.p[p[k].b];
    }
    return true;
}

/* Tells whether pair i begins a group: the target operator changes or, in an alignment, its partner
 * does. *partner is the golden operator of the current group. Names may pair the rows of one
 * operator with several golden operators; these rows stay one group. */
static bool begins_group(const struct cmp_rows *c, size_t i, uint32_t *partner)
{
    if (c->set->conf.consistent != CMP_CONSISTENT_NO)
        return begins_consistent(c, i);
    const struct cmp__pair *p = &c->pairs.p[i];
    uint32_t op = p->b != MS_MAP_NONE ? c->b.op_of.p[p->b] : MS_MAP_NONE;
    bool begins = i == 0 || !same_op(c, p - 1, p) ||
                  (c->al != NULL && op != MS_MAP_NONE && *partner != MS_MAP_NONE && op != *partner);
    if (begins || op != MS_MAP_NONE)
        *partner = op;
    return begins;
}

static enum ms_rc group_rows(struct cmp_rows *c, struct ms_err *err)
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

/* ---- entry ---------------------------------------------------------------- */

static enum ms_rc align(struct aligner *a, struct ms_err *err)
{
    if (a->c->set->conf.consistent != CMP_CONSISTENT_NO) {
        MS_TRY(cmp__pair_consistent(a->c, err));
        return group_rows(a->c, err);
    }
    size_t nb = a->c->b.order.n;
    MS_TRY(keys_read(&a->keys, a->c, err));
    if (!ms_vec_reserve(&a->partner_op, nb + 1))
        return ms_no_memory(err);
    for (size_t i = 0; i < nb; i++)
        a->partner_op.p[i] = MS_MAP_NONE;
    if (cmp__match_wanted(a->c))
        MS_TRY(pair_aligned(a, err));
    else
        MS_TRY(a->c->set->conf.fuzzy ? pair_fuzzy(a, err) : pair_exact(a, err));
    if (a->c->set->conf.rules->lists_lonely_golden)
        MS_TRY(add_lonely(a, err));
    return group_rows(a->c, err);
}

enum ms_rc cmp__pair_rows(struct cmp_rows *c, struct ms_pool *pool, struct ms_err *err)
{
    ms_assert(c->set != NULL && c->pairs.n == 0 && c->groups.n == 0);
    struct aligner a = {.c = c, .pool = pool};
    enum ms_rc rc = align(&a, err);
    keys_free(&a.keys);
    ms_vec_free(&a.partner_op);
    ms_assert(rc != MS_OK || c->groups.p[c->groups.n - 1].first == c->pairs.n);
    return rc;
}

void cmp__rows_free(struct cmp_rows *c)
{
    cmp_align_free(c->al);
    for (int side = 0; side < 2; side++) {
        if (c->has_tree[side])
            probe_tree_close(&c->tree[side]);
    }
    cmp__side_free(&c->t);
    cmp__side_free(&c->b);
    if (c->has_stack)
        probe_stacks_close(&c->stacks);
    cmp__pairs_free(&c->row_map);
    ms_vec_free(&c->named);
    ms_vec_free(&c->pairs);
    ms_vec_free(&c->folds);
    ms_vec_free(&c->groups);
    cmp__problems_free(&c->problems);
    ms_free(c->t_dir);
    ms_free(c->b_dir);
}

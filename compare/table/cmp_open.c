/* SPDX-License-Identifier: MIT
 *
 * cmp_open: opens a comparison: reads two dumps, pairs their rows and measures them.
 */
#include "compare/measure/multiply.h"
#include "compare/pair/names.h"
#include "compare/table/comparison.h"
#include "probe/base/assert.h"
#include "probe/base/trace.h"

/* Finds the row where the official tool writes each verdict.
 *
 * The official tool judges all rows of an operator together, wherever they are in the table,
 * but writes the verdicts operator by operator from the top. If rows of inference alone are
 * between those of an operator, each row below shows the verdict of another row:
 *
 *     row       q.input  v.input  q.output       of ops q, v
 *     verdict   q.input  q.output v.input
 *
 * Rules with judges_by_place reproduce this. */

/* ---- operators ------------------------------------------------------------ */

struct owners {
    struct ms_map names;    /* names of operators; rows with the same name are judged together */
    MS_VEC(uint32_t) of;    /* by pair: index of its operator */
    MS_VEC(uint32_t) first; /* by operator: place of its first verdict */
    uint32_t *twin;         /* by golden operator: target operator of the last pair that has both */
};

static struct ms_str op_name(const struct cmp__side *s, uint32_t op)
{
    return probe_node_name(s->dump, s->ops.p[op].node);
}

static enum ms_rc find_twins(struct owners *o, const struct cmp *c, struct ms_err *err)
{
    o->twin = ms_alloc((c->rows.b.ops.n + 1) * sizeof *o->twin);
    if (o->twin == NULL)
        return ms_no_memory(err);
    memset(o->twin, 0xff, (c->rows.b.ops.n + 1) * sizeof *o->twin);
    for (size_t i = 0; i < c->rows.pairs.n; i++) {
        const struct cmp__pair *p = &c->rows.pairs.p[i];
        if (p->t != MS_MAP_NONE && p->b != MS_MAP_NONE)
            o->twin[c->rows.b.op_of.p[p->b]] = c->rows.t.op_of.p[p->t];
    }
    return MS_OK;
}

/* Returns the operator of a pair. A row of inference alone belongs to the training operator that
 * other rows of its operator were paired with. */
static struct ms_str owner_of(const struct owners *o, const struct cmp *c,
                              const struct cmp__pair *p)
{
    if (p->t != MS_MAP_NONE)
        return op_name(&c->rows.t, c->rows.t.op_of.p[p->t]);
    uint32_t golden = c->rows.b.op_of.p[p->b];
    return o->twin[golden] != MS_MAP_NONE ? op_name(&c->rows.t, o->twin[golden])
                                          : op_name(&c->rows.b, golden);
}

static enum ms_rc list_owners(struct owners *o, const struct cmp *c, struct ms_err *err)
{
    if (!ms_vec_reserve(&o->of, c->rows.pairs.n + 1) ||
        !ms_vec_reserve(&o->first, c->rows.pairs.n + 1))
        return ms_no_memory(err);
    for (size_t i = 0; i < c->rows.pairs.n; i++) {
        bool added;
        uint32_t id = ms_map_put(&o->names, owner_of(o, c, &c->rows.pairs.p[i]), &added);
        if (id == MS_MAP_NONE)
            return ms_no_memory(err);
        o->of.p[o->of.n++] = id;
        if (added)
            o->first.p[o->first.n++] = 0;
        o->first.p[id]++; /* counts rows; turned into places below */
    }
    uint32_t place = 0;
    for (size_t id = 0; id < o->first.n; id++) {
        uint32_t rows = o->first.p[id];
        o->first.p[id] = place;
        place += rows;
    }
    return MS_OK;
}

/* ---- places --------------------------------------------------------------- */

static enum ms_rc fill_places(const struct owners *o, struct cmp *c, struct ms_err *err)
{
    uint32_t *next = ms_alloc((o->first.n + 1) * sizeof *next);
    if (next == NULL || !ms_vec_reserve(&c->places, c->rows.pairs.n + 1)) {
        ms_free(next);
        return ms_no_memory(err);
    }
    for (size_t id = 0; id < o->first.n; id++)
        next[id] = o->first.p[id];
    for (uint32_t i = 0; i < c->rows.pairs.n; i++) {
        uint32_t id = o->of.p[i];
        c->places.p[next[id]++] = (struct cmp__place){i, o->first.p[id]};
    }
    c->places.n = c->rows.pairs.n;
    ms_free(next);
    return MS_OK;
}

static enum ms_rc place_verdicts(struct cmp *c, struct ms_err *err)
{
    struct owners o = {0};
    enum ms_rc rc = find_twins(&o, c, err);
    if (rc == MS_OK)
        rc = list_owners(&o, c, err);
    if (rc == MS_OK)
        rc = fill_places(&o, c, err);
    ms_map_free(&o.names);
    ms_vec_free(&o.of);
    ms_vec_free(&o.first);
    ms_free(o.twin);
    return rc;
}

/* ---- whole numbers in columns ----------------------------------------------- */

/* How whole numbers of the statistics are written.
 *
 * A column of the official table is an array of pandas. A column of numbers alone has one
 * type, so that 3 next to 1.5 is written 3.0. A column with any text keeps every value as
 * the dump has it. Rows without a partner are filled in separately, so their numbers get one
 * type if they contain no text. The difference of a column is a whole number if the column
 * has whole numbers on both sides. */

enum { CHUNK_PAIRS = 1 << 12 };

struct column {
    bool other, whole, real;
    bool negative, large; /* whole numbers below 0; whole numbers beyond int64 */
};

struct columns {
    struct column of[PROBE_STATS];
};

/* pandas has no type for integers beyond uint64, and none for integers beyond int64 next to
 * negative ones. */
static void note_whole(struct column *c, struct ms_str digits)
{
    int64_t i;
    uint64_t u;
    c->whole = true;
    if (ms_str_i64(digits, &i))
        c->negative |= i < 0;
    else if (ms_str_u64(digits, &u))
        c->large = true;
    else
        c->other = true;
}

/* NaN counts as other, because the table has the text "Nan" for it. */
static void note_value(struct column *c, const struct probe_num *n)
{
    struct cmp_value v = cmp__value_of(n);
    if (v.kind == CMP_VALUE_NUMBER && v.is_int)
        note_whole(c, v.text);
    else if (v.kind == CMP_VALUE_NUMBER || v.kind == CMP_VALUE_INF || v.kind == CMP_VALUE_NINF)
        c->real = true;
    else
        c->other = true;
}

/* Notes the values of a row. Returns false when every column has text, so that no further row can
 * change the result. */
static bool note_row(const struct cmp__side *s, uint32_t row, const struct probe_leaf *leaf,
                     struct columns *columns)
{
    struct probe_num stat[PROBE_STATS];
    bool open = false;
    cmp__item_numbers(s, row, leaf, stat);
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        note_value(&columns->of[i], &stat[i]);
        open |= !columns->of[i].other;
    }
    return open;
}

static void join(struct column *c, const struct column *more)
{
    c->other |= more->other;
    c->whole |= more->whole;
    c->real |= more->real;
    c->negative |= more->negative;
    c->large |= more->large;
}

static bool has_text(const struct column *c)
{
    return c->other || (c->large && c->negative);
}

static bool is_mixed(const struct column *c)
{
    return c->whole && c->real && !has_text(c);
}

/* Decides which columns are written as floats. pandas gives a column one type, and all four columns
 * one type where none has text. */
static void settle(const struct columns *columns, bool as_float[PROBE_STATS])
{
    bool any_other = false, any_real = false;
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        any_other |= has_text(&columns->of[i]);
        any_real |= columns->of[i].real;
    }
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        const struct column *c = &columns->of[i];
        as_float[i] = is_mixed(c) || (c->whole && !any_other && any_real);
    }
}

static void settle_side(struct cmp__side *s)
{
    struct columns columns = {0};
    bool open = true, real = false;
    for (uint32_t i = 0; i < s->order.n && open; i++) {
        struct probe_leaf leaf;
        if (cmp__side_row(s, i)->flags & PROBE_LEAF_REAL_STATS) {
            real = true; /* the usual row, whose leaf need not be parsed for this */
            continue;
        }
        cmp__item_leaf(s, i, &leaf);
        open = note_row(s, i, &leaf, &columns);
    }
    for (unsigned i = 0; i < PROBE_STATS; i++)
        columns.of[i].real |= real;
    settle(&columns, s->as_float);
}

/* ---- the official table -------------------------------------------------- */

struct table {
    struct columns target, golden, alone; /* alone: target rows that have no partner */
    bool lonely;                          /* there are rows without a partner */
};

/* Notes a pair. Rows with the same dtype are never separated; for others cmp__is_parted decides. */
static enum ms_rc note_pair(const struct cmp *c, struct cmp_view *v, uint32_t pair,
                            struct table *table, struct ms_err *err)
{
    const struct cmp__pair *p = &c->rows.pairs.p[pair];
    struct probe_leaf t, b = {.kind = PROBE_LEAF_NULL};
    bool alone = p->b == MS_MAP_NONE;
    cmp__item_leaf(&c->rows.t, p->t, &t);
    if (!alone)
        cmp__item_leaf(&c->rows.b, p->b, &b);
    if (!alone && (t.dtype_text.n == 0 || !ms_str_eq(t.dtype_text, b.dtype_text)))
        MS_TRY(cmp__is_parted(c, v, pair, &alone, err));
    note_row(&c->rows.t, p->t, &t, &table->target);
    if (alone)
        note_row(&c->rows.t, p->t, &t, &table->alone);
    else
        note_row(&c->rows.b, p->b, &b, &table->golden);
    table->lonely |= alone;
    return MS_OK;
}

struct reading {
    const struct cmp *c;
    struct table *parts; /* one for each chunk of pairs */
};

static enum ms_rc note_chunk(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    const struct reading *r = ctx;
    size_t end = (item + 1) * CHUNK_PAIRS;
    struct cmp_view v;
    (void)worker;
    MS_TRY(cmp_view_init(&v, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = item * CHUNK_PAIRS; i < end && i < r->c->rows.pairs.n && rc == MS_OK; i++)
        rc = note_pair(r->c, &v, (uint32_t)i, &r->parts[item], err);
    cmp_view_free(&v);
    return rc;
}

static void join_columns(struct columns *c, const struct columns *more)
{
    for (unsigned i = 0; i < PROBE_STATS; i++)
        join(&c->of[i], &more->of[i]);
}

/* Notes all pairs; rows that only the golden side has are not in the official table. */
static enum ms_rc note_table(const struct cmp *c, struct table *table, struct ms_pool *pool,
                             struct ms_err *err)
{
    size_t chunks = (c->rows.pairs.n + CHUNK_PAIRS - 1) / CHUNK_PAIRS;
    struct reading r = {c, ms_calloc(chunks + 1, sizeof *r.parts)};
    if (r.parts == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_pool_run(pool, chunks, note_chunk, &r, err);
    for (size_t i = 0; i < chunks; i++) {
        join_columns(&table->target, &r.parts[i].target);
        join_columns(&table->golden, &r.parts[i].golden);
        join_columns(&table->alone, &r.parts[i].alone);
        table->lonely |= r.parts[i].lonely;
    }
    ms_free(r.parts);
    return rc;
}

static bool is_whole(const struct column *c, bool as_float)
{
    return c->whole && !has_text(c) && !c->large && !as_float;
}

/* With folded rows the official tool reads every number as a float. */
static void settle_sides(struct cmp *c)
{
    bool joined = c->set.conf.rules->joined_as_float && c->set.conf.consistent != CMP_CONSISTENT_NO;
    settle_side(&c->rows.t);
    settle_side(&c->rows.b);
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        c->rows.t.as_float[i] |= joined;
        c->rows.b.as_float[i] |= joined;
    }
}

static enum ms_rc settle_table(struct cmp *c, struct ms_pool *pool, struct ms_err *err)
{
    struct table table = {0};
    if (!c->set.conf.rules->column_types || c->set.conf.consistent != CMP_CONSISTENT_NO ||
        c->set.mode == PROBE_MODE_MD5)
        return MS_OK;
    MS_TRY(note_table(c, &table, pool, err));
    settle(&table.target, c->rows.t.as_float);
    settle(&table.golden, c->rows.b.as_float);
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        c->rows.t.alone_as_float[i] = is_mixed(&table.alone.of[i]);
        c->rows.b.as_float[i] &= !table.lonely;
        c->set.whole[i] = !table.lonely && is_whole(&table.target.of[i], c->rows.t.as_float[i]) &&
                          is_whole(&table.golden.of[i], c->rows.b.as_float[i]);
    }
    return MS_OK;
}

/* ---- checks: can the dumps be compared? ------------------------------------ */

static enum ms_rc check_framework(const struct probe_dump *d, struct ms_err *err)
{
    if (d->framework_text.n == 0 ||
        ms_str_is(d->framework_text, probe_framework_text(d->framework)))
        return MS_OK;
    return ms_fail(err, MS_E_UNSUPPORTED,
                   "%s: dumps of '%.*s' cannot be compared; those of pytorch, mindspore and "
                   "mindtorch can",
                   d->path, MS_STR_ARG(d->framework_text));
}

static enum ms_rc check_frameworks(const struct cmp *c, struct ms_err *err)
{
    MS_TRY(check_framework(c->rows.t.dump, err));
    MS_TRY(check_framework(c->rows.b.dump, err));
    const char *t = probe_framework_text(c->rows.t.dump->framework);
    const char *b = probe_framework_text(c->rows.b.dump->framework);
    bool fine = (cmp__is_pytorch(&c->rows.t) && cmp__is_pytorch(&c->rows.b)) ||
                (!cmp__is_pytorch(&c->rows.t) && c->rows.b.dump->framework != PROBE_FW_MINDTORCH);
    if (!fine && c->set.conf.rules->one_framework) {
        ms_fail(err, MS_E_ARG, "%s: cannot compare %s with %s", c->rows.t.dump->path, t, b);
        ms_err_hint(err, "%sleave out --compat %s: the official tool refuses this pair",
                    cmp__is_pytorch(&c->rows.t) ? "swap target and golden path, or " : "",
                    c->set.conf.rules->name);
        return MS_E_ARG;
    }
    if (c->set.conf.api.on && cmp__is_pytorch(&c->rows.t))
        return ms_fail(err, MS_E_ARG,
                       "-am translates MindSpore names, but the target is a %s dump; leave it out",
                       t);
    return MS_OK;
}

static enum ms_rc check_modes(struct cmp *c, struct ms_err *err)
{
    enum probe_mode t = c->rows.t.dump->mode, b = c->rows.b.dump->mode;
    const char *path = c->rows.t.dump->path;
    if (t != b)
        return ms_fail(err, MS_E_ARG,
                       "%s holds %s and %s holds %s; both sides must be dumped alike", path,
                       probe_mode_text(t), c->rows.b.dump->path, probe_mode_text(b));
    if (t == PROBE_MODE_STRUCTURE)
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "%s: a dump of task '%.*s' has no values; use graph_visualize", path,
                       MS_STR_ARG(c->rows.t.dump->task));
    c->set.mode = c->set.conf.summarise && t == PROBE_MODE_TENSOR ? PROBE_MODE_SUMMARY : t;
    return MS_OK;
}

/* ---- opening -------------------------------------------------------------- */

static enum ms_rc join_dir(char **out, struct ms_str dir, const char *name, struct ms_err *err)
{
    char *d = ms_str_dup(dir);
    *out = d != NULL ? ms_path_join(d, name) : NULL;
    ms_free(d);
    return *out != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc open_stacks(struct cmp *c, const char *target, struct ms_err *err)
{
    char *path = NULL;
    if (c->set.conf.stack != NULL)
        path = ms_str_dup(ms_str_of(c->set.conf.stack));
    else
        MS_TRY(join_dir(&path, ms_path_dir(target), "stack.json", err));
    if (path == NULL)
        return ms_no_memory(err);
    if (ms_path_kind(path) == MS_KIND_FILE) {
        c->rows.has_stack = true;
        unsigned flags =
            PROBE_STACK_TOLERANT | (c->set.conf.rules->official_stacks ? PROBE_STACK_OFFICIAL : 0);
        enum ms_rc rc = probe_stacks_open(&c->rows.stacks, path, flags, err);
        ms_free(path);
        return rc;
    }
    ms_free(path);
    return MS_OK;
}

static enum ms_rc open_sides(struct cmp *c, const char *target, const char *golden,
                             struct ms_pool *pool, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("read");
    MS_TRY(cmp__side_init(&c->rows.t, &c->set.conf, target, pool, err));
    MS_TRY(cmp__side_init(&c->rows.b, &c->set.conf, golden, pool, err));
    MS_TRY(open_stacks(c, target, err));
    MS_TRY(join_dir(&c->rows.t_dir, ms_path_dir(target), "dump_tensor_data", err));
    MS_TRY(join_dir(&c->rows.b_dir, ms_path_dir(golden), "dump_tensor_data", err));
    ms_span_end(&span);
    return MS_OK;
}

/* Tells whether each row is in at most one pair. Folded rows are in several. */
static enum ms_rc are_pairs_apart(const struct cmp *c, bool *apart, struct ms_err *err)
{
    size_t nt = c->rows.t.order.n, nb = c->rows.b.order.n;
    bool *taken = ms_calloc(nt + nb + 1, sizeof *taken);
    if (taken == NULL)
        return ms_no_memory(err);
    *apart = c->set.conf.consistent == CMP_CONSISTENT_NO;
    for (size_t i = 0; i < c->rows.pairs.n && *apart; i++) {
        const struct cmp__pair *p = &c->rows.pairs.p[i];
        bool *t = p->t != MS_MAP_NONE ? &taken[p->t] : NULL;
        bool *b = p->b != MS_MAP_NONE ? &taken[nt + p->b] : NULL;
        *apart = (t == NULL || !*t) && (b == NULL || !*b);
        if (t != NULL)
            *t = true;
        if (b != NULL)
            *b = true;
    }
    ms_free(taken);
    return MS_OK;
}

/* Allocates the values of both sides when each row is viewed only once. */
static enum ms_rc make_values(struct cmp *c, struct ms_err *err)
{
    bool apart = false;
    if (c->set.conf.explain)
        MS_TRY(are_pairs_apart(c, &apart, err));
    if (!apart)
        return MS_OK;
    c->values = ms_calloc(2, sizeof *c->values);
    if (c->values == NULL)
        return ms_no_memory(err);
    MS_TRY(read__values_init(&c->values[0], c->rows.b.dump, err));
    return read__values_init(&c->values[1], c->rows.t.dump, err);
}

static void free_values(struct read__values *values)
{
    for (unsigned s = 0; values != NULL && s < 2; s++)
        read__values_free(&values[s]);
    ms_free(values);
}

static enum ms_rc check_consistent(const struct cmp *c, struct ms_err *err)
{
    if (c->set.conf.consistent == CMP_CONSISTENT_NO)
        return MS_OK;
    if (!cmp__is_pytorch(&c->rows.t) || !cmp__is_pytorch(&c->rows.b))
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "%s: --consistent_check knows training by PyTorch alone",
                       c->rows.t.dump->path);
    return MS_OK;
}

/* Reports damage in the dumps that did not prevent reading them. */
static enum ms_rc note_damage(struct cmp *c, struct ms_err *err)
{
    const struct probe_dump *const both[] = {c->rows.t.dump, c->rows.b.dump};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < both[k]->problems.n; i++)
            MS_TRY(cmp__problem(&c->rows.problems, err, "%s: %.*s", both[k]->path,
                                MS_STR_ARG(both[k]->problems.p[i])));
    }
    for (size_t k = 0; k < 2; k++) {
        if (both[k]->rows.n == 0)
            MS_TRY(cmp__problem(&c->rows.problems, err,
                                "%s: has nothing in it that could be compared", both[k]->path));
    }
    return MS_OK;
}

/* ---- noise ---------------------------------------------------------------- */

/* Compares the second run with the golden side. */
static enum ms_rc compare_second(struct cmp *c, struct ms_pool *pool, struct ms_err *err)
{
    struct cmp_conf conf = {.summarise = c->set.conf.summarise};
    struct cmp *second;
    enum ms_rc rc =
        cmp_open(&second, &conf, c->set.conf.noise_floor, c->rows.b.dump->path, pool, err);
    if (rc != MS_OK)
        return ms_err_wrap(err, "--noise_floor"), rc;
    if (second->set.mode != c->set.mode)
        rc = ms_fail(err, MS_E_ARG, "%s: the second run was not dumped like the golden side",
                     c->set.conf.noise_floor);
    if (rc == MS_OK)
        rc = cmp_measure(second, pool, err);
    if (rc == MS_OK)
        rc = cmp__noise_of_run(c, second, err);
    cmp_close(second);
    return rc;
}

static enum ms_rc find_noise(struct cmp *c, struct ms_pool *pool, struct ms_err *err)
{
    return cmp_is_calibration(c->set.conf.noise_floor)
               ? cmp__read_noise(&c->rows, &c->measured, err)
               : compare_second(c, pool, err);
}

/* ---- entry ---------------------------------------------------------------- */

static enum ms_rc fill(struct cmp *c, const char *target, const char *golden, struct ms_pool *pool,
                       struct ms_err *err)
{
    MS_TRY(open_sides(c, target, golden, pool, err));
    MS_TRY(check_frameworks(c, err));
    MS_TRY(check_modes(c, err));
    MS_TRY(check_consistent(c, err));
    c->set.is_debug = c->rows.t.is_debug;
    c->set.cross = cmp__is_pytorch(&c->rows.t) != cmp__is_pytorch(&c->rows.b);
    MS_TRY(note_damage(c, err));
    struct ms_span span = ms_span_begin("align");
    settle_sides(c);
    enum ms_rc rc = cmp__pair_rows(&c->rows, pool, err);
    c->set.aligned = c->rows.al != NULL;
    if (rc == MS_OK && c->set.conf.rules->judges_by_place &&
        c->set.conf.consistent != CMP_CONSISTENT_NO)
        rc = place_verdicts(c, err);
    if (rc == MS_OK)
        rc = settle_table(c, pool, err);
    ms_span_end(&span);
    if (rc == MS_OK && c->set.conf.data_mapping != NULL)
        rc = cmp__check_names(&c->rows, err);
    if (rc == MS_OK && c->set.conf.config != NULL && c->set.mode == PROBE_MODE_TENSOR)
        rc = cmp__factors_read(&c->measured.factors, &c->rows, err);
    if (rc == MS_OK)
        rc = make_values(c, err);
    if (rc == MS_OK && c->set.conf.noise_floor != NULL)
        rc = find_noise(c, pool, err);
    return rc;
}

enum ms_rc cmp_open(struct cmp **out, const struct cmp_conf *conf, const char *target,
                    const char *golden, struct ms_pool *pool, struct ms_err *err)
{
    *out = NULL;
    struct cmp *c = ms_calloc(1, sizeof *c);
    if (c == NULL)
        return ms_no_memory(err);
    c->set.conf = *conf;
    c->rows.set = &c->set;
    if (c->set.conf.rules == NULL)
        c->set.conf.rules = &cmp_rules_ours;
    enum ms_rc rc = fill(c, target, golden, pool, err);
    if (rc != MS_OK) {
        cmp_close(c);
        return rc;
    }
    *out = c;
    return MS_OK;
}

void cmp_close(struct cmp *c)
{
    if (c == NULL)
        return;
    cmp__rows_free(&c->rows);
    cmp__measured_free(&c->measured);
    free_values(c->values);
    ms_vec_free(&c->places);
    ms_free(c);
}

enum ms_rc cmp_measure(struct cmp *c, struct ms_pool *pool, struct ms_err *err)
{
    if (c->set.mode != PROBE_MODE_TENSOR)
        return MS_OK;
    struct ms_span span = ms_span_begin("measure");
    enum ms_rc rc = cmp__measure_tensors(&c->rows, &c->measured, pool, err);
    ms_span_end(&span);
    return rc;
}

enum ms_rc cmp_measure_part(struct cmp *c, struct ms_pool *pool, unsigned part, unsigned parts,
                            struct ms_buf *packed, struct ms_err *err)
{
    return cmp__measure_part(&c->rows, &c->measured, pool, part, parts, packed, err);
}

enum ms_rc cmp_measure_join(struct cmp *c, const struct ms_str *packed, unsigned parts,
                            struct ms_err *err)
{
    return cmp__measure_join(&c->rows, &c->measured, packed, parts, err);
}

/* SPDX-License-Identifier: MIT
 *
 * trend_dump: converts dumps of many steps and ranks into a trend database.
 *
 *     Module.layers.0.fc.Linear.forward.2, output[0]
 *       metric  forward
 *       target  Module.layers.0.fc.Linear.output.0, micro step 2
 *
 * One dump is in memory at a time, and its rows are sorted by the table's key: inserting in key
 * order is several times faster.
 */
#include "probe/base/mem.h"
#include "probe/base/trace.h"
#include "probe/dump/dump.h"
#include "probe/dump/find.h"
#include "probe/dump/name.h"
#include "probe/trend/trend_int.h"

#include <math.h>
#include <stdlib.h>

/* ---- micro steps -------------------------------------------------------------------- */

/* Finds the micro step of a record.
 *
 * Within a step a model runs several times. Each run is a root of construct.json (Module, Cell,
 * optimizer), numbered in the order of the file. All nodes below a root belong to its micro step,
 * and a backward node to that of its forward node. Calls are numbered over the whole step, so they
 * are renumbered within each micro step, in order:
 *
 *     Module.a.A.forward.0  root 0        Functional.f.0.forward in it ─► f.0
 *     Module.a.A.forward.1  root 1        Functional.f.1.forward in it ─► f.0 */

enum { NAME_MAX_BYTES = 1 << 20 };

/* ---- roots ------------------------------------------------------------ */

static bool is_run(struct ms_str name)
{
    return ms_str_find_str(name, MS_STR(".backward")) < 0 &&
           (ms_str_starts(name, MS_STR("Module")) || ms_str_starts(name, MS_STR("Cell")) ||
            ms_str_starts(name, MS_STR("optimizer")));
}

/* Returns the forward node of a backward node, else the node itself. */
static uint32_t twin_of(const struct probe_tree *t, uint32_t node, struct ms_buf *scratch)
{
    struct ms_str name = probe_tree_name(t, node);
    if (ms_str_find_str(name, MS_STR(".backward")) < 0)
        return node;
    ms_buf_clear(scratch);
    probe__put_replaced(scratch, name, MS_STR(".backward"), MS_STR(".forward"));
    return scratch->bad == MS_OK ? probe_tree_find(t, ms_buf_slice(scratch)) : MS_MAP_NONE;
}

/* Follows parents to the root. Links from backward to forward nodes can form a cycle, so the walk
 * is limited to the number of nodes. */
static uint32_t root_of(const struct probe_tree *t, uint32_t node, struct ms_buf *scratch)
{
    for (size_t hops = 0; hops <= t->nodes.n; hops++) {
        node = twin_of(t, node, scratch);
        if (node == MS_MAP_NONE || !t->nodes.p[node].listed)
            return MS_MAP_NONE;
        if (t->nodes.p[node].parent == MS_MAP_NONE)
            return node;
        node = t->nodes.p[node].parent;
    }
    return MS_MAP_NONE;
}

struct micro {
    struct probe_tree tree;
    bool open;
    uint32_t steps;             /* number of micro steps, at least 1 */
    MS_VEC(uint32_t) step_of;   /* of each node of the tree; MS_MAP_NONE: no micro step */
    MS_VEC(uint32_t) number_of; /* number of its call within the micro step */
};

/* Numbers the roots, then gives every node the number of its root. */
static void assign_steps(struct micro *m, struct ms_buf *scratch)
{
    const struct probe_tree *t = &m->tree;
    uint32_t runs = 0;
    uint32_t *run_of = m->number_of.p; /* scratch until calls are counted */
    for (uint32_t i = 0; i < t->nodes.n; i++)
        run_of[i] = m->step_of.p[i] = MS_MAP_NONE;
    for (uint32_t i = 0; i < t->entries.n; i++) {
        uint32_t node = t->entries.p[i];
        if (t->nodes.p[node].parent == MS_MAP_NONE && is_run(probe_tree_name(t, node)))
            run_of[node] = runs++;
    }
    for (uint32_t i = 0; i < t->nodes.n; i++) {
        uint32_t root = t->nodes.p[i].listed ? root_of(t, i, scratch) : MS_MAP_NONE;
        if (root != MS_MAP_NONE)
            m->step_of.p[i] = run_of[root];
    }
    m->steps = runs != 0 ? runs : 1;
}

/* ---- calls ------------------------------------------------------------ */

/* Splits "Functional.f.3.forward" into the part before the call number, the number and the part
 * behind it; false when the name has no call number. */
static bool split_call(struct ms_str name, struct ms_str *before, struct ms_str *call,
                       struct ms_str *behind)
{
    if (!probe_name_find_call(name, call))
        return false;
    uint32_t at = (uint32_t)(call->p - name.p);
    *before = ms_str_sub(name, 0, at);
    *behind = ms_str_sub(name, at + call->n, name.n);
    return true;
}

struct call {
    uint32_t series, place, node;
    uint64_t number;
};

static int by_number(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Finds the series of a call: all calls of one function in one micro step. */
static enum ms_rc find_series(struct ms_map *series, struct ms_arena *arena, struct ms_buf *key,
                              const struct micro *m, struct call *c, struct ms_err *err)
{
    struct ms_str name = probe_tree_name(&m->tree, c->node), before, call, behind;
    ms_buf_clear(key);
    ms_buf_printf(key, "%u|", m->step_of.p[c->node]);
    if (split_call(name, &before, &call, &behind) && ms_str_u64(call, &c->number)) {
        ms_buf_str(key, before);
        ms_buf_str(key, behind);
    } else {
        ms_buf_str(key, name);
    }
    MS_TRY(ms_buf_check(key, err));
    c->series = ms_map_put_copy(series, ms_buf_slice(key), arena, NULL);
    return c->series != MS_MAP_NONE ? MS_OK : ms_no_memory(err);
}

static enum ms_rc list_calls(const struct micro *m, struct call *calls, size_t *n,
                             struct ms_err *err)
{
    struct ms_map series = {0};
    struct ms_buf key = {.max = NAME_MAX_BYTES};
    struct ms_arena *arena = ms_arena_new(SIZE_MAX);
    enum ms_rc rc = arena != NULL ? MS_OK : ms_no_memory(err);
    for (uint32_t place = 0; rc == MS_OK && place < m->tree.entries.n; place++) {
        uint32_t node = m->tree.entries.p[place];
        if (m->step_of.p[node] == MS_MAP_NONE)
            continue;
        calls[*n] = (struct call){.node = node, .place = place};
        rc = find_series(&series, arena, &key, m, &calls[(*n)++], err);
    }
    ms_map_free(&series);
    ms_buf_free(&key);
    ms_arena_free(arena);
    return rc;
}

static enum ms_rc count_calls(struct micro *m, struct ms_err *err)
{
    size_t n = 0;
    struct call *calls = ms_calloc(m->tree.nodes.n + 1, sizeof *calls);
    if (calls == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = list_calls(m, calls, &n, err);
    if (rc == MS_OK)
        qsort(calls, n, sizeof *calls, by_number);
    for (size_t i = 0; i < n && rc == MS_OK; i++) {
        bool first = i == 0 || calls[i].series != calls[i - 1].series;
        m->number_of.p[calls[i].node] = first ? 0 : m->number_of.p[calls[i - 1].node] + 1;
    }
    ms_free(calls);
    return rc;
}

/* ---- all of it -------------------------------------------------------- */

static enum ms_rc work_out(struct micro *m, struct ms_err *err)
{
    struct ms_buf scratch = {.max = NAME_MAX_BYTES};
    size_t n = m->tree.nodes.n;
    if (!ms_vec_reserve(&m->step_of, n + 1) || !ms_vec_reserve(&m->number_of, n + 1))
        return ms_no_memory(err);
    m->step_of.n = m->number_of.n = n;
    assign_steps(m, &scratch);
    ms_buf_free(&scratch);
    return count_calls(m, err);
}

static void micro_close(struct micro *m)
{
    if (m->open)
        probe_tree_close(&m->tree);
    m->open = false;
    ms_vec_free(&m->step_of);
    ms_vec_free(&m->number_of);
}

/* Reads construct.json in dir; without that file no record has a micro step. */
static enum ms_rc micro_open(struct micro *m, const char *dir, unsigned flags, struct ms_err *err)
{
    struct ms_err own = {0};
    *m = (struct micro){.steps = 1};
    char *path = ms_path_join(dir, "construct.json");
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = probe_tree_open(&m->tree, path, flags, &own);
    ms_free(path);
    if (rc == MS_E_NOTFOUND)
        return MS_OK;
    if (rc != MS_OK)
        return ms_fail(err, rc, "%s", own.msg);
    m->open = true;
    rc = work_out(m, err);
    if (rc != MS_OK)
        micro_close(m);
    return rc;
}

/* Tells whether any record has a micro step. */
static bool micro_any(const struct micro *m)
{
    for (size_t i = 0; i < m->step_of.n; i++) {
        if (m->step_of.p[i] != MS_MAP_NONE)
            return true;
    }
    return false;
}

/* Handles gradients of parameters, which construct.json does not list: they belong to the micro
 * step of the forward call with their number, and keep their name. */
static bool name_pgrad(const struct micro *m, struct ms_str record, uint32_t *step,
                       struct ms_buf *out)
{
    if (ms_str_find_str(record, MS_STR("parameters_grad")) < 0)
        return false;
    probe__put_replaced(out, record, MS_STR(".parameters_grad"), MS_STR(".forward"));
    uint32_t node = probe_tree_find(&m->tree, ms_buf_slice(out));
    *step = node != MS_MAP_NONE && m->step_of.p[node] != MS_MAP_NONE ? m->step_of.p[node] : 0;
    ms_buf_clear(out);
    ms_buf_str(out, record);
    return true;
}

/* Gets the micro step of a record and, in out, its name with the call renumbered; false when the
 * record has no micro step. */
static bool micro_name(const struct micro *m, struct ms_str record, uint32_t *step,
                       struct ms_buf *out)
{
    struct ms_str before, call, behind;
    uint32_t node = probe_tree_find(&m->tree, record);
    ms_buf_clear(out);
    if (node == MS_MAP_NONE || m->step_of.p[node] == MS_MAP_NONE)
        return name_pgrad(m, record, step, out);
    *step = m->step_of.p[node];
    if (split_call(record, &before, &call, &behind)) {
        ms_buf_str(out, before);
        ms_buf_printf(out, "%u", m->number_of.p[node]);
        ms_buf_str(out, behind);
    } else {
        ms_buf_str(out, record);
    }
    return true;
}

/* ---- dumps of many steps ------------------------------------------------------------ */

enum { STATS = 4 };

enum metric { FORWARD, BACKWARD, RECOMPUTE, PGRAD, METRICS };
static const char *const metrics[METRICS] = {"forward", "backward", "recompute", "parameters_grad"};
static const char *const stats[STATS] = {"norm", "max", "min", "mean"};
static const int stat_of[STATS] = {PROBE_STAT_NORM, PROBE_STAT_MAX, PROBE_STAT_MIN,
                                   PROBE_STAT_MEAN};

/* One row of the table. */
struct value {
    int64_t step;
    uint32_t target, seq;
    enum metric metric;
    double stat[STATS];
};

struct import {
    struct probe__trend_job *job;
    struct probe__trend_db db;
    struct probe__trend_range range;
    /* The current dump: */
    const struct probe_place *place;
    const struct probe_dump *dump;
    struct micro micro;
    bool micro_known;
    int64_t first_step; /* step number of its first micro step */
    MS_VEC(struct value) values;
    struct ms_buf name, target, renamed[2];
};

/* ---- the name of a record --------------------------------------------- */

/* Metric and targets of a record. */
struct record {
    enum metric metric;
    struct ms_str prefix; /* common prefix of its targets' names */
    int64_t step, micro_step;
};

static bool has_word(struct ms_str name, struct ms_str inside, struct ms_str at_end)
{
    return ms_str_find_str(name, inside) >= 0 || ms_str_ends(name, at_end);
}

/* Appends the name without a word: ".forward." becomes ".", and ".forward" at the end is
 * dropped. */
static void take_out(struct ms_buf *out, struct ms_str name, struct ms_str inside,
                     struct ms_str at_end)
{
    struct ms_buf once = {.max = NAME_MAX_BYTES};
    probe__put_replaced(&once, name, inside, MS_STR("."));
    probe__put_replaced(out, ms_buf_slice(&once), at_end, MS_STR(""));
    out->bad = once.bad != MS_OK ? once.bad : out->bad;
    ms_buf_free(&once);
}

/* Appends "X.parameters_grad" and "X.parameters_grad.3" as "X" and "X.3"; false for other names. */
static bool take_out_pgrad(struct ms_buf *out, struct ms_str name)
{
    static const struct ms_str word = {".parameters_grad", 16};
    int64_t dot = ms_str_rfind(name, '.');
    struct ms_str head = ms_str_sub(name, 0, (uint32_t)(dot < 0 ? 0 : dot));
    if (ms_str_ends(name, word)) {
        ms_buf_str(out, ms_str_sub(name, 0, name.n - word.n));
        return true;
    }
    if (!ms_str_ends(head, word))
        return false;
    ms_buf_str(out, ms_str_sub(head, 0, head.n - word.n));
    if (ms_str_all_digits(ms_str_sub(name, (uint32_t)dot + 1, name.n)))
        ms_buf_str(out, ms_str_sub(name, (uint32_t)dot, name.n));
    return true;
}

/* Finds the metric of a record by a word in its name; the name without that word goes into out. */
static bool metric_of(struct ms_str name, bool recompute, struct ms_buf *out, enum metric *metric)
{
    ms_buf_clear(out);
    if (has_word(name, MS_STR(".forward."), MS_STR(".forward"))) {
        *metric = recompute ? RECOMPUTE : FORWARD;
        take_out(out, name, MS_STR(".forward."), MS_STR(".forward"));
        return true;
    }
    if (has_word(name, MS_STR(".backward."), MS_STR(".backward"))) {
        *metric = BACKWARD;
        take_out(out, name, MS_STR(".backward."), MS_STR(".backward"));
        return true;
    }
    *metric = PGRAD;
    return take_out_pgrad(out, name);
}

/* Moves the number of the call from the name into micro_step, which is a column of the table. */
static void cut_micro_step(struct record *r)
{
    int64_t dot = ms_str_rfind(r->prefix, '.');
    r->micro_step = 0;
    if (dot >= 0 &&
        ms_str_i64(ms_str_sub(r->prefix, (uint32_t)dot + 1, r->prefix.n), &r->micro_step) &&
        r->micro_step >= 0)
        r->prefix = ms_str_sub(r->prefix, 0, (uint32_t)dot);
}

/* Reads a record; *shown is false when nothing of the record goes into the table. */
static enum ms_rc read_record(struct import *im, uint32_t node, struct record *r, bool *shown,
                              struct ms_err *err)
{
    struct ms_str name = probe_node_name(im->dump, node);
    bool recompute = (im->dump->nodes.p[node].flags & PROBE_NODE_RECOMPUTE) != 0;
    uint32_t micro = 0;
    *shown = !im->micro_known || micro_name(&im->micro, name, &micro, &im->name);
    if (!*shown)
        return MS_OK;
    if (im->micro_known) {
        MS_TRY(ms_buf_check(&im->name, err));
        name = ms_buf_slice(&im->name);
    }
    MS_TRY(probe__rename(&im->job->renames, name, im->renamed, &name, err));
    *shown = metric_of(name, recompute, &im->target, &r->metric);
    MS_TRY(ms_buf_check(&im->target, err));
    r->prefix = ms_buf_slice(&im->target);
    r->step = im->first_step + micro;
    cut_micro_step(r);
    return MS_OK;
}

/* ---- leaves ----------------------------------------------------------- */

static bool is_shown(const struct probe_leaf *leaf)
{
    bool tensor = ms_str_is(leaf->type, "torch.Tensor") ||
                  ms_str_is(leaf->type, "mindspore.Tensor") ||
                  ms_str_is(leaf->type, "mindtorch.Tensor");
    return tensor &&
           (leaf->dtype == MS_DT_F16 || leaf->dtype == MS_DT_F32 || leaf->dtype == MS_DT_BF16);
}

/* Returns the last byte before a leaf that is not white space: ':' behind a key, '[' for the first
 * item of a list. */
static char byte_before(const struct probe_dump *d, const struct probe_row *row)
{
    uint64_t at = row->off;
    while (at != 0 && strchr(" \t\r\n", d->file.p[at - 1]) != NULL)
        at--;
    return at != 0 ? d->file.p[at - 1] : '\0';
}

/* Returns the path, such as "input.0", of a leaf that is directly in its section; p is NULL for
 * other leaves. */
static struct ms_str suffix_of(const struct probe_dump *d, const struct probe_row *row,
                               enum metric metric)
{
    struct ms_str path = probe_row_path(d, row);
    int64_t dot = ms_str_find(path, '.');
    char before = byte_before(d, row);
    bool item = dot >= 0 && ms_str_all_digits(ms_str_sub(path, (uint32_t)dot + 1, path.n));
    bool first = before == ':' || before == '[';
    switch (row->section) {
    case PROBE_SEC_INPUT_ARGS:
        return item && metric != BACKWARD && metric != PGRAD ? path : MS_STR_NONE;
    case PROBE_SEC_INPUT:
        return item && metric == BACKWARD ? path : MS_STR_NONE;
    case PROBE_SEC_OUTPUT:
        return item && metric != PGRAD ? path : MS_STR_NONE;
    case PROBE_SEC_PARAMETERS: /* in some dumps a list of one, whose index is dropped */
        if (!first || metric == BACKWARD || metric == PGRAD)
            return MS_STR_NONE;
        return before == '[' ? ms_str_sub(path, 0, (uint32_t)ms_str_rfind(path, '.')) : path;
    case PROBE_SEC_PGRAD:
        return first && metric == PGRAD ? path : MS_STR_NONE;
    default:
        return MS_STR_NONE;
    }
}

static double number_of(const struct probe_num *n)
{
    bool number =
        n->kind == PROBE_NUM_BOOL || n->kind == PROBE_NUM_INT || n->kind == PROBE_NUM_FLOAT;
    return number ? n->v : NAN;
}

static enum ms_rc take_row(struct import *im, const struct record *r, const struct probe_row *row,
                           struct ms_err *err)
{
    struct probe_leaf leaf;
    struct ms_str suffix = suffix_of(im->dump, row, r->metric);
    if (row->kind != PROBE_LEAF_TENSOR || suffix.p == NULL)
        return MS_OK;
    probe_row_leaf(im->dump, row, &leaf);
    if (!is_shown(&leaf))
        return MS_OK;
    struct value *v = ms_vec_push(&im->values);
    if (v == NULL)
        return ms_no_memory(err);
    *v = (struct value){.step = r->step, .metric = r->metric, .seq = (uint32_t)im->values.n};
    for (int i = 0; i < STATS; i++)
        v->stat[i] = number_of(&leaf.stat[stat_of[i]]);
    ms_buf_clear(&im->name);
    ms_buf_str(&im->name, r->prefix);
    ms_buf_putc(&im->name, '.');
    ms_buf_str(&im->name, suffix);
    MS_TRY(ms_buf_check(&im->name, err));
    return probe__trend_target(&im->db, r->metric, ms_buf_slice(&im->name), 0, r->micro_step,
                               &v->target, err);
}

/* ---- one dump --------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const struct value *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->target != y->target)
        return x->target < y->target ? -1 : 1;
    if (x->metric != y->metric)
        return x->metric < y->metric ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static enum ms_rc take_records(struct import *im, struct ms_err *err)
{
    for (uint32_t i = 0; i < im->dump->nodes.n; i++) {
        const struct probe_node *n = &im->dump->nodes.p[i];
        struct record r;
        bool shown;
        MS_TRY(read_record(im, i, &r, &shown, err));
        for (uint32_t k = 0; shown && k < n->nrows; k++)
            MS_TRY(take_row(im, &r, &im->dump->rows.p[n->first_row + k], err));
    }
    return MS_OK;
}

static enum ms_rc put_values(struct import *im, struct ms_err *err)
{
    int64_t rank = im->place->rank < 0 ? 0 : im->place->rank;
    if (im->values.n != 0)
        qsort(im->values.p, im->values.n, sizeof *im->values.p, by_key);
    for (size_t i = 0; i < im->values.n; i++) {
        const struct value *v = &im->values.p[i];
        MS_TRY(probe__trend_row(&im->db, rank, v->step, v->target, v->metric, v->stat, err));
    }
    return MS_OK;
}

static enum ms_rc convert_open_dump(struct import *im, struct ms_err *err)
{
    struct ms_span span = ms_span_begin("convert");
    im->values.n = 0;
    enum ms_rc rc = take_records(im, err);
    if (rc == MS_OK)
        rc = put_values(im, err);
    ms_span_end(&span);
    return rc;
}

/* Converts one dump; *steps is its number of micro steps. A dump that cannot be read sets `bad` and
 * is no failure. */
static enum ms_rc convert_dump(struct import *im, uint32_t *steps, struct ms_err *bad,
                               struct ms_err *err)
{
    const struct probe_trend_conf *conf = im->job->conf;
    struct probe_dump *dump;
    *steps = 0;
    if (probe_dump_open(&dump, im->place->json, conf->tolerant ? PROBE_OPEN_TOLERANT : 0,
                        im->job->pool, bad) != MS_OK)
        return bad->rc == MS_E_NOMEM ? (*err = *bad, MS_E_NOMEM) : MS_OK;
    im->dump = dump;
    im->micro = (struct micro){.steps = 1};
    enum ms_rc rc = MS_OK;
    if (conf->micro_step)
        rc = micro_open(&im->micro, im->place->dir, conf->tolerant ? PROBE_TREE_TOLERANT : 0, bad);
    im->micro_known = rc == MS_OK && micro_any(&im->micro);
    if (rc == MS_OK) {
        *steps = im->micro.steps;
        rc = convert_open_dump(im, err);
        micro_close(&im->micro);
    } else {
        rc = rc == MS_E_NOMEM ? (*err = *bad, rc) : MS_OK;
    }
    probe_dump_close(dump);
    return rc;
}

/* ---- all dumps -------------------------------------------------------- */

static bool is_dump(const struct probe_place *p)
{
    return ms_str_is(ms_path_base(p->json), "dump.json");
}

static int64_t step_of(const struct probe_place *p)
{
    return p->step < 0 ? 0 : p->step;
}

/* Converts the ranks of one step, places [from, to). */
static enum ms_rc convert_step(struct import *im, const struct probe_places *ps, size_t from,
                               size_t to, struct probe_trend_file *out, struct ms_err *err)
{
    uint32_t most = 0, steps;
    if (!im->job->conf->micro_step)
        im->first_step = step_of(&ps->list.p[from]);
    for (size_t i = from; i < to; i++) {
        struct ms_err bad = {0};
        im->place = &ps->list.p[i];
        if (!is_dump(im->place))
            continue;
        MS_TRY(convert_dump(im, &steps, &bad, err));
        out->inputs += bad.rc == MS_OK;
        out->failed += bad.rc != MS_OK;
        if (bad.rc != MS_OK)
            probe__trend_note(im->job, &bad);
        most = steps > most ? steps : most;
        if (im->place->rank > im->range.max_rank)
            im->range.max_rank = im->place->rank;
    }
    if (im->job->conf->micro_step) {
        im->first_step += most;
        im->range.max_step = im->first_step - 1;
    } else {
        im->range.max_step = im->first_step;
    }
    return MS_OK;
}

static enum ms_rc convert_all(struct import *im, const struct probe_places *ps,
                              struct probe_trend_file *out, struct ms_err *err)
{
    static const uint32_t all[METRICS] = {0xf, 0xf, 0xf, 0xf};
    im->range.min_step = im->job->conf->micro_step ? 0 : step_of(&ps->list.p[0]);
    for (size_t i = 0, to; i < ps->list.n; i = to) {
        for (to = i; to < ps->list.n && ps->list.p[to].part == ps->list.p[i].part &&
                     ps->list.p[to].step == ps->list.p[i].step;)
            to++;
        MS_TRY(convert_step(im, ps, i, to, out, err));
    }
    if (out->inputs == 0)
        return ms_fail(err, MS_E_NOTFOUND, "%s: no dump could be read", im->job->conf->data);
    out->rows = im->db.rows;
    out->targets = im->db.targets.n;
    return probe__trend_db_finish(&im->db, &im->range, true, all, probe__dump_tags, err);
}

static enum ms_rc import_places(struct probe__trend_job *j, const struct probe_places *ps,
                                struct probe_trend_file *out, struct ms_err *err)
{
    struct import im = {.job = j,
                        .name = {.max = NAME_MAX_BYTES},
                        .target = {.max = NAME_MAX_BYTES},
                        .renamed = {{.max = NAME_MAX_BYTES}, {.max = NAME_MAX_BYTES}}};
    out->path.max = NAME_MAX_BYTES;
    ms_buf_printf(&out->path, "%s/dump_data.trend.db", j->conf->db);
    MS_TRY(ms_buf_check(&out->path, err));
    MS_TRY(probe__trend_db_open(&im.db, ms_buf_z(&out->path), metrics, METRICS, stats, STATS, err));
    enum ms_rc rc = convert_all(&im, ps, out, err);
    probe__trend_db_free(&im.db);
    ms_vec_free(&im.values);
    ms_buf_free(&im.name);
    ms_buf_free(&im.target);
    ms_buf_free(&im.renamed[0]);
    ms_buf_free(&im.renamed[1]);
    return rc;
}

enum ms_rc probe__trend_dump(struct probe__trend_job *j, struct probe_trend_file *out,
                             struct ms_err *err)
{
    struct probe_places ps;
    MS_TRY(probe_find(&ps, j->conf->data, err));
    for (size_t i = 0; i < ps.notes.n; i++) {
        struct ms_err note = {0};
        ms_fail(&note, MS_E_NOTFOUND, "%s", ps.notes.p[i]);
        note.rc = MS_OK;
        probe__trend_note(j, &note);
    }
    enum ms_rc rc = import_places(j, &ps, out, err);
    probe_places_free(&ps);
    return rc;
}

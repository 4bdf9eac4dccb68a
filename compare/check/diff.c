/* SPDX-License-Identifier: MIT
 *
 * diff: writes the JSON files of -da.
 */
#include "compare/check/diff.h"

#include "compare/table/comparison.h"
#include "compare/write/table.h"
#include "probe/base/jwrite.h"
#include "probe/base/num.h"

#include <stdio.h>

enum { JSON_MAX = 1 << 24, INDENT_ROWS = 4, INDENT_NODES = 2, RENEW_GROUPS = 256 };
static const double limit = 0.5; /* relative error above which an output differs */

/* ---- operators that differ ------------------------------------------------------- */

static bool is_communication(struct ms_str op)
{
    static const char *const words[] = {"send",   "recv",    "broadcast",  "reduce",
                                        "gather", "scatter", "all_to_all", NULL};
    if (!ms_str_starts(op, MS_STR("Distributed.")) &&
        !ms_str_starts(op, MS_STR("MintDistributed.")) &&
        !ms_str_starts(op, MS_STR("communication.comm_func.")))
        return false;
    for (const char *const *w = words; *w != NULL; w++) {
        if (ms_str_has(op, *w))
            return true;
    }
    return false;
}

/* Tells whether differences of the operator are ignored, because its output is uninitialized or
 * overwritten memory. is_ignored_row: outputs that are seeds of a random number generator. */
static bool is_ignored(struct ms_str op)
{
    return ms_str_has(op, "Torch.empty") || ms_str_has(op, "Torch.fill") ||
           ms_str_has(op, "Tensor.__setitem__");
}

static bool is_ignored_row(struct ms_str row)
{
    return ms_str_has(row, "npu_fusion_attention") &&
           (ms_str_ends(row, MS_STR(".output.4")) || ms_str_ends(row, MS_STR(".output.5")));
}

static bool row_differs(const struct cmp *c, const struct cmp_row *row)
{
    bool any = c->set.conf.rules->diff_asks_inputs; /* some official rules test inputs too */
    /* by section, whatever the name of the row is */
    bool output = row->t.section == PROBE_SEC_OUTPUT;
    if (!any && (!output || is_ignored_row(row->t.name)))
        return false;
    if (c->set.mode == PROBE_MODE_MD5)
        return row->b.present && !ms_str_eq(row->t.md5, row->b.md5);
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        if (row->delta[i].rel_value > limit)
            return true;
    }
    /* NaN and inf, which the official tool ignores */
    return !c->set.conf.rules->official_diff &&
           (row->notes & (1U << CMP_NOTE_INF_NAN | 1U << CMP_NOTE_NORM_ERR));
}

static bool op_differs(const struct cmp *c, const struct cmp_view *v)
{
    for (size_t i = 0; i < v->rows.n; i++) {
        if (row_differs(c, &v->rows.p[i]))
            return true;
    }
    return false;
}

/* ---- values as JSON --------------------------------------------------------------- */

static void key(struct ms_jwrite *w, const char *name)
{
    ms_jwrite_key(w, ms_str_of(name));
}

static void put_stat(struct ms_jwrite *w, const struct cmp_item *item, const struct cmp_value *x)
{
    bool plain = ms_str_is(item->dtype, "<class 'bool'>");
    if (x->is_text)
        ms_jwrite_str(w, x->text);
    else if (x->kind == CMP_VALUE_NUMBER && x->is_int)
        ms_jwrite_raw(w, x->text);
    else if (x->kind == CMP_VALUE_NUMBER || x->kind == CMP_VALUE_INF || x->kind == CMP_VALUE_NINF)
        ms_jwrite_f64(w, x->v);
    else if (plain && (ms_str_is(x->text, "True") || ms_str_is(x->text, "False")))
        ms_jwrite_bool(w, x->v != 0 || ms_str_is(x->text, "True"));
    else
        ms_jwrite_str(w, x->text);
}

static const char *const stat_words[] = {"max", "min", "mean", "l2norm"};

static void put_stats(struct ms_jwrite *w, const char *side, const struct cmp_item *item)
{
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s %s", side, stat_words[i]);
        key(w, name);
        put_stat(w, item, &item->stat[i]);
    }
}

/* Writes a field of a P2P operation as Python prints it. */
static void put_p2p_of(struct ms_jwrite *w, struct ms_str leaf, const char *field)
{
    struct ms_jread r;
    ms_jread_init(&r, leaf.p, leaf.n, 0);
    if (ms_str_has(leaf, "\"class_type\"") && ms_jread_next(&r) == MS_J_OBJ) {
        while (ms_jread_next(&r) == MS_J_KEY) {
            bool here = ms_str_is(r.text, field);
            enum ms_jtok tok = ms_jread_next(&r);
            if (here && (tok == MS_J_STR || tok == MS_J_NUM)) {
                tok == MS_J_NUM ? ms_jwrite_raw(w, r.text) : ms_jwrite_str(w, r.text);
                return;
            }
            ms_jread_skip(&r, tok);
        }
    }
    ms_jwrite_str(w, MS_STR("None"));
}

static void put_p2p(struct ms_jwrite *w, const char *name, const struct cmp_item *item,
                    const char *field)
{
    key(w, name);
    put_p2p_of(w, item->present ? item->json : MS_STR_NONE, field);
}

/* Writes a field of the P2P operation of the row at the same place in the dump, as the official
 * tool does. On the golden side this is rarely the row's partner. */
static void put_p2p_at(struct ms_jwrite *w, const char *name, const struct cmp__side *s,
                       size_t place, const char *field)
{
    struct probe_leaf leaf;
    key(w, name);
    if (place >= s->order.n) {
        ms_jwrite_raw(w, MS_STR("NaN"));
        return;
    }
    probe_row_leaf(s->dump, cmp__side_row(s, (uint32_t)place), &leaf);
    put_p2p_of(w, leaf.json, field);
}

static void put_operation(struct ms_jwrite *w, const struct cmp *c, const struct cmp_row *row,
                          size_t place)
{
    static const char *const fields[] = {"op", "peer"};
    for (int i = 0; i < 2; i++) {
        char name[2][32];
        snprintf(name[0], sizeof *name, "NPU P2POp %s", fields[i]);
        snprintf(name[1], sizeof *name, "Bench P2POp %s", fields[i]);
        if (c->set.conf.rules->official_diff) {
            put_p2p_at(w, name[0], &c->rows.t, place, fields[i]);
            put_p2p_at(w, name[1], &c->rows.b, place, fields[i]);
        } else {
            put_p2p(w, name[0], &row->t, fields[i]);
            put_p2p(w, name[1], &row->b, fields[i]);
        }
    }
}

static void put_frames(struct ms_jwrite *w, struct ms_str frames)
{
    struct ms_jread r;
    struct ms_str frame;
    struct ms_buf scratch = {.max = 1 << 20};
    ms_jread_init(&r, frames.p, frames.n, 0);
    ms_jwrite_arr(w);
    while (probe_stack_next(&r, &scratch, &frame))
        ms_jwrite_str(w, frame);
    ms_jwrite_arr_end(w);
    ms_buf_free(&scratch);
}

static const char *state_of(const struct cmp_item *item)
{
    switch (item->section) {
    case PROBE_SEC_OUTPUT:
        return "output";
    case PROBE_SEC_PARAMETERS:
        return "parameters";
    case PROBE_SEC_PGRAD:
        return "parameters_grad";
    case PROBE_SEC_DEBUG:
        return "debug";
    default:
        return "input";
    }
}

static void put_text(struct ms_jwrite *w, const char *name, struct ms_str text)
{
    key(w, name);
    ms_jwrite_str(w, text);
}

static void put_pair_of(struct ms_jwrite *w, const char *t_name, const char *b_name,
                        struct ms_str t, struct ms_str b)
{
    put_text(w, t_name, t);
    put_text(w, b_name, b);
}

/* Writes a difference as text; msprobe 1.x writes a number if the text is one. */
static void put_difference(struct ms_jwrite *w, const struct cmp *c, const char *name,
                           struct ms_str diff)
{
    double v;
    bool number = ms_num_parse_f64(diff.p, diff.n, &v);
    if (!c->set.conf.rules->text_numbers || !(number || ms_str_ends(diff, MS_STR("inf")))) {
        put_text(w, name, diff);
        return;
    }
    key(w, name);
    ms_jwrite_raw(w, number ? diff : diff.p[0] == '-' ? MS_STR("-Infinity") : MS_STR("Infinity"));
}

static void put_figures(struct ms_jwrite *w, const struct cmp *c, const struct cmp_row *row)
{
    static const char *const diffs[] = {"Max diff", "Min diff", "Mean diff", "L2norm diff"};
    static const char *const rels[] = {"MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr",
                                       "NormRelativeErr"};
    if (c->set.mode == PROBE_MODE_MD5) {
        put_pair_of(w, "NPU MD5", "BENCH MD5", row->t.md5, row->b.md5);
        return;
    }
    for (unsigned i = 0; i < PROBE_STATS; i++)
        put_difference(w, c, diffs[i], row->delta[i].diff);
    for (unsigned i = 0; i < PROBE_STATS; i++)
        put_text(w, rels[i], row->delta[i].rel);
    put_stats(w, "NPU", &row->t);
    put_stats(w, "Bench", &row->b);
}

/* Writes the verdict fields as the official tool has them at this point, before its rules run:
 * verdicts of checksums and missing partners. */
static void put_verdict(struct ms_jwrite *w, const struct cmp *c, const struct cmp_row *row)
{
    bool md5 = c->set.mode == PROBE_MODE_MD5;
    key(w, "Requires_grad Consistent");
    ms_jwrite_bool(w, row->grad_same);
    ms_jwrite_kstr(w, "Result",
                   md5 && ms_str_eq(row->t.md5, row->b.md5) ? "pass"
                   : !row->b.present                        ? "N/A"
                   : md5                                    ? "Different"
                                                            : "");
    if (md5 && c->set.conf.rules->no_digest_message)
        return;
    char message[80];
    snprintf(message, sizeof message, "%s%s", row->b.present ? "" : "No bench data matched.",
             row->grad_same || md5 ? "" : "Requires_grad inconsistent. ");
    key(w, "Err_message");
    if (md5 && row->b.present)
        ms_jwrite_raw(w, MS_STR("NaN"));
    else
        ms_jwrite_str(w, ms_str_of(message));
}

static void put_row(struct ms_jwrite *w, const struct cmp *c, const struct cmp_view *v,
                    const struct cmp_row *row, size_t place)
{
    ms_jwrite_obj(w);
    put_pair_of(w, "NPU Name", "Bench Name", row->t.name, row->b.name);
    put_pair_of(w, "NPU Dtype", "Bench Dtype", row->t.dtype, row->b.dtype);
    put_pair_of(w, "NPU Tensor Shape", "Bench Tensor Shape", row->t.shape, row->b.shape);
    put_pair_of(w, "NPU Requires_grad", "Bench Requires_grad", row->t.requires_grad,
                row->b.requires_grad);
    put_figures(w, c, row);
    put_verdict(w, c, row);
    if (c->rows.has_stack) {
        key(w, "NPU_Stack_Info");
        if (cmp__shows_stack(c, v, row))
            put_frames(w, v->frames);
        else
            ms_jwrite_str(w, MS_STR("N/A"));
    }
    put_text(w, "state", ms_str_of(state_of(&row->t)));
    put_text(w, "api_origin_name", v->op);
    put_operation(w, c, row, place);
    ms_jwrite_obj_end(w);
}

/* ---- the file of a rank ---------------------------------------------------------------- */

/* place: that of the operator's first row in the table. */
static void put_op(struct ms_jwrite *w, const struct cmp *c, const struct cmp_view *v, bool differs,
                   size_t place)
{
    ms_jwrite_key(w, v->op);
    ms_jwrite_obj(w);
    key(w, "is_same");
    ms_jwrite_bool(w, !differs);
    key(w, "op_items");
    ms_jwrite_arr(w);
    for (size_t i = 0; i < v->rows.n; i++)
        put_row(w, c, v, &v->rows.p[i], place + i);
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

static enum ms_rc put_ops(struct ms_jwrite *w, const struct cmp *c, struct cmp_trail *trail,
                          struct ms_err *err)
{
    struct cmp_view v;
    MS_TRY(cmp_view_init(&v, err));
    enum ms_rc rc = MS_OK;
    size_t place = 0;
    for (uint32_t g = 0; g < cmp_groups(c) && rc == MS_OK; g++) {
        if (g % RENEW_GROUPS == 0)
            rc = cmp_view_renew(&v, err);
        if (rc == MS_OK)
            rc = cmp_view_group(c, g, &v, err);
        if (rc != MS_OK || v.op.n == 0) /* rows of the golden side alone */
            continue;
        bool differs = op_differs(c, &v);
        put_op(w, c, &v, differs, place);
        place += v.rows.n;
        bool communicates = is_communication(v.op);
        if ((differs && !is_ignored(v.op)) || communicates)
            rc = cmp_trail_add(trail, g, &v, differs, communicates, err);
    }
    cmp_view_free(&v);
    return rc;
}

enum ms_rc cmp_write_diff(const struct cmp *c, const char *stem, struct cmp_trail *trail,
                          struct cmp_files *files, struct ms_err *err)
{
    struct ms_buf path = {.max = 1 << 16};
    struct ms_out *out = NULL;
    struct ms_jwrite w;
    ms_jwrite_init(&w, INDENT_ROWS, JSON_MAX);
    ms_buf_printf(&path, "%s.json", stem);
    enum ms_rc rc = cmp_files_add(files, ms_buf_slice(&path), err);
    if (rc == MS_OK)
        rc = ms_out_create(&out, ms_buf_z(&path), err);
    if (rc == MS_OK) {
        w.drain = ms_out_sink;
        w.ctx = out;
        ms_jwrite_obj(&w);
        rc = put_ops(&w, c, trail, err);
        ms_jwrite_obj_end(&w);
        enum ms_rc end = ms_jwrite_finish(&w, err);
        rc = rc != MS_OK ? rc : end;
    }
    ms_jwrite_free(&w);
    ms_buf_free(&path);
    if (rc == MS_OK)
        return ms_out_commit(out, err);
    ms_out_abort(out);
    return rc;
}

/* ---- the file of the result --------------------------------------------------------------- */

struct cmp_diff_out {
    struct ms_out *out;
    struct ms_jwrite w;
    bool in_rank;
};

enum ms_rc cmp_diff_open(struct cmp_diff_out **out, const char *path, struct ms_err *err)
{
    struct cmp_diff_out *d = ms_calloc(1, sizeof *d);
    if (d == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = ms_out_create(&d->out, path, err);
    if (rc != MS_OK) {
        ms_free(d);
        return rc;
    }
    ms_jwrite_init(&d->w, INDENT_NODES, JSON_MAX);
    d->w.drain = ms_out_sink;
    d->w.ctx = d->out;
    ms_jwrite_obj(&d->w);
    *out = d;
    return MS_OK;
}

void cmp_diff_rank(struct cmp_diff_out *d, const char *rank)
{
    if (d->in_rank)
        ms_jwrite_arr_end(&d->w);
    key(&d->w, rank);
    ms_jwrite_arr(&d->w);
    d->in_rank = true;
}

static void put_rows_of(struct ms_jwrite *w, const struct cmp *c, const struct cmp_view *v,
                        const char *state)
{
    key(w, state);
    ms_jwrite_obj(w);
    for (size_t i = 0; i < v->rows.n; i++) {
        const struct cmp_row *row = &v->rows.p[i];
        if (strcmp(state_of(&row->t), state) != 0)
            continue;
        ms_jwrite_key(w, row->t.name);
        ms_jwrite_obj(w);
        if (c->set.mode == PROBE_MODE_MD5)
            put_text(w, "NPU MD5", row->t.md5);
        else
            put_stats(w, "NPU", &row->t);
        put_p2p(w, "NPU P2POp peer", &row->t, "peer");
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_obj_end(w);
}

enum ms_rc cmp_diff_node(struct cmp_diff_out *d, const struct cmp *c, uint32_t group,
                         struct ms_err *err)
{
    struct cmp_view v;
    MS_TRY(cmp_view_init(&v, err));
    enum ms_rc rc = cmp_view_group(c, group, &v, err);
    if (rc == MS_OK) {
        ms_jwrite_obj(&d->w);
        put_text(&d->w, "op_name", v.op);
        key(&d->w, "data_info");
        ms_jwrite_obj(&d->w);
        put_rows_of(&d->w, c, &v, "input");
        put_rows_of(&d->w, c, &v, "output");
        ms_jwrite_obj_end(&d->w);
        key(&d->w, "stack_info");
        if (v.frames.p != NULL)
            put_frames(&d->w, v.frames);
        else
            ms_jwrite_null(&d->w);
        ms_jwrite_obj_end(&d->w);
    }
    cmp_view_free(&v);
    return rc;
}

enum ms_rc cmp_diff_close(struct cmp_diff_out *d, bool keep, struct ms_err *err)
{
    if (d->in_rank)
        ms_jwrite_arr_end(&d->w);
    ms_jwrite_obj_end(&d->w);
    enum ms_rc rc = keep ? ms_jwrite_finish(&d->w, err) : MS_OK;
    ms_jwrite_free(&d->w);
    if (keep && rc == MS_OK)
        rc = ms_out_commit(d->out, err);
    else
        ms_out_abort(d->out);
    ms_free(d);
    return rc;
}

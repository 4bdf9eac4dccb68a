/* SPDX-License-Identifier: MIT
 *
 * overflow_write: reads the details of an answer, and writes the result file in the official
 * format:
 *
 *     {"rank_0": [{"op_name": NAME,
 *                  "data_info": {"input_args": [], "input_kwargs": {}, "output": []},
 *                  "construct_info": [ROOT, ..., NAME],
 *                  "stack_info": [FRAME, ...]}]}
 *
 * The record is copied from its dump by its offset and read as a small dump of its own.
 */
#include "probe/base/clock.h"
#include "probe/base/jwrite.h"
#include "probe/base/mem.h"
#include "probe/dump/stack.h"
#include "probe/dump/tree.h"
#include "probe/overflow/overflow.h"

#include <math.h>
#include <stdio.h>

/* ---- the record ------------------------------------------------------- */

static enum ms_rc cut_record(struct ms_buf *out, const struct ms_file *file, uint64_t off,
                             struct ms_err *err)
{
    struct ms_jread r;
    if (off >= file->n)
        return ms_fail(err, MS_E_IO, "the file has become shorter while it was read");
    ms_jread_init(&r, file->p + off, file->n - off, MS_JREAD_MEMBERS);
    r.file = file->p;
    enum ms_jtok tok = ms_jread_next(&r);
    if (tok == MS_J_KEY)
        tok = ms_jread_skip(&r, tok);
    if (tok == MS_J_ERR)
        return ms_jread_fail(&r, err);
    ms_buf_puts(out, "{\"data\": {");
    ms_buf_put(out, file->p + off, (size_t)(r.at - (file->p + off)));
    ms_buf_puts(out, "}}");
    return ms_buf_check(out, err);
}

static enum ms_rc read_record(struct probe_overflow_detail *detail,
                              const struct probe_overflow_answer *a, struct ms_err *err)
{
    struct ms_file file;
    MS_TRY(ms_file_map(&file, a->place->json, MS_JSON_MAX, err));
    enum ms_rc rc = cut_record(&detail->text, &file, a->off, err);
    ms_file_unmap(&file);
    if (rc == MS_OK)
        rc = probe_dump_parse(&detail->dump, a->place->json, ms_buf_slice(&detail->text), 0, NULL,
                              err);
    return rc == MS_OK ? MS_OK : (ms_err_wrap(err, "%s", a->place->json), rc);
}

/* ---- construct and stack ---------------------------------------------- */

static const char *file_in(const char *dir, const char *name, struct ms_arena *arena)
{
    char *path = ms_path_join(dir, name);
    const char *kept = path != NULL ? ms_arena_str(arena, ms_str_of(path)).p : NULL;
    ms_free(path);
    return kept;
}

static enum ms_rc push_text(struct probe_overflow_detail *detail, bool stack, struct ms_str text,
                            struct ms_err *err)
{
    struct ms_str *slot = stack ? ms_vec_push(&detail->stack) : ms_vec_push(&detail->construct);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = ms_arena_str(detail->arena, text);
    return slot->p != NULL ? MS_OK : ms_no_memory(err);
}

/* Collects the path from the node up to the root, then reverses it. */
static enum ms_rc climb_tree(struct probe_overflow_detail *detail, const struct probe_tree *t,
                             struct ms_str node, struct ms_err *err)
{
    MS_TRY(push_text(detail, false, node, err));
    for (uint32_t i = probe_tree_find(t, node); i != MS_MAP_NONE; i = t->nodes.p[i].parent) {
        if (t->nodes.p[i].parent != MS_MAP_NONE)
            MS_TRY(push_text(detail, false, probe_tree_name(t, t->nodes.p[i].parent), err));
    }
    struct ms_str *p = detail->construct.p;
    for (size_t a = 0, b = detail->construct.n - 1; a < b; a++, b--) {
        struct ms_str swap = p[a];
        p[a] = p[b];
        p[b] = swap;
    }
    return MS_OK;
}

/* Reads construct.json. Some dumps have none: at level L1 the path is the node alone. */
static enum ms_rc read_construct(struct probe_overflow_detail *detail,
                                 const struct probe_overflow_answer *a, bool tolerant,
                                 struct ms_err *err)
{
    struct probe_tree tree;
    struct ms_err own = {0};
    const char *path = file_in(a->place->dir, "construct.json", detail->arena);
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = probe_tree_open(&tree, path, tolerant ? PROBE_TREE_TOLERANT : 0, &own);
    if (rc == MS_E_NOTFOUND)
        return push_text(detail, false, a->node, err);
    if (rc != MS_OK)
        return ms_fail(err, rc, "%s", own.msg);
    rc = climb_tree(detail, &tree, a->node, err);
    probe_tree_close(&tree);
    return rc;
}

/* Returns the frames of a node. Only forward nodes have a stack, so "X.backward.0" uses that of
 * "X.forward.0". */
static struct ms_str frames_of(const struct probe_stacks *s, struct ms_str node,
                               struct ms_buf *twin)
{
    struct ms_str frames = probe_stack_frames(s, node);
    int64_t at = ms_str_find_str(node, MS_STR(".backward"));
    if (frames.p != NULL || at < 0)
        return frames;
    ms_buf_str(twin, ms_str_sub(node, 0, (uint32_t)at));
    ms_buf_puts(twin, ".forward");
    ms_buf_str(twin, ms_str_sub(node, (uint32_t)at + 9, node.n));
    return twin->bad == MS_OK ? probe_stack_frames(s, ms_buf_slice(twin)) : MS_STR_NONE;
}

static enum ms_rc copy_frames(struct probe_overflow_detail *detail, const struct probe_stacks *s,
                              struct ms_str node, struct ms_err *err)
{
    struct ms_buf scratch = {.max = 1 << 20}, twin = {.max = 1 << 20};
    struct ms_str frames = frames_of(s, node, &twin);
    struct ms_str frame;
    struct ms_jread r;
    enum ms_rc rc = MS_OK;
    ms_jread_init(&r, frames.p != NULL ? frames.p : "", frames.n, 0);
    while (rc == MS_OK && frames.p != NULL && probe_stack_next(&r, &scratch, &frame))
        rc = push_text(detail, true, frame, err);
    ms_buf_free(&scratch);
    ms_buf_free(&twin);
    return rc;
}

static enum ms_rc read_stack(struct probe_overflow_detail *detail,
                             const struct probe_overflow_answer *a, bool tolerant,
                             struct ms_err *err)
{
    struct probe_stacks stacks;
    struct ms_err own = {0};
    const char *path = file_in(a->place->dir, "stack.json", detail->arena);
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = probe_stacks_open(&stacks, path, tolerant ? PROBE_STACK_TOLERANT : 0, &own);
    if (rc == MS_E_NOTFOUND)
        return MS_OK;
    if (rc != MS_OK)
        return ms_fail(err, rc, "%s", own.msg);
    rc = copy_frames(detail, &stacks, a->node, err);
    probe_stacks_close(&stacks);
    return rc;
}

enum ms_rc probe_overflow_describe(struct probe_overflow_detail *detail,
                                   const struct probe_overflow *o,
                                   const struct probe_overflow_answer *answer, struct ms_err *err)
{
    *detail = (struct probe_overflow_detail){.text = {.max = UINT32_MAX},
                                             .arena = ms_arena_new(SIZE_MAX)};
    enum ms_rc rc = detail->arena != NULL ? read_record(detail, answer, err) : ms_no_memory(err);
    if (rc == MS_OK)
        rc = read_construct(detail, answer, o->tolerant, err);
    if (rc == MS_OK)
        rc = read_stack(detail, answer, o->tolerant, err);
    if (rc != MS_OK)
        probe_overflow_detail_free(detail);
    return rc;
}

void probe_overflow_detail_free(struct probe_overflow_detail *detail)
{
    probe_dump_close(detail->dump);
    ms_buf_free(&detail->text);
    ms_vec_free(&detail->construct);
    ms_vec_free(&detail->stack);
    ms_arena_free(detail->arena);
    *detail = (struct probe_overflow_detail){0};
}

/* ---- the file --------------------------------------------------------- */

static void copy_token(struct ms_jwrite *w, const struct ms_jread *r, enum ms_jtok tok,
                       struct ms_str text)
{
    switch (tok) {
    case MS_J_OBJ:
        return ms_jwrite_obj(w);
    case MS_J_OBJ_END:
        return ms_jwrite_obj_end(w);
    case MS_J_ARR:
        return ms_jwrite_arr(w);
    case MS_J_ARR_END:
        return ms_jwrite_arr_end(w);
    case MS_J_KEY:
        return ms_jwrite_key(w, text);
    case MS_J_STR:
        return ms_jwrite_str(w, text);
    case MS_J_NUM:
        return ms_jwrite_raw(w, r->text);
    case MS_J_TRUE:
    case MS_J_FALSE:
        return ms_jwrite_bool(w, tok == MS_J_TRUE);
    default:
        return ms_jwrite_null(w);
    }
}

/* Copies the value that begins with tok, the last token of r. */
static enum ms_rc copy_value(struct ms_jwrite *w, struct ms_jread *r, enum ms_jtok tok,
                             struct ms_err *err)
{
    struct ms_buf scratch = {.max = UINT32_MAX};
    uint32_t outside = r->depth - (tok == MS_J_OBJ || tok == MS_J_ARR);
    enum ms_rc rc = MS_OK;
    for (;; tok = ms_jread_next(r)) {
        struct ms_str text = MS_STR_NONE;
        if (tok == MS_J_ERR)
            rc = ms_jread_fail(r, err);
        else if (tok == MS_J_KEY || tok == MS_J_STR)
            rc = ms_jread_text(r, &scratch, &text, err);
        if (rc != MS_OK)
            break;
        copy_token(w, r, tok, text);
        if (r->depth == outside && tok != MS_J_KEY)
            break;
    }
    ms_buf_free(&scratch);
    return rc;
}

/* Moves to the value of a member of the text's only record; MS_J_END when the record does not have
 * the member. */
static enum ms_jtok seek_member(struct ms_jread *r, struct ms_str text, const char *member)
{
    ms_jread_init(r, text.p, text.n, 0);
    for (int level = 0; level < 2; level++) { /* {"data": {NAME: */
        ms_jread_next(r);
        ms_jread_next(r);
    }
    if (ms_jread_next(r) != MS_J_OBJ)
        return MS_J_END;
    while (ms_jread_next(r) == MS_J_KEY) {
        if (ms_str_is(r->text, member))
            return ms_jread_next(r);
        if (ms_jread_skip(r, MS_J_KEY) == MS_J_ERR)
            break;
    }
    return MS_J_END;
}

static enum ms_rc put_member(struct ms_jwrite *w, struct ms_str text, const char *member,
                             bool is_list, struct ms_err *err)
{
    struct ms_jread r;
    enum ms_jtok tok = seek_member(&r, text, member);
    ms_jwrite_key(w, ms_str_of(member));
    if (tok != MS_J_END)
        return copy_value(w, &r, tok, err);
    if (is_list) {
        ms_jwrite_arr(w);
        ms_jwrite_arr_end(w);
    } else {
        ms_jwrite_obj(w);
        ms_jwrite_obj_end(w);
    }
    return MS_OK;
}

/* Writes data_info. In the official file an absent output is {}, as absent keywords are. */
static enum ms_rc put_data(struct ms_jwrite *w, struct ms_str node, struct ms_str text,
                           struct ms_err *err)
{
    ms_jwrite_key(w, MS_STR("data_info"));
    ms_jwrite_obj(w);
    if (ms_str_find_str(node, MS_STR("forward")) >= 0) {
        MS_TRY(put_member(w, text, "input_args", true, err));
        MS_TRY(put_member(w, text, "input_kwargs", false, err));
    } else {
        MS_TRY(put_member(w, text, "input", true, err));
    }
    MS_TRY(put_member(w, text, "output", false, err));
    ms_jwrite_obj_end(w);
    return MS_OK;
}

static void put_texts(struct ms_jwrite *w, const struct ms_str *texts, size_t n)
{
    ms_jwrite_arr(w);
    for (size_t i = 0; i < n; i++)
        ms_jwrite_str(w, texts[i]);
    ms_jwrite_arr_end(w);
}

static enum ms_rc put_answer(struct ms_jwrite *w, const struct probe_overflow *o,
                             const struct probe_overflow_answer *a, struct ms_err *err)
{
    struct probe_overflow_detail detail;
    MS_TRY(probe_overflow_describe(&detail, o, a, err));
    ms_jwrite_obj(w);
    ms_jwrite_key(w, MS_STR("op_name"));
    ms_jwrite_str(w, a->node);
    enum ms_rc rc = put_data(w, a->node, ms_buf_slice(&detail.text), err);
    ms_jwrite_key(w, MS_STR("construct_info"));
    put_texts(w, detail.construct.p, detail.construct.n);
    ms_jwrite_key(w, MS_STR("stack_info"));
    if (detail.stack.n != 0) {
        put_texts(w, detail.stack.p, detail.stack.n);
    } else { /* the official text for a node without a stack */
        ms_jwrite_obj(w);
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_obj_end(w);
    probe_overflow_detail_free(&detail);
    return rc;
}

/* Writes the answers, which are sorted by rank, one per rank. */
static enum ms_rc put_answers(struct ms_jwrite *w, const struct probe_overflow *o,
                              struct ms_err *err)
{
    ms_jwrite_obj(w);
    for (size_t i = 0; i < o->answers.n; i++) {
        const struct probe_overflow_answer *a = &o->answers.p[i];
        char key[32];
        int n = snprintf(key, sizeof key, "rank_%lld",
                         a->place->rank < 0 ? 0LL : (long long)a->place->rank);
        ms_jwrite_key(w, (struct ms_str){key, (uint32_t)n});
        ms_jwrite_arr(w);
        MS_TRY(put_answer(w, o, a, err));
        ms_jwrite_arr_end(w);
    }
    ms_jwrite_obj_end(w);
    return MS_OK;
}

enum ms_rc probe_overflow_write(const struct probe_overflow *o, const char *dir, struct ms_buf *out,
                                struct ms_err *err)
{
    struct ms_out *file;
    struct ms_jwrite w;
    ms_buf_printf(out, "%s%sanomaly_analyze_%lld.json", dir,
                  dir[0] != '\0' && dir[strlen(dir) - 1] == '/' ? "" : "/",
                  (long long)ms_clock_read(CLOCK_REALTIME));
    MS_TRY(ms_buf_check(out, err));
    MS_TRY(ms_out_create(&file, ms_buf_z(out), err));
    ms_jwrite_init(&w, 2, 1 << 20);
    w.drain = ms_out_sink;
    w.ctx = file;
    enum ms_rc rc = put_answers(&w, o, err);
    if (rc == MS_OK)
        rc = ms_jwrite_finish(&w, err);
    ms_jwrite_free(&w);
    if (rc == MS_OK)
        return ms_out_commit(file, err);
    ms_out_abort(file);
    return rc;
}

/* ---- an answer in words ------------------------------------------------------------- */

/* ---- words ------------------------------------------------------------ */

const char *probe_overflow_bad_text(unsigned bad)
{
    return bad == PROBE_BAD_NAN   ? "NaN"
           : bad == PROBE_BAD_INF ? "Inf"
           : bad != 0             ? "NaN and Inf"
                                  : "none";
}

static bool is_input(const struct probe_row *row)
{
    return row->section == PROBE_SEC_INPUT_ARGS || row->section == PROBE_SEC_INPUT_KWARGS ||
           row->section == PROBE_SEC_INPUT;
}

/* Returns the bad values of all inputs or of all outputs; the outputs of a nan_check dump use the
 * record's flag. */
static unsigned bad_side(const struct probe_dump *d, bool inputs)
{
    unsigned bad = !inputs && (d->nodes.p[0].flags & PROBE_NODE_NAN) != 0 ? PROBE_BAD_NAN : 0;
    for (size_t i = 0; i < d->rows.n; i++) {
        struct probe_leaf leaf;
        probe_row_leaf(d, &d->rows.p[i], &leaf);
        if (is_input(&d->rows.p[i]) == inputs)
            bad |= probe_leaf_bad(&leaf);
    }
    return bad;
}

static const char *when_text(enum probe_overflow_phase phase)
{
    switch (phase) {
    case PROBE_OVERFLOW_BEFORE:
        return "before any communication";
    case PROBE_OVERFLOW_BETWEEN:
        return "between two communications";
    case PROBE_OVERFLOW_AFTER:
        return "after the last communication";
    case PROBE_OVERFLOW_PRESENT:
        break;
    }
    return "already present";
}

/* Appends "rank 1, step 0", without the step when the path does not have it. */
static void put_place(struct ms_buf *out, const struct probe_place *p)
{
    ms_buf_printf(out, "rank %lld", p->rank < 0 ? 0LL : (long long)p->rank);
    if (p->step >= 0)
        ms_buf_printf(out, ", step %lld", (long long)p->step);
}

static void put_number(struct ms_buf *out, double v)
{
    if (isnan(v))
        ms_buf_puts(out, "NaN");
    else if (isinf(v))
        ms_buf_puts(out, v > 0 ? "Inf" : "-Inf");
    else
        ms_buf_printf(out, "%.4g", v);
}

/* Appends the range " from -1.5 to 3"; nothing when the dump has no statistics. */
void probe_overflow_put_range(struct ms_buf *out, const struct probe_leaf *leaf)
{
    const struct probe_num *min = &leaf->stat[PROBE_STAT_MIN], *max = &leaf->stat[PROBE_STAT_MAX];
    if (min->kind != PROBE_NUM_FLOAT && min->kind != PROBE_NUM_INT && min->kind != PROBE_NUM_BOOL)
        return;
    ms_buf_puts(out, " from ");
    put_number(out, min->v);
    ms_buf_puts(out, " to ");
    put_number(out, max->v);
}

/* Appends "input.0 from -1.5 to 3.0, input.1 ...": at most SHOWN tensors. */
static void put_inputs(struct ms_buf *out, const struct probe_dump *d)
{
    enum { SHOWN = 3 };
    unsigned n = 0;
    for (size_t i = 0; i < d->rows.n; i++) {
        const struct probe_row *row = &d->rows.p[i];
        struct probe_leaf leaf;
        if (!is_input(row) || row->kind != PROBE_LEAF_TENSOR || n++ >= SHOWN)
            continue;
        probe_row_leaf(d, row, &leaf);
        ms_buf_puts(out, n == 1 ? "" : ", ");
        ms_buf_str(out, probe_row_path(d, row));
        probe_overflow_put_range(out, &leaf);
    }
    if (n > SHOWN)
        ms_buf_printf(out, " and %u more", n - SHOWN);
    if (n == 0)
        ms_buf_puts(out, "it has no tensor as input");
}

static void put_verdict(struct ms_buf *out, const struct probe_overflow_answer *a,
                        const struct probe_dump *d)
{
    unsigned bad = bad_side(d, false);
    if (a->phase == PROBE_OVERFLOW_PRESENT) {
        unsigned all = bad | bad_side(d, true);
        ms_buf_printf(out,
                      " is the first record that holds %s; no operator made it from good "
                      "inputs",
                      probe_overflow_bad_text(all));
        return;
    }
    ms_buf_printf(out, " makes %s %s", probe_overflow_bad_text(bad), when_text(a->phase));
    if (a->communication)
        ms_buf_puts(out, ", though no rank handed it one");
    if (a->asked_for)
        ms_buf_puts(out, "; an argument of it is not finite, so this may be meant");
    if ((d->nodes.p[0].flags & PROBE_NODE_NAN_SAID) != 0) {
        ms_buf_puts(out, "; a nan_check dump does not say what its inputs were");
    } else {
        ms_buf_puts(out, "; inputs: ");
        put_inputs(out, d);
    }
}

/* Appends the answer in one sentence. */
void probe_overflow_put_sentence(struct ms_buf *out, const struct probe_overflow_answer *a,
                                 const struct probe_overflow_detail *detail)
{
    put_place(out, a->place);
    ms_buf_puts(out, ": ");
    ms_buf_str(out, a->node);
    put_verdict(out, a, detail->dump);
}

/* ---- JSON ------------------------------------------------------------- */

static void put_key_buf(struct ms_jwrite *w, const char *key, struct ms_buf *text)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_str(w, ms_buf_slice(text));
    ms_buf_clear(text);
}

static void put_number_list(struct ms_jwrite *w, const char *key, int64_t v, int times)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_arr(w);
    for (int i = 0; i < times && v >= 0; i++)
        ms_jwrite_i64(w, v);
    ms_jwrite_arr_end(w);
}

enum ms_rc probe_overflow_put_finding(struct ms_jwrite *w, const struct probe_overflow *o,
                                      const struct probe_overflow_answer *a, struct ms_err *err)
{
    struct ms_buf text = {.max = 1 << 20};
    struct probe_overflow_detail detail;
    MS_TRY(probe_overflow_describe(&detail, o, a, err));
    const struct probe_dump *d = detail.dump;
    unsigned bad = bad_side(d, false);
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "kind", "overflow");
    ms_jwrite_kstr(w, "severity", a->asked_for ? "warning" : "error");
    put_number_list(w, "ranks", a->place->rank < 0 ? 0 : a->place->rank, 1);
    put_number_list(w, "steps", a->place->step, 2);
    ms_jwrite_kstr(w, "value", probe_overflow_bad_text(bad != 0 ? bad : bad_side(d, true)));
    probe_overflow_put_sentence(&text, a, &detail);
    put_key_buf(w, "text", &text);
    ms_buf_puts(&text, a->place->json);
    ms_buf_putc(&text, '#');
    ms_buf_str(&text, a->node);
    put_key_buf(w, "where", &text);
    ms_buf_str(&text, a->node);
    put_key_buf(w, "node", &text);
    ms_jwrite_kstr(w, "when", when_text(a->phase));
    ms_jwrite_obj_end(w);
    ms_buf_free(&text);
    probe_overflow_detail_free(&detail);
    return MS_OK;
}

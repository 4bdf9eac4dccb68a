/* SPDX-License-Identifier: MIT
 *
 * overflow_text: writes an answer as a sentence and as a finding in JSON.
 */
#include "probe/overflow/overflow.h"

#include "probe/base/jwrite.h"

#include <math.h>

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

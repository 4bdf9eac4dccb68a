/* SPDX-License-Identifier: MIT
 *
 * show_overflow: see the header.
 */
#include "probe/cmd/show_overflow.h"

#include "probe/base/opt.h"

/* Prints text from a dump with control characters replaced, as they could control the terminal. */
static void print_text(struct ms_buf *text)
{
    struct ms_str s = ms_buf_slice(text);
    for (uint32_t i = 0; i < s.n; i++)
        putchar((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f ? ' ' : s.p[i]);
    putchar('\n');
    ms_buf_clear(text);
}

static void show_leaf(const struct probe_dump *d, const struct probe_row *row, struct ms_buf *line)
{
    struct probe_leaf leaf;
    probe_row_leaf(d, row, &leaf);
    unsigned bad = probe_leaf_bad(&leaf);
    ms_buf_puts(line, "  ");
    ms_buf_str(line, probe_row_path(d, row));
    if (leaf.kind == PROBE_LEAF_TENSOR) {
        ms_buf_printf(line, "  %.*s", MS_STR_ARG(leaf.dtype_text));
        probe_overflow_put_range(line, &leaf);
    } else {
        ms_buf_printf(line, "  %.*s %.*s", MS_STR_ARG(leaf.type), MS_STR_ARG(leaf.value_json));
    }
    if (bad != 0)
        ms_buf_printf(line, "  <- %s", probe_overflow_bad_text(bad));
    print_text(line);
}

static void show_leaves(const struct probe_dump *d, struct ms_buf *line)
{
    enum { SHOWN = 40 };
    for (size_t i = 0; i < d->rows.n && i < SHOWN; i++) {
        if (d->rows.p[i].kind != PROBE_LEAF_NULL)
            show_leaf(d, &d->rows.p[i], line);
    }
    if (d->rows.n > SHOWN)
        printf("  and %zu more values\n", d->rows.n - SHOWN);
}

/* Shows the innermost frame that is not part of the dumping tool. */
static void show_caller(const struct probe_overflow_detail *detail, struct ms_buf *line)
{
    for (size_t i = 0; i < detail->stack.n; i++) {
        if (ms_str_find_str(detail->stack.p[i], MS_STR("/msprobe/")) >= 0)
            continue;
        ms_buf_puts(line, "  called at  ");
        ms_buf_str(line, detail->stack.p[i]);
        print_text(line);
        return;
    }
}

static void show_place(const struct probe_overflow_detail *detail, struct ms_buf *line)
{
    ms_buf_puts(line, "  lies in  ");
    for (size_t i = 0; i < detail->construct.n; i++) {
        ms_buf_puts(line, i == 0 ? "" : " > ");
        ms_buf_str(line, detail->construct.p[i]);
    }
    print_text(line);
    show_leaves(detail->dump, line);
    show_caller(detail, line);
}

/* Shows an answer: its sentence, and in full the operator's place, inputs and outputs. */
static enum ms_rc show_answer(const struct probe_overflow *o, const struct probe_overflow_answer *a,
                              bool in_full, struct ms_err *err)
{
    struct ms_buf line = {.max = 1 << 20};
    struct probe_overflow_detail detail;
    MS_TRY(probe_overflow_describe(&detail, o, a, err));
    probe_overflow_put_sentence(&line, a, &detail);
    print_text(&line);
    if (in_full)
        show_place(&detail, &line);
    ms_buf_free(&line);
    probe_overflow_detail_free(&detail);
    return MS_OK;
}

enum ms_rc overflow_show_answers(const struct probe_overflow *o, size_t most, struct ms_err *err)
{
    const size_t n = o->answers.n, listed = ms_cmd_listed(n, most);
    for (size_t i = 0; i < listed; i++)
        MS_TRY(show_answer(o, &o->answers.p[i], i == 0 || listed == n, err));
    ms_cmd_more(stdout, n - listed, "ranks with an answer");
    return MS_OK;
}

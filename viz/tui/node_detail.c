/* SPDX-License-Identifier: MIT
 *
 * node_detail: reads items, stacks and links from their JSON.
 */
#include "viz/tui/node_detail.h"

#include "probe/base/jread.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { VALUE_MAX = 1 << 16, NAME_W = 22, VALUE_W = 26 };

/* ---- states ------------------------------------------------------------------------ */

char tui_state_letter(const struct graph_row *r)
{
    static const char letters[GRAPH_STATES] = {' ', '.', 'W', 'E'};
    if (r->state == GRAPH_ERROR)
        return 'E';
    if (r->overflow.n != 0)
        return '!';
    return r->unmatched && r->state != GRAPH_WARNING ? '-' : letters[r->state];
}

enum tui_token tui_state_token(const struct graph_row *r)
{
    switch (tui_state_letter(r)) {
    case 'E':
        return TUI_ERROR;
    case '!':
        return TUI_OVERFLOW;
    case 'W':
        return TUI_WARNING;
    case '-':
        return TUI_UNMATCHED;
    case '.':
        return TUI_PASS;
    default:
        return TUI_DIM;
    }
}

/* ---- walking ----------------------------------------------------------------------- */

/* Calls fn for every text in an object of objects: item, key, value. Other forms are skipped, so
 * that the rest is still shown. */
typedef void (*item_fn)(void *ctx, struct ms_str item, struct ms_str key, struct ms_str value);

static void walk_item(struct ms_jread *r, struct ms_str item, item_fn fn, void *ctx)
{
    while (ms_jread_next(r) == MS_J_KEY) {
        struct ms_str key = r->text;
        const enum ms_jtok tok = ms_jread_next(r);
        if (tok == MS_J_STR || tok == MS_J_NUM)
            fn(ctx, item, key, r->text);
        else if (tok <= MS_J_END || ms_jread_skip(r, tok) == MS_J_ERR)
            return;
    }
}

static void walk(struct ms_str json, item_fn fn, void *ctx)
{
    struct ms_jread r;
    ms_jread_init(&r, json.p != NULL ? json.p : "", json.n, 0);
    if (ms_jread_next(&r) != MS_J_OBJ)
        return;
    while (ms_jread_next(&r) == MS_J_KEY) {
        struct ms_str item = r.text;
        const enum ms_jtok tok = ms_jread_next(&r);
        if (tok == MS_J_OBJ)
            walk_item(&r, item, fn, ctx);
        else if (tok <= MS_J_END || ms_jread_skip(&r, tok) == MS_J_ERR)
            return;
    }
}

/* ---- the worst figure -------------------------------------------------------------- */

struct worst {
    double relative, cosine; /* relative in percent; NAN: none seen */
};

static bool number_of(struct ms_str s, double *v)
{
    struct ms_jread r;
    if (s.n != 0 && s.p[s.n - 1] == '%')
        s.n--;
    ms_jread_init(&r, s.p, s.n, 0);
    return ms_jread_next(&r) == MS_J_NUM && ms_jread_f64(&r, v);
}

static void note_worst(void *ctx, struct ms_str item, struct ms_str key, struct ms_str value)
{
    struct worst *w = ctx;
    double v;
    (void)item;
    if (ms_str_ends(key, MS_STR("RelativeErr")) && number_of(value, &v)) {
        if (value.p[value.n - 1] != '%')
            v *= 100;
        if (isnan(w->relative) || v > w->relative)
            w->relative = v;
    } else if (ms_str_is(key, "Cosine") && number_of(value, &v)) {
        if (isnan(w->cosine) || v < w->cosine)
            w->cosine = v;
    }
}

void tui_node_figure(struct ms_str input, struct ms_str output, char figure[TUI_FIGURE_MAX])
{
    struct worst w = {NAN, NAN};
    walk(input, note_worst, &w);
    walk(output, note_worst, &w);
    figure[0] = '\0';
    if (!isnan(w.cosine))
        snprintf(figure, TUI_FIGURE_MAX, "cos %.4g", w.cosine);
    else if (!isnan(w.relative))
        snprintf(figure, TUI_FIGURE_MAX, "%.3g%%", w.relative);
}

/* ---- items ------------------------------------------------------------------------- */

struct sought {
    struct ms_str item, key, value;
};

static struct ms_str last_parts(struct ms_str item)
{
    int64_t at = ms_str_find_str(item, MS_STR(".input."));
    if (at < 0)
        at = ms_str_find_str(item, MS_STR(".output."));
    if (at < 0)
        at = ms_str_find_str(item, MS_STR(".parameters."));
    return at >= 0 ? ms_str_sub(item, (uint32_t)at + 1, item.n) : item;
}

/* Finds the value of the same item on the other side: the parts after the node names are equal. */
static void seek(void *ctx, struct ms_str item, struct ms_str key, struct ms_str value)
{
    struct sought *s = ctx;
    if (s->value.p == NULL && ms_str_eq(key, s->key) &&
        ms_str_eq(last_parts(item), last_parts(s->item)))
        s->value = value;
}

struct table {
    struct tui_page *page;
    struct ms_str other, last; /* JSON of the golden side; item of the last line */
    struct ms_buf text[3];     /* of the current line: key and values without escapes */
    enum ms_rc rc;
    struct ms_err *err;
};

static enum tui_token result_token(struct ms_str key, struct ms_str value)
{
    if (!ms_str_is(key, "Result"))
        return TUI_TEXT;
    return ms_str_is(value, "error")     ? TUI_ERROR
           : ms_str_is(value, "warning") ? TUI_WARNING
           : ms_str_is(value, "pass")    ? TUI_PASS
                                         : TUI_TEXT;
}

/* Returns the columns left of w after the text; counts columns, not bytes. */
static int room_for(struct ms_str s, int w)
{
    int used = tui_text_width(s);
    return used < w ? w - used : 0;
}

/* Removes JSON escapes; a value too long for the screen stays unchanged. */
static struct ms_str plain_text(struct table *t, int i, struct ms_str s)
{
    bool escaped = s.n != 0 && s.n < VALUE_MAX && memchr(s.p, '\\', s.n) != NULL;
    const struct ms_jread r = {.text = s, .escaped = escaped};
    if (t->rc == MS_OK)
        t->rc = ms_jread_text(&r, &t->text[i], &s, t->err);
    return s;
}

static void put_item_line(void *ctx, struct ms_str item, struct ms_str key, struct ms_str value)
{
    struct table *t = ctx;
    struct sought s = {item, key, MS_STR_NONE};
    if (t->rc == MS_OK && !ms_str_eq(item, t->last)) {
        t->rc = tui_page_addf(t->page, TUI_ACCENT, t->err, "%.*s", MS_STR_ARG(last_parts(item)));
        t->last = item;
    }
    walk(t->other, seek, &s);
    bool both = s.value.p != NULL;
    enum tui_token token = !both                       ? result_token(key, value)
                           : ms_str_eq(value, s.value) ? TUI_DIM
                                                       : TUI_TEXT;
    struct ms_str k = plain_text(t, 0, key), v = plain_text(t, 1, value);
    struct ms_str o = both ? plain_text(t, 2, s.value) : MS_STR("");
    if (t->rc == MS_OK)
        t->rc = tui_page_addf(t->page, token, t->err, "  %.*s%*s %*s%.*s%*s%.*s", MS_STR_ARG(k),
                              room_for(k, NAME_W), "", room_for(v, VALUE_W), "", MS_STR_ARG(v),
                              both ? 2 + room_for(o, VALUE_W) : 0, "", MS_STR_ARG(o));
}

static enum ms_rc put_part(struct tui_page *p, const char *what, struct ms_str json,
                           struct ms_str other, struct ms_err *err)
{
    const struct ms_buf text = {.max = VALUE_MAX};
    struct table t = {p, other, MS_STR_NONE, {text, text, text}, MS_OK, err};
    (void)what;
    walk(json, put_item_line, &t);
    for (size_t i = 0; i < sizeof t.text / sizeof *t.text; i++)
        ms_buf_free(&t.text[i]);
    return t.rc;
}

enum ms_rc tui_node_items(struct tui_page *p, const struct graph_detail *target,
                          const struct graph_detail *golden, struct ms_err *err)
{
    struct ms_str none = MS_STR("");
    const struct graph_detail *d = target != NULL ? target : golden;
    bool both = target != NULL && golden != NULL;
    MS_TRY(tui_page_addf(p, TUI_DIM, err, "  %-*s %*s  %*s", NAME_W, "", VALUE_W,
                         target != NULL ? "target" : "golden", VALUE_W, both ? "golden" : ""));
    MS_TRY(put_part(p, "input", d->input, both ? golden->input : none, err));
    MS_TRY(put_part(p, "output", d->output, both ? golden->output : none, err));
    if (p->lines.n > 1)
        return MS_OK;
    p->lines.n = 0; /* remove the heading of an empty table */
    return tui_page_addf(p, TUI_DIM, err, "no items were dumped for this node");
}

/* ---- stack ------------------------------------------------------------------------- */

static enum ms_rc put_frame(struct tui_page *p, struct ms_str frame, struct ms_err *err)
{
    struct ms_str line;
    bool first = true;
    while (ms_str_split(&frame, '\n', &line)) {
        if (line.n != 0)
            MS_TRY(tui_page_add(p, first ? TUI_TEXT : TUI_DIM, line, err));
        first = false;
    }
    return MS_OK;
}

enum ms_rc tui_node_stack(struct tui_page *p, const struct graph_detail *d, struct ms_err *err)
{
    struct ms_buf scratch = {.max = VALUE_MAX};
    struct ms_jread r;
    struct ms_str frame;
    enum ms_jtok tok;
    enum ms_rc rc = MS_OK;
    ms_jread_init(&r, d->stack.p != NULL ? d->stack.p : "", d->stack.n, 0);
    while (rc == MS_OK && (tok = ms_jread_next(&r)) > MS_J_END) {
        if (tok != MS_J_STR)
            continue;
        rc = ms_jread_text(&r, &scratch, &frame, err);
        if (rc == MS_OK)
            rc = put_frame(p, frame, err);
    }
    ms_buf_free(&scratch);
    if (rc == MS_OK && p->lines.n == 0)
        rc = tui_page_addf(p, TUI_DIM, err, "no stack was dumped for this node");
    return rc;
}

/* ---- communication ------------------------------------------------------------------ */

/* Returns the distance of a rank from `from`; ranks on the other side wrap around and come last. */
static uint64_t way_to(int64_t rank, int64_t from, bool back)
{
    return back ? (uint64_t)(from - rank - 1) : (uint64_t)(rank - from - 1);
}

/* Parses "nodes_info": {"1": [state, name], ...}. */
enum ms_rc tui_node_link(const struct graph_detail *d, int64_t from, bool back, int64_t *rank,
                         struct ms_str *name, struct ms_buf *scratch, struct ms_err *err)
{
    struct ms_jread r;
    enum ms_jtok tok;
    int64_t of = -1;
    int texts = 0;
    *rank = -1;
    *name = MS_STR_NONE;
    ms_jread_init(&r, d->links.p != NULL ? d->links.p : "", d->links.n, 0);
    while ((tok = ms_jread_next(&r)) > MS_J_END) {
        if (tok == MS_J_KEY) {
            texts = 0;
            of = ms_str_i64(r.text, &of) ? of : -1;
        } else if (tok == MS_J_STR && of >= 0 && ++texts == 2 &&
                   (*rank < 0 || way_to(of, from, back) < way_to(*rank, from, back))) {
            MS_TRY(ms_jread_text(&r, scratch, name, err));
            *rank = of;
        }
    }
    return *rank >= 0 ? MS_OK
                      : ms_fail(err, MS_E_NOTFOUND, "this node has no communication partner");
}

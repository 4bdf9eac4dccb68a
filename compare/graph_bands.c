/* SPDX-License-Identifier: MIT
 *
 * graph_bands: reading the colours of a .vis.db.
 */
#include "compare/graph_bands.h"

#include "probe/base/jread.h"

static const struct graph_bands usual = {
    .list = {{0, 0.3, GRAPH_PASS}, {0.3, 0.6, GRAPH_WARNING}, {0.6, 1, GRAPH_ERROR}},
    .n = 3,
    .usual = true};

/* Files of old do not name levels, but their colours are always these. */
static enum graph_state state_of(struct ms_str colour, struct ms_str level)
{
    if (ms_str_is(level, "pass") || (level.n == 0 && ms_str_is(colour, "#FFFCF3")))
        return GRAPH_PASS;
    if (ms_str_is(level, "error") || (level.n == 0 && ms_str_is(colour, "#FF704D")))
        return GRAPH_ERROR;
    return GRAPH_WARNING;
}

/* [from, to]; anything else leaves *n below 2. */
static void read_range(struct ms_jread *r, double range[2], unsigned *n)
{
    enum ms_jtok tok = ms_jread_next(r);
    if (tok != MS_J_ARR) {
        ms_jread_skip(r, tok);
        return;
    }
    while ((tok = ms_jread_next(r)) > MS_J_END && tok != MS_J_ARR_END) {
        double v;
        if (tok == MS_J_NUM && *n < 2 && ms_jread_f64(r, &v))
            range[(*n)++] = v;
        else
            ms_jread_skip(r, tok);
    }
}

/* The members of one colour, whose bracket was the last token. */
static void read_band(struct graph_bands *b, struct ms_jread *r, struct ms_str colour)
{
    double range[2] = {0, 0};
    unsigned n = 0;
    struct ms_str level = {"", 0};
    while (ms_jread_next(r) == MS_J_KEY) {
        if (ms_str_is(r->text, "value")) {
            read_range(r, range, &n);
            continue;
        }
        bool is_level = ms_str_is(r->text, "accuracy_level");
        enum ms_jtok tok = ms_jread_next(r);
        if (is_level && tok == MS_J_STR)
            level = r->text;
        else
            ms_jread_skip(r, tok);
    }
    if (n == 2 && b->n < GRAPH_BANDS)
        b->list[b->n++] = (struct graph_band){range[0], range[1], state_of(colour, level)};
}

static bool are_usual(const struct graph_bands *b)
{
    for (unsigned i = 0; i < b->n; i++) {
        if (i >= usual.n || b->list[i].from != usual.list[i].from ||
            b->list[i].to != usual.list[i].to || b->list[i].state != usual.list[i].state)
            return false;
    }
    return b->n == usual.n;
}

void graph__bands_read(struct graph_bands *b, struct ms_str json)
{
    struct ms_jread r;
    *b = (struct graph_bands){.n = 0};
    ms_jread_init(&r, json.n != 0 ? json.p : "", json.n, 0);
    if (ms_jread_next(&r) == MS_J_OBJ) {
        while (ms_jread_next(&r) == MS_J_KEY) {
            struct ms_str colour = r.text;
            enum ms_jtok tok = ms_jread_next(&r);
            if (tok == MS_J_OBJ)
                read_band(b, &r, colour);
            else
                ms_jread_skip(&r, tok);
        }
    }
    if (b->n == 0)
        *b = usual;
    b->usual = are_usual(b);
}

enum graph_state graph__band_of(const struct graph_bands *b, double value)
{
    for (unsigned i = 0; i < b->n; i++) {
        const struct graph_band *band = &b->list[i];
        bool last = i + 1 == b->n || band->from == band->to;
        if (value >= band->from && (value < band->to || (last && value <= band->to)))
            return band->state;
    }
    return value == value ? GRAPH_ERROR : GRAPH_NONE; /* beyond all bands */
}

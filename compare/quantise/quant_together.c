/* SPDX-License-Identifier: MIT
 *
 * quant_together: what a tensor's layout should be, by those of others.
 */
#include "compare/quantise/quant_judge.h"

#include <stdio.h>

/* Share of groups that must use the upper half of a type for a layout to be the one that scales were taken
 * along; and the share below which a scale is not that of its group. */
static const double covered = 0.95, uncovered = 0.5;

/* Returns the index of the fit with a layout; v->n: the layout does not explain the tensor. */
static unsigned find_fit(const struct quant_verdict *v, struct quant_layout layout)
{
    const struct quant_table t = {.rows = v->rows, .cols = v->cols};
    const struct quant_layout plain = quant_layout_plain(layout, &t);
    unsigned i = 0;
    while (i < v->n && !quant_layout_same(v->fits[i].layout, plain))
        i++;
    return i;
}

static bool has_wide_range(const struct quant_verdict *v)
{
    return quant_facts(v->number)->bits == 8 && !quant_facts(v->number)->is_integer;
}

/* Tells whether the tensor may have been quantised with a layout. */
static bool is_possible(const struct quant_verdict *v, struct quant_layout layout)
{
    const unsigned i = find_fit(v, layout);
    if (i == v->n)
        return false;
    return v->matched || has_wide_range(v) || v->fits[i].covered >= covered;
}

/* Returns the possible layout that the groups show best: the finest whose groups are covered. */
static struct quant_layout likely(const struct quant_verdict *v)
{
    for (unsigned i = v->n; i-- > 0;) {
        if (is_possible(v, v->fits[i].layout))
            return v->fits[i].layout;
    }
    return v->layout;
}

static void name_layouts(struct quant_verdict *v, enum quant_fault fault, struct quant_layout own,
                         struct quant_layout usual, size_t votes)
{
    char a[64], b[64], who[32];
    quant_layout_text(&own, a, sizeof a);
    quant_layout_text(&usual, b, sizeof b);
    snprintf(who, sizeof who, "%zu others have", votes);
    v->fault = fault;
    snprintf(v->text, sizeof v->text, "%s; %s %s", a, votes != 0 ? who : "this format has", b);
}

/* Tells whether scales belong to rows, columns or parts of them, rather than to all or to tiles. */
static bool divides_lines(const struct quant_layout *l)
{
    return l->sharing != QUANT_WHOLE && l->sharing != QUANT_TILES;
}

static void judge_against(struct quant_verdict *v, struct quant_layout usual, size_t votes)
{
    const struct quant_layout l = likely(v);
    const bool axis = divides_lines(&l) && divides_lines(&usual) &&
                      quant_layout_is_across(&l) != quant_layout_is_across(&usual);
    if (!v->is_quantised || v->fault != QUANT_NO_FAULT || is_possible(v, usual))
        return;
    const unsigned fit = find_fit(v, usual);
    if (v->is_weight && fit < v->n && !v->matched && v->fits[fit].covered < uncovered) {
        v->fault = QUANT_STALE_SCALE;
        snprintf(
            v->text, sizeof v->text,
            "%.3g %% of the groups use the upper half of the range of %s: the scales are those of "
            "larger values",
            100 * v->fits[fit].covered, quant_facts(v->number)->name);
    } else if (axis) {
        name_layouts(v, QUANT_WRONG_AXIS, l, usual, votes);
    } else if (divides_lines(&l) && divides_lines(&usual)) {
        name_layouts(v, QUANT_WRONG_BLOCK, l, usual, votes);
    }
}

/* Layouts that a vote is held on; the first of equal ones wins. */
static const struct quant_layout choices[] = {
    {QUANT_ROWS, 0},     {QUANT_BLOCKS, 32}, {QUANT_BLOCKS, 16}, {QUANT_BLOCKS, 128},
    {QUANT_BLOCKS, 64},  {QUANT_COLUMNS, 0}, {QUANT_TILES, 128}, {QUANT_WHOLE, 0},
    {QUANT_BLOCKS, 256}, {QUANT_STACKS, 32}, {QUANT_STACKS, 16}, {QUANT_STACKS, 128}};

/* Blocks of OCP MX are known without a vote. */
static void judge_by_format(struct quant_verdict *v)
{
    const int bits = quant_facts(v->number)->bits;
    if (v->is_quantised && !quant_facts(v->number)->is_integer && bits < 8 && v->powers)
        judge_against(v, (struct quant_layout){QUANT_BLOCKS, 32}, 0);
}

static bool votes(const struct quant_verdict *v, enum quant_number number)
{
    return v->is_quantised && v->fault == QUANT_NO_FAULT && v->number == number;
}

static size_t count_votes(struct quant_verdict *const *v, size_t n, enum quant_number number,
                          struct quant_layout layout)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += votes(v[i], number) && is_possible(v[i], layout);
    return found;
}

/* Judges those of one type, as a model may use several. */
static void judge_number(struct quant_verdict *const *v, size_t n, enum quant_number number)
{
    size_t quantised = 0, best = 0, most = 0;
    for (size_t i = 0; i < n; i++)
        quantised += votes(v[i], number);
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++) {
        const size_t found = count_votes(v, n, number, choices[k]);
        best = found > most ? k : best;
        most = found > most ? found : most;
    }
    for (size_t i = 0; i < n; i++) {
        if (most >= 2 && 10 * most >= 6 * quantised && votes(v[i], number))
            judge_against(v[i], choices[best], most);
    }
}

void quant_judge_together(struct quant_verdict *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        judge_by_format(v[i]);
    for (int number = 0; number < QUANT_NUMBERS; number++)
        judge_number(v, n, (enum quant_number)number);
}

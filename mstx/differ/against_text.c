/* SPDX-License-Identifier: MIT
 *
 * against_text: the answer for people: as text, as Markdown, and as JUnit for CI.
 */
#include "mstx/differ/against_words.h"

#include "probe/base/human.h"

#include <math.h>

/* ---- text ------------------------------------------------------------------------------------ */

static void put_signed(struct ms_buf *out, double ns)
{
    char time[MS_HUMAN_MAX];
    ms_buf_printf(out, "%c%s", ns < 0 ? '-' : '+', ms_human_time(time, (int64_t)fabs(ns)));
}

static void text_steps(const struct mstx_against *a, struct ms_buf *out)
{
    const struct mstx_difference *d = &a->difference;
    char old[MS_HUMAN_MAX], new[MS_HUMAN_MAX];
    ms_buf_printf(out, "a step takes %s instead of %s, ",
                  ms_human_time(new, (int64_t)d->new_step_ns),
                  ms_human_time(old, (int64_t)d->old_step_ns));
    put_signed(out, d->new_step_ns - d->old_step_ns);
    ms_buf_printf(out, "; undisturbed %s instead of %s, ",
                  ms_human_time(new, (int64_t)d->new_quiet_ns),
                  ms_human_time(old, (int64_t)d->old_quiet_ns));
    put_signed(out, d->new_quiet_ns - d->old_quiet_ns);
    ms_buf_putc(out, '\n');
}

static void text_facts(const struct mstx_against *a, struct ms_buf *out)
{
    struct mstx_fact fact[MSTX_FACTS_MAX];
    const size_t n = mstx__facts_differ(&a->old_facts, &a->new_facts, fact);
    if (n != 0)
        ms_buf_puts(out, "\nwhat surrounds the runs differs\n");
    for (size_t i = 0; i < n; i++)
        ms_buf_printf(out, "  %s: %s instead of %s\n", fact[i].what, fact[i].new, fact[i].old);
}

static void text_causes(const struct mstx_against *a, size_t most, struct ms_buf *out)
{
    const size_t n = a->causes.list.n;
    ms_buf_puts(out, "\nwhy\n");
    if (n == 0)
        ms_buf_puts(out, "  no place takes longer by more than two equal runs may differ\n");
    for (size_t i = 0; i < n && (most == 0 || i < most); i++) {
        ms_buf_puts(out, "  ");
        mstx__against_sentence(a, &a->causes.list.p[i], out);
        ms_buf_putc(out, '\n');
    }
    ms_human_more(out, most != 0 && n > most ? n - most : 0, " causes");
}

/* Lists what makes up the difference of the mean steps, causes as one. */
static void text_split(const struct mstx_against *a, struct ms_buf *out)
{
    const struct mstx_split s = mstx__against_split(a);
    const struct {
        double ns;
        const char *text;
    } rows[] = {{s.causes, "these causes"},
                {s.alike, "all places alike: a busier or slower host"},
                {s.below, "places that differ by less than equal runs may"},
                {s.waiting, "waiting for other ranks, which follows from the rest"},
                {s.disturbed, "single steps that something disturbs"}};
    ms_buf_puts(out, "\nthe difference of a step\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (fabs(rows[i].ns) < 0.001 * a->difference.old_step_ns)
            continue;
        ms_buf_puts(out, "  ");
        put_signed(out, rows[i].ns);
        ms_buf_printf(out, "  %s\n", rows[i].text);
    }
}

static void text_hidden(const struct mstx_against *a, size_t most, struct ms_buf *out)
{
    mstx_name_changes c = {0};
    const size_t n = mstx__against_hidden(a, &c) ? c.n : 0;
    if (n != 0)
        ms_buf_puts(out, "\nlonger, but nothing waits for it\n");
    for (size_t i = 0; i < n && (most == 0 || i < most); i++) {
        char old[MS_HUMAN_MAX], new[MS_HUMAN_MAX];
        ms_buf_puts(out, "  ");
        ms_human_cell(out, ms_map_key(&a->places.names, c.p[i].name), 48);
        ms_buf_printf(out, " takes %s a step instead of %s\n",
                      ms_human_time(new, (int64_t)c.p[i].new_step_ns),
                      ms_human_time(old, (int64_t)c.p[i].old_step_ns));
    }
    ms_human_more(out, most != 0 && n > most ? n - most : 0, " names");
    ms_vec_free(&c);
}

static void text_names(const struct mstx_against *a, size_t most, struct ms_buf *out)
{
    mstx_name_changes c = {0};
    if (!mstx__against_names(a, &c))
        return;
    const size_t n = mstx__against_drop_steps(a, &c);
    ms_buf_printf(out, "\n  %-48s %10s %10s %12s %12s   names, most changed first\n", "",
                  "old count", "new count", "old a step", "new a step");
    for (size_t i = 0; i < n && (most == 0 || i < most); i++) {
        char old[MS_HUMAN_MAX], new[MS_HUMAN_MAX];
        ms_buf_puts(out, "  ");
        ms_human_cell(out, ms_map_key(&a->places.names, c.p[i].name), 48);
        ms_buf_printf(out, " %10s", ms_human_count(old, c.p[i].old_count));
        ms_buf_printf(out, " %10s", ms_human_count(new, c.p[i].new_count));
        ms_buf_printf(out, " %12s", ms_human_time(old, (int64_t)c.p[i].old_step_ns));
        ms_buf_printf(out, " %12s%s\n", ms_human_time(new, (int64_t)c.p[i].new_step_ns),
                      c.p[i].on_device ? "   device" : "");
    }
    ms_human_more(out, most != 0 && n > most ? n - most : 0, " names");
    ms_vec_free(&c);
}

void mstx_against_text(const struct mstx_against *a, size_t most, struct ms_buf *out)
{
    if (a->is_same) {
        ms_buf_puts(out, "both are the same run, so nothing differs\n");
        return;
    }
    text_steps(a, out);
    text_facts(a, out);
    text_causes(a, most, out);
    text_hidden(a, most, out);
    text_split(a, out);
    text_names(a, most, out);
}

/* ---- Markdown -------------------------------------------------------------------------------- */

void mstx_against_markdown(const struct mstx_against *a, size_t most, struct ms_buf *out)
{
    const size_t n = a->causes.list.n;
    text_steps(a, out);
    ms_buf_puts(out, "\n| cost a step | cause |\n|---:|---|\n");
    for (size_t i = 0; i < n && (most == 0 || i < most); i++) {
        const struct mstx_cause *c = &a->causes.list.p[i];
        struct ms_buf text = {.max = MSTX_SENTENCE_MAX};
        mstx__against_sentence(a, c, &text);
        ms_buf_puts(out, "| ");
        put_signed(out, c->cost_ns);
        ms_buf_puts(out, " | ");
        for (size_t k = 0; k < text.n; k++) {
            if (text.p[k] == '|')
                ms_buf_putc(out, '\\');
            ms_buf_putc(out, text.p[k]);
        }
        ms_buf_puts(out, " |\n");
        ms_buf_free(&text);
    }
    if (n == 0)
        ms_buf_puts(out, "| | none |\n");
}

/* ---- JUnit ----------------------------------------------------------------------------------- */

static void put_escaped(struct ms_buf *out, struct ms_str s)
{
    for (uint32_t i = 0; i < s.n; i++) {
        const char c = s.p[i];
        if (c == '<')
            ms_buf_puts(out, "&lt;");
        else if (c == '>')
            ms_buf_puts(out, "&gt;");
        else if (c == '&')
            ms_buf_puts(out, "&amp;");
        else if (c == '"')
            ms_buf_puts(out, "&quot;");
        else
            ms_buf_putc(out, (unsigned char)c < ' ' ? ' ' : c);
    }
}

void mstx_against_junit(const struct mstx_against *a, double gate, struct ms_buf *out)
{
    const bool failed = mstx__against_fails(a, gate);
    const size_t n = a->causes.list.n;
    ms_buf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    ms_buf_printf(
        out, "<testsuite name=\"msprobe report --against\" tests=\"1\" failures=\"%d\">\n", failed);
    ms_buf_printf(out, "  <testcase classname=\"msprobe\" name=\"step time\">\n");
    if (failed) {
        ms_buf_printf(out, "    <failure message=\"a step is %.1f %% slower\">",
                      100 * mstx_against_slower(a));
        for (size_t i = 0; i < n; i++) {
            struct ms_buf text = {.max = MSTX_SENTENCE_MAX};
            mstx__against_sentence(a, &a->causes.list.p[i], &text);
            put_escaped(out, ms_buf_slice(&text));
            ms_buf_putc(out, '\n');
            ms_buf_free(&text);
        }
        ms_buf_puts(out, "</failure>\n");
    }
    ms_buf_puts(out, "  </testcase>\n</testsuite>\n");
}

/* SPDX-License-Identifier: MIT
 *
 * words: fills the templates of sentences.h.
 */
#include "viz/words/words.h"

#include "viz/words/sentences.h"

#include "probe/base/assert.h"
#include "probe/base/human.h"
#include "probe/base/num.h"

static const struct viz_sentence sentences[] = {
#define ROW(kind, english, chinese) {#kind, {english, chinese}},
    VIZ_SENTENCES(ROW)
#undef ROW
};

const struct viz_sentence *viz_words_sentence(size_t i)
{
    return i < sizeof sentences / sizeof *sentences ? &sentences[i] : NULL;
}

enum viz_language viz_language_of(struct ms_str name)
{
    return ms_str_starts(name, MS_STR("zh")) ? VIZ_CHINESE : VIZ_ENGLISH;
}

/* ---- numbers ----------------------------------------------------------------------- */

static void put_number(struct ms_buf *out, struct ms_str format, double v)
{
    char buf[MS_HUMAN_MAX];
    if (ms_str_is(format, "count"))
        ms_buf_puts(out, ms_human_count(buf, v > 0 ? (uint64_t)v : 0));
    else if (ms_str_is(format, "bytes"))
        ms_buf_puts(out, ms_human_bytes(buf, v > 0 ? (uint64_t)v : 0));
    else if (ms_str_is(format, "time"))
        ms_buf_puts(out, ms_human_time(buf, (int64_t)v));
    else if (ms_str_is(format, "error"))
        ms_buf_puts(out, ms_human_error(buf, v));
    else if (ms_str_is(format, "error1"))
        ms_buf_printf(out, "%.1e", v);
    else if (ms_str_is(format, "factor"))
        ms_buf_puts(out, ms_human_factor(buf, v));
    else if (ms_str_is(format, "percent"))
        ms_buf_printf(out, "%.1f %%", 100 * v);
    else if (ms_str_is(format, "percent0"))
        ms_buf_printf(out, "%.0f %%", 100 * v);
    else
        ms_buf_printf(out, "%.*f", ms_str_is(format, "one") ? 1 : 2, v);
}

/* ---- templates ---------------------------------------------------------------------- */

struct filling {
    const struct ms_message_args *args;
    struct ms_buf *out;
    bool is_missing; /* a named argument is absent */
};

static void fill(struct filling *f, struct ms_str t);

/* Returns the text up to the bracket that closes t.p[0], without both brackets. */
static struct ms_str text_inside(struct ms_str t)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < t.n; i++) {
        depth += t.p[i] == '{' || t.p[i] == '[';
        depth -= t.p[i] == '}' || t.p[i] == ']';
        if (depth == 0)
            return ms_str_sub(t, 1, i);
    }
    return ms_str_sub(t, 1, t.n);
}

/* Splits the text before the next '|' off *rest, ignoring '|' in inner brackets. */
static struct ms_str next_choice(struct ms_str *rest)
{
    const struct ms_str all = *rest;
    uint32_t depth = 0, i = 0;
    for (; i < all.n && (depth != 0 || all.p[i] != '|'); i++) {
        depth += all.p[i] == '{' || all.p[i] == '[';
        depth -= all.p[i] == '}' || all.p[i] == ']';
    }
    *rest = ms_str_sub(all, i < all.n ? i + 1 : i, all.n);
    return ms_str_sub(all, 0, i);
}

/* Returns the length of the word before '=' at the start of a choice; -1: the default choice. */
static int64_t case_of(struct ms_str choice)
{
    uint32_t n = 0;
    while (n < choice.n && ((choice.p[n] >= 'a' && choice.p[n] <= 'z') || choice.p[n] == '_' ||
                            (choice.p[n] >= '0' && choice.p[n] <= '9')))
        n++;
    return n < choice.n && choice.p[n] == '=' ? (int64_t)n : -1;
}

static bool is_value(const struct ms_message_arg *a, struct ms_str value)
{
    double v;
    if (a == NULL || value.n == 0)
        return a == NULL && value.n == 0;
    return a->is_number ? ms_num_parse_f64(value.p, value.n, &v) && v == a->number
                        : ms_str_eq(a->text, value);
}

static void choose(struct filling *f, const struct ms_message_arg *a, struct ms_str choices)
{
    while (choices.n != 0) {
        const struct ms_str choice = next_choice(&choices);
        const int64_t n = case_of(choice);
        if (n >= 0 && !is_value(a, ms_str_sub(choice, 0, (uint32_t)n)))
            continue;
        fill(f, ms_str_sub(choice, (uint32_t)(n + 1), choice.n));
        return;
    }
}

static void fill_argument(struct filling *f, struct ms_str t)
{
    uint32_t n = 0;
    while (n < t.n && t.p[n] != ':' && t.p[n] != '?')
        n++;
    const struct ms_message_arg *a = ms_message_find(f->args, ms_str_sub(t, 0, n));
    if (n < t.n && t.p[n] == '?')
        choose(f, a, ms_str_sub(t, n + 1, t.n));
    else if (a == NULL)
        f->is_missing = true;
    else if (n < t.n && a->is_number)
        put_number(f->out, ms_str_sub(t, n + 1, t.n), a->number);
    else
        ms_buf_str(f->out, a->text);
}

/* Fills a part in square brackets; removes it again when an argument in it is absent. */
static void fill_optional(struct filling *f, struct ms_str t)
{
    const size_t before = f->out->n;
    struct filling part = {f->args, f->out, false};
    fill(&part, t);
    if (part.is_missing && f->out->bad == MS_OK)
        f->out->n = before;
}

static void fill(struct filling *f, struct ms_str t)
{
    for (uint32_t i = 0; i < t.n; i++) {
        if (t.p[i] != '{' && t.p[i] != '[') {
            ms_buf_putc(f->out, t.p[i]);
            continue;
        }
        const struct ms_str part = text_inside(ms_str_sub(t, i, t.n));
        if (t.p[i] == '{')
            fill_argument(f, part);
        else
            fill_optional(f, part);
        i += part.n + 1;
    }
}

bool viz_words_say(enum viz_language language, struct ms_stored_message message, struct ms_buf *out)
{
    const struct viz_sentence *s;
    struct ms_message_args args;
    size_t i = 0;
    ms_assert(language < VIZ_LANGUAGES);
    while ((s = viz_words_sentence(i)) != NULL && !ms_str_is(message.kind, s->kind))
        i++;
    if (s == NULL || !ms_message_read(&args, message.args))
        return false;
    fill(&(struct filling){&args, out, false}, ms_str_of(s->text[language]));
    return true;
}

static bool say_in_english(struct ms_stored_message message, struct ms_buf *out)
{
    return viz_words_say(VIZ_ENGLISH, message, out);
}

void viz_words_install(void)
{
    ms_message_set_speaker(say_in_english);
}

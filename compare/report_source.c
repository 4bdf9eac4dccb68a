/* SPDX-License-Identifier: MIT
 *
 * report_source: the suspects, in the words of the screen and of JSON.
 */
#include "compare/report.h"

#include <math.h>
#include <stdio.h>

enum { SHOWN = 5 };

static void print_ranks(const struct cmp_suspect *s)
{
    if (s->nranks == 0 || s->ranks[0] < 0)
        return;
    fputs(s->nranks > 1 ? " [ranks " : " [rank ", stdout);
    for (size_t i = 0; i < s->nranks && i < SHOWN; i++)
        printf("%s%d", i != 0 ? ", " : "", s->ranks[i]);
    fputs(s->nranks > SHOWN ? ", ...]" : "]", stdout);
}

static void print_suspect(const struct cmp_suspect *s, bool several)
{
    struct ms_str name = s->target.p != NULL ? s->target : s->golden;
    printf("suspect %u  %.*s", s->place, MS_STR_ARG(name));
    if (several)
        print_ranks(s);
    if (s->module.n != 0)
        printf("  in %.*s", MS_STR_ARG(s->module));
    printf("\n           %.*s\n", MS_STR_ARG(s->text));
    if (s->pattern != NULL)
        printf("           pattern: %s\n", s->pattern);
}

void cmp_report_suspects_text(const struct cmp_source *source, bool several, bool compared)
{
    const struct cmp_suspect *list;
    const struct ms_str *notes;
    size_t n = cmp_source_suspects(source, &list), nnotes = cmp_source_notes(source, &notes);
    for (size_t i = 0; i < nnotes; i++)
        printf("note: %.*s\n", MS_STR_ARG(notes[i]));
    if (n == 0)
        puts(compared ? "no suspect: nothing differs more than the noise of this pair explains"
                      : "nothing was compared: no row has a partner on the other side");
    for (size_t i = 0; i < n && i < SHOWN; i++)
        print_suspect(&list[i], several);
    if (n > SHOWN)
        printf("and %zu more behind these; --format json lists them\n", n - SHOWN);
    putchar('\n');
}

static void put_name(struct ms_jwrite *w, const char *key, struct ms_str name)
{
    ms_jwrite_key(w, ms_str_of(key));
    if (name.p != NULL)
        ms_jwrite_str(w, name);
    else
        ms_jwrite_null(w);
}

static void put_figure(struct ms_jwrite *w, const char *key, double x)
{
    ms_jwrite_key(w, ms_str_of(key));
    if (isfinite(x))
        ms_jwrite_f64(w, x);
    else
        ms_jwrite_null(w);
}

static void put_suspect(struct ms_jwrite *w, const struct cmp_suspect *s)
{
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "place", s->place);
    /* an operator that the target lacks is still one that can be named */
    put_name(w, "target", s->target.p != NULL ? s->target : s->golden);
    put_name(w, "golden", s->golden);
    ms_jwrite_kmaybe(w, "rank", s->rank);
    ms_jwrite_kmaybe(w, "step", s->step);
    ms_jwrite_kstr(w, "role", cmp_role_names[s->role]);
    ms_jwrite_key(w, MS_STR("group"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < s->ngroup; i++)
        ms_jwrite_str(w, s->group[i]);
    ms_jwrite_arr_end(w);
    put_figure(w, "score", s->score);
    put_name(w, "pattern", s->pattern != NULL ? ms_str_of(s->pattern) : MS_STR_NONE);
    put_name(w, "text", s->text);
    ms_jwrite_kstr(w, "why", cmp_why_names[s->why]);
    put_figure(w, "in", s->in);
    put_figure(w, "out", s->out);
    put_figure(w, "floor", s->floor);
    ms_jwrite_ki64(w, "later", (int64_t)s->later);
    ms_jwrite_key(w, MS_STR("ranks"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < s->nranks && s->ranks[i] >= 0; i++)
        ms_jwrite_i64(w, s->ranks[i]);
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

void cmp_report_suspects_json(struct ms_jwrite *w, const struct cmp_source *source)
{
    const struct cmp_suspect *list = NULL;
    size_t n = source != NULL ? cmp_source_suspects(source, &list) : 0;
    ms_jwrite_key(w, MS_STR("suspects"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < n; i++)
        put_suspect(w, &list[i]);
    ms_jwrite_arr_end(w);
    const struct ms_str *notes = NULL;
    size_t nnotes = source != NULL ? cmp_source_notes(source, &notes) : 0;
    ms_jwrite_key(w, MS_STR("notes"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < nnotes; i++)
        ms_jwrite_str(w, notes[i]);
    ms_jwrite_arr_end(w);
}

/* SPDX-License-Identifier: MIT
 *
 * show_check: see the header.
 */
#include "compare/cmd/show_check.h"

#include "probe/base/human.h"
#include "probe/base/jprint.h"
#include "probe/base/map.h"
#include "probe/base/opt.h"

enum { TEXT_MAX = 1 << 30 };

/* ---- text ------------------------------------------------------------------- */

static void print_where(const struct self_finding *f, size_t alike)
{
    char count[MS_HUMAN_MAX];
    if (f->rank >= 0)
        printf("  rank %lld", (long long)f->rank);
    if (f->step >= 0)
        printf("%s step %lld", f->rank >= 0 ? "," : " ", (long long)f->step);
    if (alike != 0)
        printf(", and %s more alike", ms_human_count(count, alike));
}

/* Prints a finding; alike: how many others differ from it in their rank and step alone. */
static void print_finding(const struct self_finding *f, size_t place, size_t alike)
{
    printf("%s %zu  %.*s  %s, %s", f->error ? "suspect" : "warning", place, MS_STR_ARG(f->node),
           self_kind_names[f->kind], f->pattern);
    print_where(f, alike);
    printf("\n    %.*s\n", MS_STR_ARG(f->text));
    if (f->row.n != 0)
        printf("    %.*s\n", MS_STR_ARG(f->row));
}

static void print_scope(const struct self_check *s, int64_t took_ns)
{
    static const char *const what[SELF_KINDS] = {
        "records for numbers that are not finite", "parameters on several ranks",
        "collectives on several ranks", "parameters seen again",
        "outputs whose gradient can be told from others"};
    char n[MS_HUMAN_MAX], took[MS_HUMAN_MAX];
    const struct self_scope *c = &s->scope;
    printf("checked %zu dump%s, %s tensors in %s\n", c->dumps, c->dumps == 1 ? "" : "s",
           ms_human_count(n, c->tensors), ms_human_time(took, took_ns));
    for (unsigned i = 0; i < SELF_KINDS; i++)
        printf("  %-11s %s %s\n", self_kind_names[i], ms_human_count(n, c->looked[i]), what[i]);
    if (c->unclear != 0)
        printf("note: %zu collectives have other outputs on every rank; were they recorded before "
               "they ended?\n",
               c->unclear);
}

/* Findings of several ranks and steps that are alike, as one. */
struct folded {
    struct ms_map keys;
    struct ms_arena *arena;
    MS_VEC(size_t) first; /* by key: the finding that is shown */
    MS_VEC(size_t) alike; /* by key: number of findings beside it */
};

static bool fold_finding(struct folded *f, const struct self_check *s, size_t i)
{
    const struct self_finding *of = &s->findings.p[i];
    struct ms_buf key = {.max = 1 << 20};
    bool added;
    ms_buf_printf(&key, "%d %d %s ", of->error, (int)of->kind, of->pattern);
    ms_buf_str(&key, of->node);
    const uint32_t at = key.bad == MS_OK
                            ? ms_map_put_copy(&f->keys, ms_buf_slice(&key), f->arena, &added)
                            : MS_MAP_NONE;
    ms_buf_free(&key);
    if (at == MS_MAP_NONE)
        return false;
    if (!added) {
        f->alike.p[at]++;
        return true;
    }
    size_t *first = ms_vec_push(&f->first), *alike = ms_vec_push(&f->alike);
    if (first == NULL || alike == NULL)
        return false;
    *first = i;
    *alike = 0;
    return true;
}

/* Prints findings, those that are alike on several ranks and steps once. */
static void print_folded(const struct self_check *s, size_t most)
{
    struct folded f = {.arena = ms_arena_new(TEXT_MAX)};
    bool ok = f.arena != NULL;
    for (size_t i = 0; ok && i < s->findings.n; i++)
        ok = fold_finding(&f, s, i);
    if (!ok)
        puts("note: not enough memory to list all findings");
    const size_t shown = ms_cmd_listed(ok ? f.first.n : 0, most);
    for (size_t i = 0; i < shown; i++)
        print_finding(&s->findings.p[f.first.p[i]], i + 1, f.alike.p[i]);
    ms_cmd_more(stdout, ok ? f.first.n - shown : s->findings.n, "findings");
    ms_vec_free(&f.first);
    ms_vec_free(&f.alike);
    ms_map_free(&f.keys);
    ms_arena_free(f.arena);
}

void check_show_text(const struct self_check *s, size_t most, int64_t took_ns)
{
    const size_t notes = ms_cmd_listed(s->places.notes.n, most);
    if (most != 0)
        print_folded(s, most);
    for (size_t i = 0; most == 0 && i < s->findings.n; i++)
        print_finding(&s->findings.p[i], i + 1, 0);
    if (s->findings.n == 0)
        puts("no problem found");
    for (size_t i = 0; i < notes; i++)
        printf("note: %s\n", s->places.notes.p[i]);
    ms_cmd_more(stdout, s->places.notes.n - notes, "notes");
    print_scope(s, took_ns);
}

/* ---- JSON -------------------------------------------------------------------- */

static void put_summary(struct ms_jwrite *w, const struct self_check *s, int64_t took_ns)
{
    int64_t level[2] = {0, 0};
    for (size_t i = 0; i < s->findings.n; i++)
        level[s->findings.p[i].error]++;
    ms_jwrite_key(w, MS_STR("summary"));
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "rows", (int64_t)s->scope.tensors);
    ms_jwrite_ki64(w, "pass", (int64_t)s->scope.tensors - level[0] - level[1]);
    ms_jwrite_ki64(w, "warning", level[0]);
    ms_jwrite_ki64(w, "error", level[1]);
    ms_jwrite_ki64(w, "unmatched_target", 0);
    ms_jwrite_ki64(w, "unmatched_golden", 0);
    ms_jwrite_kf64(w, "seconds", (double)took_ns / 1e9);
    ms_jwrite_obj_end(w);
}

static void put_finding(struct ms_jwrite *w, const struct self_finding *f, size_t place)
{
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "place", (int64_t)place);
    ms_jwrite_ktext(w, "target", f->node);
    ms_jwrite_key(w, MS_STR("golden"));
    ms_jwrite_null(w);
    ms_jwrite_kmaybe(w, "rank", f->rank);
    ms_jwrite_kmaybe(w, "step", f->step);
    ms_jwrite_kstr(w, "role", "introduces");
    ms_jwrite_key(w, MS_STR("group"));
    ms_jwrite_arr(w);
    ms_jwrite_str(w, f->node);
    ms_jwrite_arr_end(w);
    ms_jwrite_kf64(w, "score", f->error ? 1 : 0.5);
    ms_jwrite_kstr(w, "pattern", f->pattern);
    ms_jwrite_ktext(w, "text", f->text);
    ms_jwrite_kstr(w, "check", self_kind_names[f->kind]);
    ms_jwrite_kstr(w, "severity", f->error ? "error" : "warning");
    ms_jwrite_ktext(w, "row", f->row);
    ms_jwrite_obj_end(w);
}

static void put_first(struct ms_jwrite *w, const struct self_check *s)
{
    ms_jwrite_key(w, MS_STR("first_difference"));
    if (s->findings.n == 0) {
        ms_jwrite_null(w);
        return;
    }
    ms_jwrite_obj(w);
    ms_jwrite_ktext(w, "target", s->findings.p[0].node);
    ms_jwrite_ktext(w, "row", s->findings.p[0].row);
    ms_jwrite_obj_end(w);
}

static void put_checked(struct ms_jwrite *w, const struct self_scope *c)
{
    ms_jwrite_key(w, MS_STR("checked"));
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "dumps", (int64_t)c->dumps);
    for (unsigned i = 0; i < SELF_KINDS; i++)
        ms_jwrite_ki64(w, self_kind_names[i], (int64_t)c->looked[i]);
    ms_jwrite_ki64(w, "unclear_collectives", (int64_t)c->unclear);
    ms_jwrite_obj_end(w);
}

enum ms_rc check_show_json(const struct self_check *s, int64_t took_ns, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    put_summary(&w, s, took_ns);
    ms_jwrite_key(&w, MS_STR("suspects"));
    ms_jwrite_arr(&w);
    for (size_t i = 0; i < s->findings.n; i++)
        put_finding(&w, &s->findings.p[i], i + 1);
    ms_jwrite_arr_end(&w);
    put_first(&w, s);
    put_checked(&w, &s->scope);
    ms_jwrite_key(&w, MS_STR("files"));
    ms_jwrite_arr(&w);
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

/* SPDX-License-Identifier: MIT
 *
 * cmd_check: `msprobe check`.
 */
#include "compare/check/selfcheck.h"
#include "probe/base/clock.h"
#include "probe/base/human.h"
#include "probe/base/jprint.h"
#include "probe/base/map.h"
#include "probe/base/opt.h"

extern const struct ms_cmd compare_cmd_check;

enum { FORMAT_TEXT, FORMAT_JSON, TEXT_MAX = 1 << 30 };

struct args {
    struct ms_opt_list paths;
    int format;
    int64_t most;
    bool tolerant, exit_code;
};

static const char *const formats[] = {"text", "json", NULL};

static const struct ms_opt opts[] = {
    {"DUMP", NULL, MS_OPT_REST, offsetof(struct args, paths), .min = 1, .max = 1,
     .help = "dump.json, or a rank, step or dump directory"},
    {"format", NULL, MS_OPT_CHOICE, offsetof(struct args, format), "FORMAT", .choices = formats,
     .dflt = "text", .help = "text for people, json for programs"},
    {"most", "n", MS_OPT_INT, offsetof(struct args, most), "N", .dflt = "10", .min = 0,
     .max = 1000000,
     .help = "print at most this many findings as text, those alike on several ranks as one; 0: "
             "each"},
    {"tolerant", NULL, MS_OPT_FLAG, offsetof(struct args, tolerant),
     .help = "read the complete records of a file that was cut off by a kill or a full disk"},
    {"exit_code", NULL, MS_OPT_FLAG, offsetof(struct args, exit_code),
     .help = "exit with 1 when there is a finding, for scripts"},
    {0}};

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

static void print_text(const struct self_check *s, const struct args *a, int64_t took_ns)
{
    const size_t notes = ms_cmd_listed(s->places.notes.n, (size_t)a->most);
    if (a->most != 0)
        print_folded(s, (size_t)a->most);
    for (size_t i = 0; a->most == 0 && i < s->findings.n; i++)
        print_finding(&s->findings.p[i], i + 1, 0);
    if (s->findings.n == 0)
        puts("nothing is wrong as far as one run can tell");
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

static enum ms_rc print_json(const struct self_check *s, int64_t took_ns, struct ms_err *err)
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

/* ---- the command ---------------------------------------------------------------- */

static enum ms_rc check(const struct args *a, struct self_check *s, struct ms_err *err)
{
    struct ms_pool *pool;
    MS_TRY(ms_pool_new(&pool, (unsigned)ms_globals.threads, err));
    unsigned flags = a->tolerant ? PROBE_OPEN_TOLERANT : 0;
    enum ms_rc rc = self_check_run(s, a->paths.items[0], flags, pool, err);
    ms_pool_free(pool);
    return rc;
}

/* Returns the exit status; an unreadable dump is a failure, because it may contain faults. */
static int exit_of(const struct args *a, const struct self_check *s)
{
    if (s->failures.n != 0)
        return MS_EXIT_FAIL;
    return a->exit_code && s->findings.n != 0 ? MS_EXIT_FOUND : MS_EXIT_OK;
}

static int run_command(int argc, char **argv)
{
    struct args a = {.most = 10};
    struct ms_err err = {0};
    struct self_check s;
    bool done;
    int64_t start = ms_clock_ns();
    if (ms_opt_parse(&compare_cmd_check, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_check, &err);
    if (done)
        return MS_EXIT_OK;
    if (check(&a, &s, &err) != MS_OK)
        return ms_cmd_fail(&compare_cmd_check, &err);
    const size_t failures = ms_cmd_listed(s.failures.n, (size_t)a.most);
    for (size_t i = 0; i < failures; i++)
        fprintf(stderr, "msprobe check: %.*s; left out\n", MS_STR_ARG(s.failures.p[i]));
    ms_cmd_more(stderr, s.failures.n - failures, "dumps that cannot be read");
    enum ms_rc rc = MS_OK;
    if (a.format == FORMAT_JSON)
        rc = print_json(&s, ms_clock_ns() - start, &err);
    else
        print_text(&s, &a, ms_clock_ns() - start);
    int code = exit_of(&a, &s);
    self_check_free(&s);
    if (rc != MS_OK)
        return ms_cmd_fail(&compare_cmd_check, &err);
    return code;
}

const struct ms_cmd compare_cmd_check = {
    .name = "check",
    .run = run_command,
    .job = MS_JOB_FIRST,
    .brief = "find faults in one dump, without a second run",
    .opts = opts,
    .usage = "[options] DUMP",
    .about =
        "Checks a dump for contradictions, for when there is no other run to compare with: "
        "gradients are finite, parameters that ranks share are equal and do not change within a "
        "step, a collective gives every rank the same result, and backward mirrors forward. "
        "Findings are listed in execution order.\n"
        "\n"
        "  msprobe check run\n"
        "  msprobe check run/step0 --format json | jq .suspects[0]\n",
};

/* SPDX-License-Identifier: MIT
 *
 * stat: what is in a dump.
 *
 * Several ranks are read side by side, one of them in parts.  A rank that
 * cannot be read is reported and the others are shown.
 */
#define MS_LOG_DOMAIN "stat"
#include "probe/base/clock.h"
#include "probe/base/human.h"
#include "probe/base/jprint.h"
#include "probe/base/opt.h"
#include "probe/census.h"
#include "probe/find.h"

#include <stdlib.h>

enum format { FORMAT_TEXT, FORMAT_JSON };

struct args {
    struct ms_opt_list path;
    bool tolerant;
    int format;
};

static const char *const formats[] = {"text", "json", NULL};

static const struct ms_opt opts[] = {
    {"PATH", NULL, MS_OPT_REST, offsetof(struct args, path), .min = 1, .max = 1,
     .help = "a dump.json, a rank or step directory, or the directory of a whole dump"},
    {"tolerant", NULL, MS_OPT_FLAG, offsetof(struct args, tolerant),
     .help = "read what is complete of a file that was cut off, and the later of two records "
             "of one name"},
    {"format", NULL, MS_OPT_CHOICE, offsetof(struct args, format), "FORMAT", .dflt = "text",
     .choices = formats, .help = "text for people, json for programs"},
    {0}};

extern const struct ms_cmd probe_cmd_stat;

/* One rank's dump. */
struct rank {
    const struct probe_place *place;
    struct probe_dump *dump; /* NULL: could not be read, see err */
    struct probe_census census;
    struct ms_err err;
};

struct job {
    struct args args;
    struct probe_places places;
    struct rank *ranks;
    struct ms_pool *pool;
    uint64_t bytes; /* of JSON read */
    int64_t took_ns;
    size_t failed;
};

/* ---- reading ---------------------------------------------------------- */

static enum ms_rc read_rank(struct rank *r, const struct args *args, struct ms_pool *pool,
                            struct ms_err *err)
{
    unsigned flags = args->tolerant ? PROBE_OPEN_TOLERANT : 0;
    MS_TRY(probe_dump_open(&r->dump, r->place->json, flags, pool, err));
    enum ms_rc rc = probe_census_take(&r->census, r->dump, pool, err);
    if (rc != MS_OK) {
        probe_dump_close(r->dump);
        r->dump = NULL;
    }
    return rc;
}

/* An item of the loop over ranks: its failure is kept with the rank, and the others go on. */
static enum ms_rc read_item(void *ctx, size_t i, unsigned worker, struct ms_err *err)
{
    (void)worker;
    (void)err;
    struct job *j = ctx;
    read_rank(&j->ranks[i], &j->args, NULL, &j->ranks[i].err);
    return MS_OK;
}

static enum ms_rc read_all(struct job *j, struct ms_err *err)
{
    size_t n = j->places.list.n;
    int64_t start = ms_clock_ns();
    j->ranks = ms_calloc(n, sizeof *j->ranks);
    if (j->ranks == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++)
        j->ranks[i].place = &j->places.list.p[i];
    if (n == 1)
        read_rank(&j->ranks[0], &j->args, j->pool, &j->ranks[0].err);
    else
        MS_TRY(ms_pool_run(j->pool, n, read_item, j, err));
    for (size_t i = 0; i < n; i++) {
        j->failed += j->ranks[i].dump == NULL;
        j->bytes += j->ranks[i].dump != NULL ? j->ranks[i].dump->file.n : 0;
    }
    j->took_ns = ms_clock_ns() - start;
    return MS_OK;
}

/* ---- text ------------------------------------------------------------- */

/* Text of the file, which could hold what speaks to the terminal. */
static void show_name(struct ms_str s)
{
    for (uint32_t i = 0; i < s.n; i++)
        putchar((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f ? '?' : s.p[i]);
}

/* "12 words, " with the comma only between items. */
static void list_item(bool *first, uint64_t n, struct ms_str word)
{
    char count[MS_HUMAN_MAX];
    if (n == 0)
        return;
    printf("%s%s ", *first ? "" : ", ", ms_human_count(count, n));
    show_name(word);
    *first = false;
}

static void label(const char *text)
{
    printf("  %-11s ", text);
}

static void show_records(const struct probe_census *c, size_t n)
{
    char count[MS_HUMAN_MAX];
    bool first = true;
    label("records");
    printf("%s", ms_human_count(count, n));
    if (n != 0)
        printf(": ");
    for (int k = PROBE_NODE_API; k < PROBE_NODE_KINDS; k++)
        list_item(&first, c->nodes[k], ms_str_of(probe_node_kind_text((enum probe_node_kind)k)));
    list_item(&first, c->nodes[PROBE_NODE_OTHER], MS_STR("other"));
    if (c->forward + c->backward != 0) {
        printf("; ");
        first = true;
        list_item(&first, c->forward, MS_STR("forward"));
        list_item(&first, c->backward, MS_STR("backward"));
    }
    printf("\n");
}

static void show_prefixes(const struct probe_census *c)
{
    bool first = true;
    if (c->prefix_nodes.n == 0)
        return;
    label("prefixes");
    for (uint32_t i = 0; i < c->prefix_nodes.n; i++) {
        struct ms_str p = ms_map_key(&c->prefixes, i);
        list_item(&first, c->prefix_nodes.p[i], p.n != 0 ? p : MS_STR("(none)"));
    }
    printf("\n");
}

static void show_tensors(const struct probe_census *c)
{
    char text[MS_HUMAN_MAX];
    bool first = true;
    label("tensors");
    printf("%s", ms_human_count(text, c->tensors));
    if (c->tensors != 0)
        printf(": ");
    for (int t = 0; t < MS_DT_MAX; t++)
        list_item(&first, c->of_dtype[t], ms_str_of(ms_dtype_torch((enum ms_dtype)t)));
    if (c->tensors != 0)
        printf("; %s in memory", ms_human_bytes(text, c->tensor_bytes));
    if (c->files != 0)
        printf("; %s with a file", ms_human_count(text, c->files));
    printf("\n");
    label("values");
    printf("%s", ms_human_count(text, c->values));
    printf(", %s null\n", ms_human_count(text, c->nulls));
}

static void show_anomaly(const struct probe_dump *d, uint64_t n, uint32_t row, const char *what)
{
    struct ms_buf name = {.max = 1 << 16};
    char count[MS_HUMAN_MAX];
    if (n == 0)
        return;
    probe_row_name(d, &d->rows.p[row], &name);
    label(what);
    printf("%s tensor%s, first ", ms_human_count(count, n), n == 1 ? "" : "s");
    show_name(ms_buf_slice(&name));
    printf("\n");
    ms_buf_free(&name);
}

static void show_rank(const struct rank *r)
{
    const struct probe_dump *d = r->dump;
    const struct probe_census *c = &r->census;
    char count[MS_HUMAN_MAX];
    printf("%s\n", d->path);
    label("written as");
    printf("%s, task ", probe_framework_text(d->framework));
    show_name(d->task);
    printf(", level ");
    show_name(d->level);
    printf("\n");
    show_records(c, d->nodes.n);
    show_prefixes(c);
    show_tensors(c);
    show_anomaly(d, c->nan_tensors, c->first_nan, "NaN");
    show_anomaly(d, c->inf_tensors, c->first_inf, "Inf");
    if (c->tensors != 0 && c->nan_tensors + c->inf_tensors == 0) {
        label("NaN, Inf");
        printf("none\n");
    }
    if (c->unfinished != 0) {
        label("unfinished");
        printf("%s tensor%s without figures\n", ms_human_count(count, c->unfinished),
               c->unfinished == 1 ? "" : "s");
    }
}

static void show_problems(const struct rank *r)
{
    for (size_t i = 0; r->dump != NULL && i < r->dump->problems.n; i++)
        fprintf(stderr, "msprobe stat: %s: %.*s\n", r->dump->path,
                MS_STR_ARG(r->dump->problems.p[i]));
}

/* "-" where the path does not say. */
static const char *number(char buf[MS_HUMAN_MAX], int64_t n)
{
    return n >= 0 ? ms_human_count(buf, (uint64_t)n) : "-";
}

static void show_row(const struct rank *r)
{
    char a[MS_HUMAN_MAX], b[MS_HUMAN_MAX], c[MS_HUMAN_MAX], e[MS_HUMAN_MAX], f[MS_HUMAN_MAX];
    const struct probe_dump *d = r->dump;
    printf("%6s %6s %10s %11s", number(a, r->place->step), number(b, r->place->rank),
           ms_human_count(c, d->nodes.n), ms_human_count(e, r->census.tensors));
    printf(" %8s", ms_human_count(a, r->census.nan_tensors));
    printf(" %8s %9s  %s%s", ms_human_count(f, r->census.inf_tensors), ms_human_bytes(b, d->file.n),
           r->place->part, r->place->part[0] != '\0' ? ", " : "");
    show_name(d->task);
    printf(", ");
    show_name(d->level);
    printf(", %s\n", probe_framework_text(d->framework));
}

static void show_table(const struct job *j)
{
    printf("%s\n", j->args.path.items[0]);
    printf("%6s %6s %10s %11s %8s %8s %9s  %s\n", "step", "rank", "records", "tensors", "NaN",
           "Inf", "json", "written as");
    for (size_t i = 0; i < j->places.list.n; i++) {
        if (j->ranks[i].dump != NULL)
            show_row(&j->ranks[i]);
    }
}

static void show_text(const struct job *j)
{
    char bytes[MS_HUMAN_MAX], took[MS_HUMAN_MAX], rate[MS_HUMAN_MAX];
    double seconds = (double)j->took_ns / 1e9;
    if (j->places.list.n == 1)
        show_rank(&j->ranks[0]);
    else
        show_table(j);
    uint64_t per_second = seconds > 0 ? (uint64_t)((double)j->bytes / seconds) : 0;
    printf("read %s in %s, %s/s\n", ms_human_bytes(bytes, j->bytes),
           ms_human_time(took, j->took_ns), ms_human_bytes(rate, per_second));
}

/* ---- JSON ------------------------------------------------------------- */

static void put_number_or_null(struct ms_jwrite *w, const char *key, int64_t v)
{
    ms_jwrite_key(w, ms_str_of(key));
    if (v >= 0)
        ms_jwrite_i64(w, v);
    else
        ms_jwrite_null(w);
}

static void put_counts(struct ms_jwrite *w, const struct probe_census *c)
{
    ms_jwrite_key(w, MS_STR("kinds"));
    ms_jwrite_obj(w);
    for (int k = 0; k < PROBE_NODE_KINDS; k++)
        ms_jwrite_ki64(w, probe_node_kind_text((enum probe_node_kind)k), (int64_t)c->nodes[k]);
    ms_jwrite_obj_end(w);
    ms_jwrite_key(w, MS_STR("prefixes"));
    ms_jwrite_obj(w);
    for (uint32_t i = 0; i < c->prefix_nodes.n; i++) {
        ms_jwrite_key(w, ms_map_key(&c->prefixes, i));
        ms_jwrite_u64(w, c->prefix_nodes.p[i]);
    }
    ms_jwrite_obj_end(w);
    ms_jwrite_key(w, MS_STR("dtypes"));
    ms_jwrite_obj(w);
    for (int t = 0; t < MS_DT_MAX; t++) {
        if (c->of_dtype[t] != 0)
            ms_jwrite_ki64(w, ms_dtype_torch((enum ms_dtype)t), (int64_t)c->of_dtype[t]);
    }
    ms_jwrite_obj_end(w);
    const struct {
        const char *key;
        uint64_t n;
    } plain[] = {{"forward", c->forward},
                 {"backward", c->backward},
                 {"tensors", c->tensors},
                 {"values", c->values},
                 {"nulls", c->nulls},
                 {"files", c->files},
                 {"unfinished", c->unfinished},
                 {"tensor_bytes", c->tensor_bytes},
                 {"nan_tensors", c->nan_tensors},
                 {"inf_tensors", c->inf_tensors}};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        ms_jwrite_key(w, ms_str_of(plain[i].key));
        ms_jwrite_u64(w, plain[i].n);
    }
}

static void put_first(struct ms_jwrite *w, const char *key, const struct probe_dump *d,
                      uint32_t row)
{
    struct ms_buf name = {.max = 1 << 16};
    ms_jwrite_key(w, ms_str_of(key));
    if (row != MS_MAP_NONE) {
        probe_row_name(d, &d->rows.p[row], &name);
        ms_jwrite_str(w, ms_buf_slice(&name));
    } else {
        ms_jwrite_null(w);
    }
    ms_buf_free(&name);
}

static void put_rank(struct ms_jwrite *w, const struct rank *r)
{
    const struct probe_dump *d = r->dump;
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "path", r->place->json);
    put_number_or_null(w, "step", r->place->step);
    put_number_or_null(w, "rank", r->place->rank);
    if (d == NULL) {
        ms_jwrite_kstr(w, "error", r->err.msg);
        ms_jwrite_obj_end(w);
        return;
    }
    ms_jwrite_kstr(w, "framework", probe_framework_text(d->framework));
    ms_jwrite_key(w, MS_STR("task"));
    ms_jwrite_str(w, d->task);
    ms_jwrite_key(w, MS_STR("level"));
    ms_jwrite_str(w, d->level);
    ms_jwrite_kstr(w, "compares_as", probe_mode_text(d->mode));
    ms_jwrite_ki64(w, "json_bytes", (int64_t)d->file.n);
    ms_jwrite_ki64(w, "records", (int64_t)d->nodes.n);
    ms_jwrite_ki64(w, "rows", (int64_t)d->rows.n);
    put_counts(w, &r->census);
    put_first(w, "first_nan", d, r->census.first_nan);
    put_first(w, "first_inf", d, r->census.first_inf);
    ms_jwrite_key(w, MS_STR("problems"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < d->problems.n; i++)
        ms_jwrite_str(w, d->problems.p[i]);
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

static enum ms_rc show_json(const struct job *j, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_ki64(&w, "json_bytes", (int64_t)j->bytes);
    ms_jwrite_kf64(&w, "seconds", (double)j->took_ns / 1e9);
    ms_jwrite_key(&w, MS_STR("dumps"));
    ms_jwrite_arr(&w);
    for (size_t i = 0; i < j->places.list.n; i++)
        put_rank(&w, &j->ranks[i]);
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

/* ---- the command ------------------------------------------------------ */

static void show_notes(const struct job *j)
{
    for (size_t i = 0; i < j->places.notes.n; i++)
        fprintf(stderr, "msprobe stat: %s\n", j->places.notes.p[i]);
    for (size_t i = 0; i < j->places.list.n; i++) {
        show_problems(&j->ranks[i]);
        if (j->ranks[i].dump == NULL)
            ms_cmd_fail(&probe_cmd_stat, &j->ranks[i].err);
    }
}

static enum ms_rc stat_path(struct job *j, struct ms_err *err)
{
    MS_TRY(probe_find(&j->places, j->args.path.items[0], err));
    MS_TRY(ms_pool_new(&j->pool, (unsigned)ms_globals.threads, err));
    MS_TRY(read_all(j, err));
    if (j->args.format == FORMAT_JSON)
        MS_TRY(show_json(j, err));
    else if (j->failed < j->places.list.n)
        show_text(j);
    /* Notes go to another stream: what they are about comes first. */
    MS_TRY(ms_stdout_finish(err));
    show_notes(j);
    return MS_OK;
}

static void job_free(struct job *j)
{
    for (size_t i = 0; j->ranks != NULL && i < j->places.list.n; i++) {
        if (j->ranks[i].dump != NULL)
            probe_census_free(&j->ranks[i].census);
        probe_dump_close(j->ranks[i].dump);
    }
    ms_free(j->ranks);
    ms_pool_free(j->pool);
    if (j->places.arena != NULL)
        probe_places_free(&j->places);
}

static int run(int argc, char **argv)
{
    struct job j = {0};
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&probe_cmd_stat, argc, argv, &j.args, &done, &err) != MS_OK)
        return ms_cmd_fail(&probe_cmd_stat, &err);
    if (done)
        return MS_EXIT_OK;
    int code = stat_path(&j, &err) != MS_OK ? ms_cmd_fail(&probe_cmd_stat, &err)
               : j.failed != 0              ? MS_EXIT_FAIL
                                            : MS_EXIT_OK;
    job_free(&j);
    return code;
}

const struct ms_cmd probe_cmd_stat = {
    .name = "stat",
    .run = run,
    .brief = "say what is in a dump",
    .opts = opts,
    .usage = "[options] PATH",
    .about =
        "Reads a dump and counts what it holds: framework, task and level, records by kind and "
        "prefix, tensors by type, and those whose figures are NaN or infinite, with the first one "
        "of each. A directory with several ranks or steps gives a line for each.\n"
        "\n"
        "  msprobe stat out/step0/rank0\n"
        "  msprobe stat --format json out | jq '.dumps[].nan_tensors'\n",
};

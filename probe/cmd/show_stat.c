/* SPDX-License-Identifier: MIT
 *
 * show_stat: prints the contents of a dump as text and as JSON.
 */
#include "probe/cmd/show_stat.h"

#include "probe/base/human.h"
#include "probe/base/jprint.h"
#include "probe/base/opt.h"

#include <stdio.h>

/* ---- text ------------------------------------------------------------- */

/* Prints text from a file with control characters replaced, as they could control the terminal. */
static void show_name(struct ms_str s)
{
    for (uint32_t i = 0; i < s.n; i++)
        putchar((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f ? '?' : s.p[i]);
}

/* Prints "12 words" with a comma before all but the first item. */
static void list_item(bool *first, uint64_t n, struct ms_str word)
{
    char count[MS_HUMAN_MAX];
    if (n == 0)
        return;
    printf("%s%s ", *first ? "" : ", ", ms_human_count(count, n));
    show_name(word);
    *first = false;
}

static void print_label(const char *text)
{
    printf("  %-11s ", text);
}

static void show_records(const struct probe_census *c, size_t n)
{
    char count[MS_HUMAN_MAX];
    bool first = true;
    print_label("records");
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
    print_label("prefixes");
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
    print_label("tensors");
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
    print_label("values");
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
    print_label(what);
    printf("%s tensor%s, first ", ms_human_count(count, n), n == 1 ? "" : "s");
    show_name(ms_buf_slice(&name));
    printf("\n");
    ms_buf_free(&name);
}

static void show_rank(const struct probe_stat_rank *r)
{
    const struct probe_dump *d = r->dump;
    const struct probe_census *c = &r->census;
    char count[MS_HUMAN_MAX];
    printf("%s\n", ms_opt_shown(d->path));
    print_label("written as");
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
        print_label("NaN, Inf");
        printf("none\n");
    }
    if (c->masked_tensors != 0) {
        print_label("masked");
        printf("%s tensor%s with -Inf, as masks of a softmax have\n",
               ms_human_count(count, c->masked_tensors), c->masked_tensors == 1 ? "" : "s");
    }
    if (c->unfinished != 0) {
        print_label("unfinished");
        printf("%s tensor%s without figures\n", ms_human_count(count, c->unfinished),
               c->unfinished == 1 ? "" : "s");
    }
}

/* Formats a number; "-" when the path does not have it. */
static const char *number_text(char buf[MS_HUMAN_MAX], int64_t n)
{
    return n >= 0 ? ms_human_count(buf, (uint64_t)n) : "-";
}

static void show_row(const struct probe_stat_rank *r)
{
    char a[MS_HUMAN_MAX], b[MS_HUMAN_MAX], c[MS_HUMAN_MAX], e[MS_HUMAN_MAX], f[MS_HUMAN_MAX];
    const struct probe_dump *d = r->dump;
    printf("%6s %6s %10s %11s", number_text(a, r->place->step), number_text(b, r->place->rank),
           ms_human_count(c, d->nodes.n), ms_human_count(e, r->census.tensors));
    printf(" %8s", ms_human_count(a, r->census.nan_tensors));
    printf(" %8s %9s  %s%s", ms_human_count(f, r->census.inf_tensors), ms_human_bytes(b, d->file.n),
           r->place->part, r->place->part[0] != '\0' ? ", " : "");
    show_name(d->task);
    printf(", ");
    show_name(d->level);
    printf(", %s\n", probe_framework_text(d->framework));
}

static void show_table(const struct probe_stat *s, const char *path)
{
    printf("%s\n", path);
    printf("%6s %6s %10s %11s %8s %8s %9s  %s\n", "step", "rank", "records", "tensors", "NaN",
           "Inf", "json", "written as");
    for (size_t i = 0; i < s->places.list.n; i++) {
        if (s->ranks[i].dump != NULL)
            show_row(&s->ranks[i]);
    }
}

void stat_show_text(const struct probe_stat *s, const char *path)
{
    char bytes[MS_HUMAN_MAX], took[MS_HUMAN_MAX], rate[MS_HUMAN_MAX];
    double seconds = (double)s->took_ns / 1e9;
    if (s->places.list.n == 1)
        show_rank(&s->ranks[0]);
    else
        show_table(s, path);
    uint64_t per_second = seconds > 0 ? (uint64_t)((double)s->bytes / seconds) : 0;
    printf("read %s in %s, %s/s\n", ms_human_bytes(bytes, s->bytes),
           ms_human_time(took, s->took_ns), ms_human_bytes(rate, per_second));
}

/* ---- JSON ------------------------------------------------------------- */

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
                 {"inf_tensors", c->inf_tensors},
                 {"masked_tensors", c->masked_tensors}};
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

static void put_rank(struct ms_jwrite *w, const struct probe_stat_rank *r)
{
    const struct probe_dump *d = r->dump;
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "path", r->place->json);
    ms_jwrite_kmaybe(w, "step", r->place->step);
    ms_jwrite_kmaybe(w, "rank", r->place->rank);
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

enum ms_rc stat_show_json(const struct probe_stat *s, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_ki64(&w, "json_bytes", (int64_t)s->bytes);
    ms_jwrite_kf64(&w, "seconds", (double)s->took_ns / 1e9);
    ms_jwrite_key(&w, MS_STR("dumps"));
    ms_jwrite_arr(&w);
    for (size_t i = 0; i < s->places.list.n; i++)
        put_rank(&w, &s->ranks[i]);
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

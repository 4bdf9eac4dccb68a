/* SPDX-License-Identifier: MIT
 *
 * config_matches: members whose entries have other names on the other side: hyperparameters of two
 * programs, and calls of random functions at other lines.
 */
#include "compare/config/config_checks_int.h"
#include "compare/config/similar.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- hyperparameters ---------------------------------------------------------------------------- */

/* A name, and others that mean the same. */
static const char *const synonyms[][6] = {
    {"learning_rate", "lr", "learningrate"},
    {"batch_size", "batch", "bs", "batch_size_per_gpu"},
    {"epochs", "num_epochs", "max_epochs", "epoch"},
    {"weight_decay", "wd", "weightdecay"},
    {"dropout_rate", "dropout", "drop_rate"},
    {"compute_dtype", "bf16", "fp32"},
    {"residual_dtype", "fp32_residual_connection"},
    {"softmax_compute_dtype", "attention_softmax_in_fp32"},
};
static const double least_likeness = 0.8;

/* Makes {short name: name}: the last part of a path, with underscores. */
static struct ms_plain *short_names(struct cfg_check *k, const struct ms_plain *params)
{
    struct ms_arena *a = k->sides->a;
    struct ms_plain *out = ms_plain_new(a, MS_PLAIN_DICT);
    for (uint32_t i = 0; out != NULL && i + 1 < params->n; i += 2) {
        const struct ms_str name = params->item[i]->s;
        const int64_t dot = ms_str_rfind(name, '.');
        const struct ms_str last = ms_arena_str(a, ms_str_sub(name, (uint32_t)(dot + 1), name.n));
        for (uint32_t c = 0; last.p != NULL && c < last.n; c++) {
            char *letter = (char *)(uintptr_t)last.p + c;
            *letter = *letter == '-' ? '_' : *letter;
        }
        if (last.p == NULL || cfg_set(a, out, last, params->item[i], k->err) != MS_OK)
            return NULL;
    }
    return out;
}

static const struct ms_str *find_synonym(struct ms_str name, const struct ms_plain *names)
{
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++) {
        bool listed = false;
        for (int w = 0; w < 6 && synonyms[i][w] != NULL; w++)
            listed = listed || ms_str_is(name, synonyms[i][w]);
        for (int w = 0; listed && w < 6 && synonyms[i][w] != NULL; w++) {
            const struct ms_plain *v = cfg_get(names, ms_str_of(synonyms[i][w]));
            if (v != NULL)
                return &v->s;
        }
        if (listed)
            break;
    }
    return NULL;
}

static void put_lower(struct ms_buf *to, struct ms_str s)
{
    ms_buf_clear(to);
    for (uint32_t i = 0; i < s.n; i++)
        ms_buf_putc(to, s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] + 32) : s.p[i]);
}

static const struct ms_str *find_alike(struct ms_str name, const struct ms_plain *names,
                                       double *best)
{
    struct ms_buf x = {.max = 1 << 20}, y = {.max = 1 << 20};
    const struct ms_str *found = NULL;
    put_lower(&x, name);
    *best = least_likeness;
    for (uint32_t i = 0; i + 1 < names->n; i += 2) {
        put_lower(&y, names->item[i]->s);
        const double likeness = cfg_similar(ms_buf_slice(&x), ms_buf_slice(&y));
        if (likeness > *best) {
            *best = likeness;
            found = &names->item[i + 1]->s;
        }
    }
    ms_buf_free(&x);
    ms_buf_free(&y);
    return found;
}

/* Finds the parameter of the compared run that a short name means, and how it was found. */
static const struct ms_str *find_param(struct cfg_check *k, struct ms_str name,
                                       const struct ms_plain *names, const struct ms_plain **how)
{
    struct ms_arena *a = k->sides->a;
    const struct ms_plain *same = cfg_get(names, name);
    *how = cfg__word(a, "pure name");
    if (same != NULL)
        return &same->s;
    *how = cfg__word(a, "mapping");
    const struct ms_str *found = find_synonym(name, names);
    if (found != NULL)
        return found;
    double likeness;
    found = find_alike(name, names, &likeness);
    struct ms_buf text = {.max = 100};
    const struct ms_plain number = {.kind = MS_PLAIN_REAL, .f = likeness};
    ms_buf_puts(&text, "similarity:");
    cfg_value_str(&text, &number);
    *how = cfg_text(a, ms_buf_slice(&text));
    ms_buf_free(&text);
    return found;
}

/* Numbers and truths are compared as their text, so that 1 equals '1'. */
static const struct ms_plain *as_text(struct cfg_check *k, const struct ms_plain *v)
{
    if (v == NULL ||
        (v->kind != MS_PLAIN_INT && v->kind != MS_PLAIN_REAL && v->kind != MS_PLAIN_BOOL))
        return v;
    struct ms_buf text = {.max = 1000};
    cfg_value_str(&text, v);
    const struct ms_plain *out = cfg_text(k->sides->a, ms_buf_slice(&text));
    ms_buf_free(&text);
    return out;
}

static enum ms_rc compare_param(struct cfg_check *k, const char *file, struct ms_str name,
                                const struct ms_plain *value, const struct ms_plain *names,
                                const struct ms_plain *params, struct ms_map *used)
{
    struct ms_arena *a = k->sides->a;
    const struct ms_plain *how;
    const struct ms_str last = ms_str_sub(name, (uint32_t)(ms_str_rfind(name, '.') + 1), name.n);
    struct ms_str key = ms_arena_str(a, last);
    for (uint32_t c = 0; key.p != NULL && c < key.n; c++) {
        char *letter = (char *)(uintptr_t)key.p + c;
        *letter = *letter == '-' ? '_' : *letter;
    }
    const struct ms_str *other = find_param(k, key, names, &how);
    const struct ms_plain *mine = as_text(k, value);
    const struct ms_plain *theirs = other != NULL ? as_text(k, cfg_get(params, *other)) : NULL;
    bool added = true;
    if (other != NULL && ms_map_put(used, *other, &added) == MS_MAP_NONE)
        return ms_no_memory(k->err);
    if (other == NULL || !added) /* taken by an earlier one */
        return cfg__row(k, (const struct ms_plain *[]){cfg__word(a, file), cfg_text(a, name),
                                                       cfg__word(a, "Only in benchmark"), mine,
                                                       cfg__word(a, ""), cfg__word(a, ""),
                                                       cfg__word(a, "warning")});
    if (cfg_value_equal(mine, theirs))
        return MS_OK;
    return cfg__row(k, (const struct ms_plain *[]){cfg__word(a, file), cfg_text(a, name),
                                                   cfg_text(a, *other), mine, theirs, how,
                                                   cfg__word(a, "error")});
}

static enum ms_rc compare_params(struct cfg_check *k, const char *file, const struct ms_plain *v[2])
{
    struct ms_arena *a = k->sides->a;
    struct ms_map used = {0};
    const struct ms_plain *bench = short_names(k, v[0]), *cmp = short_names(k, v[1]);
    enum ms_rc rc = bench != NULL && cmp != NULL ? MS_OK : ms_arena_fail(a, k->err);
    for (uint32_t i = 0; rc == MS_OK && i + 1 < bench->n; i += 2) {
        const struct ms_str name = bench->item[i + 1]->s;
        rc = compare_param(k, file, name, cfg_get(v[0], name), cmp, v[1], &used);
    }
    for (uint32_t i = 0; rc == MS_OK && i + 1 < v[1]->n; i += 2) {
        if (ms_map_get(&used, v[1]->item[i]->s) == MS_MAP_NONE)
            rc = cfg__row(k, (const struct ms_plain *[]){
                                 cfg__word(a, file), cfg__word(a, "Only in comparison"),
                                 v[1]->item[i], cfg__word(a, ""), v[1]->item[i + 1],
                                 cfg__word(a, ""), cfg__word(a, "warning")});
    }
    ms_map_free(&used);
    return rc;
}

static int compare_rows(const void *a, const void *b)
{
    const struct ms_plain *const *x = a, *const *y = b;
    for (int i = 1; i < 3; i++) {
        const int order = ms_str_cmp(x[i]->s, y[i]->s);
        if (order != 0)
            return order;
    }
    return (x > y) - (x < y);
}

enum ms_rc cfg__check_hyperparameters(struct cfg_check *k)
{
    static const char *const files[] = {"hyperparameters_static.json",
                                        "hyperparameters_dynamic.json"};
    for (int f = 0; f < 2; f++) {
        const struct ms_plain *v[2];
        char member[64];
        snprintf(member, sizeof member, "hyperparameters/%s", files[f]);
        const struct ms_str name = ms_str_of(member);
        if (cfg__member(k, 0, name) == NULL || cfg__member(k, 1, name) == NULL)
            continue;
        const size_t from = k->t->cells.n;
        for (int side = 0; side < 2; side++)
            MS_TRY(cfg__json(k, side, name, &v[side]));
        MS_TRY(compare_params(k, files[f], v));
        const size_t rows = (k->t->cells.n - from) / k->t->columns;
        if (rows != 0)
            qsort(k->t->cells.p + from, rows, k->t->columns * sizeof *k->t->cells.p, compare_rows);
    }
    return MS_OK;
}

/* ---- calls of random functions ------------------------------------------------------------------- */

/* Parts of a frame, "File PATH, line N, in FUNCTION, CODE". */
struct frame {
    struct ms_str file, function, code;
};

static void read_frame(struct ms_str text, struct frame *f)
{
    struct ms_str rest = text, word[6];
    *f = (struct frame){MS_STR(""), MS_STR(""), MS_STR("")};
    for (int i = 0; i < 6; i++) {
        if (!ms_str_split(&rest, ' ', &word[i]))
            return;
    }
    if (rest.p == NULL)
        return;
    f->file = ms_str_sub(word[1], 0, word[1].n != 0 ? word[1].n - 1 : 0);
    const int64_t slash = ms_str_rfind(f->file, '/');
    f->file = ms_str_sub(f->file, (uint32_t)(slash + 1), f->file.n);
    f->function = ms_str_sub(word[5], 0, word[5].n != 0 ? word[5].n - 1 : 0);
    f->code = rest;
}

/* Two frames are one when file, function and code, a third each, agree to four fifths. */
static bool same_frame(struct ms_str x, struct ms_str y)
{
    struct frame a, b;
    read_frame(x, &a);
    read_frame(y, &b);
    double score = a.file.n != 0 && ms_str_eq(a.file, b.file) ? 1 : 0;
    score += ms_str_eq(a.function, b.function) ? 1 : 0;
    score += cfg_similar(a.code, b.code);
    return score / 3.0 >= least_likeness;
}

static bool same_stack(const struct ms_plain *x, const struct ms_plain *y)
{
    if (ms_plain_len(x) != ms_plain_len(y))
        return false;
    for (uint32_t i = 0; i < ms_plain_len(x); i++) {
        if (!same_frame(ms_plain_text(x->item[i]), ms_plain_text(y->item[i])))
            return false;
    }
    return true;
}

static const struct ms_plain *stack_of(const struct ms_plain *entry)
{
    return cfg_get(entry, MS_STR("stack"));
}

static const struct ms_plain *find_stack(const struct ms_plain *stack, const struct ms_plain *list)
{
    for (uint32_t i = 0; i < ms_plain_len(list); i++) {
        if (same_stack(stack_of(list->item[i]), stack))
            return list->item[i];
    }
    return NULL;
}

static const struct ms_plain *joined(struct cfg_check *k, const struct ms_plain *stack)
{
    struct ms_buf text = {.max = 1 << 20};
    for (uint32_t i = 0; i < ms_plain_len(stack); i++) {
        ms_buf_puts(&text, i != 0 ? "\n" : "");
        ms_buf_str(&text, ms_plain_text(stack->item[i]));
    }
    const struct ms_plain *out = cfg_text(k->sides->a, ms_buf_slice(&text));
    ms_buf_free(&text);
    return out;
}

static enum ms_rc random_row(struct cfg_check *k, struct ms_str op, int64_t rank,
                             const struct ms_plain *bench, const struct ms_plain *cmp)
{
    struct ms_arena *a = k->sides->a;
    const struct ms_plain *none = cfg__word(a, "no match stack"), *zero = cfg_int(a, 0);
    const struct ms_plain *count[2] = {
        bench != NULL ? cfg_get(bench, MS_STR("count")) : zero,
        cmp != NULL ? cfg_get(cmp, MS_STR("count")) : zero,
    };
    const bool same = bench != NULL && cmp != NULL && cfg_value_equal(count[0], count[1]);
    return cfg__row(k,
                    (const struct ms_plain *[]){cfg_text(a, op), cfg_int(a, rank),
                                                bench != NULL ? joined(k, stack_of(bench)) : none,
                                                cmp != NULL ? joined(k, stack_of(cmp)) : none,
                                                count[0], count[1], cfg_bool(a, same)});
}

static enum ms_rc compare_op(struct cfg_check *k, struct ms_str op, int64_t rank,
                             const struct ms_plain *bench, const struct ms_plain *cmp)
{
    for (uint32_t i = 0; i < ms_plain_len(bench); i++)
        MS_TRY(random_row(k, op, rank, bench->item[i], find_stack(stack_of(bench->item[i]), cmp)));
    for (uint32_t i = 0; i < ms_plain_len(cmp); i++) {
        if (find_stack(stack_of(cmp->item[i]), bench) == NULL)
            MS_TRY(random_row(k, op, rank, NULL, cmp->item[i]));
    }
    return MS_OK;
}

static enum ms_rc compare_rank(struct cfg_check *k, int64_t rank)
{
    const struct ms_plain *v[2] = {NULL, NULL};
    char name[64];
    snprintf(name, sizeof name, "random/rank%lld.json", (long long)rank);
    for (int side = 0; side < 2; side++) {
        if (cfg__member(k, side, ms_str_of(name)) != NULL)
            MS_TRY(cfg__json(k, side, ms_str_of(name), &v[side]));
    }
    for (uint32_t i = 0; v[0] != NULL && i + 1 < v[0]->n; i += 2)
        MS_TRY(compare_op(k, v[0]->item[i]->s, rank, v[0]->item[i + 1],
                          cfg_get(v[1], v[0]->item[i]->s)));
    for (uint32_t i = 0; v[1] != NULL && i + 1 < v[1]->n; i += 2) {
        if (cfg_get(v[0], v[1]->item[i]->s) == NULL)
            MS_TRY(compare_op(k, v[1]->item[i]->s, rank, NULL, v[1]->item[i + 1]));
    }
    return MS_OK;
}

static int compare_numbers(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum ms_rc cfg__check_random(struct cfg_check *k)
{
    MS_VEC(int64_t) ranks = {0};
    enum ms_rc rc = MS_OK;
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; rc == MS_OK && i < k->sides->zip[side].zip.members.n; i++) {
            struct ms_str name = k->sides->zip[side].zip.members.p[i].name;
            uint64_t rank;
            if (!ms_str_skip(&name, "random/rank") || !ms_str_ends(name, MS_STR(".json")) ||
                !ms_str_u64(ms_str_sub(name, 0, name.n - 5), &rank) || rank > INT32_MAX)
                continue;
            int64_t *slot = ms_vec_push(&ranks);
            if (slot == NULL)
                rc = ms_no_memory(k->err);
            else
                *slot = (int64_t)rank;
        }
    }
    if (ranks.n != 0)
        qsort(ranks.p, ranks.n, sizeof *ranks.p, compare_numbers);
    for (size_t i = 0; rc == MS_OK && i < ranks.n; i++) {
        if (i == 0 || ranks.p[i] != ranks.p[i - 1])
            rc = compare_rank(k, ranks.p[i]);
    }
    ms_vec_free(&ranks);
    return rc;
}

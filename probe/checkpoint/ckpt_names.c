/* SPDX-License-Identifier: MIT
 *
 * ckpt_names: what the entries of a checkpoint are, by their names: weights, optimizer, random state.
 * Frameworks name these parts alike ("optimizer", "optim", "opt_states"), so words decide.
 */
#include "probe/base/num.h"
#include "probe/checkpoint/checkpoint_int.h"

#include <stdio.h>
#include <stdlib.h>

/* A role, and words of a key that give it; a word behind '=' has to be a whole one between underscores
 * ("ema" is none of "schema"). The first row that fits counts. */
static const struct {
    enum probe_ckpt_role role;
    const char *words[20];
} role_words[] = {
    {PROBE_CKPT_SCHEDULER, {"sched", "warmup"}},
    {PROBE_CKPT_SCALER, {"scaler", "loss_scal", "scale_sense"}},
    {PROBE_CKPT_RANDOM, {"=rng", "random", "generator", "=seed"}},
    {PROBE_CKPT_EMA, {"=ema", "shadow", "averaged", "=swa"}},
    {PROBE_CKPT_OPTIMIZER,
     {"optim", "=opt", "opt_state", "exp_avg", "=momentum", "moment1", "moment2", "=moments",
      "adam_m", "adam_v", "master_param", "param_groups", "learning_rate", "beta1_power",
      "beta2_power"}},
    {PROBE_CKPT_DATA,
     {"sampler", "loader", "dataset", "data_state", "consumed", "data_iter", "=epoch", "batch_idx",
      "shuffle", "iteration", "=step", "=samples", "=epochs"}},
};

/* Keys under which a checkpoint has its weights. */
static const char *const weight_roots[] = {
    "model",   "state_dict", "module", "model_state_dict", "model_state",
    "network", "net",        "params", "weights"};

static bool is_letter(char c)
{
    return c != '_' && c != '-' && c != '.';
}

static bool has_word(struct ms_str key, const char *word)
{
    const bool whole = *word == '=';
    const struct ms_str w = ms_str_of(word + (whole ? 1 : 0));
    for (uint32_t at = 0; at + w.n <= key.n; at++) {
        if (!ms_str_is_folded(ms_str_sub(key, at, at + w.n), w.p))
            continue;
        if (!whole || ((at == 0 || !is_letter(key.p[at - 1])) &&
                       (at + w.n == key.n || !is_letter(key.p[at + w.n]))))
            return true;
    }
    return false;
}

bool ckpt__is_weight_root(struct ms_str key)
{
    for (size_t i = 0; i < sizeof weight_roots / sizeof *weight_roots; i++) {
        if (ms_str_is(key, weight_roots[i]))
            return true;
    }
    return ms_str_starts(key, MS_STR("model")) && ms_str_all_digits(ms_str_sub(key, 5, key.n));
}

static enum probe_ckpt_role role_of_key(struct ms_str key)
{
    for (size_t i = 0; i < sizeof role_words / sizeof *role_words; i++) {
        for (const char *const *w = role_words[i].words; *w != NULL; w++) {
            if (has_word(key, *w))
                return role_words[i].role;
        }
    }
    return PROBE_CKPT_OTHER;
}

/* A tensor's first key decides, and a tensor of floats is no random state and no place in the data: a
 * module may be called "generator". Of plain values the first three keys may: "args.seed". */
enum probe_ckpt_role ckpt__role_of(struct ms_str name, enum ms_dtype dtype)
{
    const bool is_tensor = dtype != MS_DT_NONE;
    struct ms_str rest = name, key;
    for (int depth = 0; depth < (is_tensor ? 1 : 3) && ms_str_split(&rest, '.', &key); depth++) {
        if (depth == 0 && ckpt__is_weight_root(key))
            break;
        const enum probe_ckpt_role role = role_of_key(key);
        const bool counts = role == PROBE_CKPT_RANDOM || role == PROBE_CKPT_DATA;
        if (role != PROBE_CKPT_OTHER && !(is_tensor && counts && !ms_dtype_is_whole(dtype)))
            return role;
    }
    return is_tensor ? PROBE_CKPT_WEIGHT : PROBE_CKPT_OTHER;
}

/* Cuts a wrapper's name off the weights when all of them have it: "module." of data parallel. */
static void cut_wrapper(struct probe_ckpt *c, struct ms_str wrapper)
{
    size_t weights = 0;
    for (size_t i = 0; i < c->entries.n; i++) {
        const struct probe_ckpt_entry *e = &c->entries.p[i];
        weights += e->role == PROBE_CKPT_WEIGHT;
        if (e->role == PROBE_CKPT_WEIGHT && !ms_str_starts(e->name, wrapper))
            return;
    }
    for (size_t i = 0; weights != 0 && i < c->entries.n; i++) {
        struct ms_str *name = &c->entries.p[i].name;
        if (c->entries.p[i].role == PROBE_CKPT_WEIGHT)
            *name = ms_str_sub(*name, wrapper.n, name->n);
    }
}

/* ---- order --------------------------------------------------------------------------------- */

struct sorted {
    struct probe_ckpt_entry entry;
    bool flat;
};

static int compare_names(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    const int order = ms_str_cmp_natural(x->entry.name, y->entry.name);
    return order != 0 ? order
                      : (x->entry.name.p > y->entry.name.p) - (x->entry.name.p < y->entry.name.p);
}

static enum ms_rc sort_entries(struct probe_ckpt *c, struct ms_err *err)
{
    const size_t n = c->entries.n;
    struct sorted *all = ms_alloc((n + 1) * sizeof *all);
    if (all == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++)
        all[i] = (struct sorted){c->entries.p[i], c->flat.p[i]};
    qsort(all, n, sizeof *all, compare_names);
    for (size_t i = 0; i < n; i++) {
        c->entries.p[i] = all[i].entry;
        c->flat.p[i] = all[i].flat;
    }
    ms_free(all);
    return MS_OK;
}

static enum ms_rc index_names(struct probe_ckpt *c, struct ms_err *err)
{
    for (size_t i = 0; i < c->entries.n; i++) {
        char shown[MS_STR_SHOWN];
        bool added;
        if (ms_map_put(&c->names, c->entries.p[i].name, &added) == MS_MAP_NONE)
            return ms_no_memory(err);
        if (!added)
            return ms_fail(err, MS_E_FORMAT, "%s is there twice, the second time in %.*s",
                           ms_str_shown(shown, c->entries.p[i].name),
                           MS_STR_ARG(c->entries.p[i].file));
    }
    return MS_OK;
}

enum ms_rc ckpt__finish(struct probe_ckpt *c, struct ms_err *err)
{
    for (size_t i = 0; i < c->entries.n; i++) {
        struct probe_ckpt_entry *e = &c->entries.p[i];
        if (e->role != PROBE_CKPT_OTHER)
            continue;
        e->role = ckpt__role_of(e->name, e->dtype);
        if (c->knows_weights && e->role == PROBE_CKPT_WEIGHT)
            e->role = PROBE_CKPT_OTHER;
    }
    for (size_t i = 0; c->is_tree && i < sizeof weight_roots / sizeof *weight_roots; i++) {
        char wrapper[32];
        snprintf(wrapper, sizeof wrapper, "%s.", weight_roots[i]);
        cut_wrapper(c, ms_str_of(wrapper));
    }
    cut_wrapper(c, MS_STR("module."));
    cut_wrapper(c, MS_STR("_orig_mod."));
    MS_TRY(sort_entries(c, err));
    return index_names(c, err);
}

/* ---- plain values as text ------------------------------------------------------------------ */

static void put_text(struct ms_buf *out, struct ms_str s)
{
    ms_buf_putc(out, '\'');
    for (uint32_t i = 0; i < s.n && i < 200; i++)
        ms_buf_putc(out, s.p[i] >= ' ' && s.p[i] != 127 ? s.p[i] : '?');
    ms_buf_putc(out, '\'');
}

static void put_value(const struct ms_plain *v, struct ms_buf *out, size_t most, int depth);

static void put_items(const struct ms_plain *v, uint32_t from, struct ms_buf *out, size_t most,
                      int depth)
{
    for (uint32_t i = from; i < v->n; i++) {
        if (i != from)
            ms_buf_puts(out, v->kind == MS_PLAIN_DICT && i % 2 != 0 ? ": " : ", ");
        if (out->n >= most || depth == 0) {
            ms_buf_puts(out, "...");
            return;
        }
        put_value(v->item[i], out, most, depth - 1);
    }
}

static void put_real(struct ms_buf *out, double f)
{
    char *at = ms_buf_room(out, MS_NUM_MAX);
    if (at != NULL)
        out->n += ms_num_f64(at, f);
}

static void put_value(const struct ms_plain *v, struct ms_buf *out, size_t most, int depth)
{
    switch (v->kind) {
    case MS_PLAIN_BOOL:
        ms_buf_puts(out, v->i != 0 ? "True" : "False");
        break;
    case MS_PLAIN_INT:
        ms_buf_printf(out, "%lld", (long long)v->i);
        break;
    case MS_PLAIN_REAL:
        put_real(out, v->f);
        break;
    case MS_PLAIN_TEXT:
        put_text(out, v->s);
        break;
    case MS_PLAIN_CLASS:
        ms_buf_str(out, v->s);
        break;
    case MS_PLAIN_TUPLE:
    case MS_PLAIN_LIST:
    case MS_PLAIN_DICT:
        ms_buf_putc(out, "([{"[v->kind - MS_PLAIN_TUPLE]);
        put_items(v, 0, out, most, depth);
        ms_buf_putc(out, ")]}"[v->kind - MS_PLAIN_TUPLE]);
        break;
    case MS_PLAIN_CALL:
        put_value(v->item[0], out, most, 1);
        ms_buf_putc(out, '(');
        put_items(v, 1, out, most, depth);
        ms_buf_putc(out, ')');
        break;
    default:
        ms_buf_puts(out, v->kind == MS_PLAIN_NAME ? "a type" : "None");
    }
}

void probe_ckpt_value_text(const struct ms_plain *v, struct ms_buf *out, size_t most)
{
    put_value(v, out, out->n + most, 6);
}

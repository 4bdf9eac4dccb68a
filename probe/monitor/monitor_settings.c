/* SPDX-License-Identifier: MIT
 *
 * monitor_settings: config.json of the monitor, with the official keys and their defaults.
 */
#include "probe/monitor/monitor.h"

#include "probe/base/arena.h"
#include "probe/base/mem.h"
#include "probe/write/typed.h"

static const char *const op_words[] = {"norm", "min",  "max",   "zeros", "nans",
                                       "id",   "mean", "shape", "dtype", NULL};
static const char *const format_words[] = {"csv", "tensorboard", "api", NULL};
static const char *const order_words[] = {"s,b,h,d", "b,s,h,d", NULL};

const char *probe_monitor_op_name(enum probe_mon_op op)
{
    return op_words[op];
}

/* Settings and the memory behind them; the settings come first. */
struct owned {
    struct probe_monitor_settings s;
    struct ms_arena *arena;
    const char *const *ops;
};

#define AT(field) offsetof(struct owned, s.field)

/* ---- values ----------------------------------------------------------- */

/* Reads a number, whole or not. */
static PROBE__READER(read_number)
{
    double v;
    (void)with;
    if (tok != MS_J_NUM || !ms_jread_f64(&t->r, &v) || !(v >= 0))
        return probe__typed_mismatch(t, tok, "a number that is not negative", err);
    *(double *)at = v;
    return MS_OK;
}

struct ints {
    MS_VEC(int64_t) v;
};

static enum ms_rc read_rank(struct probe__typed *t, enum ms_jtok tok, void *ctx, struct ms_err *err)
{
    static const struct probe__bounds ranks = {0, INT32_MAX};
    struct ints *list = ctx;
    int64_t v = 0;
    MS_TRY(probe__read_int(t, tok, &v, &ranks, err));
    int64_t *slot = ms_vec_push(&list->v);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = v;
    return MS_OK;
}

static PROBE__READER(read_ranks)
{
    struct probe_monitor_settings *s = at;
    struct ints list = {0};
    (void)with;
    enum ms_rc rc = probe__read_list(t, tok, "a list of ranks", read_rank, &list, err);
    int64_t *kept = rc == MS_OK ? ms_arena_calloc(t->arena, list.v.n + 1, sizeof *kept) : NULL;
    if (rc == MS_OK && kept == NULL)
        rc = ms_no_memory(err);
    if (rc == MS_OK) {
        if (list.v.n != 0)
            memcpy(kept, list.v.p, list.v.n * sizeof *kept);
        s->module_ranks = kept;
        s->nranks = list.v.n;
    }
    ms_vec_free(&list.v);
    return rc;
}

struct names {
    MS_VEC(const char *) v;
};

static enum ms_rc read_target(struct probe__typed *t, struct names *names, struct ms_err *err)
{
    const char **slot = ms_vec_push(&names->v);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = NULL;
    MS_TRY(probe__keep_text(t, slot, err));
    enum ms_jtok tok = ms_jread_next(&t->r);
    if (tok != MS_J_OBJ)
        return probe__typed_reject(t, err, "%.80s: expected an object, {} where all of it counts",
                                   *slot);
    return ms_jread_skip(&t->r, tok) != MS_J_ERR ? MS_OK : ms_jread_fail(&t->r, err);
}

static enum ms_rc read_names(struct probe__typed *t, struct names *names, struct ms_err *err)
{
    enum ms_jtok tok;
    while ((tok = ms_jread_next(&t->r)) == MS_J_KEY)
        MS_TRY(read_target(t, names, err));
    return tok != MS_J_ERR ? MS_OK : ms_jread_fail(&t->r, err);
}

/* Reads the names of an object's members, whose values are objects that are not looked into. */
static PROBE__READER(read_targets)
{
    struct names names = {0};
    (void)with;
    if (tok != MS_J_OBJ)
        return probe__typed_mismatch(t, tok, "an object of names such as {\"fc\": {}}", err);
    enum ms_rc rc = read_names(t, &names, err);
    const char **kept = rc == MS_OK ? ms_arena_calloc(t->arena, names.v.n + 1, sizeof *kept) : NULL;
    if (rc == MS_OK && kept == NULL)
        rc = ms_no_memory(err);
    if (rc == MS_OK) {
        if (names.v.n != 0)
            memcpy(kept, names.v.p, names.v.n * sizeof *kept);
        *(const char *const **)at = kept;
    }
    ms_vec_free(&names.v);
    return rc;
}

/* ---- alarms ----------------------------------------------------------- */

struct rule_args {
    double threshold;
};
struct rule {
    int kind;
    struct rule_args args;
};

static enum ms_rc read_rule(struct probe__typed *t, enum ms_jtok tok, void *ctx, struct ms_err *err)
{
    static const char *const kinds[] = {"AnomalyTurbulence", "AnomalyNan", NULL};
    static const struct probe__key args[] = {
        {"threshold", read_number, offsetof(struct rule_args, threshold), NULL}, {0}};
    static const struct probe__key keys[] = {
        {"rule_name", probe__read_choice, offsetof(struct rule, kind), kinds},
        {"args", probe__read_object, offsetof(struct rule, args), args},
        {0}};
    struct probe_monitor_settings *s = ctx;
    struct rule r = {.kind = -1, .args.threshold = -1};
    MS_TRY(probe__read_object(t, tok, &r, keys, err));
    if (r.kind < 0)
        return probe__typed_reject(t, err, "expected a rule_name");
    if (r.kind == 0 && r.args.threshold < 0)
        return probe__typed_reject(t, err, "AnomalyTurbulence needs args: {\"threshold\": 0.5}");
    if (s->nrules == PROBE_MON_RULES)
        return probe__typed_reject(t, err, "more than %d rules", PROBE_MON_RULES);
    s->rules[s->nrules++] =
        (struct probe_mon_rule){r.kind == 1, r.args.threshold >= 0, r.args.threshold};
    return MS_OK;
}

static PROBE__READER(read_rules)
{
    (void)with;
    return probe__read_list(t, tok, "a list of rules", read_rule, at, err);
}

/* ---- the file --------------------------------------------------------- */

static const struct probe__key alert_keys[] = {
    {"rules", read_rules, 0, NULL},
    {"dump", probe__read_bool, offsetof(struct probe_monitor_settings, alert_dump), NULL},
    {0}};
#define IN(field) offsetof(struct probe_monitor_settings, field)
static const struct probe__key cc_keys[] = {
    {"enable", probe__read_bool, IN(cc_enable), NULL},
    {"cc_codeline", probe__read_words, IN(cc_codeline), NULL},
    {"cc_log_only", probe__read_bool, IN(cc_log_only), NULL},
    {"cc_pre_hook", probe__read_bool, IN(cc_pre_hook), NULL},
    {0}};
static const struct probe__key l2_keys[] = {
    {"attention_hook", probe__read_words, IN(attention_hook), NULL},
    {"linear_hook", probe__read_words, IN(linear_hook), NULL},
    {"moe_router_weight_hook", probe__read_words, IN(moe_router_weight_hook), NULL},
    {"moe_router_logit_hook", probe__read_words, IN(moe_router_logit_hook), NULL},
    {0}};
#undef IN

static const struct probe__bounds natural = {0, 100000000}, positive = {1, 1000000},
                                  digits = {1, 20};

static const struct probe__key file_keys[] = {
    {"targets", read_targets, AT(targets), NULL},
    {"l2_targets", probe__read_object, offsetof(struct owned, s), l2_keys},
    {"recording_l2_features", probe__read_bool, AT(recording_l2_features), NULL},
    {"sa_order", probe__read_choice, AT(sa_order), order_words},
    {"dynamic_on", probe__read_bool, AT(dynamic_on), NULL},
    {"start_step", probe__read_int, AT(start_step), &natural},
    {"collect_times", probe__read_int, AT(collect_times), &natural},
    {"step_interval", probe__read_int, AT(step_interval), &positive},
    {"print_struct", probe__read_bool, AT(print_struct), NULL},
    {"module_ranks", read_ranks, offsetof(struct owned, s), NULL},
    {"ur_distribution", probe__read_bool, AT(ur_distribution), NULL},
    {"xy_distribution", probe__read_bool, AT(xy_distribution), NULL},
    {"all_xy", probe__read_bool, AT(all_xy), NULL},
    {"forward_only", probe__read_bool, AT(forward_only), NULL},
    {"backward_only", probe__read_bool, AT(backward_only), NULL},
    {"mv_distribution", probe__read_bool, AT(mv_distribution), NULL},
    {"wg_distribution", probe__read_bool, AT(wg_distribution), NULL},
    {"param_distribution", probe__read_bool, AT(param_distribution), NULL},
    {"mg_direction", probe__read_bool, AT(mg_direction), NULL},
    {"monitor_mbs_grad", probe__read_bool, AT(monitor_mbs_grad), NULL},
    {"cc_distribution", probe__read_object, offsetof(struct owned, s), cc_keys},
    {"alert", probe__read_object, offsetof(struct owned, s), alert_keys},
    {"format", probe__read_choice, AT(format), format_words},
    {"ops", probe__read_words, offsetof(struct owned, ops), op_words},
    {"eps", read_number, AT(eps), NULL},
    {"ndigits", probe__read_int, AT(ndigits), &digits},
    {"step_count_per_record", probe__read_int, AT(step_count_per_record), &positive},
    {"append_output", probe__read_words, AT(append_output), NULL},
    {"squash_name", probe__read_bool, AT(squash_name), NULL},
    {"stack_info", probe__read_bool, AT(stack_info), NULL},
    {"invariants", probe__read_bool, AT(invariants), NULL},
    {"mg_distribution", probe__ignore, 0, NULL}, /* checked by the official tool, and not used */
    {"framework", probe__ignore, 0, NULL},
    {0}};

static bool has_op(const struct probe_monitor_settings *s, enum probe_mon_op op)
{
    for (uint32_t i = 0; i < s->nops; i++) {
        if (s->ops[i] == op)
            return true;
    }
    return false;
}

static void add_op(struct probe_monitor_settings *s, enum probe_mon_op op)
{
    if (!has_op(s, op))
        s->ops[s->nops++] = op;
}

/* Shape and dtype are always there; without any op the norm is. */
static void set_ops(struct owned *o)
{
    for (size_t i = 0; o->ops != NULL && o->ops[i] != NULL; i++) {
        enum probe_mon_op op = PROBE_MON_NORM;
        while (strcmp(op_words[op], o->ops[i]) != 0)
            op++;
        add_op(&o->s, op);
    }
    if (o->s.nops == 0)
        add_op(&o->s, PROBE_MON_NORM);
    add_op(&o->s, PROBE_MON_SHAPE);
    add_op(&o->s, PROBE_MON_DTYPE);
}

static enum ms_rc settings_check(struct owned *o, struct ms_err *err)
{
    static const char *const all[] = {"", NULL};
    size_t times = 0;
    while (o->s.append_output != NULL && o->s.append_output[times] != NULL)
        times++;
    if (times != 0 && times != 2)
        return ms_fail(err, MS_E_FORMAT,
                       "append_output: expected no times or two, such as \"Dec03_21-34-40\", found "
                       "%zu",
                       times);
    set_ops(o);
    if (o->s.targets == NULL || o->s.targets[0] == NULL) {
        o->s.all_xy |= o->s.xy_distribution;
        o->s.targets = all;
    }
    return MS_OK;
}

enum ms_rc probe_monitor_settings_parse(struct probe_monitor_settings **s, const char *name,
                                        struct ms_str text, struct ms_err *err)
{
    struct ms_arena *arena = ms_arena_new(16 << 20);
    struct owned *o = arena != NULL ? ms_arena_calloc(arena, 1, sizeof *o) : NULL;
    if (o == NULL) {
        ms_arena_free(arena);
        return ms_no_memory(err);
    }
    o->arena = arena;
    o->s.eps = 1e-8;
    o->s.ndigits = 6;
    o->s.collect_times = 100000000;
    o->s.step_interval = o->s.step_count_per_record = 1;
    enum ms_rc rc = probe__typed_read(name, text, arena, file_keys, o, err);
    if (rc == MS_OK && (rc = settings_check(o, err)) != MS_OK) {
        probe__typed_locate(text, "", err);
        ms_err_wrap(err, "%s", name);
    }
    *s = rc == MS_OK ? &o->s : NULL;
    if (rc != MS_OK)
        ms_arena_free(arena);
    return rc;
}

void probe_monitor_settings_free(struct probe_monitor_settings *s)
{
    if (s != NULL)
        ms_arena_free(((struct owned *)(void *)s)->arena);
}

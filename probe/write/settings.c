/* SPDX-License-Identifier: MIT
 *
 * settings: config.json, the rules between its keys, and copies.
 *
 * Each task has its own section, and the key `task` may follow the section in the file, so all
 * sections are parsed and one is used.
 */
#include "probe/write/settings.h"

#include "probe/base/arena.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/dump/name.h"
#include "probe/write/typed.h"

/* ---- what goes together ------------------------------------------------------------- */

/* ---- rules ------------------------------------------------------------ */

static size_t count(const char *const *list)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL)
        n++;
    return n;
}

/* Tells whether records of this kind occur at this level. */
static bool fits_level(enum probe_node_kind kind, enum probe_level level)
{
    switch (level) {
    case PROBE_LEVEL_L0:
        return kind == PROBE_NODE_MODULE;
    case PROBE_LEVEL_L1:
        return kind == PROBE_NODE_API;
    default:
        return kind == PROBE_NODE_MODULE || kind == PROBE_NODE_API;
    }
}

static enum ms_rc check_scope(const struct probe_settings *s, struct ms_err *err)
{
    static const char *const wanted[] = {
        "Functional.linear.0.forward or Module.fc.Linear.forward.0", "Module.fc.Linear.forward.0",
        "Functional.linear.0.forward"};
    size_t n = count(s->scope);
    if (n != 0 && n != 2)
        return ms_fail(err, MS_E_FORMAT,
                       "scope: expected no names or two, of the first and the last record, found "
                       "%zu",
                       n);
    for (size_t i = 0; i < n; i++) {
        if (!fits_level(probe_name_parse(ms_str_of(s->scope[i])).kind, s->level))
            return ms_fail(err, MS_E_FORMAT,
                           "scope[%zu]: expected a whole name such as %s, found \"%.60s\"", i,
                           wanted[s->level], s->scope[i]);
    }
    return MS_OK;
}

static enum ms_rc check_ranges(const char *key, const struct probe_range *r, size_t n,
                               struct ms_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (r[i].first > r[i].last)
            return ms_fail(err, MS_E_FORMAT, "%s[%zu]: from %u to %u is no range", key, i,
                           r[i].first, r[i].last);
    }
    return MS_OK;
}

static enum ms_rc check_enums(const struct probe_settings *s, struct ms_err *err)
{
    if ((unsigned)s->task > PROBE_TASK_OVERFLOW_CHECK || (unsigned)s->summary > PROBE_SUMMARY_XOR ||
        (unsigned)s->level > PROBE_LEVEL_DEBUG || (unsigned)s->framework > PROBE_FW_MINDTORCH ||
        (unsigned)s->risk > PROBE_RISK_ALL)
        return ms_fail(err, MS_E_ARG, "no such task, summary, level, framework or risk");
    return MS_OK;
}

static enum ms_rc check_task(const struct probe_settings *s, struct ms_err *err)
{
    const unsigned both = PROBE_DATA_INPUT | PROBE_DATA_OUTPUT;
    if (s->task == PROBE_TASK_NAN_CHECK && s->level != PROBE_LEVEL_L1)
        return ms_fail(err, MS_E_FORMAT, "level: task nan_check works at L1 only");
    if (s->task == PROBE_TASK_NAN_CHECK && (s->data_mode & both) == PROBE_DATA_INPUT)
        return ms_fail(err, MS_E_FORMAT,
                       "data_mode: task nan_check looks at outputs; \"input\" needs \"output\"");
    if (s->summary != PROBE_SUMMARY_STATISTICS && s->task != PROBE_TASK_STATISTICS)
        return ms_fail(err, MS_E_FORMAT, "summary_mode: goes with task statistics only");
    if (count(s->tensor_list) != 0 && s->task != PROBE_TASK_STATISTICS &&
        s->task != PROBE_TASK_NAN_CHECK)
        return ms_fail(err, MS_E_FORMAT,
                       "tensor_list: goes with the tasks statistics and nan_check only");
    if (s->level == PROBE_LEVEL_DEBUG && s->task != PROBE_TASK_STATISTICS &&
        s->task != PROBE_TASK_TENSOR)
        return ms_fail(err, MS_E_FORMAT,
                       "task: level debug goes with the tasks statistics and tensor only");
    if (s->overflow_nums < -1)
        return ms_fail(err, MS_E_FORMAT, "overflow_nums: expected -1 for no end, or a number");
    return MS_OK;
}

/* Removes all filters: a value saved by hand is always dumped. */
static void drop_filters(struct probe_settings *s)
{
    s->scope = s->list = s->tensor_list = NULL;
    s->nslices = 0;
    s->data_mode = 0;
}

/* Checks the rules between settings and applies the consequences: task structure works at level
 * mix, and level debug has no filters. */
static enum ms_rc settings_check(struct probe_settings *s, struct ms_err *err)
{
    if (s->dump_path == NULL || s->dump_path[0] == '\0')
        return ms_fail(err, MS_E_FORMAT, "dump_path: required: the directory to dump into");
    MS_TRY(check_enums(s, err));
    if (s->task == PROBE_TASK_STRUCTURE && s->level != PROBE_LEVEL_L0)
        s->level = PROBE_LEVEL_MIX;
    if (s->level == PROBE_LEVEL_DEBUG)
        drop_filters(s);
    MS_TRY(check_task(s, err));
    MS_TRY(check_ranges("step", s->step, s->nsteps, err));
    MS_TRY(check_ranges("rank", s->rank, s->nranks, err));
    return check_scope(s, err);
}

/* ---- copies ----------------------------------------------------------- */

static const void *copy_items(struct ms_arena *a, const void *p, size_t n, size_t size)
{
    void *copy = ms_arena_calloc(a, n != 0 ? n : 1, size);
    if (copy != NULL && n != 0)
        memcpy(copy, p, n * size);
    return copy;
}

/* Copies a list; a NULL list becomes an empty one, and NULL means out of memory. */
static const char *const *copy_words(struct ms_arena *a, const char *const *words)
{
    size_t n = count(words);
    const char **copy = ms_arena_calloc(a, n + 1, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < n; i++) {
        copy[i] = ms_arena_str(a, ms_str_of(words[i])).p;
        if (copy[i] == NULL)
            return NULL;
    }
    return copy;
}

static bool copy_all(struct probe_settings *to, struct ms_arena *a)
{
    to->dump_path = ms_arena_str(a, ms_str_of(to->dump_path)).p;
    to->step = copy_items(a, to->step, to->nsteps, sizeof *to->step);
    to->rank = copy_items(a, to->rank, to->nranks, sizeof *to->rank);
    to->slice = copy_items(a, to->slice, to->nslices, sizeof *to->slice);
    to->scope = copy_words(a, to->scope);
    to->list = copy_words(a, to->list);
    to->tensor_list = copy_words(a, to->tensor_list);
    to->op_namespaces = copy_words(a, to->op_namespaces);
    return to->dump_path != NULL && to->step != NULL && to->rank != NULL && to->slice != NULL &&
           to->scope != NULL && to->list != NULL && to->tensor_list != NULL &&
           to->op_namespaces != NULL;
}

enum ms_rc probe__settings_copy(struct probe_settings *to, const struct probe_settings *from,
                                struct ms_arena *arena, struct ms_err *err)
{
    *to = *from;
    MS_TRY(settings_check(to, err));
    return copy_all(to, arena) ? MS_OK : ms_arena_fail(arena, err);
}

/* ---- reading ------------------------------------------------------------------------ */

enum { FILE_MAX = 1 << 20, NUMBER_MAX = 1000000 };

/* Settings and the memory behind them; the settings come first. */
struct owned {
    struct probe_settings s;
    struct ms_arena *arena;
};

struct section {
    const char *const *scope, *const *list, *const *tensor_list, *const *data_mode;
    const struct probe_slice *slice;
    size_t nslices;
    int64_t overflow_nums;
    int summary;
    bool has_figures; /* summary_mode is a list of statistics */
};

enum { TASKS = PROBE_TASK_OVERFLOW_CHECK + 1 };
struct file {
    struct probe_settings s;
    int task, level, framework, risk, precision;
    bool extra_info, async_dump, dump_enable;
    int64_t memory_mb;
    struct section section[TASKS];
};

/* ---- lists ------------------------------------------------------------ */

/* Parses "3" or "0-2". */
static bool parse_range(struct ms_str text, struct probe_range *out)
{
    struct ms_str first = text;
    struct ms_str last = text;
    uint64_t a, b;
    int64_t dash = ms_str_find(text, '-');
    if (dash >= 0) {
        first = ms_str_sub(text, 0, (uint32_t)dash);
        last = ms_str_sub(text, (uint32_t)dash + 1, text.n);
    }
    if (!ms_str_u64(first, &a) || !ms_str_u64(last, &b) || a > b || b > NUMBER_MAX)
        return false;
    *out = (struct probe_range){(uint32_t)a, (uint32_t)b};
    return true;
}

static enum ms_rc read_range(struct probe__typed *t, enum ms_jtok tok, void *ctx,
                             struct ms_err *err)
{
    MS_VEC(struct probe_range) *list = ctx;
    struct probe_range range;
    if (tok != MS_J_NUM && tok != MS_J_STR)
        return probe__typed_mismatch(t, tok, "a number or a text such as \"2-4\"", err);
    if (!parse_range(t->r.text, &range))
        return probe__typed_reject(
            t, err, "expected a number from 0 to %d or a range such as \"2-4\", found %.*s",
            NUMBER_MAX, (int)(t->r.text.n < 40 ? t->r.text.n : 40), t->r.text.p);
    struct probe_range *slot = ms_vec_push(list);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = range;
    return MS_OK;
}

/* Copies the items of a vector into the arena. */
static enum ms_rc keep_items(struct ms_arena *arena, const void *p, size_t n, size_t size,
                             const void **out, struct ms_err *err)
{
    void *kept = ms_arena_calloc(arena, n != 0 ? n : 1, size);
    if (kept == NULL)
        return ms_arena_fail(arena, err);
    if (n != 0)
        memcpy(kept, p, n * size);
    *out = kept;
    return MS_OK;
}

/* Reads a list of ranges; `at` points to the array pointer, `with` gives the place of the count. */
static PROBE__READER(read_ranges)
{
    MS_VEC(struct probe_range) list = {0};
    const void *kept = NULL;
    enum ms_rc rc = probe__read_list(t, tok, "a list of numbers", read_range, &list, err);
    if (rc == MS_OK)
        rc = keep_items(t->arena, list.p, list.n, sizeof *list.p, &kept, err);
    if (rc == MS_OK) {
        *(const struct probe_range **)at = kept;
        *(size_t *)((char *)at + *(const size_t *)with) = list.n;
    }
    ms_vec_free(&list);
    return rc;
}

struct read_slice {
    int64_t dim, begin, end, size;
    bool has_end;
};

static PROBE__READER(read_end)
{
    MS_TRY(probe__read_int(t, tok, at, with, err));
    struct read_slice *s =
        (struct read_slice *)(void *)((char *)at - offsetof(struct read_slice, end));
    s->has_end = true;
    return MS_OK;
}

static enum ms_rc read_slice(struct probe__typed *t, enum ms_jtok tok, void *ctx,
                             struct ms_err *err)
{
    static const struct probe__bounds any = {INT64_MIN, INT64_MAX}, natural = {0, INT64_MAX};
    static const struct probe__bounds dims = {0, 1000};
    static const struct probe__key keys[] = {
        {"dim", probe__read_int, offsetof(struct read_slice, dim), &dims},
        {"begin", probe__read_int, offsetof(struct read_slice, begin), &any},
        {"end", read_end, offsetof(struct read_slice, end), &any},
        {"size", probe__read_int, offsetof(struct read_slice, size), &natural},
        {0}};
    MS_VEC(struct probe_slice) *list = ctx;
    struct read_slice s = {.size = -1};
    MS_TRY(probe__read_object(t, tok, &s, keys, err));
    struct probe_slice *slot = ms_vec_push(list);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct probe_slice){.dim = (uint32_t)s.dim,
                                 .has_end = s.has_end,
                                 .has_size = s.size >= 0,
                                 .begin = s.begin,
                                 .end = s.end,
                                 .size = (uint64_t)s.size};
    return MS_OK;
}

static PROBE__READER(read_slices)
{
    MS_VEC(struct probe_slice) list = {0};
    const void *kept = NULL;
    (void)with;
    enum ms_rc rc = probe__read_list(t, tok, "a list of slices in { }", read_slice, &list, err);
    if (rc == MS_OK)
        rc = keep_items(t->arena, list.p, list.n, sizeof *list.p, &kept, err);
    if (rc == MS_OK) {
        *(const struct probe_slice **)at = kept;
        *(size_t *)((char *)at + offsetof(struct section, nslices) -
                    offsetof(struct section, slice)) = list.n;
    }
    ms_vec_free(&list);
    return rc;
}

/* ---- the file --------------------------------------------------------- */

static const char *const task_words[] = {"statistics", "tensor",         "structure",
                                         "nan_check",  "overflow_check", NULL};
static const char *const level_words[] = {"mix", "L0", "L1", "debug", NULL};
static const char *const summary_words[] = {"statistics", "md5", "xor", NULL};
static const char *const figure_words[] = {"max",
                                           "min",
                                           "mean",
                                           "l2norm",
                                           "count",
                                           "negative zero count",
                                           "positive zero count",
                                           "zero count",
                                           "nan count",
                                           "negative inf count",
                                           "positive inf count",
                                           "hash",
                                           "md5",
                                           NULL};
static const char *const framework_words[] = {"pytorch", "mindspore", "mindtorch", NULL};
static const char *const risk_words[] = {"FOCUS", "CORE", "ALL", NULL};
static const char *const precision_words[] = {"low", "high", NULL};
static const char *const data_words[] = {"all", "forward", "backward", "input", "output", NULL};

/* Reads summary_mode. A list of statistics selects those of MindSpore graphs; elsewhere it means
 * `statistics`. */
static PROBE__READER(read_summary)
{
    if (tok != MS_J_ARR)
        return probe__read_choice(t, tok, at, with, err);
    const char *const *figures;
    MS_TRY(probe__read_words(t, tok, &figures, figure_words, err));
    struct section *section =
        (struct section *)(void *)((char *)at - offsetof(struct section, summary));
    section->summary = PROBE_SUMMARY_STATISTICS;
    section->has_figures = true;
    return MS_OK;
}

/* Reads dump_enable; its presence turns on polling of the file while the program runs. */
static PROBE__READER(read_switch)
{
    struct file *f = (struct file *)(void *)((char *)at - offsetof(struct file, dump_enable));
    if (tok == MS_J_NULL)
        return MS_OK;
    f->s.is_watched = true;
    return probe__read_bool(t, tok, at, with, err);
}

static const struct probe__bounds overflows = {-1, INT32_MAX}, megabytes = {1, 1 << 20};
static const size_t steps_n =
    offsetof(struct probe_settings, nsteps) - offsetof(struct probe_settings, step);
static const size_t ranks_n =
    offsetof(struct probe_settings, nranks) - offsetof(struct probe_settings, rank);

static const char no_framework[] = "is for what only the official tool does, so it is ignored";
static const char no_diff[] = "comparing while dumping is not done here; dump both runs and use "
                              "msprobe compare";

#define IN(key, reader, with) #key, reader, offsetof(struct section, key), with
static const struct probe__key section_keys[] = {
    {IN(scope, probe__read_words, NULL)},
    {IN(list, probe__read_words, NULL)},
    {IN(tensor_list, probe__read_words, NULL)},
    {IN(data_mode, probe__read_words, data_words)},
    {IN(slice, read_slices, NULL)},
    {IN(overflow_nums, probe__read_int, &overflows)},
    {"summary_mode", read_summary, offsetof(struct section, summary), summary_words},
    {"check_mode", probe__unused, 0, no_framework},
    {"request_id", probe__ignore, 0, NULL}, /* read by the debuggers */
    {"device", probe__unused, 0, no_framework},
    {"precision", probe__unused, 0, no_framework},
    {"file_format", probe__unused, 0, no_framework},
    {"bench_path", probe__refused, 0, no_diff},
    {"diff_nums", probe__unused, 0, no_diff},
    {0}};
#undef IN

#define SECTION(name, task)                                                                        \
    {                                                                                              \
        name, probe__read_object, offsetof(struct file, section[PROBE_TASK_##task]), section_keys  \
    }
static const struct probe__key file_keys[] = {
    {"task", probe__read_choice, offsetof(struct file, task), task_words},
    {"dump_path", probe__read_str, offsetof(struct file, s.dump_path), NULL},
    {"rank", read_ranges, offsetof(struct file, s.rank), &ranks_n},
    {"step", read_ranges, offsetof(struct file, s.step), &steps_n},
    {"level", probe__read_choice, offsetof(struct file, level), level_words},
    {"dump_enable", read_switch, offsetof(struct file, dump_enable), NULL},
    {"extra_info", probe__read_bool, offsetof(struct file, extra_info), NULL},
    {"async_dump", probe__read_bool, offsetof(struct file, async_dump), NULL},
    {"precision", probe__read_choice, offsetof(struct file, precision), precision_words},
    {"risk_level", probe__read_choice, offsetof(struct file, risk), risk_words},
    {"framework", probe__read_choice, offsetof(struct file, framework), framework_words},
    {"all_numbers", probe__read_bool, offsetof(struct file, s.all_numbers), NULL},
    {"module_backward", probe__read_bool, offsetof(struct file, s.module_backward), NULL},
    {"strict", probe__read_bool, offsetof(struct file, s.strict), NULL},
    {"memory_limit_mb", probe__read_int, offsetof(struct file, memory_mb), &megabytes},
    {"custom_op_namespaces", probe__read_words, offsetof(struct file, s.op_namespaces), NULL},
    {"enable_dataloader", probe__unused, 0, no_framework},
    {"load", probe__ignore, 0, NULL},
    SECTION("statistics", STATISTICS),
    SECTION("tensor", TENSOR),
    SECTION("structure", STRUCTURE),
    SECTION("nan_check", NAN_CHECK),
    SECTION("overflow_check", OVERFLOW_CHECK),
    /* Sections of other tasks are common in such files and are ignored. */
    {"acc_check", probe__ignore, 0, NULL},
    {"run_ut", probe__ignore, 0, NULL},
    {"free_benchmark", probe__ignore, 0, NULL},
    {"grad_probe", probe__ignore, 0, NULL},
    {"diff_check", probe__ignore, 0, NULL},
    {"exception_dump", probe__ignore, 0, NULL},
    {0}};
#undef SECTION

static enum ms_rc set_data_mode(struct probe_settings *s, const char *const *words,
                                struct ms_err *err)
{
    bool all = false;
    size_t n = 0;
    for (; words != NULL && words[n] != NULL; n++) {
        for (unsigned i = 1; data_words[i] != NULL; i++)
            s->data_mode |= strcmp(words[n], data_words[i]) == 0 ? 1U << (i - 1) : 0;
        all |= strcmp(words[n], "all") == 0;
    }
    if (all && n > 1)
        return ms_fail(err, MS_E_FORMAT,
                       "%s.data_mode: \"all\" stands alone; expected it or "
                       "some of \"forward\", \"backward\", \"input\", \"output\"",
                       task_words[s->task]);
    return MS_OK;
}

/* Converts the parsed file to settings. */
static enum ms_rc translate(const struct file *f, struct probe_settings *s, struct ms_err *err)
{
    const struct section *section = &f->section[f->task];
    *s = f->s;
    s->task = (enum probe_task)f->task;
    s->level = (enum probe_level)f->level;
    s->framework = (enum probe_framework)(f->framework + PROBE_FW_PYTORCH);
    s->risk = (enum probe_risk)f->risk;
    s->summary = (enum probe_summary)section->summary;
    s->scope = section->scope;
    s->list = section->list;
    s->tensor_list = section->tensor_list;
    s->slice = section->slice;
    s->nslices = section->nslices;
    s->overflow_nums = section->overflow_nums;
    s->disabled = !f->dump_enable;
    s->no_extra = !f->extra_info;
    s->high_precision = f->precision != 0;
    s->memory_max = (size_t)f->memory_mb << 20;
    MS_TRY(set_data_mode(s, section->data_mode, err));
    if (section->has_figures && s->framework != PROBE_FW_MINDSPORE)
        return ms_fail(err, MS_E_FORMAT,
                       "%s.summary_mode: a list goes with MindSpore; expected one of "
                       "\"statistics\", \"md5\", \"xor\"",
                       task_words[s->task]);
    if (!f->async_dump)
        return MS_OK;
    if (s->summary == PROBE_SUMMARY_MD5)
        return ms_fail(
            err, MS_E_FORMAT,
            "async_dump: expected false, as summary_mode is \"md5\", or another of these");
    if (s->task == PROBE_TASK_TENSOR && (s->list == NULL || s->list[0] == NULL))
        return ms_fail(err, MS_E_FORMAT,
                       "async_dump: needs names in tensor.list when the task is tensor");
    return MS_OK;
}

static enum ms_rc parse(struct owned *o, const char *name, struct ms_str text, struct ms_str over,
                        struct ms_err *err)
{
    static const char *const ascend[] = {"_C_ascend", NULL};
    struct file f = {.level = PROBE_LEVEL_L1,
                     .extra_info = true,
                     .dump_enable = true,
                     .s.op_namespaces = ascend};
    MS_TRY(probe__typed_read(name, text, o->arena, file_keys, &f, err));
    if (over.n != 0)
        MS_TRY(probe__typed_read("arguments", over, o->arena, file_keys, &f, err));
    struct ms_err why = {0};
    enum ms_rc rc = translate(&f, &o->s, &why);
    if (rc == MS_OK)
        rc = settings_check(&o->s, &why);
    if (rc == MS_OK)
        return MS_OK;
    bool is_over = over.n != 0 && probe__typed_locate(over, task_words[f.task], &why);
    if (!is_over)
        probe__typed_locate(text, task_words[f.task], &why);
    ms_err_wrap(&why, "%s", is_over ? "arguments" : name);
    if (err != NULL && err->rc == MS_OK)
        *err = why;
    return rc;
}

static struct owned *new_owned(struct ms_err *err)
{
    struct owned *o = ms_calloc(1, sizeof *o);
    if (o != NULL)
        o->arena = ms_arena_new(SIZE_MAX);
    if (o != NULL && o->arena != NULL)
        return o;
    ms_free(o);
    ms_no_memory(err);
    return NULL;
}

enum ms_rc probe__settings_parse_over(struct probe_settings **s, const char *name, const char *text,
                                      size_t n, struct ms_str over, struct ms_err *err)
{
    *s = NULL;
    if (n > FILE_MAX)
        return ms_fail(err, MS_E_LIMIT, "%s: %zu bytes, more than the %d allowed", name, n,
                       FILE_MAX);
    struct owned *o = new_owned(err);
    if (o == NULL)
        return MS_E_NOMEM;
    enum ms_rc rc = parse(o, name, (struct ms_str){text, (uint32_t)n}, over, err);
    if (rc == MS_OK)
        *s = &o->s;
    else
        probe_settings_free(&o->s);
    return rc;
}

enum ms_rc probe_settings_parse(struct probe_settings **s, const char *name, const char *text,
                                size_t n, struct ms_err *err)
{
    return probe__settings_parse_over(s, name, text, n, (struct ms_str){NULL, 0}, err);
}

enum ms_rc probe_settings_load(struct probe_settings **s, const char *path, struct ms_err *err)
{
    struct ms_file f;
    *s = NULL;
    MS_TRY(ms_file_map(&f, path, FILE_MAX, err));
    enum ms_rc rc = probe_settings_parse(s, path, f.p, f.n, err);
    ms_file_unmap(&f);
    return rc;
}

void probe_settings_free(struct probe_settings *s)
{
    struct owned *o = (struct owned *)(void *)s;
    if (o == NULL)
        return;
    ms_arena_free(o->arena);
    ms_free(o);
}

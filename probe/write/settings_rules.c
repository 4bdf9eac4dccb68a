/* SPDX-License-Identifier: MIT
 *
 * settings_rules: rules between settings, and copies of settings.
 */
#include "probe/base/arena.h"
#include "probe/base/mem.h"
#include "probe/dump/name.h"
#include "probe/write/settings.h"

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

enum ms_rc probe__settings_check(struct probe_settings *s, struct ms_err *err)
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
    MS_TRY(probe__settings_check(to, err));
    return copy_all(to, arena) ? MS_OK : ms_arena_fail(arena, err);
}

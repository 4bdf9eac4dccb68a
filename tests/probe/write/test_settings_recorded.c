/* SPDX-License-Identifier: MIT
 *
 * settings_recorded: what the reader of config.json makes of the files of its corpus and of
 * everything that is one byte away from them.
 */
#include "probe/base/log.h"
#include "probe/write/settings.h"
#include "tests/support/recorded.h"

#include <inttypes.h>

static void put_words(struct ms_buf *b, const char *what, const char *const *word)
{
    ms_buf_printf(b, " %s%s", what, word == NULL ? " none" : "");
    for (; word != NULL && *word != NULL; word++)
        ms_buf_printf(b, " \"%s\"", *word);
}

static void put_ranges(struct ms_buf *b, const struct probe_range *r, size_t n)
{
    ms_buf_puts(b, ";");
    for (size_t i = 0; i < n; i++)
        ms_buf_printf(b, " %u-%u", r[i].first, r[i].last);
}

static void put_settings(struct ms_buf *b, const struct probe_settings *s)
{
    ms_buf_printf(b, "%s %d %d %d %d %d %u", s->dump_path, s->task, s->summary, s->level,
                  s->framework, s->risk, s->data_mode);
    put_ranges(b, s->step, s->nsteps);
    put_ranges(b, s->rank, s->nranks);
    put_words(b, "scope", s->scope);
    put_words(b, "list", s->list);
    put_words(b, "tensors", s->tensor_list);
    put_words(b, "namespaces", s->op_namespaces);
    ms_buf_printf(b, " %zu slices %" PRId64 " %d%d%d%d%d%d%d %u %zu", s->nslices, s->overflow_nums,
                  s->disabled, s->is_watched, s->no_extra, s->high_precision, s->all_numbers,
                  s->module_backward, s->rank_known, s->my_rank, s->memory_max);
}

static void answer(struct ms_buf *b, const char *p, size_t n)
{
    struct probe_settings *s;
    struct ms_err e = {0};
    if (probe_settings_parse(&s, "config.json", p, n, &e) == MS_OK)
        put_settings(b, s);
    else
        ms_buf_printf(b, "%d %s", e.rc, e.msg);
    probe_settings_free(s);
}

START_TEST(files_of_settings)
{
    struct ms_buf b = {.max = 1 << 20};
    ms_log_set_level(MS_LOG_ERROR);
    recorded_corpus(&b, "settings", answer);
    recorded_check(&b, "settings");
}
END_TEST

RECORDED_MAIN("settings_recorded", files_of_settings)

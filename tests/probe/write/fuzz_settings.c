/* SPDX-License-Identifier: MIT
 *
 * fuzz_settings: any text as a config.json.  What is accepted keeps its rules,
 * can be copied, and reads the same a second time; what is refused leaves
 * nothing behind.
 */
#include "probe/base/arena.h"
#include "probe/base/log.h"
#include "probe/base/mem.h"
#include "probe/write/settings.h"

#include <assert.h>
#include <string.h>

static void check_words(const char *const *a, const char *const *b)
{
    size_t i = 0;
    for (; a != NULL && a[i] != NULL; i++)
        assert(b[i] != NULL && strcmp(a[i], b[i]) == 0);
    assert(b[i] == NULL);
}

static void check(const struct probe_settings *s)
{
    struct probe_settings copy;
    struct ms_err err = {0};
    struct ms_arena *arena = ms_arena_new(SIZE_MAX);
    assert(arena != NULL);
    assert(s->dump_path != NULL && s->dump_path[0] != '\0');
    for (size_t i = 0; i < s->nsteps; i++)
        assert(s->step[i].first <= s->step[i].last && s->step[i].last <= 1000000);
    assert(probe__settings_copy(&copy, s, arena, &err) == MS_OK);
    assert(strcmp(copy.dump_path, s->dump_path) == 0);
    assert(copy.level == s->level && copy.data_mode == s->data_mode);
    assert(copy.nsteps == s->nsteps && copy.nslices == s->nslices);
    check_words(s->list, copy.list);
    check_words(s->scope, copy.scope);
    ms_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct probe_settings *s, *again;
    struct ms_err err = {0};
    const size_t before = ms_mem_live();
    ms_log_set_level(MS_LOG_ERROR);
    if (probe_settings_parse(&s, "config.json", (const char *)p, n, &err) != MS_OK) {
        assert(s == NULL && err.msg[0] != '\0');
        assert(ms_mem_live() == before);
        return 0;
    }
    check(s);
    assert(probe_settings_parse(&again, "config.json", (const char *)p, n, &err) == MS_OK);
    assert(again->task == s->task && again->summary == s->summary);
    probe_settings_free(again);
    probe_settings_free(s);
    assert(ms_mem_live() == before);
    return 0;
}
